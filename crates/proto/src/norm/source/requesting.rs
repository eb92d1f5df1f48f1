//! Repair requests of a receiver (RFC 5740 5.3).

use super::{Position, Shared, Source, Timer};
use crate::norm::incoming::{Incoming, Progress};
use crate::norm::repair::Request;
use crate::norm::requests::{ObjectId, RequestList};
use crate::norm::symbols::SymbolSet;
use crate::norm::wire::{FecScheme, Flags, Levels, RepairForm, RepairRequest};
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// Length of a segment of a sender of which nothing has arrived.
const SEGMENT_BYTES: u16 = 512;
/// Minimum time before a request is repeated: a sender may state any round-trip time.
const HOLDOFF_MIN: Duration = Duration::from_millis(1);
/// Maximum number of remembered requests of other receivers.
const OTHERS_MAX: usize = 1_024;
/// Something that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// All of an object.
    Object(u64),
    /// The description of an object.
    Info(u64),
    /// All of a block.
    Block(u64, u32),
    /// Symbols of a block.
    Symbols(u64, u32, SymbolSet),
}

impl Need {
    /// Returns the object and the block, with numbers above those of blocks for objects and their descriptions.
    fn key(self) -> (u64, u32) {
        match self {
            Need::Object(number) => (number, u32::MAX),
            Need::Info(number) => (number, u32::MAX - 1),
            Need::Block(number, block) | Need::Symbols(number, block, _) => (number, block),
        }
    }
}

/// Number of requests under way from which no others are made.
const REQUESTED_MAX: usize = 4_096;
/// Maximum number of needs in a NACK, more than a segment holds.
const NEEDS_MAX: usize = 1_024;

impl Source {
    /// Notes the point that the sender has reached. A new block or object is an occasion for a NACK.
    pub(super) fn reach(&mut self, now: Instant, position: Position, shared: &mut Shared<'_>) {
        if core::mem::replace(&mut self.position, position) != position {
            self.occasion(now, shared);
        }
    }

    /// Returns the random delay before an answer that those of other receivers may make superfluous (RFC 5401 3.2.2).
    pub(super) fn random_backoff(&self, rng: &mut Rng) -> Duration {
        let longest = self.grtt.as_secs_f64() * f64::from(self.backoff_factor);
        if longest == 0.0 {
            return Duration::ZERO;
        }
        let lambda = libm::log(self.group_size as f64) + 1.0;
        let x = rng.unit() * lambda / longest + lambda / (longest * (libm::exp(lambda) - 1.0));
        let backoff = longest / lambda * libm::log(x * (libm::exp(lambda) - 1.0) * longest / lambda);
        Duration::from_secs_f64(backoff.clamp(0.0, longest))
    }

    /// Begins a NACK if anything is missing, and none was sent just before.
    ///
    /// Receivers of a group hold back all requests for some time after a NACK (RFC 5740 5.3). The only receiver holds back only those
    /// that it has sent, because nobody else answers.
    pub(super) fn occasion(&mut self, now: Instant, shared: &mut Shared<'_>) {
        if shared.is_silent() || self.due.nack || self.timers.get(Timer::Backoff as usize).is_some() {
            return;
        }
        if self.backoff_factor > 0 && self.timers.get(Timer::Holdoff as usize).is_some() {
            self.is_wanted = true;
            return;
        }
        self.is_wanted = false;
        if self.requested.len() >= REQUESTED_MAX {
            self.forget_lapsed(now);
        }
        if self.requested.len() >= REQUESTED_MAX || self.needs(now).next().is_none() {
            return;
        }
        self.others.clear();
        self.other_objects.clear();
        let wait = self.random_backoff(shared.rng);
        if wait.is_zero() {
            self.due.nack = true;
        } else {
            self.timers.set(Timer::Backoff as usize, now + wait);
        }
    }

