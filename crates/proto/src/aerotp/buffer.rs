//! Data of a connection that wait to be sent.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Data that the user has passed down and that have not been put into segments.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    pieces: VecDeque<Bytes>,
    bytes: u64,
    /// The user has passed down the end.
    pub(super) is_ended: bool,
}

impl Buffer {
    pub(super) fn push(&mut self, data: Bytes, last: bool) {
        self.bytes += data.len() as u64;
        self.is_ended |= last;
        if !data.is_empty() {
            self.pieces.push_back(data);
        }
    }

    /// Number of bytes.
    pub(super) fn len(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Removes up to this number of bytes from the front.
    pub(super) fn take(&mut self, most: usize) -> Bytes {
        let Some(first) = self.pieces.front_mut() else { return Bytes::new() };
        if first.len() > most {
            self.bytes -= most as u64;
            return first.split_to(most);
        }
        if first.len() == most || self.pieces.len() == 1 {
            return self.take_piece();
        }
        let length = (self.bytes as usize).min(most);
        let mut out = BytesMut::with_capacity(length);
        while out.len() < length {
            let first = self.pieces.front_mut().expect("there are as many bytes");
            let part = first.split_to((length - out.len()).min(first.len()));
            out.extend_from_slice(&part);
            if first.is_empty() {
                self.pieces.pop_front();
            }
        }
        self.bytes -= length as u64;
        out.freeze()
    }

    /// Removes the first piece: a message.
    pub(super) fn take_piece(&mut self) -> Bytes {
        let piece = self.pieces.pop_front().unwrap_or_default();
        self.bytes -= piece.len() as u64;
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_cut_across_pieces() {
        let mut buffer = Buffer::default();
        for piece in ["abc", "", "defgh", "i", "jk"] {
            buffer.push(Bytes::from_static(piece.as_bytes()), piece == "jk");
        }
        let cut: Vec<_> = [2, 4, 2, 9, 5].map(|most| buffer.take(most)).into_iter().collect();
        assert_eq!(cut, ["ab", "cdef", "gh", "ijk", ""]);
        assert!(buffer.is_empty() && buffer.is_ended);
    }
}
