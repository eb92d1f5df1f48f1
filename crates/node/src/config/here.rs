//! Checks of a configuration against the machine on which it is to run.

use super::{Config, DatagramListener, GroupAddress, LinkSettings, StorageKind};
use crate::storage;
use longwire_settings::error::Error;
use rustix::fs::{Access, access};
use std::net::{TcpListener, ToSocketAddrs};
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};

impl Config {
    /// Checks that a node with this configuration can start here: the store, the socket and the folders can be created; the
    /// store is of a known version; the addresses, including that for HTTP, belong to this machine; the certificates and the
    /// token can be read. Creates nothing and occupies no port.
    ///
    /// # Errors
    /// Returns the first fault.
    pub fn check_here(&self) -> Result<(), Error> {
        if self.storage.kind == StorageKind::Disk {
            can_be_made(&self.storage.path).map_err(|why| {
                Error::new(format!("cannot create the store {}: {why}", self.storage.path.display()))
                    .hint("set `storage.path` to a folder that this user can create")
            })?;
            storage::can_be_read(&self.storage.path).map_err(|error| {
                Error::new(format!("cannot open the store {}: {error}", self.storage.path.display()))
                    .hint(error.hint())
            })?;
        }
        let control = self.control();
        can_be_made(control.parent().unwrap_or(Path::new("."))).map_err(|why| {
            Error::new(format!("cannot create the socket {}: {why}", control.display()))
                .hint("set `control`; by default the socket is next to the store")
        })?;
        SocketAddr::from_pathname(&control).map_err(|why| {
            Error::new(format!("cannot create the socket {}: {why}", control.display()))
                .hint("set `control` to a path that this user can write to, shorter than 108 bytes")
        })?;
        let drops = self.drop.iter().map(|drop| &drop.folder);
        let receives = self.receive.iter().map(|receive| &receive.folder);
        for folder in drops.chain(receives).chain(&self.mail.folder) {
            can_be_made(folder).map_err(|why| {
                Error::new(format!("cannot create the folder {}: {why}", folder.display()))
                    .hint("set `folder` to a place that this user can write to")
            })?;
        }
        let heard = self.listen_udp.iter().filter_map(|text| DatagramListener::parse(text).ok()?.group());
        let groups: Vec<GroupAddress> =
            self.link.iter().filter_map(LinkSettings::group).chain(heard).collect();
        for group in &groups {
            group.interface_number().map_err(|why| {
                Error::new(format!("cannot use the group {group}: {why}"))
                    .hint("name a network interface of this machine after the %; `ip link` lists them")
            })?;
        }
        let is_group = |text: &str| GroupAddress::parse(text).is_some_and(|group| groups.contains(&group));
        for (_, text) in self.listen_addresses()?.into_iter().filter(|(_, text)| !is_group(text)) {
            is_of_this_machine(text).map_err(|why| {
                Error::new(format!("cannot listen on {text}: {why}"))
                    .hint("use 0.0.0.0:4556 or [::]:4556 for all addresses")
            })?;
        }
        for listen in self.gateway_addresses() {
            is_of_this_machine(listen).map_err(|why| {
                Error::new(format!("cannot listen for programs on {listen}: {why}"))
                    .hint("set `listen-tcp` or `listen-udp` of the [[gateway]] to an address of this machine")
            })?;
        }
        if let Some(listen) = &self.http.listen {
            is_of_this_machine(listen).map_err(|why| {
                Error::new(format!("cannot listen for HTTP on {listen}: {why}"))
                    .hint("set `http.listen` to an address of this machine, such as 127.0.0.1:8080")
            })?;
        }
        if let Some(listen) = &self.mail.listen {
            is_of_this_machine(listen).map_err(|why| {
                Error::new(format!("cannot listen for mail programs on {listen}: {why}"))
                    .hint("set `mail.listen` to an address of this machine, such as 127.0.0.1:2525")
            })?;
        }
        self.http.token()?;
        self.security().map(drop)?;
        self.credentials().map(drop)
    }

    /// Returns the paths of the files that contain keys or tokens, which other users must not be able to read: the key of the
    /// certificate, the token for HTTP, and the keys of convergence layers.
    pub fn secret_files(&self) -> Vec<PathBuf> {
        let key = self.tls.key.clone().filter(|_| self.uses_tls());
        key.into_iter().chain(self.http.token_file.clone()).chain(self.carrier_files()).collect()
    }
}

/// Checks that a folder exists or can be created, and that this user may write to it.
fn can_be_made(folder: &Path) -> Result<(), String> {
    let there =
        folder.ancestors().find(|path| path.as_os_str().is_empty() || path.symlink_metadata().is_ok());
    let there = there.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !there.is_dir() {
        return Err(format!("{} is not a folder", there.display()));
    }
    access(there, Access::WRITE_OK | Access::EXEC_OK).map_err(|why| format!("{}: {why}", there.display()))
}

/// Checks that one of the host's addresses belongs to this machine.
fn is_of_this_machine(text: &str) -> Result<(), std::io::Error> {
    let mut last = std::io::Error::new(std::io::ErrorKind::NotFound, "unknown address");
    for mut address in text.to_socket_addrs()? {
        // Port 0: startup finds out whether the configured port is free.
        address.set_port(0);
        match TcpListener::bind(address) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}
