//! The lock of a store: one process at a time has it.

use super::opening::OpenError;
use std::fs::{File, TryLockError};
use std::ops::Deref;

/// The lock file of a store, locked until this is dropped.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// # Errors
    /// Another process has the store.
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
    /// A lock goes with the last copy of its file, and a child that this process is starting has one until it runs its own program.
    fn drop(&mut self) {
        // If it fails, the lock goes with the file.
        let _ = self.0.unlock();
    }
}
