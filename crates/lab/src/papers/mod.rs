//! Published evaluations, reproduced and compared with their figures.

pub mod ax25_throughput;
pub mod cislunar;
pub mod dtn_ax25;
