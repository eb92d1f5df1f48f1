//! Faults of settings out of their range: key, value, limit and remedy.
//!
//! Every configuration implements [`Settings`], which applies these rules to its numbers. A daemon or an experiment that
//! reads settings checks them before it creates an engine; an engine accepts its settings unchecked.

use crate::duration;
use crate::time::Duration;
use core::fmt;
use core::ops::RangeInclusive;

/// Settings of an engine, or a part of them.
pub trait Settings {
    /// Checks the values, each by itself and in combination.
    ///
    /// # Errors
    /// Returns the first setting with which the engine could not work.
    fn check(&self) -> Result<(), Fault>;
}

/// Makes a struct of settings, each with its default if that is not the one of its type, so that a setting and its default
/// stand in one place.
#[macro_export]
macro_rules! settings {
    (@) => { Default::default() };
    (@ $default:expr) => { $default };
    ($(#[$of:meta])* pub struct $Name:ident {
        $($(#[$about:meta])* pub $field:ident: $Type:ty $(= $default:expr)?,)*
    }) => {
        $(#[$of])*
        pub struct $Name {
            $($(#[$about])* pub $field: $Type,)*
        }

        impl Default for $Name {
            fn default() -> Self {
                $Name { $($field: $crate::settings!(@ $($default)?),)* }
            }
        }
    };
}

// For the engines of this crate, whose imports name a module.
pub(crate) use settings;

/// A setting with which an engine could not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Key, as in the configuration: `limits.bundles-max`.
    pub key: String,
    /// Present value and its limit.
    pub wrong: String,
    /// Remedy.
    pub hint: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.key, self.wrong)
    }
}

impl Fault {
    /// Adds the name of the setting's table to the key: `[tcp]` makes `tcp.retries` of `retries`.
    #[must_use]
    pub fn within(self, table: &str) -> Fault {
        Fault { key: format!("{table}.{}", self.key), ..self }
    }
}

/// Checks that a number is in a range.
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
    Err(Fault { key: key.into(), wrong: format!("is {value}; it must be {limit}"), hint })
}

/// Checks that a number is at least `least`.
pub fn at_least(key: &str, value: impl TryInto<u64>, least: u64, hint: &'static str) -> Result<(), Fault> {
    number(key, value, least..=u64::MAX, hint)
}

/// Checks that a duration is in a range.
pub fn time(
    key: &str,
    value: Duration,
    range: RangeInclusive<Duration>,
    hint: &'static str,
) -> Result<(), Fault> {
    if range.contains(&value) {
        return Ok(());
    }
    let written = |time| duration::exact(time).unwrap_or_else(|| duration::short(time));
    let limit = match value < *range.start() {
        true => format!("at least {}", written(*range.start())),
        false => format!("at most {}", written(*range.end())),
    };
    Err(Fault { key: key.into(), wrong: format!("is {}; it must be {limit}", written(value)), hint })
}

/// Checks that a wait is from [`TIME_MIN`] to [`TIME_MAX`].
pub fn wait(key: &str, value: Duration, hint: &'static str) -> Result<(), Fault> {
    wait_from(key, value, TIME_MIN, hint)
}

/// Checks that a wait is from `least` to [`TIME_MAX`].
pub fn wait_from(key: &str, value: Duration, least: Duration, hint: &'static str) -> Result<(), Fault> {
    time(key, value, least..=TIME_MAX, hint)
}

/// Checks another condition; `wrong` describes its violation.
pub fn rule(holds: bool, key: &str, wrong: &str, hint: &'static str) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(Fault { key: key.into(), wrong: wrong.into(), hint }) }
}

/// Upper limit of every wait of an engine: a hundred years.
pub const TIME_MAX: Duration = Duration::from_secs(100 * 366 * 86_400);
/// Shortest wait that does not keep a processor permanently busy.
pub const TIME_MIN: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_the_key_the_value_and_the_limit() {
        let fault = number("segment-bytes", 0u64, 1..=9, "remove it").unwrap_err().within("tcpcl");
        assert_eq!(fault.to_string(), "`tcpcl.segment-bytes` is 0; it must be at least 1");
        assert_eq!(number("a", 10u8, 1..=9, "").unwrap_err().wrong, "is 10; it must be at most 9");
        let second = Duration::from_secs(1);
        assert_eq!(
            time("b", Duration::ZERO, second..=TIME_MAX, "").unwrap_err().wrong,
            "is 0 s; it must be at least 1 s"
        );
        assert_eq!(rule(true, "c", "is odd", ""), Ok(()));
    }

    #[test]
    fn the_defaults_of_settings_are_valid() {
        let all: [(&str, &dyn Settings); 14] = [
            ("tcp", &crate::tcp::config::Profile::default()),
            ("tcpcl", &crate::tcpcl::Config::default()),
            ("ax25cl", &crate::ax25cl::Config::default()),
            ("ax25", &crate::ax25::LinkConfig::default()),
            ("kiss", &crate::kiss::Config::default()),
            ("agwpe", &crate::agwpe::Config::default()),
            ("controller", &crate::controller::Config::default()),
            ("channel", &crate::controller::ChannelParameters::default()),
            ("agent", &crate::bp::agent::Config::default()),
            ("limits", &crate::bp::agent::Limits::default()),
            ("routing", &crate::bp::agent::RoutingConfig::default()),
            ("custody", &crate::bp::agent::CustodyConfig::default()),
            ("aeronp", &crate::aeronp::Config::default()),
            ("aerorp", &crate::aerorp::Config::default()),
        ];
        for (name, settings) in all {
            assert_eq!(settings.check(), Ok(()), "{name}");
        }
    }
}
