//! UI frames of a station: datagrams without a link (4.3.3.6).

use super::address::Callsign;
use super::station::{KNOWN_MAX, LEAVING_FRAMES_MAX, UNCONNECTED_MAX};
use crate::peers::Senders;
use crate::service::{DatagramsIndication, DatagramsRequest, LinkId, PeerId, Shares};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Maximum unreleased bytes of received UI frames for each destination; more are lost.
const UNRELEASED_BYTES_MAX: u64 = 64 * 1024;

/// UI frame that waits for the channel.
#[derive(Debug)]
pub(super) struct WaitingDatagram {
    /// Destination, by the ID of its user.
    pub(super) id: LinkId,
    /// Sender that is answered; `None` for the destination itself.
    pub(super) to: Option<Callsign>,
    pub(super) bytes: Bytes,
    pub(super) shares: Shares,
    /// Token for the report of the transmission.
    pub(super) token: Option<u64>,
}

/// Reason for which a message about UI frames is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dropped {
    /// The destination is not joined, or the receiver is forgotten.
    Late,
    /// Too many bytes are unreleased.
    Overflow,
}

/// Datagrams of all destinations of UI frames.
#[derive(Debug)]
pub(super) struct UnconnectedFrames {
    waiting: VecDeque<WaitingDatagram>,
    /// Stations whose UI frames were received, other than configured ones.
    senders: Senders<Callsign>,
    /// Unreleased bytes of received UI frames for each joined destination.
    unreleased_bytes: BTreeMap<LinkId, u64>,
    announced_room: BTreeMap<LinkId, u64>,
    /// Frames whose transmission is unreported: their destination, and the token of its user.
    tokens: BTreeMap<u64, (LinkId, u64)>,
    indications: VecDeque<(LinkId, DatagramsIndication)>,
}

impl UnconnectedFrames {
    pub(super) fn new() -> Self {
        UnconnectedFrames {
            waiting: VecDeque::new(),
            senders: Senders::new(KNOWN_MAX),
            unreleased_bytes: BTreeMap::new(),
            announced_room: BTreeMap::new(),
            tokens: BTreeMap::new(),
            indications: VecDeque::new(),
        }
    }

    /// Returns the number of frames that wait for the channel.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of frames whose report of transmission is outstanding.
    pub(super) fn leaving(&self) -> usize {
        self.tokens.len()
    }

    /// Returns the number of remembered senders.
    pub(super) fn known(&self) -> usize {
        self.senders.len()
    }

    /// Returns the length of the next frame's information field; 0 if no frame waits.
    pub(super) fn next_bytes(&self) -> u64 {
        self.waiting.front().map_or(0, |datagram| datagram.bytes.len() as u64)
    }

    pub(super) fn pop(&mut self) -> Option<WaitingDatagram> {
        self.waiting.pop_front()
    }

    /// Handles a request of the user of a destination, whose frames have at most `bytes_max` bytes of information.
    pub(super) fn request(
        &mut self,
        id: LinkId,
        bytes_max: u64,
        request: DatagramsRequest,
    ) -> Result<(), Dropped> {
        match request {
            // The channel drops damaged frames.
            DatagramsRequest::Join { damaged: _ } => {
                self.unreleased_bytes.insert(id, 0);
                // The address of a group looks like that of a station.
                let configured = Some(PeerId::CONFIGURED);
                self.tell(id, DatagramsIndication::Joined { bytes_max, peer: configured, group: configured });
                self.announced_room.insert(id, 0);
            }
            DatagramsRequest::Leave => self.leave(id),
            DatagramsRequest::Datagram { to, bytes, shares, token } => {
                let room = self.announced_room.get_mut(&id).ok_or(Dropped::Late)?;
                assert!(*room > 0, "a datagram for {id:?} without room");
                *room -= 1;
                let sender = self.senders.address(to).copied();
                if sender.is_none() && to != PeerId::CONFIGURED {
                    token
                        .into_iter()
                        .for_each(|token| self.tell(id, DatagramsIndication::Transmitted(token)));
                    return Err(Dropped::Late);
                }
                self.waiting.push_back(WaitingDatagram { id, to: sender, bytes, shares, token });
            }
            DatagramsRequest::Release(bytes) => {
                if let Some(unreleased) = self.unreleased_bytes.get_mut(&id) {
                    *unreleased = unreleased.saturating_sub(bytes);
                }
            }
        }
        Ok(())
    }

    /// Removes all of a destination.
    pub(super) fn leave(&mut self, id: LinkId) {
        self.unreleased_bytes.remove(&id);
        self.announced_room.remove(&id);
        self.waiting.retain(|datagram| datagram.id != id);
        self.tokens.retain(|_, (other, _)| *other != id);
    }

    /// Handles a received frame; `from` is the sender of a frame to a group, and `None` if the configured station sent
    /// the frame to this one.
    pub(super) fn hear(&mut self, id: LinkId, from: Option<Callsign>, bytes: Bytes) -> Result<(), Dropped> {
        let unreleased = self.unreleased_bytes.get_mut(&id).ok_or(Dropped::Late)?;
        if *unreleased >= UNRELEASED_BYTES_MAX {
            return Err(Dropped::Overflow);
        }
        *unreleased += bytes.len() as u64;
        let peer = from.map_or(PeerId::CONFIGURED, |from| self.senders.hear(&from));
        let to_group = from.is_some();
        self.tell(id, DatagramsIndication::Datagram { from: peer, to_group, bytes, damaged: false });
        Ok(())
    }

    /// Remembers the user of the frame with this token, whose own token is `token`.
    pub(super) fn follow(&mut self, frame: u64, id: LinkId, token: u64) {
        self.tokens.insert(frame, (id, token));
        if self.tokens.len() > LEAVING_FRAMES_MAX
            && let Some((_, (id, token))) = self.tokens.pop_first()
        {
            // Reports of transmissions are missing: this frame left long ago.
            self.tell(id, DatagramsIndication::Transmitted(token));
        }
    }

    /// Handles the report that the frame with this token has left.
    pub(super) fn left(&mut self, frame: u64) {
        if let Some((id, token)) = self.tokens.remove(&frame) {
            self.tell(id, DatagramsIndication::Transmitted(token));
        }
    }

    /// Handles the connection or loss of the link to the controller; frames in a lost one have no report.
    pub(super) fn carrier(&mut self, carrier: bool) {
        if !carrier {
            for (id, token) in core::mem::take(&mut self.tokens).into_values() {
                self.tell(id, DatagramsIndication::Transmitted(token));
            }
        }
        let joined = self.announced_room.keys();
        self.indications.extend(joined.map(|id| (*id, DatagramsIndication::Carrier(carrier))));
    }

    pub(super) fn tell(&mut self, id: LinkId, indication: DatagramsIndication) {
        self.indications.push_back((id, indication));
    }

    pub(super) fn poll_indication(&mut self) -> Option<(LinkId, DatagramsIndication)> {
        if let Some(indication) = self.indications.pop_front() {
            return Some(indication);
        }
        let room = (UNCONNECTED_MAX - self.waiting.len().min(UNCONNECTED_MAX)) as u64;
        let (id, announced) = self.announced_room.iter_mut().find(|(_, announced)| **announced != room)?;
        *announced = room;
        Some((*id, DatagramsIndication::Room(room)))
    }
}
