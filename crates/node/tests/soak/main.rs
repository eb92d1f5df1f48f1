//! A file after the other through three nodes for a long time, while everything happens to them that may: they are killed, lines
//! are cut, datagrams are lost, their disk fills, their clocks jump, their configuration changes, and strangers misbehave.
//! Nothing accepted is lost, and the memory and the descriptors of a node that keeps running are the same at the end.

#[path = "../common/mod.rs"]
mod common;
mod nodes;
#[path = "../common/peer.rs"]
mod peer;
#[path = "../common/small_disk.rs"]
mod small_disk;
mod troubles;

use common::{Place, reserved};
use longwire_proto::rng::Rng;
use nodes::{Arrivals, NodeProcess};
use small_disk::{Ballast, Kind, SmallDisk};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use troubles::{Datagrams, Line, Strangers};

/// Duration of the soak, minutes.
const MINUTES: &str = "LONGWIRE_SOAK_MINUTES";
/// Bundles that are sent after each trouble.
const BATCH: u64 = 12;
/// Delivered bundles that the receiver remembers: so few that it has reached its limit long before the first third is over, as
/// a node does in weeks. Bundles cannot be forgotten earlier, since they have to live longer than the clocks jump.
const REMEMBERED: u32 = 1000;
const DAY_MS: u64 = 86_400_000;

#[test]
fn the_node_itself() {
    nodes::be_the_node();
}

#[test]
fn two_rounds_lose_nothing() {
    let mut soak = Soak::new("short", 1);
    for _ in 0..2 {
        soak.round();
    }
    soak.end();
}

#[test]
#[ignore = "half an hour: ./test soak"]
fn half_an_hour_loses_nothing() {
    let minutes = std::env::var(MINUTES).ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    let seed =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is later").as_secs();
    let mut soak = Soak::new("long", seed);
    let until = Instant::now() + Duration::from_secs(60 * minutes);
    while Instant::now() < until {
        soak.round();
    }
    soak.end();
}

/// Anything that may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    SenderKilled,
    RelayKilled,
    LineCut,
    DatagramsLost,
    DiskFull,
    ClocksJump,
    Reload,
    Strangers,
}

const TROUBLES: [Trouble; 8] = [
    Trouble::SenderKilled,
    Trouble::RelayKilled,
    Trouble::LineCut,
    Trouble::DatagramsLost,
    Trouble::DiskFull,
    Trouble::ClocksJump,
    Trouble::Reload,
    Trouble::Strangers,
];

/// Memory and descriptors of the node that keeps running, between two rounds.
#[derive(Clone, Copy, Debug)]
struct Footprint {
    bytes: u64,
    descriptors: usize,
}

/// Sender, relay and receiver: TCPCL through a line that can be cut, then LTP through a loss of datagrams.
struct Soak {
    rng: Rng,
    seed: u64,
    alice: NodeProcess,
    relay: NodeProcess,
    carol: NodeProcess,
    line: Line,
    datagrams: Datagrams,
    arrivals: Arrivals,
    accepted: BTreeSet<u64>,
    next: u64,
    refused: u64,
    reloads: u64,
    footprints: Vec<Footprint>,
    began: Instant,
    /// Of the sender and of the relay, where this machine permits one.
    disk: Option<SmallDisk>,
    place: Place,
}

/// Settings with which a lost packet and a lost connection cost little time.
const QUICK: &str = "tcpcl.reconnect-min = '20 ms'\ntcpcl.reconnect-max = '100 ms'\nltp.one-way-delay = '10 ms'\n\
                     ltp.margin = '100 ms'\nltp.report-delay = '1 ms'\nagent.backoff-min = '50 ms'\n\
                     agent.backoff-max = '200 ms'\n";

impl Soak {
    fn new(title: &str, seed: u64) -> Soak {
        eprintln!("seed {seed}");
        let place = Place::new(&format!("soak-{title}"));
        let disk = SmallDisk::new(&format!("soak-{title}"), Kind::Tmpfs);
        let stores = disk.as_ref().map_or(&place.0, |disk| &disk.path).clone();
        let [at_relay, at_carol, datagrams_at_carol] = [(); 3].map(|()| reserved());
        let line = Line::new(at_relay);
        let datagrams = Datagrams::new(datagrams_at_carol, seed);
        let carol = NodeProcess::start(
            &place.0,
            "carol",
            &format!(
                "{QUICK}node = 'ipn:7.0'\nlisten = ['{at_carol}']\nlisten-udp = ['ltp {datagrams_at_carol}']\nstorage.path = '{}'\n\
                 agent.limits.tombstones-max = {REMEMBERED}\n",
                place.0.join("carol-store").display()
            ),
            at_carol,
        );
        let relay =
            NodeProcess::start(&place.0, "relay", &relay_text(0, &stores, at_relay, &datagrams), at_relay);
        let alice = NodeProcess::start(
            &place.0,
            "alice",
            &format!(
                "{QUICK}node = 'dtn://alice/'\nstorage.path = '{}'\n[[link]]\nname = 'relay'\naddress = '{}'\n[[route]]\n\
                 to = '*'\nvia = 'relay'\n",
                stores.join("alice-store").display(),
                line.address
            ),
            at_relay,
        );
        let arrivals = Arrivals::of(&carol);
        Soak {
            rng: Rng::new(seed),
            seed,
            alice,
            relay,
            carol,
            line,
            datagrams,
            arrivals,
            accepted: BTreeSet::new(),
            next: 0,
            refused: 0,
            reloads: 0,
            footprints: Vec::new(),
            began: Instant::now(),
            disk,
            place,
        }
    }

