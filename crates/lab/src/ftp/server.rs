//! FTP server, which receives the file.

use super::{ControlLine, DATA, DATA_PORT, Files, FilesIndication, FilesRequest, place};
use bytes::BytesMut;
use longwire_proto::engine::{Engine, no_timers};
use longwire_proto::service::{CloseReason, LinkId, Many, Stream, StreamIndication, StreamRequest};
use longwire_proto::time::Instant;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// FTP server as an engine over streams. It serves one client.
#[derive(Debug)]
pub struct FtpServer {
    own: Ipv4Addr,
    /// Address of the only client; data cannot be sent elsewhere.
    client: Ipv4Addr,
    control: ControlLine,
    data: ControlLine,
    /// True while it waits for the client to open the data connection (PASV).
    passive: bool,
    /// True after STOR.
    storing: bool,
    /// True after the reply that it waits for the data.
    opened: bool,
    /// True after the confirmation of the complete file; the data connection then no longer matters to the session.
    stored: bool,
    file: BytesMut,
    down: VecDeque<(LinkId, StreamRequest)>,
    up: VecDeque<FilesIndication>,
}

impl FtpServer {
    /// Creates a server on a host with this address for the client at that address.
    pub fn new(own: Ipv4Addr, client: Ipv4Addr) -> Self {
        FtpServer {
            own,
            client,
            control: ControlLine::default(),
            data: ControlLine::default(),
            passive: false,
            storing: false,
            opened: false,
            stored: false,
            file: BytesMut::new(),
            down: VecDeque::new(),
            up: VecDeque::new(),
        }
    }

    fn say(&mut self, words: &str) {
        self.control.write(words.as_bytes());
        self.control.write(b"\r\n");
    }

    fn hear_command(&mut self, line: &str) {
        if self.control.ends {
            return;
        }
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        match command {
            "USER" => self.say("331 Please specify the password."),
            "PASS" => self.say("230 Login successful."),
            "SYST" => self.say("215 UNIX Type: L8"),
            "TYPE" => self.say("200 Switching to Binary mode."),
            "PORT" if rest == place(self.client, DATA_PORT) => {
                self.say("200 PORT command successful. Consider using PASV.");
                self.data = ControlLine::on(DATA);
            }
            "PORT" => self.say("500 Illegal PORT command."),
            "PASV" => {
                let words = format!("227 Entering Passive Mode ({}).", place(self.own, DATA_PORT));
                self.say(&words);
                self.passive = true;
            }
            "STOR" if !self.passive && self.data.link.is_none() => self.say("425 Use PORT or PASV first."),
            "STOR" => {
                self.storing = true;
                // The data connection exists, or this side has to open it.
                match self.data.is(DATA) {
                    true => self.down.push_back((DATA, StreamRequest::Connect)),
                    false => self.open(),
                }
            }
            "QUIT" => {
                self.say("221 Goodbye.");
                self.control.ends = true;
            }
            _ => self.say("500 Unknown command."),
        }
    }

    /// Replies that it waits for the data, once a file was requested and a data connection exists.
    fn open(&mut self) {
        if self.storing && self.data.link.is_some() && !core::mem::replace(&mut self.opened, true) {
            self.say("150 Ok to send data.");
        }
    }

    fn hear_data(&mut self, link: LinkId, said: StreamIndication) {
        match said {
            StreamIndication::Connected => {
                self.data.link = Some(link);
                self.open();
            }
            StreamIndication::Data(bytes) => {
                self.file.extend_from_slice(&bytes);
                self.down.push_back((link, StreamRequest::Release(bytes.len() as u64)));
            }
            StreamIndication::PeerClosed => {
                self.down.push_back((link, StreamRequest::Close));
                self.up.push_back(FilesIndication::Stored(core::mem::take(&mut self.file).freeze()));
                self.say("226 Transfer complete.");
                self.stored = true;
            }
            StreamIndication::Closed(why) if why != CloseReason::Finished && !self.stored => {
                self.say("426 Failure reading network stream.");
            }
            _ => {}
        }
    }

    fn hear_control(&mut self, said: StreamIndication) {
        match said {
            StreamIndication::Room(room) => self.control.room = room,
            StreamIndication::Data(bytes) => {
                let release = StreamRequest::Release(bytes.len() as u64);
                self.down.extend(self.control.link.map(|link| (link, release)));
                match self.control.lines(&bytes) {
                    Some(lines) => lines.iter().for_each(|line| self.hear_command(line)),
                    None => self.down.extend(self.control.link.map(|link| (link, StreamRequest::Abort))),
                }
            }
            StreamIndication::Closed(_) => self.control.lose(),
            _ => {}
        }
    }
}

impl Engine for FtpServer {
    type Above = Files;
    type Below = Many<LinkId, Stream>;

    no_timers!();

    /// A server has no requests.
    fn handle_request(&mut self, _: Instant, request: FilesRequest) {
        panic!("{request:?}: a server stores what clients send");
    }

