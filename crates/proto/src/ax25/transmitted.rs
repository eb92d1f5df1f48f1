//! What of the frames handed down can have left by now, whatever is said of them.
//!
//! A controller may say that a frame has left when it has merely taken it, or say nothing. What nobody can change is that a
//! frame needs its bits' time on the air, and that a half-duplex station that hears a frame was silent as long as that
//! frame lasted. From these two a bound follows. A frame's place is the air time of all that was handed down up to its end.

use super::config::RadioParameters;
use crate::time::{Duration, Instant};

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct TransmittedBound {
    /// Air time of all that was handed down.
    handed: Duration,
    /// What of it may have left by `since`, before which the rest had no chance.
    gone: Duration,
    since: Instant,
    /// The part of it that may have left in gaps long enough for a key-up.
    keyed: Duration,
    /// The end of what was heard last, or when there was something to send again.
    quiet_since: Instant,
}

/// What a frame of so many bytes takes at least: nothing stuffed, one flag.
fn least(radio: &RadioParameters, bytes: usize) -> Duration {
    Duration::from_nanos(8 * (bytes as u64 + 3) * 1_000_000_000 / u64::from(radio.rate_bps.max(1)))
}

impl TransmittedBound {
    /// A frame is handed down: its place.
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

    /// The place up to which frames may have left.
    pub(super) fn gone(&self, now: Instant) -> Duration {
        (self.gone + now.saturating_since(self.since)).min(self.handed)
    }

    /// A frame was heard to its end: the place up to which frames may have left when it began.
    pub(super) fn heard(&mut self, now: Instant, radio: &RadioParameters, bytes: usize) -> Duration {
        let before = now.saturating_since(self.since).saturating_sub(least(radio, bytes));
        let gone = (self.gone + before).min(self.handed);
        if !radio.full_duplex && gone < self.handed {
            (self.gone, self.since) = (gone, now);
        }
        gone
    }

    /// A frame was heard to its end: the place up to which frames may have left before it, as long as nobody keys up and down
    /// in less than TXDELAY. Between the frames of one key-up there is no gap, but a host hears them a little late, and does
    /// not know how many bits were stuffed.
    pub(super) fn keyed(&mut self, now: Instant, radio: &RadioParameters, bytes: usize) -> Duration {
        let gap = now.saturating_since(self.quiet_since).saturating_sub(least(radio, bytes));
        if radio.full_duplex || gap >= radio.tx_delay {
            self.keyed = (self.keyed + gap).min(self.handed);
        }
        self.quiet_since = now;
        self.keyed
    }

    /// When the frame with this place has left in most cases, if nothing more is heard; none: before what is known last.
    pub(super) fn leaves_by(&self, radio: &RadioParameters, place: Duration) -> Option<Instant> {
        let waits = place.checked_sub(self.gone).filter(|waits| !waits.is_zero())?;
        // A sixteenth for stuffed bits.
        Some(self.since + radio.access() + waits + waits / 16)
    }

    /// Nothing that was handed down waits any more.
    pub(super) fn forget(&mut self) {
        (self.gone, self.keyed) = (self.handed, self.handed);
    }
}
