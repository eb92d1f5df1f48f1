//! A hostile third party: an uninvited neighbour of a node. It occupies storage with bundles that never become
//! complete, and forges fragments of bundles that it has observed, so that they contradict the true ones. It cannot
//! forge a complete bundle of another source: without signatures such a bundle is indistinguishable from a true one.

use super::Draw;
use crate::bp::{
    Bundle, BundleFlags, CreationTimestamp, DecodePolicy, DtnTime, Fragment, Head, PrimaryBlock, decode_head,
};
use crate::engine::{Engine, Indication, Request};
use crate::rng::Rng;
use crate::service::{
    Both, Bpa, BpaIndication, BpaRequest, Bundles, BundlesIndication, BundlesRequest, LinkId, Many, Port,
    Storage, TransferId,
};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::VecDeque;

/// Link of the hostile peer to each node.
const LINK: LinkId = LinkId(LinkId::FIRST_INCOMING + 1_000);
/// Lifetime of its bundles, longer than any run.
const LIFETIME_MS: u64 = 30 * 86_400_000;
/// Maximum number of observed bundles that are remembered.
const SEEN_MAX: usize = 8;
/// Maximum number of bytes remembered per bundle.
const SEEN_BYTES: usize = 30;
/// Maximum number of bundles that are interrupted.
const INTERRUPTED_MAX: u64 = 20;
/// Time between two actions in immediate succession.
const BREATH: Duration = Duration::from_millis(1);

type Below = Both<Storage, Many<LinkId, Bundles>>;

/// Strategy of a hostile peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostileStrategy {
    /// Acts now and then, on any bundle observed.
    Slow,
    /// Occupies as much of a node's storage as it can at once, and then interrupts.
    Fills,
    /// Forges fragments of bundles for a node while they arrive.
    Interrupts,
}

/// Observed bundle.
#[derive(Clone)]
struct ObservedBundle {
    head: Head,
    /// First bytes of its payload.
    begins: Bytes,
}

/// A node with a hostile peer.
pub(crate) struct WithHostilePeer<A> {
    agent: A,
    rng: Rng,
    /// Name of the attacked node.
    node: String,
    now_dtn_ms: u64,
    seen: VecDeque<ObservedBundle>,
    /// Prepared indications, passed one at a time.
    says: VecDeque<BundlesIndication>,
    at: Instant,
    now: Instant,
    up: VecDeque<BpaIndication>,
    transfers: u64,
    left: u64,
    manner: HostileStrategy,
    /// Remaining number of bundles to interrupt.
    interrupts: u64,
    /// Maximum time without an action.
    pause: Duration,
}

impl<A: Engine<Above = Bpa, Below = Below>> WithHostilePeer<A> {
    pub(crate) fn new(
        agent: A,
        mut rng: Rng,
        node: String,
        now_dtn_ms: u64,
        manner: HostileStrategy,
    ) -> Self {
        let up = BundlesIndication::Up {
            peer: Some("dtn://mallory/".into()),
            interleave: true,
            transfer_bytes_max: u64::MAX,
        };
        let (left, pause_ms) = match manner {
            HostileStrategy::Slow => (rng.between(20, 150), if rng.chance(0.5) { 200 } else { 4_000 }),
            HostileStrategy::Fills => (rng.between(100, 300), 20),
            HostileStrategy::Interrupts => (0, 20),
        };
        WithHostilePeer {
            agent,
            left,
            manner,
            interrupts: if manner == HostileStrategy::Slow { 0 } else { INTERRUPTED_MAX },
            pause: Duration::from_millis(pause_ms),
            rng,
            node,
            now_dtn_ms,
            seen: VecDeque::new(),
            says: [up].into(),
            at: Instant::ZERO,
            now: Instant::ZERO,
            up: VecDeque::new(),
            transfers: 0,
        }
    }

