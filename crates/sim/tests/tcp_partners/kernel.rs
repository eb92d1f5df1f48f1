//! The Linux kernel, over a TUN device in its own network namespace.
//!
//! Needs the permission to create both; without it the test prints a message and passes. One thread drives everything
//! and waits only in `poll`, with a deadline.

#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "the kernel lives in real time")]

use crate::near::{FAR, NEAR, Near, PORT, pattern};
use bytes::Bytes;
use longwire_proto::rng::Rng;
use longwire_proto::service::CloseReason;
use longwire_proto::tcp::config::Profile;
use longwire_proto::time::Instant;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, accept4, bind, connect, listen, setsockopt, socket,
    sockopt,
};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant as Clock};

/// A test case without any frame for this long is stalled.
const QUIET_MAX: Duration = Duration::from_secs(240);
const DEVICE: &str = "longwire0";
/// `struct ifreq` of the kernel: the name, then the flags of `TUNSETIFF` (a TUN device, frames without a header).
const NAME_BYTES: usize = 16;
const IFF_TUN_NO_PI: u16 = 0x1001;

#[repr(C)]
struct InterfaceRequest {
    name: [u8; NAME_BYTES],
    flags: u16,
    rest: [u8; 22],
}

nix::ioctl_write_ptr_bad!(
    set_interface,
    nix::request_code_write!(b'T', 202, size_of::<i32>()),
    InterfaceRequest
);

/// Gives the calling thread its own network namespace with a TUN device.
pub(crate) fn own_network() -> Result<File, String> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|error| format!("no network namespace: {error}"))?;
    let flags = OFlag::O_RDWR | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let device = nix::fcntl::open("/dev/net/tun", flags, nix::sys::stat::Mode::empty())
        .map_err(|error| format!("no /dev/net/tun: {error}"))?;
    let mut request = InterfaceRequest { name: [0; NAME_BYTES], flags: IFF_TUN_NO_PI, rest: [0; 22] };
    request.name[..DEVICE.len()].copy_from_slice(DEVICE.as_bytes());
    // SAFETY: the request is a complete `struct ifreq`, lives through the call, and the kernel only reads it.
    unsafe { set_interface(device.as_raw_fd(), &request) }
        .map_err(|error| format!("no TUN device: {error}"))?;
    // Router solicitations of the kernel would be unexpected frames.
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    ip(&["address", "add", &format!("{FAR}/24"), "dev", DEVICE])?;
    ip(&["link", "set", DEVICE, "up"])?;
    Ok(device.into())
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("no ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

/// Side of the kernel: a socket, and a user that behaves like ours.
pub(crate) struct Far {
    listener: Option<OwnedFd>,
    pub(crate) stream: Option<TcpStream>,
    to_write: Vec<u8>,
    written: usize,
    waits_for_peer: bool,
    pub(crate) peer_done: bool,
    closed: bool,
    received: Vec<u8>,
    failed: Option<ErrorKind>,
}

impl Far {
    pub(crate) fn new(to_write: Vec<u8>, waits_for_peer: bool) -> Self {
        Far {
            listener: None,
            stream: None,
            to_write,
            written: 0,
            waits_for_peer,
            peer_done: false,
            closed: false,
            received: Vec::new(),
            failed: None,
        }
    }

    fn socket() -> OwnedFd {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(AddressFamily::Inet, SockType::Stream, flags, None).expect("a socket");
        // The default depends on the system; every kernel has reno.
        setsockopt(&fd, sockopt::TcpCongestion, &"reno".into()).expect("reno is there");
        fd
    }

    fn listen(&mut self) {
        let fd = Far::socket();
        let address = SockaddrIn::from(std::net::SocketAddrV4::new(FAR, PORT));
        bind(fd.as_raw_fd(), &address).expect("the address is ours");
        listen(&fd, nix::sys::socket::Backlog::new(4).expect("4 is allowed")).expect("it is bound");
        self.listener = Some(fd);
    }

    pub(crate) fn call(&mut self) {
        let fd = Far::socket();
        let address = SockaddrIn::from(std::net::SocketAddrV4::new(NEAR, PORT));
        let result = connect(fd.as_raw_fd(), &address);
        assert_eq!(result, Err(nix::errno::Errno::EINPROGRESS), "it takes its time");
        self.stream = Some(fd.into());
    }

    /// Does everything that is possible without waiting.
    pub(crate) fn act(&mut self) {
        if let (Some(listener), None) = (&self.listener, &self.stream) {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            if let Ok(fd) = accept4(listener.as_raw_fd(), flags) {
                // SAFETY: `accept4` has just created this descriptor, and it has no other owner.
                self.stream = Some(unsafe { OwnedFd::from_raw_fd(fd) }.into());
            }
        }
        let Some(stream) = &mut self.stream else { return };
        let mut buffer = [0; 65_536];
        while !self.peer_done && self.failed.is_none() {
            match stream.read(&mut buffer) {
                Ok(0) => self.peer_done = true,
                Ok(length) => self.received.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => self.failed = Some(error.kind()),
            }
        }
        while self.written < self.to_write.len() && self.failed.is_none() {
            match stream.write(&self.to_write[self.written..]) {
                Ok(length) => self.written += length,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    break;
                }
                Err(error) => self.failed = Some(error.kind()),
            }
        }
        let done = self.written == self.to_write.len() && (self.peer_done || !self.waits_for_peer);
        if done && !self.closed && stream.shutdown(std::net::Shutdown::Write).is_ok() {
            self.closed = true;
        }
    }
}

