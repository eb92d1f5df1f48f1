//! Sockets for announcements to multicast groups, over all network interfaces.
//!
//! Limits: [`WAITING_MAX`] datagrams wait for the task; further ones are dropped, as a full socket drops them. A datagram longer
//! than an announcement can be is dropped, and so is one whose sender is not [on the link](super::on_link).

use super::group;
use super::on_link::OnLink;
use crate::config::{DiscoverySettings, GroupAddress};
use crate::tell::Tell;
use bytes::Bytes;
use longwire_proto::discovery::sand;
use longwire_settings::error::Error;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

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
    /// Receive in the group, by the number of the interface; one for all of them has the number 0.
    receivers: BTreeMap<u32, Receiver>,
    /// Sends to the group; `None` if the node only hears.
    sender: Option<UdpSocket>,
}

/// Socket that receives for as long as it is there.
#[derive(Debug)]
struct Receiver {
    socket: Arc<tokio::net::UdpSocket>,
    task: AbortHandle,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Sockets for announcements.
#[derive(Debug)]
pub(crate) struct DiscoverySockets {
    groups: Vec<GroupSockets>,
    interfaces: Vec<String>,
    /// Number of interfaces beyond [`INTERFACES_MAX`].
    left_out: usize,
    tell: Tell<HeardDatagram>,
    places: Arc<Semaphore>,
}

impl DiscoverySockets {
    /// Opens the sockets of all groups. What they receive goes to `tell`.
    ///
    /// # Errors
    /// Fails if an address cannot be used. A machine without IPv6 has no groups of it.
    pub(crate) fn open(settings: &DiscoverySettings, tell: &Tell<HeardDatagram>) -> Result<Self, Error> {
        let mut sockets = DiscoverySockets {
            groups: Vec::new(),
            interfaces: settings.interfaces.clone(),
            left_out: 0,
            tell: tell.clone(),
            places: Arc::new(Semaphore::new(WAITING_MAX)),
        };
        for (group, announces) in settings.all_groups() {
            match announces.then(|| group::multicast_sender(&group)).transpose() {
                Ok(sender) => {
                    sockets.groups.push(GroupSockets { group, receivers: BTreeMap::new(), sender });
                }
                Err(error) if group.address.is_ipv6() && group::lacks_family(&error) => {}
                Err(error) => return Err(cannot_listen(&group, &error)),
            }
        }
        match sockets.join() {
            (_, Some((group, error))) => Err(cannot_listen(&group, &error)),
            _ => Ok(sockets),
        }
    }

    /// Joins the groups on interfaces that are new, and leaves those that are gone. Interfaces where that fails have no address
    /// yet, and are tried again; an address that another program has is an error. Returns the interfaces, and the last error.
    fn join(&mut self) -> (Vec<u32>, Option<(GroupAddress, io::Error)>) {
        let names = if self.interfaces.is_empty() { present() } else { self.interfaces.clone() };
        let numbers = names.iter().filter_map(|name| group::interface_number(name).ok());
        let mut numbers: Vec<u32> = numbers.collect();
        self.left_out = numbers.len().saturating_sub(INTERFACES_MAX);
        numbers.truncate(INTERFACES_MAX);
        let mut failure = None;
        let hears_itself = self.interfaces.iter().any(|name| name == "lo");
        for sockets in &mut self.groups {
            let on = sockets.on(&numbers);
            let is_of_one = group::is_of_one_interface(&sockets.group);
            let wanted = if is_of_one { on.clone() } else { vec![0] };
            sockets.receivers.retain(|number, _| wanted.contains(number));
            for number in wanted {
                if sockets.receivers.contains_key(&number) {
                    continue;
                }
                match group::unjoined(&sockets.group, number) {
                    Ok(socket) => {
                        let socket = Arc::new(socket);
                        let on_link = OnLink::new(hears_itself);
                        let receiving =
                            receive(socket.clone(), self.tell.clone(), self.places.clone(), on_link);
                        let task = tokio::spawn(receiving).abort_handle();
                        sockets.receivers.insert(number, Receiver { socket, task });
                    }
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse || !is_of_one => {
                        if !(sockets.group.address.is_ipv6() && group::lacks_family(&error)) {
                            failure = Some((sockets.group.clone(), error));
                        }
                    }
                    Err(_) => {}
                }
            }
            for number in on {
                let receiver = sockets.receivers.get(if is_of_one { &number } else { &0 });
                if let Some(Receiver { socket, .. }) = receiver {
                    // It fails if the group was joined before.
                    let _ = group::join(&**socket, &sockets.group, number);
                }
            }
        }
        (numbers, failure)
    }

    /// Sends an announcement to all groups over all interfaces. Returns how many have left, and the last reason why one has not.
    pub(crate) fn announce(&mut self, bytes: &[u8]) -> (usize, Option<io::Error>) {
        let (numbers, _) = self.join();
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

    /// Joins the groups on new interfaces, as each announcement does.
    pub(crate) fn follow_interfaces(&mut self) {
        let _ = self.join();
    }

    /// Number of interfaces beyond the most that are used.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out
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

fn cannot_listen(group: &GroupAddress, error: &io::Error) -> Error {
    Error::new(format!("cannot listen on {group} for announcements: {error}"))
        .hint("another program may be using the port alone; `discovery.groups` sets another one")
}

async fn receive(
    socket: Arc<tokio::net::UdpSocket>,
    tell: Tell<HeardDatagram>,
    places: Arc<Semaphore>,
    mut on_link: OnLink,
) {
    let mut buffer = vec![0; sand::DATAGRAM_BYTES_MAX + 1];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            // An error of an earlier datagram; the socket itself stays.
            tokio::task::yield_now().await;
            continue;
        };
        if length > sand::DATAGRAM_BYTES_MAX || !on_link.has(from.ip()) {
            continue;
        }
        let Ok(place) = places.clone().try_acquire_owned() else { continue };
        let bytes = Bytes::copy_from_slice(&buffer[..length]);
        if !tell.tell(HeardDatagram { from, bytes, _place: place }) {
            return;
        }
    }
}
