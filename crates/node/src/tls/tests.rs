use super::certificate::Claims;
use super::issue::{Authority, CertificateRequest};
use super::*;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

const NOW: i64 = 1_800_000_000;

fn claims(wish: &CertificateRequest) -> Claims {
    let (authority, _) = Authority::new("test", NOW).expect("an authority");
    let minted = authority.sign(wish).expect("a certificate");
    Claims::read(&CertificateDer::from_pem_slice(minted.certificate.as_bytes()).expect("PEM")).expect("X.509")
}

#[test]
fn what_is_minted_is_what_is_read() {
    let mut wish = CertificateRequest::for_node("dtn://alice/", NOW, 10);
    wish.node_ids.push("ipn:77.0".into());
    wish.names = vec!["alice.example.org".into(), format!("{}.org", "x".repeat(60)), "y".repeat(60)];
    wish.addresses = vec!["10.1.2.3".parse().unwrap(), "fe80::1".parse().unwrap()];
    let read = claims(&wish);
    assert_eq!(read.node_ids, wish.node_ids);
    assert_eq!(read.names, wish.names);
    assert_eq!(read.addresses, wish.addresses);
    assert_eq!((read.for_bundles, read.may_sign), (Some(true), Some(true)));
    assert_eq!((read.not_before, read.not_after), (NOW - 86_400, NOW + 864_000));
    assert_eq!((&read.subject[..], &read.issuer[..]), ("CN=dtn://alice/", "CN=test"));
}

#[test]
fn only_node_ids_are_node_ids() {
    let wish = CertificateRequest {
        node_ids: vec![
            "dtn://alice/inbox".into(),
            "dtn:none".into(),
            "http://alice/".into(),
            "DTN://a/".into(),
        ],
        purposes: vec![vec![1, 3, 6, 1, 5, 5, 7, 3, 1]],
        ..CertificateRequest::for_node("", NOW, 10)
    };
    let read = claims(&wish);
    assert!(read.node_ids.iter().all(|id| id.eq_ignore_ascii_case("dtn://a/")), "{:?}", read.node_ids);
    assert_eq!(read.for_bundles, Some(false));
    let plain = claims(&CertificateRequest { purposes: vec![], ..wish });
    assert_eq!(plain.for_bundles, None);
    assert!(Claims::read(b"nonsense").is_err());
}

#[test]
fn rules_allow_what_their_names_say() {
    let allowed = |rule: Rule| [None, Some(true), Some(false)].map(|found| rule.allows(found));
    assert_eq!(allowed(Rule::Require), [false, true, false]);
    assert_eq!(allowed(Rule::IfPresent), [true, true, false]);
    assert_eq!(allowed(Rule::Ignore), [true, true, true]);
}

#[test]
fn alerts_are_words() {
    let error = |alert| std::io::Error::other(rustls::Error::AlertReceived(alert));
    let words = TlsFailure::of(&error(rustls::AlertDescription::BadCertificate)).expect("TLS").to_string();
    assert_eq!(words, "the peer aborted TLS: bad certificate");
    let words = TlsFailure::of(&error(rustls::AlertDescription::UnknownCA)).expect("TLS").to_string();
    assert_eq!(words, "the peer aborted TLS: unknown ca");
    assert_eq!(TlsFailure::of(&std::io::Error::other("else")), None);
}
