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
//! appends, few reads, and removal soon after. `benches/stores` measures it beside three embedded databases:
//!
//! | | log | fjall 3.1 | redb 4.4 | SQLite 3 |
//! |---|---|---|---|---|
//! | processor time, 1 KiB: append, commit, read, remove | 4.0 us | 5.0 us | 8.5 us | 13.0 us |
//! | the same, 1 MB in 64-KiB pieces | 0.77 ms | 1.0 ms | 1.5 ms | 2.1 ms |
//! | bytes written a byte, 1 KiB and 1 MB | 1.10, 1.00 | 1.12, 1.38 | 1.64, 2.04 | 6.15, 2.03 |
//! | opening with 100,000 records after a kill | 0.06 s | 0.28 s | 0.11 s | 0.06 s |
//! | of 2,000 records whole after one flipped bit | 1,999 | 768 | 2,000 | 1,999 |
//!
//! A full device makes fjall refuse everything, removals included, until it is opened again; the log refuses data only.

mod backend;
mod drive;
mod log;
mod memory;
mod recent;
mod resident;

pub use backend::{Backend, Reader, Refusal, Write};
pub(crate) use drive::Drive;
pub use log::{Damage, Harm, Log, Opened, Quarantine};
pub use memory::Forgetful;

/// A number that nobody can guess, for what is not a key: the standard library seeds its hashers with one.
pub(crate) fn random_u64() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}
