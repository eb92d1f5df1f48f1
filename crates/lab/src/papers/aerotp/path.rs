//! The path of the paper: an air link with bit errors in both directions, and a LAN at each end, which may be left out.
//!
//! ```text
//!   source --- 10 Gbit/s --- 5 Mbit/s, 10 ms, bit errors --- 10 Gbit/s --- sink
//! ```

use super::connections::{OnLink, OverConnections};
use super::ends::{End, Offer, OverDatagrams, OverStream, WORD_BYTES};
use super::observed::{Observed, Sent, SharedObserved};
use crate::protocols::node::ONWARD_LINK;
use crate::protocols::{INWARD, IpRelay, NodePosition, ONWARD, UdpHost, stream_host};
use crate::workload::{FileTask, TaskRequest};
use crate::{bundle_observer, world};
use longwire_proto::aerotp::{Config, Endpoint};
use longwire_proto::joint::{Beneath, Stack};
use longwire_proto::service::{LinkId, Storage, TransportService};
use longwire_proto::tcp::config::Profile;
use longwire_proto::time::{Duration, Instant};
use longwire_sim::{Boot, ChannelConfig, Delay, Errors, Fcs, LineConfig, NodeEngine, Simulation};

/// Length of packets, bytes.
pub(super) const MTU_BYTES: u16 = 1500;
/// Framing of PPP, bytes.
pub(super) const FRAMING_BYTES: u32 = 2;
/// Packets of the paper: those of UDP that fill a packet of 1500 bytes.
pub(super) const PACKET_BYTES: u64 = 1472;
/// Rate of the air link.
pub(super) const RATE_BPS: u64 = 5_000_000;
/// Queue in front of the air link, packets, as in ns-3.
const QUEUE_PACKETS: u64 = 100;
/// Headers of TCP and IPv4, bytes.
const HEADERS_BYTES: u16 = 40;
/// Time for data in flight after the source has ended.
const REST: Duration = Duration::from_secs(2);
/// Time in which a receiver that has more to come answers what has arrived, with the transmission of the answer.
const ANSWER: Duration = Duration::from_millis(50);
const LIMIT: Duration = Duration::from_secs(20_000);
const PORT: u16 = 9;

/// Protocol of a run.
#[derive(Clone, Debug)]
pub(super) enum Protocol {
    Tcp(Profile),
    Udp,
    AeroTp(TransportService, Config),
}

impl Protocol {
    /// Length of the packets that the application writes: as long as one packet on the air link has room for.
    pub(super) fn packet_bytes(&self) -> u64 {
        match self {
            Protocol::Tcp(_) | Protocol::Udp => PACKET_BYTES,
            Protocol::AeroTp(service, config) => {
                let longest = config.payload_bytes(*service, config.packet_bytes);
                longest - longest % WORD_BYTES
            }
        }
    }
}

/// A run.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) protocol: Protocol,
    pub(super) offer: Offer,
    /// Time until which arrivals are counted separately, if any.
    pub(super) until: Option<Instant>,
    /// Air link.
    pub(super) forward: LineConfig,
    pub(super) backward: LineConfig,
    /// True with a LAN at each end.
    pub(super) lans: bool,
}

/// Result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Carried {
    pub(super) offered: u64,
    pub(super) bytes: u64,
    /// Time of the last arrival of data, seconds.
    pub(super) seconds: f64,
    /// Mean time from the first transmission of a packet to its arrival, seconds; `None` if none has arrived.
    pub(super) delay_s: Option<f64>,
    /// Mean time from the first transmission of a segment until a copy arrives without bit errors, seconds.
    pub(super) intact_s: Option<f64>,
    /// Frames with data, and those of them that arrived with bit errors.
    pub(super) data_frames: [u64; 2],
    pub(super) forward: Sent,
    pub(super) backward: Sent,
    /// Bytes that differ from those sent.
    pub(super) wrong: u64,
    /// Bytes that had arrived until the time of the set-up.
    pub(super) bytes_until: u64,
    /// Bytes sent again after that time, and those of them in segments that had arrived early enough to be acknowledged by then.
    pub(super) repeated_after: [u64; 2],
}

/// Air link of the paper with this bit-error rate.
pub(super) fn air(ber: f64) -> LineConfig {
    LineConfig {
        rate_bps: RATE_BPS,
        delay: Delay::constant_ms(10),
        queue_bytes: QUEUE_PACKETS * u64::from(MTU_BYTES),
        mtu_bytes: MTU_BYTES.into(),
        errors: Errors::Ber(ber),
        framing_bytes: FRAMING_BYTES,
        ..LineConfig::default()
    }
}

fn lan() -> LineConfig {
    LineConfig { rate_bps: 10_000_000_000, delay: Delay::default(), ..air(0.0) }
}

/// Place of the source or the sink, which are neighbours in the network layer.
fn place(position: usize) -> NodePosition {
    NodePosition {
        position,
        names: vec!["source".into(), "sink".into()],
        mtus: vec![MTU_BYTES],
        radios: vec![None],
        announced_outages: Vec::new(),
        bundles: bundle_observer::record(1),
        arrivals: Default::default(),
    }
}

