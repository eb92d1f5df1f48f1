//! What a host and its connections can be told: [`Profile`] (how TCP behaves) and [`HostConfig`] (addresses,
//! ports, peers).

use crate::service::{InterfaceId, LinkId};
use crate::setting::{Fault, TIME_MAX, TIME_MIN, at_least, number, time};
use core::net::Ipv4Addr;
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// Which rule turns round-trip samples into the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RtoRule {
    /// `max(minimum, SRTT + 4 RTTVAR)` (RFC 6298 2): the floor is on the whole, so a long and steady round trip
    /// has no margin.
    Rfc6298,
    /// `SRTT + max(minimum, 4 RTTVAR)`, the variance following a rise at once and a fall once a round trip, as
    /// Linux has it: a long round trip keeps a margin.
    Linux,
}

/// How many round-trip samples are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttSampling {
    /// One in a round trip (RFC 6298 3 asks for that at least).
    PerRoundTrip,
    /// One from each acknowledgement that may give one.
    PerAcknowledgement,
}

/// How losses are found and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Three duplicate acknowledgements, then one hole a round trip (RFC 6582). Also what the others fall back
    /// to where the peer has no SACK.
    NewReno,
    /// A hole is lost when three segments' worth above it have arrived (RFC 6675).
    Sack6675,
    /// Everything three segments below the highest that has arrived is lost (forward acknowledgement).
    Fack,
}

/// How the congestion window comes down in fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// At once, to the slow-start threshold (RFC 5681 3.2, RFC 6675 5).
    Immediate,
    /// By one segment for two acknowledgements.
    RateHalving,
    /// In proportion to what is delivered (proportional rate reduction).
    Proportional,
}

/// What is halved at a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Halved {
    /// What is in flight (RFC 5681 3.1 equation 4).
    Flight,
    /// The congestion window.
    Window,
}

/// How far the congestion window grows beyond what is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowValidation {
    /// It always grows (RFC 5681 says nothing else).
    Off,
    /// It grows only when it was full.
    WhenFull,
    /// It grows when it was full, and in slow start up to twice of what was in flight.
    SlowStartDoubles,
}

/// By how much an acknowledgement opens the congestion window in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Growth {
    /// One segment each, however much it acknowledges (RFC 2581).
    PerAcknowledgement,
    /// One segment each up to the threshold and at it; above it, one for as many acknowledgements as the window has
    /// segments, and one more: how Linux counted until 2.6.
    PerAcknowledgementLinux,
    /// What it acknowledges, at most so many segments (appropriate byte counting; RFC 5681 3.1 has 1). Zero: no
    /// limit.
    Bytes {
        /// The most segments that one acknowledgement counts.
        segments_max: u32,
    },
}

/// What happens to the congestion window after the sender has been idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleRestart {
    /// Nothing.
    Off,
    /// Back to the initial window after one retransmission timeout (RFC 5681 4.1).
    Rfc5681,
    /// Halved for each retransmission timeout, not below the initial window, as in Linux.
    Halving,
}

/// Whether small segments wait until what was sent is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nagle {
    /// They do not.
    Off,
    /// While anything is unacknowledged (RFC 9293 3.7.4).
    Rfc9293,
    /// While a small segment is unacknowledged (Minshall's variant), as in Linux.
    Minshall,
}

