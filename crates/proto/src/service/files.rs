//! Files to and from remote peers over a protocol for files.

use super::DownReason;
use crate::engine::Service;
use bytes::Bytes;

/// The service of a protocol that transfers files. Contents pass in pieces at offsets: the provider asks for those that it
/// sends next, and passes on those that it has received in the order of their arrival.
///
/// Every file that begins, by a request or by `Offered`, `Wanted` or `Remove`, ends with exactly one of `Done` and
/// `Failed`, unless the user refuses it. Files may begin while the endpoint is down, and those under way continue
/// when it is up again.
///
/// Nothing here needs room: the provider bounds what it asks for, and what it passes on before it is stored.
#[derive(Debug)]
pub enum Files {}

impl Service for Files {
    type Request = FilesRequest;
    type Indication = FilesIndication;
}

/// A file under way. Each side numbers those that it begins, and never uses a number twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileId {
    /// The user's number.
    Own(u64),
    /// The provider's number for a file that the peer has begun.
    Peer(u64),
}

/// Properties of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileProperties {
    /// Path, without NUL, at most 1,023 bytes.
    pub path: String,
    /// True for the list of a directory, as entries of the protocol.
    pub is_directory: bool,
    /// Length, bytes.
    pub length: u64,
    /// Time of the last change, in the protocol's seconds.
    pub modified: u32,
    /// Time of the creation, in the protocol's seconds.
    pub created: u32,
    /// CRC-32C of the content; `None` if the sender states none.
    pub crc32c: Option<u32>,
}

/// Incomplete content of a file, with which its transfer continues later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialFile {
    /// Properties. The transfer continues only if those of the file are the same.
    pub properties: FileProperties,
    /// End of the last byte that is stored.
    pub up_to: u64,
    /// Missing ranges before it, in order: beginning and end.
    pub missing: Vec<(u64, u64)>,
    /// Contribution of the bytes that are stored to the checksum.
    pub sum: u32,
}

/// Request for a file that the peer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The file.
    Get,
    /// The file, which the peer deletes after its transfer.
    Take,
    /// The list of a directory.
    List,
}

/// Requests of [`Files`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilesRequest {
    /// Opens the endpoint, and opens it again when it fails, until `Close`.
    Connect,
    /// Sends a file.
    Put {
        /// The user's number.
        file: u64,
        /// Properties.
        properties: FileProperties,
        /// Length of the content that may be asked for so far, bytes.
        available: u64,
        /// True to wait until the peer agrees, false to send without a question.
        asks: bool,
    },
    /// Requests a file of the peer.
    Get {
        /// The user's number.
        file: u64,
        /// Path; empty if the peer chooses.
        path: String,
        /// Kind of request.
        wish: Wish,
        /// Content that is stored already.
        held: Option<PartialFile>,
    },
    /// Requests that the peer deletes a file.
    Delete {
        /// The user's number.
        file: u64,
        /// Path.
        path: String,
    },
    /// More of the content of a file to send may be asked for.
    Available {
        /// File.
        file: FileId,
        /// Length of the content that may be asked for, bytes.
        up_to: u64,
    },
    /// Answer to `Read`, complete.
    Content {
        /// File.
        file: FileId,
        /// Offset of the bytes.
        offset: u64,
        /// Bytes.
        data: Bytes,
    },
    /// Answer to `Offered`: the file is received.
    Accept {
        /// File.
        file: FileId,
        /// Content that is stored already.
        held: Option<PartialFile>,
    },
    /// Answer to `Wanted`: the file is sent.
    Provide {
        /// File.
        file: FileId,
        /// Properties.
        properties: FileProperties,
        /// Length of the content that may be asked for so far, bytes.
        available: u64,
    },
    /// Answer to `Remove`: the file does not exist, or not any longer. Ends the file for the provider.
    Removed {
        /// File.
        file: FileId,
    },
    /// Bytes of a file that is received are stored.
    Stored {
        /// File.
        file: FileId,
        /// Beginning of the range.
        start: u64,
        /// End of the range.
        end: u64,
    },
    /// Answer to `Offered`, `Wanted` or `Remove`, or end of a file that is received: the peer gets the reason. Ends the
    /// file for the provider.
    Refuse {
        /// File.
        file: FileId,
        /// Reason.
        reason: FileFailure,
    },
    /// Ends a file of any kind. `Failed` does not follow.
    Cancel {
        /// File.
        file: FileId,
    },
    /// Closes the endpoint. All files end, with `Failed`.
    Close,
}

/// Indications of [`Files`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilesIndication {
    /// The endpoint is open.
    Up {
        /// True if there is a peer to which files can be sent.
        has_peer: bool,
    },
    /// The endpoint is closed.
    Down {
        /// Reason.
        reason: DownReason,
        /// True if it is opened again.
        retry: bool,
    },
    /// Content that is sent next; answered by `Content`.
    Read {
        /// File.
        file: FileId,
        /// Offset.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// The peer sends a file; answered by `Accept` or `Refuse`.
    Offered {
        /// File.
        file: FileId,
        /// Properties.
        properties: FileProperties,
    },
    /// The peer requests a file; answered by `Provide` or `Refuse`.
    Wanted {
        /// File.
        file: FileId,
        /// Path; empty if this side chooses.
        path: String,
        /// Kind of request. After `Done`, the user deletes a file that was taken.
        wish: Wish,
    },
    /// The peer requests a deletion; answered by `Removed` or `Refuse`.
    Remove {
        /// File.
        file: FileId,
        /// Path.
        path: String,
    },
    /// A requested file begins to arrive.
    Begun {
        /// File.
        file: FileId,
        /// Properties.
        properties: FileProperties,
        /// True if what was stored is kept, false if all of it is sent.
        continues: bool,
    },
    /// Bytes of a file that is received.
    Piece {
        /// File.
        file: FileId,
        /// Offset.
        offset: u64,
        /// Bytes. No byte is passed on twice.
        data: Bytes,
    },
    /// The receiver of a file that is sent has stored its first bytes. Not due for the last ones, which `Done` confirms.
    Progress {
        /// File.
        file: FileId,
        /// Number of bytes from the beginning.
        up_to: u64,
    },
    /// The file is received and stored completely, by whichever side receives it; or it is deleted. Terminal.
    Done {
        /// File.
        file: FileId,
    },
    /// The file has failed. Terminal.
    Failed {
        /// File.
        file: FileId,
        /// Reason.
        reason: FileFailure,
        /// Content that was received up to now; `None` if the file is sent, has not begun or must be discarded.
        partial: Option<PartialFile>,
    },
}

/// Reason for the failure of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFailure {
    /// The peer is silent.
    Silent,
    /// The endpoint was closed.
    Closed,
    /// The peer has ended the transfer.
    Ended,
    /// The file does not exist.
    NotFound,
    /// The file may not be read, written or deleted.
    AccessDenied,
    /// The file is longer than the receiver accepts.
    TooLong,
    /// Resources are exhausted; a later attempt may succeed.
    NoResources,
    /// The content does not have its checksum, or its length.
    Damaged,
    /// The receiver no longer wants the file.
    NotInterested,
    /// The file is in use.
    InUse,
    /// The file was not deleted.
    NotDeleted,
    /// The request is not supported.
    Unsupported,
    /// The reason has a code without a meaning here.
    Other(u8),
}
