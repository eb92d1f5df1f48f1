//! A node with many idle neighbours: what each of its sessions costs.

use crate::path::{application, node};
use crate::process;
use crate::resting::status;
use bytes::{Bytes, BytesMut};
use longwire_proto::tcpcl::v4::wire::{ContactHeader, Message, SessInit};
use serde_json::{Value, json};
use std::io::{BufRead, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Time for which the processor time of the node is measured.
const IDLE: Duration = Duration::from_secs(30);
/// Keepalive interval of the neighbours, seconds; the node has the same one by default.
const KEEPALIVE_S: u16 = 60;

/// A node, and so many neighbours in another process.
pub(crate) fn run(count: usize) -> Value {
    let folder = crate::folder().join(format!("longwire-neighbours-{}", std::process::id()));
    let places = "stream = { callers-max = 10_000, callers-per-address-max = 10_000 }";
    let node = node(&folder, "hub", "disk", &format!("listen = ['127.0.0.1:0']\n{places}"));
    let me = process::of(None);
    let mut client = node.client();
    application(crate::resting::ready(&mut client));
    let before = me.own_mb();
    let mut crowd = Command::new(std::env::current_exe().expect("this program has a path"));
    crowd.arg("crowd").arg(node.addresses()[0].to_string()).arg(count.to_string());
    let mut crowd = crowd.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut said = String::new();
    std::io::BufReader::new(crowd.stdout.take().expect("a pipe")).read_line(&mut said).expect("it is up");
    let sessions = application(async {
        loop {
            let callers = &status(&mut client).await["callers"];
            let [now, opening] = ["now", "opening"].map(|name| callers[name].as_u64().unwrap_or(0));
            if now - opening >= count as u64 {
                return now;
            }
        }
    });
    let cpu = me.cpu_s();
    std::thread::sleep(IDLE);
    let cpu = me.cpu_s() - cpu;
    let memory = me.own_mb() - before;
    // The process ends with its input.
    drop(crowd.stdin.take());
    crowd.wait().expect("it ends");
    drop(node);
    let _ = std::fs::remove_dir_all(folder);
    json!({
        "sessions": sessions,
        "memory_mb": memory.round(),
        "kb_each": (memory * 1e3 / count as f64).round(),
        "cpu_percent": (cpu / IDLE.as_secs_f64() * 1e4).round() / 100.0,
    })
}

/// Neighbours of a node in this number, which keep their sessions alive until the input ends.
pub(crate) fn crowd(address: SocketAddr, count: usize) {
    let (ended, end) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        drop(ended);
    });
    let mut peers: Vec<TcpStream> = (0..count).map(|number| session(address, number)).collect();
    println!("up");
    let mut keepalive = BytesMut::new();
    Message::KeepAlive.encode(&mut keepalive);
    let each = Duration::from_secs(u64::from(KEEPALIVE_S)) / count.max(1) as u32 / 2;
    for number in (0..count).cycle() {
        if end.recv_timeout(each) != Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            return;
        }
        let mut heard = [0; 64];
        let _ = peers[number].read(&mut heard);
        peers[number].write_all(&keepalive).expect("the session lasts");
    }
}

/// Connects as one of the neighbours.
fn session(address: SocketAddr, number: usize) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("the node listens");
    let mut out = BytesMut::new();
    ContactHeader { can_tls: false }.encode(&mut out);
    let init = SessInit {
        keepalive: KEEPALIVE_S,
        segment_mru: 1 << 20,
        transfer_mru: 1 << 40,
        node_id: format!("dtn://neighbour-{number}/"),
        items: Bytes::new(),
    };
    Message::SessInit(init).encode(&mut out);
    stream.write_all(&out).expect("it connects");
    stream.set_nonblocking(true).expect("an option of sockets");
    stream
}
