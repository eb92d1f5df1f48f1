//! Encryption by the rules of nodes: made by the source after the signature, taken off by the destination before it is
//! verified, whatever happens between.

use super::forwarding::{EARTH, HOUR, MINUTE, MOON, ORBITER, chain_with, has_arrived, random};
use super::world::{EPOCH_DTN_MS, Payload, World};
use crate::bp::agent::{
    CheckRule, EncryptRule, EncryptedRule, Endpoints, KeyName, RetentionReason, Security, SignRule,
    SignatureCheck,
};
use crate::bp::bpsec::{
    Algorithm, EncryptRequest, Key, KeyChoice, Keys, PAYLOAD_BLOCK, Scope, SignRequest, TagPlace, encrypt,
    sign,
};
use crate::bp::{
    Block, BlockFlags, BlockType, Bundle, BundleFlags, CrcType, CreationTimestamp, DtnTime, Eid, Head,
    PrimaryBlock, ReasonCode, v6,
};
use crate::rng::Rng;
use crate::service::{
    AppIndication, BundleVersion, DecryptionFailure, ManagementIndication, ReportedStatus, SendFailure,
    SendId, SendOptions,
};
use crate::time::Duration;
use bytes::Bytes;
use std::sync::Arc;

fn node(name: &str) -> Eid {
    format!("dtn://{name}/").parse().expect("a node ID")
}

pub(super) fn key(byte: u8, algorithm: Algorithm) -> Key {
    let length = if algorithm == Algorithm::Aes128Gcm { 16 } else { 32 };
    Key::new(node("moon"), &format!("key {byte}"), algorithm, &vec![byte; length])
        .expect("a key of this length")
}

pub(super) fn endpoints(source: &str, destination: &str) -> Endpoints {
    Endpoints { source: source.into(), destination: destination.into() }
}

fn everything() -> Endpoints {
    endpoints("*", "*")
}

/// Keys and rules of a node that signs with a shared key, and encrypts with the others.
pub(super) fn encrypts(keys: impl IntoIterator<Item = Key>) -> Security {
    let mut security = Security {
        keys: Keys::from_iter(keys),
        sign: vec![SignRule { endpoints: everything(), key: Some(KeyName::Any) }],
        encrypt: vec![EncryptRule { endpoints: everything(), key: Some(KeyName::Any) }],
        ..Security::default()
    };
    security.keys.add(key(9, Algorithm::Hmac256));
    security
}

/// Keys and rules of a node that requires both.
pub(super) fn requires(keys: impl IntoIterator<Item = Key>) -> Security {
    let check =
        SignatureCheck { required: true, on_the_way: false, signers: Vec::new(), passes_wrong: false };
    let mut security = Security {
        keys: Keys::from_iter(keys),
        check: vec![CheckRule { endpoints: everything(), check: Some(Arc::new(check)) }],
        encrypted: vec![EncryptedRule { endpoints: everything(), required: true }],
        ..Security::default()
    };
    security.keys.add(key(9, Algorithm::Hmac256));
    security
}

/// A chain in which the first node encrypts, the second has no key, and the third decrypts with these keys.
fn encrypted_chain(seed: u64, encrypting: Key, keys: impl IntoIterator<Item = Key>) -> World {
    let mut world = chain_with(seed, |config| config.reports.deletion = true);
    world.nodes[MOON].security = encrypts([encrypting]);
    world.nodes[EARTH].security = requires(keys);
    world
}

/// Bytes of all records of a disk.
fn on_disk(world: &World, node: usize) -> Vec<u8> {
    let records = world.nodes[node].disk.records.values();
    records.flat_map(|record| record.read(0, record.length)).collect()
}

fn contains(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|window| window == part)
}

#[test]
fn encrypted_bundles_arrive_whole_and_in_fragments_in_pieces_of_any_size() {
    let mut rng = Rng::new(12);
    let mut fragmented = 0;
    for (round, algorithm) in
        (0..12).zip([Algorithm::Aes128Gcm, Algorithm::Aes256Gcm, Algorithm::KeyWrap].iter().cycle())
    {
        let mut world = encrypted_chain(round, key(1, *algorithm), [key(1, *algorithm)]);
        for cable in 0..2 {
            world.cables[cable].window = 1 + rng.below(5000);
            world.cables[cable].cut_at = rng.chance(0.7).then(|| (1000 + rng.below(9000), MINUTE));
        }
        world.start_all();
        let payload = random(round, 8000 + rng.below(12_000) as usize);
        // A long header stays on the disk.
        let report_to = rng.chance(0.3).then(|| format!("dtn://moon/{}", "x".repeat(600)));
        let options = SendOptions { report_to, ..SendOptions::default() };
        world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), options);
        world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
        assert_eq!(world.nodes[EARTH].user.inbox[0].2, payload);
        let (source, end) = (*world.agent(MOON).counters(), *world.agent(EARTH).counters());
        assert_eq!((source.signed, source.encrypted), (1, 1));
        assert_eq!((end.decrypted, end.signatures_valid), (1, 1));
        for head in world.cables.iter().flat_map(|cable| &cable.heads) {
            assert!(head.is_encrypted(PAYLOAD_BLOCK), "a fragment without its block: {head:?}");
            let mut signatures =
                head.blocks.iter().filter(|block| block.block_type == BlockType::BlockIntegrity);
            assert!(signatures.all(|block| head.is_encrypted(block.number)));
        }
        let is_part = |head: &Head| head.primary.fragment.is_some();
        fragmented += u64::from(world.cables.iter().flat_map(|cable| &cable.heads).any(is_part));
        world.run_for(MINUTE);
        for node in [MOON, ORBITER, EARTH] {
            assert_eq!(world.agent(node).bundles(world.now).count(), 0, "something is left over");
        }
    }
    assert!(fragmented > 2, "{fragmented} of 12");
}

