//! Faults accepted from single peers, and encodings adapted to them.

use super::super::LinkConfig;
use super::forwarding::{MINUTE, has_arrived, random};
use super::world::{EPOCH_DTN_MS, INJECTED, Payload, World};
use crate::bp::{
    Accept, Block, BlockFlags, BlockType, Bundle, Content, CrcType, CreationTimestamp, DtnTime, Eid, Emit,
    Head, HopCount, PeerRules, PrimaryBlock, v6,
};
use crate::codec::DecodeError;
use crate::service::{
    AppRequest, BlockPlace, Breach, LinkId, ManagementIndication, RefuseReason, SendOptions,
};
use crate::time::Duration;
use bytes::Bytes;

/// A node with the neighbour `dtn://neighbour/` and these rules for peers that match `about`.
fn world(about: &str, accept: &[Accept]) -> (World, usize) {
    let mut world = World::new(1);
    let peer = PeerRules { node: about.into(), accept: accept.to_vec(), ..PeerRules::default() };
    let node = world.node("earth", |config| config.peers.push(peer));
    world.start_all();
    world.run_for(Duration::from_secs(1));
    (world, node)
}

fn bundle(change: impl FnOnce(&mut Head)) -> Bytes {
    let timestamp = CreationTimestamp { time: DtnTime(EPOCH_DTN_MS), sequence: 1 };
    let eid = |text: &str| text.parse::<Eid>().expect("an endpoint");
    let primary = PrimaryBlock::new(eid("dtn://earth/in"), eid("dtn://far/app"), timestamp, 3_600_000);
    let mut head = Head::new(primary, 0);
    change(&mut head);
    Bundle::new(head, Bytes::from_static(b"hello")).to_bytes()
}

/// Checks that a bundle of a peer arrives only if its fault is accepted from that peer, that both cases are
/// counted, and that the policy is named.
fn only_with(accept: Accept, bytes: &Bytes, counts: impl Fn(&World, usize) -> (u64, u64)) {
    for (about, allowed, arrives) in [
        ("dtn://neighbour/", &[accept][..], true),
        ("dtn://neigh*", &[accept], true),
        ("*", &Accept::ALL, true),
        ("dtn://neighbour/", &[], false),
        ("dtn://stranger/", &Accept::ALL, false),
    ] {
        let (mut world, node) = world(about, allowed);
        world.inject(node, bytes, 40);
        world.run_for(MINUTE);
        let helps: Vec<Accept> = world.agent(node).would_help(INJECTED).collect();
        assert_eq!(world.nodes[node].user.inbox.len(), usize::from(arrives), "{about} {allowed:?}");
        match arrives {
            true => assert_eq!((counts(&world, node), world.refusals()), ((1, 0), vec![])),
            false => {
                assert_eq!((counts(&world, node), helps), ((0, 1), vec![accept]), "{about}");
                assert_eq!(world.refusals(), [RefuseReason::NotAcceptable], "again it would be no better");
            }
        }
    }
}

#[test]
fn primary_without_crc_is_taken_from_whom_the_operator_says() {
    let bytes = bundle(|head| head.primary.crc = CrcType::None);
    only_with(Accept::PrimaryWithoutCrc, &bytes, |world, node| {
        let counters = world.agent(node).counters();
        (counters.accepted_primary_without_crc, counters.refused_primary_without_crc)
    });
}

#[test]
fn neither_time_nor_age_is_taken_from_whom_the_operator_says() {
    let bytes = bundle(|head| head.primary.timestamp.time = DtnTime::UNKNOWN);
    only_with(Accept::NoTimeNoAge, &bytes, |world, node| {
        let counters = world.agent(node).counters();
        (counters.accepted_no_time_no_age, counters.refused_no_time_no_age)
    });
}

/// The second of two fragments, as ION's UDP convergence layer sends it.
fn numbered_zero(offset: u64) -> Bytes {
    let timestamp = CreationTimestamp { time: DtnTime(EPOCH_DTN_MS), sequence: 2 };
    let eid = |text: &str| text.parse::<Eid>().expect("an endpoint");
    let primary = PrimaryBlock::new(eid("dtn://earth/in"), eid("dtn://far/app"), timestamp, 3_600_000);
    let mut head = Head::new(primary, 10).fragment(offset, 5);
    head.set(&Content::BundleAge(7));
    head.set(&Content::Copies(3));
    head.blocks.iter_mut().for_each(|block| block.number = 0);
    let payload = if offset == 0 { b"hello" } else { b"world" };
    Bundle::new(head, Bytes::from_static(payload)).to_bytes()
}

