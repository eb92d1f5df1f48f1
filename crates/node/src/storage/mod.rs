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
//! A store in memory (`resident`) has a size, and slows applications and peers before it is full.

mod backend;
mod drive;
mod log;
mod memory;
mod recent;
mod resident;

pub use backend::{Backend, Reader, Refusal, Write};
pub(crate) use drive::Drive;
pub use log::{
    Checked, Damage, FORMAT, Harm, Log, OpenError, Opened, Progress, Quarantine, Repaired, check, repair,
};
pub(crate) use log::{DAMAGE_WAITING_MAX, Pace, SEGMENT_BYTES, Scrub, can_be_read};
pub use memory::Forgetful;

/// A number that nobody can guess, for what is not a key: the standard library seeds its hashers with one.
pub(crate) fn random_u64() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}
