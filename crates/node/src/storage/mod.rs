//! Storage of a node: the [`Storage`](longwire_proto::service::Storage) service over a [`Backend`].
//!
//! ```text
//!    engines' task            writer thread                    reader thread
//!   --------------   batch   ---------------   index          ---------------
//!    Driver ------------->  write, sync once  <------------  read in parallel
//!       ^                        |                                |
//!       '----- Stored, Removed --'------------- Data -------------'
//! ```
//!
//! **Group commit.** While a batch is written and synced, further requests wait for the next batch, which contains all of
//! them. `Stored` and `Removed` are reported only after the sync. The most recently written data is read from memory
//! (`recent`), older data from the disk, in parallel with the writer.
//!
//! Stores are exchangeable behind [`Backend`]. The one in use, [`Log`], is made for this pattern: appends, few reads, and
//! removal soon after. docs/store.md compares its figures with those of fjall, redb and SQLite, and gives the reasons for
//! it: damage affects nothing else, and each byte is written once.
//!
//! A store in memory (`memory_store`) has a limited size, and slows applications and peers before it is full.

mod backend;
mod driver;
mod log;
mod memory_store;
mod read_ahead;
mod recent;
#[cfg(test)]
#[path = "../../tests/common/volatile.rs"]
mod volatile;
mod writer;

pub use backend::{Backend, BatchRefusal, StoreOpener, StoreReader, StoreWrite};
pub(crate) use driver::StorageDriver;
pub(crate) use log::{DAMAGE_WAITING_MAX, SEGMENT_BYTES, Scrub, ScrubPace, can_be_read};
pub use log::{
    DamageKind, FORMAT, Log, OpenError, Opened, ProgressFn, Quarantine, StoreCheck, StoreDamage, StoreRepair,
    check, repair,
};

/// Returns a number that cannot be guessed, for purposes other than keys: the standard library seeds its hashers with one.
pub(crate) fn random_u64() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}
