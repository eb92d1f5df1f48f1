//! A line with several users: TNCs with addresses of their own, or the ports of one TNC (Multi-Drop).
//!
//! Each user has the line as if it were the only one. All users receive all data; the bytes of one write stay together,
//! because a frame with another one inside it would be lost. The line stays open until its far end closes it.

use crate::controller::take_piece;
use crate::engine::{Engine, Indication, Request, no_timers};
use crate::service::{Many, Stream, StreamIndication, StreamRequest};
use crate::time::Instant;
use bytes::Bytes;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LineState {
    #[default]
    Closed,
    Connecting,
    Open,
    Closing,
}

/// State of one user of the line.
#[derive(Clone, Copy, Debug, Default)]
struct LineUser {
    /// True from the user's request for the line until the user is informed of its close.
    wants: bool,
    is_connected: bool,
    announced_room: u64,
}

/// One line for several users, which are numbered from 0. Each has it as if it were the only one: all receive all data,
/// and the bytes of one write stay together.
#[derive(Debug, Default)]
pub struct SharedLine {
    users: Vec<LineUser>,
    state: LineState,
    wants_line: bool,
    wants_end: bool,
    to_release: u64,
    room: u64,
    /// Complete pieces. Users get room while this list is empty, and each then writes at most a burst.
    out: VecDeque<Bytes>,
    up: VecDeque<(usize, StreamIndication)>,
}

impl SharedLine {
    /// Creates a line for `users` users.
    pub fn new(users: usize) -> Self {
        SharedLine { users: vec![LineUser::default(); users], ..SharedLine::default() }
    }

    fn connect(&mut self, user: usize) {
        self.users[user].wants = true;
        match self.state {
            LineState::Closed => (self.state, self.wants_line) = (LineState::Connecting, true),
            LineState::Open => self.connected(user),
            // The user is informed of the outcome.
            LineState::Connecting | LineState::Closing => {}
        }
    }

    fn connected(&mut self, user: usize) {
        self.users[user].is_connected = true;
        self.up.push_back((user, StreamIndication::Connected));
    }

    /// Closes the line for all users when one of them closes it.
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

    no_timers!();

    fn handle_request(&mut self, _now: Instant, (user, request): Request<Self::Above>) {
        match request {
            StreamRequest::Connect => self.connect(user),
            StreamRequest::Write(bytes) if self.state == LineState::Open && self.users[user].is_connected => {
                let told = &mut self.users[user].announced_room;
                *told = told.checked_sub(bytes.len() as u64).expect("a write needs room");
                self.out.push_back(bytes);
            }
            StreamRequest::Close | StreamRequest::Abort => self.end(),
            // All users receive all data; the line releases them itself.
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

    fn poll_indication(&mut self, _now: Instant) -> Option<Indication<Self::Above>> {
        if let Some(said) = self.up.pop_front() {
            return Some(said);
        }
        let room = if self.state == LineState::Open && self.out.is_empty() { u64::MAX } else { 0 };
        let (at, user) = self.users.iter_mut().enumerate().find(|(_, user)| {
            // Restores the room that the user has spent.
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
}
