//! TCP/IP as an engine: IPv4 and TCP of one host, with real headers and checksums.
//!
//! | document | implemented part |
//! |---|---|
//! | RFC 791 | the header and its checksum; no fragments (every packet has the DF flag), no options, no forwarding |
//! | RFC 9293 | all of TCP but urgent data (the flag is ignored, the data are in line) and path MTU discovery: no ICMP |
//! | RFC 5681 | slow start, congestion avoidance, fast retransmit and recovery, restart after an idle period |
//! | RFC 6582 | NewReno, for peers without SACK |
//! | RFC 2018, 6675 | SACK, both sides; recovery based on the pipe; forward acknowledgement as an alternative |
//! | RFC 3042 | limited transmit |
//! | RFC 6937 | proportional rate reduction, with both bounds and the one of Linux |
//! | RFC 8985 | RACK-TLP: loss detection by time with an adaptive window for reordering, tail loss probes |
//! | RFC 5682 | F-RTO with SACK: spurious timeouts are found without timestamps |
//! | RFC 2883, 3708 | duplicate SACKs, sent and read: a reduction is undone if all retransmissions were unnecessary |
//! | RFC 9438 | CUBIC, with HyStart of Linux |
//! | RFC 6298 | the retransmission timer, and the rule of Linux for it |
//! | RFC 7323 | window scale, timestamps, protection against wrapped sequence numbers |
//! | RFC 1122 4.2 | delayed acknowledgements, keep-alives, window probes |
//! | RFC 5961 | challenge acknowledgements for doubtful resets, SYNs and acknowledgements |
//! | RFC 3522 | a reduction of the congestion window is undone when an echoed timestamp shows that nothing was lost |
//!
//! Not implemented: ECN, Fast Open, and F-RTO without SACK. Window and keep-alive probes carry no data: they repeat
//! the sequence number before the next one, which every peer must answer. R1 of RFC 9293 3.8.3 asks the network layer
//! for another route; there is never another one here.
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
//! The user receives `Closed(Finished)` on entry into TIME-WAIT; the connection lingers without its user, and the link
//! may be opened again at once (from another port).
//!
//! # Segments are built when they are sent
//!
//! There is no queue between TCP and the interface: the segment to send is chosen when the interface has room
//! (`output`), so every frame carries the newest acknowledgement, and retransmission timers start when the bytes leave.
//! While an interface has no room, no retransmission timer runs for data that wait for it, but the connection ends after the
//! time that all retries would have taken.
//!
//! # Parts of recovery
//!
//! `recovery` reacts to acknowledgements, `send` keeps the state of each segment, `rack` finds losses by time, `probe` sends
//! tail loss probes, `forward_rto` judges timeouts, `congestion` and `cubic` compute the window. The timers for a
//! retransmission, the window for reordering and a probe exclude each other (RFC 8985 8). `presets` has the profiles of
//! systems.
//!
//! # Units
//!
//! Windows and buffers are in bytes of payload, lengths of headers in bytes. Internally, sequence numbers are offsets
//! from the initial sequence number, 64 bits wide: the SYN is 0, the first byte 1, and nothing wraps.
//!
//! # Limits
//!
//! Connections: `connections_max`. Bytes to send: `send_buffer_bytes`. Bytes received and not released:
//! `receive_buffer_bytes`. Segments beyond holes: twice the number that fits the receive buffer, plus 64. Waiting
//! resets for segments without a connection: 64 per interface. Remembered slow-start thresholds: 256.

pub mod config;
mod congestion;
mod connection;
mod cubic;
mod forward_rto;
mod host;
mod input;
mod output;
mod presets;
mod probe;
mod rack;
mod receive;
mod recovery;
mod rtt;
mod send;
#[cfg(test)]
mod tests;
pub mod wire;

pub use connection::{Counters, State};
pub use host::{Drops, Host};
