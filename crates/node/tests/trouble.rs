//! Power failures, broken links, full stores, peers that do not read, clocks that jump: accepted bundles stay.

mod common;

use common::volatile::VolatileStore;
use common::{App, DEADLINE, config, payload, reserved, start, wait_acknowledged};
use longwire_node::message::{Message, MessageOptions, Reply, Request};
use longwire_node::view::{Filter, State};
use longwire_node::{Config, Node, NodeSetup};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

const QUICK: &str = "[tcpcl]\nreconnect-min = '20 ms'\nreconnect-max = '100 ms'\n";

fn on(disk: &VolatileStore, text: &str) -> Node {
    let setup = NodeSetup { store: Some(disk.opener()), ..NodeSetup::new(config(text)) };
    Node::start(setup).expect("it starts")
}

#[test]
fn nothing_is_accepted_before_it_is_synced() {
    let disk = VolatileStore::default();
    let alice = on(&disk, "node = 'dtn://alice/'");
    let mut app = App::new(&alice);
    let first = app.send("dtn://alice/inbox", &payload(1000, 1), MessageOptions::default());
    app.wait_accepted(first);
    disk.hold(true);
    app.send("dtn://alice/inbox", &payload(2000, 2), MessageOptions::default());
    // All requests except those to the disk are complete.
    let status = app.wait_status(|status| status["bundles"] == 2);
    assert_eq!(status["counters"]["sent_here"], 1, "one is accepted, one is not");
    // The power fails and comes back: the second bundle was never accepted.
    let alice = {
        disk.open();
        disk.hold(false);
        drop(alice);
        on(&disk, "node = 'dtn://alice/'")
    };
    let mut app = App::new(&alice);
    app.register("inbox", 5000);
    let (_, got) = app.receive();
    assert_eq!(got, payload(1000, 1));
    assert_eq!(app.wait_status(|status| status["ready"] == true)["bundles"], 1);
}

/// Sender, relay and receiver lose their power while bundles are sent, each with every size and both versions in turn.
#[test]
fn power_cuts_lose_nothing_that_was_accepted() {
    const LENGTHS: [usize; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
    let cuts: usize = std::env::var("LONGWIRE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    for version in ["3", "4"] {
        let sent = power_cuts(version, cuts.div_ceil(2).max(3 * LENGTHS.len()), &LENGTHS);
        assert!(sent.iter().all(|count| *count == 1), "version {version}, how often each arrived: {sent:?}");
    }
}

/// Returns how often each bundle arrived.
fn power_cuts(version: &str, cuts: usize, lengths: &[usize]) -> Vec<usize> {
    let [relay, carol] = [(); 2].map(|()| reserved());
    let tcpcl = format!("{QUICK}versions = '{version}'\n");
    let texts = [
        format!(
            "node = 'dtn://alice/'\n[[link]]\nname = 'relay'\naddress = '{relay}'\n[[route]]\nto = '*'\nvia = 'relay'\n{tcpcl}"
        ),
        format!(
            "node = 'dtn://relay/'\nlisten = ['{relay}']\n[[link]]\nname = 'carol'\naddress = '{carol}'\n{tcpcl}"
        ),
        format!("node = 'dtn://carol/'\nlisten = ['{carol}']\n{tcpcl}"),
    ];
    let disks = [(); 3].map(|()| VolatileStore::default());
    let mut nodes: Vec<Option<Node>> = (0..3).map(|at| Some(on(&disks[at], &texts[at]))).collect();
    let mut rng = longwire_proto::rng::Rng::new(9);
    let file = |cut: usize| payload(lengths[cut % lengths.len()], cut as u64);
    for cut in 0..cuts {
        let mut app = App::new(nodes[0].as_ref().expect("it runs"));
        let send = app.send("dtn://carol/inbox", &file(cut), MessageOptions::default());
        app.wait_accepted(send);
        // After this many syncs, or when there is no more progress.
        let victim = cut % 3;
        let until = disks[victim].syncs() + rng.below(12);
        disks[victim].wait_for_syncs(until, Duration::from_millis(20));
        disks[victim].open();
        nodes[victim] = None;
        nodes[victim] = Some(on(&disks[victim], &texts[victim]));
    }
    let mut carol = App::new(nodes[2].as_ref().expect("it runs"));
    carol.register("inbox", 0);
    let mut arrived = vec![0; cuts];
    for _ in 0..cuts {
        let (delivery, data) = carol.receive();
        carol.take(delivery);
        let which = (0..cuts).find(|cut| data.len() == lengths[cut % lengths.len()] && data == file(*cut));
        arrived[which.expect("it is whole")] += 1;
    }
    for node in &nodes {
        App::new(node.as_ref().expect("it runs")).wait_status(|status| status["bundles"] == 0);
    }
    arrived
}

/// A connection between two nodes that can be cut and counts its bytes.
struct Line {
    port: u16,
    carried: Arc<AtomicU64>,
    /// Dropping this cuts the first connection at the point where it has stopped.
    whole: mpsc::Sender<()>,
}

impl Line {
    /// The first connection stops after this many bytes to the listener.
    fn new(to: std::net::SocketAddr, stands_after: u64) -> Line {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let carried = Arc::new(AtomicU64::new(0));
        let count = carried.clone();
        let (whole, cut) = mpsc::channel();
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
                let there = TcpStream::connect(to).unwrap();
                let (mut a, mut b) = (stream.try_clone().unwrap(), there.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut b, &mut a);
                    let _ = a.shutdown(std::net::Shutdown::Both);
                });
                let limit = if number == 0 { stands_after } else { u64::MAX };
                carry(stream, there, limit, &cut, &count);
            }
        });
        Line { port, carried, whole }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, limit: u64, cut: &mpsc::Receiver<()>, count: &AtomicU64) {
    let mut buffer = [0; 16 * 1024];
    let mut carried = 0;
    while let Ok(some @ 1..) = from.read(&mut buffer) {
        if carried >= limit {
            let _ = cut.recv();
            break;
        }
        if to.write_all(&buffer[..some]).is_err() {
            break;
        }
        carried += some as u64;
        count.fetch_add(some as u64, Ordering::Relaxed);
    }
    let _ = from.shutdown(std::net::Shutdown::Both);
    let _ = to.shutdown(std::net::Shutdown::Both);
}

