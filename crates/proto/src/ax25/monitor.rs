//! Listening to others: frames of any link, read as their link has them, and how large the windows are that it really uses.
//!
//! A frame does not say whether its link counts to 8 or to 128: that is known from SABM and SABME, if they were heard, from the
//! length of supervisory frames, and else guessed from where a protocol identifier is.

use super::address::{Address, Callsign};
use super::frame::{Control, Frame, Modulo, Unnumbered};
use crate::codec::DecodeError;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Directions of links of which something is remembered.
const WAYS_MAX: usize = 1024;

/// A frame that was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitoredFrame {
    /// The frame.
    pub frame: Frame,
    /// How far the numbers of its link count, as far as it is known.
    pub modulo: Modulo,
    /// Of an I frame that comes from its sender itself: which one of its burst it is, from 1. A burst ends when the other side
    /// is heard, and with P; none where neither is and there are more frames than may be on their way.
    pub burst: Option<u32>,
    /// Of such a frame: I frames that its sender has out with it, as far as the peer's acknowledgement was heard.
    pub outstanding: Option<u32>,
}

/// How often bursts had so many I frames.
pub type Windows = BTreeMap<u32, u64>;

/// One direction of a link.
#[derive(Debug, Default)]
struct LinkDirection {
    modulo: Option<Modulo>,
    /// What the peer waits for (its last N(R)).
    awaited: Option<u8>,
    /// The last number that was sent in this burst, and how many.
    burst: Option<(u8, u32)>,
    /// The peer was asked to answer, and was not heard since.
    asked: bool,
    /// More frames than may be on their way, and nobody was heard to answer: what this side has out is not known.
    unanswered: bool,
}

/// Hears all frames of a channel.
#[derive(Debug, Default)]
pub struct ChannelMonitor {
    ways: BTreeMap<(Callsign, Callsign), LinkDirection>,
    windows: BTreeMap<Callsign, Windows>,
}

impl ChannelMonitor {
    /// Nothing heard yet.
    pub fn new() -> Self {
        ChannelMonitor::default()
    }

    /// A frame without flags and check sequence, as a TNC gives it.
    ///
    /// # Errors
    /// It is none.
    pub fn hear(&mut self, mut bytes: Bytes) -> Result<MonitoredFrame, DecodeError> {
        let address = Address::decode(&mut bytes)?;
        let there = (address.source, address.destination);
        let known = self.ways.get(&there).and_then(|way| way.modulo);
        let modulo = known.unwrap_or_else(|| Modulo::of_unknown(&bytes));
        let frame = Frame::decode_behind(address, bytes, modulo)?;
        let mut heard = MonitoredFrame { frame, modulo, burst: None, outstanding: None };
        // Digipeaters say everything once more.
        if heard.frame.address.path.iter().any(|hop| hop.repeated) {
            return Ok(heard);
        }
        self.peer_speaks(&heard);
        if let Control::Information { send, .. } = heard.frame.control {
            self.information(there, &mut heard, send);
            self.way(there).asked = heard.frame.control.poll_final();
        }
        Ok(heard)
    }

    /// What one side says ends the other's burst, and says how far it has come.
    fn peer_speaks(&mut self, heard: &MonitoredFrame) {
        let (source, destination) = (heard.frame.address.source, heard.frame.address.destination);
        let back = (destination, source);
        self.end_burst(back);
        let known = match heard.frame.control {
            Control::Unnumbered { function: Unnumbered::SetMode, .. } => Some(Modulo::Eight),
            Control::Unnumbered { function: Unnumbered::SetModeExtended, .. } => Some(Modulo::Extended),
            Control::Supervisory { .. } => Some(heard.modulo),
            _ => None,
        };
        let opens = matches!(
            heard.frame.control,
            Control::Unnumbered { function: Unnumbered::SetMode | Unnumbered::SetModeExtended, .. }
        );
        for key in [(source, destination), back] {
            if opens {
                self.end_burst(key);
                *self.way(key) = LinkDirection { modulo: known, awaited: Some(0), ..LinkDirection::default() };
            } else if known.is_some() {
                self.way(key).modulo = known;
            }
        }
        if let Control::Supervisory { receive, .. } | Control::Information { receive, .. } =
            heard.frame.control
        {
            let way = self.way(back);
            (way.awaited, way.unanswered) = (Some(receive), false);
        }
        if let Some(way) = self.ways.get_mut(&back) {
            way.asked = false;
        }
    }

    fn information(&mut self, there: (Callsign, Callsign), heard: &mut MonitoredFrame, send: u8) {
        let modulo = heard.modulo;
        let repeats =
            |last: u8| modulo.distance(last, send) == 0 || modulo.distance(last, send) > modulo.count() / 2;
        // Who goes back begins anew: the answer was not heard, or there was none.
        if self.way(there).burst.is_some_and(|(last, _)| repeats(last)) {
            self.end_burst(there);
        }
        // The asker waits for the answer. Where that is not heard, as at the TNC that gives it, nobody knows what it said.
        if self.way(there).asked {
            self.end_burst(there);
            self.way(there).awaited = None;
        }
        let way = self.way(there);
        let count = way.burst.map_or(1, |(_, count)| count + 1);
        if way.unanswered || count >= u32::from(modulo.count()) {
            (way.unanswered, way.burst, way.awaited) = (true, None, None);
            return;
        }
        way.burst = Some((send, count));
        heard.burst = Some(count);
        heard.outstanding = way.awaited.map(|awaited| u32::from(modulo.distance(awaited, send)) + 1);
    }

    fn way(&mut self, key: (Callsign, Callsign)) -> &mut LinkDirection {
        if self.ways.len() >= WAYS_MAX && !self.ways.contains_key(&key) {
            let first = self.ways.keys().next().copied();
            first.into_iter().for_each(|first| {
                self.end_burst(first);
                self.ways.remove(&first);
            });
        }
        self.ways.entry(key).or_default()
    }

    fn end_burst(&mut self, key: (Callsign, Callsign)) {
        if let Some((_, count)) = self.ways.get_mut(&key).and_then(|way| way.burst.take()) {
            // As many senders as there are directions, at most.
            if self.windows.len() < WAYS_MAX || self.windows.contains_key(&key.0) {
                *self.windows.entry(key.0).or_default().entry(count).or_default() += 1;
            }
        }
    }

    /// The windows that each sender used, bursts that are not over included.
    pub fn windows(&self) -> BTreeMap<Callsign, Windows> {
        let mut windows = self.windows.clone();
        for ((sender, _), way) in &self.ways {
            if let Some((_, count)) = way.burst {
                *windows.entry(*sender).or_default().entry(count).or_default() += 1;
            }
        }
        windows
    }
}