/// Ciphertext is in every store, also in that of the source and of the destination.
#[test]
fn no_store_has_the_plaintext() {
    let mut world = encrypted_chain(1, key(1, Algorithm::Aes256Gcm), [key(1, Algorithm::Aes256Gcm)]);
    world.start_all();
    let text = Bytes::from_static(b"the transmitter is below the third oak, and nobody may know");
    let mut has_bundle = [false; 3];
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(text.clone()), SendOptions::default());
    for _ in 0..2000 {
        world.run_for(Duration::from_millis(5));
        for node in [MOON, ORBITER, EARTH] {
            let disk = on_disk(&world, node);
            has_bundle[node] |= contains(&disk, b"//earth/in");
            assert!(!contains(&disk, &text[..20]), "node {node}");
        }
    }
    assert_eq!((world.nodes[EARTH].user.inbox.len(), has_bundle), (1, [true; 3]));
}

/// The power of the source, the relay or the destination fails at some instant. What arrives is what was sent.
#[test]
fn no_crash_leaves_a_bundle_that_is_half_encrypted() {
    let mut before_acceptance = 0;
    for (seed, at_ms) in (1..).zip((1..4000).step_by(397)) {
        for node in [MOON, ORBITER, EARTH] {
            let algorithm = if seed % 2 == 0 { Algorithm::Aes256Gcm } else { Algorithm::KeyWrap };
            let mut world = encrypted_chain(seed, key(1, algorithm), [key(1, algorithm)]);
            world.strict = false;
            world.start_all();
            let payload = random(seed, 9000);
            let options = SendOptions::default();
            world.send(MOON, 1, "dtn://earth/in", Payload::Given(payload.clone()), options);
            world.run_for(Duration::from_millis(at_ms));
            let is_accepted =
                world.nodes[MOON].user.log.iter().any(|said| matches!(said, AppIndication::Accepted { .. }));
            world.crash(node);
            world.run_for(MINUTE);
            world.start(node);
            world.run_for(HOUR);
            let arrived = &world.nodes[EARTH].user.inbox;
            before_acceptance += u64::from(!is_accepted);
            assert!(
                arrived.len() <= 1 && (arrived.len() == 1 || !is_accepted),
                "crash of {node} at {at_ms} ms"
            );
            assert!(arrived.iter().all(|taken| taken.2 == payload));
        }
    }
    assert!(before_acceptance > 0, "no crash was early enough");
}

/// Sends one bundle and lets the destination decrypt it with other keys. Returns the counter of the failure there, and the
/// code of the report.
fn refused(source: Security, keys: Vec<Key>) -> (String, u64) {
    let mut world = encrypted_chain(1, key(1, Algorithm::Aes256Gcm), keys);
    world.nodes[MOON].security = source;
    // Reports come in plaintext.
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
    let is_failure =
        |text: &&str| text.starts_with("decryptions_") || text.starts_with("deleted_not_encrypted");
    let mut counted = counters.filter(|text| is_failure(text) && !text.ends_with(": 0"));
    let counter = counted.next().expect("a counter").to_owned();
    assert_eq!(counted.next(), None);
    (counter, report(&world).expect("it was just there"))
}

