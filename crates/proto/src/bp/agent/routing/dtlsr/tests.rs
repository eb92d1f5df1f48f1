//! Laws of link-state routing, in networks of nodes in virtual time whose records arrive at once or after a while.

use super::announcement::{Outage, RECORD_BYTES_MAX};
use super::*;
use crate::bp::AdminRecord;
use crate::codec::encoded;
use crate::rng::Rng;
use bytes::{Buf, BytesMut};
use std::collections::BTreeSet;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

fn name(node: usize) -> Eid {
    format!("dtn://n{node}/").parse().expect("a node ID")
}

fn settings() -> RoutingConfig {
    RoutingConfig::default()
}

/// Content of a record, as a receiver finds it.
fn content(record: &Bytes) -> Bytes {
    match AdminRecord::from_bytes(record) {
        Ok(AdminRecord::Unknown { record_type: RECORD_TYPE, content }) => content,
        other => panic!("{other:?}"),
    }
}

struct Net {
    now: Instant,
    nodes: Vec<LinkState>,
    /// Delays of the links that are up, in both directions.
    links: BTreeMap<(usize, usize), u64>,
    /// Records under way: arrival, number, sender, receiver.
    wires: BTreeMap<(Instant, u64), (usize, usize, Bytes)>,
    latency: Duration,
    count: u64,
    bytes: u64,
}

impl Net {
    fn new(nodes: usize, settings: &RoutingConfig) -> Net {
        let nodes = (0..nodes).map(|node| LinkState::new(name(node), settings.clone(), 0)).collect();
        let (links, wires) = (BTreeMap::new(), BTreeMap::new());
        Net { now: Instant::ZERO, nodes, links, wires, latency: Duration::ZERO, count: 0, bytes: 0 }
    }

    /// A random connected network: a tree, and as many links again.
    fn random(rng: &mut Rng, nodes: usize) -> Net {
        let mut net = Net::new(nodes, &settings());
        for node in 1..nodes {
            let other = rng.below(node as u64) as usize;
            net.links.insert((node, other), 1000 + rng.below(100_000));
        }
        for _ in 0..nodes {
            let (a, b) = (rng.below(nodes as u64) as usize, rng.below(nodes as u64) as usize);
            if a != b && !net.links.contains_key(&(b, a)) {
                net.links.insert((a, b), 1000 + rng.below(100_000));
            }
        }
        net.tell_all();
        net
    }

    fn connected(&self, node: usize) -> BTreeMap<Eid, u64> {
        let far = |(&(a, b), &delay)| match node {
            _ if a == node => Some((name(b), delay)),
            _ if b == node => Some((name(a), delay)),
            _ => None,
        };
        self.links.iter().filter_map(far).collect()
    }

    fn tell_all(&mut self) {
        for node in 0..self.nodes.len() {
            let connected = self.connected(node);
            self.nodes[node].set_neighbours(self.now, &connected);
        }
    }

    fn set(&mut self, link: (usize, usize), delay_ms: Option<u64>) {
        match delay_ms {
            Some(delay_ms) => drop(self.links.insert(link, delay_ms)),
            None => drop(self.links.remove(&link)),
        }
        self.wires.retain(|_, (a, b, _)| (*a, *b) != link && (*b, *a) != link);
        self.tell_all();
    }

    fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            self.step();
            let timers = self.nodes.iter().filter_map(LinkState::poll_timeout);
            let next = timers.chain(self.wires.keys().map(|(at, _)| *at)).min();
            match next.filter(|next| *next <= until) {
                Some(next) => {
                    assert!(next > self.now || !self.wires.is_empty(), "what is due has been done");
                    self.now = next.max(self.now);
                }
                None => break self.now = until,
            }
        }
    }

    fn step(&mut self) {
        while let Some(entry) = self.wires.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (from, to, record) = entry.remove();
            self.nodes[from].sent(&name(to));
            self.nodes[to].hear(self.now, &name(from), &content(&record)).expect("a valid record");
        }
        for node in 0..self.nodes.len() {
            self.nodes[node].handle_timeout(self.now, None);
            while let Some((to, record)) = self.nodes[node].poll_record(self.now) {
                assert!(record.len() <= RECORD_BYTES_MAX, "{} bytes", record.len());
                self.count += 1;
                self.bytes += record.len() as u64;
                let to = (0..self.nodes.len()).find(|other| name(*other) == to).expect("a node");
                self.wires.insert((self.now + self.latency, self.count), (node, to, record));
            }
        }
    }

    /// Expected delay of each link as its own end knows it.
    fn truth(&self) -> Vec<Vec<Option<u64>>> {
        let all = 0..self.nodes.len();
        let delay =
            |from: usize, to: usize| Some(self.nodes[from].neighbours.get(&name(to))?.expected_ms(self.now));
        let mut least: Vec<Vec<Option<u64>>> = all
            .clone()
            .map(|from| all.clone().map(|to| if from == to { Some(0) } else { delay(from, to) }).collect())
            .collect();
        for over in all.clone() {
            for from in all.clone() {
                for to in all.clone() {
                    let other = least[from][over].zip(least[over][to]).map(|(a, b)| a + b);
                    least[from][to] = least[from][to].into_iter().chain(other).min();
                }
            }
        }
        least
    }

    /// Checks that all nodes have the same shortest paths, which are the real ones up to this difference in milliseconds, and
    /// that following them ends.
    fn assert_agreement(&mut self, within_ms: u64) {
        for node in &mut self.nodes {
            node.compute(self.now);
        }
        let truth = self.truth();
        for (from, delays) in truth.iter().enumerate() {
            for to in (0..self.nodes.len()).filter(|to| *to != from) {
                let found = self.nodes[from].paths()[&name(to)].delay_ms;
                let real = delays[to].expect("all are connected");
                assert!(found.abs_diff(real) <= within_ms, "from {from} to {to}: {found}, not {real}");
                self.follow(from, to);
            }
        }
    }

    /// Nodes on the way.
    fn follow(&self, from: usize, to: usize) -> Vec<usize> {
        let mut way = vec![from];
        while *way.last().expect("it has begun") != to {
            let here = *way.last().expect("it has begun");
            let next = &self.nodes[here].paths()[&name(to)].next;
            way.push((0..self.nodes.len()).find(|node| name(*node) == *next).expect("a node"));
            assert!(way.len() <= self.nodes.len(), "a loop: {way:?}");
        }
        way
    }
}

#[test]
fn after_flooding_all_nodes_have_the_same_shortest_paths_without_loops() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let nodes = 2 + rng.below(24) as usize;
        let mut net = Net::random(&mut rng, nodes);
        net.run_for(5 * MINUTE);
        net.assert_agreement(0);
    }
}

#[test]
fn what_does_not_fit_a_record_goes_in_several() {
    let mut net = Net::new(100, &settings());
    for node in 1..100 {
        net.links.insert((node, node - 1), 1000 + node as u64);
    }
    net.tell_all();
    net.run_for(10 * MINUTE);
    let before = net.bytes;
    net.set((99, 0), Some(1000));
    net.run_for(MINUTE);
    net.assert_agreement(0);
    assert!(net.bytes - before > 2 * RECORD_BYTES_MAX as u64, "each end tells the other everything");
}

#[test]
fn links_that_come_and_go_leave_all_nodes_in_agreement() {
    for seed in 100..112 {
        let mut rng = Rng::new(seed);
        let mut net = Net::random(&mut rng, 12);
        net.run_for(MINUTE);
        let all: Vec<((usize, usize), u64)> = net.links.iter().map(|(link, delay)| (*link, *delay)).collect();
        let mut tree = BTreeSet::from([0]);
        let is_of_tree = |((a, b), _): &((usize, usize), u64)| tree.contains(b) && tree.insert(*a);
        let tree: Vec<_> = all.iter().copied().filter(is_of_tree).collect();
        assert_eq!(tree.len(), 11, "a node is connected to one before it");
        for latency_ms in [0, 300] {
            net.latency = Duration::from_millis(latency_ms);
            for _ in 0..40 {
                let (link, delay) = all[rng.below(all.len() as u64) as usize];
                let is_up = net.links.contains_key(&link);
                net.set(link, (!is_up).then_some(delay));
                net.run_for(Duration::from_millis(rng.below(600_000)));
            }
            for (link, delay) in &tree {
                net.set(*link, Some(*delay));
            }
            // Others may stay down: each node expects them after the same wait.
            net.run_for(5 * MINUTE);
            net.assert_agreement(latency_ms * 12);
        }
    }
}