    fn handle_indication(&mut self, _: Instant, (link, said): (LinkId, StreamIndication)) {
        if self.control.link.is_none() && said == StreamIndication::Connected {
            self.control.link = Some(link);
            self.say("220 (vsFTPd 2.3.2)");
        } else if self.control.is(link) {
            self.hear_control(said);
        } else {
            self.hear_data(link, said);
        }
        self.control.flush(&mut self.down);
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<FilesIndication> {
        self.up.pop_front()
    }

    fn poll_request(&mut self, _: Instant) -> Option<(LinkId, StreamRequest)> {
        self.down.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    const CALLER: LinkId = LinkId(LinkId::FIRST_INCOMING);

    /// Returns the replies of a server on 44.0.0.2 to these lines of a client on 44.0.0.1, and its other requests.
    fn told(lines: &[u8]) -> (String, Vec<StreamRequest>) {
        let mut server = FtpServer::new([44, 0, 0, 2].into(), [44, 0, 0, 1].into());
        let lines = Bytes::copy_from_slice(lines);
        let said = [StreamIndication::Connected, StreamIndication::Room(4096), StreamIndication::Data(lines)];
        said.into_iter().for_each(|said| server.handle_indication(Instant::ZERO, (CALLER, said)));
        let (mut answers, mut others) = (String::new(), Vec::new());
        while let Some((_, request)) = server.poll_request(Instant::ZERO) {
            match request {
                StreamRequest::Write(bytes) => answers.push_str(&String::from_utf8_lossy(&bytes)),
                request => others.push(request),
            }
        }
        (answers, others)
    }

    /// Returns the code of the last reply.
    fn code(answers: &str) -> &str {
        answers.lines().last().and_then(|line| line.split(' ').next()).unwrap_or_default()
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (line, answer) in [
            ("NOOP\r\n", "500"),
            ("STOR test.dat\r\n", "425"),
            ("PORT 44,0,0,9,195,80\r\n", "500"),
            ("PORT\r\n", "500"),
            ("\r\n", "500"),
            ("TYPE I\r\n", "200"),
        ] {
            let (answers, _) = told(line.as_bytes());
            assert_eq!(code(&answers), answer, "{line:?}: {answers}");
        }
    }

    #[test]
    fn a_line_without_end_ends_the_dialogue() {
        let (answers, others) = told(&[b'x'; 513]);
        assert_eq!(code(&answers), "220", "{answers}");
        assert!(others.contains(&StreamRequest::Abort), "{others:?}");
    }

    /// Returns a server that has received three bytes and the end of the data, with its replies so far taken out.
    fn served() -> FtpServer {
        let mut server = FtpServer::new([44, 0, 0, 2].into(), [44, 0, 0, 1].into());
        let lines = Bytes::from_static(b"PORT 44,0,0,1,195,80\r\nSTOR test.dat\r\n");
        for said in [StreamIndication::Connected, StreamIndication::Room(4096), StreamIndication::Data(lines)]
        {
            server.handle_indication(Instant::ZERO, (CALLER, said));
        }
        let data = StreamIndication::Data(Bytes::from_static(b"abc"));
        for said in [StreamIndication::Connected, data, StreamIndication::PeerClosed] {
            server.handle_indication(Instant::ZERO, (DATA, said));
        }
        assert_eq!(
            server.poll_indication(Instant::ZERO),
            Some(FilesIndication::Stored(Bytes::from_static(b"abc")))
        );
        assert_eq!(code(&written(&mut server)), "226");
        server
    }

    /// Returns the lines that it writes to its client.
    fn written(server: &mut FtpServer) -> String {
        let mut words = String::new();
        while let Some((_, request)) = server.poll_request(Instant::ZERO) {
            if let StreamRequest::Write(bytes) = request {
                words.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
        words
    }

    #[test]
    fn a_data_connection_that_breaks_behind_the_whole_file_changes_nothing() {
        for why in [CloseReason::TimedOut, CloseReason::Reset] {
            let mut server = served();
            server.handle_indication(Instant::ZERO, (DATA, StreamIndication::Closed(why)));
            assert_eq!(written(&mut server), "", "the file is stored: {why:?}");
            let mut server = served();
            let quit = StreamIndication::Data(Bytes::from_static(b"QUIT\r\n"));
            server.handle_indication(Instant::ZERO, (CALLER, quit));
            assert_eq!(code(&written(&mut server)), "221");
            server.handle_indication(Instant::ZERO, (DATA, StreamIndication::Closed(why)));
            assert_eq!(written(&mut server), "", "nothing is said after the end: {why:?}");
        }
    }

    #[test]
    fn nothing_is_said_to_a_client_that_is_gone() {
        let mut server = FtpServer::new([44, 0, 0, 2].into(), [44, 0, 0, 1].into());
        let lines = Bytes::from_static(b"PORT 44,0,0,1,195,80\r\nSTOR test.dat\r\n");
        for said in [StreamIndication::Connected, StreamIndication::Room(4096), StreamIndication::Data(lines)]
        {
            server.handle_indication(Instant::ZERO, (CALLER, said));
        }
        written(&mut server);
        server.handle_indication(Instant::ZERO, (CALLER, StreamIndication::Closed(CloseReason::Reset)));
        for said in [StreamIndication::Connected, StreamIndication::Closed(CloseReason::TimedOut)] {
            server.handle_indication(Instant::ZERO, (DATA, said));
        }
        assert_eq!(written(&mut server), "");
    }

    #[test]
    fn what_is_asked_for_behind_quit_is_not_answered() {
        let (answers, _) = told(b"QUIT\r\nNOOP\r\n");
        assert_eq!(code(&answers), "221", "{answers}");
    }

    #[test]
    fn data_go_where_the_client_said_and_when_it_asks() {
        let (answers, others) = told(b"PORT 44,0,0,1,195,80\r\n");
        assert_eq!((code(&answers), others.contains(&StreamRequest::Connect)), ("200", false));
        let (answers, others) = told(b"PORT 44,0,0,1,195,80\r\nSTOR test.dat\r\n");
        assert_eq!((code(&answers), others.contains(&StreamRequest::Connect)), ("200", true), "{answers}");
    }
}
