//! Packets between nodes that move: AeroRP over AeroNP beside other routers over the same network layer.
//!
//! Test articles, relays and ground stations are in an area much larger than their radio range. Places, contacts, bad links
//! and packets are drawn from the run's seed only, so that they are the same for all routers. Each two nodes have a line
//! while they are within range, of which no engine is informed: a frame to one that has left is lost. This stands for a
//! channel with slots assigned to each pair (iNET uses TDMA): there are no collisions, and each pair has the whole rate.
//! A frame is sent to one neighbour; a beacon, which is sent on all lines, counts once, as on a radio channel. A packet for
//! which its source has no room is not sent, whatever the router.
//!
//! All routers use AeroNP: hop-by-hop acknowledgements, queues, beacons. The others have no positions in their packets.

mod page;
mod routers;
mod world;

pub use page::shown;
pub use world::{Outcome, Sent};

use crate::bench::{Case, Metric, Run, Trial};
use crate::scenario::{Airborne, AirborneRouter, GridPoint};

/// Router among nodes that move.
pub struct AirborneTrial {
    /// Nodes and packets.
    pub plan: Airborne,
    /// Router of all nodes.
    pub router: AirborneRouter,
}

impl AirborneTrial {
    /// Creates the cases of a point, one for each router.
    pub fn cases(point: GridPoint) -> impl Iterator<Item = Case<AirborneTrial>> {
        let GridPoint { params, scenario, .. } = point;
        scenario.airborne.routers.clone().into_iter().map(move |router| {
            let params = params.clone().with("router", router.name());
            let trial = AirborneTrial { plan: scenario.airborne.clone(), router };
            Case::new("aeronp", params, trial, scenario.seed, scenario.runs)
        })
    }
}

impl Trial for AirborneTrial {
    type Outcome = Outcome;

    const METRICS: &'static [Metric<Outcome>] = &[
        Metric::new("delivered", "share of packets", |outcome| {
            Some(outcome.delays_s.len() as f64 / f64::from(outcome.packets))
        }),
        Metric::new("delay_mean_s", "s", Outcome::mean_delay_s),
        Metric::new("transmissions", "packets per delivered one", |outcome| {
            outcome.per_delivered(outcome.sent.data)
        }),
        Metric::new("data_byte", "byte per delivered packet", |outcome| {
            outcome.per_delivered(outcome.sent.data_bytes)
        }),
        Metric::new("control_byte", "byte per delivered packet", |outcome| {
            outcome.per_delivered(outcome.sent.control_bytes)
        }),
        Metric::new("damaged", "share of packets", |outcome| {
            Some(f64::from(outcome.damaged) / f64::from(outcome.packets))
        }),
        Metric::new("unsent", "share of packets", |outcome| {
            Some(f64::from(outcome.unsent) / f64::from(outcome.packets))
        }),
        Metric::new("queue_full", "refusals and drops per packet", |outcome| {
            Some(outcome.queue_full as f64 / f64::from(outcome.packets))
        }),
        Metric::new("out_of_range", "share of moving nodes", |outcome| Some(outcome.out_of_range)),
        Metric::new("out_of_reach", "share of moving nodes", |outcome| Some(outcome.out_of_reach)),
    ];

    fn play(&self, run: Run) -> Outcome {
        world::play(&self.plan, self.router, run.seed)
    }
}