#[test]
fn every_fault_has_its_counter_and_its_reason() {
    let at = |seconds: i64| Some(DtnTime(EPOCH_DTN_MS.checked_add_signed(seconds * 1000).expect("a time")));
    let failed = ReasonCode::FailedSecurityOperation.number();
    let gcm = |byte| key(byte, Algorithm::Aes256Gcm);
    let case = |keys: Vec<Key>, counter: &str| {
        assert_eq!(refused(encrypts([gcm(1)]), keys), (format!("{counter}: 1"), failed));
    };
    case(vec![gcm(2)], "decryptions_wrong");
    case(vec![], "decryptions_without_key");
    case(vec![key(1, Algorithm::Aes128Gcm)], "decryptions_without_key");
    case(vec![gcm(1).valid(None, at(-10))], "decryptions_of_expired_keys");
    case(vec![gcm(1).valid(at(7200), None)], "decryptions_of_premature_keys");
    // An old key is not told as another one, whatever the order.
    case(vec![gcm(1).valid(None, at(-10)), gcm(2)], "decryptions_of_expired_keys");
    case(vec![gcm(2), gcm(1).valid(None, at(-10))], "decryptions_of_expired_keys");
    let wrapped = encrypts([key(1, Algorithm::KeyWrap)]);
    let outcome = refused(wrapped, vec![key(2, Algorithm::KeyWrap)]);
    assert_eq!(outcome, ("decryptions_wrong: 1".to_owned(), failed));
    let plain = Security { encrypt: Vec::new(), ..encrypts([gcm(1)]) };
    let missing = ReasonCode::MissingSecurityOperation.number();
    assert_eq!(refused(plain, vec![gcm(1)]), ("deleted_not_encrypted: 1".to_owned(), missing));
}

#[test]
fn keys_succeed_one_another_and_overlap() {
    let end = Some(DtnTime(EPOCH_DTN_MS + 100_000));
    let middle = Some(DtnTime(EPOCH_DTN_MS + 50_000));
    let gcm = |byte| key(byte, Algorithm::Aes256Gcm);
    let both = || [gcm(1).valid(None, end), gcm(2).valid(middle, None)];
    let mut world = encrypted_chain(1, gcm(1), both());
    world.nodes[MOON].security = encrypts(both());
    world.start_all();
    for number in [1, 2] {
        let payload = Payload::Given(random(number, 500));
        world.send(MOON, number, "dtn://earth/in", payload, SendOptions::default());
        world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, number as usize));
        world.run_for(Duration::from_secs(60));
    }
    // Without the second key, only the first bundle arrives; after the end of the first key, none that was encrypted with it.
    world.nodes[EARTH].agent.as_mut().expect("it is up").engine.set_security(requires([gcm(1)]));
    world.send(MOON, 3, "dtn://earth/in", Payload::Given(random(3, 500)), SendOptions::default());
    world.run_for(MINUTE);
    assert_eq!(world.nodes[EARTH].user.inbox.len(), 2);
    assert_eq!(world.agent(EARTH).counters().decryptions_wrong, 1);
}

#[test]
fn what_must_be_encrypted_and_cannot_be_is_not_sent() {
    let gcm = |byte| key(byte, Algorithm::Aes256Gcm);
    let expired = gcm(1).valid(None, Some(DtnTime(EPOCH_DTN_MS - 1)));
    let named = |name: &str| EncryptRule { endpoints: everything(), key: Some(KeyName::Named(name.into())) };
    let other = Security { encrypt: vec![named("another")], ..encrypts([gcm(1)]) };
    let version6 = SendOptions { version: Some(BundleVersion::V6), ..SendOptions::default() };
    let anonymous = SendOptions { source: Some("dtn:none".into()), ..SendOptions::default() };
    let cases = [
        (encrypts([expired]), SendOptions::default()),
        (encrypts([]), SendOptions::default()),
        (other, SendOptions::default()),
        (encrypts([gcm(1)]), version6),
        (encrypts([gcm(1)]), anonymous),
    ];
    for (security, options) in cases {
        let mut world = encrypted_chain(1, gcm(1), []);
        world.nodes[MOON].security = security;
        world.start_all();
        world.run_for(MINUTE);
        world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(1, 10)), options);
        let failed = AppIndication::Failed { send: SendId(1), reason: SendFailure::NotEncrypted };
        assert_eq!(world.nodes[MOON].user.ended[&SendId(1)], failed);
        assert_eq!(world.agent(MOON).counters().sends_not_encrypted, 1);
        assert_eq!(world.agent(MOON).bundles(world.now).count(), 0);
    }
}

/// The first rule that matches decides: most bundles are encrypted, and those to one endpoint are not.
#[test]
fn rules_say_which_bundles_are_encrypted() {
    let gcm = || key(1, Algorithm::Aes256Gcm);
    let mut world = encrypted_chain(1, gcm(), [gcm()]);
    let plain = endpoints("dtn://moon/weather", "dtn://earth/*");
    world.nodes[MOON].security.encrypt.insert(0, EncryptRule { endpoints: plain.clone(), key: None });
    world.nodes[EARTH].security.encrypted.insert(0, EncryptedRule { endpoints: plain, required: false });
    world.start_all();
    for (number, service) in [(1, "weather"), (2, "files")] {
        let options = SendOptions { source: Some(format!("dtn://moon/{service}")), ..SendOptions::default() };
        world.send(MOON, number, "dtn://earth/in", Payload::Given(random(number, 100)), options);
        world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, number as usize));
    }
    let encrypted: Vec<_> =
        world.cables[0].heads.iter().map(|head| head.is_encrypted(PAYLOAD_BLOCK)).collect();
    assert_eq!(encrypted, [false, true]);
    assert_eq!(world.agent(EARTH).counters().decrypted, 1);
}

