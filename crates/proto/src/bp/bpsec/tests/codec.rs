//! The abstract security block: what is decoded, and what is refused.

use super::*;
use crate::codec::DecodeError;

/// As printed in RFC 9173 A.3.3.2.
const BLOCK: &str = "8200020101820282030082820105820300828182015820cac6ce8e4c5dae57988b757e49a6dd1431dc04763541b2845098265bc\
                     817241b81820158203ed614c0d97f49b3633627779aa18a338d212bf3c92b97759d9739cd50725596";

#[test]
fn a_block_survives_the_wire() {
    let block = SecurityBlock::from_bytes(&hex(BLOCK)).expect("a legal block");
    assert_eq!((block.context, &block.source), (BIB_HMAC_SHA2, &Eid::ipn(3, 0)));
    assert_eq!(block.parameters, [Field::unsigned(1, 5), Field::unsigned(3, 0)]);
    let targets: Vec<_> = block.operations.iter().map(|operation| operation.target).collect();
    assert_eq!(targets, [0, 2]);
    assert_eq!(block.to_bytes(), hex(BLOCK));
}

#[test]
fn every_prefix_is_incomplete() {
    let bytes = hex(BLOCK);
    for cut in 0..bytes.len() {
        assert_eq!(SecurityBlock::decode(&mut bytes.slice(..cut)), Err(DecodeError::Incomplete), "{cut}");
    }
}

#[test]
fn refused_blocks() {
    let invalid = |what| DecodeError::invalid(what, "RFC 9172 3.6");
    let limit = |what| DecodeError::Limit { what };
    let long = format!("810101018202820201818201591001{}8180", "00".repeat(4097));
    for (bytes, error) in [
        ("8001008202820201 80", invalid("the security targets")),
        ("82010101008202820201 828080", invalid("a security target that occurs twice")),
        ("9f01ff01008202820201 8180", limit("the security targets")),
        ("9841", limit("the security targets")),
        ("9bffffffffffffffff", limit("the security targets")),
        ("812001008202820201 8180", invalid("the security targets")),
        ("810140008202820201 8180", invalid("a security context identifier")),
        ("81011b8000000000000000008202820201 8180", invalid("a security context identifier")),
        ("810101018202820201 80 8180", invalid("the security context parameters")),
        ("810101018202820201 91", limit("the security context parameters")),
        ("810101018202820201 81820100 80", invalid("the security results")),
        ("810101018202820201 81830100", invalid("the security context parameters")),
        (
            "810101018202820201 8282010082010081 80",
            DecodeError::invalid("the security context parameters", "RFC 9172 3.10"),
        ),
        (
            "810101008202820201 818282010082010081 80",
            DecodeError::invalid("the security results", "RFC 9172 3.10"),
        ),
        (&long, limit("the security context parameters")),
        ("810101008202820201 81818201818181818181818100", limit("CBOR nesting")),
        ("810101008202820201 8180 00", invalid("the data of a security block")),
        ("8101010082028202", invalid("the data of a security block")),
    ] {
        let bytes = bytes.replace(' ', "");
        assert_eq!(SecurityBlock::from_bytes(&hex(&bytes)), Err(Fault::Undecodable(error)), "{bytes}");
    }
}

#[test]
fn reserved_context_flags_are_ignored() {
    let block = SecurityBlock::from_bytes(&hex("81010118fe82028202018180")).expect("a legal block");
    assert_eq!(block.to_bytes(), hex("81010100820282020181 80".replace(' ', "").as_str()));
}
