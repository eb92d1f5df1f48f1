use super::*;
use crate::engine::{Engine, drain};
use crate::rng::Rng;
use crate::service::{
    CloseReason, MailRefusal, StreamIndication, StreamRequest, SubmissionIndication, SubmissionRequest,
};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::{Bytes, BytesMut};

/// Window of the stream: bytes that were not released.
const WINDOW: u64 = 8192;

/// A mail program and a user of the server, on both sides of it.
struct Story {
    server: Checked<Server>,
    now: Instant,
    replies: String,
    messages: Vec<Vec<u8>>,
    message: Vec<u8>,
    /// Senders, recipients and abandoned messages, in words.
    heard: Vec<String>,
    unreleased: u64,
    closed: bool,
    answers: fn(&SubmissionIndication) -> Result<String, MailRefusal>,
}

fn yes(_: &SubmissionIndication) -> Result<String, MailRefusal> {
    Ok("OK".into())
}

impl Story {
    fn new(config: Config, answers: fn(&SubmissionIndication) -> Result<String, MailRefusal>) -> Story {
        let mut story = Story {
            server: Checked::new("server", Server::new(config)),
            now: Instant::ZERO,
            replies: String::new(),
            messages: Vec::new(),
            message: Vec::new(),
            heard: Vec::new(),
            unreleased: 0,
            closed: false,
            answers,
        };
        story.indicate(StreamIndication::Connected);
        story.indicate(StreamIndication::Room(1 << 20));
        assert!(story.replies.starts_with("220 localhost ESMTP"), "{}", story.replies);
        story.replies.clear();
        story
    }

    fn indicate(&mut self, indication: StreamIndication) {
        self.server.handle_indication(self.now, indication);
        self.settle();
    }

    /// Drains the server and answers its questions until it has none.
    fn settle(&mut self) {
        loop {
            let (mut up, mut down) = (Vec::new(), Vec::new());
            drain(&mut self.server, self.now, |said| up.push(said), |said| down.push(said));
            for request in down {
                match request {
                    StreamRequest::Write(bytes) => self.replies += core::str::from_utf8(&bytes).unwrap(),
                    StreamRequest::Release(bytes) => self.unreleased -= bytes,
                    StreamRequest::Close | StreamRequest::Abort => self.closed = true,
                    other => panic!("{other:?}"),
                }
            }
            let mut question = None;
            for said in up {
                match &said {
                    SubmissionIndication::Content(bytes) => self.message.extend_from_slice(bytes),
                    SubmissionIndication::Abandoned => {
                        self.message.clear();
                        self.heard.push("abandoned".into());
                    }
                    SubmissionIndication::Sender { address, bytes, .. } => {
                        let sender = address.as_ref().map(ToString::to_string).unwrap_or_default();
                        self.heard.push(format!("from <{sender}> {bytes:?}"));
                        question = Some((self.answers)(&said));
                    }
                    SubmissionIndication::Recipient { address, notify } => {
                        self.heard.push(format!("to <{address}> {notify:?}"));
                        question = Some((self.answers)(&said));
                    }
                    SubmissionIndication::Complete => {
                        self.messages.push(core::mem::take(&mut self.message));
                        question = Some((self.answers)(&said));
                    }
                    SubmissionIndication::Ended => {}
                }
            }
            let Some(answer) = question else { return };
            self.server.handle_request(self.now, SubmissionRequest::Answer(answer));
        }
    }

    fn say_bytes(&mut self, bytes: &[u8]) {
        let bytes = Bytes::copy_from_slice(bytes);
        self.unreleased += bytes.len() as u64;
        self.indicate(StreamIndication::Data(bytes));
        assert!(self.unreleased <= WINDOW, "the input waits");
    }

    /// Sends a line; returns the replies.
    fn say(&mut self, line: &str) -> String {
        self.say_bytes(format!("{line}\r\n").as_bytes());
        core::mem::take(&mut self.replies)
    }
}

