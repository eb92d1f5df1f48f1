//! Experiments: scenarios, sweeps, statistics, limits, papers and reports.

pub mod record;
pub mod stats;
pub mod workload;
