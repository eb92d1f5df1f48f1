//! Codecs: properties that hold for any bytes, and legal messages to begin with.

use super::{aeronp, bpsec, radio, smtp};
use crate::ax25::Modulo;
use crate::bp::generate::Generator;
use crate::bp::v6;
use crate::bp::{
    AdminRecord, BlockType, Bundle, Content, CrcType, DecodePolicy, Eid, PayloadCrc, decode_head,
};
use crate::codec::{DecodeError, cbor, sdnv};
use crate::discovery;
use crate::rng::Rng;
use crate::tcp::wire::{Flags, Ipv4Header, OPTION_BYTES_MAX, Packet, Segment, TcpOptions, internet_checksum};
use bytes::{Bytes, BytesMut};
use core::fmt::Debug;
use core::net::Ipv4Addr;

/// A codec under test.
#[derive(Debug)]
pub struct Codec {
    /// Name, for messages.
    pub name: &'static str,
    /// Decodes any bytes and checks the result. Returns true if they were accepted.
    pub check: fn(&Bytes) -> bool,
    /// Creates a legal message.
    pub valid: fn(Rng) -> Bytes,
}

/// All codecs but those of convergence layers.
pub const CODECS: &[Codec] = &[
    Codec { name: "smtp command", check: smtp::check_command, valid: smtp::valid_command },
    Codec { name: "cbor item", check: check_cbor, valid: bundle },
    Codec { name: "sdnv", check: check_sdnv, valid: valid_sdnv },
    Codec { name: "endpoint id", check: check_eid, valid: |rng| encoded(|out| endpoint(rng).encode(out)) },
    Codec { name: "endpoint id as text", check: check_eid_text, valid: valid_eid_text },
    Codec { name: "block content", check: check_content, valid: valid_content },
    Codec {
        name: "administrative record",
        check: |bytes| is_identity(bytes, AdminRecord::decode, AdminRecord::encode),
        valid: |rng| Generator::new(rng).admin_record().to_bytes(),
    },
    Codec { name: "bundle", check: check_bundle, valid: valid_bundle },
    Codec {
        name: "bundle in pieces",
        check: check_bundle_in_pieces,
        valid: |rng| [&[40], &valid_bundle(rng)[..]].concat().into(),
    },
    Codec {
        name: "abstract security block",
        check: bpsec::check_security_block,
        valid: bpsec::valid_security_block,
    },
    Codec { name: "secured bundle", check: bpsec::check_secured_bundle, valid: bpsec::valid_secured_bundle },
    Codec {
        name: "version 6 bundle",
        check: |bytes| is_stable(bytes, v6::Bundle::decode, v6::Bundle::encode),
        valid: bundle_of_version_6,
    },
    Codec {
        name: "version 6 bundle in pieces",
        check: check_bundle6_in_pieces,
        valid: |rng| [&[40], &v6::generate::Generator::new(rng).bundle().to_bytes()[..]].concat().into(),
    },
    Codec { name: "version 6 block content", check: check_content6, valid: valid_content6 },
    Codec {
        name: "version 6 administrative record",
        check: |bytes| is_stable(bytes, v6::AdminRecord::decode, v6::AdminRecord::encode),
        valid: |rng| v6::generate::Generator::new(rng).admin_record().to_bytes(),
    },
    Codec { name: "ipv4 header", check: check_ipv4, valid: valid_packet },
    Codec { name: "tcp segment", check: check_segment, valid: valid_segment },
    Codec { name: "ipv4 packet", check: check_packet, valid: valid_packet },
    Codec { name: "aeronp packet", check: aeronp::check_packet, valid: aeronp::valid_packet },
    Codec { name: "aeronp beacon", check: aeronp::check_beacon, valid: aeronp::valid_beacon },
    Codec {
        name: "aeronp acknowledgement",
        check: aeronp::check_acknowledgement,
        valid: aeronp::valid_acknowledgement,
    },
    Codec { name: "kiss frame", check: radio::check_kiss, valid: radio::valid_kiss },
    Codec { name: "kiss line", check: radio::check_kiss_line, valid: radio::valid_kiss_line },
    Codec { name: "agwpe frame", check: radio::check_agwpe, valid: radio::valid_agwpe },
    Codec { name: "agwpe data", check: radio::check_agwpe_data, valid: radio::valid_agwpe_data },
    Codec {
        name: "ax25 frame, modulo 8",
        check: |bytes| radio::check_ax25_frame(bytes, Modulo::Eight),
        valid: |rng| radio::valid_ax25_frame(rng, Modulo::Eight),
    },
    Codec {
        name: "ax25 frame, modulo 128",
        check: |bytes| radio::check_ax25_frame(bytes, Modulo::Extended),
        valid: |rng| radio::valid_ax25_frame(rng, Modulo::Extended),
    },
    Codec {
        name: "ax25 identification",
        check: radio::check_identification,
        valid: radio::valid_identification,
    },
    Codec { name: "ax25 bits", check: radio::check_hdlc, valid: radio::valid_hdlc },
    Codec {
        name: "messages of sand",
        check: |bytes| is_stable(bytes, discovery::sand::Messages::decode, discovery::sand::Messages::encode),
        valid: |rng| discovery_bundle(rng).payload,
    },
    Codec { name: "announcement of sand", check: check_announcement, valid: valid_announcement },
    Codec { name: "beacon of ipnd", check: check_beacon, valid: valid_beacon },
    Codec { name: "announcement of aprs", check: check_aprs, valid: valid_aprs },
    Codec { name: "ax25 segments", check: radio::check_segments, valid: radio::valid_segments },
];

