//! One run of a scenario and its outcome.
//!
//! A run is a simulation with its own seed: channels draw their noise from the number of the run and the name of the
//! channel only, so that every protocol meets the same noise (common random numbers), and the same run gives the same
//! bytes on every machine and with any number of threads.

mod receivers;
mod tcp_counts;

pub use receivers::RECEIVERS_MAX;
pub(crate) use tcp_counts::{RETRANSMISSIONS, TIMEOUTS};

use crate::arrivals::{Arrivals, SharedArrivals};
use crate::bench::Run;
use crate::bundle_observer::{self, ObservedTraffic};
use crate::error::Error;
use crate::ethernet::EthernetStation;
use crate::ethernet::node::OnEthernet;
use crate::ethernet::wire::HEADER_BYTES;
use crate::format::figure;
use crate::ledger::{HopDirection, Ledger};
use crate::limit::{self, Bound, Limit};
use crate::link::outages::{Outage, OutageFrom};
use crate::link::{LinkProfile, at, on_schedule};
use crate::protocols::{self, Assembly, INWARD, NodePosition, ONWARD};
use crate::scenario::Scenario;
use crate::trace::CapturedFrame;
use crate::workload::{FileTask, TaskIndication, TaskRequest, TryFailure};
use crate::world;
use bytes::Bytes;
use longwire_proto::observe::Observation;
use longwire_proto::rng::Rng;
use longwire_proto::time::{Duration, Instant};
use longwire_sim::{
    Airtime, ChannelEnd, ChannelId, Direction, FrameFate, FrameRecord, InjectedFault, NodeId, Pause,
    Simulation,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Allowance for rounding of times to nanoseconds and of their sums to floating point, seconds.
const ROUNDING_S: f64 = 1e-6;

/// Scenario ready to run: links resolved, files read, protocol assembled.
#[derive(Clone)]
pub struct Setup {
    /// Scenario.
    pub scenario: Scenario,
    /// Links, one per hop.
    pub links: Vec<LinkProfile>,
    /// Outages of each hop.
    outages: Vec<Vec<Outage>>,
    /// Files to transfer.
    pub files: Vec<Bytes>,
    assembly: Assembly,
    receivers: u32,
    /// Names of the source and of several receivers.
    group: Vec<String>,
}

/// Outcome of a run. As bytes it has all that the page of a scenario shows: no courses over time, and of the counters those of
/// TCP.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Number of the run, from zero.
    pub run: u32,
    /// Seed of the run.
    pub seed: u64,
    /// True if every file arrived complete and unchanged.
    pub delivered: bool,
    /// Time from the start to the last byte of the last file at the destination; `None` if it did not arrive.
    pub transfer_s: Option<f64>,
    /// Total bytes of all files.
    pub file_bytes: u64,
    /// Limit with the outages of this run.
    pub limit: Limit,
    /// Reason why it was not delivered; `None` if it was.
    pub missed: Option<NotDelivered>,
    /// Attempts that failed at the source, in order.
    #[serde(skip)]
    pub failures: Vec<TryFailure>,
    /// Outcome of each hop.
    pub hops: Vec<HopOutcome>,
    /// Bytes of the files at the destination over time.
    #[serde(skip)]
    pub arrivals: Arrivals,
    /// Counters and states of the engines of all nodes at the end.
    #[serde(with = "tcp_counts")]
    pub observed: Observation,
    /// True if connections were observed after the transfer, too.
    pub lingered: bool,
    /// Number of events of the simulation.
    pub events: u64,
    /// All frames, if requested.
    #[serde(skip)]
    pub frames: Vec<CapturedFrame>,
}

/// Reason why a run did not deliver every file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum NotDelivered {
    /// The received file differs from the original.
    Changed,
    /// The source cancelled a file after this number of failures; with the last failure.
    GivenUp(usize, TryFailure),
    /// The run reached its time limit, seconds.
    Time(f64),
    /// No node had anything to do.
    Silence,
}