#[test]
fn fragments_with_blocks_numbered_zero_are_taken_from_whom_the_operator_says() {
    for (about, arrives) in [("dtn://neighbour/", true), ("dtn://stranger/", false)] {
        let (mut world, node) = world(about, &[Accept::FragmentBlocksNumberedZero]);
        world.inject(node, &numbered_zero(0), 40);
        world.run_for(MINUTE);
        if arrives {
            // The first fragment is read again from the store.
            world.crash(node);
            world.start(node);
            world.run_for(MINUTE);
        }
        world.inject(node, &numbered_zero(5), 40);
        world.run_for(MINUTE);
        let counters = world.agent(node).counters();
        match arrives {
            true => {
                assert_eq!(world.refusals(), []);
                assert_eq!(world.nodes[node].user.inbox[0].2, b"helloworld");
                assert_eq!(counters.accepted_fragment_blocks_numbered_zero, 1, "since the restart");
            }
            false => {
                assert_eq!(world.refusals(), [RefuseReason::NotAcceptable; 2]);
                assert_eq!(counters.refused_fragment_blocks_numbered_zero, 2);
                let helps: Vec<Accept> = world.agent(node).would_help(INJECTED).collect();
                assert_eq!(helps, [Accept::FragmentBlocksNumberedZero]);
            }
        }
    }
}

#[test]
fn what_was_accepted_by_a_policy_survives_a_restart_without_it() {
    let (mut world, node) = world("*", &Accept::ALL);
    world.nodes[node].user.takes = false;
    world.inject(
        node,
        &bundle(|head| {
            head.primary.crc = CrcType::None;
            head.primary.timestamp.time = DtnTime::UNKNOWN;
        }),
        40,
    );
    world.run_for(MINUTE);
    world.crash(node);
    world.nodes[node].user.takes = true;
    world.start(node);
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, node, 1));
}

/// Breach of a bundle that a node refuses, and the faults that would have to be accepted.
fn refused(bytes: &Bytes) -> (Option<Breach>, Vec<&'static str>) {
    let (mut world, node) = world("*", &[]);
    world.inject(node, bytes, 40);
    world.run_for(MINUTE);
    assert_eq!(world.refusals().len(), 1);
    let said = world.nodes[node].user.events.iter().filter_map(|said| match said {
        ManagementIndication::Refused { link, breach, accept, .. } => {
            assert_eq!(*link, INJECTED);
            Some((*breach, accept.clone()))
        }
        _ => None,
    });
    let said: Vec<_> = said.collect();
    assert!(said.len() < 2, "{said:?}");
    said.into_iter().next().unwrap_or_default()
}

