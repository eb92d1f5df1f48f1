//! Statistics of runs: means with 95 % confidence intervals by Student's t, paired differences, fitted lines and
//! exponentials.
//!
//! Sums run in the order of the samples and transcendental functions come from `libm`, so the same samples give the
//! same bits on every machine.

use core::borrow::Borrow;
use core::f64::consts::PI;

/// Summary of a set of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of samples.
    pub n: usize,
    /// Mean of the samples.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean; `None` for a single sample.
    pub ci95: Option<f64>,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
}

impl Summary {
    /// Summarises samples.
    ///
    /// # Panics
    /// Panics if there is no sample, or one is not a finite number: a run that ended without a result is not a sample.
    pub fn of(samples: &[f64]) -> Summary {
        assert!(!samples.is_empty(), "a summary needs a sample");
        assert!(samples.iter().all(|x| x.is_finite()), "a sample is not a finite number: {samples:?}");
        let n = samples.len();
        let min = samples.iter().copied().fold(f64::INFINITY, f64::min);
        let max = samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if min == max {
            // Equal samples have no rounding in the mean, and a width of exactly zero.
            return Summary { n, mean: min, ci95: (n > 1).then_some(0.0), min, max };
        }
        let mean = mean(samples);
        let squares: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
        let degrees = n - 1;
        let error = (squares / degrees as f64 / n as f64).sqrt();
        Summary { n, mean, ci95: Some(student_t_95(degrees) * error), min, max }
    }

    /// Summarises `ours - theirs`, sample by sample: run `i` of both had the same channel noise, so the noise cancels
    /// and the interval is that of the difference itself.
    ///
    /// # Panics
    /// Panics if the numbers of runs differ.
    pub fn of_differences(ours: &[f64], theirs: &[f64]) -> Summary {
        assert_eq!(ours.len(), theirs.len(), "paired runs come in pairs");
        let differences: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a - b).collect();
        Summary::of(&differences)
    }

    /// Ends of the interval; both are the mean without an interval.
    pub fn interval(&self) -> (f64, f64) {
        let half = self.ci95.unwrap_or(0.0);
        (self.mean - half, self.mean + half)
    }

    /// Half the width of the interval of the mean with another confidence, as a share (0.95 gives `ci95`); `None` for a
    /// single sample.
    pub fn half_width(&self, share: f64) -> Option<f64> {
        let degrees = self.n.checked_sub(1).filter(|degrees| *degrees > 0)?;
        Some(self.ci95? / student_t_95(degrees) * student_t(share, degrees))
    }

    /// Returns true if zero lies outside the interval: for differences, that one side is better.
    pub fn is_significant(&self) -> bool {
        let (low, high) = self.interval();
        self.ci95.is_some() && (low > 0.0 || high < 0.0)
    }
}

/// Line fitted by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FittedLine {
    /// Growth per unit of x.
    pub slope: f64,
    /// Share of the variance that the line explains, 0 to 1.
    pub r_squared: f64,
}

impl FittedLine {
    /// Fits a line; `None` with fewer than two different x.
    pub fn fit(points: &[(f64, f64)]) -> Option<FittedLine> {
        let n = points.len() as f64;
        let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
        let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
        let xx: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.0 - mean_x)).sum();
        let xy: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
        let yy: f64 = points.iter().map(|p| (p.1 - mean_y) * (p.1 - mean_y)).sum();
        if points.len() < 2 || xx == 0.0 {
            return None;
        }
        let slope = xy / xx;
        let unexplained = (yy - slope * xy).max(0.0);
        Some(FittedLine { slope, r_squared: if yy == 0.0 { 1.0 } else { 1.0 - unexplained / yy } })
    }

    /// Fits an exponential, as a line through the logarithms; `None` also if a value is not positive.
    pub fn fit_exponential(points: &[(f64, f64)]) -> Option<FittedLine> {
        let logarithms: Vec<(f64, f64)> = points.iter().map(|p| (p.0, libm::log(p.1))).collect();
        if points.iter().any(|p| p.1 <= 0.0) { None } else { FittedLine::fit(&logarithms) }
    }
}

/// Computes the mean, summed in order.
///
/// # Panics
/// Panics if there is no sample.
pub fn mean(samples: impl IntoIterator<Item = impl Borrow<f64>>) -> f64 {
    let samples: Vec<f64> = samples.into_iter().map(|sample| *sample.borrow()).collect();
    assert!(!samples.is_empty(), "a mean needs a sample");
    samples.iter().sum::<f64>() / samples.len() as f64
}

/// Least of these values.
pub fn least(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(f64::INFINITY, f64::min)
}

/// Greatest of these values.
pub fn most(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(f64::NEG_INFINITY, f64::max)
}

/// Number of standard errors either side of the mean that contain 95 % of Student's t distribution with this number of
/// degrees of freedom.
///
/// # Panics
/// Panics without a degree of freedom.
pub fn student_t_95(degrees: usize) -> f64 {
    assert!(degrees > 0, "Student's t needs a degree of freedom");
    // From a thousand degrees on, the first terms of the expansion around the normal distribution are exact to
    // nine digits (Abramowitz and Stegun 26.7.5).
    if degrees >= 1000 {
        let (z, v) = (1.959_963_984_540_054_f64, degrees as f64);
        let g1 = (z.powi(3) + z) / 4.0;
        let g2 = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
        return z + g1 / v + g2 / (v * v);
    }
    student_t(0.95, degrees)
}

