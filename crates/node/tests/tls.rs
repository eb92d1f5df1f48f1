//! TLS for TCPCL version 4 over real sockets: which peers are accepted, which are refused, and what the status shows.

mod common;

use common::{App, Place, Until, config, payload, wait_acknowledged};
use longwire_node::message::MessageOptions;
use longwire_node::tls::issue::{Authority, CertificateRequest, IssuedCertificate};
use longwire_node::{Config, Node, NodeSetup, system_dtn_ms};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};

const QUICK: &str = "[tcpcl]\nreconnect-min = '20 ms'\nreconnect-max = '100 ms'\n";
const DAY: i64 = 86_400;

fn now() -> i64 {
    (system_dtn_ms().expect("the clock is set") / 1000) as i64 + 946_684_800
}

/// An authority, and a folder with the certificates that it signed.
struct Office {
    place: Place,
    authority: Authority,
}

impl Office {
    fn new(name: &str) -> Self {
        Office::called(name, name)
    }

    fn called(name: &str, authority: &str) -> Self {
        let place = Place::new(&format!("tls-{name}"));
        let (authority, _) = Authority::new(authority, now()).expect("an authority");
        std::fs::write(place.0.join("ca.pem"), authority.certificate()).expect("it is written");
        Office { place, authority }
    }

    /// Signs a certificate and returns the settings for it.
    fn issue(&self, name: &str, wish: &CertificateRequest) -> String {
        let minted = self.authority.sign(wish).expect("a certificate");
        self.file(name, &minted)
    }

    fn file(&self, name: &str, minted: &IssuedCertificate) -> String {
        let at = |end: &str| self.place.0.join(format!("{name}.{end}"));
        std::fs::write(at("pem"), &minted.certificate).expect("it is written");
        std::fs::write(at("key"), &minted.key).expect("it is written");
        let (certificate, key, trust) = (at("pem"), at("key"), self.place.0.join("ca.pem"));
        format!(
            "[tls]\ncertificate = '{}'\nkey = '{}'\ntrust = ['{}']\n",
            certificate.display(),
            key.display(),
            trust.display()
        )
    }

    fn ordinary(&self, name: &str) -> String {
        self.issue(name, &ordinary(name))
    }
}

fn ordinary(name: &str) -> CertificateRequest {
    CertificateRequest::for_node(&format!("dtn://{name}/"), now(), 10)
}

fn start(text: &str) -> Node {
    common::start(config(text))
}

/// A listening node; `tls`: its policy, then its `[tls]`.
fn bob(tls: &str, settings: &str) -> Node {
    start(&format!(
        "node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\n[storage]\nkind = 'memory'\n{QUICK}tls = '{tls}'\n{settings}"
    ))
}

/// A node with a link to it.
fn alice(port: u16, tls: &str, settings: &str) -> Node {
    start(&format!(
        "node = 'dtn://alice/'\n[storage]\nkind = 'memory'\n{QUICK}tls = '{tls}'\n{settings}\n\
         [[link]]\nname = 'bob'\naddress = 'localhost:{port}'\n"
    ))
}

fn port(node: &Node) -> u16 {
    node.addresses()[0].port()
}

/// Exchanges bundles in both directions; returns what TLS proved to the caller.
fn exchange(alice: &Node, bob: &Node) -> serde_json::Value {
    let (mut here, mut there) = (App::new(alice), App::new(bob));
    here.register("inbox", 1000);
    there.register("inbox", 1000);
    for length in [0, 700, 2_000_000] {
        let file = payload(length, 1);
        let sent = here.send("dtn://bob/inbox", &file, MessageOptions::default());
        let (delivery, got) = there.receive();
        assert_eq!(got, file);
        there.take(delivery);
        here.wait_sent(sent);
        there.send("dtn://alice/inbox", &file, MessageOptions::default());
        let (delivery, got) = here.receive();
        assert_eq!(got, file);
        here.take(delivery);
    }
    here.status()["links"][0]["tls"].clone()
}

