//! Incoming bundles: bytes received, bytes stored, and packets that have been processed.

use super::config::Config;
use super::outgoing::Violation;
use super::wire::Message;
use crate::service::{BundlesIndication, RefuseReason, TransferId};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug)]
struct Inbound {
    transfer: TransferId,
    length: u64,
    received: u64,
    /// True after the last piece has gone up.
    whole: bool,
    accepted: u64,
    told: u64,
    /// End of the bytes of each packet in the bundle, and the number of that packet.
    parts: VecDeque<(u64, u64)>,
}

/// Fraction of `progress_bytes` at the end of a bundle for which no progress is sent, because the complete bundle is
/// acknowledged soon. A progress makes the sender, in the middle of its data, stop for an answer, which costs a
/// turnaround of the channel.
const NEAR: u64 = 4;

/// The incoming bundles of a session, with the answers owed to the peer.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    /// Open bundles by their numbers on the link.
    open: BTreeMap<u64, Inbound>,
    numbers: BTreeMap<TransferId, u64>,
    /// Number of bundles that have begun.
    begun: u64,
    latest: Option<u64>,
    /// Packets of this link that are not fully processed, with the number of their open parts.
    packets: BTreeMap<u64, u32>,
    next_packet: u64,
    /// Packets processed, to be released.
    pub(super) release: u64,
    /// Answers to the peer.
    pub(super) answers: VecDeque<Message>,
}

impl Incoming {
    /// Returns true if a bundle has begun and is unanswered.
    pub(super) fn is_under_way(&self) -> bool {
        !self.open.is_empty() || !self.answers.is_empty()
    }

    /// Returns true if a complete bundle has arrived and its answer is owed.
    pub(super) fn owes(&self) -> bool {
        !self.answers.is_empty() || self.open.values().any(|open| open.whole)
    }

    /// Begins a packet, which is held until its contents are processed.
    pub(super) fn begin_packet(&mut self) -> u64 {
        self.next_packet += 1;
        self.packets.insert(self.next_packet, 1);
        self.next_packet
    }

    /// Notes that one part of a packet is processed, or that the packet has been read.
    pub(super) fn part_done(&mut self, packet: u64) {
        let Some(parts) = self.packets.get_mut(&packet) else { return };
        *parts -= 1;
        if *parts == 0 {
            self.packets.remove(&packet);
            self.release += 1;
        }
    }

    /// Drops the packets of a link that is down.
    pub(super) fn unlink(&mut self) {
        self.packets.clear();
        self.release = 0;
    }

    /// Adds bytes of a bundle. `fresh` is the ID for a new one. Returns true if a new bundle is refused.
    pub(super) fn data(
        &mut self,
        begins: Option<u64>,
        number: Option<u64>,
        data: Bytes,
        (packet, fresh): (u64, TransferId),
        config: &Config,
        up: &mut VecDeque<BundlesIndication>,
    ) -> Result<bool, Violation> {
        let mut refused = false;
        if let Some(length) = begins {
            let number = self.begun;
            self.begun += 1;
            self.latest = Some(number);
            if length > config.transfer_mru || self.open.len() >= config.transfers_max {
                self.answers.push_back(Message::Refuse { number, reason: RefuseReason::NoResources });
                refused = true;
            } else {
                let parts = VecDeque::new();
                let inbound = Inbound {
                    transfer: fresh,
                    length,
                    received: 0,
                    whole: false,
                    accepted: 0,
                    told: 0,
                    parts,
                };
                self.open.insert(number, inbound);
                self.numbers.insert(fresh, number);
                up.push_back(BundlesIndication::Begin { transfer: fresh, length: Some(length) });
            }
        }
        if number.is_some() {
            self.latest = number;
        }
        let number = self.latest.filter(|number| *number < self.begun).ok_or(Violation)?;
        // Bytes of a refused bundle may still arrive.
        let Some(open) = self.open.get_mut(&number) else { return Ok(refused) };
        let received = open.received.checked_add(data.len() as u64);
        let received = received.filter(|received| *received <= open.length).ok_or(Violation)?;
        let empty = data.is_empty() && (open.length > 0 || begins.is_none());
        if empty {
            return Err(Violation);
        }
        open.received = received;
        if !data.is_empty() {
            open.parts.push_back((open.received, packet));
            *self.packets.get_mut(&packet).expect("it is being read") += 1;
        }
        open.whole = open.received == open.length;
        let (transfer, last) = (open.transfer, open.whole);
        up.push_back(BundlesIndication::Piece { transfer, data, last });
        Ok(refused)
    }

    /// Notes that the user has stored the beginning of a bundle. Returns true if that is the complete bundle: its
    /// answer justifies a frame at once.
    ///
    /// # Panics
    /// Panics if fewer bytes have been received.
    pub(super) fn accept(&mut self, transfer: TransferId, up_to: u64, progress_bytes: u64) -> bool {
        let Some(&number) = self.numbers.get(&transfer) else { return false };
        let open = self.open.get_mut(&number).expect("numbers are of open bundles");
        assert!(up_to <= open.received, "accepted {up_to} of {} received bytes", open.received);
        open.accepted = open.accepted.max(up_to);
        let safe = open.parts.iter().take_while(|(end, _)| *end <= up_to).count();
        let packets: Vec<u64> = open.parts.drain(..safe).map(|(_, packet)| packet).collect();
        let whole = open.whole && open.accepted == open.length;
        if whole {
            self.open.remove(&number);
            self.numbers.remove(&transfer);
            self.answers.push_back(Message::Whole { number });
        } else if open.accepted - open.told >= progress_bytes
            && open.length - open.accepted > progress_bytes / NEAR
        {
            open.told = open.accepted;
            self.answers.push_back(Message::Progress { number, up_to: open.told });
        }
        packets.into_iter().for_each(|packet| self.part_done(packet));
        whole
    }

    /// Refuses a bundle for the user. Returns false if the bundle is over.
    pub(super) fn refuse(&mut self, transfer: TransferId, reason: RefuseReason) -> bool {
        let Some(&number) = self.numbers.get(&transfer) else { return false };
        self.answers.push_back(Message::Refuse { number, reason });
        self.forget(number);
        true
    }

    /// Handles the cancellation of a bundle by the peer. A bundle that has arrived completely is still answered by the
    /// user.
    pub(super) fn cancelled(&mut self, number: u64) -> Result<Option<BundlesIndication>, Violation> {
        if number >= self.begun {
            return Err(Violation);
        }
        let Some(open) = self.open.get(&number).filter(|open| !open.whole) else {
            return Ok(None);
        };
        let transfer = open.transfer;
        self.forget(number);
        Ok(Some(BundlesIndication::Lost { transfer }))
    }

    fn forget(&mut self, number: u64) {
        let Some(open) = self.open.remove(&number) else { return };
        self.numbers.remove(&open.transfer);
        open.parts.into_iter().for_each(|(_, packet)| self.part_done(packet));
    }

    /// Ends the session: incomplete bundles are lost.
    pub(super) fn lose_all(&mut self) -> impl Iterator<Item = BundlesIndication> + use<> {
        let open = core::mem::take(self).open;
        open.into_values()
            .filter(|open| !open.whole)
            .map(|open| BundlesIndication::Lost { transfer: open.transfer })
    }
}
