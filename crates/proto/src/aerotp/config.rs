//! Configuration and counters of an endpoint.

use super::wire::{HEADER_BYTES, NUMBER_BYTES, PARITY_PREFIX_BYTES, TRAILER_BYTES, payload_bytes_max};
use crate::fec::STRENGTH_MAX;
use crate::service::{Precedence, TransportService};
use crate::setting::{Fault, Settings, TIME_MAX, TIME_MIN, at_least, number, time};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Minimum length of the longest packet, bytes: room for a report of some blocks, and for parity.
pub const PACKET_BYTES_MIN: u64 = 128;
/// Strengths of the code inside a segment.
pub const STRENGTHS: [u8; 6] = [0, 1, 2, 4, 8, 16];

crate::setting::settings! {
    /// Configuration of a [`Link`](super::Link) or an [`Endpoint`](super::Endpoint).
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Config {
        /// Node ID of the peer, to which bundles are sent. Default: unknown, so that bundles take the link only by a route.
        pub peer_node_id: Option<String>,
        /// Service of the connections that carry bundles: `adaptive`, `reliable`, `near-reliable` or `nack-mack`. Default `adaptive`.
        pub service: TransportService,
        /// Precedence of the connections that carry bundles. Default `routine`.
        pub precedence: Precedence,
        /// Maximum length of a packet to send, bytes, with its header, checksum and parity; at least 128. Default 1,472, which with the
        /// headers of UDP and IPv4 is the 1,500 of Ethernet.
        pub packet_bytes: u64 = 1472,
        /// Maximum length of the payload of a segment in the services other than `adaptive`, bytes. Default 0: as long as a packet
        /// permits.
        pub segment_bytes: u64,
        /// Number of wrong octets that the code corrects in each of its words of at most 255 octets, in the services `nack`,
        /// `nack-mack` and `quasi-reliable`: 0, 1, 2, 4, 8 or 16. Default 8, which takes 6.3 %; the code is RS(255, 239).
        pub fec_strength: u8 = 8,
        /// True: the code covers the header, too, in words of consecutive octets, and a segment is recognised only if its header
        /// could be corrected. Both ends must agree. Default false: the header has a checksum of its own.
        pub header_in_code: bool,
        /// Number of segments with parity for each block of the service `quasi-reliable`, from which the receiver computes lost ones.
        /// Default 0.
        pub parity_segments: u32,
        /// Number of segments of a block, from which parity is computed, 1 to 64. Default 64.
        pub block_segments: u32 = 64,
        /// Number of acknowledgements that are collected before a packet with them (MACK) leaves; at most as many as a packet has
        /// room for. Default 4.
        pub acks_per_mack: u32 = 4,
        /// Time after which fewer acknowledgements, and reports of the service `adaptive`, leave as well; zero: acknowledgements wait
        /// without limit. Default 5 ms.
        pub mack_interval: Duration = Duration::from_millis(5),
        /// True: acknowledgements state up to which segment everything has been accepted, and list only segments beyond it, so that the
        /// loss of one does no harm. False: each segment is acknowledged by its number alone. Both ends must agree. Default
        /// true.
        pub cumulative: bool = true,
        /// Number of negative acknowledgements for a segment that could not be corrected and does not come again. Default 1.
        pub nack_attempts: u32 = 1,
        /// True: segments that could not be corrected are passed on with their errors in the services that would drop them. Default
        /// false.
        pub deliver_damaged: bool,
        /// Transmission rate, bit/s, with `overhead-bytes`; zero: as fast as the provider accepts. Default 5,000,000.
        pub rate_bps: u64 = 5_000_000,
        /// Maximum burst, as time at the rate. Default 10 ms.
        pub burst: Duration = Duration::from_millis(10),
        /// Length of the UDP and IP headers of a datagram, bytes. Default 28.
        pub overhead_bytes: u64 = 28,
        /// Retransmission timeout before the round trip has been measured. Default 500 ms.
        pub rto_initial: Duration = Duration::from_millis(500),
        /// Minimum retransmission timeout. Default 10 ms.
        pub rto_min: Duration = Duration::from_millis(10),
        /// Maximum retransmission timeout. Default 60 s.
        pub rto_max: Duration = Duration::from_secs(60),
        /// Difference in the times of arrival of two packets by which a later one may overtake an earlier one, which otherwise
        /// counts as lost. Default 2 ms.
        pub reordering: Duration = Duration::from_millis(2),
        /// Time for which the sender of a connection without acknowledgements keeps its segments for retransmission after the end, and
        /// after the time for which a receiver with the same settings waits for them (CLOSE TO). Default 2 s.
        pub close_timeout: Duration = Duration::from_secs(2),
        /// Time for which the receiver of a connection waits for retransmissions after its end (LISTEN TO), and for the
        /// retransmission of a segment that it has asked for. Default 1 s.
        pub listen_timeout: Duration = Duration::from_secs(1),
        /// Time without anything new from the peer after which a connection fails or is lost. It does not run while the link is known
        /// to be down. Default 120 s.
        pub silence_limit: Duration = Duration::from_secs(120),
        /// Bit-error rate that the service `adaptive` expects before it has been measured. Default 1e-5.
        pub bit_error_rate_initial: f64 = 1e-5,
        /// Maximum number of segments of a connection that are sent and not acknowledged, at most 65,536; in the service `nack`, that are
        /// kept for retransmission. Default 8,192.
        pub window_segments: u32 = 8192,
        /// Maximum number of bytes of all outgoing connections that are not acknowledged; one segment may exceed it. Default 16 MiB.
        pub outgoing_bytes_max: u64 = 16 << 20,
        /// Maximum number of bytes of incoming connections that are not accepted, with 64 for each segment; more segments are dropped. A
        /// connection may take four fifths of what others leave, and a quarter is reserved for the first missing segment of each. Default
        /// 16 MiB.
        pub incoming_bytes_max: u64 = 16 << 20,
        /// Maximum number of outgoing connections. Default 1,024.
        pub outgoing_max: usize = 1024,
        /// Maximum number of incoming connections; more are refused. Default 1,024.
        pub incoming_max: usize = 1024,
        /// Number of incoming connections that are remembered after their end, for twice `silence-limit`, so that late segments are
        /// answered; at most 65,536. Default 4,096.
        pub closed_max: usize = 4096,
        /// Maximum number of open bundles that are not completely received from the user; more fail at once. Default 4,096.
        pub open_max: usize = 4096,
        /// Maximum length of a bundle to send or to receive, bytes. Default 64 MiB.
        pub bundle_bytes_max: u64 = 64 << 20,
        /// Delay before a failed endpoint is opened again; it doubles with each failure. Default 1 s.
        pub retry_min: Duration = Duration::from_secs(1),
        /// Maximum delay before a failed endpoint is opened again. Default 60 s.
        pub retry_max: Duration = Duration::from_secs(60),
    }
}

