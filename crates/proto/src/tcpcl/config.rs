//! Configuration of a session, with presets for known peers.

use crate::setting::{Fault, Settings, TIME_MAX, TIME_MIN, at_least, number, rule, time, wait, wait_from};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Protocol versions that a session supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Versions {
    /// Version 3 only (RFC 7242).
    #[serde(rename = "3")]
    Three,
    /// Version 4 only (RFC 9174).
    #[serde(rename = "4")]
    Four,
    /// Passive: the version of the peer. Active: version 4, or 3 if the peer does not support it (RFC 9174 4.3).
    #[default]
    #[serde(rename = "both")]
    Both,
}

/// Protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Version {
    /// RFC 7242.
    Three,
    /// RFC 9174.
    Four,
}

impl Version {
    /// Returns the version number in the contact header.
    pub const fn number(self) -> u8 {
        match self {
            Version::Three => 3,
            Version::Four => 4,
        }
    }
}

impl Versions {
    /// Returns the highest version: the active node tries it first (RFC 9174 4.3).
    pub const fn highest(self) -> Version {
        match self {
            Versions::Three => Version::Three,
            Versions::Four | Versions::Both => Version::Four,
        }
    }

    /// Returns the version with this number if it is supported.
    pub const fn with_number(self, number: u8) -> Option<Version> {
        match (self, number) {
            (Versions::Three | Versions::Both, 3) => Some(Version::Three),
            (Versions::Four | Versions::Both, 4) => Some(Version::Four),
            _ => None,
        }
    }
}

/// Use of TLS for a session (RFC 9174 4.3; version 3 has no TLS of its own).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tls {
    /// TLS is never used and not offered.
    #[default]
    Off,
    /// TLS is used if the peer offers it, too.
    Prefer,
    /// TLS is required: a peer without it is refused, and so is version 3.
    Require,
}

