//! The codec and packets of Saratoga for the fuzz targets: legal packets, and such as a peer of a link may send.

use super::wire::{
    Abilities, Ability, Beacon, Checksum, Data, Entry, EntryKind, Kind, Metadata, Outcome, Packet, Request,
    RequestKind, Status, Width,
};
use crate::fuzz::{Codec, Material, Script, is_stable};
use crate::rng::Rng;
use bytes::Bytes;

/// Codecs and packets of a peer.
pub const FUZZ: Material = Material {
    codecs: &[
        Codec {
            name: "saratoga packet",
            check: |bytes| is_stable(bytes, Packet::decode, Packet::encode),
            valid: |mut rng| packet(&mut rng).to_bytes(),
        },
        Codec {
            name: "saratoga directory entry",
            check: |bytes| is_stable(bytes, Entry::decode, Entry::encode),
            valid: |mut rng| {
                let mut out = bytes::BytesMut::new();
                entry(&mut rng).encode(&mut out);
                out.freeze()
            },
        },
    ],
    speech,
};

const WIDTHS: [Width; 4] = [Width::Bits16, Width::Bits32, Width::Bits64, Width::Bits128];
const KINDS: [Kind; 3] = [Kind::File, Kind::Directory, Kind::Stream];
const ABILITIES: [Ability; 3] = [Ability::Incapable, Ability::Unwilling, Ability::Willing];
const ENTRIES: [EntryKind; 4] =
    [EntryKind::File, EntryKind::Directory, EntryKind::SpecialFile, EntryKind::SpecialDirectory];

/// A datagram with a packet, or with any bytes.
fn speech(_: &mut Option<u8>, script: &mut Script<'_>) -> Bytes {
    let rng = &mut script.rng();
    match script.below(6) {
        0 => script.bytes(200),
        1 => packet(rng).to_bytes(),
        _ => likely_packet(rng).to_bytes(),
    }
}

/// Any legal packet.
pub(super) fn packet(rng: &mut Rng) -> Packet {
    match rng.below(5) {
        0 => beacon(rng).into(),
        1 => request(rng).into(),
        2 => metadata(rng).into(),
        3 => data(rng).into(),
        _ => status(rng).into(),
    }
}

/// Packet about one of a few sessions, with a small file.
fn likely_packet(rng: &mut Rng) -> Packet {
    let session = rng.below(3) as u32;
    let (width, kind) = (Width::Bits16, Kind::File);
    let size = 1 + rng.below(12);
    match rng.below(10) {
        0 => Request { session, ..request(rng) }.into(),
        1..3 => {
            let entry = Entry::file(["a", "b"][rng.below(2) as usize].to_owned(), u128::from(size), 1, 2);
            let checksum = if rng.chance(0.2) { Checksum::Crc32c(rng.next_u32()) } else { Checksum::None };
            let ended = rng.chance(0.1);
            Metadata { session, width, kind, ended, udp_lite: false, checksum, entry }.into()
        }
        3..7 => {
            let (stamp, payload) = (rng.chance(0.3).then_some([7; 16]), some_bytes(rng, 6));
            let wants_status = rng.chance(0.4);
            let offset = rng.below(12).into();
            Data { session, width, kind, stamp, wants_status, is_end: rng.chance(0.3), offset, payload }
                .into()
        }
        _ => {
            let progress = rng.below(12).into();
            let status = status(rng);
            let holes = holes(rng, progress, 4);
            let in_response_to = rng.below(14).into();
            Status { session, width, progress, in_response_to, holes, ..status }.into()
        }
    }
}

fn abilities(rng: &mut Rng) -> Abilities {
    Abilities {
        width_max: WIDTHS[rng.below(4) as usize],
        streams: rng.chance(0.5),
        send: ABILITIES[rng.below(3) as usize],
        receive: ABILITIES[rng.below(3) as usize],
        udp_lite: rng.chance(0.5),
    }
}

fn beacon(rng: &mut Rng) -> Beacon {
    let free_kib = rng.chance(0.5).then(|| number(rng));
    Beacon { abilities: abilities(rng), free_kib, eid: word(rng, 20) }
}

