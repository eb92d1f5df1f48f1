//! Opening and closing.

use super::harness::{CALL, World, drain_all, pattern};
use crate::engine::Engine;
use crate::rng::Rng;
use crate::service::{CloseReason, FramesIndication, InterfaceId, LinkId, StreamIndication, StreamRequest};
use crate::tcp::config::{HostConfig, InterfaceConfig, PeerConfig, Profile};
use crate::tcp::wire::Flags;
use crate::tcp::{Host, State};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use core::net::Ipv4Addr;

const MILLIS: fn(u64) -> Duration = Duration::from_millis;

/// A line without serialization time, only with a delay.
fn fast(delay: Duration) -> World {
    World::new(&Profile::rfc5681(), 1_000_000_000_000_000, delay)
}

fn closed(world: &World, side: usize) -> Option<CloseReason> {
    world.users[side].closed.map(|(_, reason)| reason)
}

#[test]
fn a_short_talk() {
    let mut world = fast(MILLIS(100));
    world.connect();
    world.write(0, "hello");
    world.users[0].close_when_written = true;
    world.users[1].to_write.push_back("good bye".into());
    world.run_to_quiet(Instant::from_secs(100));
    let story = [
        "  0.000 -> SYN 0+0",
        "  0.100 <- SYN|ACK 0+0 ack 1",
        "  0.200 -> FIN|PSH|ACK 1+5 ack 1",
        "  0.300 <- FIN|PSH|ACK 1+8 ack 7",
        "  0.400 -> ACK 7+0 ack 10",
    ];
    assert_eq!(world.timeline, story);
    assert_eq!((world.received(1), world.received(0)), (&b"hello"[..], &b"good bye"[..]));
    assert_eq!(world.users[0].closed, Some((Instant::from_millis(400), CloseReason::Finished)));
    assert_eq!(world.users[1].closed.map(|(_, reason)| reason), Some(CloseReason::Finished));
    assert_eq!(world.now, Instant::from_millis(60_400), "TIME-WAIT lasts a minute");
    assert_eq!(world.hosts[0].connections().count(), 0);
}

#[test]
fn both_call_at_once_and_become_one_connection() {
    let mut world = fast(MILLIS(100));
    // Each side opens its connection from the port on which the other listens: only then do the SYNs cross.
    let address = |side: u8| Ipv4Addr::new(10, 0, 0, 1 + side);
    for side in 0..2u8 {
        let config = HostConfig {
            interfaces: vec![InterfaceConfig { address: address(side), ..InterfaceConfig::default() }],
            peers: vec![PeerConfig { link: CALL, address: address(1 - side), port: 60_000 }],
            ..HostConfig::default()
        };
        let host = &mut world.hosts[usize::from(side)];
        *host = Host::new(config, Rng::new(7));
        host.next_port = 60_000;
    }
    world.call(0);
    world.call(1);
    world.write(0, "from one");
    world.write(1, "from two");
    world.run_until(Instant::from_secs(2));
    assert_eq!(
        &world.timeline[..4],
        [
            "  0.000 -> SYN 0+0",
            "  0.000 <- SYN 0+0",
            "  0.100 <- SYN|ACK 0+0 ack 1",
            "  0.100 -> SYN|ACK 0+0 ack 1",
        ]
    );
    assert_eq!((world.received(0), world.received(1)), (&b"from two"[..], &b"from one"[..]));
    world.request(0, StreamRequest::Close);
    world.request(1, StreamRequest::Close);
    world.run_to_quiet(Instant::from_secs(100));
    assert_eq!(
        (closed(&world, 0), closed(&world, 1)),
        (Some(CloseReason::Finished), Some(CloseReason::Finished))
    );
}

