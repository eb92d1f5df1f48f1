//! Bundles between nodes, over real TCP and over pipes in memory.

mod common;

use common::{App, Place, config, payload, start};
use longwire_node::measuring;
use longwire_node::message::{MessageOptions, Reply, Request};
use longwire_node::view::{Filter, State};
use longwire_node::{Calling, Node, NodeSetup};
use longwire_proto::service::BundleName;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

fn bob() -> Node {
    start(config(
        "node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\n[storage]\nkind = 'memory'\n[agent.reports]\ndelivery = true",
    ))
}

fn alice(bob: &Node, tcpcl: &str) -> Node {
    let text = format!(
        "node = 'dtn://alice/'\n[storage]\nkind = 'memory'\n[agent.reports]\ndelivery = true\n[[link]]\nname = 'bob'\naddress = '{}'\n{tcpcl}",
        bob.addresses()[0]
    );
    start(config(&text))
}

fn both_ways(alice: &Node, bob: &Node) {
    let (mut here, mut there) = (App::new(alice), App::new(bob));
    here.register("inbox", 1000);
    there.register("inbox", 1000);
    for (seed, length) in [0, 1, 1000, 1001, 3_000_000].into_iter().enumerate() {
        let file = payload(length, seed as u64);
        let sent = here.send("dtn://bob/inbox", &file, MessageOptions::default());
        let (delivery, got) = there.receive();
        assert_eq!(got, file);
        there.take(delivery);
        here.wait_sent(sent);
        let back = there.send("dtn://alice/inbox", &file, MessageOptions::default());
        let (delivery, got) = here.receive();
        assert_eq!(got, file);
        here.take(delivery);
        there.wait_sent(back);
    }
}

/// A delivery has few outstanding reads, and more are ignored: with a store in memory, each is answered before the next one.
#[test]
fn all_of_many_reads_at_once_are_answered() {
    const LENGTH: usize = 250;
    let bob = bob();
    let mut app = App::new(&bob);
    app.register("inbox", 0);
    let file = payload(100_000, 1);
    app.send("dtn://bob/inbox", &file, MessageOptions::default());
    let delivery = app.wait(|said| match said.head {
        Reply::Delivered { delivery, .. } => Some(delivery),
        _ => None,
    });
    for (part, _) in file.chunks(LENGTH).enumerate() {
        let offset = (part * LENGTH) as u64;
        app.ask(Request::Read { delivery, offset, length: LENGTH as u32 });
    }
    for (part, expected) in file.chunks(LENGTH).enumerate() {
        let data = app.wait(|said| match said.head {
            Reply::Data { offset, .. } if offset == (part * LENGTH) as u64 => Some(said.body),
            _ => None,
        });
        assert_eq!(data, expected, "part {part}");
    }
}

#[test]
fn files_go_both_ways_in_version_4() {
    let bob = bob();
    both_ways(&alice(&bob, "[link.tcpcl]\nversions = '4'"), &bob);
}

#[test]
fn files_go_both_ways_in_version_3() {
    let bob = bob();
    let alice = alice(&bob, "[link.tcpcl]\nversions = '3'");
    both_ways(&alice, &bob);
    let status = App::new(&alice).status();
    assert_eq!(status["links"][0]["tcpcl"], 3, "{status:#}");
}

#[test]
fn version_6_with_custody_stays_until_it_is_delivered() {
    for (tcpcl, custodian) in [("3", false), ("4", true)] {
        let accepts = if custodian { "\n[agent.custody]\naccept-from = ['dtn://alice/']" } else { "" };
        let bob = start(config(&format!(
            "node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\n[storage]\nkind = 'memory'{accepts}"
        )));
        let alice = alice(&bob, &format!("[link.tcpcl]\nversions = '{tcpcl}'"));
        let (mut here, mut there) = (App::new(&alice), App::new(&bob));
        there.register("inbox", 1000);
        for (seed, length) in [0, 1, 1000, 1_000_000].into_iter().enumerate() {
            let file = payload(length, seed as u64);
            let options = MessageOptions { custody: true, ..MessageOptions::default() };
            let sent = here.send("dtn://bob/inbox", &file, options);
            let (delivery, got) = there.receive();
            assert_eq!(got, file);
            if custodian {
                // Bob's node is responsible for the bundle, whether it was taken or not.
                here.wait_sent(sent);
            } else {
                let until = common::Until::new();
                loop {
                    here.ask(Request::Bundles { limit: 10, after: None, filter: Filter::default() });
                    let page = here.wait(|said| match said.head {
                        Reply::Bundles { page } => Some(page),
                        _ => None,
                    });
                    let bundle = &page.bundles[0];
                    assert_eq!((bundle.version, bundle.wants_custody), (6, true));
                    assert_eq!(bundle.custodian.as_deref(), Some("dtn://alice/"));
                    if bundle.state == State::InCustody {
                        assert!(
                            bundle.why.contains("sent to dtn://bob/; waiting for a custody signal"),
                            "{}",
                            bundle.why
                        );
                        break;
                    }
                    until.check(|| format!("the bundle is not in custody: {}", bundle.why));
                    here.next_status();
                }
            }
            there.take(delivery);
            if !custodian {
                here.wait_sent(sent);
            }
        }
        assert_eq!(App::new(&alice).status()["bundles"], 0);
    }
}