#[test]
fn two_parts_that_were_separated_learn_what_happened_meanwhile() {
    let mut net = Net::new(5, &settings());
    for link in [(0, 1), (1, 2), (2, 3), (3, 4)] {
        net.set(link, Some(1000));
    }
    net.run_for(MINUTE);
    net.set((1, 2), None);
    net.run_for(10 * MINUTE);
    net.set((0, 1), Some(7000));
    net.set((3, 4), Some(9000));
    net.run_for(10 * MINUTE);
    let delay = |net: &Net, from: usize, to: usize| net.nodes[from].paths()[&name(to)].delay_ms;
    let wait_ms = 20 * 60_000 + 5000;
    assert_eq!(delay(&net, 0, 1), 7000);
    // The other part is still known as it was, over a link that has been down for as long as the wait is expected.
    let expected = delay(&net, 0, 4);
    assert!((wait_ms + 10_000 - 61_000..=wait_ms + 10_000).contains(&expected), "{expected}");
    net.set((1, 2), Some(1000));
    net.run_for(MINUTE);
    net.assert_agreement(0);
    assert_eq!((delay(&net, 0, 4), delay(&net, 4, 0)), (18_000, 18_000));
}

#[test]
fn a_link_is_expected_after_its_usual_outage_and_then_after_as_long_again() {
    let mut net = Net::new(2, &settings());
    net.set((0, 1), Some(1000));
    net.run_for(MINUTE);
    let wait_s = |net: &Net| net.nodes[0].expected_wait_ms(net.now, &name(1)).map(|ms| ms / 1000);
    assert_eq!(wait_s(&net), None);
    net.set((0, 1), None);
    assert_eq!(wait_s(&net), Some(5), "nothing is known of its outages");
    net.run_for(10 * MINUTE);
    assert_eq!(wait_s(&net), Some(605));
    net.set((0, 1), Some(1000));
    net.run_for(MINUTE);
    net.set((0, 1), None);
    assert_eq!(wait_s(&net), Some(600), "the last one took ten minutes");
    net.run_for(20 * MINUTE);
    assert_eq!(wait_s(&net), Some(1205));
    net.set((0, 1), Some(1000));
    net.set((0, 1), None);
    assert_eq!(wait_s(&net), Some(750), "three quarters of ten minutes and a quarter of twenty");
    let longest = Outage { down_ms: u64::MAX, mean_ms: u64::MAX };
    assert_eq!(expected_wait_ms(longest), DELAY_MAX_MS);
}

#[test]
fn another_change_before_the_paths_are_computed_does_not_prevent_it() {
    let mut node = LinkState::new(name(0), settings(), 0);
    let start = Instant::ZERO;
    let connect = |node: &mut LinkState, now, neighbours: usize| {
        let connected = (1..=neighbours).map(|neighbour| (name(neighbour), 1000)).collect();
        node.set_neighbours(now, &connected);
        node.handle_timeout(now, None);
    };
    connect(&mut node, start, 1);
    assert_eq!(node.paths().len(), 1, "the first change counts at once");
    connect(&mut node, start + COMPUTE_MIN / 4, 2);
    connect(&mut node, start + COMPUTE_MIN / 2, 3);
    assert_eq!(node.paths().len(), 1, "the others wait");
    node.handle_timeout(start + COMPUTE_MIN, None);
    assert_eq!(node.paths().len(), 3);
}

