//! Many small networks of nodes that come and go, for each router: an accepted bundle is delivered once and
//! completely if a route exists for long enough, and everything ends with its lifetime, with and without
//! crashes.

use super::super::{RouterChoice, RoutingConfig};
use super::forwarding::{HOUR, random};
use super::parts::Disk;
use super::world::{EPOCH_DTN_MS, Payload, World};
use crate::laws::{RunDigest, SweepCounts, catches_also};
use crate::rng::Rng;
use crate::service::{Contact, LinkId, ManagementRequest, SendId, SendOptions};
use crate::time::Duration;

const LIFETIME: Duration = HOUR;

/// Deliberate fault of a network, to check that the laws detect it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Flaw {
    #[default]
    None,
    /// Disks are empty after a crash.
    Forgetful,
    /// Nodes do not know the way to their neighbours: they have neither routes nor contacts, and do not send
    /// directly.
    Lost,
    /// Bundles and tombstones live longer than the laws assume.
    Undying,
}

struct Roaming {
    world: World,
    rng: Rng,
    nodes: usize,
    cables: usize,
    sent: Vec<(u64, usize, usize)>,
    crashes: bool,
    flaw: Flaw,
}

fn payload(seed: u64, number: u64) -> bytes::Bytes {
    let length = Rng::new(seed).fork(&format!("length {number}")).below(4000) as usize;
    let mut bytes = vec![number as u8];
    bytes.extend_from_slice(&random(seed ^ number << 32, length));
    bytes.into()
}

/// Contacts at random times, and a permanent one at the end; the cables come and go independently.
fn plan(world: &mut World, rng: &mut Rng, nodes: usize) {
    let mut link = 0;
    for a in 0..nodes {
        for b in a + 1..nodes {
            link += 1;
            let mut at = 0;
            let mut window = |wait: u64, length: u64| {
                let start_dtn_ms = EPOCH_DTN_MS + at + wait;
                at += wait + length;
                let (end_dtn_ms, rate_bps) = (EPOCH_DTN_MS + at, 60_000);
                Contact { start_dtn_ms, end_dtn_ms, rate_bps, delay_ms: 200 }
            };
            let mut contacts: Vec<Contact> =
                (0..3).map(|_| window(rng.below(30_000), 1 + rng.below(20_000))).collect();
            contacts.push(window(1000, 100_000_000));
            for node in [a, b] {
                world.tell(
                    node,
                    ManagementRequest::SetContacts { link: LinkId(link), contacts: contacts.clone() },
                );
            }
        }
    }
}

impl Roaming {
    /// A few nodes, with an unplugged cable between any two of them.
    fn new(seed: u64, router: RouterChoice, flaw: Flaw) -> Self {
        let planned = router == RouterChoice::ContactPlan;
        let mut rng = Rng::new(seed).fork("roaming");
        let mut world = World::new(seed);
        world.strict = false;
        let nodes = 3 + rng.below(3) as usize;
        let copies = 2 + rng.below(6) as u32;
        for node in 0..nodes {
            let routing = RoutingConfig { router, copies, ..RoutingConfig::default() };
            world.node(&format!("n{node}"), |config| {
                config.routing = routing;
                config.direct_neighbours = flaw != Flaw::Lost;
            });
        }
        for a in 0..nodes {
            for b in a + 1..nodes {
                let cable = world.cable(a, b);
                let cable = &mut world.cables[cable];
                cable.window = 1 + rng.below(4000);
                cable.delay = Duration::from_millis(rng.below(200));
                cable.interleave = rng.chance(0.3);
                cable.plugged = false;
            }
        }
        let cables = world.cables.len();
        if planned {
            plan(&mut world, &mut rng, nodes);
        }
        let crashes = rng.chance(0.5);
        world.start_all();
        Roaming { world, rng, nodes, cables, sent: Vec::new(), crashes, flaw }
    }

    /// A meeting begins or ends, a node crashes, or a bundle is sent.
    fn happen(&mut self, seed: u64) {
        let cable = self.rng.below(self.cables as u64) as usize;
        match self.rng.below(8) {
            0..=2 => self.world.heal(cable),
            3..=4 => self.world.cut(cable),
            5 if self.crashes => {
                let node = self.rng.below(self.nodes as u64) as usize;
                self.world.crash(node);
                if self.flaw == Flaw::Forgetful {
                    let latency = self.world.nodes[node].disk.latency;
                    self.world.nodes[node].disk = Disk { latency, ..Disk::default() };
                }
                let off = Duration::from_millis(self.rng.below(2000));
                self.world.run_for(off);
                self.world.start(node);
            }
            _ if self.sent.len() < 6 => {
                let number = self.sent.len() as u64;
                let from = self.rng.below(self.nodes as u64) as usize;
                let to = (from + 1 + self.rng.below(self.nodes as u64 - 1) as usize) % self.nodes;
                let longer = if self.flaw == Flaw::Undying { 3 } else { 1 };
                let options = SendOptions { lifetime: LIFETIME * longer, ..SendOptions::default() };
                let destination = format!("dtn://n{to}/in");
                self.world.send(from, number, &destination, Payload::Given(payload(seed, number)), options);
                self.sent.push((number, from, to));
            }
            _ => {}
        }
        let pause = Duration::from_millis(self.rng.below(2500));
        self.world.run_for(pause);
        for node in 0..self.nodes {
            let agent = self.world.agent(node);
            assert_eq!(agent.holds().0, agent.bundles(self.world.now).count(), "seed {seed}: node {node}");
        }
    }