fn discovery_bundle(mut rng: Rng) -> Bundle {
    let interval = crate::time::Duration::from_millis(rng.below(1 << 20));
    let port = rng.next_u32() as u16;
    let own = discovery::sand::Own {
        node: format!("dtn://n{}/", rng.below(1000)).parse().expect("a node ID"),
        tcp_port: (port > 0).then_some(port),
        interval,
        validity: interval * 3,
    };
    own.bundle((rng.below(1 << 40), rng.below(9)).into(), rng.chance(0.5))
}

/// Without a CRC of the payload, so that damage reaches the messages.
fn valid_announcement(rng: Rng) -> Bytes {
    let mut bundle = discovery_bundle(rng);
    bundle.head.payload.crc = CrcType::None;
    bundle.to_bytes()
}

/// An announcement that is read names a node, and is read from the same bundle again.
fn check_announcement(bytes: &Bytes) -> bool {
    let read = discovery::sand::bundle(bytes).and_then(|bundle| discovery::sand::announcement(&bundle));
    read.inspect(|read| assert!(discovery::is_plain_node(&read.node))).is_ok()
}

fn check_beacon(bytes: &Bytes) -> bool {
    let read = discovery::ipnd::Beacon::decode(&mut bytes.clone());
    read.inspect(|read| assert!(discovery::is_plain_node(&read.node))).is_ok()
}

fn valid_beacon(mut rng: Rng) -> Bytes {
    let node = b"dtn://bob/";
    encoded(|out| {
        out.extend_from_slice(&[4, 0b1011, 0, rng.next_u32() as u8, node.len() as u8]);
        out.extend_from_slice(node);
        let services = rng.below(4);
        sdnv::encode(services, out);
        for _ in 0..services {
            out.extend_from_slice(&[64 + rng.below(2) as u8, 8, 4, 192, 0, 2, 1, 3, 17, 204]);
        }
        sdnv::encode(rng.below(100), out);
    })
}

/// A text that is read is written again with the same node.
fn check_aprs(bytes: &Bytes) -> bool {
    let Ok(read) = discovery::aprs::announcement(bytes) else { return false };
    assert!(discovery::is_plain_node(&read.node));
    if let Some(text) = discovery::aprs::text(&read.node, None, "") {
        assert_eq!(discovery::aprs::announcement(text.as_bytes()), Ok(read));
    }
    true
}

fn valid_aprs(mut rng: Rng) -> Bytes {
    let degrees = |rng: &mut Rng, most: f64| (rng.unit() * 2.0 - 1.0) * most;
    let (latitude, longitude) = (degrees(&mut rng, 90.0), degrees(&mut rng, 180.0));
    let position = rng.chance(0.5).then_some(discovery::aprs::Position { latitude, longitude });
    let text = discovery::aprs::text(&Eid::ipn(1 + rng.below(1000) as u32, 0), position, "on the air");
    text.expect("it fits").into_bytes().into()
}

