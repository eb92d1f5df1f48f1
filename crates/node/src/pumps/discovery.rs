//! Sockets for announcements to multicast groups, over all network interfaces.
//!
//! Limits: [`WAITING_MAX`] datagrams wait for the task; further ones are dropped, as a full socket drops them. A datagram longer
//! than an announcement can be is dropped.

use super::group;
use crate::config::{DiscoverySettings, GroupAddress};
use crate::tell::Tell;
use bytes::Bytes;
use longwire_proto::discovery::sand;
use longwire_settings::error::Error;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of datagrams that wait for the task.
const WAITING_MAX: usize = 64;
/// Maximum number of interfaces.
const INTERFACES_MAX: usize = 32;

/// Datagram that was received in a group.
pub(crate) struct HeardDatagram {
    pub(crate) from: SocketAddr,
    pub(crate) bytes: Bytes,
    /// Place in the queue, until the datagram is dropped.
    _place: OwnedSemaphorePermit,
}

/// Sockets of a group.
#[derive(Debug)]
struct GroupSockets {
    group: GroupAddress,
    /// Receives in the group; for joining it on new interfaces.
    receiver: Arc<tokio::net::UdpSocket>,
    /// Sends to the group; `None` if the node only hears.
    sender: Option<UdpSocket>,
}

/// Sockets for announcements.
#[derive(Debug, Default)]
pub(crate) struct DiscoverySockets {
    groups: Vec<GroupSockets>,
    interfaces: Vec<String>,
}

impl DiscoverySockets {
    /// Opens the sockets of all groups. What they receive goes to `tell`.
    ///
    /// # Errors
    /// Fails if an address cannot be used. A machine without IPv6 has no groups of it.
    pub(crate) fn open(settings: &DiscoverySettings, tell: &Tell<HeardDatagram>) -> Result<Self, Error> {
        let places = Arc::new(Semaphore::new(WAITING_MAX));
        let mut groups = Vec::new();
        for (group, announces) in settings.all_groups() {
            let opened = group::unjoined(&group).and_then(|receiver| {
                let sender = announces.then(|| group::multicast_sender(&group)).transpose()?;
                Ok((Arc::new(receiver), sender))
            });
            let (receiver, sender) = match opened {
                Ok(sockets) => sockets,
                Err(error) if group.address.is_ipv6() && group::lacks_family(&error) => continue,
                Err(error) => {
                    return Err(Error::new(format!("cannot listen on {group} for announcements: {error}"))
                        .hint("another program may be using the port alone; `discovery.groups` sets another one"));
                }
            };
            tokio::spawn(receive(receiver.clone(), tell.clone(), places.clone()));
            groups.push(GroupSockets { group, receiver, sender });
        }
        let sockets = DiscoverySockets { groups, interfaces: settings.interfaces.clone() };
        sockets.join();
        Ok(sockets)
    }

    /// Joins the groups on interfaces that are new. Those where that fails have no address yet, and are tried again.
    fn join(&self) -> Vec<u32> {
        let names = if self.interfaces.is_empty() { present() } else { self.interfaces.clone() };
        let numbers = names.iter().filter_map(|name| group::interface_number(name).ok());
        let numbers: Vec<u32> = numbers.take(INTERFACES_MAX).collect();
        for sockets in &self.groups {
            for number in sockets.on(&numbers) {
                // It fails if the group was joined before.
                let _ = group::join(&*sockets.receiver, &sockets.group, number);
            }
        }
        numbers
    }

    /// Sends an announcement to all groups over all interfaces. Returns how many have left, and the last reason why one has not.
    pub(crate) fn announce(&self, bytes: &[u8]) -> (usize, Option<std::io::Error>) {
        let numbers = self.join();
        let (mut left, mut failure) = (0, None);
        for sockets in &self.groups {
            let Some(sender) = &sockets.sender else { continue };
            for number in sockets.on(&numbers) {
                match group::send_over(sender, &sockets.group, number, bytes) {
                    Ok(()) => left += 1,
                    Err(error) => failure = Some(error),
                }
            }
        }
        (left, failure)
    }

    /// True if the node announces itself in a group.
    pub(crate) fn announces(&self) -> bool {
        self.groups.iter().any(|sockets| sockets.sender.is_some())
    }
}

impl GroupSockets {
    /// Interfaces of the group: the one that it names, or these.
    fn on(&self, all: &[u32]) -> Vec<u32> {
        match &self.group.interface {
            Some(_) => self.group.interface_number().into_iter().collect(),
            None => all.to_vec(),
        }
    }
}

/// Names of the network interfaces of this thread's namespace, except loopback.
fn present() -> Vec<String> {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let names = table.lines().skip(2).filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    names.filter(|name| *name != "lo").map(str::to_owned).collect()
}

async fn receive(socket: Arc<tokio::net::UdpSocket>, tell: Tell<HeardDatagram>, places: Arc<Semaphore>) {
    let mut buffer = vec![0; sand::DATAGRAM_BYTES_MAX + 1];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            // An error of an earlier datagram; the socket itself stays.
            tokio::task::yield_now().await;
            continue;
        };
        if length > sand::DATAGRAM_BYTES_MAX {
            continue;
        }
        let Ok(place) = places.clone().try_acquire_owned() else { continue };
        let bytes = Bytes::copy_from_slice(&buffer[..length]);
        if !tell.tell(HeardDatagram { from, bytes, _place: place }) {
            return;
        }
    }
}
