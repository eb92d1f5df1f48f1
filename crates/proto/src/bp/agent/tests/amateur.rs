//! Encrypted bundles and links on amateur radio bands: in no world does such a link carry one.

use super::forwarding::{MINUTE, has_arrived, random};
use super::world::{Payload, World};
use crate::bp::agent::config::RouterKind;
use crate::bp::agent::{
    CheckRule, EncryptRule, EncryptedRule, Endpoints, KeyName, LinkConfig, RetentionReason, Security,
    SignRule, SignatureCheck,
};
use crate::bp::bpsec::{Algorithm, Key, Keys};
use crate::bp::{BlockFlags, BlockType, CreationTimestamp, DtnTime, Head, v6};
use crate::rng::Rng;
use crate::service::{
    AppIndication, BundleName, BundleVersion, BundlesIndication, LinkId, ManagementRequest, NextHop,
    SendFailure, SendId, SendOptions,
};
use crate::time::Duration;
use std::sync::Arc;

/// Names of the nodes of a world.
const NAMES: [&str; 7] = ["n0", "n1", "n2", "n3", "n4", "a", "b"];

/// Keys of all nodes, and rules of one that encrypts bundles to `secret` endpoints, after they were signed if it has a key.
pub(super) fn encrypts_secrets(algorithm: Algorithm, signs: bool) -> Security {
    let node = |name: &str| format!("dtn://{name}/").parse().expect("a node ID");
    let of = |name: &&str, algorithm, byte| {
        Key::new(node(name), "field day", algorithm, &[byte; 32]).expect("a key of this length")
    };
    let endpoints = |destination: String| Endpoints { source: "*".into(), destination };
    let mut keys: Vec<Key> = NAMES.iter().map(|name| of(name, algorithm, 1)).collect();
    keys.extend(NAMES.iter().filter(|_| signs).map(|name| of(name, Algorithm::Hmac512, 2)));
    let secret = |name: &&str| endpoints(format!("dtn://{name}/secret"));
    let check =
        SignatureCheck { required: true, on_the_way: false, signers: Vec::new(), passes_wrong: false };
    let encrypt = |name| EncryptRule { endpoints: secret(name), key: Some(KeyName::Any) };
    Security {
        keys: Keys::from_iter(keys),
        sign: vec![SignRule { endpoints: endpoints("*".into()), key: signs.then_some(KeyName::Any) }],
        check: signs
            .then(|| CheckRule { endpoints: endpoints("*".into()), check: Some(Arc::new(check)) })
            .into_iter()
            .collect(),
        encrypt: NAMES.iter().map(encrypt).collect(),
        encrypted: NAMES
            .iter()
            .map(|name| EncryptedRule { endpoints: secret(name), required: true })
            .collect(),
    }
}

/// Told by the destination, which does not depend on the blocks that survive on the way.
fn is_secret(head: &Head) -> bool {
    head.primary.destination.to_string().ends_with("/secret")
}

fn amateur(link: u32) -> LinkConfig {
    LinkConfig { link: LinkId(link), amateur: true, ..LinkConfig::default() }
}

/// Figures of a world, to see that the worlds are not too kind.
#[derive(Debug, Default)]
struct Figures {
    plain_over_amateur: usize,
    secret_over_others: usize,
    kept: u64,
    decrypted: u64,
    fragments: usize,
}

