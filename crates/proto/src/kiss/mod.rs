//! KISS: how a host gives frames to a TNC (a packet-radio controller) and gets them, over a serial line or TCP.
//!
//! Specifications: *The KISS TNC* (Chepponis and Karn, 1987) and *Multi-Drop KISS Operation* (Medcalf, 1991, after
//! Wiseman). SMACK is a CRC-16 on the line between host and TNC, as its firmware and the Linux driver have it.
//!
//! Implemented: frames and escapes (KISS 2, 3), all commands (KISS 4), addresses of several TNCs on one line,
//! acknowledgement mode and its echo, polls and the checksum of exclusive-or (Multi-Drop), SMACK. An engine speaks with one TNC,
//! and counts what others say; several have one line by a [`SharedLine`].
//!
//! ```text
//!                 Frames (AX.25, a monitor)
//!                    |
//!                 [ Tnc ]   Apart - Calling - Open
//!                    |
//!                 Stream (a serial line, TCP, or a share of one)
//! ```
//!
//! KISS has no flow control and says neither when the channel is won nor when a frame has left. [`KissTnc`] works that out:
//! a burst goes to the TNC in one write, so that it leaves in one key-up, and until it has left there is no room for more.
//! Room comes a moment after it was asked for, when everybody above has said what there is to say.
//! When it has left the TNC says in acknowledgement mode, or it is computed from the rate; a frame that is heard in the
//! meantime shows that the burst still waits, and that more can join it.

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
