//! Times in configuration files: numbers with the unit in the name of the field.

use longwire_proto::time::{Duration, Instant};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Maximum time in a configuration, in seconds: a thousand years would overflow [`Instant`].
const SECONDS_MAX: f64 = 1.8e10;

fn nanos(seconds: f64) -> Option<u64> {
    let fits = seconds.is_finite() && (0.0..=SECONDS_MAX).contains(&seconds);
    fits.then(|| (seconds * 1e9).round() as u64)
}

/// A duration as a number of milliseconds.
pub(crate) mod millis {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(value: &Duration, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_f64(value.as_nanos() as f64 / 1e6)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
        let value = f64::deserialize(input)?;
        let nanos = nanos(value / 1e3).ok_or_else(|| D::Error::custom("not a time in milliseconds"))?;
        Ok(Duration::from_nanos(nanos))
    }
}

/// A moment as a number of seconds since the run began.
pub(crate) mod seconds {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(value: &Instant, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_f64(value.as_secs_f64())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Instant, D::Error> {
        let value = f64::deserialize(input)?;
        let nanos = nanos(value).ok_or_else(|| D::Error::custom("not a time in seconds"))?;
        Ok(Instant::from_nanos(nanos))
    }
}