/// Bundle from the moon for earth as another implementation may send it.
fn foreign(tag: TagPlace, algorithm: Algorithm) -> Bundle {
    foreign_by(tag, key(1, algorithm), Scope::ALL)
}

/// The same, encrypted by the node that has this key.
fn foreign_by(tag: TagPlace, encrypting: Key, scope: Scope) -> Bundle {
    let timestamp = CreationTimestamp { time: DtnTime(EPOCH_DTN_MS), sequence: 0 };
    let destination = "dtn://earth/in".parse().expect("an endpoint");
    let head = Head::new(PrimaryBlock::new(destination, node("moon"), timestamp, 3_600_000), 0);
    let mut bundle = Bundle::new(head, Bytes::from_static(b"hello, earth"));
    let keys = Keys::from_iter([key(9, Algorithm::Hmac256), encrypting.clone()]);
    let choice = |name| KeyChoice { keys: &keys, name, at: DtnTime::UNKNOWN };
    let request = SignRequest {
        source: node("moon"),
        targets: vec![PAYLOAD_BLOCK],
        algorithm: Algorithm::Hmac256,
        scope: Scope::ALL,
        fresh_key: None,
        flags: BlockFlags::NONE,
    };
    sign(&mut bundle, &request, &choice("key 9")).expect("a legal request");
    let request = EncryptRequest {
        source: encrypting.source().clone(),
        targets: vec![PAYLOAD_BLOCK],
        algorithm: encrypting.algorithm(),
        scope,
        tag,
        fresh_key: None,
        flags: BlockFlags::NONE,
    };
    let mut count = 0;
    let next_iv = || {
        count += 1;
        [count; 12]
    };
    encrypt(&mut bundle, &request, &choice(encrypting.name()), next_iv).expect("a legal request");
    bundle
}

fn alone(security: Security) -> World {
    let mut world = World::new(3);
    let node = world.node("earth", |_| {});
    world.nodes[node].security = security;
    world.start_all();
    world.run_for(MINUTE);
    world
}

/// The tag may be in the block or behind the ciphertext, which is longer then than what is delivered.
#[test]
fn tags_are_read_in_either_place() {
    for tag in [TagPlace::Result, TagPlace::Ciphertext] {
        for algorithm in [Algorithm::Aes128Gcm, Algorithm::Aes256Gcm] {
            let mut world = alone(requires([key(1, algorithm)]));
            world.inject(0, &foreign(tag, algorithm).to_bytes(), 7);
            world.run_for(MINUTE);
            assert_eq!(world.nodes[0].user.inbox[0].2, b"hello, earth");
            let lengths = world.nodes[0].user.log.iter().filter_map(|said| match said {
                AppIndication::Delivered { length, .. } => Some(*length),
                _ => None,
            });
            assert_eq!(lengths.collect::<Vec<_>>(), [12]);
        }
    }
}

/// With any flipped bit, an encrypted bundle is not delivered, or is what was sent.
#[test]
fn nothing_altered_is_delivered_as_plaintext() {
    for tag in [TagPlace::Result, TagPlace::Ciphertext] {
        let bytes = foreign(tag, Algorithm::Aes256Gcm).to_bytes();
        for bit in 0..bytes.len() * 8 {
            let mut altered = bytes.to_vec();
            altered[bit / 8] ^= 1 << (bit % 8);
            // No rule requires anything: encryption alone protects.
            let keys = [key(1, Algorithm::Aes256Gcm), key(9, Algorithm::Hmac256)];
            let mut world = alone(Security { keys: Keys::from_iter(keys), ..Security::default() });
            world.inject(0, &Bytes::from(altered), 1000);
            world.run_for(MINUTE);
            for taken in &world.nodes[0].user.inbox {
                assert!(taken.2 == b"hello, earth" || !is_announced(&bytes, bit), "bit {bit}: {taken:?}");
            }
        }
    }
}

/// False for bits of the block type, the target and the lengths that say that the payload is encrypted: a stranger can send
/// plaintext, too, which a rule has to forbid.
fn is_announced(bytes: &Bytes, bit: usize) -> bool {
    let mut altered = bytes.to_vec();
    altered[bit / 8] ^= 1 << (bit % 8);
    let Ok(bundle) = Bundle::decode(&mut Bytes::from(altered)) else { return true };
    bundle.head.is_encrypted(PAYLOAD_BLOCK)
}

