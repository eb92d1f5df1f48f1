//! Engines around engines: each of these stands between an engine and its owner, or between two layers, and is
//! an engine itself.
//!
//! | wrapper | what it does |
//! |---|---|
//! | [`Tap`] | shows every crossing, with its time, to a sink: timelines, captures, counters |
//! | [`Spoil`] | loses, repeats, delays and damages what passes, from a seed; in tests and on a live link |
//! | [`Lawful`] | panics when room is overspent or another rule of the contract is broken; around everything in tests |

mod lawful;
mod spoil;
mod tap;

pub use lawful::{Accounted, AppAccount, Breach, BundlesAccount, DatagramsAccount, FramesAccount, Lawful};
pub use lawful::{StorageAccount, StreamAccount};
pub use spoil::{Spoil, SpoilConfig, SpoilCounters, Spoilable};
pub use tap::{Crossing, Sink, Tap, Teller, Timeline};

#[cfg(test)]
mod tests;
