//! Fields of a stream in its symbols (RFC 5740 4.2.1).

use crate::codec::{DecodeError, take};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Fields before the contents of a source symbol of a stream. The parity symbols of a block cover them with the contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFields {
    /// Length of the contents, bytes; zero for a control code.
    pub length: u16,
    /// Place of the first byte that begins a message, from 1; zero if none does. Without contents, a control code.
    pub message_start: u16,
    /// Number of bytes of the stream before the contents, modulo 2^32.
    pub offset: u32,
}

impl StreamFields {
    /// Length of the fields, octets.
    pub const BYTES: usize = 8;
    /// Control code of the end of a stream (`NORM_STREAM_END`).
    pub const END: u16 = 0;

    /// Decodes the fields, and takes the contents that follow them; what follows the contents is padding.
    ///
    /// # Errors
    /// Fails if the contents are not there, or if a message begins beyond them.
    pub fn decode(input: &mut Bytes) -> Result<(Self, Bytes), DecodeError> {
        let mut fields = take(input, Self::BYTES)?;
        let (length, message_start, offset) = (fields.get_u16(), fields.get_u16(), fields.get_u32());
        if length > 0 && message_start > length {
            return Err(DecodeError::invalid("beginning of a message", "RFC 5740 4.2.1"));
        }
        let contents = take(input, length.into())?;
        Ok((StreamFields { length, message_start, offset }, contents))
    }

    /// Appends the fields.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_u16(self.length);
        out.put_u16(self.message_start);
        out.put_u32(self.offset);
    }
}
