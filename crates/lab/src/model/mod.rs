//! Closed-form models: ideal performance of a link by formula rather than by simulation.

pub mod ax25;
mod changes;
mod page;
#[cfg(test)]
mod tests;

pub use changes::{Changes, Request, StuffingChoice};
pub use page::{Options, finding};
