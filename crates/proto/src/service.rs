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
//! | [`Datagrams`] | UDP | datagrams |
//! | [`Frames`] | a link | frames |

mod datagrams;

pub use datagrams::{Datagrams, DatagramsIndication, DatagramsRequest};

use crate::engine::Service;
use bytes::Bytes;
use core::convert::Infallible;
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
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

// ---------------------------------------------------------------------------------------------------------------
// Frames

/// A link that carries frames, one after the other: a channel, a TNC, a TUN device.
#[derive(Debug)]
pub enum Frames {}

impl Service for Frames {
    type Request = FramesRequest;
    type Indication = FramesIndication;
}

/// What the bytes of a frame are for. It travels beside the frame, never in it: from it the simulator and the
/// daemon tell where the time on the channel went.
///
/// What is left of the frame's length after these shares is header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shares {
    /// Bytes of the user above, sent for the first time.
    pub payload: u32,
    /// Bytes sent once more than once, headers included where the whole frame is a repetition.
    pub repeated: u32,
    /// Bytes that do nothing but acknowledge.
    pub acknowledgement: u32,
    /// Bytes that open, close, probe or keep alive.
    pub control: u32,
    /// Bytes that are there to repair others.
    pub repair: u32,
}

/// Down through [`Frames`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FramesRequest {
    /// Opens the link: room and frames come from now on.
    Join,
    /// One frame. Needs room of 1.
    Frame {
        /// The frame's bytes, without what the link itself adds.
        bytes: Bytes,
        /// If given, [`FramesIndication::Transmitted`] comes back with it when the last bit has left.
        token: Option<u64>,
        /// The last of a burst: a shared channel may now be given up.
        last: bool,
        /// What its bytes are for.
        shares: Shares,
    },
}

/// Up through [`Frames`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FramesIndication {
    /// How many frames may be handed down.
    Room(u32),
    /// A frame came. Where the link has no check of its own its bits may be wrong.
    Frame(Bytes),
    /// The last bit of the frame with this token has left.
    Transmitted(u64),
    /// The link's own sense of being connected (`true`) or not.
    Carrier(bool),
}

// ---------------------------------------------------------------------------------------------------------------
// Stream

/// A connection that carries bytes in order, such as TCP's.
///
/// After [`StreamIndication::Closed`] the same id may [`StreamRequest::Connect`] again: that is a new
/// connection.
#[derive(Debug)]
pub enum Stream {}

impl Service for Stream {
    type Request = StreamRequest;
    type Indication = StreamIndication;
}

/// Down through [`Stream`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamRequest {
    /// Opens the connection to the peer that the provider knows by this id.
    Connect,
    /// Turns TLS on in mid-stream.
    Secure {
        /// True for the TLS client.
        client: bool,
        /// The name that the peer has to prove, if any.
        name: Option<String>,
    },
    /// Bytes to send. Needs room for all of them.
    Write(Bytes),
    /// So many bytes of what rose are dealt with: the peer may send as many more.
    Release(u64),
    /// No more bytes will be written; what was written is still delivered, and the peer's still comes.
    Close,
    /// Ends the connection at once.
    Abort,
}

/// Up through [`Stream`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamIndication {
    /// The connection stands. For an id never heard of: a peer called.
    Connected,
    /// TLS stands.
    Secured {
        /// The node ids that the peer's certificate proves; the peer may be any of them. Empty: none is proven.
        identities: Vec<String>,
        /// The peer's name and address are in order, as far as the provider was to prove them. If not, the user says so
        /// to the peer and ends.
        trusted: bool,
    },
    /// How many bytes may be written.
    Room(u64),
    /// Bytes from the peer. What is not released is bounded by the receive window.
    Data(Bytes),
    /// The peer will write no more.
    PeerClosed,
    /// The connection is over: the terminal indication. What was written and not acknowledged may be lost.
    Closed(CloseReason),
}

/// Why a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CloseReason {
    /// Both sides closed in good order.
    Finished,
    /// This side aborted.
    Aborted,
    /// The peer reset it.
    Reset,
    /// The peer refused the connection.
    Refused,
    /// Retransmissions or connection attempts ran out.
    TimedOut,
    /// No route, or the interface is gone.
    Unreachable,
    /// TLS failed or was refused.
    Insecure,
    /// A limit of the provider was reached.
    Limit,
}

