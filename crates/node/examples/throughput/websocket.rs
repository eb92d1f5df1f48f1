//! As much of a WebSocket client (RFC 6455) as another node's application interface asks for.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// The half that sends.
#[derive(Clone)]
pub(crate) struct Sender(Arc<Mutex<TcpStream>>);

/// The half that hears.
pub(crate) struct Receiver {
    stream: BufReader<TcpStream>,
    pongs: Sender,
}

/// Received message.
pub(crate) enum Heard {
    Text(String),
    Binary(Vec<u8>),
}

/// Opens a connection.
pub(crate) fn open(port: u16, path: &str) -> io::Result<(Sender, Receiver)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    let head = "Host: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    write!(stream, "GET {path} HTTP/1.1\r\n{head}")?;
    let mut reader = BufReader::with_capacity(1 << 18, stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    if !line.contains(" 101 ") {
        return Err(io::Error::other(line));
    }
    while !line.trim().is_empty() {
        line.clear();
        reader.read_line(&mut line)?;
    }
    let sender = Sender(Arc::new(Mutex::new(stream)));
    Ok((sender.clone(), Receiver { stream: reader, pongs: sender }))
}

impl Sender {
    pub(crate) fn text(&self, text: &str) -> io::Result<()> {
        self.frame(TEXT, text.as_bytes())
    }

    pub(crate) fn binary(&self, bytes: &[u8]) -> io::Result<()> {
        self.frame(BINARY, bytes)
    }

    fn frame(&self, kind: u8, bytes: &[u8]) -> io::Result<()> {
        const MASKED: u8 = 0x80;
        let mut head = vec![0x80 | kind];
        match bytes.len() {
            short @ 0..126 => head.push(MASKED | short as u8),
            middle @ 126..65_536 => {
                head.push(MASKED | 126);
                head.extend_from_slice(&(middle as u16).to_be_bytes());
            }
            long => {
                head.push(MASKED | 127);
                head.extend_from_slice(&(long as u64).to_be_bytes());
            }
        }
        // A mask of zeros leaves the bytes as they are.
        head.extend_from_slice(&[0; 4]);
        let mut stream = self.0.lock().expect("no thread panics with it");
        stream.write_all(&head)?;
        stream.write_all(bytes)
    }
}

impl Receiver {
    /// Sets the maximum wait of one read.
    pub(crate) fn set_patience(&self, patience: std::time::Duration) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(patience))
    }

    /// The next message. A ping of the other side is no reason to wait longer.
    pub(crate) fn hear(&mut self) -> io::Result<Heard> {
        let began = std::time::Instant::now();
        let mut whole = Vec::new();
        let mut kind = 0;
        loop {
            let mut head = [0; 2];
            self.stream.read_exact(&mut head)?;
            let length = match head[1] & 0x7f {
                126 => u64::from(u16::from_be_bytes(self.bytes()?)),
                127 => u64::from_be_bytes(self.bytes()?),
                short => u64::from(short),
            };
            let from = whole.len();
            whole.resize(from + length as usize, 0);
            self.stream.read_exact(&mut whole[from..])?;
            match head[0] & 0x0f {
                CLOSE => return Err(io::ErrorKind::ConnectionAborted.into()),
                PING | PONG => {
                    let control = whole.split_off(from);
                    if head[0] & 0x0f == PING {
                        self.pongs.frame(PONG, &control)?;
                    }
                    if self.stream.get_ref().read_timeout()?.is_some_and(|most| began.elapsed() > most) {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    continue;
                }
                0 => {}
                first => kind = first,
            }
            if head[0] & 0x80 != 0 {
                break;
            }
        }
        Ok(match kind {
            TEXT => Heard::Text(String::from_utf8_lossy(&whole).into_owned()),
            _ => Heard::Binary(whole),
        })
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