impl Config {
    /// The weak code with which segments are lost as in the paper: one wrong octet in each word of 255 is corrected, and the header is
    /// inside the code, so that a segment whose header could not be corrected is not recognised. The strength of the paper's code
    /// is unknown; this one is calibrated to its losses.
    #[must_use]
    pub fn with_weak_code(self) -> Config {
        Config { fec_strength: 1, header_in_code: true, ..self }
    }

    /// Returns the strength of the code inside the segments of a service.
    pub fn strength(&self, service: TransportService) -> u8 {
        match service {
            TransportService::Nack | TransportService::NackMack | TransportService::QuasiReliable => {
                self.fec_strength
            }
            _ => 0,
        }
    }

    /// Returns true if the segments of a service have their header inside the code.
    pub fn header_is_coded(&self, service: TransportService) -> bool {
        self.header_in_code && self.strength(service) > 0
    }

    /// Returns the length of the longest payload of a segment of a service other than `adaptive`, bytes, in packets of at most
    /// `packet_bytes`.
    pub fn payload_bytes(&self, service: TransportService, packet_bytes: u64) -> u64 {
        let longest =
            payload_bytes_max(packet_bytes, self.strength(service), self.header_is_coded(service)).max(1);
        if self.segment_bytes == 0 { longest } else { self.segment_bytes.min(longest) }
    }

