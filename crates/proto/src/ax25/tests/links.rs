use super::channel::{Channel, station};
use crate::ax25::{Config, Control, Modulo, Recovery, Supervisory, Unnumbered, Version};
use crate::rng::Rng;
use crate::service::{CloseReason, LinkId, PacketsRequest};
use crate::time::Duration;
use bytes::Bytes;

const A: usize = 0;
const B: usize = 1;
/// The first link that a peer opens.
const CALLER: LinkId = LinkId(LinkId::FIRST_INCOMING);
const OWN: LinkId = LinkId(0);

fn packets(count: usize, bytes: usize) -> Vec<Bytes> {
    let mut rng = Rng::new(5);
    let packet = |_| {
        let mut packet = vec![0; bytes];
        rng.fill(&mut packet);
        Bytes::from(packet)
    };
    (0..count).map(packet).collect()
}

/// Two stations; `change` applies to the links of both.
fn pair(seed: u64, change: impl Fn(&mut crate::ax25::LinkConfig)) -> Channel {
    let mut configs = [station("A", &["B"]), station("B", &["A"])];
    for config in &mut configs {
        config.peers.values_mut().for_each(|peer| change(&mut peer.link));
        config.callers.iter_mut().for_each(&change);
    }
    Channel::new(seed, configs.into())
}

fn plain(link: &mut crate::ax25::LinkConfig) {
    link.version = Version::Plain;
}

#[test]
fn a_link_opens_carries_packets_both_ways_and_closes() {
    let mut channel = pair(1, |_| ());
    channel.request(A, OWN, PacketsRequest::Connect);
    let (there, back) = (packets(40, 256), packets(25, 100));
    channel.send(A, OWN, there.clone());
    channel.send(B, CALLER, back.clone());
    channel.run(200, |channel| {
        let heard = |at: usize, link| channel.nodes[at].user.heard.get(&link).map_or(0, Vec::len);
        heard(B, CALLER) == 40 && heard(A, OWN) == 25
    });
    assert_eq!(channel.nodes[B].user.heard[&CALLER], there);
    assert_eq!(channel.nodes[A].user.heard[&OWN], back);
    channel.request(A, OWN, PacketsRequest::Close);
    channel.run(300, |channel| channel.nodes.iter().all(|node| !node.user.closed.is_empty()));
    assert_eq!(channel.nodes[A].user.acknowledged[&OWN], 40);
    assert_eq!(channel.nodes[A].user.closed, [(OWN, CloseReason::Finished)]);
    assert_eq!(channel.nodes[B].user.closed, [(CALLER, CloseReason::Finished)]);
    let counters = channel.nodes[A].station.engine.counters();
    assert_eq!(
        (counters.information_repeated, counters.timeouts, counters.violations),
        (0, 0, 0),
        "{}",
        channel.story(Modulo::Extended)
    );
    // No timer is left.
    assert!(!channel.step());
}

#[test]
fn the_last_frame_of_a_window_asks_for_the_answer() {
    for window in [1, 4, 7] {
        let mut channel = pair(2, |link| {
            plain(link);
            link.window_frames = window;
        });
        channel.request(A, OWN, PacketsRequest::Connect);
        channel.send(A, OWN, packets(28, 256));
        channel.run(300, |channel| channel.nodes[A].user.acknowledged.get(&OWN) == Some(&28));
        let frames = channel.frames(A, Modulo::Eight);
        let polls: Vec<bool> = frames
            .iter()
            .filter_map(|frame| match frame.control {
                Control::Information { poll, .. } => Some(poll),
                _ => None,
            })
            .collect();
        let expected: Vec<bool> = (1..=28).map(|number| number % usize::from(window) == 0).collect();
        assert_eq!(polls, expected, "window {window}");
        // One answer per window.
        let answers = channel.frames(B, Modulo::Eight).iter().filter(|frame| !frame.is_command()).count();
        assert_eq!(answers, 1 + 28 / usize::from(window), "window {window}");
    }
}

#[test]
fn what_is_lost_comes_again_in_every_mode() {
    for (version, recovery) in [
        (Version::Plain, Recovery::Reject),
        (Version::Best, Recovery::Reject),
        (Version::Best, Recovery::SelectiveReject),
        (Version::Best, Recovery::MultiSelectiveReject),
    ] {
        for seed in 0..12 {
            let mut channel = pair(seed, |link| {
                link.version = version;
                link.recovery = recovery;
                link.retries = 30;
            });
            channel.loss = 0.25;
            channel.request(A, OWN, PacketsRequest::Connect);
            let (there, back) = (packets(60, 200), packets(30, 80));
            channel.send(A, OWN, there.clone());
            channel.run(5000, |channel| !channel.nodes[A].user.open.is_empty());
            let link = *channel.nodes[B].user.open.last().unwrap();
            channel.send(B, link, back.clone());
            channel.run(5000, |channel| {
                let heard = |at: usize, link| channel.nodes[at].user.heard.get(&link).map_or(0, Vec::len);
                heard(B, link) == 60 && heard(A, OWN) == 30
            });
            assert_eq!(channel.nodes[B].user.heard[&link], there, "{recovery:?}, seed {seed}");
            assert_eq!(channel.nodes[A].user.heard[&OWN], back, "{recovery:?}, seed {seed}");
        }
    }
}