#[test]
fn nobody_listens() {
    let mut world = fast(MILLIS(100));
    world.hosts[1] = Host::new(
        HostConfig {
            interfaces: vec![InterfaceConfig {
                address: Ipv4Addr::new(10, 0, 0, 2),
                ..InterfaceConfig::default()
            }],
            ..HostConfig::default()
        },
        Rng::new(7),
    );
    world.settle(1);
    world.connect();
    world.run_to_quiet(Instant::from_secs(10));
    assert_eq!(world.timeline, ["  0.000 -> SYN 0+0", "  0.100 <- RST|ACK 0+0 ack 1"]);
    assert_eq!(closed(&world, 0), Some(CloseReason::Refused));
}

#[test]
fn nobody_answers() {
    let mut world = fast(MILLIS(100));
    world.fate = Box::new(|_, _| vec![]);
    world.connect();
    world.run_to_quiet(Instant::from_secs(200));
    let sent: Vec<_> = world.timeline.iter().map(|line| line[..7].trim().to_owned()).collect();
    assert_eq!(sent, ["0.000", "1.000", "3.000", "7.000", "15.000", "31.000"]);
    assert_eq!(closed(&world, 0), Some(CloseReason::TimedOut));
    assert_eq!(world.hosts[0].connections().count(), 0);
}

#[test]
fn who_is_unknown_or_behind_no_interface_is_unreachable() {
    let config = HostConfig {
        interfaces: vec![InterfaceConfig::default()],
        peers: vec![PeerConfig { link: CALL, address: Ipv4Addr::new(192, 0, 2, 1), port: 1 }],
        ..HostConfig::default()
    };
    let mut host = Host::new(config, Rng::new(1));
    for link in [CALL, LinkId(9)] {
        host.handle_request(Instant::ZERO, (link, StreamRequest::Connect));
        let (up, down) = drain_all(&mut host, Instant::ZERO);
        assert_eq!(up, [StreamIndication::Closed(CloseReason::Unreachable)]);
        assert!(down.is_empty());
    }
}

#[test]
fn an_abort_resets_the_peer_and_the_link_can_be_opened_again() {
    let mut world = fast(MILLIS(100));
    world.connect();
    world.run_until(Instant::from_secs(1));
    world.request(0, StreamRequest::Abort);
    world.run_until(Instant::from_secs(2));
    assert_eq!(closed(&world, 0), Some(CloseReason::Aborted));
    assert_eq!(closed(&world, 1), Some(CloseReason::Reset));
    let first = world.users[1].link;
    world.users[1].closed = None;
    world.connect();
    world.write(0, "again");
    world.run_until(Instant::from_secs(3));
    assert_eq!(world.received(1), b"again");
    assert_ne!(world.users[1].link, first, "a new call has a new link");
    assert!(world.users[1].link.is_some_and(LinkId::is_incoming));
}

#[test]
fn one_side_closes_and_the_other_goes_on() {
    let mut world = fast(MILLIS(100));
    world.users[1].close_with_peer = false;
    world.connect();
    world.run_until(Instant::from_secs(1));
    world.request(0, StreamRequest::Close);
    world.run_until(Instant::from_secs(2));
    assert!(world.users[1].peer_closed);
    assert_eq!((world.statistics(0).state, world.statistics(1).state), (State::FinWait2, State::CloseWait));
    world.write(1, pattern(100_000));
    world.run_until(Instant::from_secs(10));
    assert_eq!(world.received(0), pattern(100_000));
    world.request(1, StreamRequest::Close);
    world.run_until(Instant::from_secs(11));
    assert_eq!(
        (closed(&world, 0), closed(&world, 1)),
        (Some(CloseReason::Finished), Some(CloseReason::Finished))
    );
    assert_eq!(world.statistics(0).state, State::TimeWait);
}

