//! Programs that use TCP and UDP over a link with bit errors, through gateways, on real sockets.

mod common;

use common::{App, DEADLINE, config, payload, reserved, start};
use longwire_node::Node;
use longwire_proto::rng::Rng;
use nix::libc;
use nix::sys::socket::{setsockopt, sockopt::SetBool};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Option `SO_NO_CHECK`: datagrams are sent without a checksum.
const SO_NO_CHECK: libc::c_int = 11;

#[derive(Clone, Copy, Debug)]
struct SendUnchecked;
nix::setsockopt_impl!(SendUnchecked, libc::SOL_SOCKET, SO_NO_CHECK, bool, SetBool);

/// A wire between two nodes that flips bits: what arrives on one of its sockets leaves from the other, without a UDP checksum.
struct NoisyWire {
    /// Address that the near node sends to, and the one that the far node sends to.
    ends: [SocketAddr; 2],
    stop: Arc<AtomicBool>,
    flipped: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl NoisyWire {
    /// `listening`: addresses of the near and the far node.
    fn new(listening: [SocketAddr; 2], ber: f64) -> Self {
        let sockets = [(); 2].map(|()| {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            setsockopt(&socket, SendUnchecked, &true).expect("an option");
            socket.set_read_timeout(Some(std::time::Duration::from_millis(100))).expect("a timeout");
            Arc::new(socket)
        });
        let ends = [0, 1].map(|at: usize| sockets[at].local_addr().expect("it is bound"));
        let (stop, flipped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        // A datagram to the end of one node goes to the other node, which knows it by the end that it sends to itself.
        let threads = [(0, 1), (1, 0)].map(|(from, to)| {
            let (inward, outward, target) = (sockets[from].clone(), sockets[to].clone(), listening[to]);
            let (stop, flipped) = (stop.clone(), flipped.clone());
            std::thread::spawn(move || {
                let mut rng = Rng::new(from as u64);
                let mut next = if ber > 0.0 { rng.geometric(ber) } else { u64::MAX };
                let mut buffer = [0; 65_536];
                while !stop.load(Ordering::Relaxed) {
                    let Ok((length, _)) = inward.recv_from(&mut buffer) else { continue };
                    let bits = length as u64 * 8;
                    while next < bits {
                        buffer[(next / 8) as usize] ^= 1 << (next % 8);
                        flipped.fetch_add(1, Ordering::Relaxed);
                        next += 1 + rng.geometric(ber);
                    }
                    next = next.saturating_sub(bits);
                    let _ = outward.send_to(&buffer[..length], target);
                }
            })
        });
        NoisyWire { ends, stop, flipped, threads: threads.into() }
    }
}

impl Drop for NoisyWire {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Two nodes with a link of kind `aerotp` between them over a wire with bit errors.
struct Scene {
    near: Node,
    _far: Node,
    wire: NoisyWire,
}

const NEAR: &str = "[aerotp]\nrate-bps = 100_000_000\nrto-initial = '50 ms'\n";

impl Scene {
    fn new(ber: f64, near: &str, far: &str) -> Scene {
        let listening = [reserved(), reserved()];
        let wire = NoisyWire::new(listening, ber);
        let node = |name: &str, peer: &str, at: usize, more: &str| {
            start(config(&format!(
                "node = 'dtn://{name}/'\nlisten-udp = ['aerotp {}']\nstorage.kind = 'memory'\n{NEAR}[[link]]\nname = 'wire'\n\
                 kind = 'aerotp'\naddress = '{}'\npeer = 'dtn://{peer}/'\nrate-bps = 100_000_000\n{more}",
                listening[at], wire.ends[at]
            )))
        };
        let far = node("far", "near", 1, far);
        let near = node("near", "far", 0, near);
        for node in [&near, &far] {
            App::new(node).wait_status(|status| {
                let links = status["links"].as_array().expect("a list");
                links.iter().any(|link| link["name"] == "wire" && link["up"] == true)
            });
        }
        Scene { near, _far: far, wire }
    }

    fn address(&self) -> SocketAddr {
        self.near.gateway_addresses()[0]
    }
}

/// A near and a far gateway for TCP, to a program at this address.
fn tcp(service: &str, to: SocketAddr) -> (String, String) {
    (
        format!(
            "[[gateway]]\nlisten-tcp = '127.0.0.1:0'\nlink = 'wire'\nservice = '{service}'\nto-port = 80\n"
        ),
        format!("[[gateway]]\nport = 80\nconnect-tcp = '{to}'\n"),
    )
}

fn listener() -> (TcpListener, SocketAddr) {
    let address = reserved();
    (TcpListener::bind(address).expect("it is its own"), address)
}

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).expect("it listens");
    stream.set_read_timeout(Some(DEADLINE)).expect("an option");
    stream.set_write_timeout(Some(DEADLINE)).expect("an option");
    stream
}

fn accept(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().expect("it connects");
    stream.set_read_timeout(Some(DEADLINE)).expect("an option");
    stream
}

/// Waits until the far program is called, or the near one is reset, which a write may have told already.
fn accept_unless_reset(
    listener: &TcpListener,
    near: &mut TcpStream,
    mut is_reset: bool,
) -> Option<TcpStream> {
    listener.set_nonblocking(true).expect("an option");
    near.set_read_timeout(Some(std::time::Duration::from_millis(20))).expect("an option");
    let begun = std::time::Instant::now();
    loop {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(false).expect("an option");
            stream.set_read_timeout(Some(DEADLINE)).expect("an option");
            return Some(stream);
        }
        if is_reset {
            return None;
        }
        assert!(begun.elapsed() < DEADLINE, "neither a call nor a reset");
        is_reset = near.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::ConnectionReset);
    }
}

