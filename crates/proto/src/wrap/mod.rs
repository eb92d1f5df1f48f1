//! Engines around engines: each of these stands between an engine and its owner, or between two layers, and is
//! an engine itself.
//!
//! | wrapper | what it does |
//! |---|---|
//! | [`Tap`] | shows every crossing, with its time, to a sink: timelines, captures, counters |
//! | [`Impair`] | loses, repeats, delays and damages what passes, from a seed; in tests and on a live link |
//! | [`Checked`] | panics when room is overspent or another rule of the contract is broken; around everything in tests |

mod checked;
mod impair;
mod tap;

pub use checked::{
    AppAccount, BundlesAccount, Checked, CheckedService, ContractBreach, DatagramsAccount, FramesAccount,
};
pub use checked::{StorageAccount, StreamAccount};
pub use impair::{Impair, ImpairConfig, ImpairCounters, Impairable};
pub use tap::{Crossing, Sink, Tap, Timeline, TimelineWriter};

#[cfg(test)]
mod tests;
