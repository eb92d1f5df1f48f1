//! Stories of the agent.

mod chaos;
mod delivering;
mod device;
mod forwarding;
mod parts;
mod roaming;
mod spreading;
mod world;