/// How TCP behaves: every knob, as plain numbers.
///
/// The defaults are those of [`Profile::rfc5681`]. Four presets: [`Profile::named`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Profile {
    /// The largest segment this side takes and sends, in bytes without headers. An interface's MTU may make it
    /// smaller; options are taken out of it (RFC 9293 3.7.1). Default 1460.
    pub maximum_segment_bytes: u16,
    /// The most bytes that wait to be sent or acknowledged. Default 262,144.
    pub send_buffer_bytes: u32,
    /// The receive window: the most bytes that wait for the user, and so the most ever announced. Above 65,535 it
    /// needs `window_scaling`. Default 65,535.
    pub receive_buffer_bytes: u32,
    /// The most bytes that are ever announced, as the `window` of a Linux route has it, while the buffer takes what
    /// the user has not fetched yet. None: as much as the buffer has room for. Default none.
    pub announced_bytes_max: Option<u32>,
    /// Offer window scaling (RFC 7323 2). Default true.
    pub window_scaling: bool,
    /// Offer timestamps (RFC 7323 3). Default true.
    pub timestamps: bool,
    /// The tick of the timestamp clock (RFC 7323 5.4: 1 ms to 1 s). Default 1 ms.
    pub timestamp_tick: Duration,
    /// Offer SACK (RFC 2018). Default true.
    pub sack: bool,

    /// The initial congestion window in segments (RFC 5681 3.1). Default 3.
    pub initial_window_segments: u32,
    /// How fast slow start goes. Default one segment of bytes (RFC 5681 3.1 equation 2).
    pub growth: Growth,
    /// How far the window grows unused. Default off.
    pub window_validation: WindowValidation,
    /// What is halved at a loss. Default the flight.
    pub halved: Halved,
    /// How losses are found. Default RFC 6675.
    pub recovery: Recovery,
    /// How the window comes down. Default immediate.
    pub reduction: Reduction,
    /// New data on the first two duplicate acknowledgements (RFC 3042). Default true.
    pub limited_transmit: bool,
    /// A repeated segment is lost again when three segments' worth sent after it have arrived; otherwise only the
    /// timer finds that out. Needs SACK. Default false.
    pub find_lost_retransmissions: bool,
    /// In fast recovery, when nothing else may be sent, repeat what is only suspected to be lost: what lies below
    /// something that arrived, and once the very last segment (RFC 6675 4, NextSeg rules 3 and 4). Saves a timeout when
    /// the tail is lost, costs a segment when it is not. Needs SACK. Default true.
    pub repeat_on_suspicion: bool,
    /// Take back a reduction that an echoed timestamp, or the end of a repeated SYN, shows to have been for nothing:
    /// the acknowledgement was for the first copy. Needs timestamps. Default false.
    pub undo_by_timestamps: bool,
    /// A SYN repeated only because the initial timeout is shorter than the round trip costs no congestion window.
    /// Known by timestamps. Without this it costs all but one segment (RFC 5681 3.1). Default false.
    pub undo_syn_timeout: bool,
    /// After idleness. Default RFC 5681 4.1.
    pub idle_restart: IdleRestart,
    /// Begin with the slow-start threshold that connections to that address which ended in order came to. Default
    /// false.
    pub remember_threshold: bool,

    /// The retransmission timeout before any sample (RFC 6298 2.1). Default 1 s.
    pub rto_initial: Duration,
    /// Its minimum; see `rto_rule` for what it bounds. Default 1 s (RFC 6298 2.4).
    pub rto_minimum: Duration,
    /// Its maximum, backed off (RFC 6298 2.5: 60 s at least). Default 60 s.
    pub rto_maximum: Duration,
    /// The rule. Default RFC 6298.
    pub rto_rule: RtoRule,
    /// The samples. Default one a round trip.
    pub rtt_sampling: RttSampling,

    /// The shortest wait before a lone segment is acknowledged: the wait follows the gaps between segments from here
    /// to `delayed_ack_maximum`. Equal to it: a fixed timer. Default 200 ms.
    pub delayed_ack_minimum: Duration,
    /// The longest wait before a lone segment is acknowledged; RFC 5681 4.2 has 0.5 s at most. Zero: every segment
    /// is acknowledged at once. Default 200 ms.
    pub delayed_ack_maximum: Duration,
    /// So many full segments are acknowledged without waiting (RFC 5681 4.2: 2). Default 2.
    pub acknowledge_every_segments: u32,
    /// So many segments at the beginning, and after a long silence, are acknowledged at once each. Default 0.
    pub quick_acks: u32,
    /// So many come quickly after a segment out of order, too, as in Linux before 4.18: a sender that counts
    /// acknowledgements opens its window faster after a loss. Default false.
    pub quick_acks_after_disorder: bool,

    /// Whether small segments wait. Default RFC 9293 3.7.4.
    pub nagle: Nagle,
    /// So many retransmission timeouts in a row, then the connection is given up (RFC 9293 3.8.3, R2). Default 15.
    pub retries: u32,
    /// Give up when as much time has passed as `retries` doublings from `rto_minimum` take, instead of counting:
    /// so Linux does since 2.6.32. Default false.
    pub retries_as_time: bool,
    /// So many repetitions of a SYN, then the peer is given up. Default 5.
    pub syn_retries: u32,
    /// Silence after which the peer is probed (RFC 9293 3.8.4). None: never. Default none.
    pub keep_alive_idle: Option<Duration>,
    /// Between keep-alive probes. Default 75 s.
    pub keep_alive_interval: Duration,
    /// So many keep-alive probes without an answer, then the connection is given up. Default 9.
    pub keep_alive_probes: u32,
    /// How long TIME-WAIT lasts: twice the maximum segment lifetime (RFC 9293 3.4.2). Default 60 s.
    pub time_wait: Duration,
}

