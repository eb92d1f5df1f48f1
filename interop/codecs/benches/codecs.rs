//! Time of encoding and decoding the same bundle with each implementation, in one run.
//!
//!     cargo bench --manifest-path interop/Cargo.toml
//!
//! The bundle has a previous node, a hop count and a payload; every block has a CRC-32C, which is computed when
//! encoding and checked when decoding. Encoding ends with the bytes of the bundle in a separate buffer, decoding with a
//! validated bundle: `bp7` decodes and validates in two calls, `hardy-bpv7` encodes with its builder and decodes with
//! its parser. The candidates run in turn, so that a disturbance affects all of them; a figure is that of the fastest
//! turn, because disturbances only slow a turn down. Fails if ours is not twice as fast as the better of the others.

use bytes::Bytes;
use longwire_proto::bp::{
    Bundle, Content, CreationTimestamp, DecodePolicy, DtnTime, Eid, Head, HopCount, PrimaryBlock,
};
use std::borrow::Cow;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Required ratio of the speed of our codec to that of the better partner.
const AIM: f64 = 2.0;
const ROUNDS: usize = 500;
/// Minimum duration of a turn.
const TURN: Duration = Duration::from_micros(400);

struct Candidate {
    name: &'static str,
    run: Box<dyn FnMut()>,
    calls_a_turn: u32,
    /// Time of one call in the fastest turn.
    nanoseconds: f64,
}

impl Candidate {
    fn new(name: &'static str, run: impl FnMut() + 'static) -> Self {
        let mut candidate =
            Candidate { name, run: Box::new(run), calls_a_turn: 1, nanoseconds: f64::INFINITY };
        while candidate.turn() * candidate.calls_a_turn < TURN {
            candidate.calls_a_turn *= 2;
        }
        candidate
    }

    /// Runs one turn and returns the time of one call.
    fn turn(&mut self) -> Duration {
        let start = Instant::now();
        (0..self.calls_a_turn).for_each(|_| (self.run)());
        start.elapsed() / self.calls_a_turn
    }
}

fn bundle(payload_bytes: usize) -> Bundle {
    let timestamp = CreationTimestamp { time: DtnTime(800_000_000_000), sequence: 7 };
    let mut head = Head::new(PrimaryBlock::new(Eid::ipn(2, 1), Eid::ipn(1, 5), timestamp, 86_400_000), 0);
    head.set(&Content::PreviousNode(Eid::ipn(3, 0)));
    head.set(&Content::HopCount(HopCount { limit: 30, count: 2 }));
    let payload: Vec<u8> = (0..payload_bytes).map(|index| (index * 31 % 251) as u8).collect();
    Bundle::new(head, payload.into())
}

fn decoders(bytes: &Bytes) -> Vec<Candidate> {
    let [ours, bp7, hardy] = [(); 3].map(|()| bytes.clone());
    vec![
        Candidate::new("longwire", move || {
            black_box(Bundle::from_bytes(black_box(&ours), &DecodePolicy::STRICT).expect("a legal bundle"));
        }),
        Candidate::new("bp7", move || {
            let bundle = bp7::Bundle::try_from(&black_box(&bp7)[..]).expect("a legal bundle");
            bundle.validate().expect("a legal bundle");
            black_box(bundle);
        }),
        Candidate::new("hardy-bpv7", move || {
            let parsed =
                hardy_bpv7::bundle::ParsedBundle::parse(black_box(&hardy), hardy_bpv7::bpsec::no_keys);
            black_box(parsed.expect("a legal bundle"));
        }),
    ]
}

fn encoders(bytes: &Bytes) -> Vec<Candidate> {
    let ours = Bundle::from_bytes(bytes, &DecodePolicy::STRICT).expect("a legal bundle");
    let mut bp7 = bp7::Bundle::try_from(&bytes[..]).expect("a legal bundle");
    assert_eq!(ours.to_bytes(), *bytes);
    assert_eq!(bp7.to_cbor(), *bytes);
    let payload = ours.payload.clone();
    assert_eq!(hardy_encode(&payload).len(), bytes.len());
    vec![
        Candidate::new("longwire", move || drop(black_box(black_box(&ours).to_bytes()))),
        Candidate::new("bp7", move || drop(black_box(black_box(&mut bp7).to_cbor()))),
        Candidate::new("hardy-bpv7", move || drop(black_box(hardy_encode(black_box(&payload))))),
    ]
}

fn hardy_encode(payload: &[u8]) -> Box<[u8]> {
    use hardy_bpv7::block::{Flags, Type};
    use hardy_bpv7::creation_timestamp::CreationTimestamp;
    use hardy_bpv7::dtn_time::DtnTime;
    use hardy_bpv7::eid::{Eid, IpnNodeId};
    let eid = |node_number, service_number| Eid::LegacyIpn {
        fqnn: IpnNodeId { allocator_id: 0, node_number },
        service_number,
    };
    let (_, bytes) = hardy_bpv7::builder::Builder::new(eid(1, 5), eid(2, 1))
        .add_extension_block(Type::PreviousNode)
        .expect("a legal type")
        .build(Cow::Borrowed(&[0x82, 2, 0x82, 3, 0]))
        .add_extension_block(Type::HopCount)
        .expect("a legal type")
        .with_flags(Flags { must_replicate: true, ..Default::default() })
        .build(Cow::Borrowed(&[0x82, 0x18, 30, 2]))
        .with_payload(Cow::Borrowed(payload))
        .build(CreationTimestamp::from_parts(Some(DtnTime::new(800_000_000_000)), 7))
        .expect("a legal bundle");
    bytes
}

/// Measures the candidates in turns and prints a line. Returns the ratio of the speed of the first candidate to that of
/// the better partner.
fn measure(what: &str, size: &str, mut candidates: Vec<Candidate>) -> f64 {
    for _ in 0..ROUNDS {
        for candidate in &mut candidates {
            let nanoseconds = candidate.turn().as_secs_f64() * 1e9;
            candidate.nanoseconds = candidate.nanoseconds.min(nanoseconds);
        }
    }
    let best = candidates[1..].iter().map(|candidate| candidate.nanoseconds).fold(f64::INFINITY, f64::min);
    let ratio = best / candidates[0].nanoseconds;
    let figures: Vec<String> = candidates
        .iter()
        .map(|Candidate { name, nanoseconds, .. }| format!("{name} {nanoseconds:>8.0} ns"))
        .collect();
    println!(
        "{what} {size:>6}: {}; {ratio:.1} times as fast as the better of the others",
        figures.join(", ")
    );
    ratio
}

fn main() {
    let mut slow = 0;
    for (size, payload_bytes) in [("1 KiB", 1024), ("64 KiB", 65_536)] {
        let bytes = bundle(payload_bytes).to_bytes();
        for (what, candidates) in [("encode", encoders(&bytes)), ("decode", decoders(&bytes))] {
            slow += u32::from(measure(what, size, candidates) < AIM);
        }
    }
    if slow > 0 {
        eprintln!("error: {slow} of 4 figures are below {AIM} times the better of the others");
        std::process::exit(1);
    }
}
