//! The counters of TCP in an outcome as bytes: those that are metrics.

use longwire_proto::observe::Observation;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Counter of retransmitted segments.
pub(crate) const RETRANSMISSIONS: &str = "retransmissions";
/// Counter of timeouts.
pub(crate) const TIMEOUTS: &str = "timeouts";

const ENGINE: &str = "tcp";
const NAMES: [&str; 2] = [RETRANSMISSIONS, TIMEOUTS];

pub(super) fn serialize<S: Serializer>(observed: &Observation, serializer: S) -> Result<S::Ok, S::Error> {
    let sum = observed.sum(ENGINE);
    NAMES.map(|name| sum.get(name).copied()).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Observation, D::Error> {
    let counts = <[Option<u64>; NAMES.len()]>::deserialize(deserializer)?;
    let mut observed = Observation::default();
    let named = NAMES.into_iter().zip(counts).filter_map(|(name, count)| Some((name, count?)));
    observed.part(ENGINE).counts = named.collect();
    Ok(observed)
}