    fn check(&self, seed: u64) {
        for &(number, from, to) in &self.sent {
            let inbox = &self.world.nodes[to].user.inbox;
            let mine = inbox.iter().filter(|(_, _, bytes, _)| u64::from(bytes[0]) == number);
            let copies: Vec<_> = mine.map(|(_, _, bytes, _)| bytes.clone()).collect();
            let accepted = self.world.nodes[from].user.accepted.contains(&SendId(number));
            assert!(copies.len() <= 1, "seed {seed}: bundle {number} was delivered {} times", copies.len());
            assert!(!accepted || copies.len() == 1, "seed {seed}: bundle {number} was accepted and is lost");
            assert!(copies.iter().all(|bytes| *bytes == payload(seed, number)), "seed {seed}: damaged");
        }
    }
}

fn live(seed: u64, router: RouterChoice, flaw: Flaw) -> RunDigest {
    let mut roaming = Roaming::new(seed, router, flaw);
    for _ in 0..25 {
        roaming.happen(seed);
    }
    // Every node meets every other for long enough.
    (0..roaming.cables).for_each(|cable| roaming.world.heal(cable));
    roaming.world.run_for(Duration::from_secs(900));
    roaming.check(seed);
    roaming.world.run_for(LIFETIME);
    roaming.check(seed);
    for node in 0..roaming.nodes {
        let left: Vec<_> = roaming.world.agent(node).bundles(roaming.world.now).collect();
        assert!(left.is_empty(), "seed {seed}, node {node}: {left:?}");
        assert_eq!(roaming.world.agent(node).buffered_bytes(), 0, "seed {seed}");
        assert_eq!(roaming.world.disk_records(node), 1, "seed {seed}, node {node}: the boot record alone");
    }
    let cables = &roaming.world.cables;
    let (hash, crossings) =
        (cables.iter().map(|cable| cable.carried), cables.iter().map(|cable| cable.heads.len()));
    RunDigest {
        hash: hash.sum(),
        crossings: crossings.sum::<usize>() as u64,
        settled_at: roaming.world.now,
        counts: SweepCounts::default(),
    }
}

fn thousand(router: RouterChoice) {
    for seed in 0..1000 {
        live(seed, router, Flaw::None);
    }
}

/// Law that a flaw breaks with this router.
fn finds(router: RouterChoice, flaw: Flaw, law: &str) {
    catches_also(&format!("{flaw:?} with {router:?}"), law, |replay| live(replay.seed, router, flaw));
}

#[test]
fn what_is_accepted_and_forgotten_is_missed_with_every_router() {
    for router in
        [RouterChoice::Static, RouterChoice::ContactPlan, RouterChoice::Epidemic, RouterChoice::SprayAndWait]
    {
        finds(router, Flaw::Forgetful, "was accepted and is lost");
    }
}

#[test]
fn what_is_delivered_again_is_noticed() {
    finds(RouterChoice::Epidemic, Flaw::Forgetful, "is delivered after it was taken");
}

#[test]
fn what_finds_no_way_is_missed() {
    finds(RouterChoice::Static, Flaw::Lost, "was accepted and is lost");
}

#[test]
fn what_is_kept_longer_than_its_lifetime_is_noticed() {
    finds(RouterChoice::Epidemic, Flaw::Undying, "the boot record alone");
    finds(RouterChoice::SprayAndWait, Flaw::Undying, "the boot record alone");
}

#[test]
fn static_routes_deliver_once_in_a_thousand_roaming_worlds() {
    thousand(RouterChoice::Static);
}

#[test]
fn a_contact_plan_delivers_once_in_a_thousand_roaming_worlds() {
    thousand(RouterChoice::ContactPlan);
}

#[test]
fn epidemic_routing_delivers_once_in_a_thousand_roaming_worlds() {
    thousand(RouterChoice::Epidemic);
}

#[test]
fn spray_and_wait_delivers_once_in_a_thousand_roaming_worlds() {
    thousand(RouterChoice::SprayAndWait);
}
