//! Bundles to and from the applications of a node.

use super::{BundleName, CreationTimestamp, LinkId, Priority, RefuseReason, Signature};
use crate::engine::Service;
use bytes::Bytes;
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// The service of a bundle agent for applications.
///
/// A send is `Send`, then `Piece`s against `Room` until `length` bytes are passed down, `Accepted` once the bundle is
/// durable, then exactly one terminal indication, `Sent` or `Failed`. A delivery is repeated (after a restart, too)
/// until `Taken`, and never after it.
///
/// | side | what breaks the contract; .. stands for a value |
/// |---|---|
/// | user | .. is used twice |
/// | user | it spends .. of a room of .. |
/// | user | .. was never opened |
/// | user | .. has ended |
/// | user | a piece after Cancel |
/// | user | .. bytes of .. |
/// | user | .. was never delivered |
/// | user | .. is gone |
/// | provider | .. was never opened |
/// | provider | .. has ended |
/// | provider | Accepted twice |
/// | provider | Accepted after .. of .. bytes |
/// | provider | Progress before Accepted |
/// | provider | Progress of .. bytes of .. |
/// | provider | Sent before Accepted |
/// | provider | Delivered after it was taken or is gone |
/// | provider | .. was never delivered |
/// | provider | .. is gone |
/// | provider | data without a read |
/// | provider | data up to .. where .. was asked for |
/// | provider | data without a byte |
/// | provider | Gone as taken without Taken |
#[derive(Debug)]
pub enum App {}

impl Service for App {
    type Request = AppRequest;
    type Indication = AppIndication;
}

/// An application's number for a bundle that it sends, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SendId(pub u64);

/// The agent's number for a bundle that it delivers.
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

/// Options of a send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SendOptions {
    /// Priority of the bundle.
    pub priority: Priority,
    /// Lifetime of the bundle. Default 1 day.
    pub lifetime: Duration,
    /// Requests a status report on delivery from the destination (RFC 9171 4.2.3).
    pub report_delivery: bool,
    /// Requests a status report on reception from every node.
    pub report_reception: bool,
    /// Requests a status report on forwarding from every node.
    pub report_forwarding: bool,
    /// Requests a status report on deletion from every node.
    pub report_deletion: bool,
    /// Forbids fragmentation of the bundle.
    pub must_not_fragment: bool,
    /// Maximum number of hops (RFC 9171 4.4.3); `None` without a limit.
    pub hop_limit: Option<u8>,
    /// Report-to endpoint; `None` for the node ID.
    pub report_to: Option<String>,
    /// Source endpoint; `None` for the node ID.
    pub source: Option<String>,
    /// Creation timestamp: DTN time in milliseconds (zero without a clock) and a sequence number that the agent does
    /// not count up to; `None` leaves it to the agent. Together with the source it identifies the bundle (RFC 9171
    /// 4.2.7): an application that sends with the same timestamp after a crash sends the same bundle, and no node
    /// accepts it twice.
    pub created: Option<CreationTimestamp>,
    /// Version of the bundle; `None` for 6 with custody, otherwise the version of the agent's configuration.
    pub version: Option<BundleVersion>,
    /// Requests custody transfer: the node keeps the bundle until another node is its custodian, or it is delivered
    /// (RFC 5050 5.10). Version 6 only.
    pub custody: bool,
    /// Requests a status report on custody acceptance from every node. Version 6 only.
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

/// Requests of [`App`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppRequest {
    /// Registers for the bundles to this endpoint.
    Register {
        /// Endpoint ID, such as `dtn://earth/inbox` or `ipn:3.1`.
        endpoint: String,
    },
    /// Removes the registration; bundles wait for the next one.
    Unregister {
        /// Endpoint ID.
        endpoint: String,
    },
    /// Begins to send a bundle.
    Send {
        /// The application's number for the bundle.
        send: SendId,
        /// Destination endpoint.
        destination: String,
        /// Length of the payload, bytes.
        length: u64,
        /// Options of the send.
        options: SendOptions,
    },
    /// The next bytes of the payload. Needs room for all of them.
    Piece {
        /// Send that the bytes belong to.
        send: SendId,
        /// Payload bytes.
        data: Bytes,
    },
    /// Cancels a send.
    Cancel {
        /// Send to cancel.
        send: SendId,
    },
    /// Reads the payload of a delivery. A read at or beyond its end has no answer; nor has a read while as many reads
    /// of the delivery wait as the agent's `reads-max` allows.
    Read {
        /// Delivery to read.
        delivery: DeliveryId,
        /// Offset in the payload, bytes.
        offset: u64,
        /// Maximum number of bytes.
        length: u32,
    },
    /// The application has accepted the delivery: the agent may forget the bundle.
    Taken {
        /// Delivery that is accepted.
        delivery: DeliveryId,
    },
}