    /// Each trouble once, in any order, one beside the effects of the others; then peace, and a look at what has arrived.
    fn round(&mut self) {
        let mut left = TROUBLES.to_vec();
        while !left.is_empty() {
            let trouble = left.swap_remove(self.rng.below(left.len() as u64) as usize);
            self.happens(trouble);
            self.send(BATCH, None);
        }
        self.datagrams.lose_percent(0);
        for node in [&mut self.alice, &mut self.relay, &mut self.carol] {
            node.set_clock_off(0);
        }
        self.arrivals.wait_for(&self.accepted, || {
            let nodes = [&self.alice, &self.relay, &self.carol];
            format!("seed {}\n{}", self.seed, nodes.map(NodeProcess::log).join("\n"))
        });
        for node in [&mut self.alice, &mut self.relay, &mut self.carol] {
            node.wait_status("its store is empty", |status| status["bundles"] == 0);
        }
        self.look();
    }

    fn happens(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::SenderKilled => {
                // Some of these are accepted and others are not.
                self.send(BATCH, Some(BATCH / 2));
                self.alice.kill_and_restart();
            }
            Trouble::RelayKilled => self.relay.kill_and_restart(),
            Trouble::LineCut => self.line.cut(),
            Trouble::DatagramsLost => self.datagrams.lose_percent(5 + self.rng.below(20) as u32),
            Trouble::DiskFull => {
                let Some(ballast) = self.disk.as_ref().map(SmallDisk::fill) else { return };
                self.send_until_refused(ballast);
            }
            Trouble::ClocksJump => {
                let off_ms = self.rng.below(4 * DAY_MS) as i64 - 2 * DAY_MS as i64;
                let nodes = [&mut self.alice, &mut self.relay, &mut self.carol];
                nodes
                    .into_iter()
                    .nth(self.rng.below(3) as usize)
                    .expect("one of three")
                    .set_clock_off(off_ms);
            }
            Trouble::Reload => {
                self.reloads += 1;
                let stores = self.disk.as_ref().map_or(&self.place.0, |disk| &disk.path);
                let text = relay_text(self.reloads, stores, self.relay.address, &self.datagrams);
                self.relay.reload(&text);
            }
            Trouble::Strangers => {
                Strangers { rng: &mut self.rng }.bother([self.relay.address, self.carol.address]);
            }
        }
    }

    /// Sends this many bundles, or as many as were sent when so many were accepted.
    fn send(&mut self, count: u64, accepted_max: Option<u64>) {
        let numbers = self.next..self.next + count;
        self.next += count;
        let (accepted, refused) = self.alice.send(numbers, accepted_max);
        self.accepted.extend(accepted);
        self.refused += refused;
    }

    /// Sends while the disk is full, until the sender refuses a bundle.
    fn send_until_refused(&mut self, ballast: Ballast) {
        let refused = self.refused;
        for _ in 0..1000 {
            self.send(1, None);
            if self.refused > refused {
                drop(ballast);
                return;
            }
        }
        panic!("a full disk has room for 1,000 bundles");
    }

    /// Compares the node that keeps running with what it was in the first round.
    fn look(&mut self) {
        let least = self.footprints.first().map(|first| first.descriptors);
        let descriptors = self.carol.wait_descriptors(least);
        let footprint = Footprint { bytes: self.carol.memory_bytes(), descriptors };
        eprintln!(
            "{:5.0} s: {} bundles accepted, {} refused, {} more than once at the receiver, {} of strangers, {} KiB, {} descriptors",
            self.began.elapsed().as_secs_f64(),
            self.accepted.len(),
            self.refused,
            self.arrivals.repeated(),
            self.arrivals.of_strangers(),
            footprint.bytes / 1024,
            footprint.descriptors
        );
        self.footprints.push(footprint);
    }

    /// Memory is flat: at most a tenth and some pages above the most of the first third.
    fn end(self) {
        let third = self.footprints.len() / 3;
        if third > 0 {
            let most = |of: &[Footprint]| of.iter().map(|footprint| footprint.bytes).max().expect("one");
            let [first, last] = [&self.footprints[..third], &self.footprints[2 * third..]].map(most);
            assert!(
                last <= first + first / 10 + (4 << 20),
                "{first} bytes, {last} at the end: {:?}",
                self.footprints
            );
        }
        assert!(self.disk.is_none() || self.refused > 0, "the disk was full");
        assert!(self.arrivals.of_strangers() > 0, "strangers were heard, too");
    }
}

/// Configuration of the relay; each reload has another link, route and limit.
fn relay_text(
    reload: u64,
    stores: &std::path::Path,
    at: std::net::SocketAddr,
    datagrams: &Datagrams,
) -> String {
    format!(
        "{QUICK}node = 'dtn://relay/'\nlisten = ['{at}']\nstorage.path = '{}'\nagent.limits.sends-max = {}\n[[link]]\nname = 'carol'\n\
         kind = 'ltp'\naddress = '{}'\npeer = 'ipn:7.0'\nrate-bps = 100_000_000\n[[link]]\nname = 'nobody-{reload}'\n\
         address = '{}'\n[[route]]\nto = 'dtn://far-{reload}/*'\nvia = 'nobody-{reload}'\n",
        stores.join("relay-store").display(),
        20_000 + 1000 * (reload % 10),
        datagrams.address,
        reserved(),
    )
}
