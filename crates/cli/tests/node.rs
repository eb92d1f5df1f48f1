//! Nodes as a user sees them: real processes, sockets and disks.

mod common;

use common::{DEADLINE, Place, noise, reserved, wait};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

/// Waits until the link of alice, which was cut, is down: its session ends in good order.
#[track_caller]
fn wait_down(place: &Place) {
    wait("the link of alice goes down", place, || {
        let links: serde_json::Value =
            serde_json::from_str(&place.asked("alice", &["links", "--json"])).unwrap();
        links[0]["up"] == false
    });
}

#[test]
fn a_file_goes_from_one_node_to_another_and_the_receipt_comes_back() {
    let place = Place::new("story");
    let at = reserved();
    place.configure("bob", &format!("listen = ['{at}']"));
    place.configure("alice", &format!("[[link]]\nname = 'bob'\naddress = '{at}'"));
    let file = noise(3_000_000, 1);
    fs::write(place.path("photo.jpg"), &file).unwrap();
    let alice = place.start("alice");
    assert!(alice.line.contains("dtn://alice/ is ready"), "{}", alice.line);
    // The destination is not running yet: the node accepts the file and reports why it is still there.
    let id = place.asked("alice", &["send", "photo.jpg", "--to", "dtn://bob/files"]);
    let id = id.trim().strip_prefix("queued as ").unwrap().to_owned();
    let list = place.asked("alice", &["bundles"]);
    assert!(list.starts_with(&id) && list.contains("no route"), "{list}");
    let bob = place.start("bob");
    let receiving =
        place.longwire(&["recv", "got", "--config", "bob.toml"]).stdout(Stdio::piped()).spawn().unwrap();
    let received = String::from_utf8(place.ended(receiving, "recv has the photo").stdout).unwrap();
    assert!(received.contains("photo.jpg (3.0 MB) from dtn://alice/"), "{received}");
    assert_eq!(fs::read(place.path("got/photo.jpg")).unwrap(), file);
    // With a delivery report; a second file of the same name gets a number.
    let mut following = place
        .longwire(&["recv", "got", "--follow", "--config", "bob.toml"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let said = place.asked("alice", &["send", "photo.jpg", "--to", "dtn://bob/files", "--wait", "--quiet"]);
    assert!(said.starts_with("delivered ") && said.contains("(reported by dtn://bob/"), "{said}");
    assert_eq!(fs::read(place.path("got/photo-2.jpg")).unwrap(), file);
    following.kill().unwrap();
    following.wait().unwrap();
    let pings = place
        .asked("alice", &["ping", "dtn://bob/", "--count", "2", "--interval", "0s", "--timeout", "240s"]);
    assert!(pings.contains("2 sent, 2 received, "), "{pings}");
    let links = place.asked("bob", &["links"]);
    assert!(links.contains("peer dtn://alice/"), "{links}");
    // A ping may come back before it is acknowledged, and would stay here with the link.
    let began = std::time::Instant::now();
    while place.asked("alice", &["bundles"]) != "no bundles\n" {
        assert!(began.elapsed() < DEADLINE, "{}", place.asked("alice", &["bundles"]));
    }
    // Over a link that is cut nothing is sent until it is opened again.
    place.asked("alice", &["links", "cut", "bob"]);
    wait_down(&place);
    let id = place.asked("alice", &["send", "photo.jpg", "--to", "dtn://bob/files"]);
    let id = id.trim().strip_prefix("queued as ").unwrap().to_owned();
    let status: serde_json::Value =
        serde_json::from_str(&place.asked("alice", &["status", "--json"])).unwrap();
    assert_eq!(status["bundles"], 1);
    let bundles = place.asked("alice", &["bundles"]);
    assert!(bundles.contains("link `bob` to dtn://bob/ is down: closed by the operator"), "{bundles}");
    place.asked("alice", &["bundles", "cancel", &id]);
    assert_eq!(place.asked("alice", &["bundles"]), "no bundles\n");
    place.asked("alice", &["links", "heal", "bob"]);
    let pings = place.asked("alice", &["ping", "dtn://bob/", "--count", "1", "--timeout", "240s", "--json"]);
    let pings: serde_json::Value = serde_json::from_str(&pings).unwrap();
    assert_eq!(pings["received"], 1);
    // Ctrl-C ends the command with a summary of the pings so far.
    let words = ["ping", "dtn://bob/", "--count", "2", "--interval", "1h", "--config", "alice.toml"];
    let mut child = place.longwire(&words).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(said.next().unwrap().unwrap().contains(": seq=0 time="));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let last = said.last().unwrap().unwrap();
    assert!(last.contains("1 sent, 1 received, 0 % loss; round trip "), "{last}");
    assert_eq!(place.ended(child, "the pings end").status.code(), Some(130));
    bob.kill();
    alice.kill();
}

/// The node is told that the answers are taken, and the command ends after that.
#[test]
fn pings_and_measurements_leave_no_answer_behind() {
    let place = Place::new("answers");
    place.configure("alice", "");
    let _alice = place.start("alice");
    let ping = ["ping", "dtn://alice/", "--count", "3", "--interval", "0s", "--timeout", "240s"];
    let measure = ["measure", "dtn://alice/", "--count", "3", "--time", "1ms", "--timeout", "240s"];
    for _ in 0..20 {
        for words in [ping, measure] {
            place.asked("alice", &words);
            let bundles = place.asked("alice", &["bundles"]);
            assert!(!bundles.contains("the application has not taken it"), "{words:?}: {bundles}");
        }
    }
}

#[test]
fn two_nodes_with_certificates_of_their_own_authority_prove_who_they_are() {
    let place = Place::new("tls");
    let certificate = |node: &str| {
        let output = place.longwire(&["certificate", &format!("dtn://{node}/")]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    place.configure("bob", &format!("listen = ['127.0.0.1:0']\n{}", certificate("bob")));
    let bob = place.start("bob");
    let port = bob
        .line
        .split_once("127.0.0.1:")
        .and_then(|(_, rest)| rest.split_once(';'))
        .expect("it says where it is")
        .0;
    let link = format!("[[link]]\nname = 'bob'\naddress = 'localhost:{port}'\n");
    place.configure("alice", &format!("{}{link}", certificate("alice")));
    let check = place.asked("alice", &["node", "--check"]);
    for part in ["TLS on link `bob` is required.", "Certificate: proves dtn://alice/;"] {
        assert!(check.contains(part) && !check.contains("WARNING"), "{check}");
    }
    let _alice = place.start("alice");
    let pings = place.asked("alice", &["ping", "dtn://bob/", "--count", "1", "--timeout", "240s"]);
    assert!(pings.contains("1 sent, 1 received, "), "{pings}");
    for (here, there) in [("alice", "bob"), ("bob", "alice")] {
        let links = place.asked(here, &["links"]);
        assert!(links.contains(&format!("(TLS 1.3, proven: dtn://{there}/)")), "{links}");
    }
    // A missing file is named before the node starts.
    fs::remove_file(place.path("tls/bob.key")).unwrap();
    let output = place.ask("bob", &["node", "--check"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("tls/bob.key") && said.contains("hint: "), "{said}");
}

/// The reader of stderr closes it, as in `longwire node 2>&1 | head -3`.
#[test]
fn a_node_lives_on_when_nobody_reads_what_it_says() {
    let place = Place::new("unread");
    place.configure("alice", &format!("listen = ['{}']", reserved()));
    let mut command = place.longwire(&["node", "--config", "alice.toml"]);
    let mut alice = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(alice.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(" is ready: ") {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "it does not come up");
    }
    drop(said);
    let pid = Pid::from_child(&alice);
    // An unknown peer sends an invalid bundle, and the node reports which rule it breaks.
    let address = line.split_once("listening on ").and_then(|(_, rest)| rest.split_once(';')).unwrap().0;
    let mut stranger = session(address.parse().unwrap());
    stranger
        .write_all(&[&[1, 3][..], &[0; 8], &[0; 4], &3_u64.to_be_bytes(), b"\x9f\x89\x07"].concat())
        .unwrap();
    let began = Instant::now();
    loop {
        assert_eq!(alice.try_wait().unwrap(), None, "a bad bundle");
        let status: serde_json::Value =
            serde_json::from_str(&place.asked("alice", &["status", "--json"])).unwrap();
        if status["refused"][0]["count"] == 1 {
            break;
        }
        assert!(began.elapsed() < DEADLINE, "a bad bundle is refused: {status:#}");
    }
    let mut reads = |what: &str, wished: fn(&serde_json::Value) -> bool| {
        kill_process(pid, Signal::HUP).unwrap();
        let began = Instant::now();
        loop {
            assert_eq!(alice.try_wait().unwrap(), None, "{what}");
            // By --control, because the configuration can be invalid here.
            let mut ask = place.longwire(&["status", "--json", "--control", "alice/longwire.sock"]);
            let asked = place.ended(ask.stdout(Stdio::piped()).spawn().unwrap(), "the node says how it is");
            let status: serde_json::Value = serde_json::from_slice(&asked.stdout).unwrap();
            if wished(&status["configuration"]) {
                return;
            }
            assert!(began.elapsed() < DEADLINE, "{what}: {status:#}");
        }
    };
    place.configure("alice", "listen = []");
    reads("a configuration that is read again", |read| read["needs_restart"][0] == "listen");
    place.configure("alice", "peers = 'nobody'");
    reads("one that makes no sense", |read| !read["refused"].is_null());
    kill_process(pid, Signal::TERM).unwrap();
    assert!(alice.wait().unwrap().success());
}

/// Establishes a session of TCPCL version 4 without keepalives (RFC 9174 4.2, 4.6).
fn session(at: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let name = b"dtn://stranger/";
    let lengths = [1_u64 << 20, 1 << 30].map(u64::to_be_bytes).concat();
    let init = [&[7, 0, 0][..], &lengths, &[0, name.len() as u8], name, &[0; 4]].concat();
    stream.write_all(&[b"dtn!\x04\x00", &init[..]].concat()).unwrap();
    // The contact header of the node, and its SESS_INIT up to the node ID.
    stream.read_exact(&mut [0; 6 + 1 + 2 + 8 + 8]).unwrap();
    stream
}

/// The pipe is full and stays full, as with a stopped terminal or a logger that hangs.
#[test]
fn a_node_neither_waits_for_who_does_not_read_what_it_says_nor_forgets_to_say_it() {
    let place = Place::new("held");
    place.configure("alice", "");
    let (mut read, write) = std::io::pipe().unwrap();
    let mut full = FullPipe::of(&read);
    let mut command = place.longwire(&["node", "--config", "alice.toml"]);
    let alice = command.stderr(write).spawn().unwrap();
    drop(command);
    let pid = Pid::from_child(&alice);
    let began = Instant::now();
    let status = || loop {
        // By --control, because the configuration is invalid later.
        let mut ask = place.longwire(&["status", "--json", "--control", "alice/longwire.sock"]);
        let child = ask.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let asked = place.ended(child, "the node says how it is");
        if asked.status.success() {
            break serde_json::from_slice::<serde_json::Value>(&asked.stdout).unwrap();
        }
        assert!(began.elapsed() < DEADLINE, "it does not answer: {asked:?}");
    };
    while status()["ready"] != true {
        assert!(began.elapsed() < DEADLINE, "it is not ready: {:#}", status());
    }
    // No reader has received the line that the node is ready. The node still accepts requests and signals.
    place.configure("alice", "peers = 'nobody'");
    for times in 0.. {
        kill_process(pid, Signal::HUP).unwrap();
        let status = status();
        if !status["configuration"]["refused"].is_null() && times > 2 {
            break;
        }
        assert!(began.elapsed() < DEADLINE, "it does not read its configuration: {status:#}");
    }
    // Once the pipe is read, all lines of the node arrive.
    let (sender, heard) = mpsc::channel();
    thread::spawn(move || {
        let mut lines = BufReader::new(&mut read).lines().map_while(Result::ok);
        for wanted in
            ["dtn://alice/ is ready: ", "configuration not reloaded, the previous one stays in use: "]
        {
            while !lines.next()?.contains(wanted) {}
            let _ = sender.send((wanted, None));
        }
        drop(lines);
        sender.send(("the pipe", Some(read))).ok()
    });
    let next = |wanted| heard.recv_timeout(DEADLINE).unwrap_or_else(|_| panic!("it does not say {wanted}")).1;
    assert!(next("that it is up").is_none());
    assert!(next("what is wrong").is_none());
    let _unread = next("more");
    // The node also ends in limited time while lines remain unread.
    full.fill();
    place.configure("alice", "peers = 'somebody'");
    kill_process(pid, Signal::HUP).unwrap();
    while !status()["configuration"]["refused"].as_str().is_some_and(|what| what.contains("somebody")) {
        assert!(began.elapsed() < DEADLINE, "it does not read its configuration again: {:#}", status());
    }
    kill_process(pid, Signal::TERM).unwrap();
    assert!(place.ended(alice, "the node ends").status.success());
}

/// Log of a node that is asked to reload an invalid configuration, from its start to its end.
fn log_of_a_node(place: &Place, filter: &str, is_journal: bool) -> Vec<String> {
    place.configure("alice", "");
    let (read, write) = io::pipe().unwrap();
    let pipe = rustix::fs::fstat(&read).unwrap();
    let other = if is_journal { "" } else { "0" };
    let mut command = place.longwire(&["node", "--config", "alice.toml"]);
    command.env("LONGWIRE_LOG", filter);
    command.env("JOURNAL_STREAM", format!("{}:{}{other}", pipe.st_dev, pipe.st_ino));
    let alice = command.stderr(write).spawn().unwrap();
    // Only the node has the pipe open for writing now, so its end is the end of the log.
    drop(command);
    let (sender, heard) = mpsc::channel();
    thread::spawn(move || {
        BufReader::new(read).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    let mut lines: Vec<String> = Vec::new();
    let mut wait_for = |part: &str| {
        while !lines.last().is_some_and(|line| line.contains(part)) {
            let Ok(line) = heard.recv_timeout(DEADLINE) else { panic!("there is no {part} in {lines:?}") };
            lines.push(line);
        }
    };
    if filter.is_empty() {
        wait_for(" is ready: ");
    }
    let began = Instant::now();
    while !place.ask("alice", &["status"]).status.success() {
        assert!(began.elapsed() < DEADLINE, "it does not answer");
    }
    place.configure("alice", "listn = []");
    let pid = Pid::from_child(&alice);
    kill_process(pid, Signal::HUP).unwrap();
    wait_for("hint: ");
    kill_process(pid, Signal::TERM).unwrap();
    assert!(place.ended(alice, "the node ends").status.success());
    lines.extend(heard);
    lines
}

#[test]
fn a_node_that_accepts_only_datagrams_says_where() {
    let place = Place::new("datagrams");
    place.configure("alice", "listen-udp = ['ltp 127.0.0.1:0', '127.0.0.1:0']");
    let alice = place.start("alice");
    let said = "dtn://alice/ is ready: listening on ltp 127.0.0.1:";
    assert!(alice.line.contains(said) && alice.line.contains(", udp 127.0.0.1:"), "{}", alice.line);
    alice.kill();
}

#[test]
fn a_log_has_the_format_of_its_reader_and_the_messages_that_were_selected() {
    let place = Place::new("log");
    let ready = "dtn://alice/ is ready: not accepting connections; control socket ";
    let refused = "configuration not reloaded, the previous one stays in use: alice.toml: ";
    let hint = "hint: did you mean `listen`?";
    let cases: [(&str, bool, &[String]); 3] = [
        ("", false, &[ready.to_owned(), format!("longwire: {refused}"), hint.to_owned()]),
        ("", true, &[format!("<6>{ready}"), format!("<3>{refused}"), format!("<3>{hint}")]),
        ("info,node=warn", true, &[format!("<3>{refused}"), format!("<3>{hint}")]),
    ];
    for (filter, is_journal, expected) in cases {
        let lines = log_of_a_node(&place, filter, is_journal);
        let begins = lines.iter().zip(expected).all(|(line, begin)| line.starts_with(begin));
        assert!(begins && lines.len() == expected.len(), "{filter}: {lines:#?}");
    }
    let mut command = place.longwire(&["node", "--config", "alice.toml", "--check"]);
    let wrong = command.env("LONGWIRE_LOG", "info,stor=debug").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    let said =
        "error: environment variable LONGWIRE_LOG: no such target: `stor`\nhint: did you mean `store`?\n";
    assert_eq!(String::from_utf8(wrong.stderr).unwrap(), said);
    let help = place.longwire(&["node", "--help"]).output().unwrap();
    assert!(String::from_utf8(help.stdout).unwrap().contains("LONGWIRE_LOG=warn,store=info"));
}

/// Full pipe.
struct FullPipe(fs::File);

impl FullPipe {
    /// Opens the pipe for writing and fills it with empty lines.
    fn of(read: &std::io::PipeReader) -> FullPipe {
        // Opened separately, because `O_NONBLOCK` must not apply to the node, which shares the original.
        let path = format!("/proc/self/fd/{}", read.as_raw_fd());
        let open = fs::File::options()
            .write(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(path);
        let mut full = FullPipe(open.unwrap());
        full.fill();
        full
    }

    fn fill(&mut self) {
        for size in [4096, 1] {
            while self.0.write(&[b'\n'; 4096][..size]).is_ok() {}
        }
    }
}

#[test]
fn every_verb_says_what_it_did_and_what_was_meant() {
    let place = Place::new("verbs");
    let at = reserved();
    place.configure("bob", &format!("listen = ['{at}']"));
    place.configure(
        "alice",
        &format!("http.listen = '127.0.0.1:0'\n[[link]]\nname = 'bobby'\naddress = '{at}'"),
    );
    let bob = place.start("bob");
    let alice = place.start("alice");
    assert!(alice.line.contains(", http://127.0.0.1:"), "{}", alice.line);
    let json = |words: &[&str]| -> serde_json::Value {
        serde_json::from_str(&place.asked("alice", &[words, &["--json"]].concat())).unwrap()
    };
    // Standard input is sent under a name.
    let mut sending = place
        .longwire(&["send", "-", "--name", "../notes.txt", "--to", "dtn://bob/files", "--lifetime", "1h"])
        .args(["--priority", "expedited", "--wait", "--json", "--config", "alice.toml"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    sending.stdin.take().unwrap().write_all(b"a line\n").unwrap();
    place.asked("bob", &["recv", "got"]);
    let sent = place.ended(sending, "send has its receipt");
    let sent: serde_json::Value = serde_json::from_slice(&sent.stdout).unwrap();
    assert_eq!(sent["delivered"], true, "{sent}");
    assert_eq!(fs::read(place.path("got/notes.txt")).unwrap(), b"a line\n", "a name is never a path");
    // A waiting bundle is listed, shown and deleted.
    fs::write(place.path("letter"), "hello").unwrap();
    let sent = json(&["send", "letter", "--to", "dtn://mars/files"]);
    let id = sent["bundle"].as_str().unwrap();
    assert_eq!(json(&["bundles", "--state", "no-route", "--to", "dtn://mars/*"])[0]["id"], id);
    assert_eq!(json(&["bundles", "--state", "queued"]), serde_json::json!([]));
    assert_eq!(json(&["bundles", "show", id])[0]["state"], "no_route");
    let shown = place.asked("alice", &["bundles", "show", id]);
    assert!(shown.contains("state           no route to"), "{shown}");
    assert_eq!(json(&["bundles", "cancel", id])["cancelled"], id);
    let again = place.ask("alice", &["bundles", "cancel", id]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("no such bundle"), "{again:?}");
    // Links are added and removed.
    let links = json(&["links", "add", "mars", "127.0.0.1:1"]);
    assert!(links.as_array().unwrap().iter().any(|link| link["name"] == "mars"), "{links}");
    let wrong = place.ask("alice", &["links", "cut", "boby"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("did you mean `bobby`?"), "{wrong:?}");
    let links = json(&["links", "remove", "mars"]);
    assert!(links.as_array().unwrap().iter().all(|link| link["name"] != "mars"), "{links}");
    // Long pings are answered, too, and are summed up.
    let pings = json(&[
        "ping",
        "dtn://bob",
        "--count",
        "2",
        "--interval",
        "0s",
        "--size",
        "300000",
        "--timeout",
        "240s",
    ]);
    assert_eq!(pings["received"], 2, "{pings}");
    assert_eq!(pings["lost_percent"], 0.0, "{pings}");
    assert!(pings["mean_ms"].as_f64() >= pings["least_ms"].as_f64(), "{pings}");
    // An invalid endpoint ID is refused with a suggestion, and a similar neighbour is named.
    for (to, hint) in [("bob/files", "did you mean dtn://bob/files?"), ("ipn:7", "did you mean ipn:7.1?")] {
        let wrong = place.ask("alice", &["send", "letter", "--to", to]);
        assert_eq!(wrong.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&wrong.stderr).contains(hint), "{wrong:?}");
    }
    let near = place.ask("alice", &["send", "letter", "--to", "dtn://bbob/files"]);
    assert!(near.status.success());
    let note = "note: there is no neighbour dtn://bbob/; did you mean dtn://bob/?";
    assert!(String::from_utf8_lossy(&near.stderr).contains(note), "{near:?}");
    // A node that has stopped is distinguished from one that never ran.
    bob.kill();
    let ended = place.ask("bob", &["status"]);
    assert!(String::from_utf8_lossy(&ended.stderr).contains("is not running"), "{ended:?}");
    alice.kill();
}

#[test]
fn commands_without_a_node_say_what_to_do() {
    let place = Place::new("without");
    fs::write(place.path("wrong.toml"), "node = 'dtn://a/'\nlistn = []").unwrap();
    let cases: [(&[&str], i32, &str); 6] = [
        (&["status"], 1, "hint: start the node with `longwire node`"),
        (&["node"], 2, "cannot read node.toml"),
        (&["node", "--config", "wrong.toml"], 2, "hint: did you mean `listen`?"),
        (&["send", "nothing", "--to", "dtn://b/c"], 1, "Nothing was sent."),
        (&["bundles", "show", "dtn://a/@1-1", "--config", "wrong.toml"], 2, "did you mean"),
        (
            &["send", "wrong.toml", "--to", "dtn://b/c", "--lifetime", "5"],
            2,
            "not a valid duration; use a form such as \"200 ms\"",
        ),
    ];
    for (words, status, said) in cases {
        let output = place.longwire(words).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{words:?}: {stderr}");
        assert!(stderr.contains(said), "{words:?}: {stderr}");
    }
}

/// Commands in one block, as in the README: the next one begins before the nodes are ready.
#[test]
fn send_and_recv_wait_for_a_node_that_starts_and_say_so() {
    let place = Place::new("starting");
    let at = reserved();
    place.configure("bob", &format!("listen = ['{at}']"));
    place.configure("alice", &format!("[[link]]\nname = 'bob'\naddress = '{at}'"));
    fs::write(place.path("letter"), "hello").unwrap();
    let begun = |node: &str, words: &[&str]| {
        let config = format!("{node}.toml");
        let more = ["--node-within", "120s", "--config", &config];
        let mut child = place
            .longwire(&[words, &more].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        (child, lines)
    };
    let (sending, mut of_send) = begun("alice", &["send", "letter", "--to", "dtn://bob/files"]);
    let (receiving, mut of_recv) = begun("bob", &["recv", "got"]);
    for said in [of_send.next().unwrap(), of_recv.next().unwrap()] {
        assert!(
            said.starts_with("no node is listening at ") && said.ends_with("waiting for it to start"),
            "{said}"
        );
    }
    let (_alice, bob) = (place.start("alice"), place.start("bob"));
    assert!(place.ended(sending, "send ends").status.success());
    let received = place.ended(receiving, "recv ends");
    let said: Vec<String> = of_recv.collect();
    assert!(received.status.success(), "{said:?}");
    assert_eq!(fs::read(place.path("got/letter")).unwrap(), b"hello");
    drop(of_send);
    // Without a time to wait the command fails at once.
    bob.kill();
    // With --quiet only the failure is printed, although the wait is long enough for the note.
    for words in [&["send", "letter", "--to", "dtn://bob/files"][..], &["recv", "got"]] {
        let ended = place.ask("bob", &[words, &["--quiet", "--node-within", "1500ms"]].concat());
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(
            said.starts_with("error: ") && !said.contains("waiting for it to start"),
            "{words:?}: {said}"
        );
    }
    let ended = place.ask("bob", &["recv", "got", "--node-within", "0s"]);
    assert!(String::from_utf8_lossy(&ended.stderr).contains("is not running"), "{ended:?}");
}

/// The commands of the README, word for word, as a shell gets them when they are pasted as one block.
#[test]
fn the_commands_of_the_readme_work_as_one_block() {
    let place = Place::new("readme");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let section = readme.split_once("## Send a file between two nodes").unwrap().1;
    let block = section.split("```").nth(1).unwrap();
    let commands: Vec<&str> = block.trim().lines().filter(|line| !line.starts_with("cargo build")).collect();
    assert_eq!(commands.len(), 3, "{block}");
    // A loaded machine can take longer to start a node than the default wait.
    let script = commands.join("\n").replace("./target/release/longwire", env!("CARGO_BIN_EXE_longwire"));
    let script =
        script.replace(" send ", " send --node-within 120s ").replace(" recv ", " recv --node-within 120s ");
    fs::create_dir_all(place.path("docs/two-nodes")).unwrap();
    let at = reserved().to_string();
    for name in ["alice", "bob"] {
        let file = format!("docs/two-nodes/{name}.toml");
        let text = fs::read_to_string(root.join(&file)).unwrap();
        let here = format!("{}/longwire", place.path("").display());
        fs::write(place.path(&file), text.replace("/tmp/longwire", &here).replace("127.0.0.1:45560", &at))
            .unwrap();
    }
    let photo = noise(300_000, 3);
    fs::write(place.path("photo.jpg"), &photo).unwrap();
    // The trap also ends the nodes that the script has started.
    let script = format!("trap 'kill $(jobs -p); wait' EXIT\n{script}");
    let child = Command::new("timeout")
        .args([&(DEADLINE / 2).as_secs().to_string(), "bash", "-c", &script])
        .current_dir(place.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = place.ended(child, "the commands of the README end");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("photo.jpg (300.0 kB) from dtn://alice/"), "{output:?}");
    assert_eq!(fs::read(place.path("inbox/photo.jpg")).unwrap(), photo);
}

/// A sender is told at once why the bundle waits, and a receiver that there is no file yet.
#[test]
fn what_waits_and_who_waits_is_told() {
    let place = Place::new("waits");
    let at = reserved();
    place.configure("bob", &format!("listen = ['{at}']"));
    place.configure("alice", &format!("[[link]]\nname = 'bob'\naddress = '{at}'\npeer = 'dtn://bob/'"));
    fs::write(place.path("letter"), "hello").unwrap();
    let alice = place.start("alice");
    let note = |to: &str, more: &[&str]| {
        let output = place.ask("alice", &[&["send", "letter", "--to", to], more].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let said = note("dtn://mars/files", &[]);
    assert!(said.contains("note: waiting at this node: no route to the destination"), "{said}");
    assert_eq!(note("dtn://mars/files", &["--quiet"]), "");
    // The link configured for the destination has never been up; its first attempt may still be under way.
    let said = note("dtn://bob/files", &[]);
    assert!(said.contains("note: waiting at this node: link `bob` to dtn://bob/ is "), "{said}");
    let is_told = |state: &str| said.contains(&format!("dtn://bob/ is {state}"));
    assert!(is_told("being established") || is_told("down: "), "{said}");
    let links = place.asked("alice", &["links"]);
    assert!(!links.contains("down for"), "{links}");
    let bob = place.start("bob");
    let receiving =
        place.longwire(&["recv", "got", "--config", "bob.toml"]).stderr(Stdio::piped()).spawn().unwrap();
    assert!(place.ended(receiving, "recv has the letter").status.success());
    // The reason is the link that was cut, not a missing route.
    place.asked("alice", &["links", "cut", "bob"]);
    wait_down(&place);
    let said = note("dtn://bob/files", &[]);
    assert!(
        said.contains("note: waiting at this node: link `bob` to dtn://bob/ is down: closed by the operator"),
        "{said}"
    );
    let bundles: serde_json::Value =
        serde_json::from_str(&place.asked("alice", &["bundles", "--json", "--to", "dtn://bob/*"])).unwrap();
    assert_eq!(bundles[0]["state"], "links_down", "{bundles}");
    assert_eq!(bundles[0]["transmitted_bytes"], 0, "{bundles}");
    // Nothing waits for a receiver now.
    let mut waiting = place
        .longwire(&["recv", "got", "--config", "bob.toml"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(waiting.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(
        lines.next().unwrap(),
        "waiting for files addressed to dtn://bob/files; stops after the first file, or on Ctrl-C"
    );
    place.asked("alice", &["links", "heal", "bob"]);
    assert!(place.ended(waiting, "recv has the second letter").status.success());
    bob.kill();
    alice.kill();
}

#[test]
fn a_check_is_short_and_finds_what_a_start_would() {
    let place = Place::new("check");
    let at = reserved();
    place.configure("alice", &format!("listen = ['{at}']\n[[link]]\nname = '2h'\naddress = '127.0.0.1:1'"));
    let short = place.asked("alice", &["node", "--check"]);
    assert!(short.lines().count() <= 16 && short.contains("`--check --all`"), "{short}");
    assert!(short.contains("link `2h`"), "{short}");
    let long = place.asked("alice", &["node", "--check", "--all"]);
    assert!(long.lines().count() > 200 && long.contains("  link.0.name = \"2h\""), "{long}");
    let refused = |name: &str, text: &str, what: &str| {
        place.configure(name, text);
        let output = place.ask(name, &["node", "--check"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(what) && said.contains("hint: "), "{said}");
    };
    refused("bob", "listen = ['127.0.0.1']", "`listen`: `127.0.0.1` is not a valid address");
    refused("bob", "listen = ['192.0.2.7:4556']", "cannot listen on 192.0.2.7:4556");
    let http = "[http]\nlisten = '192.0.2.7:8080'\ntoken = 'a-long-token-that-nobody-guesses'";
    refused("bob", http, "cannot listen for HTTP on 192.0.2.7:8080");
    fs::write(place.path("carol"), "a file").unwrap();
    refused("carol", "", "the store");
    let long = format!("control = '{}.sock'", "a".repeat(120));
    refused("dora", &long, "path must be shorter than SUN_LEN");
    // A segment as a newer version would write it.
    fs::create_dir_all(place.path("emil/store")).unwrap();
    fs::write(place.path("emil/store/00000001.log"), b"LWSEG002 and what follows").unwrap();
    refused("emil", "", "00000001.log was written by a newer version of Longwire");
    let files: Vec<_> = fs::read_dir(place.path("emil/store")).unwrap().collect();
    assert_eq!(files.len(), 1, "nothing was made: {files:?}");
}

/// The node accepts a bundle as soon as it has all of it, which may be before `send` looks for a reply again.
#[test]
fn an_answer_that_comes_while_the_file_is_still_being_handed_over_is_heard() {
    let place = Place::new("early");
    place.configure("alice", "control = 'socket'");
    fs::write(place.path("file"), noise(4_000_000, 1)).unwrap();
    let listener = UnixListener::bind(place.path("socket")).unwrap();
    let node = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let reply = br#"{"reply":"accepted","send":1,"source":"dtn://alice/","created":[842000000000,7]}"#;
        // A message: the lengths of its head and of its body, then both.
        let lengths = [(reply.len() as u32).to_be_bytes(), 0_u32.to_be_bytes()].concat();
        stream.write_all(&[&lengths, &reply[..]].concat()).unwrap();
        io::copy(&mut stream, &mut io::sink()).unwrap()
    });
    let output = place.ask("alice", &["send", "file", "--to", "dtn://bob/files", "--quiet"]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("dtn://alice/@842000000000-7"), "{output:?}");
    assert!(node.join().unwrap() > 4_000_000);
}

/// The file name precedes the content. The note on this appears once per destination, unless that is known to be a Longwire
/// node or `--quiet` is set; standard output is the same in all cases.
#[test]
fn a_file_name_for_an_unknown_node_is_told_of_once() {
    let place = Place::new("names");
    let at = reserved();
    place.configure("alice", &format!("listen = ['{at}']"));
    place.configure("bob", &format!("[[link]]\nname = 'alice'\naddress = '{at}'"));
    fs::write(place.path("letter"), "hello").unwrap();
    let _alice = place.start("alice");
    let send = |to: &str, more: &[&str]| {
        let output = place.ask("alice", &[&["send", "letter", "--to", to], more].concat());
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.starts_with("queued as dtn://alice/@") && said.lines().count() == 1, "{said}");
        String::from_utf8(output.stderr).unwrap()
    };
    let is_told = |said: &str| {
        let (note, hint) =
            (said.contains("note: the bundle starts with the file name"), said.contains("hint: use --raw"));
        assert_eq!(note, hint, "{said}");
        note
    };
    assert!(!is_told(&send("ipn:2.7", &["--raw"])), "it has no name");
    assert_eq!(send("ipn:2.7", &["--quiet"]), "");
    assert!(is_told(&send("ipn:2.7", &[])));
    assert!(!is_told(&send("ipn:2.8", &[])), "it was told of that node");
    assert!(!is_told(&send("dtn://alice/files", &[])), "it is this node");
    // A node that has sent a file with a name is a Longwire node.
    let _bob = place.start("bob");
    place.asked("bob", &["send", "letter", "--to", "dtn://alice/files"]);
    let mut receiving = place.longwire(&["recv", "got", "--config", "alice.toml"]);
    assert!(receiving.stdout(Stdio::null()).status().unwrap().success());
    assert!(!is_told(&send("dtn://bob/files", &[])), "it is known");
    assert!(is_told(&send("dtn://carol/files", &[])), "it is not");
}
