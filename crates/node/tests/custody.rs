//! Gateways that take custody, as processes that are killed at any step: nothing of which they took custody is lost.
//!
//! `LONGWIRE_KILLS=200 cargo test -p longwire-node --test custody` sets the number of kills.

mod common;

use common::{DEADLINE, Place, payload, reserved};
use longwire_node::{Config, Node, NodeSetup};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Variable that tells a process of this test program the configuration of the node that it runs.
const CONFIGURATION: &str = "LONGWIRE_CUSTODY_CONFIGURATION";

/// Used by the processes that are killed; does nothing in others.
#[test]
fn a_node_runs() {
    let Ok(path) = std::env::var(CONFIGURATION) else { return };
    let config = Config::load(Path::new(&path)).expect("it makes sense");
    Node::start(NodeSetup::new(config)).expect("it starts").wait();
}

/// A node in a process of its own, killed on drop.
struct Process(Child);

impl Process {
    fn start(place: &Place, name: &str) -> Process {
        let mut command = Command::new(std::env::current_exe().expect("it has a path"));
        command.args(["a_node_runs", "--exact"]).env(CONFIGURATION, place.0.join(format!("{name}.toml")));
        Process(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes the configurations of both sides; the program at the far side is at `program`. Returns the address for programs.
fn configure(place: &Place, kind: &str, program: SocketAddr) -> SocketAddr {
    let [far, near, gateway] = [reserved(), reserved(), reserved()];
    let listen = |at: SocketAddr| match kind {
        "tcp" => format!("listen = ['{at}']\n"),
        kind => format!("listen-udp = ['{kind} {at}']\n"),
    };
    let quick = "[tcpcl]\nreconnect-min = '20 ms'\nreconnect-max = '100 ms'\n[aerotp]\nretry-min = '20 ms'\nretry-max = '100 ms'\n\
                 silence-limit = '2 s'\n";
    let link = |to: SocketAddr, peer: &str| {
        format!(
            "[[link]]\nname = 'wire'\nkind = '{kind}'\naddress = '{to}'\npeer = 'dtn://{peer}/'\nrate-bps = 100_000_000\n"
        )
    };
    let write = |name: &str, text: String| {
        let text = format!("node = 'dtn://{name}/'\nstorage.path = '{name}/store'\npeers = 'any'\n{text}");
        std::fs::write(place.0.join(format!("{name}.toml")), text).expect("a file");
    };
    let gateway_near = format!(
        "[[gateway]]\nlisten-tcp = '{gateway}'\nlink = 'wire'\nservice = 'near-reliable'\nto-port = 80\n"
    );
    let gateway_far = format!("[[gateway]]\nport = 80\nconnect-tcp = '{program}'\n");
    write("near", format!("{}{quick}{}{gateway_near}", listen(near), link(far, "far")));
    let back = if kind == "tcp" { String::new() } else { link(near, "near") };
    write("far", format!("{}{quick}{back}{gateway_far}", listen(far)));
    gateway
}

/// Message of the program at the far side.
#[derive(Debug)]
enum Heard {
    /// A connection has brought its first bytes.
    Begun,
    /// A connection was ended in good order.
    Ended(Vec<u8>),
}

/// The program at the far side: it takes each connection that is ended in good order, and ends it then.
fn serve(listener: TcpListener) -> mpsc::Receiver<Heard> {
    let (tell, heard) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), tell) = (stream, tell.clone()) else { return };
            std::thread::spawn(move || {
                let mut all = vec![0; 1];
                if stream.read_exact(&mut all).is_ok() {
                    let _ = tell.send(Heard::Begun);
                    if stream.read_to_end(&mut all).is_ok() {
                        let _ = tell.send(Heard::Ended(all));
                    }
                }
            });
        }
    });
    heard
}

/// Connects as soon as the node listens.
fn connect(to: SocketAddr) -> TcpStream {
    let began = Instant::now();
    let (_alive, never) = mpsc::channel::<()>();
    loop {
        if let Ok(stream) = TcpStream::connect(to) {
            stream.set_read_timeout(Some(DEADLINE)).expect("an option");
            return stream;
        }
        assert!(began.elapsed() < DEADLINE, "nobody listens at {to}");
        let _ = never.recv_timeout(Duration::from_millis(10));
    }
}

