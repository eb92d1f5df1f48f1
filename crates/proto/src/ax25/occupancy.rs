//! The memory that a station uses, and its limits.

use super::config::{Config, LinkConfig};
use super::heard::HEARD_MAX;
use super::receive::information_bytes_heard_max;
use super::segment;
use super::station::{KNOWN_MAX, LEAVING_FRAMES_MAX, REPEATED_MAX, UNCONNECTED_MAX, WAITING_MAX};

/// Amounts that a station holds at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Links, including closed ones whose answers wait for the channel.
    pub links: usize,
    /// Frames of no link, answers and frames to repeat that wait for the channel.
    pub waiting_frames: usize,
    /// Bytes of information fields: unsent, unacknowledged, out of order, or of incomplete packets.
    pub information_bytes: u64,
    /// Frames whose report of transmission is outstanding.
    pub leaving_frames: usize,
    /// Stations that are remembered.
    pub known: usize,
}

impl Occupancy {
    /// Returns the limits for a station with these settings: twice its links; for each a window of packets of maximum
    /// length, a window of frames out of order, and an incomplete packet. Frames that wait for the channel have limits
    /// of their own. Packets passed up belong to the user; a link has at most `unreleased_max` of them.
    pub fn limits(config: &Config) -> Self {
        let links = 2 * config.links_max + 1;
        let kinds = config.peers.values().map(|peer| &peer.link).chain(&config.callers);
        let most = |link: &LinkConfig| {
            let packet = |field| u64::from(segment::packet_bytes_max(field)) + 256;
            let heard = information_bytes_heard_max(link);
            let window = u64::from(link.window_frames.max(link.extended_window_frames));
            2 * window * packet(link.information_bytes_max) + packet(heard) + window * u64::from(heard)
        };
        let information_bytes = links as u64 * kinds.map(most).max().unwrap_or(0);
        Occupancy {
            links,
            waiting_frames: REPEATED_MAX + UNCONNECTED_MAX,
            information_bytes,
            leaving_frames: 2 * LEAVING_FRAMES_MAX,
            known: 4 * KNOWN_MAX + WAITING_MAX + HEARD_MAX,
        }
    }

    /// Returns true if no amount exceeds that in `limits`.
    pub fn within(&self, limits: &Occupancy) -> bool {
        self.links <= limits.links
            && self.waiting_frames <= limits.waiting_frames
            && self.information_bytes <= limits.information_bytes
            && self.leaving_frames <= limits.leaving_frames
            && self.known <= limits.known
    }
}
