//! Configuration and counters of a node.

use super::wire::{FIX_BYTES, HEADER_BYTES, PAYLOAD_BYTES_MAX, TENTH};
use crate::packet_router::NodeAddress;
use crate::service::{InterfaceId, LinkId};
use crate::setting::{Fault, Settings, at_least, number, rule, settings, time, wait};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Longest lifetime of a packet, from its field.
pub const LIFETIME_MAX: Duration = Duration::from_millis(6_553_500);
/// Maximum number of endpoints and of interfaces.
const PORTS_MAX: u64 = 1000;

settings! {
    /// Endpoint of a user of datagrams.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct EndpointConfig {
        /// The user's ID. Default 0.
        pub link: LinkId = LinkId(0),
        /// Protocol number, by which packets find the endpoint. Default 0.
        pub protocol: u8,
        /// Node to which the endpoint sends; its packets come here rather than to an endpoint without one. Default: none.
        pub peer: Option<NodeAddress>,
        /// Precedence of the packets, 0 to 15; higher goes first. Default 4.
        pub precedence: u8 = 4,
        /// Lifetime of the packets, up to 6,553 s. Default 10 min.
        pub lifetime: Duration = Duration::from_secs(600),
        /// Maximum number of packets of this endpoint that have not left the node. Default 64.
        pub packets_max: usize = 64,
        /// Maximum of received bytes that the user has not released. Default 1 MiB.
        pub incoming_bytes_max: u64 = 1 << 20,
    }
}

settings! {
    /// Configuration of a [`Node`](super::Node). There is no published standard: all values are ours.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Config {
        /// Address of the node. Default 0.
        pub address: NodeAddress = NodeAddress(0),
        /// Interfaces. Default: none.
        pub interfaces: Vec<InterfaceId>,
        /// Endpoints of users. Default: none.
        pub endpoints: Vec<EndpointConfig>,
        /// Longest frame, bytes. Default 1,500.
        pub frame_bytes_max: u64 = 1500,
        /// Number of nodes that may forward a packet made here. Default 32.
        pub hops_max: u8 = 32,
        /// Interval between beacons, plus a random part of up to an eighth. Packets that are carried are routed again as
        /// often. Default 1 s.
        pub beacon_interval: Duration = Duration::from_secs(1),
        /// Time without a frame from a neighbour after which it is none. Default 3.5 s, three beacons.
        pub neighbour_timeout: Duration = Duration::from_millis(3500),
        /// Maximum number of neighbours. Default 64.
        pub neighbours_max: usize = 64,
        /// Maximum number of fixes of other nodes in a beacon. Default 8.
        pub told_fixes_max: usize = 8,
        /// Data packets carry the fix of their sender and of their destination, as beacons do. Default true.
        pub fixes_in_data: bool = true,
        /// Neighbours acknowledge data packets, and a packet is kept until then. Otherwise it is forgotten when it has left.
        /// Default true.
        pub acknowledge: bool = true,
        /// Time without an acknowledgement after which a packet is routed again. Default 1 s.
        pub acknowledgement_timeout: Duration = Duration::from_secs(1),
        /// Number of consecutive packets without an acknowledgement after which a neighbour is none, until it is heard
        /// again. Default 4.
        pub failures_max: u32 = 4,
        /// Maximum number of packets to a neighbour that wait for acknowledgements. Default 16.
        pub window_packets: usize = 16,
        /// Maximum length of all packets held, bytes: queued, carried, not acknowledged. Default 1 MiB.
        pub queue_bytes_max: u64 = 1 << 20,
        /// Share of the queue above which packets that leave have the congestion indicator, percent. Default 50.
        pub congestion_percent: u64 = 50,
        /// The queue's fill is told in beacons and marked in packets, and that of neighbours is given to the router.
        /// Default true.
        pub indicates_congestion: bool = true,
        /// Damage on links is told in beacons, and that of links to neighbours is given to the router. Default true.
        pub indicates_corruption: bool = true,
        /// Maximum number of packets that are remembered so that they are accepted once. Default 8,192.
        pub remembered_max: usize = 8192,
    }
}

