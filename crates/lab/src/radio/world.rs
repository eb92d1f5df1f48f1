//! One run: stations that send single frames, and the fate of the frames.

use super::RadioScenario;
use crate::link::at;
use crate::world;
use bytes::Bytes;
use longwire_proto::ax25::{Address, Callsign, CommandResponse, Control, Frame, Modulo, Unnumbered, pid};
use longwire_proto::engine::{Engine, Service, no_timers};
use longwire_proto::joint::Stack;
use longwire_proto::rng::Rng;
use longwire_proto::service::{Frames, FramesIndication, FramesRequest, InterfaceId, Shares};
use longwire_proto::time::Instant;
use longwire_sim::{FrameFate, NodeId, OnRadio, Simulation, Tnc};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

const AT: InterfaceId = OnRadio::INTERFACE;
/// Maximum frames waiting at a station; further frames are dropped.
const WAITING_MAX: usize = 256;

/// Result of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Frames to be sent.
    pub frames: u32,
    /// Time from the send request to the arrival of the frames that arrived, seconds, ascending.
    pub delays_s: Vec<f64>,
    /// Frames lost at their destination by a collision.
    pub collided: u32,
    /// Frames whose destination was transmitting.
    pub deaf: u32,
    /// Frames lost by bit errors.
    pub damaged: u32,
    /// Total time for which transmitters were keyed, seconds.
    pub keyed_s: f64,
    /// Duration of the run, seconds.
    pub lasted_s: f64,
}

impl Outcome {
    /// Quantile of the delay of the frames that arrived, seconds.
    pub fn delay_s(&self, share: f64) -> Option<f64> {
        let last = self.delays_s.len().checked_sub(1)?;
        Some(self.delays_s[((last as f64 * share).round() as usize).min(last)])
    }

    /// The mean delay, seconds.
    pub fn mean_delay_s(&self) -> Option<f64> {
        let count = self.delays_s.len() as f64;
        (count > 0.0).then(|| self.delays_s.iter().sum::<f64>() / count)
    }
}

/// Frame to be sent.
struct PlannedFrame {
    at: Instant,
    from: usize,
    to: usize,
}

pub(super) fn play(plan: &RadioScenario, seed: u64) -> Outcome {
    let wishes = draw(plan, &mut Rng::new(seed).fork("frames"));
    let mut world: Simulation<FrameLoadService> = world::simulation(seed);
    let nodes: Vec<NodeId> = plan.nodes.iter().map(|name| add_station(&mut world, name, plan)).collect();
    let ends: Vec<_> = nodes.iter().map(|node| (*node, AT)).collect();
    let channel = world.add_radio(plan.radio.clone(), &ends);
    let fates = Arc::new(Mutex::new(BTreeMap::new()));
    let (sink, addressed) = (fates.clone(), wishes.iter().map(|wish| nodes[wish.to]).collect::<Vec<_>>());
    world.set_trace(Box::new(move |record| {
        if let Some(number) = number(&record.bytes)
            && addressed.get(number) == Some(&record.to.node)
        {
            sink.lock().expect("nobody panics").insert(number, (record.fate, record.received));
        }
    }));
    for (number, wish) in wishes.iter().enumerate() {
        let bytes = frame(number, wish, plan.frames.bytes);
        world.request_at(wish.at, nodes[wish.from], bytes);
    }
    while world.step() {
        // The trace already contains the received frames.
        world.take_indications();
    }
    let airtime = ends.iter().map(|end| world.radio_airtime(channel, *end));
    let keyed: u64 = airtime.map(|airtime| airtime.sent() + airtime.keying).sum();
    let mut outcome = Outcome {
        frames: wishes.len() as u32,
        keyed_s: keyed as f64 / 1e9,
        lasted_s: world.now().as_secs_f64(),
        ..Outcome::default()
    };
    for (number, (fate, received)) in fates.lock().expect("nobody panics").iter() {
        match (fate, received) {
            (FrameFate::Delivered, Some(received)) => {
                let delay = received.saturating_since(wishes[*number].at);
                outcome.delays_s.push(delay.as_secs_f64());
            }
            (FrameFate::Collided, _) => outcome.collided += 1,
            (FrameFate::Deaf, _) => outcome.deaf += 1,
            (FrameFate::CheckFailed | FrameFate::Damaged, _) => outcome.damaged += 1,
            _ => {}
        }
    }
    outcome.delays_s.sort_by(f64::total_cmp);
    outcome
}