impl std::fmt::Display for NotDelivered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotDelivered::Changed => f.write_str("the received file differs from the original"),
            NotDelivered::GivenUp(tries, why) => {
                write!(
                    f,
                    "failed after {tries} {}, most recently: {why}",
                    if *tries == 1 { "try" } else { "tries" }
                )
            }
            NotDelivered::Time(limit_s) => write!(f, "timed out after {} s", figure(*limit_s)),
            NotDelivered::Silence => f.write_str("both ends stopped sending"),
        }
    }
}

/// Outcome of one hop in a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HopOutcome {
    /// Use of time until the end of the transfer, towards the destination and back; on a shared channel both are that
    /// of the channel.
    pub ledgers: [Ledger; 2],
    /// Outages: start and end, seconds.
    pub outages: Vec<(f64, f64)>,
    /// Times at which the first and the last byte of a file left on this hop, seconds.
    pub data_s: Option<(f64, f64)>,
    /// Time at which the last byte of a file arrived at the sending node of this hop, seconds; `None` at the source.
    pub came_s: Option<f64>,
    /// Times of the first frame sent and the last frame received in either direction, seconds, including the time after
    /// the transfer.
    pub active_s: Option<(f64, f64)>,
    /// Frames towards the destination.
    pub frames: u64,
    /// Bytes of all frames of both directions.
    pub channel_bytes: u64,
    /// Frames of these that contain retransmitted data.
    pub repeated_frames: u64,
    /// Frames of these that were lost to bit errors.
    pub damaged_frames: u64,
    /// Bundle bytes acknowledged by the next node when the first outage started.
    pub acknowledged_at_outage_bytes: Option<u64>,
    /// Bundle bytes sent again after they had been acknowledged.
    pub acknowledged_again_bytes: u64,
    /// Observations of its bundles; empty for plain streams.
    pub seen: ObservedTraffic,
}

impl Outcome {
    /// Bytes of the files divided by their transfer time, byte/s; zero if they did not arrive.
    pub fn goodput(&self) -> f64 {
        self.transfer_s.map_or(0.0, |seconds| self.file_bytes as f64 / seconds)
    }

    /// Returns true if every node had all files completely before it forwarded the first byte.
    pub fn is_stored_whole(&self) -> bool {
        self.hops.iter().skip(1).all(|hop| match (hop.came_s, hop.data_s) {
            (Some(last), Some((first, _))) => first >= last,
            _ => false,
        })
    }

    /// Ideal time for the behaviour of this run: with the files stored at every node, or forwarded as they arrived.
    pub fn bound(&self) -> Bound {
        if self.is_stored_whole() { self.limit.store_and_forward } else { self.limit.streaming }
    }

    /// Detects a run that is faster than its channel, which is a bug of this program.
    ///
    /// # Panics
    /// Panics in this case.
    fn check_limit(&self) {
        let (Some(seconds), least) = (self.transfer_s, self.limit.streaming.error_free_s) else { return };
        assert!(
            !self.delivered || seconds + ROUNDING_S >= least,
            "run {} (seed {}) took {seconds} s, less than the {least} s that the channel needs without errors",
            self.run,
            self.seed
        );
    }

    /// Time from the first byte of a file on the last hop to the end of the transfer.
    pub fn last_hop_s(&self) -> Option<f64> {
        let (begin, _) = self.hops.last()?.data_s?;
        Some(self.transfer_s? - begin)
    }

    /// Goodput of the last hop only, byte/s.
    pub fn last_hop_goodput(&self) -> f64 {
        self.last_hop_s().map_or(0.0, |seconds| self.file_bytes as f64 / seconds)
    }

    /// Bytes of the files divided by the time from the first to the last frame on the last hop, including keep-alives
    /// before and after the data, byte/s.
    pub fn goodput_with_keepalives(&self) -> f64 {
        let active = self.hops.last().and_then(|hop| hop.active_s);
        match (self.transfer_s, active) {
            (Some(_), Some((begin, end))) if end > begin => self.file_bytes as f64 / (end - begin),
            _ => 0.0,
        }
    }
}