#[test]
fn pipes_in_memory_do_as_well() {
    let bob = Arc::new(bob());
    let config = config(
        "node = 'dtn://alice/'\n[storage]\nkind = 'memory'\n[[link]]\nname = 'bob'\naddress = 'pipe:0'",
    );
    let called = bob.clone();
    let connector = move |_: String, _: &longwire_node::Config| -> Calling {
        let (here, there) = tokio::io::duplex(10_000);
        called.call(there, "a pipe");
        Box::pin(async move { Ok(Box::new(here) as Box<_>) })
    };
    let alice = Node::start(NodeSetup { connector: Arc::new(connector), ..NodeSetup::new(config) })
        .expect("it starts");
    both_ways(&alice, &bob);
}

#[test]
fn a_receipt_comes_back_over_a_relay() {
    let carol = start(config(
        "node = 'dtn://carol/'\nlisten = ['127.0.0.1:0']\n[storage]\nkind = 'memory'\n[agent.reports]\ndelivery = true\n\
         [[route]]\nto = '*'\nvia = 'ipn:2.0'",
    ));
    let relay = start(config(&format!(
        "node = 'ipn:2.0'\nlisten = ['127.0.0.1:0']\n[storage]\nkind = 'memory'\n[[link]]\nname = 'carol'\naddress = '{}'",
        carol.addresses()[0]
    )));
    let alice = start(config(&format!(
        "node = 'dtn://alice/'\n[storage]\nkind = 'memory'\n[[link]]\nname = 'relay'\naddress = '{}'\n\
         [[route]]\nto = 'dtn://carol/*'\nvia = 'relay'",
        relay.addresses()[0]
    )));
    let mut there = App::new(&carol);
    there.register("inbox", 0);
    let mut here = App::new(&alice);
    let file = payload(500_000, 5);
    let sent = here.send(
        "dtn://carol/inbox",
        &file,
        MessageOptions { report_delivery: true, ..MessageOptions::default() },
    );
    let (delivery, got) = there.receive();
    assert_eq!(got, file);
    here.wait_sent(sent);
    there.take(delivery);
    let reporter = here.wait(|said| match said.head {
        Reply::Report { send, status, reporter, .. } if send == sent => {
            assert_eq!(status, "delivered");
            Some(reporter)
        }
        _ => None,
    });
    assert_eq!(reporter, "dtn://carol/");
}

#[test]
fn a_bundle_says_why_it_is_still_here_and_goes_when_told_to() {
    let bob = bob();
    let mut app = App::new(&bob);
    let send = app.send("dtn://nowhere/inbox", &payload(44, 1), MessageOptions::default());
    let created = app.wait_accepted(send);
    app.ask(Request::Bundles { limit: 10, after: None, filter: Filter::default() });
    let pages = |app: &mut App| {
        app.wait(|said| match said.head {
            Reply::Bundles { page } => Some(page),
            _ => None,
        })
    };
    let page = pages(&mut app);
    assert_eq!((page.total, page.next), (1, None));
    let bundle = &page.bundles[0];
    assert!(bundle.why.contains("no route"), "{bundle:?}");
    assert_eq!((bundle.state, bundle.payload_bytes, bundle.created), (State::NoRoute, 44, created));
    app.ask(Request::Bundle(BundleName { source: bundle.source.clone(), created }));
    assert_eq!(pages(&mut app).bundles.len(), 1);
    app.ask(Request::Delete(BundleName { source: "dtn://bob/".into(), created }));
    let reason = app.wait(|said| match said.head {
        Reply::Failed { send: of, reason, .. } if of == send => Some(reason),
        _ => None,
    });
    assert!(reason.contains("cancelled"), "{reason}");
    assert_eq!(app.status()["bundles"], 0);
}