impl Setup {
    /// Creates a run on the path of the paper: so many bytes, at this rate, or all at once.
    pub(super) fn new(protocol: Protocol, bytes: u64, rate_bps: Option<f64>, ber: f64) -> Setup {
        let packet_bytes = protocol.packet_bytes();
        let interval = rate_bps.map(|rate| Duration::from_secs_f64(packet_bytes as f64 * 8.0 / rate));
        let (mut forward, mut backward) = (air(ber), air(ber));
        if !matches!(protocol, Protocol::AeroTp(..)) {
            // As in ns-3, damaged frames of the others are lost, and the two bytes around a packet count.
            for line in [&mut forward, &mut backward] {
                (line.framing_bytes, line.fcs) = (0, Fcs::Crc16);
            }
        }
        if let Protocol::Tcp(profile) = &protocol {
            // A router in front of the air link drops what its queue of 100 packets does not hold.
            forward.backpressure = false;
            forward.queue_bytes = QUEUE_PACKETS * u64::from(profile.maximum_segment_bytes + HEADERS_BYTES);
        }
        let offer = Offer { bytes, packet_bytes, interval };
        Setup { protocol, offer, until: None, forward, backward, lans: false }
    }

    /// Returns the engine of the source or the sink.
    fn node(&self, position: usize, boot: &Boot, observed: &SharedObserved) -> NodeEngine<FileTask> {
        let (place, is_source) = (place(position), position == 0);
        let link = if is_source { ONWARD_LINK } else { LinkId(LinkId::FIRST_INCOMING) };
        macro_rules! over {
            ($transport:expr, $lower:expr) => {{
                let end = match is_source {
                    true => End::source($transport, self.offer, observed.clone()),
                    false => End::sink($transport, observed.clone()),
                };
                Box::new(Beneath::<_, Storage>::new(Stack::new(end, $lower)))
            }};
        }
        match &self.protocol {
            Protocol::Tcp(profile) => {
                over!(OverStream::new(link, is_source), stream_host(&place, profile, PORT, &boot.rng))
            }
            Protocol::Udp => over!(OverDatagrams::new(link), UdpHost::new(&place, PORT)),
            Protocol::AeroTp(service, config) => {
                let rng = boot.rng.fork("aerotp");
                let endpoint = match is_source {
                    true => OnLink::source(link, Endpoint::new(config.clone(), rng)),
                    false => OnLink::sink(link, Endpoint::listening(config.clone(), rng)),
                };
                let endpoint = Stack::new(endpoint, UdpHost::new(&place, PORT));
                over!(OverConnections::new(*service, is_source), endpoint)
            }
        }
    }

    fn start(&self, seed: u64, observed: &SharedObserved) -> Simulation<FileTask> {
        let mut simulation = world::simulation(seed);
        let [source, sink] = ["source", "sink"].map(|name| {
            let (setup, observed) = (self.clone(), observed.clone());
            let position = usize::from(name == "sink");
            simulation.add_node(name, move |boot| setup.node(position, &boot, &observed))
        });
        let air = ChannelConfig { forward: self.forward.clone(), backward: self.backward.clone() };
        let channel = if self.lans {
            let [left, right] = ["left", "right"].map(|name| {
                simulation.add_node(name, |_| Box::new(Beneath::<_, Storage>::new(IpRelay::default())))
            });
            simulation.add_channel((source, ONWARD), (left, INWARD), ChannelConfig::symmetric(lan()));
            let channel = simulation.add_channel((left, ONWARD), (right, INWARD), air);
            simulation.add_channel((right, ONWARD), (sink, INWARD), ChannelConfig::symmetric(lan()));
            channel
        } else {
            simulation.add_channel((source, ONWARD), (sink, INWARD), air)
        };
        let observed = observed.clone();
        simulation.set_trace(Box::new(move |frame| {
            if frame.channel == channel {
                observed.lock().expect("nobody panics").sent(&frame);
            }
        }));
        simulation.request(sink, TaskRequest::Expect { files: Vec::new() });
        simulation.request(source, TaskRequest::Start { files: Vec::new() });
        simulation
    }

    /// Plays a run: until everything has arrived and the source has ended, or until only the source has ended and what it has sent
    /// must have arrived.
    pub(super) fn play(&self, seed: u64) -> Carried {
        let observed = SharedObserved::default();
        let mut simulation = self.start(seed, &observed);
        let mut limit = Instant::ZERO + LIMIT;
        while simulation.next_event_at().is_some_and(|at| at <= limit) {
            simulation.step();
            while let Some((at, _, _)) = simulation.pop_indication() {
                limit = limit.min(at + REST + self.forward.delay.at(at) * 3);
            }
        }
        let observed = observed.lock().expect("nobody panics");
        self.carried(&observed)
    }

    fn carried(&self, observed: &Observed) -> Carried {
        Carried {
            offered: self.offer.bytes,
            bytes: observed.bytes,
            seconds: observed.last_at.as_secs_f64(),
            delay_s: observed.mean_delay(self.offer.packet_bytes).map(|delay| delay.as_secs_f64()),
            intact_s: observed.intact_delay_s(),
            data_frames: observed.data_frames,
            bytes_until: self.until.map_or(0, |until| observed.bytes_until(until)),
            repeated_after: self.until.map_or([0; 2], |until| {
                observed.repeated_after(until, self.backward.delay.at(until) + ANSWER)
            }),
            wrong: observed.wrong,
            forward: observed.forward,
            backward: observed.backward,
        }
    }
}
