//! Callers over packets whose convergence layer is unknown until their first packet, where peers may call with several.

use crate::media::{MediaIndication, MediaRequest};
use longwire_proto::service::{LinkId, PacketsIndication, PacketsRequest};
use longwire_proto::time::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// Maximum time between the connection and the first packet of a caller that no carrier takes without one.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// A caller without a first packet.
#[derive(Debug)]
struct HeldCaller {
    connected: PacketsIndication,
    /// Packet sizes, if reported since.
    sizes: Option<PacketsIndication>,
    room: u64,
    /// Time at which the link is given to the carrier that takes silent callers, or closed.
    until: Instant,
    /// True while the link is being closed.
    ending: bool,
}

/// Callers that are held.
#[derive(Debug, Default)]
pub(crate) struct HeldCallers {
    callers: BTreeMap<LinkId, HeldCaller>,
    requests: VecDeque<(LinkId, PacketsRequest)>,
}

impl HeldCallers {
    /// Returns true if the caller is held.
    pub(crate) fn has(&self, link: LinkId) -> bool {
        self.callers.contains_key(&link)
    }

    /// Holds a caller that has connected, for this time without a packet.
    pub(crate) fn hold(
        &mut self,
        now: Instant,
        link: LinkId,
        connected: PacketsIndication,
        silence_max: Option<Duration>,
    ) {
        let until = now + silence_max.unwrap_or(SILENCE_MAX);
        self.callers.insert(link, HeldCaller { connected, sizes: None, room: 0, until, ending: false });
    }

    /// Hears a held caller. Returns its first packet.
    pub(crate) fn hear<'a>(&mut self, link: LinkId, said: &'a PacketsIndication) -> Option<&'a [u8]> {
        let held = self.callers.get_mut(&link)?;
        match said {
            PacketsIndication::Packet(packet) if !held.ending => return Some(packet),
            PacketsIndication::Sizes { .. } => held.sizes = Some(said.clone()),
            PacketsIndication::Room(room) => held.room = *room,
            PacketsIndication::Closed(_) => drop(self.callers.remove(&link)),
            _ => {}
        }
        None
    }

    /// Ends a caller for which there is no place.
    pub(crate) fn turn_away(&mut self, link: LinkId) {
        if let Some(held) = self.callers.get_mut(&link) {
            held.ending = true;
            self.requests.push_back((link, PacketsRequest::Abort));
        }
    }

    /// Releases a caller, and returns what it has said so far.
    pub(crate) fn release(&mut self, link: LinkId) -> impl Iterator<Item = MediaIndication> + use<> {
        let held = self.callers.remove(&link);
        let said =
            held.map(|held| [Some(held.connected), held.sizes, Some(PacketsIndication::Room(held.room))]);
        said.into_iter().flatten().flatten().map(MediaIndication::Packets)
    }

    /// Callers that have been silent for too long.
    pub(crate) fn silent(&self, now: Instant) -> Vec<LinkId> {
        let silent = self.callers.iter().filter(|(_, held)| held.until <= now && !held.ending);
        silent.map(|(link, _)| *link).collect()
    }

    /// Closes the link of a caller.
    pub(crate) fn close(&mut self, link: LinkId) {
        if let Some(held) = self.callers.get_mut(&link) {
            held.ending = true;
            self.requests.push_back((link, PacketsRequest::Close));
        }
    }

    pub(crate) fn poll_request(&mut self) -> Option<(LinkId, MediaRequest)> {
        let (link, request) = self.requests.pop_front()?;
        Some((link, MediaRequest::Packets(request)))
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.callers.values().filter(|held| !held.ending).map(|held| held.until).min()
    }
}
