//! Protocols over an emulated link in real time: live nodes of this program, and the TCP of the kernel.

use crate::node_file::NodeFile;
use bytes::Bytes;
use longwire_emulator::{Emulator, LatenessFigures, Namespace, Ports};
use longwire_lab::error::Error;
use longwire_lab::link::LinkPath;
use longwire_lab::record::{Configuration, Ranked};
use longwire_node::message::{Message, MessageOptions, PART_BYTES, Reply, Request};
use longwire_node::{Config, ControlConnection, Node, NodeSetup};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Protocol whose live counterpart is the TCP of the kernel.
const KERNEL: &str = "tcp/linux-6";
/// Address of the receiving end on an emulated link.
const RECEIVER: &str = "10.64.0.2:4556";
const ENDPOINT: &str = "live";
/// Interval between two checks whether the run is to end.
const LOOK: Duration = Duration::from_millis(50);

/// A live run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LiveRun {
    /// Time until the last byte was at the destination, seconds; `None` if that took too long.
    pub(crate) transfer_s: Option<f64>,
    pub(crate) lateness: LatenessFigures,
}

/// Returns true if the settings can be run live as they are: by nodes or by the kernel, without changes of the system.
pub(crate) fn can_run(place: &Ranked, path: &LinkPath) -> bool {
    let kind = place.configuration.kind;
    let is_supported = match (path.is_radio(), kind) {
        (true, kind) => kind == Some("ax25cl"),
        (false, Some(_)) => true,
        (false, None) => place.name() == KERNEL,
    };
    is_supported && place.configuration.system.is_empty()
}

/// Transfers files over the link in real time; gives up after `limit`, or when `stop` is set.
///
/// # Errors
/// Fails without the permission for network namespaces, or if a node does not start.
pub(crate) fn run(
    place: &Ranked,
    path: &LinkPath,
    files: &[Bytes],
    seed: u64,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<LiveRun, Error> {
    let (namespaces, ports) = match path.is_radio() {
        true => {
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            (None, Ports::Kiss(vec![any, any]))
        }
        false => {
            let namespaces = [Namespace::new()?, Namespace::new()?];
            let ports = Ports::Tun([namespaces[0].path(), namespaces[1].path()]);
            (Some(namespaces), ports)
        }
    };
    let mut emulator = Emulator::open(path, &ports, seed)?;
    let (addresses, over) = (emulator.addresses().to_vec(), AtomicBool::new(false));
    thread::scope(|scope| {
        let emulation = scope.spawn(|| emulator.run(&over, None));
        let deadline = Deadline { at: Instant::now() + limit, stop };
        let transferred = match (place.configuration.kind, &namespaces) {
            (None, Some(namespaces)) => kernel(namespaces, files, &deadline),
            _ => nodes(place, namespaces.as_ref(), &addresses, files, &deadline),
        };
        over.store(true, Ordering::Relaxed);
        let report = emulation.join().map_err(|_| Error::new("the emulation of the link has failed"))??;
        Ok(LiveRun { transfer_s: transferred?, lateness: report.lateness })
    })
}

/// Time at which a run is given up.
struct Deadline<'a> {
    at: Instant,
    stop: &'a AtomicBool,
}

impl Deadline<'_> {
    fn has_come(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || Instant::now() >= self.at
    }
}

// ---------------------------------------------------------------------------------------------------------------
// The TCP of the kernel