// ---------------------------------------------------------------------------------------------------------------
// Storage

/// A durable store of records, each a log of bytes that only grows until it is removed.
#[derive(Debug)]
pub enum Storage {}

impl Service for Storage {
    type Request = StorageRequest;
    type Indication = StorageIndication;
}

/// A record of a [`Storage`], chosen by the user and never used twice while the record exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordId(pub u64);

/// Down through [`Storage`]. All of it is control: none needs room. Requests for one record are carried out in
/// order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageRequest {
    /// Adds bytes at the end of a record; the first makes it. Answered by `Stored` once durable, or `Full`, or
    /// `Failed`. Several may be answered together.
    Append {
        /// The record.
        record: RecordId,
        /// What to add.
        data: Bytes,
    },
    /// Reads a range. Answered by `Data` (shorter at the record's end) or `Failed`.
    Read {
        /// The record.
        record: RecordId,
        /// Bytes from its beginning.
        offset: u64,
        /// How many bytes at the most.
        length: u32,
    },
    /// Removes a record. Answered by `Removed` once that is durable; removing what is not there is answered, too.
    Remove {
        /// The record.
        record: RecordId,
    },
    /// Asks what there is. Answered by `Listed`.
    List,
}

/// Up through [`Storage`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageIndication {
    /// The record's first `up_to` bytes survive a crash.
    Stored {
        /// The record.
        record: RecordId,
        /// Bytes from its beginning.
        up_to: u64,
    },
    /// What was read.
    Data {
        /// The record.
        record: RecordId,
        /// Bytes from its beginning.
        offset: u64,
        /// The bytes.
        data: Bytes,
    },
    /// The record is gone for good.
    Removed {
        /// The record.
        record: RecordId,
    },
    /// There was no space: this append and those behind it to the same record were not kept.
    Full {
        /// The record.
        record: RecordId,
    },
    /// The store could not do it.
    Failed {
        /// The record.
        record: RecordId,
        /// What happened.
        failure: StorageFailure,
    },
    /// What there is: each record with its durable length in bytes, in order.
    Listed {
        /// The records.
        records: Vec<(RecordId, u64)>,
    },
}

/// Why a [`Storage`] could not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StorageFailure {
    /// There is no such record.
    Missing,
    /// The record is damaged.
    Damaged,
    /// The device failed.
    Device,
}

// ---------------------------------------------------------------------------------------------------------------
// Bundles

/// A convergence layer: carries bundles, in pieces, to one neighbour and from it.
///
/// An outgoing transfer: `Open`, then `Piece`s against `Room`, the last one marked; then exactly one of `Sent`
/// and `Failed`. After `Cancel` the terminal indication is still owed. An incoming transfer: `Begin`, then
/// `Piece`s, the last one marked, or `Lost`; the user answers `Accept` as far as it is safe, or `Refuse`. A
/// transfer is over for the provider when all of it is accepted, when it is refused, or when it is lost.
#[derive(Debug)]
pub enum Bundles {}

impl Service for Bundles {
    type Request = BundlesRequest;
    type Indication = BundlesIndication;
}

/// A transfer of one bundle over one link; each side numbers its own outgoing ones, and the provider numbers
/// the incoming ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TransferId(pub u64);

/// How urgent a bundle is. Higher goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// When nothing else wants the line.
    Bulk,
    /// The usual.
    #[default]
    Normal,
    /// Before everything else.
    Expedited,
}

/// Down through [`Bundles`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundlesRequest {
    /// Brings the link up, and keeps bringing it back when it breaks, until `Close`.
    Connect,
    /// Announces an outgoing transfer. Only while up.
    Open {
        /// The user's number for it, never used twice on this link.
        transfer: TransferId,
        /// Its urgency.
        priority: Priority,
        /// The whole bundle's length in bytes.
        length: u64,
    },
    /// The next bytes of an open transfer. Needs room for all of them. Not empty unless the bundle is.
    Piece {
        /// The transfer.
        transfer: TransferId,
        /// The bytes.
        data: Bytes,
        /// The end of the bundle.
        last: bool,
    },
    /// Gives an outgoing transfer up.
    Cancel {
        /// The transfer.
        transfer: TransferId,
    },
    /// The first `up_to` bytes of an incoming transfer are safe: they may be acknowledged.
    Accept {
        /// The incoming transfer.
        transfer: TransferId,
        /// Bytes from its beginning.
        up_to: u64,
    },
    /// This incoming transfer is not wanted.
    Refuse {
        /// The incoming transfer.
        transfer: TransferId,
        /// Why.
        reason: RefuseReason,
    },
    /// Ends the session in good order and does not bring it back.
    Close,
}

