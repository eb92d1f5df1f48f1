//! Packets that wait to leave, and files that wait to be read for them. The peers of an endpoint take turns, so that one with
//! many packets does not delay the others.

use super::endpoint::{Due, Key};
use super::sending::Ready;
use crate::service::PeerId;
use bytes::Bytes;
use core::ops::Bound::{Excluded, Unbounded};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum number of answers that wait to leave, to all peers; a peer repeats its question.
const ANSWERS_MAX: usize = 1024;

/// Packet that leaves next.
#[derive(Debug)]
pub(super) enum Next {
    /// Answer without a session.
    Answer(PeerId, Bytes),
    /// STATUS of a file that is received.
    Status(Key),
    /// Packet of a session.
    Due(Due),
    /// Bytes of a file.
    Data(Key, Ready),
}

/// Answer or STATUS, which share the rate of the way back.
#[derive(Debug)]
enum Reply {
    Answer(Bytes),
    Status(Key),
}

/// Packets for a peer.
#[derive(Debug, Default)]
struct Queue {
    replies: VecDeque<Reply>,
    /// Number of answers among the replies.
    answers: usize,
    due: BTreeSet<Due>,
    ready: VecDeque<(Key, Ready)>,
    /// Files with holes to fill, which take turns.
    fills: BTreeSet<Key>,
    /// File whose hole was read last.
    filled: Option<Key>,
    /// Files with new content, oldest first.
    fresh: VecDeque<Key>,
}

impl Queue {
    fn is_empty(&self) -> bool {
        !self.has_packet(true) && self.to_read().is_none()
    }

    fn has_packet(&self, may_reply: bool) -> bool {
        (may_reply && !self.replies.is_empty()) || !self.due.is_empty() || !self.ready.is_empty()
    }

    fn next(&mut self, peer: PeerId, may_reply: bool) -> Option<Next> {
        let reply = if may_reply { self.replies.pop_front() } else { None };
        match reply {
            Some(Reply::Answer(bytes)) => {
                self.answers -= 1;
                Some(Next::Answer(peer, bytes))
            }
            Some(Reply::Status(key)) => Some(Next::Status(key)),
            None => match self.due.pop_first() {
                Some(due) => Some(Next::Due(due)),
                None => self.ready.pop_front().map(|(key, ready)| Next::Data(key, ready)),
            },
        }
    }

    /// Returns the file to read next: holes are filled before new content leaves.
    fn to_read(&self) -> Option<Key> {
        let after = self.filled.and_then(|last| self.fills.range((Excluded(last), Unbounded)).next());
        after.or(self.fills.first()).or(self.fresh.front()).copied()
    }
}

/// Packets for all peers.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Peers for which something waits.
    peers: BTreeMap<PeerId, Queue>,
    /// Peer to which the last packet went.
    sent_to: PeerId,
    /// Peer for which content was read last.
    read_for: PeerId,
    /// Number of packets with bytes of files.
    ready: usize,
    /// Number of answers.
    answers: usize,
}

impl Waiting {
    pub(super) fn new() -> Self {
        let (sent_to, read_for) = (PeerId::CONFIGURED, PeerId::CONFIGURED);
        Waiting { peers: BTreeMap::new(), sent_to, read_for, ready: 0, answers: 0 }
    }

    /// Returns the number of packets with bytes of files.
    pub(super) fn ready(&self) -> usize {
        self.ready
    }

    fn of(&mut self, peer: PeerId) -> &mut Queue {
        self.peers.entry(peer).or_default()
    }

    fn clean(&mut self, peer: PeerId) {
        if self.peers.get(&peer).is_some_and(Queue::is_empty) {
            self.peers.remove(&peer);
        }
    }

    /// Returns the peer after another one, in turn, whose queue has something.
    fn turn(&self, last: PeerId, has: impl Fn(&Queue) -> bool) -> Option<PeerId> {
        let after = self.peers.range((Excluded(last), Unbounded));
        let mut all = after.chain(self.peers.range(..=last));
        all.find(|(_, queue)| has(queue)).map(|(peer, _)| *peer)
    }

    // -- Packets ------------------------------------------------------------------------------------------------

