//! Texts in UI frames of other stations, in which nodes announce themselves.

use bytes::Bytes;
use longwire_proto::ax25::{Address, Callsign, Control, Frame, Modulo, Unnumbered, pid};
use std::collections::VecDeque;

/// Maximum number of texts that wait to be read; the oldest goes.
const WAITING_MAX: usize = 16;

/// Text that a station has sent to all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeardText {
    pub(crate) from: Callsign,
    pub(crate) text: Bytes,
}

/// Texts that wait to be read.
#[derive(Debug, Default)]
pub(crate) struct HeardTexts(VecDeque<HeardText>);

impl HeardTexts {
    /// Adds the text of a received frame, if it has one. A station that is heard through a digipeater cannot be called without
    /// its path, and is left out.
    pub(super) fn received(&mut self, bytes: &Bytes) {
        let mut behind = bytes.clone();
        let Ok(address) = Address::decode(&mut behind) else { return };
        if address.path.iter().any(|hop| hop.repeated) {
            return;
        }
        let from = address.source;
        let Ok(frame) = Frame::decode_behind(address, behind, Modulo::Eight) else { return };
        let is_text = matches!(frame.control, Control::Unnumbered { function: Unnumbered::Information, .. })
            && frame.pid == pid::NONE;
        if is_text {
            if self.0.len() >= WAITING_MAX {
                self.0.pop_front();
            }
            self.0.push_back(HeardText { from, text: frame.information });
        }
    }

    /// Takes all texts.
    pub(super) fn take(&mut self) -> VecDeque<HeardText> {
        std::mem::take(&mut self.0)
    }
}
