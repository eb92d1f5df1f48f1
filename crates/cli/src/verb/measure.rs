//! `longwire measure`.

use crate::endpoint;
use crate::failure::{CommandFailure, CommandResult};
use crate::flag;
use crate::node_connection::{NodeConversation, NodeOptions, bytes, print};
use crate::output::{interrupts, talk};
use clap::Args;
use longwire_node::message::{Message, Reply, Request};
use longwire_node::view::{Measurement, Pings};
use longwire_node::{measuring, ping};
use longwire_settings::error::Error;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum time between two checks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);
/// Payload of the bundles with which round trips are measured, bytes.
const SMALL_BYTES: u32 = 64;
/// Payloads of the bundles from which the rate is estimated, bytes.
const PROBE_BYTES: [u32; 3] = [1000, 10_000, 100_000];
/// Number of bundles of each length: of three gaps between them, one may be that of a loss and one that of what waited for it.
const PROBES: usize = 4;
/// Share of the arrivals at the beginning and at the end that do not count, one in this many each.
const EDGES: usize = 10;
/// Gap that is long enough for an estimate.
const GAP_MIN: Duration = Duration::from_millis(50);
/// Number of bundles that should arrive during the measurement.
const BUNDLES: f64 = 20.0;
/// Limits of the payload of a bundle, bytes.
const BUNDLE_BYTES: std::ops::RangeInclusive<f64> = 1000.0..=1_000_000.0;
/// Maximum bundles on their way at a time, and their payload, bytes.
const AHEAD_MAX: usize = 200;
const AHEAD_BYTES_MAX: usize = 64_000_000;
/// Number of later arrivals after which a bundle is no longer waited for.
const OVERTAKEN: u64 = 8;
/// Time without an arrival after which nothing more is expected, in round trips, and at least in seconds.
const SILENCE_ROUND_TRIPS: f64 = 8.0;
const SILENCE_S_MIN: f64 = 5.0;

/// Measure round trip, throughput and loss to a node with bundles
///
/// Sends small bundles for the round trip, then longer ones for the given time. The other node answers each with a short
/// bundle, so that the throughput is that of one direction: payload that arrived, without headers. The length of the bundles
/// follows from the rate of the path. Ctrl-C ends the measurement early.
#[derive(Debug, Args)]
pub(crate) struct Measure {
    /// Node ID: dtn://bob/, ipn:7.0
    #[arg(value_name = "NODE")]
    to: String,
    /// Duration of the measurement of throughput
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = flag::time_above_zero)]
    time: Duration,
    /// Payload of the bundles, bytes [default: chosen by the rate of the path, 1,000 to 1,000,000]
    #[arg(long, value_name = "N", value_parser = flag::whole::<u32>(measuring::BYTES_MIN.into(), 16_777_216))]
    size: Option<u32>,
    /// Number of small bundles for the round trip
    #[arg(long, short, value_name = "N", default_value = "5", value_parser = flag::whole::<u32>(1, 1000))]
    count: u32,
    /// Time to wait for the answer to a bundle
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = flag::time_above_zero)]
    timeout: Duration,
    #[command(flatten)]
    reach: NodeOptions,
}

/// A measurement under way.
struct Course {
    talk: NodeConversation,
    /// Measuring service of the other node, and endpoint for its answers.
    to: String,
    endpoint: String,
    lifetime_s: f64,
    /// Number of the latest bundle. The first one is random: answers of earlier measurements have other numbers.
    latest: u64,
    /// Bundles without an answer: when they were sent, and their length.
    under_way: BTreeMap<u64, (Instant, u32)>,
    /// Answers that the node still has although it was told that they are taken.
    untaken: u32,
    stop: Arc<AtomicBool>,
}

/// Arrival of a bundle.
struct Arrival {
    number: u64,
    at: Instant,
    round_trip: Duration,
    payload_bytes: u32,
}

