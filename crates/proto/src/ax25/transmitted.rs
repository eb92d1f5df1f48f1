//! Upper bound on the frames that can have left, independent of any report.
//!
//! A controller may report a frame as transmitted when it has only accepted it, or report nothing. But a frame
//! certainly needs the time of its bits on the channel, and a half-duplex station that receives a frame was silent for
//! its duration. These two facts give a bound. The position of a frame is the time on the channel of everything passed
//! down up to its end.

use super::config::RadioParameters;
use crate::time::{Duration, Instant};

/// The bound and the times that it depends on.
#[derive(Debug, Default)]
pub(super) struct TransmittedBound {
    /// Time on the channel of everything passed down.
    handed: Duration,
    /// Part of it that may have left by `since`; the rest could not leave before.
    gone: Duration,
    since: Instant,
    /// Part of it that may have left in gaps long enough for a key-up.
    keyed: Duration,
    /// End of the last received frame, or time from which there was again something to send.
    quiet_since: Instant,
}

/// Returns the minimum time of a frame on the channel: without stuffing, with one flag.
fn least(radio: &RadioParameters, bytes: usize) -> Duration {
    Duration::from_nanos(8 * (bytes as u64 + 3) * 1_000_000_000 / u64::from(radio.rate_bps.max(1)))
}

impl TransmittedBound {
    /// Notes a frame that is passed down. Returns its position.
    pub(super) fn hand(&mut self, now: Instant, radio: &RadioParameters, bytes: usize) -> Duration {
        if self.gone(now) == self.handed {
            (self.gone, self.since) = (self.handed, now);
        }
        if self.keyed == self.handed {
            self.quiet_since = now;
        }
        self.handed += least(radio, bytes);
        self.handed
    }

    /// Returns the position up to which frames may have left.
    pub(super) fn gone(&self, now: Instant) -> Duration {
        (self.gone + now.saturating_since(self.since)).min(self.handed)
    }

    /// Notes a frame that was received to its end. Returns the position up to which output may have left when it began.
    pub(super) fn heard(&mut self, now: Instant, radio: &RadioParameters, bytes: usize) -> Duration {
        let before = now.saturating_since(self.since).saturating_sub(least(radio, bytes));
        let gone = (self.gone + before).min(self.handed);
        if !radio.full_duplex && gone < self.handed {
            (self.gone, self.since) = (gone, now);
        }
        gone
    }

    /// Notes a frame that was received to its end. Returns the position up to which output may have left before it if
    /// no station keys up and down in less than TXDELAY. There is no gap between the frames of one key-up, but a host
    /// receives them a little late, and does not know how many bits were stuffed.
    pub(super) fn keyed(&mut self, now: Instant, radio: &RadioParameters, bytes: usize) -> Duration {
        let gap = now.saturating_since(self.quiet_since).saturating_sub(least(radio, bytes));
        if radio.full_duplex || gap >= radio.tx_delay {
            self.keyed = (self.keyed + gap).min(self.handed);
        }
        self.quiet_since = now;
        self.keyed
    }

    /// Returns the time by which the frame with this position has left in most cases if nothing more is received;
    /// `None` if it may have left already.
    pub(super) fn leaves_by(&self, radio: &RadioParameters, place: Duration) -> Option<Instant> {
        let waits = place.checked_sub(self.gone).filter(|waits| !waits.is_zero())?;
        // A sixteenth for stuffed bits.
        Some(self.since + radio.access() + waits + waits / 16)
    }

    /// Notes that nothing passed down is still waiting.
    pub(super) fn forget(&mut self) {
        (self.gone, self.keyed) = (self.handed, self.handed);
    }
}
