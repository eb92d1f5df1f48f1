//! A convergence layer that exists only in its file and in the table of them links two live nodes.

mod common;

use common::{App, Place, payload, web};
use longwire_node::message::MessageOptions;
use longwire_node::{Config, Node, NodeSetup};
use std::net::SocketAddr;
use std::path::Path;

/// A node on 127.0.0.1, and its configuration file, to which links can be added.
struct Peer {
    node: Node,
    file: std::path::PathBuf,
    text: String,
}

impl Peer {
    fn new(place: &Place, name: &str) -> Peer {
        let text = format!(
            "node = 'dtn://{name}/'\ncontrol = '{name}.sock'\nlisten-udp = ['dummy 127.0.0.1:0']\nhttp.listen = '127.0.0.1:0'\n\
             storage.kind = 'memory'\n[dummy]\nretry-after = '100 ms'\n"
        );
        let file = place.0.join(format!("{name}.toml"));
        std::fs::write(&file, &text).expect("a file");
        let settings = Config::load(&file).expect("it makes sense");
        let setup = NodeSetup { path: Some(file.clone()), ..NodeSetup::new(settings) };
        Peer { node: Node::start(setup).expect("it starts"), file, text }
    }

    fn at(&self) -> SocketAddr {
        self.node.udp_addresses()[0]
    }

    /// Adds a link to another node, with a setting of its own, and reads the configuration again.
    fn link(&self, other: &Peer, retry_after: &str) -> Config {
        let link = format!(
            "[[link]]\nname = 'far'\nkind = 'dummy'\naddress = '{}'\npeer = 'dtn://bob/'\n[link.dummy]\nretry-after = \
             '{retry_after}'\n",
            other.at()
        );
        let link = if other.file.ends_with("alice.toml") { link.replace("bob", "alice") } else { link };
        std::fs::write(&self.file, format!("{}{link}", self.text)).expect("a file");
        self.node.reload();
        Config::load(&self.file).expect("it makes sense")
    }
}

fn carry(from: &mut App, to: &mut App, endpoint: &str, seed: u64) {
    let file = payload(1000, seed);
    let sent = from.send(endpoint, &file, MessageOptions::default());
    let (delivery, got) = to.receive();
    assert_eq!(got, file);
    to.take(delivery);
    from.wait_sent(sent);
}

/// Links are added and changed by a reload, and shown in the explanation, the status and the metrics.
#[test]
fn two_nodes_exchange_bundles_over_it() {
    let place = Place::new("dummy");
    let (alice, bob) = (Peer::new(&place, "alice"), Peer::new(&place, "bob"));
    let (mut here, mut there) = (App::new(&alice.node), App::new(&bob.node));
    here.register("inbox", 2000);
    there.register("inbox", 2000);
    let explained = alice.link(&bob, "50 ms").explain();
    let words =
        format!("Link `far` to {} repeats each bundle after 50 ms until it is acknowledged.", bob.at());
    assert!(explained.contains(&words), "{explained}");
    bob.link(&alice, "50 ms");
    carry(&mut here, &mut there, "dtn://bob/inbox", 1);
    carry(&mut there, &mut here, "dtn://alice/inbox", 2);

    let status = here.wait_status(|status| status["links"][0]["counters"]["bundles_received"] == 1);
    let link = &status["links"][0];
    assert_eq!(
        (&link["name"], &link["carrier"], &link["up"]),
        (&"far".into(), &"dummy".into(), &true.into())
    );
    assert_eq!((&link["counters"]["bundles_sent"], &link["unacknowledged"]), (&1.into(), &false.into()));
    let metrics = web::get(alice.node.http_address().expect("it listens"), "/metrics").text();
    assert!(metrics.contains("longwire_link_bundles_sent_total{link=\"far\"} 1"), "{metrics}");

    // A changed setting makes a new link, without counts.
    assert!(alice.link(&bob, "60 ms").explain().contains("after 60 ms"));
    let is_new = |status: &serde_json::Value| {
        let links = status["links"].as_array().expect("a list");
        let is_far = |link: &&serde_json::Value| link["name"] == "far";
        links.iter().find(is_far).is_some_and(|far| far["counters"]["bundles_sent"] == 0 && far["up"] == true)
    };
    here.wait_status(is_new);
    carry(&mut here, &mut there, "dtn://bob/inbox", 3);
}

#[test]
fn a_wrong_key_is_named_with_the_right_one() {
    let read = |more: &str| {
        let text = format!("node = 'dtn://a/'\n{more}");
        Config::parse(&text, "test", Path::new("/")).expect_err("no such key")
    };
    let link = "[[link]]\nname = 'b'\nkind = 'dummy'\naddress = 'b:1'\n";
    for more in ["[dummy]\nretry-aftr = '1 s'", &format!("{link}[link.dummy]\nretry-aftr = '1 s'")] {
        let error = read(more);
        assert_eq!(error.hint.as_deref(), Some("did you mean `retry-after`?"), "{error}");
    }
    assert_eq!(read("[dumy]\n").hint.as_deref(), Some("did you mean `dummy`?"));
}
