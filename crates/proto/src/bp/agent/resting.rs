//! A bundle that waits, as bytes.
//!
//! A held bundle takes about a kilobyte of memory, and a node may hold a million of them. Most wait, and nothing happens to them
//! for a long time. Such a bundle is kept as numbers, followed by its header in the form in which it is sent: about 150 bytes together.
//!
//! ```text
//!   flags | nonce | numbers, each an SDNV (RFC 6256) | header
//! ```
//!
//! The form exists only in memory, and no other process reads it.

use crate::bp::{self, DecodePolicy, Eid};
use crate::codec::sdnv;
use crate::service::{LinkId, RecordId, SendId, TransferId};
use crate::time::Instant;
use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::accounts::NeighbourNumber;
use super::clock::ExpiryTime;
use super::head::{AnyHead, decode_head};
use super::held::{BundleState, HeldBundle};
use super::ranges::Ranges;
use super::routing::ClassId;

/// Properties of a bundle, each one bit of the flags.
mod flag {
    pub(super) const OWN: u16 = 1;
    pub(super) const CLOSED: u16 = 1 << 1;
    pub(super) const BROKEN: u16 = 1 << 2;
    pub(super) const ENCRYPTED: u16 = 1 << 3;
    pub(super) const COUNTED_AS_KEPT: u16 = 1 << 4;
    pub(super) const HEAD_IS_ON_DISK: u16 = 1 << 5;
    pub(super) const BEGINS_ASSEMBLY: u16 = 1 << 6;
    pub(super) const END_IS_OVERRIDE: u16 = 1 << 7;
    /// The time of expiry is known in DTN time.
    pub(super) const END_IN_DTN_TIME: u16 = 1 << 8;
    /// The bundle has arrived in a transfer of this start.
    pub(super) const INTAKE: u16 = 1 << 9;
    /// An application has sent the bundle in this start.
    pub(super) const SEND: u16 = 1 << 10;
    /// The bundle is destined for this node.
    pub(super) const LOCAL: u16 = 1 << 11;
    /// The bundle waits in the queue of a class.
    pub(super) const FORWARDING: u16 = 1 << 12;
}

/// Number of numbers.
const NUMBERS: usize = 18;

/// Returns a waiting bundle as bytes. `None` for a bundle that is in use, or whose state is unusual. `out` is memory for the work.
pub(super) fn pack(record: RecordId, held: &HeldBundle, out: &mut BytesMut) -> Option<Box<[u8]>> {
    let HeldBundle {
        head,
        head_bytes,
        tail_bytes,
        named_by,
        own,
        closed,
        broken,
        neighbour,
        nonce,
        appended,
        stored,
        // It is computed again when the bundle is sent.
        payload_crc: _,
        encrypted,
        counted_as_kept,
        head_is_on_disk,
        begins_assembly,
        extra_bytes,
        share,
        since,
        age_ms,
        arrival_dtn_ms,
        end,
        end_is_override,
        intake,
        send,
        handed,
        durable,
        progress,
        state,
        to_send,
        to_send_empty,
        transfers,
        refusals,
        custody,
        excluded_links,
        is_refused,
        replication,
        copy_origin,
    } = held;
    // A complete bundle is sealed while all others of the store are still being read.
    let (class, of_state) = match state {
        BundleState::Forwarding(class) => (class.number(), flag::FORWARDING),
        BundleState::Local => (0, flag::LOCAL),
        BundleState::Sealing => (0, 0),
        _ => return None,
    };
    let payload = held.payload_bytes();
    let is_unsent = *to_send == Ranges::of(0, payload) && *to_send_empty == (payload == 0);
    let is_usual = *named_by == record && appended == stored && is_unsent && *refusals == 0;
    let is_idle = transfers.is_empty() && excluded_links.is_empty() && !is_refused;
    let is_simple = custody.is_none() && replication.is_none() && copy_origin.is_none();
    let AnyHead::V7(header) = head else { return None };
    if !(is_usual && is_idle && is_simple) {
        return None;
    }
    let set = |is_set: bool, flag: u16| if is_set { flag } else { 0 };
    let flags = set(*own, flag::OWN)
        | set(*closed, flag::CLOSED)
        | set(*broken, flag::BROKEN)
        | set(*encrypted, flag::ENCRYPTED)
        | set(*counted_as_kept, flag::COUNTED_AS_KEPT)
        | set(*head_is_on_disk, flag::HEAD_IS_ON_DISK)
        | set(*begins_assembly, flag::BEGINS_ASSEMBLY)
        | set(*end_is_override, flag::END_IS_OVERRIDE)
        | set(end.dtn_ms.is_some(), flag::END_IN_DTN_TIME)
        | set(intake.is_some(), flag::INTAKE)
        | set(send.is_some(), flag::SEND)
        | of_state;
    out.clear();
    out.put_u16(flags);
    out.put_u64(*nonce);
    let (link, transfer) = intake.unwrap_or((LinkId(0), TransferId(0)));
    let numbers: [u64; NUMBERS] = [
        class,
        *head_bytes,
        *tail_bytes,
        u64::from(neighbour.0),
        *stored,
        u64::from(*extra_bytes),
        *share,
        since.as_nanos(),
        *age_ms,
        *arrival_dtn_ms,
        end.dtn_ms.unwrap_or_default(),
        end.by_age.as_nanos(),
        u64::from(link.0),
        transfer.0,
        send.map_or(0, |send| send.0),
        *handed,
        *durable,
        *progress,
    ];
    for number in numbers {
        sdnv::encode(number, out);
    }
    let header_at = out.len();
    header.encode(out);
    comes_back(header, &out[header_at..]).then(|| Box::from(&out[..]))
}