impl Measure {
    pub(crate) fn run(&self) -> CommandResult {
        let mut talk = self.reach.connect()?;
        let is_ipn = talk.status()?.node.starts_with("ipn:");
        // Concurrent measurements on this machine are other processes and need other endpoints.
        let number = 0x80_0000 + u64::from(std::process::id());
        let endpoint = if is_ipn { number.to_string() } else { format!("measure-{number}") };
        talk.ask(Request::Register { endpoint: endpoint.clone(), inline_bytes: SMALL_BYTES })?;
        talk.wait(|said| matches!(said.head, Reply::Registered { .. }).then_some(()))?;
        let to = target(&self.to);
        talk.note_neighbour(&endpoint::check(&to)?)?;
        let lifetime_s = self.timeout.as_secs_f64().max(1.0);
        let stop = interrupts()?;
        let latest = RandomState::new().build_hasher().finish() >> 1;
        let under_way = BTreeMap::new();
        let mut course = Course { talk, to, endpoint, lifetime_s, latest, under_way, untaken: 0, stop };
        let round_trips = course.round_trips(self.count, self.timeout)?;
        if course.is_stopped() && round_trips.received == 0 {
            return Err(CommandFailure::Interrupted);
        }
        if round_trips.received == 0 {
            let what = format!("no answer from {}", course.to);
            let hint = "`longwire bundles` shows why bundles are still here; the other node must be a Longwire that has the \
                        measuring service, with `echo = true`";
            return Err(CommandFailure::failed(what, hint));
        }
        if !self.reach.json {
            print(&in_words(&round_trips))?;
        }
        let measurement = course.throughput(self, round_trips)?;
        course.finish(self.timeout)?;
        self.reach.show(&measurement, || words(&measurement))?;
        match course.is_stopped() {
            true => Err(CommandFailure::Interrupted),
            false => Ok(()),
        }
    }
}

impl Course {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sends a bundle, and returns its number.
    fn send(&mut self, length: u32) -> CommandResult<u64> {
        self.latest += 1;
        self.under_way.insert(self.latest, (Instant::now(), length));
        for request in ping::requests(self.latest, &self.to, &self.endpoint, length, self.lifetime_s) {
            self.talk.ask(request)?;
        }
        Ok(self.latest)
    }

