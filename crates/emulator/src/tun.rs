//! TUN devices in network namespaces.

use crate::port::{Next, Outgoing, Port};
use bytes::Bytes;
use longwire_settings::error::Error;
use rustix::event::{PollFd, PollFlags};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use tun_rs::{DeviceBuilder, SyncDevice};

/// Folder of the namespaces that `ip netns add` makes.
const NAMESPACES: &str = "/run/netns";
/// Length of the network of both ends, bits.
const PREFIX_BITS: u8 = 30;

/// IP packets of a TUN device.
pub(crate) struct TunPort {
    device: SyncDevice,
    buffer: Box<[u8]>,
    refused: u64,
}

impl TunPort {
    /// Makes a device of this name in a namespace, with this address, and turns it on.
    pub(crate) fn open(
        namespace: &str,
        name: &str,
        address: Ipv4Addr,
        packet_bytes_max: u16,
    ) -> Result<TunPort, Error> {
        let place = path_of(namespace);
        let file = File::open(&place).map_err(|error| {
            let what = format!("no network namespace `{namespace}`: {}: {error}", place.display());
            Error::new(what).hint(format!("make it as root: ip netns add {namespace}"))
        })?;
        let device_name = name.to_owned();
        // A namespace belongs to a thread: this one ends with it.
        let opened =
            std::thread::spawn(move || open_in(&file, &device_name, address, packet_bytes_max)).join();
        let device = opened.expect("the thread does not panic").map_err(|error| {
            let what = format!("no TUN device `{name}` in namespace `{namespace}`: {error}");
            Error::new(what).hint(
                "this needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN) and the module tun: modprobe tun; without them use --udp",
            )
        })?;
        let buffer = vec![0; usize::from(packet_bytes_max) + 1].into();
        Ok(TunPort { device, buffer, refused: 0 })
    }
}

/// Path of a namespace: its name, or a path with a slash, such as `/proc/PID/ns/net`.
fn path_of(namespace: &str) -> PathBuf {
    if namespace.contains('/') { namespace.into() } else { Path::new(NAMESPACES).join(namespace) }
}

fn open_in(
    namespace: &File,
    name: &str,
    address: Ipv4Addr,
    packet_bytes_max: u16,
) -> std::io::Result<SyncDevice> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
    let builder = DeviceBuilder::new().name(name).ipv4(address, PREFIX_BITS, None).mtu(packet_bytes_max);
    let device = builder.enable(false).build_sync()?;
    // Router solicitations and neighbour discovery of the kernel would be traffic that nobody asked for.
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
    device.enabled(true)?;
    device.set_nonblocking(true)?;
    Ok(device)
}

impl Port for TunPort {
    fn wait_for<'a>(&'a self, has_room: bool, list: &mut Vec<PollFd<'a>>) {
        if has_room {
            list.push(PollFd::new(&self.device, PollFlags::IN));
        }
    }

    fn next(&mut self) -> Next {
        match self.device.recv(&mut self.buffer) {
            Ok(length) => {
                Next::Packet(Outgoing { bytes: Bytes::copy_from_slice(&self.buffer[..length]), token: None })
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Next::Empty
            }
            Err(error) => Next::Gone(error),
        }
    }

    fn deliver(&mut self, bytes: Bytes) {
        // A damaged packet may not even be one.
        if self.device.send(&bytes).is_err() {
            self.refused += 1;
        }
    }

    fn refused(&self) -> u64 {
        self.refused
    }
}
