//! Bundles over NORM, on real sockets.

mod common;

use common::{App, config, payload, reserved, start, web};
use longwire_node::Node;
use longwire_node::message::MessageOptions;

#[test]
fn bundles_of_any_length_arrive_as_objects_and_are_acknowledged() {
    let bob = start(config("node = 'ipn:7.0'\nlisten-udp = ['norm 127.0.0.1:0']\nstorage.kind = 'memory'\n"));
    let to = bob.udp_addresses()[0];
    let alice = start(config(&format!(
        "node = 'dtn://alice/'\nhttp.listen = '127.0.0.1:0'\nstorage.kind = 'memory'\n[norm]\ngrtt = '10 ms'\n[[link]]\n\
         name = 'bob'\nkind = 'norm'\naddress = '{to}'\npeer = 'ipn:7.0'\nrate-bps = 100_000_000\n"
    )));
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    there.register("ipn:7.5", 2_000_000);
    for (seed, length) in [1, 1_399, 1_500_000].into_iter().enumerate() {
        let file = payload(length, seed as u64);
        let sent = here.send("ipn:7.5", &file, MessageOptions::default());
        let (delivery, got) = there.receive();
        assert_eq!(got, file);
        there.take(delivery);
        here.wait_sent(sent);
    }
    let status = here.wait_status(|status| status["links"][0]["counters"]["bundles_sent"] == 3);
    let link = &status["links"][0];
    assert_eq!((&link["carrier"], &link["unacknowledged"]), (&"norm".into(), &false.into()), "{status:#}");
    assert_eq!(link["counters"]["objects_sent"], 3, "{status:#}");
    let metrics = web::get(alice.http_address().expect("it listens"), "/metrics").text();
    assert!(metrics.contains("longwire_link_objects_sent_total{link=\"bob\"} 3"), "{metrics}");
}

/// Endpoint that all receivers share; it belongs to no node.
const NEWS: &str = "dtn://news/~all";

/// Address of a group on the loopback interface, for one test of this process.
fn group() -> String {
    let own = reserved();
    format!("239.{}%lo:{}", own.ip().to_string().trim_start_matches("127."), own.port())
}

/// A node that sends to the group with these members. `norm`: more settings.
fn sender(group: &str, members: &str, norm: &str) -> Node {
    start(config(&format!(
        "node = 'dtn://alice/'\nhttp.listen = '127.0.0.1:0'\nstorage.kind = 'memory'\n[agent]\nbackoff-min = '20 ms'\n\
         backoff-max = '100 ms'\n[norm]\ngrtt = '10 ms'\n{norm}[[link]]\n\
         name = 'all'\nkind = 'norm'\naddress = '{group}'\nrate-bps = 4_000_000\nnorm = {{ members = [{members}] }}\n[[route]]\n\
         to = 'dtn://news/*'\nvia = 'all'\n"
    )))
}

fn receiver(group: &str, node: &str) -> Node {
    start(config(&format!("node = '{node}'\nlisten-udp = ['norm {group}']\nstorage.kind = 'memory'\n")))
}

#[test]
fn one_transmission_to_a_group_brings_all_members_every_byte() {
    let group = group();
    let nodes = [receiver(&group, "ipn:7.0"), receiver(&group, "dtn://carol/")];
    let mut there: Vec<App> = nodes.iter().map(App::new).collect();
    there.iter_mut().for_each(|app| app.register(NEWS, 2_000_000));
    let alice = sender(&group, "'ipn:7.0', 'dtn://carol/'", "");
    let mut here = App::new(&alice);
    let file = payload(300_000, 1);
    let sent = here.send(NEWS, &file, MessageOptions::default());
    for app in &mut there {
        let (delivery, got) = app.receive();
        assert!(got == file, "every byte is as it was sent");
        app.take(delivery);
    }
    here.wait_sent(sent);
    let status = here.wait_status(|status| status["links"][0]["counters"]["bundles_sent"] == 1);
    let counters = &status["links"][0]["counters"];
    // Two receivers cost what one does, with room for repairs on a busy machine.
    let bytes = counters["bytes_sent"].as_u64().expect("a number");
    assert!((300_000..500_000).contains(&bytes), "{counters:#}");
    assert!(counters["acks_received"].as_u64() >= Some(2), "{counters:#}");
}

#[test]
fn a_bundle_stays_until_the_last_member_of_the_group_has_it() {
    let group = group();
    let bob = receiver(&group, "ipn:7.0");
    let mut there = App::new(&bob);
    there.register(NEWS, 1 << 20);
    let impatient = "silence-limit = '500 ms'\nrobust-factor = 3\nretry-min = '50 ms'\n";
    let alice = sender(&group, "'ipn:7.0', 'ipn:8.0'", impatient);
    let mut here = App::new(&alice);
    let file = payload(10_000, 2);
    let sent = here.send(NEWS, &file, MessageOptions::default());
    let (delivery, got) = there.receive();
    assert_eq!(got, file);
    there.take(delivery);
    let silent = here.wait_status(|status| status["links"][0]["counters"]["silent"].as_u64() > Some(0));
    assert_eq!(silent["bundles"], 1, "the second member has not acknowledged");
    let dave = receiver(&group, "ipn:8.0");
    let mut late = App::new(&dave);
    late.register(NEWS, 1 << 20);
    let (delivery, got) = late.receive();
    assert_eq!(got, file);
    late.take(delivery);
    here.wait_sent(sent);
    let status = there.wait_status(|status| status["bundles"] == 0);
    assert_eq!(status["counters"]["delivered"], 1, "the first member has it once");
}
