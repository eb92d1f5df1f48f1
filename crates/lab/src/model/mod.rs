//! Closed-form models: ideal performance of a link by formula rather than by simulation.

pub mod ax25;
mod page;
#[cfg(test)]
mod tests;

pub use page::{Options, finding};
