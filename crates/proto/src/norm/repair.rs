//! Repair requests at the sender, and the symbols that it sends in answer (RFC 5740 5.4).

use super::symbols::SymbolSet;
use crate::time::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// A block: number of the object, and of the block in it.
pub(super) type BlockKey = (u64, u32);

/// Symbols of a block that receivers have requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// Symbols that were named.
    pub(super) symbols: SymbolSet,
    /// Greatest number of symbols that one receiver lacks.
    pub(super) count: u16,
    /// Number of NACKs that had requests for the block.
    pub(super) nacks: u16,
    /// A receiver has none of the block.
    pub(super) is_whole: bool,
}

impl Request {
    /// Adds the request of another receiver.
    pub(super) fn merge(&mut self, other: &Request) {
        self.symbols.extend(&other.symbols);
        self.count = self.count.max(other.count);
        self.nacks = self.nacks.saturating_add(other.nacks);
        self.is_whole |= other.is_whole;
    }
}

/// Repair transmissions of a block.
#[derive(Clone, Copy, Debug, Default)]
struct BlockRepair {
    /// Symbols that wait to be sent.
    pending: SymbolSet,
    /// Number of parity symbols that were sent or wait.
    parity_used: u16,
    /// Number of symbols that have left in the last repair.
    left: u16,
    /// Time at which the last one left.
    left_at: Option<Instant>,
}

impl BlockRepair {
    /// Returns true if symbols have left that requests of the last round trip do not know of.
    fn is_recent(&self, now: Instant, round_trip: Duration) -> bool {
        self.left_at.is_some_and(|left_at| now < left_at + round_trip)
    }
}

/// Sizes of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockSizes {
    pub(super) sources: u16,
    pub(super) parity: u16,
}

/// Repair transmissions of all blocks.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    blocks: BTreeMap<BlockKey, BlockRepair>,
    /// Blocks with symbols that wait to be sent.
    pending: BTreeSet<BlockKey>,
    /// Objects whose NORM_INFO messages wait to be sent.
    infos: BTreeSet<u64>,
}

/// Repair transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    Info(u64),
    Symbol(BlockKey, u16),
}

impl Repairs {
    /// Notes parity symbols that are sent without a request.
    pub(super) fn note_auto_parity(&mut self, key: BlockKey, parity: u16) {
        let block = self.blocks.entry(key).or_default();
        block.parity_used = block.parity_used.max(parity);
    }

    /// Returns a new request without the symbols that wait, or that have left within the last round trip, because the receiver could
    /// not have them when it asked; `None` if nothing remains of it.
    pub(super) fn outstanding(
        &self,
        now: Instant,
        round_trip: Duration,
        key: BlockKey,
        request: Request,
    ) -> Option<Request> {
        let Some(block) = self.blocks.get(&key) else { return Some(request) };
        let is_recent = block.is_recent(now, round_trip);
        if request.is_whole {
            return (!is_recent).then_some(request);
        }
        let left = if is_recent { block.left } else { 0 };
        let count = request.count.saturating_sub(block.pending.len() + left);
        (count > 0).then_some(Request { count, ..request })
    }

