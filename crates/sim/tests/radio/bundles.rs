//! Bundles over AX.25 links on a radio channel: the overhead of each convergence layer compared with the plain link.

use crate::ax25::{believed, call, file, link};
use crate::nodes::*;
use bytes::Bytes;
use longwire_proto::ax25::{self, LinkConfig, PeerStation, Station};
use longwire_proto::engine::{Engine, Indication, Request, Service};
use longwire_proto::joint::{Fan, OnFirst, Origin, Stack};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    Bundles, BundlesIndication, BundlesRequest, LinkId, Many, Packets, Priority, TransferId,
};
use longwire_proto::time::{Duration, Instant};
use longwire_proto::wrap::Checked;
use longwire_proto::{ax25cl, tcpcl};
use longwire_sim::*;
use std::collections::VecDeque;

/// Time of a store to make received data durable.
const STORE: Duration = Duration::from_millis(10);
/// Overhead of a bundle in addition to its payload: more than its blocks usually need.
const BLOCKS_BYTES: usize = 100;
const OWN: LinkId = LinkId(0);

#[derive(Debug)]
pub(crate) enum Errands {}

impl Service for Errands {
    /// Request to join or connect, and to send this bundle.
    type Request = Option<Bytes>;
    type Indication = Done;
}

#[derive(Debug, PartialEq)]
pub(crate) enum Done {
    Sent,
    Received(Vec<u8>),
}

pub(crate) type Layer<S> = Box<dyn Engine<Above = Many<LinkId, Bundles>, Below = S> + Send>;
pub(crate) type Links = Many<LinkId, Packets>;

/// User of a convergence layer: sends one bundle, and accepts received data when its store has them.
pub(crate) struct Courier<S> {
    layer: Layer<S>,
    now: Instant,
    /// Bundle, and the number of bytes passed to the layer.
    bundle: Option<(Bytes, usize)>,
    risen: Vec<u8>,
    stored: VecDeque<(Instant, LinkId, TransferId, u64)>,
    done: VecDeque<Done>,
    room: u64,
}

impl<S: Service> Courier<S> {
    pub(crate) fn new(layer: Layer<S>) -> Self {
        Courier {
            layer,
            now: Instant::ZERO,
            bundle: None,
            risen: Vec::new(),
            stored: VecDeque::new(),
            done: VecDeque::new(),
            room: 0,
        }
    }

    fn heard(&mut self, id: LinkId, said: BundlesIndication) {
        match said {
            BundlesIndication::Up { .. } => {
                if let Some((bundle, _)) = &self.bundle {
                    let (transfer, length) = (TransferId(1), bundle.len() as u64);
                    let open = BundlesRequest::Open { transfer, priority: Priority::Normal, length };
                    self.layer.handle_request(self.now, (id, open));
                }
            }
            BundlesIndication::Peer { .. } | BundlesIndication::Amateur => {}
            BundlesIndication::Room(room) => self.room = room,
            BundlesIndication::Piece { transfer, data, last } => {
                self.risen.extend_from_slice(&data);
                self.stored.push_back((self.now + STORE, id, transfer, self.risen.len() as u64));
                if last {
                    self.done.push_back(Done::Received(core::mem::take(&mut self.risen)));
                }
            }
            BundlesIndication::Sent { .. } => self.done.push_back(Done::Sent),
            BundlesIndication::Down { reason, .. } => panic!("{id:?} is down: {reason:?}"),
            BundlesIndication::Failed { .. } | BundlesIndication::Lost { .. } => panic!("{said:?}"),
            BundlesIndication::Begin { .. } | BundlesIndication::Acked { .. } => {}
        }
    }

    fn hand(&mut self) -> bool {
        let Some((bundle, handed)) = self.bundle.as_mut() else { return false };
        let length = (bundle.len() - *handed).min(self.room as usize);
        if length == 0 {
            return false;
        }
        let data = bundle.slice(*handed..*handed + length);
        *handed += length;
        self.room -= length as u64;
        let piece = BundlesRequest::Piece { transfer: TransferId(1), data, last: *handed == bundle.len() };
        self.layer.handle_request(self.now, (OWN, piece));
        true
    }
}

