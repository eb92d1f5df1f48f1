//! The router.

use super::config::Config;
use super::table::Table;
use crate::motion::{Fix, Motion};
use crate::packet_router::{Decision, NeighbourState, NodeAddress, PacketRouter, RoutedPacket, ToldFix};
use crate::time::Instant;

/// AeroRP. The [module](super) describes it.
#[derive(Debug)]
pub struct AeroRp {
    config: Config,
    own: Option<Motion>,
    table: Table,
}

impl AeroRp {
    /// Creates a router that knows the nodes of its configuration.
    pub fn new(config: Config) -> AeroRp {
        AeroRp { own: None, table: Table::new(&config), config }
    }

    /// Returns the number of nodes whose fixes were learned.
    pub fn learned_nodes(&self) -> usize {
        self.table.len()
    }

    /// Returns the time until a node comes within range of another, seconds.
    pub fn time_to_intercept_s(&self, node: &Motion, destination: &Motion) -> f64 {
        let left = node.distance_m(destination) - self.config.range_m;
        if left <= 0.0 {
            return 0.0;
        }
        let horizon = self.config.horizon.as_secs_f64();
        if let Some((from, _)) = node.within_range(destination, self.config.range_m)
            && (0.0..=horizon).contains(&from)
        {
            return from;
        }
        let closing = node.closing_mps(destination);
        let drifting = horizon + left / self.config.progress_mps;
        if closing > 0.0 { drifting.min(left / closing) } else { drifting }
    }

    /// Additional time over a link, seconds.
    fn link_time_s(&self, neighbour: &NeighbourState) -> f64 {
        let full = self.config.full_queue_time.as_secs_f64() * neighbour.fill;
        full + self.config.damaged_time.as_secs_f64() * neighbour.damaged
    }

    /// Returns true if a neighbour is within range, as far as its fix tells.
    fn is_within_reach(&self, now: Instant, node: NodeAddress) -> bool {
        let there = self.table.motion(now, node, &self.config);
        let both = self.own.zip(there);
        both.is_none_or(|(here, there)| here.distance_m(&there) <= self.config.range_m)
    }

    /// Returns the expected time of a packet by a neighbour, seconds; `None` if it cannot go there.
    fn time_by_s(
        &self,
        now: Instant,
        packet: &RoutedPacket<'_>,
        destination: Option<&Motion>,
        neighbour: &NeighbourState,
    ) -> Option<f64> {
        let hop = self.config.hop_time.as_secs_f64() + self.link_time_s(neighbour);
        if neighbour.node == packet.destination {
            return Some(hop);
        }
        let came_lately = packet.from.is_some_and(|(node, at)| {
            node == neighbour.node && now.saturating_since(at) < self.config.return_after
        });
        let is_full = neighbour.fill * 100.0 > self.config.fill_percent_max as f64;
        if came_lately || is_full {
            return None;
        }
        let there = self.table.motion(now, neighbour.node, &self.config)?;
        // One more hop leads from there to the destination.
        let last = self.config.hop_time.as_secs_f64();
        Some(hop + last + self.time_to_intercept_s(&there, destination?))
    }
}

impl PacketRouter for AeroRp {
    fn set_own(&mut self, _now: Instant, own: Option<Motion>) {
        self.own = own;
    }

    fn learn(&mut self, now: Instant, told: ToldFix) {
        if self.config.uses_position {
            self.table.learn(now, told, &self.config);
        }
    }

    fn decide(&mut self, now: Instant, packet: &RoutedPacket<'_>, neighbours: &[NeighbourState]) -> Decision {
        let direct = neighbours.iter().find(|neighbour| neighbour.node == packet.destination);
        if !self.config.uses_position {
            return direct.map_or(Decision::Carry, |direct| Decision::Forward(direct.node));
        }
        let destination = self.table.motion(now, packet.destination, &self.config);
        let destination = destination.as_ref();
        let mut best: Option<(f64, NodeAddress)> = None;
        for neighbour in neighbours.iter().filter(|neighbour| self.is_within_reach(now, neighbour.node)) {
            let time = self.time_by_s(now, packet, destination, neighbour);
            if let Some(time) = time.filter(|time| best.is_none_or(|(least, _)| *time < least)) {
                best = Some((time, neighbour.node));
            }
        }
        let Some((time, to)) = best else { return Decision::Carry };
        let direct = direct.filter(|direct| self.is_within_reach(now, direct.node));
        let here = match direct.and_then(|direct| self.time_by_s(now, packet, destination, direct)) {
            Some(direct) => direct,
            None => match (self.own, destination) {
                (Some(own), Some(destination)) => self.time_to_intercept_s(&own, destination),
                _ => f64::INFINITY,
            },
        };
        let is_direct = to == packet.destination;
        if is_direct || time + self.config.margin.as_secs_f64() < here {
            Decision::Forward(to)
        } else {
            direct.map_or(Decision::Carry, |direct| Decision::Forward(direct.node))
        }
    }

    fn fix(&self, node: NodeAddress) -> Option<Fix> {
        self.table.fix(node)
    }

    fn tell(&mut self, now: Instant, fixes_max: usize) -> Vec<ToldFix> {
        self.table.tell(now, fixes_max, &self.config)
    }
}
