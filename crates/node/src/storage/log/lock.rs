//! Lock of a store, held by one process at a time.

use super::opening::OpenError;
use std::fs::{File, TryLockError};
use std::ops::Deref;

/// Lock file of a store, locked until this is dropped.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// # Errors
    /// Fails if another process holds the lock.
    pub(super) fn take(file: File) -> Result<Self, OpenError> {
        match file.try_lock() {
            Ok(()) => Ok(Lock(file)),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }
}

impl Deref for Lock {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for Lock {
    /// Unlocks explicitly: a lock otherwise lasts until the last copy of its file is closed, and a child that this process
    /// is starting has a copy until it executes its own program.
    fn drop(&mut self) {
        // If it fails, closing the file releases the lock.
        let _ = self.0.unlock();
    }
}
