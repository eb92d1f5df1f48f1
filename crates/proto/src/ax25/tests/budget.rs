//! The operator's limit of the time on the channel.

use super::channel::{Channel, station};
use crate::ax25::hdlc::air_bits;
use crate::ax25::{Config, Modulo, Version};
use crate::service::{LinkId, PacketsRequest};
use crate::time::{Duration, Instant};
use bytes::Bytes;

const OWN: LinkId = LinkId(0);
const WINDOW: Duration = Duration::from_secs(60);

/// Returns the maximum time that a station has sent within any window, key-ups included, from the log of the channel.
pub(super) fn most_within(channel: &Channel, from: usize, config: &Config, window: Duration) -> Duration {
    let (rate, keying) = (u64::from(config.radio.rate_bps), config.radio.tx_delay + config.radio.tx_tail);
    let mut sent: Vec<(Instant, Duration)> = vec![];
    let mut over = Instant::ZERO;
    for (end, _, bytes) in channel.log.iter().filter(|(_, sender, _)| *sender == from) {
        let air = Duration::from_nanos((air_bits(bytes) + 8) * 1_000_000_000 / rate);
        let follows = end.saturating_since(over) <= air;
        sent.push((*end, if follows { air } else { air + keying }));
        over = *end;
    }
    let within = |end: &(Instant, Duration)| {
        let inside = sent.iter().filter(|(at, _)| *at <= end.0 && end.0.saturating_since(*at) < window);
        inside.map(|(_, time)| *time).sum::<Duration>()
    };
    sent.iter().map(within).max().unwrap_or_default()
}

fn pair(max: Duration) -> (Channel, Config) {
    let mut config = station("A", &["B"]);
    config.peers.values_mut().for_each(|peer| peer.link.version = Version::Plain);
    config.radio.rate_bps = 1200;
    let other = Config { station: "B".parse().unwrap(), ..config.clone() };
    (config.air_time_max, config.air_time_window) = (Some(max), WINDOW);
    (Channel::new(3, vec![config.clone(), other]), config)
}

/// Frames wait, and none counts as lost because of that: there is no timeout and no retransmission.
#[test]
fn no_window_of_time_has_more_than_its_air_time() {
    for max in [5, 12, 30].map(Duration::from_secs) {
        let (mut channel, config) = pair(max);
        channel.request(0, OWN, PacketsRequest::Connect);
        channel.send(0, OWN, (0..40).map(|number| Bytes::from(vec![number; 256])));
        channel.run(3600, |channel| channel.nodes[0].user.acknowledged.get(&OWN) == Some(&40));
        let most = most_within(&channel, 0, &config, WINDOW);
        assert!(most <= max && most > max / 2, "{most:?} of {max:?}");
        let station = &channel.nodes[0].station.engine;
        let (counters, used) = (station.counters(), station.air_time());
        assert_eq!(
            (counters.information_repeated, counters.timeouts),
            (0, 0),
            "{}",
            channel.story(Modulo::Eight)
        );
        assert!(used.waits > 0 && used.within <= max && used.total > max, "{used:?}");
        // Forty frames of 2 s, not faster than allowed.
        let least = 80.0 / max.as_secs_f64() * WINDOW.as_secs_f64() - WINDOW.as_secs_f64();
        assert!(channel.now.as_secs_f64() > least, "{} with {max:?}", channel.now);
    }
}

/// A limit below the length of a frame does not stop the station: one frame goes in each window.
#[test]
fn one_frame_always_goes() {
    let (mut channel, config) = pair(Duration::from_millis(100));
    channel.request(0, OWN, PacketsRequest::Connect);
    channel.send(0, OWN, (0..4).map(|number| Bytes::from(vec![number; 256])));
    channel.run(3600, |channel| channel.nodes[0].user.acknowledged.get(&OWN) == Some(&4));
    assert_eq!(channel.log.iter().filter(|(_, from, _)| *from == 0).count(), 5);
    assert!(most_within(&channel, 0, &config, WINDOW) < Duration::from_millis(2500));
    assert!(channel.now > Instant::from_secs(4 * 60), "{}", channel.now);
}
