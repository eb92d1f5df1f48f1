//! Bundles to and from the applications of a node.

use super::{Breach, DownReason, LinkId, Priority, RefuseReason};
use crate::engine::Service;
use bytes::Bytes;
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// What a bundle agent does for applications and operators.
///
/// A send: `Send`, then `Piece`s against `Room` until `length` bytes are handed down, `Accepted` once durable,
/// then exactly one terminal indication, `Sent` or `Failed`. A delivery is repeated (after a restart, too) until
/// `Taken`, and never after it.
#[derive(Debug)]
pub enum App {}

impl Service for App {
    type Request = AppRequest;
    type Indication = AppIndication;
}

/// An application's number for a bundle it sends, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SendId(pub u64);

/// The agent's number for a bundle it delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeliveryId(pub u64);

/// A version of the Bundle Protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum BundleVersion {
    /// RFC 5050.
    V6,
    /// RFC 9171.
    #[default]
    V7,
}

impl From<BundleVersion> for u8 {
    fn from(version: BundleVersion) -> u8 {
        match version {
            BundleVersion::V6 => 6,
            BundleVersion::V7 => 7,
        }
    }
}

impl TryFrom<u8> for BundleVersion {
    type Error = &'static str;
    fn try_from(number: u8) -> Result<Self, Self::Error> {
        match number {
            6 => Ok(BundleVersion::V6),
            7 => Ok(BundleVersion::V7),
            _ => Err("bundles have version 6 or 7"),
        }
    }
}

/// How a bundle is to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SendOptions {
    /// Its urgency.
    pub priority: Priority,
    /// How long it is worth delivering. Default 1 day.
    pub lifetime: Duration,
    /// Ask the destination for a report on delivery (RFC 9171 4.2.3).
    pub report_delivery: bool,
    /// Ask every node for a report on reception.
    pub report_reception: bool,
    /// Ask every node for a report on forwarding.
    pub report_forwarding: bool,
    /// Ask every node for a report on deletion.
    pub report_deletion: bool,
    /// Never fragment it.
    pub must_not_fragment: bool,
    /// The most hops it may take; none: no limit (RFC 9171 4.4.3).
    pub hop_limit: Option<u8>,
    /// Where reports go; none: the node's own endpoint.
    pub report_to: Option<String>,
    /// The endpoint it is sent from; none: the node's own.
    pub source: Option<String>,
    /// The creation timestamp that it is to have, DTN milliseconds (zero: no clock) and a sequence number that the agent
    /// does not count to; none: the agent's choice. Together with the source it is the bundle's name (RFC 9171 4.2.7): who
    /// sends under the same name after a crash sends the same bundle, and no node takes it twice.
    pub created: Option<(u64, u64)>,
    /// The version it is sent in; none: 6 for custody, else what the agent's configuration says.
    pub version: Option<BundleVersion>,
    /// Ask for custody transfer: the node keeps the bundle until another one is its custodian, or it is delivered
    /// (RFC 5050 5.10). Version 6 only.
    pub custody: bool,
    /// Ask every node for a report on the acceptance of custody. Version 6 only.
    pub report_custody: bool,
}

impl Default for SendOptions {
    fn default() -> Self {
        SendOptions {
            priority: Priority::Normal,
            lifetime: Duration::from_secs(86_400),
            report_delivery: false,
            report_reception: false,
            report_forwarding: false,
            report_deletion: false,
            must_not_fragment: false,
            hop_limit: None,
            report_to: None,
            source: None,
            created: None,
            version: None,
            custody: false,
            report_custody: false,
        }
    }
}

/// A window in which a link may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    /// When it begins, in DTN time (milliseconds since 2000-01-01 UTC).
    pub start_dtn_ms: u64,
    /// When it ends.
    pub end_dtn_ms: u64,
    /// Its rate in bit/s; zero: that of the link.
    pub rate_bps: u64,
    /// How long a bit takes to the other end, milliseconds.
    pub delay_ms: u64,
}

