use super::*;
use crate::bp::tests::hex;

fn eid(text: &str) -> Eid {
    text.parse().expect(text)
}

fn encoded(eid: &Eid) -> Bytes {
    let mut out = BytesMut::new();
    eid.encode(&mut out);
    out.freeze()
}

#[test]
fn text_and_bytes_of_every_kind() {
    for (text, bytes) in [
        ("dtn:none", "82 01 00"),
        ("dtn://a/", "82 01 64 2f2f612f"),
        ("dtn://earth/inbox", "82 01 6d 2f2f65617274682f696e626f78"),
        ("dtn://x/~group", "82 01 6a 2f2f782f7e67726f7570"),
        ("ipn:1.1", "82 02 82 01 01"),
        ("ipn:977000.1.1", "82 02 82 1b000ee86800000001 01"),
        ("ipn:0.0", "82 02 82 00 00"),
        ("ipn:!.7", "82 02 82 1affffffff 07"),
        ("ipn:4294967294.18446744073709551615", "82 02 82 1afffffffe 1bffffffffffffffff"),
    ] {
        assert_eq!(encoded(&eid(text)), hex(bytes), "{text}");
        let decoded = Eid::decode(&mut hex(bytes)).expect(text);
        assert_eq!((decoded.to_string(), &decoded), (text.to_owned(), &eid(text)));
    }
}

#[test]
fn the_length_of_the_text_is_known_without_writing_it() {
    let unknown = Eid::decode(&mut hex("82 18 63 82 01 02")).expect("any scheme has a number");
    let uri =
        ["http://example.org/x", "dtn://node", "dtn://node/x"].map(|text| Eid::from_uri(text).expect(text));
    let texts =
        ["dtn:none", "dtn://a/", "dtn://earth/inbox", "ipn:1.1", "ipn:977000.1.1", "ipn:!.7"].map(eid);
    for known in texts.into_iter().chain(uri).chain([unknown]) {
        assert_eq!(known.text_length(), known.to_string().len(), "{known}");
    }
}

/// RFC 9758 appendix B and 6.4: two encodings of one endpoint, and each is forwarded unchanged.
#[test]
fn the_three_element_form_is_the_same_endpoint() {
    for (text, two, three) in [
        ("ipn:1.1", "8202820101", "820283000101"),
        ("ipn:977000.1.1", "8202821b000ee8680000000101", "8202831a000ee8680101"),
        ("ipn:0.0", "8202820000", "820283000000"),
    ] {
        let (two, three) = (hex(two), hex(three));
        let decoded = [two.clone(), three.clone()].map(|bytes| Eid::decode(&mut bytes.clone()).expect(text));
        assert_eq!(decoded[0], decoded[1]);
        assert_eq!(decoded[0], eid(text));
        assert_eq!(decoded[0].cmp(&decoded[1]), Ordering::Equal);
        assert_eq!([encoded(&decoded[0]), encoded(&decoded[1])], [two, three]);
    }
    assert_eq!(eid("ipn:0.1.2"), eid("ipn:1.2"));
    assert_eq!(eid("ipn:4294967295.7"), eid("ipn:!.7"));
}

#[test]
fn every_null_endpoint_is_the_same() {
    let nulls = ["dtn:none", "ipn:0.0", "ipn:0.0.0", "ipn:0.7"].map(eid);
    for null in &nulls {
        assert!(null.is_null() && !null.is_singleton() && !null.is_node_id(), "{null}");
        assert_eq!(null, &Eid::Null);
        assert_eq!(null.node_id(), Eid::Null);
        assert_eq!(Eid::decode(&mut encoded(null)).map(|again| encoded(&again)), Ok(encoded(null)));
    }
    assert!(!eid("ipn:1.0.7").is_null(), "the node zero of another allocator is a node");
}

#[test]
fn nodes_of_endpoints() {
    for (text, node, singleton) in [
        ("dtn://earth/", "dtn://earth/", true),
        ("dtn://earth/a/b", "dtn://earth/", true),
        ("dtn://earth/~all", "dtn://earth/", false),
        ("ipn:3.7", "ipn:3.0", true),
        ("ipn:977000.3.7", "ipn:977000.3.0", true),
    ] {
        assert_eq!(eid(text).node_id(), eid(node));
        assert!(eid(node).is_node_id());
        assert_eq!(eid(text).is_singleton(), singleton);
        assert!(eid(text).same_node(&eid(node)));
    }
    assert!(!eid("dtn://earth/x").same_node(&eid("dtn://moon/x")));
    assert!(!eid("ipn:1.3.7").same_node(&eid("ipn:3.7")));
    assert!(!eid("ipn:3.7").is_node_id());
    assert!(eid("ipn:!.3").is_local_node() && !eid("ipn:1.4294967295.3").is_local_node());
}

