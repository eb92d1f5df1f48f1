//! Wrong, expired and missing keys, each with its reason.

use super::*;

const PERIOD: (DtnTime, DtnTime) = (DtnTime(1_000), DtnTime(2_000));

fn hmac_key(name: &str, byte: u8) -> Key {
    Key::new(Eid::ipn(2, 1), name, Algorithm::Hmac256, &[byte; 32]).expect("a key of this length")
}

fn signed() -> Bundle {
    let keys = Keys::from_iter([hmac_key("test", 1)]);
    let mut bundle = sample();
    sign(&mut bundle, &signing(&[PAYLOAD_BLOCK]), &choice(&keys)).expect("a legal request");
    bundle
}

/// The outcome of verification with these keys at this time.
fn outcome(keys: impl IntoIterator<Item = Key>, at: DtnTime) -> Result<(), Fault> {
    let keys = Keys::from_iter(keys);
    let verdicts = verify(&signed(), &KeyChoice { at, ..choice(&keys) }).expect("a legal bundle");
    assert_eq!(verdicts.len(), 1);
    verdicts[0].outcome
}

#[test]
fn each_key_has_its_reason() {
    let limited = || hmac_key("test", 1).valid(Some(PERIOD.0), Some(PERIOD.1));
    let of_other = Key::new(Eid::ipn(3, 1), "test", Algorithm::Hmac256, &[1; 32]).expect("a key");
    let for_other = Key::new(Eid::ipn(2, 1), "test", Algorithm::Hmac512, &[1; 32]).expect("a key");
    assert_eq!(outcome([hmac_key("test", 1)], DtnTime::UNKNOWN), Ok(()));
    assert_eq!(outcome([hmac_key("test", 2)], NOW), Err(Fault::WrongKeyOrAltered));
    assert_eq!(outcome([], NOW), Err(Fault::MissingKey));
    assert_eq!(outcome([hmac_key("other", 1), of_other, for_other], NOW), Err(Fault::MissingKey));
    assert_eq!(outcome([limited()], DtnTime(999)), Err(Fault::PrematureKey));
    assert_eq!(outcome([limited()], DtnTime(1_000)), Ok(()));
    assert_eq!(outcome([limited()], DtnTime(2_000)), Ok(()));
    assert_eq!(outcome([limited()], DtnTime(2_001)), Err(Fault::ExpiredKey));
    assert_eq!(outcome([limited()], DtnTime::UNKNOWN), Err(Fault::UnknownTime));
}

#[test]
fn a_key_succeeds_another() {
    let keys = || {
        [
            hmac_key("test", 2).valid(None, Some(DtnTime(1_999))),
            hmac_key("test", 1).valid(Some(DtnTime(2_000)), None),
        ]
    };
    assert_eq!(outcome(keys(), DtnTime(1_999)), Err(Fault::WrongKeyOrAltered));
    assert_eq!(outcome(keys(), DtnTime(2_000)), Ok(()));
}

#[test]
fn keys_have_the_length_of_their_algorithm() {
    let longest = |algorithm| {
        let accepted = |length: &usize| Key::new(Eid::Null, "", algorithm, &vec![1; *length]).is_ok();
        (0..200).filter(accepted).map(|length| length.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(longest(Algorithm::Aes128Gcm), ["16"]);
    assert_eq!(longest(Algorithm::Aes256Gcm), ["32"]);
    assert_eq!(longest(Algorithm::KeyWrap), ["16", "24", "32"]);
    let hmac = longest(Algorithm::Hmac256);
    assert_eq!(
        (hmac.first().map(String::as_str), hmac.last().map(String::as_str)),
        (Some("16"), Some("128"))
    );
}

#[test]
fn a_wrapped_key_needs_its_key_encryption_key() {
    let wrapping = |byte| Key::new(Eid::ipn(2, 1), "test", Algorithm::KeyWrap, &[byte; 24]).expect("a key");
    let shared = |byte| Key::new(Eid::ipn(2, 1), "test", Algorithm::Hmac256, &[byte; 32]).expect("a key");
    let mut bundle = sample();
    let fresh = |algorithm, length| Secret::new(algorithm, &vec![9; length]).ok();
    let request = SignRequest { fresh_key: fresh(Algorithm::Hmac256, 32), ..signing(&[PAYLOAD_BLOCK]) };
    let keys = Keys::from_iter([wrapping(1)]);
    sign(&mut bundle, &request, &choice(&keys)).expect("a legal request");
    for (key, outcome) in [
        (wrapping(1), Ok(())),
        (wrapping(2), Err(Fault::WrongKeyOrAltered)),
        (shared(9), Err(Fault::MissingKey)),
    ] {
        let verdicts = verify(&bundle, &choice(&Keys::from_iter([key]))).expect("a legal bundle");
        assert_eq!(outcomes(&verdicts), [(PAYLOAD_BLOCK, outcome)]);
    }
    // A key cannot be wrapped if its length is not a multiple of eight bytes (RFC 3394).
    let odd = SignRequest { fresh_key: fresh(Algorithm::Hmac256, 31), ..request };
    assert_eq!(sign(&mut sample(), &odd, &choice(&keys)), Err(Fault::KeyLength));
}

#[test]
fn keys_are_not_shown() {
    let request = SignRequest { fresh_key: Secret::new(Algorithm::Hmac256, &[77; 32]).ok(), ..signing(&[1]) };
    assert!(!format!("{:?} {request:?}", hmac_key("test", 77)).contains("77"));
}

/// A key for encryption says nothing about signatures.
#[test]
fn keys_for_encryption_are_no_keys_of_signatures() {
    for (algorithm, signs) in
        [(Algorithm::Aes256Gcm, false), (Algorithm::KeyWrap, false), (Algorithm::Hmac256, true)]
    {
        let keys = Keys::from_iter([Key::new(Eid::ipn(2, 0), "k", algorithm, &[1; 32]).expect("a key")]);
        assert_eq!(keys.know(&Eid::ipn(2, 7)), signs);
    }
}