/// Indications of [`App`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppIndication {
    /// Payload bytes of open sends that may be passed down.
    Room(u64),
    /// The bundle is durable: the agent is responsible for it from now on.
    Accepted {
        /// Send of the bundle.
        send: SendId,
        /// Creation timestamp of the bundle, as in reports.
        created: CreationTimestamp,
    },
    /// The next hop has acknowledged a part of the bundle.
    Progress {
        /// Send of the bundle.
        send: SendId,
        /// Acknowledged payload bytes; zero while only headers are acknowledged.
        up_to: u64,
    },
    /// The next hop has acknowledged the complete bundle, or it was delivered here. Terminal.
    Sent {
        /// Send that is complete.
        send: SendId,
    },
    /// The bundle could not be sent. Terminal.
    Failed {
        /// Send that failed.
        send: SendId,
        /// Reason for the failure.
        reason: SendFailure,
    },
    /// A complete bundle for a registered endpoint is available. Repeated until `Taken`.
    Delivered {
        /// The agent's number for the delivery.
        delivery: DeliveryId,
        /// Name of the bundle.
        name: BundleName,
        /// Destination endpoint.
        destination: String,
        /// Length of the payload, bytes.
        length: u64,
        /// Outcome of the verification of its signature; `None` if it has none, or none was verified.
        signature: Option<Box<Signature>>,
    },
    /// Part of a delivery's payload. A `Read` is answered by one or more of these, in order and none of them empty, up
    /// to the requested length or the end of the payload.
    Data {
        /// Delivery that was read.
        delivery: DeliveryId,
        /// Offset in the payload, bytes.
        offset: u64,
        /// Payload bytes.
        data: Bytes,
    },
    /// The delivery no longer exists: it was accepted by the application, and that is durable; or it expired before.
    Gone {
        /// Delivery that was removed.
        delivery: DeliveryId,
        /// True if the application accepted it.
        taken: bool,
    },
    /// A status report about a bundle sent from here (RFC 9171 6.1.1).
    Report {
        /// Name of the subject bundle.
        name: BundleName,
        /// Reported event.
        status: ReportedStatus,
        /// Reason code.
        reason: u64,
        /// Node that reports.
        reporter: String,
        /// Links on which the report arrived: more than one if it arrived in fragments; empty if it, or a fragment of
        /// it, was made here or arrived before the last start. Bundles are not signed: the user decides whether to
        /// trust the report.
        over: Vec<LinkId>,
    },
}

/// Event that a status report asserts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ReportedStatus {
    /// The reporter received the bundle.
    Received,
    /// The reporter forwarded the bundle.
    Forwarded,
    /// The reporter delivered the bundle.
    Delivered,
    /// The reporter deleted the bundle.
    Deleted,
    /// The reporter accepted custody of the bundle (version 6).
    CustodyAccepted,
}

/// Reason for the failure of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SendFailure {
    /// The destination or another endpoint ID is invalid.
    BadEndpoint,
    /// The store is full.
    Full,
    /// The lifetime ended first.
    Expired,
    /// The lifetime expired while the bundle, which is encrypted, was kept from links on amateur radio bands.
    ExpiredEncrypted,
    /// The application cancelled the send.
    Cancelled,
    /// The bundle exceeds a limit of the agent.
    Limit,
    /// The store failed.
    Storage,
    /// Every next hop refuses the bundle permanently.
    Refused(RefuseReason),
    /// Custody was requested for a bundle that cannot have it: one of version 7, for a group, or without a source.
    NoCustody,
    /// The bundle must be signed, and no key of this node is valid.
    NotSigned,
    /// The bundle must be encrypted, and no key of this node is valid, or a bundle of its kind cannot be encrypted.
    NotEncrypted,
}