/// Ends the sending direction; returns true if the node has taken custody.
fn is_taken(mut stream: TcpStream) -> bool {
    stream.shutdown(Shutdown::Write).is_ok() && matches!(stream.read(&mut [0]), Ok(0))
}

/// Steps at which a node is killed.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The near one, while a program sends.
    NearBeforeTheEnd,
    /// The near one, when a program has ended and has no answer yet.
    NearAtTheEnd,
    /// The near one, when a program has the answer.
    NearAfterCustody,
    /// The far one, when the program there has the first bytes.
    FarDuringDelivery,
    /// The far one, when the near one has taken custody.
    FarAfterCustody,
}

fn nothing_is_lost(kind: &str) {
    use Step::{FarAfterCustody, FarDuringDelivery, NearAfterCustody, NearAtTheEnd, NearBeforeTheEnd};
    let place = Place::new("custody");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let gateway = configure(&place, kind, listener.local_addr().expect("it is bound"));
    let heard = serve(listener);
    let [mut near, mut far] = ["near", "far"].map(|name| Process::start(&place, name));
    let restart = |process: &mut Process, name: &str| {
        let _ = process.0.kill();
        let _ = process.0.wait();
        *process = Process::start(&place, name);
    };
    // Messages by content: true if the node has taken custody.
    let mut sent: BTreeMap<Vec<u8>, bool> = BTreeMap::new();
    let mut ended: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    let mut far_kills = 0;
    let note = |said: Heard, ended: &mut BTreeMap<Vec<u8>, u32>| {
        if let Heard::Ended(content) = said {
            *ended.entry(content).or_default() += 1;
        }
    };
    let steps = [NearBeforeTheEnd, FarDuringDelivery, NearAfterCustody, FarAfterCustody, NearAtTheEnd];
    let kills = std::env::var("LONGWIRE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    for (number, step) in steps.into_iter().cycle().take(kills).enumerate() {
        let length = [1, 70_000, 3_000_000][number % 3];
        let content = payload(length, number as u64 + 1).to_vec();
        let mut stream = connect(gateway);
        let taken = match step {
            NearBeforeTheEnd => {
                let _ = stream.write_all(&content[..length / 2]);
                restart(&mut near, "near");
                assert!(!is_taken(stream), "it has not sent everything");
                continue;
            }
            NearAtTheEnd => {
                let _ = stream.write_all(&content).and_then(|()| stream.shutdown(Shutdown::Write));
                restart(&mut near, "near");
                is_taken(stream)
            }
            NearAfterCustody | FarDuringDelivery | FarAfterCustody => {
                stream.write_all(&content).expect("it is read");
                assert!(is_taken(stream), "{step:?}: the node takes custody");
                true
            }
        };
        sent.insert(content, taken);
        match step {
            NearAfterCustody => restart(&mut near, "near"),
            FarAfterCustody => {
                far_kills += 1;
                restart(&mut far, "far");
            }
            FarDuringDelivery => {
                loop {
                    let said = heard.recv_timeout(DEADLINE).expect("it is delivered");
                    let has_begun = matches!(said, Heard::Begun);
                    note(said, &mut ended);
                    if has_begun {
                        break;
                    }
                }
                far_kills += 1;
                restart(&mut far, "far");
            }
            NearBeforeTheEnd | NearAtTheEnd => {}
        }
    }
    while sent.iter().any(|(content, taken)| *taken && !ended.contains_key(content)) {
        note(heard.recv_timeout(DEADLINE).expect("everything is delivered"), &mut ended);
    }
    for (content, times) in &ended {
        assert!(sent.contains_key(content), "{} bytes that nobody sent so", content.len());
        // A node that is killed before its store has noted the end delivers again.
        assert!(*times <= 1 + far_kills, "{times} times");
    }
}

#[test]
fn nothing_of_which_a_gateway_took_custody_is_lost_when_either_is_killed() {
    nothing_is_lost("aerotp");
}

/// The service needs bundles, and no particular convergence layer.
#[test]
fn custody_is_the_same_over_a_link_of_another_kind() {
    nothing_is_lost("tcp");
}
