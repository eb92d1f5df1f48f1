//! Nodes with contacts at times: a comparison of routers by delivered messages, delay and cost.
//!
//! Contacts and messages are drawn from the run's seed only, so that they are the same for all routers. The contact plan
//! contains the actual contacts, so its router knows more than the others. Every node has all layers: agent, TCPCL 4,
//! TCP.

mod page;
mod world;

pub use page::shown;
pub use world::Outcome;

use crate::bench::{Case, Metric, Run, Trial};
use crate::scenario::{GridPoint, Scenario};
use longwire_proto::bp::agent::RouterChoice;

/// Router in a scenario with messages.
pub struct RouterTrial {
    /// Scenario.
    pub scenario: Scenario,
    /// Router of all nodes.
    pub router: RouterChoice,
}

impl RouterTrial {
    /// Creates the cases of a point, one for each router.
    pub fn cases(point: GridPoint) -> impl Iterator<Item = Case<RouterTrial>> {
        let GridPoint { params, scenario, .. } = point;
        scenario.routers.clone().into_iter().map(move |router| {
            let params = params.clone().with("router", router.name());
            let (seed, runs) = (scenario.seed, scenario.runs);
            Case::new("tcpcl4", params, RouterTrial { scenario: scenario.clone(), router }, seed, runs)
        })
    }
}

impl Trial for RouterTrial {
    type Outcome = Outcome;

    const METRICS: &'static [Metric<Outcome>] = &[
        Metric::new("delivered", "share of messages", |outcome| {
            Some(outcome.delays_s.len() as f64 / outcome.sent as f64)
        }),
        Metric::new("delay_mean_s", "s", Outcome::mean_delay_s),
        Metric::new("delay_max_s", "s", |outcome| outcome.delays_s.iter().copied().reduce(f64::max)),
        Metric::new("copies_mean", "nodes", |outcome| {
            Some(outcome.holders.iter().sum::<usize>() as f64 / outcome.sent as f64)
        }),
        Metric::new("copies_max", "nodes", |outcome| outcome.holders.iter().max().map(|most| *most as f64)),
        Metric::new("sent_byte", "byte", |outcome| Some(outcome.sent_bytes as f64)),
    ];

    fn play(&self, run: Run) -> Outcome {
        world::play(&self.scenario, self.router, run.seed)
    }
}
