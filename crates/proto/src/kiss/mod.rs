//! KISS: exchange of frames between a host and a TNC (a packet-radio controller) over a serial line or TCP.
//!
//! Specifications: *The KISS TNC* (Chepponis and Karn, 1987) and *Multi-Drop KISS Operation* (Medcalf, 1991, after
//! Wiseman). SMACK is a CRC-16 on the line between host and TNC, as in its firmware and the Linux driver.
//!
//! Implemented: frames and escapes (KISS 2, 3), all commands (KISS 4), addresses of several TNCs on one line,
//! acknowledgement mode and its reply, polls and the exclusive-or checksum (Multi-Drop), SMACK. An engine communicates
//! with one TNC and counts the frames of others; several engines share one line by a [`SharedLine`].
//!
//! ```text
//!                 Frames (AX.25, a monitor)
//!                    |
//!                 [ KissTnc ]   Closed - Connecting - Open - Closing
//!                    |
//!                 Stream (a serial line, TCP, or a share of one)
//! ```
//!
//! KISS has no flow control and reports neither that the channel is won nor that a frame has left. [`KissTnc`] works
//! that out: a burst goes to the TNC in one write, so that it leaves in one key-up, and until it has left there is no
//! room for more. Room is granted a moment after it was requested, when every user above has passed down its frames. In
//! acknowledgement mode the TNC reports when the burst has left; otherwise the time is computed from the bit rate. A
//! frame that is received before that time shows that the burst still waits, and that more frames can join it.

mod config;
mod framing;
mod shared_line;
mod tnc;
mod wire;

#[cfg(test)]
mod tests;

pub use config::{Acknowledgement, Config, Counters};
pub use framing::{Checksum, Deframer, FRAME_BYTES_MAX, enclose};
pub use shared_line::SharedLine;
pub use tnc::KissTnc;
pub use wire::{Command, Frame, PORTS};
