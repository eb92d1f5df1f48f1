//! Objects for one receiver or a group of them.

use super::{CloseReason, DownReason, RefuseReason};
use crate::engine::Service;
use bytes::Bytes;

/// Objects to one receiver or to a group, and from any sender: what NORM carries. An object to send is given to the provider in
/// pieces, in the order of its bytes, and one object after the other; received objects rise in pieces, side by side.
///
/// A stream is an object without a known end. Its sender may mark where messages begin, so that receivers that come later have a
/// place to begin at. Data of which there is no repair any more are a gap for those that lack them.
#[derive(Debug)]
pub enum Objects {}

impl Service for Objects {
    type Request = ObjectsRequest;
    type Indication = ObjectsIndication;
}

/// Kind of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ObjectKind {
    /// Bytes in memory.
    #[default]
    Data,
    /// A file; by custom its description is its name.
    File,
    /// Bytes without a known end.
    Stream,
}

/// Requests of [`Objects`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectsRequest {
    /// Opens the session. `Up` follows, or `Down`.
    Connect,
    /// Announces an object, whose contents follow. Ends in exactly one of `Sent` and `Failed`.
    Send {
        /// The user's number for the object, never used twice.
        object: u64,
        /// Kind.
        kind: ObjectKind,
        /// Description for the application of the receivers; at most as long as a segment.
        info: Option<Bytes>,
        /// Length, bytes; of a stream, that of the buffer in which sent bytes wait for repair requests.
        length: u64,
    },
    /// The next bytes of the object that was announced first and is not complete. Needs room for all of them.
    Content {
        /// The user's number.
        object: u64,
        /// Bytes.
        data: Bytes,
        /// True at the end of the object, and of a stream, which is closed by it.
        last: bool,
    },
    /// The bytes of a stream so far end a message: the next one begins another. The first byte of a stream begins one, too.
    /// Receivers learn the first beginning in each segment.
    EndMessage {
        /// The user's number.
        object: u64,
    },
    /// Sends the bytes of a stream that do not fill a segment, which wait otherwise, and asks receivers what they lack.
    Flush {
        /// The user's number.
        object: u64,
    },
    /// Withdraws an object to send: `Failed` follows.
    Cancel {
        /// The user's number.
        object: u64,
    },
    /// The first `up_to` bytes of a received object are stored; the object is acknowledged when all are. Bytes of a stream count from
    /// its first piece, without those of gaps, and are acknowledged as the sender asks for it.
    Accept {
        /// The provider's number.
        incoming: u64,
        /// Number of bytes from the beginning.
        up_to: u64,
    },
    /// Refuses a received object.
    Refuse {
        /// The provider's number.
        incoming: u64,
        /// Reason.
        reason: RefuseReason,
    },
    /// Ends the session: objects that are being sent fail, and `Down` follows.
    Close,
}

/// Indications of [`Objects`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectsIndication {
    /// The session is open.
    Up {
        /// Maximum length of an object to send, bytes; zero if there is no receiver to send to.
        object_bytes_max: u64,
    },
    /// The session is closed. Every object to send has had its last indication before. The provider opens it again by itself if
    /// `retry` is set.
    Down {
        /// Reason.
        reason: DownReason,
        /// True if the provider opens it again.
        retry: bool,
    },
    /// Bytes of contents that may be passed down.
    Room(u64),
    /// All receivers that have to acknowledge the object have done so; without such receivers, it was sent and the time for repair
    /// requests has passed.
    Sent {
        /// The user's number.
        object: u64,
    },
    /// All receivers that have to acknowledge a stream have its first bytes.
    Acknowledged {
        /// The user's number.
        object: u64,
        /// Number of bytes from the beginning.
        up_to: u64,
    },
    /// The object was not acknowledged.
    Failed {
        /// The user's number.
        object: u64,
        /// Reason.
        reason: ObjectFailure,
    },
    /// An object begins to arrive.
    Begin {
        /// The provider's number.
        incoming: u64,
        /// Node identifier of its sender.
        sender: u32,
        /// Kind.
        kind: ObjectKind,
        /// Description, if it arrived before the first bytes.
        info: Option<Bytes>,
        /// Length, bytes; `None` for a stream.
        length: Option<u64>,
    },
    /// The next bytes of an object.
    Piece {
        /// The provider's number.
        incoming: u64,
        /// Bytes.
        data: Bytes,
        /// True at the end of the object.
        last: bool,
    },
    /// A message of a stream begins with its next byte. A stream that is received from its middle begins so.
    Message {
        /// The provider's number.
        incoming: u64,
    },
    /// Bytes of a stream are missing for ever before its next one: their sender repairs them no more, or has them no more.
    Gap {
        /// The provider's number.
        incoming: u64,
        /// Number of bytes, modulo 2^32.
        bytes: u32,
    },
    /// The description of an object that had begun without it.
    Info {
        /// The provider's number.
        incoming: u64,
        /// Description.
        info: Bytes,
    },
    /// No more of the object follows, and it is not complete.
    Lost {
        /// The provider's number.
        incoming: u64,
    },
}

/// Reason for the failure of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFailure {
    /// The session is closed.
    NotUp,
    /// The session ended, or the receivers were silent for too long.
    Down(CloseReason),
    /// A receiver was silent for too long.
    Silent,
    /// The user withdrew it.
    Cancelled,
    /// It is too long, or its description is.
    TooLong,
    /// The receiver refused it.
    Refused(RefuseReason),
}

impl ObjectsIndication {
    /// Returns the next indication of a provider: one of those that wait, or else the room if it differs from what the user was
    /// told. After `Down` the user has none.
    pub(crate) fn next(
        waiting: &mut std::collections::VecDeque<Self>,
        told: &mut u64,
        room: u64,
    ) -> Option<Self> {
        if let Some(indication) = waiting.pop_front() {
            if let ObjectsIndication::Down { .. } = indication {
                *told = 0;
            }
            return Some(indication);
        }
        (core::mem::replace(told, room) != room).then_some(ObjectsIndication::Room(room))
    }
}
