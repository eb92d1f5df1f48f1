//! Names of bundles.

use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// DTN time: milliseconds since 2000-01-01 00:00:00 UTC; zero if unknown (RFC 9171 4.2.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DtnTime(pub u64);

impl DtnTime {
    /// Unknown time: zero.
    pub const UNKNOWN: DtnTime = DtnTime(0);

    /// False for the unknown time.
    pub const fn is_known(self) -> bool {
        self.0 != 0
    }
}

/// Creation timestamp; together with the source it identifies the bundle (RFC 9171 4.2.7).
///
/// As text, the time and the sequence number are separated by a hyphen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "(u64, u64)", into = "(u64, u64)")]
pub struct CreationTimestamp {
    /// Time of the request to send the bundle; unknown on a node without a clock.
    pub time: DtnTime,
    /// Sequence number, which distinguishes bundles of the same time.
    pub sequence: u64,
}

impl From<(u64, u64)> for CreationTimestamp {
    fn from((dtn_ms, sequence): (u64, u64)) -> Self {
        CreationTimestamp { time: DtnTime(dtn_ms), sequence }
    }
}

impl From<CreationTimestamp> for (u64, u64) {
    fn from(created: CreationTimestamp) -> Self {
        (created.time.0, created.sequence)
    }
}

impl fmt::Display for CreationTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.time.0, self.sequence)
    }
}

impl FromStr for CreationTimestamp {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let (time, sequence) = text.split_once('-').ok_or(InvalidName)?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| InvalidName);
        Ok((number(time)?, number(sequence)?).into())
    }
}

/// Source and creation timestamp of a bundle; its fragments have the same.
///
/// As text, as in `dtn://a/@842000000000-256`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleName {
    /// Source of the bundle.
    pub source: String,
    /// Creation timestamp of the bundle.
    pub created: CreationTimestamp,
}

impl fmt::Display for BundleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.source, self.created)
    }
}

impl FromStr for BundleName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let (source, created) = text.rsplit_once('@').ok_or(InvalidName)?;
        Ok(BundleName { source: source.to_owned(), created: created.parse()? })
    }
}

/// An error: a text that is not the name or creation timestamp of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidName;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_named_by_source_and_time() {
        let name = BundleName { source: "dtn://a@b/".to_owned(), created: (842_000_000_000, 256).into() };
        assert_eq!(name.to_string(), "dtn://a@b/@842000000000-256");
        assert_eq!(name.to_string().parse(), Ok(name));
        for wrong in ["", "dtn://a/", "dtn://a/@1", "dtn://a/@1-x", "dtn://a/@-1-1"] {
            assert_eq!(wrong.parse::<BundleName>(), Err(InvalidName), "{wrong}");
        }
    }
}
