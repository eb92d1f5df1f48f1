//! How a session is configured: plain fields, with presets for known peers.

use crate::setting::{Fault, TIME_MAX, TIME_MIN, at_least, number, rule, time};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Which versions of the protocol a session speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Versions {
    /// Version 3 alone (RFC 7242).
    #[serde(rename = "3")]
    Three,
    /// Version 4 alone (RFC 9174).
    #[serde(rename = "4")]
    Four,
    /// Called: whichever the caller speaks. Calling: version 4, and 3 where the peer does not know it (RFC 9174
    /// 4.3).
    #[default]
    #[serde(rename = "both")]
    Both,
}

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Version {
    /// RFC 7242.
    Three,
    /// RFC 9174.
    Four,
}

impl Version {
    /// The number in the contact header.
    pub const fn number(self) -> u8 {
        match self {
            Version::Three => 3,
            Version::Four => 4,
        }
    }
}

impl Versions {
    /// The highest of them: what a caller tries first (RFC 9174 4.3).
    pub const fn highest(self) -> Version {
        match self {
            Versions::Three => Version::Three,
            Versions::Four | Versions::Both => Version::Four,
        }
    }

    /// The version with this number, if it is one of them.
    pub const fn with_number(self, number: u8) -> Option<Version> {
        match (self, number) {
            (Versions::Three | Versions::Both, 3) => Some(Version::Three),
            (Versions::Four | Versions::Both, 4) => Some(Version::Four),
            _ => None,
        }
    }
}

/// Whether a session is secured with TLS (RFC 9174 4.3; version 3 has no TLS of its own).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tls {
    /// Never; not offered.
    #[default]
    Off,
    /// Where the peer offers it, too.
    Prefer,
    /// Always: a peer that cannot is refused, and so is version 3.
    Require,
}