#[test]
fn a_path_leads_over_the_link_that_is_expected_first() {
    // Two ways from 0 to 3; the link from 1 usually is down for an hour, that from 2 for ten minutes.
    let mut net = Net::new(4, &settings());
    for link in [(0, 1), (0, 2), (1, 3), (2, 3)] {
        net.set(link, Some(1000));
    }
    net.run_for(MINUTE);
    for (link, outage) in [((1, 3), HOUR), ((2, 3), 10 * MINUTE)] {
        net.set(link, None);
        net.run_for(outage);
        net.set(link, Some(1000));
        net.run_for(MINUTE);
    }
    net.set((1, 3), None);
    net.set((2, 3), None);
    net.run_for(MINUTE);
    net.assert_agreement(0);
    assert_eq!(net.follow(0, 3), [0, 2, 3]);
    // Over the other one if the bundle came from there.
    let avoided = |net: &mut Net| net.nodes[0].path(&name(3), Some(&name(2))).expect("a path").next;
    assert_eq!(avoided(&mut net), name(1));
    net.set((1, 3), Some(1000));
    net.run_for(MINUTE);
    assert_eq!(net.follow(0, 3), [0, 1, 3]);
    assert_eq!(net.nodes[0].path(&name(3), Some(&name(1))).expect("a path").next, name(2));
    net.set((2, 3), Some(500));
    net.run_for(MINUTE);
    assert!(net.nodes[0].take_rerouted());
    assert!(!net.nodes[0].take_rerouted());
}

#[test]
fn a_node_that_restarts_with_a_lower_number_is_believed_again() {
    let mut net = Net::new(4, &settings());
    for link in [(0, 1), (1, 2), (2, 3)] {
        net.set(link, Some(1000));
    }
    for change in 0..20 {
        net.set((2, 3), Some(2000 + change));
        net.run_for(MINUTE);
    }
    let number = |net: &Net| net.nodes[0].known[&name(2)].announcement.sequence;
    assert!(number(&net) >= 20, "{}", number(&net));
    let before = number(&net);
    for link in [(1, 2), (2, 3)] {
        net.set(link, None);
    }
    net.nodes[2] = LinkState::new(name(2), settings(), 3);
    for link in [(1, 2), (2, 3)] {
        net.set(link, Some(5000));
    }
    net.run_for(MINUTE);
    assert!(number(&net) > before, "{} after {before}", number(&net));
    net.assert_agreement(0);
}

#[test]
fn what_is_not_announced_again_is_forgotten_everywhere() {
    let mut net = Net::new(4, &settings());
    for link in [(0, 1), (1, 2), (2, 3)] {
        net.set(link, Some(1000));
    }
    net.run_for(3 * HOUR);
    // The last node falls silent, and its neighbour with it.
    net.set((2, 3), None);
    net.run_for(20 * HOUR);
    assert!((0..3).all(|node| net.nodes[node].known.contains_key(&name(3))));
    net.run_for(5 * HOUR);
    assert!((0..3).all(|node| !net.nodes[node].known.contains_key(&name(3))));
    assert!((0..3).all(|node| !net.nodes[node].paths().contains_key(&name(3))));
    assert_eq!(net.nodes[0].known.len(), 2, "the others are there");
    let old = Announcement { age_ms: 86_400_000, ..announcement_of("dtn://n3/", 1 << 40) };
    let heard = net.nodes[0].hear(net.now, &name(1), &said(vec![old])).expect("it is valid");
    assert_eq!(heard, Heard::default(), "it is too old to come back");
}

#[test]
fn a_flapping_link_causes_no_more_than_a_record_in_a_hold_down() {
    let mut net = Net::new(3, &settings());
    net.set((1, 2), Some(1000));
    net.run_for(MINUTE);
    let before = net.count;
    for _ in 0..600 {
        net.set((0, 1), Some(1000));
        net.run_for(Duration::from_millis(500));
        net.set((0, 1), None);
        net.run_for(Duration::from_millis(500));
    }
    let records = net.count - before;
    // Ten minutes with five seconds each, on two links in both directions.
    assert!((100..=4 * 121).contains(&records), "{records}");
}

