//! Workloads: what the traffic of an experiment is for.
//!
//! A workload is an engine like every other. Above it is [`Task`], the words of an experiment ("send these files",
//! "this one is here, whole"); below it is what an application would use: a bundle agent ([`bundles`]) or a plain
//! TCP stream ([`stream`]).
//!
//! Files are real bytes, and the destination compares what arrives with what was sent, byte for byte. A file counts
//! as transferred when its last byte has reached the receiving application, not when the sender has heard of it.

pub mod bundles;
pub mod packets;
pub mod stream;

use bytes::Bytes;
use longwire_proto::engine::Service;
use longwire_proto::service::{CloseReason, LinkId, SendFailure};

/// What an experiment asks of a node, and what it hears.
#[derive(Debug)]
pub enum Task {}

impl Service for Task {
    type Request = TaskRequest;
    type Indication = TaskIndication;
}

/// Down through [`Task`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskRequest {
    /// Send these files to the destination, in order.
    Start {
        /// The files' contents.
        files: Vec<Bytes>,
    },
    /// These files will come: compare them.
    Expect {
        /// The files' contents.
        files: Vec<Bytes>,
    },
}

/// Up through [`Task`]. Files are numbered from zero, in the order of [`TaskRequest::Start`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskIndication {
    /// The source begins to hand this file down.
    Started {
        /// The file.
        file: usize,
    },
    /// The source is rid of it: the layer below says that it is safe further on.
    HandedOver {
        /// The file.
        file: usize,
    },
    /// One try at the source failed.
    Failed {
        /// The file.
        file: usize,
        /// Why.
        why: Failure,
        /// True if the source gives this file up.
        for_good: bool,
    },
    /// The destination has every byte.
    Done {
        /// The file.
        file: usize,
        /// What came is what was sent.
        intact: bool,
    },
    /// The destination was given a file that it had already.
    Again {
        /// The file.
        file: usize,
    },
    /// A bundle link came up (`true`) or went down.
    Link {
        /// The link.
        link: LinkId,
        /// Whether it is up.
        up: bool,
    },
}

/// Why a try failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The connection ended early.
    Stream(CloseReason),
    /// The agent could not send it.
    Bundle(SendFailure),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Failure::Stream(CloseReason::Finished) => "the connection was closed early",
            Failure::Stream(CloseReason::Aborted) => "the connection was aborted",
            Failure::Stream(CloseReason::Reset) => "the connection was reset",
            Failure::Stream(CloseReason::Refused) => "the connection was refused",
            Failure::Stream(CloseReason::TimedOut) => "the connection timed out",
            Failure::Stream(CloseReason::Unreachable) => "no way to the destination",
            Failure::Stream(CloseReason::Insecure) => "TLS failed",
            Failure::Stream(CloseReason::Limit) | Failure::Bundle(SendFailure::Limit) => {
                "a limit was reached"
            }
            Failure::Stream(CloseReason::Damaged) => "what came is not what was sent",
            Failure::Stream(CloseReason::Stalled) => "the peer took nothing for too long",
            Failure::Bundle(SendFailure::BadEndpoint) => "not an endpoint",
            Failure::Bundle(SendFailure::Full) => "the store was full",
            Failure::Bundle(SendFailure::Expired) => "the bundle expired",
            Failure::Bundle(SendFailure::Cancelled) => "the bundle was cancelled",
            Failure::Bundle(SendFailure::Storage) => "the store failed",
            Failure::Bundle(SendFailure::Refused(_)) => "the bundle was refused",
            Failure::Bundle(SendFailure::NoCustody) => "custody was asked for what cannot have it",
        })
    }
}
