//! Datagrams of real programs over an emulated link.

use longwire_emulator::{EmulationReport, Emulator, Ports};
use longwire_lab::link::LinkPath;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Limit for every step, even on a heavily loaded machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// A running emulation, which ends on request.
struct Running {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<EmulationReport>,
    ports: Vec<SocketAddr>,
}

impl Running {
    fn start(link: &str, changes: &[&str], programs: [Option<SocketAddr>; 2]) -> Running {
        let changes: Vec<String> = changes.iter().map(|&change| change.to_owned()).collect();
        let path = LinkPath::load_with(link, &changes, Path::new(".")).expect("it is a link");
        let places = programs.map(|program| {
            let listen = "127.0.0.1:0".parse().expect("an address");
            longwire_emulator::UdpPlace { listen, program }
        });
        let mut emulator = Emulator::open(&path, &Ports::Udp(places), 1).expect("ports are free");
        let (stop, ports) = (Arc::new(AtomicBool::new(false)), emulator.addresses().to_vec());
        let flag = stop.clone();
        let thread = thread::spawn(move || emulator.run(&flag, None).expect("it can wait"));
        Running { stop, thread, ports }
    }

    fn end(self) -> EmulationReport {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("it does not panic")
    }
}

fn program() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.set_read_timeout(Some(DEADLINE)).expect("it can wait");
    socket
}

#[test]
fn datagrams_pass_in_both_directions_and_no_sooner_than_the_link_allows() {
    let (here, there) = (program(), program());
    let there_at = there.local_addr().expect("an address");
    let running = Running::start("cislunar", &["ber=0", "delay-ms=50"], [None, Some(there_at)]);
    let began = Instant::now();
    let sent: Vec<u8> = (0..1000_u32).map(|at| at as u8).collect();
    here.send_to(&sent, running.ports[0]).expect("it is sent");
    let mut buffer = [0; 2000];
    let (length, from) = there.recv_from(&mut buffer).expect("it arrives");
    assert_eq!((&buffer[..length], from), (&sent[..], running.ports[1]));
    // 1,030 bytes at 115,200 bit/s, and the delay.
    assert!(began.elapsed() >= Duration::from_millis(71 + 50), "{:?}", began.elapsed());
    there.send_to(b"back", from).expect("it is sent");
    let (length, from) = here.recv_from(&mut buffer).expect("it arrives");
    assert_eq!((&buffer[..length], from), (&b"back"[..], running.ports[0]));
    let report = running.end();
    let counts: Vec<_> = report.ends.iter().map(|end| (end.sent, end.arrived, end.refused)).collect();
    assert_eq!(counts, [(1, 1, 0), (1, 1, 0)]);
    assert_eq!(report.lateness.packets, 2);
    assert!(report.lateness.max_ms >= report.lateness.median_ms && report.lateness.median_ms >= 0.0);
}

#[test]
fn what_the_link_or_the_program_cannot_take_is_counted() {
    let (here, stranger) = (program(), UdpSocket::bind("127.0.0.2:0").expect("a free port"));
    let here_at = here.local_addr().expect("an address");
    let running = Running::start("lan", &[], [Some(here_at), None]);
    // Longer than a packet of the link with its headers.
    here.send_to(&[0; 1473], running.ports[0]).expect("it is sent");
    // The port belongs to a program of another host.
    stranger.send_to(b"let me in", running.ports[0]).expect("it is sent");
    // There is no program at the other end yet.
    here.send_to(b"hello", running.ports[0]).expect("it is sent");
    let there = program();
    there.send_to(b"I am here", running.ports[1]).expect("it is sent");
    let mut buffer = [0; 2000];
    let (length, _) = here.recv_from(&mut buffer).expect("it arrives");
    assert_eq!(&buffer[..length], b"I am here");
    here.send_to(&[7; 1472], running.ports[0]).expect("it is sent");
    loop {
        let (length, _) = there.recv_from(&mut buffer).expect("it arrives");
        // The first one may have come after the program: the system promises no order between sockets.
        if length == 1472 {
            break;
        }
        assert_eq!(&buffer[..length], b"hello");
    }
    let report = running.end();
    assert_eq!(report.ends[0].refused, 2, "{report:?}");
    assert_eq!(report.ends[0].sent, 2, "{report:?}");
}

#[test]
fn an_outage_loses_what_is_sent_in_it_and_the_link_returns() {
    let (here, there) = (program(), program());
    let there_at = there.local_addr().expect("an address");
    // Long enough that the first datagram is sent in it.
    let outage = "outage=[{from='data', after-s=0, length-s=5}]";
    let running = Running::start("lan", &[outage], [None, Some(there_at)]);
    let began = Instant::now();
    there.set_read_timeout(Some(Duration::from_millis(10))).expect("it can wait");
    let mut buffer = [0; 16];
    let mut number = 0_u32;
    let first = loop {
        number += 1;
        here.send_to(&number.to_be_bytes(), running.ports[0]).expect("it is sent");
        if let Ok((4, _)) = there.recv_from(&mut buffer) {
            break u32::from_be_bytes(buffer[..4].try_into().expect("four bytes"));
        }
        assert!(began.elapsed() < DEADLINE, "the link does not return");
    };
    assert!(first > 1, "the outage lost nothing");
    running.end();
}

#[test]
fn a_link_that_has_no_datagrams_is_refused_with_a_hint() {
    let path = LinkPath::load("ax25-1200", Path::new(".")).expect("it is built in");
    let place = "127.0.0.1:0".parse().expect("an address");
    let refused = Emulator::open(&path, &Ports::Udp([place, place]), 1).err().expect("it is refused");
    assert!(refused.hint.expect("a hint").contains("--kiss"));
    let path = LinkPath::load("lan", Path::new(".")).expect("it is built in");
    let at = "127.0.0.1:0".parse().expect("an address");
    assert!(Emulator::open(&path, &Ports::Kiss(vec![at, at]), 1).is_err());
    let holder = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let taken = holder.local_addr().expect("an address");
    let place = longwire_emulator::UdpPlace { listen: taken, program: None };
    let refused = Emulator::open(&path, &Ports::Udp([place, place]), 1).err().expect("it is taken");
    assert!(refused.what.contains(&taken.to_string()), "{refused}");
    drop(holder);
}
