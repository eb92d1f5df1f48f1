//! Experiments: scenarios, sweeps, statistics, limits, papers and reports.

#![forbid(unsafe_code)]

pub mod airborne;
pub mod arrivals;
pub mod bench;
pub mod bundle_observer;
pub mod chain;
pub mod claim;
pub mod compare;
pub mod contacts;
pub mod controllers;
pub mod convergence;
pub mod emulation;
pub mod ethernet;
pub mod finding;
pub mod format;
pub mod ftp;
pub mod internet;
pub mod label;
pub mod ledger;
pub mod limit;
pub mod link;
pub mod model;
pub mod output;
pub mod packets;
pub mod papers;
pub mod progress;
pub mod protocols;
pub mod radio;
pub mod record;
pub mod report;
pub mod run;
pub mod scenario;
pub mod share;
pub mod stats;
pub mod sweep;
pub mod trace;
pub mod workload;
pub mod world;

pub use longwire_settings::{error, toml_text};
