//! Reception of one station at another: level, bit errors, and fate of the current frame.

use super::config::{Framing, RadioConfig};
use crate::channel::Counters;
use crate::noise::Noise;
use crate::trace::FrameFate;
use bytes::Bytes;
use longwire_proto::rng::Rng;

/// Path from one station to another.
#[derive(Debug)]
pub(super) struct HearingPath {
    /// True if the sender is in range during its current transmission.
    pub(super) heard: bool,
    /// Share of the transmissions during which it is; `None` if that does not change.
    heard_share: Option<f64>,
    rng: Rng,
    pub(super) level_db: f64,
    noise: Noise,
    framing: Framing,
    pub(super) frame_bytes_max: Option<u32>,
    pub(super) counters: Counters,
    /// First cause of the loss of the current frame at this receiver.
    destroyed_by: Option<FrameFate>,
}

impl HearingPath {
    /// Returns the paths of all pairs, by sender and then by receiver.
    pub(super) fn all(config: &RadioConfig, names: &[String], rng: &Rng) -> Vec<HearingPath> {
        let framing = config.framing;
        let pairs = names.iter().flat_map(|from| names.iter().map(move |to| (from, to)));
        let path = |(from, to): (&String, &String)| {
            let rng = rng.fork(&format!("radio {from} to {to}"));
            let (level_db, counters) = (0.0, Counters::default());
            HearingPath {
                heard: from != to,
                heard_share: None,
                rng: rng.fork("range"),
                level_db,
                noise: Noise::new(&config.errors, &rng),
                framing,
                frame_bytes_max: None,
                counters,
                destroyed_by: None,
            }
        };
        let mut paths: Vec<HearingPath> = pairs.map(path).collect();
        for config in &config.paths {
            let (from, to) = (usize::from(config.from), usize::from(config.to));
            let path = &mut paths[from * names.len() + to];
            (path.heard, path.level_db) = (config.heard, config.level_db);
            path.frame_bytes_max = config.frame_bytes_max;
            path.heard_share = config.heard_share.filter(|_| config.heard);
            if let Some(errors) = &config.errors {
                let rng = rng.fork(&format!("radio {} to {}", names[from], names[to]));
                path.noise = Noise::new(errors, &rng);
            }
        }
        paths
    }

    /// Begins a transmission.
    pub(super) fn key_up(&mut self) {
        if let Some(share) = self.heard_share {
            self.heard = self.rng.chance(share);
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
    pub(super) fn end(
        &mut self,
        bytes: &Bytes,
        first_slot: u64,
        listens: bool,
    ) -> (FrameFate, Option<Bytes>) {
        if !self.heard {
            return (FrameFate::Unheard, None);
        }
        if let Some(fate) = self.destroyed_by.take() {
            return (fate, None);
        }
        if self.frame_bytes_max.is_some_and(|most| bytes.len() as u64 > u64::from(most)) {
            return (FrameFate::CheckFailed, None);
        }
        let (fate, damaged) = self.damage(bytes, first_slot);
        match fate {
            FrameFate::Delivered | FrameFate::Damaged if !listens => (FrameFate::Unheard, damaged),
            fate => (fate, damaged),
        }
    }

    /// Flips the bits hit by noise, and deframes the result.
    fn damage(&mut self, bytes: &Bytes, first_slot: u64) -> (FrameFate, Option<Bytes>) {
        let end = first_slot + self.framing.air_bits(bytes);
        let Some(mut slot) = self.noise.find(first_slot, end) else { return (FrameFate::Delivered, None) };
        let mut wrong = vec![slot - first_slot];
        while let Some(next) = self.noise.find(slot + 1, end) {
            wrong.push(next - first_slot);
            slot = next;
        }
        match self.framing.received(bytes, &wrong) {
            Some(frame) if frame == *bytes => (FrameFate::Delivered, None),
            Some(frame) => (FrameFate::Damaged, Some(frame)),
            None => (FrameFate::CheckFailed, None),
        }
    }
}
