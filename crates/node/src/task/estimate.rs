//! Expected time of a bundle on the link that it would take.

use super::{EngineParts as _, Task};
use crate::config::{Config, RadioNeighbour, TncSettings};
use crate::surfaces::message::Reply;
use crate::tower::links::KnownLink;
use crate::view::{Estimate, Reachability};
use longwire_proto::bp::Eid;
use longwire_proto::bp::agent::RouterChoice;
use longwire_proto::service::LinkId;

/// Length of a bundle beside its payload, with a signature, bytes.
const BESIDE_PAYLOAD_BYTES: u64 = 200;
/// Length of a frame beside its information field, without digipeaters, bytes: addresses, control and protocol identifier.
const FRAME_HEADER_BYTES: u64 = 17;
/// Length of a digipeater's address.
const DIGIPEATER_BYTES: u64 = 7;
/// Bytes of an information field that the convergence layer uses itself.
const SEGMENT_HEADER_BYTES: u64 = 8;
/// Bytes of a bundle that are counted in frames.
const COUNTED_BYTES_MAX: u64 = 1 << 20;

impl Task {
    /// Estimates the transmission of a payload of this length to an endpoint.
    pub(super) fn estimate(&mut self, to: &str, payload_bytes: u64) -> Reply {
        let Some(endpoint) = to.parse::<Eid>().ok().filter(|eid| !eid.is_null()) else {
            let hint = Some("an endpoint ID looks like dtn://name/inbox or ipn:3.1");
            return Reply::error(format!("`{to}` is not a valid endpoint ID"), hint);
        };
        let estimate = self.estimate_to(&endpoint, payload_bytes.saturating_add(BESIDE_PAYLOAD_BYTES));
        Reply::Estimate { estimate }
    }

    fn estimate_to(&mut self, endpoint: &Eid, bytes: u64) -> Estimate {
        let node = endpoint.node_id().detached();
        if node == *self.engines.upper.node() {
            return Estimate { reachability: Reachability::Own, up: true, ..Estimate::default() };
        }
        let Some(mut links) = self.engines.upper.links_to(endpoint) else {
            return Estimate { reachability: Reachability::Known, ..Estimate::default() };
        };
        let node = node.to_string();
        let known = &self.engines.neighbours().links;
        let seen = &self.link_states.seen;
        // The agent knows a neighbour only while it is connected.
        let led_there =
            seen.iter().filter(|(_, seen)| seen.led_to.as_ref() == Some(&node)).map(|(id, _)| *id);
        links.extend(led_there);
        links.extend(known.iter().filter(|(_, known)| is_for(known, &node)).map(|(id, _)| id));
        let is_up = |link: &LinkId| seen.get(link).is_some_and(|seen| seen.up);
        let Some(link) = links.iter().find(|link| is_up(link)).or(links.first()).copied() else {
            let is_unknown = |(id, known): (LinkId, &KnownLink)| {
                let was_seen = seen.get(&id).is_some_and(|seen| seen.up || seen.led_to.is_some());
                known.link.peer.is_none() && !was_seen
            };
            let may_lead = known.iter().any(is_unknown) || meets_others(&self.configuration.config);
            let reachability = if may_lead { Reachability::Unknown } else { Reachability::None };
            return Estimate { reachability, ..Estimate::default() };
        };
        let named = Estimate {
            reachability: Reachability::Known,
            link: Some(known.name(link)),
            up: is_up(&link),
            ..Estimate::default()
        };
        let Some(known) = known.get(link) else { return named };
        let tncs = &self.configuration.config.tnc;
        let tnc = known.neighbour.as_ref().and_then(|neighbour| Some((neighbour, tncs.get(neighbour.tnc)?)));
        let (rate_bps, air_time_s, time_s) = match (tnc, known.link.rate_bps) {
            (Some((neighbour, tnc)), _) => {
                let (air_time_s, time_s) = over_radio(tnc, neighbour, bytes);
                (tnc.channel.rate_bps.into(), air_time_s, time_s)
            }
            (None, 0) => return named,
            (None, rate_bps) => {
                let time_s = bytes as f64 * 8.0 / rate_bps as f64;
                (rate_bps, time_s, time_s)
            }
        };
        Estimate { rate_bps, air_time_s: Some(air_time_s), time_s: Some(time_s), ..named }
    }
}

/// True if a node that is not connected now may connect: it calls, is discovered, or is announced by others.
fn meets_others(config: &Config) -> bool {
    let is_called = !config.listen.is_empty() || config.tnc.iter().any(|tnc| tnc.answer);
    is_called || config.discovery.peers.is_some() || config.routing.router == RouterChoice::Dtlsr
}

/// True if the configuration names the node as the peer of the link.
fn is_for(known: &KnownLink, node: &str) -> bool {
    let peer = known.link.peer.as_ref();
    peer.is_some_and(|peer| peer.parse::<Eid>().is_ok_and(|peer| peer.to_string() == node))
}

