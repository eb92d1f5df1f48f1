//! Throughput of the event loop on one core, in events per second. Prints the result; the target is 2 million.

#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark measures real time")]

use bytes::Bytes;
use longwire_proto::engine::{Engine, Service, no_timers};
use longwire_proto::joint::{Beside, PassThrough};
use longwire_proto::service::{
    Both, FramesIndication, FramesRequest, InterfaceId, LinkId, Many, Port, Shares, Storage,
    StorageIndication, StorageRequest, Stream, StreamIndication, StreamRequest,
};
use longwire_proto::tcp::Host;
use longwire_proto::tcp::config::{HostConfig, InterfaceConfig, PeerConfig};
use longwire_proto::time::Instant;
use longwire_sim::*;
use std::net::Ipv4Addr;

/// Request of the user: only the first frame.
enum Serve {}

impl Service for Serve {
    type Request = Bytes;
    type Indication = ();
}

/// Returns every received frame to its sender.
#[derive(Default)]
struct Player {
    joined: bool,
    room: u32,
    ball: Option<Bytes>,
}

impl Engine for Player {
    type Above = Serve;
    type Below = NodeBelow;

    no_timers!();

    fn handle_request(&mut self, _now: Instant, ball: Bytes) {
        self.ball = Some(ball);
    }

    fn handle_indication(
        &mut self,
        _now: Instant,
        indication: Port<StorageIndication, (InterfaceId, FramesIndication)>,
    ) {
        match indication {
            Port::Second((_, FramesIndication::Room(room))) => self.room = room,
            Port::Second((_, FramesIndication::Frame(ball))) => self.ball = Some(ball),
            _ => {}
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<()> {
        None
    }

    fn poll_request(&mut self, _now: Instant) -> Option<Port<StorageRequest, (InterfaceId, FramesRequest)>> {
        if !core::mem::replace(&mut self.joined, true) {
            return Some(Port::Second((InterfaceId(0), FramesRequest::Join)));
        }
        if self.room == 0 {
            return None;
        }
        let bytes = self.ball.take()?;
        self.room -= 1;
        let frame = FramesRequest::Frame { bytes, token: None, last: true, shares: Shares::default() };
        Some(Port::Second((InterfaceId(0), frame)))
    }
}

fn ping_pong(name: &str, pairs: u16, errors: Errors) {
    let line =
        LineConfig { rate_bps: 1_000_000, delay: Delay::constant_ms(1), errors, ..LineConfig::default() };
    let mut world: Simulation<Serve> = Simulation::new(1);
    for pair in 0..pairs {
        let [a, b] =
            ["a", "b"].map(|side| world.add_node(&format!("{side}{pair}"), |_| Box::new(Player::default())));
        let at = InterfaceId(0);
        world.add_channel((a, at), (b, at), ChannelConfig::symmetric(line.clone()));
        world.request(a, Bytes::from_static(&[0; 1000]));
        world.request(b, Bytes::from_static(&[1; 1000]));
    }
    measure(name, &mut world, |world| world.events() < 4_000_000);
}

/// Runs while `more` holds, and prints the throughput.
fn measure<A: Service>(name: &str, world: &mut Simulation<A>, mut more: impl FnMut(&Simulation<A>) -> bool) {
    let start = std::time::Instant::now();
    world.run_while(Instant::FAR_FUTURE, |world| more(world));
    print_rate(name, world.events(), start.elapsed().as_secs_f64());
}

const FILE_BYTES: u64 = 1_000_000;
const LINK: LinkId = LinkId(0);

fn host(number: u8, other: u8, boot: &Boot) -> NodeEngine<Tcp> {
    let address = |number| Ipv4Addr::new(10, 0, 0, number);
    let config = HostConfig {
        interfaces: vec![InterfaceConfig { address: address(number), ..InterfaceConfig::default() }],
        listen: vec![4556],
        peers: vec![PeerConfig { link: LINK, address: address(other), port: 4556 }],
        ..HostConfig::default()
    };
    let host = Host::new(config, boot.rng.fork("tcp"));
    Box::new(Beside { first: PassThrough::<Storage>::new(), second: host })
}

type Tcp = Both<Storage, Many<LinkId, Stream>>;

/// Transfers a file of 1 MB over TCP from the Moon to the Earth: 115,200 bit/s, 2 s one way, a bit-error rate of 1e-6.
fn cislunar(runs: u64) {
    let (mut events, mut seconds) = (0, 0.0);
    let start = std::time::Instant::now();
    for seed in 0..runs {
        let mut world: Simulation<Tcp> = Simulation::new(seed);
        let line = LineConfig {
            rate_bps: 115_200,
            delay: Delay::constant_ms(2000),
            errors: Errors::Ber(1e-6),
            queue_bytes: 64_000,
            ..LineConfig::default()
        };
        let [moon, earth] = [("moon", 1, 2), ("earth", 2, 1)]
            .map(|(name, number, other)| world.add_node(name, move |boot| host(number, other, &boot)));
        let at = InterfaceId(0);
        world.add_channel((moon, at), (earth, at), ChannelConfig::symmetric(line));
        world.request(moon, Port::Second((LINK, StreamRequest::Connect)));
        let (mut written, mut arrived) = (0, 0);
        world.run_while(Instant::from_secs(100_000), |world| {
            while let Some((_, node, said)) = world.pop_indication() {
                let Port::Second((link, said)) = said else { continue };
                let request = match said {
                    StreamIndication::Room(room) if node == moon && room > 0 && written < FILE_BYTES => {
                        let length = room.min(FILE_BYTES - written).min(16_384);
                        written += length;
                        StreamRequest::Write(vec![7; length as usize].into())
                    }
                    StreamIndication::Data(data) => {
                        arrived += data.len() as u64;
                        StreamRequest::Release(data.len() as u64)
                    }
                    _ => continue,
                };
                world.request(node, Port::Second((link, request)));
            }
            arrived < FILE_BYTES
        });
        assert_eq!(arrived, FILE_BYTES, "the file arrived\n{}", world.status());
        events += world.events();
        seconds += world.now().as_secs_f64();
    }
    print_rate("1 MB over TCP, cislunar", events, start.elapsed().as_secs_f64());
    let (wall, mean) = (start.elapsed().as_secs_f64() / runs as f64, seconds / runs as f64);
    println!("    {runs} runs: {mean:.1} s of virtual time in {:.2} ms each", wall * 1e3);
}

fn print_rate(name: &str, events: u64, seconds: f64) {
    let rate = events as f64 / seconds / 1e6;
    println!("{name:42} {events:>9} events  {seconds:7.3} s  {rate:6.2} million events/s");
}

fn main() {
    ping_pong("ping-pong, one pair", 1, Errors::None);
    ping_pong("ping-pong, 100 pairs", 100, Errors::None);
    ping_pong("ping-pong, one pair, bit-error rate 1e-6", 1, Errors::Ber(1e-6));
    ping_pong("ping-pong, one pair, bit-error rate 1e-3", 1, Errors::Ber(1e-3));
    cislunar(100);
}
