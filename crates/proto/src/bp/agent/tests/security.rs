//! Signatures: made by the source while the payload passes, verified at the end and on the way, whatever happens between.

use super::forwarding::{EARTH, HOUR, MINUTE, MOON, ORBITER, chain_with, has_arrived, random};
use super::world::{EPOCH_DTN_MS, Payload, World};
use crate::bp::agent::{CheckRule, Endpoints, KeyName, Security, SignRule, SignatureCheck};
use crate::bp::bpsec::{
    Algorithm, Key, KeyChoice, Keys, PAYLOAD_BLOCK, PRIMARY_BLOCK, Scope, SignRequest, sign,
};
use crate::bp::{
    BlockFlags, BlockType, Bundle, Content, CreationTimestamp, DtnTime, Eid, Head, PrimaryBlock, ReasonCode,
};
use crate::rng::Rng;
use crate::service::{
    AppIndication, ReportedStatus, SendFailure, SendId, SendOptions, Signature, SignatureFailure,
};
use crate::time::Duration;
use bytes::Bytes;
use std::sync::Arc;

const ALL: &str = "*";

fn moon() -> Eid {
    "dtn://moon/".parse().expect("a node ID")
}

fn key(byte: u8, algorithm: Algorithm) -> Key {
    Key::new(moon(), &format!("key {byte}"), algorithm, &[byte; 32]).expect("a key of this length")
}

fn shared(byte: u8) -> Key {
    key(byte, Algorithm::Hmac256)
}

fn everything() -> Endpoints {
    Endpoints { source: ALL.into(), destination: ALL.into() }
}

fn signs(keys: impl IntoIterator<Item = Key>) -> Security {
    let rule = SignRule { endpoints: everything(), key: Some(KeyName::Any) };
    Security { keys: Keys::from_iter(keys), sign: vec![rule], ..Security::default() }
}

const REQUIRED: SignatureCheck =
    SignatureCheck { required: true, on_the_way: false, signers: Vec::new(), passes_wrong: false };

fn checks(keys: Keys, check: SignatureCheck) -> Security {
    let rule = CheckRule { endpoints: everything(), check: Some(Arc::new(check)) };
    Security { keys, check: vec![rule], ..Security::default() }
}

fn first_use() -> Keys {
    let mut keys = Keys::default();
    keys.pin_at_first_use(true);
    keys
}

/// Outcomes that came with deliveries.
fn signatures(world: &World, node: usize) -> Vec<Option<Signature>> {
    let told = world.nodes[node].user.log.iter().filter_map(|said| match said {
        AppIndication::Delivered { signature, .. } => Some(signature.as_deref().cloned()),
        _ => None,
    });
    told.collect()
}

/// A chain in which the first node signs, and the others verify with these keys.
fn signed_chain(seed: u64, signer: Key, keys: &Keys) -> World {
    let mut world = chain_with(seed, |config| config.reports.deletion = true);
    world.nodes[MOON].security = signs([signer]);
    world.nodes[ORBITER].security = checks(keys.clone(), SignatureCheck { on_the_way: true, ..REQUIRED });
    // Reports of the orbiter and of this node are not signed.
    world.nodes[EARTH].security = checks(keys.clone(), REQUIRED);
    world
}

#[test]
fn signed_bundles_arrive_whole_and_in_fragments_in_pieces_of_any_size() {
    let mut rng = Rng::new(11);
    for (round, algorithm) in
        (0..9).zip([Algorithm::Hmac256, Algorithm::Hmac512, Algorithm::Ed25519].iter().cycle())
    {
        let keys = match algorithm {
            Algorithm::Ed25519 => first_use(),
            other => Keys::from_iter([key(1, *other)]),
        };
        let mut world = signed_chain(round, key(1, *algorithm), &keys);
        for cable in 0..2 {
            world.cables[cable].window = 1 + rng.below(5000);
            world.cables[cable].cut_at = rng.chance(0.5).then(|| (rng.below(20_000), MINUTE));
        }
        world.start_all();
        let payload = random(round, rng.below(20_000) as usize);
        // A long header stays on the disk.
        let report_to = rng.chance(0.3).then(|| format!("dtn://moon/{}", "x".repeat(600)));
        let options = SendOptions { report_to, ..SendOptions::default() };
        world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), options);
        world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
        assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
        let [Some(signature)] = &signatures(&world, EARTH)[..] else { panic!("one signature") };
        assert_eq!((signature.signer.as_deref(), signature.failure), (Some("dtn://moon/"), None));
        assert_eq!(world.agent(MOON).counters().signed, 1);
        assert_eq!(world.agent(EARTH).counters().signatures_valid, 1);
        let is_whole = world.cables[0].heads.iter().all(|head| head.primary.fragment.is_none());
        assert_eq!(world.agent(ORBITER).counters().signatures_valid, u64::from(is_whole));
        world.run_for(MINUTE);
        for node in [MOON, ORBITER, EARTH] {
            assert_eq!(world.agent(node).bundles(world.now).count(), 0, "something is left over");
        }
    }
}

