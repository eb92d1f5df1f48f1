//! Configuration of a host and its connections: [`Profile`] (behaviour of TCP) and [`HostConfig`] (addresses, ports,
//! peers).

use crate::service::{InterfaceId, LinkId};
use crate::setting::{Fault, Settings, at_least, number, time, wait, wait_from};
use core::net::Ipv4Addr;
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// Rule that computes the retransmission timeout from round-trip samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RtoRule {
    /// `max(minimum, SRTT + 4 RTTVAR)` (RFC 6298 2): the minimum applies to the sum, so a long and steady round trip
    /// has no margin.
    Rfc6298,
    /// `SRTT + max(minimum, 4 RTTVAR)`, where the variance follows a rise at once and a fall once per round trip, as in
    /// Linux: a long round trip keeps a margin.
    Linux,
}

/// Number of round-trip samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttSampling {
    /// One sample per round trip (the minimum of RFC 6298 3).
    PerRoundTrip,
    /// One sample from each acknowledgement that allows one.
    PerAcknowledgement,
}

/// Loss detection and recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Three duplicate acknowledgements, then one hole per round trip (RFC 6582). The other variants fall back to this
    /// one if the peer has no SACK.
    NewReno,
    /// NewReno with the peculiarities of ns-3 (`TcpSocketBase`, compared with version 3.44). With SACK it is as `NewReno`.
    ///
    /// - The acknowledgement that ends a recovery from a timeout does not enlarge the window. With a window of one segment,
    ///   whose acknowledgement the receiver delays for as long as the minimum timeout, every further segment times out, although it
    ///   has arrived, and the window stays at one segment for the rest of the connection.
    /// - Every timeout sets the threshold to half of the estimated bytes in the network, not only the first one.
    /// - Every acknowledgement of new data ends the back-off of the timer, also those of repeated data. Within fast recovery
    ///   only the first one restarts the timer.
    /// - Fast recovery ends with the window at the threshold, however much has been acknowledged at once; it may begin again at its
    ///   very end.
    /// - In congestion avoidance the window grows by a part of a segment with each acknowledgement.
    /// - Duplicate acknowledgements after a timeout count for nothing. The receiver counts segments of any length for its
    ///   acknowledgements.
    NewRenoNs3,
    /// A hole is lost when three segments' worth of data above it have arrived (RFC 6675).
    Sack6675,
    /// Everything three segments below the highest segment that has arrived is lost (forward acknowledgement).
    Fack,
    /// By time: a segment is lost when one that was sent later has arrived, and a window for reordering has passed (RACK,
    /// RFC 8985 6). Also finds lost retransmissions.
    Rack,
}

/// Algorithm of congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionControl {
    /// One segment per round trip, half of the window after a loss (RFC 5681 3.1, 3.2).
    Reno,
    /// A cubic function of the time since the last loss, 0.7 of the window after a loss, and at least the window that
    /// Reno would have (RFC 9438).
    Cubic,
}

/// Reduction of the congestion window in fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// At once, to the slow-start threshold (RFC 5681 3.2, RFC 6675 5).
    Immediate,
    /// By one segment per two acknowledgements.
    RateHalving,
    /// In proportion to the delivered data (proportional rate reduction, RFC 6937).
    Proportional,
}

/// Limit on the data sent in a proportional reduction once the data in flight are below the slow-start threshold (RFC
/// 6937 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReductionBound {
    /// As much as was delivered (PRR-CRB).
    Conservative,
    /// As much as was delivered, and one segment per acknowledgement in addition, as in slow start (PRR-SSRB).
    SlowStart,
    /// As in slow start on acknowledgements that advance and indicate no further loss, else as much as was delivered, as
    /// in Linux.
    SlowStartWithoutLoss,
}

/// Quantity that is halved at a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Halved {
    /// The data in flight (RFC 5681 3.1 equation 4).
    Flight,
    /// The congestion window.
    Window,
}

/// Growth of the congestion window beyond the part in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowValidation {
    /// The window always grows (RFC 5681 has no restriction).
    Off,
    /// The window grows only if it was full.
    WhenFull,
    /// The window grows if it was full, and in slow start up to twice the data in flight.
    SlowStartDoubles,
}

