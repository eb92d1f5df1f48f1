//! Figures known from other sources.

use super::*;

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found}, expected {expected}");
}

/// Anscombe's first data set (1973), whose line is in every textbook: slope 0.50009, r squared 0.66654.
#[test]
fn the_line_of_a_known_data_set() {
    let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
    let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
    let points: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
    let line = FittedLine::fit(&points).expect("it has a line");
    near(line.slope, 0.500_090_9, 1e-7);
    near(line.r_squared, 0.666_542_5, 1e-7);
    assert_eq!(FittedLine::fit(&points[..1]), None);
}

/// One side is better if the interval of the difference excludes zero: not if it only touches zero, and never after a
/// single run.
#[test]
fn a_difference_counts_where_its_interval_leaves_zero_out() {
    // Two samples at 1 and 3: the mean is 2, its standard error 1, and t for one degree of freedom 12.706.
    let around = |middle: f64| Summary::of(&[middle - 1.0, middle + 1.0]).is_significant();
    assert_eq!([-13.0, -12.0, 0.0, 12.0, 13.0].map(around), [true, false, false, false, true]);
    assert!(!Summary::of(&[0.0; 3]).is_significant(), "it touches zero");
    let single = Summary::of(&[5.0]);
    assert!(!single.is_significant());
    assert_eq!(single.interval(), (5.0, 5.0));
}

/// Abramowitz and Stegun 26.7.5, used from a thousand degrees on: the omitted terms are a few billionths there.
#[test]
fn the_expansion_agrees_with_the_series() {
    for degrees in [1000, 1001, 2000] {
        near(student_t_95(degrees), student_t(0.95, degrees), 4e-9);
    }
    near(student_t_95(1_000_000_000), 1.959_963_985, 1e-8);
}