/// The configuration of a [`Session`](super::Session).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Which versions to speak. Default: both.
    pub versions: Versions,
    /// This node's id, as the peer is told. Empty: not told (RFC 9174 4.6; version 3 sends `dtn:none`). Default:
    /// empty.
    pub node_id: String,
    /// The node id that the peer must have; any other is refused. Default: any.
    pub peer_node_id: Option<String>,
    /// The keep-alive interval to propose, in whole seconds; the smaller of both sides' counts, zero turns
    /// keep-alives off (RFC 9174 4.7, RFC 7242 4.2). Default 60 s.
    pub keepalive: Duration,
    /// Silence after which the peer is taken for dead, where keep-alives are on. Default: twice the interval
    /// (RFC 9174 5.1.1, RFC 7242 5.6).
    pub keepalive_timeout: Option<Duration>,
    /// The longest segment to send, bytes; the peer's segment MRU bounds it, too (RFC 9174 3.6). Default 65,536.
    pub segment_bytes: u64,
    /// The shortest segment worth its header, bytes: less room than that (or than a quarter of the largest room
    /// that the stream ever had) is not passed on while others are under way. Default 4,096.
    pub segment_bytes_min: u64,
    /// The longest segment to receive, bytes: announced and enforced by version 4 (RFC 9174 4.6). Default 1 MiB.
    pub segment_mru: u64,
    /// The longest bundle to receive, bytes (RFC 9174 4.6); in version 3, which announces none, also the longest to send. Longer
    /// ones come and go in fragments. Some peers set memory aside for what is announced here: HDTN 1.3.1 half a gigabyte and more
    /// a session for 2^40. Default 1 GiB.
    pub transfer_mru: u64,
    /// Send bundles up to this length, bytes, even where the peer announces a smaller transfer MRU, which RFC 9174 4.6
    /// forbids: for peers that announce a limit that they do not have. Default zero.
    pub transfer_mtu_min: u64,
    /// How many transfers may be under way in each direction: begun and not yet answered. More are held back
    /// when sending, and refused for want of resources when receiving: with small bundles on a long line this times
    /// a bundle's length is what a round trip carries. Default 1,024.
    pub transfers_max: usize,
    /// How many transfers may be open and not yet begun; more fail at once, for want of resources. Default
    /// 4,096.
    pub open_max: usize,
    /// How many received segments may wait for their acknowledgement; more end the session. Default 65,536.
    pub segments_max: usize,
    /// How many messages that carry nothing (keep-alives, rejections, and what has to be rejected) the peer may send in
    /// ten seconds; more end the session. Default 256.
    pub idle_messages_max: u32,
    /// End the session when nothing but keep-alives went either way for so long, and bring it back only when
    /// asked to (RFC 9174 6.2, RFC 7242 6.2). Default: never.
    pub idle_timeout: Option<Duration>,
    /// How long the stream may take to connect before it is given up; none leaves that to the stream. Default
    /// 60 s.
    pub connect_timeout: Option<Duration>,
    /// How long the peer may take to send its contact header, TLS to stand, and the peer to send its SESS_INIT,
    /// each (RFC 9174 4.1). Default 60 s.
    pub contact_timeout: Duration,
    /// Where both versions are spoken and a peer that is called has not answered in version 4 before: it is called in version 3
    /// when it has said nothing for so long, or for three times what connecting took where that is longer, but for no longer
    /// than `contact_timeout`; where TLS is wanted, which version 3 has not, only after `contact_timeout`. For peers of version 3
    /// that ignore what they do not know. After an hour, or a session that the peer ends at once, version 4 is tried again.
    /// Default 5 s.
    pub version_timeout: Duration,
    /// How long an ending session may rest without progress before its stream is aborted. Default 60 s.
    pub close_timeout: Duration,
    /// The delay before the first attempt to reconnect; doubled with each failure (RFC 9174 4.1, RFC 7242 4).
    /// Default 1 s.
    pub reconnect_min: Duration,
    /// The longest delay before an attempt to reconnect. Default 60 s (RFC 9174 4.1).
    pub reconnect_max: Duration,
    /// How much longer a delay may get at random, as a share of it: keeps neighbours from calling in step.
    /// Default 0.25.
    pub reconnect_jitter: f64,
    /// Version 3: ask for acknowledgements. Without them a transfer counts as sent once it is written (RFC 7242
    /// 4.1). Default true.
    pub acknowledgements: bool,
    /// This side keeps the acknowledged beginning of a transfer that breaks, and wants to send only the rest
    /// again: version 3's flag (RFC 7242 4.1); version 4's private extension
    /// [`KEEPS_PREFIX`](super::v4::KEEPS_PREFIX). Where the peer does not say the same, no progress is told and a
    /// broken transfer counts as not acknowledged at all. Default true.
    pub reactive_fragmentation: bool,
    /// Version 3: support refusal, which needs acknowledgements (RFC 7242 4.1, 5.4). Default true.
    pub refusal: bool,
    /// Announce the length of a bundle: version 3's LENGTH message where the peer asks for it, and asking for it
    /// (RFC 7242 5.5); version 4's Transfer Length extension (RFC 9174 5.2.5.1). Default true.
    pub lengths: bool,
    /// Version 3: acknowledge every so many segments, and the end of a bundle at once: every acknowledgement is a packet
    /// of its own on a packet link. Default 1 (RFC 7242 5.3); over AX.25 8, as DTN2 has it.
    pub ack_window: u32,
    /// Whether to use TLS. Default off.
    pub tls: Tls,
    /// The name that the peer's certificate has to prove when calling, if any (RFC 9174 4.4.3).
    pub tls_name: Option<String>,
    /// With TLS, refuse a peer whose certificate does not prove its node id (RFC 9174 4.4.4.3). Default false:
    /// only one that proves another node id.
    pub tls_identity: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            versions: Versions::Both,
            node_id: String::new(),
            peer_node_id: None,
            keepalive: Duration::from_secs(60),
            keepalive_timeout: None,
            segment_bytes: 65_536,
            segment_bytes_min: 4096,
            segment_mru: 1 << 20,
            transfer_mru: 1 << 30,
            transfer_mtu_min: 0,
            transfers_max: 1024,
            open_max: 4096,
            segments_max: 65_536,
            idle_messages_max: 256,
            idle_timeout: None,
            connect_timeout: Some(Duration::from_secs(60)),
            contact_timeout: Duration::from_secs(60),
            version_timeout: Duration::from_secs(5),
            close_timeout: Duration::from_secs(60),
            reconnect_min: Duration::from_secs(1),
            reconnect_max: Duration::from_secs(60),
            reconnect_jitter: 0.25,
            acknowledgements: true,
            reactive_fragmentation: true,
            refusal: true,
            lengths: true,
            ack_window: 1,
            tls: Tls::Off,
            tls_name: None,
            tls_identity: false,
        }
    }
}

impl Config {
    /// Version 4 with the defaults.
    pub fn version_4(node_id: &str) -> Self {
        Config { versions: Versions::Four, node_id: node_id.to_owned(), ..Config::default() }
    }

    /// Version 3 with the defaults.
    pub fn version_3(node_id: &str) -> Self {
        Config { versions: Versions::Three, node_id: node_id.to_owned(), ..Config::default() }
    }

