//! Reception of one station at another: level, bit errors, and fate of the current frame.

use super::config::RadioConfig;
use super::station::Transmission;
use crate::channel::{Counters, Errors};
use crate::noise::Noise;
use crate::trace::FrameFate;
use bytes::Bytes;
use longwire_proto::rng::Rng;

/// Path from one station to another. It is small: a channel of a thousand stations has a million.
#[derive(Debug)]
pub(super) struct HearingPath {
    /// True if the sender is in range during its current transmission.
    pub(super) heard: bool,
    /// Range of the sender, if it changes.
    range: Option<Box<ChangingRange>>,
    pub(super) level_db: f64,
    noise: Noise,
    pub(super) frame_bytes_max: Option<u32>,
    pub(super) counters: Counters,
    /// First cause of the loss of the current frame at this receiver.
    destroyed_by: Option<FrameFate>,
}

/// Range that differs between transmissions.
#[derive(Debug)]
struct ChangingRange {
    /// Share of the transmissions during which the sender is in range.
    heard_share: f64,
    rng: Rng,
}

impl HearingPath {
    /// Returns the paths of all pairs, by sender and then by receiver.
    pub(super) fn all(config: &RadioConfig, names: &[String], rng: &Rng) -> Vec<HearingPath> {
        let rng_of = |from: &String, to: &String| rng.fork(&format!("radio {from} to {to}"));
        let noise = |errors: &Errors, from: &String, to: &String| match errors {
            Errors::None => Noise::None,
            errors => Noise::new(errors, &rng_of(from, to)),
        };
        let pairs = names.iter().flat_map(|from| names.iter().map(move |to| (from, to)));
        let path = |(from, to): (&String, &String)| HearingPath {
            heard: from != to,
            range: None,
            level_db: 0.0,
            noise: noise(&config.errors, from, to),
            frame_bytes_max: None,
            counters: Counters::default(),
            destroyed_by: None,
        };
        let mut paths: Vec<HearingPath> = pairs.map(path).collect();
        for config in &config.paths {
            let (from, to) = (usize::from(config.from), usize::from(config.to));
            let path = &mut paths[from * names.len() + to];
            let (from, to) = (&names[from], &names[to]);
            (path.heard, path.level_db) = (config.heard, config.level_db);
            path.frame_bytes_max = config.frame_bytes_max;
            path.range = config.heard_share.filter(|_| config.heard).map(|heard_share| {
                Box::new(ChangingRange { heard_share, rng: rng_of(from, to).fork("range") })
            });
            if let Some(errors) = &config.errors {
                path.noise = noise(errors, from, to);
            }
        }
        paths
    }

    /// Begins a transmission.
    pub(super) fn key_up(&mut self) {
        if let Some(range) = &mut self.range {
            self.heard = range.rng.chance(range.heard_share);
        }
    }

    /// Begins a frame, which may already be lost.
    pub(super) fn begin(&mut self, destroyed_by: Option<FrameFate>) {
        self.destroyed_by = destroyed_by;
    }

    /// Marks the current frame as lost.
    pub(super) fn destroy(&mut self, fate: FrameFate) {
        self.destroyed_by.get_or_insert(fate);
    }

    /// Ends the current frame. Returns its fate, and its bytes if they differ from those sent.
    pub(super) fn end(&mut self, sent: &Transmission, listens: bool) -> (FrameFate, Option<Bytes>) {
        if !self.heard {
            return (FrameFate::Unheard, None);
        }
        if let Some(fate) = self.destroyed_by.take() {
            return (fate, None);
        }
        if self.frame_bytes_max.is_some_and(|most| sent.frame.bytes.len() as u64 > u64::from(most)) {
            return (FrameFate::CheckFailed, None);
        }
        let (fate, damaged) = self.damage(sent);
        match fate {
            FrameFate::Delivered | FrameFate::Damaged if !listens => (FrameFate::Unheard, damaged),
            fate => (fate, damaged),
        }
    }

    /// Flips the bits hit by noise, and deframes the result.
    fn damage(&mut self, sent: &Transmission) -> (FrameFate, Option<Bytes>) {
        let (bytes, first_slot) = (&sent.frame.bytes, sent.first_slot);
        let end = first_slot + sent.air_bits;
        let Some(mut slot) = self.noise.find(first_slot, end) else { return (FrameFate::Delivered, None) };
        let mut wrong = vec![slot - first_slot];
        while let Some(next) = self.noise.find(slot + 1, end) {
            wrong.push(next - first_slot);
            slot = next;
        }
        match sent.framing.received(bytes, &wrong) {
            Some(frame) if frame == *bytes => (FrameFate::Delivered, None),
            Some(frame) => (FrameFate::Damaged, Some(frame)),
            None => (FrameFate::CheckFailed, None),
        }
    }
}
