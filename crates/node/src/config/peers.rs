//! Admission of incoming connections.

use super::Config;
use crate::config::http::is_loopback;
use serde::{Deserialize, Serialize};
use std::net::ToSocketAddrs;

/// Peers whose incoming TCP connections are accepted, by the node ID that they claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeerPolicy {
    /// Peers whose node ID is in the configuration (in a `[[peer]]`, in full, as the `peer` of a `[[link]]`, as the `via` of
    /// a `[[route]]`) or proven by a certificate. Without TLS the claim is not verified.
    Known,
    /// Peers whose certificate proves their node ID.
    Proven,
    /// All peers.
    Any,
}

impl Config {
    /// Returns the node IDs in the configuration, without patterns: a pattern sets how matching nodes are treated but admits
    /// none.
    pub(crate) fn known_nodes(&self) -> Vec<String> {
        let links = self.link.iter().filter_map(|link| link.peer.clone());
        let vias = self.route.iter().map(|route| route.via.clone()).filter(|via| via.contains(':'));
        links.chain(self.peer_nodes()).chain(vias).collect()
    }

    /// Returns the node IDs of all `[[peer]]` entries without a pattern.
    pub(crate) fn peer_nodes(&self) -> impl Iterator<Item = String> {
        self.peer.iter().map(|peer| peer.node.clone()).filter(|node| !node.ends_with('*'))
    }

    /// Returns true if other machines can connect, as far as that is known without trying; true if an address cannot be
    /// resolved.
    pub fn listens_beyond_loopback(&self) -> bool {
        let beyond = |text: &String| {
            text.to_socket_addrs().map_or(true, |mut all| all.any(|address| !is_loopback(address.ip())))
        };
        self.listen.iter().any(beyond)
    }

    /// Describes for an operator whose connections are accepted; `None` without `listen`.
    pub fn who_may_call(&self) -> Option<String> {
        if self.listen.is_empty() {
            return None;
        }
        const KNOWN: &str = "whose node ID is in this configuration or proven by a certificate";
        let unproven =
            "Without TLS, node IDs are not verified; to require certificates, set `peers = \"proven\"`";
        Some(match (self.peers, self.listens_beyond_loopback()) {
            (Some(PeerPolicy::Proven), _) => {
                "Accepts peers whose certificate proves their node ID.".to_owned()
            }
            (Some(PeerPolicy::Any), false) | (None, false) => {
                "Accepts all connections from this machine.".to_owned()
            }
            (Some(PeerPolicy::Any), true) => format!(
                "Accepts every peer with a node ID that no other session has. To accept only peers {KNOWN}, set `peers = \
                 \"known\"`."
            ),
            (Some(PeerPolicy::Known), false) => format!("Accepts peers {KNOWN}."),
            (Some(PeerPolicy::Known), true) => format!("Accepts peers {KNOWN}. {unproven}."),
            (None, true) => format!(
                "Accepts all peers from this machine, and from elsewhere peers {KNOWN}. {unproven}; to accept everyone, \
                 set `peers = \"any\"`."
            ),
        })
    }
}