/// Additional results of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Collects all frames.
    pub frames: bool,
    /// Time for which the run continues after the transfer, seconds.
    pub linger_s: f64,
}

impl Setup {
    /// Prepares a scenario; its paths are relative to `base`.
    ///
    /// # Errors
    /// Fails if links, files, the protocol or settings do not exist.
    pub fn new(scenario: Scenario, base: &Path) -> Result<Setup, Error> {
        let files = scenario.workload.contents(base, scenario.seed)?;
        Setup::with_files(scenario, base, files)
    }

    /// Prepares a scenario with these files as its workload.
    ///
    /// # Errors
    /// Returns the errors of [`Setup::new`].
    pub fn with_files(scenario: Scenario, base: &Path, files: Vec<Bytes>) -> Result<Setup, Error> {
        let (links, outages): (Vec<_>, Vec<_>) = scenario.path(base)?.into_iter().unzip();
        Setup::with_links(scenario, links, outages, files)
    }

    /// Prepares a scenario with these links, one per hop, and their own outages; it has no channels of its own.
    ///
    /// # Errors
    /// Returns the errors of [`Setup::new`].
    pub fn over(scenario: Scenario, links: Vec<LinkProfile>, files: Vec<Bytes>) -> Result<Setup, Error> {
        let outages =
            links.iter().map(|link| link.outages_until(scenario.duration_limit_s).map_err(Error::new));
        let outages = outages.collect::<Result<Vec<_>, Error>>()?;
        Setup::with_links(scenario, links, outages, files)
    }

    fn with_links(
        scenario: Scenario,
        links: Vec<LinkProfile>,
        outages: Vec<Vec<Outage>>,
        files: Vec<Bytes>,
    ) -> Result<Setup, Error> {
        if links.len() > 1 && links.iter().any(|link| link.ethernet.is_some()) {
            return Err(Error::new("a link with `[ethernet]` is not supported in a path of several")
                .hint("use it alone, or lines"));
        }
        let assembly = protocols::assemble(&scenario.protocol, &links, &scenario.settings)?;
        Ok(Setup { scenario, links, outages, files, assembly, receivers: 1, group: Vec::new() })
    }

    /// Complete settings of the protocol.
    pub fn settings(&self) -> &toml::Table {
        &self.assembly.settings
    }

    /// Warnings about the settings on this path.
    pub fn cautions(&self) -> &[String] {
        &self.assembly.cautions
    }

    /// Simulates the run with this number.
    pub fn run(&self, number: u32, wanted: Wanted) -> Outcome {
        self.play(Run::new(self.scenario.seed, number), wanted)
    }

    /// Simulates one run.
    pub fn play(&self, run: Run, wanted: Wanted) -> Outcome {
        match self.receivers > 1 && !self.sends_to_group() {
            true => self.play_in_turn(run, wanted),
            false => PreparedRun::new(self, run, wanted).play(),
        }
    }

    /// Outages of each hop in a run, with random starts: a function of the run's seed only.
    fn outages(&self, run: Run) -> Vec<Vec<Outage>> {
        let draws = Rng::new(run.seed).fork("outages");
        let mut index = 0;
        let mut drawn = |outage: &Outage| {
            let share = draws.fork(&format!("outage {index}")).unit();
            index += 1;
            Outage { after_s: outage.after_s + outage.spread_s * share, spread_s: 0.0, ..*outage }
        };
        let mut of_hop = |outages: &Vec<Outage>| -> Vec<Outage> {
            let all = outages.iter().map(&mut drawn);
            all.filter(|outage| outage.length_s > 0.0).collect()
        };
        self.outages.iter().map(&mut of_hop).collect()
    }
}

#[derive(Clone, Debug, Default)]
struct HopStatistics {
    active: Option<(Instant, Instant)>,
    data: Option<(Instant, Instant)>,
    frames: u64,
    bytes: u64,
    /// Start of the last frame of each sender.
    last_sent: BTreeMap<ChannelEnd, Instant>,
    repeated: u64,
    damaged: u64,
}

