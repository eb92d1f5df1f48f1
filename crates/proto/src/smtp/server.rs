//! The session of one mail program, as an engine.

use super::command::{Command, CommandFault, LINE_BYTES_MAX};
use super::config::Config;
use super::content::ContentDecoder;
use crate::engine::Engine;
use crate::service::{
    MailAddress, MailRefusal, Notify, Stream, StreamIndication, StreamRequest, Submission, SubmissionAnswer,
    SubmissionIndication, SubmissionRequest,
};
use crate::time::Instant;
use bytes::{Buf, Bytes, BytesMut};
use core::fmt::Write;
use std::collections::VecDeque;

/// Bytes of replies that wait for room above which no further command is read.
const REPLY_BYTES_MAX: usize = 4096;
/// Bytes of a message that rise at a time.
const PIECE_BYTES: usize = 16 * 1024;
/// Length of a line of a reply.
const REPLY_LINE_BYTES_MAX: usize = 400;

/// Open question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Sender,
    Recipient,
    Complete,
}

/// Next step of the session.
#[derive(Debug)]
enum Phase {
    /// Before the connection.
    Silent,
    /// Commands are read.
    Commands,
    /// The user has not answered yet.
    Question(Question),
    /// A message is read.
    Content(ContentDecoder),
    /// The last reply is written.
    Ending,
    /// The connection is over.
    Over,
}

/// Server side of a session, which ends with its connection.
#[derive(Debug)]
pub struct Server {
    config: Config,
    phase: Phase,
    was_greeted: bool,
    has_message: bool,
    recipients: usize,
    /// Length of the present message so far.
    message_bytes: u64,
    commands: u32,
    refusals: u32,
    /// Beginning of a command line.
    line: Vec<u8>,
    /// True while the rest of a line that is too long is skipped.
    skips_line: bool,
    input: VecDeque<Bytes>,
    /// Bytes used and not yet released.
    used: u64,
    piece: BytesMut,
    replies: BytesMut,
    room: u64,
    /// True until the end of the last reply is handed down.
    closes: bool,
    aborts: bool,
    deadline: Option<Instant>,
    /// True if the deadline is that of a session that has ended.
    is_last_deadline: bool,
    up: VecDeque<SubmissionIndication>,
}

impl Server {
    /// Creates the session of a connection that is about to open.
    pub fn new(config: Config) -> Self {
        Server {
            config,
            phase: Phase::Silent,
            was_greeted: false,
            has_message: false,
            recipients: 0,
            message_bytes: 0,
            commands: 0,
            refusals: 0,
            line: Vec::new(),
            skips_line: false,
            input: VecDeque::new(),
            used: 0,
            piece: BytesMut::new(),
            replies: BytesMut::new(),
            room: 0,
            closes: false,
            aborts: false,
            deadline: None,
            is_last_deadline: false,
            up: VecDeque::new(),
        }
    }

    /// Appends a reply with an enhanced status code. Its text is cut into lines, without characters that are not printable ASCII.
    fn reply(&mut self, code: u16, status: &str, text: &str) {
        let printable = |letter: char| if matches!(letter, ' '..='~') { letter } else { '?' };
        let text: String = text.chars().map(printable).collect();
        let (mut lines, mut rest) = (Vec::new(), text.as_str());
        while rest.len() > REPLY_LINE_BYTES_MAX {
            let end = rest[..REPLY_LINE_BYTES_MAX].rfind(' ').unwrap_or(REPLY_LINE_BYTES_MAX);
            lines.push(&rest[..end]);
            rest = rest[end..].trim_start();
        }
        lines.push(rest);
        let last = lines.len() - 1;
        for (at, line) in lines.iter().enumerate() {
            let mark = if at == last { ' ' } else { '-' };
            let _ = write!(self.replies, "{code}{mark}{status} {line}\r\n");
        }
    }

    /// Refuses a command. Too many refusals end the session.
    fn refuse(&mut self, code: u16, status: &str, text: &str) {
        self.refusals += 1;
        match self.refusals > self.config.refusals_max {
            true => self.end(421, "4.7.0", "Too many errors; closing the connection"),
            false => self.reply(code, status, text),
        }
    }

    /// Ends the session after this reply.
    fn end(&mut self, code: u16, status: &str, text: &str) {
        self.abandon();
        self.reply(code, status, text);
        self.phase = Phase::Ending;
        self.closes = true;
    }

    fn abandon(&mut self) {
        self.piece.clear();
        self.recipients = 0;
        if core::mem::take(&mut self.has_message) {
            self.up.push_back(SubmissionIndication::Abandoned);
        }
    }

    fn ask(&mut self, question: Question, indication: SubmissionIndication) {
        self.phase = Phase::Question(question);
        self.deadline = None;
        self.up.push_back(indication);
    }

    /// Handles input as far as it can be handled now.
    fn advance(&mut self) {
        while !self.input.is_empty() && self.replies.len() < REPLY_BYTES_MAX {
            match self.phase {
                Phase::Commands => self.read_line(),
                Phase::Content(_) => self.read_content(),
                Phase::Ending | Phase::Over | Phase::Silent => {
                    self.used += self.input.drain(..).map(|bytes| bytes.len() as u64).sum::<u64>();
                }
                Phase::Question(_) => return,
            }
        }
    }

