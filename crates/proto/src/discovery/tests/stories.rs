//! Stories of neighbourhoods in virtual time.

use super::super::*;
use crate::bp::bpsec::Fingerprint;
use crate::engine::Engine;
use crate::rng::Rng;
use crate::time::Instant;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::BTreeSet;

fn node(name: &str) -> Eid {
    format!("dtn://{name}/").parse().expect("a node ID")
}

fn at(last: u8) -> Way {
    Way::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)), 4556))
}

fn heard(name: &str, way: Way, proof: Proof, created: u64) -> HearingIndication {
    let announcement = Announcement {
        format: Format::Sand,
        node: node(name),
        created: Some((created, 0).into()),
        validity: Some(Duration::from_secs(10)),
        tcp_port: Some(4556),
        solicits: false,
    };
    HearingIndication::Heard(HeardAnnouncement { announcement, way, proof })
}

/// Signed with one of the keys of nobody.
fn first(key: u8) -> Proof {
    Proof::First(Fingerprint([key; 16]))
}

struct Bench {
    engine: Neighbourhood,
    now: Instant,
}

impl Bench {
    fn new(admission: Admission) -> Bench {
        let config = Config { admission, neighbours_max: 4, ..Config::new(node("own")) };
        Bench { engine: Neighbourhood::new(config, Rng::new(1)).expect("valid"), now: Instant::from_secs(1) }
    }

    fn hear(&mut self, said: HearingIndication) -> Vec<DiscoveryIndication> {
        self.engine.handle_indication(self.now, said);
        self.told()
    }

    fn told(&mut self) -> Vec<DiscoveryIndication> {
        std::iter::from_fn(|| self.engine.poll_indication(self.now)).collect()
    }

    /// Lets time pass. Returns the announcements of the node with their times, and everything that it said.
    fn pass(&mut self, time: Duration) -> (Vec<(Instant, bool)>, Vec<DiscoveryIndication>) {
        let end = self.now + time;
        let (mut announced, mut said) = (Vec::new(), Vec::new());
        while let Some(next) = self.engine.poll_timeout().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.engine.handle_timeout(self.now);
            said.extend(self.told());
            while let Some(HearingRequest::Announce { solicits }) = self.engine.poll_request(self.now) {
                announced.push((self.now, solicits));
            }
        }
        self.now = end;
        (announced, said)
    }

    fn way(&self, name: &str) -> Option<Way> {
        self.engine.neighbour(&node(name)).map(|neighbour| neighbour.way)
    }
}

use DiscoveryIndication::{Found, Lost, Moved};

#[test]
fn a_neighbour_is_found_stays_while_it_is_heard_and_is_lost_after_its_silence() {
    let mut bench = Bench::new(Admission::Any);
    assert_eq!(bench.hear(heard("bob", at(1), Proof::Unsigned, 1)), [Found(node("bob"))]);
    for second in 2..20 {
        assert_eq!(bench.pass(Duration::from_secs(5)).1, []);
        assert_eq!(bench.hear(heard("bob", at(1), Proof::Unsigned, second)), []);
    }
    assert_eq!(bench.pass(Duration::from_secs(11)).1, [Lost(node("bob"))]);
    assert_eq!(bench.hear(heard("bob", at(1), Proof::Unsigned, 30)), [Found(node("bob"))]);
    assert_eq!(bench.engine.counters().found, 2);
}

#[test]
fn a_node_asks_at_the_start_and_announces_itself_at_intervals() {
    let mut bench = Bench::new(Admission::Any);
    assert_eq!(bench.pass(Duration::from_secs(100)).0, [], "it has not joined");
    bench.engine.handle_request(bench.now, DiscoveryRequest::Join);
    let (announced, _) = bench.pass(Duration::from_secs(300));
    assert!((10..=12).contains(&announced.len()), "{announced:?}");
    let solicits: Vec<bool> = announced.iter().map(|(_, solicits)| *solicits).collect();
    assert!(solicits[0] && solicits[1] && !solicits[2]);
    let pauses = announced.windows(2).map(|pair| pair[1].0 - pair[0].0);
    assert!(pauses.into_iter().all(|pause| (27..=30).contains(&pause.as_secs())), "{announced:?}");
}

#[test]
fn answers_are_limited_however_many_ask() {
    let mut bench = Bench::new(Admission::Any);
    bench.engine.handle_request(bench.now, DiscoveryRequest::Join);
    let mut count = 0;
    for second in 0..60 {
        for number in 0..20 {
            let HearingIndication::Heard(mut asked) =
                heard("bob", at(1), Proof::Unsigned, second * 20 + number + 1);
            asked.announcement.solicits = true;
            bench.hear(HearingIndication::Heard(asked));
        }
        count += bench.pass(Duration::from_secs(1)).0.len();
    }
    assert!((20..=31).contains(&count), "{count} announcements in a minute");
}