/// Without keys and rules, ciphertext is not passed to an application for plaintext.
#[test]
fn ciphertext_is_never_delivered() {
    let mut world = alone(Security::default());
    world.inject(0, &foreign(TagPlace::Result, Algorithm::Aes256Gcm).to_bytes(), 100);
    world.run_for(MINUTE);
    assert!(world.nodes[0].user.inbox.is_empty());
    assert_eq!(world.agent(0).counters().decryptions_without_key, 1);
    assert_eq!(world.agent(0).bundles(world.now).count(), 0);
    let told = |said: &ManagementIndication| match said {
        ManagementIndication::DecryptionFailed { encrypted_by, failure, .. } => {
            Some((encrypted_by.clone(), *failure))
        }
        _ => None,
    };
    let told: Vec<_> = world.nodes[0].user.events.iter().filter_map(told).collect();
    assert_eq!(told, [(Some("dtn://moon/".to_owned()), DecryptionFailure::NoKey)]);
}

/// Plaintext is refused at its header, before the payload has come, and fragments as well.
#[test]
fn plaintext_is_refused_before_its_payload_arrives() {
    let mut world = encrypted_chain(1, key(1, Algorithm::Aes256Gcm), [key(1, Algorithm::Aes256Gcm)]);
    world.nodes[MOON].security.encrypt.clear();
    world.start_all();
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(1, 200_000)), SendOptions::default());
    world.run_for(HOUR);
    let counters = *world.agent(EARTH).counters();
    assert_eq!((counters.deleted_not_encrypted, counters.received), (1, 0));
    assert!(world.cables[1].carried < 20_000, "{} bytes", world.cables[1].carried);
}

/// A node does not refuse its own plaintext, such as a ping to itself.
#[test]
fn own_bundles_need_not_be_encrypted() {
    let gcm = || key(1, Algorithm::Aes256Gcm);
    let rule = EncryptedRule { endpoints: everything(), required: true };
    let mut world =
        alone(Security { keys: Keys::from_iter([gcm()]), encrypted: vec![rule], ..Security::default() });
    world.send(0, 1, "dtn://earth/in", Payload::Given(random(1, 10)), SendOptions::default());
    world.run_for(MINUTE);
    assert_eq!(world.nodes[0].user.inbox.len(), 1);
    assert_eq!(world.agent(0).counters().deleted_not_encrypted, 0);
}

/// Nothing that is encrypted in version 6 can be read here, so that no application gets it for plaintext; and where encryption
/// is required, plaintext of version 6 is refused.
#[test]
fn bundles_of_version_6_are_not_delivered_encrypted_or_where_that_is_required() {
    let destination = || "dtn://earth/in".parse().expect("an endpoint");
    let mut primary = v6::PrimaryBlock::new(destination(), node("moon"), Eid::Null, false);
    primary.flags = BundleFlags::SINGLETON;
    primary.created_s = EPOCH_DTN_MS / 1000;
    primary.lifetime_s = 3600;
    let head = v6::Head::new(primary, 5);
    let mut encrypted = head.clone();
    encrypted.blocks.push(v6::Block {
        block_type: v6::BlockType::PayloadConfidentiality,
        flags: BlockFlags(0),
        references: None,
        data: random(2, 20),
    });
    for (head, required, expected) in
        [(&head, false, (1, 0, 0)), (&encrypted, false, (0, 1, 0)), (&head, true, (0, 0, 1))]
    {
        let rule = EncryptedRule { endpoints: everything(), required };
        let mut world = alone(Security { encrypted: vec![rule], ..Security::default() });
        let mut bytes = bytes::BytesMut::from(&head.to_bytes()[..]);
        bytes.extend_from_slice(b"hello");
        world.inject(0, &bytes.freeze(), 1000);
        world.run_for(MINUTE);
        let counters = *world.agent(0).counters();
        let outcome = (
            world.nodes[0].user.inbox.len(),
            counters.decryptions_unsupported,
            counters.deleted_not_encrypted,
        );
        assert_eq!(outcome, expected);
    }
}

