//! The stream as a session sees it: what is to be said to it, and messages cut from what it says.

use crate::codec::DecodeError;
use crate::service::StreamRequest;
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;

/// The longest message header that is waited for, bytes; the longest there is is a SESS_INIT.
const HEADER_BYTES_MAX: usize = 8192;

/// What else is to be asked of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StreamOrder {
    Connect,
    Abort,
}

/// One side of a stream.
#[derive(Debug, Default)]
pub(super) struct StreamBuffer {
    /// Bytes that may be written.
    room: u64,
    /// The largest room of this connection.
    room_max: u64,
    /// Bytes of messages that have begun to be written, and how many.
    writing: VecDeque<Bytes>,
    writing_bytes: u64,
    /// Bytes to release.
    release: u64,
    /// The beginning of a message.
    partial: BytesMut,
    order: Option<StreamOrder>,
    /// To be asked once everything is written.
    secure: Option<StreamRequest>,
    close: bool,
    /// Nothing is written any more.
    closed: bool,
    /// Nothing at all is said any more.
    aborted: bool,
}

impl StreamBuffer {
    /// Forgets a connection that is over.
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

    /// Asks for TLS once everything is written.
    pub(super) fn secure(&mut self, client: bool, name: Option<String>) {
        self.secure = Some(StreamRequest::Secure { client, name });
    }

    pub(super) fn set_room(&mut self, room: u64) {
        self.room = room;
        self.room_max = self.room_max.max(room);
    }

    /// Room that nothing waits for.
    pub(super) fn free(&self) -> u64 {
        self.room.saturating_sub(self.writing_bytes)
    }

    /// The largest room of this connection.
    pub(super) fn room_max(&self) -> u64 {
        self.room_max
    }

    /// Between two messages, with room for a byte at least.
    pub(super) fn may_begin(&self) -> bool {
        self.writing.is_empty() && self.room > 0 && !self.closed
    }

    /// Between two messages.
    pub(super) fn is_between(&self) -> bool {
        self.writing.is_empty()
    }

    /// The end of what is written has been decided on.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// There is nothing to say to the stream.
    pub(super) fn is_silent(&self) -> bool {
        let quiet = self.secure.is_none() && self.release == 0 && self.writing.is_empty() && !self.close;
        self.order.is_none() && (self.aborted || quiet)
    }

    /// Puts bytes of a message behind those that are being written; after the end of what is written they are dropped.
    pub(super) fn write(&mut self, bytes: Bytes) {
        if !bytes.is_empty() && !self.closed {
            self.writing_bytes += bytes.len() as u64;
            self.writing.push_back(bytes);
        }
    }

    pub(super) fn release(&mut self, bytes: u64) {
        self.release += bytes;
    }

    /// Takes back a release that has not been said: these bytes are held.
    pub(super) fn hold(&mut self, bytes: u64) {
        self.release -= bytes;
    }

    /// The next thing to say to the stream.
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

    /// Cuts the next message from the stream; none where it is not whole yet: its beginning is kept.
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
                // What was kept did not suffice, so the message ends within the new bytes.
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