#[test]
fn a_link_cut_in_the_middle_sends_only_the_rest_again() {
    for version in ["3", "4"] {
        let bob = start(config("node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\n[storage]\nkind = 'memory'"));
        let line = Line::new(bob.addresses()[0], 25_000_000);
        let alice = start(config(&format!(
            "node = 'dtn://alice/'\n[storage]\nkind = 'memory'\n[[link]]\nname = 'bob'\naddress = '127.0.0.1:{}'\n\
             {QUICK}versions = '{version}'",
            line.port
        )));
        let (mut here, mut there) = (App::new(&alice), App::new(&bob));
        there.register("inbox", 0);
        let file = payload(30_000_000, 1);
        let send = here.send("dtn://bob/inbox", &file, MessageOptions::default());
        wait_acknowledged(&mut here, &mut there, 20_000_000);
        drop(line.whole);
        let (_, got) = there.receive();
        assert_eq!(got, file);
        here.wait_sent(send);
        let again = line.carried.load(Ordering::Relaxed) - 30_000_000;
        // Only bytes that were outstanding, never bytes that were acknowledged before.
        let status = here.status();
        assert!(again < 10_000_000, "{again} bytes sent twice: {:#}", status["counters"]);
        assert!(
            status["counters"]["payload_bytes_saved"].as_u64() > Some(10_000_000),
            "{:#}",
            status["counters"]
        );
    }
}