    /// Time in which a request is not repeated: that of the answer, and of the random delay of other receivers.
    pub(super) fn holdoff(&self) -> Duration {
        let holdoff = match self.backoff_factor {
            0 => self.grtt * 5 / 4,
            factor => self.grtt * (u32::from(factor) + 2),
        };
        holdoff.max(HOLDOFF_MIN)
    }

    /// Returns the end of the blocks of an object that the sender has passed, and of a stream the number of symbols of the next one of
    /// which it has asked whether they have arrived.
    fn passed(&self, number: u64, incoming: &Incoming) -> (u32, u16) {
        let (Position { block, symbols, .. }, end) = (self.position, incoming.end());
        if number < self.position.object { end } else { (block, symbols).min(end) }
    }

    /// Returns what is missing of all that the sender has passed and that is not requested already, in ascending order.
    fn needs(&self, now: Instant) -> impl Iterator<Item = Need> {
        // The object before the first provokes a SQUELCH, which tells where the sender's objects begin.
        let first = if self.is_first_known { self.first } else { self.first - 1 };
        let holdoff = self.holdoff();
        let is_held =
            move |need: &Need| self.requested.get(&need.key()).is_some_and(|at| now < *at + holdoff);
        let all = (first..=self.position.object).flat_map(|number| {
            let incoming = self.objects.get(&number);
            let object = incoming.is_none().then(|| self.is_missing(number).then_some(Need::Object(number)));
            let parts = incoming.map(|incoming| self.needs_of(number, incoming));
            object.flatten().into_iter().chain(parts.into_iter().flatten())
        });
        all.filter(move |need| !is_held(need)).take(NEEDS_MAX)
    }

    /// Returns true if nothing of an object has arrived that the sender has passed.
    fn is_missing(&self, number: u64) -> bool {
        let is_passed = number < self.position.object || self.position.block == u32::MAX;
        is_passed
            && !self.objects.contains_key(&number)
            && !self.done.contains(&number)
            && !self.ignored.contains(&number)
    }

    fn needs_of<'a>(&'a self, number: u64, incoming: &'a Incoming) -> impl Iterator<Item = Need> + 'a {
        let is_refused = matches!(incoming.progress, Progress::Refused(_));
        let lacks_info = !is_refused && incoming.info.is_none() && incoming.flags.has(Flags::INFO);
        let is_receiving = incoming.progress == Progress::Receiving;
        let (end, symbols) = if is_receiving { self.passed(number, incoming) } else { (0, 0) };
        let lacking = (incoming.next_block..end).filter(|block| !incoming.has_block(*block));
        let of_last = if symbols > 0 { incoming.lacking_of(end, symbols) } else { SymbolSet::EMPTY };
        let last = (!of_last.is_empty()).then_some(Need::Symbols(number, end, of_last));
        let of_block = move |block| match incoming.lacking(block) {
            None => Need::Block(number, block),
            Some(symbols) => Need::Symbols(number, block, symbols),
        };
        lacks_info.then_some(Need::Info(number)).into_iter().chain(lacking.map(of_block)).chain(last)
    }

