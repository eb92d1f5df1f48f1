//! Neighbour discovery: nodes announce themselves to those that hear them, and keep a table of the neighbours that they hear.
//!
//! | module | announcements |
//! |---|---|
//! | [`sand`] | SAND, draft-ietf-dtn-bp-sand-02: bundles in UDP datagrams; sent and received |
//! | [`ipnd`] | IPND, draft-irtf-dtnrg-ipnd-03 and its relatives: received only |
//! | [`aprs`] | objects and status reports of APRS in UI frames of AX.25; sent and received |
//!
//! [`Neighbourhood`] is the engine: it decides when this node announces itself, which nodes are neighbours, how each can be
//! reached, and when one is gone.
//!
//! ```text
//!            heard, permitted              a better way, or the only one left
//!   unknown -----------------> neighbour --------------------------------------> neighbour
//!      ^                           |
//!      '---------------------------' silent for the validity of its last announcement
//! ```
//!
//! An announcement says how to reach a node, not that it is there: the address is the one from which it came, never one that
//! it names, so that nobody can direct the connections of a node to a third one.

pub mod aprs;
pub mod ipnd;
mod neighbourhood;
pub mod sand;
#[cfg(test)]
mod tests;

pub use neighbourhood::{
    Admission, Config, Counters, Discovery, DiscoveryIndication, DiscoveryRequest, HeardAnnouncement,
    Hearing, HearingIndication, HearingRequest, Neighbour, Neighbourhood, WAYS_MAX,
};

use crate::ax25::Callsign;
use crate::bp::Eid;
use crate::bp::bpsec::Fingerprint;
use crate::service::CreationTimestamp;
use crate::time::Duration;
use core::fmt;
use core::net::SocketAddr;

/// Maximum length of the name of a node that can be a neighbour, bytes.
pub const NODE_BYTES_MAX: usize = 128;

/// Format of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// SAND.
    Sand,
    /// IPND.
    Ipnd,
    /// APRS.
    Aprs,
}

impl Format {
    /// Name of the format, as an identifier.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Sand => "sand",
            Format::Ipnd => "ipnd",
            Format::Aprs => "aprs",
        }
    }

    /// True if its announcements can be signed. In other formats a node with a key announces itself without a proof, so that a
    /// missing signature says nothing.
    pub const fn has_signatures(self) -> bool {
        matches!(self, Format::Sand)
    }
}

/// Contents of an announcement, as far as they are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Format.
    pub format: Format,
    /// Node that announces itself.
    pub node: Eid,
    /// Creation of the announcement, by which later ones supersede earlier ones; `None` without a clock.
    pub created: Option<CreationTimestamp>,
    /// Time for which it is valid; `None` if it does not say.
    pub validity: Option<Duration>,
    /// Port on which the node accepts connections of TCPCL; `None` if it accepts none.
    pub tcp_port: Option<u16>,
    /// The node asks others to announce themselves.
    pub solicits: bool,
}

/// A node that can be a neighbour has a short name that can be written, and read again.
pub fn is_plain_node(node: &Eid) -> bool {
    let text = node.to_string();
    node.is_node_id()
        && !node.is_null()
        && !node.is_local_node()
        && text.len() <= NODE_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && text.parse::<Eid>().is_ok_and(|read| read == *node)
}

/// Way to reach a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// TCPCL at this address.
    Tcp(SocketAddr),
    /// A connection of AX.25 to this station, through the TNC with this number.
    Station {
        /// Number of the TNC.
        tnc: usize,
        /// Callsign of the station.
        callsign: Callsign,
    },
    /// A neighbour at this address that accepts no connections and may connect by itself.
    Calls(SocketAddr),
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Tcp(address) => write!(f, "{address}"),
            Way::Station { callsign, .. } => write!(f, "{callsign}"),
            Way::Calls(address) => write!(f, "{}", address.ip()),
        }
    }
}

/// Value of the signature of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Signed with the key that is known of the node.
    Known,
    /// Signed with this key, and none is known of the node.
    First(Fingerprint),
    /// Not signed, and no key of the node is known; or signed in a way that proves nothing.
    Unsigned,
    /// Not signed, because the format has no signatures; a key of the node is known.
    Named,
    /// A key of the node is known, and the announcement is not signed with it.
    Contested,
}

impl Proof {
    /// True if a key proves the name of the node.
    pub const fn is_signed(self) -> bool {
        matches!(self, Proof::Known | Proof::First(_))
    }
}