/// Parts of a payload in plaintext and in ciphertext are parts of two payloads, whatever arrives first, and however long the
/// header is.
#[test]
fn no_fragment_in_plaintext_becomes_a_part_of_an_encrypted_payload() {
    for (is_long, restarts) in [(false, false), (true, false), (true, true)] {
        let mut whole = foreign(TagPlace::Result, Algorithm::Aes256Gcm);
        if is_long {
            whole.head.blocks.insert(
                0,
                Block {
                    block_type: BlockType::Unknown(200),
                    number: 99,
                    flags: BlockFlags::REPLICATE,
                    crc: CrcType::None,
                    data: random(3, 2000),
                },
            );
        }
        let part = |head: &Head, payload: &Bytes, from: usize, to: usize| {
            let head = head.fragment(from as u64, (to - from) as u64);
            Bundle::new(head, payload.slice(from..to)).to_bytes()
        };
        let mut plain = whole.head.clone();
        plain.blocks.retain(|block| block.block_type == BlockType::Unknown(200));
        let forged = Bytes::from_static(b"hello, mars!");
        let keys = [key(1, Algorithm::Aes256Gcm), key(9, Algorithm::Hmac256)];
        let mut world = alone(Security { keys: Keys::from_iter(keys), ..Security::default() });
        for message in [
            part(&plain, &forged, 0, 9),
            part(&whole.head, &whole.payload, 6, 12),
            part(&whole.head, &whole.payload, 0, 6),
        ] {
            world.inject(0, &message, 5000);
            world.run_for(MINUTE);
            if restarts {
                world.crash(0);
                world.start(0);
                world.run_for(MINUTE);
            }
        }
        let inbox: Vec<_> = world.nodes[0].user.inbox.iter().map(|taken| &taken.2[..]).collect();
        assert_eq!(inbox, [b"hello, earth"]);
        assert_eq!(world.agent(0).bundles(world.now).count(), 1, "the forged part waits for others");
        world.inject(0, &whole.to_bytes(), 5000);
        world.run_for(MINUTE);
        assert_eq!(world.nodes[0].user.inbox.len(), 1, "it was delivered before");
    }
}

/// In version 6, too, and as nothing can be decrypted there, nothing is delivered.
#[test]
fn fragments_of_version_6_in_plaintext_and_in_ciphertext_are_not_delivered() {
    let destination = "dtn://earth/in".parse().expect("an endpoint");
    let mut primary = v6::PrimaryBlock::new(destination, node("moon"), Eid::Null, false);
    primary.flags = BundleFlags::SINGLETON;
    primary.created_s = EPOCH_DTN_MS / 1000;
    primary.lifetime_s = 3600;
    let plain = v6::Head::new(primary, 10);
    let mut encrypted = plain.clone();
    encrypted.blocks.push(v6::Block {
        block_type: v6::BlockType::PayloadConfidentiality,
        flags: BlockFlags(0),
        references: None,
        data: random(2, 20),
    });
    let mut world = alone(Security::default());
    for (head, offset) in [(&plain, 0), (&encrypted, 5)] {
        let mut bytes = bytes::BytesMut::from(&head.fragment(offset, 5).to_bytes()[..]);
        bytes.extend_from_slice(b"hello");
        world.inject(0, &bytes.freeze(), 1000);
        world.run_for(MINUTE);
    }
    assert!(world.nodes[0].user.inbox.is_empty());
    assert_eq!(world.agent(0).counters().decryptions_unsupported, 1);
}

/// Somebody with another key cannot use the name of a source from which encryption is required.
#[test]
fn required_encryption_is_that_of_the_source() {
    let algorithm = Algorithm::Aes256Gcm;
    let carols = Key::new(node("carol"), "club", algorithm, &[7; 32]).expect("a key of this length");
    let keys = || [key(1, algorithm), key(9, Algorithm::Hmac256), carols.clone()];
    for (encrypting, required, delivered) in
        [(key(1, algorithm), true, true), (carols.clone(), true, false), (carols.clone(), false, true)]
    {
        let rule = EncryptedRule { endpoints: endpoints("dtn://moon/*", "*"), required };
        let security = Security { keys: Keys::from_iter(keys()), ..Security::default() };
        let mut world = alone(Security { encrypted: vec![rule], ..security });
        world.inject(0, &foreign_by(TagPlace::Result, encrypting, Scope::ALL).to_bytes(), 1000);
        world.run_for(MINUTE);
        assert_eq!(world.nodes[0].user.inbox.len(), usize::from(delivered));
        let refused = world.agent(0).counters().decryptions_of_other_sources;
        assert_eq!(refused, u64::from(!delivered));
    }
}

/// Otherwise ciphertext could be moved to another bundle.
#[test]
fn encryption_covers_the_primary_block() {
    let scopes = [
        (Scope::ALL, true),
        (Scope::PRIMARY_BLOCK, true),
        (Scope::TARGET, false),
        (Scope::TARGET_HEADER, false),
        (Scope::SECURITY_HEADER, false),
    ];
    for (scope, delivered) in scopes {
        let keys = [key(1, Algorithm::Aes256Gcm), key(9, Algorithm::Hmac256)];
        let mut world = alone(Security { keys: Keys::from_iter(keys), ..Security::default() });
        let bundle = foreign_by(TagPlace::Result, key(1, Algorithm::Aes256Gcm), scope);
        world.inject(0, &bundle.to_bytes(), 1000);
        world.run_for(MINUTE);
        assert_eq!(world.nodes[0].user.inbox.len(), usize::from(delivered), "{scope:?}");
        let refused = world.agent(0).counters().decryptions_of_payload_alone;
        assert_eq!(refused, u64::from(!delivered), "{scope:?}");
    }
}

