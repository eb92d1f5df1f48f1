//! Nodes of other implementations and our node, over real sockets on loopback.
//!
//! | file | content |
//! |---|---|
//! | [`ours`] | our node in this process, and an application of it |
//! | [`peer`] | operations of a peer: connecting or listening, sending, receiving |
//! | [`hardy`] | the crates `hardy-bpa` and `hardy-tcpclv4`, in this process: TCPCL 4, plain and with TLS |
//! | [`dtn7`] | dtn7-rs: the daemon `dtnd` as a process: TCPCL 4 |
//! | [`pyd3tn`] | the Python package `pyd3tn`, in a process: TCPCL 3 |
//! | [`table`] | the results as a page |
//!
//! A process is killed by its handle when the test ends, in any case.

pub mod dtn7;
pub mod hardy;
pub mod ours;
pub mod peer;
pub mod pyd3tn;
pub mod table;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// Folder in which `./test` installs programs that are not crates of this workspace.
pub fn installed(what: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target").join(what)
}

/// Reserves an address: on a loopback address of this process, and below the ephemeral ports of the operating system, so
/// that no other process ever has it.
pub fn reserved() -> SocketAddr {
    // Process IDs have 22 bits.
    let [_, a, b, c] = std::process::id().to_be_bytes();
    SocketAddr::from(([127, 64 | a, b, c], port()))
}

/// Returns a port for a program that listens at an address of its own choice: below the ephemeral ports, and never twice
/// in this process. Trying it out would not help: a process that starts just then has a copy of the socket for an instant.
pub fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    10_000 + (std::process::id() % 1000) as u16 * 20 + NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Limit for every step that should succeed, even on a heavily loaded machine.
pub const DEADLINE: Duration = Duration::from_secs(240);

/// Temporary folder, removed on drop.
#[derive(Debug)]
pub struct Place(pub PathBuf);

impl Place {
    /// Creates a folder whose name differs from those of other tests running concurrently.
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicU16 = AtomicU16::new(0);
        let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("longwire-interop-{name}-{process}-{number}"));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
