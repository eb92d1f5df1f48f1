//! Senders of datagrams, and the numbers by which a user of the service knows them.

use crate::kit::RecencyMap;
use crate::service::PeerId;
use std::collections::BTreeMap;

/// Addresses of senders that are not configured: a provider of [`Datagrams`](crate::service::Datagrams) numbers them from
/// 1, because [`PeerId::CONFIGURED`] is 0. If there are too many, the one that was not heard for the longest time is
/// forgotten.
#[derive(Debug)]
pub struct Senders<A> {
    senders_max: usize,
    /// Numbers by address; hearing a sender is a use of its entry.
    numbers: RecencyMap<A, PeerId>,
    addresses: BTreeMap<PeerId, A>,
    last: PeerId,
}

impl<A: Ord + Clone> Senders<A> {
    /// Creates an empty table for at most `senders_max` senders, at least one.
    pub fn new(senders_max: usize) -> Self {
        Senders {
            senders_max: senders_max.max(1),
            numbers: RecencyMap::default(),
            addresses: BTreeMap::new(),
            last: PeerId::CONFIGURED,
        }
    }

    /// Returns the number of the sender of a datagram that has arrived from this address.
    pub fn hear(&mut self, address: &A) -> PeerId {
        match self.numbers.use_value(address) {
            Some(peer) => *peer,
            None => self.enter(address),
        }
    }

    /// Returns the address of a sender; `None` if it is unknown or forgotten.
    pub fn address(&self, peer: PeerId) -> Option<&A> {
        self.addresses.get(&peer)
    }

    /// Returns the number of known senders.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns true if no sender is known.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    fn enter(&mut self, address: &A) -> PeerId {
        if self.numbers.len() >= self.senders_max
            && let Some((_, oldest)) = self.numbers.pop_oldest()
        {
            self.addresses.remove(&oldest);
        }
        // After 2^32 senders the numbers of forgotten ones are used again.
        self.last = PeerId(self.last.0.checked_add(1).unwrap_or(1));
        while self.addresses.contains_key(&self.last) {
            self.last = PeerId(self.last.0.checked_add(1).unwrap_or(1));
        }
        self.numbers.insert(address.clone(), self.last);
        self.addresses.insert(self.last, address.clone());
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
