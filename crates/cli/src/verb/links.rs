//! `longwire links`.

use crate::failure::Failure;
use crate::reach::{Reach, bytes, seconds};
use clap::{Args, Subcommand};
use longwire_node::message::{Reply, Request};
use serde_json::Value;
use std::fmt::Write;

/// A node's links: show, add, cut and open them
#[derive(Debug, Args)]
pub(crate) struct Links {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    reach: Reach,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show all links (the default)
    Show,
    /// Add a link until the node's next start, and open it
    Add {
        /// What it is called
        name: String,
        /// Where the peer is: host:port
        address: String,
    },
    /// Cut a link: bundles wait until it is opened again
    Cut {
        /// What it is called
        name: String,
    },
    /// Open a link that was cut
    Open {
        /// What it is called
        name: String,
    },
}

impl Links {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut talk = self.reach.connect()?;
        match &self.what {
            None | Some(What::Show) => {}
            Some(What::Add { name, address }) => {
                talk.done(Request::AddLink { name: name.clone(), address: address.clone() })?;
            }
            Some(What::Cut { name }) => talk.done(Request::CutLink { name: name.clone() })?,
            Some(What::Open { name }) => talk.done(Request::OpenLink { name: name.clone() })?,
        }
        talk.ask(Request::Links)?;
        let links = talk.wait(|said| match said.head {
            Reply::Links { links } => Some(links),
            _ => None,
        })?;
        self.reach.show(&links, || words(&links))
    }
}

/// One line a link.
pub(super) fn words(links: &Value) -> String {
    let mut out = String::new();
    for link in links.as_array().into_iter().flatten() {
        let text = |key: &str| link[key].as_str().unwrap_or("?").to_owned();
        let since = seconds(link["since_s"].as_f64().unwrap_or(0.0));
        let state = if link["up"] == true {
            format!("up for {since}, TCPCL {}, peer {}", link["tcpcl"], text("peer"))
        } else if link["down_reason"].is_null() {
            "not up yet".to_owned()
        } else {
            format!("down for {since}: {}", reason(&link["down_reason"]))
        };
        let count = |key: &str| bytes(link["counters"][key].as_u64().unwrap_or(0));
        let (sent, received) = (count("payload_sent"), count("payload_received"));
        let (name, address) = (text("name"), text("address"));
        let _ = writeln!(out, "link `{name}` at {address}: {state}; {sent} sent, {received} received");
    }
    if out.is_empty() { "no links\n".to_owned() } else { out }
}

/// `"KeepAlive"` and `{"Stream":"Refused"}` for people.
fn reason(value: &Value) -> String {
    let word = match value {
        Value::Object(inner) => inner.values().next().and_then(Value::as_str),
        value => value.as_str(),
    };
    match word.unwrap_or("?") {
        "Closed" => "cut here",
        "PeerClosed" => "the peer ended the session",
        "Idle" => "idle",
        "KeepAlive" => "the peer fell silent",
        "ProtocolError" => "the peer broke the protocol",
        "Version" => "the peer speaks no version that this node does",
        "Identity" => "the peer is not who it should be",
        "Busy" => "the peer is busy",
        "Finished" => "the connection was closed",
        "Aborted" => "the connection was given up",
        "Reset" => "the connection broke",
        "Refused" => "nobody listens there",
        "TimedOut" => "no answer",
        "Unreachable" => "no way to that address",
        other => return other.to_owned(),
    }
    .to_owned()
}