/// Increase of the congestion window per acknowledgement in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Growth {
    /// One segment, however much is acknowledged (RFC 2581).
    PerAcknowledgement,
    /// One segment while the window is at most the threshold. Above the threshold, one segment for as many
    /// acknowledgements as the window has segments, plus one, as Linux counted until 2.6.
    PerAcknowledgementLinux,
    /// The acknowledged bytes, at most `segments_max` segments (appropriate byte counting; RFC 5681 3.1 has 1). Zero
    /// for no limit.
    Bytes {
        /// Maximum number of segments that one acknowledgement counts; zero if unlimited.
        segments_max: u32,
    },
}

/// Change of the congestion window after the sender has been idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleRestart {
    /// No change.
    Off,
    /// Back to the initial window after one retransmission timeout (RFC 5681 4.1).
    Rfc5681,
    /// Halved for each retransmission timeout, but not below the initial window, as in Linux.
    Halving,
}

/// Delay of small segments until earlier data are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nagle {
    /// Small segments are not delayed.
    Off,
    /// Small segments wait while any data are unacknowledged (RFC 9293 3.7.4).
    Rfc9293,
    /// Small segments wait while a small segment is unacknowledged (Minshall's variant), as in Linux.
    Minshall,
}

/// Behaviour of TCP: every parameter, as plain numbers.
///
/// The defaults are those of [`Profile::rfc5681`]. The presets are listed in [`Profile::NAMES`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Profile {
    /// Maximum segment size for sending and receiving, bytes without headers. The MTU of an interface may reduce it;
    /// options are subtracted (RFC 9293 3.7.1). Default 1460.
    pub maximum_segment_bytes: u16,
    /// Maximum number of bytes that wait to be sent or acknowledged. Default 262,144.
    pub send_buffer_bytes: u32,
    /// Receive window: maximum number of bytes that wait for the user, and so the maximum that is ever announced.
    /// Values above 65,535 need `window_scaling`. Default 65,535.
    pub receive_buffer_bytes: u32,
    /// Maximum number of bytes that are ever announced, like the `window` of a Linux route, while the buffer holds the
    /// data that the user has not fetched. `None` to announce the room in the buffer. Default `None`.
    pub announced_bytes_max: Option<u32>,
    /// Offers window scaling (RFC 7323 2). Default true.
    pub window_scaling: bool,
    /// Offers timestamps (RFC 7323 3). Default true.
    pub timestamps: bool,
    /// Tick of the timestamp clock (RFC 7323 5.4: 1 ms to 1 s). Default 1 ms.
    pub timestamp_tick: Duration,
    /// Offers SACK (RFC 2018). Default true.
    pub sack: bool,

    /// Answers a segment that had arrived before with a SACK block that names it (duplicate SACK, RFC 2883), and reads
    /// such blocks: they undo a reduction of the congestion window if every retransmission was unnecessary. Needs SACK.
    /// Default false.
    pub duplicate_sack: bool,

    /// Congestion avoidance. Default Reno.
    pub congestion_control: CongestionControl,
    /// Leaves slow start before a loss when the acknowledgements of a round trip come in one dense train that is half
    /// as long as the round trip, or when the round trip grows (HyStart of Linux, which RFC 9438 4.10 permits). Default
    /// false.
    pub hystart: bool,
    /// Initial congestion window, segments (RFC 5681 3.1). Default 3.
    pub initial_window_segments: u32,
    /// Growth in slow start. Default one segment of bytes (RFC 5681 3.1 equation 2).
    pub growth: Growth,
    /// Growth of the window beyond the part in use. Default off.
    pub window_validation: WindowValidation,
    /// Quantity that is halved at a loss. Default the data in flight.
    pub halved: Halved,
    /// Rounds the slow-start threshold down to whole segments, as Linux does, which counts its windows in segments.
    /// Default false.
    pub whole_segments: bool,
    /// Loss detection. Default RFC 6675.
    pub recovery: Recovery,
    /// Reduction of the window in recovery. Default immediate.
    pub reduction: Reduction,
    /// Limit of a proportional reduction (RFC 6937 3.1). Default as in slow start.
    pub reduction_bound: ReductionBound,
    /// Sends new data on the first two duplicate acknowledgements (RFC 3042). Default true.
    pub limited_transmit: bool,
    /// Marks a retransmitted segment as lost again when three segments' worth of data sent after it have arrived;
    /// otherwise only the timer detects this. Needs SACK; always on with RACK. Default false.
    pub find_lost_retransmissions: bool,
    /// In fast recovery, when nothing else may be sent, retransmits segments that are only suspected to be lost: those
    /// below a segment that has arrived, and once the very last segment (RFC 6675 4, NextSeg rules 3 and 4). Saves a
    /// timeout if the tail is lost, costs a segment if it is not. Needs SACK. Default true.
    pub repeat_on_suspicion: bool,
    /// Sends a segment when nothing was acknowledged for two round trips, or at the retransmission timeout if that comes
    /// earlier, so that the acknowledgement shows the loss of a tail without a timeout (TLP, RFC 8985 7). Needs SACK and
    /// RACK. Default false.
    pub tail_loss_probe: bool,
    /// After a retransmission timeout, sends new data before further retransmissions, and undoes the reduction of the
    /// congestion window when data that were sent only once are acknowledged: the timeout was spurious (F-RTO with SACK,
    /// RFC 5682 3.1). Needs SACK. Default false.
    pub forward_rto: bool,
    /// Undoes a reduction of the congestion window when an echoed timestamp shows that it was unnecessary because the
    /// acknowledgement was for the first copy (RFC 3522). Needs timestamps. Default false.
    pub undo_by_timestamps: bool,
    /// Keeps the congestion window when a SYN was retransmitted only because the initial timeout is shorter than the
    /// round trip. Detected by timestamps. Otherwise the window is reduced to one segment (RFC 5681 3.1). Default
    /// false.
    pub undo_syn_timeout: bool,
    /// Restart after an idle period. Default RFC 5681 4.1.
    pub idle_restart: IdleRestart,
    /// Begins with the slow-start threshold that earlier connections to the same address reached, if they ended in
    /// order. Default false.
    pub remember_threshold: bool,

    /// Retransmission timeout before the first sample (RFC 6298 2.1). Default 1 s.
    pub rto_initial: Duration,
    /// Minimum retransmission timeout; `rto_rule` determines to what it applies. Default 1 s (RFC 6298 2.4).
    pub rto_minimum: Duration,
    /// Maximum retransmission timeout after backoff (RFC 6298 2.5: at least 60 s). Default 60 s.
    pub rto_maximum: Duration,
    /// Rule for the retransmission timeout. Default RFC 6298.
    pub rto_rule: RtoRule,
    /// Number of round-trip samples. Default one per round trip.
    pub rtt_sampling: RttSampling,

    /// Minimum delay of the acknowledgement of a lone segment: the delay follows the gaps between segments from here to
    /// `delayed_ack_maximum`. If both are equal, the timer is fixed. Default 200 ms.
    pub delayed_ack_minimum: Duration,
    /// Maximum delay of the acknowledgement of a lone segment; at most 0.5 s in RFC 5681 4.2. Zero to acknowledge every
    /// segment at once. Default 200 ms.
    pub delayed_ack_maximum: Duration,
    /// Number of full segments that are acknowledged without a delay (RFC 5681 4.2: 2). Default 2.
    pub acknowledge_every_segments: u32,
    /// Number of segments that are acknowledged at once, each by itself, at the beginning and after a long idle period.
    /// Default 0.
    pub quick_acks: u32,
    /// Restarts the count of `quick_acks` after a segment out of order, as in Linux before 4.18: a sender that counts
    /// acknowledgements opens its window faster after a loss. Default false.
    pub quick_acks_after_disorder: bool,

    /// Delay of small segments. Default RFC 9293 3.7.4.
    pub nagle: Nagle,
    /// Maximum number of consecutive retransmission timeouts; after one more the connection ends (RFC 9293 3.8.3, R2).
    /// Default 15.
    pub retries: u32,
    /// Ends the connection after the time that `retries` doublings from `rto_minimum` take instead of after a number of
    /// timeouts, as Linux does since 2.6.32. Default false.
    pub retries_as_time: bool,
    /// Maximum number of retransmissions of a SYN; after one more timeout the attempt ends. Default 5.
    pub syn_retries: u32,
    /// Idle time after which the peer is probed (RFC 9293 3.8.4). `None` for no keep-alives. Default `None`.
    pub keep_alive_idle: Option<Duration>,
    /// Time between keep-alive probes. Default 75 s.
    pub keep_alive_interval: Duration,
    /// Number of unanswered keep-alive probes after which the connection ends. Default 9.
    pub keep_alive_probes: u32,
    /// Duration of TIME-WAIT: twice the maximum segment lifetime (RFC 9293 3.4.2). Default 60 s.
    pub time_wait: Duration,
}

