//! Settings outside their range: which, how they are, what the limit is, and what to do.
//!
//! Every configuration has a `check` that walks its numbers with these few rules. Who reads settings, a daemon or an
//! experiment, asks it before an engine is made: an engine takes what it is given.

use crate::time::Duration;
use core::fmt;
use core::ops::RangeInclusive;

/// A setting with which an engine could not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its key as configurations write it: `limits.bundles-max`.
    pub key: String,
    /// What it is, and what it has to be.
    pub wrong: String,
    /// What to do.
    pub hint: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.key, self.wrong)
    }
}

impl Fault {
    /// The same of a setting in a table: `[tcp]` makes `tcp.retries` of `retries`.
    #[must_use]
    pub fn within(self, table: &str) -> Fault {
        Fault { key: format!("{table}.{}", self.key), ..self }
    }
}

/// A number lies in a range.
///
/// # Errors
/// It does not.
pub fn number(
    key: &str,
    value: impl TryInto<u64>,
    range: RangeInclusive<u64>,
    hint: &'static str,
) -> Result<(), Fault> {
    let value = value.try_into().unwrap_or(u64::MAX);
    if range.contains(&value) {
        return Ok(());
    }
    let limit = match (value < *range.start(), *range.end()) {
        (true, _) => format!("at least {}", range.start()),
        (false, most) => format!("at most {most}"),
    };
    Err(Fault { key: key.into(), wrong: format!("is {value}, and has to be {limit}"), hint })
}

/// A number is at least this.
///
/// # Errors
/// It is not.
pub fn at_least(key: &str, value: impl TryInto<u64>, least: u64, hint: &'static str) -> Result<(), Fault> {
    number(key, value, least..=u64::MAX, hint)
}

/// A length of time lies in a range.
///
/// # Errors
/// It does not.
pub fn time(
    key: &str,
    value: Duration,
    range: RangeInclusive<Duration>,
    hint: &'static str,
) -> Result<(), Fault> {
    if range.contains(&value) {
        return Ok(());
    }
    let limit = match value < *range.start() {
        true => format!("at least {:?}", range.start()),
        false => format!("at most {:?}", range.end()),
    };
    Err(Fault { key: key.into(), wrong: format!("is {value:?}, and has to be {limit}"), hint })
}

/// Something else holds; `wrong` says what does not.
///
/// # Errors
/// It does not hold.
pub fn rule(holds: bool, key: &str, wrong: &str, hint: &'static str) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(Fault { key: key.into(), wrong: wrong.into(), hint }) }
}

/// No wait of an engine is longer: a hundred years.
pub const TIME_MAX: Duration = Duration::from_secs(100 * 366 * 86_400);
/// The shortest wait that does not keep a processor busy with itself.
pub const TIME_MIN: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_the_key_the_value_and_the_limit() {
        let fault = number("segment-bytes", 0u64, 1..=9, "leave it out").unwrap_err().within("tcpcl");
        assert_eq!(fault.to_string(), "`tcpcl.segment-bytes` is 0, and has to be at least 1");
        assert_eq!(number("a", 10u8, 1..=9, "").unwrap_err().wrong, "is 10, and has to be at most 9");
        let second = Duration::from_secs(1);
        assert_eq!(
            time("b", Duration::ZERO, second..=TIME_MAX, "").unwrap_err().wrong,
            "is 0ns, and has to be at least 1s"
        );
        assert_eq!(rule(true, "c", "is odd", ""), Ok(()));
    }
}