/// RFC 9293 3.6.1: a connection in TIME-WAIT is replaced by a connection request beyond everything that it has
/// received, and by no other.
#[test]
fn a_call_beyond_a_lingering_connection_takes_its_place() {
    let mut world = fast(MILLIS(100));
    world.connect();
    let mut call = world.last_packet(0).clone();
    world.run_until(Instant::from_secs(1));
    world.request(1, StreamRequest::Close);
    world.run_until(Instant::from_secs(2));
    world.request(0, StreamRequest::Close);
    world.run_until(Instant::from_secs(3));
    assert_eq!(world.statistics(1).state, State::TimeWait);
    for (further, state) in [(0, State::TimeWait), (1_000_000, State::SynReceived)] {
        call.segment.sequence = call.segment.sequence.wrapping_add(further);
        world.deliver(1, &call);
        let states: Vec<_> = world.hosts[1].connections().map(|(_, connection)| connection.state).collect();
        assert_eq!(states, [state], "{further} further");
    }
    world.run_until(Instant::from_millis(3050));
    let answer = &world.last_packet(1).segment;
    assert!(answer.flags.contains(Flags::SYN) && answer.flags.contains(Flags::ACK));
    assert_eq!(answer.acknowledgement, call.segment.sequence.wrapping_add(1));
}

#[test]
fn a_reset_counts_only_where_the_next_byte_is_expected() {
    let mut world = fast(MILLIS(100));
    world.connect();
    world.run_until(Instant::from_secs(1));
    world.write(0, "x");
    world.run_until(Instant::from_secs(2));
    for (guess, survives) in [(1000, true), (1, false)] {
        let mut packet = world.last_packet(0).clone();
        packet.segment.flags = Flags::RST;
        packet.segment.sequence = packet.segment.sequence.wrapping_add(guess);
        packet.segment.payload = Bytes::new();
        world.deliver(1, &packet);
        assert_eq!(closed(&world, 1).is_none(), survives, "off by {guess}");
    }
    let story = world.timeline.last().expect("there are lines");
    assert!(story.contains("<- ACK"), "the guess was answered with a challenge: {story}");
}

#[test]
fn more_calls_than_connections_are_dropped() {
    let config = HostConfig {
        interfaces: vec![InterfaceConfig::default()],
        peers: vec![PeerConfig { link: CALL, address: Ipv4Addr::new(10, 0, 0, 9), port: 1 }],
        connections_max: 0,
        ..HostConfig::default()
    };
    let mut host = Host::new(config, Rng::new(1));
    host.handle_indication(Instant::ZERO, (InterfaceId(0), FramesIndication::Room(1)));
    host.handle_request(Instant::ZERO, (CALL, StreamRequest::Connect));
    let (up, _) = drain_all(&mut host, Instant::ZERO);
    assert_eq!(up, [StreamIndication::Closed(CloseReason::Limit)]);
}

#[test]
fn a_stranger_is_told_so() {
    let mut world = fast(MILLIS(100));
    world.connect();
    world.run_until(Instant::from_secs(1));
    // The second host loses its state, as after a crash.
    let config = HostConfig {
        interfaces: vec![InterfaceConfig {
            address: Ipv4Addr::new(10, 0, 0, 2),
            ..InterfaceConfig::default()
        }],
        ..HostConfig::default()
    };
    world.hosts[1] = Host::new(config, Rng::new(8));
    world.settle(1);
    world.write(0, "are you there?");
    world.run_until(Instant::from_secs(2));
    assert_eq!(closed(&world, 0), Some(CloseReason::Reset));
}

#[test]
fn a_repeated_syn_costs_nothing_where_it_is_known_to_be_for_nothing() {
    for (profile, expected) in [
        (Profile::linux_6(), 10),
        (Profile { undo_syn_timeout: false, ..Profile::linux_6() }, 1),
        (Profile { timestamps: false, ..Profile::linux_6() }, 1),
    ] {
        let mut world = World::new(&profile, 1_000_000_000_000_000, Duration::from_secs(2));
        world.connect();
        world.run_while(Instant::from_secs(5), |world| world.users[0].connected_at.is_none());
        let statistics = world.statistics(0);
        assert_eq!(world.users[0].connected_at, Some(Instant::from_secs(4)));
        assert_eq!(statistics.congestion_window_bytes, expected * statistics.segment_bytes);
        if profile.timestamps {
            assert_eq!(statistics.smoothed_round_trip, Some(Duration::from_secs(4)));
        } else {
            assert_eq!(statistics.retransmission_timeout, Duration::from_secs(3));
        }
    }
}