/// Lets random bundles go through a random world.
fn live(seed: u64, figures: &mut Figures) {
    let mut rng = Rng::new(seed).fork("amateur");
    let count = 3 + rng.below(3) as usize;
    // A ring, and some chords.
    let mut pairs: Vec<(usize, usize)> = (0..count).map(|node| (node, (node + 1) % count)).collect();
    pairs.extend((2..count - 1).filter(|_| rng.chance(0.5)).map(|node| (0, node)));
    // Two nodes may have a link of each kind.
    pairs.extend(pairs.clone().into_iter().filter(|_| rng.chance(0.2)));
    let is_amateur: Vec<bool> = pairs.iter().map(|_| rng.chance(0.5)).collect();
    let routers = [RouterKind::Static, RouterKind::Static, RouterKind::Epidemic, RouterKind::SprayAndWait];
    let router = routers[rng.below(4) as usize];
    let failover_after = Duration::from_secs(rng.below(2) * 20);
    let (relays, previous_node) = (rng.below(2) as u32, rng.chance(0.8));
    let mut world = World::new(seed);
    world.strict = false;
    for node in 0..count {
        world.node(&format!("n{node}"), |config| {
            let links = is_amateur.iter().enumerate().filter(|(_, amateur)| **amateur);
            config.links = links.map(|(cable, _)| amateur(cable as u32 + 1)).collect();
            config.routing.router = router;
            config.routing.failover_after = failover_after;
            config.relays = relays;
            config.previous_node = previous_node;
        });
        world.nodes[node].disk.latency = Duration::from_millis(rng.below(30));
    }
    for (cable, (a, b)) in pairs.iter().enumerate() {
        world.cable(*a, *b);
        world.cables[cable].window = 100 + rng.below(5000);
        world.cables[cable].interleave = rng.chance(0.3);
        world.cables[cable].transfer_bytes_max =
            if rng.chance(0.3) { 1500 + rng.below(3000) } else { u64::MAX };
    }
    if router == RouterKind::Static {
        // Both ways around the ring, with random costs.
        for (cable, (a, b)) in pairs.iter().enumerate() {
            for (from, cost) in [(*a, rng.below(3) as u32), (*b, rng.below(3) as u32)] {
                let via = NextHop::Link(LinkId(cable as u32 + 1));
                let pattern = "*".to_owned();
                world.tell(from, ManagementRequest::SetRoute { pattern, via, cost });
            }
        }
    }
    let algorithm = if rng.chance(0.5) { Algorithm::Aes256Gcm } else { Algorithm::KeyWrap };
    let security = encrypts_secrets(algorithm, rng.chance(0.5));
    world.nodes.iter_mut().for_each(|node| node.security = security.clone());
    world.start_all();
    // A long header stays on the disk.
    let report_to = rng.chance(0.3).then(|| format!("dtn://n0/{}", "x".repeat(600)));
    let mut sent = Vec::new();
    for number in 0..10 {
        let (from, to) = (rng.below(count as u64) as usize, rng.below(count as u64) as usize);
        let service = if rng.chance(0.5) { "secret" } else { "in" };
        let payload = random(seed << 8 | number, rng.below(9000) as usize);
        let options = SendOptions {
            lifetime: Duration::from_secs(60),
            must_not_fragment: rng.chance(0.1),
            hop_limit: Some(6),
            report_delivery: rng.chance(0.2),
            report_to: report_to.clone().filter(|_| from == 0),
            ..SendOptions::default()
        };
        sent.push(payload.clone());
        world.send(from, number, &format!("dtn://n{to}/{service}"), Payload::Given(payload), options);
        world.run_for(Duration::from_millis(rng.below(2000)));
        match rng.below(5) {
            0 => {
                let cable = rng.below(pairs.len() as u64) as usize;
                let at = world.cables[cable].carried + rng.below(4000);
                world.cables[cable].cut_at = Some((at, Duration::from_millis(rng.below(9_000))));
            }
            1 => {
                let node = rng.below(count as u64) as usize;
                world.crash(node);
                world.run_for(Duration::from_millis(rng.below(3000)));
                world.start(node);
                (0..pairs.len()).for_each(|cable| world.heal(cable));
            }
            _ => {}
        }
    }
    world.run_for(3 * MINUTE);
    for (cable, is_amateur) in is_amateur.iter().enumerate() {
        for head in &world.cables[cable].heads {
            let has_block =
                head.blocks.iter().any(|block| block.block_type == BlockType::BlockConfidentiality);
            assert!(!(has_block && *is_amateur), "seed {seed}, cable {cable}: {head:?}");
            assert!(has_block || !is_secret(head), "seed {seed}, cable {cable}, in plaintext: {head:?}");
            assert!(!(is_secret(head) && *is_amateur), "seed {seed}, cable {cable}: {head:?}");
            figures.fragments += usize::from(is_secret(head) && head.primary.fragment.is_some());
            figures.secret_over_others += usize::from(is_secret(head));
            figures.plain_over_amateur += usize::from(*is_amateur);
        }
    }
    for node in 0..count {
        let counters = world.agent(node).counters();
        (figures.kept, figures.decrypted) =
            (figures.kept + counters.kept_encrypted, figures.decrypted + counters.decrypted);
        // Plaintext arrives, whichever way it came.
        for taken in &world.nodes[node].user.inbox {
            assert!(sent.iter().any(|payload| *payload == taken.2), "seed {seed}");
        }
    }
}