/// Checks a codec with one encoding per value: a decoded value is encoded to the original bytes.
pub(crate) fn is_identity<T>(
    bytes: &Bytes,
    decode: impl Fn(&mut Bytes) -> Result<T, DecodeError>,
    encode: impl Fn(&T, &mut BytesMut),
) -> bool {
    let mut input = bytes.clone();
    let Ok(value) = decode(&mut input) else { return false };
    let taken = &bytes[..bytes.len() - input.len()];
    assert_eq!(encoded(|out| encode(&value, out)), taken, "encoded otherwise than it was decoded");
    true
}

/// Checks a codec that accepts more encodings than it produces: an encoded value is decoded to the same value.
pub(crate) fn is_stable<T: PartialEq + Debug>(
    bytes: &Bytes,
    decode: impl Fn(&mut Bytes) -> Result<T, DecodeError>,
    encode: impl Fn(&T, &mut BytesMut),
) -> bool {
    let mut input = bytes.clone();
    let Ok(value) = decode(&mut input) else { return false };
    let mut again = encoded(|out| encode(&value, out));
    assert_eq!(decode(&mut again).as_ref(), Ok(&value));
    assert!(again.is_empty(), "bytes of its own were left");
    true
}

pub(crate) fn encoded(encode: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut out = BytesMut::new();
    encode(&mut out);
    out.freeze()
}

fn endpoint(rng: Rng) -> Eid {
    Generator::new(rng).endpoint()
}

fn check_cbor(bytes: &Bytes) -> bool {
    let mut input = bytes.clone();
    match cbor::item(&mut input, 16) {
        Ok(item) => {
            assert_eq!(item, bytes[..bytes.len() - input.len()]);
            assert_eq!(cbor::item(&mut item.clone(), 16).as_ref(), Ok(&item));
            true
        }
        Err(_) => false,
    }
}

fn check_sdnv(bytes: &Bytes) -> bool {
    is_stable(bytes, sdnv::decode, |value, out| sdnv::encode(*value, out))
}

fn valid_sdnv(rng: Rng) -> Bytes {
    encoded(|out| sdnv::encode(Generator::new(rng).number(), out))
}

fn check_eid(bytes: &Bytes) -> bool {
    let mut input = bytes.clone();
    if let Ok(eid) = Eid::decode(&mut input) {
        assert_eq!(eid, eid.detached());
        assert!(eid.same_node(&eid.node_id()));
        if !matches!(eid, Eid::Unknown { .. }) {
            assert_eq!(eid.to_string().parse().as_ref(), Ok(&eid));
        }
    }
    is_identity(bytes, Eid::decode, Eid::encode)
}

fn check_eid_text(bytes: &Bytes) -> bool {
    let Ok(text) = core::str::from_utf8(bytes) else { return false };
    let Ok(eid) = text.parse::<Eid>() else { return false };
    assert_eq!(eid.to_string().parse().as_ref(), Ok(&eid));
    assert_eq!(Eid::decode(&mut encoded(|out| eid.encode(out))), Ok(eid));
    true
}

fn valid_eid_text(rng: Rng) -> Bytes {
    Generator::new(rng).singleton().to_string().into()
}

/// The first byte selects the block type.
fn check_content(bytes: &Bytes) -> bool {
    const TYPES: [BlockType; 5] = [
        BlockType::PreviousNode,
        BlockType::BundleAge,
        BlockType::HopCount,
        BlockType::QualityOfService,
        BlockType::Copies,
    ];
    let Some(&choice) = bytes.first() else { return false };
    let (block_type, data) = (TYPES[usize::from(choice) % TYPES.len()], bytes.slice(1..));
    let Ok(Some(content)) = Content::decode(block_type, &data) else { return false };
    assert_eq!((content.block_type(), content.encode()), (block_type, data));
    true
}

