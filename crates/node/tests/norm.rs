//! Bundles over NORM, on real sockets.

mod common;

use common::{App, config, payload, start, web};
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