#[test]
fn no_world_makes_a_link_on_an_amateur_band_carry_an_encrypted_bundle() {
    let mut figures = Figures::default();
    (0..300).for_each(|seed| live(seed, &mut figures));
    let Figures { plain_over_amateur, secret_over_others, kept, decrypted, fragments } = figures;
    assert!(plain_over_amateur > 300 && secret_over_others > 300, "{figures:?}: too few bundles");
    assert!(kept > 300 && fragments > 60 && decrypted > 300, "{figures:?}: the worlds were too kind");
}

/// Two nodes with the link 1 on an amateur band, and the link 2 beside it, which is dearer.
fn two_links(second: bool) -> World {
    let mut world = World::new(3);
    for name in ["a", "b"] {
        world.node(name, |config| config.links = vec![amateur(1)]);
    }
    world.cable(0, 1);
    world.route(0, "dtn://b/*", 0);
    if second {
        world.cable(0, 1);
        let (pattern, via) = ("dtn://b/*".to_owned(), NextHop::Link(LinkId(2)));
        world.tell(0, ManagementRequest::SetRoute { pattern, via, cost: 9 });
    }
    world.nodes.iter_mut().for_each(|node| node.security = encrypts_secrets(Algorithm::Aes256Gcm, false));
    world.start_all();
    world
}

fn send(world: &mut World, number: u64, service: &str) {
    let to = format!("dtn://b/{service}");
    world.send(0, number, &to, Payload::Given(random(number, 500)), SendOptions::default());
}

fn carried(world: &World, cable: usize) -> Vec<String> {
    world.cables[cable].heads.iter().map(|head| head.primary.destination.to_string()).collect()
}

#[test]
fn an_encrypted_bundle_takes_another_link_whatever_it_costs() {
    let mut world = two_links(true);
    send(&mut world, 1, "secret");
    send(&mut world, 2, "in");
    world.run_until(MINUTE, "delivery", |world| has_arrived(world, 1, 1));
    world.run_for(MINUTE);
    assert_eq!(
        (carried(&world, 0), carried(&world, 1)),
        (vec!["dtn://b/in".into()], vec!["dtn://b/secret".into()])
    );
    assert_eq!(world.agent(0).counters().kept_encrypted, 1);
}

#[test]
fn without_another_link_it_waits_and_the_reason_is_told() {
    let mut world = two_links(false);
    send(&mut world, 1, "secret");
    world.run_for(MINUTE);
    let whys =
        |world: &World| -> Vec<_> { world.agent(0).bundles(world.now).map(|bundle| bundle.why).collect() };
    assert_eq!(whys(&world), [RetentionReason::Encrypted { link: LinkId(1) }]);
    assert_eq!(world.agent(0).counters().kept_encrypted, 1);
    // An operator who takes the mark away sends it.
    let agent = &mut world.nodes[0].agent.as_mut().expect("it is up").engine;
    agent.configure_link(LinkConfig { amateur: false, ..amateur(1) });
    // A request about something else, after which the owner of the agent polls it.
    let created = CreationTimestamp { time: DtnTime::UNKNOWN, sequence: 1 };
    world.tell(0, ManagementRequest::Delete(BundleName { source: "dtn://nobody/".into(), created }));
    world.run_for(MINUTE);
    assert_eq!((whys(&world), carried(&world, 0).len()), (vec![], 1));
}

#[test]
fn a_link_that_a_peer_opens_on_an_amateur_band_counts_as_one() {
    const CALLER: LinkId = LinkId(LinkId::FIRST_INCOMING + 7);
    for is_amateur in [true, false] {
        let mut world = World::new(4);
        world.node("a", |_| {});
        world.nodes[0].security = encrypts_secrets(Algorithm::Aes256Gcm, false);
        world.start_all();
        if is_amateur {
            world.say_from(0, CALLER, BundlesIndication::Amateur);
        }
        let peer = Some("dtn://b/".to_owned());
        let up = BundlesIndication::Up { peer, interleave: false, transfer_bytes_max: u64::MAX };
        world.say_from(0, CALLER, up);
        world.say_from(0, CALLER, BundlesIndication::Room(9000));
        send(&mut world, 1, "secret");
        world.run_for(MINUTE);
        let why = world.agent(0).bundles(world.now).next().map(|bundle| bundle.why);
        let expected = match is_amateur {
            true => RetentionReason::Encrypted { link: CALLER },
            false => RetentionReason::OnTheWay(CALLER),
        };
        assert_eq!(why, Some(expected));
    }
}