impl Default for Profile {
    fn default() -> Self {
        Profile::rfc5681()
    }
}

impl Profile {
    /// The names of the presets.
    pub const NAMES: [&'static str; 4] = ["rfc5681", "linux-2.4", "ns3-2010", "linux-6"];

    /// The preset with this name.
    pub fn named(name: &str) -> Option<Profile> {
        match name {
            "rfc5681" => Some(Profile::rfc5681()),
            "linux-2.4" => Some(Profile::linux_2_4()),
            "ns3-2010" => Some(Profile::ns3_2010()),
            "linux-6" => Some(Profile::linux_6()),
            _ => None,
        }
    }

    /// Whether the numbers make sense, each and together.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), Fault> {
        self.check_sizes()?;
        self.check_times()?;
        self.check_counts()
    }

    fn check_sizes(&self) -> Result<(), Fault> {
        const WINDOW: &str = "RFC 7323 2.3 ends at 1 GiB; twice the bandwidth-delay product is plenty";
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
            "nothing could ever be written; 262144 is usual",
        )?;
        number("receive-buffer-bytes", self.receive_buffer_bytes, 1..=1 << 30, WINDOW)?;
        if let Some(most) = self.announced_bytes_max {
            at_least(
                "announced-bytes-max",
                most,
                1,
                "leave it out to announce what the buffer has room for",
            )?;
        }
        number("initial-window-segments", self.initial_window_segments, 1..=1 << 20, "10 is usual (RFC 6928)")
    }

    fn check_times(&self) -> Result<(), Fault> {
        const TICK: &str = "RFC 7323 5.4 has 1 ms to 1 s";
        const RTO: &str = "RFC 6298 has 1 s; Linux has 200 ms";
        let tick = Duration::from_micros(1)..=Duration::from_secs(1);
        time("timestamp-tick", self.timestamp_tick, tick, TICK)?;
        time("rto-initial", self.rto_initial, TIME_MIN..=TIME_MAX, RTO)?;
        time("rto-minimum", self.rto_minimum, TIME_MIN..=TIME_MAX, RTO)?;
        time(
            "rto-maximum",
            self.rto_maximum,
            self.rto_minimum..=TIME_MAX,
            "it bounds `rto-minimum` from above",
        )?;
        let delays = self.delayed_ack_minimum..=Duration::from_secs(10);
        time(
            "delayed-ack-maximum",
            self.delayed_ack_maximum,
            delays,
            "from `delayed-ack-minimum` on; RFC 5681 4.2 has 0.5 s at most",
        )?;
        if let Some(idle) = self.keep_alive_idle {
            time("keep-alive-idle", idle, TIME_MIN..=TIME_MAX, "leave it out for no keep-alives")?;
        }
        time("keep-alive-interval", self.keep_alive_interval, TIME_MIN..=TIME_MAX, "75 s is usual")?;
        time("time-wait", self.time_wait, Duration::ZERO..=TIME_MAX, "60 s is usual")
    }

    fn check_counts(&self) -> Result<(), Fault> {
        const MANY: &str = "the wait doubles with each: 15 take a quarter of an hour and more";
        at_least("acknowledge-every-segments", self.acknowledge_every_segments, 1, "RFC 5681 4.2 has 2")?;
        number("retries", self.retries, 0..=1000, MANY)?;
        number("syn-retries", self.syn_retries, 0..=1000, MANY)?;
        at_least(
            "keep-alive-probes",
            self.keep_alive_probes,
            1,
            "9 is usual; `keep-alive-idle` turns them on",
        )
    }

    /// What the standards ask for: RFC 5681, 6582, 6675, 6298, 7323, 3042, each with its own numbers.
    pub fn rfc5681() -> Profile {
        Profile {
            maximum_segment_bytes: 1460,
            send_buffer_bytes: 262_144,
            receive_buffer_bytes: 65_535,
            announced_bytes_max: None,
            window_scaling: true,
            timestamps: true,
            timestamp_tick: Duration::from_millis(1),
            sack: true,
            initial_window_segments: 3,
            growth: Growth::Bytes { segments_max: 1 },
            window_validation: WindowValidation::Off,
            halved: Halved::Flight,
            recovery: Recovery::Sack6675,
            reduction: Reduction::Immediate,
            limited_transmit: true,
            find_lost_retransmissions: false,
            repeat_on_suspicion: true,
            undo_by_timestamps: false,
            undo_syn_timeout: false,
            idle_restart: IdleRestart::Rfc5681,
            remember_threshold: false,
            rto_initial: Duration::from_secs(1),
            rto_minimum: Duration::from_secs(1),
            rto_maximum: Duration::from_secs(60),
            rto_rule: RtoRule::Rfc6298,
            rtt_sampling: RttSampling::PerRoundTrip,
            delayed_ack_minimum: Duration::from_millis(200),
            delayed_ack_maximum: Duration::from_millis(200),
            acknowledge_every_segments: 2,
            quick_acks: 0,
            quick_acks_after_disorder: false,
            nagle: Nagle::Rfc9293,
            retries: 15,
            retries_as_time: false,
            syn_retries: 5,
            keep_alive_idle: None,
            keep_alive_interval: Duration::from_secs(75),
            keep_alive_probes: 9,
            time_wait: Duration::from_secs(60),
        }
    }

    /// Linux 2.4 as Red Hat 7.3 shipped it (2002): initial window 2, initial timeout 3 s, 65,535 bytes of window,
    /// forward acknowledgement with rate halving, and a route cache that remembers the slow-start threshold.
    pub fn linux_2_4() -> Profile {
        Profile {
            send_buffer_bytes: 65_536,
            window_scaling: true,
            timestamp_tick: Duration::from_millis(10),
            initial_window_segments: 2,
            growth: Growth::PerAcknowledgementLinux,
            window_validation: WindowValidation::WhenFull,
            halved: Halved::Window,
            recovery: Recovery::Fack,
            reduction: Reduction::RateHalving,
            find_lost_retransmissions: true,
            repeat_on_suspicion: false,
            undo_by_timestamps: true,
            undo_syn_timeout: true,
            idle_restart: IdleRestart::Halving,
            remember_threshold: true,
            rto_initial: Duration::from_secs(3),
            rto_minimum: Duration::from_millis(200),
            rto_maximum: Duration::from_secs(120),
            rto_rule: RtoRule::Linux,
            rtt_sampling: RttSampling::PerAcknowledgement,
            delayed_ack_minimum: Duration::from_millis(40),
            quick_acks: 16,
            quick_acks_after_disorder: true,
            nagle: Nagle::Minshall,
            ..Profile::rfc5681()
        }
    }

    /// The defaults that ns-3 had around 2010: 536-byte segments, NewReno without SACK, both the minimum timeout and the
    /// delayed acknowledgement at 0.2 s, six retries.
    ///
    /// Checked against nothing: it has the numbers of ns-3, not its code, and is no stand-in for a run of it. At 5 Mbit/s and
    /// 10 ms one way it takes 0.07 to 1.4 times as long as ns-3 did: at a bit-error rate of 1e-5 ns-3 took 321 s for what takes
    /// 21 s here, since every segment behind a loss timed out falsely there.
    pub fn ns3_2010() -> Profile {
        Profile {
            maximum_segment_bytes: 536,
            send_buffer_bytes: 131_072,
            window_scaling: false,
            timestamps: false,
            sack: false,
            initial_window_segments: 1,
            growth: Growth::PerAcknowledgement,
            recovery: Recovery::NewReno,
            limited_transmit: false,
            nagle: Nagle::Off,
            idle_restart: IdleRestart::Off,
            rto_initial: Duration::from_secs(3),
            rto_minimum: Duration::from_millis(200),
            rtt_sampling: RttSampling::PerAcknowledgement,
            retries: 6,
            syn_retries: 6,
            ..Profile::rfc5681()
        }
    }

    /// A Linux kernel of today with `reno`: initial window 10, initial timeout 1 s, its own rule for the timeout,
    /// proportional rate reduction, undo.
    ///
    /// Checked beside Linux 6.18 over a link of 115,200 bit/s with delays of seconds: without errors within 0.5 %. Where packets
    /// are lost it is 11 to 17 % slower, since RACK-TLP (RFC 8985) and F-RTO (RFC 5682) are not here. At 1.28 s one way: 156.4 s
    /// against 133.5 at a bit-error rate of 1e-6, 681.0 against 604.4 at 1e-5; at 2 s: 231.9 against 209.6, 1027.8 against
    /// 926.5.
    pub fn linux_6() -> Profile {
        Profile {
            initial_window_segments: 10,
            growth: Growth::Bytes { segments_max: 0 },
            window_validation: WindowValidation::SlowStartDoubles,
            halved: Halved::Window,
            reduction: Reduction::Proportional,
            find_lost_retransmissions: true,
            repeat_on_suspicion: false,
            undo_by_timestamps: true,
            undo_syn_timeout: true,
            idle_restart: IdleRestart::Halving,
            rto_minimum: Duration::from_millis(200),
            rto_maximum: Duration::from_secs(120),
            rto_rule: RtoRule::Linux,
            rtt_sampling: RttSampling::PerAcknowledgement,
            delayed_ack_minimum: Duration::from_millis(40),
            quick_acks: 16,
            nagle: Nagle::Minshall,
            retries_as_time: true,
            syn_retries: 6,
            ..Profile::rfc5681()
        }
    }
}