/// Up through [`Bundles`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundlesIndication {
    /// The link is up.
    Up {
        /// The peer's node id as it calls itself; none where the protocol has no such field.
        peer: Option<String>,
        /// Whether pieces of several transfers may alternate.
        interleave: bool,
        /// The largest bundle the peer takes, bytes.
        transfer_bytes_max: u64,
    },
    /// The link is down. Every open transfer has had its terminal indication before. It comes back by itself
    /// where `retry` says so.
    Down {
        /// Why.
        reason: DownReason,
        /// Whether the provider tries again.
        retry: bool,
    },
    /// How many payload bytes may be handed down in pieces.
    Room(u64),
    /// A bundle begins to arrive.
    Begin {
        /// The provider's number for it.
        transfer: TransferId,
        /// Its length in bytes, where the peer announced one.
        length: Option<u64>,
    },
    /// The next bytes of an incoming bundle.
    Piece {
        /// The incoming transfer.
        transfer: TransferId,
        /// The bytes.
        data: Bytes,
        /// The end of the bundle.
        last: bool,
    },
    /// The peer has the first `up_to` bytes of an outgoing transfer safe.
    Acked {
        /// The transfer.
        transfer: TransferId,
        /// Bytes from its beginning.
        up_to: u64,
    },
    /// The peer has the whole bundle safe: terminal. Where the protocol has no acknowledgements (UDP; TCPCL version 3
    /// without them) it was handed over, and nobody knows more.
    Sent {
        /// The transfer.
        transfer: TransferId,
    },
    /// The transfer ended otherwise: terminal. Of what was sent, `acked` bytes are safe with the peer.
    Failed {
        /// The transfer.
        transfer: TransferId,
        /// Why.
        reason: TransferFailure,
        /// Bytes from its beginning.
        acked: u64,
    },
    /// An incoming transfer broke off: no more of it comes, and what was accepted stays with the user.
    Lost {
        /// The incoming transfer.
        transfer: TransferId,
    },
}

/// Why an outgoing transfer failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferFailure {
    /// The link went down before the end.
    LinkDown,
    /// The user cancelled it.
    Cancelled,
    /// The peer refused it.
    Refused(RefuseReason),
    /// It is longer than the peer takes.
    TooLong,
}

/// Why a receiver does not want a bundle (RFC 9174 5.2.4, RFC 7242 5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefuseReason {
    /// Not said.
    Unknown,
    /// The receiver already has all of it.
    Completed,
    /// The receiver's resources are exhausted; later may do.
    NoResources,
    /// It has to be sent again from the beginning.
    Retransmit,
    /// Never: the bundle itself is not acceptable.
    NotAcceptable,
    /// An extension failed.
    ExtensionFailure,
    /// The receiver is about to end the session.
    SessionTerminating,
    /// A reason with a number that this version does not know.
    Other(u8),
}

/// Why a link is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DownReason {
    /// The user closed it.
    Closed,
    /// The peer ended the session in good order.
    PeerClosed,
    /// Nothing to send for long enough.
    Idle,
    /// The peer fell silent.
    KeepAlive,
    /// The peer broke the protocol.
    ProtocolError,
    /// The peer speaks no version that this side does.
    Version,
    /// The peer is not who it should be.
    Identity,
    /// TLS is required, and the peer has none.
    Insecure,
    /// The peer refuses the session: TLS, node ids or parameters do not suit it.
    Contact,
    /// The peer has no resources, or is busy.
    Busy,
    /// The stream below ended.
    Stream(CloseReason),
}

// ---------------------------------------------------------------------------------------------------------------
// App

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
    },
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
        what: Happened,
    },
    /// A transfer was refused to a peer. Said only after [`AppRequest::Watch`].
    Refused {
        /// The link.
        link: LinkId,
        /// Why.
        reason: RefuseReason,
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
pub enum Happened {
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