#[test]
fn a_full_store_refuses_what_comes_and_keeps_what_it_has() {
    let disk = VolatileStore::default();
    let bob =
        on(&disk, "node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\n[agent.limits]\nstore-bytes-max = 300_000");
    let alice = start(config(&format!(
        "node = 'dtn://alice/'\n[storage]\nkind = 'memory'\n[agent]\nbackoff-min = '50 ms'\nbackoff-max = '100 ms'\n\
         [[link]]\nname = 'bob'\naddress = '{}'",
        bob.addresses()[0]
    )));
    let mut here = App::new(&alice);
    for seed in 0..4 {
        here.send("dtn://bob/inbox", &payload(100_000, seed), MessageOptions::default());
    }
    let mut there = App::new(&bob);
    there.wait_status(|status| status["counters"]["refused_no_resources"].as_u64() > Some(0));
    // Taken one by one, all arrive: none is lost, and there is no deadlock.
    there.register("inbox", 0);
    let mut got = Vec::new();
    for _ in 0..4 {
        let (delivery, data) = there.receive();
        there.take(delivery);
        got.push(data);
    }
    assert!((0..4).all(|seed| got.contains(&payload(100_000, seed))));
    // The disk itself is full: the send fails with that reason, and the store can still be emptied.
    disk.set_size(Some(20_000));
    let send = there.send("dtn://bob/inbox", &payload(50_000, 9), MessageOptions::default());
    let reason = there.wait(|said| match said.head {
        Reply::Failed { send: of, reason, .. } if of == send => Some(reason),
        _ => None,
    });
    assert!(reason.contains("full"), "{reason}");
    let send = there.send("dtn://bob/inbox", &payload(500, 9), MessageOptions::default());
    there.wait_accepted(send);
    let (delivery, _) = there.receive();
    there.take(delivery);
}

/// A session of version 3 with a peer that sends its part and reads nothing; it lasts as long as the returned stream.
fn with_a_deaf_peer(more: &str) -> (Node, TcpListener, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let deaf = listener.local_addr().unwrap();
    let alice = start(config(&format!(
        "node = 'dtn://alice/'\n[storage]\nkind = 'memory'\n[[link]]\nname = 'deaf'\naddress = '{deaf}'\n[link.tcpcl]\n\
         versions = '3'\n{more}"
    )));
    let (mut peer, _) = listener.accept().unwrap();
    // A contact header of version 3 (RFC 7242 4.1): acknowledgements on, keep-alives off, node ID `dtn://deaf/`.
    peer.write_all(b"dtn!\x03\x01\x00\x00\x0bdtn://deaf/").unwrap();
    App::new(&alice).wait_status(|status| status["links"][0]["up"] == true);
    (alice, listener, peer)
}

#[test]
fn a_peer_that_stops_reading_fills_no_memory_and_stops_nobody_else() {
    let bob = start(config("node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\n[storage]\nkind = 'memory'"));
    let link = format!("[[link]]\nname = 'bob'\naddress = '{}'", bob.addresses()[0]);
    let (alice, _listener, _peer) = with_a_deaf_peer(&link);
    let mut here = App::new(&alice);
    for seed in 0..20 {
        here.send("dtn://deaf/inbox", &payload(1_000_000, seed), MessageOptions::default());
    }
    let mut there = App::new(&bob);
    there.register("inbox", 10_000);
    for seed in 0..20 {
        here.send("dtn://bob/inbox", &payload(1000, seed), MessageOptions::default());
        let (delivery, got) = there.receive();
        assert_eq!(got, payload(1000, seed));
        there.take(delivery);
    }
    let status = here.wait_status(|status| status["bundles"] == 20);
    let buffered = status["buffered_bytes"].as_u64().expect("a number");
    assert!(buffered < 1_000_000, "{buffered} bytes wait in memory");
}

/// A peer can keep its session alive without reading; its connection ends all the same.
#[test]
fn a_peer_that_takes_nothing_for_too_long_loses_its_connection() {
    let (alice, _listener, _peer) = with_a_deaf_peer("[stream]\nstall = '300 ms'");
    let mut here = App::new(&alice);
    for seed in 0..20 {
        here.send("dtn://deaf/inbox", &payload(1_000_000, seed), MessageOptions::default());
    }
    let status = here.wait_status(|status| status["stalled_connections"] == 1);
    let status = match status["links"][0]["up"] == false {
        true => status,
        false => here.wait_status(|status| status["links"][0]["up"] == false),
    };
    assert_eq!(status["links"][0]["down_reason"], "stalled");
    here.wait_status(|status| status["bundles"] == 20);
}