fn valid_content(rng: Rng) -> Bytes {
    let head = Generator::new(rng).bundle().head;
    let number = |block: &crate::bp::Block| match block.block_type {
        BlockType::PreviousNode => Some(0),
        BlockType::BundleAge => Some(1),
        BlockType::HopCount => Some(2),
        BlockType::QualityOfService => Some(3),
        _ => None,
    };
    let known = head.blocks.iter().find_map(|block| Some((number(block)?, block.data.clone())));
    let (choice, data) = known.unwrap_or((1, Content::BundleAge(7).encode()));
    [&[choice], &data[..]].concat().into()
}

fn check_bundle(bytes: &Bytes) -> bool {
    let decode = |input: &mut Bytes| {
        let bundle = Bundle::decode_with(input, &AS_IT_IS)?;
        exercise(&bundle);
        Ok(bundle)
    };
    // A bundle whose blocks are renumbered is encoded differently, as intended.
    if let Ok(bundle) = Bundle::decode_with(&mut bytes.clone(), &DecodePolicy::STORED) {
        exercise(&bundle);
        assert_eq!(Bundle::from_bytes(&bundle.to_bytes(), &AS_IT_IS), Ok(bundle));
    }
    is_identity(bytes, decode, Bundle::encode)
}

/// Everything that is accepted and kept unchanged.
const AS_IT_IS: DecodePolicy =
    DecodePolicy { accept_fragment_blocks_numbered_zero: false, ..DecodePolicy::STORED };

/// Calls what an agent calls on an accepted bundle.
fn exercise(bundle: &Bundle) {
    let head = &bundle.head;
    let _ = (head.id(), head.previous_node(), head.age_ms(), head.hop_count(), head.priority());
    assert_eq!(head.check(&DecodePolicy::STORED), Ok(()));
    let free = head.free_number();
    assert!(free > 1 && head.blocks.iter().all(|block| block.number != free));
    let length = head.payload.length;
    if length > 1 && !head.primary.flags.contains(crate::bp::BundleFlags::MUST_NOT_FRAGMENT) {
        for (offset, length) in [(0, length / 2), (length / 2, length - length / 2)] {
            let head = head.fragment(offset, length);
            let payload = bundle.payload.slice(offset as usize..(offset + length) as usize);
            if head.check(&DecodePolicy::STORED).is_ok() {
                let fragment = Bundle { head, payload };
                assert_eq!(Bundle::from_bytes(&fragment.to_bytes(), &DecodePolicy::STORED), Ok(fragment));
            }
        }
    }
}

/// Head, payload in two pieces, tail: the result is that of decoding all at once. The first byte selects the boundary
/// of the pieces.
fn check_bundle_in_pieces(bytes: &Bytes) -> bool {
    let (Some(&cut), rest) = (bytes.first(), bytes.slice(bytes.len().min(1)..)) else { return false };
    let whole = Bundle::decode_with(&mut rest.clone(), &DecodePolicy::STORED);
    let pieces = decode_in_pieces(&rest, usize::from(cut));
    assert_eq!(pieces, whole);
    pieces.is_ok()
}

fn decode_in_pieces(bytes: &Bytes, cut: usize) -> Result<Bundle, DecodeError> {
    let (head, length) = decode_head(bytes, &DecodePolicy::STORED)?;
    // A prefix gives either the same result or `Incomplete`.
    let prefix = decode_head(&bytes.slice(..cut.min(length)), &DecodePolicy::STORED);
    assert!(prefix == Err(DecodeError::Incomplete) || prefix == Ok((head.clone(), length)));
    let mut rest = bytes.slice(length..);
    let payload_length = usize::try_from(head.payload.length).unwrap_or(usize::MAX);
    if rest.len() < payload_length {
        return Err(DecodeError::Incomplete);
    }
    let payload = rest.split_to(payload_length);
    let (first, second) = payload.split_at(cut.min(payload.len()));
    let mut crc = PayloadCrc::new(&head.payload);
    crc.update(first);
    crc.update(second);
    crc.decode_tail(&mut rest)?;
    assert_eq!(
        encoded(|out| crc.encode_tail(out)),
        bytes[bytes.len() - rest.len() - crc.tail_bytes()..][..crc.tail_bytes()]
    );
    Ok(Bundle { head, payload })
}

