//! Words for the names of parameters, because a page does not show raw keys.

use crate::record::{Params, Value};

/// Words and units of known names.
const KNOWN: [(&str, &str, &str); 6] = [
    ("ber", "bit-error rate", ""),
    ("delay_ms", "one-way delay", "ms"),
    ("outage_s", "outage", "s"),
    ("outage_length_s", "outage", "s"),
    ("rate_bps", "rate", "bit/s"),
    ("window", "window", "frames"),
];
/// Units at the ends of names.
const UNITS: [(&str, &str); 7] = [
    ("_byte_per_s", "byte/s"),
    ("_bit_per_s", "bit/s"),
    ("_bps", "bit/s"),
    ("_ms", "ms"),
    ("_bytes", "bytes"),
    ("_mhz", "MHz"),
    ("_s", "s"),
];

/// Returns the words and the unit of a parameter.
pub fn param(name: &str) -> (String, &'static str) {
    if let Some((_, words, unit)) = KNOWN.iter().find(|(known, ..)| *known == name) {
        return ((*words).to_owned(), unit);
    }
    let found = UNITS.iter().find_map(|(end, unit)| Some((name.strip_suffix(end)?, *unit)));
    let (words, unit) = found.unwrap_or((name, ""));
    (words.replace('_', " "), unit)
}

/// Describes parameters, such as `bit-error rate 1e-6, one-way delay 2000 ms`.
pub fn point(params: &Params) -> String {
    let word = |(name, value): (&str, &Value)| {
        let (words, unit) = param(name);
        format!("{words} {value} {unit}").trim_end().to_owned()
    };
    params.iter().map(word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words_and_their_ends_units() {
        let params = Params::new().with("ber", 1e-6).with("delay_ms", 2000u32).with("queue_bytes", 5u32);
        let params = params.with("per_minute", 2u32).with("announced", "yes");
        assert_eq!(
            point(&params),
            "bit-error rate 1e-6, one-way delay 2000 ms, queue 5 bytes, per minute 2, announced yes"
        );
        assert_eq!(param("clock_mhz"), ("clock".into(), "MHz"));
        assert!(!point(&params).contains('_'));
    }
}