/// Returns the time for which the station transmits, and the time until the last acknowledgement, seconds.
fn over_radio(tnc: &TncSettings, neighbour: &RadioNeighbour, bytes: u64) -> (f64, f64) {
    let (radio, link) = (tnc.radio(), &neighbour.peer.link);
    let digipeaters = neighbour.peer.path.len() as u64;
    let header = FRAME_HEADER_BYTES + DIGIPEATER_BYTES * digipeaters;
    let information = u64::from(link.information_bytes_max).saturating_sub(SEGMENT_HEADER_BYTES).max(1);
    // Longer bundles take as many times as long.
    let counted = bytes.clamp(1, COUNTED_BYTES_MAX);
    let times = bytes.max(1) as f64 / counted as f64;
    let frames = counted.div_ceil(information);
    let on_channel_s =
        radio.air_time(frames, counted + frames * (header + SEGMENT_HEADER_BYTES)).as_secs_f64();
    let by_time = on_channel_s / tnc.transmission_max.as_secs_f64();
    let key_ups = frames.div_ceil(link.window_frames.max(1).into()).max(by_time.ceil() as u64) as f64;
    let keying_s = (radio.tx_delay + radio.tx_tail).as_secs_f64();
    let air_time_s = (on_channel_s + keying_s * key_ups) * times;
    // Slots until the station transmits, on average.
    let slots = 256.0 / (f64::from(radio.persistence) + 1.0);
    let wait_s = if radio.full_duplex { 0.0 } else { radio.slot_time.as_secs_f64() * slots };
    let answer_s = match neighbour.is_connected {
        true => (radio.air_time(1, header) + radio.turnaround).as_secs_f64() + keying_s + wait_s,
        false => 0.0,
    };
    let time_s = (air_time_s + (wait_s + answer_s) * key_ups * times) * (digipeaters + 1) as f64;
    let by_duty_cycle_s = tnc.duty_cycle_max.map_or(0.0, |share| air_time_s / share);
    let window_s = tnc.air_time_window.as_secs_f64();
    let budget_s = tnc.air_time_max.map(|max| max.as_secs_f64()).filter(|max_s| air_time_s > *max_s);
    let by_budget_s = budget_s.map_or(0.0, |max_s| air_time_s * window_s / max_s);
    (air_time_s, time_s.max(by_duty_cycle_s).max(by_budget_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    fn over(more: &str, bytes: u64) -> (f64, f64) {
        let text = format!(
            "node = 'dtn://a/'\n[[tnc]]\nname = 'vhf'\naddress = '127.0.0.1:8001'\ncallsign = 'DL1XYZ-1'\n{more}\n[[link]]\n\
             name = 'b'\nkind = 'ax25cl'\ntnc = 'vhf'\ncallsign = 'DL1XYZ-2'\n"
        );
        let config = Config::parse(&text, "node.toml", Path::new("/nowhere")).expect("it fits");
        let neighbour = config.neighbour(&config.link[0]).expect("it fits").expect("a radio link");
        over_radio(&config.tnc[0], &neighbour, bytes)
    }

    /// 20,000 bytes at 1200 bit/s are 133 s of payload alone; frames, key-ups and answers add to them.
    #[test]
    fn frames_key_ups_and_answers_take_time() {
        let (air_time, time) = over("", 20_000);
        assert!((150.0..175.0).contains(&air_time), "{air_time}");
        assert!((air_time * 1.05..air_time * 1.3).contains(&time), "{time} of {air_time}");
        let (fast, _) = over("channel = { rate-bps = 9600 }", 20_000);
        assert!((air_time / 8.0..air_time / 5.0).contains(&fast), "{fast}");
        assert!(over("", 40_000).1 > 1.9 * time);
    }

    #[test]
    fn limits_of_the_operator_lengthen_it() {
        let (air_time, time) = over("", 20_000);
        let (same, half) = over("duty-cycle-max = 0.25", 20_000);
        assert_eq!(same, air_time);
        assert!((half - 4.0 * air_time).abs() < 1e-6 && half > time, "{half}");
        let (_, budget) = over("air-time-max = '60 s'", 20_000);
        assert!((budget - 10.0 * air_time).abs() < 1e-6, "{budget}");
        assert_eq!(over("air-time-max = '500 s'", 20_000).1, time, "it fits into the window");
        let (long, _) = over("", 200_000_000);
        assert!((9_900.0..10_100.0).contains(&(long / air_time)), "{long}");
        let short_frames = "duty-cycle-max = 0.99\nax25 = { information-bytes-max = 60, window-frames = 1 }";
        for bytes in [0, 1, u64::MAX] {
            let (air_time, time) = over(short_frames, bytes);
            assert!(air_time > 0.1 && time > air_time && time.is_finite(), "{bytes}: {air_time} of {time}");
        }
    }
}
