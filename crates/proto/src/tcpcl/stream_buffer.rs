//! Interface of a session to its stream: pending requests, and messages cut from received data.

use crate::codec::DecodeError;
use crate::service::StreamRequest;
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;

/// Maximum length of a message header that is assembled, bytes; the longest message header is a SESS_INIT.
const HEADER_BYTES_MAX: usize = 8192;

/// Pending request to the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StreamOrder {
    Connect,
    Abort,
}

/// Pending requests and partial input of one stream.
#[derive(Debug, Default)]
pub(super) struct StreamBuffer {
    /// Bytes that may be written.
    room: u64,
    /// Maximum room of this connection, bytes.
    room_max: u64,
    /// Messages that have begun to be written, and their total length, bytes.
    writing: VecDeque<Bytes>,
    writing_bytes: u64,
    /// Bytes to release.
    release: u64,
    /// Beginning of an incomplete message.
    partial: BytesMut,
    order: Option<StreamOrder>,
    /// TLS request, to be sent once everything is written.
    secure: Option<StreamRequest>,
    close: bool,
    /// Nothing more is written.
    closed: bool,
    /// No further requests are sent.
    aborted: bool,
}

impl StreamBuffer {
    /// Clears the state of a connection that has ended.
    pub(super) fn reset(&mut self) {
        *self = StreamBuffer::default();
    }

    pub(super) fn connect(&mut self) {
        self.reset();
        self.order = Some(StreamOrder::Connect);
    }

    /// Ends the connection at once.
    pub(super) fn abort(&mut self) {
        self.reset();
        self.order = Some(StreamOrder::Abort);
        self.closed = true;
        self.aborted = true;
    }

    /// Ends the connection once everything is written.
    pub(super) fn close(&mut self) {
        self.close |= !self.closed;
        self.closed = true;
    }

    /// Requests TLS once everything is written.
    pub(super) fn secure(&mut self, client: bool, name: Option<String>) {
        self.secure = Some(StreamRequest::Secure { client, name });
    }

    pub(super) fn set_room(&mut self, room: u64) {
        self.room = room;
        self.room_max = self.room_max.max(room);
    }

    /// Returns the room that no message waits for, bytes.
    pub(super) fn free(&self) -> u64 {
        self.room.saturating_sub(self.writing_bytes)
    }

    /// Returns the maximum room of this connection, bytes.
    pub(super) fn room_max(&self) -> u64 {
        self.room_max
    }

    /// Returns true between two messages if there is room for at least one byte.
    pub(super) fn may_begin(&self) -> bool {
        self.writing.is_empty() && self.room > 0 && !self.closed
    }

    /// Returns true between two messages.
    pub(super) fn is_between(&self) -> bool {
        self.writing.is_empty()
    }

    /// Returns true if the end of the output has been decided.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns true if there is no pending request.
    pub(super) fn is_silent(&self) -> bool {
        let quiet = self.secure.is_none() && self.release == 0 && self.writing.is_empty() && !self.close;
        self.order.is_none() && (self.aborted || quiet)
    }

    /// Queues bytes of a message for writing; after the end of the output they are dropped.
    pub(super) fn write(&mut self, bytes: Bytes) {
        if !bytes.is_empty() && !self.closed {
            self.writing_bytes += bytes.len() as u64;
            self.writing.push_back(bytes);
        }
    }

    pub(super) fn release(&mut self, bytes: u64) {
        self.release += bytes;
    }

    /// Takes back a release that has not been requested yet: these bytes are held.
    pub(super) fn hold(&mut self, bytes: u64) {
        self.release -= bytes;
    }

    /// Returns the next request to the stream.
    pub(super) fn next_request(&mut self) -> Option<StreamRequest> {
        if let Some(order) = self.order.take() {
            return Some(match order {
                StreamOrder::Connect => StreamRequest::Connect,
                StreamOrder::Abort => StreamRequest::Abort,
            });
        }
        if self.aborted {
            return None;
        }
        if self.release > 0 {
            return Some(StreamRequest::Release(core::mem::take(&mut self.release)));
        }
        if let Some(front) = self.writing.front_mut() {
            if self.room == 0 {
                return None;
            }
            let length = self.room.min(front.len() as u64);
            let bytes = front.split_to(length as usize);
            if front.is_empty() {
                self.writing.pop_front();
            }
            self.room -= length;
            self.writing_bytes -= length;
            return Some(StreamRequest::Write(bytes));
        }
        if let Some(secure) = self.secure.take() {
            return Some(secure);
        }
        core::mem::take(&mut self.close).then_some(StreamRequest::Close)
    }

    /// Cuts the next message from the input; returns `None` if it is incomplete, and keeps its beginning.
    pub(super) fn next_message<T>(
        &mut self,
        input: &mut Bytes,
        decode: impl FnOnce(&mut Bytes) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        let held = self.partial.len();
        let joined = HEADER_BYTES_MAX.min(input.len());
        let mut front = if held == 0 {
            input.slice(..joined)
        } else {
            self.partial.extend_from_slice(&input[..joined]);
            self.partial.split().freeze()
        };
        let whole = front.clone();
        match decode(&mut front) {
            Ok(message) => {
                // The kept bytes did not suffice, so the message ends within the new bytes.
                input.advance(whole.len() - front.len() - held);
                Ok(Some(message))
            }
            Err(DecodeError::Incomplete) if joined < input.len() || whole.len() > HEADER_BYTES_MAX => {
                Err(DecodeError::Limit { what: "a message header" })
            }
            Err(DecodeError::Incomplete) => {
                input.clear();
                self.partial = BytesMut::from(&whole[..]);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
