//! Radio channels: any number of stations on one frequency, one at a time, as packet radio has them.
//!
//! Sources: the KISS TNC's parameters (TXDELAY, TXTAIL, P, SlotTime, FullDuplex); AX.25 2.2, 6.4.2 (seizing the channel) and
//! 3 (flags, bit stuffing, check sequence), whose bits are counted exactly.
//!
//! ```text
//!            Seize            clear               frames handed over        none left      TXTAIL over
//!   quiet ----------> waiting ------> contending ---------> keying ---> sending -----> tail -----> quiet
//!     ^                  ^  <------       |                TXDELAY     frame by frame
//!     |                      busy         | nothing to say
//!     +-----------------------------------+
//! ```
//!
//! **Getting the channel.** A station asks for it with `Seize`; when it is clear, waits and draws as [`Access`] says; and gets
//! room at the moment at which it keys up. What it hands over then goes out in one key-up, and so does what it hands
//! over later while that lasts. Room goes with the frame marked `last`, or when the transmitter runs dry. Who was given
//! room and says nothing gives the channel back, unkeyed. With full duplex nobody waits: there is room for one frame whenever
//! the transmitter is free, and it stays keyed as long as frames follow each other.
//!
//! **On the air** are TXDELAY, a flag, each frame with its check sequence, stuffed bits and a flag behind it, and
//! TXTAIL. The way through the air takes no time.
//!
//! **Hearing.** Everything that is keyed is heard as a carrier by all that hear its sender, and destroys what overlaps with
//! it there, unless the other is stronger by `capture-db` or more. Who transmits hears nothing. Bit errors are
//! drawn for each pair; the stations' deframers check what arrives, so that a damaged frame passes only with a right check
//! sequence.
//!
//! **Controllers.** A [`Tnc`] stands between a host and the channel: a serial line, a buffer, a processor, a turnaround. In a
//! [`Controller`] the firmware speaks AX.25 itself.
//!
//! **Accounts.** Each frame has one fate at every other station. The time of each station sums to the time elapsed; what its
//! transmitter was keyed for without sending frames is keying, what it waited for the channel is access.

mod channel;
mod config;
pub mod controller;
mod path;
mod station;
pub mod tnc;

pub use config::{Access, PathConfig, RadioConfig, StationConfig};
pub use controller::{Controller, ControllerConfig, Firmware};
pub use tnc::{Tnc, TncConfig, TransmitReports};

pub(crate) use channel::{ChannelContext, SharedChannel, StationEventKind, StationTimer};