    /// Makes symbols wait that satisfy [outstanding](Repairs::outstanding) requests; false if all of them wait already.
    ///
    /// Parity symbols that were never sent serve all receivers, whichever symbols they lack. When there are no more of them, the
    /// requested symbols themselves are sent again.
    pub(super) fn activate(
        &mut self,
        now: Instant,
        round_trip: Duration,
        key: BlockKey,
        sizes: BlockSizes,
        request: &Request,
    ) -> bool {
        let block = self.blocks.entry(key).or_default();
        let before = block.pending;
        if !block.is_recent(now, round_trip) {
            block.left = 0;
        }
        if request.is_whole {
            block.pending.extend(&SymbolSet::range(0..sizes.sources));
        } else {
            let mut lacking = request.count;
            while lacking > 0 && block.parity_used < sizes.parity {
                block.pending.insert(sizes.sources + block.parity_used);
                block.parity_used += 1;
                lacking -= 1;
            }
            let named = request.symbols.without(&block.pending);
            let mut named: Vec<u16> =
                named.iter().filter(|symbol| *symbol < sizes.sources + block.parity_used).collect();
            if request.nacks == 1 {
                // One receiver can use any of the symbols that it lacks.
                named.drain(..named.len().saturating_sub(lacking.into()));
            }
            if lacking > 0 {
                named.into_iter().for_each(|symbol| {
                    block.pending.insert(symbol);
                });
            }
        }
        let has_more = block.pending != before;
        if has_more {
            self.pending.insert(key);
        }
        has_more
    }

    /// Makes the NORM_INFO message of an object wait.
    pub(super) fn activate_info(&mut self, object: u64) {
        self.infos.insert(object);
    }

    /// Returns the earliest repair that waits, in the order of the objects and their blocks.
    pub(super) fn first(&self) -> Option<Repair> {
        let block = self.pending.first().map(|key| (key.0, Some(*key)));
        let info = self.infos.first().map(|object| (*object, None));
        match block.into_iter().chain(info).min()? {
            (object, None) => Some(Repair::Info(object)),
            (_, Some(key)) => Some(Repair::Symbol(key, self.blocks[&key].pending.first().expect("it waits"))),
        }
    }

    /// Notes that the repair leaves.
    pub(super) fn leave(&mut self, now: Instant, repair: Repair) {
        match repair {
            Repair::Info(object) => {
                self.infos.remove(&object);
            }
            Repair::Symbol(key, symbol) => {
                let block = self.blocks.get_mut(&key).expect("it has repairs");
                block.pending.remove(symbol);
                block.left = block.left.saturating_add(1);
                block.left_at = Some(now);
                if block.pending.is_empty() {
                    self.pending.remove(&key);
                }
            }
        }
    }