impl<S: Service> Engine for Courier<S> {
    type Above = Errands;
    type Below = S;

    fn handle_request(&mut self, now: Instant, bundle: Option<Bytes>) {
        self.now = now;
        self.bundle = bundle.map(|bundle| (bundle, 0));
        self.layer.handle_request(now, (OWN, BundlesRequest::Connect));
    }
    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>) {
        self.now = now;
        self.layer.handle_indication(now, indication);
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        while let Some((_, id, transfer, up_to)) = self.stored.front().copied().filter(|(at, ..)| *at <= now)
        {
            self.stored.pop_front();
            self.layer.handle_request(now, (id, BundlesRequest::Accept { transfer, up_to }));
        }
        self.layer.handle_timeout(now);
    }
    fn poll_indication(&mut self, now: Instant) -> Option<Done> {
        loop {
            while let Some((id, said)) = self.layer.poll_indication(now) {
                self.heard(id, said);
            }
            if let Some(done) = self.done.pop_front() {
                return Some(done);
            }
            if !self.hand() {
                return None;
            }
        }
    }
    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        self.layer.poll_request(now)
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let stored = self.stored.front().map(|(at, ..)| *at);
        [stored, self.layer.poll_timeout()].into_iter().flatten().min()
    }
}

/// Makes an AX25-CL layer whose calling side knows the node ID of its peer.
pub(crate) fn ours(at: usize, rng: Rng) -> Layer<Links> {
    let name = |at| format!("ipn:{at}.0");
    let config = ax25cl::Config {
        node_id: name(at),
        peer_node_id: (at == 0).then(|| name(1)),
        ..ax25cl::Config::default()
    };
    let configure: ax25cl::Configure = Box::new(move |_| Some(config.clone()));
    Box::new(Checked::new("ours", ax25cl::Sessions::new(configure, rng)))
}

/// Makes an AX25CM-CL layer with this acknowledgement window.
fn ax25cm(at: usize, rng: Rng, ack_window: u32) -> Layer<Links> {
    let config = tcpcl::Config { ack_window, ..tcpcl::Config::ax25(&format!("dtn://n{at}")) };
    let make = move |_, origin| {
        let session = match origin {
            Origin::Above => tcpcl::Session::active(config.clone(), rng.clone()),
            Origin::Below => tcpcl::Session::passive(config.clone(), rng.clone()),
        };
        Some(Stack::new(session, tcpcl::PacketStream::new()))
    };
    Box::new(Checked::new("ax25cm", Fan::new(make)))
}

pub(crate) fn radio(rate_bps: u64) -> RadioConfig {
    let station = StationConfig {
        tx_delay: Duration::from_millis(150),
        slot_time: Duration::from_millis(20),
        ..StationConfig::default()
    };
    RadioConfig { rate_bps, stations: vec![station], ..RadioConfig::default() }
}

/// Returns the time from the connection request to the last acknowledgement, and the time of the frames of the
/// receiver, seconds.
fn carried(seed: u64, rate_bps: u64, window: u8, layer: fn(usize, Rng) -> Layer<Links>) -> (f64, f64) {
    let carried = carried_over(seed, radio(rate_bps), &link(window), layer);
    (carried.took_s, carried.answers_s)
}

/// Times of a transferred bundle.
pub(crate) struct Carried {
    /// Time from the connection request to the last acknowledgement, seconds.
    pub(crate) took_s: f64,
    /// Time of the frames of the receiver, seconds.
    answers_s: f64,
    /// Time in which any transmitter was keyed, seconds.
    pub(crate) keyed_s: f64,
}

/// Returns the time in which any transmitter was keyed, seconds.
pub(crate) fn keyed_s(world: &Simulation<Errands>, channel: ChannelId) -> f64 {
    let airtime = world.radio_channel_airtime(channel);
    (airtime.sent() + airtime.keying) as f64 / 1e9
}

