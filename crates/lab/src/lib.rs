//! Experiments: scenarios, sweeps, statistics, limits, papers and reports.

pub mod error;
pub mod limit;
pub mod link;
pub mod output;
pub mod progress;
pub mod record;
pub mod report;
pub mod scenario;
pub mod spread;
pub mod stats;
pub mod toml_text;
pub mod trace;
pub mod witness;
pub mod workload;