/// The dialogue of RFC 5321 D.1, with our words.
#[test]
fn a_typical_dialogue() {
    let mut story = Story::new(Config::default(), |said| match said {
        SubmissionIndication::Recipient { address, .. } if address.local == "Green" => {
            Err(MailRefusal { code: 550, status: "5.1.1", text: "No such user here".into() })
        }
        _ => Ok("OK".into()),
    });
    let greeting = "250-localhost\r\n250-PIPELINING\r\n250-SIZE 10485760\r\n250-8BITMIME\r\n250-DSN\r\n250-HELP\r\n\
                    250 ENHANCEDSTATUSCODES\r\n";
    for (said, expected) in [
        ("MAIL FROM:<Smith@bar>", "503 5.5.1 EHLO comes first\r\n"),
        ("EHLO bar.com", greeting),
        ("DATA", "503 5.5.1 MAIL comes first\r\n"),
        ("mail from:<Smith@bar> size=120 body=8bitmime", "250 2.1.0 OK\r\n"),
        ("MAIL FROM:<Smith@bar>", "503 5.5.1 A message has begun already; RSET abandons it\r\n"),
        ("DATA", "554 5.5.1 No valid recipients\r\n"),
        ("RCPT TO:<Jones@foo> NOTIFY=SUCCESS,FAILURE", "250 2.1.5 OK\r\n"),
        ("RCPT TO:<Green@foo>", "550 5.1.1 No such user here\r\n"),
        ("RCPT TO: <\"a b\"@foo.dtn> NOTIFY=NEVER", "250 2.1.5 OK\r\n"),
        ("DATA", "354 The message, and then a line with a dot\r\n"),
        ("Subject: x\r\n\r\n..\r\n...\r\nBlah .\r\n.", "250 2.0.0 OK\r\n"),
        ("RCPT TO:<Jones@foo>", "503 5.5.1 MAIL comes first\r\n"),
        ("MAIL FROM:<>", "250 2.1.0 OK\r\n"),
        ("RSET", "250 2.0.0 OK\r\n"),
        ("VRFY jones", "252 2.5.2 RCPT tells whether mail to it can be sent\r\n"),
        ("EXPN list", "502 5.5.1 This server does not have this command\r\n"),
        ("STARTTLS", "502 5.5.1 This server does not have this command\r\n"),
        ("BLAH", "500 5.5.1 Unknown command\r\n"),
        ("RCPT TO:<>", "501 5.1.3 Not a valid address; it looks like <bob@alice>\r\n"),
        ("MAIL FROM:<a@b> SMTPUTF8", "555 5.5.4 Unknown parameter\r\n"),
        ("MAIL FROM:<a@b> SIZE=10485761", "552 5.3.4 The message is longer than 10485760 bytes\r\n"),
        ("QUIT", "221 2.0.0 Goodbye\r\n"),
    ] {
        assert_eq!(story.say(said), expected, "{said}");
    }
    assert!(story.closed);
    assert_eq!(story.messages, [b"Subject: x\r\n\r\n.\r\n..\r\nBlah .\r\n"]);
    assert_eq!(
        story.heard,
        [
            "from <Smith@bar> Some(120)",
            "to <Jones@foo> Of { success: true, failure: true }",
            "to <Green@foo> Default",
            "to <\"a b\"@foo.dtn> Never",
            "from <> None",
            "abandoned",
        ]
    );
}

#[test]
fn addresses_are_read_and_written() {
    for text in ["bob@alice", "a.b+c@DL1XYZ-1.ampr.org", "\"a \\\"b\\\\ >c\"@7.ipn", "../..@x_y"] {
        match parse_address(text) {
            Some(address) => assert_eq!(parse_address(&address.to_string()), Some(address), "{text}"),
            None => assert_eq!(text, "../..@x_y", "empty atoms"),
        }
    }
    let long = "x".repeat(65);
    for wrong in [
        "bob",
        "@alice",
        "bob@",
        "bob@a..b",
        "b ob@a",
        "bob@[127.0.0.1]",
        "\"a\u{1}\"@b",
        "\"\"@b",
        "a@b>",
        "\"a@b",
        &format!("{long}@b"),
        "b\u{e4}r@a",
    ] {
        assert_eq!(parse_address(wrong), None, "{wrong}");
    }
    // A route is ignored.
    let command = Command::decode(b"RCPT TO:<@one,@two:bob@alice>").expect("a command");
    assert_eq!(command.to_string(), "RCPT TO:<bob@alice>");
}