/// The power of the signer, the relay or the destination fails at some instant. What arrives is signed.
#[test]
fn no_crash_leaves_a_bundle_that_is_half_signed() {
    let mut before_acceptance = 0;
    for (seed, at_ms) in (1..).zip((1..4000).step_by(397)) {
        for node in [MOON, ORBITER, EARTH] {
            let mut world = signed_chain(seed, shared(1), &Keys::from_iter([shared(1)]));
            world.strict = false;
            world.start_all();
            world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(seed, 9000)), SendOptions::default());
            world.run_for(Duration::from_millis(at_ms));
            let is_accepted =
                world.nodes[MOON].user.log.iter().any(|said| matches!(said, AppIndication::Accepted { .. }));
            world.crash(node);
            world.run_for(MINUTE);
            world.start(node);
            world.run_for(HOUR);
            let arrived = world.nodes[EARTH].user.inbox.len();
            before_acceptance += u64::from(!is_accepted);
            assert!(arrived <= 1 && (arrived == 1 || !is_accepted), "crash of {node} at {at_ms} ms");
            assert!(
                signatures(&world, EARTH)
                    .iter()
                    .all(|one| one.as_ref().is_some_and(|one| one.failure.is_none()))
            );
        }
    }
    assert!(before_acceptance > 0, "no crash was early enough");
}

/// Sends one bundle with a key and verifies it with others. Returns the counter of the failure at earth and the code of the
/// report.
fn refused(signer: Option<Key>, keys: &Keys) -> (String, u64) {
    let mut world = signed_chain(1, shared(1), keys);
    world.nodes[ORBITER].security = Security::default();
    world.nodes[MOON].security = signer.map(|key| signs([key])).unwrap_or_default();
    world.start_all();
    let options = SendOptions { report_deletion: true, ..SendOptions::default() };
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(1, 3000)), options);
    let report = |world: &World| {
        let mut log = world.nodes[MOON].user.log.iter();
        log.find_map(|said| match said {
            AppIndication::Report { status: ReportedStatus::Deleted, reason, reporter, .. } => {
                (reporter == "dtn://earth/").then_some(*reason)
            }
            _ => None,
        })
    };
    world.run_until(HOUR, "a report", |world| report(world).is_some());
    assert!(world.nodes[EARTH].user.inbox.is_empty());
    assert_eq!(world.agent(EARTH).bundles(world.now).count(), 0);
    let counters = format!("{:?}", world.agent(EARTH).counters());
    let counters = counters.split([',', '{', '}']).map(str::trim);
    let mut counted = counters.filter(|text| text.starts_with("signatures_") && !text.ends_with(": 0"));
    let counter = counted.next().expect("a counter").to_owned();
    assert_eq!(counted.next(), None);
    (counter, report(&world).expect("it was just there"))
}

#[test]
fn every_fault_has_its_counter_and_its_reason() {
    let at = |seconds: i64| Some(DtnTime(EPOCH_DTN_MS.checked_add_signed(seconds * 1000).expect("a time")));
    let failed = ReasonCode::FailedSecurityOperation.number();
    let with = |key: Key| Keys::from_iter([key]);
    let case = |signer: Key, keys: Keys, counter: &str| {
        assert_eq!(refused(Some(signer), &keys), (format!("{counter}: 1"), failed));
    };
    case(shared(1), with(shared(2)), "signatures_wrong");
    case(shared(1), with(key(1, Algorithm::Hmac512)), "signatures_without_key");
    case(shared(1), Keys::default(), "signatures_without_key");
    case(shared(1), with(shared(1).valid(None, at(-10))), "signatures_of_expired_keys");
    case(shared(1), with(shared(1).valid(at(7200), None)), "signatures_of_premature_keys");
    case(key(1, Algorithm::Ed25519), Keys::default(), "signatures_without_key");
    let mut pinned = first_use();
    pinned.pin(&moon(), key(2, Algorithm::Ed25519).public_key().expect("a private key").fingerprint());
    case(key(1, Algorithm::Ed25519), pinned, "signatures_of_changed_keys");
    let missing = ReasonCode::MissingSecurityOperation.number();
    assert_eq!(refused(None, &with(shared(1))), ("signatures_missing: 1".to_owned(), missing));
}

