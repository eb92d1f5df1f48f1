//! Side of this project in every test here: a host and its user.

use bytes::Bytes;
use longwire_proto::engine::Engine;
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    CloseReason, FramesIndication, FramesRequest, InterfaceId, LinkId, StreamIndication, StreamRequest,
};
use longwire_proto::tcp::config::{HostConfig, InterfaceConfig, PeerConfig, Profile};
use longwire_proto::tcp::{Counters, Host};
use longwire_proto::time::Instant;
use std::net::Ipv4Addr;

/// Address of the host, address of its peer, and port on which either listens.
pub(crate) const NEAR: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
pub(crate) const FAR: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
pub(crate) const PORT: u16 = 4556;

const CALL: LinkId = LinkId(1);
const LINE: InterfaceId = InterfaceId(0);

/// Bytes that identify their position.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Rng::new(99).fill(&mut bytes);
    bytes
}

/// Host and its user, which writes all data, keeps received data, and closes when everything is written and, if it
/// waits for that, the peer has closed.
pub(crate) struct Near {
    host: Host,
    link: LinkId,
    room: u64,
    to_write: Bytes,
    waits_for_peer: bool,
    closing: bool,
    pub connected: bool,
    pub peer_closed: bool,
    pub received: Vec<u8>,
    pub closed: Option<CloseReason>,
    pub counters: Counters,
}

impl Near {
    pub(crate) fn new(profile: Profile, to_write: Vec<u8>, waits_for_peer: bool) -> Self {
        let config = HostConfig {
            profile,
            interfaces: vec![InterfaceConfig {
                interface: LINE,
                address: NEAR,
                ..InterfaceConfig::default()
            }],
            listen: vec![PORT],
            peers: vec![PeerConfig { link: CALL, address: FAR, port: PORT }],
            ..HostConfig::default()
        };
        Near {
            host: Host::new(config, Rng::new(3)),
            link: CALL,
            room: 0,
            to_write: to_write.into(),
            waits_for_peer,
            closing: false,
            connected: false,
            peer_closed: false,
            received: Vec::new(),
            closed: None,
            counters: Counters::default(),
        }
    }

    pub(crate) fn call(&mut self, now: Instant) {
        self.host.handle_request(now, (CALL, StreamRequest::Connect));
    }

    pub(crate) fn abort(&mut self, now: Instant) {
        self.host.handle_request(now, (self.link, StreamRequest::Abort));
    }

    pub(crate) fn hear(&mut self, now: Instant, frame: Bytes) {
        self.host.handle_indication(now, (LINE, FramesIndication::Frame(frame)));
    }

    pub(crate) fn wake(&mut self, now: Instant) {
        self.host.handle_timeout(now);
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.host.poll_timeout()
    }

    /// Drains the host over a line that accepts every frame, and returns the frames.
    pub(crate) fn poll(&mut self, now: Instant) -> Vec<Bytes> {
        let mut frames = Vec::new();
        self.host.handle_indication(now, (LINE, FramesIndication::Room(u32::MAX)));
        loop {
            while let Some((link, indication)) = self.host.poll_indication(now) {
                self.take(now, link, indication);
            }
            self.act(now);
            match self.host.poll_request(now) {
                Some((_, FramesRequest::Frame { bytes, .. })) => frames.push(bytes),
                Some((_, FramesRequest::Join | FramesRequest::Seize)) => {}
                None => break,
            }
        }
        self.counters = self.host.counters();
        frames
    }

    fn take(&mut self, now: Instant, link: LinkId, indication: StreamIndication) {
        match indication {
            StreamIndication::Connected => {
                self.connected = true;
                self.link = link;
            }
            StreamIndication::Room(room) => self.room = room,
            StreamIndication::Data(data) => {
                self.received.extend_from_slice(&data);
                self.host.handle_request(now, (link, StreamRequest::Release(data.len() as u64)));
            }
            StreamIndication::PeerClosed => self.peer_closed = true,
            StreamIndication::Closed(reason) => self.closed = Some(reason),
            StreamIndication::Secured { .. } => panic!("nobody asked for it"),
        }
    }

    fn act(&mut self, now: Instant) {
        if !self.connected || self.closed.is_some() {
            return;
        }
        let part = self.to_write.split_to(self.to_write.len().min(self.room as usize));
        if !part.is_empty() {
            self.room -= part.len() as u64;
            self.host.handle_request(now, (self.link, StreamRequest::Write(part)));
        }
        let may_close = self.to_write.is_empty() && (self.peer_closed || !self.waits_for_peer);
        if may_close && !core::mem::replace(&mut self.closing, true) {
            self.host.handle_request(now, (self.link, StreamRequest::Close));
        }
    }
}
