//! Dialogues of a user and a provider of packets.

use super::*;
use PacketsIndication::{Acknowledged, Closed, Packet, Room, Sizes};
use PacketsRequest::{Abort, Close, Connect, Release};
type Line = Say<Packets, Frames>;

fn connected(bytes_max: u32, bytes_best: u32) -> Line {
    Line::Up(PacketsIndication::Connected { bytes_max, bytes_best, peer: "N0CALL".to_owned() })
}

fn send(length: usize) -> Line {
    Line::User(PacketsRequest::payload(bytes(length)))
}

fn closed() -> Line {
    Line::Up(Closed(CloseReason::Finished))
}

/// A connection with room for two packets of at most 10 bytes.
fn after_connect(rest: impl IntoIterator<Item = Line>) -> Vec<Line> {
    let start = [Line::User(Connect), connected(10, 5), Line::Up(Room(2))];
    start.into_iter().chain(rest).collect()
}

#[test]
fn a_lawful_dialogue() {
    fine(after_connect([
        send(10),
        Line::Up(Acknowledged(1)),
        Line::Up(Sizes { bytes_max: 20, bytes_best: 20 }),
        send(20),
        Line::Up(Packet(bytes(3))),
        Line::User(Release(1)),
        Line::User(Close),
        Line::Up(Acknowledged(2)),
        closed(),
        Line::User(Release(1)),
        Line::User(Connect),
        closed(),
    ]));
}

#[test]
fn breaches_of_the_user() {
    let who = "the user above";
    breach(who, "before the connection has Closed", after_connect([Line::User(Connect)]));
    breach(who, "a packet without a connection", after_connect([closed(), send(1)]));
    breach(who, "a packet after Close or Abort", after_connect([Line::User(Close), send(1)]));
    breach(who, "a packet after Close or Abort", after_connect([Line::User(Abort), send(1)]));
    breach(who, "a packet of 11 bytes, above the maximum of 10", after_connect([send(11)]));
    breach(who, "spends 1 of a room of 0", after_connect([send(1), send(1), send(1)]));
    breach(who, "released 1 packets", after_connect([Line::User(Release(1))]));
    rules::all_broken::<Packets>(Side::User);
}

#[test]
fn breaches_of_the_engine() {
    let who = "the engine";
    breach(who, "Connected twice", after_connect([connected(10, 5)]));
    breach(who, "the best size exceeds the maximum", vec![Line::User(Connect), connected(5, 10)]);
    let sizes = |bytes_max, bytes_best| Line::Up(Sizes { bytes_max, bytes_best });
    breach(who, "the best size exceeds the maximum", after_connect([sizes(20, 21)]));
    breach(who, "Sizes without a connection", vec![Line::User(Connect), sizes(20, 20)]);
    breach(who, "a maximum of 9 bytes after 10 were promised", after_connect([sizes(9, 9)]));
    breach(who, "room without a connection", after_connect([closed(), Line::Up(Room(1))]));
    breach(who, "a packet came without a connection", after_connect([closed(), Line::Up(Packet(bytes(1)))]));
    breach(who, "acknowledged without a connection", after_connect([closed(), Line::Up(Acknowledged(1))]));
    let twice = [send(1), Line::Up(Acknowledged(1)), Line::Up(Acknowledged(1))];
    breach(who, "1 acknowledged, which is no more than 1", after_connect(twice));
    breach(who, "2 acknowledged of 1 packets", after_connect([send(1), Line::Up(Acknowledged(2))]));
    breach(who, "Closed without a connection", after_connect([closed(), closed()]));
    rules::all_broken::<Packets>(Side::Provider);
}

#[test]
fn an_answer_is_owed() {
    assert_eq!(play(vec![Line::User(Connect)]), Ok(vec!["engine owes Connected or Closed".to_owned()]));
    assert_eq!(play(after_connect([Line::User(Abort)])), Ok(vec!["engine owes Closed".to_owned()]));
}