#[test]
fn keys_succeed_one_another_and_overlap() {
    let end = Some(DtnTime(EPOCH_DTN_MS + 100_000));
    let middle = Some(DtnTime(EPOCH_DTN_MS + 50_000));
    let both = || [shared(1).valid(None, end), shared(2).valid(middle, None)];
    let mut world = signed_chain(1, shared(1), &Keys::from_iter(both()));
    world.nodes[MOON].security = signs(both());
    world.start_all();
    let send = |world: &mut World, number| {
        world.send(
            MOON,
            number,
            "dtn://earth/in",
            Payload::Given(random(number, 500)),
            SendOptions::default(),
        );
        world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, number as usize));
    };
    send(&mut world, 1);
    world.run_for(Duration::from_secs(60));
    send(&mut world, 2);
    let keys = signatures(&world, EARTH).into_iter().flatten().filter_map(|one| one.key);
    assert_eq!(keys.collect::<Vec<_>>(), ["key 1", "key 2"]);
}

/// A bundle signed with the old key, after that has ended and another one has begun.
#[test]
fn an_old_key_is_not_told_as_another_key() {
    let end = Some(DtnTime(EPOCH_DTN_MS + 1_000));
    let bundle = signed_bundle(Algorithm::Hmac256, Scope::ALL, &[PAYLOAD_BLOCK], &moon());
    for keys in [[shared(1).valid(None, end), shared(2)], [shared(2), shared(1).valid(None, end)]] {
        let mut world = alone(Keys::from_iter(keys), SignatureCheck { required: false, ..REQUIRED });
        world.inject(0, &bundle.to_bytes(), 50);
        world.run_for(MINUTE);
        let counters = *world.agent(0).counters();
        assert_eq!((counters.signatures_of_expired_keys, counters.signatures_wrong), (1, 0));
        assert_eq!(world.nodes[0].user.inbox.len(), 1);
    }
}

/// While a false copy is being verified, the genuine one arrives. Only the false one is deleted.
#[test]
fn a_false_copy_does_not_take_the_genuine_one_with_it() {
    let genuine = signed_bundle(Algorithm::Hmac256, Scope::ALL, &[PAYLOAD_BLOCK], &moon());
    let mut forged = genuine.clone();
    forged.payload = Bytes::from_static(b"HELLO, EARTH");
    forged.head.payload.length = forged.payload.len() as u64;
    genuine.head.blocks.clone_into(&mut forged.head.blocks);
    let genuine = Bundle { payload: Bytes::from_static(b"hello, earth"), ..genuine };
    assert_eq!(genuine.payload.len(), forged.payload.len());
    let mut world = alone(Keys::from_iter([shared(1)]), REQUIRED);
    // Both are durable before the first piece is read.
    world.inject(0, &forged.to_bytes(), 1000);
    world.inject(0, &genuine.to_bytes(), 1000);
    world.run_for(MINUTE);
    assert_eq!(world.nodes[0].user.inbox.len(), 1);
    assert_eq!(world.nodes[0].user.inbox[0].2, b"hello, earth");
    assert_eq!(world.agent(0).counters().deleted_signature, 1);
}

/// Bundle with an empty payload and without a signature, whose header is too long to stay in memory.
fn empty_bundle(age_ms: Option<u64>) -> Bundle {
    let time = if age_ms.is_some() { DtnTime::UNKNOWN } else { DtnTime(EPOCH_DTN_MS) };
    let timestamp = CreationTimestamp { time, sequence: 0 };
    let destination = "dtn://earth/in".parse().expect("an endpoint");
    let mut primary = PrimaryBlock::new(destination, moon(), timestamp, 3_600_000);
    primary.report_to = format!("dtn://moon/{}", "x".repeat(600)).parse().expect("an endpoint");
    let mut head = Head::new(primary, 0);
    if let Some(age_ms) = age_ms {
        head.set(&Content::BundleAge(age_ms));
    }
    Bundle::new(head, Bytes::new())
}

/// A node that leaves its own bundles unsigned by its rules has a key, and is no stranger to itself.
#[test]
fn own_bundles_that_a_rule_leaves_unsigned_are_nothing_unusual() {
    let keys = Keys::from_iter([Key::new(
        "dtn://earth/".parse().expect("a node ID"),
        "own",
        Algorithm::Hmac256,
        &[1; 32],
    )
    .expect("a key of this length")]);
    let mut world = alone(keys, SignatureCheck { required: false, ..REQUIRED });
    world.send(0, 1, "dtn://earth/in", Payload::Given(random(1, 10)), SendOptions::default());
    world.run_for(MINUTE);
    assert_eq!(signatures(&world, 0), [None]);
    assert_eq!(world.agent(0).counters().signatures_missing, 0);
}