#[test]
fn a_link_that_becomes_amateur_while_it_is_up_carries_no_further_byte_of_an_encrypted_bundle() {
    let mut world = two_links(true);
    world.run_for(MINUTE);
    // Both links begin as plain ones, and the transfer is under way when the first one becomes amateur radio.
    let agent = &mut world.nodes[0].agent.as_mut().expect("it is up").engine;
    agent.configure_link(LinkConfig { amateur: false, ..amateur(1) });
    world.cut(1);
    world.send(0, 1, "dtn://b/secret", Payload::Given(random(1, 60_000)), SendOptions::default());
    world.run_for(Duration::from_secs(1));
    assert_eq!(carried(&world, 0), ["dtn://b/secret"]);
    world.say_from(0, LinkId(1), BundlesIndication::Amateur);
    world.heal(1);
    let before = world.cables[0].carried;
    world.run_for(MINUTE);
    assert_eq!(world.cables[0].carried, before);
    assert_eq!(carried(&world, 1), ["dtn://b/secret"]);
    assert_eq!(world.agent(0).bundles(world.now).count(), 0);
}

#[test]
fn what_version_6_encrypts_is_kept_as_well() {
    for block_type in [
        v6::BlockType::PayloadConfidentiality,
        v6::BlockType::ExtensionSecurity,
        v6::BlockType::PayloadIntegrity,
    ] {
        let mut world = two_links(false);
        let payload = random(1, 500);
        let options = SendOptions { version: Some(BundleVersion::V6), ..SendOptions::default() };
        world.send(0, 1, "dtn://b/in", Payload::Given(payload.clone()), options);
        world.run_until(MINUTE, "delivery", |world| has_arrived(world, 1, 1));
        // The same bundle with a security block comes from elsewhere.
        let mut head = world.cables[0].heads6[0].clone();
        head.primary.sequence += 1;
        head.blocks.push(v6::Block {
            block_type,
            flags: BlockFlags(0),
            references: None,
            data: random(2, 20),
        });
        let mut bytes = bytes::BytesMut::from(&head.to_bytes()[..]);
        bytes.extend_from_slice(&payload);
        world.inject(0, &bytes.freeze(), 4000);
        world.run_for(MINUTE);
        let is_kept = block_type != v6::BlockType::PayloadIntegrity;
        assert_eq!(world.cables[0].heads6.len(), if is_kept { 1 } else { 2 }, "{block_type:?}");
    }
}

/// The reason of an expiry says that the bundle was kept from such links.
#[test]
fn what_expires_because_it_is_encrypted_says_so() {
    for service in ["secret", "in"] {
        let mut world = two_links(false);
        if service == "in" {
            world.cut(0);
        }
        let options = SendOptions { lifetime: Duration::from_secs(30), ..SendOptions::default() };
        world.send(0, 1, &format!("dtn://b/{service}"), Payload::Given(random(1, 500)), options);
        world.run_for(MINUTE);
        let is_kept = service == "secret";
        let reason = if is_kept { SendFailure::ExpiredEncrypted } else { SendFailure::Expired };
        let failed = AppIndication::Failed { send: SendId(1), reason };
        assert_eq!(world.nodes[0].user.ended[&SendId(1)], failed);
        let counters = world.agent(0).counters();
        assert_eq!((counters.deleted_expired, counters.expired_kept_encrypted), (1, u64::from(is_kept)));
    }
}

/// The header that leaves is looked at once more: what the agent knows of a bundle does not decide alone.
#[test]
fn a_header_with_ciphertext_is_kept_whatever_is_known_of_its_bundle() {
    let mut world = two_links(false);
    world.cut(0);
    send(&mut world, 1, "secret");
    world.run_for(Duration::from_secs(1));
    let agent = &mut world.nodes[0].agent.as_mut().expect("it is up").engine;
    let record = agent.holdings.iter().map(|(record, _)| record).next().expect("a bundle");
    agent.holdings.get_mut(&record).expect("it is held").encrypted = false;
    agent.sort_again(record);
    world.heal(0);
    world.run_for(MINUTE);
    assert_eq!(carried(&world, 0), Vec::<String>::new());
    assert_eq!(world.agent(0).bundles(world.now).count(), 1);
}