#[test]
fn selective_reject_sends_only_what_is_lost() {
    let mut channel = pair(3, |_| ());
    channel.request(A, OWN, PacketsRequest::Connect);
    channel.run(60, |channel| channel.nodes[A].user.open.contains(&OWN));
    let first = channel.sent;
    // The third, the fourth and the tenth I frame.
    channel.lose = [first + 2, first + 3, first + 9].into();
    channel.send(A, OWN, packets(30, 256));
    channel.run(200, |channel| channel.nodes[A].user.acknowledged.get(&OWN) == Some(&30));
    let counters = channel.nodes[A].station.engine.counters();
    assert_eq!((counters.information_sent, counters.information_repeated, counters.timeouts), (30, 3, 0));
    assert_eq!(channel.nodes[B].station.engine.counters().rejects_sent, 1);
}

#[test]
fn reject_goes_back_to_what_is_lost() {
    let mut channel = pair(3, plain);
    channel.request(A, OWN, PacketsRequest::Connect);
    channel.run(60, |channel| channel.nodes[A].user.open.contains(&OWN));
    let first = channel.sent;
    channel.lose = [first + 2].into();
    channel.send(A, OWN, packets(7, 256));
    channel.run(200, |channel| channel.nodes[A].user.acknowledged.get(&OWN) == Some(&7));
    let counters = channel.nodes[A].station.engine.counters();
    assert_eq!((counters.information_repeated, counters.timeouts), (5, 0));
}

#[test]
fn a_lost_end_of_a_window_is_asked_after() {
    let mut channel = pair(3, plain);
    channel.request(A, OWN, PacketsRequest::Connect);
    channel.run(60, |channel| channel.nodes[A].user.open.contains(&OWN));
    let first = channel.sent;
    channel.lose = [first + 6].into();
    channel.send(A, OWN, packets(7, 256));
    channel.run(200, |channel| channel.nodes[A].user.acknowledged.get(&OWN) == Some(&7));
    let counters = channel.nodes[A].station.engine.counters();
    assert_eq!((counters.information_repeated, counters.timeouts), (1, 1));
}

fn called_with(channel: &Channel) -> Vec<Unnumbered> {
    let frames = channel.frames(A, Modulo::Eight);
    let functions = frames.iter().filter_map(|frame| match frame.control {
        Control::Unnumbered { function, .. } => Some(function),
        _ => None,
    });
    functions.collect()
}

#[test]
fn the_ladder_goes_down_to_what_the_peer_answers_and_remembers_it() {
    use Unnumbered::{ExchangeIdentification, SetMode, SetModeExtended};
    let mut configs = [station("A", &["B"]), station("B", &["A"])];
    configs[B].callers.as_mut().unwrap().version = Version::Plain;
    let mut channel = Channel::new(1, configs.into());
    channel.request(A, OWN, PacketsRequest::Connect);
    channel.run(100, |channel| channel.nodes[A].user.open.contains(&OWN));
    assert_eq!(called_with(&channel), [SetModeExtended, ExchangeIdentification, SetMode]);
    channel.request(A, OWN, PacketsRequest::Close);
    channel.run(100, |channel| channel.nodes[A].user.closed.len() == 1);
    channel.log.clear();
    channel.request(A, OWN, PacketsRequest::Connect);
    channel.run(200, |channel| channel.nodes[A].user.open.contains(&OWN));
    assert_eq!(called_with(&channel), [ExchangeIdentification, SetMode]);
}

#[test]
fn nobody_there_is_said_after_all_tries() {
    let mut channel = Channel::new(1, vec![station("A", &["B"]), station("C", &[])]);
    channel.request(A, OWN, PacketsRequest::Connect);
    channel.run(2000, |channel| !channel.nodes[A].user.closed.is_empty());
    assert_eq!(channel.nodes[A].user.closed, [(OWN, CloseReason::TimedOut)]);
    use Unnumbered::{SetMode, SetModeExtended};
    let calls = called_with(&channel);
    assert_eq!(calls[..4], [SetModeExtended, SetModeExtended, SetModeExtended, SetMode]);
    assert_eq!(calls.iter().filter(|call| **call == SetMode).count(), 11);
}

