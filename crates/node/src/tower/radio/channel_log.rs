//! Transmissions on the channel of a TNC, as this node sees them: who had the channel when, and for how long.
//!
//! A TNC tells the end of a received frame only; its beginning follows from its length and the rate of the channel (AX.25 2.2 3).
//! Frames of one station with less than [`PAUSE_MAX`] between them are one transmission. For own frames a TNC tells nothing, or the
//! end of some of them: they begin when they are passed to it or when those before them end, and the wait for a clear channel is
//! not known.

use super::announcements::HeardTexts;
use super::controller::TncEngine;
use crate::config::TncSettings;
use crate::view;
use bytes::Bytes;
use longwire_proto::ax25::{Address, Callsign};
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::service::{Frames, FramesIndication, FramesRequest, Stream};
use longwire_proto::time::{Duration, Instant};
use std::collections::VecDeque;

/// Maximum number of transmissions that are kept.
const KEPT_MAX: usize = 200;
/// Maximum pause between two frames of one transmission.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// Length of a flag and the check sequence, bytes.
const AROUND_BYTES: u64 = 3;

/// Latest transmissions on a channel.
#[derive(Debug)]
pub(crate) struct ChannelLog {
    rate_bps: u64,
    /// Transmissions, in the order in which they were noticed.
    latest: VecDeque<Transmission>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Transmission {
    /// Station that transmits: the source, or the digipeater that repeats its frames.
    from: Callsign,
    source: Callsign,
    to: Callsign,
    is_own: bool,
    began: Instant,
    ended: Instant,
    frames: u64,
    bytes: u64,
}

impl ChannelLog {
    pub(crate) fn new(settings: &TncSettings) -> Self {
        ChannelLog { rate_bps: u64::from(settings.channel.rate_bps.max(1)), latest: VecDeque::new() }
    }

    /// Time of a frame on the channel, with the mean of bit stuffing.
    fn air_time(&self, bytes: u64) -> Duration {
        let bits = 8 * (bytes + AROUND_BYTES);
        let bits = bits + bits / 62;
        Duration::from_nanos(bits.saturating_mul(1_000_000_000) / self.rate_bps)
    }

    /// Adds a frame that another station has just ended.
    fn received(&mut self, now: Instant, frame: &Bytes) {
        let since_zero = now.saturating_since(Instant::ZERO);
        let began = Instant::ZERO + since_zero.saturating_sub(self.air_time(frame.len() as u64));
        self.add(frame, false, began, now);
    }

    /// Adds a frame that was passed to the TNC.
    fn sent(&mut self, now: Instant, frame: &Bytes) {
        let own = self.latest.iter().rev().find(|known| known.is_own);
        let began = own.map_or(now, |before| before.ended.max(now));
        self.add(frame, true, began, began + self.air_time(frame.len() as u64));
    }

    fn add(&mut self, frame: &Bytes, is_own: bool, began: Instant, ended: Instant) {
        let bytes = frame.len() as u64;
        let Ok(Address { source, destination, path, .. }) = Address::decode(&mut frame.clone()) else {
            return;
        };
        let repeater = path.iter().rev().find(|hop| hop.repeated).map(|hop| hop.station);
        let from = repeater.filter(|_| !is_own).unwrap_or(source);
        let continues = |before: &&mut Transmission| {
            (before.from, before.source, before.to, before.is_own) == (from, source, destination, is_own)
                && began.saturating_since(before.ended) <= PAUSE_MAX
        };
        if let Some(before) = self.latest.back_mut().filter(continues) {
            before.ended = before.ended.max(ended);
            before.frames += 1;
            before.bytes += bytes;
            return;
        }
        if self.latest.len() >= KEPT_MAX {
            self.latest.pop_front();
        }
        let to = destination;
        self.latest.push_back(Transmission { from, source, to, is_own, began, ended, frames: 1, bytes });
    }

    /// The TNC has reported the end of an own frame.
    fn transmitted(&mut self, now: Instant) {
        if let Some(own) = self.latest.iter_mut().rev().find(|known| known.is_own) {
            own.ended = own.ended.max(now);
        }
    }