fn read(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("it ends in good order");
    all
}

/// Both programs see plain TCP: each direction ends by itself, whatever the link does to its bits.
#[test]
fn a_file_arrives_whole_over_bit_errors_and_the_answer_after_the_end_of_the_question() {
    let (listener, address) = listener();
    for service in ["reliable", "adaptive"] {
        let (near, far) = tcp(service, address);
        let scene = Scene::new(1e-5, &near, &far);
        let file = payload(1_000_000, 1);
        let mut here = connect(scene.address());
        let sending = {
            let (mut here, file) = (here.try_clone().expect("a clone"), file.clone());
            std::thread::spawn(move || {
                here.write_all(&file).expect("it is taken");
                here.shutdown(Shutdown::Write).expect("it ends");
            })
        };
        let mut there = accept(&listener);
        assert!(read(&mut there) == file, "{service}: the file");
        sending.join().expect("it has sent");
        let answer = payload(300_000, 2);
        there.write_all(&answer).expect("it is taken");
        drop(there);
        assert!(read(&mut here) == answer, "{service}: the answer");
        assert!(scene.wire.flipped.load(Ordering::Relaxed) > 20, "{service}: the wire is noisy");
    }
}

#[test]
fn a_server_that_speaks_first_is_heard() {
    let (listener, address) = listener();
    let (near, far) = tcp("reliable", address);
    let scene = Scene::new(0.0, &near, &far);
    let mut here = connect(scene.address());
    let mut there = accept(&listener);
    there.write_all(b"220 ready\r\n").expect("it is taken");
    let mut greeting = [0; 11];
    here.read_exact(&mut greeting).expect("it greets");
    assert_eq!(&greeting, b"220 ready\r\n");
}

