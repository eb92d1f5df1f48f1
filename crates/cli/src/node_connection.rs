//! Connection of a verb to a node.

use crate::endpoint;
use crate::failure::{CommandFailure, CommandResult};
use crate::flag;
use crate::output::talk;
use clap::Args;
use longwire_node::message::{Message, Reply, Request};
use longwire_node::view::{Link, Status};
use longwire_node::{Config, ControlConnection};
use longwire_proto::bp::Eid;
use longwire_settings::error::Error;
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time within which a node on this machine must reply.
const PATIENCE: Duration = Duration::from_secs(30);

/// Longest wait for a node that is not reported.
const SILENT: Duration = Duration::from_secs(1);
/// Interval between attempts to connect.
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub(crate) struct NodeOptions {
    /// Configuration of the node, which names its control socket
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Control socket of the node [default: from --config, then $LONGWIRE_CONTROL, ./longwire.sock,
    /// /run/longwire/longwire.sock]
    #[arg(long, value_name = "PATH", conflicts_with = "config", global = true)]
    control: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

impl NodeOptions {
    fn path(&self) -> CommandResult<PathBuf> {
        if let Some(config) = &self.config {
            return Ok(Config::load(config).map_err(CommandFailure::Usage)?.control());
        }
        if let Some(path) = &self.control {
            return Ok(path.clone());
        }
        if let Some(path) = std::env::var_os("LONGWIRE_CONTROL") {
            return Ok(path.into());
        }
        let here = PathBuf::from("longwire.sock");
        Ok(if here.exists() { here } else { PathBuf::from("/run/longwire/longwire.sock") })
    }

    pub(crate) fn connect(&self) -> CommandResult<NodeConversation> {
        let path = self.path()?;
        let connection = ControlConnection::open(&path).map_err(|error| unreachable_at(&path, &error))?;
        Ok(NodeConversation::over(connection))
    }

    /// Prints the result as JSON, or else as the given text.
    pub(crate) fn show(&self, found: &impl Serialize, words: impl FnOnce() -> String) -> CommandResult {
        if !self.json {
            return print(&words());
        }
        let value = serde_json::to_value(found).map_err(|error| Error::new(error.to_string()))?;
        print(&format!("{value:#}"))
    }
}

pub(crate) fn print(text: &str) -> CommandResult {
    let mut out = io::stdout().lock();
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    write!(out, "{text}{end}").and_then(|()| out.flush()).map_err(|error| CommandFailure::of_stdout(&error))
}

/// Options for a node that may still be starting.
#[derive(Debug, Args)]
pub(crate) struct StartingNodeOptions {
    /// Print only errors on stderr
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Time to wait for the node to start
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = flag::time)]
    node_within: Duration,
    #[command(flatten)]
    pub(crate) reach: NodeOptions,
}

impl StartingNodeOptions {
    /// Connects to the node. Retries for `node_within`, and reports the wait unless `quiet`.
    pub(crate) fn connect(&self) -> CommandResult<NodeConversation> {
        let path = self.reach.path()?;
        let began = Instant::now();
        let mut said_so = self.quiet;
        loop {
            let error = match ControlConnection::open(&path) {
                Ok(connection) => return Ok(NodeConversation::over(connection)),
                Err(error) => error,
            };
            if error.kind() == io::ErrorKind::PermissionDenied || began.elapsed() > self.node_within {
                return Err(unreachable_at(&path, &error));
            }
            if !said_so && began.elapsed() > SILENT {
                talk(format_args!("no node is listening at {} yet; waiting for it to start", path.display()));
                said_so = true;
            }
            std::thread::sleep(BETWEEN_TRIES);
        }
    }
}

/// Requests to a node, and its replies.
pub(crate) struct NodeConversation {
    connection: ControlConnection,
}

impl NodeConversation {
    pub(crate) fn over(connection: ControlConnection) -> NodeConversation {
        NodeConversation { connection }
    }

    pub(crate) fn ask(&mut self, request: impl Into<Message<Request>>) -> CommandResult {
        self.connection.say(request).map_err(|error| lost(&error))
    }

