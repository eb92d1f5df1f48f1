//! `longwire demo`.

use crate::failure::{CommandFailure, CommandResult};
use crate::flag;
use crate::node_connection::{bytes, print};
use crate::node_file::NodeFile;
use crate::output::interrupts;
use clap::Args;
use longwire_emulator::{Emulator, Ports, UdpPlace};
use longwire_lab::compare;
use longwire_lab::error::Error;
use longwire_lab::link::{self, LinkPath};
use longwire_node::{Config, Node, NodeSetup};
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Pages of both nodes, if these ports are free.
const PAGES: [u16; 2] = [4580, 4590];
const NAMES: [&str; 2] = ["alice", "bob"];
/// Time that the first file needs on the link at least, so that its transfer can be watched.
const WATCHED_S: u64 = 20;
const TEXT_BYTES_MAX: u64 = 20_000_000;
/// First line of the configurations of a demonstration, which the next one may replace.
const MARK: &str = "# Written by `longwire demo`.";
/// Endings of incomplete files, which a drop folder leaves alone.
const UNSENT: [&str; 6] = ["~", ".part", ".tmp", ".crdownload", ".filepart", ".swp"];
/// Interval between two looks for arrived files.
const LOOK: Duration = Duration::from_millis(100);

/// Show two real nodes and a link between them, in the browser
///
/// Starts two nodes, alice and bob, over an emulated link in real time, and sends a file. Prints the addresses of their
/// pages; a file that is copied into the folder of alice is sent as well. Nothing has to be configured, and nothing remains
/// after Ctrl-C, except with --dir.
#[derive(Debug, Args)]
#[command(after_help = format!("Built-in links: {}.", link::shipped_names()))]
pub(crate) struct Demo {
    /// Link: `radio` for packet radio at 1200 bit/s, a built-in profile, or the path of a profile (.toml)
    #[arg(value_name = "LINK", default_value = "cislunar")]
    link: String,
    /// File that alice sends to bob [default: a text that takes about 20 s at the rate of the link]
    #[arg(long, value_name = "FILE")]
    send: Option<PathBuf>,
    /// Folder for the nodes and their files, which remains [default: a temporary one, which is removed]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// End after this time: 10s, 1h [default: run until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = flag::time_above_zero)]
    time: Option<Duration>,
}

/// Folder of the demonstration; a temporary one is removed on drop.
enum Folder {
    Given(PathBuf),
    Temporary(TempDir),
}

impl Folder {
    fn path(&self) -> &Path {
        match self {
            Folder::Given(path) => path,
            Folder::Temporary(folder) => folder.path(),
        }
    }
}

impl Demo {
    pub(crate) fn run(&self) -> CommandResult {
        // Two nodes would fill the terminal with their logs.
        if std::env::var_os("LONGWIRE_LOG").is_some() {
            longwire_node::log::begin().map_err(CommandFailure::Usage)?;
        }
        let name = if self.link == "radio" { "ax25-1200" } else { &self.link };
        let path = LinkPath::load(name, Path::new(".")).map_err(CommandFailure::Usage)?;
        let stop = interrupts()?;
        let folder = self.folder()?;
        let first = self.first_file(&path)?;
        let mut emulator = Emulator::open(&path, &ports(&path), seed())?;
        let towards = emulator.addresses().to_vec();
        let start = |node: usize| {
            let started = |page| {
                let configured = configuration(folder.path(), node, page, name, &path, &towards)?;
                Node::start(NodeSetup::new(configured))
            };
            // The system chooses a port if another program has the usual one.
            started(PAGES[node]).or_else(|_| started(0))
        };
        let nodes = [start(0)?, start(1)?];
        if let [[here], [there]] = nodes.each_ref().map(Node::udp_addresses) {
            emulator.programs_are([*here, *there]);
        }
        let ends = Arc::new(AtomicBool::new(false));
        let ends_too = ends.clone();
        let emulation = thread::spawn(move || emulator.run(&ends_too, None));
        let shown = self.show(&path, folder.path(), &nodes, &first, || {
            stop.load(Ordering::Relaxed) || emulation.is_finished()
        });
        for node in nodes {
            node.stop();
        }
        ends.store(true, Ordering::Relaxed);
        let report = emulation.join().map_err(|_| Error::new("the emulation of the link has failed"))??;
        shown?;
        let packets: u64 = report.ends.iter().map(|end| end.sent).sum();
        print(&format!(
            "{packets} packets on the link; half of them were late by less than {} ms",
            report.lateness.median_ms
        ))
    }