/// The storage loses the copy of a bundle that is being verified: the other copy is verified and delivered.
#[test]
fn a_copy_lost_during_its_verification_is_replaced_by_the_other() {
    let signed = signed_bundle(Algorithm::Hmac256, Scope::ALL, &[PAYLOAD_BLOCK], &moon());
    for (bundle, required) in [(signed, true), (empty_bundle(None), false)] {
        let mut world = alone(Keys::from_iter([shared(1)]), SignatureCheck { required, ..REQUIRED });
        for _ in 0..2 {
            world.inject(0, &bundle.to_bytes(), 1000);
        }
        // Both are durable, and the first one is being read.
        world.run_for(Duration::from_micros(1500));
        let first = world.nodes[0].disk.records.keys().rev().nth(1).copied().expect("two copies");
        world.nodes[0].disk.records.remove(&first);
        world.run_for(MINUTE);
        assert_eq!(world.agent(0).counters().deleted_storage, 1);
        assert_eq!(world.nodes[0].user.inbox.len(), 1);
        assert_eq!(world.nodes[0].user.inbox[0].2, bundle.payload);
        assert_eq!(world.agent(0).bundles(world.now).count(), 0);
    }
}

/// The older copy of an empty bundle with a long header expires while that header is being read.
#[test]
fn a_copy_that_expires_during_its_verification_is_replaced_by_the_other() {
    let mut world = alone(Keys::default(), SignatureCheck { required: false, ..REQUIRED });
    world.nodes[0].disk.latency = Duration::from_millis(10);
    for age_ms in [3_600_000 - 15, 0] {
        world.inject(0, &empty_bundle(Some(age_ms)).to_bytes(), 1000);
    }
    world.run_for(MINUTE);
    assert_eq!(world.agent(0).counters().deleted_expired, 1);
    assert_eq!(world.nodes[0].user.inbox.len(), 1);
    assert_eq!(world.agent(0).bundles(world.now).count(), 0);
}

/// If a key of the source is known, a bundle without a signature is not like any other.
#[test]
fn a_signature_that_was_taken_off_shows() {
    let mut keys = Keys::default();
    keys.pin(&moon(), key(1, Algorithm::Ed25519).public_key().expect("a private key").fingerprint());
    for (keys, is_shown) in [(keys, true), (Keys::from_iter([shared(1)]), true), (Keys::default(), false)] {
        let mut bundle = signed_bundle(Algorithm::Hmac256, Scope::ALL, &[PAYLOAD_BLOCK], &moon());
        bundle.head.blocks.clear();
        let mut world = alone(keys, SignatureCheck { required: false, ..REQUIRED });
        world.inject(0, &bundle.to_bytes(), 50);
        world.run_for(MINUTE);
        assert_eq!(world.nodes[0].user.inbox.len(), 1);
        let failure = signatures(&world, 0).remove(0).and_then(|signature| signature.failure);
        assert_eq!(failure, is_shown.then_some(SignatureFailure::Missing));
        assert_eq!(world.agent(0).counters().signatures_missing, u64::from(is_shown));
    }
}

#[test]
fn without_a_valid_key_nothing_is_sent() {
    let mut world = signed_chain(1, shared(1).valid(None, Some(DtnTime(EPOCH_DTN_MS - 1))), &Keys::default());
    world.start_all();
    world.run_for(MINUTE);
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(1, 10)), SendOptions::default());
    let failed = AppIndication::Failed { send: SendId(1), reason: SendFailure::NotSigned };
    assert_eq!(world.nodes[MOON].user.ended[&SendId(1)], failed);
    assert_eq!(world.agent(MOON).counters().sends_not_signed, 1);
    assert_eq!(world.agent(MOON).bundles(world.now).count(), 0);
}

/// Signed bundle from the moon for earth, as on the wire.
fn signed_bundle(algorithm: Algorithm, scope: Scope, targets: &[u64], source: &Eid) -> Bundle {
    signed_bundle_to("dtn://earth/in", algorithm, scope, targets, source)
}

fn signed_bundle_to(
    destination: &str,
    algorithm: Algorithm,
    scope: Scope,
    targets: &[u64],
    source: &Eid,
) -> Bundle {
    let timestamp = CreationTimestamp { time: DtnTime(EPOCH_DTN_MS), sequence: 0 };
    let destination = destination.parse().expect("an endpoint");
    let head = Head::new(PrimaryBlock::new(destination, source.clone(), timestamp, 3_600_000), 0);
    let mut bundle = Bundle::new(head, Bytes::from_static(b"hello, earth"));
    let request = SignRequest {
        source: moon(),
        targets: targets.to_vec(),
        algorithm,
        scope,
        fresh_key: None,
        flags: BlockFlags::NONE,
    };
    let keys = Keys::from_iter([key(1, algorithm)]);
    let choice = KeyChoice { keys: &keys, name: "key 1", at: DtnTime::UNKNOWN };
    sign(&mut bundle, &request, &choice).expect("a legal request");
    bundle
}

