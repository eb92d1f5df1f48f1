//! The list of stations that were heard.

use super::channel::station;
use crate::ax25::{
    Address, Callsign, CommandResponse, Control, Frame, HeardStation, Modulo, Station, Unnumbered, pid,
};
use crate::engine::Engine;
use crate::service::FramesIndication;
use crate::time::Instant;
use bytes::Bytes;

fn call(text: &str) -> Callsign {
    text.parse().expect("a callsign")
}

/// Passes a UI frame to a station, by these digipeaters, of which the first `repeated` have repeated it.
fn hear(station: &mut Station, second: u64, from: &str, path: &[&str], repeated: usize, text: &[u8]) {
    let path: Vec<Callsign> = path.iter().map(|hop| call(hop)).collect();
    let mut address = Address::new(call(from), call("BEACON"), CommandResponse::Command, &path);
    address.path.iter_mut().take(repeated).for_each(|hop| hop.repeated = true);
    let control = Control::Unnumbered { function: Unnumbered::Information, poll_final: false };
    let information = Bytes::copy_from_slice(text);
    let bytes = Frame { address, control, pid: pid::NONE, information }.to_bytes(Modulo::Eight);
    station.handle_indication(Instant::from_secs(second), FramesIndication::Frame(bytes));
}

fn heard(station: &Station, callsign: &str) -> HeardStation {
    let callsign = call(callsign);
    let found = station.heard().find(|(other, ..)| *other == callsign);
    found.expect("it was heard").1.clone()
}

#[test]
fn a_station_is_listed_with_its_last_digipeater_and_its_last_text() {
    let mut a = Station::new(station("A", &[]));
    hear(&mut a, 10, "B-7", &[], 0, b"node of a club\r");
    hear(&mut a, 20, "B-7", &["D1", "D2"], 1, b"\x1b[2J\x07");
    let b = heard(&a, "B-7");
    assert_eq!((b.first, b.last, b.frames), (Instant::from_secs(10), Instant::from_secs(20), 2));
    assert_eq!((b.via, b.text.as_deref()), (Some(call("D1")), Some("node of a club")));
    hear(&mut a, 30, "B-7", &["D1", "D2"], 2, "Grüße".as_bytes());
    let b = heard(&a, "B-7");
    assert_eq!((b.via, b.text.as_deref()), (Some(call("D2")), Some("Gr\u{fc}\u{df}e")));
    // A frame with the own callsign is this station, or somebody who claims to be.
    hear(&mut a, 40, "A", &[], 0, b"mine");
    assert_eq!(a.heard().count(), 1);
}

#[test]
fn texts_that_could_fool_a_terminal_are_not_kept_and_long_ones_are_cut() {
    let mut a = Station::new(station("A", &[]));
    let bad: [&[u8]; 7] = [
        b"\x1b]0;title\x07",
        b"\x9b31m",
        b"back\x08\x08",
        "\u{202e}live".as_bytes(),
        "\u{9b}31m".as_bytes(),
        b"\xff\xfe",
        b"",
    ];
    for text in bad {
        hear(&mut a, 1, "B", &[], 0, text);
        assert_eq!(heard(&a, "B").text, None, "{text:?}");
    }
    hear(&mut a, 2, "B", &[], 0, "ß".repeat(200).as_bytes());
    assert_eq!(heard(&a, "B").text.map(|text| text.len()), Some(256));
}

#[test]
fn forged_callsigns_do_not_fill_the_memory_and_the_oldest_goes_first() {
    let mut a = Station::new(station("A", &[]));
    hear(&mut a, 1, "OLD", &[], 0, b"x");
    hear(&mut a, 2, "KEPT", &[], 0, b"x");
    for number in 0..10_000 {
        hear(&mut a, 3 + number, &format!("F{number}"), &[], 0, b"x");
        hear(&mut a, 3 + number, "KEPT", &[], 0, b"x");
        assert!(a.heard().count() <= 256);
    }
    assert_eq!((a.heard().count(), heard(&a, "KEPT").frames), (256, 10_001));
    assert!(a.heard().all(|(callsign, ..)| callsign != call("OLD")));
}
