//! Numbers and commands for display.

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

/// Returns a word of a command as it is given to a shell, in quotes if necessary.
pub fn shell_word(word: &str) -> String {
    // Some shells replace a `=` at the beginning.
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./+,:@%=".contains(letter);
    match !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_part_them() {
        for (word, expected) in [
            ("a/b-1.bin", "a/b-1.bin"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("$x", "'$x'"),
            ("a=1,2", "a=1,2"),
            ("=a", "'=a'"),
        ] {
            assert_eq!(shell_word(word), expected);
        }
    }
}
