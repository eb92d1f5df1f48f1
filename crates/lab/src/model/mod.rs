//! Closed-form models: what a link gives if nothing goes wrong, by formula rather than by simulation.

pub mod ax25;
mod page;
#[cfg(test)]
mod tests;

pub use page::{Options, finding};
