//! Network namespaces of this process.

use longwire_settings::error::Error;
use nix::sched::{CloneFlags, unshare};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::thread;

/// A network namespace without a name, which ends with the last thread, socket and device in it.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// Makes an empty namespace.
    ///
    /// # Errors
    /// Fails without the permission (CAP_SYS_ADMIN), with a hint.
    pub fn new() -> Result<Namespace, Error> {
        let made = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        });
        let made = made.join().expect("the thread does not panic");
        made.map(Namespace).map_err(|error| {
            Error::new(format!("cannot make a network namespace: {error}")).hint("run the command as root")
        })
    }

    /// Path of the namespace for [`Ports::Tun`](crate::Ports::Tun), valid in this process as long as this value lives.
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }

    /// Runs `story` on a thread in the namespace, and returns its result. Threads and sockets that it makes are in the namespace,
    /// too.
    ///
    /// # Errors
    /// Fails if the thread cannot enter the namespace.
    ///
    /// # Panics
    /// Panics if `story` does.
    pub fn run<T: Send>(&self, story: impl FnOnce() -> T + Send) -> Result<T, Error> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))?;
                Ok(story())
            });
            match inside.join() {
                Ok(result) => result.map_err(|error: rustix::io::Errno| {
                    Error::new(format!("cannot enter a network namespace: {error}"))
                }),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}
