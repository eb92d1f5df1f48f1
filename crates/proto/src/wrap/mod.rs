//! Engines around engines: each of these wraps an engine, or lies between two layers, and is an engine itself.
//!
//! | wrapper | purpose |
//! |---|---|
//! | [`Tap`] | passes every message, with its time, to a sink: timelines, captures, counters |
//! | [`Impair`] | loses, duplicates, delays and damages messages, from a seed; in tests and on a live link |
//! | [`Checked`] | panics when room is overspent or another rule of the contract is broken; wraps every engine in tests |
//!
//! `Tap` and `Checked` are part of the feature `testing`. The rules that `Checked` enforces are listed with each
//! service in [`service`](crate::service).

#[cfg(any(test, feature = "testing"))]
mod checked;
mod impair;
#[cfg(any(test, feature = "testing"))]
mod tap;

#[cfg(any(test, feature = "testing"))]
pub use checked::{Checked, CheckedService, ContractBreach};
pub use impair::{Impair, ImpairConfig, ImpairCounters, Impairable};
#[cfg(any(test, feature = "testing"))]
pub use tap::{Crossing, Sink, Tap, Timeline, TimelineWriter};

#[cfg(test)]
mod tests;