    /// Returns the next reply of the node; `None` if there is none in time. A refusal is a failure.
    pub(crate) fn hear_within(&mut self, patience: Duration) -> CommandResult<Option<Message<Reply>>> {
        match self.hear_all_within(patience)? {
            Some(Message { head: Reply::Error { what, hint, .. }, .. }) => Err(Error { what, hint }.into()),
            said => Ok(said),
        }
    }

    /// Returns the next reply of the node, which can be a refusal; `None` if there is none in time.
    pub(crate) fn hear_all_within(&mut self, patience: Duration) -> CommandResult<Option<Message<Reply>>> {
        self.connection.hear(patience).map_err(|error| lost(&error))
    }

    /// Returns the value of the first reply that `wanted` accepts.
    pub(crate) fn wait<T>(
        &mut self,
        mut wanted: impl FnMut(Message<Reply>) -> Option<T>,
    ) -> CommandResult<T> {
        loop {
            let Some(said) = self.hear_within(PATIENCE)? else {
                let what = format!("the node has not responded for {} s", PATIENCE.as_secs());
                return Err(CommandFailure::failed(what, "check the log of the node"));
            };
            if let Some(found) = wanted(said) {
                return Ok(found);
            }
        }
    }

    /// Sends a request that the node either carries out or refuses.
    pub(crate) fn done(&mut self, request: Request) -> CommandResult {
        self.ask(request)?;
        self.wait(|said| (said.head == Reply::Done).then_some(()))
    }

    pub(crate) fn status(&mut self) -> CommandResult<Status> {
        self.ask(Request::Status)?;
        self.wait(|said| if let Reply::Status { status } = said.head { Some(*status) } else { None })
    }

    pub(crate) fn links(&mut self) -> CommandResult<Vec<Link>> {
        self.ask(Request::Links)?;
        self.wait(|said| if let Reply::Links { links } = said.head { Some(links) } else { None })
    }

    /// Prints a note on stderr if the destination is unknown and closely resembles a neighbour.
    pub(crate) fn note_neighbour(&mut self, to: &Eid) -> CommandResult {
        let links = self.links()?;
        let node = self.status()?.node;
        if let Some(meant) = endpoint::neighbour_meant(to, &node, &links) {
            let node = to.node_id();
            talk(format_args!("note: there is no neighbour {node}; did you mean {meant}?"));
        }
        Ok(())
    }
}

/// Failure to connect to the control socket at `path`.
fn unreachable_at(path: &Path, error: &io::Error) -> CommandFailure {
    CommandFailure::Failed(failure_at(path, error))
}

/// Describes a failure to connect to the control socket at `path`.
pub(crate) fn failure_at(path: &Path, error: &io::Error) -> Error {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::PermissionDenied => Error::new(format!(
            "permission denied for the control socket {path}"
        ))
        .hint("join the group of the socket (see `ls -l`), or run the command as the user of the node"),
        io::ErrorKind::ConnectionRefused => Error::new(format!("the node at {path} is not running"))
            .hint("start it with `longwire node`; everything that it accepted is in its store"),
        _ => Error::new(format!("cannot connect to a node at {path}: {error}"))
            .hint("start the node with `longwire node`, or give its location with --config or --control"),
    }
}

fn lost(error: &io::Error) -> CommandFailure {
    let hint = "start the node again; everything that it accepted is in its store";
    CommandFailure::failed(format!("lost the connection to the node: {error}"), hint)
}

/// Formats a number of bytes: `1234567` is `1.2 MB`.
pub(crate) fn bytes(count: u64) -> String {
    let units = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    match units.iter().find(|(_, size)| count as f64 >= *size) {
        Some((unit, size)) => format!("{:.1} {unit}", count as f64 / size),
        None => format!("{count} B"),
    }
}

/// Formats a number of seconds with a suitable unit.
pub(crate) fn seconds(time: f64) -> String {
    match time {
        time if time < 100.0 => format!("{time:.0} s"),
        time if time < 6000.0 => format!("{:.0} min", time / 60.0),
        time if time < 172_800.0 => format!("{:.1} h", time / 3600.0),
        time => format!("{:.1} d", time / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short() {
        assert_eq!((bytes(999), bytes(1_234_567)), ("999 B".to_owned(), "1.2 MB".to_owned()));
        assert_eq!((seconds(9.4), seconds(7300.0)), ("9 s".to_owned(), "2.0 h".to_owned()));
    }
}