/// One interface of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct InterfaceConfig {
    /// Which.
    pub interface: InterfaceId,
    /// The host's address on it. Default 10.0.0.1.
    pub address: Ipv4Addr,
    /// How many leading bits of the address its neighbours share with it. Default 24.
    pub prefix_bits: u8,
    /// The longest packet it carries, in bytes with the IPv4 header. Default 1500.
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

/// Which way addresses beyond the neighbours lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouteConfig {
    /// The addresses, by their leading bits.
    pub prefix: Ipv4Addr,
    /// How many leading bits count. The longest match wins.
    pub prefix_bits: u8,
    /// Where they are reached.
    pub interface: InterfaceId,
}

/// Whom a [`StreamRequest::Connect`](crate::service::StreamRequest::Connect) on a link means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PeerConfig {
    /// The link, below [`LinkId::FIRST_INCOMING`].
    pub link: LinkId,
    /// The peer's address.
    pub address: Ipv4Addr,
    /// The peer's port.
    pub port: u16,
}

/// A host: its addresses, whom it knows, where it listens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostConfig {
    /// How its TCP behaves.
    pub profile: Profile,
    /// Its interfaces. Default none.
    pub interfaces: Vec<InterfaceConfig>,
    /// Its routes beyond its neighbours. Default none.
    pub routes: Vec<RouteConfig>,
    /// The ports on which peers may call. Default none.
    pub listen: Vec<u16>,
    /// Whom it may call. Default none.
    pub peers: Vec<PeerConfig>,
    /// The most connections at a time, those in TIME-WAIT included: a call beyond it is dropped, an own one ends
    /// with [`CloseReason::Limit`](crate::service::CloseReason::Limit). Default 1024.
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
        assert_eq!(fault.to_string(), "`rto-maximum` is 60s, and has to be at least 90s");
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