/// Both sides, and the TUN device between them, which loses frames as configured.
struct World {
    device: File,
    near: Near,
    far: Far,
    start: Clock,
    /// Time of the last frame in either direction.
    last_frame: Clock,
    rng: Rng,
    loss: f64,
    /// Lost frames with data from our side.
    lost: u64,
}

impl World {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// Runs until the condition holds.
    fn run_until(&mut self, condition: impl Fn(&World) -> bool) {
        loop {
            let now = self.now();
            self.near.wake(now);
            self.take_frames(now);
            for frame in self.near.poll(now) {
                self.last_frame = Clock::now();
                if self.rng.chance(self.loss) {
                    self.lost += u64::from(has_data(&frame));
                } else {
                    let written = self.device.write(&frame).expect("the kernel takes packets");
                    assert_eq!(written, frame.len());
                }
            }
            self.far.act();
            if condition(self) {
                return;
            }
            assert!(self.last_frame.elapsed() < QUIET_MAX, "nothing happens any more: {}", self.state());
            self.wait();
        }
    }

    /// Returns the progress of both sides, for a stalled test case.
    fn state(&self) -> String {
        let World { near, far, lost, .. } = self;
        format!(
            "we are connected: {}, have received {} bytes, and are closed: {:?}; the kernel has received {} bytes and written {} of \
             {}, and failed: {:?}; {lost} frames of ours were lost; {:?}",
            near.connected,
            near.received.len(),
            near.closed,
            far.received.len(),
            far.written,
            far.to_write.len(),
            far.failed,
            near.counters
        )
    }

    fn take_frames(&mut self, now: Instant) {
        let mut buffer = [0; 2048];
        loop {
            let read = self.device.read(&mut buffer);
            if read.is_ok() {
                self.last_frame = Clock::now();
            }
            match read {
                Ok(length) if self.rng.chance(self.loss) => assert!(length > 0),
                Ok(length) => self.near.hear(now, Bytes::copy_from_slice(&buffer[..length])),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("the TUN device: {error}"),
            }
        }
    }

    /// Waits until the kernel has a frame or a deadline of ours has come.
    fn wait(&self) {
        let deadline =
            self.near.next().map_or(QUIET_MAX, |at| at.saturating_since(self.now())).min(QUIET_MAX);
        let mut fds = vec![PollFd::new(self.device.as_fd(), PollFlags::POLLIN)];
        if let Some(listener) = self.far.listener.as_ref().filter(|_| self.far.stream.is_none()) {
            fds.push(PollFd::new(listener.as_fd(), PollFlags::POLLIN));
        }
        if let Some(stream) = self.far.stream.as_ref().filter(|_| !self.far.peer_done) {
            let mut flags = PollFlags::POLLIN;
            if self.far.written < self.far.to_write.len() {
                flags |= PollFlags::POLLOUT;
            }
            fds.push(PollFd::new(stream.as_fd(), flags));
        }
        // Rounded up, because a deadline in the near future would otherwise be polled repeatedly.
        let timeout = u16::try_from(deadline.as_millis() + 1).unwrap_or(u16::MAX);
        poll(&mut fds, PollTimeout::from(timeout)).expect("poll waits");
    }
}

/// True for a TCP segment with data in an IPv4 packet.
fn has_data(packet: &[u8]) -> bool {
    let header = usize::from(packet[0] & 15) * 4;
    packet.len() > header + usize::from(packet[header + 12] >> 4) * 4
}

