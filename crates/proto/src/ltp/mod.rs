//! LTP convergence layer: blocks of bundles over links with long delays and interruptions.
//!
//! Specification: RFC 5326 (sessions, segments), RFC 7122 3.3 (one segment per datagram, UDP port 1113, keep-alives), RFC
//! 7116 (client service IDs), CCSDS 734.1 (service data aggregation), RFC 5327 2.1 (authentication, in
//! [`Authentication`]). A received datagram may contain several segments (RFC 5326 5). Other extensions in headers and
//! trailers are skipped.
//!
//! # Sessions
//!
//! ```text
//!  sender                                                receiver
//!    | red data ----------------------------------------->  |  rise in order, are stored
//!    | red data, checkpoint, end of block --------------->  |  waits for missing data, then for acceptance
//!    |  <------------------------------ report with claims  |
//!    | acknowledgement of the report -------------------->  |  complete: closed
//!    | missing data, the last one a checkpoint ---------->  |
//! ```
//!
//! A block is one session. Several are under way at a time ([`Config::sessions_max`]), because each needs a round trip.
//! Either side may cancel a session with a reason, which the other acknowledges. Ended sessions are remembered by the receiver,
//! so that late segments do not begin them anew.
//!
//! - **Timers.** Checkpoints, reports and cancellations are repeated until they are answered. Their timers begin when the
//!   segment has left, and stand still while the link is down and the answer cannot leave (RFC 5326 6.2 to 6.6).
//! - **Outages.** What was on its way when the link went down may be lost: the first segment of a block after an outage is a
//!   discretionary checkpoint.
//! - **Order.** Acknowledgements, reports, cancellations and repeated checkpoints leave first, then retransmissions, then
//!   new data.
//! - **Reports** of missing data wait for datagrams that overtake each other, and so do retransmissions. A complete block is
//!   reported at once, even if no checkpoint asks for it, and so are, if that is set, the gaps of a block of which nothing more
//!   comes ([`Config::asynchronous_after`]). The timer of a checkpoint runs until the reports cover all data sent for it, so that
//!   a lost report segment among several costs a timeout and not the session.
//! - **Copies.** Where a loss costs a timeout or a round trip, segments may be sent several times ([`Config::copies`]). It costs
//!   neither while the block has new data to send: the answer to a later checkpoint counts for the discretionary ones before.
//! - **Limits.** The number of sessions and of bytes is bounded in both directions; what exceeds a limit counts as lost on
//!   the way. If there are too many receptions, one that is behind is cancelled for the next
//!   ([`Config::incoming_sessions_max`]). A reception ends after a time in which nothing new was heard of it
//!   ([`Config::inactivity`]); repetitions do not count.
//! - **Lost state.** Reports of one session count up from a random number. A report with a distant number, or a checkpoint
//!   that answers an unknown report, shows that the peer has restarted: the session is cancelled, because claims of two
//!   receivers must not be combined.
//! - **Silence.** If all repetitions of a checkpoint are unanswered and nothing else was heard either, the link goes down,
//!   and is tried again after a delay. An acknowledgement answers the cancellation of any session, by which other
//!   implementations test a link.
//!
//! # Implementation of the contract
//!
//! - **A block is reported completely only when the user has accepted all of it.** Until then, repeated checkpoints are
//!   answered by a report of a part of it, so that the sender continues to wait. `Sent` follows the report of the complete
//!   block; partial reports are never indicated, because a block that breaks off is sent again as a whole.
//! - Bundles that wait at the same time share a block ([`Config::block_bytes`]). A block ends when its last bytes could
//!   leave and no more bundles are expected. Of a received block, each bundle rises by itself, as its bytes arrive in order.
//! - LTP can neither refuse nor cancel one bundle of several: all bundles of the block fail. After a refusal, as many bundles
//!   as the block had are sent in blocks of their own.
//! - Room is for the segments that can leave next, and at most two more. Received datagrams are released at once: those that
//!   fill a gap must arrive while those after it wait in memory.
//! - When the endpoint fails, all transfers fail; the cancellation of their sessions follows when it is open again.
//!
//! # States
//!
//! ```text
//!          Connect               Joined
//!    Closed ----------> Joining ---------------> Up
//!     ^ ^                  | Left                | Left, Close, silent peer
//!     | +-- after a delay--+---------------------+
//! ```
//!
//! An endpoint on which any peer may send ([`Link::listening`]) is `Up` as soon as it exists, and answers to the address that
//! it was sent from; a link answers only to its configured peer, because other implementations send from another port.
//!
//! # Not implemented
//!
//! - Signatures with RSA, and cookies (RFC 5327 2.1, 2.2): the extensions are skipped, not checked.
//! - Blocks with a red and a green part: they are received; blocks to send are all red, or all green ([`Config::green`]).
//! - The source of the delays: the one-way delay is a setting, not read from a contact plan.
//!
//! Units: bytes of blocks; engine IDs and session numbers have up to 64 bits, and those of this side fit into 32 bits, as
//! other implementations require.

mod authentication;
pub mod config;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod incoming;
mod link;
mod outgoing;
mod packing;
mod segments;
mod sessions;
#[cfg(test)]
mod tests;
mod timer;
mod unpack;
mod unpacking;
pub mod wire;

pub use authentication::{Authentication, Ciphersuite, SecretKey};
pub use config::{BlockFormat, Config, Counters};
pub use link::Link;
