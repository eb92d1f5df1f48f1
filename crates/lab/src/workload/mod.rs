//! Workloads: the traffic of an experiment.
//!
//! A workload is an engine. Its upper service is [`FileTask`], the service of an experiment ("send these files", "this
//! one has arrived"); its lower service is that of an application: a bundle agent ([`bundles`]) or a plain TCP stream
//! ([`stream`]).
//!
//! Files are real bytes, and the destination compares the received bytes with the original. A file counts as
//! transferred when its last byte has reached the receiving application, not when the sender has received the
//! acknowledgement.

pub mod bundles;
pub mod packets;
pub mod stream;
pub mod traffic;

use bytes::Bytes;
use longwire_proto::engine::Service;
use longwire_proto::service::{CloseReason, SendFailure};
use serde::{Deserialize, Serialize};

/// Service between an experiment and a node.
#[derive(Debug)]
pub enum FileTask {}

impl Service for FileTask {
    type Request = TaskRequest;
    type Indication = TaskIndication;
}

/// Requests of [`FileTask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskRequest {
    /// Sends these files to the destination, in order.
    Start {
        /// Contents of the files.
        files: Vec<Bytes>,
    },
    /// Announces files for comparison.
    Expect {
        /// Contents of the files.
        files: Vec<Bytes>,
    },
}

/// Indications of [`FileTask`]. Files are numbered from zero, in the order of [`TaskRequest::Start`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskIndication {
    /// One attempt at the source failed.
    Failed {
        /// Number of the file.
        file: usize,
        /// Reason.
        why: TryFailure,
        /// True if the source cancels this file.
        for_good: bool,
    },
    /// The destination has every byte.
    Done {
        /// Number of the file.
        file: usize,
        /// True if the received file equals the original.
        intact: bool,
    },
}

/// Reason why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TryFailure {
    /// The connection ended early.
    Stream(CloseReason),
    /// The agent could not send the bundle.
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
            TryFailure::Stream(CloseReason::Unreachable) => "destination unreachable",
            TryFailure::Stream(CloseReason::Insecure) => "TLS failed",
            TryFailure::Stream(CloseReason::Limit) | TryFailure::Bundle(SendFailure::Limit) => {
                "a limit was reached"
            }
            TryFailure::Stream(CloseReason::Damaged) => "received data is corrupted",
            TryFailure::Stream(CloseReason::Stalled) => "the peer stopped reading",
            TryFailure::Bundle(SendFailure::BadEndpoint) => "not an endpoint",
            TryFailure::Bundle(SendFailure::Full) => "the store was full",
            TryFailure::Bundle(SendFailure::Expired | SendFailure::ExpiredEncrypted) => "the bundle expired",
            TryFailure::Bundle(SendFailure::Cancelled) => "the bundle was cancelled",
            TryFailure::Bundle(SendFailure::Storage) => "the store failed",
            TryFailure::Bundle(SendFailure::Refused(_)) => "the bundle was refused",
            TryFailure::Bundle(SendFailure::NotSigned) => "no key is valid that signs the bundle",
            TryFailure::Bundle(SendFailure::NotEncrypted) => "the bundle cannot be encrypted",
            TryFailure::Bundle(SendFailure::NoCustody) => "custody is not possible for this bundle",
        })
    }
}
