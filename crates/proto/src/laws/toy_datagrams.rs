//! The toy over datagrams: what the ground of datagrams does to an engine, and the flaws that only this ground shows.

use super::layers::run_over_datagrams;
use super::toy::{Flaw, Toy};
use super::{
    BundleUserBehaviour, Layer, LinksOf, Replay, RunDigest, World, catches_also, hold_over_datagrams,
};
use crate::engine::{Engine, forward};
use crate::joint::{Origin, Stack, earlier};
use crate::service::{
    Bundles, Datagrams, DatagramsIndication, DatagramsRequest, Frames, FramesIndication, FramesRequest,
    PeerId,
};
use crate::time::{Duration, Instant};
use crate::wrap::{Checked, Impair, ImpairConfig};
use core::ops::RangeInclusive;
use std::collections::VecDeque;

/// What an endpoint does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndpointFlaw {
    None,
    /// Loses a datagram now and then: it is neither passed on nor released.
    NeverReleases,
    /// Takes what is marked as damaged for whole.
    BelievesDamaged,
}

/// Makes an engine over frames one over datagrams to one peer.
struct OverDatagrams<E> {
    engine: E,
    flaw: EndpointFlaw,
    peer: Option<PeerId>,
    orders: VecDeque<DatagramsRequest>,
    retry_at: Option<Instant>,
    received: u64,
}

impl<E: Engine<Below = Frames>> OverDatagrams<E> {
    fn new(engine: E, flaw: EndpointFlaw) -> Self {
        OverDatagrams { engine, flaw, peer: None, orders: VecDeque::new(), retry_at: None, received: 0 }
    }

    fn join(&mut self) {
        let damaged = self.flaw == EndpointFlaw::BelievesDamaged;
        self.orders.push_back(DatagramsRequest::Join { damaged });
    }
}

impl<E: Engine<Below = Frames>> Engine for OverDatagrams<E> {
    type Above = E::Above;
    type Below = Datagrams;

    forward!(engine: handle_request poll_indication);

