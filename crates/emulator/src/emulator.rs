//! The loop between ports and path.

use crate::kiss::KissPort;
use crate::lateness::{Lateness, LatenessFigures};
use crate::port::{Next, Port};
use crate::tun::TunPort;
use crate::udp::{UdpPlace, UdpPort};
use longwire_lab::emulation::EmulatedPath;
use longwire_lab::link::LinkPath;
use longwire_proto::time::{Duration, Instant};
use longwire_settings::error::Error;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant as Clock;

/// Addresses of the two ends on the emulated link.
pub(crate) const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 64, 0, 1), Ipv4Addr::new(10, 64, 0, 2)];
/// Name of the TUN devices; each is in a namespace of its own.
const DEVICE: &str = "longwire0";
/// Maximum time between two looks at the flag that ends the emulation.
const LOOK: Duration = Duration::from_millis(50);
/// Packets of one port before the other one has its turn.
const TURN_PACKETS: u32 = 64;

/// Ports of an emulated path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ports {
    /// TUN devices in two network namespaces, by their names or paths.
    Tun([String; 2]),
    /// Two UDP ports.
    Udp([UdpPlace; 2]),
    /// Controllers (TNCs) in KISS mode over TCP, by their addresses, on one radio channel.
    Kiss(Vec<SocketAddr>),
}

/// A path that follows the clock, with its ports.
pub struct Emulator {
    path: EmulatedPath,
    ports: Vec<Box<dyn Port>>,
    places: Vec<String>,
    addresses: Vec<SocketAddr>,
    sent: Vec<u64>,
    delivered: Vec<u64>,
    lateness: Lateness,
}

/// Counters of one end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EndReport {
    /// The end, in words.
    pub place: String,
    /// Packets of its program that the link took.
    pub sent: u64,
    /// Packets for its program that arrived.
    pub arrived: u64,
    /// Packets that the program did not take, or that did not fit the link.
    pub refused: u64,
}

/// Results of an emulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EmulationReport {
    /// Duration, seconds.
    pub elapsed_s: f64,
    /// Ends.
    pub ends: Vec<EndReport>,
    /// Lateness of all packets that arrived.
    pub lateness: LatenessFigures,
}

impl Emulator {
    /// Opens the ports. The seed determines bit errors and random outages.
    ///
    /// # Errors
    /// Fails if a port cannot be opened, or the ports do not suit the link; with a hint.
    pub fn open(link: &LinkPath, ports: &Ports, seed: u64) -> Result<Emulator, Error> {
        let path = match ports {
            Ports::Kiss(places) => match &link.hops[..] {
                [hop] => EmulatedPath::radio(hop, places.len(), seed)?,
                _ => return Err(Error::new("a path of several links has no radio channel")),
            },
            Ports::Tun(_) | Ports::Udp(_) if link.is_radio() => {
                return Err(Error::new("a radio channel carries frames of AX.25, not packets of IP")
                    .hint("use --kiss, and connect programs to it as to a TNC"));
            }
            Ports::Tun(_) | Ports::Udp(_) => EmulatedPath::new(link, ADDRESSES, seed)?,
        };
        let bytes_max = path.packet_bytes_max();
        let [here, there] = ADDRESSES;
        let mut opened: Vec<(Box<dyn Port>, String)> = Vec::new();
        let mut addresses = Vec::new();
        match ports {
            Ports::Tun(namespaces) => {
                for (namespace, address) in namespaces.iter().zip(ADDRESSES) {
                    let port = TunPort::open(namespace, DEVICE, address, bytes_max.min(65_535) as u16)?;
                    opened.push((Box::new(port), format!("{address} ({DEVICE} in namespace {namespace})")));
                }
            }
            Ports::Udp(places) => {
                for (place, addresses_of) in places.iter().zip([[here, there], [there, here]]) {
                    let port = UdpPort::open(*place, addresses_of, bytes_max)?;
                    let address = port.address().map_err(|error| Error::new(error.to_string()))?;
                    addresses.push(address);
                    opened.push((Box::new(port), format!("UDP port {address}")));
                }
            }
            Ports::Kiss(places) => {
                for place in places {
                    let port = KissPort::open(*place, bytes_max)?;
                    let address = port.address().map_err(|error| Error::new(error.to_string()))?;
                    addresses.push(address);
                    opened.push((Box::new(port), format!("KISS over TCP port {address}")));
                }
            }
        }
        let (ports, places): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
        let count = ports.len();
        let (sent, delivered) = (vec![0; count], vec![0; count]);
        Ok(Emulator { path, ports, places, addresses, sent, delivered, lateness: Lateness::default() })
    }

