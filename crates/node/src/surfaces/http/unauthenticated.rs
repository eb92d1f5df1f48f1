//! Connections that have not been authenticated yet.
//!
//! When all places are taken, one of them is replaced by a new one: the oldest of the address with the most. So connections that send
//! their header slowly, or never, keep out no client with the token.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use tokio::sync::oneshot;

/// Connections that have not been authenticated yet, by number.
#[derive(Debug, Default)]
pub(super) struct UnauthenticatedConnections {
    inner: Mutex<UnauthenticatedState>,
}

#[derive(Debug, Default)]
struct UnauthenticatedState {
    next: u64,
    all: BTreeMap<u64, (IpAddr, oneshot::Sender<()>)>,
}

impl UnauthenticatedConnections {
    /// Adds a connection from an address. Returns its number, and the signal that it is replaced.
    pub(super) fn enter(&self, from: IpAddr) -> (u64, oneshot::Receiver<()>) {
        let (give_way, told) = oneshot::channel();
        let mut inner = self.inner.lock().expect("no thread panics with it");
        inner.next += 1;
        let number = inner.next;
        inner.all.insert(number, (from.to_canonical(), give_way));
        (number, told)
    }

    /// Removes a connection that was authenticated or has ended.
    pub(super) fn leave(&self, number: u64) {
        self.inner.lock().expect("no thread panics with it").all.remove(&number);
    }

    /// Signals one connection to end. Returns false if there is none.
    pub(super) fn one_gives_way(&self) -> bool {
        let mut inner = self.inner.lock().expect("no thread panics with it");
        let mut by_address: BTreeMap<IpAddr, (usize, u64)> = BTreeMap::new();
        for (number, (from, _)) in &inner.all {
            by_address.entry(*from).or_insert((0, *number)).0 += 1;
        }
        let most = by_address.values().max_by_key(|(count, oldest)| (*count, std::cmp::Reverse(*oldest)));
        let Some((_, oldest)) = most.copied() else { return false };
        let Some((_, give_way)) = inner.all.remove(&oldest) else { return false };
        // A connection that ends at this moment frees its place, too.
        let _ = give_way.send(());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_who_has_most_gives_way() {
        let waiting = UnauthenticatedConnections::default();
        let (few, many) = ("10.0.0.1".parse().expect("an address"), "10.0.0.2".parse().expect("an address"));
        let mut told: Vec<_> = [few, many, many].map(|from| waiting.enter(from)).into();
        let mut who = || {
            assert!(waiting.one_gives_way());
            let at = told.iter_mut().position(|(_, told)| told.try_recv().is_ok()).expect("one is told");
            told.remove(at).0
        };
        assert_eq!([who(), who(), who()], [2, 1, 3]);
        assert!(!waiting.one_gives_way());
        let (number, _told) = waiting.enter(few);
        waiting.leave(number);
        assert!(!waiting.one_gives_way());
    }
}
