//! Node for tests: sends frames on request as room allows, and reports everything that it receives to its user.

// Each test binary uses only a part of this module.
#![allow(dead_code, unreachable_pub)]

use bytes::Bytes;
use longwire_proto::engine::{Engine, Service};
use longwire_proto::service::{
    FramesIndication, FramesRequest, InterfaceId, Port, Shares, StorageIndication, StorageRequest,
};
use longwire_proto::time::Instant;
use longwire_proto::wrap::{Checked, CheckedService, ContractBreach};
use longwire_sim::*;
use std::collections::{BTreeMap, VecDeque};

/// Service of a [`Station`] to its user.
#[derive(Debug)]
pub enum Talk {}

impl Service for Talk {
    type Request = Ask;
    type Indication = Hear;
}

/// Request through [`Talk`].
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// A frame to send when there is room.
    Frame { interface: u16, bytes: Bytes, token: Option<u64>, shares: Shares },
    /// Request to the disk.
    Storage(StorageRequest),
    /// Request for the indication `Rang` at this time.
    Alarm(Instant),
}

/// Indication through [`Talk`].
#[derive(Clone, Debug, PartialEq)]
pub enum Hear {
    Frame(u16, Bytes),
    Transmitted(u16, u64),
    Carrier(u16, bool),
    Room(u16, u32),
    Storage(StorageIndication),
    Rang,
}

impl CheckedService for Talk {
    type Account = ();

    fn request(_: &mut (), _: &Ask) -> Result<(), ContractBreach> {
        Ok(())
    }
    fn indication(_: &mut (), _: &Hear) -> Result<(), ContractBreach> {
        Ok(())
    }
    fn owed(_: &()) -> Vec<String> {
        Vec::new()
    }
}

/// Makes a station that panics when the simulator breaks the contract of a service.
pub fn station(name: &str, interfaces: &[u16]) -> NodeEngine<Talk> {
    Box::new(Checked::new(name, Station::new(interfaces)))
}

#[derive(Default)]
pub struct Station {
    interfaces: Vec<u16>,
    joins: VecDeque<u16>,
    room: BTreeMap<u16, u32>,
    waiting: BTreeMap<u16, VecDeque<FramesRequest>>,
    storage: VecDeque<StorageRequest>,
    heard: VecDeque<Hear>,
    alarms: Vec<Instant>,
}

impl Station {
    pub fn new(interfaces: &[u16]) -> Self {
        Station {
            interfaces: interfaces.to_vec(),
            joins: interfaces.iter().copied().collect(),
            ..Station::default()
        }
    }
}

impl Engine for Station {
    type Above = Talk;
    type Below = NodeBelow;

    fn handle_request(&mut self, _now: Instant, request: Ask) {
        match request {
            Ask::Frame { interface, bytes, token, shares } => {
                let frame = FramesRequest::Frame { bytes, token, last: true, shares };
                self.waiting.entry(interface).or_default().push_back(frame);
            }
            Ask::Storage(request) => self.storage.push_back(request),
            Ask::Alarm(at) => self.alarms.push(at),
        }
    }

    fn handle_indication(
        &mut self,
        _now: Instant,
        indication: Port<StorageIndication, (InterfaceId, FramesIndication)>,
    ) {
        let hear = match indication {
            Port::First(answer) => Hear::Storage(answer),
            Port::Second((InterfaceId(id), indication)) => match indication {
                FramesIndication::Frame(bytes) => Hear::Frame(id, bytes),
                FramesIndication::Transmitted(token) => Hear::Transmitted(id, token),
                FramesIndication::Busy(_) => unreachable!("nobody else is on a line"),
                FramesIndication::Carrier(carrier) => Hear::Carrier(id, carrier),
                FramesIndication::Room(room) => {
                    self.room.insert(id, room);
                    Hear::Room(id, room)
                }
            },
        };
        self.heard.push_back(hear);
    }

    fn handle_timeout(&mut self, now: Instant) {
        let before = self.alarms.len();
        self.alarms.retain(|at| *at > now);
        self.heard.extend((self.alarms.len()..before).map(|_| Hear::Rang));
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<Hear> {
        self.heard.pop_front()
    }

    fn poll_request(&mut self, _now: Instant) -> Option<Port<StorageRequest, (InterfaceId, FramesRequest)>> {
        if let Some(id) = self.joins.pop_front() {
            return Some(Port::Second((InterfaceId(id), FramesRequest::Join)));
        }
        if let Some(request) = self.storage.pop_front() {
            return Some(Port::First(request));
        }
        for id in &self.interfaces {
            let (Some(room), Some(waiting)) = (self.room.get_mut(id), self.waiting.get_mut(id)) else {
                continue;
            };
            if *room > 0
                && let Some(frame) = waiting.pop_front()
            {
                *room -= 1;
                return Some(Port::Second((InterfaceId(*id), frame)));
            }
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.alarms.iter().min().copied()
    }
}

/// Makes two stations, `a` and `b`, with a channel between interface 0 of each.
pub fn pair(seed: u64, config: ChannelConfig) -> (Simulation<Talk>, NodeId, NodeId, ChannelId) {
    pair_on(seed, config, DiskConfig::default())
}

pub fn pair_on(
    seed: u64,
    config: ChannelConfig,
    disk: DiskConfig,
) -> (Simulation<Talk>, NodeId, NodeId, ChannelId) {
    let mut simulation = Simulation::new(seed);
    let mut add = |name: &str| {
        simulation.add_node_with(name, disk.clone(), ClockConfig::default(), |boot| station(&boot.name, &[0]))
    };
    let (a, b) = (add("a"), add("b"));
    let channel = simulation.add_channel((a, InterfaceId(0)), (b, InterfaceId(0)), config);
    (simulation, a, b, channel)
}

pub fn frame(length: usize) -> Ask {
    numbered(length, None)
}

pub fn numbered(length: usize, token: Option<u64>) -> Ask {
    Ask::Frame { interface: 0, bytes: vec![0x5a; length].into(), token, shares: Shares::default() }
}

/// Returns the indications of one node except those of room.
pub fn said(told: &[NodeIndication<Talk>], node: NodeId) -> Vec<(f64, Hear)> {
    let of_node = told.iter().filter(|told| told.1 == node && !matches!(told.2, Hear::Room(..)));
    of_node.map(|told| (told.0.as_secs_f64(), told.2.clone())).collect()
}