/// A clock that never jumps, and goes on while a program does not run, or its machine sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SteadyReading {
    /// Since when it counts: another number after each start of the machine. Not zero.
    pub of: u64,
    /// Milliseconds since then.
    pub ms: u64,
}

/// Down through [`App`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppRequest {
    /// Wants the bundles for this endpoint.
    Register {
        /// The endpoint id, such as `dtn://earth/inbox` or `ipn:3.1`.
        endpoint: String,
    },
    /// Wants them no longer; they wait for the next registration.
    Unregister {
        /// The endpoint id.
        endpoint: String,
    },
    /// Opens a bundle.
    Send {
        /// The application's number for it.
        send: SendId,
        /// Where it goes.
        destination: String,
        /// The payload's length in bytes.
        length: u64,
        /// How.
        options: SendOptions,
    },
    /// The next bytes of its payload. Needs room for all of them.
    Piece {
        /// The send.
        send: SendId,
        /// The bytes.
        data: Bytes,
    },
    /// Gives a send up.
    Cancel {
        /// The send.
        send: SendId,
    },
    /// Reads the payload of a delivery. At its end and behind it there is nothing to read, and no answer; nor is
    /// there one while as many reads of it wait as the agent's `reads-max` allows.
    Read {
        /// The delivery.
        delivery: DeliveryId,
        /// Bytes from its beginning.
        offset: u64,
        /// How many bytes at the most.
        length: u32,
    },
    /// The application has it: the agent may forget the bundle.
    Taken {
        /// The delivery.
        delivery: DeliveryId,
    },
    /// Tells the time: DTN time now, or none where the node has no clock.
    SetClock {
        /// Milliseconds since 2000-01-01 UTC.
        dtn_ms: Option<u64>,
        /// A clock that never jumps, where there is one beside the engines' own time: it shows whether the other one has.
        steady: Option<SteadyReading>,
    },
    /// The operator says that the clock is right, although it has jumped: lifetimes go by it from here on.
    TrustClock,
    /// Adds or replaces a route: bundles for endpoints that `pattern` matches go over `link`.
    SetRoute {
        /// An endpoint id; a trailing `*` matches any rest.
        pattern: String,
        /// The node id of the neighbour, or the configured link.
        via: NextHop,
        /// Lower wins.
        cost: u32,
    },
    /// Takes a route away.
    RemoveRoute {
        /// Its pattern.
        pattern: String,
        /// Where it leads.
        via: NextHop,
    },
    /// Deletes a bundle and all of its fragments here, whoever sent it: the operator's word.
    Delete {
        /// The bundle's source.
        source: String,
        /// Its creation timestamp.
        created: (u64, u64),
    },
    /// Asks for this link to be kept up.
    OpenLink {
        /// The link.
        link: LinkId,
    },
    /// Closes this link.
    CloseLink {
        /// The link.
        link: LinkId,
    },
    /// Says what happens to bundles, one by one, from now on or no longer: for operators who watch.
    Watch {
        /// From now on.
        on: bool,
    },
    /// The windows in which a link may be used; empty: always.
    SetContacts {
        /// The link.
        link: LinkId,
        /// The windows, in order, not overlapping.
        contacts: Vec<Contact>,
    },
}

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NextHop {
    /// This link.
    Link(LinkId),
    /// Whatever link leads to the neighbour with this node id.
    Node(String),
}

