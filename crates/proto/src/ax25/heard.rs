//! Stations that a station has heard, by the callsigns that their frames claim.

use super::address::{Address, Callsign};
use super::frame::{Control, Frame, Modulo, Unnumbered};
use crate::kit::RecencyMap;
use crate::time::Instant;
use bytes::Bytes;

/// Maximum number of stations; the one that was not heard for the longest time goes.
pub(super) const HEARD_MAX: usize = 256;
/// Maximum length of a text that is kept, bytes.
const TEXT_BYTES_MAX: usize = 256;

/// A station that was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeardStation {
    /// Time of the first frame.
    pub first: Instant,
    /// Time of the last frame.
    pub last: Instant,
    /// Number of frames, including those that digipeaters repeated.
    pub frames: u64,
    /// Digipeater from which the last frame was heard; `None` if it was heard directly.
    pub via: Option<Callsign>,
    /// Text of the last UI frame that contains nothing but text, such as a beacon or an identification; at most 256 bytes,
    /// without control characters.
    pub text: Option<String>,
}

/// All stations that were heard.
#[derive(Debug, Default)]
pub(super) struct HeardStations {
    /// Hearing a station is a use of its entry.
    stations: RecencyMap<Callsign, HeardStation>,
}

impl HeardStations {
    /// Returns all stations by callsign.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Callsign, &HeardStation)> {
        self.stations.iter().map(|(callsign, heard)| (*callsign, heard))
    }

    pub(super) fn len(&self) -> usize {
        self.stations.len()
    }

    /// Notes a frame; `behind` is what follows its addresses.
    pub(super) fn note(&mut self, now: Instant, address: &Address, behind: &Bytes) {
        let heard = match self.stations.use_value(&address.source) {
            Some(heard) => heard,
            None => {
                if self.stations.len() >= HEARD_MAX {
                    self.stations.pop_oldest();
                }
                let first = HeardStation { first: now, last: now, frames: 0, via: None, text: None };
                self.stations.insert(address.source, first)
            }
        };
        heard.last = now;
        heard.frames += 1;
        heard.via = address.path.iter().rev().find(|hop| hop.repeated).map(|hop| hop.station);
        if let Some(text) = text_of(address, behind) {
            heard.text = Some(text);
        }
    }
}

/// Returns the text of a UI frame; `None` for other frames, and if anything in it is not text.
fn text_of(address: &Address, behind: &Bytes) -> Option<String> {
    let frame = Frame::decode_behind(address.clone(), behind.clone(), Modulo::Eight).ok()?;
    let Control::Unnumbered { function: Unnumbered::Information, .. } = frame.control else { return None };
    let text = core::str::from_utf8(&frame.information).ok()?;
    // Ends of lines are usual, other control characters are data, or an attack on a terminal.
    let text = text.trim_end_matches(['\r', '\n', '\0']).replace(['\r', '\n', '\t'], " ");
    let is_text = !text.is_empty() && !text.chars().any(|char| char.is_control() || is_invisible(char));
    is_text.then(|| {
        let end = (0..=TEXT_BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        text[..end.unwrap_or(0)].to_owned()
    })
}

/// True for characters that change the direction or the appearance of others.
fn is_invisible(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
