//! How many events a second the loop passes on one core. Prints; the aim is 2 million.

use bytes::Bytes;
use longwire_proto::engine::{Engine, Service};
use longwire_proto::service::StorageRequest;
use longwire_proto::service::{
    FramesIndication, FramesRequest, InterfaceId, Port, Shares, StorageIndication,
};
use longwire_proto::time::Instant;
use longwire_sim::*;

/// The user asks for nothing but the first ball.
enum Serve {}

impl Service for Serve {
    type Request = Bytes;
    type Indication = ();
}

/// Sends back every frame that it hears.
#[derive(Default)]
struct Player {
    joined: bool,
    room: u32,
    ball: Option<Bytes>,
}

impl Engine for Player {
    type Above = Serve;
    type Below = NodeBelow;

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

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_indication(&mut self) -> Option<()> {
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

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

fn ping_pong(name: &str, pairs: u16, errors: Errors) {
    let line =
        LineConfig { rate_bps: 1_000_000, delay: Delay::constant_ms(1), errors, ..LineConfig::default() };
    let mut world: Simulation<Serve> = Simulation::new(1);
    for pair in 0..pairs {
        let [a, b] = ["a", "b"].map(|side| {
            let factory: Factory<Serve> = Box::new(|_| Box::new(Player::default()));
            world.add_node(&format!("{side}{pair}"), DiskConfig::default(), ClockConfig::default(), factory)
        });
        let at = InterfaceId(0);
        world.add_channel((a, at), (b, at), ChannelConfig::symmetric(line.clone()));
        world.request(a, Bytes::from_static(&[0; 1000]));
        world.request(b, Bytes::from_static(&[1; 1000]));
    }
    measure(name, &mut world, |world| world.events() < 4_000_000);
}

/// Runs while `more`, and prints how fast.
fn measure<A: Service>(name: &str, world: &mut Simulation<A>, mut more: impl FnMut(&Simulation<A>) -> bool) {
    let start = std::time::Instant::now();
    world.run_while(Instant::FAR_FUTURE, |world| more(world));
    let seconds = start.elapsed().as_secs_f64();
    let rate = world.events() as f64 / seconds / 1e6;
    println!("{name:40} {:>9} events  {seconds:7.3} s  {rate:6.2} million events/s", world.events());
}

fn main() {
    ping_pong("ping-pong, one pair", 1, Errors::None);
    ping_pong("ping-pong, 100 pairs", 100, Errors::None);
    ping_pong("ping-pong, one pair, bit-error rate 1e-6", 1, Errors::Ber(1e-6));
    ping_pong("ping-pong, one pair, bit-error rate 1e-3", 1, Errors::Ber(1e-3));
}