impl Default for Profile {
    fn default() -> Self {
        Profile::rfc5681()
    }
}

impl Profile {
    fn check_sizes(&self) -> Result<(), Fault> {
        const WINDOW: &str = "RFC 7323 2.3 limits it to 1 GiB; twice the bandwidth-delay product is enough";
        number(
            "maximum-segment-bytes",
            self.maximum_segment_bytes,
            64..=65_495,
            "1460 fits into an Ethernet frame",
        )?;
        at_least(
            "send-buffer-bytes",
            self.send_buffer_bytes,
            1,
            "with 0 nothing can be written; 262144 is usual",
        )?;
        number("receive-buffer-bytes", self.receive_buffer_bytes, 1..=1 << 30, WINDOW)?;
        if let Some(most) = self.announced_bytes_max {
            at_least("announced-bytes-max", most, 1, "remove it to announce the room in the buffer")?;
        }
        number("initial-window-segments", self.initial_window_segments, 1..=1 << 20, "10 is usual (RFC 6928)")
    }

    fn check_times(&self) -> Result<(), Fault> {
        const TICK: &str = "RFC 7323 5.4 allows 1 ms to 1 s";
        const RTO: &str = "RFC 6298 specifies 1 s; Linux uses 200 ms";
        let tick = Duration::from_micros(1)..=Duration::from_secs(1);
        time("timestamp-tick", self.timestamp_tick, tick, TICK)?;
        wait("rto-initial", self.rto_initial, RTO)?;
        wait("rto-minimum", self.rto_minimum, RTO)?;
        wait_from("rto-maximum", self.rto_maximum, self.rto_minimum, "must not be less than `rto-minimum`")?;
        let delays = self.delayed_ack_minimum..=Duration::from_secs(10);
        time(
            "delayed-ack-maximum",
            self.delayed_ack_maximum,
            delays,
            "must not be less than `delayed-ack-minimum`; RFC 5681 4.2 allows at most 0.5 s",
        )?;
        if let Some(idle) = self.keep_alive_idle {
            wait("keep-alive-idle", idle, "remove it to disable keep-alives")?;
        }
        wait("keep-alive-interval", self.keep_alive_interval, "75 s is usual")?;
        wait_from("time-wait", self.time_wait, Duration::ZERO, "60 s is usual")
    }