    /// Removes and returns the next packet; replies only if the rate of the way back permits them.
    pub(super) fn next(&mut self, may_reply: bool) -> Option<Next> {
        let peer = self.turn(self.sent_to, |queue| queue.has_packet(may_reply))?;
        self.sent_to = peer;
        let next = self.of(peer).next(peer, may_reply);
        self.ready -= usize::from(matches!(next, Some(Next::Data(..))));
        self.answers -= usize::from(matches!(next, Some(Next::Answer(..))));
        self.clean(peer);
        next
    }

    pub(super) fn add_due(&mut self, due: Due) {
        self.of(due.key().0).due.insert(due);
    }

    pub(super) fn remove_due(&mut self, due: Due) {
        self.of(due.key().0).due.remove(&due);
        self.clean(due.key().0);
    }

    /// Adds an answer. Once there are as many as may be, it takes the place of the last one to the peer with most of them. Returns
    /// the number of answers that are dropped.
    pub(super) fn add_answer(&mut self, to: PeerId, bytes: Bytes) -> u64 {
        let own = self.peers.get(&to).map_or(0, |queue| queue.answers);
        let is_full = self.answers >= ANSWERS_MAX;
        if is_full {
            let most = self.peers.iter_mut().max_by_key(|(_, queue)| queue.answers);
            let Some((_, queue)) = most.filter(|(_, queue)| queue.answers > own + 1) else { return 1 };
            let last = queue.replies.iter().rposition(|reply| matches!(reply, Reply::Answer(_)));
            queue.replies.remove(last.expect("it has the most answers"));
            queue.answers -= 1;
            self.answers -= 1;
        }
        self.answers += 1;
        let queue = self.of(to);
        queue.answers += 1;
        queue.replies.push_back(Reply::Answer(bytes));
        u64::from(is_full)
    }

    /// Adds the STATUS of a file, which must not wait already.
    pub(super) fn add_status(&mut self, key: Key) {
        self.of(key.0).replies.push_back(Reply::Status(key));
    }

    pub(super) fn remove_status(&mut self, key: Key) {
        self.of(key.0).replies.retain(|reply| !matches!(reply, Reply::Status(other) if *other == key));
        self.clean(key.0);
    }

    /// Removes the answers to all peers.
    pub(super) fn remove_answers(&mut self) {
        self.answers = 0;
        for queue in self.peers.values_mut() {
            queue.answers = 0;
            queue.replies.retain(|reply| matches!(reply, Reply::Status(_)));
        }
        self.peers.retain(|_, queue| !queue.is_empty());
    }

    pub(super) fn add_ready(&mut self, key: Key, ready: Ready) {
        self.ready += 1;
        self.of(key.0).ready.push_back((key, ready));
    }

    // -- Contents -----------------------------------------------------------------------------------------------

    /// Lists a file among those with holes to fill, or with new content.
    pub(super) fn add_content(&mut self, key: Key, has_fill: bool, has_new: bool) {
        let queue = self.of(key.0);
        if has_fill {
            queue.fills.insert(key);
        }
        if has_new && !queue.fresh.contains(&key) {
            queue.fresh.push_back(key);
        }
        self.clean(key.0);
    }

    /// Returns the file to read next.
    pub(super) fn to_read(&self) -> Option<Key> {
        let peer = self.turn(self.read_for, |queue| queue.to_read().is_some())?;
        self.peers.get(&peer)?.to_read()
    }

    /// Ends the turn of a file that was read, and says whether it has more content.
    pub(super) fn was_read(&mut self, key: Key, has_fill: bool, has_new: bool) {
        self.read_for = key.0;
        let queue = self.of(key.0);
        if queue.fills.contains(&key) {
            queue.filled = Some(key);
        }
        if !has_fill {
            queue.fills.remove(&key);
        }
        if !has_new {
            queue.fresh.retain(|other| *other != key);
        }
        self.clean(key.0);
    }

    /// Removes a file that is sent, with the packets that are ready.
    pub(super) fn remove_content(&mut self, key: Key) {
        let queue = self.of(key.0);
        let before = queue.ready.len();
        queue.fills.remove(&key);
        queue.fresh.retain(|other| *other != key);
        queue.ready.retain(|(other, _)| *other != key);
        let removed = before - queue.ready.len();
        self.ready -= removed;
        self.clean(key.0);
    }
}
