//! dtn7-rs on the same path: two of its daemons over TCPCL 4, an application of each over its WebSocket, where whole
//! bundles go in and out. Its store is in memory.

use crate::payloads::Payloads;
use crate::websocket::{self, Heard, Receiver, Sender};
use crate::{folder, process};
use bytes::Bytes;
use longwire_proto::bp::{Bundle, CrcType, CreationTimestamp, DecodePolicy, DtnTime, Head, PrimaryBlock};
use serde_json::{Value, json};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// Time without an arrival after which the missing bundles count as lost or stranded.
const PATIENCE: Duration = Duration::from_secs(15);
/// At most so many bundles are handed over and not answered.
const OPEN_MAX: usize = 512;

struct Daemon {
    process: Child,
    web: u16,
    port: u16,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("it has one").port()
}

fn program() -> Option<PathBuf> {
    let named = std::env::var_os("LONGWIRE_DTND").map(PathBuf::from);
    let path = named.unwrap_or_else(|| PathBuf::from("interop/target/dtn7/bin/dtnd"));
    path.exists().then_some(path)
}

fn start(program: &PathBuf, name: &str, peer: Option<&Daemon>) -> Daemon {
    let (web, port) = (free_port(), free_port());
    let mut command = Command::new(program);
    command
        .args(["--nodeid", name, "--endpoint", "sink", "--disable_nd", "--ipv4"])
        .args(["--interval", "0", "--janitor", "1s", "--peer-timeout", "0s", "--db", "mem"])
        .args(["--routing", "epidemic", "--web-port", &web.to_string()])
        .args(["--cla", &format!("tcp:port={port}:bind=127.0.0.1")])
        .arg("--workdir")
        .arg(folder())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(peer) = peer {
        command.args(["--static-peer", &format!("tcp://127.0.0.1:{}/bob", peer.port)]);
    }
    let daemon = Daemon { process: command.spawn().expect("it starts"), web, port };
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", web)).and(TcpStream::connect(("127.0.0.1", port))).is_err() {
        assert!(began.elapsed() < Duration::from_secs(30), "dtnd does not listen");
        std::thread::yield_now();
    }
    daemon
}

/// Bundles that are handed over and not answered.
#[derive(Default)]
struct Window {
    open: Mutex<usize>,
    changed: Condvar,
}

pub(crate) fn run(count: usize, length: usize) -> Value {
    let Some(program) = program() else {
        eprintln!("no dtn7-rs beside it: `./test interop` installs it, or LONGWIRE_DTND names its daemon");
        return Value::Null;
    };
    let bob = start(&program, "bob", None);
    let alice = start(&program, "alice", Some(&bob));
    let (out, answers) = websocket::open(alice.web, "/ws").expect("it has a WebSocket");
    let (ask, mut arrivals) = websocket::open(bob.web, "/ws").expect("it has a WebSocket");
    for words in ["/bundle", "/subscribe sink"] {
        ask.text(words).expect("it is heard");
        assert!(matches!(arrivals.hear(), Ok(Heard::Text(answer)) if answer.starts_with("200")));
    }
    arrivals.set_patience(PATIENCE).expect("a socket has patience");
    let processes =
        [process::of(None), process::of(Some(alice.process.id())), process::of(Some(bob.process.id()))];
    let cpu_s = || processes.iter().map(process::Process::cpu_s).sum::<f64>();
    let (cpu, began) = (cpu_s(), Instant::now());
    let (seen, last) = std::thread::scope(|scope| {
        scope.spawn(|| send(&out, answers, count, length));
        receive(&mut arrivals, count, length)
    });
    let seconds = last.duration_since(began).as_secs_f64();
    let rate = seen as f64 / seconds;
    json!({
        "seconds": if seen == 0 { f64::INFINITY } else { seconds },
        "bundles_per_s": rate,
        "mbit_per_s": rate * length as f64 * 8e-6,
        "cpu_us": (cpu_s() - cpu) * 1e6 / seen.max(1) as f64,
        "peak_mb": processes.iter().map(process::Process::peak_mb).sum::<f64>(),
        "stranded": count - seen,
    })
}

fn send(out: &Sender, mut answers: Receiver, count: usize, length: usize) {
    let window = Window::default();
    out.text("/bundle").expect("it is heard");
    answers.set_patience(PATIENCE).expect("a socket has patience");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..=count {
                if answers.hear().is_err() {
                    return;
                }
                let mut open = window.open.lock().expect("no thread panics with it");
                *open = open.saturating_sub(1);
                window.changed.notify_one();
            }
        });
        let payloads = Payloads::new(length);
        let time = longwire_node::system_dtn_ms().unwrap_or(0);
        for number in 0..count as u64 {
            let open = window.open.lock().expect("no thread panics with it");
            let full = |open: &mut usize| *open >= OPEN_MAX;
            let (mut open, waited) =
                window.changed.wait_timeout_while(open, PATIENCE, full).expect("no thread panics with it");
            if waited.timed_out() {
                return;
            }
            *open += 1;
            drop(open);
            let eid = |text: &str| text.parse().expect("an endpoint");
            let timestamp = CreationTimestamp { time: DtnTime(time), sequence: number };
            let lifetime = Duration::from_secs(3600);
            let lifetime_ms = u64::try_from(lifetime.as_millis()).expect("an hour");
            let primary =
                PrimaryBlock::new(eid("dtn://bob/sink"), eid("dtn://alice/sink"), timestamp, lifetime_ms);
            let mut head = Head::new(primary, length as u64);
            // As its own applications make them.
            (head.primary.crc, head.payload.crc) = (CrcType::None, CrcType::None);
            let bundle = Bundle::new(head, payloads.whole(number));
            if out.binary(&bundle.to_bytes()).is_err() {
                return;
            }
        }
    });
}

/// Number of different bundles that arrived, and the time of the last one.
fn receive(arrivals: &mut Receiver, count: usize, length: usize) -> (usize, Instant) {
    let policy = DecodePolicy { accept_primary_without_crc: true, ..DecodePolicy::STRICT };
    let payloads = Payloads::new(length);
    let mut seen = vec![false; count];
    let (mut total, mut last) = (0, Instant::now());
    while total < count {
        let Ok(heard) = arrivals.hear() else { break };
        let Heard::Binary(bytes) = heard else { continue };
        let bundle = match Bundle::from_bytes(&Bytes::from(bytes), &policy) {
            Ok(bundle) => bundle,
            Err(error) => {
                eprintln!("dtn7-rs delivers what is no bundle: {error}");
                continue;
            }
        };
        let number = Payloads::number(&bundle.payload);
        assert_eq!(bundle.payload.len(), length, "every byte");
        payloads.compare(number, 0, &bundle.payload);
        if !std::mem::replace(&mut seen[number as usize], true) {
            (total, last) = (total + 1, Instant::now());
        }
    }
    (total, last)
}
