//! Stories of the agent.

mod chaos;
mod delivering;
mod forwarding;
mod parts;
mod world;