#[test]
fn a_station_that_takes_nobody_refuses() {
    let mut closed: Config = station("B", &[]);
    closed.callers = None;
    let mut channel = Channel::new(1, vec![station("A", &["B"]), closed]);
    channel.request(A, OWN, PacketsRequest::Connect);
    channel.run(100, |channel| !channel.nodes[A].user.closed.is_empty());
    assert_eq!(channel.nodes[A].user.closed, [(OWN, CloseReason::Refused)]);
}

#[test]
fn a_user_that_is_busy_holds_the_peer_up_and_loses_nothing() {
    let mut channel = pair(4, |link| link.unreleased_max = 5);
    channel.nodes[B].user.holds = true;
    channel.request(A, OWN, PacketsRequest::Connect);
    let there = packets(30, 256);
    channel.send(A, OWN, there.clone());
    channel.run(100, |channel| channel.nodes[B].user.heard.get(&CALLER).map_or(0, Vec::len) == 5);
    let till = channel.now + Duration::from_secs(60);
    channel.run(1000, |channel| channel.now >= till);
    assert_eq!(channel.nodes[B].user.heard[&CALLER].len(), 5);
    let not_ready = |frame: &crate::ax25::Frame| {
        matches!(frame.control, Control::Supervisory { function: Supervisory::ReceiveNotReady, .. })
    };
    assert!(channel.frames(B, Modulo::Extended).iter().any(not_ready));
    channel.nodes[B].user.holds = false;
    channel.request(B, CALLER, PacketsRequest::Release(5));
    channel.run(2000, |channel| channel.nodes[A].user.acknowledged.get(&OWN) == Some(&30));
    assert_eq!(channel.nodes[B].user.heard[&CALLER], there);
}

#[test]
fn through_a_digipeater_and_back() {
    let mut configs = vec![station("A", &["B"]), station("B", &[]), station("RELAY-1", &[])];
    configs[A].peers.get_mut(&OWN).unwrap().path = vec!["RELAY-1".parse().unwrap()];
    configs[2].repeats = true;
    let mut channel = Channel::new(6, configs);
    channel.deaf = [(A, B), (B, A)].into();
    channel.request(A, OWN, PacketsRequest::Connect);
    let there = packets(29, 256);
    channel.send(A, OWN, there.clone());
    channel.run(400, |channel| channel.nodes[A].user.acknowledged.get(&OWN) == Some(&29));
    assert_eq!(channel.nodes[B].user.heard[&CALLER], there);
    assert_eq!(channel.nodes[A].station.engine.counters().timeouts, 0, "{}", channel.story(Modulo::Extended));
}

#[test]
fn packets_longer_than_a_frame_arrive_whole() {
    let mut channel = pair(8, |_| ());
    channel.request(A, OWN, PacketsRequest::Connect);
    let there = packets(6, 3000);
    channel.send(A, OWN, there.clone());
    channel.run(400, |channel| channel.nodes[A].user.acknowledged.get(&OWN) == Some(&6));
    assert_eq!(channel.nodes[B].user.heard[&CALLER], there);
}

#[test]
fn a_peer_that_begins_anew_ends_the_old_link_with_a_reason() {
    let mut channel = pair(9, plain);
    channel.request(A, OWN, PacketsRequest::Connect);
    channel.send(A, OWN, packets(3, 50));
    channel.run(100, |channel| channel.nodes[A].user.acknowledged.get(&OWN) == Some(&3));
    // A restarts without any state.
    let fresh = pair(9, plain).nodes.swap_remove(A);
    channel.nodes[A] = fresh;
    channel.request(A, OWN, PacketsRequest::Connect);
    channel.run(200, |channel| channel.nodes[A].user.open.contains(&OWN));
    assert_eq!(channel.nodes[B].user.closed, [(CALLER, CloseReason::Reset)]);
    assert_eq!(channel.nodes[B].user.open, [LinkId(LinkId::FIRST_INCOMING + 1)].into());
}

/// Both call, and each loses the first requests of the other. The first one that is heard is enough for both, as soon as its
/// sender shows that it has the answer.
#[test]
fn stations_that_call_each_other_have_one_link() {
    let mut channel = Channel::new(1, vec![station("A", &["B"]), station("B", &["A"])]);
    channel.lose = (0..4).collect();
    for at in [A, B] {
        channel.request(at, OWN, PacketsRequest::Connect);
    }
    channel.run(15, |channel| channel.nodes.iter().all(|node| node.user.open.contains(&OWN)));
    let (there, back) = (packets(3, 50), packets(2, 70));
    channel.send(A, OWN, there.clone());
    channel.send(B, OWN, back.clone());
    channel.run(80, |channel| channel.nodes.iter().all(|node| node.user.heard.contains_key(&OWN)));
    channel.run(120, |channel| {
        channel.nodes[B].user.heard[&OWN] == there && channel.nodes[A].user.heard[&OWN] == back
    });
    assert!(channel.nodes.iter().all(|node| node.user.closed.is_empty()));
}