    /// The ends, in words.
    pub fn places(&self) -> &[String] {
        &self.places
    }

    /// Addresses of UDP ports or controllers, also where the system has chosen the port.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Sets the addresses of the programs beside UDP ports, which may not be known before the ports are; other ports have none.
    /// As with [`UdpPlace::program`], packets go there, and its host alone may send.
    pub fn programs_are(&mut self, addresses: [SocketAddr; 2]) {
        for (port, address) in self.ports.iter_mut().zip(addresses) {
            port.program_is(address);
        }
    }

    /// Carries packets until the flag is set, or the time is over.
    ///
    /// # Errors
    /// Fails if the system cannot wait for the ports.
    pub fn run(&mut self, stop: &AtomicBool, time: Option<Duration>) -> Result<EmulationReport, Error> {
        let began = Clock::now();
        let start = self.path.now();
        let now = || start + began.elapsed();
        let end = time.map(|time| start + time);
        while !stop.load(Ordering::Relaxed) && end.is_none_or(|end| now() < end) {
            self.turn(&now)?;
            self.wait(end, &now)?;
        }
        Ok(self.report(began.elapsed()))
    }

    /// Does everything that is possible without waiting.
    fn turn(&mut self, now: &impl Fn() -> Instant) -> Result<(), Error> {
        self.path.advance(now());
        self.pass_on(now);
        for end in 0..self.ports.len() {
            self.ports[end].maintain();
            for _ in 0..TURN_PACKETS {
                // The outage of a link can end the room.
                self.path.advance(now());
                self.pass_on(now);
                if self.path.room(end) == 0 {
                    break;
                }
                match self.ports[end].next() {
                    Next::Packet(packet) => {
                        self.sent[end] += 1;
                        self.path.send(end, packet.bytes, packet.token);
                    }
                    Next::Refused => {}
                    Next::Empty => break,
                    Next::Gone(error) => {
                        return Err(Error::new(format!("{} has gone: {error}", self.places[end])));
                    }
                }
            }
        }
        Ok(())
    }

    /// Passes on what has arrived.
    fn pass_on(&mut self, now: &impl Fn() -> Instant) {
        while let Some((end, token)) = self.path.pop_left() {
            self.ports[end].has_left(token);
        }
        while let Some(arrival) = self.path.pop_arrival() {
            self.ports[arrival.end].deliver(arrival.bytes);
            self.delivered[arrival.end] += 1;
            self.lateness.record(now().saturating_since(arrival.at));
        }
    }

    /// Waits until a program has a packet that the path can take, or something happens on the path.
    fn wait(&self, end: Option<Instant>, now: &impl Fn() -> Instant) -> Result<(), Error> {
        let next = [self.path.next_event_at(), end].into_iter().flatten().min();
        let now = now();
        let left = next.map_or(LOOK, |next| next.saturating_since(now)).min(LOOK);
        let mut list: Vec<PollFd<'_>> = Vec::new();
        let mut left = left;
        for (end, port) in self.ports.iter().enumerate() {
            let has_room = self.path.room(end) > 0;
            port.wait_for(has_room, &mut list);
            if has_room && port.holds_packets() {
                left = Duration::ZERO;
            }
        }
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut list, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(Error::new(format!("the emulated link stopped: {error}"))),
        }
    }

    fn report(&self, elapsed: Duration) -> EmulationReport {
        let end = |end: usize| EndReport {
            place: self.places[end].clone(),
            sent: self.sent[end],
            arrived: self.delivered[end],
            refused: self.ports[end].refused(),
        };
        EmulationReport {
            elapsed_s: elapsed.as_secs_f64(),
            ends: (0..self.ports.len()).map(end).collect(),
            lateness: self.lateness.figures(),
        }
    }
}