    fn handle_indication(&mut self, now: Instant, indication: DatagramsIndication) {
        match indication {
            DatagramsIndication::Joined { peer, .. } => self.peer = peer,
            DatagramsIndication::Room(room) => {
                self.engine.handle_indication(now, FramesIndication::Room(room as u32));
            }
            DatagramsIndication::Datagram { bytes, .. } => {
                self.received += 1;
                if self.flaw == EndpointFlaw::NeverReleases && self.received.is_multiple_of(3) {
                    return;
                }
                self.orders.push_back(DatagramsRequest::Release(bytes.len() as u64));
                self.engine.handle_indication(now, FramesIndication::Frame(bytes));
            }
            DatagramsIndication::Transmitted(token) => {
                self.engine.handle_indication(now, FramesIndication::Transmitted(token));
            }
            DatagramsIndication::Carrier(_) => {}
            DatagramsIndication::Left(_) => {
                (self.peer, self.retry_at) = (None, Some(now + Duration::from_secs(1)));
                self.orders.clear();
                self.engine.handle_indication(now, FramesIndication::Room(0));
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = None;
            self.join();
        }
        self.engine.handle_timeout(now);
    }

    fn poll_request(&mut self, now: Instant) -> Option<DatagramsRequest> {
        loop {
            if let Some(order) = self.orders.pop_front() {
                return Some(order);
            }
            match self.engine.poll_request(now)? {
                FramesRequest::Join if self.peer.is_none() && self.retry_at.is_none() => self.join(),
                FramesRequest::Join | FramesRequest::Seize => {}
                FramesRequest::Frame { bytes, token, shares, .. } => {
                    let to = self.peer.expect("there is room only while it is joined");
                    return Some(DatagramsRequest::Datagram { to, bytes, shares, token });
                }
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earlier(self.retry_at, self.engine.poll_timeout())
    }
}

const BYTES_MAX: RangeInclusive<u64> = 250..=1_500;

/// Conditions of a world, apart from those that are drawn.
#[derive(Clone, Copy)]
struct Conditions {
    damage: bool,
    trusting: bool,
}

const USUAL: Conditions = Conditions { damage: false, trusting: true };
const DAMAGED: Conditions = Conditions { damage: true, ..USUAL };
const FORGED: Conditions = Conditions { damage: true, trusting: false };

fn layer<E: Engine<Above = Bundles, Below = Datagrams> + 'static>(
    world: &mut World,
    conditions: Conditions,
    link: impl Fn(Toy) -> E + 'static,
    flaw: Flaw,
) -> Layer<'static, LinksOf<'static, E>> {
    let Conditions { damage, trusting } = conditions;
    let users = BundleUserBehaviour { trusting, ..BundleUserBehaviour::draw(&mut world.draw) };
    let layer = Layer::of_links(users, move |start, id, origin| {
        (origin == Origin::Above).then(|| link(Toy::new(flaw, start.rng.fork(&format!("{id:?}")))))
    });
    Layer { damage, ..layer }
}

fn world(replay: &Replay, conditions: Conditions, flaw: Flaw, endpoint: EndpointFlaw) -> RunDigest {
    run_over_datagrams(replay, &BYTES_MAX, &|world: &mut World| {
        layer(world, conditions, move |toy| OverDatagrams::new(toy, endpoint), flaw)
    })
}

fn finds(conditions: Conditions, flaw: Flaw, endpoint: EndpointFlaw, law: &str) {
    let name = format!("{flaw:?}, {endpoint:?}");
    catches_also(&name, law, |replay| world(replay, conditions, flaw, endpoint));
}

#[test]
fn a_toy_without_a_flaw_keeps_the_laws() {
    for (name, conditions) in [
        ("toy over datagrams", USUAL),
        ("toy over damaged datagrams", DAMAGED),
        ("toy over forged datagrams", FORGED),
    ] {
        hold_over_datagrams(name, 200, BYTES_MAX, |world| {
            layer(world, conditions, |toy| OverDatagrams::new(toy, EndpointFlaw::None), Flaw::None)
        });
    }
}

/// Duplicated datagrams, and what their release needs.
#[test]
fn impaired_datagrams_keep_the_laws() {
    hold_over_datagrams("toy over impaired datagrams", 200, BYTES_MAX, |world| {
        let rng = world.rng.fork("impair");
        let link = move |toy: Toy| {
            let config = ImpairConfig {
                loss: 0.1,
                duplication: 0.2,
                corruption: 0.1,
                delay: 0.2,
                delay_max: Duration::from_secs(3),
                ..ImpairConfig::default()
            };
            let impair = Impair::<Datagrams>::new(config, rng.fork("link"));
            let over = OverDatagrams::new(toy, EndpointFlaw::None);
            Stack::new(Checked::new("over", over), Checked::new("impair", impair))
        };
        layer(world, USUAL, link, Flaw::None)
    });
}

#[test]
fn a_datagram_that_is_lost_silently_is_found() {
    finds(USUAL, Flaw::None, EndpointFlaw::NeverReleases, "has not released");
}

#[test]
fn damage_that_is_believed_is_found() {
    finds(DAMAGED, Flaw::TrustsBits, EndpointFlaw::None, "are not what was sent");
    finds(USUAL, Flaw::TrustsBits, EndpointFlaw::BelievesDamaged, "are not what was sent");
}

#[test]
fn a_panic_on_forged_bytes_is_found() {
    finds(FORGED, Flaw::TrustsLengths, EndpointFlaw::None, "advance");
}

#[test]
fn an_early_timeout_is_not_hidden_by_a_fan() {
    finds(USUAL, Flaw::FearsEarlyTimeouts, EndpointFlaw::None, "an early timeout moved its wake-up");
}