    /// What DTN2 does out of the box: segments of 4,096 bytes, each acknowledged; reactive fragmentation asked
    /// for; neither refusal nor LENGTH messages, which it does not know (it breaks the connection on either); a
    /// keep-alive every 10 s, and the connection broken after 30 s without a byte; called again after 5 s, then
    /// after twice as long each time, up to 10 minutes; how long a connection attempt takes is the kernel's
    /// affair.
    pub fn dtn2(node_id: &str) -> Self {
        Config {
            versions: Versions::Three,
            node_id: node_id.to_owned(),
            keepalive: Duration::from_secs(10),
            keepalive_timeout: Some(Duration::from_secs(30)),
            segment_bytes: 4096,
            segment_bytes_min: 4096,
            connect_timeout: None,
            reconnect_min: Duration::from_secs(5),
            reconnect_max: Duration::from_secs(600),
            reconnect_jitter: 0.0,
            refusal: false,
            lengths: false,
            ..Config::default()
        }
    }

    /// AX25CM-CL as DTN2 has it, over a connected AX.25 link: one segment a packet of the link, an acknowledgement every 8
    /// segments and at the end of a bundle, neither refusal nor LENGTH messages, and a keep-alive every 30 s. Silence
    /// of two minutes is none on a channel that others use, too; the link itself finds out sooner.
    pub fn ax25(node_id: &str) -> Self {
        Config {
            keepalive: Duration::from_secs(30),
            keepalive_timeout: Some(Duration::from_secs(120)),
            contact_timeout: Duration::from_secs(120),
            close_timeout: Duration::from_secs(120),
            segment_bytes_min: 1,
            ack_window: 8,
            ..Config::dtn2(node_id)
        }
    }

    /// What suits ION: version 3, acknowledged, a keep-alive every 15 s that it is not held to strictly (it
    /// stalls while it handles large files), neither refusal nor LENGTH messages nor reactive fragmentation.
    pub fn ion(node_id: &str) -> Self {
        Config {
            versions: Versions::Three,
            node_id: node_id.to_owned(),
            keepalive: Duration::from_secs(15),
            keepalive_timeout: Some(Duration::from_secs(120)),
            reactive_fragmentation: false,
            refusal: false,
            lengths: false,
            ..Config::default()
        }
    }

