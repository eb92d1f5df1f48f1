//! `longwire links`.

use crate::failure::CommandResult;
use crate::node_connection::{NodeConversation, NodeOptions, bytes, seconds};
use crate::watch::WatchOptions;
use clap::{Args, Subcommand};
use longwire_node::message::Request;
use longwire_node::view::{Discovery, Link, Neighbour, Proven, Radio, Tnc};
use std::fmt::Write;

/// Show and change a node's links
#[derive(Debug, Args)]
pub(crate) struct Links {
    #[command(subcommand)]
    what: Option<LinksAction>,
    #[command(flatten)]
    watch: WatchOptions,
    #[command(flatten)]
    reach: NodeOptions,
}

#[derive(Debug, Subcommand)]
enum LinksAction {
    /// Show all links (default)
    Show,
    /// Add and open a link until the node restarts
    Add {
        /// Name of the link
        name: String,
        /// Address of the peer: host:port
        address: String,
    },
    /// Cut a link; bundles wait until it is opened again
    Cut {
        /// Name of the link
        name: String,
    },
    /// Open a link that was cut
    #[command(visible_alias = "open")]
    Heal {
        /// Name of the link
        name: String,
    },
    /// Remove a link and the routes over it until the node restarts
    Remove {
        /// Name of the link
        name: String,
    },
    /// Transmit nothing over a TNC until it is permitted again, or the node restarts; everything waits
    Inhibit {
        /// Name of the TNC
        tnc: String,
    },
    /// Permit transmissions over a TNC
    Permit {
        /// Name of the TNC
        tnc: String,
    },
}

impl Links {
    pub(crate) fn run(&self) -> CommandResult {
        let mut talk = self.reach.connect()?;
        match &self.what {
            None | Some(LinksAction::Show) => {}
            Some(LinksAction::Add { name, address }) => {
                talk.done(Request::AddLink { name: name.clone(), address: address.clone() })?;
            }
            Some(LinksAction::Cut { name }) => talk.done(Request::CutLink { name: name.clone() })?,
            Some(LinksAction::Heal { name }) => talk.done(Request::OpenLink { name: name.clone() })?,
            Some(LinksAction::Remove { name }) => talk.done(Request::RemoveLink { name: name.clone() })?,
            Some(LinksAction::Inhibit { tnc }) => {
                talk.done(Request::Inhibit { name: tnc.clone() })?;
                return self.show_tncs(&mut talk);
            }
            Some(LinksAction::Permit { tnc }) => {
                talk.done(Request::Permit { name: tnc.clone() })?;
                return self.show_tncs(&mut talk);
            }
        }
        self.watch.show(&self.reach, || talk.links(), |links| words(links))
    }

    fn show_tncs(&self, talk: &mut NodeConversation) -> CommandResult {
        let tncs_now = talk.status()?.tncs;
        self.reach.show(&tncs_now, || tncs(&tncs_now))
    }
}

/// Formats one line per link.
pub(super) fn words(links: &[Link]) -> String {
    let mut out = String::new();
    for link in links {
        let since = seconds(link.since_s);
        let state = match (link.up, &link.why_down) {
            (true, _) => {
                let claims = link.claims.as_ref().map(|claims| {
                    format!("claims node ID {claims}, which another link has; bundles are received from it but not sent to it")
                });
                let peer = link.peer.as_deref().or(claims.as_deref()).unwrap_or("without a node ID");
                let version = link.tcpcl.map(|version| format!(", TCPCL {version}")).unwrap_or_default();
                let version =
                    if link.fell_back { format!("{version} (no answer to version 4)") } else { version };
                let udp = if link.unacknowledged { ", UDP, unacknowledged" } else { "" };
                let peer = if link.group { "a group".to_owned() } else { format!("peer {peer}") };
                format!(
                    "up for {since}{version}{udp}, {peer}{}",
                    link.tls.as_ref().map(secured).unwrap_or_default()
                )
            }
            (false, None) if link.found => "opens when a bundle needs it".to_owned(),
            (false, Some(_)) if link.found && link.down_reason.as_deref() == Some("idle") => {
                format!("closed for {since}, idle; opens when a bundle needs it")
            }
            (false, None) => "not connected yet".to_owned(),
            (false, Some(why)) => {
                let since = match link.was_up {
                    true => format!("down for {since}"),
                    false => format!("not connected, trying for {since}"),
                };
                let next = match link.fell_back {
                    true => "; no answer to version 4, retrying with version 3",
                    false => "",
                };
                format!("{since}: {why}{next}")
            }
        };
        let count = |key: &str| bytes(link.counters.get(key).copied().unwrap_or(0));
        let (sent, received) = (count("payload_sent"), count("payload_received"));
        let name = &link.name;
        let address = match &link.radio {
            Some(radio) => station(radio),
            None => link.address.clone().unwrap_or_else(|| "?".to_owned()),
        };
        let radio = link.radio.as_ref().map_or(String::new(), |radio| format!("; {}", radio.state));
        let _ = writeln!(out, "link `{name}` to {address}: {state}{radio}; sent {sent}, received {received}");
        if !link.would_help.is_empty() {
            let list: Vec<String> = link.would_help.iter().map(|name| format!("\"{name}\"")).collect();
            let _ = writeln!(
                out,
                "  bundles from this peer are refused; hint: set `accept = [{}]` for it",
                list.join(", ")
            );
        }
    }
    if out.is_empty() { "no links\n".to_owned() } else { out }
}