    /// Remembers a bundle that begins in these data.
    fn watch(&mut self, now: Instant, data: &Bytes) {
        if let Ok((head, length)) = decode_head(data, &DecodePolicy::STRICT) {
            let begins = data.slice(length..data.len().min(length + SEEN_BYTES));
            let seen = ObservedBundle { head, begins };
            let is_for_here = seen.head.primary.destination.to_string().starts_with(&self.node);
            if self.manner != HostileStrategy::Slow && !is_for_here {
                // Forged fragments that are forwarded would count against this node at the next one.
                return;
            }
            if self.interrupts > 0 {
                self.interrupts -= 1;
                self.at = self.at.min(now + BREATH);
                self.interrupt(seen.clone());
            }
            if self.seen.len() >= SEEN_MAX {
                self.seen.pop_front();
            }
            self.seen.push_back(seen);
        }
    }

    /// Sends fragments of a bundle that has just begun to arrive.
    fn interrupt(&mut self, seen: ObservedBundle) {
        if self.rng.chance(0.6) {
            self.crumble(seen.clone());
        }
        for _ in 0..self.rng.below(3) {
            self.contradict(seen.head.clone());
        }
    }

    /// Performs one more action.
    fn say(&mut self, now: Instant) {
        if self.says.is_empty() && self.left > 0 {
            self.left -= 1;
            self.forge(now);
        }
        let Some(said) = self.says.pop_front() else { return };
        let longest = if self.says.is_empty() { self.pause } else { BREATH };
        self.at = now + self.rng.span(Duration::ZERO, longest);
        self.agent.handle_indication(now, Port::Second((LINK, said)));
    }

    fn forge(&mut self, now: Instant) {
        let known = self.rng.below(SEEN_MAX as u64) as usize;
        match self.seen.get(known).cloned() {
            Some(seen) if self.rng.chance(0.7) => self.contradict(seen.head),
            _ => self.take_a_place(now),
        }
    }

    /// Sends a fragment of an observed bundle that contradicts the others.
    fn contradict(&mut self, mut head: Head) {
        let total = head.primary.fragment.map_or(head.payload.length, |fragment| fragment.total_length);
        let length = self.rng.between(1, 40);
        let mut offset = self.rng.below(total.max(1));
        let is_record = head.primary.flags.contains(BundleFlags::ADMINISTRATIVE_RECORD);
        // Otherwise its source would receive reports about it.
        head.primary.flags = BundleFlags::NONE;
        let mut claimed = offset + length + 1 + self.rng.below(3_000);
        match self.rng.below(4) {
            0 if total > length + 1 => {
                // The correct length, for another destination.
                head.primary.destination = format!("{}elsewhere", self.node).parse().expect("an endpoint");
                (claimed, offset) = (total, offset.min(total - length - 1));
            }
            1 if total > length + 1 => {
                head.primary.flags |= BundleFlags::ADMINISTRATIVE_RECORD;
                (claimed, offset) = (total, offset.min(total - length - 1));
            }
            _ if claimed == total => claimed += 1,
            _ => {}
        }
        head.primary.fragment = Some(Fragment { offset, total_length: claimed });
        if is_record || self.rng.chance(0.5) {
            head.primary.lifetime_ms = LIFETIME_MS;
        }
        self.transfer(head, forged(length), false);
    }

    /// Sends true fragments of an observed bundle, of one byte each, to use up all fragments that its payload may have.
    fn crumble(&mut self, ObservedBundle { mut head, begins }: ObservedBundle) {
        let (from, total_length) =
            head.primary.fragment.map_or((0, head.payload.length), |part| (part.offset, part.total_length));
        let is_record = head.primary.flags.contains(BundleFlags::ADMINISTRATIVE_RECORD);
        head.primary.flags = if is_record { BundleFlags::ADMINISTRATIVE_RECORD } else { BundleFlags::NONE };
        for at in 0..begins.len().min(head.payload.length as usize) {
            let mut head = head.clone();
            head.primary.fragment = Some(Fragment { offset: from + at as u64, total_length });
            self.transfer(head, begins.slice(at..=at), false);
        }
    }

