//! The slots of a station's links: their assignment, their release, and the data remembered of a link that is over.

use super::address::Callsign;
use super::station::{KNOWN_MAX, LinkSlot, Station};
use crate::service::LinkId;

impl Station {
    /// Ends the last link with a peer before the next one begins, even if its last answer has not left.
    pub(super) fn tell_end(&mut self, peer: Callsign) {
        if let Some(id) = self.by_peer.get(&peer).copied()
            && let Some(place) = self.places.get_mut(&id)
        {
            place.link.tell_end();
            self.touch(id);
        }
    }

    /// Returns true if there is a slot for one more link apart from that of `id`. A closed link whose last answers wait
    /// for the channel is dropped once there are twice `links_max` links in all: a station that floods this one with
    /// connection requests gets fewer answers and cannot exhaust its memory.
    pub(super) fn has_place(&mut self, id: LinkId) -> bool {
        let others = || self.places.iter().filter(|(other, _)| **other != id);
        if others().filter(|(_, place)| !place.link.is_closed()).count() >= self.config.links_max {
            return false;
        }
        let full = others().count() + 1 >= 2 * self.config.links_max;
        let untold = |place: &LinkSlot| place.link.is_closed() && !place.link.is_told();
        let waits = others().find(|(_, place)| untold(place)).map(|(other, _)| *other);
        if let Some(waits) = waits.filter(|_| full) {
            // The user is informed of the end of the link before its slot is used for another.
            self.places.get_mut(&waits).into_iter().for_each(|place| place.link.tell_end());
            self.touch(waits);
        }
        let others = || self.places.iter().filter(|(other, _)| **other != id);
        let gone = |place: &LinkSlot| place.link.is_closed() && place.link.is_told();
        if others().count() >= 2 * self.config.links_max
            && let Some(gone) = others().find(|(_, place)| gone(place)).map(|(other, _)| *other)
        {
            self.drops.overflow += 1;
            self.forget(gone);
        }
        true
    }

    pub(super) fn forget(&mut self, id: LinkId) {
        let Some(place) = self.places.remove(&id) else { return };
        self.deadlines.remove(id, place.deadline);
        if self.by_peer.get(&place.link.peer) == Some(&id) {
            self.by_peer.remove(&place.link.peer);
        }
        if let Some(known) = place.link.known.clone() {
            if self.known.len() >= KNOWN_MAX && !self.known.contains_key(&place.link.peer) {
                self.known.pop_first();
            }
            self.known.insert(place.link.peer, known);
        }
        let confirmed_peers = place.link.is_confirmed.then_some(&mut self.confirmed_peers);
        let in_vain = place.link.has_called_in_vain().then_some(&mut self.late_answers_expected);
        for peers in confirmed_peers.into_iter().chain(in_vain) {
            if peers.len() >= KNOWN_MAX {
                peers.pop_first();
            }
            peers.insert(place.link.peer);
        }
        self.past.add(&place.link.counters);
        self.links_with_frames.retain(|other| *other != id);
        self.tokens.retain(|_, (other, _)| *other != id);
    }
}