#[test]
fn an_application_that_does_not_read_is_cut_off_and_too_many_are_turned_away() {
    let place = common::Place::new("applications");
    let text = "node = 'dtn://alice/'\n[storage]\nkind = 'memory'\n[applications]\nconnections-max = 1\npatience = '300 ms'";
    let path = place.0.join("socket");
    let alice = start(Config { control: Some(path.clone()), ..config(text) });
    let mut deaf = UnixStream::connect(&path).unwrap();
    deaf.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut app = App::new(&alice);
    app.wait_status(|status| status["control"]["now"] == 1);
    let mut said = String::new();
    let mut other = UnixStream::connect(&path).unwrap();
    other.set_read_timeout(Some(DEADLINE)).unwrap();
    // Lengths, then the message.
    other.read_exact(&mut [0; 8]).unwrap();
    other.read_to_string(&mut said).unwrap();
    assert!(said.contains("too many applications"), "{said}");
    let head = br#"{"request":"status"}"#;
    let request = [&(head.len() as u32).to_be_bytes()[..], &[0; 4], head].concat();
    deaf.write_all(&request.repeat(2000)).unwrap();
    let status = app.wait_status(|status| status["control"]["stalled"] == 1 && status["control"]["now"] == 0);
    assert_eq!(status["control"]["turned_away"], 1);
    // The peer has not read everything, so the connection may be reset.
    if let Err(error) = deaf.read_to_end(&mut Vec::new()) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
}

/// A wall clock that runs with the monotonic clock and can be set; zero stands for no clock.
#[derive(Default)]
struct Settable(Mutex<Option<(u64, Instant)>>);

impl Settable {
    fn set(&self, dtn_ms: u64) {
        *self.0.lock().unwrap() = Some((dtn_ms, Instant::now())).filter(|_| dtn_ms > 0);
    }

    fn says(&self) -> Option<u64> {
        let (set_ms, at) = (*self.0.lock().unwrap())?;
        Some(set_ms + u64::try_from(at.elapsed().as_millis()).unwrap())
    }
}

#[test]
fn a_clock_that_jumps_moves_no_lifetime_until_it_is_said_to_be_right() {
    const DAY_MS: u64 = 86_400_000;
    // Smaller differences are normal: the clocks are read one after the other.
    const STEP_MS: u64 = 60_000;
    let wall = Arc::new(Settable::default());
    wall.set(800_000_000_000);
    let clock = wall.clone();
    let setup = NodeSetup {
        wall_clock: Arc::new(move || clock.says()),
        ..NodeSetup::new(config("node = 'dtn://alice/'\n[storage]\nkind = 'memory'"))
    };
    let alice = Node::start(setup).expect("it starts");
    let mut app = App::new(&alice);
    let send = |app: &mut App| {
        let number = app.send(
            "dtn://nowhere/x",
            &payload(10, 1),
            MessageOptions { lifetime_s: 3600.0, ..MessageOptions::default() },
        );
        (number, app.wait_accepted(number))
    };
    let (first, created) = send(&mut app);
    assert!(created.time.0 >= 800_000_000_000);
    // A day back: no bundle expires, and a bundle sent now is a new one, which no node takes for an older one.
    wall.set(wall.says().unwrap() - DAY_MS);
    alice.clock_jumped();
    let (_, earlier) = send(&mut app);
    assert!(earlier.time.0 + STEP_MS > created.time.0 && earlier != created, "{earlier:?} after {created:?}");
    assert_eq!(app.status()["bundles"], 2);
    // No clock: bundles carry their age.
    wall.set(0);
    alice.clock_jumped();
    let (_, unknown) = send(&mut app);
    assert_eq!(unknown.time.0, 0);
    // Two days ahead: no bundle expires. Once the clock is confirmed, lifetimes follow it.
    wall.set(800_000_000_000 + 2 * DAY_MS);
    alice.clock_jumped();
    let status = app.wait_status(|status| status["clock_ahead_s"] != 0.0);
    assert_eq!((&status["bundles"], &status["counters"]["deleted_expired"]), (&3.into(), &0.into()));
    app.ask(Request::TrustClock);
    let reason = app.wait(|said| match said.head {
        Reply::Failed { send, reason, .. } if send == first => Some(reason),
        _ => None,
    });
    assert!(reason.contains("lifetime"), "{reason}");
    assert_eq!(app.wait_status(|status| status["counters"]["deleted_expired"] == 2)["bundles"], 1);
}

