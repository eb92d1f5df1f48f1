//! Words for people in place of the keys of JSON and CSV: names of metrics and parameters for columns, axes and legends.

use crate::record::{Params, Value};

/// Quantity in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// Name, such as `one-way delay`.
    pub words: String,
    /// Unit; empty without a unit.
    pub unit: String,
}

/// Keys whose words are not those of the key, with their units.
const KNOWN: &[(&str, &str, &str)] = &[
    ("ber", "bit-error rate", ""),
    ("bytes", "length", "byte"),
    ("clock_mhz", "clock", "MHz"),
    ("copies_max", "most copies", ""),
    ("copies_mean", "mean copies", ""),
    ("delay_95_s", "95th percentile of the delay", "s"),
    ("delay_max_s", "longest delay", "s"),
    ("delay_mean_s", "mean delay", "s"),
    ("delay_ms", "one-way delay", "ms"),
    ("last_hop_s", "time on the last hop", "s"),
    ("limit_s", "ideal time", "s"),
    ("loss", "frame loss", ""),
    ("outage_after_s", "start of the outage", "s"),
    ("outage_at_s", "start of the outage", "s"),
    ("outage_length_s", "outage", "s"),
    ("outage_spread_s", "random delay of the outage", "s"),
    ("per_minute", "frames per minute", ""),
    ("rate_bps", "line rate", "bit/s"),
    ("sent_byte", "sent", "byte"),
    ("serial_bps", "serial line", "bit/s"),
    ("transfer_s", "transfer time", "s"),
];

/// Ends of keys that state the unit, the longer ones first.
const UNITS: &[(&str, &str)] = &[
    ("_byte_per_s", "byte/s"),
    ("_bit_per_s", "bit/s"),
    ("_percent", "%"),
    ("_bytes", "byte"),
    ("_byte", "byte"),
    ("_bps", "bit/s"),
    ("_mhz", "MHz"),
    ("_ppm", "ppm"),
    ("_hz", "Hz"),
    ("_db", "dB"),
    ("_km", "km"),
    ("_us", "µs"),
    ("_ms", "ms"),
    ("_s", "s"),
];

impl Label {
    /// Returns the words of a key. Those of an unknown key are its own, and its unit is read off its end.
    pub fn of(key: &str) -> Label {
        let key = key.replace(['-', '.'], "_");
        if let Some((_, words, unit)) = KNOWN.iter().find(|(known, ..)| *known == key) {
            return Label { words: (*words).to_owned(), unit: (*unit).to_owned() };
        }
        let with_unit = UNITS.iter().find_map(|(end, unit)| Some((key.strip_suffix(end)?, *unit)));
        let (words, unit) = with_unit.unwrap_or((key.as_str(), ""));
        Label { words: words.replace('_', " "), unit: unit.to_owned() }
    }
}

/// Describes a point of the parameters: `one-way delay 2000 ms, bit-error rate 1e-6`.
pub fn point(params: &Params) -> String {
    let word = |(key, value): (&str, &Value)| {
        let Label { words, unit } = Label::of(key);
        format!("{words} {value} {unit}").trim_end().to_owned()
    };
    params.iter().map(word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_words_with_units() {
        for (key, words, unit) in [
            ("delay_ms", "one-way delay", "ms"),
            ("ber", "bit-error rate", ""),
            ("transfer_s", "transfer time", "s"),
            ("last_hop_goodput_byte_per_s", "last hop goodput", "byte/s"),
            ("send_buffer_bytes", "send buffer", "byte"),
            ("initial-window", "initial window", ""),
            ("retransmissions", "retransmissions", ""),
        ] {
            assert_eq!(Label::of(key), Label { words: words.into(), unit: unit.into() });
        }
        let params = Params::new().with("delay_ms", 2000u32).with("ber", 1e-6).with("outage_length_s", 30u32);
        assert_eq!(point(&params), "one-way delay 2000 ms, bit-error rate 1e-6, outage 30 s");
        assert_eq!(point(&Params::new()), "");
    }

    #[test]
    fn known_words_are_words_and_units_of_longer_ends_come_first() {
        for (key, words, unit) in KNOWN {
            assert!(!words.contains('_') && !unit.contains('_'), "{key}");
        }
        for (at, (end, _)) in UNITS.iter().enumerate() {
            assert!(!UNITS[..at].iter().any(|(before, _)| end.ends_with(before)), "{end} is never reached");
        }
    }
}
