//! A line that several have: TNCs with addresses of their own, or the ports of one (Multi-Drop).
//!
//! Each user has a line as if it were alone. All hear what comes; what one writes at a time stays together, for a frame that
//! another's was put into would be none. The line stands as long as its far end lets it.

use crate::controller::take_piece;
use crate::engine::{Engine, Indication, Request};
use crate::service::{Many, Stream, StreamIndication, StreamRequest};
use crate::time::Instant;
use bytes::Bytes;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineState {
    Closed,
    Connecting,
    Open,
    Closing,
}

/// How one user has the line.
#[derive(Clone, Copy, Debug, Default)]
struct LineUser {
    /// It has asked for the line, and has not been told that it is closed.
    wants: bool,
    is_connected: bool,
    announced_room: u64,
}

/// One line for several users, which have numbers from 0. Each has it as if it were alone: all hear what comes, and what one
/// writes at a time stays together.
#[derive(Debug)]
pub struct SharedLine {
    users: Vec<LineUser>,
    state: LineState,
    wants_line: bool,
    wants_end: bool,
    to_release: u64,
    room: u64,
    /// Whole pieces; users get room when there is none, and each writes what it has then: a burst at the most.
    out: VecDeque<Bytes>,
    up: VecDeque<(usize, StreamIndication)>,
}

impl SharedLine {
    /// A line for so many.
    pub fn new(users: usize) -> Self {
        SharedLine {
            users: vec![LineUser::default(); users],
            state: LineState::Closed,
            wants_line: false,
            wants_end: false,
            to_release: 0,
            room: 0,
            out: VecDeque::new(),
            up: VecDeque::new(),
        }
    }

    fn connect(&mut self, user: usize) {
        self.users[user].wants = true;
        match self.state {
            LineState::Closed => (self.state, self.wants_line) = (LineState::Connecting, true),
            LineState::Open => self.connected(user),
            // It is told what comes of it.
            LineState::Connecting | LineState::Closing => {}
        }
    }

    fn connected(&mut self, user: usize) {
        self.users[user].is_connected = true;
        self.up.push_back((user, StreamIndication::Connected));
    }

    /// One user wants no more of the line, and that is the end of it for all.
    fn end(&mut self) {
        if self.state == LineState::Open {
            (self.state, self.wants_end) = (LineState::Closing, true);
            self.out.clear();
        }
    }

    fn tell(&mut self, said: &StreamIndication) {
        let standing = self.users.iter().enumerate().filter(|(_, user)| user.is_connected);
        self.up.extend(standing.map(|(at, _)| (at, said.clone())));
    }

    fn closed(&mut self, said: &StreamIndication) {
        self.state = LineState::Closed;
        (self.wants_end, self.to_release, self.room) = (false, 0, 0);
        self.out.clear();
        for (at, user) in self.users.iter_mut().enumerate().filter(|(_, user)| user.wants) {
            *user = LineUser::default();
            self.up.push_back((at, said.clone()));
        }
    }
}

impl Engine for SharedLine {
    type Above = Many<usize, Stream>;
    type Below = Stream;

    fn handle_request(&mut self, _now: Instant, (user, request): Request<Self::Above>) {
        match request {
            StreamRequest::Connect => self.connect(user),
            StreamRequest::Write(bytes) if self.state == LineState::Open && self.users[user].is_connected => {
                let told = &mut self.users[user].announced_room;
                *told = told.checked_sub(bytes.len() as u64).expect("a write needs room");
                self.out.push_back(bytes);
            }
            StreamRequest::Close | StreamRequest::Abort => self.end(),
            // All hear everything, and what one has heard the others have.
            StreamRequest::Write(_) | StreamRequest::Release(_) | StreamRequest::Secure { .. } => {}
        }
    }

    fn handle_indication(&mut self, _now: Instant, said: Indication<Stream>) {
        match &said {
            StreamIndication::Connected => {
                self.state = LineState::Open;
                let waiting: Vec<usize> = (0..self.users.len()).filter(|at| self.users[*at].wants).collect();
                waiting.into_iter().for_each(|at| self.connected(at));
            }
            StreamIndication::Room(room) => self.room = *room,
            StreamIndication::Data(bytes) => {
                self.to_release += bytes.len() as u64;
                self.tell(&said);
            }
            StreamIndication::PeerClosed | StreamIndication::Secured { .. } => self.tell(&said),
            StreamIndication::Closed(_) => self.closed(&said),
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_indication(&mut self) -> Option<Indication<Self::Above>> {
        if let Some(said) = self.up.pop_front() {
            return Some(said);
        }
        let room = if self.state == LineState::Open && self.out.is_empty() { u64::MAX } else { 0 };
        let (at, user) = self.users.iter_mut().enumerate().find(|(_, user)| {
            // What it has spent of it is given back.
            user.is_connected && user.announced_room != room
        })?;
        user.announced_room = room;
        Some((at, StreamIndication::Room(room)))
    }

    fn poll_request(&mut self, _now: Instant) -> Option<Request<Stream>> {
        if core::mem::take(&mut self.wants_line) {
            return Some(StreamRequest::Connect);
        }
        if core::mem::take(&mut self.wants_end) {
            return Some(StreamRequest::Abort);
        }
        if self.to_release > 0 {
            return Some(StreamRequest::Release(core::mem::take(&mut self.to_release)));
        }
        take_piece(&mut self.out, &mut self.room).map(StreamRequest::Write)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}