    /// Returns true if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.infos.is_empty()
    }

    /// Forgets an object.
    pub(super) fn remove(&mut self, object: u64) {
        self.remove_before((object, u32::MAX));
        self.infos.remove(&object);
    }

    /// Forgets the blocks of an object before one.
    pub(super) fn remove_before(&mut self, (object, block): BlockKey) {
        let keys: Vec<BlockKey> =
            self.blocks.range((object, 0)..(object, block)).map(|(key, _)| *key).collect();
        for key in keys {
            self.blocks.remove(&key);
            self.pending.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_secs(1);
    const SIZES: BlockSizes = BlockSizes { sources: 8, parity: 4 };

    fn request(symbols: &[u16]) -> Request {
        let mut set = SymbolSet::EMPTY;
        symbols.iter().for_each(|symbol| {
            set.insert(*symbol);
        });
        Request { symbols: set, count: set.len(), nacks: 1, is_whole: false }
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    /// Hears a request and answers it at once.
    fn ask(repairs: &mut Repairs, now: Instant, key: BlockKey, sizes: BlockSizes, asked: Request) -> bool {
        let outstanding = repairs.outstanding(now, ROUND_TRIP, key, asked);
        outstanding.is_some_and(|request| repairs.activate(now, ROUND_TRIP, key, sizes, &request))
    }

    /// All that leaves at this time.
    fn sent(repairs: &mut Repairs, seconds: u64) -> Vec<Repair> {
        let all = core::iter::from_fn(|| {
            let repair = repairs.first()?;
            repairs.leave(at(seconds), repair);
            Some(repair)
        });
        all.collect()
    }

    fn symbols(repairs: &mut Repairs, seconds: u64) -> Vec<u16> {
        let symbol = |repair| match repair {
            Repair::Symbol(_, symbol) => symbol,
            Repair::Info(_) => panic!("an INFO"),
        };
        sent(repairs, seconds).into_iter().map(symbol).collect()
    }

    #[test]
    fn new_parity_symbols_answer_requests_until_there_are_none() {
        let mut repairs = Repairs::default();
        let ask = |repairs: &mut Repairs, seconds, asked: Request| {
            super::tests::ask(repairs, at(seconds), (0, 3), SIZES, asked)
        };
        assert!(ask(&mut repairs, 0, request(&[8, 9])));
        assert_eq!(symbols(&mut repairs, 0), [8, 9]);
        // 9 was lost: another one replaces it. Then the last one, and one that was sent before: those that are named last.
        assert!(ask(&mut repairs, 2, request(&[9])));
        assert_eq!(symbols(&mut repairs, 2), [10]);
        assert!(ask(&mut repairs, 4, request(&[4, 9, 10])));
        assert_eq!(symbols(&mut repairs, 4), [9, 10, 11]);
        assert!(ask(&mut repairs, 6, request(&[1, 4])));
        assert_eq!(symbols(&mut repairs, 6), [1, 4]);
        assert!(repairs.is_empty());
    }

    #[test]
    fn a_request_for_what_waits_or_has_just_left_is_not_answered_again() {
        let mut repairs = Repairs::default();
        let ask = |repairs: &mut Repairs, millis, asked: &[u16]| {
            let now = Instant::ZERO + Duration::from_millis(millis);
            super::tests::ask(repairs, now, (0, 0), SIZES, request(asked))
        };
        assert!(ask(&mut repairs, 0, &[8, 9]) && !ask(&mut repairs, 0, &[8, 9]));
        assert!(ask(&mut repairs, 0, &[8, 9, 10]), "another receiver lacks one more");
        assert_eq!(symbols(&mut repairs, 0), [8, 9, 10]);
        assert!(!ask(&mut repairs, 999, &[8, 9]));
        assert!(ask(&mut repairs, 1_000, &[8, 9]));
        assert_eq!(symbols(&mut repairs, 1), [9, 11], "the last new one, and one that was named");
    }

    #[test]
    fn requests_of_several_receivers_are_answered_by_the_greatest_number_or_by_all_that_they_name() {
        let merged = |requests: [Request; 2]| {
            let [mut first, second] = requests;
            first.merge(&second);
            first
        };
        let mut repairs = Repairs::default();
        let both = merged([request(&[8, 9, 10]), request(&[8])]);
        assert!(ask(&mut repairs, at(0), (0, 0), SIZES, both));
        assert_eq!(symbols(&mut repairs, 0), [8, 9, 10]);
        let both = merged([request(&[1, 10]), request(&[2, 9])]);
        assert!(ask(&mut repairs, at(2), (0, 0), SIZES, both));
        assert_eq!(symbols(&mut repairs, 2), [1, 2, 9, 10, 11]);
    }

    #[test]
    fn blocks_that_are_missing_as_a_whole_are_sent_again() {
        let mut repairs = Repairs::default();
        let whole = Request { is_whole: true, nacks: 1, ..Request::default() };
        assert!(ask(&mut repairs, at(0), (7, 1), SIZES, whole));
        assert!(ask(&mut repairs, at(0), (7, 0), BlockSizes { sources: 2, parity: 4 }, request(&[2])));
        repairs.activate_info(7);
        repairs.activate_info(6);
        let first: Vec<Repair> = sent(&mut repairs, 0);
        assert_eq!(
            first[..4],
            [Repair::Info(6), Repair::Info(7), Repair::Symbol((7, 0), 2), Repair::Symbol((7, 1), 0)]
        );
        assert_eq!(first.len(), 11);
        assert!(!ask(&mut repairs, at(0), (7, 1), SIZES, whole));
        assert!(ask(&mut repairs, at(1), (7, 1), SIZES, whole));
        repairs.remove(7);
        assert!(repairs.is_empty() && repairs.first().is_none());
    }
}
