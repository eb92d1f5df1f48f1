//! Link-state routing over real sockets: a chain of three nodes without a route.

mod common;

use common::{App, config, payload, reserved, start};
use longwire_node::Node;
use longwire_node::message::{MessageOptions, Reply, Request};
use serde_json::Value;

/// A node that announces its links at once, with this address to listen at or to call.
fn node(name: &str, rest: &str) -> Node {
    start(config(&format!(
        "node = 'dtn://{name}/'\n{rest}\n[storage]\nkind = 'memory'\n[routing]\nrouter = 'dtlsr'\nannounce-hold-down = '10 ms'\n\
         [tcpcl]\nreconnect-min = '10 ms'\nreconnect-max = '50 ms'\n"
    )))
}

fn caller(name: &str, bob: std::net::SocketAddr) -> Node {
    node(name, &format!("[[link]]\nname = 'bob'\naddress = '{bob}'"))
}

/// Route of a node to another in its status.
fn route<'a>(status: &'a Value, to: &str) -> Option<&'a Value> {
    status["learned_routes"].as_array()?.iter().find(|route| route["node"] == to)
}

#[test]
fn routes_come_from_announcements_and_outlive_links() {
    let at = reserved();
    let bob = node("bob", &format!("listen = ['{at}']"));
    let (alice, carol) = (caller("alice", at), caller("carol", at));
    let (mut here, mut between, mut there) = (App::new(&alice), App::new(&bob), App::new(&carol));
    there.register("inbox", 10_000);
    let announced =
        |status: &Value| route(status, "dtn://carol/").is_some_and(|route| !route["announced_s"].is_null());
    let status = here.wait_status(announced);
    let carol_from_alice = route(&status, "dtn://carol/").expect("it is there");
    assert_eq!(carol_from_alice["next"], "dtn://bob/");
    assert_eq!(carol_from_alice["links"][0]["to"], "dtn://bob/");
    let send = |here: &mut App, seed: u64| {
        let sent = here.send("dtn://carol/inbox", &payload(1000, seed), MessageOptions::default());
        here.wait_sent(sent);
    };
    send(&mut here, 1);
    let (delivery, got) = there.receive();
    assert_eq!(got, payload(1000, 1));
    there.take(delivery);
    // Bob has the acknowledgement: otherwise he gives the bundle once more to the Carol who starts without a store.
    between.wait_status(|status| status["bundles"] == 0);

    // Carol leaves: the link to her stays in the graph, and the bundle waits where it is expected to be needed.
    drop(there);
    drop(carol);
    here.wait_status(|status| {
        route(status, "dtn://carol/").is_some_and(|route| route["expected_s"].as_f64() > Some(5.0))
    });
    send(&mut here, 2);
    between.ask(Request::Bundles { after: None, limit: 10, filter: Default::default() });
    let why = between.wait(|said| match said.head {
        Reply::Bundles { page } => page
            .bundles
            .iter()
            .find(|bundle| bundle.destination == "dtn://carol/inbox")
            .map(|bundle| bundle.why.clone()),
        _ => None,
    });
    assert!(why.starts_with("waiting for dtn://carol/, expected in "), "{why}");

    let carol = caller("carol", at);
    let mut there = App::new(&carol);
    there.register("inbox", 10_000);
    let (delivery, got) = there.receive();
    assert_eq!(got, payload(1000, 2));
    there.take(delivery);
    let counters = between.status()["counters"].clone();
    assert_eq!(counters["announcements_not_believed"], 0);
    assert_eq!(counters["announcements_ignored"], 0);
}