    fn read_line(&mut self) {
        let Some(bytes) = self.input.front_mut() else { return };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = bytes.split_to(end.map_or(bytes.len(), |end| end + 1));
        if bytes.is_empty() {
            self.input.pop_front();
        }
        self.used += part.len() as u64;
        if !self.skips_line {
            self.line.extend_from_slice(&part[..part.len().min(LINE_BYTES_MAX + 1 - self.line.len())]);
            self.skips_line = self.line.len() > LINE_BYTES_MAX;
        }
        if end.is_none() {
            return;
        }
        let line = core::mem::take(&mut self.line);
        if core::mem::take(&mut self.skips_line) {
            return self.refuse(500, "5.5.6", "The line is too long");
        }
        match line.strip_suffix(b"\r\n") {
            Some(line) if !line.contains(&b'\r') => self.hear_line(line),
            _ => self.end(500, "5.5.2", "A line must end in CR LF, and must not contain a single CR or LF"),
        }
    }

    fn hear_line(&mut self, line: &[u8]) {
        self.commands += 1;
        if self.commands > self.config.commands_max {
            return self.end(421, "4.7.0", "Too many commands; closing the connection");
        }
        let command = match Command::decode(line) {
            Ok(command) => command,
            Err(fault) => {
                let (code, status, text) = fault.reply();
                return match fault {
                    CommandFault::OtherProtocol => self.end(code, status, text),
                    _ => self.refuse(code, status, text),
                };
            }
        };
        match command {
            Command::Hello { extended } => self.hello(extended),
            Command::Mail { sender, bytes, envelope_id } => self.mail(sender, bytes, envelope_id),
            Command::Recipient { recipient, notify } => self.recipient(recipient, notify),
            Command::Data if !self.has_message => self.refuse(503, "5.5.1", "MAIL comes first"),
            Command::Data if self.recipients == 0 => self.refuse(554, "5.5.1", "No valid recipients"),
            Command::Data => {
                self.replies.extend_from_slice(b"354 The message, and then a line with a dot\r\n");
                self.message_bytes = 0;
                self.phase = Phase::Content(ContentDecoder::new());
            }
            Command::Reset => {
                self.abandon();
                self.reply(250, "2.0.0", "OK");
            }
            Command::Nothing => self.reply(250, "2.0.0", "OK"),
            Command::Quit => self.end(221, "2.0.0", "Goodbye"),
            Command::Verify => self.reply(252, "2.5.2", "RCPT tells whether mail to it can be sent"),
            Command::Help => self.reply(214, "2.0.0", "EHLO HELO MAIL RCPT DATA RSET NOOP VRFY HELP QUIT"),
        }
    }

    fn hello(&mut self, extended: bool) {
        self.abandon();
        self.was_greeted = true;
        let (host, bytes) = (self.config.host.clone(), self.config.message_bytes_max);
        if !extended {
            let _ = write!(self.replies, "250 {host}\r\n");
            return;
        }
        let extensions = [
            &*host,
            "PIPELINING",
            &format!("SIZE {bytes}"),
            "8BITMIME",
            "DSN",
            "HELP",
            "ENHANCEDSTATUSCODES",
        ];
        let last = extensions.len() - 1;
        for (at, extension) in extensions.iter().enumerate() {
            let mark = if at == last { ' ' } else { '-' };
            let _ = write!(self.replies, "250{mark}{extension}\r\n");
        }
    }

    fn mail(&mut self, sender: Option<MailAddress>, bytes: Option<u64>, envelope_id: Option<String>) {
        if !self.was_greeted {
            return self.refuse(503, "5.5.1", "EHLO comes first");
        }
        if self.has_message {
            return self.refuse(503, "5.5.1", "A message has begun already; RSET abandons it");
        }
        if bytes.is_some_and(|bytes| bytes > self.config.message_bytes_max) {
            let text = self.too_long();
            return self.refuse(552, "5.3.4", &text);
        }
        self.ask(Question::Sender, SubmissionIndication::Sender { address: sender, bytes, envelope_id });
    }

    fn too_long(&self) -> String {
        format!("The message is longer than {} bytes", self.config.message_bytes_max)
    }

    fn recipient(&mut self, address: MailAddress, notify: Notify) {
        if !self.has_message {
            return self.refuse(503, "5.5.1", "MAIL comes first");
        }
        if self.recipients >= self.config.recipients_max {
            let text = format!("More than {} recipients", self.config.recipients_max);
            return self.refuse(452, "4.5.3", &text);
        }
        self.ask(Question::Recipient, SubmissionIndication::Recipient { address, notify });
    }