#[test]
fn a_refusal_names_the_rule_the_block_and_what_would_help() {
    let block = |number, flags| Block {
        block_type: BlockType::Unknown(200),
        number,
        flags,
        crc: CrcType::Crc16,
        data: Bytes::from_static(b"who knows"),
    };
    let words = |bytes: &Bytes| {
        let (breach, accept) = refused(bytes);
        (breach.expect("a rule is broken").to_string(), accept)
    };
    for (bytes, said) in [
        (
            bundle(|head| head.blocks = vec![block(5, BlockFlags::NONE), block(5, BlockFlags::NONE)]),
            "a block number that occurs twice is not valid (RFC 9171 4.1), in block 2 (type 200, number 5)",
        ),
        (
            bundle(|head| head.blocks = vec![block(0, BlockFlags::NONE)]),
            "the block number of another block is not valid (RFC 9171 4.1), in block 1 (type 200, number 0)",
        ),
        (
            bundle(|head| {
                head.set(&Content::HopCount(HopCount { limit: 3, count: 0 }));
                head.blocks[0].data = Bytes::from_static(&[0x82, 0, 0]);
            }),
            "a hop limit is not valid (RFC 9171 4.4.3), in block 1 (type 10, number 2)",
        ),
        (
            bundle(|head| {
                head.blocks = vec![block(2, BlockFlags::NONE), block(7, BlockFlags::DELETE_BUNDLE)]
            }),
            "a block whose flags require deletion of the bundle is not supported (RFC 9171 5.6), in block 2 (type 200, number 7)",
        ),
        (Bytes::from_static(b"garbage"), "a bundle is not valid (RFC 9171 4.1)"),
    ] {
        assert_eq!(words(&bytes), (said.to_owned(), vec![]));
    }
    let whole = bundle(|head| head.blocks = vec![block(2, BlockFlags::NONE)]);
    let flipped = |from_end: usize| {
        let mut bytes = whole.to_vec();
        let at = bytes.len() - from_end;
        bytes[at] ^= 1;
        Bytes::from(bytes)
    };
    // After the five bytes of the payload: five bytes of CRC field and the end.
    let payload = "the checksum of the payload block does not match (RFC 9171 5.6), in the payload block";
    assert_eq!(words(&flipped(8)), (payload.to_owned(), vec![]));
    assert_eq!(words(&flipped(2)), (payload.to_owned(), vec![]));
    let early = "unexpected end of data, in the payload block";
    assert_eq!(words(&whole.slice(..whole.len() - 1)), (early.to_owned(), vec![]));
    assert_eq!(words(&whole.slice(..whole.len() - 9)), (early.to_owned(), vec![]));
    let late: Bytes = [&whole[..], b"x"].concat().into();
    let (breach, _) = refused(&late);
    let error = DecodeError::invalid("data after the end of a bundle", "RFC 9171 4.1");
    assert_eq!(breach, Some(Breach::of_all(error)));
    // The indication contains the values of `accept` that would help.
    let bytes = bundle(|head| {
        head.primary.crc = CrcType::None;
        head.primary.timestamp.time = DtnTime::UNKNOWN;
    });
    let (breach, accept) = refused(&bytes);
    let breach = breach.expect("a rule is broken");
    assert_eq!((breach.clause(), breach.block), (Some("RFC 9171 4.4.2"), Some(BlockPlace::PRIMARY)));
    assert_eq!(accept, ["primary-without-crc", "no-time-no-age"]);
    // Version 6: a block after the payload.
    let mut old = super::version6::foreign("dtn://earth/in", b"hello");
    let flags = v6::BlockFlags::DELETE_BUNDLE;
    let block_type = v6::BlockType::Unknown(99);
    old.head.after = vec![v6::Block { block_type, flags, references: None, data: Bytes::new() }];
    old.head.payload.last = false;
    let (breach, _) = refused(&old.to_bytes());
    let breach = breach.expect("a rule is broken");
    assert_eq!(breach.clause(), Some("RFC 5050 5.6"));
    assert_eq!(breach.block.map(|block| block.to_string()).as_deref(), Some("block 2 (type 99)"));
    // The refusal of a valid bundle is indicated only while an application watches.
    let for_nobody = bundle(|head| head.primary.destination = Eid::Null);
    assert_eq!(refused(&for_nobody), (None, vec![]));
}

/// A bundle from `ipn:1.0` to `ipn:2.1` over a link with these encodings.
fn emitted(emit: &[Emit]) -> (Head, World) {
    let mut world = World::new(2);
    let link = LinkConfig { link: LinkId(1), emit: emit.to_vec(), ..LinkConfig::default() };
    let a = world.node("a", |config| {
        config.node = "ipn:1.0".into();
        config.links.push(link);
    });
    let b = world.node("b", |config| config.node = "ipn:2.0".into());
    world.cable(a, b);
    world.tell(b, AppRequest::Register { endpoint: "ipn:2.1".into() });
    world.start_all();
    let payload = random(2, 20_000);
    world.send(a, 1, "ipn:2.1", Payload::Given(payload.clone()), SendOptions::default());
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, b, 1));
    assert_eq!(world.nodes[b].user.inbox[0].2, payload);
    (world.cables[0].heads[0].clone(), world)
}

fn has_three(eid: &Eid) -> bool {
    matches!(eid, Eid::Ipn(ipn) if ipn.three_elements)
}

#[test]
fn by_default_payloads_have_a_checksum_and_ipn_two_elements() {
    let (head, world) = emitted(&[]);
    assert_eq!(head.payload.crc, CrcType::Crc32c);
    assert!(
        ![&head.primary.destination, &head.primary.source, &head.primary.report_to]
            .map(has_three)
            .contains(&true)
    );
    assert_eq!(world.agent(0).counters().adapted, 0);
}

#[test]
fn no_payload_crc_goes_to_whom_the_operator_says() {
    let (head, world) = emitted(&[Emit::NoPayloadCrc]);
    assert_eq!((head.payload.crc, head.primary.crc), (CrcType::None, CrcType::Crc32c));
    assert_eq!(world.agent(0).counters().adapted, 1);
}

#[test]
fn three_element_ipn_goes_to_whom_the_operator_says() {
    let (head, world) = emitted(&[Emit::ThreeElementIpn]);
    assert_eq!(
        [&head.primary.destination, &head.primary.source, &head.primary.report_to].map(has_three),
        [true; 3]
    );
    assert_eq!(world.agent(0).counters().adapted, 1);
    let (head, _) = emitted(&[Emit::ThreeElementIpn, Emit::TwoElementIpn]);
    assert!(!has_three(&head.primary.source), "the last word counts");
}
