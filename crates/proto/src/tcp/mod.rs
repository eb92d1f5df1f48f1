//! TCP/IP as an engine: IPv4 and TCP of one host, with real headers and checksums.
//!
//! | document | what of it |
//! |---|---|
//! | RFC 791 | the header and its checksum; no fragments (every packet forbids them), no options, no forwarding |
//! | RFC 9293 | all of TCP but urgent data (the flag is ignored, the data are in line) and path MTU discovery: no ICMP |
//! | RFC 5681 | slow start, congestion avoidance, fast retransmit and recovery, restart after idleness |
//! | RFC 6582 | NewReno, for peers without SACK |
//! | RFC 2018, 6675 | SACK, both sides; recovery by the pipe; forward acknowledgement as an alternative |
//! | RFC 3042 | limited transmit |
//! | RFC 6298 | the retransmission timer, and Linux's rule for it |
//! | RFC 7323 | window scale, timestamps, protection against wrapped numbers |
//! | RFC 1122 4.2 | delayed acknowledgements, keep-alive, window probes |
//! | RFC 5961 | challenge acknowledgements for doubtful resets, SYNs and acknowledgements |
//! | RFC 3522 | a reduction is taken back when an echoed timestamp shows that it was for nothing |
//!
//! Not here: ECN, Fast Open, CUBIC, probes for lost tails (TLP) and time-based loss detection (RACK, RFC 8985), and finding
//! out that a timeout was false (F-RTO, RFC 5682): the profiles of systems that have them come as near as the above allows,
//! and say how near that is. Window and keep-alive probes carry no data: they
//! repeat the sequence number before the next one, which every peer has to answer. R1 of RFC 9293 3.8.3 tells the
//! network layer to look for another route; there is never another one here.
//!
//! # States (RFC 9293 3.3.2)
//!
//! ```text
//!   Connect                 a SYN to a listening port
//!      |                              |
//!   SYN-SENT --- SYNs cross ---> SYN-RECEIVED
//!      |                              |
//!      +---------> ESTABLISHED <------+
//!        Close |               | the peer's FIN
//!         FIN-WAIT-1 -----+  CLOSE-WAIT
//!              |          |    | Close
//!         FIN-WAIT-2   CLOSING LAST-ACK
//!              |          |    |
//!              +-> TIME-WAIT   +--> CLOSED
//! ```
//!
//! The user hears `Closed(Finished)` on entering TIME-WAIT; the connection lingers without it, and the link may be
//! opened anew at once (from another port).
//!
//! # A segment is made at the last moment
//!
//! Nothing is queued between TCP and the interface: what to send is decided when the interface has room (`output`),
//! so every frame carries the newest acknowledgement, and retransmission timers start when the bytes leave. While
//! an interface gives no room, no retransmission timer runs down for what waits for it.
//!
//! # Units
//!
//! Windows and buffers are in bytes of payload, lengths of headers in bytes. Inside, sequence numbers are offsets
//! from the initial one, 64 bits wide: the SYN is 0, the first byte 1, and nothing wraps.
//!
//! # Limits
//!
//! Connections, `connections_max`; bytes to send, `send_buffer_bytes`; bytes received and not released,
//! `receive_buffer_bytes`, and segments beyond holes twice those that fit it and 64 more; resets to strangers, 64 for each
//! interface; remembered thresholds, 256.

pub mod config;
mod congestion;
mod connection;
mod host;
mod input;
mod output;
mod receive;
mod rtt;
mod send;
#[cfg(test)]
mod tests;
pub mod wire;

pub use connection::{Counters, State, Statistics};
pub use host::{Drops, Host, Observer};
