//! A minimal HTTP client for tests: it reads the answer as it is and does not depend on the server's library.

use super::DEADLINE;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.head, String::from_utf8_lossy(&self.body))
    }

    /// Value of a header field.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(said, _)| said.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// A new connection.
pub(crate) fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).expect("it listens");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    stream.set_write_timeout(Some(DEADLINE)).expect("a timeout");
    stream
}

/// Sends a request as it is and reads one answer. A server that refuses a request may close before it has read all of it (RFC
/// 9112 9.6): the answer must be there all the same.
pub(crate) fn say(to: SocketAddr, request: &[u8]) -> Answer {
    let mut stream = connect(to);
    if let Err(error) = stream.write_all(request) {
        let closed = matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
        assert!(closed, "it reads: {error}");
    }
    read(&mut BufReader::new(stream))
}

/// Sends a request.
pub(crate) fn ask(to: SocketAddr, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    say(to, &[head.as_bytes(), body].concat())
}

pub(crate) fn get(to: SocketAddr, path: &str) -> Answer {
    ask(to, "GET", path, "", b"")
}

pub(crate) fn post(to: SocketAddr, path: &str, document: &serde_json::Value) -> Answer {
    ask(to, "POST", path, "content-type: application/json\r\n", document.to_string().as_bytes())
}

/// Reads the header of an answer.
pub(crate) fn read_head(stream: &mut impl BufRead) -> (u16, String) {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        let some = stream.read_line(&mut line).expect("an answer in time");
        if some == 0 || line == "\r\n" {
            let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
            return (status, head);
        }
        head += &line;
    }
}

fn read(stream: &mut impl BufRead) -> Answer {
    let (status, head) = read_head(stream);
    let mut answer = Answer { status, head, body: Vec::new() };
    if answer.header("transfer-encoding") == Some("chunked") {
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).expect("a chunk");
            let length = usize::from_str_radix(line.trim(), 16).expect("a length");
            let mut chunk = vec![0; length + 2];
            stream.read_exact(&mut chunk).expect("a chunk");
            answer.body.extend_from_slice(&chunk[..length]);
            if length == 0 {
                return answer;
            }
        }
    }
    let length = answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    answer.body.resize(length, 0);
    stream.read_exact(&mut answer.body).expect("the whole body");
    answer
}

/// Encodes text as part of a path or a query.
pub(crate) fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// The first event with this name among all that are kept.
pub(crate) fn event(at: SocketAddr, name: &str) -> serde_json::Value {
    let mut stream = connect(at);
    let request = format!("GET /events?after=0 HTTP/1.1\r\nhost: {at}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let lines = BufReader::new(stream).lines().map(|line| line.expect("an event in time"));
    let data = lines.filter_map(|line| line.strip_prefix("data: ").map(str::to_owned));
    let mut events = data.map(|data| serde_json::from_str::<serde_json::Value>(&data).expect("JSON"));
    events.find(|event| event["event"] == name).expect("it is among them")
}
