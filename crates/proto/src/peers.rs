//! Senders of datagrams, and the numbers by which a user of the service knows them.

use crate::service::PeerId;
use std::collections::{BTreeMap, BTreeSet};

/// Addresses of senders that are not configured: a provider of [`Datagrams`](crate::service::Datagrams) numbers them from
/// 1, because [`PeerId::CONFIGURED`] is 0. If there are too many, the one that was not heard for the longest time is
/// forgotten.
#[derive(Debug)]
pub struct Senders<A> {
    senders_max: usize,
    by_address: BTreeMap<A, PeerId>,
    /// Address and time of the last datagram of each sender, as the number of datagrams before it.
    known: BTreeMap<PeerId, (A, u64)>,
    by_time: BTreeSet<(u64, PeerId)>,
    heard: u64,
    last: PeerId,
}

impl<A: Ord + Clone> Senders<A> {
    /// Creates an empty table for at most `senders_max` senders, at least one.
    pub fn new(senders_max: usize) -> Self {
        Senders {
            senders_max: senders_max.max(1),
            by_address: BTreeMap::new(),
            known: BTreeMap::new(),
            by_time: BTreeSet::new(),
            heard: 0,
            last: PeerId::CONFIGURED,
        }
    }

    /// Returns the number of the sender of a datagram that has arrived from this address.
    pub fn hear(&mut self, address: &A) -> PeerId {
        let peer = match self.by_address.get(address) {
            Some(peer) => *peer,
            None => self.enter(address),
        };
        self.heard += 1;
        if let Some((_, heard)) = self.known.get_mut(&peer) {
            self.by_time.remove(&(*heard, peer));
            *heard = self.heard;
            self.by_time.insert((self.heard, peer));
        }
        peer
    }

    /// Returns the address of a sender; `None` if it is unknown or forgotten.
    pub fn address(&self, peer: PeerId) -> Option<&A> {
        self.known.get(&peer).map(|(address, _)| address)
    }

    /// Returns the number of known senders.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns true if no sender is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    fn enter(&mut self, address: &A) -> PeerId {
        if self.known.len() >= self.senders_max
            && let Some((_, oldest)) = self.by_time.pop_first()
            && let Some((address, _)) = self.known.remove(&oldest)
        {
            self.by_address.remove(&address);
        }
        // After 2^32 senders the numbers of forgotten ones are used again.
        self.last = PeerId(self.last.0.checked_add(1).unwrap_or(1));
        while self.known.contains_key(&self.last) {
            self.last = PeerId(self.last.0.checked_add(1).unwrap_or(1));
        }
        self.by_address.insert(address.clone(), self.last);
        self.known.insert(self.last, (address.clone(), 0));
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_keeps_its_number_until_others_have_been_heard_since() {
        let mut senders = Senders::new(2);
        assert_eq!(
            (senders.hear(&'a'), senders.hear(&'b'), senders.hear(&'a')),
            (PeerId(1), PeerId(2), PeerId(1))
        );
        assert_eq!(senders.hear(&'c'), PeerId(3), "takes the place of b, which is silent for longer");
        let known = [1, 2, 3].map(|peer| senders.address(PeerId(peer)).copied());
        assert_eq!((known, senders.len()), ([Some('a'), None, Some('c')], 2));
        assert_eq!(senders.hear(&'b'), PeerId(4), "a number is not given to another address");
        assert_eq!(senders.address(PeerId::CONFIGURED), None);
    }

    #[test]
    fn numbers_are_used_again_after_the_last_one_but_not_those_of_known_senders() {
        let mut senders = Senders::new(2);
        assert_eq!(senders.hear(&'a'), PeerId(1));
        senders.last = PeerId(u32::MAX);
        assert_eq!(senders.hear(&'b'), PeerId(2));
        assert_eq!((senders.address(PeerId(1)), senders.address(PeerId(2))), (Some(&'a'), Some(&'b')));
    }
}