    fn check_counts(&self) -> Result<(), Fault> {
        const MANY: &str = "the timeout doubles with each retry: 15 retries take at least 15 min";
        at_least(
            "acknowledge-every-segments",
            self.acknowledge_every_segments,
            1,
            "RFC 5681 4.2 specifies 2",
        )?;
        number("retries", self.retries, 0..=1000, MANY)?;
        number("syn-retries", self.syn_retries, 0..=1000, MANY)?;
        at_least(
            "keep-alive-probes",
            self.keep_alive_probes,
            1,
            "9 is usual; `keep-alive-idle` enables keep-alives",
        )
    }
}

impl Settings for Profile {
    fn check(&self) -> Result<(), Fault> {
        self.check_sizes()?;
        self.check_times()?;
        self.check_counts()
    }
}

/// Interface of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct InterfaceConfig {
    /// Number of the interface.
    pub interface: InterfaceId,
    /// Address of the host on the interface. Default 10.0.0.1.
    pub address: Ipv4Addr,
    /// Number of leading bits of the address that the neighbours share (prefix length). Default 24.
    pub prefix_bits: u8,
    /// Maximum packet length (MTU), bytes including the IPv4 header. Default 1500.
    pub mtu_bytes: u16,
}

impl Default for InterfaceConfig {
    fn default() -> Self {
        InterfaceConfig {
            interface: InterfaceId(0),
            address: Ipv4Addr::new(10, 0, 0, 1),
            prefix_bits: 24,
            mtu_bytes: 1500,
        }
    }
}