    /// Whether the numbers make sense, each and together.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), Fault> {
        self.check_sizes()?;
        self.check_keepalive()?;
        self.check_waits()?;
        let secured = self.tls != Tls::Require || self.versions != Versions::Three;
        rule(secured, "tls", "is required, and version 3 has none", "`versions = \"4\"`, or `tls = \"off\"`")
    }

    fn check_sizes(&self) -> Result<(), Fault> {
        const SEGMENT: &str = "16384 bounds what a break costs, 65536 saves headers";
        const COUNT: &str = "times a bundle's length, it is what a round trip carries";
        number("segment-bytes", self.segment_bytes, 1..=1 << 32, SEGMENT)?;
        number(
            "segment-mru",
            self.segment_mru,
            1..=1 << 40,
            "a peer sends no longer segment: 1048576 is usual",
        )?;
        at_least("transfer-mru", self.transfer_mru, 1, "a peer sends no longer bundle")?;
        at_least("transfers-max", self.transfers_max, 1, COUNT)?;
        at_least("open-max", self.open_max, 1, "nothing could be sent")?;
        at_least("ack-window", u64::from(self.ack_window), 1, "1 acknowledges every segment")?;
        at_least("segments-max", self.segments_max, 1, "the first segment would end the session")
    }

    fn check_keepalive(&self) -> Result<(), Fault> {
        const WHOLE: &str = "whole seconds go on the wire; zero turns keep-alives off";
        if self.keepalive.is_zero() {
            return Ok(());
        }
        time("keepalive", self.keepalive, Duration::from_secs(1)..=Duration::from_secs(65_535), WHOLE)?;
        let least = self.keepalive + TIME_MIN;
        let limit = self.keepalive_timeout.unwrap_or(TIME_MAX);
        time(
            "keepalive-timeout",
            limit,
            least..=TIME_MAX,
            "longer than `keepalive`; twice it is usual (RFC 9174 5.1.1)",
        )
    }

    fn check_waits(&self) -> Result<(), Fault> {
        const NEVER: &str = "leave it out for never";
        let some = TIME_MIN..=TIME_MAX;
        if let Some(idle) = self.idle_timeout {
            time("idle-timeout", idle, some.clone(), NEVER)?;
        }
        if let Some(connect) = self.connect_timeout {
            time("connect-timeout", connect, some.clone(), "longer than the round trip")?;
        }
        time("contact-timeout", self.contact_timeout, some.clone(), "longer than the round trip")?;
        time("version-timeout", self.version_timeout, some.clone(), "5 s is usual")?;
        time("close-timeout", self.close_timeout, some.clone(), "longer than the round trip")?;
        time(
            "reconnect-min",
            self.reconnect_min,
            some,
            "1 s is usual: shorter ones only keep the line busy",
        )?;
        time(
            "reconnect-max",
            self.reconnect_max,
            self.reconnect_min..=TIME_MAX,
            "it bounds `reconnect-min` from above",
        )?;
        let jitter = self.reconnect_jitter;
        rule((0.0..=10.0).contains(&jitter), "reconnect-jitter", "is no share from 0 to 10", "0.25 is usual")
    }

    /// The keep-alive interval as it goes on the wire, in seconds.
    pub(crate) fn keepalive_seconds(&self) -> u16 {
        u16::try_from(self.keepalive.as_secs()).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod check_tests {
    use super::*;

    #[test]
    fn presets_make_sense_and_what_breaks_a_session_is_named() {
        for preset in [
            Config::default(),
            Config::version_3("a"),
            Config::dtn2("a"),
            Config::ion("a"),
            Config::ax25("a"),
        ] {
            assert_eq!(preset.check(), Ok(()));
        }
        let plain = Config::default;
        let second = Duration::from_secs(1);
        for (config, key) in [
            (Config { segment_bytes: 0, ..plain() }, "segment-bytes"),
            (Config { segment_mru: 0, ..plain() }, "segment-mru"),
            (Config { transfer_mru: 0, ..plain() }, "transfer-mru"),
            (Config { transfers_max: 0, ..plain() }, "transfers-max"),
            (Config { open_max: 0, ..plain() }, "open-max"),
            (Config { ack_window: 0, ..plain() }, "ack-window"),
            (Config { segments_max: 0, ..plain() }, "segments-max"),
            (Config { keepalive: second / 2, ..plain() }, "keepalive"),
            (Config { keepalive_timeout: Some(second), ..plain() }, "keepalive-timeout"),
            (Config { idle_timeout: Some(Duration::ZERO), ..plain() }, "idle-timeout"),
            (Config { contact_timeout: Duration::ZERO, ..plain() }, "contact-timeout"),
            (Config { version_timeout: Duration::ZERO, ..plain() }, "version-timeout"),
            (Config { reconnect_min: Duration::ZERO, ..plain() }, "reconnect-min"),
            (Config { reconnect_max: second / 2, ..plain() }, "reconnect-max"),
            (Config { reconnect_jitter: f64::NAN, ..plain() }, "reconnect-jitter"),
            (Config { versions: Versions::Three, tls: Tls::Require, ..plain() }, "tls"),
        ] {
            assert_eq!(config.check().unwrap_err().key, key);
        }
        assert_eq!(Config { keepalive: Duration::ZERO, ..plain() }.check(), Ok(()), "keep-alives are off");
    }
}

/// What a [`Session`](super::Session) has counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Times the session was established.
    pub sessions: u64,
    /// Times the stream was asked to connect.
    pub attempts: u64,
    /// Segments sent.
    pub segments_sent: u64,
    /// Segments whose header was received.
    pub segments_received: u64,
    /// Payload bytes sent in segments.
    pub payload_sent: u64,
    /// Payload bytes received in segments.
    pub payload_received: u64,
    /// Keep-alives sent.
    pub keepalives_sent: u64,
    /// Keep-alives received.
    pub keepalives_received: u64,
    /// Messages that broke the protocol or could not be decoded.
    pub violations: u64,
    /// MSG_REJECT messages received.
    pub rejected: u64,
    /// Incoming transfers refused, by this side's user or by a limit.
    pub refused: u64,
    /// Times the peer took too long to open the session.
    pub late: u64,
    /// Times the peer fell silent.
    pub silent: u64,
    /// Times the peer sent too many messages that carry nothing.
    pub floods: u64,
}

impl Counters {
    /// The sums of both.
    #[must_use]
    pub fn plus(&self, other: &Counters) -> Counters {
        Counters {
            sessions: self.sessions + other.sessions,
            attempts: self.attempts + other.attempts,
            segments_sent: self.segments_sent + other.segments_sent,
            segments_received: self.segments_received + other.segments_received,
            payload_sent: self.payload_sent + other.payload_sent,
            payload_received: self.payload_received + other.payload_received,
            keepalives_sent: self.keepalives_sent + other.keepalives_sent,
            keepalives_received: self.keepalives_received + other.keepalives_received,
            violations: self.violations + other.violations,
            rejected: self.rejected + other.rejected,
            refused: self.refused + other.refused,
            late: self.late + other.late,
            silent: self.silent + other.silent,
            floods: self.floods + other.floods,
        }
    }
}