/// Writes all files to one connection, and reads them at the other end.
fn kernel(
    namespaces: &[Namespace; 2],
    files: &[Bytes],
    deadline: &Deadline<'_>,
) -> Result<Option<f64>, Error> {
    let failed = |error: std::io::Error| Error::new(format!("the TCP of the kernel: {error}"));
    let listener = namespaces[1].run(|| TcpListener::bind(RECEIVER))?.map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let began = Instant::now();
    let calling = || {
        // The default depends on the system, and the virtual run has Reno.
        let _ = fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno");
        let address: SocketAddr = RECEIVER.parse().expect("it is an address");
        TcpStream::connect_timeout(&address, deadline.at.saturating_duration_since(Instant::now()).max(LOOK))
    };
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut stream = namespaces[0].run(calling)?.map_err(failed)?;
            stream.set_write_timeout(Some(LOOK)).map_err(failed)?;
            for file in files {
                let mut rest = &file[..];
                while !rest.is_empty() && !deadline.has_come() {
                    match stream.write(rest) {
                        Ok(length) => rest = &rest[length..],
                        Err(error) if is_temporary(&error) => {}
                        Err(error) => return Err(failed(error)),
                    }
                }
            }
            Ok(stream)
        });
        let expected: usize = files.iter().map(Bytes::len).sum();
        let received = receive(&listener, expected, deadline);
        let at = Instant::now();
        let sent = sender.join().map_err(|_| Error::new("the sender has failed"))?;
        let received = received.map_err(failed)?;
        sent?;
        Ok((received == files.concat()).then(|| (at - began).as_secs_f64()))
    })
}

fn receive(listener: &TcpListener, expected: usize, deadline: &Deadline<'_>) -> std::io::Result<Vec<u8>> {
    let mut received = Vec::with_capacity(expected);
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if is_temporary(&error) && !deadline.has_come() => thread::sleep(LISTENS),
            Err(error) if is_temporary(&error) => return Ok(received),
            Err(error) => return Err(error),
        }
    };
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LOOK))?;
    let mut buffer = vec![0; 1 << 16];
    while received.len() < expected && !deadline.has_come() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => received.extend_from_slice(&buffer[..length]),
            Err(error) if is_temporary(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(received)
}

/// Interval between two looks for a caller: a thousandth of the shortest transfer that is worth a comparison.
const LISTENS: Duration = Duration::from_micros(500);

