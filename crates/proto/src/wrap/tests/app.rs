//! Dialogues of applications and an agent.

use super::*;
type Line = Say<App, Both<Storage, Many<LinkId, Bundles>>>;
const S: SendId = SendId(3);
const D: DeliveryId = DeliveryId(5);

fn send(length: u64) -> Line {
    let options = SendOptions::default();
    Line::User(AppRequest::Send { send: S, destination: "dtn://b/".to_owned(), length, options })
}

fn piece(length: usize) -> Line {
    Line::User(AppRequest::Piece { send: S, data: bytes(length) })
}

fn says(indication: AppIndication) -> Line {
    Line::Up(indication)
}

fn after_send(rest: impl IntoIterator<Item = Line>) -> Vec<Line> {
    [says(AppIndication::Room(100)), send(10)].into_iter().chain(rest).collect()
}

fn accepted() -> Line {
    says(AppIndication::Accepted { send: S, created: CreationTimestamp::default() })
}

fn sent() -> Line {
    says(AppIndication::Sent { send: S })
}

fn delivered() -> Line {
    let created = CreationTimestamp::default();
    let (name, destination) = (BundleName { source: "dtn://a/".to_owned(), created }, "dtn://b/".to_owned());
    says(AppIndication::Delivered { delivery: D, name, destination, length: 10, signature: None })
}

fn taken() -> Line {
    Line::User(AppRequest::Taken { delivery: D })
}

fn gone(taken: bool) -> Line {
    says(AppIndication::Gone { delivery: D, taken })
}

#[test]
fn a_lawful_dialogue() {
    let read = Line::User(AppRequest::Read { delivery: D, offset: 0, length: 99 });
    let data = says(AppIndication::Data { delivery: D, offset: 0, data: bytes(10) });
    fine(after_send([
        piece(10),
        accepted(),
        sent(),
        delivered(),
        delivered(),
        read,
        data,
        taken(),
        gone(true),
    ]));
}

#[test]
fn breaches() {
    let (user, engine) = ("the user above", "the engine");
    breach(user, "of a room of 100", after_send([piece(101)]));
    breach(user, "11 bytes of 10", after_send([piece(11)]));
    breach(user, "used twice", after_send([send(10)]));
    breach(user, "never delivered", vec![taken()]);
    breach(engine, "Accepted after 9 of 10", after_send([piece(9), accepted()]));
    breach(engine, "Sent before Accepted", after_send([piece(10), sent()]));
    breach(engine, "has ended", after_send([piece(10), accepted(), sent(), sent()]));
    breach(engine, "after it was taken", vec![delivered(), taken(), delivered()]);
    breach(engine, "after it was taken or is gone", vec![delivered(), gone(false), delivered()]);
    breach(engine, "without Taken", vec![delivered(), gone(true)]);
    let cancel = || Line::User(AppRequest::Cancel { send: S });
    breach(user, "never opened", vec![cancel()]);
    breach(user, "has ended", after_send([piece(10), accepted(), sent(), cancel()]));
    breach(user, "a piece after Cancel", after_send([cancel(), piece(1)]));
    breach(user, "is gone", vec![delivered(), gone(false), taken()]);
    rules::all_broken::<App>(Side::User);
    let progress = |up_to| says(AppIndication::Progress { send: S, up_to });
    let read = || Line::User(AppRequest::Read { delivery: D, offset: 2, length: 3 });
    let data = |length| says(AppIndication::Data { delivery: D, offset: 2, data: bytes(length) });
    breach(engine, "never opened", vec![sent()]);
    breach(engine, "Accepted twice", after_send([piece(10), accepted(), accepted()]));
    breach(engine, "Progress before Accepted", after_send([piece(10), progress(1)]));
    breach(engine, "Progress of 11 bytes of 10", after_send([piece(10), accepted(), progress(11)]));
    breach(engine, "never delivered", vec![gone(false)]);
    breach(engine, "is gone", vec![delivered(), gone(false), gone(false)]);
    breach(engine, "data without a read", vec![delivered(), data(1)]);
    breach(engine, "data up to 6 where 5 was asked for", vec![delivered(), read(), data(4)]);
    breach(engine, "data without a byte", vec![delivered(), read(), data(0)]);
    rules::all_broken::<App>(Side::Provider);
}

#[test]
fn what_is_handed_down_has_an_end() {
    let owed = play(after_send([piece(10), accepted()])).expect("lawful");
    assert_eq!(owed, ["engine owes the end of SendId(3)"]);
}

#[test]
fn each_port_and_each_link_has_its_own_account() {
    let up = BundlesIndication::Up { peer: None, interleave: false, transfer_bytes_max: 1 };
    let ask = |link, request| Line::Down(Port::Second((LinkId(link), request)));
    let tell = |link, indication| Line::Provider(Port::Second((LinkId(link), indication)));
    let open = || BundlesRequest::Open { transfer: T, priority: Priority::Normal, length: 1 };
    let stored = StorageIndication::Removed { record: RecordId(1) };
    let dialogue = |link| vec![ask(1, BundlesRequest::Connect), tell(1, up.clone()), ask(link, open())];
    fine(dialogue(1));
    breach("the engine", "Open while the link is not up", dialogue(2));
    breach("the provider below", "Removed without Remove", vec![Line::Provider(Port::First(stored))]);
}
