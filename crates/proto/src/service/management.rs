//! Management of a bundle agent.

use super::{Breach, BundleName, DecryptionFailure, DownReason, LinkId, RefuseReason, Signature};
use crate::engine::Service;
use serde::{Deserialize, Serialize};

/// The service of a bundle agent for the operator of its node: clock, routes, links and their contacts, and events.
#[derive(Debug)]
pub enum Management {}

impl Service for Management {
    type Request = ManagementRequest;
    type Indication = ManagementIndication;
}

/// A period in which a link may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    /// Start, in DTN time (milliseconds since 2000-01-01 UTC).
    pub start_dtn_ms: u64,
    /// End, in DTN time (milliseconds).
    pub end_dtn_ms: u64,
    /// Rate during the contact, bit/s; zero for the rate of the link.
    pub rate_bps: u64,
    /// One-way propagation delay, milliseconds.
    pub delay_ms: u64,
}

/// A reading of a clock that never jumps, and that continues while the program does not run or the machine sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SteadyReading {
    /// Epoch of the clock: a different number after each start of the machine. Never zero.
    pub of: u64,
    /// Milliseconds since the epoch.
    pub ms: u64,
}

/// Requests of [`Management`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManagementRequest {
    /// Sets the clock: the present DTN time, or `None` if the node has no clock.
    SetClock {
        /// Milliseconds since 2000-01-01 UTC.
        dtn_ms: Option<u64>,
        /// Reading of a clock that never jumps, if there is one apart from the engines' own time: it shows whether
        /// `dtn_ms` has jumped.
        steady: Option<SteadyReading>,
    },
    /// The operator confirms the clock although it has jumped: lifetimes depend on it from now on.
    TrustClock,
    /// Adds or replaces a route: bundles for endpoints that match `pattern` go over `via`.
    SetRoute {
        /// Endpoint ID; a trailing `*` matches anything.
        pattern: String,
        /// Node ID of the neighbour, or configured link.
        via: NextHop,
        /// Cost; the lowest wins.
        cost: u32,
    },
    /// Removes a route.
    RemoveRoute {
        /// Pattern of the route.
        pattern: String,
        /// Next hop of the route.
        via: NextHop,
    },
    /// Deletes a bundle and all of its fragments on this node, whatever its source, by order of the operator.
    Delete(BundleName),
    /// Requests that a link be kept up.
    OpenLink {
        /// Link to keep up.
        link: LinkId,
    },
    /// Requests that a link be opened whenever a bundle needs it, and not before.
    ExpectLink {
        /// Link.
        link: LinkId,
        /// Node ID of the node to which it leads.
        node: String,
    },
    /// Closes a link.
    CloseLink {
        /// Link to close.
        link: LinkId,
    },
    /// Closes a link that will not be used again, and forgets it once it is down.
    ForgetLink {
        /// Link to forget.
        link: LinkId,
    },
    /// Starts or stops [`ManagementIndication::Bundle`] for every event of a bundle, for operators who monitor the node.
    Watch {
        /// True to start.
        on: bool,
    },
    /// Sets the periods in which a link may be used; with an empty list it may always be used.
    SetContacts {
        /// Link that the contacts belong to.
        link: LinkId,
        /// Contacts in order of time, not overlapping.
        contacts: Vec<Contact>,
    },
}

/// Next hop of a route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NextHop {
    /// This link.
    Link(LinkId),
    /// Any link to the neighbour with this node ID.
    Node(String),
}

/// Indications of [`Management`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManagementIndication {
    /// The clock differs from the expected time: lifetimes depend on the elapsed time until the clock returns or the
    /// operator confirms it.
    ClockJumped {
        /// Size of the jump, milliseconds; negative if the clock went back.
        by_ms: i64,
    },
    /// An event in the life of a bundle. Only after [`ManagementRequest::Watch`].
    Bundle {
        /// Name of the bundle.
        name: BundleName,
        /// Destination endpoint.
        destination: String,
        /// Payload bytes in this part of the bundle.
        payload_bytes: u64,
        /// Event.
        what: BundleEvent,
    },
    /// The node refused a transfer of a peer. Only after [`ManagementRequest::Watch`], except for bundles that break a rule.
    Refused {
        /// Link of the transfer.
        link: LinkId,
        /// Reason for the refusal.
        reason: RefuseReason,
        /// Rule that the bundle breaks; `None` if it breaks none.
        breach: Option<Breach>,
        /// Faults that must be accepted from the peer to receive such bundles, by their names in configurations.
        accept: Vec<&'static str>,
    },
    /// The signature of a bundle proves nothing, for this reason.
    SignatureFailed {
        /// Name of the bundle.
        name: BundleName,
        /// Destination endpoint.
        destination: String,
        /// Signer, key and reason.
        signature: Signature,
        /// True if the bundle was deleted, false if the rules let it pass.
        deleted: bool,
    },
    /// A bundle for this node was deleted because it cannot be decrypted, or is not encrypted.
    DecryptionFailed {
        /// Name of the bundle.
        name: BundleName,
        /// Destination endpoint.
        destination: String,
        /// Security source: the node that encrypted the bundle; `None` if it cannot be told.
        encrypted_by: Option<String>,
        /// Reason.
        failure: DecryptionFailure,
    },
    /// The public key of a node was seen for the first time, and is now the only one that is accepted of it.
    NewKey {
        /// Node that signs with it.
        node: String,
        /// Fingerprint of the key.
        fingerprint: String,
    },
    /// A link came up or went down.
    Link {
        /// Link that changed.
        link: LinkId,
        /// Node ID of the neighbour; `None` while unknown.
        peer: Option<String>,
        /// Reason for going down; `None` if the link came up.
        down: Option<DownReason>,
    },
}

/// An event in the life of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleEvent {
    /// An application sent the bundle, and it is durable.
    Accepted,
    /// The complete bundle arrived over this link.
    Received(LinkId),
    /// The next hop has acknowledged the complete bundle.
    Forwarded,
    /// The application accepted the bundle.
    Delivered,
    /// The bundle was deleted, for the reason with this code (RFC 9171 9.5).
    Deleted(u64),
    /// The bundle was deleted because its lifetime expired while it was kept from links on amateur radio bands, as it is
    /// encrypted.
    ExpiredEncrypted,
}
