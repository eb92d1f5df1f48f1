//! Processes, files and networks of the tests.
#![allow(dead_code, reason = "each test uses a part")]

use sha2::{Digest, Sha256};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

/// Limit in seconds of a transfer, for the slowest machine.
pub const TIMEOUT: &str = "240";
/// Time in seconds for which receivers stay and answer, so that a lost acknowledgement is repeated: until the test ends them.
pub const LINGER: &str = "240";

/// Options of a sender whose receivers may have to wait for the processor: its usual 20 attempts take 40 ms on loopback.
pub const PATIENCE: [&str; 2] = ["--robust", "200"];

/// Temporary folder, removed on drop.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new() -> Place {
        static COUNT: AtomicU16 = AtomicU16::new(0);
        let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("longwire-norm-{process}-{number}"));
        fs::create_dir_all(&path).expect("a temporary folder");
        Place(path)
    }

    /// A file with bytes that depend on its name.
    pub fn file(&self, name: &str, bytes: usize) -> (String, String) {
        let mut contents = Vec::new();
        for block in 0..bytes.div_ceil(32) {
            contents.extend_from_slice(&Sha256::digest(format!("{name} {block}")));
        }
        contents.truncate(bytes);
        let path = self.0.join(name);
        fs::write(&path, &contents).expect("a file");
        (path.to_str().expect("a plain name").to_owned(), sha256(&contents))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn sha256(contents: &[u8]) -> String {
    Sha256::digest(contents).iter().map(|octet| format!("{octet:02x}")).collect()
}

/// A network with a loopback interface alone, which carries multicast. It disappears with its process.
pub struct Namespace {
    holder: Child,
    input: Option<ChildStdin>,
    /// Options of `nsenter` that need no administrator.
    user: &'static [&'static str],
}

impl Namespace {
    /// `None` if this machine does not permit it; prints the reason.
    pub fn new() -> Option<Namespace> {
        let ways: [(&[&str], &'static [&'static str]); 2] = [
            (&["--net"], &[]),
            (&["--user", "--map-root-user", "--net"], &["--user", "--preserve-credentials"]),
        ];
        let mut troubles = Vec::new();
        for (way, user) in ways {
            let set_up = "PATH=$PATH:/sbin:/usr/sbin; ip link set lo up multicast on && \
                          ip route add 224.0.0.0/4 dev lo && echo ready && exec cat";
            let mut holder = Command::new("unshare")
                .args(way)
                .args(["sh", "-c", set_up])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("unshare");
            let mut line = String::new();
            let output = holder.stdout.take().expect("it is piped");
            let input = holder.stdin.take();
            if BufReader::new(output).read_line(&mut line).is_ok() && line == "ready\n" {
                return Some(Namespace { holder, input, user });
            }
            drop(input);
            let output = holder.wait_with_output().expect("it ends");
            troubles.push(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        eprintln!("skipped: no network namespace here: {}", troubles.join("; ").replace('\n', " "));
        None
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.holder.wait();
    }
}

/// A running peer, killed on drop.
pub struct Peer {
    process: Child,
    lines: BufReader<ChildStdout>,
    pub heard: Vec<String>,
}

impl Peer {
    /// Starts a peer with NRL's library, and waits until it is ready.
    pub fn start(namespace: Option<&Namespace>, arguments: &[&str]) -> Peer {
        Peer::of(env!("CARGO_BIN_EXE_norm-peer"), namespace, arguments)
    }

    /// Starts a peer with the engine of Longwire, and waits until it is ready.
    pub fn own(namespace: Option<&Namespace>, arguments: &[&str]) -> Peer {
        Peer::of(env!("CARGO_BIN_EXE_norm-longwire"), namespace, arguments)
    }

    fn of(program: &str, namespace: Option<&Namespace>, arguments: &[&str]) -> Peer {
        let mut command = match namespace {
            None => Command::new(program),
            Some(namespace) => {
                let mut command = Command::new("nsenter");
                command.args(["--target", &namespace.holder.id().to_string(), "--net"]);
                command.args(namespace.user).arg(program);
                command
            }
        };
        command.args(arguments).args(["--timeout", TIMEOUT]);
        let mut process = command.stdout(Stdio::piped()).spawn().expect("the program is built");
        let lines = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut peer = Peer { process, lines, heard: Vec::new() };
        assert!(peer.event("ready").is_some(), "{arguments:?}: {:?}", peer.heard);
        peer
    }

    /// Waits for the next event of this name; `None` if the peer ends before.
    pub fn event(&mut self, name: &str) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).expect("lines of text") == 0 {
                return None;
            }
            self.heard.push(line.trim().to_owned());
            if line.contains(&format!("\"event\":\"{name}\"")) {
                return Some(line.trim().to_owned());
            }
        }
    }

    pub fn completed(&mut self) -> String {
        self.event("object-completed").unwrap_or_else(|| panic!("no object: {:#?}", self.heard))
    }

    /// Waits for the end, and returns the exit status.
    pub fn end(mut self) -> (i32, Vec<String>) {
        while self.event("end").is_some() {}
        let status = self.process.wait().expect("it ends");
        (status.code().unwrap_or(-1), std::mem::take(&mut self.heard))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port for two processes: below the ephemeral ports of the operating system, and never twice in this process.
pub fn port() -> String {
    static COUNT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() % 600) as u16 * 32;
    (first + COUNT.fetch_add(1, Ordering::Relaxed)).to_string()
}

/// Whether a line has this member.
pub fn has(line: &str, key: &str, value: &str) -> bool {
    line.contains(&format!("\"{key}\":{value},")) || line.contains(&format!("\"{key}\":{value}}}"))
}

/// The number that a line has for a member.
pub fn number(line: &str, key: &str) -> usize {
    let (_, rest) = line.split_once(&format!("\"{key}\":")).unwrap_or_else(|| panic!("no {key}: {line}"));
    let digits = rest.split(|octet: char| !octet.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("{key} is no number: {line}"))
}

pub fn text(value: &str) -> String {
    format!("\"{value}\"")
}

/// Options of all processes of a group in a namespace.
pub const GROUP: [&str; 7] =
    ["--address", "239.255.10.1", "--port", "6003", "--interface", "lo", "--loopback"];
