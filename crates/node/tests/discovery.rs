//! Nodes in network namespaces that have no links configured, find each other by multicast, and deliver.
//!
//! Needs the permission to make namespaces; without it the tests print a message and pass.

mod common;

use common::{App, Place, Until, config, payload, watch};
use longwire_node::config::security::new_key;
use longwire_node::message::MessageOptions;
use longwire_node::{Node, NodeSetup};
use longwire_proto::bp::Eid;
use longwire_proto::discovery::sand;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

const GROUP: &str = "224.0.1.20:4556";
/// Interval of announcements with which a node is not lost if it has to wait for the processor.
const RARELY: &str = "30 s";

/// Network namespaces on one bridge, removed on drop; the last one has the bridge.
struct Network {
    names: Vec<String>,
}

impl Network {
    /// `None` where it is not permitted.
    fn make(ends: usize) -> Option<Network> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let names = (0..=ends).map(|end| format!("longwire-d{process}-{number}-{end}")).collect();
        let network = Network { names };
        match network.build() {
            Ok(()) => Some(network),
            Err(reason) => {
                eprintln!("skipped: no namespaces here: {reason}");
                None
            }
        }
    }

    fn build(&self) -> Result<(), String> {
        self.names.iter().try_for_each(|name| ip(&format!("netns add {name}")))?;
        let (hub, ends) = self.names.split_last().expect("the hub");
        ip(&format!("-n {hub} link add bridge type bridge mcast_snooping 0"))?;
        ip(&format!("-n {hub} link set bridge up"))?;
        for (number, end) in ends.iter().enumerate() {
            ip(&format!("-n {end} link add net0 type veth peer name port{number} netns {hub}"))?;
            ip(&format!("-n {end} addr add 192.0.2.{}/24 dev net0", number + 1))?;
            ip(&format!("-n {end} link set lo up"))?;
            ip(&format!("-n {end} link set net0 up"))?;
            ip(&format!("-n {hub} link set port{number} master bridge"))?;
            ip(&format!("-n {hub} link set port{number} up"))?;
        }
        Ok(())
    }

    /// Runs `story` in the namespace of an end.
    fn at<T: Send + 'static>(&self, end: usize, story: impl FnOnce() -> T + Send + 'static) -> T {
        let file = File::open(format!("/run/netns/{}", self.names[end])).expect("it is there");
        let thread = thread::spawn(move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("it may enter");
            story()
        });
        thread.join().expect("it ends")
    }

    /// Starts a node at an end, which announces itself in this interval, and whose configuration has these lines in addition.
    fn start(&self, end: usize, name: &str, interval: &str, lines: &str) -> Node {
        let text = format!(
            "node = 'dtn://{name}/'\nlisten = ['0.0.0.0:4556']\nstorage.kind = 'memory'\n\
             [discovery]\ninterval = '{interval}'\nidle = '5 s'\ngroups = ['{GROUP}']\n{lines}"
        );
        let setup = NodeSetup::new(config(&text));
        let node = self.at(end, move || Node::start(setup).expect("it starts"));
        watch::enter(&node);
        node
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output =
        Command::new("ip").args(arguments.split(' ')).output().map_err(|error| format!("no ip: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn neighbours(status: &Value) -> Vec<String> {
    let all = status["discovery"]["neighbours"].as_array().into_iter().flatten();
    all.map(|known| known["node"].as_str().expect("a node ID").to_owned()).collect()
}

fn neighbour(status: &Value, node: &str) -> Value {
    let mut all = status["discovery"]["neighbours"].as_array().expect("a list").iter();
    all.find(|known| known["node"] == node).cloned().unwrap_or_default()
}

/// Waits until the status is as wished. What passes with time alone is no change of a node, so it is asked again and again.
#[track_caller]
fn wait_for(app: &mut App, wished: impl Fn(&Value) -> bool) -> Value {
    let until = Until::new();
    loop {
        let status = app.status();
        if wished(&status) {
            return status;
        }
        until.check(|| format!("the status of {} is not as wished", status["node"]));
        thread::park_timeout(Duration::from_millis(100));
    }
}

/// Sends a bundle from one node to another, and waits until it has arrived.
#[track_caller]
fn deliver(from: &mut App, to: &mut App, node: &str, seed: u64) {
    let sent = payload(20_000, seed);
    from.send(&format!("dtn://{node}/inbox"), &sent, MessageOptions::default());
    let (delivery, received) = to.receive();
    assert!(received == sent, "what arrives at {node} is what was sent");
    to.take(delivery);
}

const NAMES: [&str; 3] = ["a", "b", "c"];

fn apps(nodes: &[Node]) -> Vec<App> {
    let app = |node: &Node| {
        let mut app = App::new(node);
        app.register("inbox", 100_000);
        app
    };
    nodes.iter().map(app).collect()
}

#[track_caller]
fn deliver_to_each(apps: &mut [App]) {
    for from in 0..apps.len() {
        for to in (0..apps.len()).filter(|to| *to != from) {
            let [one, other] = apps.get_disjoint_mut([from, to]).expect("two nodes");
            deliver(one, other, NAMES[to], (10 * from + to) as u64);
        }
    }
}

#[test]
fn three_nodes_without_links_find_each_other_and_deliver() {
    let Some(network) = Network::make(3) else { return };
    let start = |end: usize| network.start(end, NAMES[end], "2 s", "peers = 'any'");
    let mut nodes: Vec<Node> = (0..3).map(start).collect();
    let mut all = apps(&nodes);
    for app in &mut all {
        let status = wait_for(app, |status| neighbours(status).len() == 2);
        let links = status["links"].as_array().expect("a list");
        let found: Vec<&Value> = links.iter().filter(|link| link["found"] == true).collect();
        assert_eq!(found.len(), 2, "{links:#?}");
        assert!(found.iter().all(|link| link["up"] == false), "nothing needs them: {links:#?}");
    }
    deliver_to_each(&mut all);
    // One goes away; its bundle waits for it.
    drop(all.pop());
    nodes.pop().expect("the last one").stop();
    wait_for(&mut all[0], |status| neighbours(status) == ["dtn://b/"]);
    let sent = payload(5000, 77);
    all[0].send("dtn://c/inbox", &sent, MessageOptions::default());
    let status = wait_for(&mut all[0], |status| status["bundles"] == 1);
    assert!(status["links"].as_array().expect("a list").iter().all(|link| link["name"] != "found-c"));
    nodes.push(start(2));
    let mut gone = App::new(&nodes[2]);
    gone.register("inbox", 100_000);
    let (_, received) = gone.receive();
    assert!(received == sent);
    // Links that are idle close, and open again.
    wait_for(&mut all[1], |status| {
        let links = status["links"].as_array().expect("a list");
        links.iter().all(|link| link["up"] == false || link["calls"] == true)
    });
    deliver(&mut all[1], &mut gone, "c", 78);
}

/// Without IPv4, by the addresses that hosts give themselves.
#[test]
fn nodes_find_each_other_over_ipv6_alone() {
    let Some(network) = Network::make(2) else { return };
    let start = |end: usize| {
        ip(&format!("-n {} addr flush dev net0 scope global", network.names[end]))
            .expect("it has an address");
        let text = format!(
            "node = 'dtn://{}/'\nlisten = ['[::]:4556']\nstorage.kind = 'memory'\npeers = 'any'\n\
             [discovery]\ninterval = '2 s'\npeers = ['dtn://a/', 'dtn://b/']",
            NAMES[end]
        );
        let setup = NodeSetup::new(config(&text));
        let node = network.at(end, move || Node::start(setup).expect("it starts"));
        watch::enter(&node);
        node
    };
    let nodes = [start(0), start(1)];
    let mut all = apps(&nodes);
    let status = wait_for(&mut all[0], |status| neighbours(status) == ["dtn://b/"]);
    let at = neighbour(&status, "dtn://b/")["at"].as_str().expect("an address").to_owned();
    assert!(at.starts_with("[fe80::") && at.contains('%'), "{at}");
    deliver_to_each(&mut all);
}

#[test]
fn nodes_note_keys_at_first_use_and_contest_strangers() {
    let Some(network) = Network::make(4) else { return };
    let place = Place::new("discovery");
    let start = |end: usize| {
        let name = NAMES[end];
        let key = place.0.join(format!("{name}.key"));
        new_key(&key, false).expect("a key");
        let store = place.0.join(name);
        let lines = format!("peers = 'known'\n[security]\nprivate-key = '{}'\n", key.display());
        let text = format!(
            "node = 'dtn://{name}/'\nlisten = ['0.0.0.0:4556']\nstorage.path = '{}'\n\
             [discovery]\ninterval = '{RARELY}'\ngroups = ['{GROUP}']\n{lines}",
            store.display()
        );
        let setup = NodeSetup::new(config(&text));
        let node = network.at(end, move || Node::start(setup).expect("it starts"));
        watch::enter(&node);
        node
    };
    let nodes: Vec<Node> = (0..3).map(start).collect();
    let mut all = apps(&nodes);
    for app in &mut all {
        let status = wait_for(app, |status| neighbours(status).len() == 2);
        assert_eq!(status["security"]["known_keys"], 0, "announcements note no keys");
        assert!(neighbours(&status).iter().all(|node| neighbour(&status, node)["signed"] == true));
    }
    deliver_to_each(&mut all);
    for app in &mut all {
        wait_for(app, |status| status["security"]["known_keys"] == 2);
    }
    // A stranger announces itself, and another one in the name of b.
    let until = Until::new();
    let status = loop {
        network.at(3, || announce(&["dtn://stranger/", "dtn://b/"]));
        let status = all[0].status();
        if neighbour(&status, "dtn://b/")["contested"] == true {
            break status;
        }
        until.check(|| "two announce themselves as b".into());
    };
    assert_eq!(neighbours(&status), ["dtn://b/", "dtn://c/"]);
    assert_eq!(neighbour(&status, "dtn://b/")["at"], "192.0.2.2:4556");
    assert_eq!(status["security"]["contested"][0], "dtn://b/");
    let [a, b] = all.get_disjoint_mut([0, 1]).expect("two nodes");
    deliver(a, b, "b", 99);
}

/// Sends unsigned announcements of these nodes, and what is none.
fn announce(nodes: &[&str]) {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    // The only interface has no route for the group.
    ip_route();
    static COUNT: AtomicU32 = AtomicU32::new(0);
    for node in nodes {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let own = sand::Own {
            node: node.parse::<Eid>().expect("a node ID"),
            tcp_port: Some(4556),
            interval: Duration::from_secs(2),
            validity: Duration::from_secs(3600),
        };
        let bytes = own.bundle((900_000_000_000, number.into()).into(), true).to_bytes();
        for part in [&bytes[..], &bytes[..bytes.len() / 2], b"\x04\x01", b""] {
            socket.send_to(part, GROUP).expect("it is sent");
        }
    }
}

fn ip_route() {
    let _ = ip("route add 224.0.0.0/4 dev net0");
}

#[test]
fn a_flood_of_announcements_is_bounded() {
    let Some(network) = Network::make(3) else { return };
    let start = |end: usize| network.start(end, NAMES[end], RARELY, "peers = 'any'\nneighbours-max = 10");
    let nodes: Vec<Node> = (0..2).map(start).collect();
    let mut all = apps(&nodes);
    wait_for(&mut all[0], |status| neighbours(status).contains(&"dtn://b/".to_owned()));
    let names: Vec<String> = (0..5000).map(|number| format!("dtn://n{number}/")).collect();
    network.at(2, move || announce(&names.iter().map(String::as_str).collect::<Vec<_>>()));
    let status = wait_for(&mut all[0], |status| {
        let count = |name: &str| status["discovery"]["counters"][name].as_u64().unwrap_or(0);
        count("refused") + count("not_read") > 50
    });
    assert!(neighbours(&status).len() <= 10, "{status:#?}");
    let [a, b] = all.get_disjoint_mut([0, 1]).expect("two nodes");
    deliver(a, b, "b", 1);
    deliver(b, a, "a", 2);
}

#[test]
fn a_beacon_of_an_older_node_makes_a_neighbour() {
    let Some(network) = Network::make(2) else { return };
    let node = network.start(0, "a", RARELY, "peers = ['dtn://old/']\nhear = ['224.0.0.142:4551']");
    let mut app = App::new(&node);
    let socket = network.at(1, || {
        ip_route();
        UdpSocket::bind("0.0.0.0:0").expect("a socket")
    });
    let beacon =
        [&[4, 0b1011, 0, 1, 10][..], b"dtn://old/", &[1, 64, 8, 4, 10, 9, 8, 7, 3, 0x12, 0x34], &[10]];
    let status = wait_for(&mut app, |status| {
        socket.send_to(&beacon.concat(), "224.0.0.142:4551").expect("it is sent");
        neighbours(status) == ["dtn://old/"]
    });
    let found = neighbour(&status, "dtn://old/");
    // The address is the one of the datagram, whatever the beacon says.
    assert_eq!((found["by"].as_str(), found["at"].as_str()), (Some("ipnd"), Some("192.0.2.2:4660")));
}

/// Announcements are for one network: those with a source from elsewhere, or to this node alone, count for nothing.
#[test]
fn announcements_from_elsewhere_and_to_one_node_alone_are_not_heard() {
    let Some(network) = Network::make(2) else { return };
    for (end, names) in network.names.iter().take(2).enumerate() {
        ip(&format!("-n {names} addr add 2001:db8::{}/64 dev net0 nodad", end + 1)).expect("an address");
    }
    ip(&format!("-n {} addr add 203.0.113.9/32 dev net0", network.names[1])).expect("an address");
    let text = "node = 'dtn://a/'\nlisten = ['[::]:4556']\nlisten-udp = ['[::]:4556']\nstorage.kind = 'memory'\n\
                [discovery]\ninterval = '2 s'\npeers = 'any'";
    let setup = NodeSetup::new(config(text));
    let node = network.at(0, move || Node::start(setup).expect("it starts beside its port for UDP"));
    watch::enter(&node);
    let mut app = App::new(&node);
    network.at(1, || {
        ip_route();
        let own = |node: &str| sand::Own {
            node: node.parse::<Eid>().expect("a node ID"),
            tcp_port: Some(25),
            interval: Duration::from_secs(2),
            validity: Duration::from_secs(60),
        };
        let send = |node: &str, from: &str, to: &str| {
            let bytes = own(node).bundle((0, 1).into(), false).to_bytes();
            let socket = UdpSocket::bind(from).expect("a socket");
            socket.send_to(&bytes, to).expect("it is sent");
        };
        send("dtn://forged/", "203.0.113.9:0", GROUP);
        send("dtn://alone4/", "192.0.2.2:0", "192.0.2.1:4556");
        send("dtn://alone6/", "[2001:db8::2]:0", "[2001:db8::1]:4556");
        send("dtn://genuine/", "192.0.2.2:0", GROUP);
    });
    let status = wait_for(&mut app, |status| neighbours(status).contains(&"dtn://genuine/".to_owned()));
    assert_eq!(neighbours(&status), ["dtn://genuine/"]);
}

/// It calls by itself, and gets answers over its connection.
#[test]
fn a_neighbour_that_does_not_listen_calls_by_itself() {
    let Some(network) = Network::make(2) else { return };
    let listening = network.start(0, "a", RARELY, "peers = 'any'");
    let text = format!(
        "node = 'dtn://b/'\nstorage.kind = 'memory'\n\
         [discovery]\ninterval = '{RARELY}'\nidle = '5 s'\npeers = 'any'\ngroups = ['{GROUP}']"
    );
    let setup = NodeSetup::new(config(&text));
    let silent = network.at(1, move || Node::start(setup).expect("it starts"));
    watch::enter(&silent);
    let nodes = [listening, silent];
    let mut all = apps(&nodes);
    let status = wait_for(&mut all[0], |status| neighbours(status) == ["dtn://b/"]);
    assert_eq!(neighbour(&status, "dtn://b/")["link"], Value::Null, "it has no port");
    wait_for(&mut all[1], |status| neighbours(status) == ["dtn://a/"]);
    let [a, b] = all.get_disjoint_mut([0, 1]).expect("two nodes");
    deliver(b, a, "a", 1);
    deliver(a, b, "b", 2);
}

/// It does not name the node, and its session shows who is there.
#[test]
fn a_configured_link_without_a_peer_takes_the_place_of_the_found_one() {
    let Some(network) = Network::make(2) else { return };
    let text = format!(
        "node = 'dtn://b/'\nlisten = ['0.0.0.0:4556', '0.0.0.0:4557']\nstorage.kind = 'memory'\npeers = 'any'\n\
         [discovery]\ninterval = '{RARELY}'\npeers = 'any'\ngroups = ['{GROUP}']"
    );
    let setup = NodeSetup::new(config(&text));
    let hub = network.at(1, move || Node::start(setup).expect("it starts"));
    watch::enter(&hub);
    let node =
        network.start(0, "a", RARELY, "peers = 'any'\n[[link]]\nname = 'hub'\naddress = '192.0.2.2:4557'\n");
    let mut app = App::new(&node);
    let status = wait_for(&mut app, |status| {
        let links = status["links"].as_array().expect("a list");
        let is_up = links.iter().any(|link| link["name"] == "hub" && link["up"] == true);
        is_up && neighbours(status) == ["dtn://b/"] && neighbour(status, "dtn://b/")["link"] == "hub"
    });
    let links = status["links"].as_array().expect("a list");
    assert!(links.iter().all(|link| link["found"] != true), "{links:#?}");
}
