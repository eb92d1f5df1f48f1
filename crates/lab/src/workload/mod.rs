//! Workloads: what the traffic of an experiment is for.
//!
//! A workload is an engine like every other. Above it is [`FileTask`], the words of an experiment ("send these files",
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
pub enum FileTask {}

impl Service for FileTask {
    type Request = TaskRequest;
    type Indication = TaskIndication;
}

/// Down through [`FileTask`].
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

/// Up through [`FileTask`]. Files are numbered from zero, in the order of [`TaskRequest::Start`].
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
        why: TryFailure,
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
pub enum TryFailure {
    /// The connection ended early.
    Stream(CloseReason),
    /// The agent could not send it.
    Bundle(SendFailure),
}

impl std::fmt::Display for TryFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TryFailure::Stream(CloseReason::Finished) => "the connection was closed early",
            TryFailure::Stream(CloseReason::Aborted) => "the connection was aborted",
            TryFailure::Stream(CloseReason::Reset) => "the connection was reset",
            TryFailure::Stream(CloseReason::Refused) => "the connection was refused",
            TryFailure::Stream(CloseReason::TimedOut) => "the connection timed out",
            TryFailure::Stream(CloseReason::Unreachable) => "no way to the destination",
            TryFailure::Stream(CloseReason::Insecure) => "TLS failed",
            TryFailure::Stream(CloseReason::Limit) | TryFailure::Bundle(SendFailure::Limit) => {
                "a limit was reached"
            }
            TryFailure::Stream(CloseReason::Damaged) => "what came is not what was sent",
            TryFailure::Stream(CloseReason::Stalled) => "the peer took nothing for too long",
            TryFailure::Bundle(SendFailure::BadEndpoint) => "not an endpoint",
            TryFailure::Bundle(SendFailure::Full) => "the store was full",
            TryFailure::Bundle(SendFailure::Expired) => "the bundle expired",
            TryFailure::Bundle(SendFailure::Cancelled) => "the bundle was cancelled",
            TryFailure::Bundle(SendFailure::Storage) => "the store failed",
            TryFailure::Bundle(SendFailure::Refused(_)) => "the bundle was refused",
            TryFailure::Bundle(SendFailure::NoCustody) => "custody was asked for what cannot have it",
        })
    }
}