/// Head, payload, tail, as an agent decodes them: the result is that of decoding all at once. The first byte selects
/// the length of a prefix.
fn check_bundle6_in_pieces(bytes: &Bytes) -> bool {
    let (Some(&cut), rest) = (bytes.first(), bytes.slice(bytes.len().min(1)..)) else { return false };
    let whole = v6::Bundle::decode(&mut rest.clone());
    let pieces = decode6_in_pieces(&rest, usize::from(cut));
    assert_eq!(pieces, whole);
    pieces.is_ok()
}

fn decode6_in_pieces(bytes: &Bytes, cut: usize) -> Result<v6::Bundle, DecodeError> {
    let policy = DecodePolicy::default();
    let (mut head, length) = v6::decode_head(bytes, &policy)?;
    let prefix = v6::decode_head(&bytes.slice(..cut.min(length)), &policy);
    assert!(prefix == Err(DecodeError::Incomplete) || prefix == Ok((head.clone(), length)));
    let mut rest = bytes.slice(length..);
    let payload_length = usize::try_from(head.payload.length).unwrap_or(usize::MAX);
    if rest.len() < payload_length {
        return Err(DecodeError::Incomplete);
    }
    let payload = rest.split_to(payload_length);
    head.after = v6::decode_tail(&mut rest, &head, &policy)?;
    assert_eq!(head.after.is_empty(), head.payload.last);
    Ok(v6::Bundle { head, payload })
}

const TYPES_6: [v6::BlockType; 4] =
    [v6::BlockType::PreviousHop, v6::BlockType::Age, v6::BlockType::Metadata, v6::BlockType::ClassOfService];

/// The first byte selects the block type. Previous hops have several encodings.
fn check_content6(bytes: &Bytes) -> bool {
    let Some(&choice) = bytes.first() else { return false };
    let (block_type, data) = (TYPES_6[usize::from(choice) % TYPES_6.len()], bytes.slice(1..));
    let block = v6::Block { block_type, flags: v6::BlockFlags::NONE, references: None, data };
    let Ok(Some(content)) = block.content() else { return false };
    let again = v6::Block::new(&content);
    assert_eq!((again.block_type, again.content()), (block_type, Ok(Some(content))));
    true
}

fn valid_content6(mut rng: Rng) -> Bytes {
    let choice = rng.below(TYPES_6.len() as u64) as u8;
    let mut make = v6::generate::Generator::new(rng);
    let content = match TYPES_6[usize::from(choice)] {
        v6::BlockType::PreviousHop => v6::Content::PreviousHop(make.endpoint()),
        v6::BlockType::Age => v6::Content::Age(make.number()),
        v6::BlockType::Metadata => {
            let (kind, data) = (make.number(), Bytes::copy_from_slice(&make.number().to_be_bytes()));
            v6::Content::Metadata(v6::Metadata { kind, data })
        }
        _ => v6::Content::ClassOfService(v6::ClassOfService {
            flags: 4,
            ordinal: 7,
            label: Some(make.number()),
        }),
    };
    [&[choice], &content.encode()[..]].concat().into()
}

/// Encoded bundle of version 7.
pub(crate) fn bundle(rng: Rng) -> Bytes {
    Generator::new(rng).bundle().to_bytes()
}

/// Encoded bundle of version 6.
pub(crate) fn bundle_of_version_6(rng: Rng) -> Bytes {
    v6::generate::Generator::new(rng).bundle().to_bytes()
}

/// Endpoint ID of a node, as text.
pub(crate) fn node_id(rng: Rng) -> String {
    Generator::new(rng).singleton().to_string()
}

/// Half of the bundles have no CRCs, so that damage reaches the fields after them.
fn valid_bundle(mut rng: Rng) -> Bytes {
    let open = rng.chance(0.5);
    let mut bundle = Generator::new(rng).bundle();
    if open {
        bundle.head.primary.crc = CrcType::None;
        bundle.head.payload.crc = CrcType::None;
        bundle.head.blocks.iter_mut().for_each(|block| block.crc = CrcType::None);
    }
    bundle.to_bytes()
}

/// Damaged headers get the correct checksum, so that damage reaches the checks after it.
fn check_ipv4(bytes: &Bytes) -> bool {
    is_stable_ipv4(bytes) | is_stable_ipv4(&with_ipv4_checksum(bytes))
}