/// Data collected from the trace of a run.
#[derive(Debug, Default)]
struct Gathered {
    hops: Vec<HopStatistics>,
    frames: Option<Vec<FrameRecord>>,
}

impl Gathered {
    fn add(&mut self, record: FrameRecord) {
        let hop = &mut self.hops[record.channel.0 as usize];
        if let Some(started) = record.started {
            let end = record.received.or(record.left).unwrap_or(started);
            let (first, last) = hop.active.get_or_insert((started, end));
            (*first, *last) = ((*first).min(started), (*last).max(end));
            // A frame that several stations receive has a record for each.
            let is_new = hop.last_sent.insert(record.from, started) != Some(started);
            if is_new {
                hop.bytes += record.bytes.len() as u64;
            }
            // The direction of a record is undefined on a shared channel, so the interface of the sender decides.
            if record.from.interface == ONWARD {
                hop.add_forward(&record, started, is_new);
            }
        }
        if let Some(frames) = &mut self.frames {
            frames.push(record);
        }
    }
}

impl HopStatistics {
    fn add_forward(&mut self, record: &FrameRecord, started: Instant, is_new: bool) {
        self.frames += u64::from(is_new);
        self.repeated += u64::from(is_new && record.shares.repeated > 0);
        self.damaged += u64::from(matches!(record.fate, FrameFate::Damaged | FrameFate::CheckFailed));
        if record.shares.payload > 0 || record.shares.repeated > 0 {
            let (first, last) = self.data.get_or_insert((started, started));
            (*first, *last) = ((*first).min(started), (*last).max(started));
        }
    }
}

/// Simulation of a run, ready to start.
struct PreparedRun<'a> {
    setup: &'a Setup,
    run: Run,
    wanted: Wanted,
    scheduled: Vec<Vec<Outage>>,
    simulation: Simulation<FileTask>,
    nodes: Vec<NodeId>,
    channels: Vec<ChannelId>,
    bundles: bundle_observer::SharedObservations,
    arrivals: SharedArrivals,
    gathered: Arc<Mutex<Gathered>>,
}