/// Draws sender, receiver and time of each frame: a Poisson process with this mean rate at each station.
fn draw(plan: &RadioScenario, rng: &mut Rng) -> Vec<PlannedFrame> {
    let mut wishes = Vec::new();
    let (senders, hearers) = (plan.senders(), plan.hearers());
    for from in senders {
        let others: Vec<usize> = hearers.iter().copied().filter(|to| *to != from).collect();
        let mut rng = rng.fork(&plan.nodes[from]);
        let mut at_s = 0.0;
        loop {
            at_s += rng.exponential(60.0 / plan.frames.per_minute);
            if at_s > plan.frames.for_s {
                break;
            }
            let to = others[rng.below(others.len() as u64) as usize];
            wishes.push(PlannedFrame { at: at(at_s), from, to });
        }
    }
    wishes.sort_by_key(|wish| (wish.at, wish.from));
    wishes
}

/// Creates a UI frame that contains four bytes of its number and filling.
fn frame(number: usize, wish: &PlannedFrame, bytes: u32) -> Bytes {
    let [from, to] = [wish.from, wish.to].map(|at| {
        let call: Callsign = format!("R{at}").parse().expect("a letter and digits are a callsign");
        call
    });
    let mut information = vec![0x55; bytes as usize];
    information[..NUMBER_BYTES].copy_from_slice(&(number as u32).to_be_bytes());
    let control = Control::Unnumbered { function: Unnumbered::Information, poll_final: false };
    let address = Address::new(from, to, CommandResponse::Command, &[]);
    Frame { address, control, pid: pid::NONE, information: information.into() }.to_bytes(Modulo::Eight)
}

/// Bytes of the number in a frame.
pub(super) const NUMBER_BYTES: usize = 4;

fn number(bytes: &Bytes) -> Option<usize> {
    let frame = Frame::decode(&mut bytes.clone(), Modulo::Eight).ok()?;
    let number = frame.information.first_chunk::<NUMBER_BYTES>()?;
    Some(u32::from_be_bytes(*number) as usize)
}

fn add_station(world: &mut Simulation<FrameLoadService>, name: &str, plan: &RadioScenario) -> NodeId {
    let tnc = plan.tnc.clone();
    world.add_node(name, move |_| match &tnc {
        None => Box::new(OnRadio(FrameSource::default())),
        Some(tnc) => Box::new(OnRadio(Stack::new(FrameSource::default(), Tnc::new(tnc.clone())))),
    })
}

/// Service between a station and its user: frames.
#[derive(Debug)]
enum FrameLoadService {}

impl Service for FrameLoadService {
    type Request = Bytes;
    type Indication = Bytes;
}

/// Sends each frame as soon as it gets the channel.
#[derive(Debug, Default)]
struct FrameSource {
    joined: bool,
    seized: bool,
    room: u32,
    waiting: VecDeque<Bytes>,
    heard: VecDeque<Bytes>,
}

impl Engine for FrameSource {
    type Above = FrameLoadService;
    type Below = Frames;

    no_timers!();

    fn handle_request(&mut self, _: Instant, frame: Bytes) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back(frame);
        }
    }

    fn handle_indication(&mut self, _: Instant, indication: FramesIndication) {
        match indication {
            FramesIndication::Room(room) => {
                self.room = room;
                self.seized &= room > 0;
            }
            FramesIndication::Frame(bytes) => self.heard.push_back(bytes),
            FramesIndication::Transmitted(_) | FramesIndication::Busy(_) | FramesIndication::Carrier(_) => {}
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<Bytes> {
        self.heard.pop_front()
    }

    fn poll_request(&mut self, _: Instant) -> Option<FramesRequest> {
        if !core::mem::replace(&mut self.joined, true) {
            return Some(FramesRequest::Join);
        }
        if self.waiting.is_empty() {
            return None;
        }
        if self.room == 0 {
            return (!core::mem::replace(&mut self.seized, true)).then_some(FramesRequest::Seize);
        }
        let bytes = self.waiting.pop_front()?;
        self.room -= 1;
        let last = self.waiting.is_empty() || self.room == 0;
        self.seized &= !last;
        let shares = Shares { payload: bytes.len() as u32, ..Shares::default() };
        Some(FramesRequest::Frame { bytes, token: None, last, shares })
    }
}
