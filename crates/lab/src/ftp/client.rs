//! FTP client, which has the file.

use super::{
    CONTROL, ControlLine, DATA, DATA_PORT, DataConnectionMode, Files, FilesIndication, FilesRequest,
    Milestone, place,
};
use bytes::Bytes;
use longwire_proto::engine::{Engine, no_timers};
use longwire_proto::service::{CloseReason, LinkId, Many, Stream, StreamIndication, StreamRequest};
use longwire_proto::time::Instant;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// FTP client that stores one file as an engine over streams.
#[derive(Debug)]
pub struct FtpClient {
    /// Address to which the server opens the data connection.
    own: Ipv4Addr,
    opening: DataConnectionMode,
    file: Option<Bytes>,
    control: ControlLine,
    data: ControlLine,
    /// Replies still expected.
    dialogue: VecDeque<DialogueStep>,
    /// True when the server waits for the data.
    opened: bool,
    /// True when the server has confirmed the complete file; the data connection then no longer matters to the session.
    stored: bool,
    down: VecDeque<(LinkId, StreamRequest)>,
    up: VecDeque<FilesIndication>,
}

/// Expected reply and the following step.
#[derive(Debug)]
struct DialogueStep {
    answer: u16,
    reached: Option<Milestone>,
    then: NextAction,
}

#[derive(Debug)]
enum NextAction {
    Say(String),
    /// Opens the data connection and sends this command.
    CallAndSay(String),
    /// Writes the file.
    Send,
}

impl FtpClient {
    /// Creates a client on a host with this address.
    pub fn new(own: Ipv4Addr, opening: DataConnectionMode) -> Self {
        FtpClient {
            own,
            opening,
            file: None,
            control: ControlLine::on(CONTROL),
            data: ControlLine::default(),
            dialogue: VecDeque::new(),
            opened: false,
            stored: false,
            down: VecDeque::new(),
            up: VecDeque::new(),
        }
    }

    fn dialogue(&self) -> VecDeque<DialogueStep> {
        let step = |answer, reached, then| DialogueStep { answer, reached, then };
        let say = |answer, words: &str| step(answer, None, NextAction::Say(words.to_owned()));
        let store = "STOR test.dat".to_owned();
        let (ask, opened) = match self.opening {
            DataConnectionMode::Active => (format!("PORT {}", place(self.own, DATA_PORT)), 200),
            DataConnectionMode::Passive => ("PASV".to_owned(), 227),
        };
        let follow = match self.opening {
            DataConnectionMode::Active => NextAction::Say(store),
            DataConnectionMode::Passive => NextAction::CallAndSay(store),
        };
        VecDeque::from([
            say(220, "USER station"),
            say(331, "PASS longwire"),
            say(230, "SYST"),
            say(215, "TYPE I"),
            step(200, Some(Milestone::LoggedIn), NextAction::Say(ask)),
            step(opened, None, follow),
            step(150, Some(Milestone::Opened), NextAction::Send),
            step(226, Some(Milestone::Stored), NextAction::Say("QUIT".to_owned())),
            step(221, None, NextAction::Say(String::new())),
        ])
    }

    fn fail(&mut self, why: String) {
        self.dialogue.clear();
        self.down.push_back((CONTROL, StreamRequest::Abort));
        self.up.push_back(FilesIndication::Failed(why));
    }

    fn hear_answer(&mut self, line: &str) {
        let Some(step) = self.dialogue.pop_front() else {
            return self.fail(format!("unexpected response: {line}"));
        };
        if line.split(' ').next().and_then(|code| code.parse().ok()) != Some(step.answer) {
            return self.fail(format!("instead of {}: {line}", step.answer));
        }
        self.stored |= step.reached == Some(Milestone::Stored);
        self.up.extend(step.reached.map(FilesIndication::Reached));
        match step.then {
            NextAction::Say(words) if words.is_empty() => self.control.ends = true,
            NextAction::Say(words) => self.say(&words),
            NextAction::CallAndSay(words) => {
                self.data = ControlLine::on(DATA);
                self.down.push_back((DATA, StreamRequest::Connect));
                self.say(&words);
            }
            NextAction::Send => self.opened = true,
        }
        self.send();
    }

    fn say(&mut self, words: &str) {
        self.control.write(words.as_bytes());
        self.control.write(b"\r\n");
        self.control.flush(&mut self.down);
    }

    /// Sends the file when the data connection is open and the server waits for it.
    fn send(&mut self) {
        if self.opened
            && self.data.link.is_some()
            && let Some(file) = self.file.take()
        {
            self.data.write(&file);
            self.data.ends = true;
        }
        self.data.flush(&mut self.down);
        self.control.flush(&mut self.down);
    }

    fn hear_control(&mut self, said: StreamIndication) {
        match said {
            StreamIndication::Connected => {
                self.up.push_back(FilesIndication::Reached(Milestone::Connected));
                self.dialogue = self.dialogue();
            }
            StreamIndication::Room(room) => self.control.room = room,
            StreamIndication::Data(bytes) => {
                self.down.push_back((CONTROL, StreamRequest::Release(bytes.len() as u64)));
                match self.control.lines(&bytes) {
                    Some(lines) => lines.iter().for_each(|line| self.hear_answer(line)),
                    None => self.fail("a line without end".into()),
                }
            }
            StreamIndication::Closed(CloseReason::Finished) if self.dialogue.is_empty() => {
                self.up.push_back(FilesIndication::Reached(Milestone::Left));
            }
            StreamIndication::Closed(CloseReason::Aborted) => {}
            StreamIndication::Closed(why) => {
                self.up.push_back(FilesIndication::Failed(format!("the dialogue: {why:?}")));
            }
            StreamIndication::Secured { .. } | StreamIndication::PeerClosed => {}
        }
    }

    fn hear_data(&mut self, link: LinkId, said: StreamIndication) {
        match said {
            StreamIndication::Connected => self.data.link = Some(link),
            StreamIndication::Room(room) if self.data.is(link) => self.data.room = room,
            StreamIndication::Closed(why) if why != CloseReason::Finished && !self.stored => {
                self.fail(format!("the data connection: {why:?}"));
            }
            // A server that stores a file sends nothing on this connection.
            _ => {}
        }
    }
}

impl Engine for FtpClient {
    type Above = Files;
    type Below = Many<LinkId, Stream>;

    no_timers!();

    fn handle_request(&mut self, _: Instant, request: FilesRequest) {
        let FilesRequest::Store(file) = request;
        self.file = Some(file);
        self.down.push_back((CONTROL, StreamRequest::Connect));
    }

    fn handle_indication(&mut self, _: Instant, (link, said): (LinkId, StreamIndication)) {
        match self.control.is(link) {
            true => self.hear_control(said),
            false => self.hear_data(link, said),
        }
        self.send();
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<FilesIndication> {
        self.up.pop_front()
    }

    fn poll_request(&mut self, _: Instant) -> Option<(LinkId, StreamRequest)> {
        self.down.pop_front()
    }
}