/// Route to addresses beyond the neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouteConfig {
    /// Destination prefix; only its first `prefix_bits` bits count.
    pub prefix: Ipv4Addr,
    /// Number of leading bits that count. The longest match wins.
    pub prefix_bits: u8,
    /// Interface on which the addresses are reached.
    pub interface: InterfaceId,
}

/// Peer of a link, for [`StreamRequest::Connect`](crate::service::StreamRequest::Connect).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PeerConfig {
    /// Link, below [`LinkId::FIRST_INCOMING`].
    pub link: LinkId,
    /// Address of the peer.
    pub address: Ipv4Addr,
    /// Port of the peer.
    pub port: u16,
}

/// Configuration of a host: its addresses, its peers and the ports on which it listens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostConfig {
    /// Behaviour of TCP.
    pub profile: Profile,
    /// Interfaces. Default none.
    pub interfaces: Vec<InterfaceConfig>,
    /// Routes beyond the neighbours. Default none.
    pub routes: Vec<RouteConfig>,
    /// Ports on which peers may connect. Default none.
    pub listen: Vec<u16>,
    /// Peers to which the host may connect. Default none.
    pub peers: Vec<PeerConfig>,
    /// Maximum number of concurrent connections, including those in TIME-WAIT: an incoming connection beyond it is
    /// dropped, an outgoing one ends with [`CloseReason::Limit`](crate::service::CloseReason::Limit). Default 1024.
    pub connections_max: usize,
}

impl Default for HostConfig {
    fn default() -> Self {
        HostConfig {
            profile: Profile::default(),
            interfaces: Vec::new(),
            routes: Vec::new(),
            listen: Vec::new(),
            peers: Vec::new(),
            connections_max: 1024,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_makes_sense_and_has_its_name() {
        for name in Profile::NAMES {
            let profile = Profile::named(name).expect("it is a name");
            assert_eq!(profile.check(), Ok(()), "{name}");
        }
        assert_eq!(Profile::named("linux-7"), None);
        assert_eq!(Profile::default(), Profile::rfc5681());
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let profile = Profile { rto_minimum: Duration::from_secs(90), ..Profile::rfc5681() };
        let fault = profile.check().unwrap_err();
        assert_eq!(fault.to_string(), "`rto-maximum` is 60 s; it must be at least 90 s");
        let plain = Profile::rfc5681;
        for (profile, key) in [
            (Profile { delayed_ack_maximum: Duration::ZERO, ..plain() }, "delayed-ack-maximum"),
            (Profile { receive_buffer_bytes: 0, ..plain() }, "receive-buffer-bytes"),
            (Profile { receive_buffer_bytes: u32::MAX, ..plain() }, "receive-buffer-bytes"),
            (Profile { announced_bytes_max: Some(0), ..plain() }, "announced-bytes-max"),
            (Profile { send_buffer_bytes: 0, ..plain() }, "send-buffer-bytes"),
            (Profile { maximum_segment_bytes: 63, ..plain() }, "maximum-segment-bytes"),
            (Profile { rto_minimum: Duration::ZERO, ..plain() }, "rto-minimum"),
            (Profile { keep_alive_idle: Some(Duration::ZERO), ..plain() }, "keep-alive-idle"),
            (Profile { keep_alive_probes: 0, ..plain() }, "keep-alive-probes"),
        ] {
            assert_eq!(profile.check().unwrap_err().key, key);
        }
    }
}