fn alone(keys: Keys, check: SignatureCheck) -> World {
    let mut world = World::new(3);
    let node = world.node("earth", |_| {});
    world.nodes[node].security = checks(keys, check);
    world.start_all();
    world.run_for(MINUTE);
    world
}

#[test]
fn a_bundle_with_any_flipped_bit_is_not_delivered() {
    for algorithm in [Algorithm::Hmac256, Algorithm::Ed25519] {
        let keys = match algorithm {
            Algorithm::Ed25519 => {
                let mut keys = Keys::default();
                keys.pin(&moon(), key(1, algorithm).public_key().expect("a private key").fingerprint());
                keys
            }
            other => Keys::from_iter([key(1, other)]),
        };
        let bundle = signed_bundle(algorithm, Scope::ALL, &[PRIMARY_BLOCK, PAYLOAD_BLOCK], &moon());
        let bytes = bundle.to_bytes();
        let mut delivered = Vec::new();
        let mut world = alone(keys.clone(), REQUIRED);
        for bit in 0..bytes.len() * 8 {
            let mut altered = bytes.to_vec();
            altered[bit / 8] ^= 1 << (bit % 8);
            let altered = Bytes::from(altered);
            world.inject(0, &altered, 7);
            world.run_for(MINUTE);
            // If no signature is required, it is not delivered as one that is valid, or that never had one.
            let mut lenient = alone(keys.clone(), SignatureCheck { required: false, ..REQUIRED });
            lenient.inject(0, &altered, 1000);
            lenient.run_for(MINUTE);
            let is_altered = |taken: &&(String, CreationTimestamp, Vec<u8>, u64)| {
                taken.0 == "dtn://moon/" && taken.2 != bundle.payload
            };
            let is_unnoticed = |one: &Option<Signature>| one.as_ref().is_none_or(|one| one.failure.is_none());
            let passed = lenient.nodes[0].user.inbox.iter().any(|taken| is_altered(&taken));
            assert!(!passed || !signatures(&lenient, 0).iter().any(is_unnoticed), "bit {bit}");
            if !world.nodes[0].user.inbox.is_empty() {
                delivered.push(bit);
                world = alone(keys.clone(), REQUIRED);
            }
        }
        // Only bits that mean nothing may change: reserved flags of the security block (RFC 9172 3.6) and of blocks.
        let harmless = |bit: &usize| {
            let mut altered = bytes.to_vec();
            altered[bit / 8] ^= 1 << (bit % 8);
            let Ok(other) = Bundle::decode(&mut Bytes::from(altered)) else { return false };
            other.payload == bundle.payload && other.head.primary == bundle.head.primary
        };
        assert!(delivered.len() < 24 && delivered.iter().all(harmless), "bits {delivered:?}");
        let mut world = alone(keys.clone(), REQUIRED);
        world.inject(0, &bytes, 7);
        world.run_for(MINUTE);
        assert_eq!(world.nodes[0].user.inbox.len(), 1);
    }
}

#[test]
fn a_signature_speaks_only_for_its_source_and_its_bundle() {
    let mars: Eid = "dtn://mars/files".parse().expect("an endpoint");
    let keys = || Keys::from_iter([shared(1)]);
    let outcome = |check: SignatureCheck, bundle: &Bundle| {
        let mut world = alone(keys(), check);
        world.inject(0, &bundle.to_bytes(), 50);
        world.run_for(MINUTE);
        let counters = *world.agent(0).counters();
        (world.nodes[0].user.inbox.len(), counters.signatures_of_others, counters.signatures_of_payload_alone)
    };
    let of_mars = signed_bundle(Algorithm::Hmac256, Scope::ALL, &[PAYLOAD_BLOCK], &mars);
    assert_eq!(outcome(REQUIRED, &of_mars), (0, 1, 0));
    let gateway = SignatureCheck { signers: vec!["dtn://mo*".into()], ..REQUIRED };
    assert_eq!(outcome(gateway, &of_mars), (1, 0, 0));
    // A signature that is not required does not have to be of the source.
    assert_eq!(outcome(SignatureCheck { required: false, ..REQUIRED }, &of_mars), (1, 1, 0));
    // The signature of a payload alone fits any bundle.
    let alone = signed_bundle(Algorithm::Hmac256, Scope::TARGET_HEADER, &[PAYLOAD_BLOCK], &moon());
    assert_eq!(outcome(REQUIRED, &alone), (0, 0, 1));
    let split = signed_bundle(Algorithm::Hmac256, Scope::TARGET, &[PRIMARY_BLOCK, PAYLOAD_BLOCK], &moon());
    assert_eq!(outcome(REQUIRED, &split), (0, 0, 1));
}