    /// Waits for the next arrival; `None` after this time, or at Ctrl-C.
    fn arrival(&mut self, silence_max: Duration) -> CommandResult<Option<Arrival>> {
        let until = Instant::now() + silence_max;
        while !self.is_stopped() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let Some(Message { head, body }) = self.talk.hear_within(left.min(LOOK))? else { continue };
            match head {
                Reply::Delivered { delivery, source, .. } => {
                    self.talk.ask(Request::Taken { delivery })?;
                    self.untaken += 1;
                    if let Some(arrival) = self.answered(&source, &body) {
                        return Ok(Some(arrival));
                    }
                }
                Reply::Gone { .. } => self.untaken = self.untaken.saturating_sub(1),
                Reply::Failed { send, reason, .. } => {
                    return Err(Error::new(format!("bundle {send} failed: {reason}")).into());
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Waits until the node has removed the answers that are taken: if the connection ended first, they would stay.
    fn finish(&mut self, timeout: Duration) -> CommandResult {
        let until = Instant::now() + timeout;
        while self.untaken > 0 && !self.is_stopped() && Instant::now() < until {
            if let Some(Message { head: Reply::Gone { .. }, .. }) = self.talk.hear_within(LOOK)? {
                self.untaken -= 1;
            }
        }
        Ok(())
    }

    /// Reads an answer; `None` for a duplicate, an answer to another measurement, and the bundle of a stranger.
    fn answered(&mut self, source: &str, body: &[u8]) -> Option<Arrival> {
        let (number, payload_bytes) = measuring::answered(body)?;
        let (sent_at, length) = *self.under_way.get(&number)?;
        if source != self.to || payload_bytes != u64::from(length) {
            return None;
        }
        self.under_way.remove(&number);
        let at = Instant::now();
        Some(Arrival { number, at, round_trip: at - sent_at, payload_bytes: length })
    }

    /// Sends small bundles one after another.
    fn round_trips(&mut self, count: u32, timeout: Duration) -> CommandResult<Pings> {
        let mut times = Vec::new();
        for _ in 0..count {
            let number = self.send(SMALL_BYTES)?;
            let sent_at = Instant::now();
            let mut time = None;
            while time.is_none()
                && let Some(arrival) = self.arrival(timeout.saturating_sub(sent_at.elapsed()))?
            {
                // The late answer to an earlier bundle is that of a lost one.
                time = (arrival.number == number).then_some(arrival.round_trip.as_secs_f64() * 1e3);
            }
            if self.is_stopped() {
                break;
            }
            times.push(time);
            // Without any answer, more of them only take time.
            if times.iter().all(Option::is_none) {
                break;
            }
        }
        self.under_way.clear();
        Ok(ping::add_up(self.to.clone(), times))
    }

    /// Estimates the rate of the path, bytes per second, by the gaps between bundles that are sent one behind the other: by longer
    /// bundles while the gaps are too short to be measured.
    fn rate(&mut self, silence_max: Duration) -> CommandResult<Option<f64>> {
        let mut rate = None;
        for length in PROBE_BYTES {
            for _ in 0..PROBES {
                self.send(length)?;
            }
            let mut at = Vec::new();
            while at.len() < PROBES
                && let Some(arrival) = self.arrival(silence_max)?
            {
                at.push(arrival.at);
            }
            self.under_way.clear();
            let Some(gap) = median_gap(&at) else { break };
            rate = Some(f64::from(length) / gap.as_secs_f64().max(1e-4));
            if gap >= GAP_MIN || self.is_stopped() {
                break;
            }
        }
        Ok(rate)
    }

    fn throughput(&mut self, options: &Measure, round_trips: Pings) -> CommandResult<Measurement> {
        let timeout = options.timeout;
        let round_trip_s = round_trips.mean_ms.unwrap_or(0.0) / 1e3;
        // A repetition takes a round trip or two.
        let silence_max =
            Duration::from_secs_f64((SILENCE_ROUND_TRIPS * round_trip_s).max(SILENCE_S_MIN)).min(timeout);
        let rate = self.rate(silence_max)?.unwrap_or(*BUNDLE_BYTES.start());
        let fitting = rate * options.time.as_secs_f64() / BUNDLES;
        let chosen = fitting.clamp(*BUNDLE_BYTES.start(), *BUNDLE_BYTES.end()) as u32;
        let length = options.size.unwrap_or(chosen);
        // As many as fill the path during a round trip, and two for errors of the estimate.
        let ahead = (2.0 * rate * round_trip_s / f64::from(length)).ceil() as usize + 2;
        let ahead = ahead.min(AHEAD_MAX).min((AHEAD_BYTES_MAX / length as usize).max(1));
        if !options.reach.json {
            let seconds = options.time.as_secs_f64();
            talk(format_args!("sending bundles of {} for {seconds} s", bytes(length.into())));
        }
        let (mut sent, mut arrivals) = (0, Vec::<Arrival>::new());
        let began = Instant::now();
        while !self.is_stopped() {
            let over = began.elapsed() >= options.time && (arrivals.len() >= 2 || sent >= ahead);
            // One that many later ones have overtaken is lost, or repeated by the path: it no longer holds others up.
            let newest = arrivals.iter().map(|arrival| arrival.number).max().unwrap_or(0);
            let is_expected = |number: &u64| number.saturating_add(OVERTAKEN) > newest;
            let expected = self.under_way.keys().filter(|number| is_expected(number)).count();
            if !over && expected < ahead && self.under_way.len() < 2 * AHEAD_MAX && !self.is_stopped() {
                self.send(length)?;
                sent += 1;
                continue;
            }
            if self.under_way.is_empty() {
                break;
            }
            match self.arrival(if over { silence_max } else { timeout })? {
                Some(arrival) => arrivals.push(arrival),
                None => break,
            }
        }
        // At Ctrl-C nobody knows what becomes of the bundles that are under way.
        let sent = if self.is_stopped() { sent - self.under_way.len() } else { sent };
        Ok(measured(self.to.clone(), round_trips, length, sent as u64, &arrivals))
    }
}

/// Returns the median of the times between arrivals; `None` with fewer than two.
fn median_gap(at: &[Instant]) -> Option<Duration> {
    let mut gaps: Vec<Duration> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort();
    gaps.get(gaps.len() / 2).copied()
}

fn measured(to: String, round_trips: Pings, length: u32, sent: u64, arrivals: &[Arrival]) -> Measurement {
    let arrived = arrivals.len() as u64;
    // Repetitions of what was lost near both ends would count for more than they are.
    let edge = arrivals.len() / EDGES;
    let kept = &arrivals[edge..arrivals.len() - edge];
    let span = kept.first().zip(kept.last()).map(|(first, last)| (last.at - first.at).as_secs_f64());
    let seconds = span.filter(|seconds| *seconds > 0.0);
    // The first bundle only starts the clock.
    let later: u64 = kept.iter().skip(1).map(|arrival| u64::from(arrival.payload_bytes)).sum();
    Measurement {
        to,
        round_trips,
        bundle_bytes: length.into(),
        sent,
        arrived,
        lost_percent: (sent - arrived) as f64 * 100.0 / sent.max(1) as f64,
        seconds,
        throughput_bps: seconds.map(|seconds| later as f64 * 8.0 / seconds),
    }
}

/// Returns the measuring service of a node given by its node ID; any other text is an endpoint ID already.
fn target(to: &str) -> String {
    match to {
        to if to.starts_with("dtn://") && to.ends_with('/') => format!("{to}{}", measuring::service(false)),
        to if to.starts_with("dtn://") && to.matches('/').count() == 2 => {
            format!("{to}/{}", measuring::service(false))
        }
        to if to.starts_with("ipn:") && to.ends_with(".0") => {
            format!("{}.{}", &to[..to.len() - 2], measuring::service(true))
        }
        to => to.to_owned(),
    }
}

fn in_words(pings: &Pings) -> String {
    let (Some(least), Some(mean), Some(most)) = (pings.least_ms, pings.mean_ms, pings.most_ms) else {
        return format!("round trip: {} bundles without an answer", pings.sent);
    };
    format!(
        "round trip: min/avg/max {least:.1}/{mean:.1}/{most:.1} ms, {} of {} bundles lost",
        pings.sent - pings.received,
        pings.sent
    )
}

fn words(measurement: &Measurement) -> String {
    let Measurement { sent, arrived, bundle_bytes, seconds, throughput_bps, .. } = measurement;
    let lost = sent - arrived;
    match seconds.zip(*throughput_bps) {
        Some((seconds, bps)) => format!(
            "throughput: {} of payload, over {seconds:.1} s; bundles of {}, {lost} of {sent} lost",
            rate_in_words(bps),
            bytes(*bundle_bytes)
        ),
        None => format!("throughput: unknown, {arrived} of {sent} bundles arrived; a longer --time may help"),
    }
}

fn rate_in_words(bps: f64) -> String {
    match bps {
        bps if bps < 10_000.0 => format!("{bps:.0} bit/s"),
        bps if bps < 1e6 => format!("{:.1} kbit/s", bps / 1e3),
        bps => format!("{:.2} Mbit/s", bps / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_measured_at_its_measuring_service() {
        for (to, expected) in [
            ("dtn://bob/", "dtn://bob/measure"),
            ("dtn://bob", "dtn://bob/measure"),
            ("ipn:7.0", "ipn:7.8"),
            ("dtn://bob/x", "dtn://bob/x"),
        ] {
            assert_eq!(target(to), expected);
        }
    }

    #[test]
    fn a_loss_and_what_waited_for_it_do_not_change_the_estimate() {
        let start = Instant::now();
        let at = |times: &[u64]| -> Vec<Instant> {
            times.iter().map(|ms| start + Duration::from_millis(*ms)).collect()
        };
        assert_eq!(median_gap(&at(&[0, 100, 200, 300])), Some(Duration::from_millis(100)));
        assert_eq!(median_gap(&at(&[0, 2700, 2701, 2801])), Some(Duration::from_millis(100)));
        assert_eq!((median_gap(&at(&[5])), median_gap(&[])), (None, None));
    }

    #[test]
    fn the_first_arrival_starts_the_clock_and_counts_nothing() {
        let start = Instant::now();
        let arrival = |ms: u64| Arrival {
            number: ms,
            at: start + Duration::from_millis(ms),
            round_trip: Duration::ZERO,
            payload_bytes: 1000,
        };
        let pings = ping::add_up(String::new(), vec![Some(1.0)]);
        let of = |arrivals: &[Arrival]| measured(String::new(), pings.clone(), 1000, 10, arrivals);
        let three = of(&[arrival(0), arrival(500), arrival(1000)]);
        assert_eq!(
            (three.throughput_bps, three.seconds, three.lost_percent),
            (Some(16_000.0), Some(1.0), 70.0)
        );
        // The last one of ten, which waited for its repetition, is left out, as is the first one.
        let mut ten: Vec<Arrival> = (0..9).map(|number| arrival(number * 100)).collect();
        ten.push(arrival(5000));
        assert_eq!(of(&ten).throughput_bps, Some(80_000.0));
        assert_eq!(of(&[arrival(0)]).throughput_bps, None);
        assert_eq!((of(&[]).arrived, of(&[]).lost_percent), (0, 100.0));
    }
}
