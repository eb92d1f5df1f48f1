//! Nodes for tests: a talker that sends on request, and any engine over frames.

use bytes::Bytes;
use longwire_proto::engine::{Engine, Service, no_timers};
use longwire_proto::service::{Frames, FramesIndication, FramesRequest, InterfaceId, Shares};
use longwire_proto::time::Instant;
use longwire_proto::wrap::{Checked, CheckedService, ContractBreach};
use longwire_sim::*;
use std::collections::VecDeque;

/// Interface 0, the radio.
pub(crate) const AT: InterfaceId = OnRadio::INTERFACE;

/// Service of a [`Talker`] to its user.
#[derive(Debug)]
pub(crate) enum Talk {}

impl Service for Talk {
    type Request = Say;
    type Indication = FramesIndication;
}

/// Request through [`Talk`].
#[derive(Clone, Debug)]
pub(crate) struct Say {
    pub(crate) bytes: Bytes,
    pub(crate) token: Option<u64>,
    pub(crate) shares: Shares,
}

/// Frame of this many bytes, identified by the first of them.
pub(crate) fn say(number: u64, length: usize) -> Say {
    let mut bytes = vec![0x55; length];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    let shares = Shares { payload: length as u32 - 16, ..Shares::default() };
    Say { bytes: bytes.into(), token: Some(number), shares }
}

impl CheckedService for Talk {
    type Account = ();

    fn request(_: &mut (), _: &Say) -> Result<(), ContractBreach> {
        Ok(())
    }
    fn indication(_: &mut (), _: &FramesIndication) -> Result<(), ContractBreach> {
        Ok(())
    }
    fn owed(_: &()) -> Vec<String> {
        Vec::new()
    }
}

/// Sends frames on request as soon as it gets the channel, and reports everything that it receives. With `silent` it
/// requests the channel once, and sends nothing when it has it.
#[derive(Default)]
pub(crate) struct Talker {
    silent: bool,
    joined: bool,
    seized: bool,
    room: u32,
    waiting: VecDeque<Say>,
    heard: VecDeque<FramesIndication>,
}

impl Talker {
    pub(crate) fn silent() -> Self {
        Talker { silent: true, ..Talker::default() }
    }
}

impl Engine for Talker {
    type Above = Talk;
    type Below = Frames;

    no_timers!();

    fn handle_request(&mut self, _: Instant, request: Say) {
        self.waiting.push_back(request);
    }
    fn handle_indication(&mut self, _: Instant, indication: FramesIndication) {
        if let FramesIndication::Room(room) = indication {
            self.room = room;
            self.seized &= room > 0;
        }
        self.heard.push_back(indication);
    }
    fn poll_indication(&mut self, _now: Instant) -> Option<FramesIndication> {
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
        if core::mem::take(&mut self.silent) {
            self.waiting.clear();
            return None;
        }
        let Say { bytes, token, shares } = self.waiting.pop_front()?;
        self.room -= 1;
        let last = self.waiting.is_empty() || self.room == 0;
        self.seized &= !last;
        Some(FramesRequest::Frame { bytes, token, last, shares })
    }
}

/// Makes a world of talkers on one channel, named t0, t1 and so on.
pub(crate) fn talkers(
    seed: u64,
    count: usize,
    config: RadioConfig,
) -> (Simulation<Talk>, Vec<NodeId>, ChannelId) {
    talkers_of(seed, config, (0..count).map(|_| Talker::default as fn() -> Talker))
}

pub(crate) fn talkers_of(
    seed: u64,
    config: RadioConfig,
    kinds: impl Iterator<Item = fn() -> Talker>,
) -> (Simulation<Talk>, Vec<NodeId>, ChannelId) {
    let mut world = Simulation::new(seed);
    let add = |(index, kind): (usize, fn() -> Talker)| {
        world.add_node(&format!("t{index}"), move |boot| Box::new(OnRadio(Checked::new(&boot.name, kind()))))
    };
    let nodes: Vec<NodeId> = kinds.enumerate().map(add).collect();
    let ends: Vec<(NodeId, InterfaceId)> = nodes.iter().map(|node| (*node, AT)).collect();
    let channel = world.add_radio(config, &ends);
    (world, nodes, channel)
}

/// Runs until an indication ends it. Returns its time, seconds.
pub(crate) fn run<A: Service>(
    world: &mut Simulation<A>,
    mut is_done: impl FnMut(NodeId, A::Indication) -> bool,
) -> f64 {
    loop {
        while let Some((at, node, said)) = world.pop_indication() {
            if is_done(node, said) {
                return at.as_secs_f64();
            }
        }
        assert!(world.step(), "nothing happens any more\n{}", world.status());
        assert!(world.now() < Instant::from_secs(5000), "not done\n{}", world.status());
    }
}