#[test]
fn a_flood_of_names_fills_the_table_and_no_more() {
    let mut bench = Bench::new(Admission::Any);
    bench.hear(heard("bob", at(1), Proof::Known, 1));
    for number in 0..1000 {
        bench.hear(heard(&format!("n{number}"), at(2), Proof::Unsigned, 1));
    }
    assert_eq!(bench.engine.neighbours().count(), 4);
    assert_eq!(bench.engine.counters().refused, 997);
    bench.pass(Duration::from_secs(1));
    let told = bench.hear(heard("carol", at(3), Proof::Known, 1));
    assert!(told.contains(&Found(node("carol"))), "a key makes room: {told:?}");
    assert!(bench.way("bob").is_some() && bench.engine.neighbours().count() == 4);
}

#[test]
fn names_that_come_and_go_do_so_slowly() {
    let mut bench = Bench::new(Admission::Any);
    let mut found = 0;
    for number in 0..600 {
        let HearingIndication::Heard(mut short) = heard(&format!("n{number}"), at(2), first(1), 1);
        short.announcement.validity = Some(Duration::ZERO);
        found += bench.hear(HearingIndication::Heard(short)).len();
        bench.pass(Duration::from_millis(100));
    }
    assert!((60..=70).contains(&bench.engine.counters().found), "{found} in a minute");
}

#[test]
fn forged_announcements_neither_move_a_neighbour_nor_end_it() {
    let mut bench = Bench::new(Admission::Any);
    bench.hear(heard("bob", at(1), Proof::Unsigned, 1));
    for last in 10..30 {
        assert_eq!(bench.hear(heard("bob", at(last), Proof::Unsigned, u64::MAX)), []);
    }
    assert_eq!((bench.way("bob"), bench.engine.counters().refused), (Some(at(1)), 17));
    assert_eq!(bench.hear(heard("bob", at(1), Proof::Unsigned, 2)), [], "the times of others do not count");
    assert_eq!(bench.engine.counters().superseded, 0);
    let moved = bench.hear(heard("bob", at(7), Proof::Known, 3));
    assert_eq!((moved, bench.way("bob")), (vec![Moved(node("bob"))], Some(at(7))), "a key decides");
    bench.hear(heard("bob", at(8), Proof::Contested, 4));
    assert_eq!(bench.way("bob"), Some(at(7)));
    assert!(bench.engine.neighbour(&node("bob")).expect("it is there").contested);
}

#[test]
fn a_repeated_announcement_changes_nothing() {
    let mut bench = Bench::new(Admission::Any);
    bench.hear(heard("bob", at(1), Proof::Known, 5));
    bench.hear(heard("bob", at(1), Proof::Known, 5));
    bench.hear(heard("bob", at(9), Proof::Known, 4));
    assert_eq!(bench.engine.counters().superseded, 2);
    bench.hear(heard("bob", at(2), Proof::Known, 5));
    assert_eq!(
        bench.engine.neighbour(&node("bob")).expect("it is there").ways,
        2,
        "the same, over another network"
    );
}

#[test]
fn another_way_is_used_when_the_first_one_is_silent() {
    let mut bench = Bench::new(Admission::Any);
    let radio = Way::Station { tnc: 0, callsign: "EI7IG-1".parse().expect("a callsign") };
    assert_eq!(bench.hear(heard("bob", radio, Proof::Named, 1)), [Found(node("bob"))]);
    assert_eq!(bench.hear(heard("bob", at(1), Proof::Known, 1)), [Moved(node("bob"))], "faster");
    bench.pass(Duration::from_secs(5));
    assert_eq!(bench.hear(heard("bob", radio, Proof::Named, 2)), []);
    assert_eq!(bench.pass(Duration::from_secs(6)).1, [Moved(node("bob"))]);
    assert_eq!(bench.way("bob"), Some(radio));
}

#[test]
fn what_no_known_key_proves_never_takes_the_place_of_a_way_in_use() {
    let radio = Way::Station { tnc: 0, callsign: "EI7IG-1".parse().expect("a callsign") };
    let Way::Tcp(there) = at(1) else { panic!("an address") };
    for used in [radio, Way::Calls(there), at(1)] {
        for forged in [Proof::Unsigned, first(9)] {
            let mut bench = Bench::new(Admission::Any);
            bench.hear(heard("bob", used, Proof::Unsigned, 1));
            assert_eq!(bench.hear(heard("bob", at(2), forged, 2)), [], "{used} {forged:?}");
            assert_eq!(bench.way("bob"), Some(used));
        }
    }
    // The key of the way in use may choose a better one.
    let mut bench = Bench::new(Admission::Any);
    bench.hear(heard("bob", Way::Calls(there), first(1), 1));
    assert_eq!(bench.hear(heard("bob", at(2), first(1), 2)), [Moved(node("bob"))]);
}

