//! Radio channels: any number of stations on one frequency, one transmitting at a time, as in packet radio and D-STAR DD.
//!
//! Sources: the parameters of the KISS TNC (TXDELAY, TXTAIL, P, SlotTime, FullDuplex); AX.25 2.2, 6.4.2 (seizing the
//! channel) and 3 (flags, bit stuffing, check sequence), whose bits are counted exactly.
//!
//! ```text
//!            Seize            clear               frames accepted           none left      TXTAIL over
//!   quiet ----------> waiting ------> contending ---------> keying ---> sending -----> tail -----> quiet
//!     ^                  ^  <------       |                TXDELAY     frame by frame
//!     |                      busy         | no frames
//!     +-----------------------------------+
//! ```
//!
//! **Channel access.** A station requests the channel with `Seize`. When the channel is clear it waits and draws
//! according to [`Access`], and it gets room at the moment of key-up. Frames sent then go out in one transmission, and
//! so do frames sent later while it lasts. Room ends with the frame marked `last`, or when the transmitter has no more
//! frames. A station that gets room and sends nothing releases the channel without keying. With full duplex stations do
//! not wait: there is room for one frame whenever the transmitter is free, and it stays keyed as long as frames follow
//! each other.
//!
//! **A transmission** consists of TXDELAY, a flag, each frame with its check sequence, stuffed bits and a flag after
//! it, and TXTAIL. The propagation delay is zero.
//!
//! **Reception.** Every keyed station is detected as a carrier by all stations in its range, and destroys overlapping
//! frames there, unless the other signal is stronger by `capture-db` or more. A transmitting station receives nothing.
//! Bit errors are drawn for each pair; the deframers of the stations check the frames, so that a damaged frame passes
//! only with a right check sequence.
//!
//! **Ethernet frames.** With [`Framing::Ethernet`] a frame is padded to 60 bytes and has a check sequence of 4, without flags
//! or stuffing, as in D-STAR DD; a station that may send one frame per transmission (`key_up_frames`) pays TXDELAY for each.
//! Stations may hear each other in a share of the transmissions only, or read only short frames ([`PathConfig`]).
//!
//! **Controllers.** A [`Tnc`] stands between a host and the channel: a serial line, a buffer, a processor, a
//! turnaround. A [`Controller`] has AX.25 in its firmware.
//!
//! **Accounting.** Each frame has one fate at every other station. The times of each station sum to the time elapsed:
//! keying is the time in which its transmitter was keyed without sending frames, access is the time in which it waited
//! for the channel.

mod channel;
mod config;
pub mod controller;
mod framing;
mod path;
mod station;
pub mod tnc;

pub use config::{Access, Framing, PathConfig, RadioConfig, StationConfig};
pub use controller::{Controller, ControllerConfig, Firmware};
pub use tnc::{Tnc, TncConfig, TransmitReports};

pub(crate) use channel::{ChannelContext, SharedChannel, StationEventKind, StationTimer};