impl Config {
    /// Returns the longest payload, bytes.
    pub fn payload_bytes_max(&self) -> u64 {
        let header = (HEADER_BYTES + if self.fixes_in_data { 2 * FIX_BYTES } else { 0 }) as u64;
        self.frame_bytes_max.saturating_sub(header).min(PAYLOAD_BYTES_MAX as u64)
    }
}

impl Settings for EndpointConfig {
    fn check(&self) -> Result<(), Fault> {
        number("precedence", self.precedence, 0..=15, "4 is usual; 15 is the most urgent")?;
        time(
            "lifetime",
            self.lifetime,
            TENTH..=LIFETIME_MAX,
            "the field has 16 bits of a tenth of a second",
        )?;
        at_least("packets-max", self.packets_max as u64, 1, "with 0 nothing can be sent")?;
        at_least("incoming-bytes-max", self.incoming_bytes_max, 1, "with 0 nothing can be received")?;
        let unicast = self.peer != Some(NodeAddress::BROADCAST);
        rule(unicast, "peer", "is the address of all neighbours", "name one node")
    }
}

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        let unicast = self.address != NodeAddress::BROADCAST;
        rule(unicast, "address", "is the address of all neighbours", "any other is possible")?;
        number("interfaces", self.interfaces.len() as u64, 0..=PORTS_MAX, "there are too many")?;
        number("endpoints", self.endpoints.len() as u64, 0..=PORTS_MAX, "there are too many")?;
        self.endpoints
            .iter()
            .try_for_each(|endpoint| endpoint.check().map_err(|fault| fault.within("endpoints")))?;
        number("frame-bytes-max", self.frame_bytes_max, 128..=65_535, "1500 is usual")?;
        wait("beacon-interval", self.beacon_interval, "1 s is usual")?;
        wait("neighbour-timeout", self.neighbour_timeout, "a few beacons")?;
        rule(
            self.neighbour_timeout > self.beacon_interval,
            "neighbour-timeout",
            "must be above `beacon-interval`",
            "a few beacons",
        )?;
        number("neighbours-max", self.neighbours_max as u64, 1..=255, "a beacon names them all")?;
        number("told-fixes-max", self.told_fixes_max as u64, 0..=255, "8 is usual")?;
        wait("acknowledgement-timeout", self.acknowledgement_timeout, "1 s is usual")?;
        at_least("failures-max", self.failures_max, 1, "4 is usual")?;
        number("window-packets", self.window_packets as u64, 1..=1 << 14, "sequence numbers have 16 bits")?;
        let frame = self.frame_bytes_max;
        at_least("queue-bytes-max", self.queue_bytes_max, frame, "a packet must fit")?;
        number("congestion-percent", self.congestion_percent, 1..=100, "50 is usual")?;
        at_least("remembered-max", self.remembered_max as u64, 1, "8192 is usual")
    }
}

/// Counts of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Packets of users.
    pub originated: u64,
    /// Packets of other nodes that were accepted to be passed on.
    pub relayed: u64,
    /// Data packets sent, with repeated ones.
    pub data_sent: u64,
    /// Data packets sent again because no acknowledgement came.
    pub data_repeated: u64,
    /// Beacons sent, on all interfaces.
    pub beacons_sent: u64,
    /// Acknowledgements sent.
    pub acknowledgements_sent: u64,
    /// Packets delivered to users.
    pub delivered: u64,
    /// Delivered packets with a damaged payload.
    pub delivered_damaged: u64,
    /// Delivered packets with the congestion indicator.
    pub delivered_congested: u64,
    /// Packets that had been accepted before.
    pub duplicates: u64,
    /// Frames with a damaged or invalid header.
    pub header_errors: u64,
    /// Packets with a damaged payload, of all types.
    pub payload_errors: u64,
    /// Packets whose lifetime or hops have ended.
    pub expired: u64,
    /// Packets refused or dropped because the queue was full.
    pub queue_full: u64,
    /// Packets for which there is no endpoint.
    pub no_endpoint: u64,
    /// Packets whose user does not release what it received.
    pub user_full: u64,
    /// Packets from neighbours above the limit, and those that claim to come from this node.
    pub refused: u64,
    /// Neighbours that appeared.
    pub neighbours_met: u64,
    /// Neighbours that were silent or did not acknowledge.
    pub neighbours_lost: u64,
}