/// Returns true if a header will be decoded from these bytes, its own, as it is now.
fn comes_back(header: &bp::Head, bytes: &[u8]) -> bool {
    let bp::PrimaryBlock { destination, source, report_to, .. } = &header.primary;
    let endpoints = [destination, source, report_to];
    if endpoints.iter().all(|endpoint| matches!(endpoint, Eid::Null | Eid::Dtn(_) | Eid::Ipn(_))) {
        return header.decodes(bytes.len(), &DecodePolicy::STORED);
    }
    let decoded = bp::decode_head(&Bytes::copy_from_slice(bytes), &DecodePolicy::STORED);
    matches!(decoded, Ok((back, _)) if back == *header)
}

/// Returns the bundle of which these are the bytes.
pub(super) fn unpack(record: RecordId, packed: &[u8]) -> HeldBundle {
    let mut input = Bytes::copy_from_slice(packed);
    let (flags, nonce) = (input.get_u16(), input.get_u64());
    let numbers: [u64; NUMBERS] =
        core::array::from_fn(|_| sdnv::decode(&mut input).expect("it was encoded here"));
    let (head, _) = decode_head(&input, &DecodePolicy::STORED).expect("it comes back");
    let mut numbers = numbers.into_iter();
    let mut next = || numbers.next().expect("all are there");
    let has = |flag: u16| flags & flag != 0;
    let class = ClassId::from_number(next());
    let mut held = HeldBundle {
        head,
        head_bytes: next(),
        tail_bytes: next(),
        named_by: record,
        own: has(flag::OWN),
        closed: has(flag::CLOSED),
        broken: has(flag::BROKEN),
        neighbour: NeighbourNumber(next() as u16),
        nonce,
        appended: 0,
        stored: next(),
        payload_crc: None,
        encrypted: has(flag::ENCRYPTED),
        counted_as_kept: has(flag::COUNTED_AS_KEPT),
        head_is_on_disk: has(flag::HEAD_IS_ON_DISK),
        begins_assembly: has(flag::BEGINS_ASSEMBLY),
        extra_bytes: next() as u32,
        share: next(),
        since: Instant::from_nanos(next()),
        age_ms: next(),
        arrival_dtn_ms: next(),
        end: ExpiryTime {
            dtn_ms: Some(next()).filter(|_| has(flag::END_IN_DTN_TIME)),
            by_age: Instant::from_nanos(next()),
        },
        end_is_override: has(flag::END_IS_OVERRIDE),
        intake: Some((LinkId(next() as u32), TransferId(next()))).filter(|_| has(flag::INTAKE)),
        send: Some(SendId(next())).filter(|_| has(flag::SEND)),
        handed: next(),
        durable: next(),
        progress: next(),
        state: match (has(flag::FORWARDING), has(flag::LOCAL)) {
            (true, _) => BundleState::Forwarding(class),
            (false, true) => BundleState::Local,
            (false, false) => BundleState::Sealing,
        },
        to_send: Ranges::default(),
        to_send_empty: false,
        transfers: Vec::new(),
        refusals: 0,
        custody: None,
        excluded_links: Vec::new(),
        is_refused: false,
        replication: None,
        copy_origin: None,
    };
    held.appended = held.stored;
    held.renew();
    held
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bp::generate::Generator;
    use crate::rng::Rng;
    use crate::service::SendFailure;

    const RECORD: RecordId = RecordId(7 << 40 | 123_456);

    /// A bundle that waits, with this header and random numbers.
    pub(in super::super) fn waiting(head: AnyHead, rng: &mut Rng) -> HeldBundle {
        let stored = rng.next_u64() >> 20;
        let mut number = || rng.next_u64() >> 12;
        let mut held = HeldBundle {
            head,
            head_bytes: number() >> 40,
            tail_bytes: number() >> 40,
            named_by: RECORD,
            own: false,
            closed: false,
            broken: false,
            neighbour: NeighbourNumber(number() as u16),
            nonce: number() << 12,
            appended: stored,
            stored,
            payload_crc: None,
            encrypted: false,
            counted_as_kept: false,
            head_is_on_disk: false,
            begins_assembly: false,
            extra_bytes: number() as u32,
            share: number(),
            since: Instant::from_nanos(number()),
            age_ms: number(),
            arrival_dtn_ms: number(),
            end: ExpiryTime { dtn_ms: None, by_age: Instant::from_nanos(number()) },
            end_is_override: false,
            intake: None,
            send: None,
            handed: number(),
            durable: number(),
            progress: number(),
            state: BundleState::Local,
            to_send: Ranges::default(),
            to_send_empty: false,
            transfers: Vec::new(),
            refusals: 0,
            custody: None,
            excluded_links: Vec::new(),
            is_refused: false,
            replication: None,
            copy_origin: None,
        };
        held.renew();
        let mut maybe = || rng.chance(0.5);
        for flag in [
            &mut held.own,
            &mut held.closed,
            &mut held.broken,
            &mut held.encrypted,
            &mut held.counted_as_kept,
            &mut held.head_is_on_disk,
            &mut held.begins_assembly,
            &mut held.end_is_override,
        ] {
            *flag = maybe();
        }
        held.end.dtn_ms = maybe().then_some(800_000_000_000);
        held.intake = maybe().then_some((LinkId(0x8000_0001), TransferId(9)));
        held.send = maybe().then_some(SendId(77));
        held.state = match (maybe(), maybe()) {
            (true, _) => BundleState::Forwarding(ClassId::from_number(u64::MAX)),
            (false, true) => BundleState::Local,
            (false, false) => BundleState::Sealing,
        };
        held
    }

    #[test]
    fn a_bundle_comes_back_as_it_was() {
        let mut rested = 0;
        for seed in 0..500 {
            let mut rng = Rng::new(seed);
            let head = Generator::new(rng.fork("bundle")).bundle().head;
            let held = waiting(AnyHead::V7(head), &mut rng);
            let Some(packed) = pack(RECORD, &held, &mut BytesMut::new()) else { continue };
            rested += 1;
            assert_eq!(format!("{:?}", unpack(RECORD, &packed)), format!("{held:?}"), "seed {seed}");
        }
        assert!(rested > 400, "{rested} of 500 rest");
    }

    #[test]
    fn a_bundle_in_use_does_not_rest() {
        let mut rng = Rng::new(1);
        let head = AnyHead::V7(Generator::new(rng.fork("bundle")).bundle().head);
        let uses: [fn(&mut HeldBundle); 8] = [
            |held| held.state = BundleState::Arriving,
            |held| held.appended += 1,
            |held| held.transfers.push((LinkId(1), TransferId(2))),
            |held| held.refusals = 1,
            |held| held.custody = Some(Box::default()),
            |held| held.excluded_links.push((LinkId(1), SendFailure::Limit)),
            |held| held.replication = Some(Box::default()),
            |held| held.to_send_empty ^= true,
        ];
        let held = waiting(head, &mut rng);
        assert!(pack(RECORD, &held, &mut BytesMut::new()).is_some());
        for (number, uses) in uses.iter().enumerate() {
            let mut held = held.clone();
            uses(&mut held);
            assert!(pack(RECORD, &held, &mut BytesMut::new()).is_none(), "use {number}");
        }
    }

    /// Headers with something changed, of which many are invalid.
    #[test]
    fn a_header_comes_back_if_it_is_decoded_as_it_is() {
        let (mut good, mut bad) = (0, 0);
        for seed in 0..4000 {
            let mut rng = Rng::new(seed);
            let mut head = Generator::new(rng.fork("bundle")).bundle().head;
            for _ in 0..rng.below(3) {
                change(&mut head, &mut rng);
            }
            let bytes = head.to_bytes();
            let decoded = decode_head(&bytes, &DecodePolicy::STORED);
            let is_same =
                matches!(decoded, Ok((AnyHead::V7(back), length)) if back == head && length == bytes.len());
            assert_eq!(comes_back(&head, &bytes), is_same, "seed {seed}: {head:?}");
            *if is_same { &mut good } else { &mut bad } += 1;
        }
        assert!(good > 1000 && bad > 500, "{good} come back, {bad} do not");
    }

    fn change(head: &mut bp::Head, rng: &mut Rng) {
        let block = rng.below(head.blocks.len().max(1) as u64) as usize;
        match (rng.below(8), head.blocks.get_mut(block)) {
            (0, _) => head.primary.flags.0 ^= 1 << rng.below(20),
            (1, _) => {
                head.primary.source =
                    [Eid::Null, Eid::ipn(0, 1), Eid::ipn(7, 0)][rng.below(3) as usize].clone()
            }
            (2, _) => head.primary.report_to = Eid::Uri(Bytes::from_static(b"tcp:a")),
            (3, _) => head.primary.crc = bp::CrcType::None,
            (4, _) => head.payload.length = rng.below(10),
            (5, Some(block)) => block.number = rng.below(4),
            (6, Some(block)) => block.block_type = bp::BlockType::from_number(rng.below(13)),
            (7, Some(block)) => {
                let block = block.clone();
                let copies = if rng.chance(0.2) { 70 } else { 1 };
                head.blocks
                    .extend((0..copies).map(|number| bp::Block { number: 50 + number, ..block.clone() }));
            }
            _ => {}
        }
    }
}