    /// Sends the beginning of a payload that never arrives, or a bundle without a destination.
    fn take_a_place(&mut self, now: Instant) {
        let sequence = self.rng.next_u64() >> 20;
        let time = DtnTime(self.now_dtn_ms + now.as_nanos() / 1_000_000);
        let nowhere = self.rng.chance(0.3);
        let destination = if nowhere { "dtn://nowhere/x".into() } else { format!("{}in", self.node) };
        let endpoint = |text: &str| text.parse().expect("an endpoint");
        let timestamp = CreationTimestamp { time, sequence };
        let primary =
            PrimaryBlock::new(endpoint(&destination), endpoint("dtn://mallory/x"), timestamp, LIFETIME_MS);
        let mut head = Head::new(primary, 0);
        let breaks = self.rng.chance(0.2);
        if !nowhere && !breaks {
            head.primary.fragment = Some(Fragment { offset: self.rng.below(50), total_length: 5_000 });
        }
        let length = if breaks { self.rng.between(2, 3_000) } else { 1 };
        self.transfer(head, forged(length), breaks);
    }

    fn transfer(&mut self, mut head: Head, payload: Bytes, breaks: bool) {
        self.transfers += 1;
        let transfer = TransferId(self.transfers);
        let length = payload.len() as u64;
        head.payload.length = length;
        let mut data = Bundle::new(head, payload).to_bytes();
        self.says.push_back(BundlesIndication::Begin { transfer, length: None });
        if breaks {
            // The payload is followed by its checksum and the end of the bundle.
            let kept = data.len() - 7 - self.rng.between(0, length - 2) as usize;
            data.truncate(kept);
            self.says.push_back(BundlesIndication::Piece { transfer, data, last: false });
            self.says.push_back(BundlesIndication::Lost { transfer });
        } else {
            self.says.push_back(BundlesIndication::Piece { transfer, data, last: true });
        }
    }
}

fn forged(length: u64) -> Bytes {
    vec![0x5a; length as usize].into()
}

/// Returns true if the indication belongs to this transfer.
fn is_of(said: &BundlesIndication, of: TransferId) -> bool {
    match said {
        BundlesIndication::Begin { transfer, .. }
        | BundlesIndication::Piece { transfer, .. }
        | BundlesIndication::Lost { transfer } => *transfer == of,
        _ => false,
    }
}

impl<A: Engine<Above = Bpa, Below = Below>> Engine for WithHostilePeer<A> {
    type Above = Bpa;
    type Below = Below;

    fn handle_request(&mut self, now: Instant, request: BpaRequest) {
        self.agent.handle_request(now, request);
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Below>) {
        if let Port::Second((_, BundlesIndication::Piece { data, .. })) = &indication {
            self.watch(now, data);
        }
        self.agent.handle_indication(now, indication);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        if self.agent.poll_timeout().is_some_and(|at| at <= now) {
            self.agent.handle_timeout(now);
        } else if self.at <= now {
            self.say(now);
        }
    }

    fn poll_indication(&mut self, now: Instant) -> Option<BpaIndication> {
        self.up.pop_front().or_else(|| self.agent.poll_indication(now))
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Below>> {
        loop {
            match self.agent.poll_request(now)? {
                // It stops a transfer that is refused, and ignores other requests; pending indications come first.
                Port::Second((LINK, said)) => {
                    if let BundlesRequest::Refuse { transfer, .. } = said {
                        self.says.retain(|other| !is_of(other, transfer));
                    }
                    self.up.extend(core::iter::from_fn(|| self.agent.poll_indication(now)));
                }
                request => return Some(request),
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let says = (self.left > 0 || !self.says.is_empty()).then_some(self.at.max(self.now));
        crate::joint::earlier(self.agent.poll_timeout(), says)
    }
}