#[test]
fn a_first_key_holds_while_its_node_is_a_neighbour_and_never_for_nodes_of_the_configuration() {
    let mut bench = Bench::new(Admission::Any);
    bench.hear(heard("bob", at(1), first(1), 1));
    for proof in [first(2), Proof::Unsigned] {
        assert_eq!(bench.hear(heard("bob", at(2), proof, 2)), []);
    }
    let bob = bench.engine.neighbour(&node("bob")).expect("it is there");
    assert_eq!((bob.ways, bob.contested, bench.engine.counters().contested), (1, true, 2));
    assert_eq!(bench.pass(Duration::from_secs(11)).1, [Lost(node("bob"))]);
    assert_eq!(bench.hear(heard("bob", at(2), first(2), 3)), [Found(node("bob"))], "it holds no longer");
    // The real node is not shut out by a stranger that came first.
    let configured = BTreeSet::from([node("carol")]);
    let admit = DiscoveryRequest::Admit { admission: Admission::Any, configured };
    bench.engine.handle_request(bench.now, admit);
    bench.hear(heard("carol", at(3), first(3), 1));
    bench.hear(heard("carol", at(4), first(4), 2));
    let carol = bench.engine.neighbour(&node("carol")).expect("it is there");
    assert_eq!((carol.ways, carol.contested), (2, false));
}

#[test]
fn announcements_in_a_format_without_signatures_do_not_contest_a_node_with_a_key() {
    let mut bench = Bench::new(Admission::Any);
    bench.hear(heard("bob", at(1), first(1), 1));
    for proof in [Proof::Unsigned, Proof::Contested] {
        let HearingIndication::Heard(mut beacon) = heard("bob", at(2), proof, 2);
        beacon.announcement.format = Format::Ipnd;
        assert_eq!(bench.hear(HearingIndication::Heard(beacon)), []);
    }
    let bob = bench.engine.neighbour(&node("bob")).expect("it is there");
    assert_eq!((bob.ways, bob.contested, bench.engine.counters().contested), (1, false, 2));
}

#[test]
fn fresh_keys_do_not_keep_out_nodes_with_a_known_key_or_of_the_configuration() {
    let mut bench = Bench::new(Admission::Any);
    bench.hear(heard("plain", at(200), Proof::Unsigned, 1));
    for number in 0..200_u8 {
        bench.hear(heard(&format!("n{number}"), at(number), first(number), 1));
    }
    bench.pass(Duration::from_secs(1));
    bench.hear(heard("last", at(210), first(210), 1));
    assert!(bench.engine.neighbours().count() == 4 && bench.way("plain").is_none());
    let configured = BTreeSet::from([node("carol")]);
    let admit = DiscoveryRequest::Admit { admission: Admission::Any, configured };
    bench.engine.handle_request(bench.now, admit);
    bench.hear(heard("bob", at(201), Proof::Known, 1));
    bench.hear(heard("carol", at(202), Proof::Unsigned, 1));
    assert!(bench.way("bob").is_some() && bench.way("carol").is_some());
    // They stay when the flood goes on.
    bench.pass(Duration::from_secs(5));
    for number in 0..200_u8 {
        bench.hear(heard(&format!("m{number}"), at(number), first(number), 2));
    }
    assert!(bench.way("bob").is_some() && bench.way("carol").is_some());
}

#[test]
fn the_validity_of_what_no_known_key_proves_is_short() {
    for (proof, stays) in [(Proof::Known, true), (first(1), false), (Proof::Unsigned, false)] {
        let mut bench = Bench::new(Admission::Any);
        let HearingIndication::Heard(mut long) = heard("bob", at(1), proof, 1);
        long.announcement.validity = Some(Duration::from_secs(6 * 3600));
        bench.hear(HearingIndication::Heard(long));
        bench.pass(Duration::from_secs(601));
        assert_eq!(bench.way("bob").is_some(), stays, "{proof:?}");
    }
}

