//! Durations as people write them: `200 ms`, `1.5 s`, `20 min`.

use core::time::Duration;

/// Units of time and their lengths in nanoseconds, longest first.
const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Hint on the form of a duration.
pub const DURATION_HINT: &str = r#"use a form such as "200 ms", "5 s", "20 min", "12 h" or "3 d""#;

/// Parses a duration: a number and its unit, with or without a space between them. `None` if the text is not a valid
/// duration, or is longer than five hundred years.
///
/// ```
/// # use {longwire_proto::duration, std::time::Duration};
/// assert_eq!(duration::parse("1.5 s"), Some(Duration::from_millis(1500)));
/// assert_eq!(duration::parse("1 month"), None);
/// ```
pub fn parse(text: &str) -> Option<Duration> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = &text[number.len()..];
    let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let nanos = (number.trim().parse::<f64>().ok()? * *nanos as f64).round();
    (0.0..1.8e19).contains(&nanos).then(|| Duration::from_nanos(nanos as u64))
}

/// Formats a duration so that [`parse`] returns the same one: `200 ms`, `4.152499999 s`, `20 min`. `None` if it is longer
/// than five hundred years.
pub fn exact(duration: Duration) -> Option<String> {
    let total = u64::try_from(duration.as_nanos()).ok()?;
    // Minutes, hours and days only for a whole number of at least ten: seconds are easier to compare.
    let fits = |unit: &&(&str, u64)| total % unit.1 == 0 && (unit.1 <= 1_000_000_000 || total >= 10 * unit.1);
    let (name, length) = UNITS.iter().find(fits)?;
    let whole = format!("{} {name}", total / length);
    let decimal = UNITS.iter().find(|unit| unit.1 <= 1_000_000_000 && total >= unit.1);
    let decimal = decimal.map(|(name, length)| {
        let digits = length.ilog10() as usize;
        let fraction = format!("{:0digits$}", total % length);
        format!("{}.{} {name}", total / length, fraction.trim_end_matches('0'))
    });
    // A decimal of some hundred days has more digits than a floating-point number.
    let is_exact = |text: &String| *length < 1_000_000_000 && parse(text) == Some(duration);
    Some(decimal.filter(|text| !text.contains(". ") && is_exact(text)).unwrap_or(whole))
}

/// Formats a duration for prose, with at most three digits where it is not a whole number of seconds: `4.15 s`, `35 min`.
pub fn short(duration: Duration) -> String {
    let total = duration.as_nanos();
    let step = 10_u128.pow(total.max(1).ilog10().saturating_sub(2));
    let rounded = if total.is_multiple_of(1_000_000_000) { total } else { (total + step / 2) / step * step };
    let rounded = u64::try_from(rounded).ok().map(Duration::from_nanos);
    rounded.and_then(exact).unwrap_or_else(|| format!("{} s", duration.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_people_write_them_and_read_back_the_same() {
        for (text, nanos) in [
            ("0 s", 0),
            ("1 ns", 1),
            ("1.5 us", 1_500),
            ("200 ms", 200_000_000),
            ("20.8 ms", 20_800_000),
            ("1.5 s", 1_500_000_000),
            ("4.152499999 s", 4_152_499_999),
            ("60 s", 60_000_000_000),
            ("90 s", 90_000_000_000),
            ("3725 s", 3_725_000_000_000),
            ("10 min", 600_000_000_000),
            ("12 h", 43_200_000_000_000),
            ("60 d", 60 * 86_400_000_000_000),
            ("18000000000000000001 ns", 18_000_000_000_000_000_001),
        ] {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(exact(duration).as_deref(), Some(text));
            let read = parse(text);
            assert!(read == Some(duration) || nanos > 1 << 53, "{text}: {read:?}");
        }
        assert_eq!(exact(Duration::from_secs(u64::MAX)), None);
    }

    #[test]
    fn prose_has_three_digits() {
        for (text, nanos) in [
            ("4.15 s", 4_152_499_999),
            ("20.8 ms", 20_833_333),
            ("417 us", 416_666),
            ("1 s", 999_999_999),
            ("12.3 s", 12_345_678_901),
            ("310 s", 310_000_000_000),
            ("5 s", 5_000_000_000),
        ] {
            assert_eq!(short(Duration::from_nanos(nanos)), text);
        }
        assert_eq!(short(Duration::from_secs(u64::MAX)), format!("{} s", u64::MAX));
    }
}
