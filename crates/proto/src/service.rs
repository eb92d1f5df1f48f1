//! The services: the messages between layers.
//!
//! Each service is an uninhabited type that names a pair of enums. Requests go down, indications go up. A message that
//! needs room is documented so; everything else is control and may be sent at any time.
//!
//! | service | provider | unit of room |
//! |---|---|---|
//! | [`App`] | a bundle agent | payload bytes of the open sends |
//! | [`Management`] | a bundle agent | none (control only) |
//! | [`Bpa`] | a bundle agent | that of [`App`]: both of the above in one |
//! | [`Bundles`] | a convergence layer | payload bytes of the next pieces |
//! | [`Storage`] | a disk, a database | none (control only) |
//! | [`Stream`] | TCP | bytes |
//! | [`Packets`] | AX.25's connected mode | packets |
//! | [`Datagrams`] | UDP | datagrams |
//! | [`Files`] | a protocol for files | none (control only) |
//! | [`Objects`] | a protocol for objects to groups | bytes of the next pieces |
//! | [`Connections`] | AeroTP | bytes of each connection |
//! | [`Programs`] | a gateway | none |
//! | [`Frames`] | a link | frames |
//! | [`Submission`] | a protocol for mail | none (control only) |

mod app;
mod bpa;
mod breach;
mod bundles;
mod connections;
mod datagrams;
mod decryption;
mod files;
mod frames;
mod management;
mod name;
mod objects;
mod packets;
mod programs;
mod security_failure;
mod shares;
mod signature;
mod storage;
mod stream;
mod submission;

pub use app::{
    App, AppIndication, AppRequest, BundleVersion, DeliveryId, ReportedStatus, SendFailure, SendId,
    SendOptions,
};
pub use bpa::{Bpa, BpaIndication, BpaRequest};
pub use breach::{BlockPlace, Breach};
pub use bundles::{
    Bundles, BundlesIndication, BundlesRequest, DownReason, Priority, RefuseReason, TransferFailure,
    TransferId,
};
pub use connections::{
    ConnectionFailure, ConnectionProperties, Connections, ConnectionsIndication, ConnectionsRequest,
    Precedence, TransportService,
};
pub use datagrams::{Datagrams, DatagramsIndication, DatagramsRequest, PeerId};
pub use decryption::DecryptionFailure;
pub use files::{
    FileFailure, FileId, FileProperties, Files, FilesIndication, FilesRequest, PartialFile, Wish,
};
pub use frames::{Frames, FramesIndication, FramesRequest};
pub use management::{
    BundleEvent, Contact, Management, ManagementIndication, ManagementRequest, NextHop, SteadyReading,
};
pub use name::{BundleName, CreationTimestamp, DtnTime, InvalidName};
pub use objects::{ObjectFailure, ObjectKind, Objects, ObjectsIndication, ObjectsRequest};
pub use packets::{Packets, PacketsIndication, PacketsRequest};
pub use programs::{ProgramId, ProgramKind, Programs, ProgramsIndication, ProgramsRequest};
pub use security_failure::SecurityFailure;
pub use shares::Shares;
pub use signature::{Signature, SignatureFailure};
pub use storage::{RecordId, Storage, StorageFailure, StorageIndication, StorageRequest};
pub use stream::{CloseReason, Stream, StreamIndication, StreamRequest};
pub use submission::{
    MailAddress, MailRefusal, Notify, Submission, SubmissionAnswer, SubmissionIndication, SubmissionRequest,
};

use crate::engine::Service;
use core::convert::Infallible;
use core::fmt;
use core::marker::PhantomData;
use serde::{Deserialize, Serialize};

/// Many users or providers of one service, distinguished by an ID.
#[derive(Debug)]
pub struct Many<Id, S>(PhantomData<(Id, S)>, Infallible);

impl<Id: fmt::Debug, S: Service> Service for Many<Id, S> {
    type Request = (Id, S::Request);
    type Indication = (Id, S::Indication);
}

/// Two services in parallel, each at its own port.
#[derive(Debug)]
pub struct Both<A, B>(PhantomData<(A, B)>, Infallible);

/// A message of a [`Both`], with the port that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Port<A, B> {
    /// Message of the first service.
    First(A),
    /// Message of the second service.
    Second(B),
}

impl<A: Service, B: Service> Service for Both<A, B> {
    type Request = Port<A::Request, B::Request>;
    type Indication = Port<A::Indication, B::Indication>;
}

/// A neighbour from the node's point of view: one convergence-layer session and the stream or link below it have the
/// same ID in all layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LinkId(pub u32);

impl LinkId {
    /// First ID of the sessions that peers opened; IDs below it are the node's own, from its configuration.
    pub const FIRST_INCOMING: u32 = 0x8000_0000;

    /// Returns true if the peer opened the session.
    pub const fn is_incoming(self) -> bool {
        self.0 >= Self::FIRST_INCOMING
    }
}

/// A network interface of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InterfaceId(pub u16);
