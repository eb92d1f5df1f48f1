//! Control of the transmitter: limits of the time on the channel, identification, beacons and inhibition, in many worlds.

use super::budget::most_within;
use super::channel::{Channel, station};
use crate::ax25::{Announcement, Config, Frame, Modulo, Version};
use crate::engine::Engine;
use crate::rng::Rng;
use crate::service::{LinkId, PacketsRequest};
use crate::time::{Duration, Instant};
use bytes::Bytes;

const OWN: LinkId = LinkId(0);
/// Delay of an identification beyond its interval and the margin with which it is due: transmissions of others and of this
/// station, of 20 s each.
const SLACK: Duration = Duration::from_secs(45);
const END: Instant = Instant::from_secs(900);

fn seconds(rng: &mut Rng, from: u64, to: u64) -> Duration {
    Duration::from_secs(from + rng.below(to - from))
}

fn random_config(rng: &mut Rng, name: &str, peer: &str) -> Config {
    let mut config = station(name, &[peer]);
    config.peers.values_mut().for_each(|peer| peer.link.version = Version::Plain);
    config.radio.rate_bps = 1200;
    config.transmission_max = Duration::from_secs(20);
    if rng.chance(0.5) {
        config.air_time_window = seconds(rng, 60, 300);
        config.air_time_max = Some(seconds(rng, 8, 40));
    }
    if rng.chance(0.5) {
        config.duty_cycle_window = seconds(rng, 30, 90);
        config.duty_cycle_max = Some(0.25 + rng.unit() / 2.0);
    }
    if rng.chance(0.7) {
        let text = Bytes::from(vec![b'A'; 1 + rng.below(256) as usize]);
        config.identification = Some(Announcement { text, interval: seconds(rng, 60, 200) });
    }
    if rng.chance(0.3) {
        let text = Bytes::from_static(b"Longwire node of a club");
        config.beacon = Some(Announcement { text, interval: seconds(rng, 30, 200) });
    }
    config.inhibited = rng.chance(0.1);
    config
}

/// Moves the time to `until`, if anything happens.
fn run_to(channel: &mut Channel, until: Instant) {
    while channel.now < until && channel.step() {}
    channel.now = channel.now.max(until);
}

/// Kind of a frame, by its destination.
fn is_to(bytes: &Bytes, to: &str) -> bool {
    let frame = Frame::decode(&mut bytes.clone(), Modulo::Eight).expect("it was sent");
    frame.address.destination.to_string() == to
}

/// Figures of all worlds, to see that they were not too kind.
#[derive(Debug, Default)]
struct Figures {
    waits: u64,
    identifications: usize,
    beacons: usize,
    held: usize,
}

fn live(seed: u64, figures: &mut Figures) {
    let mut rng = Rng::new(seed).fork("transmitting");
    let configs = vec![random_config(&mut rng, "A", "B"), random_config(&mut rng, "B", "A")];
    let mut channel = Channel::new(seed, configs.clone());
    channel.loss = rng.unit() * 0.2;
    let mut inhibited: Vec<Vec<(Instant, Instant)>> = vec![Vec::new(), Vec::new()];
    let mut since: Vec<Option<Instant>> =
        configs.iter().map(|config| config.inhibited.then_some(Instant::ZERO)).collect();
    let mut calls = [0, 0];
    while channel.now < END {
        let at = rng.below(2) as usize;
        match rng.below(6) {
            0 => {
                let closed = channel.nodes[at].user.closed.iter().filter(|(link, _)| *link == OWN).count();
                if calls[at] == closed {
                    calls[at] += 1;
                    channel.request(at, OWN, PacketsRequest::Connect);
                }
            }
            1 if channel.nodes[at].user.open.contains(&OWN) => {
                channel.request(at, OWN, PacketsRequest::Close)
            }
            2 => {
                let now = channel.now;
                let on = since[at].is_none();
                channel.nodes[at].station.engine.inhibit(on);
                // The owner polls the station again after a change.
                channel.nodes[at].station.handle_timeout(now);
                match since[at].take() {
                    Some(from) => inhibited[at].push((from, now)),
                    None => since[at] = Some(now),
                }
            }
            _ => {
                let packets = (0..rng.below(12)).map(|number| Bytes::from(vec![number as u8; 200]));
                channel.send(at, OWN, packets);
            }
        }
        let next = channel.now + seconds(&mut rng, 1, 40);
        run_to(&mut channel, next);
    }
    for at in 0..2 {
        if let Some(from) = since[at] {
            inhibited[at].push((from, channel.now));
        }
        check(seed, &channel, at, &configs[at], &inhibited[at], figures);
    }
}