    fn read_content(&mut self) {
        let Phase::Content(decoder) = &mut self.phase else { return };
        let Some(bytes) = self.input.front_mut() else { return };
        let before = self.piece.len();
        let (used, is_complete) = decoder.decode(bytes, &mut self.piece);
        let has_bare_line_end = decoder.has_bare_line_end;
        self.message_bytes += (self.piece.len() - before) as u64;
        bytes.advance(used);
        if bytes.is_empty() {
            self.input.pop_front();
        }
        self.used += used as u64;
        let is_too_long = self.message_bytes > self.config.message_bytes_max;
        if is_too_long || has_bare_line_end {
            self.piece.clear();
        }
        if !self.piece.is_empty() && (is_complete || self.piece.len() >= PIECE_BYTES) {
            self.up.push_back(SubmissionIndication::Content(self.piece.split().freeze()));
        }
        if !is_complete {
            return;
        }
        self.phase = Phase::Commands;
        if is_too_long {
            let text = self.too_long();
            self.abandon();
            self.refuse(552, "5.3.4", &text);
        } else if has_bare_line_end {
            self.abandon();
            self.refuse(554, "5.6.0", "The message has a single CR or LF; its lines must end in CR LF");
        } else {
            self.ask(Question::Complete, SubmissionIndication::Complete);
        }
    }

    fn answer(&mut self, question: Question, answer: SubmissionAnswer) {
        self.phase = Phase::Commands;
        if question == Question::Complete {
            (self.has_message, self.recipients) = (false, 0);
        }
        match answer {
            Ok(text) => {
                let status = match question {
                    Question::Sender => "2.1.0",
                    Question::Recipient => "2.1.5",
                    Question::Complete => "2.0.0",
                };
                self.has_message |= question == Question::Sender;
                self.recipients += usize::from(question == Question::Recipient);
                // Messages that are accepted are limited by others.
                self.commands = if question == Question::Complete { 0 } else { self.commands };
                self.reply(250, status, &text);
            }
            Err(MailRefusal { code, status, text }) => self.refuse(code, status, &text),
        }
    }

    /// Waits anew for the mail program, and once for its close after the end of the session.
    fn rest(&mut self, now: Instant) {
        let is_ending = matches!(self.phase, Phase::Ending);
        if core::mem::replace(&mut self.is_last_deadline, is_ending) && is_ending {
            return;
        }
        let waits = !matches!(self.phase, Phase::Question(_) | Phase::Over | Phase::Silent);
        self.deadline = waits.then(|| now + self.config.patience);
    }
}

impl Engine for Server {
    type Above = Submission;
    type Below = Stream;

    fn handle_request(&mut self, now: Instant, SubmissionRequest::Answer(answer): SubmissionRequest) {
        match self.phase {
            Phase::Question(question) => self.answer(question, answer),
            // The connection has ended meanwhile.
            Phase::Over => return,
            _ => panic!("an answer without a question"),
        }
        self.advance();
        self.rest(now);
    }

    fn handle_indication(&mut self, now: Instant, indication: StreamIndication) {
        match indication {
            StreamIndication::Connected => {
                let _ = write!(self.replies, "220 {} ESMTP Longwire\r\n", self.config.host);
                self.phase = Phase::Commands;
            }
            StreamIndication::Secured { .. } => {}
            StreamIndication::Room(room) => self.room = room,
            StreamIndication::Data(bytes) => self.input.push_back(bytes),
            // Lines that came before are still handled and answered.
            StreamIndication::PeerClosed => self.closes = true,
            StreamIndication::Closed(_) => {
                if !matches!(self.phase, Phase::Over) {
                    self.phase = Phase::Over;
                    self.input.clear();
                    self.replies.clear();
                    self.used = 0;
                    self.deadline = None;
                    self.up.push_back(SubmissionIndication::Ended);
                }
                return;
            }
        }
        self.advance();
        self.rest(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        match self.phase {
            Phase::Commands | Phase::Content(_) => {
                self.end(421, "4.4.2", "Nothing was received for too long; closing the connection");
                self.advance();
                self.rest(now);
            }
            _ => {
                self.deadline = None;
                self.aborts = true;
            }
        }
    }

    fn poll_indication(&mut self, _: Instant) -> Option<SubmissionIndication> {
        self.up.pop_front()
    }

    fn poll_request(&mut self, _: Instant) -> Option<StreamRequest> {
        if core::mem::take(&mut self.aborts) {
            self.replies.clear();
            self.closes = false;
            return Some(StreamRequest::Abort);
        }
        if self.used > 0 {
            return Some(StreamRequest::Release(core::mem::take(&mut self.used)));
        }
        if self.room > 0 && !self.replies.is_empty() {
            let length = self.replies.len().min(usize::try_from(self.room).unwrap_or(usize::MAX));
            self.room -= length as u64;
            let bytes = self.replies.split_to(length).freeze();
            self.advance();
            return Some(StreamRequest::Write(bytes));
        }
        let is_answered = !matches!(self.phase, Phase::Question(_));
        if self.closes && is_answered && self.replies.is_empty() {
            self.closes = false;
            if !matches!(self.phase, Phase::Over) {
                self.abandon();
                self.phase = Phase::Ending;
                return Some(StreamRequest::Close);
            }
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }

    fn finished(&self) -> bool {
        matches!(self.phase, Phase::Over) && self.up.is_empty()
    }
}