/// Configuration of a [`Session`](super::Session).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Supported versions. Default both.
    pub versions: Versions,
    /// Node ID of this node, sent to the peer. Empty to omit it (RFC 9174 4.6; version 3 sends `dtn:none`). Default
    /// empty.
    pub node_id: String,
    /// Required node ID of the peer; any other is refused. Default any.
    pub peer_node_id: Option<String>,
    /// Proposed keepalive interval, in whole seconds; the smaller of both sides' proposals applies, zero disables
    /// keepalives (RFC 9174 4.7, RFC 7242 4.2). Default 60 s.
    pub keepalive: Duration,
    /// Time without input from the peer after which the session ends, if keepalives are enabled. Default twice the
    /// interval (RFC 9174 5.1.1, RFC 7242 5.6).
    pub keepalive_timeout: Option<Duration>,
    /// Maximum length of a segment to send unless there is ample room, bytes; limited by the peer's segment MRU, too (RFC 9174 3.6).
    /// Default 65,536.
    pub segment_bytes: u64,
    /// Minimum useful length of a segment, bytes: less room than this (or than a quarter of the largest room that the
    /// stream ever had) is not passed on while other segments are outstanding. Default 4,096.
    pub segment_bytes_min: u64,
    /// Room of the stream, bytes, beyond which segments of version 4 are up to four times as long: a stream that has more than this
    /// only while it passes it on quickly needs no short segments, and long ones cost less. Default never; in a node,
    /// over TCP, `stream.queue-bytes`.
    pub ample_room_bytes: Option<u64>,
    /// Maximum length of a segment to receive (segment MRU), bytes: announced and enforced by version 4 (RFC 9174 4.6).
    /// Default 1 MiB.
    pub segment_mru: u64,
    /// Maximum length of a bundle to receive (transfer MRU), bytes (RFC 9174 4.6); in version 3, which announces none,
    /// also the maximum to send. Longer bundles are transferred in fragments. Some peers reserve memory according to
    /// the announced value: HDTN 1.3.1 half a gigabyte and more per session for 2^40. Default 1 GiB.
    pub transfer_mru: u64,
    /// Bundles up to this length, bytes, are sent even if the peer announces a smaller transfer MRU, which RFC 9174 4.6
    /// forbids: for peers that announce a limit that they do not have. Default 0.
    pub transfer_mtu_min: u64,
    /// Maximum number of transfers in progress per direction: begun and not yet acknowledged or refused. Further
    /// transfers are held back when sending, and refused for lack of resources when receiving: with small bundles on a
    /// link with a long delay, this number times the bundle length is the volume per round trip. Default 1,024.
    pub transfers_max: usize,
    /// Maximum number of transfers that are open and not yet begun; further ones fail at once for lack of resources.
    /// Default 4,096.
    pub open_max: usize,
    /// Maximum number of received segments that wait for their acknowledgement; one more ends the session. Default
    /// 65,536.
    pub segments_max: usize,
    /// Maximum number of messages without content (keepalives, rejections, and messages that must be rejected) from the
    /// peer in ten seconds; one more ends the session. Default 256.
    pub idle_messages_max: u32,
    /// Time without any messages but keepalives after which the session ends; it is re-established only on request (RFC
    /// 9174 6.2, RFC 7242 6.2). Default never.
    pub idle_timeout: Option<Duration>,
    /// Maximum time for the stream to connect; `None` leaves the limit to the stream. Default 60 s.
    pub connect_timeout: Option<Duration>,
    /// Maximum time for each of: the peer's contact header, the TLS handshake, and the peer's SESS_INIT (RFC 9174 4.1).
    /// Default 60 s.
    pub contact_timeout: Duration,
    /// Maximum time to wait for the contact header of a peer that has not yet answered in version 4, if both versions
    /// are supported; then the peer is tried in version 3. The wait is extended to three times the time that connecting
    /// took if that is longer, but never beyond `contact_timeout`; if TLS is wanted, which version 3 does not have, it
    /// is always `contact_timeout`. For peers of version 3 that ignore unknown contact headers. After an hour, or a
    /// session that the peer ends at once, version 4 is tried again. Default 5 s.
    pub version_timeout: Duration,
    /// Maximum time without progress in an ending session before its stream is aborted. Default 60 s.
    pub close_timeout: Duration,
    /// Delay before the first attempt to reconnect; doubled after each failure (RFC 9174 4.1, RFC 7242 4). Default 1 s.
    pub reconnect_min: Duration,
    /// Maximum delay before an attempt to reconnect. Default 60 s (RFC 9174 4.1).
    pub reconnect_max: Duration,
    /// Maximum random extension of a delay, as a fraction of it: prevents neighbours from reconnecting at the same
    /// time. Default 0.25.
    pub reconnect_jitter: f64,
    /// Version 3: requests acknowledgements. Without them a transfer counts as sent once it is written (RFC 7242 4.1).
    /// Default true.
    pub acknowledgements: bool,
    /// This side keeps the acknowledged part of a transfer that breaks off, and resends only the rest: version 3's flag
    /// (RFC 7242 4.1); version 4's private extension [`KEEPS_PREFIX`](super::v4::KEEPS_PREFIX). Unless the peer
    /// announces the same, no progress is indicated, and a transfer that breaks off counts as not acknowledged at all.
    /// Default true.
    pub reactive_fragmentation: bool,
    /// Version 3: supports refusal of bundles, which needs acknowledgements (RFC 7242 4.1, 5.4). Default true.
    pub refusal: bool,
    /// Announces the length of a bundle: in version 3 by a LENGTH message if the peer requests it, and by requesting
    /// LENGTH messages (RFC 7242 5.5); in version 4 by the Transfer Length extension (RFC 9174 5.2.5.1). Default true.
    pub lengths: bool,
    /// Version 3: number of segments per acknowledgement; the end of a bundle is acknowledged at once. On a packet link
    /// every acknowledgement is a packet of its own. Default 1 (RFC 7242 5.3); over AX.25 8, as in DTN2.
    pub ack_window: u32,
    /// Use of TLS. Default off.
    pub tls: Tls,
    /// Name that the peer's certificate must prove when this side connects, if any (RFC 9174 4.4.3).
    pub tls_name: Option<String>,
    /// With TLS, refuses a peer whose certificate does not prove its node ID (RFC 9174 4.4.4.3). Default false: refuses
    /// only a peer whose certificate proves a different node ID.
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
            ample_room_bytes: None,
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
    /// Returns the defaults for version 4.
    pub fn version_4(node_id: &str) -> Self {
        Config { versions: Versions::Four, node_id: node_id.to_owned(), ..Config::default() }
    }

    /// Returns the defaults for version 3.
    pub fn version_3(node_id: &str) -> Self {
        Config { versions: Versions::Three, node_id: node_id.to_owned(), ..Config::default() }
    }

    /// Preset for the defaults of DTN2: segments of 4,096 bytes, each acknowledged; reactive fragmentation requested;
    /// neither refusal nor LENGTH messages, which DTN2 does not know (it breaks the connection on either); a keepalive
    /// every 10 s, and the connection broken after 30 s without input; reconnection after 5 s, then after twice the
    /// delay each time, up to 10 min; no limit for a connection attempt but that of the kernel.
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

    /// Preset for AX25CM-CL as in DTN2, over a connected AX.25 link: one segment per packet of the link, an
    /// acknowledgement every 8 segments and at the end of a bundle, neither refusal nor LENGTH messages, and a
    /// keepalive every 30 s. The session tolerates two minutes without input, because a shared channel may be busy that
    /// long; the link itself detects a failure sooner.
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

    fn check_sizes(&self) -> Result<(), Fault> {
        const SEGMENT: &str = "16384 limits the loss in an interruption; 65536 saves headers";
        const COUNT: &str = "multiplied by the length of a bundle, this is the data per round trip";
        number("segment-bytes", self.segment_bytes, 1..=1 << 32, SEGMENT)?;
        number(
            "segment-mru",
            self.segment_mru,
            1..=1 << 40,
            "a peer must not send longer segments; 1048576 is usual",
        )?;
        at_least("transfer-mru", self.transfer_mru, 1, "a peer must not send longer bundles")?;
        at_least("transfers-max", self.transfers_max, 1, COUNT)?;
        at_least("open-max", self.open_max, 1, "with 0 nothing can be sent")?;
        at_least("ack-window", u64::from(self.ack_window), 1, "1 acknowledges every segment")?;
        at_least("segments-max", self.segments_max, 1, "with 0 the first segment ends the session")
    }

    fn check_keepalive(&self) -> Result<(), Fault> {
        const WHOLE: &str = "the protocol uses whole seconds; zero turns keep-alives off";
        if self.keepalive.is_zero() {
            return Ok(());
        }
        time("keepalive", self.keepalive, Duration::from_secs(1)..=Duration::from_secs(65_535), WHOLE)?;
        let least = self.keepalive + TIME_MIN;
        let limit = self.keepalive_timeout.unwrap_or(TIME_MAX);
        wait_from(
            "keepalive-timeout",
            limit,
            least,
            "must be longer than `keepalive`; twice is usual (RFC 9174 5.1.1)",
        )
    }

    fn check_waits(&self) -> Result<(), Fault> {
        const NEVER: &str = "remove it for no limit";
        if let Some(idle) = self.idle_timeout {
            wait("idle-timeout", idle, NEVER)?;
        }
        if let Some(connect) = self.connect_timeout {
            wait("connect-timeout", connect, "must be longer than the round trip")?;
        }
        wait("contact-timeout", self.contact_timeout, "must be longer than the round trip")?;
        wait("version-timeout", self.version_timeout, "5 s is usual")?;
        wait("close-timeout", self.close_timeout, "must be longer than the round trip")?;
        wait("reconnect-min", self.reconnect_min, "1 s is usual; shorter delays only load the link")?;
        wait_from(
            "reconnect-max",
            self.reconnect_max,
            self.reconnect_min,
            "must not be less than `reconnect-min`",
        )?;
        let jitter = self.reconnect_jitter;
        rule((0.0..=10.0).contains(&jitter), "reconnect-jitter", "must be from 0 to 10", "0.25 is usual")
    }

    /// Returns the keepalive interval on the wire, seconds.
    pub(crate) fn keepalive_seconds(&self) -> u16 {
        u16::try_from(self.keepalive.as_secs()).unwrap_or(u16::MAX)
    }
}

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        self.check_sizes()?;
        self.check_keepalive()?;
        self.check_waits()?;
        let secured = self.tls != Tls::Require || self.versions != Versions::Three;
        rule(
            secured,
            "tls",
            "is required, but version 3 has no TLS",
            "set `versions = \"4\"` or `tls = \"off\"`",
        )
    }
}

#[cfg(test)]
mod check_tests {
    use super::*;

    #[test]
    fn presets_make_sense_and_what_breaks_a_session_is_named() {
        for preset in [Config::default(), Config::version_3("a"), Config::dtn2("a"), Config::ax25("a")] {
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

/// Counters of a [`Session`](super::Session) since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Sessions established.
    pub sessions: u64,
    /// Attempts to connect the stream.
    pub attempts: u64,
    /// Segments sent.
    pub segments_sent: u64,
    /// Segments whose header was received.
    pub segments_received: u64,
    /// Payload bytes sent in segments.
    pub payload_sent: u64,
    /// Payload bytes received in segments.
    pub payload_received: u64,
    /// Keepalives sent.
    pub keepalives_sent: u64,
    /// Keepalives received.
    pub keepalives_received: u64,
    /// Messages that violated the protocol or could not be decoded.
    pub violations: u64,
    /// MSG_REJECT messages received.
    pub rejected: u64,
    /// Incoming transfers refused by the user of this side or by a limit.
    pub refused: u64,
    /// Number of times the peer took too long to open the session.
    pub late: u64,
    /// Number of times the keepalive timeout expired.
    pub silent: u64,
    /// Number of times the peer sent too many messages without content.
    pub floods: u64,
}
