//! `smoltcp`, in virtual time over a line that loses frames.

use crate::near::{FAR, NEAR, Near, PORT, pattern};
use bytes::Bytes;
use longwire_proto::rng::Rng;
use longwire_proto::service::CloseReason;
use longwire_proto::tcp::config::Profile;
use longwire_proto::time::{Duration, Instant};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::collections::{BTreeMap, VecDeque};

const ONE_WAY: Duration = Duration::from_millis(50);
const BUFFER_BYTES: usize = 60_000;

/// Frames received for smoltcp, and frames sent by it.
#[derive(Default)]
struct Wire {
    came: VecDeque<Bytes>,
    sent: VecDeque<Bytes>,
}

struct Came(Bytes);
struct Sends<'a>(&'a mut VecDeque<Bytes>);

impl RxToken for Came {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl TxToken for Sends<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let mut bytes = vec![0; length];
        let result = f(&mut bytes);
        self.0.push_back(bytes.into());
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Came;
    type TxToken<'a> = Sends<'a>;

    fn receive(&mut self, _: smoltcp::time::Instant) -> Option<(Came, Sends<'_>)> {
        let frame = self.came.pop_front()?;
        Some((Came(frame), Sends(&mut self.sent)))
    }

    fn transmit(&mut self, _: smoltcp::time::Instant) -> Option<Sends<'_>> {
        Some(Sends(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1500;
        capabilities
    }
}

fn theirs(now: Instant) -> smoltcp::time::Instant {
    smoltcp::time::Instant::from_micros((now.as_nanos() / 1000) as i64)
}

/// smoltcp and its user, which behaves like ours.
struct Far {
    interface: Interface,
    wire: Wire,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    to_write: VecDeque<u8>,
    waits_for_peer: bool,
    received: Vec<u8>,
}

impl Far {
    fn new(to_write: Vec<u8>, waits_for_peer: bool) -> Self {
        let mut wire = Wire::default();
        let mut interface =
            Interface::new(Config::new(HardwareAddress::Ip), &mut wire, theirs(Instant::ZERO));
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(IpAddress::Ipv4(FAR), 24)).expect("there is place for one");
        });
        let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER_BYTES]);
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(tcp::Socket::new(buffer(), buffer()));
        Far {
            interface,
            wire,
            sockets,
            handle,
            to_write: to_write.into(),
            waits_for_peer,
            received: Vec::new(),
        }
    }

    fn socket(&mut self) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(self.handle)
    }

    fn listen(&mut self) {
        self.socket().listen(PORT).expect("the port is free");
    }

    fn call(&mut self) {
        let socket = self.sockets.get_mut::<tcp::Socket>(self.handle);
        socket.connect(self.interface.context(), (NEAR, PORT), 50_000).expect("it is closed");
    }

    /// Runs smoltcp and its user until both are quiet.
    fn poll(&mut self, now: Instant) -> Vec<Bytes> {
        for _ in 0..4 {
            self.interface.poll(theirs(now), &mut self.wire, &mut self.sockets);
            self.act();
        }
        self.wire.sent.drain(..).collect()
    }

    fn act(&mut self) {
        let socket = self.sockets.get_mut::<tcp::Socket>(self.handle);
        while socket.can_recv() {
            let received = &mut self.received;
            let result = socket.recv(|bytes| {
                received.extend_from_slice(bytes);
                (bytes.len(), ())
            });
            result.expect("it can receive");
        }
        while socket.can_send() && !self.to_write.is_empty() {
            let taken = socket.send_slice(self.to_write.make_contiguous()).expect("it can send");
            self.to_write.drain(..taken);
        }
        let peer_done = !socket.may_recv() && socket.state() != tcp::State::SynSent;
        let open = matches!(socket.state(), tcp::State::Established | tcp::State::CloseWait);
        if open && self.to_write.is_empty() && (peer_done || !self.waits_for_peer) {
            socket.close();
        }
    }

    fn next(&mut self, now: Instant) -> Option<Instant> {
        let at = self.interface.poll_at(theirs(now), &self.sockets)?;
        Some(Instant::from_nanos(at.total_micros() as u64 * 1000).max(now))
    }
}

/// Both sides, and the line between them.
struct World {
    now: Instant,
    near: Near,
    far: Far,
    rng: Rng,
    loss: f64,
    /// Frames in flight; true for those to smoltcp.
    under_way: BTreeMap<(Instant, u64), (bool, Bytes)>,
    count: u64,
    lost: u64,
}

impl World {
    fn new(near: Near, far: Far, loss: f64, seed: u64) -> Self {
        let rng = Rng::new(seed);
        World { now: Instant::ZERO, near, far, rng, loss, under_way: BTreeMap::new(), count: 0, lost: 0 }
    }