#[test]
fn an_application_that_breaks_the_rules_is_told_and_harms_nobody() {
    let alice = start(config("node = 'ipn:7.0'\n[storage]\nkind = 'memory'"));
    let (mut one, mut two) = (App::new(&alice), App::new(&alice));
    one.register("3", 10);
    two.ask(Request::Register { endpoint: "ipn:7.3".into(), inline_bytes: 0 });
    assert!(matches!(&two.hear().head, Reply::Error { what, .. } if what.contains("another application")));
    two.ask(Request::Register { endpoint: "nonsense:".into(), inline_bytes: 0 });
    assert!(matches!(two.hear().head, Reply::Error { .. }));
    // More bytes than announced: only that send is cancelled.
    let head = Request::Send { send: 1, to: "ipn:7.3".into(), length: 3, options: MessageOptions::default() };
    two.ask(Message { head, body: payload(5, 1) });
    assert!(matches!(&two.hear().head, Reply::Error { what, .. } if what.contains("announced length")));
    assert!(matches!(two.hear().head, Reply::Failed { send: 1, .. }));
    two.ask(Request::Taken { delivery: 99 });
    // A disconnected application leaves its endpoint, and the deliveries that it has not taken, to others.
    let send = two.send("ipn:7.3", &payload(5, 1), MessageOptions::default());
    two.wait_accepted(send);
    let (_, got) = one.receive();
    assert_eq!(got, payload(5, 1));
    drop(one);
    let until = common::Until::new();
    loop {
        two.ask(Request::Register { endpoint: "3".into(), inline_bytes: 10 });
        if matches!(two.hear().head, Reply::Registered { .. }) {
            break;
        }
        until.check(|| "the endpoint is still another's".into());
        two.next_status();
    }
    let (delivery, got) = two.receive();
    assert_eq!(got, payload(5, 1));
    two.take(delivery);
}

#[test]
fn what_one_application_has_not_taken_is_told_to_the_next() {
    let alice = start(config("node = 'ipn:7.0'\n[storage]\nkind = 'memory'"));
    let (mut one, mut two) = (App::new(&alice), App::new(&alice));
    // Deliveries with their payload, and without.
    for inline_bytes in [1000, 0] {
        one.register("3", inline_bytes);
        let send = two.send("ipn:7.3", &payload(500, 1), MessageOptions::default());
        two.wait_accepted(send);
        assert_eq!(one.receive().1, payload(500, 1));
        one.ask(Request::Unregister { endpoint: "3".into() });
        one.wait(|said| matches!(said.head, Reply::Done).then_some(()));
        // It is still connected, and has no registration.
        two.register("3", inline_bytes);
        let (delivery, got) = two.receive();
        assert_eq!(got, payload(500, 1));
        two.take(delivery);
        two.ask(Request::Unregister { endpoint: "3".into() });
        two.wait(|said| matches!(said.head, Reply::Done).then_some(()));
    }
}

/// A link whose first attempt has neither succeeded nor failed: the peer accepts the connection and says nothing.
#[test]
fn a_bundle_for_a_peer_that_is_being_called_waits_for_its_link() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("an address");
    let address = silent.local_addr().expect("it has one");
    let alice = start(config(&format!(
        "node = 'dtn://alice/'\nstorage.kind = 'memory'\ntcpcl.version-timeout = '1 h'\ntcpcl.contact-timeout = '1 h'\n\
         [[link]]\nname = 'bob'\naddress = '{address}'\npeer = 'dtn://bob/'"
    )));
    let mut here = App::new(&alice);
    let why = |here: &mut App, to: &str| {
        let send = here.send(to, &payload(10, 1), MessageOptions::default());
        here.wait_accepted(send);
        let filter = Filter { destination: Some(to.to_owned()), ..Filter::default() };
        here.ask(Request::Bundles { limit: 1, after: None, filter });
        here.wait(|said| match said.head {
            Reply::Bundles { page } => Some((page.bundles[0].state, page.bundles[0].why.clone())),
            _ => None,
        })
    };
    let words = "link `bob` to dtn://bob/ is being established".to_owned();
    assert_eq!(why(&mut here, "dtn://bob/x"), (State::LinksDown, words));
    assert_eq!(why(&mut here, "dtn://mars/x").0, State::NoRoute);
}

