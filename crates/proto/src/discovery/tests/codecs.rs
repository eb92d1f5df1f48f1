//! Formats of announcements, octet by octet.

use super::super::*;
use crate::service::CreationTimestamp;
use bytes::Bytes;

fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).expect("ASCII"), 16);
    digits.chunks(2).map(|pair| byte(pair).expect("two digits")).collect::<Vec<u8>>().into()
}

fn node(text: &str) -> Eid {
    text.parse().expect("a node ID")
}

fn own(name: &str, tcp_port: Option<u16>) -> sand::Own {
    sand::Own {
        node: node(name),
        tcp_port,
        interval: Duration::from_secs(30),
        validity: Duration::from_secs(91),
    }
}

#[test]
fn an_announcement_of_sand_says_who_and_where() {
    for (name, port, solicits) in
        [("dtn://alice/", Some(4556), true), ("ipn:7.0", Some(4557), false), ("dtn://b/", None, false)]
    {
        let created = CreationTimestamp::from((700_000_000_000, 3));
        let bytes = own(name, port).bundle(created, solicits).to_bytes();
        assert!(sand::recognises(&bytes) && bytes.len() < 200, "{} bytes", bytes.len());
        let read = sand::announcement(&sand::bundle(&bytes).expect("it is a bundle")).expect("it is read");
        let expected = Announcement {
            format: Format::Sand,
            node: node(name),
            created: Some(created),
            validity: Some(Duration::from_secs(91)),
            tcp_port: port,
            solicits,
        };
        assert_eq!(read, expected);
    }
}

#[test]
fn a_node_without_a_clock_announces_itself_as_well() {
    let created = CreationTimestamp::from((0, 3));
    let bytes = own("dtn://alice/", Some(1)).bundle(created, false).to_bytes();
    let read = sand::announcement(&sand::bundle(&bytes).expect("it is a bundle")).expect("it is read");
    assert_eq!((read.created, read.tcp_port), (None, Some(1)));
}

#[test]
fn the_messages_of_sand_are_those_of_the_draft() {
    // version 1; {0: 1, -1: [3]}; {0: 3, 3: 60000, -1: [{0: 1, 1: 0, 3: h'c0000201', 4: 4560, 6: 1}, {0: 2, 1: 0}]}; {0: 99, 5: "x"}
    let text = "01 46 a200012081 03 58 1f a30003 0319ea60 2082 a5 0001 0100 0344c0000201 041911d0 0601 a2 0002 0100 \
                47 a2001863056178";
    let mut bytes = hex(text);
    let read = sand::Messages::decode(&mut bytes).expect("it is read");
    assert_eq!(read.solicited, [3]);
    assert_eq!(read.validity_ms, Some(60_000));
    let instance = |code, port| sand::Instance { code, port, passive: true };
    assert_eq!(read.instances, [instance(1, Some(4560)), instance(2, None)]);
    for (wrong, why) in [
        ("02 46 a200012081 03", "version"),
        ("01", "no message"),
        ("01 46 a2012081 0300", "the type is not first"),
        ("01 47 a200012081 03 00", "bytes behind a message"),
        ("01 a200012081 03", "no byte string"),
    ] {
        assert!(sand::Messages::decode(&mut hex(wrong)).is_err(), "{why}");
    }
}

#[test]
fn forwarded_and_long_announcements_are_refused() {
    let bundle = own("dtn://alice/", Some(1)).bundle((1, 1).into(), false);
    let mut far = bundle.clone();
    far.head.set(&crate::bp::Content::HopCount(crate::bp::HopCount { limit: 2, count: 1 }));
    assert!(sand::bundle(&far.to_bytes()).is_err());
    let mut passed = bundle.clone();
    passed.head.set(&crate::bp::Content::PreviousNode(node("dtn://eve/")));
    assert!(sand::bundle(&passed.to_bytes()).is_err());
    let mut long = bundle.to_bytes().to_vec();
    long.resize(sand::DATAGRAM_BYTES_MAX + 1, 0);
    assert!(sand::bundle(&Bytes::from(long)).is_err());
}

/// The TCP-v4 service is an example of the draft (2.6.5), within a beacon with all fields.
#[test]
fn a_beacon_of_version_4_is_read() {
    let text =
        "04 0b 0001 0b 64746e3a2f2f626f622f2f 02 41 08 04 c0000201 03 11cc 40 08 04 c0000202 03 11cd 0a";
    let text = text.replace("64746e3a2f2f626f622f2f", "64746e3a2f2f626f622f").replacen("0b 64", "0a 64", 1);
    let read = ipnd::Beacon::decode(&mut hex(&text)).expect("it is read");
    let period = Some(Duration::from_secs(10));
    assert_eq!(read, ipnd::Beacon { node: node("dtn://bob/"), tcp_port: Some(0x11cd), period });
    assert_eq!(read.announcement().validity, Some(Duration::from_secs(30)));
}

#[test]
fn beacons_of_other_forms_are_read() {
    let ibr =
        [&[2, 3, 0, 1, 9][..], b"dtn://bob", &[1, 5], b"tcpcl", &[22], b"ip=192.0.2.1;port=4560"].concat();
    let read = ipnd::Beacon::decode(&mut ibr.into()).expect("it is read");
    assert_eq!((read.node, read.tcp_port), (node("dtn://bob/"), Some(4560)));
    // [7, 7, 1, [1, "//bob/"], [[["tcp", 4556]], {}], 2]
    let cbor = "86 07 07 01 82 01 66 2f2f626f622f 82 81 82 63746370 1911cc a0 02";
    let read = ipnd::Beacon::decode(&mut hex(cbor)).expect("it is read");
    let period = Some(Duration::from_secs(2));
    assert_eq!(read, ipnd::Beacon { node: node("dtn://bob/"), tcp_port: Some(4556), period });
}

#[test]
fn an_object_and_a_status_report_announce_a_node() {
    let place = aprs::Position::parse("53.2734, -7.7783").expect("a position");
    let object = aprs::text(&node("dtn://alice/"), Some(place), "QRV 24 h").expect("it fits");
    assert_eq!(object, ";alice    *111111z5316.40N/00746.70Wndtn://alice/ QRV 24 h");
    let status = aprs::text(&node("ipn:7.0"), None, "").expect("it fits");
    assert_eq!(status, ">ipn:7.0");
    for (text, name) in [(&object, "dtn://alice/"), (&status, "ipn:7.0")] {
        assert_eq!(aprs::announcement(text.as_bytes()).expect("it is read").node, node(name));
    }
    let south = aprs::Position::parse("-89.99999,179.99999").expect("a position");
    let text = aprs::text(&node("dtn://a-very-long-name/"), Some(south), "").expect("it fits");
    assert!(text.starts_with(";a-very-lo*111111z9000.00S/18000.00En"), "{text}");
    let long = format!("dtn://{}/", "x".repeat(aprs::STATUS_BYTES_MAX));
    assert_eq!(aprs::text(&node(&long), None, ""), None);
    for other in [
        ">on the air",
        "!5316.40N/00746.70W-",
        ";alice    _111111z5316.40N/00746.70Wndtn://alice/",
        ";alice    *111111z5316.40N",
        "> dtn://alice/",
        ">dtn://alice/inbox",
        "",
    ] {
        assert!(aprs::announcement(other.as_bytes()).is_err(), "{other}");
    }
    assert!(aprs::Position::parse("91,0").is_none() && aprs::Position::parse("NaN,0").is_none());
}
