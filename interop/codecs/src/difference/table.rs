//! Rows of the table of codec differences.

use super::{Class, Difference};
use crate::verdict::Partner::{self, Bp7, Hardy};
use longwire_proto::bp::{BlockType, Bundle, Content, Eid, IpnNumbers};

const fn accepts(
    partner: Partner,
    errors: &'static [&'static str],
    clause: &'static str,
    why: &'static str,
) -> Difference {
    Difference { partner, class: Class::TheyAccept(errors), clause, why }
}

const fn refuses(
    partner: Partner,
    words: &'static str,
    when: fn(&Bundle) -> bool,
    clause: &'static str,
    why: &'static str,
) -> Difference {
    Difference { partner, class: Class::TheyRefuse(words, when), clause, why }
}

const fn reads(
    partner: Partner,
    fields: &'static [&'static str],
    when: fn(&Bundle) -> bool,
    clause: &'static str,
    why: &'static str,
) -> Difference {
    Difference { partner, class: Class::TheyRead(fields, when), clause, why }
}

/// All known classes of difference.
pub const TABLE: &[Difference] = &[
    // Outer structure.
    accepts(
        Bp7,
        &["a bundle in an array of definite length is not valid (RFC 9171 4.1)"],
        "RFC 9171 4.1",
        "A bundle is an array of indefinite length. A node may repair one that is not; we refuse it.",
    ),
    accepts(
        Hardy,
        &["a bundle in an array of definite length is not valid (RFC 9171 4.1)"],
        "RFC 9171 4.1",
        "The same; marked as not canonical and rewritten.",
    ),
    accepts(
        Bp7,
        &[
            "a bundle is not valid (RFC 9171 4.1)",
            "a primary block is not valid (RFC 9171 4.1)",
            "a canonical block is not valid (RFC 9171 4.1)",
            "a block type is not valid (RFC 9171 4.3.2)",
            "a block number is not valid (RFC 9171 4.3.2)",
            "the block processing control flags field is not valid (RFC 9171 4.2.4)",
            "block-type-specific data is not valid (RFC 9171 4.3.2)",
            "an endpoint ID is not valid (RFC 9171 4.2.5.1)",
            "a URI scheme number is not valid (RFC 9171 4.2.5.1)",
            "a bundle age block is not valid (RFC 9171 4.4.2)",
            "a hop count block is not valid (RFC 9171 4.4.3)",
            "a hop count is not valid (RFC 9171 4.4.3)",
            "a CRC whose length does not match its type is not valid (RFC 9171 4.2.2)",
        ],
        "RFC 9171 4.1, RFC 8949 4.2.1",
        "Every field has one deterministic encoding; a tag, a chunked string or, inside block data, an array of \
         indefinite length is a different one. Its CBOR library skips tags and joins chunks.",
    ),
    accepts(
        Hardy,
        &[
            "a bundle is not valid (RFC 9171 4.1)",
            "a primary block is not valid (RFC 9171 4.1)",
            "a canonical block is not valid (RFC 9171 4.1)",
            "the version of a bundle is not valid (RFC 9171 4.3.1)",
            "a creation timestamp is not valid (RFC 9171 4.2.7)",
            "a fragment offset is not valid (RFC 9171 4.3.1)",
            "a block number is not valid (RFC 9171 4.3.2)",
            "block-type-specific data is not valid (RFC 9171 4.3.2)",
            "an endpoint ID is not valid (RFC 9171 4.2.5.1)",
            "a previous node block is not valid (RFC 9171 4.4.1)",
            "a hop count block is not valid (RFC 9171 4.4.3)",
            "a CRC whose length does not match its type is not valid (RFC 9171 4.2.2)",
        ],
        "RFC 9171 4.1, RFC 8949 4.2.1",
        "The same; marked as not canonical and rewritten.",
    ),
    accepts(
        Bp7,
        &["a CBOR head longer than needed is not valid (RFC 8949 4.2.1)"],
        "RFC 9171 4.1, RFC 8949 4.2.1",
        "Numbers and lengths must have the shortest form.",
    ),
    accepts(
        Hardy,
        &["a CBOR head longer than needed is not valid (RFC 8949 4.2.1)"],
        "RFC 9171 4.1, RFC 8949 4.2.1",
        "The same; marked as not canonical and rewritten.",
    ),
    accepts(
        Bp7,
        &[
            "a block of indefinite length exceeds a limit of this implementation",
            "an endpoint ID of indefinite length exceeds a limit of this implementation",
        ],
        "RFC 9171 4.1",
        "Items of indefinite length are not prohibited inside blocks. No known implementation sends them, and we do \
         not accept them.",
    ),
    accepts(
        Hardy,
        &[
            "a block of indefinite length exceeds a limit of this implementation",
            "an endpoint ID of indefinite length exceeds a limit of this implementation",
        ],
        "RFC 9171 4.1",
        "The same; marked as not canonical and rewritten.",
    ),
    accepts(
        Bp7,
        &["a payload that is not a byte string of definite length is not valid (RFC 9171 4.3.2)"],
        "RFC 9171 4.3.2",
        "Block data must be one byte string of definite length.",
    ),
    accepts(
        Hardy,
        &["a payload that is not a byte string of definite length is not valid (RFC 9171 4.3.2)"],
        "RFC 9171 4.3.2",
        "The same; marked as not canonical and rewritten.",
    ),
    // Primary block.
    accepts(
        Bp7,
        &["a primary block without a CRC is not valid (RFC 9171 4.3.1)"],
        "RFC 9171 4.3.1",
        "A primary block must have a CRC unless a block integrity block covers it. `accept = \
         [\"primary-without-crc\"]` accepts it.",
    ),
    accepts(
        Hardy,
        &["a primary block without a CRC is not valid (RFC 9171 4.3.1)"],
        "RFC 9171 4.3.1",
        "The same. Its bundle agent refuses it later, with a filter that can be disabled.",
    ),
    accepts(
        Bp7,
        &[
            "a request for reports on an anonymous bundle is not valid (RFC 9171 4.2.3)",
            "an anonymous bundle that may be fragmented is not valid (RFC 9171 4.2.3)",
            "an anonymous fragment is not valid (RFC 9171 4.2.3)",
        ],
        "RFC 9171 4.2.3",
        "An anonymous bundle must not be a fragment, must not be fragmented, and must not request reports.",
    ),
    accepts(
        Bp7,
        &["a source that is not a node is not valid (RFC 9171 4.3.1)"],
        "RFC 9171 4.3.1",
        "The source is a node or the null endpoint; a group endpoint has no node.",
    ),
    accepts(
        Hardy,
        &["a source that is not a node is not valid (RFC 9171 4.3.1)"],
        "RFC 9171 4.3.1",
        "The same.",
    ),
    accepts(
        Bp7,
        &[
            "a fragment beyond the end of its application data unit is not valid (RFC 9171 5.8)",
            "a fragment without payload is not valid (RFC 9171 5.8)",
        ],
        "RFC 9171 5.8",
        "A fragment is a non-empty part of its application data unit.",
    ),
    accepts(
        Hardy,
        &[
            "a fragment beyond the end of its application data unit is not valid (RFC 9171 5.8)",
            "a fragment without payload is not valid (RFC 9171 5.8)",
        ],
        "RFC 9171 5.8",
        "The same; it checks only that the fragment begins inside.",
    ),
    accepts(
        Hardy,
        &["a bundle with neither creation time nor age is not valid (RFC 9171 4.4.2)"],
        "RFC 9171 4.4.2",
        "A bundle without a creation time must have an age. Its bundle agent refuses it later, with a filter.",
    ),
    refuses(
        Bp7,
        "BundleControlFlagsError(\"Given flag contains reserved bits\")",
        |bundle| bundle.head.primary.flags.bits() & !0x7_4066 != 0,
        "RFC 9171 4.2.3",
        "Unknown flags are ignored, because they may be defined later.",
    ),
    // Endpoints.
    accepts(
        Bp7,
        &[
            "a dtn endpoint ID without / after the node name is not valid (RFC 9171 4.2.5.1.1)",
            "a character of a dtn node name is not valid (RFC 9171 4.2.5.1.1)",
            "a character of a dtn demux is not valid (RFC 9171 4.2.5.1.1)",
        ],
        "RFC 9171 4.2.5.1.1",
        "A dtn name is `//`, a registered name of RFC 3986, `/` and printable ASCII.",
    ),
    accepts(
        Hardy,
        &["a dtn endpoint ID without // is not valid (RFC 9171 4.2.5.1.1)"],
        "RFC 9171 4.2.5.1.1",
        "`dtn:none` is the number 0; it also accepts the text `none`.",
    ),
    accepts(
        Bp7,
        &["a LocalNode endpoint of another node is not valid (RFC 9758 5.4)"],
        "RFC 9758 5.4",
        "`ipn:!.n` denotes a service of the local node and must not come from another node.",
    ),
    accepts(
        Hardy,
        &["a LocalNode endpoint of another node is not valid (RFC 9758 5.4)"],
        "RFC 9758 5.4",
        "The same; its bundle agent checks this.",
    ),
    refuses(
        Bp7,
        "TrailingData",
        |bundle| numbers(bundle).any(|ipn| ipn.three_elements),
        "RFC 9758 6.1.2",
        "It supports only identifiers of two elements. We write two.",
    ),
    refuses(
        Bp7,
        "expected EndpointID",
        |bundle| endpoints(bundle).any(|eid| matches!(eid, Eid::Unknown { .. })),
        "RFC 9171 4.2.5.1",
        "New schemes may be defined; a bundle that uses one can be forwarded.",
    ),
    refuses(
        Bp7,
        "expected u8",
        |bundle| endpoints(bundle).any(|eid| matches!(eid, Eid::Unknown { scheme: 256.., .. })),
        "RFC 9171 4.2.5.1",
        "The same, for schemes with a number above 255.",
    ),
    refuses(
        Bp7,
        "PrimaryBlockError(\"CRC check failed\")",
        |bundle| numbers(bundle).any(|ipn| (ipn.allocator, ipn.node) == (0, 0)),
        "RFC 9758 3.4.1",
        "`ipn:0.n` is the null endpoint for any n; it re-encodes it with a different n, so the CRC does not match.",
    ),
    refuses(
        Hardy,
        "Invalid ipn service number",
        |bundle| numbers(bundle).any(|ipn| ipn.service > u64::from(u32::MAX)),
        "RFC 9758 3.5",
        "A service number is an unsigned integer, without a limit of 32 bits.",
    ),
    reads(
        Bp7,
        &["destination", "source", "report-to", "previous node"],
        |bundle| numbers(bundle).any(|ipn| ipn.allocator != 0 || matches!(ipn.node, 0 | u32::MAX)),
        "RFC 9758 6.1.1",
        "The upper 32 bits of a node number are its allocator, `ipn:0.0` is the null endpoint and node 4294967295 is \
         written `!`: it interprets none of these.",
    ),
    reads(
        Hardy,
        &["source"],
        |bundle| endpoints(bundle).any(|eid| eid.to_string().contains(|c| "!$&'()*+,;=%".contains(c))),
        "RFC 3986 2.2",
        "A reserved character is not equivalent to its percent-encoding, which it writes instead.",
    ),
    // Extension blocks.
    accepts(
        Bp7,
        &["the reserved block type is not valid (RFC 9171 9.1)"],
        "RFC 9171 9.1",
        "Block type 0 is reserved.",
    ),
    accepts(
        Bp7,
        &["a previous node that is not a node is not valid (RFC 9171 4.4.1)"],
        "RFC 9171 4.4.1",
        "The previous node is a node: not null, not a group.",
    ),
    accepts(
        Hardy,
        &["a previous node that is not a node is not valid (RFC 9171 4.4.1)"],
        "RFC 9171 4.4.1",
        "The same.",
    ),
    accepts(
        Hardy,
        &["a bundle age block is not valid (RFC 9171 4.4.2)"],
        "RFC 9171 4.4.2",
        "The data are one number with nothing after it; it discards trailing data.",
    ),
    accepts(
        Bp7,
        &["a hop limit is not valid (RFC 9171 4.4.3)"],
        "RFC 9171 4.4.3",
        "A hop limit is from 1 to 255; it also accepts 0.",
    ),
    refuses(
        Bp7,
        "of type 10 can not be decoded",
        |bundle| bundle.head.hop_count().is_some_and(|hops| hops.count > 255),
        "RFC 9171 4.4.3",
        "The limit is below 256, but the count has no such bound: a bundle with a higher count is deleted because it \
         exceeds its hop limit.",
    ),
    refuses(
        Bp7,
        "of type 6 can not be decoded",
        |bundle| match bundle.head.content(BlockType::PreviousNode) {
            Some(Content::PreviousNode(Eid::Ipn(ipn))) => ipn.three_elements,
            Some(Content::PreviousNode(eid)) => matches!(eid, Eid::Unknown { .. }),
            _ => false,
        },
        "RFC 9758 6.1.2",
        "A previous node with an identifier of three elements or of a scheme unknown to it.",
    ),
    refuses(
        Bp7,
        "BlockControlFlagsError(\"Given flag contains reserved bits\")",
        |bundle| block_flags(bundle).any(|flags| flags & !0x17 != 0),
        "RFC 9171 4.2.4",
        "Unknown flags are ignored, because they may be defined later.",
    ),
    refuses(
        Bp7,
        "expected u8",
        |bundle| block_flags(bundle).any(|flags| flags > 255),
        "RFC 9171 4.2.4",
        "Block flags have up to 64 bits.",
    ),
    refuses(
        Hardy,
        "has an unsupported block type",
        |bundle| block_flags(bundle).any(|flags| flags & 0x04 != 0),
        "RFC 9171 5.6",
        "A block that cannot be processed may request deletion of the bundle. It does this while parsing; our agent \
         does it after reception.",
    ),
    refuses(
        Hardy,
        "BPSec integrity extension block",
        |bundle| bundle.head.block(BlockType::BlockIntegrity).is_some(),
        "RFC 9172 3.6",
        "We forward the content of security blocks unchanged; it parses it.",
    ),
];

fn endpoints(bundle: &Bundle) -> impl Iterator<Item = Eid> {
    let primary = &bundle.head.primary;
    let three = [&primary.destination, &primary.source, &primary.report_to].map(Clone::clone);
    three.into_iter().chain(bundle.head.previous_node())
}

fn numbers(bundle: &Bundle) -> impl Iterator<Item = IpnNumbers> {
    endpoints(bundle).filter_map(|eid| match eid {
        Eid::Ipn(numbers) => Some(numbers),
        _ => None,
    })
}

fn block_flags(bundle: &Bundle) -> impl Iterator<Item = u64> {
    bundle
        .head
        .blocks
        .iter()
        .map(|block| block.flags)
        .chain([bundle.head.payload.flags])
        .map(|flags| flags.bits())
}
