//! Durations in configuration files: milliseconds, with the unit in the name of the field.

use longwire_proto::time::Duration;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Maximum time in a configuration, in seconds: a thousand years would overflow
/// [`Instant`](longwire_proto::time::Instant).
const SECONDS_MAX: f64 = 1.8e10;

/// A duration as a number of milliseconds.
pub(crate) mod millis {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(value: &Duration, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_f64(value.as_nanos() as f64 / 1e6)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(input)? / 1e3;
        if !(0.0..=SECONDS_MAX).contains(&seconds) {
            return Err(D::Error::custom("not a time in milliseconds"));
        }
        Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
    }
}
