//! NORM: objects and streams to one receiver or to a group, repaired by parity symbols on request; and bundles as objects.
//!
//! RFC 5740 (protocol), RFC 5401 (procedures for negative acknowledgements), RFC 5052 (blocks), RFC 5445 and RFC 5510 (formats of
//! schemes 129, 2 and 5). The Reed-Solomon code and the meaning of the field for parity symbols are those of NRL's
//! implementation, which differ from RFC 5510; so do all nodes in the field.
//!
//! # Objects
//!
//! ```text
//!  sender                                                          receivers
//!    | CMD(CC): probe for the round-trip time ------------------------>  |
//!    |  <-------------------------------------------- ACK(CC), with its time
//!    | INFO, if the object has a description ------------------------->  |
//!    | DATA block 0: source symbols, parity symbols if so configured --> |  x some are lost
//!    | DATA block 1 --------------------------------------------------> |
//!    |  <---- NACK at the end of a block, after a random delay: parity symbols of block 0, as many as are missing
//!    | DATA block 0: parity symbols that were not sent before --------> |  any of them replaces any that is missing
//!    | DATA block 1, .. ----------------------------------------------> |
//!    | CMD(FLUSH) with the receivers that must acknowledge -----------> |
//!    |  <------------------------------------------------- ACK(FLUSH): everything is stored
//! ```
//!
//! - **Repair.** One NACK tells all that a receiver lacks up to the point that the sender has reached; another one leaves not before the
//!   answer can have come. The sender answers the greatest number of symbols that a receiver lacks of a block, by parity
//!   symbols that it has not sent before, and when there are no more of them, by those that are requested.
//! - **Groups.** NACKs wait for a random time, and are not sent if others ask for as much. Those by unicast are repeated to the group by
//!   CMD(REPAIR_ADV).
//! - **Objects that are gone.** A request for an object that is not repaired any more is answered by CMD(SQUELCH), which tells where those
//!   begin that are. A receiver that comes later requests all earlier objects ([`Config::earlier_objects`]), and
//!   learns by this answer which there are; until then it acknowledges nothing.
//! - **Acknowledgements.** An object counts as sent when all receivers that must acknowledge it have done so
//!   ([`Config::acknowledging`]). They are asked at the end of all data, and meanwhile at [`Config::watermark_interval`]. Of a group without
//!   such receivers, objects count as sent when the questions after the last symbol have brought no requests.
//! - **Rate.** It is fixed, or follows the receiver with the least one ([`congestion`]).
//! - **Silence.** If no answer comes to [`Config::robust_factor`] questions and for [`Config::silence_limit`], all objects fail and the
//!   session is opened again later. While the link below is disconnected no timer runs.
//!
//! # Streams
//!
//! ```text
//!  source symbol: length (16 bits) | beginning of a message (16) | offset (32) | contents       parity symbols cover all of it
//!
//!  sender's buffer     [ block 7 | block 8 | block 9 .. ]  <- segments that wait <- bytes that do not fill a segment
//!                        SQUELCH before block 7             one at a time          until more come, a flush or the end
//! ```
//!
//! - **Segments** leave as soon as they are full, and what does not fill one on [`Flush`](crate::service::ObjectsRequest::Flush). When all has
//!   left, receivers are asked at once after a flush, and otherwise at the next [`Config::watermark_interval`]. Of a block that is not
//!   complete there are no parity symbols, and its segments are requested one by one.
//! - **The buffer** holds whole blocks, at least two. With receivers that must acknowledge, its oldest block leaves when they have
//!   done so, and the sender waits for them. Without such receivers it leaves for a later one when the time for requests has passed.
//! - **Gaps.** What has left the buffer is squelched; a receiver also concludes it from the length of the buffer in each message. It passes
//!   on what follows, and tells how many bytes are missing.
//! - **Messages.** A receiver that comes later begins with the first message of the first block that it hears of; with
//!   [`Config::earlier_objects`], with the first message that the sender can still repair.
//!
//! # Implementation of the contract
//!
//! - The acknowledgement of an object waits until the user has accepted all of it.
//! - An open stream is the object whose contents follow: others are sent when it is closed.
//! - Objects to send are in memory until they are acknowledged, within [`Config::outgoing_bytes_max`].
//! - A refused object is reported to its only sender by an acknowledgement of type 16, with the number of the object and the reason in
//!   three octets (ours); the sender fails the object, and answers by SQUELCH. A group learns nothing of it: an
//!   object that a member will never take counts as taken, and one that has no room there stays unacknowledged.
//! - Bundles ([`Link`]) are data objects without a description, one each, as in DTN2.
//!
//! # Limits
//!
//! The number and the length of objects, the memory of incomplete blocks and of what the user has not accepted, the number of senders and
//! of remembered requests are bounded ([`Config`]). The buffer of a stream to send counts as the length of an object; a received stream may
//! state any, because only blocks of which symbols have come take memory. A stream has at most 2^32 - 3 blocks. A symbol beyond a limit counts as lost on the way. Nothing is
//! allocated from the sizes that a message states before a symbol of the block has come.
//!
//! # Not implemented
//!
//! - Schemes with symbols of 16 bits: such objects are ignored, and counted. A [`Link`] ignores streams, too.
//! - Blocks of streams with fewer symbols than the others: they are not sent, and their symbols are violations.
//! - CMD(ACK_REQ), CMD(APPLICATION) and REPORT: they are skipped. CMD(EOT) is received, and not sent.
//!
//! Nothing is authenticated: whoever can send from the address of a peer can also acknowledge in its place. Until the peer has
//! answered from the address that is configured, its answers count from any, because NRL's receivers answer from a port of their own.
//!
//! Units: bytes of objects; rates in bit/s of messages, without the headers of UDP and IP.

mod acknowledgements;
mod bundles;
pub mod config;
pub mod congestion;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod grtt;
mod incoming;
mod outgoing;
mod partition;
pub mod quantities;
mod repair;
mod requests;
mod sender;
mod session;
mod source;
mod symbols;
#[cfg(test)]
mod tests;
pub mod wire;

pub use bundles::{BundleCounters, Link};
pub use config::{Config, Counters};
pub use congestion::CongestionControl;
pub use partition::Partition;
pub use session::Session;
