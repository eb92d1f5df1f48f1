//! The services: the words between layers.
//!
//! Each service is an uninhabited type that names a pair of enums. Requests go down, indications come up. What
//! needs room says so; everything else is control and may be said at any time.
//!
//! | service | who gives it | unit of room |
//! |---|---|---|
//! | [`App`] | a bundle agent | payload bytes of the sends that are open |
//! | [`Bundles`] | a convergence layer | payload bytes of the next pieces |
//! | [`Storage`] | a disk, a database | none: control |
//! | [`Stream`] | TCP | bytes |
//! | [`Packets`] | AX.25's connected mode | packets |
//! | [`Datagrams`] | UDP | datagrams |
//! | [`Frames`] | a link | frames |

mod app;
mod breach;
mod bundles;
mod datagrams;
mod frames;
mod packets;
mod storage;
mod stream;

pub use app::{
    App, AppIndication, AppRequest, BundleEvent, BundleVersion, Contact, DeliveryId, NextHop, ReportedStatus,
    SendFailure, SendId, SendOptions, SteadyReading,
};
pub use breach::{BlockPlace, Breach};
pub use bundles::{
    Bundles, BundlesIndication, BundlesRequest, DownReason, Priority, RefuseReason, TransferFailure,
    TransferId,
};
pub use datagrams::{Datagrams, DatagramsIndication, DatagramsRequest};
pub use frames::{Frames, FramesIndication, FramesRequest, Shares};
pub use packets::{Packets, PacketsIndication, PacketsRequest};
pub use storage::{RecordId, Storage, StorageFailure, StorageIndication, StorageRequest};
pub use stream::{CloseReason, Stream, StreamIndication, StreamRequest};

use crate::engine::Service;
use core::convert::Infallible;
use core::fmt;
use core::marker::PhantomData;
use serde::{Deserialize, Serialize};

/// Many users or providers of one service, told apart by an id.
#[derive(Debug)]
pub struct Many<Id, S>(PhantomData<(Id, S)>, Infallible);

impl<Id: fmt::Debug, S: Service> Service for Many<Id, S> {
    type Request = (Id, S::Request);
    type Indication = (Id, S::Indication);
}

/// Two services side by side, each behind its port.
#[derive(Debug)]
pub struct Both<A, B>(PhantomData<(A, B)>, Infallible);

/// Which port of a [`Both`] a message belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Port<A, B> {
    /// The first service's.
    First(A),
    /// The second service's.
    Second(B),
}

impl<A: Service, B: Service> Service for Both<A, B> {
    type Request = Port<A::Request, B::Request>;
    type Indication = Port<A::Indication, B::Indication>;
}

/// A neighbour as a node sees it: one convergence-layer session, and the stream or link below it, have the same
/// id all the way down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LinkId(pub u32);

impl LinkId {
    /// Ids from here on belong to sessions that peers opened; ids below are the node's own, from its
    /// configuration.
    pub const FIRST_INCOMING: u32 = 0x8000_0000;

    /// True if a peer opened it.
    pub const fn is_incoming(self) -> bool {
        self.0 >= Self::FIRST_INCOMING
    }
}

/// A network interface of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InterfaceId(pub u16);
