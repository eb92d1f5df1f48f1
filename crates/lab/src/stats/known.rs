//! Figures known from other sources.

use super::*;

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found}, expected {expected}");
}

/// Anscombe's first data set (1973), whose line is in every textbook: slope 0.50009 with a standard error of 0.11791,
/// intercept 3.00009, r squared 0.66654. Eleven points leave nine degrees of freedom: t is 2.26216.
#[test]
fn the_interval_of_a_slope_has_two_degrees_of_freedom_less_than_points() {
    let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
    let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
    let points: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
    let line = FittedLine::fit(&points).expect("it has a line");
    near(line.slope, 0.500_090_9, 1e-7);
    near(line.intercept, 3.000_090_9, 1e-7);
    near(line.r_squared, 0.666_542_5, 1e-7);
    near(line.slope_ci95.expect("it has an interval"), 2.262_157 * 0.117_905_5, 1e-6);
}

/// Three points leave one degree of freedom, two leave none: then there is no interval, rather than an empty one.
#[test]
fn a_slope_through_two_points_has_no_interval() {
    let points = [(0.0, 0.0), (1.0, 1.0), (2.0, 1.0)];
    // Computed by hand: slope 1/2; the residual is 1/6 in squares, over 1 degree and 2 of x; t is 12.7062.
    let line = FittedLine::fit(&points).expect("it has a line");
    near(line.slope, 0.5, 1e-12);
    near(line.slope_ci95.expect("it has an interval"), 12.706_204_7 * libm::sqrt(1.0 / 12.0), 1e-6);
    assert_eq!(FittedLine::fit(&points[..2]).map(|line| line.slope_ci95), Some(None));
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

#[test]
fn an_exponential_is_what_it_is_between_its_points() {
    // The value doubles with each step of 10, from 3.
    let points: Vec<(f64, f64)> =
        (0..4).map(|step| (10.0 * f64::from(step), 3.0 * f64::from(1 << step))).collect();
    let fit = Exponential::fit(&points).expect("all are positive");
    near(fit.rate, libm::log(2.0) / 10.0, 1e-12);
    near(fit.scale, 3.0, 1e-12);
    near(fit.r_squared, 1.0, 1e-12);
    near(fit.at(5.0), 3.0 * libm::sqrt(2.0), 1e-9);
    near(fit.at(-10.0), 1.5, 1e-9);
}