#[test]
fn wrong_signatures_are_deleted_unless_the_rule_lets_them_pass() {
    let bundle = signed_bundle(Algorithm::Hmac256, Scope::ALL, &[PAYLOAD_BLOCK], &moon());
    let mut unsigned = bundle.clone();
    unsigned.head.blocks.clear();
    let outcome = |check: SignatureCheck, bundle: &Bundle, keys: Keys| {
        let mut world = alone(keys, check);
        world.inject(0, &bundle.to_bytes(), 50);
        world.run_for(MINUTE);
        (world.nodes[0].user.inbox.len(), world.agent(0).counters().deleted_signature)
    };
    let other = || Keys::from_iter([shared(2)]);
    let lenient = SignatureCheck { required: false, ..REQUIRED };
    let passing = SignatureCheck { passes_wrong: true, ..lenient.clone() };
    assert_eq!(outcome(lenient.clone(), &bundle, other()), (0, 1));
    assert_eq!(outcome(passing, &bundle, other()), (1, 0));
    assert_eq!(outcome(lenient.clone(), &bundle, Keys::default()), (1, 0));
    assert_eq!(outcome(lenient, &unsigned, other()), (1, 0));
    assert_eq!(outcome(REQUIRED, &unsigned, other()), (0, 1));
    // Two signatures of one target break a rule.
    let mut twice = bundle.clone();
    let mut again = twice.head.blocks[0].clone();
    again.number = twice.head.free_number();
    twice.head.blocks.push(again);
    assert_eq!(outcome(REQUIRED, &twice, Keys::from_iter([shared(1)])), (0, 1));
}

/// The first key of a name is noted, and another one is refused until the operator forgets the first.
#[test]
fn the_first_key_of_a_node_is_the_only_one() {
    let mut world = alone(first_use(), REQUIRED);
    let bundle = |byte: u8, sequence: u64| {
        let mut bundle = signed_bundle(Algorithm::Ed25519, Scope::ALL, &[PAYLOAD_BLOCK], &moon());
        bundle.head.blocks.retain(|block| block.block_type != BlockType::BlockIntegrity);
        bundle.head.primary.timestamp.sequence = sequence;
        let keys = Keys::from_iter([key(byte, Algorithm::Ed25519)]);
        let request = SignRequest {
            source: moon(),
            targets: vec![PAYLOAD_BLOCK],
            algorithm: Algorithm::Ed25519,
            scope: Scope::ALL,
            fresh_key: None,
            flags: BlockFlags::NONE,
        };
        let name = format!("key {byte}");
        let choice = KeyChoice { keys: &keys, name: &name, at: DtnTime::UNKNOWN };
        sign(&mut bundle, &request, &choice).expect("a legal request");
        bundle.to_bytes()
    };
    let mut step = |byte, sequence| {
        world.inject(0, &bundle(byte, sequence), 100);
        world.run_for(MINUTE);
        let count = world.nodes[0].user.inbox.len();
        if sequence == 2 {
            let agent = world.nodes[0].agent.as_mut().expect("it is up");
            assert!(agent.engine.forget_key(&moon()));
        }
        (count, world.agent(0).counters().signatures_of_changed_keys)
    };
    assert_eq!(step(1, 0), (1, 0));
    assert_eq!(step(2, 1), (1, 1));
    assert_eq!(step(1, 2), (2, 1));
    // Forgotten: the next one is the first.
    assert_eq!(step(2, 3), (3, 1));
    assert_eq!(step(1, 4), (3, 2));
}

/// Two first keys of a name at the same time: the one whose verification ends first is noted, and the other is refused.
#[test]
fn of_two_first_keys_at_the_same_time_one_is_noted() {
    let mut world = alone(first_use(), REQUIRED);
    for (byte, sequence) in [(1, 0), (2, 1)] {
        let keys = Keys::from_iter([key(byte, Algorithm::Ed25519)]);
        let mut bundle = signed_bundle(Algorithm::Ed25519, Scope::ALL, &[PAYLOAD_BLOCK], &moon());
        bundle.head.blocks.clear();
        bundle.head.primary.timestamp.sequence = sequence;
        let request = SignRequest {
            source: moon(),
            targets: vec![PAYLOAD_BLOCK],
            algorithm: Algorithm::Ed25519,
            scope: Scope::ALL,
            fresh_key: None,
            flags: BlockFlags::NONE,
        };
        let name = format!("key {byte}");
        let choice = KeyChoice { keys: &keys, name: &name, at: DtnTime::UNKNOWN };
        sign(&mut bundle, &request, &choice).expect("a legal request");
        world.inject(0, &bundle.to_bytes(), 1000);
    }
    world.run_for(MINUTE);
    let counters = *world.agent(0).counters();
    assert_eq!((counters.keys_noted, counters.signatures_of_changed_keys), (1, 1));
    assert_eq!(world.nodes[0].user.inbox.len(), 1);
}