fn is_stable_ipv4(bytes: &Bytes) -> bool {
    let Ok(header) = Ipv4Header::decode(&mut bytes.clone()) else { return false };
    let mut again = BytesMut::new();
    header.encode(&mut again);
    again.resize(again.len() + usize::from(header.payload_bytes), 0);
    assert_eq!(Ipv4Header::decode(&mut again.freeze()), Ok(header));
    true
}

fn with_ipv4_checksum(bytes: &Bytes) -> Bytes {
    let mut bytes = bytes.to_vec();
    let length = bytes.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
    if length >= 20 && bytes.len() >= length {
        put_checksum(&mut bytes, 10, |bytes| internet_checksum(&bytes[..length]));
    }
    bytes.into()
}

fn put_checksum(bytes: &mut [u8], at: usize, compute: impl FnOnce(&[u8]) -> u16) {
    bytes[at..at + 2].fill(0);
    let checksum = compute(bytes);
    bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn check_segment(bytes: &Bytes) -> bool {
    let decode = |input: &mut Bytes| Segment::decode(input, HERE, THERE).and_then(encodable);
    let encode = |segment: &Segment, out: &mut BytesMut| segment.encode(HERE, THERE, out);
    is_stable(bytes, decode, encode) | is_stable(&with_tcp_checksum(bytes), decode, encode)
}

/// Options that a peer has packed more tightly than this implementation does cannot be encoded again.
fn encodable(segment: Segment) -> Result<Segment, DecodeError> {
    let fits = segment.options.length() <= OPTION_BYTES_MAX && segment.payload.len() < 65_000;
    if fits { Ok(segment) } else { Err(DecodeError::Limit { what: "a test" }) }
}

fn with_tcp_checksum(bytes: &Bytes) -> Bytes {
    let mut bytes = bytes.to_vec();
    if let (true, Ok(length)) = (bytes.len() >= 20, u16::try_from(bytes.len())) {
        let mut pseudo = [&HERE.octets()[..], &THERE.octets(), &[0, 6], &length.to_be_bytes()].concat();
        put_checksum(&mut bytes, 16, |bytes| {
            pseudo.extend_from_slice(bytes);
            internet_checksum(&pseudo)
        });
    }
    bytes.into()
}

fn check_packet(bytes: &Bytes) -> bool {
    let decode = |input: &mut Bytes| {
        let packet = Packet::decode(input)?;
        encodable(packet.segment.clone()).map(|_| packet)
    };
    is_stable(bytes, decode, Packet::encode) | is_stable(&with_ipv4_checksum(bytes), decode, Packet::encode)
}

fn segment(rng: &mut Rng) -> Segment {
    let mut options = TcpOptions::default();
    if rng.chance(0.3) {
        options.maximum_segment_bytes = Some(rng.next_u32() as u16);
        options.window_scale = Some(rng.next_u32() as u8);
        options.sack_permitted = rng.chance(0.5);
    } else if rng.chance(0.5) {
        (0..=rng.below(3)).for_each(|_| options.sack.push(rng.next_u32(), rng.next_u32()));
    }
    if rng.chance(0.5) {
        options.timestamps = Some((rng.next_u32(), rng.next_u32()));
    }
    let mut payload = vec![0; rng.below(100) as usize];
    rng.fill(&mut payload);
    Segment {
        source_port: rng.next_u32() as u16,
        destination_port: 4556,
        sequence: rng.next_u32(),
        acknowledgement: rng.next_u32(),
        flags: Flags::from_byte(rng.next_u32() as u8),
        window: rng.next_u32() as u16,
        urgent: rng.next_u32() as u16,
        options: if options.length() > OPTION_BYTES_MAX { TcpOptions::default() } else { options },
        payload: payload.into(),
    }
}

fn valid_segment(mut rng: Rng) -> Bytes {
    encoded(|out| segment(&mut rng).encode(HERE, THERE, out))
}

fn valid_packet(mut rng: Rng) -> Bytes {
    let packet = Packet {
        identification: rng.next_u32() as u16,
        time_to_live: 64,
        source: HERE,
        destination: THERE,
        segment: segment(&mut rng),
    };
    encoded(|out| packet.encode(out))
}