#[test]
fn a_long_list_comes_in_parts_and_as_it_was_asked_for() {
    let bob = bob();
    let mut app = App::new(&bob);
    for number in 0..2500 {
        let to = format!("dtn://nowhere/{}", number % 2);
        let send = app.send(&to, &payload(4, number), MessageOptions::default());
        app.wait_accepted(send);
    }
    let mut list = |destination: Option<&str>, limit| {
        let filter = Filter { destination: destination.map(str::to_owned), ..Filter::default() };
        let (mut after, mut found, mut parts) = (None, Vec::new(), 0);
        loop {
            app.ask(Request::Bundles { limit, after, filter: filter.clone() });
            let page = app.wait(|said| match said.head {
                Reply::Bundles { page } => Some(page),
                _ => None,
            });
            assert_eq!(page.total, 2500);
            assert!(page.bundles.len() <= limit.min(1000));
            found.extend(page.bundles.into_iter().map(|bundle| bundle.id));
            parts += 1;
            after = page.next;
            if after.is_none() {
                let mut different = found.clone();
                different.sort();
                different.dedup();
                assert_eq!(different.len(), found.len(), "none comes twice");
                return (found.len(), parts);
            }
        }
    };
    assert_eq!(list(None, 1_000_000), (2500, 3), "one turn looks at a thousand");
    assert_eq!(list(None, 100), (2500, 25));
    assert_eq!(list(Some("dtn://nowhere/1"), 1_000_000), (1250, 3));
    assert_eq!(list(Some("dtn://nowhere/*"), 1_000_000), (2500, 3));
    assert_eq!(list(Some("dtn://elsewhere/*"), 1_000_000), (0, 3));
}

/// A bundle that is longer than a peer accepts is fragmented, in either version, and complete at the other end.
#[test]
fn a_bundle_that_is_longer_than_the_peer_takes_goes_in_fragments() {
    for version in ["4", "3"] {
        let limit = format!("[tcpcl]\nversions = '{version}'\ntransfer-mru = 100_000");
        let bob = start(config(&format!(
            "node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\n[storage]\nkind = 'memory'\n{limit}"
        )));
        let alice = alice(&bob, &limit);
        let (mut here, mut there) = (App::new(&alice), App::new(&bob));
        there.register("inbox", 0);
        let file = payload(250_000, 4);
        let send = here.send("dtn://bob/inbox", &file, MessageOptions::default());
        let (delivery, got) = there.receive();
        assert!(got == file, "version {version}");
        there.take(delivery);
        here.wait_sent(send);
        let status = there.status();
        assert!(status["counters"]["received"].as_u64() >= Some(3), "{:#}", status["counters"]);
        assert_eq!(status["sessions"]["refused"], 0, "{:#}", status["sessions"]);
    }
}

#[test]
fn a_ping_comes_back() {
    let bob = bob();
    let alice = alice(&bob, "");
    let mut here = App::new(&alice);
    here.register("pinger", 100);
    for length in [0, 64] {
        let options = MessageOptions { source: Some("pinger".into()), ..MessageOptions::default() };
        here.send("dtn://bob/echo", &payload(length, 1), options);
        let (delivery, got) = here.receive();
        assert_eq!(got, payload(length, 1));
        here.take(delivery);
    }
}

/// Anybody can ask for answers in the name of nodes that do not exist, and no quota of a neighbour counts them.
#[test]
fn answers_that_nobody_takes_fill_no_store() {
    let alice = start(config("node = 'dtn://alice/'\n[storage]\nkind = 'memory'"));
    let mut here = App::new(&alice);
    here.register("pinger", 100);
    let options = |source: &str| MessageOptions { source: Some(source.into()), ..MessageOptions::default() };
    for portion in 0..11 {
        for seed in 0..100 {
            here.send("dtn://alice/echo", &payload(10, 100 * portion + seed), options("nobody"));
        }
        // The service answers in order, and leaves unanswered what is too much for it at once.
        here.send("dtn://alice/echo", &payload(10, 7), options("pinger"));
        let (delivery, _) = here.receive();
        here.take(delivery);
    }
    let status = here.wait_status(|status| status["bundles"].as_u64() <= Some(1024));
    assert!(status["bundles"].as_u64() >= Some(1000), "{:#}", status["bundles"]);
}

#[test]
fn a_measurement_is_answered_with_its_number_and_its_length() {
    let bob = bob();
    let alice = alice(&bob, "");
    let mut here = App::new(&alice);
    here.register("measurer", 100);
    let options = |source: &str| MessageOptions { source: Some(source.into()), ..MessageOptions::default() };
    // As short as an answer, or from a service that would answer in turn: none is answered.
    for (length, source) in [(5, "measurer"), (16, "measurer"), (64, "x/measure"), (64, "x/echo")] {
        if source != "measurer" {
            here.register(source, 100);
        }
        here.send("dtn://bob/measure", &payload(length, 1), options(source));
    }
    for (seed, length) in [(1, 17), (2, 64), (3, 200_000)] {
        let sent = payload(length, seed);
        here.send("dtn://bob/measure", &sent, options("measurer"));
        let (delivery, got) = here.receive();
        let number = u64::from_be_bytes(*sent.first_chunk().expect("it has a number"));
        assert_eq!(measuring::answered(&got), Some((number, length as u64)), "{length} bytes");
        here.take(delivery);
    }
}