/// Custody signals of version 6 cannot be encrypted: they leave in plaintext and are accepted, whatever the rules for bundles.
#[test]
fn rules_for_encryption_leave_administrative_records_out() {
    let gcm = || key(1, Algorithm::Aes256Gcm);
    let mut world = chain_with(1, |_| {});
    world.nodes[EARTH].security = Security { sign: Vec::new(), ..encrypts([gcm()]) };
    let rule = EncryptedRule { endpoints: everything(), required: true };
    world.nodes[MOON].security = Security { encrypted: vec![rule], ..Security::default() };
    world.start_all();
    let options = SendOptions { custody: true, ..SendOptions::default() };
    world.send(MOON, 1, "dtn://earth/in", Payload::Given(random(1, 3000)), options);
    let is_sent = |world: &World| world.nodes[MOON].user.ended.contains_key(&SendId(1));
    world.run_until(HOUR, "the end of custody", is_sent);
    let sent = AppIndication::Sent { send: SendId(1) };
    assert_eq!(world.nodes[MOON].user.ended[&SendId(1)], sent);
    let counters = *world.agent(EARTH).counters();
    assert_eq!((counters.sends_not_encrypted, counters.custody_signals_unsent), (0, 0));
    assert_eq!(world.agent(MOON).counters().deleted_not_encrypted, 0);
}

/// A node that has a bundle waiting for its application, after a crash and an hour's half, and with other keys since then.
fn restarted(clock_ms: Option<i64>, before: Security, after: Security) -> World {
    let mut world = World::new(3);
    let node = world.node("earth", |_| {});
    world.nodes[node].security = before;
    world.nodes[node].clock_ms = clock_ms;
    world.nodes[node].user.takes = false;
    world.start_all();
    world.run_for(MINUTE);
    world.inject(node, &foreign(TagPlace::Result, Algorithm::Aes256Gcm).to_bytes(), 1000);
    world.run_for(MINUTE);
    assert_eq!(world.agent(node).counters().decrypted, 1);
    world.crash(node);
    world.run_for(30 * MINUTE);
    world.nodes[node].security = after;
    world.nodes[node].user.takes = true;
    world
}

fn times(seconds: u64) -> Option<DtnTime> {
    Some(DtnTime(EPOCH_DTN_MS + seconds * 1000))
}

/// A key is judged by the time at which the bundle has arrived, not by that at which it is read.
#[test]
fn a_restart_after_the_end_of_a_key_costs_no_bundle() {
    let security = || requires([key(1, Algorithm::Aes256Gcm).valid(None, times(600))]);
    // After the start the node has its clock, or none yet, or one that is a day behind.
    for clock_ms in [Some(0), None, Some(-86_400_000)] {
        let mut world = restarted(Some(0), security(), security());
        world.nodes[0].clock_ms = clock_ms;
        world.start(0);
        world.run_for(MINUTE);
        let inbox: Vec<_> = world.nodes[0].user.inbox.iter().map(|taken| &taken.2[..]).collect();
        assert_eq!(inbox, [b"hello, earth"], "{clock_ms:?}");
    }
}

/// True if every bundle that the first node has waits for its key.
fn waits_for_its_key(world: &World) -> bool {
    let mut bundles = world.agent(0).bundles(world.now);
    bundles.all(|bundle| matches!(bundle.why, RetentionReason::WithoutKey(_)))
}

/// Keys are replaced while a bundle arrives in fragments, of which one was accepted before.
#[test]
fn a_reload_without_the_key_costs_no_bundle() {
    let gcm = |byte| key(byte, Algorithm::Aes256Gcm);
    for without in [requires([]), requires([gcm(2)])] {
        let mut world = alone(requires([gcm(1)]));
        let set = |world: &mut World, security| {
            world.nodes[0].agent.as_mut().expect("it is up").engine.set_security(security);
            world.tell_clock(0);
        };
        let whole = foreign(TagPlace::Result, Algorithm::Aes256Gcm);
        for (from, to) in [(0, 6), (6, 12)] {
            let head = whole.head.fragment(from as u64, (to - from) as u64);
            world.inject(0, &Bundle::new(head, whole.payload.slice(from..to)).to_bytes(), 1000);
            world.run_for(MINUTE);
            set(&mut world, without.clone());
            world.run_for(MINUTE);
        }
        assert!(world.nodes[0].user.inbox.is_empty() && waits_for_its_key(&world));
        assert_eq!(world.agent(0).bundles(world.now).count(), 2);
        set(&mut world, requires([gcm(1)]));
        world.run_for(MINUTE);
        let inbox: Vec<_> = world.nodes[0].user.inbox.iter().map(|taken| &taken.2[..]).collect();
        assert_eq!(inbox, [b"hello, earth"]);
        assert_eq!(world.agent(0).bundles(world.now).count(), 0);
    }
}