/// Returns the reason, as text, why the caller's link does not come up; checks the counters of both sides.
fn refused(alice: &Node, bob: &Node, here_kind: &str, there_kind: &str) -> String {
    let count = |status: &serde_json::Value, kind: &str| {
        kind.is_empty() || status["tls"]["troubles"][kind].as_u64().is_some_and(|count| count > 0)
    };
    let status = App::new(alice).wait_status(|status| {
        assert_eq!(status["links"][0]["up"], false, "{status:#}");
        count(status, here_kind) && !status["links"][0]["down_reason"].is_null()
    });
    App::new(bob).wait_status(|status| count(status, there_kind));
    status["links"][0]["why_down"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn both_sides_have_their_policy() {
    let office = Office::new("policy");
    let (for_alice, for_bob) = (office.ordinary("alice"), office.ordinary("bob"));
    for here in ["off", "prefer", "require"] {
        for there in ["off", "prefer", "require"] {
            let bob = bob(there, &for_bob);
            let alice = alice(port(&bob), here, &for_alice);
            match (here, there) {
                ("off", "require") => {
                    refused(&alice, &bob, "", "plain");
                    // The reason on the wire is Contact Failure.
                    App::new(&alice).wait_status(|status| status["links"][0]["down_reason"] == "contact");
                }
                ("require", "off") => {
                    let words = refused(&alice, &bob, "plain", "");
                    assert_eq!(words, "TLS is required but the peer does not offer it");
                }
                _ => {
                    let tls = exchange(&alice, &bob);
                    let secured = here != "off" && there != "off";
                    assert_eq!(tls.is_object(), secured, "{here} {there}: {tls:#}");
                    if secured {
                        assert_eq!(tls["version"], "TLS 1.3");
                        assert_eq!(tls["node_ids"][0], "dtn://bob/");
                        let seen = &App::new(&bob).status()["links"][0]["tls"];
                        assert_eq!(seen["node_ids"][0], "dtn://alice/", "the caller's is proven, too");
                    }
                }
            }
        }
    }
}

#[test]
fn certificates_that_prove_nothing_are_refused_with_a_reason() {
    let office = Office::new("refusals");
    let for_alice = office.ordinary("alice");
    let other = Office::called("other-refusals", "refusals");
    let old = CertificateRequest { not_before: now() - 20 * DAY, not_after: now() - DAY, ..ordinary("bob") };
    let future = CertificateRequest { not_before: now() + DAY, ..ordinary("bob") };
    let web = CertificateRequest { purposes: vec![vec![1, 3, 6, 1, 5, 5, 7, 3, 1]], ..ordinary("bob") };
    let cases = [
        // An authority of the same name is another one all the same.
        (other.ordinary("bob"), "untrusted", "refused", "not signed by an authority"),
        (office.issue("old", &old), "expired", "refused", "expired on"),
        (office.issue("future", &future), "not_yet_valid", "refused", "not valid before"),
        (office.issue("web", &web), "wrong_purpose", "refused", "bundle security"),
        (office.issue("mallory", &ordinary("mallory")), "wrong_node_id", "", "proves dtn://mallory/"),
        (
            office.issue("nobody", &CertificateRequest { node_ids: vec![], ..ordinary("bob") }),
            "wrong_node_id",
            "",
            "contains no node ID",
        ),
    ];
    for (for_bob, here, there, words) in cases {
        // Bob trusts Alice's authority; another one has signed his own certificate.
        let trust = format!("trust = ['{}']", office.place.0.join("ca.pem").display());
        let for_bob: String =
            for_bob.lines().filter(|line| !line.starts_with("trust")).collect::<Vec<_>>().join("\n");
        let bob = bob("require", &format!("{for_bob}\n{trust}"));
        let alice = alice(port(&bob), "require", &for_alice);
        let said = refused(&alice, &bob, here, there);
        assert!(said.contains(words), "{here}: {said}");
        if !there.is_empty() {
            App::new(&bob).wait_status(|status| {
                let recent = status["tls"]["recent"].as_array().expect("a list");
                recent.iter().any(|trouble| trouble["what"] == "the peer aborted TLS: bad certificate")
            });
        }
    }
}

#[test]
fn callers_are_judged_as_well() {
    let office = Office::new("callers");
    let for_bob = office.ordinary("bob");
    let old =
        CertificateRequest { not_before: now() - 20 * DAY, not_after: now() - DAY, ..ordinary("alice") };
    for (for_alice, here, there, words) in [
        (office.issue("old", &old), "refused", "expired", "bad certificate"),
        (office.ordinary("mallory"), "", "wrong_node_id", ""),
    ] {
        let bob = bob("require", &for_bob);
        let alice = alice(port(&bob), "require", &for_alice);
        let said = refused(&alice, &bob, here, there);
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn the_policy_says_what_has_to_be_proven() {
    let office = Office::new("table");
    let for_alice = office.ordinary("alice");
    let nobody = CertificateRequest { node_ids: vec![], ..ordinary("bob") };
    let named = CertificateRequest { names: vec!["localhost".into()], ..ordinary("bob") };
    let elsewhere = CertificateRequest { names: vec!["example.org".into()], ..ordinary("bob") };
    let here = CertificateRequest { addresses: vec!["127.0.0.1".parse().unwrap()], ..nobody.clone() };
    let unpurposed = CertificateRequest { purposes: vec![], ..ordinary("bob") };
    // Content of Bob's certificate, Alice's policy, and the result.
    let cases: [(&str, &CertificateRequest, &str, Result<&str, &str>); 11] = [
        ("absent", &nobody, "node-id = 'if-present'", Ok("")),
        ("ignored", &ordinary("mallory"), "node-id = 'ignore'", Ok("")),
        ("mismatch", &ordinary("mallory"), "node-id = 'if-present'", Err("wrong_node_id")),
        ("name", &named, "network = 'require'", Ok("localhost")),
        ("no name", &ordinary("bob"), "network = 'require'", Err("wrong_name")),
        ("no name needed", &ordinary("bob"), "network = 'if-present'", Ok("")),
        ("another name", &elsewhere, "network = 'if-present'", Err("wrong_name")),
        ("another name ignored", &elsewhere, "", Ok("")),
        ("address", &here, "network = 'require'\nnode-id = 'ignore'", Ok("127.0.0.1")),
        ("no purposes", &unpurposed, "purpose = 'require'", Err("wrong_purpose")),
        ("no purposes needed", &unpurposed, "", Ok("")),
    ];
    for (name, wish, policy, outcome) in cases {
        let bob = bob("require", &office.issue("bob", wish));
        let alice = start(&format!(
            "node = 'dtn://alice/'\n[storage]\nkind = 'memory'\n{QUICK}tls = 'require'\n{for_alice}\n\
             [[link]]\nname = 'bob'\naddress = 'localhost:{}'\n[link.tls]\n{policy}\n",
            port(&bob)
        ));
        match outcome {
            Ok(network) => {
                let tls = exchange(&alice, &bob);
                assert_eq!(tls["network"].as_str().unwrap_or_default(), network, "{name}");
            }
            Err(kind) => {
                refused(&alice, &bob, kind, "");
            }
        }
    }
}

#[test]
fn a_name_that_a_link_asks_for_has_to_be_proven() {
    let office = Office::new("named");
    let for_alice = office.ordinary("alice");
    let wish = CertificateRequest { names: vec!["radio.example.org".into()], ..ordinary("bob") };
    for (name, proven) in [("radio.example.org", true), ("localhost", false)] {
        let bob = bob("require", &office.issue("bob", &wish));
        let alice = alice(port(&bob), &format!("require'\ntls-name = '{name}"), &for_alice);
        if proven {
            assert_eq!(exchange(&alice, &bob)["network"], name);
        } else {
            refused(&alice, &bob, "wrong_name", "");
        }
    }
}

// -- Peers made by hand ------------------------------------------------------------------------------------------

const CONTACT_TLS: &[u8] = b"dtn!\x04\x01";
const CONTACT_PLAIN: &[u8] = b"dtn!\x04\x00";

/// SESS_INIT with a keep-alive of 0, any sizes, this node ID and no extensions (RFC 9174 4.6).
fn session_init(node_id: &str) -> Vec<u8> {
    let mut out = vec![7, 0, 0];
    out.extend(1_000_000_u64.to_be_bytes());
    out.extend(1_000_000_u64.to_be_bytes());
    out.extend((node_id.len() as u16).to_be_bytes());
    out.extend(node_id.as_bytes());
    out.extend([0; 4]);
    out
}

fn call(node: &Node) -> TcpStream {
    let stream = TcpStream::connect(node.addresses()[0]).expect("it listens");
    stream.set_read_timeout(Some(common::DEADLINE)).expect("a timeout");
    stream
}

fn contact(stream: &mut TcpStream) {
    stream.write_all(CONTACT_TLS).expect("it is read");
    let mut header = [0; 6];
    stream.read_exact(&mut header).expect("a contact header");
    assert_eq!(header, CONTACT_TLS);
}

/// A TLS client that trusts every server.
fn client(
    versions: &[&'static rustls::SupportedProtocolVersion],
    certificate: Option<&IssuedCertificate>,
) -> rustls::ClientConnection {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates([]);
    let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Believer(provider)));
    let config = match certificate {
        Some(minted) => builder.with_client_auth_cert(
            vec![CertificateDer::from_pem_slice(minted.certificate.as_bytes()).expect("PEM")],
            PrivateKeyDer::from_pem_slice(minted.key.as_bytes()).expect("PEM"),
        ),
        None => Ok(builder.with_no_client_auth()),
    };
    let name = ServerName::try_from("localhost").expect("a name");
    rustls::ClientConnection::new(Arc::new(config.expect("a certificate")), name).expect("a client")
}

#[derive(Debug)]
struct Believer(Arc<rustls::crypto::CryptoProvider>);

impl rustls::client::danger::ServerCertVerifier for Believer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[test]
fn a_peer_of_tls_1_2_gets_through_and_one_without_a_certificate_does_not() {
    let office = Office::new("old-tls");
    let bob = bob("require", &office.ordinary("bob"));
    let minted = office.authority.sign(&ordinary("old")).expect("a certificate");
    for versions in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let mut stream = call(&bob);
        contact(&mut stream);
        let mut tls = rustls::StreamOwned::new(client(&[versions], Some(&minted)), stream);
        tls.write_all(&session_init("dtn://old/")).expect("it is read");
        let mut first = [0];
        tls.read_exact(&mut first).expect("an answer");
        assert_eq!(first, [7], "SESS_INIT");
        let status = App::new(&bob).wait_status(|status| status["links"][0]["up"] == true);
        let expected =
            if versions.version == rustls::ProtocolVersion::TLSv1_2 { "TLS 1.2" } else { "TLS 1.3" };
        assert_eq!(status["links"][0]["tls"]["version"], expected);
        // A connection that closes without an alert is closed, which is not an error of TLS (RFC 9174 4.4).
        drop(tls);
        let status = App::new(&bob).wait_status(|status| status["links"].as_array().unwrap().is_empty());
        assert_eq!(status["tls"]["troubles"], serde_json::json!({}), "{status:#}");
    }
    let mut stream = call(&bob);
    contact(&mut stream);
    let mut tls = rustls::StreamOwned::new(client(&[&rustls::version::TLS13], None), stream);
    // The alert may arrive before or after this is written.
    let _ = tls.write_all(&session_init("dtn://old/"));
    assert!(tls.read_exact(&mut [0]).is_err());
    App::new(&bob).wait_status(|status| status["tls"]["troubles"]["no_certificate"] == 1);
}

#[test]
fn a_caller_without_a_certificate_gets_in_only_where_the_policy_says_so() {
    let office = Office::new("anonymous");
    let settings = office.ordinary("bob");
    let anonymous = "[tls.policy]\nanonymous-callers = true\n";
    for (policy, welcome) in [
        (anonymous.to_owned() + "node-id = 'ignore'\n", true),
        (anonymous.to_owned() + "node-id = 'if-present'\n", true),
        (anonymous.to_owned(), false),
        (anonymous.to_owned() + "node-id = 'ignore'\nnetwork = 'require'\n", false),
        ("[tls.policy]\nnode-id = 'ignore'\n".to_owned(), false),
    ] {
        let bob = bob("require", &format!("{settings}{policy}"));
        let mut stream = call(&bob);
        contact(&mut stream);
        let mut tls = rustls::StreamOwned::new(client(&[&rustls::version::TLS13], None), stream);
        // The refusal may arrive before or after this is written.
        let _ = tls.write_all(&session_init("dtn://nobody/"));
        let mut first = [0];
        let answer = tls.read_exact(&mut first).ok().map(|()| first[0]);
        // SESS_INIT, or SESS_TERM, or the end of the connection.
        assert_eq!(answer == Some(7), welcome, "{policy}: {answer:?}");
        if welcome {
            let status = App::new(&bob).wait_status(|status| status["links"][0]["up"] == true);
            assert_eq!(status["links"][0]["tls"]["node_ids"], serde_json::json!([]));
            assert_eq!(status["links"][0]["tls"]["not_after_unix_s"], serde_json::Value::Null);
        }
    }
}

/// A caller without a certificate has a node ID until a caller with a certificate for it connects: then its session ends with
/// that reason.
#[test]
fn a_session_whose_node_id_another_caller_proves_ends() {
    let office = Office::new("proven");
    let bob = bob("prefer", &office.ordinary("bob"));
    let mut impostor = call(&bob);
    impostor.write_all(&[CONTACT_PLAIN, &session_init("dtn://alice/")].concat()).expect("it is read");
    App::new(&bob).wait_status(|status| status["links"][0]["peer"] == "dtn://alice/");
    let mut hear = |what: &str, bytes: usize| {
        let mut heard = vec![0; bytes];
        impostor.read_exact(&mut heard).unwrap_or_else(|error| panic!("{what} does not come: {error}"));
        heard
    };
    let length = |bytes: Vec<u8>| bytes.into_iter().fold(0, |length, byte| (length << 8) | usize::from(byte));
    assert_eq!(hear("a contact header", 6), CONTACT_TLS);
    assert_eq!(hear("SESS_INIT", 1 + 2 + 8 + 8)[0], 7);
    for field in [2, 4] {
        let bytes = length(hear("a length", field));
        hear("the node id or the extensions", bytes);
    }
    let alice = alice(port(&bob), "require", &office.ordinary("alice"));
    assert_eq!(hear("SESS_TERM", 3)[0], 5);
    exchange(&alice, &bob);
}

#[test]
fn plain_text_is_refused_where_tls_is_required() {
    let office = Office::new("plain");
    let bob = bob("require", &office.ordinary("bob"));
    // A peer that does not offer TLS: the answer is Contact Failure (RFC 9174 4.3).
    let mut stream = call(&bob);
    stream.write_all(CONTACT_PLAIN).expect("it is read");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it closes");
    assert_eq!(answer, [CONTACT_TLS, &[5, 0, 4]].concat());
    drop(stream);
    // A peer that offers TLS and continues in plain text, before or instead of the handshake.
    for early in [true, false] {
        let mut stream = call(&bob);
        if early {
            stream.write_all(&[CONTACT_TLS, &session_init("dtn://x/")].concat()).expect("it is read");
        } else {
            contact(&mut stream);
            stream.write_all(&session_init("dtn://x/")).expect("it is read");
        }
        let mut answer = Vec::new();
        // The connection is closed, or reset if bytes were left unread.
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.contains(&7), "no SESS_INIT: {answer:?}");
    }
    let status = App::new(&bob).wait_status(|status| status["tls"]["troubles"]["plain"] == 1);
    assert_eq!(status["tls"]["secured"], 0, "{status:#}");
}

#[test]
fn whoever_stalls_in_the_handshake_is_left() {
    let office = Office::new("stall");
    let settings = format!("contact-timeout = '500 ms'\n{}", office.ordinary("bob"));
    let bob = start(&format!(
        "node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\n[storage]\nkind = 'memory'\n{QUICK}tls = 'prefer'\n{settings}"
    ));
    let unfinished = |status: &serde_json::Value| status["tls"]["troubles"]["unfinished"].as_u64();
    let mut app = App::new(&bob);
    let until = Until::new();
    // Again if the handshake has not begun in time.
    while unfinished(&app.status()) < Some(1) {
        until.check(|| "the handshake is given up".into());
        let mut stream = call(&bob);
        stream.write_all(CONTACT_TLS).expect("it is read");
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).expect("it is closed");
        assert!([b"", CONTACT_TLS].contains(&&heard[..]), "nothing in plain text behind the contact header");
        app.wait_status(|status| status["callers"]["now"] == 0);
    }

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let alice = alice(listener.local_addr().unwrap().port(), "prefer", &settings);
    std::thread::spawn(move || {
        let mut stalled = Vec::new();
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.write_all(CONTACT_TLS);
            stalled.push(stream);
        }
    });
    App::new(&alice).wait_status(|status| {
        unfinished(status) > Some(0)
            && status["links"][0]["why_down"] == "TLS handshake timed out or cancelled"
    });
}

