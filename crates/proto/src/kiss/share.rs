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
enum State {
    Apart,
    Calling,
    Open,
    Ending,
}

/// How one user has the line.
#[derive(Clone, Copy, Debug, Default)]
struct User {
    /// It has asked for the line, and has not been told that it is closed.
    wants: bool,
    stands: bool,
    told_room: u64,
}

/// One line for several users, which have numbers from 0. Each has it as if it were alone: all hear what comes, and what one
/// writes at a time stays together.
#[derive(Debug)]
pub struct Share {
    users: Vec<User>,
    state: State,
    wants_line: bool,
    wants_end: bool,
    to_release: u64,
    room: u64,
    /// Whole pieces; users get room when there is none, and each writes what it has then: a burst at the most.
    out: VecDeque<Bytes>,
    up: VecDeque<(usize, StreamIndication)>,
}

impl Share {
    /// A line for so many.
    pub fn new(users: usize) -> Self {
        Share {
            users: vec![User::default(); users],
            state: State::Apart,
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
            State::Apart => (self.state, self.wants_line) = (State::Calling, true),
            State::Open => self.connected(user),
            // It is told what comes of it.
            State::Calling | State::Ending => {}
        }
    }

    fn connected(&mut self, user: usize) {
        self.users[user].stands = true;
        self.up.push_back((user, StreamIndication::Connected));
    }

    /// One user wants no more of the line, and that is the end of it for all.
    fn end(&mut self) {
        if self.state == State::Open {
            (self.state, self.wants_end) = (State::Ending, true);
            self.out.clear();
        }
    }

    fn tell(&mut self, said: &StreamIndication) {
        let standing = self.users.iter().enumerate().filter(|(_, user)| user.stands);
        self.up.extend(standing.map(|(at, _)| (at, said.clone())));
    }

    fn closed(&mut self, said: &StreamIndication) {
        self.state = State::Apart;
        (self.wants_end, self.to_release, self.room) = (false, 0, 0);
        self.out.clear();
        for (at, user) in self.users.iter_mut().enumerate().filter(|(_, user)| user.wants) {
            *user = User::default();
            self.up.push_back((at, said.clone()));
        }
    }
}

impl Engine for Share {
    type Above = Many<usize, Stream>;
    type Below = Stream;

    fn handle_request(&mut self, _now: Instant, (user, request): Request<Self::Above>) {
        match request {
            StreamRequest::Connect => self.connect(user),
            StreamRequest::Write(bytes) if self.state == State::Open && self.users[user].stands => {
                let told = &mut self.users[user].told_room;
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
                self.state = State::Open;
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
        let room = if self.state == State::Open && self.out.is_empty() { u64::MAX } else { 0 };
        let (at, user) = self.users.iter_mut().enumerate().find(|(_, user)| {
            // What it has spent of it is given back.
            user.stands && user.told_room != room
        })?;
        user.told_room = room;
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
