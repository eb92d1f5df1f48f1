//! The storage of a node: the [`Storage`](longwire_proto::service::Storage) service over a [`Backend`].
//!
//! ```text
//!    engines' task            writer thread                    reader thread
//!   --------------   batch   ---------------   index          ---------------
//!     Drive  ------------->  write, sync once  <------------  read beside it
//!       ^                        |                                |
//!       '----- Stored, Removed --'------------- Data -------------'
//! ```
//!
//! **Group commit.** While a batch is written and synced, what comes in waits for the next, which takes all of it.
//! `Stored` and `Removed` are said only after the sync. What was written last is read from memory
//! (`recent`); what is older, from the disk, beside the writer.
//!
//! The face behind which stores can be exchanged is [`Backend`]. The one in use, [`Log`], is made for this pattern:
//! appends, few reads, and removal soon after. docs/store.md has its figures beside those of fjall, redb and SQLite, and
//! why it is the one: damage takes nothing else with it, and it writes each byte once.
//!
//! A store in memory (`memory_store`) has a size, and slows applications and peers before it is full.

mod backend;
mod driver;
mod log;
mod memory_store;
mod recent;
mod volatile;

pub use backend::{Backend, BatchRefusal, StoreReader, StoreWrite};
pub(crate) use driver::StorageDriver;
pub(crate) use log::{DAMAGE_WAITING_MAX, SEGMENT_BYTES, Scrub, ScrubPace, can_be_read};
pub use log::{
    DamageKind, FORMAT, Log, OpenError, Opened, ProgressFn, Quarantine, StoreCheck, StoreDamage, StoreRepair,
    check, repair,
};
pub use volatile::VolatileStore;

/// A number that nobody can guess, for what is not a key: the standard library seeds its hashers with one.
pub(crate) fn random_u64() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}
