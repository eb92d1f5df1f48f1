//! Scenario tests of the agent.

mod amateur;
pub(super) mod audit;
mod chaos;
mod chosen;
mod clocks;
mod custody;
mod delivering;
mod device;
mod dtlsr;
mod encryption;
mod forwarding;
mod full;
mod hostile;
mod manners;
mod over;
mod parts;
mod records;
mod relays;
mod roaming;
mod security;
mod space;
mod spreading;
mod strangers;
mod version6;
mod world;
