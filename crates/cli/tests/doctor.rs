//! `longwire doctor` with planted faults, each of which it names, and with a healthy node, of which it names none.

mod common;

use common::{DEADLINE, Place, noise, reserved};
use longwire_node::tls::certificate_folder;
use longwire_node::tls::issue::CertificateRequest;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::process::Output;
use std::time::Instant;

/// Findings with `severity` error or warning, as `what`.
fn faults(output: &Output) -> Vec<String> {
    let findings: Vec<Value> =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let faults: Vec<&Value> = findings.iter().filter(|finding| finding["severity"] != "ok").collect();
    assert_eq!(output.status.code(), Some(i32::from(!faults.is_empty())), "{output:?}");
    for fault in &faults {
        assert!(fault["why"].is_string() && fault["hint"].is_string(), "{fault}");
    }
    faults.iter().map(|fault| fault["what"].as_str().unwrap().to_owned()).collect()
}

fn examined(place: &Place, node: &str, more: &[&str]) -> Vec<String> {
    faults(&place.ask(node, &[&["doctor", "--json"], more].concat()))
}

/// Asserts that exactly the expected faults are found, each by a part of its text.
#[track_caller]
fn assert_faults(found: &[String], expected: &[&str]) {
    for part in expected {
        assert_eq!(found.iter().filter(|what| what.contains(part)).count(), 1, "{part}: {found:#?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

/// Configures a node that is not running, and asserts the faults that it has besides.
#[track_caller]
fn assert_faults_of_stopped(place: &Place, text: &str, expected: &[&str]) {
    place.configure("alice", text);
    assert_faults(&examined(place, "alice", &[]), &[&["the node is not running"], expected].concat());
}

fn token_with(place: &Place, mode: u32) -> String {
    let path = place.path("token");
    fs::write(&path, "0123456789abcdef0123456789abcdef\n").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    "http.token-file = 'token'".to_owned()
}

#[test]
fn a_healthy_node_has_no_fault() {
    let place = Place::new("doctor-healthy");
    let at = reserved();
    place.configure("bob", &format!("listen = ['{at}']\n{}", token_with(&place, 0o600)));
    place.configure("alice", &format!("[[link]]\nname = 'bob'\naddress = '{at}'"));
    let _bob = place.start("bob");
    let _alice = place.start("alice");
    place.asked("alice", &["ping", "dtn://bob/", "--count", "1", "--timeout", "240s"]);
    for node in ["alice", "bob"] {
        assert_faults(&examined(&place, node, &["--down-for", "0s"]), &[]);
        let said = place.asked(node, &["doctor"]);
        assert!(said.lines().all(|line| line.starts_with("ok: ")), "{said}");
        assert!(said.contains(&format!("ok: dtn://{node}/ is running, version ")), "{said}");
    }
}

#[test]
fn faults_of_a_configuration_are_named() {
    let place = Place::new("doctor-configuration");
    place.configure("alice", "lisen = ['127.0.0.1:0']");
    assert_faults(&examined(&place, "alice", &[]), &["unknown field `lisen`"]);
    place.configure("alice", "[[tnc]]\nname = 'vhf'\naddress = '127.0.0.1:8001'\ncallsign = 'N0CALL-1'");
    assert_faults(&examined(&place, "alice", &[]), &["replace the example callsign N0CALL-1 with your own"]);
    assert_faults(&examined(&place, "nobody", &[]), &["cannot read nobody.toml"]);
    // Text for people has the consequence and the hint of each fault.
    let output = place.ask("nobody", &["doctor"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("error: cannot read nobody.toml"), "{said}");
    assert!(
        said.contains("\n  consequence: ") && said.contains("\n  hint: give the configuration"),
        "{said}"
    );
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(talk.starts_with("error: found 1 error and 0 warnings\n"), "{talk}");
}

#[test]
fn faults_of_the_machine_are_named() {
    let place = Place::new("doctor-machine");
    assert_faults_of_stopped(&place, "", &[]);
    assert_faults_of_stopped(&place, "listen = ['192.0.2.1:4556']", &["cannot listen on 192.0.2.1:4556"]);
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp_at, udp_at) = (tcp.local_addr().unwrap(), udp.local_addr().unwrap());
    let text = format!("listen = ['{tcp_at}']\nlisten-udp = ['ltp {udp_at}']");
    let expected = [format!("TCP port {tcp_at} is in use"), format!("UDP port {udp_at} is in use")];
    assert_faults_of_stopped(&place, &text, &expected.each_ref().map(String::as_str));
    assert_faults_of_stopped(&place, &token_with(&place, 0o644), &["other users have access to"]);
    fs::write(place.path("file"), "").unwrap();
    assert_faults_of_stopped(&place, "control = 'file/socket'", &["cannot create the socket"]);
    let at = reserved();
    let radio = format!(
        "[[tnc]]\nname = 'vhf'\naddress = '{at}'\ncallsign = 'DL1XYZ-1'\n\
         [[tnc]]\nname = 'uhf'\nserial = '/dev/longwire-none'\ncallsign = 'DL1XYZ-2'"
    );
    let expected =
        [&*format!("TNC `vhf`: {at} does not answer"), "TNC `uhf`: cannot open /dev/longwire-none"];
    assert_faults_of_stopped(&place, &radio, &expected);
    // The limit of open files is that of the shell.
    place.configure("alice", "");
    let command =
        format!("ulimit -n 256 && exec {} doctor --json --config alice.toml", env!("CARGO_BIN_EXE_longwire"));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &command]).current_dir(place.path("")).env_remove("LONGWIRE_LOG");
    assert_faults(
        &faults(&shell.output().unwrap()),
        &["the node is not running", "The limit of open files is 256"],
    );
}

#[test]
fn certificates_that_have_expired_or_soon_will_are_named() {
    let place = Place::new("doctor-certificate");
    let now = longwire_node::unix_now().unwrap();
    let text = "listen = ['127.0.0.1:0']\n[tcpcl]\ntls = 'require'\n[tls]\ncertificate = 'tls/alice.pem'\nkey = 'tls/alice.key'\ntrust = ['tls/ca.pem']";
    let issue = |from, days| {
        let request = CertificateRequest::for_node("dtn://alice/", from, days);
        certificate_folder::issue(&place.path("tls"), &request, now, true).unwrap();
    };
    issue(now, 60);
    assert_faults_of_stopped(&place, text, &[]);
    issue(now, 20);
    assert_faults_of_stopped(&place, text, &["alice.pem expires in "]);
    let patient = examined(&place, "alice", &["--expires-within", "10d"]);
    assert_faults(&patient, &["the node is not running"]);
    issue(now - 20 * 86_400, 10);
    assert_faults_of_stopped(&place, text, &["the certificate has expired"]);
    // Without the key the files are of no use, and the validity is not examined.
    fs::remove_file(place.path("tls/alice.key")).unwrap();
    assert_faults_of_stopped(&place, text, &["`tls.key`: cannot read"]);
}

#[test]
fn faults_of_a_running_node_are_named() {
    let place = Place::new("doctor-running");
    let at = reserved();
    let text = format!(
        "agent.limits.bundles-max = 1\n[[link]]\nname = 'bob'\naddress = '{at}'\n\
         [[tnc]]\nname = 'vhf'\naddress = '{at}'\ncallsign = 'DL1XYZ-1'"
    );
    place.configure("alice", &text);
    let alice = place.start("alice");
    fs::write(place.path("letter"), "hello").unwrap();
    place.asked("alice", &["send", "letter", "--to", "dtn://carol/files"]);
    // The first attempts to connect end soon.
    let began = Instant::now();
    let found = loop {
        let found = examined(&place, "alice", &["--down-for", "0s"]);
        let has_tried = |what: &String| what.contains("link `bob`") && what.ends_with(": connection refused");
        if found.len() >= 4 && found.iter().any(has_tried) {
            break found;
        }
        assert!(began.elapsed() < DEADLINE, "{found:#?}");
    };
    let tnc = format!("TNC `vhf` at {at} does not answer");
    let expected = [
        "1 bundle without a route, such as dtn://alice/",
        "the store is full: 1 of at most 1 bundles",
        "link `bob` has been down for ",
        &tnc,
    ];
    assert_faults(&found, &expected);
    // Another configuration that names the same control socket.
    place.configure("carol", "control = 'alice/longwire.sock'");
    let found = examined(&place, "carol", &[]);
    assert!(found.iter().any(|what| what.contains("belongs to the node dtn://alice/")), "{found:#?}");
    alice.kill();
    // The socket of a node that was killed stays.
    place.configure("alice", "");
    let found = examined(&place, "alice", &[]);
    assert_faults(&found, &["longwire.sock is not running"]);
}

#[test]
fn a_damaged_store_is_named() {
    let place = Place::new("doctor-store");
    place.configure("alice", "");
    let alice = place.start("alice");
    fs::write(place.path("letter"), noise(100_000, 7)).unwrap();
    place.asked("alice", &["send", "letter", "--to", "dtn://carol/files"]);
    alice.kill();
    assert_faults(&examined(&place, "alice", &[]), &["longwire.sock is not running"]);
    let logs = fs::read_dir(place.path("alice/store")).unwrap().map(|entry| entry.unwrap().path());
    let log = logs.filter(|path| path.extension().is_some_and(|ending| ending == "log")).max().unwrap();
    let mut bytes = fs::read(&log).unwrap();
    let sent = &noise(100_000, 7)[5000..5032];
    let at = bytes.windows(sent.len()).position(|window| window == sent).unwrap();
    bytes[at] ^= 1;
    fs::write(&log, bytes).unwrap();
    assert_faults(&examined(&place, "alice", &[]), &["longwire.sock is not running", " damaged place"]);
}
