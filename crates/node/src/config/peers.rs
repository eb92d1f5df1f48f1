//! Who may call.

use super::Config;
use crate::config::http::is_loopback;
use serde::{Deserialize, Serialize};
use std::net::ToSocketAddrs;

/// Which callers over TCP are let in, by the node id that they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeerPolicy {
    /// Those whose node id the configuration names (in a `[[peer]]`, in full, as the `peer` of a `[[link]]`, as the `via` of a
    /// `[[route]]`), and those whose certificate proves theirs. Without TLS, whoever says such a name has it.
    Known,
    /// Those whose certificate proves their node id.
    Proven,
    /// Everybody.
    Any,
}

impl Config {
    /// The node ids that the configuration names. A pattern names nobody: it says how nodes are treated, whoever they are.
    pub(crate) fn known_nodes(&self) -> Vec<String> {
        let links = self.link.iter().filter_map(|link| link.peer.clone());
        let vias = self.route.iter().map(|route| route.via.clone()).filter(|via| via.contains(':'));
        links.chain(self.peer_nodes()).chain(vias).collect()
    }

    /// The node ids that a `[[peer]]` names.
    pub(crate) fn peer_nodes(&self) -> impl Iterator<Item = String> {
        self.peer.iter().map(|peer| peer.node.clone()).filter(|node| !node.ends_with('*'))
    }

    /// True if others than this machine may call, as far as that is known before it is tried.
    pub fn listens_beyond_loopback(&self) -> bool {
        let beyond = |text: &String| {
            text.to_socket_addrs().map_or(true, |mut all| all.any(|address| !is_loopback(address.ip())))
        };
        self.listen.iter().any(beyond)
    }

    /// Who may call, for a person; `None` where nobody can.
    pub fn who_may_call(&self) -> Option<String> {
        if self.listen.is_empty() {
            return None;
        }
        const KNOWN: &str = "whose node id this configuration names, or a certificate proves";
        let unproven =
            "Without TLS whoever says such a name is believed; `peers = \"proven\"` asks for certificates";
        Some(match (self.peers, self.listens_beyond_loopback()) {
            (Some(PeerPolicy::Proven), _) => {
                "Peers are let in whose certificate proves their node id.".to_owned()
            }
            (Some(PeerPolicy::Any), false) | (None, false) => {
                "Whoever calls from this machine is let in.".to_owned()
            }
            (Some(PeerPolicy::Any), true) => format!(
                "Whoever calls is let in, under any name that no other session has. `peers = \"known\"` lets in peers {KNOWN}."
            ),
            (Some(PeerPolicy::Known), false) => format!("Peers are let in {KNOWN}."),
            (Some(PeerPolicy::Known), true) => format!("Peers are let in {KNOWN}. {unproven}."),
            (None, true) => format!(
                "Peers from elsewhere are let in {KNOWN}; from this machine, all. {unproven}, `peers = \"any\"` lets everybody in."
            ),
        })
    }
}
