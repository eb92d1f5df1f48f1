//! Expected time of a bundle on the link that it would take.

use super::{EngineParts as _, Task};
use crate::config::{RadioNeighbour, TncSettings};
use crate::surfaces::message::Reply;
use crate::tower::links::KnownLink;
use crate::view::{Estimate, Reachability};
use longwire_proto::bp::Eid;
use longwire_proto::service::LinkId;
use std::time::Duration;

/// Length of a bundle beside its payload, with a signature, bytes.
const BESIDE_PAYLOAD_BYTES: u64 = 200;
/// Length of a frame beside its information field, without digipeaters, bytes: addresses, control and protocol identifier.
const FRAME_HEADER_BYTES: u64 = 17;
/// Length of a digipeater's address.
const DIGIPEATER_BYTES: u64 = 7;
/// Bytes of an information field that the convergence layer uses itself.
const SEGMENT_HEADER_BYTES: u64 = 8;

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
            let may_lead = known.iter().any(is_unknown);
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
        let (rate_bps, air_time, time) = match (tnc, known.link.rate_bps) {
            (Some((neighbour, tnc)), _) => {
                let (air_time, time) = over_radio(tnc, neighbour, bytes);
                (tnc.channel.rate_bps.into(), air_time, time)
            }
            (None, 0) => return named,
            (None, rate_bps) => {
                let time = Duration::from_secs_f64(bytes as f64 * 8.0 / rate_bps as f64);
                (rate_bps, time, time)
            }
        };
        let (air_time_s, time_s) = (Some(air_time.as_secs_f64()), Some(time.as_secs_f64()));
        Estimate { rate_bps, air_time_s, time_s, ..named }
    }
}

/// True if the configuration names the node as the peer of the link.
fn is_for(known: &KnownLink, node: &str) -> bool {
    let peer = known.link.peer.as_ref();
    peer.is_some_and(|peer| peer.parse::<Eid>().is_ok_and(|peer| peer.to_string() == node))
}

/// Returns the time for which the station transmits, and the time until the last acknowledgement.
fn over_radio(tnc: &TncSettings, neighbour: &RadioNeighbour, bytes: u64) -> (Duration, Duration) {
    let (radio, link) = (tnc.radio(), &neighbour.peer.link);
    let digipeaters = neighbour.peer.path.len() as u32;
    let header = FRAME_HEADER_BYTES + DIGIPEATER_BYTES * u64::from(digipeaters);
    let information = u64::from(link.information_bytes_max).saturating_sub(SEGMENT_HEADER_BYTES).max(1);
    let frames = bytes.div_ceil(information).max(1);
    let on_channel =
        radio.air_time(frames, bytes.saturating_add(frames.saturating_mul(header + SEGMENT_HEADER_BYTES)));
    let by_time = on_channel.as_secs_f64() / tnc.transmission_max.as_secs_f64();
    let key_ups = frames.div_ceil(link.window_frames.max(1).into()).max(by_time.ceil() as u64);
    let key_ups = u32::try_from(key_ups).unwrap_or(u32::MAX);
    let keying = radio.tx_delay + radio.tx_tail;
    let air_time = on_channel.saturating_add(keying.saturating_mul(key_ups));
    // Slots until the station transmits, on average.
    let slots = 256.0 / (f64::from(radio.persistence) + 1.0);
    let wait = if radio.full_duplex { Duration::ZERO } else { radio.slot_time.mul_f64(slots) };
    let answer = if neighbour.is_connected {
        radio.air_time(1, header) + keying + wait + radio.turnaround
    } else {
        Duration::ZERO
    };
    let time =
        air_time.saturating_add((wait + answer).saturating_mul(key_ups)).saturating_mul(digipeaters + 1);
    let by_duty_cycle = tnc.duty_cycle_max.map_or(0.0, |share| air_time.as_secs_f64() / share);
    let by_budget = tnc
        .air_time_max
        .filter(|max| air_time > *max)
        .map_or(0.0, |max| air_time.as_secs_f64() * tnc.air_time_window.as_secs_f64() / max.as_secs_f64());
    let limited = Duration::try_from_secs_f64(by_duty_cycle.max(by_budget)).unwrap_or(Duration::MAX);
    (air_time, time.max(limited))
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
        let (air_time, time) = over_radio(&config.tnc[0], &neighbour, bytes);
        (air_time.as_secs_f64(), time.as_secs_f64())
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
        // Nothing overflows.
        assert!(over("duty-cycle-max = 0.25", u64::MAX / 2).1 > 1e9);
    }
}