/// A bundle that waits for its key does not keep a copy away that needs none of the missing keys. A false copy changes nothing.
#[test]
fn another_copy_of_a_bundle_that_waits_for_its_key_is_delivered() {
    let gcm = |byte| key(byte, Algorithm::Aes256Gcm);
    let mut world = restarted(Some(0), requires([gcm(1)]), requires([gcm(2)]));
    world.start(0);
    world.run_for(MINUTE);
    for (byte, expected) in [(3, 0), (2, 1)] {
        world.inject(0, &foreign_by(TagPlace::Result, gcm(byte), Scope::ALL).to_bytes(), 1000);
        world.run_for(MINUTE);
        assert_eq!(world.nodes[0].user.inbox.len(), expected, "a copy with key {byte}");
        assert_eq!(world.agent(0).bundles(world.now).count(), 1 - expected);
        assert!(waits_for_its_key(&world));
    }
    assert_eq!(world.agent(0).counters().decryptions_wrong, 1);
}

/// Keys are set while a false copy is verified, and the genuine one is there, too.
#[test]
fn a_genuine_copy_beside_a_false_one_is_delivered_when_keys_were_set_meanwhile() {
    let gcm = |byte| key(byte, Algorithm::Aes256Gcm);
    let mut world = alone(requires([gcm(1)]));
    for byte in [3, 4, 1] {
        world.inject(0, &foreign_by(TagPlace::Result, gcm(byte), Scope::ALL).to_bytes(), 1000);
    }
    world.nodes[0].agent.as_mut().expect("it is up").engine.set_security(requires([gcm(1)]));
    world.tell_clock(0);
    world.run_for(MINUTE);
    assert_eq!(world.agent(0).counters().checks_postponed, 0);
    assert_eq!(world.nodes[0].user.inbox.len(), 1);
    assert_eq!(world.agent(0).bundles(world.now).count(), 0);
}

/// The key is missing after the restart, for encryption or for the signature, and is set later.
#[test]
fn a_restart_without_the_key_costs_no_bundle() {
    let gcm = || key(1, Algorithm::Aes256Gcm);
    let unsigned = || Security { keys: Keys::from_iter([gcm()]), ..requires([]) };
    // The next key of a rotation is no key for what was encrypted before.
    let rotated = || requires([key(2, Algorithm::Aes256Gcm)]);
    let resigned = || Security { keys: Keys::from_iter([gcm(), key(8, Algorithm::Hmac256)]), ..requires([]) };
    for without in [requires([]), unsigned(), rotated(), resigned()] {
        let mut world = restarted(Some(0), requires([gcm()]), without);
        for starts in 1..3 {
            world.start(0);
            world.run_for(MINUTE);
            assert_eq!(world.agent(0).bundles(world.now).count(), 1, "after start {starts}");
            assert_eq!(world.agent(0).counters().checks_postponed, 1);
            assert!(world.nodes[0].user.inbox.is_empty());
            assert!(waits_for_its_key(&world), "after start {starts}");
            if starts < 2 {
                world.crash(0);
            }
        }
        world.nodes[0].agent.as_mut().expect("it is up").engine.set_security(requires([gcm()]));
        world.tell_clock(0);
        world.run_for(MINUTE);
        let inbox: Vec<_> = world.nodes[0].user.inbox.iter().map(|taken| &taken.2[..]).collect();
        assert_eq!(inbox, [b"hello, earth"]);
        assert_eq!(world.agent(0).bundles(world.now).count(), 0);
    }
}

/// Without a clock at the arrival and after the restart, the bundle waits for one; without that, until its lifetime ends.
#[test]
fn a_restart_before_the_clock_is_told_costs_no_bundle() {
    for is_told in [true, false] {
        let limited = key(1, Algorithm::Aes256Gcm).valid(None, times(3400));
        let mut world = restarted(None, requires([key(1, Algorithm::Aes256Gcm)]), requires([limited]));
        world.start(0);
        world.run_for(MINUTE);
        assert_eq!(world.agent(0).bundles(world.now).count(), 1);
        assert_eq!(world.agent(0).counters().checks_postponed, 1);
        if is_told {
            world.nodes[0].clock_ms = Some(0);
            world.tell_clock(0);
        }
        world.run_for(2 * HOUR);
        assert_eq!(world.nodes[0].user.inbox.len(), usize::from(is_told));
        assert_eq!(world.agent(0).bundles(world.now).count(), 0);
    }
}