/// Returns the file with the overhead of a bundle.
pub(crate) fn bundle() -> Bytes {
    let mut bundle = file().concat();
    bundle.extend([0x55; BLOCKS_BYTES]);
    bundle.into()
}

pub(crate) fn carried_over(
    seed: u64,
    radio: RadioConfig,
    link: &LinkConfig,
    layer: fn(usize, Rng) -> Layer<Links>,
) -> Carried {
    let mut world: Simulation<Errands> = Simulation::new(seed);
    let nodes = [0, 1].map(|at| {
        let mut config = ax25::Config::new(call(["A", "B"][at]));
        config.radio = believed(&radio, at);
        config.callers = Some(link.clone());
        if at == 0 {
            config
                .peers
                .insert(OWN, PeerStation { station: call("B"), path: Vec::new(), link: link.clone() });
        }
        world.add_node(["A", "B"][at], move |boot| {
            let station = Checked::new(&boot.name, Station::new(config.clone()));
            let courier = Courier::new(layer(at, Rng::new(seed).fork(&boot.name)));
            Box::new(OnRadio(Stack::new(courier, OnFirst(station))))
        })
    });
    let ends = nodes.map(|node| (node, AT));
    let channel = world.add_radio(radio, &ends);
    let bundle = bundle();
    world.request(nodes[0], Some(bundle.clone()));
    let took_s = run_until_sent(&mut world, &bundle);
    let answers_s = world.radio_airtime(channel, ends[1]).sent() as f64 / 1e9;
    Carried { took_s, answers_s, keyed_s: keyed_s(&world, channel) }
}

/// Runs until the bundle is sent, which one node has received by then. Returns the time, seconds.
pub(crate) fn run_until_sent(world: &mut Simulation<Errands>, bundle: &[u8]) -> f64 {
    let mut received = None;
    run(world, |_, done| match done {
        Done::Received(bytes) => {
            received = Some(bytes);
            false
        }
        Done::Sent => {
            assert!(received.as_deref() == Some(bundle), "every byte is as it was sent");
            true
        }
    })
}

const RUNS: u64 = 40;

fn mean(of: impl Fn(u64) -> f64) -> f64 {
    (0..RUNS).map(of).sum::<f64>() / RUNS as f64
}

#[test]
fn our_convergence_layer_costs_little_beside_the_bare_link() {
    for (rate_bps, most) in [(1200, 0.03), (9600, 0.05)] {
        for window in 4..=7 {
            let bare = mean(|seed| crate::ax25::called_and_carried(seed, &radio(rate_bps), window, &file()));
            let took = mean(|seed| carried(seed, rate_bps, window, ours).0);
            let more = took / bare - 1.0;
            println!("{rate_bps} k={window}: bare {bare:.2} s, bundle {took:.2} s, {:+.2} %", 100.0 * more);
            assert!(more < most, "{rate_bps} bit/s, k = {window}: {took} s beside {bare} s");
        }
    }
}

#[test]
fn fewer_acknowledgements_take_less_time() {
    for rate_bps in [1200, 9600] {
        let layers: [fn(usize, Rng) -> Layer<Links>; 3] =
            [|at, rng| ax25cm(at, rng, 1), |at, rng| ax25cm(at, rng, 8), |at, rng| ax25cm(at, rng, 32)];
        let took = layers.map(|layer| {
            let took = mean(|seed| carried(seed, rate_bps, 4, layer).0);
            let answered = mean(|seed| carried(seed, rate_bps, 4, layer).1);
            (took, answered)
        });
        for ((took, answered), ack_window) in took.iter().zip([1, 8, 32]) {
            let bytes = answered * rate_bps as f64 / 8.0;
            println!(
                "{rate_bps} ack-window {ack_window}: {took:.2} s, of it the receiver's {answered:.2} s, {bytes:.0} bytes"
            );
        }
        assert!(took[0].0 > took[1].0 && took[1].0 > took[2].0, "{took:?}");
        assert!(took[0].1 > 2.0 * took[1].1 && took[1].1 > took[2].1, "{took:?}");
    }
}