    /// Describes the transmissions, the latest first.
    pub(crate) fn views(&self, now: Instant, tnc: &str) -> Vec<view::Transmission> {
        let view = |known: &Transmission| view::Transmission {
            tnc: tnc.to_owned(),
            from: known.from.to_string(),
            source: known.source.to_string(),
            to: known.to.to_string(),
            own: known.is_own,
            began_s: now.saturating_since(known.began).as_secs_f64(),
            lasts_s: known.ended.saturating_since(known.began).as_secs_f64(),
            frames: known.frames,
            bytes: known.bytes,
        };
        self.latest.iter().rev().map(view).collect()
    }
}

/// A TNC, and the log of its channel.
#[derive(Debug)]
pub(crate) struct LoggedTnc {
    pub(crate) engine: TncEngine,
    pub(crate) log: ChannelLog,
    /// Texts of other stations; `None` without discovery.
    pub(crate) announcements: Option<HeardTexts>,
}

impl Engine for LoggedTnc {
    type Above = Frames;
    type Below = Stream;

    fn handle_request(&mut self, now: Instant, request: Request<Frames>) {
        if let FramesRequest::Frame { bytes, .. } = &request {
            self.log.sent(now, bytes);
        }
        self.engine.handle_request(now, request);
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Stream>) {
        self.engine.handle_indication(now, indication);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.engine.handle_timeout(now);
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Frames>> {
        let indication = self.engine.poll_indication(now)?;
        match &indication {
            FramesIndication::Frame(bytes) => {
                self.log.received(now, bytes);
                self.announcements.iter_mut().for_each(|texts| texts.received(bytes));
            }
            FramesIndication::Transmitted(_) => self.log.transmitted(now),
            _ => {}
        }
        Some(indication)
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Stream>> {
        self.engine.poll_request(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.engine.poll_timeout()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::ax25::{Frame, Modulo};

    fn frame(own: &str) -> Bytes {
        Frame::identification(own.parse().unwrap()).to_bytes(Modulo::Eight)
    }

    fn log() -> ChannelLog {
        ChannelLog { rate_bps: 1200, latest: VecDeque::new() }
    }

    fn seconds(at: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(at)
    }

    #[test]
    fn frames_without_a_pause_are_one_transmission() {
        let mut log = log();
        let other = frame("B0B-2");
        let air_s = log.air_time(other.len() as u64).as_secs_f64();
        assert!((0.1..0.2).contains(&air_s), "{air_s} s for {} bytes at 1,200 bit/s", other.len());
        for at in [10.0, 10.0 + air_s, 20.0] {
            log.received(seconds(at), &other);
        }
        log.received(seconds(20.2), &frame("CAR0L"));
        let views = log.views(seconds(30.0), "vhf");
        let seen: Vec<_> = views
            .iter()
            .map(|view| (view.from.as_str(), view.frames, (view.began_s * 10.0).round()))
            .collect();
        assert_eq!(seen, [("CAR0L", 1, 99.0), ("B0B-2", 1, 101.0), ("B0B-2", 2, 201.0)]);
        assert!((views[2].lasts_s - 2.0 * air_s).abs() < 0.001, "{views:#?}");
    }

    #[test]
    fn own_frames_follow_each_other_and_end_when_the_tnc_says_so() {
        let mut log = log();
        let own = frame("AL1CE-1");
        let air_s = log.air_time(own.len() as u64).as_secs_f64();
        log.sent(seconds(5.0), &own);
        log.sent(seconds(5.0), &own);
        let views = log.views(seconds(6.0), "vhf");
        assert_eq!((views.len(), views[0].frames, views[0].own), (1, 2, true));
        assert!((views[0].lasts_s - 2.0 * air_s).abs() < 0.001, "{views:#?}");
        log.transmitted(seconds(8.0));
        assert!((log.views(seconds(9.0), "vhf")[0].lasts_s - 3.0).abs() < 0.001);
    }

    #[test]
    fn the_log_is_bounded_and_ignores_what_is_no_frame() {
        let mut log = log();
        log.received(seconds(1.0), &Bytes::from_static(b"noise"));
        assert!(log.views(seconds(2.0), "vhf").is_empty());
        for number in 0..1000 {
            log.received(seconds(f64::from(number) * 10.0), &frame("B0B-2"));
        }
        assert_eq!(log.views(seconds(10_000.0), "vhf").len(), KEPT_MAX);
    }
}