    /// Returns the requests for what is missing, as many as a segment holds, and notes them.
    pub(super) fn requests(&mut self, now: Instant, bytes_max: usize) -> Vec<RepairRequest> {
        let latest = self.objects.values().next_back();
        let scheme = latest.map_or(FecScheme::default(), |incoming| incoming.scheme);
        let segment_bytes = latest.map_or(SEGMENT_BYTES, |incoming| incoming.fti.segment_bytes);
        let mut list = RequestList::new(usize::from(segment_bytes).min(bytes_max));
        let needs: Vec<Need> = self.needs(now).collect();
        let mut at = 0;
        let mut noted = 0;
        while at < needs.len() && !list.is_full() {
            // Needs that continue each other are a range.
            let continues = |(before, next): (&Need, &Need)| match (before, next) {
                (Need::Object(before), Need::Object(next)) => *next == before + 1,
                (Need::Block(of, before), Need::Block(same, next)) => of == same && *next == before + 1,
                _ => false,
            };
            let run = needs[at..].iter().zip(&needs[at + 1..]).take_while(|pair| continues(*pair)).count();
            match (needs[at], needs[at + run]) {
                (Need::Object(first), Need::Object(last)) => list.objects(scheme, first as u16, last as u16),
                (Need::Info(number), _) => list.info(self.object_id(number)),
                (Need::Block(number, first), Need::Block(_, last)) => {
                    let partition = self.objects[&number].partition;
                    list.blocks(self.object_id(number), first, last, |block| partition.block_symbols(block));
                }
                (Need::Symbols(number, block, symbols), _) => {
                    let sources = self.objects[&number].partition.block_symbols(block);
                    list.symbols(self.object_id(number), block, sources, &symbols);
                }
                _ => unreachable!("a run has one kind"),
            }
            at += run + 1;
            if !list.is_full() {
                noted = at;
            }
        }
        if self.backoff_factor == 0 {
            self.forget_lapsed(now);
            self.requested.extend(needs[..noted].iter().map(|need| (need.key(), now)));
        }
        list.into_requests()
    }

    /// Forgets the requests that may be repeated.
    fn forget_lapsed(&mut self, now: Instant) {
        let holdoff = self.holdoff();
        self.requested.retain(|_, requested_at| now < *requested_at + holdoff);
    }

    fn object_id(&self, number: u64) -> ObjectId {
        ObjectId { scheme: self.objects[&number].scheme, object: number as u16 }
    }

    /// Notes the requests of other receivers.
    pub(in crate::norm) fn hear_requests(&mut self, requests: &[RepairRequest]) {
        if self.timers.get(Timer::Backoff as usize).is_none() {
            return;
        }
        for request in requests {
            let is_range = request.form == RepairForm::Ranges;
            let pairs: Vec<_> = match is_range {
                true => request.items.chunks_exact(2).map(|ends| (ends[0], ends[1])).collect(),
                false => request.items.iter().map(|item| (*item, *item)).collect(),
            };
            for (first, last) in pairs {
                let Some((start, end)) = self.extend(first.object).zip(self.extend(last.object)) else {
                    continue;
                };
                if request.levels.has(Levels::OBJECT) {
                    let wanted = start.max(self.first - 1)..=end.min(self.position.object);
                    self.other_objects.extend(wanted);
                } else if start == end && request.levels.has(Levels::BLOCK) {
                    let blocks =
                        first.id.block..=last.id.block.min(first.id.block.saturating_add(OTHERS_MAX as u32));
                    for block in blocks {
                        self.other(start, block).is_whole = true;
                    }
                } else if start == end
                    && first.id.block == last.id.block
                    && request.levels.has(Levels::SEGMENT)
                {
                    let symbols = SymbolSet::range(first.id.symbol..last.id.symbol.saturating_add(1));
                    let other = self.other(start, first.id.block);
                    other.symbols.extend(&symbols);
                    other.count = other.symbols.len();
                }
            }
        }
    }

    fn other(&mut self, number: u64, block: u32) -> &mut Request {
        if self.others.len() >= OTHERS_MAX {
            self.others.pop_last();
        }
        self.others.entry((number, block)).or_default()
    }

    /// Returns true if other receivers have requested all that is missing here.
    pub(super) fn is_suppressed(&self, now: Instant) -> bool {
        let is_whole = |number, block| self.others.get(&(number, block)).is_some_and(|other| other.is_whole);
        self.needs(now).all(|need| {
            let is_requested = match need {
                Need::Object(_) | Need::Info(_) => false,
                Need::Block(number, block) => is_whole(number, block),
                Need::Symbols(number, block, symbols) => {
                    let other = self.others.get(&(number, block)).copied().unwrap_or_default();
                    // New parity symbols serve all receivers that lack as many.
                    other.is_whole
                        || symbols.without(&other.symbols).is_empty()
                        || symbols.len() <= other.count
                }
            };
            is_requested || self.other_objects.contains(&need.key().0)
        })
    }
}