fn is_temporary(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

// ---------------------------------------------------------------------------------------------------------------
// Live nodes

fn nodes(
    place: &Ranked,
    namespaces: Option<&[Namespace; 2]>,
    tncs: &[SocketAddr],
    files: &[Bytes],
    deadline: &Deadline<'_>,
) -> Result<Option<f64>, Error> {
    // For the control sockets; removed at the end.
    let folder = tempfile::Builder::new().prefix("longwire-live-").tempdir();
    let folder = folder.map_err(|error| Error::new(format!("no folder for the nodes: {error}")))?;
    let kind = place.configuration.kind.expect("nodes have such links");
    let start = |end: usize| -> Result<(Node, ControlConnection), Error> {
        let config = configuration(folder.path(), end, kind, tncs, &place.name(), &place.configuration)?;
        let control = config.control();
        let start = || Node::start(NodeSetup::new(config));
        let node = match namespaces {
            Some(namespaces) => namespaces[end].run(|| {
                // Only in this namespace: the default depends on the system, and the virtual run has Reno.
                let _ = fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno");
                start()
            })??,
            None => start()?,
        };
        let connection = ControlConnection::open(&control);
        Ok((node, connection.map_err(|error| Error::new(format!("cannot connect to a node: {error}")))?))
    };
    let (bob, mut there) = start(1)?;
    say(&mut there, Request::Register { endpoint: ENDPOINT.to_owned(), inline_bytes: 0 })?;
    let began = Instant::now();
    let (alice, mut here) = start(0)?;
    for (file, number) in files.iter().zip(1..) {
        let (length, options) = (file.len() as u64, MessageOptions::default());
        let to = format!("dtn://bob/{ENDPOINT}");
        let mut rest = file.clone();
        let mut head = Request::Send { send: number, to, length, options };
        loop {
            let body = rest.split_to(rest.len().min(PART_BYTES as usize));
            say(&mut here, Message { head, body })?;
            if rest.is_empty() {
                break;
            }
            head = Request::Piece { send: number };
        }
    }
    let mut arrived: Vec<(u64, u64)> = Vec::new();
    let mut at = None;
    while at.is_none() && !deadline.has_come() {
        if let Some(Message { head: Reply::Delivered { delivery, length, .. }, .. }) = hear(&mut there)? {
            arrived.push((delivery, length));
            at = (arrived.len() == files.len()).then(Instant::now);
        }
    }
    let is_whole = at.is_some() && are_intact(&mut there, &arrived, files, deadline)?;
    drop((here, there));
    alice.stop();
    bob.stop();
    Ok(at.filter(|_| is_whole).map(|at| (at - began).as_secs_f64()))
}

fn say(connection: &mut ControlConnection, message: impl Into<Message<Request>>) -> Result<(), Error> {
    connection.say(message).map_err(|error| Error::new(format!("a node has ended: {error}")))
}

fn hear(connection: &mut ControlConnection) -> Result<Option<Message<Reply>>, Error> {
    let said = connection.hear(LOOK).map_err(|error| Error::new(format!("a node has ended: {error}")))?;
    match said {
        Some(Message { head: Reply::Error { what, hint, .. }, .. }) => Err(Error { what, hint }),
        said => Ok(said),
    }
}

/// Compares what has arrived with the files; they arrive in any order.
fn are_intact(
    connection: &mut ControlConnection,
    arrived: &[(u64, u64)],
    files: &[Bytes],
    deadline: &Deadline<'_>,
) -> Result<bool, Error> {
    let mut missing: Vec<&Bytes> = files.iter().collect();
    for &(delivery, length) in arrived {
        let mut content = Vec::new();
        let mut asked = 0;
        while (content.len() as u64) < length {
            if deadline.has_come() {
                return Ok(false);
            }
            let at = content.len() as u64;
            // A part may come in several pieces.
            if at == asked {
                let part = (length - at).min(PART_BYTES.into()) as u32;
                say(connection, Request::Read { delivery, offset: at, length: part })?;
                asked = at + u64::from(part);
            }
            match hear(connection)? {
                Some(Message { head: Reply::Data { offset, .. }, body }) if offset == at => {
                    content.extend_from_slice(&body);
                }
                Some(Message { head: Reply::Gone { .. }, .. }) => return Ok(false),
                _ => {}
            }
        }
        let Some(at) = missing.iter().position(|file| ***file == content) else { return Ok(false) };
        missing.swap_remove(at);
    }
    Ok(missing.is_empty())
}

/// Configuration of an end with the settings of the protocol: 0 sends, 1 receives.
fn configuration(
    folder: &Path,
    end: usize,
    kind: &str,
    tncs: &[SocketAddr],
    protocol: &str,
    settings: &Configuration,
) -> Result<Config, Error> {
    let name = ["alice", "bob"][end];
    let control = folder.join(format!("{name}.sock"));
    let mut text =
        format!("node = \"dtn://{name}/\"\ncontrol = \"{}\"\nstorage.kind = \"memory\"\n", control.display());
    if end == 1 && tncs.is_empty() {
        text += &match kind {
            // Nobody else is in the namespace.
            "tcp" => format!("peers = \"any\"\nlisten = [\"{RECEIVER}\"]\n"),
            datagrams => format!("listen-udp = [\"{datagrams} {RECEIVER}\"]\n"),
        };
    }
    if let Some(tnc) = tncs.get(end) {
        text += &format!("[[tnc]]\nname = \"air\"\naddress = \"{tnc}\"\ncallsign = \"TEST-{}\"\n", end + 1);
    }
    if end == 0 {
        text += &format!("[[link]]\nname = \"bob\"\nkind = \"{kind}\"\npeer = \"dtn://bob/\"\n");
        text += &match tncs.is_empty() {
            true => format!("address = \"{RECEIVER}\"\n"),
            false => "tnc = \"air\"\ncallsign = \"TEST-2\"\n".to_owned(),
        };
    }
    let merged = NodeFile::parse(&folder.join("node.toml"), text, None)?.with(protocol, settings)?;
    Config::parse(&merged.text, name, folder)
}