#[test]
fn what_waits_survives_a_stop_and_is_delivered_after_the_start() {
    let place = Place::new("survives");
    let text = format!("node = 'dtn://alice/'\n[storage]\npath = '{}'", place.0.join("store").display());
    let file = payload(200_000, 3);
    {
        let alice = start(config(&text));
        let mut here = App::new(&alice);
        let send = here.send("dtn://alice/inbox", &file, MessageOptions::default());
        here.wait_accepted(send);
        alice.stop();
    }
    let alice = start(config(&text));
    let mut here = App::new(&alice);
    here.register("inbox", 0);
    let (delivery, got) = here.receive();
    assert_eq!(got, file);
    here.take(delivery);
    drop(here);
    drop(alice);
    let alice = start(config(&text));
    let status = App::new(&alice).wait_status(|status| status["ready"] == true);
    assert_eq!(status["bundles"], 0, "{status:#}");
}

/// A single-threaded client that sends many requests before it reads: its requests are handled although the node has more replies
/// than the client reads.
#[test]
fn a_client_of_one_thread_is_heard_while_it_does_not_read() {
    const BUNDLES: u64 = 40;
    let place = Place::new("one-thread");
    let control = place.0.join("control.sock");
    let mut settings = config("node = 'dtn://bob/'\n[storage]\nkind = 'memory'");
    settings.control = Some(control.clone());
    let bob = start(settings);
    let mut app = App::new(&bob);
    for number in 0..BUNDLES {
        let send = app.send("dtn://bob/inbox", &payload(100_000, number), MessageOptions::default());
        app.wait_accepted(send);
    }
    let mut stream = UnixStream::connect(&control).expect("it listens");
    stream.set_write_timeout(Some(common::DEADLINE)).expect("a timeout");
    stream.set_read_timeout(Some(common::DEADLINE)).expect("a timeout");
    let say = |stream: &mut UnixStream, request: Request| {
        let head = serde_json::to_vec(&request).expect("it is JSON");
        let lengths = [(head.len() as u32).to_be_bytes(), [0; 4]].concat();
        stream.write_all(&[lengths, head].concat()).expect("the node hears it");
    };
    say(&mut stream, Request::Register { endpoint: "inbox".into(), inline_bytes: 200_000 });
    for _ in 0..20_000 {
        say(&mut stream, Request::Cancel { send: 1 });
    }
    // All replies sent in the meantime are there.
    let mut delivered = 0;
    while delivered < BUNDLES {
        let mut lengths = [0; 8];
        stream.read_exact(&mut lengths).expect("the node goes on");
        let length =
            |at: usize| u32::from_be_bytes(lengths[at..at + 4].try_into().expect("four bytes")) as usize;
        let mut text = vec![0; length(0) + length(4)];
        stream.read_exact(&mut text).expect("the node goes on");
        let head: Reply = serde_json::from_slice(&text[..length(0)]).expect("a reply");
        delivered += u64::from(matches!(head, Reply::Delivered { .. }));
    }
}

#[test]
fn a_configuration_that_is_read_again_says_what_becomes_of_it() {
    let place = Place::new("reload");
    let path = place.0.join("bob.toml");
    let write = |text: &str| std::fs::write(&path, text).expect("a file");
    write("node = 'dtn://bob/'\nstorage.kind = 'memory'\n");
    let settings = longwire_node::Config::load(&path).expect("it makes sense");
    let bob =
        Node::start(NodeSetup { path: Some(path.clone()), ..NodeSetup::new(settings) }).expect("it starts");
    let mut app = App::new(&bob);
    write("node = 'dtn://bob/'\nlisten = 7\n");
    bob.reload();
    let status = app.wait_status(|status| status["configuration"]["refused"].is_string());
    assert_eq!(status["node"], "dtn://bob/");
    write("node = 'dtn://bobby/'\nlisten = ['127.0.0.1:0']\nstorage.kind = 'memory'\npeers = 'any'\n");
    bob.reload();
    let status = app.wait_status(|status| status["configuration"]["refused"].is_null());
    assert_eq!(status["configuration"]["needs_restart"], serde_json::json!(["listen", "node"]));
    assert_eq!(status["node"], "dtn://bob/");
}