#[test]
fn an_address_has_few_names_that_nothing_proves() {
    let config = Config { neighbours_max: 64, ..Config::new(node("own")) };
    let engine = Neighbourhood::new(config, Rng::new(1)).expect("valid");
    let mut bench = Bench { engine, now: Instant::from_secs(1) };
    for number in 0..20 {
        bench.hear(heard(&format!("n{number}"), at(1), first(number), 1));
    }
    assert_eq!(bench.engine.neighbours().count(), 4);
    bench.hear(heard("bob", at(1), Proof::Known, 1));
    bench.hear(heard("carol", at(2), Proof::Unsigned, 1));
    assert!(bench.way("bob").is_some() && bench.way("carol").is_some());
}

#[test]
fn a_neighbour_that_changes_its_port_all_the_time_moves_rarely() {
    let mut bench = Bench::new(Admission::Any);
    bench.hear(heard("bob", at(1), first(1), 1));
    let mut moves = 0;
    for number in 0..300_u16 {
        bench.pass(Duration::from_millis(200));
        let way = Way::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 5000 + number));
        moves += bench.hear(heard("bob", way, first(1), 2 + u64::from(number))).len();
    }
    assert!((5..=6).contains(&moves), "{moves} in a minute");
}

#[test]
fn the_rule_decides_about_neighbours() {
    let known = Admission::Known(BTreeSet::from([node("bob")]));
    let listed = Admission::Listed(vec!["dtn://bob/".into(), "dtn://team-*".into()]);
    for (admission, name, proof, admits) in [
        (&Admission::Any, "eve", Proof::Unsigned, true),
        (&Admission::Any, "eve", Proof::Contested, false),
        (&known, "bob", Proof::Unsigned, true),
        (&known, "eve", Proof::Unsigned, false),
        (&known, "eve", first(1), true),
        (&known, "bob", Proof::Contested, false),
        (&listed, "bob", Proof::Unsigned, true),
        (&listed, "team-2", Proof::Unsigned, true),
        (&listed, "eve", Proof::Known, false),
    ] {
        let mut bench = Bench::new(admission.clone());
        let found = !bench.hear(heard(name, at(1), proof, 1)).is_empty();
        assert_eq!(found, admits, "{admission:?} {name} {proof:?}");
    }
}

#[test]
fn a_new_rule_ends_what_it_excludes() {
    let mut bench = Bench::new(Admission::Any);
    bench.hear(heard("bob", at(1), Proof::Unsigned, 1));
    bench.hear(heard("carol", at(2), Proof::Known, 1));
    let admission = Admission::Known(BTreeSet::new());
    let admit = DiscoveryRequest::Admit { admission, configured: BTreeSet::new() };
    bench.engine.handle_request(bench.now, admit);
    assert_eq!(bench.told(), [Lost(node("bob"))]);
}

#[test]
fn reading_is_limited_and_known_senders_have_their_own_share() {
    let mut bench = Bench::new(Admission::Any);
    bench.hear(heard("bob", at(1), Proof::Unsigned, 1));
    let from = |last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
    let read = (0..1000).filter(|_| bench.engine.reads_from(bench.now, from(9))).count();
    assert!((50..=100).contains(&read), "{read}");
    assert!(bench.engine.reads_from(bench.now, from(1)));
    assert!(!bench.engine.reads_from(bench.now, from(1)), "one at a time");
}

/// Random scripts: limits hold, every neighbour that was found is lost once, and a quiet engine sleeps.
#[test]
fn the_table_is_the_sum_of_what_was_told() {
    for seed in 0..500 {
        let mut rng = Rng::new(seed);
        let mut bench = Bench::new(Admission::Any);
        let mut known: BTreeSet<Eid> = BTreeSet::new();
        let mut apply = |told: Vec<DiscoveryIndication>| {
            for said in told {
                match said {
                    Found(node) => assert!(known.insert(node)),
                    Lost(node) => assert!(known.remove(&node)),
                    Moved(node) => assert!(known.contains(&node)),
                }
            }
            known.clone()
        };
        for _ in 0..200 {
            let name = format!("n{}", rng.below(8));
            let proofs = [Proof::Known, first(1), Proof::Unsigned, Proof::Contested];
            let proof = proofs[rng.below(4) as usize];
            let way = at(1 + rng.below(6) as u8);
            apply(bench.hear(heard(&name, way, proof, rng.below(100))));
            let now = apply(bench.pass(Duration::from_millis(rng.below(3000))).1);
            let table: BTreeSet<Eid> = bench.engine.neighbours().map(|(node, _)| node.clone()).collect();
            assert_eq!(table, now, "seed {seed}");
            assert!(table.len() <= 4 && bench.engine.neighbours().all(|(_, known)| known.ways <= WAYS_MAX));
        }
        let left = apply(bench.pass(Duration::from_secs(60)).1);
        assert!(left.is_empty() && bench.engine.poll_timeout().is_none(), "seed {seed}");
    }
}