/// The rules change while bundles are being verified, and while others wait for it: the new rules are for all of them.
#[test]
fn rules_may_change_during_a_verification() {
    let mut world = alone(Keys::from_iter([shared(2)]), REQUIRED);
    for sequence in 0..20 {
        let mut bundle = signed_bundle(Algorithm::Hmac256, Scope::ALL, &[PAYLOAD_BLOCK], &moon());
        bundle.head.primary.timestamp.sequence = sequence;
        world.inject(0, &bundle.to_bytes(), 1000);
    }
    // All of them are durable, and the first ones are being read.
    world.run_for(Duration::from_micros(1500));
    world.nodes[0].agent.as_mut().expect("it is up").engine.set_security(Security::default());
    world.run_for(MINUTE);
    assert_eq!(world.agent(0).counters().deleted_signature, 0);
    assert_eq!(world.nodes[0].user.inbox.len(), 20);
}

/// More bundles than are verified at a time, most of which end at once.
#[test]
fn thousands_of_bundles_wait_for_their_verification() {
    let mut world = alone(Keys::from_iter([shared(1)]), REQUIRED);
    let mut bundle = signed_bundle(Algorithm::Hmac256, Scope::ALL, &[PAYLOAD_BLOCK], &moon());
    for sequence in 0..600 {
        bundle.head.primary.timestamp.sequence = sequence;
        if sequence % 100 == 1 {
            bundle.head.blocks.clear();
        }
        world.inject(0, &bundle.to_bytes(), 1000);
    }
    world.run_for(MINUTE);
    assert_eq!(world.agent(0).bundles(world.now).count(), 0);
    assert_eq!(world.agent(0).counters().deleted_signature, 599);
}

/// Both copies of a bundle are verified at the same time: one is forwarded, the genuine one if there is one.
#[test]
fn of_two_copies_that_are_verified_at_the_same_time_one_is_forwarded() {
    let genuine = signed_bundle(Algorithm::Hmac256, Scope::ALL, &[PAYLOAD_BLOCK], &moon());
    let mut unsigned = genuine.clone();
    unsigned.head.blocks.clear();
    let empty = empty_bundle(None);
    let cases = [
        ([&genuine, &genuine], true, 1),
        ([&genuine, &genuine], false, 1),
        // Long headers, which are read from the disk first.
        ([&empty, &empty], false, 1),
        // A copy that proves nothing does not keep the genuine one away, whichever comes first.
        ([&genuine, &unsigned], false, 2),
        ([&unsigned, &genuine], false, 2),
    ];
    for (copies, required, expected) in cases {
        let mut world = World::new(4);
        world.node("orbiter", |_| {});
        world.node("earth", |_| {});
        world.cable(0, 1);
        world.cable(0, 1);
        world.route(0, "dtn://earth/*", 0);
        world.nodes[0].security =
            checks(Keys::from_iter([shared(1)]), SignatureCheck { required, on_the_way: true, ..REQUIRED });
        // Two injections before the first verification has ended.
        world.nodes[0].disk.latency = Duration::from_millis(20);
        world.start_all();
        world.run_for(MINUTE);
        for copy in copies {
            world.inject(0, &copy.to_bytes(), 1000);
        }
        world.run_for(MINUTE);
        let heads = world.cables.iter().map(|cable| cable.heads.len()).sum::<usize>();
        assert_eq!(heads, expected, "{required}: {}", copies[0].head.blocks.len());
        assert_eq!(world.agent(0).bundles(world.now).count(), 0);
    }
}