/// One session of everything, in any pieces.
#[test]
fn the_answers_are_the_same_however_the_input_is_split() {
    let mut input = BytesMut::new();
    input.extend_from_slice(b"EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nRCPT TO:<no@d>\r\nDATA\r\n");
    put_content(b"Subject: dots\r\n\r\n.\r\n..\r\n.x\r\nend\r\n", &mut input);
    input.extend_from_slice(
        b"NOOP\r\nnonsense\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nbare\nline\r\n.\r\n",
    );
    input.extend_from_slice(&[b'x'; 3000]);
    input.extend_from_slice(b"\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n");
    put_content(&b"long\r\n".repeat(900), &mut input);
    input.extend_from_slice(b"MAIL FROM:<a@b>\r\nRSET\r\nQUIT\r\nNOOP\r\n");
    let config = || Config { message_bytes_max: 5000, ..Config::default() };
    let answers = |said: &SubmissionIndication| match said {
        SubmissionIndication::Recipient { address, .. } if address.local == "no" => {
            Err(MailRefusal { code: 550, status: "5.1.1", text: "No such user".into() })
        }
        _ => Ok("OK".to_owned()),
    };
    let outcome = |story: Story| (story.replies, story.messages, story.heard, story.closed);
    let run = |pieces: &mut dyn FnMut() -> usize| {
        let mut story = Story::new(config(), answers);
        let mut rest = &input[..];
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(pieces().clamp(1, rest.len()));
            story.say_bytes(piece);
            rest = later;
        }
        outcome(story)
    };
    let expected = run(&mut || 4000);
    assert_eq!(expected.1.len(), 1, "{expected:?}");
    assert!(expected.0.contains("554 5.6.0") && expected.0.contains("552 5.3.4"), "{}", expected.0);
    assert!(
        expected.0.contains("500 5.5.6") && expected.0.ends_with("221 2.0.0 Goodbye\r\n"),
        "{}",
        expected.0
    );
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let most = 1 + rng.below(if seed % 2 == 0 { 5 } else { 3000 });
        assert_eq!(run(&mut || 1 + rng.below(most) as usize), expected, "seed {seed}");
    }
}

#[test]
fn any_message_arrives_as_it_was_sent() {
    for seed in 0..500 {
        let mut rng = Rng::new(seed);
        let mut message = Vec::new();
        for _ in 0..rng.below(40) {
            let parts: [&[u8]; 6] = [b".", b"..", b"\r\n", b"text", b"\xff\x00", b".\r\n"];
            message.extend_from_slice(parts[rng.below(6) as usize]);
        }
        message.extend_from_slice(b"\r\n");
        let mut story = Story::new(Config::default(), yes);
        story.say("EHLO a");
        story.say("MAIL FROM:<a@b>");
        story.say("RCPT TO:<c@d>");
        story.say("DATA");
        let mut sent = BytesMut::new();
        put_content(&message, &mut sent);
        for piece in sent.chunks(1 + rng.below(9) as usize) {
            story.say_bytes(piece);
        }
        assert_eq!(story.replies, "250 2.0.0 OK\r\n", "seed {seed}");
        assert_eq!(story.messages, [message], "seed {seed}");
    }
}

/// An end of a message that other programs accept does not end it here, and makes it refused: what follows is never a command.
#[test]
fn no_second_message_hides_behind_another_end() {
    let hidden = "MAIL FROM:<evil@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nevil";
    for end in ["\n.\n", "\n.\r\n", "\r\n.\n", "\r.\r", "\r\n.\r", "\r.\r\n", "\r\n\0.\r\n", "\r\r\n.\n"] {
        let mut story = Story::new(Config::default(), yes);
        story.say("EHLO a");
        story.say("MAIL FROM:<a@b>");
        story.say("RCPT TO:<c@d>");
        story.say("DATA");
        let replies = story.say(&format!("text{end}{hidden}\r\n."));
        let is_plain = end == "\r\n\0.\r\n";
        let expected = if is_plain { "250 2.0.0" } else { "554 5.6.0" };
        assert!(replies.starts_with(expected) && replies.lines().count() == 1, "{end:?}: {replies}");
        assert!(!story.heard.iter().any(|heard| heard.contains("evil")), "{end:?}");
        assert_eq!(story.messages.len(), usize::from(is_plain), "{end:?}");
    }
    for command in ["NOOP\nNOOP\r\n", "NOOP\n", "NOOP\rNOOP\r\n", "NOOP\r\r\n"] {
        let mut story = Story::new(Config::default(), yes);
        story.say_bytes(command.as_bytes());
        assert!(story.replies.starts_with("500 5.5.2 A line must end in CR LF"), "{command:?}");
        assert!(story.closed && story.replies.lines().count() == 1, "{command:?}: {}", story.replies);
    }
}

