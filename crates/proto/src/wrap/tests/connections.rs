//! Dialogues of a user and a provider of connections.

use super::*;
type Line = Say<Connections, Connections>;
use TransportService::{Reliable, UnreliableDatagram};

const UP: Line = Line::Provider(ConnectionsIndication::Up { message_bytes_max: 3 });

fn open(service: TransportService) -> Line {
    let properties = ConnectionProperties { service, ..ConnectionProperties::default() };
    Line::Down(ConnectionsRequest::Open { connection: 7, properties })
}

fn room(bytes: u64) -> Line {
    Line::Provider(ConnectionsIndication::Room { connection: 7, bytes })
}

fn data(length: usize, last: bool) -> Line {
    Line::Down(ConnectionsRequest::Data { connection: 7, data: bytes(length), last })
}

fn cancel() -> Line {
    Line::Down(ConnectionsRequest::Cancel { connection: 7 })
}

fn acknowledged(up_to: u64) -> Line {
    Line::Provider(ConnectionsIndication::Acknowledged { connection: 7, up_to })
}

fn sent() -> Line {
    Line::Provider(ConnectionsIndication::Sent { connection: 7 })
}

fn failed() -> Line {
    let reason = ConnectionFailure::Silent;
    Line::Provider(ConnectionsIndication::Failed { connection: 7, reason })
}

fn begin(service: TransportService) -> Line {
    let properties = ConnectionProperties { service, ..ConnectionProperties::default() };
    Line::Provider(ConnectionsIndication::Begin { incoming: 9, properties })
}

fn comes(length: usize, damaged: bool, last: bool) -> Line {
    Line::Provider(ConnectionsIndication::Data { incoming: 9, data: bytes(length), damaged, last })
}

fn gap() -> Line {
    Line::Provider(ConnectionsIndication::Gap { incoming: 9, bytes: Some(3) })
}

fn lost() -> Line {
    Line::Provider(ConnectionsIndication::Lost { incoming: 9 })
}

fn accept(up_to: u64) -> Line {
    Line::Down(ConnectionsRequest::Accept { incoming: 9, up_to })
}

fn refuse() -> Line {
    Line::Down(ConnectionsRequest::Refuse { incoming: 9, reason: RefuseReason::NoResources })
}

fn down() -> Line {
    let reason = DownReason::PeerClosed;
    Line::Provider(ConnectionsIndication::Down { reason, retry: true })
}

/// A connection of the user with a room of 10 bytes.
fn opened<const N: usize>(service: TransportService, rest: [Line; N]) -> Vec<Line> {
    [UP, open(service), room(10)].into_iter().chain(rest).collect()
}

/// A connection of the peer.
fn begun<const N: usize>(service: TransportService, rest: [Line; N]) -> Vec<Line> {
    [UP, begin(service)].into_iter().chain(rest).collect()
}

#[test]
fn a_lawful_dialogue() {
    fine(opened(Reliable, [data(3, false), acknowledged(2), data(7, false), room(1), data(0, true), sent()]));
    fine(opened(UnreliableDatagram, [data(3, true), cancel(), failed(), cancel(), down(), UP]));
    fine(begun(Reliable, [comes(4, false, false), accept(1), comes(0, false, true), accept(4), down()]));
    let lossy = [gap(), comes(4, true, false), accept(4), lost(), accept(4), refuse(), down()];
    fine(begun(UnreliableDatagram, lossy));
    fine(begun(Reliable, [comes(4, false, false), refuse(), accept(4), down(), UP]));
    // Opened while the endpoint is not up, it fails.
    fine(vec![open(Reliable), failed()]);
}

#[test]
fn breaches() {
    let (engine, provider) = ("the engine", "the provider below");
    breach(engine, "is used twice", opened(Reliable, [open(Reliable)]));
    breach(engine, "was never opened", vec![UP, data(3, false)]);
    breach(engine, "was never opened", vec![UP, cancel()]);
    breach(engine, "has ended", opened(Reliable, [failed(), data(3, false)]));
    breach(engine, "data after the last", opened(Reliable, [data(3, true), data(3, true)]));
    breach(engine, "data after Cancel", opened(Reliable, [cancel(), data(3, false)]));
    breach(engine, "data without a byte", opened(Reliable, [data(0, false)]));
    breach(engine, "a message of 4 bytes", opened(UnreliableDatagram, [data(4, false)]));
    breach(engine, "spends 11 of a room of 10", opened(Reliable, [data(11, false)]));
    breach(engine, "never began", vec![UP, accept(0)]);
    breach(engine, "never began", vec![UP, refuse()]);
    breach(engine, "accepts 4 bytes, but 3", begun(Reliable, [comes(3, false, false), accept(4)]));
    breach(
        engine,
        "accepts 1 bytes after 2",
        begun(Reliable, [comes(3, false, false), accept(2), accept(1)]),
    );
    rules::all_broken::<Connections>(Side::User);
    breach(provider, "Up twice", vec![UP, UP]);
    breach(provider, "Down without a terminal indication", opened(Reliable, [down()]));
    breach(provider, "Down without Lost", begun(Reliable, [down()]));
    breach(provider, "was never opened", vec![UP, room(1)]);
    breach(provider, "has ended", opened(Reliable, [failed(), sent()]));
    let early = [data(3, false), acknowledged(3)];
    breach(provider, "an acknowledgement", opened(UnreliableDatagram, early));
    breach(provider, "4 bytes acknowledged of 3", opened(Reliable, [data(3, false), acknowledged(4)]));
    let twice = [data(3, false), acknowledged(3), acknowledged(3)];
    breach(provider, "3 bytes acknowledged after 3", opened(Reliable, twice));
    breach(provider, "Sent before the last data", opened(Reliable, [data(3, false), sent()]));
    breach(provider, "Begin while the endpoint is not up", vec![begin(Reliable)]);
    breach(provider, "begins twice", begun(Reliable, [refuse(), begin(Reliable)]));
    for late in [comes(3, false, false), gap(), lost()] {
        breach(provider, "which is not open", begun(Reliable, [comes(3, false, true), late]));
    }
    breach(provider, "data without a byte", begun(Reliable, [comes(0, false, false)]));
    breach(provider, "damaged data", begun(Reliable, [comes(3, true, false)]));
    breach(provider, "a gap", begun(Reliable, [gap()]));
    rules::all_broken::<Connections>(Side::Provider);
}

#[test]
fn the_end_of_a_connection_is_owed() {
    let owed = play(opened(Reliable, [data(3, true)])).expect("lawful");
    assert_eq!(owed.len(), 1, "{owed:?}");
    assert!(owed[0].contains("the end of connection 7"), "{owed:?}");
}