/// A forged copy in the store, restored and not yet verified, does not stand for the genuine bundle: neither at a node on the way nor
/// at the destination, where no application has taken it.
#[test]
fn a_restored_bundle_that_is_to_be_verified_keeps_no_genuine_one_away() {
    for destination in ["dtn://earth/in", "dtn://orbiter/nobody"] {
        let genuine =
            signed_bundle_to(destination, Algorithm::Hmac256, Scope::ALL, &[PAYLOAD_BLOCK], &moon());
        let forged = Bundle::new(genuine.head.clone(), Bytes::from_static(b"hello, mars!"));
        let mut world = World::new(4);
        world.node("orbiter", |_| {});
        world.node("earth", |_| {});
        world.cable(0, 1);
        world.route(0, "dtn://earth/*", 0);
        world.start_all();
        world.run_for(MINUTE);
        world.cut(0);
        // Many others, which are dispatched first.
        for sequence in 1..200 {
            let mut other = forged.clone();
            other.head.blocks.clear();
            other.head.primary.source = "dtn://alice/x".parse().expect("an endpoint");
            other.head.primary.timestamp.sequence = sequence;
            world.inject(0, &other.to_bytes(), 1000);
        }
        world.inject(0, &forged.to_bytes(), 1000);
        world.run_for(MINUTE);
        world.crash(0);
        let endpoints = Endpoints { source: "dtn://moon/*".into(), destination: ALL.into() };
        let check = SignatureCheck { on_the_way: true, ..REQUIRED };
        let rule = CheckRule { endpoints, check: Some(Arc::new(check)) };
        world.nodes[0].security =
            Security { keys: Keys::from_iter([shared(1)]), check: vec![rule], ..Security::default() };
        world.start(0);
        world.run_until(MINUTE, "the start", |world| world.agent(0).is_ready());
        assert_eq!(world.agent(0).bundles(world.now).count(), 200);
        world.inject(0, &genuine.to_bytes(), 1000);
        assert_eq!(world.refusals(), [], "{destination}");
        world.run_for(MINUTE);
        assert_eq!(world.agent(0).counters().signatures_valid, 1, "{destination}");
        if destination.starts_with("dtn://earth/") {
            world.heal(0);
            world.run_until(HOUR, "all bundles", |world| has_arrived(world, 1, 200));
            let payloads = world.nodes[1].user.inbox.iter().map(|arrived| arrived.2.clone());
            assert_eq!(payloads.filter(|payload| payload[..] == genuine.payload[..]).count(), 1);
        }
    }
}

/// More bundles, and more copies of one, than may wait for their verification: those above are refused for now.
#[test]
fn a_flood_of_bundles_to_be_verified_is_refused_for_now() {
    let mut bundle = signed_bundle(Algorithm::Hmac256, Scope::ALL, &[PAYLOAD_BLOCK], &moon());
    for copies in [true, false] {
        let mut world = alone(Keys::from_iter([shared(2)]), REQUIRED);
        world.nodes[0].disk.latency = Duration::from_millis(50);
        let mut most = 0;
        for round in 0..30 {
            for sequence in 0..60 {
                bundle.head.primary.timestamp.sequence = if copies { 0 } else { round * 60 + sequence };
                world.inject(0, &bundle.to_bytes(), 1000);
            }
            world.run_for(Duration::from_millis(100));
            most = most.max(world.agent(0).bundles(world.now).count());
        }
        world.run_for(MINUTE);
        let (refused, deleted) =
            (world.agent(0).counters().refused_beyond_checks, world.agent(0).counters().deleted_signature);
        assert!(
            refused > 0 && deleted > 0,
            "copies {copies}: {refused} refused, {deleted} deleted, {most} held"
        );
        assert_eq!(world.agent(0).bundles(world.now).count(), 0);
    }
}

/// Without a signature, a bundle is refused at its header where one is required; its payload does not come. Fragments that
/// need not have the signature are received.
#[test]
fn what_is_not_signed_is_refused_before_its_payload_arrives() {
    let mut world = chain_with(1, |_| {});
    world.nodes[EARTH].security = checks(Keys::from_iter([shared(1)]), REQUIRED);
    world.start_all();
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(1, 200_000)), SendOptions::default());
    world.run_for(HOUR);
    let counters = *world.agent(EARTH).counters();
    assert_eq!((counters.deleted_signature, counters.signatures_missing, counters.received), (1, 1, 0));
    assert!(world.cables[1].carried < 20_000, "{} bytes", world.cables[1].carried);
}

/// A signature would tell the source of a bundle that has none.
#[test]
fn bundles_without_a_source_are_not_signed() {
    let mut world = signed_chain(1, shared(1), &Keys::default());
    for node in [ORBITER, EARTH] {
        world.nodes[node].security = Security::default();
    }
    world.start_all();
    let options = SendOptions { source: Some("dtn:none".into()), ..SendOptions::default() };
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(1, 100)), options);
    world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
    assert_eq!(world.agent(MOON).counters().signed, 0);
    assert!(
        world.cables[0]
            .heads
            .iter()
            .all(|head| head.blocks.iter().all(|block| { block.block_type != BlockType::BlockIntegrity }))
    );
}