/// A program that reads nothing holds back the one that writes: what it has not taken is not acknowledged.
#[test]
fn what_the_far_program_does_not_take_is_not_taken_from_the_near_one() {
    let (listener, address) = listener();
    let (near, far) = tcp("reliable", address);
    let limits = "[stream]\nwindow-bytes = 100_000\n";
    let scene = Scene::new(0.0, &format!("{near}{limits}"), &far);
    let mut here = connect(scene.address());
    let there = accept(&listener);
    let (mut waits, mut taken) = (false, 0_u64);
    here.set_write_timeout(Some(std::time::Duration::from_secs(2))).expect("an option");
    while taken < 64 << 20 {
        match here.write(&[0; 65_536]) {
            Ok(bytes) => taken += bytes as u64,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                waits = true;
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(waits, "{taken} bytes are in the buffers of two systems and two gateways");
    drop(there);
}

#[test]
fn a_reset_or_a_failure_at_one_end_is_a_reset_at_the_other() {
    let (listener, address) = listener();
    let (near, far) = tcp("reliable", address);
    let scene = Scene::new(0.0, &near, &far);
    let is_reset = |stream: &mut TcpStream| {
        let error = stream.read_to_end(&mut Vec::new()).expect_err("it does not end in good order");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    };
    // The far program closes with data unread, which resets its connection.
    let mut here = connect(scene.address());
    let mut there = accept(&listener);
    here.write_all(b"unread").expect("it is taken");
    there.peek(&mut [0; 6]).expect("it has arrived");
    drop(there);
    is_reset(&mut here);
    // The near one does.
    let here = connect(scene.address());
    let mut there_2 = accept(&listener);
    there_2.write_all(b"unread").expect("it is taken");
    here.peek(&mut [0; 6]).expect("it has arrived");
    drop(here);
    is_reset(&mut there_2);
    // No program is there.
    drop(listener);
    is_reset(&mut connect(scene.address()));
    there = there_2;
    drop(there);
    let status = App::new(&scene.near).wait_status(|status| status["gateways"][0]["open"] == 0);
    assert_eq!(status["gateways"][0]["counters"]["connections"], 3, "{status:#}");
    assert_eq!(status["gateways"][0]["counters"]["reset"], 3, "{status:#}");
}

/// A node that ends without a word is a reset for the programs of both: at once for its own, and for others when nothing is heard of it.
#[test]
fn a_node_that_vanishes_is_a_reset_at_both_ends() {
    let (listener, address) = listener();
    let (near, far) = tcp("reliable", address);
    let scene = Scene::new(0.0, &near, &format!("aerotp.silence-limit = '8 s'\n{far}"));
    let mut here = connect(scene.address());
    let mut there = accept(&listener);
    here.write_all(b"beginning").expect("it is taken");
    there.read_exact(&mut [0; 9]).expect("it arrives");
    let Scene { near, _far, wire } = scene;
    drop(near);
    for stream in [&mut here, &mut there] {
        let error = stream.read_to_end(&mut Vec::new()).expect_err("it does not end in good order");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    drop(wire);
}

/// Programs that connect and say nothing take places, and no more than these.
#[test]
fn thousands_of_silent_connections_take_a_bounded_number_of_places() {
    let (listener, address) = listener();
    let (near, far) = tcp("reliable", address);
    let scene = Scene::new(0.0, &format!("{near}connections-max = 20\n"), &far);
    let silent: Vec<TcpStream> = (0..1000).map(|_| connect(scene.address())).collect();
    let mut app = App::new(&scene.near);
    let counted = |status: &serde_json::Value| {
        let counters = &status["gateways"][0]["counters"];
        counters["connections"].as_u64().unwrap_or(0) + counters["refused"].as_u64().unwrap_or(0)
    };
    let status = app.wait_status(|status| counted(status) == 1000);
    assert_eq!(status["gateways"][0]["open"], 20, "{status:#}");
    drop(silent);
    // Those that were accepted have come to the program, and end when it ends them.
    (0..20).for_each(|_| drop(accept(&listener)));
    app.wait_status(|status| status["gateways"][0]["open"] == 0);
    let mut here = connect(scene.address());
    here.write_all(b"x").expect("it is taken");
    let mut there = accept(&listener);
    there.read_exact(&mut [0]).expect("it has a place");
}

/// Each datagram is a message; answers find the program that asked, and damaged ones are dropped unless they are wanted.
#[test]
fn datagrams_cross_as_messages_and_damaged_ones_only_if_they_are_wanted() {
    let server = UdpSocket::bind("127.0.0.1:0").expect("a port");
    server.set_read_timeout(Some(DEADLINE)).expect("an option");
    let address = server.local_addr().expect("it is bound");
    for service in ["unreliable-datagram", "quasi-reliable"] {
        let near = format!(
            "[[gateway]]\nlisten-udp = '127.0.0.1:0'\nlink = 'wire'\nservice = '{service}'\nto-port = 53\n"
        );
        let far = format!("[[gateway]]\nport = 53\nsend-udp = '{address}'\n");
        let scene = Scene::new(0.0, &near, &far);
        let clients = [(); 2].map(|()| {
            let client = UdpSocket::bind("127.0.0.1:0").expect("a port");
            client.set_read_timeout(Some(DEADLINE)).expect("an option");
            client.connect(scene.address()).expect("an address");
            client
        });
        let mut buffer = [0; 2000];
        for (number, client) in clients.iter().enumerate() {
            for length in [1, 1000, 1300] {
                let question = vec![number as u8; length];
                client.send(&question).expect("it is taken");
                let (received, from) = server.recv_from(&mut buffer).expect("it arrives");
                assert_eq!(buffer[..received], question);
                server.send_to(&[number as u8 + 10; 7], from).expect("it is taken");
                assert_eq!(client.recv(&mut buffer).expect("the answer"), 7);
                assert_eq!(buffer[0], number as u8 + 10);
            }
        }
    }
    // With bit errors: whole or not at all; with `damaged`, most arrive, and some of them are not whole.
    for (damaged, wanted) in [(false, "damaged = false\n"), (true, "damaged = true\n")] {
        let near = "[[gateway]]\nlisten-udp = '127.0.0.1:0'\nlink = 'wire'\nto-port = 53\n";
        let far = format!(
            "aerotp.deliver-damaged = {damaged}\n[[gateway]]\nport = 53\nsend-udp = '{address}'\n{wanted}"
        );
        let scene = Scene::new(1e-4, near, &far);
        let client = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let question = payload(1000, 3);
        let (mut whole, mut broken) = (0, 0);
        let mut buffer = [0; 2000];
        server.set_read_timeout(Some(std::time::Duration::from_millis(100))).expect("an option");
        for _ in 0..200 {
            client.send_to(&question, scene.address()).expect("it is taken");
            while let Ok(received) = server.recv(&mut buffer) {
                assert_eq!(received, 1000);
                if buffer[..1000] == question {
                    whole += 1
                } else {
                    broken += 1
                }
                if whole + broken > 0 {
                    break;
                }
            }
            if whole > 20 && (broken > 5 || !damaged) {
                break;
            }
        }
        assert!(whole > 20, "{whole} whole and {broken} broken ones");
        assert_eq!(broken > 0, damaged, "{whole} whole and {broken} broken ones");
    }
}

/// In the service without correction, bit errors and losses cost datagrams, but neither their contents nor their order.
#[test]
fn datagrams_of_an_unreliable_connection_arrive_whole_and_in_order() {
    let server = UdpSocket::bind("127.0.0.1:0").expect("a port");
    server.set_read_timeout(Some(std::time::Duration::from_millis(20))).expect("an option");
    let address = server.local_addr().expect("it is bound");
    let near = "[[gateway]]\nlisten-udp = '127.0.0.1:0'\nlink = 'wire'\nservice = 'unreliable-connection'\nto-port = 53\n";
    let scene = Scene::new(2e-5, near, &format!("[[gateway]]\nport = 53\nsend-udp = '{address}'\n"));
    let client = UdpSocket::bind("127.0.0.1:0").expect("a port");
    // Some are longer than a packet of the link.
    let sent: Vec<Vec<u8>> = (0..300_u64)
        .map(|number| [&number.to_be_bytes()[..], &payload(1 + number as usize * 10, number)].concat())
        .collect();
    let mut got = Vec::new();
    let mut buffer = [0; 10_000];
    for datagram in &sent {
        client.send_to(datagram, scene.address()).expect("it is taken");
        while let Ok(length) = server.recv(&mut buffer) {
            let number = u64::from_be_bytes(buffer[..8].try_into().expect("8 octets"));
            assert!(buffer[..length] == sent[number as usize], "datagram {number}");
            got.push(number);
            if length == datagram.len() {
                break;
            }
        }
    }
    assert!(got.is_sorted_by(|one, next| one < next), "{got:?}");
    assert!((30..300).contains(&got.len()), "{} of 300", got.len());
}

/// A segment of which nothing arrives is not repeated: a stream is what was sent up to there, and then reset.
#[test]
fn a_stream_with_negative_acknowledgements_is_whole_or_reset() {
    let (listener, address) = listener();
    let (near, far) = tcp("nack", address);
    let scene = Scene::new(2e-5, &near, &far);
    let files: Vec<_> = (0..10).map(|number| payload(60_000, number)).collect();
    let mut whole = 0;
    for file in &files {
        let mut here = connect(scene.address());
        // It may be reset meanwhile.
        let written = here.write_all(file).and_then(|()| here.shutdown(Shutdown::Write));
        // The far program is not called if nothing of the beginning arrives.
        let Some(mut there) = accept_unless_reset(&listener, &mut here, written.is_err()) else { continue };
        let mut got = Vec::new();
        // The far program may be called for an earlier file, after the near one has been reset.
        match there.read_to_end(&mut got) {
            Ok(_) => {
                assert!(
                    files.iter().any(|file| got == file[..]),
                    "{} bytes, and an end in good order",
                    got.len()
                );
                whole += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                let is_beginning = files.iter().any(|file| file.starts_with(&got));
                assert!(is_beginning, "{} bytes before a reset", got.len());
            }
        }
    }
    assert!(whole > 2, "{whole} of 10");
    assert!(scene.wire.flipped.load(Ordering::Relaxed) > 20, "the wire is noisy");
}