/// Number of standard errors either side of the mean that contain this share of Student's t distribution.
///
/// # Panics
/// Panics without a degree of freedom, or if the share is not between 0 and 1.
pub fn student_t(share: f64, degrees: usize) -> f64 {
    assert!(degrees > 0, "Student's t needs a degree of freedom");
    assert!(share > 0.0 && share < 1.0, "a share lies between 0 and 1, this is {share}");
    let (mut low, mut high) = (0.0, 16.0);
    // The loop ends because the share of the distribution approaches 1.
    while student_t_within(high, degrees) < share {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if student_t_within(middle, degrees) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// Probability that Student's t lies within `-t..t`: a finite series (Abramowitz and Stegun 26.7.3, 26.7.4).
fn student_t_within(t: f64, degrees: usize) -> f64 {
    let theta = libm::atan(t / (degrees as f64).sqrt());
    let (sine, cosine) = (libm::sin(theta), libm::cos(theta));
    let odd = degrees % 2 == 1;
    let mut term = if odd { cosine } else { 1.0 };
    let mut sum = if degrees == 1 { 0.0 } else { term };
    let mut k = if odd { 3 } else { 2 };
    while k + 1 < degrees {
        term *= cosine * cosine * (k - 1) as f64 / k as f64;
        sum += term;
        k += 2;
    }
    if odd { (theta + sine * sum) * 2.0 / PI } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, tolerance: f64) -> bool {
        (a - b).abs() <= tolerance
    }

    #[test]
    fn student_t_is_that_of_the_printed_tables() {
        let table = [
            (1, 12.7062),
            (2, 4.3027),
            (3, 3.1824),
            (4, 2.7764),
            (5, 2.5706),
            (10, 2.2281),
            (15, 2.1314),
            (30, 2.0423),
            (63, 1.9983),
            (120, 1.9799),
        ];
        for (degrees, expected) in table {
            let t = student_t_95(degrees);
            assert!(close(t, expected, 5.1e-5), "{degrees} degrees: {t}, expected {expected}");
        }
        assert!(close(student_t_95(999), student_t_95(1000), 3e-6), "series and expansion meet");
        for (share, degrees, expected) in [(0.99, 15, 2.9467), (0.999, 15, 4.0728), (0.99, 1, 63.6567)] {
            let t = student_t(share, degrees);
            assert!(close(t, expected, 5.1e-5), "{share} with {degrees} degrees: {t}, expected {expected}");
        }
    }

    #[test]
    fn a_summary_by_hand() {
        let summary = Summary::of(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!((summary.n, summary.mean, summary.min, summary.max), (4, 2.5, 1.0, 4.0));
        // s = sqrt(5/3), error = s/2, t(3) = 3.18245.
        assert!(close(summary.ci95.unwrap(), 3.182_446 * (5.0f64 / 3.0).sqrt() / 2.0, 1e-5));
        assert!(close(summary.half_width(0.95).unwrap(), summary.ci95.unwrap(), 1e-9));
        assert!(summary.half_width(0.99).unwrap() > summary.ci95.unwrap());
        assert_eq!(Summary::of(&[7.0]).half_width(0.99), None);
        assert_eq!(Summary::of(&[7.0]).ci95, None, "one run says nothing about its spread");
        assert_eq!(Summary::of(&[0.1; 3]), Summary { n: 3, mean: 0.1, ci95: Some(0.0), min: 0.1, max: 0.1 });
    }

    #[test]
    fn pairing_removes_what_both_share() {
        let theirs = [100.0, 180.0, 140.0, 220.0];
        let ours: Vec<f64> = theirs.iter().enumerate().map(|(i, x)| x - 5.0 - 0.1 * i as f64).collect();
        let paired = Summary::of_differences(&ours, &theirs);
        assert!(close(paired.mean, -5.15, 1e-9) && paired.is_significant());
        let (low, high) = Summary::of(&ours).interval();
        assert!(low < 140.0 && high > 180.0, "unpaired, the same runs tell nothing");
    }

    #[test]
    fn a_line_and_an_exponential_are_found_again() {
        let points: Vec<(f64, f64)> = (0..9).map(|i| (1280.0 + 400.0 * f64::from(i), 0.0)).collect();
        let line: Vec<_> = points.iter().map(|p| (p.0, 20.0 + 0.08 * p.0)).collect();
        let fit = FittedLine::fit(&line).unwrap();
        assert!(close(fit.slope, 0.08, 1e-12) && fit.r_squared > 0.999_999);
        let decay: Vec<_> = points.iter().map(|p| (p.0, 9000.0 * libm::exp(-0.0005 * p.0))).collect();
        let fit = FittedLine::fit_exponential(&decay).unwrap();
        assert!(close(fit.slope, -0.0005, 1e-12) && close(fit.r_squared, 1.0, 1e-9));
        assert_eq!(FittedLine::fit(&[(1.0, 2.0), (1.0, 3.0)]), None, "one x makes no line");
        assert_eq!(FittedLine::fit_exponential(&[(1.0, 2.0), (2.0, 0.0)]), None, "zero has no logarithm");
    }
}

#[cfg(test)]
mod known;