/// A page in a browser cannot send mail by a form whose body has commands.
#[test]
fn a_request_of_a_browser_ends_the_session() {
    for request in
        ["POST / HTTP/1.1", "GET /x HTTP/1.1", "post", "OPTIONS * HTTP/1.1", "Host: 127.0.0.1:2525"]
    {
        let mut story = Story::new(Config::default(), yes);
        let body = "EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nspam\r\n.";
        let replies = story.say(&format!("{request}\r\nContent-Type: text/plain\r\n\r\n{body}"));
        assert_eq!(replies, "421 4.7.0 This is no web server; closing the connection\r\n", "{request}");
        assert!(story.closed && story.heard.is_empty());
    }
}

#[test]
fn everything_has_a_limit() {
    let config = Config { recipients_max: 2, refusals_max: 3, commands_max: 20, ..Config::default() };
    let mut story = Story::new(config.clone(), yes);
    story.say("EHLO a");
    story.say("MAIL FROM:<a@b>");
    story.say("RCPT TO:<1@d>");
    story.say("RCPT TO:<2@d>");
    assert_eq!(story.say("RCPT TO:<3@d>"), "452 4.5.3 More than 2 recipients\r\n");
    assert_eq!(story.say("one"), "500 5.5.1 Unknown command\r\n");
    assert_eq!(story.say("two"), "500 5.5.1 Unknown command\r\n");
    assert_eq!(story.say("three"), "421 4.7.0 Too many errors; closing the connection\r\n");
    assert!(story.closed && story.heard.last().is_some_and(|heard| heard == "abandoned"));

    let mut story = Story::new(config.clone(), yes);
    for _ in 0..20 {
        assert_eq!(story.say("NOOP"), "250 2.0.0 OK\r\n");
    }
    assert_eq!(story.say("NOOP"), "421 4.7.0 Too many commands; closing the connection\r\n");

    // A line without an end costs no memory, and silence ends the session.
    let mut story = Story::new(config, yes);
    for _ in 0..1000 {
        story.say_bytes(&[b'x'; 1000]);
    }
    assert_eq!((story.unreleased, &*story.replies), (0, ""));
    for expected in ["421 4.4.2 Nothing was received for too long; closing the connection\r\n", ""] {
        story.now = story.server.poll_timeout().expect("it waits for the program");
        let now = story.now;
        story.server.handle_timeout(now);
        story.settle();
        assert_eq!(core::mem::take(&mut story.replies), expected);
        assert!(story.closed);
    }
    assert_eq!(story.now, Instant::ZERO + Duration::from_secs(600));
}

/// A program that neither closes nor is silent is disconnected all the same.
#[test]
fn a_session_that_has_ended_waits_once() {
    let mut story = Story::new(Config::default(), yes);
    assert_eq!(story.say("QUIT"), "221 2.0.0 Goodbye\r\n");
    let end = story.server.poll_timeout().expect("it waits for the program");
    for _ in 0..3 {
        story.now += Duration::from_secs(60);
        story.say_bytes(b"x");
        assert_eq!(story.server.poll_timeout(), Some(end));
    }
}

/// A program that does not read its replies is not read either.
#[test]
fn commands_wait_while_replies_do() {
    let mut server = Checked::new("server", Server::new(Config::default()));
    let mut unreleased = 0;
    let mut written = 0;
    let mut tell = |server: &mut Checked<Server>, said| {
        server.handle_indication(Instant::ZERO, said);
        drain(
            server,
            Instant::ZERO,
            |said| panic!("{said:?}"),
            |said| match said {
                StreamRequest::Release(bytes) => unreleased -= bytes as i64,
                StreamRequest::Write(bytes) => written += bytes.len(),
                other => panic!("{other:?}"),
            },
        );
        (unreleased, written)
    };
    tell(&mut server, StreamIndication::Connected);
    let many = b"NOOP\r\n".repeat(900);
    let length = many.len() as i64;
    let (after, written) = tell(&mut server, StreamIndication::Data(many.into()));
    assert!(after + length > length / 2 && written == 0, "{after}");
    let (after, written) = tell(&mut server, StreamIndication::Room(1 << 20));
    assert_eq!((after + length, written > 900 * 14), (0, true));
}

#[test]
fn a_lost_connection_ends_the_session_at_any_point() {
    let input = b"EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\ntext\r\n.\r\n";
    for end in 1..input.len() {
        for reason in [None, Some(CloseReason::Reset)] {
            let mut story = Story::new(Config::default(), yes);
            story.say_bytes(&input[..end]);
            match reason {
                None => story.indicate(StreamIndication::PeerClosed),
                Some(reason) => story.indicate(StreamIndication::Closed(reason)),
            }
            assert!(story.messages.is_empty());
            assert_eq!((story.closed, story.server.finished()), (reason.is_none(), reason.is_some()));
        }
    }
}