    /// Returns the length of the longest segment of a service with parity of a fixed amount, bytes: parity needs some octets more.
    pub(super) fn symbol_bytes(&self, service: TransportService, packet_bytes: u64) -> usize {
        (self.payload_bytes(service, packet_bytes) as usize).saturating_sub(PARITY_PREFIX_BYTES).max(1)
    }

    /// Returns the maximum number of acknowledgements in one packet of `packet_bytes`: one in the header, and 4 bytes for each
    /// further one. A packet of 1,500 bytes has room for 363 of them with the headers of IP and UDP, and with the checksum; the
    /// paper counts 365, without UDP and without a checksum.
    pub fn macks_max(packet_bytes: u64) -> u32 {
        let room = packet_bytes.saturating_sub((HEADER_BYTES + TRAILER_BYTES) as u64);
        1 + u32::try_from(room / NUMBER_BYTES as u64).unwrap_or(u32::MAX)
    }

    /// Returns the time for which the receiver of a connection with negative acknowledgements waits after its end.
    pub(super) fn listening_wait(&self) -> Duration {
        self.listen_timeout * self.nack_attempts.saturating_add(1)
    }

    /// Returns the time for which the sender of such a connection waits: a receiver that gives up and is refused by its user says so
    /// before the connection counts as sent.
    pub(super) fn closing_wait(&self) -> Duration {
        self.listening_wait() + self.close_timeout
    }

    /// Returns the number of bytes in memory that only the first missing segment of a connection may use.
    pub(super) fn incoming_reserve(&self) -> u64 {
        (self.incoming_bytes_max / 4).max(self.packet_bytes)
    }
}

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        number("packet-bytes", self.packet_bytes, PACKET_BYTES_MIN..=65_507, "1472 is usual")?;
        number(
            "segment-bytes",
            self.segment_bytes,
            0..=65_507,
            "0 makes segments as long as a packet permits",
        )?;
        number("fec-strength", self.fec_strength, 0..=STRENGTH_MAX.into(), "8 corrects 8 octets of 255")?;
        if !STRENGTHS.contains(&self.fec_strength) {
            let wrong = format!("is {}; it must be 0, 1, 2, 4, 8 or 16", self.fec_strength);
            return Err(Fault { key: "fec-strength".into(), wrong, hint: "8 corrects 8 octets of 255" });
        }
        number("parity-segments", self.parity_segments, 0..=128, "0 sends no parity in advance")?;
        number("block-segments", self.block_segments, 1..=64, "64 is usual")?;
        let macks_max = Config::macks_max(self.packet_bytes);
        number(
            "acks-per-mack",
            self.acks_per_mack,
            1..=macks_max.into(),
            "as many as a packet has room for",
        )?;
        if self.mack_interval.is_zero() && self.acks_per_mack > self.window_segments {
            let wrong = format!(
                "is {}, more than `window-segments`, and no timer limits the wait",
                self.acks_per_mack
            );
            return Err(Fault { key: "acks-per-mack".into(), wrong, hint: "set `mack-interval`" });
        }
        number("nack-attempts", self.nack_attempts, 1..=16, "1 asks once")?;
        number("overhead-bytes", self.overhead_bytes, 0..=65_535, "28 for IPv4, 48 for IPv6")?;
        number("window-segments", self.window_segments, 1..=65_536, "8192 is usual")?;
        at_least("outgoing-bytes-max", self.outgoing_bytes_max, 1, "with 0 nothing can be sent")?;
        at_least("incoming-bytes-max", self.incoming_bytes_max, 65_536, "16777216 is usual")?;
        at_least("outgoing-max", self.outgoing_max, 1, "with 0 nothing can be sent")?;
        at_least("incoming-max", self.incoming_max, 1, "with 0 nothing can be received")?;
        number("closed-max", self.closed_max as u64, 0..=65_536, "4096 is usual")?;
        at_least("open-max", self.open_max, 1, "with 0 nothing can be sent")?;
        at_least("bundle-bytes-max", self.bundle_bytes_max, 1, "with 0 no bundle can be sent")?;
        if !self.service.acknowledges() {
            let wrong = "is a service without acknowledgements, which a bundle needs".to_owned();
            return Err(Fault { key: "service".into(), wrong, hint: "`adaptive` is usual" });
        }
        if !(0.0..=0.1).contains(&self.bit_error_rate_initial) {
            let wrong = format!("is {}; it must be from 0 to 0.1", self.bit_error_rate_initial);
            return Err(Fault { key: "bit-error-rate-initial".into(), wrong, hint: "1e-5 is usual" });
        }
        let some = TIME_MIN..=TIME_MAX;
        let any = Duration::ZERO..=TIME_MAX;
        time("mack-interval", self.mack_interval, any.clone(), "5 ms is usual")?;
        time("reordering", self.reordering, any, "2 ms is usual")?;
        time("rto-min", self.rto_min, some.clone(), "10 ms is usual")?;
        time("rto-max", self.rto_max, self.rto_min..=TIME_MAX, "must not be less than `rto-min`")?;
        time(
            "rto-initial",
            self.rto_initial,
            self.rto_min..=self.rto_max,
            "must be from `rto-min` to `rto-max`",
        )?;
        time("close-timeout", self.close_timeout, some.clone(), "must exceed the round trip")?;
        time("listen-timeout", self.listen_timeout, some.clone(), "must exceed the round trip")?;
        time(
            "silence-limit",
            self.silence_limit,
            some.clone(),
            "must be longer than the outages of the link",
        )?;
        time("retry-min", self.retry_min, some, "1 s is usual")?;
        time("retry-max", self.retry_max, self.retry_min..=TIME_MAX, "must not be less than `retry-min`")
    }
}

