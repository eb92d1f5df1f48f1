//! Dialogues of a user and a provider of datagrams.

use super::*;
type Line = Say<Datagrams, Datagrams>;
const PEER: PeerId = PeerId::CONFIGURED;
const STRANGER: PeerId = PeerId(5);

fn join(damaged: bool) -> Line {
    Line::Down(DatagramsRequest::Join { damaged })
}

fn send(to: PeerId, token: Option<u64>) -> Line {
    let (bytes, shares) = (bytes(3), Shares::payload(3));
    Line::Down(DatagramsRequest::Datagram { to, bytes, shares, token })
}

fn comes(from: PeerId, to_group: bool, damaged: bool) -> Line {
    Line::Provider(DatagramsIndication::Datagram { from, to_group, bytes: bytes(3), damaged })
}

fn transmitted(token: u64) -> Line {
    Line::Provider(DatagramsIndication::Transmitted(token))
}

fn joined(damaged: bool, group: Option<PeerId>, rest: impl IntoIterator<Item = Line>) -> Vec<Line> {
    let joined = DatagramsIndication::Joined { bytes_max: 3, peer: Some(PEER), group };
    let room = DatagramsIndication::Room(2);
    let start = [join(damaged), Line::Provider(joined), Line::Provider(room)];
    start.into_iter().chain(rest).collect()
}

#[test]
fn a_lawful_dialogue() {
    let group = PeerId(1);
    fine(joined(
        true,
        Some(group),
        [
            Line::Provider(DatagramsIndication::Carrier(true)),
            send(group, Some(7)),
            comes(STRANGER, true, true),
            transmitted(7),
            send(STRANGER, None),
            Line::Down(DatagramsRequest::Release(3)),
        ],
    ));
    let left = Line::Provider(DatagramsIndication::Left(CloseReason::Refused));
    fine(joined(false, None, [send(PEER, Some(7)), left]));
}

#[test]
fn breaches() {
    let (engine, provider) = ("the engine", "the provider below");
    breach(engine, "a datagram while it is not joined", vec![send(PEER, None)]);
    breach(engine, "PeerId(5), which was never named", joined(false, None, [send(STRANGER, None)]));
    let others = [comes(STRANGER, false, false), Line::Down(DatagramsRequest::Leave)];
    let again = joined(false, None, [send(STRANGER, None)]);
    breach(engine, "never named", joined(false, None, others.into_iter().chain(again)));
    breach(engine, "spends 1 of a room of 0", joined(false, None, [0; 3].map(|_| send(PEER, None))));
    breach(
        provider,
        "damaged datagram that was not asked for",
        joined(false, None, [comes(PEER, false, true)]),
    );
    breach(provider, "group that it does not have", joined(true, None, [comes(PEER, true, false)]));
    breach(provider, "transmitted a datagram", joined(true, None, [send(PEER, None), transmitted(7)]));
    let twice = [send(PEER, Some(7)), transmitted(7), transmitted(7)];
    breach(provider, "transmitted a datagram", joined(true, None, twice));
    let carrier = Line::Provider(DatagramsIndication::Carrier(true));
    breach(provider, "a carrier while it is not joined", vec![carrier]);
    breach(engine, "Join twice", joined(false, None, [join(false)]));
    let shares = Shares::payload(4);
    let long = DatagramsRequest::Datagram { to: PEER, bytes: bytes(4), shares, token: None };
    breach(engine, "a datagram of 4 bytes, above the maximum of 3", joined(false, None, [Line::Down(long)]));
    let release = Line::Down(DatagramsRequest::Release(4));
    breach(engine, "released 4 bytes", joined(false, None, [comes(PEER, false, false), release]));
    rules::all_broken::<Datagrams>(Side::User);
    let again = DatagramsIndication::Joined { bytes_max: 3, peer: Some(PEER), group: None };
    breach(provider, "Joined twice", joined(false, None, [Line::Provider(again)]));
    let room = Line::Provider(DatagramsIndication::Room(1));
    breach(provider, "room while it is not joined", vec![join(false), room]);
    breach(provider, "a datagram came while it is not joined", vec![comes(PEER, false, false)]);
    let left = Line::Provider(DatagramsIndication::Left(CloseReason::Refused));
    breach(provider, "Left without Join", vec![left]);
    rules::all_broken::<Datagrams>(Side::Provider);
}

#[test]
fn a_report_of_transmission_is_owed() {
    let owed = play(joined(false, None, [send(PEER, Some(7))])).expect("lawful");
    assert_eq!(owed.len(), 1, "{owed:?}");
    assert!(owed[0].contains("Transmitted(7)"), "{owed:?}");
}
