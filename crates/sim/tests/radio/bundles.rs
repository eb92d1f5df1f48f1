//! Bundles over AX.25 links on a radio channel: the overhead of each convergence layer compared with the plain link.

use crate::ax25::{believed, call, file, link};
use crate::nodes::*;
use bytes::Bytes;
use longwire_proto::ax25::{self, LinkConfig, PeerStation, Station};
use longwire_proto::engine::{Engine, Indication, Request, Service};
use longwire_proto::joint::{Fan, Origin, Stack};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    Both, Bundles, BundlesIndication, BundlesRequest, Datagrams, LinkId, Many, Packets, Port, Priority,
    TransferId,
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

pub(crate) type Below = Both<Many<LinkId, Packets>, Many<LinkId, Datagrams>>;
pub(crate) type Layer = Box<dyn Engine<Above = Many<LinkId, Bundles>, Below = Below> + Send>;

/// Layer over links or over UI frames: one side of the services of a station.
pub(crate) struct OneSide<E, S: Service> {
    pub(crate) layer: E,
    /// Conversions to and from the side that is used.
    pub(crate) down: fn(S::Request) -> Request<Below>,
    pub(crate) up: fn(Indication<Below>) -> Option<S::Indication>,
}

impl<E: Engine<Below = S>, S: Service> Engine for OneSide<E, S> {
    type Above = E::Above;
    type Below = Below;

    fn handle_request(&mut self, now: Instant, request: Request<E::Above>) {
        self.layer.handle_request(now, request);
    }
    fn handle_indication(&mut self, now: Instant, indication: Indication<Below>) {
        if let Some(said) = (self.up)(indication) {
            self.layer.handle_indication(now, said);
        }
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.layer.handle_timeout(now);
    }
    fn poll_indication(&mut self, now: Instant) -> Option<Indication<E::Above>> {
        self.layer.poll_indication(now)
    }
    fn poll_request(&mut self, now: Instant) -> Option<Request<Below>> {
        self.layer.poll_request(now).map(self.down)
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.layer.poll_timeout()
    }
}

fn over_links<E>(layer: E) -> Layer
where
    E: Engine<Above = Many<LinkId, Bundles>, Below = Many<LinkId, Packets>> + Send + 'static,
{
    let up = |said| if let Port::First(said) = said { Some(said) } else { None };
    Box::new(OneSide { layer, down: Port::First, up })
}

/// User of a convergence layer: sends one bundle, and accepts received data when its store has them.
pub(crate) struct Courier {
    layer: Layer,
    now: Instant,
    /// Bundle, and the number of bytes passed to the layer.
    bundle: Option<(Bytes, usize)>,
    risen: Vec<u8>,
    stored: VecDeque<(Instant, LinkId, TransferId, u64)>,
    done: VecDeque<Done>,
    room: u64,
}

impl Courier {
    pub(crate) fn new(layer: Layer) -> Self {
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
            BundlesIndication::Peer { .. } => {}
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

impl Engine for Courier {
    type Above = Errands;
    type Below = Below;

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
pub(crate) fn ours(at: usize, rng: Rng) -> Layer {
    let name = |at| format!("ipn:{at}.0");
    let config = ax25cl::Config {
        node_id: name(at),
        peer_node_id: (at == 0).then(|| name(1)),
        ..ax25cl::Config::default()
    };
    let configure: ax25cl::Configure = Box::new(move |_| Some(config.clone()));
    over_links(Checked::new("ours", ax25cl::Sessions::new(configure, rng)))
}

/// Makes an AX25CM-CL layer with this acknowledgement window.
fn ax25cm(at: usize, rng: Rng, ack_window: u32) -> Layer {
    let config = tcpcl::Config { ack_window, ..tcpcl::Config::ax25(&format!("dtn://n{at}")) };
    let make = move |_, origin| {
        let session = match origin {
            Origin::Above => tcpcl::Session::active(config.clone(), rng.clone()),
            Origin::Below => tcpcl::Session::passive(config.clone(), rng.clone()),
        };
        Some(Stack::new(session, tcpcl::PacketStream::new()))
    };
    over_links(Checked::new("ax25cm", Fan::new(make)))
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
fn carried(seed: u64, rate_bps: u64, window: u8, layer: fn(usize, Rng) -> Layer) -> (f64, f64) {
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
    layer: fn(usize, Rng) -> Layer,
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
        let factory: Factory<Errands> = Box::new(move |boot| {
            let station = Checked::new(&boot.name, Station::new(config.clone()));
            let courier = Courier::new(layer(at, Rng::new(seed).fork(&boot.name)));
            Box::new(OnRadio(Stack::new(courier, station)))
        });
        world.add_node(["A", "B"][at], DiskConfig::default(), ClockConfig::default(), factory)
    });
    let ends = nodes.map(|node| (node, AT));
    let channel = world.add_radio(radio, &ends);
    let bundle = bundle();
    let since = world.now();
    world.request(nodes[0], Some(bundle.clone()));
    let mut received = None;
    loop {
        while let Some((_, _, done)) = world.pop_indication() {
            match done {
                Done::Received(bytes) => received = Some(bytes),
                Done::Sent => {
                    assert_eq!(received.as_deref(), Some(&bundle[..]), "seed {seed}");
                    let took_s = world.now().saturating_since(since).as_secs_f64();
                    let answers_s = world.radio_airtime(channel, ends[1]).sent() as f64 / 1e9;
                    return Carried { took_s, answers_s, keyed_s: keyed_s(&world, channel) };
                }
            }
        }
        assert!(world.step(), "nothing happens any more\n{}", world.status());
        assert!(world.now() < Instant::from_secs(5000), "not done\n{}", world.status());
    }
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
        let layers: [fn(usize, Rng) -> Layer; 3] =
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
