//! Monitoring of a channel: frames of any link, decoded with the modulo of their link, and the windows that senders
//! really use.
//!
//! A frame does not contain the modulo of its link. It is known from SABM and SABME, if they were received, and from
//! the length of supervisory frames; otherwise it is guessed from the position of a protocol identifier.

use super::address::{Address, Callsign};
use super::frame::{Control, Frame, Modulo, Unnumbered};
use crate::codec::DecodeError;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Maximum number of directions of links that are remembered.
const WAYS_MAX: usize = 1024;

/// A frame that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitoredFrame {
    /// The decoded frame.
    pub frame: Frame,
    /// Modulo of its link, known or guessed.
    pub modulo: Modulo,
    /// Position in its burst, from 1, of an I frame received directly from its sender. A burst ends with a frame of the
    /// other side, and with P; `None` if neither is received and there are more frames than can be in flight.
    pub burst: Option<u32>,
    /// Number of I frames that the sender of such a frame has in flight with it, as far as the peer's acknowledgement
    /// was received.
    pub outstanding: Option<u32>,
}

/// Number of bursts for each number of I frames.
pub type Windows = BTreeMap<u32, u64>;

/// One direction of a link.
#[derive(Debug, Default)]
struct LinkDirection {
    modulo: Option<Modulo>,
    /// Last N(R) of the peer.
    awaited: Option<u8>,
    /// Last N(S) of this burst, and number of its frames.
    burst: Option<(u8, u32)>,
    /// True after P, until a frame of the peer.
    asked: bool,
    /// True after more frames than can be in flight without a received answer: the number in flight is unknown.
    unanswered: bool,
}

/// Monitor of all frames of a channel.
#[derive(Debug, Default)]
pub struct ChannelMonitor {
    ways: BTreeMap<(Callsign, Callsign), LinkDirection>,
    windows: BTreeMap<Callsign, Windows>,
}

impl ChannelMonitor {
    /// Creates a monitor without any state.
    pub fn new() -> Self {
        ChannelMonitor::default()
    }

    /// Handles a frame without flags and check sequence, as from a TNC.
    ///
    /// # Errors
    /// Fails if the bytes are not a valid frame.
    pub fn hear(&mut self, mut bytes: Bytes) -> Result<MonitoredFrame, DecodeError> {
        let address = Address::decode(&mut bytes)?;
        let there = (address.source, address.destination);
        let known = self.ways.get(&there).and_then(|way| way.modulo);
        let modulo = known.unwrap_or_else(|| Modulo::of_unknown(&bytes));
        let frame = Frame::decode_behind(address, bytes, modulo)?;
        let mut heard = MonitoredFrame { frame, modulo, burst: None, outstanding: None };
        // Digipeaters send duplicates.
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

    /// Ends the burst of the other side, and notes the acknowledgement.
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
                *self.way(key) =
                    LinkDirection { modulo: known, awaited: Some(0), ..LinkDirection::default() };
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
        // A sender that goes back begins a new burst: the answer was not received, or there was none.
        if self.way(there).burst.is_some_and(|(last, _)| repeats(last)) {
            self.end_burst(there);
        }
        // A polling sender waits for the answer. If that is not received, as at the TNC that sends it, its N(R) is
        // unknown.
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
            // There are at most as many senders as directions.
            if self.windows.len() < WAYS_MAX || self.windows.contains_key(&key.0) {
                *self.windows.entry(key.0).or_default().entry(count).or_default() += 1;
            }
        }
    }

    /// Returns the windows of each sender, including unfinished bursts.
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