/// Runs a test case in a thread with its own network namespace.
fn with_kernel(near: Near, far: Far, loss: f64, story: impl FnOnce(&mut World) + Send + 'static) {
    let told = std::thread::spawn(move || {
        let device = match own_network() {
            Ok(device) => device,
            Err(reason) => {
                eprintln!("skipped: no TCP against the kernel here: {reason}");
                return;
            }
        };
        let start = Clock::now();
        story(&mut World { device, near, far, start, last_frame: start, rng: Rng::new(5), loss, lost: 0 });
    });
    told.join().expect("the story ends well");
}

/// Both sides write a file and close; either side connects.
fn exchange(profile: Profile, near_calls: bool, loss: f64) {
    let (ours, theirs) = (pattern(300_000), pattern(200_000));
    let near = Near::new(profile, ours.clone(), false);
    let far = Far::new(theirs.clone(), true);
    with_kernel(near, far, loss, move |world| {
        if near_calls {
            world.far.listen();
            world.near.call(Instant::ZERO);
        } else {
            world.far.call();
        }
        world.run_until(|world| world.near.closed.is_some() && world.far.peer_done);
        assert_eq!(world.near.closed, Some(CloseReason::Finished));
        assert!(world.near.received == theirs, "what the kernel wrote arrived whole");
        assert!(world.far.received == ours, "what we wrote arrived whole");
        assert_eq!(world.far.failed, None);
        let counters = world.near.counters;
        assert!(counters.retransmissions > 0 || world.lost == 0, "what was lost came again: {counters:?}");
        // Without loss only a timer causes a retransmission: it runs in real time, and a busy machine may be late.
        assert!(counters.retransmissions == 0 || loss > 0.0 || counters.timeouts > 0, "{counters:?}");
    });
}

#[test]
fn files_both_ways_whoever_calls() {
    for name in Profile::NAMES {
        for near_calls in [true, false] {
            exchange(Profile::named(name).expect("it is a name"), near_calls, 0.0);
        }
    }
}

#[test]
fn files_both_ways_over_a_line_that_loses_frames() {
    let presets = [
        Profile::linux_6(),
        Profile::linux_6_cubic(),
        Profile::linux_2_6(),
        Profile::linux_2_4(),
        Profile::rfc5681(),
    ];
    for profile in presets {
        // A second for each timeout would make the test slow.
        let hasty = Profile { rto_minimum: std::time::Duration::from_millis(200), ..profile };
        exchange(hasty, true, 0.03);
    }
}

#[test]
fn the_kernel_closes_first() {
    let near = Near::new(Profile::linux_6(), pattern(50_000), true);
    with_kernel(near, Far::new(pattern(50_000), false), 0.0, |world| {
        world.far.call();
        world.run_until(|world| world.near.closed.is_some() && world.far.peer_done);
        assert_eq!(world.near.closed, Some(CloseReason::Finished));
        assert!(world.near.received == pattern(50_000) && world.far.received == pattern(50_000));
    });
}

#[test]
fn resets_are_understood_both_ways() {
    let near = || Near::new(Profile::linux_6(), Vec::new(), true);
    with_kernel(near(), Far::new(Vec::new(), true), 0.0, |world| {
        world.far.listen();
        world.near.call(Instant::ZERO);
        world.run_until(|world| world.near.connected && world.far.stream.is_some());
        let now = world.now();
        world.near.abort(now);
        world.run_until(|world| world.far.failed.is_some());
        assert_eq!(world.far.failed, Some(ErrorKind::ConnectionReset));
        assert_eq!(world.near.closed, Some(CloseReason::Aborted));
    });
    with_kernel(near(), Far::new(Vec::new(), true), 0.0, |world| {
        world.far.listen();
        world.near.call(Instant::ZERO);
        world.run_until(|world| world.near.connected && world.far.stream.is_some());
        // With a linger time of zero the kernel sends a reset instead of closing the connection properly.
        let stream = world.far.stream.take().expect("it is connected");
        let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        setsockopt(&stream, sockopt::Linger, &linger).expect("it is a socket");
        world.far.listener = None;
        drop(stream);
        world.run_until(|world| world.near.closed.is_some());
        assert_eq!(world.near.closed, Some(CloseReason::Reset));
    });
}

#[test]
fn where_the_kernel_does_not_listen_it_refuses() {
    let near = Near::new(Profile::rfc5681(), Vec::new(), false);
    with_kernel(near, Far::new(Vec::new(), false), 0.0, |world| {
        world.near.call(Instant::ZERO);
        world.run_until(|world| world.near.closed.is_some());
        assert_eq!(world.near.closed, Some(CloseReason::Refused));
    });
}