fn said(announcements: Vec<Announcement>) -> Bytes {
    let count = announcements.len();
    let (record, taken) = announcement::record(announcements.into_iter());
    assert_eq!(taken, count);
    content(&record)
}

fn announcement_of(origin: &str, sequence: u64) -> Announcement {
    let link = AnnouncedLink { to: "dtn://x/".parse().expect("a node ID"), delay_ms: 1000, outage: None };
    Announcement { origin: origin.parse().expect("a node ID"), sequence, age_ms: 0, links: vec![link] }
}

#[test]
fn invented_origins_take_no_place_of_others_and_no_more_memory() {
    let settings = RoutingConfig { nodes_max: 16, ..settings() };
    let mut node = LinkState::new(name(0), settings, 0);
    let now = Instant::from_secs(1);
    let neighbours = [(name(1), 1000), (name(2), 1000)];
    node.set_neighbours(now, &neighbours.clone().into());
    let [friend, mallory] = [name(1), name(2)];
    let mut refused = 0;
    for number in 0..1000 {
        let forged = said(vec![announcement_of(&format!("dtn://forged{number}/"), number)]);
        refused += node.hear(now, &mallory, &forged).expect("it is valid").refused;
    }
    assert_eq!((node.known.len(), refused), (16, 984));
    for number in 0..7 {
        let heard = node.hear(now, &friend, &said(vec![announcement_of(&format!("dtn://real{number}/"), 1)]));
        assert_eq!(heard.expect("it is valid"), Heard { news: 1, refused: 0 });
    }
    for number in 1000..2000 {
        let forged = said(vec![announcement_of(&format!("dtn://forged{number}/"), number)]);
        node.hear(now, &mallory, &forged).expect("it is valid");
    }
    let real = |number| format!("dtn://real{number}/").parse::<Eid>().expect("a node ID");
    assert!((0..7).all(|number| node.known.contains_key(&real(number))));
    assert_eq!(node.known.len(), 16);
    assert!(node.neighbours.values().all(|neighbour| neighbour.owed.len() <= 17));
}

#[test]
fn nobody_is_believed_about_this_node() {
    let mut node = LinkState::new(name(0), settings(), 0);
    let now = Instant::from_secs(1);
    node.set_neighbours(now, &BTreeMap::from([(name(1), 1000)]));
    node.handle_timeout(now, None);
    let forged = said(vec![announcement_of("dtn://n0/", 77)]);
    let heard = node.hear(now, &name(1), &forged).expect("it is valid");
    assert_eq!((heard.news, node.known.len()), (0, 0));
    let later = now + 10 * SECOND;
    node.handle_timeout(later, None);
    assert_eq!(node.sequence, 78, "a newer one replaces it");
    assert!(!node.paths().contains_key(&"dtn://x/".parse().expect("a node ID")));
    // At the highest number there is no newer one, and nothing overflows.
    node.hear(later, &name(1), &said(vec![announcement_of("dtn://n0/", SEQUENCE_MAX)])).expect("it is valid");
    node.handle_timeout(later + 10 * SECOND, Some(u64::MAX));
    assert_eq!(node.sequence, SEQUENCE_MAX);
}

#[test]
fn the_wire_format_is_fixed() {
    let node = |number| Eid::ipn(number, 0);
    let links = vec![
        AnnouncedLink { to: node(2), delay_ms: 1000, outage: None },
        AnnouncedLink {
            to: "dtn://b/".parse().expect("a node ID"),
            delay_ms: 1001,
            outage: Some(Outage { down_ms: 300, mean_ms: 0 }),
        },
    ];
    let announcement = Announcement { origin: node(1), sequence: 7, age_ms: 20, links };
    let (record, count) = announcement::record([announcement.clone()].into_iter());
    let hex: String = record.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        (hex.as_str(), count),
        (
            "8219fc4182018184820282010007148282820282020019 03e884820164 2f2f622f1903e919012c00"
                .replace(' ', "")
                .as_str(),
            1
        )
    );
    assert_eq!(announcement::decode(&content(&record)), Ok(vec![announcement]));
}