fn check(
    seed: u64,
    channel: &Channel,
    at: usize,
    config: &Config,
    inhibited: &[(Instant, Instant)],
    figures: &mut Figures,
) {
    let told = || format!("seed {seed}, station {at}: {config:?}\n{}", channel.story(Modulo::Eight));
    if let Some(max) = config.air_time_max {
        let most = most_within(channel, at, config, config.air_time_window);
        assert!(most <= max, "{most:?} of air time: {}", told());
    }
    if let Some(share) = config.duty_cycle_max {
        let most = most_within(channel, at, config, config.duty_cycle_window);
        let max = config.duty_cycle_window.mul_f64(share);
        assert!(most <= max, "{most:?} of {max:?} in a duty cycle: {}", told());
    }
    // Nothing is keyed while it is inhibited.
    for (begins, _) in channel.key_ups.iter().filter(|(_, from)| *from == at) {
        let held = inhibited.iter().any(|(from, to)| from <= begins && begins < to);
        assert!(!held, "keyed at {begins} while inhibited: {}", told());
    }
    figures.held += inhibited.len();
    figures.waits += channel.nodes[at].station.engine.air_time().waits;
    // The identification follows within its interval, unless it was inhibited, and only after a transmission.
    let mut unidentified: Option<Instant> = None;
    let own = channel.log.iter().filter(|(_, from, _)| *from == at);
    for (end, _, bytes) in own {
        let is_identification = is_to(bytes, "ID");
        figures.identifications += usize::from(is_identification);
        if is_to(bytes, "BEACON") {
            figures.beacons += 1;
            continue;
        }
        let Some(identification) = &config.identification else {
            assert!(!is_identification, "{}", told());
            continue;
        };
        if is_identification {
            assert!(unidentified.is_some(), "an identification of nothing at {end}: {}", told());
            unidentified = None;
            continue;
        }
        let first = *unidentified.get_or_insert(*end);
        let was_held = inhibited.iter().any(|(from, to)| *from <= *end && first <= *to + SLACK);
        let late = end.saturating_since(first) > identification.interval + SLACK;
        assert!(was_held || !late, "unidentified from {first} to {end}: {}", told());
    }
    if let (Some(first), Some(identification)) = (unidentified, &config.identification) {
        let was_held = inhibited.iter().any(|(_, to)| first <= *to + SLACK);
        let late = END.saturating_since(first) > identification.interval + SLACK;
        assert!(was_held || !late, "unidentified from {first} to the end: {}", told());
    }
}

#[test]
fn a_thousand_worlds_keep_the_limits_identify_themselves_and_key_nothing_while_inhibited() {
    let mut figures = Figures::default();
    (0..1000).for_each(|seed| live(seed, &mut figures));
    let Figures { waits, identifications, beacons, held } = figures;
    assert!(waits > 1000 && identifications > 1000 && beacons > 1000 && held > 1000, "{figures:?}");
}

#[test]
fn a_station_that_says_nothing_does_not_identify_itself_and_one_whose_link_ends_does_at_once() {
    let mut config = station("A", &["B"]);
    let text = Bytes::from_static(b"A");
    config.identification = Some(Announcement { text, interval: Duration::from_secs(600) });
    let other = station("B", &["A"]);
    let mut channel = Channel::new(1, vec![config, other]);
    run_to(&mut channel, Instant::from_secs(5000));
    assert!(channel.log.is_empty(), "{}", channel.story(Modulo::Eight));
    channel.request(0, OWN, PacketsRequest::Connect);
    channel.run(6000, |channel| channel.nodes[0].user.open.contains(&OWN));
    channel.request(0, OWN, PacketsRequest::Close);
    run_to(&mut channel, Instant::from_secs(5030));
    let (_, _, last) = channel.log.last().expect("a link");
    assert!(is_to(last, "ID"), "{}", channel.story(Modulo::Eight));
    let count = channel.log.len();
    run_to(&mut channel, Instant::from_secs(9000));
    assert_eq!(channel.log.len(), count, "once is enough");
}