// -- Somebody between --------------------------------------------------------------------------------------------

/// Forwards connections to `to`: `change` sees the bytes in that direction with their offset; if it returns false, the first
/// connection breaks.
fn between(
    to: SocketAddr,
    change: impl Fn(u64, &mut [u8]) -> bool + Send + Sync + 'static,
) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().unwrap().port();
    let carried = Arc::new(AtomicU64::new(0));
    let (count, change) = (carried.clone(), Arc::new(change));
    std::thread::spawn(move || {
        for (number, here) in listener.incoming().map_while(Result::ok).enumerate() {
            let there = TcpStream::connect(to).expect("it listens");
            for (mut from, mut to, forth) in [
                (here.try_clone().unwrap(), there.try_clone().unwrap(), true),
                (there.try_clone().unwrap(), here.try_clone().unwrap(), false),
            ] {
                let (count, change) = (count.clone(), change.clone());
                std::thread::spawn(move || {
                    let mut buffer = [0; 16 * 1024];
                    let mut at = 0;
                    while let Ok(some @ 1..) = from.read(&mut buffer) {
                        let goes_on = change(at, &mut buffer[..some]) || !forth || number > 0;
                        if !goes_on || to.write_all(&buffer[..some]).is_err() {
                            break;
                        }
                        at += some as u64;
                        count.fetch_add(if forth { some as u64 } else { 0 }, Ordering::Relaxed);
                    }
                    let _ = from.shutdown(std::net::Shutdown::Both);
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    (port, carried)
}

#[test]
fn who_takes_the_offer_of_tls_away_gets_nothing_where_it_is_required() {
    let office = Office::new("strip");
    let (for_alice, for_bob) = (office.ordinary("alice"), office.ordinary("bob"));
    let strip = |at: u64, bytes: &mut [u8]| {
        if at == 0 && bytes.len() >= 6 {
            bytes[5] = 0;
        }
        true
    };
    let bob = bob("require", &for_bob);
    let (port, _) = between(bob.addresses()[0], strip);
    let alice = alice(port, "require", &for_alice);
    refused(&alice, &bob, "plain", "plain");
}

#[test]
fn a_cut_in_the_middle_is_resumed_over_tls() {
    let office = Office::new("cut");
    let bob = bob("require", &office.ordinary("bob"));
    let (whole, cut) = mpsc::channel::<()>();
    let cut = Mutex::new(cut);
    let stands = move |at, _: &mut [u8]| {
        if at < 25_000_000 {
            return true;
        }
        let _ = cut.lock().expect("nobody panics").recv();
        false
    };
    let (port, carried) = between(bob.addresses()[0], stands);
    let alice = alice(port, "require", &office.ordinary("alice"));
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    there.register("inbox", 0);
    let file = payload(30_000_000, 1);
    let send = here.send("dtn://bob/inbox", &file, MessageOptions::default());
    wait_acknowledged(&mut here, &mut there, 20_000_000);
    drop(whole);
    let (_, got) = there.receive();
    assert_eq!(got, file);
    here.wait_sent(send);
    let again = carried.load(Ordering::Relaxed) - 30_000_000;
    assert!(again < 10_000_000, "{again} bytes sent twice");
    let status = here.status();
    assert!(
        status["counters"]["payload_bytes_saved"].as_u64() > Some(10_000_000),
        "{:#}",
        status["counters"]
    );
    assert_eq!(status["tls"]["secured"], 2, "{status:#}");
}

// -- Files -------------------------------------------------------------------------------------------------------

#[test]
fn new_certificates_count_once_the_configuration_is_read_again() {
    let (first, second) = (Office::new("first"), Office::new("second"));
    let for_bob = first.ordinary("bob");
    let path = first.place.0.join("bob.toml");
    let text = format!(
        "node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\n[storage]\nkind = 'memory'\n[tcpcl]\ntls = 'require'\n{for_bob}"
    );
    std::fs::write(&path, text).expect("it is written");
    let mut read = Config::load(&path).expect("it makes sense");
    read.control = None;
    let bob = Node::start(NodeSetup { path: Some(path), ..NodeSetup::new(read) }).expect("it starts");
    let alice = alice(port(&bob), "require", &second.ordinary("alice"));
    refused(&alice, &bob, "untrusted", "");
    let renewed = second.authority.sign(&ordinary("bob")).expect("a certificate");
    first.file("bob", &renewed);
    std::fs::write(first.place.0.join("ca.pem"), second.authority.certificate()).expect("it is written");
    bob.reload();
    assert_eq!(exchange(&alice, &bob)["node_ids"][0], "dtn://bob/");
}

#[test]
fn on_an_amateur_band_nothing_is_encrypted() {
    let office = Office::new("amateur");
    let (for_alice, for_bob) = (office.ordinary("alice"), office.ordinary("bob"));
    let bob = bob("prefer", &for_bob);
    let text = format!(
        "node = 'dtn://alice/'\n[storage]\nkind = 'memory'\n[tcpcl]\ntls = 'require'\n{for_alice}\n\
         [[link]]\nname = 'bob'\naddress = 'localhost:{}'\namateur = true\n",
        port(&bob)
    );
    let words = config(&text).explain_all();
    assert!(words.contains("Link `bob` is amateur radio: TLS is never used,"), "{words}");
    assert!(exchange(&start(&text), &bob).is_null());
    let asked = format!("{text}[link.tcpcl]\ntls = 'prefer'");
    let error = Config::parse(&asked, "test", std::path::Path::new("/")).expect_err("it contradicts itself");
    assert!(error.to_string().contains("encryption is not allowed"), "{error}");
}

#[test]
fn a_peer_that_connects_from_the_address_of_an_amateur_link_gets_no_tls() {
    let office = Office::new("amateur-caller");
    let for_bob = office.ordinary("bob");
    let amateur = "[[link]]\nname = 'alice'\naddress = '127.0.0.1:9'\namateur = true\nopen = false\n";
    let there = bob("require", &format!("{for_bob}{amateur}"));
    assert!(exchange(&alice(port(&there), "prefer", &office.ordinary("alice")), &there).is_null());
    let there = bob("require", &format!("{for_bob}{amateur}"));
    refused(&alice(port(&there), "require", &office.ordinary("alice")), &there, "plain", "");
}

#[test]
fn files_that_do_not_do_are_named_before_the_start() {
    let office = Office::new("files");
    let settings = office.ordinary("bob");
    let base = "node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\n[storage]\nkind = 'memory'\n[tcpcl]\ntls = 'prefer'\n";
    let failed = |settings: &str| {
        let config = config(&format!("{base}{settings}"));
        let error = config.credentials().expect_err(settings);
        assert!(config.explain_all().contains("The node cannot start"), "it is explained, too");
        assert!(Node::start(NodeSetup::new(config)).is_err());
        error.to_string()
    };
    let said = failed("");
    assert!(said.contains("`tls.certificate` is not set") && said.contains("longwire certificate"), "{said}");
    let said = failed(&settings.replace("bob.pem", "none.pem"));
    assert!(said.contains("cannot read") && said.contains("none.pem"), "{said}");
    let said = failed(&settings.replace("bob.pem", "bob.key"));
    assert!(said.contains("nothing usable in"), "{said}");
    office.ordinary("eve");
    let said = failed(&settings.replace("bob.key", "eve.key"));
    assert!(said.contains("does not match the certificate"), "{said}");
    let words = config(&format!("{base}{settings}")).explain_all();
    for part in
        ["TLS for incoming connections is used if the peer offers it", "proves dtn://bob/;", "valid from"]
    {
        assert!(words.contains(part), "{words}");
    }
    let eve = settings.replace("bob.", "eve.");
    let words = config(&format!("{base}{eve}")).explain_all();
    assert!(words.contains("does not prove dtn://bob/"), "{words}");
}