#[test]
fn links_and_routes_change_without_a_restart() {
    let place = common::Place::new("reload");
    let (bob, carol) = (
        start(config("node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\n[storage]\nkind = 'memory'")),
        start(config("node = 'dtn://carol/'\nlisten = ['127.0.0.1:0']\n[storage]\nkind = 'memory'")),
    );
    let path = place.0.join("node.toml");
    let write = |name: &str, to: &Node| {
        let text = format!(
            "node = 'dtn://alice/'\nstorage.kind = 'memory'\n[[link]]\nname = '{name}'\naddress = '{}'\n\
             [[route]]\nto = 'dtn://far/*'\nvia = '{name}'",
            to.addresses()[0]
        );
        std::fs::write(&path, &text).unwrap();
        text
    };
    let setup = NodeSetup { path: Some(path.clone()), ..NodeSetup::new(config(&write("bob", &bob))) };
    let alice = Node::start(setup).expect("it starts");
    let mut here = App::new(&alice);
    here.wait_status(|status| status["links"][0]["peer"] == "dtn://bob/");
    write("carol", &carol);
    here.ask(Request::Reload);
    here.wait(|said| (said.head == Reply::Done).then_some(()));
    let status = here.wait_status(|status| status["links"][0]["peer"] == "dtn://carol/");
    assert_eq!(status["links"].as_array().map(Vec::len), Some(1), "{status:#}");
    here.send("dtn://far/x", &payload(10, 1), MessageOptions::default());
    App::new(&carol).wait_status(|status| status["bundles"] == 1);
    assert_eq!(App::new(&bob).status()["bundles"], 0);
    // An invalid configuration changes nothing.
    std::fs::write(&path, "node = 'dtn://alice/'\nlnk = []").unwrap();
    here.ask(Request::Reload);
    let hint = loop {
        if let Reply::Error { hint, .. } = here.hear().head {
            break hint.expect("there is a hint");
        }
    };
    assert!(hint.contains("`link`"), "{hint}");
    assert_eq!(here.status()["links"][0]["up"], true);
}

/// A new node ID takes effect after a restart. Until then peers hear the one that the agent has, also on links that are opened again.
#[test]
fn a_reload_does_not_change_the_node_id_of_sessions() {
    let place = common::Place::new("reload-node-id");
    let bob = start(config("node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\n[storage]\nkind = 'memory'"));
    let path = place.0.join("node.toml");
    let write = |node: &str, keepalive: &str| {
        let text = format!(
            "node = '{node}'\nstorage.kind = 'memory'\ntcpcl.keepalive = '{keepalive}'\n[[link]]\nname = 'bob'\n\
             address = '{}'",
            bob.addresses()[0]
        );
        std::fs::write(&path, &text).unwrap();
        text
    };
    let settings = config(&write("dtn://alice/", "15 s"));
    let setup = NodeSetup { path: Some(path.clone()), ..NodeSetup::new(settings) };
    let alice = Node::start(setup).expect("it starts");
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    there.wait_status(|status| status["links"][0]["peer"] == "dtn://alice/");
    write("dtn://alicia/", "20 s");
    here.ask(Request::Reload);
    here.wait(|said| (said.head == Reply::Done).then_some(()));
    // The other keys are those that the tests set beside the file.
    let waiting = here.status()["configuration"]["needs_restart"].clone();
    assert!(waiting.as_array().is_some_and(|keys| keys.contains(&"node".into())), "{waiting}");
    let is_new = |link: &serde_json::Value| link["name"] != "caller 0" && link["up"] == true;
    let links = |status: &serde_json::Value| status["links"].as_array().cloned().unwrap_or_default();
    let status = there.wait_status(|status| links(status).iter().any(is_new));
    let peers: Vec<_> = links(&status).into_iter().filter(is_new).map(|link| link["peer"].clone()).collect();
    assert_eq!(peers, ["dtn://alice/"]);
}