    fn folder(&self) -> Result<Folder, Error> {
        let failed = |place: &Path, error: std::io::Error| {
            Error::new(format!("cannot create {}: {error}", place.display()))
                .hint("choose another folder with --dir")
        };
        let folder = match &self.dir {
            Some(path) => {
                let made = fs::create_dir_all(path).and_then(|()| path.canonicalize());
                Folder::Given(made.map_err(|error| failed(path, error))?)
            }
            None => {
                let made = tempfile::Builder::new().prefix("longwire-demo-").tempdir();
                Folder::Temporary(made.map_err(|error| failed(&std::env::temp_dir(), error))?)
            }
        };
        for name in NAMES.iter().flat_map(|name| [format!("{name}/out"), format!("{name}/in")]) {
            let place = folder.path().join(name);
            fs::create_dir_all(&place).map_err(|error| failed(&place, error))?;
        }
        Ok(folder)
    }

    /// Sends the first file, and tells what arrives until the end.
    fn show(
        &self,
        path: &LinkPath,
        folder: &Path,
        nodes: &[Node; 2],
        (file, content): &(String, Vec<u8>),
        has_ended: impl Fn() -> bool,
    ) -> CommandResult {
        print(&format!("Two nodes over an emulated link in real time: {}.", in_words(path)))?;
        for (name, node) in NAMES.iter().zip(nodes) {
            let address = node.http_address().ok_or_else(|| Error::new("a node without a page"))?;
            print(&format!("  {name:<6} http://{address}/"))?;
        }
        let (out, arrived) = (folder.join(NAMES[0]).join("out"), folder.join(NAMES[1]).join("in"));
        // Files of an earlier demonstration in the same folder are not news.
        let mut seen: BTreeSet<PathBuf> = files_in(&arrived).collect();
        write_whole(&out, file, content)?;
        let length = bytes(content.len() as u64);
        print(&format!("alice sends {file} ({length}) to bob; copy more files into {}", out.display()))?;
        print("Ctrl-C ends the demonstration.")?;
        let began = Instant::now();
        while !has_ended() && self.time.is_none_or(|time| began.elapsed() < time) {
            for file in files_in(&arrived) {
                if seen.contains(&file) {
                    continue;
                }
                let length = file.metadata().map_or(0, |metadata| metadata.len());
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let seconds = began.elapsed().as_secs_f64();
                print(&format!("after {seconds:.1} s: bob has received {name} ({})", bytes(length)))?;
                seen.insert(file);
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Demo {
    /// Name and content of the first file.
    fn first_file(&self, path: &LinkPath) -> Result<(String, Vec<u8>), Error> {
        let Some(file) = &self.send else { return Ok(("hello.txt".to_owned(), text_for(path))) };
        let content = fs::read(file).map_err(|error| {
            Error::new(format!("cannot read {}: {error}", file.display())).hint("give a file with --send")
        })?;
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else {
            return Err(Error::new(format!("{} has no name that can be sent", file.display()))
                .hint("rename the file: its name must be UTF-8"));
        };
        match !name.starts_with('.') && !UNSENT.iter().any(|ending| name.ends_with(ending)) {
            true => Ok((name.to_owned(), content)),
            false => {
                Err(Error::new(format!("a drop folder does not send files that are called like {name}"))
                    .hint("rename it; docs/folders.md lists the names of incomplete files"))
            }
        }
    }
}

/// Complete files in a folder.
fn files_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_whole = |path: &PathBuf| {
        path.is_file() && path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'))
    };
    entries.map(|entry| entry.path()).filter(is_whole)
}

/// Port of the link for each node.
fn ports(path: &LinkPath) -> Ports {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    match path.is_radio() {
        true => Ports::Kiss(vec![any, any]),
        false => Ports::Udp([UdpPlace { listen: any, program: None }; 2]),
    }
}

/// Configuration of a node, with the settings that `compare` computes for the link.
fn configuration(
    folder: &Path,
    node: usize,
    page: u16,
    link: &str,
    path: &LinkPath,
    towards: &[SocketAddr],
) -> Result<Config, Error> {
    let (own, peer) = (NAMES[node], NAMES[1 - node]);
    let (port, station) = (towards[node], 2 - node);
    let (listen, over, protocol) = match path.is_radio() {
        false => (
            "listen-udp = [\"ltp 127.0.0.1:0\"]\n".to_owned(),
            format!("kind = \"ltp\"\naddress = \"{port}\"\n"),
            "ltp/tuned",
        ),
        true => (
            String::new(),
            format!("kind = \"ax25cl\"\ntnc = \"air\"\ncallsign = \"DEMO-{station}\"\n"),
            "ax25cl/tuned",
        ),
    };
    let tnc = match path.is_radio() {
        true => format!("[[tnc]]\nname = \"air\"\naddress = \"{port}\"\ncallsign = \"DEMO-{}\"\n", node + 1),
        false => String::new(),
    };
    let text = format!(
        "node = \"dtn://{own}/\"\n{listen}\n\
         [storage]\npath = \"{own}/store\"\n\n\
         [http]\nlisten = \"127.0.0.1:{page}\"\n\n\
         [agent.reports]\ndelivery = true\n\n\
         [[drop]]\nfolder = \"{own}/out\"\nto = \"dtn://{peer}/demo\"\n\n\
         [[receive]]\nfolder = \"{own}/in\"\nendpoint = \"demo\"\n\n{tnc}\n\
         [[link]]\nname = \"{peer}\"\npeer = \"dtn://{peer}/\"\n{over}"
    );
    let file = folder.join(format!("{own}.toml"));
    let is_foreign = |text: String| !text.starts_with(MARK);
    if fs::read_to_string(&file).is_ok_and(is_foreign) {
        return Err(Error::new(format!("{} exists, and is not of a demonstration", file.display()))
            .hint("choose another folder with --dir"));
    }
    let node_file = NodeFile::parse(&file, text, None)?;
    let merged = node_file.with(protocol, &compare::configuration_of(protocol, link)?)?;
    fs::write(&file, format!("{MARK}\n{}", merged.text))
        .map_err(|error| Error::new(format!("cannot write {}: {error}", file.display())))?;
    Config::load(&file)
}

/// Each demonstration has errors of its own.
fn seed() -> u64 {
    std::process::id().into()
}

/// A text whose transfer can be watched for a while.
fn text_for(path: &LinkPath) -> Vec<u8> {
    const LINE: &str = "Nothing that a node has accepted is ever lost.\n";
    let slowest = path.hops.iter().map(|hop| hop.rate_bps).min().unwrap_or(0);
    let length = (slowest / 8 * WATCHED_S).clamp(1000, TEXT_BYTES_MAX) as usize;
    let mut text = LINE.repeat(length.div_ceil(LINE.len()));
    text.truncate(length);
    text.into_bytes()
}

/// Writes a file into a drop folder; it is sent when it has its name.
fn write_whole(folder: &Path, name: &str, content: &[u8]) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::new(format!("cannot write {}: {error}", folder.display()));
    let part = folder.join(format!("{name}.part"));
    fs::write(&part, content).map_err(failed)?;
    fs::rename(part, folder.join(name)).map_err(failed)
}

fn in_words(path: &LinkPath) -> String {
    let hop = path.last();
    let rate = match path.title.contains("bit/s") {
        true => String::new(),
        false => format!(", {} bit/s", hop.rate_bps),
    };
    let delay = match hop.delay_ms {
        0.0 => String::new(),
        ms if ms < 1000.0 => format!(", {ms} ms one way"),
        ms => format!(", {} s one way", ms / 1000.0),
    };
    format!("{}{rate}{delay}", path.title)
}
