//! Moving nodes of a scenario, and the packets between them.

use longwire_proto::settings;
use serde::{Deserialize, Serialize};

/// Maximum number of nodes of a kind.
const NODES_MAX: u32 = 60;
/// Maximum number of packets of a run.
const PACKETS_MAX: u32 = 10_000;

/// Least and largest height of moving nodes, metres; ground stations are at 0.
pub const FLIGHT_M: [f64; 2] = [1000.0, 10_000.0];

/// Router of all nodes, over AeroNP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AirborneRouter {
    /// AeroRP: time to intercept.
    Aerorp,
    /// AeroRP without positions: packets wait for their destination.
    AerorpWithoutPosition,
    /// AeroRP over AeroNP without congestion indication.
    AerorpWithoutCongestion,
    /// AeroRP over AeroNP without corruption indication.
    AerorpWithoutCorruption,
    /// A copy to every node that is met.
    Epidemic,
    /// A number of copies, halved at each meeting.
    SprayAndWait,
    /// Next hops of the shortest paths at the start of the run.
    Static,
}

impl AirborneRouter {
    /// All routers.
    pub const ALL: [AirborneRouter; 7] = [
        AirborneRouter::Aerorp,
        AirborneRouter::AerorpWithoutPosition,
        AirborneRouter::AerorpWithoutCongestion,
        AirborneRouter::AerorpWithoutCorruption,
        AirborneRouter::Epidemic,
        AirborneRouter::SprayAndWait,
        AirborneRouter::Static,
    ];

    /// Returns the name in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            AirborneRouter::Aerorp => "aerorp",
            AirborneRouter::AerorpWithoutPosition => "aerorp-without-position",
            AirborneRouter::AerorpWithoutCongestion => "aerorp-without-congestion",
            AirborneRouter::AerorpWithoutCorruption => "aerorp-without-corruption",
            AirborneRouter::Epidemic => "epidemic",
            AirborneRouter::SprayAndWait => "spray-and-wait",
            AirborneRouter::Static => "static",
        }
    }
}

settings! {
    /// Moving nodes, and the packets between them. Nodes are test articles and relays, which move, and ground stations.
    #[derive(Clone, Debug, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Airborne {
        /// Routers to compare. Default: all.
        pub routers: Vec<AirborneRouter> = AirborneRouter::ALL.to_vec(),
        /// Copies of each packet for spray and wait, 1 to 127. Default 8.
        pub copies: u8 = 8,
        /// Number of test articles, 1 to 60: fast, with packets for the ground. Default 16.
        pub test_articles: u32 = 16,
        /// Number of relays, 0 to 60: slower, without packets of their own. Default 4.
        pub relays: u32 = 4,
        /// Number of ground stations, 1 to 60. Default 3.
        pub ground_stations: u32 = 3,
        /// Side of the square area, kilometres. Default 170.
        pub area_km: f64 = 170.0,
        /// Radio range between any two nodes, kilometres. Default 25.
        pub range_km: f64 = 25.0,
        /// Least and largest speed of test articles, metres per second. Default 100 to 300.
        pub speed_mps: [f64; 2] = [100.0, 300.0],
        /// Least and largest speed of relays, metres per second. Default 40 to 80.
        pub relay_speed_mps: [f64; 2] = [40.0, 80.0],
        /// Duration of a run, seconds. Default 1,800.
        pub duration_s: f64 = 1800.0,
        /// Number of packets. Default 600.
        pub packets: u32 = 600,
        /// Payload of a packet, bytes, 16 to 1,400. Default 1,000.
        pub bytes: u32 = 1000,
        /// End of the period in which packets are made, at random times from 30 s on, seconds. Default 1,000.
        pub within_s: f64 = 1000.0,
        /// Lifetime of a packet, seconds. Default 800.
        pub lifetime_s: f64 = 800.0,
        /// Share of the packets that go from a ground station to a test article; the others go the other way. Default 0.2.
        pub command_share: f64 = 0.2,
        /// Interval between beacons, seconds; a node that is silent for three and a half of them is no neighbour. Default 2.
        pub beacon_s: f64 = 2.0,
        /// Rate between two nodes within range, bit/s. Default 250,000.
        pub rate_bps: u64 = 250_000,
        /// Bit-error rate between most nodes. Default 1e-7.
        pub ber: f64 = 1e-7,
        /// Share of the pairs of nodes with a bad link. Default 0.2.
        pub bad_share: f64 = 0.2,
        /// Bit-error rate of bad links. Default 1e-4.
        pub bad_ber: f64 = 1e-4,
        /// Damaged packets are passed on and delivered as such, for users that correct them; otherwise each hop repeats them.
        /// Default true.
        pub tolerant: bool = true,
        /// Queue of a node, bytes. Default 32,000.
        pub queue_bytes: u64 = 32_000,
    }
}

impl Airborne {
    pub(super) fn check(&self) -> Result<(), String> {
        let rule = |holds: bool, message: &str| if holds { Ok(()) } else { Err(message.to_owned()) };
        rule(!self.routers.is_empty(), "`airborne.routers` must have at least one entry")?;
        rule((1..=127).contains(&self.copies), "`airborne.copies` must be from 1 to 127")?;
        let counts = (1..=NODES_MAX).contains(&self.test_articles)
            && (1..=NODES_MAX).contains(&self.ground_stations)
            && self.relays <= NODES_MAX;
        rule(counts, "`airborne` must have 1 to 60 test articles and ground stations, and up to 60 relays")?;
        let lengths = [self.area_km, self.range_km].iter().all(|length| (0.1..=1e4).contains(length));
        rule(lengths, "`area-km` and `range-km` must be from 0.1 to 10,000")?;
        let height_km = FLIGHT_M[1] / 1000.0;
        rule(
            self.range_km > height_km,
            "`range-km` must be above 10: nodes fly up to 10 km above ground stations",
        )?;
        let speeds = [self.speed_mps, self.relay_speed_mps];
        let speeds = speeds
            .iter()
            .all(|[slow, fast]| (1.0..=1000.0).contains(slow) && (*slow..=1000.0).contains(fast));
        rule(speeds, "speeds must be from 1 to 1,000 m/s, the least one first")?;
        rule((1.0..=1e5).contains(&self.duration_s), "`duration-s` must be from 1 to 100,000")?;
        rule(
            (30.0..=self.duration_s).contains(&self.within_s),
            "`within-s` must be from 30 to `duration-s`",
        )?;
        rule((1.0..=6553.0).contains(&self.lifetime_s), "`lifetime-s` must be from 1 to 6,553")?;
        rule((1..=PACKETS_MAX).contains(&self.packets), "`packets` must be from 1 to 10,000")?;
        rule((16..=1400).contains(&self.bytes), "`airborne.bytes` must be from 16 to 1400")?;
        let shares = [self.command_share, self.bad_share, self.ber, self.bad_ber];
        rule(
            shares.iter().all(|share| (0.0..=1.0).contains(share)),
            "shares and error rates must be from 0 to 1",
        )?;
        rule((0.1..=100.0).contains(&self.beacon_s), "`beacon-s` must be from 0.1 to 100")?;
        rule(self.rate_bps > 0, "`rate-bps` must be at least 1")?;
        rule(self.queue_bytes >= 1500, "`queue-bytes` must be at least 1500")
    }
}