/// Formats one line per neighbour that has announced itself.
pub(super) fn neighbours(discovery: Option<&Discovery>) -> String {
    let mut out = String::new();
    let Some(discovery) = discovery else { return out };
    for neighbour in &discovery.neighbours {
        let Neighbour { node, by, at, .. } = neighbour;
        let signed = if neighbour.signed { ", signed" } else { "" };
        let link = match &neighbour.link {
            Some(link) => format!("link `{link}`"),
            None => "no link leads to it".to_owned(),
        };
        let _ = writeln!(
            out,
            "neighbour {node} at {at}, found {} ago by {}{signed}, last heard {} ago; {link}",
            seconds(neighbour.since_s),
            by.to_uppercase(),
            seconds(neighbour.last_s)
        );
    }
    if let Some(trouble) = &discovery.trouble {
        let _ = writeln!(out, "discovery: {trouble}");
    }
    out
}

/// Formats a station with the digipeaters on the path to it and its TNC.
fn station(radio: &Radio) -> String {
    let via = if radio.via.is_empty() { String::new() } else { format!(" via {}", radio.via.join(", ")) };
    format!("{}{via} over TNC `{}`", radio.peer, radio.tnc)
}

/// Formats one line per TNC.
pub(super) fn tncs(tncs: &[Tnc]) -> String {
    let mut out = String::new();
    for tnc in tncs {
        let state = match (tnc.up, &tnc.why_down) {
            (true, _) if tnc.inhibited => {
                let held = match tnc.frames_waiting {
                    0 => String::new(),
                    held => format!(" except for {held} frames that the TNC holds and may still transmit"),
                };
                format!("up; transmission is inhibited, everything waits{held}")
            }
            (true, _) => "up".to_owned(),
            (false, None) => "not connected yet".to_owned(),
            (false, Some(why)) => {
                format!("down: {why} ({} attempts); waiting bundles are kept", tnc.attempts_failed)
            }
        };
        let count = |key: &str| tnc.counters.get(key).copied().unwrap_or(0);
        let _ = writeln!(
            out,
            "TNC `{}` at {}, callsign {}: {state}; {} frames sent, {} received, {} retransmitted",
            tnc.name,
            tnc.address,
            tnc.callsign,
            count("sent"),
            count("received"),
            count("information_repeated")
        );
    }
    out
}

/// Formats what TLS proves about the peer.
fn secured(tls: &Proven) -> String {
    let proven: Vec<&str> = tls.node_ids.iter().chain(&tls.network).map(String::as_str).collect();
    match &proven[..] {
        [] => format!(" ({})", tls.version),
        proven => format!(" ({}, proven: {})", tls.version, proven.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_was_never_up_is_not_down_for_some_time() {
        let tried = Link {
            name: "bob".into(),
            address: Some("b:4556".into()),
            why_down: Some("connection refused".into()),
            since_s: 12.0,
            ..Link::default()
        };
        let was_up = Link { was_up: true, ..tried.clone() };
        let new = Link { why_down: None, ..tried.clone() };
        let said = words(&[tried, was_up, new]);
        assert!(said.contains(": not connected, trying for 12 s: connection refused; "), "{said}");
        assert!(said.contains(": down for 12 s: connection refused; "), "{said}");
        assert!(said.lines().nth(2).is_some_and(|line| line.contains(": not connected yet; ")), "{said}");
    }
}
