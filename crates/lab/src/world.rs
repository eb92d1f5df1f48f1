//! The only place of the lab that builds simulations, and the loop in which their user handles indications.

use longwire_proto::engine::Service;
use longwire_proto::time::Duration;
use longwire_sim::{NodeIndication, Simulation};

/// Time limit of a wait, seconds.
const WATCHED_S: u64 = 100_000;

/// Creates a simulation without nodes.
#[expect(clippy::disallowed_methods, reason = "the place where simulations are built")]
pub fn simulation<A: Service>(seed: u64) -> Simulation<A> {
    Simulation::new(seed)
}

/// User of all nodes of a simulation.
pub trait User<A: Service> {
    /// Handles an indication of a node, and may send requests.
    fn hear(&mut self, simulation: &mut Simulation<A>, said: NodeIndication<A>);

    /// Returns true once there is nothing left to wait for.
    fn has_failed(&self) -> bool {
        false
    }
}

/// Simulation with its user.
pub struct SimulationWithUser<A: Service, U: User<A>> {
    /// Simulation.
    pub simulation: Simulation<A>,
    /// User of its nodes.
    pub user: U,
}

impl<A: Service, U: User<A>> SimulationWithUser<A, U> {
    /// Passes all indications of the nodes to the user.
    pub fn hear(&mut self) {
        while let Some(said) = self.simulation.pop_indication() {
            self.user.hear(&mut self.simulation, said);
        }
    }

    /// Lets time pass while the condition holds; returns false after a failure or the time limit, or when nothing
    /// happens any more.
    pub fn run_while(&mut self, goes_on: impl Fn(&U) -> bool) -> bool {
        let limit = self.simulation.now() + Duration::from_secs(WATCHED_S);
        self.hear();
        while goes_on(&self.user) {
            if self.user.has_failed() || self.simulation.now() >= limit || !self.simulation.step() {
                return false;
            }
            self.hear();
        }
        true
    }

    /// Lets this much time pass.
    pub fn rest(&mut self, time: Duration) {
        self.simulation.run_until(self.simulation.now() + time);
        self.hear();
    }
}