    fn settle(&mut self) {
        let ours = self.near.poll(self.now).into_iter().map(|frame| (true, frame));
        let theirs = self.far.poll(self.now).into_iter().map(|frame| (false, frame));
        for (place, (for_far, frame)) in ours.chain(theirs).enumerate() {
            if self.rng.chance(self.loss) {
                self.lost += 1;
                continue;
            }
            // One microsecond per frame: the line keeps their order.
            self.count += 1;
            let arrival = self.now + ONE_WAY + Duration::from_micros(place as u64);
            self.under_way.insert((arrival, self.count), (for_far, frame));
        }
    }

    /// Runs until the condition holds.
    fn run_until(&mut self, limit: Instant, condition: impl Fn(&mut World) -> bool) {
        self.settle();
        while !condition(self) {
            let frame = self.under_way.keys().next().map(|(at, _)| *at);
            let far = self.far.next(self.now);
            let next = [frame, self.near.next(), far].into_iter().flatten().min();
            // smoltcp may request an immediate poll without having anything to send; time advances in any case.
            self.now = next.expect("something is still to happen").max(self.now + Duration::from_nanos(1000));
            assert!(self.now < limit, "not done at {limit}");
            while let Some(((at, _), _)) = self.under_way.first_key_value()
                && *at <= self.now
            {
                let (_, (for_far, frame)) = self.under_way.pop_first().expect("there is one");
                if for_far {
                    self.far.wire.came.push_back(frame);
                } else {
                    self.near.hear(self.now, frame);
                }
            }
            self.near.wake(self.now);
            self.settle();
        }
    }
}

fn profiles() -> Vec<Profile> {
    Profile::NAMES.iter().map(|name| Profile::named(name).expect("it is a name")).collect()
}

/// Both sides write a file and close; either side connects.
fn exchange(profile: Profile, near_calls: bool, loss: f64, seed: u64) {
    let (ours, theirs) = (pattern(150_000), pattern(90_000));
    let near = Near::new(profile, ours.clone(), false);
    let far = Far::new(theirs.clone(), true);
    let mut world = World::new(near, far, loss, seed);
    if near_calls {
        world.far.listen();
        world.near.call(Instant::ZERO);
    } else {
        world.far.call();
    }
    world.run_until(Instant::from_secs(2000), |world| world.near.closed.is_some());
    assert_eq!(world.near.closed, Some(CloseReason::Finished));
    assert!(world.near.received == theirs, "what smoltcp wrote arrived whole");
    assert!(world.far.received == ours, "what we wrote arrived whole");
    assert_eq!(world.lost > 0, loss > 0.0);
    world.run_until(Instant::from_secs(4000), |world| {
        matches!(world.far.socket().state(), tcp::State::Closed | tcp::State::TimeWait)
    });
}

#[test]
fn files_both_ways_whoever_calls() {
    for profile in profiles() {
        for near_calls in [true, false] {
            exchange(profile.clone(), near_calls, 0.0, 1);
        }
    }
}

#[test]
fn files_both_ways_over_a_line_that_loses_frames() {
    for profile in profiles() {
        for seed in 0..8 {
            exchange(profile.clone(), seed % 2 == 0, 0.05, seed);
        }
    }
}

#[test]
fn smoltcp_closes_first() {
    let near = Near::new(Profile::rfc5681(), pattern(10_000), true);
    let mut world = World::new(near, Far::new(pattern(10_000), false), 0.0, 1);
    world.far.listen();
    world.near.call(Instant::ZERO);
    world.run_until(Instant::from_secs(60), |world| world.near.closed.is_some());
    assert_eq!(world.near.closed, Some(CloseReason::Finished));
    assert!(world.near.received == pattern(10_000) && world.far.received == pattern(10_000));
}

#[test]
fn resets_are_understood_both_ways() {
    let connect = || {
        let near = Near::new(Profile::linux_6(), Vec::new(), true);
        let mut world = World::new(near, Far::new(Vec::new(), true), 0.0, 1);
        world.far.listen();
        world.near.call(Instant::ZERO);
        world.run_until(Instant::from_secs(5), |world| {
            world.near.connected && world.far.socket().state() == tcp::State::Established
        });
        world
    };
    let mut world = connect();
    world.far.socket().abort();
    world.run_until(Instant::from_secs(10), |world| world.near.closed.is_some());
    assert_eq!(world.near.closed, Some(CloseReason::Reset));

    let mut world = connect();
    let now = world.now;
    world.near.abort(now);
    world.run_until(Instant::from_secs(10), |world| world.far.socket().state() == tcp::State::Closed);
    assert_eq!(world.near.closed, Some(CloseReason::Aborted));
}

#[test]
fn where_smoltcp_does_not_listen_it_refuses() {
    let near = Near::new(Profile::rfc5681(), Vec::new(), false);
    let mut world = World::new(near, Far::new(Vec::new(), false), 0.0, 1);
    world.near.call(Instant::ZERO);
    world.run_until(Instant::from_secs(5), |world| world.near.closed.is_some());
    assert_eq!(world.near.closed, Some(CloseReason::Refused));
}