fn request(rng: &mut Rng) -> Request {
    let kind = if rng.chance(0.8) { rng.below(7) as u8 } else { rng.next_u64() as u8 };
    let mut auth = if rng.chance(0.3) { some_bytes(rng, 20).to_vec() } else { Vec::new() };
    if let Some(last) = auth.last_mut() {
        *last = 1;
    }
    Request {
        abilities: abilities(rng),
        kind: RequestKind::from_code(kind),
        session: rng.next_u32(),
        path: word(rng, 30),
        auth: auth.into(),
    }
}

fn entry(rng: &mut Rng) -> Entry {
    let (width, size) = number(rng);
    Entry {
        kind: ENTRIES[rng.below(4) as usize],
        width,
        udp_lite: rng.chance(0.5),
        size,
        modified: rng.next_u32(),
        created: rng.next_u32(),
        path: word(rng, 30),
    }
}

fn metadata(rng: &mut Rng) -> Metadata {
    let kind = KINDS[rng.below(3) as usize];
    let checksum = match rng.below(5) {
        _ if kind == Kind::Stream => Checksum::None,
        0 => Checksum::None,
        1 => Checksum::Crc32c(rng.next_u32()),
        2 => Checksum::Md5([rng.next_u64() as u8; 16]),
        3 => Checksum::Sha1([rng.next_u64() as u8; 20]),
        _ => Checksum::Other(4 + rng.below(12) as u8, vec![9; 4 * rng.below(16) as usize].into()),
    };
    Metadata {
        session: rng.next_u32(),
        width: WIDTHS[rng.below(4) as usize],
        kind,
        ended: rng.chance(0.2),
        udp_lite: rng.chance(0.5),
        checksum,
        entry: entry(rng),
    }
}

fn data(rng: &mut Rng) -> Data {
    let (width, offset) = number(rng);
    Data {
        session: rng.next_u32(),
        width,
        kind: KINDS[rng.below(3) as usize],
        stamp: rng.chance(0.5).then_some([rng.next_u64() as u8; 16]),
        wants_status: rng.chance(0.5),
        is_end: rng.chance(0.5),
        offset,
        payload: some_bytes(rng, 60),
    }
}

fn status(rng: &mut Rng) -> Status {
    let (width, progress) = number(rng);
    let mut rest = Status::with_outcome(rng.next_u32(), Outcome::Success);
    rest.stamp = rng.chance(0.5).then_some([rng.next_u64() as u8; 16]);
    if rng.chance(0.2) {
        return Status { outcome: Outcome::from_code(1 + rng.below(30) as u8), ..rest };
    }
    let progress = progress >> 8;
    Status {
        width,
        lacks_metadata: rng.chance(0.2),
        incomplete: rng.chance(0.3),
        voluntary: rng.chance(0.5),
        progress,
        in_response_to: progress,
        holes: holes(rng, progress, 6),
        ..rest
    }
}

/// Holes from an offset on, which has at least eight bits less than its descriptor.
fn holes(rng: &mut Rng, from: u128, count: u64) -> Vec<(u128, u128)> {
    let mut at = from;
    let hole = |rng: &mut Rng, at: &mut u128| {
        let first = *at + u128::from(rng.below(9));
        let last = first + u128::from(rng.below(5));
        *at = last + 1;
        (first, last)
    };
    (0..rng.below(count + 1)).map(|_| hole(rng, &mut at)).collect()
}

/// A number with a descriptor for it.
fn number(rng: &mut Rng) -> (Width, u128) {
    let width = WIDTHS[rng.below(4) as usize];
    let value = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
    let unused = 128 - 8 * width.bytes() as u32;
    (width, value >> unused >> rng.below(8 * width.bytes() as u64))
}

fn word(rng: &mut Rng, bound: u64) -> String {
    (0..rng.below(bound)).map(|_| ['a', '/', 'é', '7'][rng.below(4) as usize]).collect()
}

fn some_bytes(rng: &mut Rng, bound: u64) -> Bytes {
    let mut bytes = vec![0; rng.below(bound) as usize];
    rng.fill(&mut bytes);
    bytes.into()
}
