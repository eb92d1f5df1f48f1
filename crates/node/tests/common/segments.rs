//! Monitor of two stations: which segments of bundles are acknowledged, and which of those are resent.

use bytes::Bytes;
use longwire_proto::ax25::{ChannelMonitor, Control, Modulo, Unnumbered};
use std::collections::{BTreeMap, BTreeSet};

/// Shorter packets are answers and greetings, which may be alike; segments of a bundle are longer, and all different.
const SEGMENT_BYTES: usize = 64;

/// Transmissions of one side.
#[derive(Clone, Default)]
struct Way {
    /// Unacknowledged segments by sequence number.
    sent: BTreeMap<u8, Bytes>,
    /// Segments that the peer has acknowledged, over all links.
    acknowledged: BTreeSet<Bytes>,
    /// Number of acknowledged segments that were resent.
    again: usize,
    /// Number of I frames.
    information: usize,
}

/// Two stations, by their numbers 0 and 1.
#[derive(Default)]
pub(crate) struct Segments {
    watcher: ChannelMonitor,
    ways: [Way; 2],
    links: usize,
}

impl Segments {
    /// Handles a frame on the channel: its segment, and its acknowledgement.
    pub(crate) fn hear(&mut self, at: usize, bytes: &Bytes) {
        let heard = self.watcher.hear(bytes.clone()).expect("nodes send frames of AX.25");
        match heard.frame.control {
            Control::Unnumbered { function: Unnumbered::SetMode | Unnumbered::SetModeExtended, .. } => {
                self.links += 1;
                self.ways.iter_mut().for_each(|way| way.sent.clear());
            }
            Control::Unnumbered { .. } => {}
            Control::Supervisory { receive, .. } => self.ways[1 - at].acknowledge(receive, heard.modulo),
            Control::Information { send, receive, .. } => {
                self.ways[1 - at].acknowledge(receive, heard.modulo);
                self.ways[at].carry(send, heard.frame.information);
            }
        }
    }

    /// Segments resent although their acknowledgement had been sent, by side.
    pub(crate) fn again(&self) -> [usize; 2] {
        [0, 1].map(|at: usize| self.ways[at].again)
    }

    /// Acknowledged segments, by side.
    pub(crate) fn acknowledged(&self) -> [usize; 2] {
        [0, 1].map(|at: usize| self.ways[at].acknowledged.len())
    }

    /// I frames of both sides.
    pub(crate) fn information(&self) -> usize {
        self.ways.iter().map(|way| way.information).sum()
    }

    /// Requested links.
    pub(crate) fn calls(&self) -> usize {
        self.links
    }
}

impl Way {
    fn carry(&mut self, number: u8, information: Bytes) {
        self.information += 1;
        self.again += usize::from(self.acknowledged.contains(&information));
        self.sent.insert(number, information);
    }

    /// The peer expects this sequence number next.
    fn acknowledge(&mut self, awaited: u8, modulo: Modulo) {
        // At most half of the sequence numbers, or a whole window of seven, are outstanding.
        let most = (modulo.count() / 2).max(7);
        let before = |number: &u8| (1..=most).contains(&modulo.distance(*number, awaited));
        let done: Vec<u8> = self.sent.keys().copied().filter(before).collect();
        for number in done {
            let information = self.sent.remove(&number).expect("just seen");
            if information.len() >= SEGMENT_BYTES {
                self.acknowledged.insert(information);
            }
        }
    }
}