#[test]
fn other_versions_and_damage_are_told_apart_and_change_nothing() {
    let good = said(vec![announcement_of("dtn://a/", 1), announcement_of("dtn://b/", 2)]);
    let mut other = good.to_vec();
    other[1] = 2;
    assert!(matches!(announcement::decode(&other.into()), Err(DecodeError::Unsupported { .. })));
    // A later version may have another form after its number.
    assert!(matches!(
        announcement::decode(&Bytes::from_static(&[0x83, 2, 0, 0])),
        Err(DecodeError::Unsupported { .. })
    ));
    let mut node = LinkState::new(name(0), settings(), 0);
    let now = Instant::from_secs(1);
    node.set_neighbours(now, &BTreeMap::from([(name(1), 1000)]));
    for length in 0..good.len() {
        assert!(node.hear(now, &name(1), &good.slice(..length)).is_err(), "{length} bytes");
    }
    assert!(node.known.is_empty());
    let mut rng = Rng::new(3);
    for _ in 0..4000 {
        let mut damaged = good.to_vec();
        for _ in 0..=rng.below(3) {
            let place = rng.below(damaged.len() as u64) as usize;
            damaged[place] = rng.next_u32() as u8;
        }
        let _ = node.hear(now, &name(1), &damaged.into());
        node.handle_timeout(now, None);
    }
    assert!(node.known.len() <= settings().nodes_max);
    for bad in [
        Announcement { sequence: SEQUENCE_MAX + 1, ..announcement_of("dtn://a/", 0) },
        Announcement {
            links: vec![AnnouncedLink { delay_ms: 0, ..announcement_of("dtn://a/", 0).links.remove(0) }],
            ..announcement_of("dtn://a/", 0)
        },
        announcement_of("dtn://x/", 1),
        announcement_of("dtn://a/service", 1),
    ] {
        let record = encoded(64, |out| {
            out.extend_from_slice(&[0x82, 1, 0x81]);
            bad.encode(out);
        });
        assert!(announcement::decode(&record).is_err(), "{bad:?}");
    }
    let mut long = BytesMut::from(&[0x82, 1, 0x99, 1, 0][..]);
    (0..256).for_each(|number| announcement_of(&format!("dtn://{number}/"), 1).encode(&mut long));
    assert!(long.remaining() > RECORD_BYTES_MAX);
    assert!(announcement::decode(&long.freeze()).is_err());
}

#[test]
fn a_node_with_very_many_neighbours_announces_the_nearest_of_them() {
    let mut node = LinkState::new(name(0), settings(), 0);
    let far = |number: usize| -> Eid {
        format!("dtn://{}{number}/", "a-long-name-of-a-node-".repeat(4)).parse().expect("a node ID")
    };
    let all: BTreeMap<Eid, u64> = (0..500).map(|number| (far(number), 1000 + number as u64)).collect();
    let now = Instant::from_secs(1);
    node.set_neighbours(now, &all);
    node.handle_timeout(now, None);
    assert_eq!(node.neighbours.len(), LINKS_MAX);
    let (_, record) = node.poll_record(now).expect("a record");
    assert!(record.len() <= RECORD_BYTES_MAX);
    let own = announcement::decode(&content(&record)).expect("it is valid").remove(0);
    assert!((30..LINKS_MAX).contains(&own.links.len()), "{}", own.links.len());
    assert!(own.links.is_sorted_by_key(|link| link.delay_ms));
    // Those that leave make room for others.
    let others: BTreeMap<Eid, u64> = (500..600).map(|number| (far(number), 1000)).collect();
    node.set_neighbours(now + SECOND, &others);
    assert!(others.keys().all(|other| node.is_connected(other)));
    assert_eq!(node.neighbours.len(), LINKS_MAX);
}

#[test]
fn delays_follow_the_rate_within_a_limit() {
    assert_eq!(delay_over_ms(0, 0), 1000);
    assert_eq!(delay_over_ms(128_000, 20), 1645);
    assert_eq!(delay_over_ms(1, u64::MAX), DELAY_MAX_MS);
}
