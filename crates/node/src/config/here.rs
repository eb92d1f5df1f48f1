//! Checks of a configuration against the machine that it is on.

use super::{Config, StorageKind};
use crate::storage;
use longwire_settings::error::Error;
use rustix::fs::{Access, access};
use std::net::{TcpListener, ToSocketAddrs};
use std::os::unix::net::SocketAddr;
use std::path::Path;

impl Config {
    /// Checks that a node with this configuration can start here: its store, its socket and its folders can be made, what is in
    /// the store is of this version, the addresses that it listens on, for HTTP, too, are this machine's, its certificates and its token can be read. Nothing is
    /// made, and no port taken.
    ///
    /// # Errors
    /// The first thing that cannot be had.
    pub fn check_here(&self) -> Result<(), Error> {
        if self.storage.kind == StorageKind::Disk {
            can_be_made(&self.storage.path).map_err(|why| {
                Error::new(format!("the store {} cannot be made: {why}", self.storage.path.display()))
                    .hint("`storage.path` names a folder in a place that this user may write to")
            })?;
            storage::can_be_read(&self.storage.path).map_err(|error| {
                Error::new(format!("cannot open the store {}: {error}", self.storage.path.display()))
                    .hint(error.hint())
            })?;
        }
        let control = self.control();
        can_be_made(control.parent().unwrap_or(Path::new("."))).map_err(|why| {
            Error::new(format!("the socket {} cannot be made: {why}", control.display()))
                .hint("`control` names it; it is beside the store where nothing is said")
        })?;
        SocketAddr::from_pathname(&control).map_err(|why| {
            Error::new(format!("the socket {} cannot be made: {why}", control.display()))
                .hint("`control` names a path that this user may write to, shorter than 108 bytes")
        })?;
        let drops = self.drop.iter().map(|drop| &drop.folder);
        for folder in drops.chain(self.receive.iter().map(|receive| &receive.folder)) {
            can_be_made(folder).map_err(|why| {
                Error::new(format!("the folder {} cannot be made: {why}", folder.display()))
                    .hint("`folder` names one in a place that this user may write to")
            })?;
        }
        for text in self.listen.iter().chain(&self.listen_udp) {
            is_of_this_machine(text).map_err(|why| {
                Error::new(format!("cannot listen on {text}: {why}"))
                    .hint("0.0.0.0:4556 and [::]:4556 are all addresses of this machine")
            })?;
        }
        if let Some(listen) = &self.http.listen {
            is_of_this_machine(listen).map_err(|why| {
                Error::new(format!("cannot listen for HTTP on {listen}: {why}"))
                    .hint("`http.listen` has an address of this machine, such as 127.0.0.1:8080")
            })?;
        }
        self.http.token()?;
        self.credentials().map(drop)
    }
}

/// Checks that a folder exists or can be made, and that this user may write to it.
fn can_be_made(folder: &Path) -> Result<(), String> {
    let there =
        folder.ancestors().find(|path| path.as_os_str().is_empty() || path.symlink_metadata().is_ok());
    let there = there.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !there.is_dir() {
        return Err(format!("{} is no folder", there.display()));
    }
    access(there, Access::WRITE_OK | Access::EXEC_OK).map_err(|why| format!("{}: {why}", there.display()))
}

/// Checks that one of the host's addresses is one of this machine.
fn is_of_this_machine(text: &str) -> Result<(), std::io::Error> {
    let mut last = std::io::Error::new(std::io::ErrorKind::NotFound, "no such address");
    for mut address in text.to_socket_addrs()? {
        // Any port: whether this very one is free is seen at the start.
        address.set_port(0);
        match TcpListener::bind(address) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}