/// Up through [`App`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppIndication {
    /// The clock says something else than was to be expected: lifetimes go by the time that has passed, until it is back or
    /// the operator says that it is right.
    ClockJumped {
        /// By how much, milliseconds; less than zero: it went back.
        by_ms: i64,
    },
    /// How many payload bytes of open sends may be handed down.
    Room(u64),
    /// The bundle is durable: from here on it is the agent's.
    Accepted {
        /// The send.
        send: SendId,
        /// When the bundle was made: DTN milliseconds (zero: no clock) and the sequence number. Reports name it so.
        created: (u64, u64),
    },
    /// How far the next hop has it safe.
    Progress {
        /// The send.
        send: SendId,
        /// Payload bytes, or zero while only headers are safe.
        up_to: u64,
    },
    /// The next hop has all of it safe, or it was delivered here: terminal.
    Sent {
        /// The send.
        send: SendId,
    },
    /// It could not be sent: terminal.
    Failed {
        /// The send.
        send: SendId,
        /// Why.
        reason: SendFailure,
    },
    /// A bundle for a registered endpoint is here, whole. Said again until `Taken`.
    Delivered {
        /// The agent's number for it.
        delivery: DeliveryId,
        /// Who sent it.
        source: String,
        /// The endpoint it is for.
        destination: String,
        /// When it was made: DTN milliseconds (zero: no clock) and the sequence number.
        created: (u64, u64),
        /// The payload's length in bytes.
        length: u64,
    },
    /// Part of a delivery's payload. A `Read` is answered by one or more of these, in order and none of them empty, up
    /// to what was asked for or the payload's end.
    Data {
        /// The delivery.
        delivery: DeliveryId,
        /// Bytes from its beginning.
        offset: u64,
        /// The bytes.
        data: Bytes,
    },
    /// The delivery is gone: it was taken, and that is durable; or it expired first.
    Gone {
        /// The delivery.
        delivery: DeliveryId,
        /// True if it was taken.
        taken: bool,
    },
    /// A status report about a bundle sent from here (RFC 9171 6.1.1).
    Report {
        /// The subject's source.
        source: String,
        /// The subject's creation timestamp.
        created: (u64, u64),
        /// What happened to it.
        status: ReportedStatus,
        /// The reason code.
        reason: u64,
        /// Who says so.
        reporter: String,
        /// The links over which it came: more than one if it came in parts; none if it, or a part of it, was made here or came
        /// before the last start. Bundles are not signed: whether it is believed is the user's to decide.
        over: Vec<LinkId>,
    },
    /// Something happened to a bundle. Said only after [`AppRequest::Watch`].
    Bundle {
        /// Its source.
        source: String,
        /// When it was made: DTN milliseconds (zero: no clock) and the sequence number.
        created: (u64, u64),
        /// Where it goes.
        destination: String,
        /// Bytes of payload in this part of it.
        payload_bytes: u64,
        /// What happened.
        what: BundleEvent,
    },
    /// A transfer was refused to a peer. Said only after [`AppRequest::Watch`], but for bundles that break a rule.
    Refused {
        /// The link.
        link: LinkId,
        /// Why.
        reason: RefuseReason,
        /// The rule that the bundle breaks; `None`: it breaks none.
        breach: Option<Breach>,
        /// The faults to accept from the peer for such bundles to be taken, by the names of configurations.
        accept: Vec<&'static str>,
    },
    /// A link came up or went down.
    Link {
        /// The link.
        link: LinkId,
        /// The neighbour's node id, where it is known.
        peer: Option<String>,
        /// None: up.
        down: Option<DownReason>,
    },
}

/// What happened to a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleEvent {
    /// An application sent it, and it is durable.
    Accepted,
    /// It came over this link, whole.
    Received(LinkId),
    /// The next hop has all of it.
    Forwarded,
    /// The application took it.
    Delivered,
    /// It was deleted, for the reason with this number (RFC 9171 9.5).
    Deleted(u64),
}

/// What a status report says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ReportedStatus {
    /// The reporter received it.
    Received,
    /// The reporter forwarded it.
    Forwarded,
    /// The reporter delivered it.
    Delivered,
    /// The reporter deleted it.
    Deleted,
    /// The reporter accepted custody of it (version 6).
    CustodyAccepted,
}

/// Why a send failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SendFailure {
    /// The destination or another endpoint id is not one.
    BadEndpoint,
    /// The store is full.
    Full,
    /// Its lifetime ended first.
    Expired,
    /// The application cancelled it.
    Cancelled,
    /// It exceeds a limit of the agent.
    Limit,
    /// The store failed.
    Storage,
    /// Every next hop refuses it for good.
    Refused(RefuseReason),
    /// Custody is asked for what cannot have it: a bundle of version 7, for a group, or without a source.
    NoCustody,
}
