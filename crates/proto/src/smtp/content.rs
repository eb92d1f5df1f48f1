//! The bytes of a message between DATA and its end: dots at the beginning of lines are doubled (RFC 5321 4.5.2).

use bytes::{BufMut, BytesMut};

/// Position in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// At the beginning of a line.
    LineStart,
    /// Behind a dot that begins a line.
    Dot,
    /// Behind a CR after such a dot.
    DotCr,
    /// Within a line.
    Text,
    /// Behind a CR.
    Cr,
}

/// Decoder of a message.
#[derive(Debug)]
pub(super) struct ContentDecoder {
    state: State,
    /// True if there was a CR without LF, or a LF without CR.
    pub(super) has_bare_line_end: bool,
}

impl ContentDecoder {
    pub(super) fn new() -> Self {
        ContentDecoder { state: State::LineStart, has_bare_line_end: false }
    }

    /// Decodes bytes up to the end of the message, and appends them to `out`. Returns the number of bytes used, and true if they
    /// contain the end.
    pub(super) fn decode(&mut self, input: &[u8], out: &mut BytesMut) -> (usize, bool) {
        for (at, &byte) in input.iter().enumerate() {
            self.state = match (self.state, byte) {
                (State::LineStart, b'.') => State::Dot,
                (State::Dot, b'\r') => State::DotCr,
                (State::DotCr, b'\n') => return (at + 1, true),
                (State::Cr, b'\n') => {
                    out.put_slice(b"\r\n");
                    State::LineStart
                }
                (state, byte) => {
                    self.has_bare_line_end |= byte == b'\n' || matches!(state, State::Cr | State::DotCr);
                    match byte {
                        b'\r' => State::Cr,
                        byte => {
                            out.put_u8(byte);
                            State::Text
                        }
                    }
                }
            };
        }
        (input.len(), false)
    }
}

/// Appends a message as a mail program sends it after DATA. A last line without CR LF gets one.
pub fn put_content(message: &[u8], out: &mut BytesMut) {
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        if line.first() == Some(&b'.') {
            out.put_u8(b'.');
        }
        out.put_slice(line);
    }
    if !message.is_empty() && !message.ends_with(b"\r\n") {
        out.put_slice(b"\r\n");
    }
    out.put_slice(b".\r\n");
}
