//! Verdicts of the implementations on given bytes.

use bytes::Bytes;
use core::fmt;
use longwire_proto::bp::{Bundle, DecodePolicy, Eid};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Other implementations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Partner {
    /// The crate `bp7`, on which dtn7-rs is built: decoded and validated.
    Bp7,
    /// The crate `hardy-bpv7`: parsed without keys.
    Hardy,
}

/// Both other implementations.
pub const PARTNERS: [Partner; 2] = [Partner::Bp7, Partner::Hardy];

impl fmt::Display for Partner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Partner::Bp7 => "bp7",
            Partner::Hardy => "hardy-bpv7",
        })
    }
}

/// Decoded fields of a bundle, except those that are forwarded unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Destination as text; `unknown` for an unknown scheme.
    pub destination: String,
    /// Source.
    pub source: String,
    /// Report-to endpoint.
    pub report_to: String,
    /// Creation time and sequence number.
    pub timestamp: (u64, u64),
    /// Lifetime, milliseconds.
    pub lifetime_ms: u64,
    /// Fragment offset and total length.
    pub fragment: Option<(u64, u64)>,
    /// Payload.
    pub payload: Vec<u8>,
    /// Previous node.
    pub previous_node: Option<String>,
    /// Bundle age, milliseconds.
    pub age_ms: Option<u64>,
    /// Hop limit and hop count.
    pub hops: Option<(u64, u64)>,
}

impl Reading {
    /// Returns the names of the fields in which two readings differ.
    pub fn differences(&self, other: &Reading) -> Vec<&'static str> {
        let same = [
            ("destination", self.destination == other.destination),
            ("source", self.source == other.source),
            ("report-to", self.report_to == other.report_to),
            ("timestamp", self.timestamp == other.timestamp),
            ("lifetime", self.lifetime_ms == other.lifetime_ms),
            ("fragment", self.fragment == other.fragment),
            ("payload", self.payload == other.payload),
            ("previous node", self.previous_node == other.previous_node),
            ("age", self.age_ms == other.age_ms),
            ("hop count", self.hops == other.hops),
        ];
        same.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
    }
}

/// Verdict of a partner: the decoded fields, or its error message.
pub type Verdict = Result<Reading, String>;

/// Returns the fields decoded by our codec.
pub fn reading(bundle: &Bundle) -> Reading {
    let head = &bundle.head;
    let primary = &head.primary;
    Reading {
        destination: our_text(&primary.destination),
        source: our_text(&primary.source),
        report_to: our_text(&primary.report_to),
        timestamp: (primary.timestamp.time.0, primary.timestamp.sequence),
        lifetime_ms: primary.lifetime_ms,
        fragment: primary.fragment.map(|fragment| (fragment.offset, fragment.total_length)),
        payload: bundle.payload.to_vec(),
        previous_node: head.previous_node().as_ref().map(our_text),
        age_ms: head.age_ms(),
        hops: head.hop_count().map(|hops| (u64::from(hops.limit), hops.count)),
    }
}

fn our_text(eid: &Eid) -> String {
    match eid {
        Eid::Unknown { .. } => "unknown".to_string(),
        eid if eid.is_null() => "dtn:none".to_string(),
        eid => eid.to_string(),
    }
}

/// Returns our verdict: the bundle, or the error message.
pub fn ours(bytes: &[u8]) -> Result<Bundle, String> {
    Bundle::from_bytes(&Bytes::copy_from_slice(bytes), &DecodePolicy::STRICT)
        .map_err(|error| error.to_string())
}

thread_local! {
    /// True while a partner runs on this thread: a panic is then its verdict and is not printed.
    static PARTNER_AT_WORK: Cell<bool> = const { Cell::new(false) };
}

fn hush_partners() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !PARTNER_AT_WORK.get() {
                usual(panic);
            }
        }));
    });
}

/// Returns the verdict of a partner. A panic is a refusal whose message begins with `panic`.
pub fn theirs(partner: Partner, bytes: &[u8]) -> Verdict {
    hush_partners();
    PARTNER_AT_WORK.set(true);
    let verdict = catch_unwind(AssertUnwindSafe(|| match partner {
        Partner::Bp7 => bp7_says(bytes),
        Partner::Hardy => hardy_says(bytes),
    }));
    PARTNER_AT_WORK.set(false);
    verdict.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

fn bp7_says(bytes: &[u8]) -> Verdict {
    let bundle = bp7::Bundle::try_from(bytes).map_err(|error| error.to_string())?;
    bundle.validate().map_err(|errors| {
        let words: Vec<String> = errors.iter().map(ToString::to_string).collect();
        words.join("; ")
    })?;
    let primary = &bundle.primary;
    let hops = bundle.extension_block_by_type(bp7::canonical::HOP_COUNT_BLOCK);
    let age = bundle.extension_block_by_type(bp7::canonical::BUNDLE_AGE_BLOCK);
    Ok(Reading {
        destination: primary.destination.to_string(),
        source: primary.source.to_string(),
        report_to: primary.report_to.to_string(),
        timestamp: (primary.creation_timestamp.dtntime(), primary.creation_timestamp.seqno()),
        lifetime_ms: primary.lifetime.as_millis().try_into().unwrap_or(u64::MAX),
        fragment: primary
            .has_fragmentation()
            .then_some((primary.fragmentation_offset, primary.total_data_length)),
        payload: bundle.payload().cloned().unwrap_or_default(),
        previous_node: bundle.previous_node().map(ToString::to_string),
        age_ms: age.and_then(|block| block.bundle_age_get()).map(|age| age.try_into().unwrap_or(u64::MAX)),
        hops: hops.and_then(|block| block.hop_count_get()).map(|(l, c)| (u64::from(l), u64::from(c))),
    })
}

fn hardy_says(bytes: &[u8]) -> Verdict {
    use hardy_bpv7::bundle::ParsedBundle;
    let parsed = ParsedBundle::parse(bytes, hardy_bpv7::bpsec::no_keys).map_err(|error| error.to_string())?;
    let bundle = parsed.bundle;
    let payload = bundle.blocks.get(&1).and_then(|block| block.payload(bytes));
    let (time, sequence) = bundle.id.timestamp.clone().into_parts();
    let milliseconds = |duration: core::time::Duration| duration.as_millis().try_into().unwrap_or(u64::MAX);
    Ok(Reading {
        destination: hardy_text(&bundle.destination),
        source: hardy_text(&bundle.id.source),
        report_to: hardy_text(&bundle.report_to),
        timestamp: (time.map_or(0, |time| time.millisecs()), sequence),
        lifetime_ms: milliseconds(bundle.lifetime),
        fragment: bundle.id.fragment_info.as_ref().map(|info| (info.offset, info.total_adu_length)),
        payload: payload.ok_or("no payload")?.to_vec(),
        previous_node: bundle.previous_node.as_ref().map(hardy_text),
        age_ms: bundle.age.map(milliseconds),
        hops: bundle.hop_count.as_ref().map(|hops| (hops.limit, hops.count)),
    })
}

fn hardy_text(eid: &hardy_bpv7::eid::Eid) -> String {
    match eid {
        hardy_bpv7::eid::Eid::Unknown { .. } => "unknown".to_string(),
        eid => eid.to_string(),
    }
}
