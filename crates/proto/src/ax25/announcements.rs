//! Frames that a station sends by itself: its identification after transmissions, and a beacon.
//!
//! ```text
//!              first frame            interval, or the last link has ended
//!   identified ------------> to be identified ------------------------------> due ---- sent: identified
//! ```
//!
//! Both are UI frames without digipeaters: to `ID`, and to `BEACON`. The identification is sent only if the station has
//! transmitted since the last one; a beacon, which names the station itself, does not count.

use super::address::{Address, Callsign, CommandResponse};
use super::config::RadioParameters;
use super::frame::{Control, Frame, Modulo, Unnumbered, pid};
use crate::joint::earlier;
use crate::time::{Duration, Instant};
use bytes::Bytes;

/// Maximum time from the start to the first beacon.
const FIRST_BEACON: Duration = Duration::from_secs(60);

/// Maximum time by which an identification is due before its interval is over.
const MARGIN_MAX: Duration = Duration::from_secs(60);

/// Text that a station sends at intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Information field of the frame; at most 256 bytes.
    pub text: Bytes,
    /// Interval. Of identifications: maximum time from a transmission to the next one.
    pub interval: Duration,
}

/// Frames sent by a station itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnnouncementCounts {
    /// Identifications.
    pub identifications_sent: u64,
    /// Beacons.
    pub beacons_sent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Identification,
    Beacon,
}

/// State of the announcements of a station.
#[derive(Debug)]
pub(super) struct Announcements {
    identification: Option<Announcement>,
    beacon: Option<Announcement>,
    /// Times at which they are due; `None` if they are due already, or not to be sent.
    identify_at: Option<Instant>,
    beacon_at: Option<Instant>,
    identification_due: bool,
    beacon_due: bool,
    pub(super) counts: AnnouncementCounts,
}

impl Announcements {
    pub(super) fn new(identification: Option<Announcement>, beacon: Option<Announcement>) -> Self {
        Announcements {
            identification,
            beacon,
            identify_at: None,
            beacon_at: None,
            identification_due: false,
            beacon_due: false,
            counts: AnnouncementCounts::default(),
        }
    }

    /// Notes that the station has joined its channel.
    pub(super) fn joined(&mut self, now: Instant) {
        self.beacon_at = self.beacon.as_ref().map(|beacon| now + beacon.interval.min(FIRST_BEACON));
    }

    /// Notes that another frame is sent.
    pub(super) fn sent(&mut self, now: Instant) {
        if let Some(identification) = &self.identification
            && !self.identification_due
        {
            // It leaves before the interval is over although it may wait for the channel.
            let margin = (identification.interval / 10).min(MARGIN_MAX);
            self.identify_at.get_or_insert(now + (identification.interval - margin));
        }
    }

    /// Notes that the last link has ended.
    pub(super) fn communication_over(&mut self) {
        self.identification_due |= self.identify_at.take().is_some();
    }

    /// Notes the time.
    pub(super) fn pass(&mut self, now: Instant) {
        self.identification_due |= self.identify_at.take_if(|at| *at <= now).is_some();
        self.beacon_due |= self.beacon_at.take_if(|at| *at <= now).is_some();
    }

    /// Returns the next time at which something becomes due.
    pub(super) fn until(&self) -> Option<Instant> {
        earlier(self.identify_at, self.beacon_at)
    }

    /// Returns the frame that is due.
    pub(super) fn due(&self) -> Option<Kind> {
        match (self.identification_due, self.beacon_due) {
            (true, _) => Some(Kind::Identification),
            (false, true) => Some(Kind::Beacon),
            (false, false) => None,
        }
    }

    /// Returns the maximum length of an identification, bytes; `None` if none is sent.
    pub(super) fn identification_bytes(&self) -> Option<u64> {
        /// Length of addresses, control and protocol identifier.
        const HEADER_BYTES: u64 = 16;
        self.identification.as_ref().map(|own| HEADER_BYTES + own.text.len() as u64)
    }

    /// Returns the air time that is kept for the identification, with its key-up; zero if the next frame is one.
    pub(super) fn kept_air_time(&self, radio: &RadioParameters) -> Duration {
        match (self.due(), self.identification_bytes()) {
            (Some(Kind::Identification), _) | (_, None) => Duration::ZERO,
            (_, Some(bytes)) => radio.keying() + radio.air_time(1, bytes),
        }
    }

    /// Returns the frame of this kind, which is sent now.
    pub(super) fn take(&mut self, now: Instant, kind: Kind, station: Callsign) -> Bytes {
        let (to, text) = match kind {
            Kind::Identification => {
                self.identification_due = false;
                self.counts.identifications_sent += 1;
                (Callsign::IDENTIFICATION, self.identification.as_ref())
            }
            Kind::Beacon => {
                self.beacon_due = false;
                self.counts.beacons_sent += 1;
                self.beacon_at = self.beacon.as_ref().map(|beacon| now + beacon.interval);
                (Callsign::BEACON, self.beacon.as_ref())
            }
        };
        let address = Address::new(station, to, CommandResponse::Command, &[]);
        let control = Control::Unnumbered { function: Unnumbered::Information, poll_final: false };
        let information = text.map(|text| text.text.clone()).unwrap_or_default();
        Frame { address, control, pid: pid::NONE, information }.to_bytes(Modulo::Eight)
    }
}
