//! Nodes as real processes in a temporary folder.

#![allow(dead_code, reason = "each test file uses a part of it")]

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Limit for every step of these tests, even on a heavily loaded machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(240);

/// Limit for a status request; a node that exceeds it is stuck.
const ANSWER: Duration = Duration::from_secs(20);

/// Temporary folder with the configurations and stores of nodes, removed on drop.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Place {
        static COUNT: AtomicU16 = AtomicU16::new(0);
        let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("longwire-{name}-{process}-{number}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Place(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn configure(&self, name: &str, text: &str) {
        let text = format!(
            "node = 'dtn://{name}/'\nstorage.path = '{name}/store'\nagent.reports.delivery = true\n{text}"
        );
        fs::write(self.path(&format!("{name}.toml")), text).unwrap();
    }

    pub(crate) fn longwire(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.args(words).current_dir(&self.0).env_clear().stdin(Stdio::null());
        command
    }

    /// Runs a command that connects to a node.
    pub(crate) fn ask(&self, node: &str, words: &[&str]) -> Output {
        let config = format!("{node}.toml");
        let mut command = self.longwire(&[words, &["--config", &config]].concat());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        self.ended(child, &format!("{words:?} of {node} ends"))
    }

    /// Waits until a command ends; fails at the deadline with the status of all nodes.
    #[track_caller]
    pub(crate) fn ended(&self, child: Child, what: &str) -> Output {
        ended_within(DEADLINE, child).unwrap_or_else(|| panic!("waited in vain: {what}\n{}", self.statuses()))
    }

    /// Returns the status of all nodes that are configured in the folder, and their logs.
    pub(crate) fn statuses(&self) -> String {
        let files = fs::read_dir(&self.0).into_iter().flatten().flatten().map(|entry| entry.path());
        let show = |path: PathBuf| {
            let said = match path.extension()?.to_str()? {
                "toml" => self.status_by(&path),
                "log" => fs::read_to_string(&path).ok()?,
                _ => return None,
            };
            Some(format!("{}: {said}\n", path.display()))
        };
        files.filter_map(show).collect()
    }

    fn status_by(&self, config: &Path) -> String {
        let mut command = self.longwire(&["status", "--json", "--config"]);
        let child = command.arg(config).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let Some(output) = ended_within(ANSWER, child) else { return "it does not answer".to_owned() };
        let said = if output.status.success() { output.stdout } else { output.stderr };
        String::from_utf8_lossy(&said).into_owned()
    }

    #[track_caller]
    pub(crate) fn asked(&self, node: &str, words: &[&str]) -> String {
        let output = self.ask(node, words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts a node without waiting until it is ready. What it says is in a file, which [`Place::statuses`] shows.
    pub(crate) fn begin(&self, name: &str) -> Running {
        let config = format!("{name}.toml");
        let mut command = self.longwire(&["node", "--config", &config]);
        let log = fs::OpenOptions::new().create(true).append(true).open(self.path(&format!("{name}.log")));
        Running { child: command.stderr(log.unwrap()).spawn().unwrap(), line: String::new() }
    }

    /// Starts a node and waits until it is ready.
    pub(crate) fn start(&self, name: &str) -> Running {
        let config = format!("{name}.toml");
        let mut child = self.longwire(&["node", "--config", &config]).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (sender, heard) = mpsc::channel();
        thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut all = Vec::new();
        loop {
            match heard.recv_timeout(DEADLINE) {
                Ok(line) if line.contains(" is ready: ") => return Running { child, line },
                Ok(line) => all.push(line),
                Err(_) => panic!("{name} does not come up: {all:?}"),
            }
        }
    }
}

/// Returns the output and exit status of a command; `None` if it does not end in time and is killed.
fn ended_within(time: Duration, child: Child) -> Option<Output> {
    let process = Pid::from_child(&child);
    let (done, over) = mpsc::channel();
    thread::spawn(move || done.send(child.wait_with_output()));
    match over.recv_timeout(time) {
        Ok(output) => Some(output.unwrap()),
        Err(_) => {
            let _ = kill_process(process, Signal::KILL);
            None
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Running node, killed on drop.
pub(crate) struct Running {
    child: Child,
    /// Line that the node printed when it was ready.
    pub(crate) line: String,
}

impl Running {
    /// Kills the node with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns an address for a node: on a loopback address that only this process uses, and outside the range of ports that
/// the system assigns. No other program gets it, so a restarted node can use it again.
pub(crate) fn reserved() -> SocketAddr {
    static COUNT: AtomicU16 = AtomicU16::new(0);
    // Process IDs have 22 bits.
    let [_, a, b, c] = std::process::id().to_be_bytes();
    SocketAddr::from(([127, 64 | a, b, c], 10_000 + COUNT.fetch_add(1, Ordering::Relaxed)))
}

/// Returns pseudorandom bytes.
pub(crate) fn noise(length: usize, mut seed: u64) -> Vec<u8> {
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Waits until something is so; fails at the deadline with the status of all nodes.
#[track_caller]
pub(crate) fn wait(what: &str, place: &Place, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    // Pauses between two checks, so that the nodes get the processor.
    let (_alive, never) = mpsc::channel::<()>();
    while !is_so() {
        assert!(began.elapsed() < DEADLINE, "waited in vain: {what}\n{}", place.statuses());
        let _ = never.recv_timeout(Duration::from_millis(20));
    }
}