#[test]
fn text_that_names_no_endpoint() {
    for text in [
        "",
        "earth",
        "http://earth/",
        "DTN://earth/",
        "dtn:",
        "dtn:earth",
        "dtn://earth",
        "dtn://ea rth/",
        "dtn://earth/in box",
        "dtn://earth/\u{e9}",
        "ipn:",
        "ipn:1",
        "ipn:1.2.3.4",
        "ipn:01.2",
        "ipn:1.+2",
        "ipn:1.",
        "ipn:4294967296.1",
        "ipn:1.18446744073709551616",
        "ipn:1.!.2",
    ] {
        assert!(text.parse::<Eid>().is_err(), "{text}");
    }
}

#[test]
fn bytes_that_name_no_endpoint() {
    let invalid = |what, clause| DecodeError::Invalid { what, clause };
    let long = "7a 00010000";
    for (bytes, error) in [
        ("80", invalid("an endpoint ID", EID)),
        ("83 01 00 00", invalid("an endpoint ID", EID)),
        ("9f 01 00 ff", invalid("an endpoint ID", EID)),
        ("82 00 00", invalid("the reserved URI scheme number", "RFC 9171 9.6")),
        ("82 20 00", invalid("a URI scheme number", EID)),
        ("82 01 01", invalid("a dtn endpoint ID", DTN)),
        ("82 01 64 6e6f6e65", invalid("a dtn endpoint ID without //", DTN)),
        ("82 01 63 2f2f61", invalid("a dtn endpoint ID without / after the node name", DTN)),
        ("82 01 64 2f2f202f", invalid("a character of a dtn node name", DTN)),
        ("82 01 65 2f2f612f ff", invalid("a character of a dtn demux", DTN)),
        ("82 01 43 2f2f61", invalid("a dtn endpoint ID", DTN)),
        ("82 01 7f", DecodeError::Limit { what: "an endpoint ID of indefinite length" }),
        (&format!("82 01 {long}"), DecodeError::Limit { what: "an endpoint ID" }),
        ("82 02 81 01", invalid("an ipn endpoint ID", IPN)),
        ("82 02 84 00 00 00 00", invalid("an ipn endpoint ID", IPN)),
        ("82 02 9f 01 01 ff", DecodeError::Limit { what: "an endpoint ID of indefinite length" }),
        ("82 02 82 20 01", invalid("a fully qualified node number", IPN)),
        ("82 02 83 1b0000000100000000 01 01", invalid("an allocator identifier", "RFC 9758 6.3")),
        ("82 02 83 01 1b0000000100000000 01", invalid("a node number", "RFC 9758 6.3")),
        ("82 02 82 1801 01", invalid("a CBOR head longer than needed", "RFC 8949 4.2.1")),
    ] {
        assert_eq!(Eid::decode(&mut hex(bytes)), Err(error), "{bytes}");
    }
}

#[test]
fn an_unknown_scheme_is_kept() {
    let bytes = hex("82 19ffff 83 01 6161 f5");
    let eid = Eid::decode(&mut bytes.clone()).expect("any item will do");
    assert_eq!(encoded(&eid), bytes);
    assert_eq!(eid, eid.detached());
    assert_eq!(eid.to_string(), "eid:65535:83016161f5");
    assert!(!eid.is_null() && eid.is_singleton() && eid.node_id() == eid);
}

#[test]
fn names_in_one_piece_of_memory_are_what_they_were() {
    let read = |text: &str| Eid::decode(&mut encoded(&eid(text)).clone()).expect(text);
    let texts = ["dtn://earth/inbox", "ipn:1.1", "dtn://moon/", "dtn:none"];
    let mut names = texts.map(read);
    let before = names[0].text().expect("it has a text").as_ptr();
    let [a, b, c, d] = &mut names;
    Eid::detach([a, b, c, d]);
    assert_eq!(names.each_ref().map(Eid::to_string), texts);
    let [first, .., third, _] = names.each_ref().map(Eid::text);
    let (first, third) = (first.expect("it has a text"), third.expect("it has a text"));
    assert_ne!(first.as_ptr(), before);
    assert_eq!(third.as_ptr() as usize, first.as_ptr() as usize + first.len());
}