/// Counters of an [`Endpoint`](super::Endpoint) since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Number of times that the endpoint was opened.
    pub joined: u64,
    /// Number of times that the endpoint failed.
    pub failed: u64,
    /// Outgoing connections that were opened.
    pub connections_opened: u64,
    /// Outgoing connections that were sent to their end.
    pub connections_sent: u64,
    /// Outgoing connections that have failed.
    pub connections_failed: u64,
    /// Incoming connections that have begun.
    pub connections_begun: u64,
    /// Incoming connections that have arrived to their end.
    pub connections_received: u64,
    /// Incoming connections that were lost.
    pub connections_lost: u64,
    /// Connections that this side has refused.
    pub refused: u64,
    /// Segments sent for the first time.
    pub segments_sent: u64,
    /// Segments sent again.
    pub segments_resent: u64,
    /// Segments sent with parity across segments.
    pub parity_sent: u64,
    /// Bytes of data sent for the first time.
    pub payload_sent: u64,
    /// Bytes of data sent again.
    pub payload_resent: u64,
    /// Bytes of parity inside segments sent.
    pub code_bytes_sent: u64,
    /// Segments received with new data.
    pub segments_received: u64,
    /// Segments received that were known.
    pub duplicates: u64,
    /// Segments received with parity across segments.
    pub parity_received: u64,
    /// Segments that were computed from parity.
    pub segments_restored: u64,
    /// Bytes of data passed to the user.
    pub payload_received: u64,
    /// Segments whose bit errors were corrected.
    pub segments_corrected: u64,
    /// Octets that were corrected.
    pub octets_corrected: u64,
    /// Segments that could not be corrected.
    pub uncorrectable: u64,
    /// Packets whose header could not be read.
    pub headers_damaged: u64,
    /// Segments that the user will never have.
    pub gaps: u64,
    /// Packets with acknowledgements or reports sent.
    pub macks_sent: u64,
    /// Acknowledgements in them.
    pub acks_sent: u64,
    /// Packets with acknowledgements or reports received.
    pub macks_received: u64,
    /// Packets with negative acknowledgements sent.
    pub nacks_sent: u64,
    /// Packets with negative acknowledgements received.
    pub nacks_received: u64,
    /// Bytes of all packets sent, without those of UDP and IP.
    pub bytes_sent: u64,
    /// Bytes of the packets among them that carry acknowledgements, reports and negative acknowledgements.
    pub answer_bytes_sent: u64,
    /// Retransmission timers that have expired.
    pub timeouts: u64,
    /// Connections that ended because the peer was silent.
    pub silent: u64,
    /// Segments dropped because of a limit.
    pub dropped: u64,
    /// Packets about unknown connections.
    pub strangers: u64,
    /// Packets with an intact checksum that break a rule.
    pub violations: u64,
}
