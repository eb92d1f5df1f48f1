//! What two stations say to each other, heard from outside: which segments of bundles are acknowledged, and which of those
//! are sent again.

use bytes::Bytes;
use longwire_proto::ax25::{ChannelMonitor, Control, Modulo, Unnumbered};
use std::collections::{BTreeMap, BTreeSet};

/// Shorter packets are answers and greetings, which may be alike; segments of a bundle are longer, and all different.
const SEGMENT_BYTES: usize = 64;

/// What one side has sent.
#[derive(Clone, Default)]
struct Way {
    /// By sequence number, what is not acknowledged.
    sent: BTreeMap<u8, Bytes>,
    /// Segments that the peer has acknowledged, over all links.
    acknowledged: BTreeSet<Bytes>,
    /// Of these, how many were sent once more.
    again: usize,
    /// I frames.
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
    /// A frame that is heard on the channel: what it carries, and what it acknowledges.
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

    /// Segments that were sent again though their acknowledgement had gone back, by side.
    pub(crate) fn again(&self) -> [usize; 2] {
        [0, 1].map(|at: usize| self.ways[at].again)
    }

    /// Segments that were acknowledged, by side.
    pub(crate) fn acknowledged(&self) -> [usize; 2] {
        [0, 1].map(|at: usize| self.ways[at].acknowledged.len())
    }

    /// I frames of both sides.
    pub(crate) fn information(&self) -> usize {
        self.ways.iter().map(|way| way.information).sum()
    }

    /// Links that were asked for.
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

    /// The peer waits for this number.
    fn acknowledge(&mut self, awaited: u8, modulo: Modulo) {
        // Half of the numbers or a whole window of eight at the most are on their way.
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