impl<'a> PreparedRun<'a> {
    fn new(setup: &'a Setup, run: Run, wanted: Wanted) -> PreparedRun<'a> {
        let (hops, scheduled) = (setup.links.len(), setup.outages(run));
        let bundles = bundle_observer::record(hops);
        let arrivals = SharedArrivals::default();
        let mut simulation = world::simulation(run.seed);
        let mut nodes = Vec::new();
        let is_group = setup.sends_to_group();
        let names = if is_group { &setup.group } else { &setup.scenario.nodes };
        for (position, name) in names.iter().enumerate() {
            let place = NodePosition {
                position,
                names: names.clone(),
                mtus: setup.links.iter().map(|link| link.mtu_bytes as u16).collect(),
                radios: setup.links.iter().map(LinkProfile::station_radio).collect(),
                announced_outages: scheduled
                    .get(position)
                    .map(|outages| announced(outages))
                    .unwrap_or_default(),
                bundles: bundles.clone(),
                arrivals: arrivals.clone(),
            };
            let assembly = setup.assembly.clone();
            let station = setup.links[0].ethernet.as_ref().map(|ethernet| {
                let end = place.is_destination();
                let (host, other) = match end {
                    true => (place.address_inward(), place.previous_address()),
                    false => (place.address_onward(), place.next_address()),
                };
                match is_group {
                    true => {
                        let addresses = place.addresses_in_group();
                        let station = position as u16;
                        (ONWARD, ethernet.station_of_several(&setup.links[0], station, ONWARD, &addresses))
                    }
                    false => (host.0, ethernet.station(&setup.links[0], u16::from(end), host, other)),
                }
            });
            nodes.push(simulation.add_node(name, move |boot| {
                let node = match is_group {
                    true => assembly.node_in_group(&place, boot),
                    false => assembly.node(&place, boot),
                };
                match &station {
                    None => node,
                    Some((at, config)) => {
                        Box::new(OnEthernet::new(*at, node, EthernetStation::new(config.clone())))
                    }
                }
            }));
        }
        let channels =
            (0..hops).map(|hop| add_channel(&mut simulation, setup, &scheduled[hop], &nodes, hop)).collect();
        let frames = wanted.frames.then(Vec::new);
        let gathered = Arc::new(Mutex::new(Gathered { hops: vec![HopStatistics::default(); hops], frames }));
        let sink = gathered.clone();
        simulation.set_trace(Box::new(move |record| sink.lock().expect("nobody panics").add(record)));
        PreparedRun {
            setup,
            run,
            wanted,
            scheduled,
            simulation,
            nodes,
            channels,
            bundles,
            arrivals,
            gathered,
        }
    }

    /// Plays the run to its end.
    fn play(mut self) -> Outcome {
        let Setup { scenario, links, files, assembly, .. } = self.setup;
        let source = self.nodes[0];
        let destinations = if self.setup.sends_to_group() { 1.. } else { links.len().. };
        let destinations = &self.nodes[destinations];
        for destination in destinations {
            self.simulation.request(*destination, TaskRequest::Expect { files: files.clone() });
        }
        self.simulation.request(source, TaskRequest::Start { files: files.clone() });
        let of_hop = |(hop, outages): (usize, &Vec<Outage>)| -> Vec<(usize, Outage)> {
            let of_data = outages.iter().filter(|outage| outage.from == OutageFrom::Data);
            of_data.map(|outage| (hop, *outage)).collect()
        };
        let mut waiting: Vec<(usize, Outage)> = self.scheduled.iter().enumerate().flat_map(of_hop).collect();
        // Outages relative to data that have started: hop, start, end.
        let mut begun: Vec<(usize, Instant, Instant)> = Vec::new();
        let (mut missing, mut intact, mut done_at) = (files.len() * destinations.len(), true, None);
        let (mut failures, mut given_up) = (Vec::new(), false);
        let (bundles, channels) = (&self.bundles, &self.channels);
        let pause = self.simulation.run_while(at(scenario.duration_limit_s), |simulation| {
            waiting.retain(|&(hop, outage)| {
                // The complete payload of a plain stream is file data.
                let begins = match (assembly.carries_bundles, links[hop].is_shared()) {
                    (true, _) => bundles.lock().expect("nobody panics")[hop].first_piece.is_some(),
                    (false, false) => simulation.airtime(channels[hop], Direction::Forward).payload > 0,
                    (false, true) => simulation.radio_channel_airtime(channels[hop]).payload > 0,
                };
                if begins {
                    let from = simulation.now() + Duration::from_secs_f64(outage.after_s);
                    let to = from + Duration::from_secs_f64(outage.length_s);
                    simulation.fault_at(from, InjectedFault::Cut(channels[hop]));
                    simulation.fault_at(to, InjectedFault::Heal(channels[hop]));
                    begun.push((hop, from, to));
                }
                !begins
            });
            while let Some((when, _, indication)) = simulation.pop_indication() {
                match indication {
                    TaskIndication::Done { intact: whole, .. } => {
                        missing -= 1;
                        intact &= whole;
                        done_at = (missing == 0).then_some(when);
                    }
                    TaskIndication::Failed { why, for_good, .. } => {
                        failures.push(why);
                        given_up = for_good;
                        if given_up {
                            return false;
                        }
                    }
                }
            }
            missing > 0
        });
        let missed = match (missing, failures.last()) {
            (0, _) => (!intact).then_some(NotDelivered::Changed),
            (_, Some(why)) if given_up => Some(NotDelivered::GivenUp(failures.len(), *why)),
            _ if pause == Pause::Quiet => Some(NotDelivered::Silence),
            _ => Some(NotDelivered::Time(scenario.duration_limit_s)),
        };
        let ledgers = self.ledgers();
        let linger_s = self.wanted.linger_s;
        if done_at.is_some() && linger_s > 0.0 {
            self.simulation.run_until(self.simulation.now() + Duration::from_secs_f64(linger_s));
        }
        let gathered = std::mem::take(&mut *self.gathered.lock().expect("nobody panics"));
        let seen = std::mem::take(&mut *self.bundles.lock().expect("nobody panics"));
        let hops = gathered.hops.iter().zip(seen).zip(ledgers).enumerate().map(
            |(hop, ((statistics, seen), ledgers))| {
                hop_outcome(statistics, seen, outages_of(&self.scheduled[hop], hop, &begun), ledgers)
            },
        );
        let hops: Vec<HopOutcome> = hops.collect();
        let path = links.iter().zip(&hops).map(|(link, hop)| link.hop(hop.outages.clone()));
        let file_bytes = files.iter().map(|file| file.len() as u64).sum();
        let parts = self.nodes.iter().flat_map(|node| self.simulation.observe(*node).parts);
        let outcome = Outcome {
            run: self.run.number,
            seed: self.run.seed,
            delivered: missing == 0 && intact,
            transfer_s: done_at.map(Instant::as_secs_f64),
            file_bytes,
            limit: limit::limit(&path.collect::<Vec<_>>(), file_bytes),
            missed,
            failures,
            hops,
            arrivals: self.arrivals.lock().expect("nobody panics").clone(),
            observed: Observation { parts: parts.collect() },
            lingered: linger_s > 0.0,
            events: self.simulation.events(),
            frames: captured(
                gathered.frames,
                if self.setup.sends_to_group() { &self.setup.group } else { &scenario.nodes },
                links,
            ),
        };
        outcome.check_limit();
        outcome
    }

    /// Returns the ledgers of all channels, which must account for every nanosecond.
    fn ledgers(&self) -> Vec<[Ledger; 2]> {
        let closed = |channel: ChannelId, way, airtime: Airtime| {
            let (total, elapsed) = (airtime.total(), self.simulation.now().as_nanos());
            assert_eq!(total, elapsed, "the ledger of {channel:?} {way:?} does not close");
            Ledger::of(way, &airtime)
        };
        let both = |(&channel, link): (&ChannelId, &LinkProfile)| {
            if link.is_shared() {
                let airtime = self.simulation.radio_channel_airtime(channel);
                let ledger = closed(channel, HopDirection::Shared, airtime);
                return [ledger.clone(), ledger];
            }
            let line = |direction, way| closed(channel, way, self.simulation.airtime(channel, direction));
            [line(Direction::Forward, HopDirection::There), line(Direction::Backward, HopDirection::Back)]
        };
        self.channels.iter().zip(&self.setup.links).map(both).collect()
    }
}

/// Adds the channel of a hop: two lines, or a radio channel that both ends share.
fn add_channel(
    simulation: &mut Simulation<FileTask>,
    setup: &Setup,
    outages: &[Outage],
    nodes: &[NodeId],
    hop: usize,
) -> ChannelId {
    let link = &setup.links[hop];
    if setup.sends_to_group() {
        let ends: Vec<_> = nodes.iter().map(|node| (*node, ONWARD)).collect();
        return link.connect_group(simulation, &ends, outages);
    }
    link.connect(simulation, [(nodes[hop], ONWARD), (nodes[hop + 1], INWARD)], outages)
}

/// Outages that all nodes know beforehand.
fn announced(outages: &[Outage]) -> Vec<(f64, f64)> {
    on_schedule(outages.iter().filter(|outage| outage.announced))
}

/// Outages of a hop: scheduled ones and those relative to data.
fn outages_of(outages: &[Outage], hop: usize, begun: &[(usize, Instant, Instant)]) -> Vec<(f64, f64)> {
    let mut spans = on_schedule(outages);
    let begun = begun.iter().filter(|(at_hop, ..)| *at_hop == hop);
    spans.extend(begun.map(|(_, from, to)| (from.as_secs_f64(), to.as_secs_f64())));
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    spans
}

fn hop_outcome(
    statistics: &HopStatistics,
    seen: ObservedTraffic,
    outages: Vec<(f64, f64)>,
    ledgers: [Ledger; 2],
) -> HopOutcome {
    let seconds = |(first, last): (Instant, Instant)| (first.as_secs_f64(), last.as_secs_f64());
    let of_bundles = seen.first_piece.zip(seen.last_piece);
    HopOutcome {
        ledgers,
        data_s: of_bundles.or(statistics.data).map(seconds),
        came_s: seen.last_came.map(Instant::as_secs_f64),
        active_s: statistics.active.map(seconds),
        frames: statistics.frames,
        channel_bytes: statistics.bytes,
        repeated_frames: statistics.repeated,
        damaged_frames: statistics.damaged,
        acknowledged_at_outage_bytes: outages.first().map(|(begin, _)| seen.acknowledged_at(at(*begin))),
        acknowledged_again_bytes: seen.acknowledged_again_bytes,
        outages,
        seen,
    }
}

/// Converts the frames of the trace, with the names of the nodes. Of an Ethernet frame only the packet is of interest.
fn captured(frames: Option<Vec<FrameRecord>>, names: &[String], links: &[LinkProfile]) -> Vec<CapturedFrame> {
    let packet = |mut frame: FrameRecord| {
        if links.iter().any(|link| link.ethernet.is_some()) {
            let packet = |bytes: Bytes| bytes.slice(HEADER_BYTES.min(bytes.len())..);
            (frame.bytes, frame.damaged) = (packet(frame.bytes), frame.damaged.map(packet));
        }
        CapturedFrame::of(frame, names)
    };
    frames.unwrap_or_default().into_iter().map(packet).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_that_fits_delivers_over_a_shared_channel_with_ethernet_frames() {
        for link in ["dstar-dd", "hsmm"] {
            let profile = LinkProfile::load(link, Path::new(".")).expect("it is built in");
            let (fitting, _) = protocols::fitting(&[profile]);
            assert!(fitting.len() >= 6, "{link}: {}", fitting.len());
            for protocol in fitting {
                let text = format!(
                    "protocol = '{}'\n[workload]\nbytes = 30000\n[[channel]]\nbetween = ['tx', 'rx']\nprofile = '{link}'",
                    protocol.name
                );
                let scenario = Scenario::parse(&text, "test").expect("a scenario");
                let setup = Setup::with_files(scenario, Path::new("."), vec![Bytes::from(vec![7; 30_000])]);
                let outcome = setup.expect("a setup").run(0, Wanted { frames: true, linger_s: 0.0 });
                assert!(outcome.delivered, "{} over {link}: {:?}", protocol.name, outcome.missed);
                // A capture has the packets, of which more than twenty carry the file.
                let is_packet = |frame: &CapturedFrame| frame.bytes.first() == Some(&0x45);
                assert!(outcome.frames.len() > 20 && outcome.frames.iter().all(is_packet));
                assert!(outcome.hops[0].frames > 20 && outcome.hops[0].ledgers[0].seconds("keying") > 0.0);
            }
        }
    }

    #[test]
    #[should_panic(expected = "that the channel needs without errors")]
    fn a_run_that_is_faster_than_its_channel_ends_the_program() {
        let text = "protocol = 'tcp/tuned'\n[workload]\nbytes = 1000\n[[channel]]\nbetween = ['tx', 'rx']\n\
                    profile = 'cislunar'\nber = 0";
        let scenario = Scenario::parse(text, "test").expect("a scenario");
        let setup = Setup::with_files(scenario, Path::new("."), vec![Bytes::from(vec![7; 1000])]);
        let outcome = setup.expect("a setup").run(0, Wanted::default());
        let least_s = outcome.limit.streaming.error_free_s;
        Outcome { transfer_s: Some(least_s), ..outcome.clone() }.check_limit();
        Outcome { transfer_s: Some(least_s - 0.001), ..outcome }.check_limit();
    }
}
