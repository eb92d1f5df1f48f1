//! What a station holds, and the most that it ever does.

use super::config::{Config, LinkConfig};
use super::receive::information_bytes_heard_max;
use super::segment;
use super::station::{KNOWN_MAX, LEAVING_FRAMES_MAX, REPEATED_MAX, UNCONNECTED_MAX, WAITING_MAX};

/// What a station holds at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Links, those included that are closed and have answers waiting for the channel.
    pub links: usize,
    /// Frames of no link, answers and frames to repeat that wait for the channel.
    pub waiting_frames: usize,
    /// Bytes of information fields: to be sent, not acknowledged, come too early, or of packets that are not whole.
    pub information_bytes: u64,
    /// Frames of which it waits to be told that they have left.
    pub leaving_frames: usize,
    /// Stations of which something is remembered.
    pub known: usize,
}

impl Occupancy {
    /// The most that a station of this configuration ever holds: twice its links; for each a window of packets as long as
    /// they may be, a window of frames that came early, and a packet that is not whole; what waits for the channel has
    /// limits of its own. Packets that rose are their user's, and no more than `unreleased_max` of each link.
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
            leaving_frames: LEAVING_FRAMES_MAX,
            known: 3 * KNOWN_MAX + WAITING_MAX,
        }
    }

    /// None of it is more than in the other.
    pub fn within(&self, limits: &Occupancy) -> bool {
        self.links <= limits.links
            && self.waiting_frames <= limits.waiting_frames
            && self.information_bytes <= limits.information_bytes
            && self.leaving_frames <= limits.leaving_frames
            && self.known <= limits.known
    }
}
