//! Numbers for display.

pub use longwire_settings::figure::{figure, fixed};

use crate::stats::Summary;
use longwire_settings::figure::magnitude;

/// Formats a mean with its interval, both to the second significant digit of the interval: `185.3 ± 1.2`.
pub fn with_error(summary: &Summary) -> String {
    match summary.ci95 {
        Some(error) if error > 0.0 && error.is_finite() => {
            let decimals = (1 - magnitude(error)).clamp(0, 9) as usize;
            format!("{} ± {}", fixed(summary.mean, decimals), fixed(error, decimals))
        }
        Some(_) => format!("{} ± 0", figure(summary.mean)),
        None => figure(summary.mean),
    }
}

/// Words in the place of a figure that no run has.
pub const NO_FIGURE: &str = "no figure";

/// Formats with this number of decimals, or says that there is no figure.
pub fn known(value: f64, decimals: usize) -> String {
    if value.is_nan() { NO_FIGURE.into() } else { fixed(value, decimals) }
}

/// Formats the range of some values with this number of decimals: `25 to 42`.
pub fn range(values: impl IntoIterator<Item = f64>, decimals: usize) -> String {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match (values.first(), values.last()) {
        (Some(from), Some(to)) if from != to => {
            format!("{} to {}", fixed(*from, decimals), fixed(*to, decimals))
        }
        (Some(only), _) => fixed(*only, decimals),
        _ => "none".into(),
    }
}
