use super::*;
use crate::motion::{Fix, Motion};
use crate::packet_router::{Decision, NeighbourState, NodeAddress, PacketRouter, RoutedPacket, ToldFix};
use crate::setting::Settings;
use crate::time::{Duration, Instant};
use std::collections::BTreeSet;

const HERE: NodeAddress = NodeAddress(1);
const GROUND: NodeAddress = NodeAddress(100);

fn moving(x_m: f64, vx_mps: f64) -> Motion {
    Motion { position_m: [x_m, 0.0, 0.0], velocity_mps: [vx_mps, 0.0, 0.0] }
}

fn config() -> Config {
    Config { address: HERE, range_m: 1000.0, known: vec![(GROUND, [0.0; 3])], ..Config::default() }
}

/// A router at 5 km from the ground station that stays there.
fn router(config: Config) -> AeroRp {
    let mut router = AeroRp::new(config);
    router.set_own(Instant::ZERO, Some(moving(5000.0, 0.0)));
    router
}

fn learn(router: &mut AeroRp, node: u32, motion: Motion) {
    let fix = Fix { at: Instant::ZERO, motion };
    router.learn(Instant::ZERO, ToldFix { node: NodeAddress(node), fix, hops: 0 });
}

fn neighbour(node: u32) -> NeighbourState {
    NeighbourState { node: NodeAddress(node), fill: 0.0, damaged: 0.0 }
}

fn decide(
    router: &mut AeroRp,
    now: Instant,
    from: Option<(u32, Instant)>,
    all: &[NeighbourState],
) -> Decision {
    let packet = RoutedPacket {
        source: HERE,
        destination: GROUND,
        from: from.map(|(node, at)| (NodeAddress(node), at)),
        copies: 1,
        given: &BTreeSet::new(),
    };
    router.decide(now, &packet, all)
}

fn forward(node: u32) -> Decision {
    Decision::Forward(NodeAddress(node))
}

#[test]
fn the_time_to_intercept_is_the_distance_left_over_the_speed_of_closing() {
    let router = router(config());
    let ground = moving(0.0, 0.0);
    let time = |motion: Motion| router.time_to_intercept_s(&motion, &ground);
    assert_eq!(time(moving(800.0, 300.0)), 0.0, "within range");
    assert_eq!(time(moving(5000.0, -200.0)), 20.0);
    assert_eq!(time(moving(5000.0, -100.0)), 40.0);
    // One that passes at 3 km closes with 80 % of its speed.
    let passes = Motion { position_m: [4000.0, 3000.0, 0.0], velocity_mps: [-100.0, 0.0, 0.0] };
    assert_eq!(time(passes), 50.0);
    // One that does not come nearer is behind all whose line reaches the destination, and the nearer one is better.
    assert_eq!((time(moving(5000.0, 0.0)), time(moving(41_000.0, 9.0))), (380.0, 1100.0));
    assert_eq!(time(moving(91_000.0, -100.0)), 900.0, "beyond the horizon");
}

#[test]
fn the_neighbour_that_closes_faster_wins_and_none_that_is_no_better_than_this_node() {
    let mut router = router(config());
    learn(&mut router, 2, moving(5500.0, -100.0));
    learn(&mut router, 3, moving(5500.0, -200.0));
    learn(&mut router, 4, moving(4900.0, 0.0));
    let all = [2, 3, 4].map(neighbour);
    assert_eq!(decide(&mut router, Instant::ZERO, None, &all), forward(3));
    assert_eq!(decide(&mut router, Instant::ZERO, None, &all[..1]), forward(2));
    assert_eq!(decide(&mut router, Instant::ZERO, None, &all[2..]), Decision::Carry, "it is ferried");
    assert_eq!(decide(&mut router, Instant::ZERO, None, &[]), Decision::Carry);
    router.set_own(Instant::ZERO, Some(moving(5000.0, -190.0)));
    assert_eq!(
        decide(&mut router, Instant::ZERO, None, &all),
        Decision::Carry,
        "the difference is in the margin"
    );
    let direct = [neighbour(2), neighbour(100)];
    router.set_own(Instant::ZERO, Some(moving(900.0, 0.0)));
    assert_eq!(decide(&mut router, Instant::ZERO, None, &direct), forward(100));
}

#[test]
fn fixes_are_extrapolated_and_a_neighbour_out_of_range_gets_nothing() {
    let mut router = router(config());
    learn(&mut router, 2, moving(5500.0, -200.0));
    let at = Instant::from_secs;
    assert_eq!(decide(&mut router, at(7), None, &[neighbour(2)]), forward(2), "it is at 4,100 m");
    assert_eq!(decide(&mut router, at(8), None, &[neighbour(2)]), Decision::Carry, "it is at 3,900 m");
    learn(&mut router, 3, moving(5500.0, -10.0));
    assert_eq!(decide(&mut router, at(301), None, &[neighbour(3)]), Decision::Carry, "its fix is forgotten");
}

#[test]
fn a_packet_does_not_go_back_at_once() {
    let mut router = router(config());
    learn(&mut router, 2, moving(5500.0, -100.0));
    let from = Some((2, Instant::ZERO));
    assert_eq!(decide(&mut router, Instant::ZERO, from, &[neighbour(2)]), Decision::Carry);
    router.set_own(Instant::from_secs(31), Some(moving(3000.0, 0.0)));
    assert_eq!(decide(&mut router, Instant::from_secs(31), from, &[neighbour(2)]), forward(2));
}

#[test]
fn congestion_and_corruption_count_as_time() {
    let mut router = router(config());
    learn(&mut router, 2, moving(5500.0, -100.0));
    learn(&mut router, 3, moving(5500.0, -90.0));
    let [fast, slow] = [2, 3].map(neighbour);
    assert_eq!(decide(&mut router, Instant::ZERO, None, &[fast, slow]), forward(2));
    // The slower one is 5 s behind.
    for worse in [NeighbourState { fill: 0.6, ..fast }, NeighbourState { damaged: 0.03, ..fast }] {
        assert_eq!(decide(&mut router, Instant::ZERO, None, &[worse, slow]), forward(3), "{worse:?}");
    }
    let full = NeighbourState { fill: 0.96, ..fast };
    assert_eq!(decide(&mut router, Instant::ZERO, None, &[full]), Decision::Carry);
    // A bad link to the destination is used unless another way is better.
    router.set_own(Instant::ZERO, Some(moving(900.0, 0.0)));
    learn(&mut router, 4, moving(500.0, 0.0));
    let bad = NeighbourState { damaged: 0.6, ..neighbour(100) };
    assert_eq!(decide(&mut router, Instant::ZERO, None, &[bad]), forward(100));
    assert_eq!(decide(&mut router, Instant::ZERO, None, &[neighbour(4), bad]), forward(4));
    let good = NeighbourState { damaged: 0.05, ..neighbour(100) };
    assert_eq!(decide(&mut router, Instant::ZERO, None, &[neighbour(4), good]), forward(100));
}

#[test]
fn without_positions_a_packet_waits_for_its_destination() {
    let mut router = router(Config { uses_position: false, ..config() });
    learn(&mut router, 2, moving(500.0, -100.0));
    assert_eq!(decide(&mut router, Instant::ZERO, None, &[neighbour(2)]), Decision::Carry);
    assert_eq!(decide(&mut router, Instant::ZERO, None, &[neighbour(2), neighbour(100)]), forward(100));
    assert_eq!(router.learned_nodes(), 0);
}

#[test]
fn fixes_are_passed_on_once_the_youngest_first_and_not_for_ever() {
    let mut router = router(Config { fix_hops_max: 2, ..config() });
    let told = |node: u32, seconds: u64, hops| {
        let fix = Fix { at: Instant::from_secs(seconds), motion: moving(0.0, 0.0) };
        ToldFix { node: NodeAddress(node), fix, hops }
    };
    let now = Instant::from_secs(50);
    for fix in
        [told(2, 10, 0), told(3, 30, 1), told(4, 20, 2), told(5, 40, 3), told(100, 45, 0), told(1, 45, 0)]
    {
        router.learn(now, fix);
    }
    assert_eq!(router.learned_nodes(), 3, "not with too many hops, not this node, not a ground station");
    assert_eq!(router.tell(now, 1), [told(3, 30, 1)]);
    assert_eq!(router.tell(now, 9), [told(2, 10, 0)], "a fix with two hops is passed on no further");
    assert_eq!(router.tell(now, 9), []);
    router.learn(now, told(2, 9, 0));
    assert_eq!(router.tell(now, 9), [], "an older one is none");
    router.learn(now, told(2, 44, 1));
    assert_eq!(router.tell(now, 9), [told(2, 44, 1)]);
    assert_eq!(router.tell(Instant::from_secs(400), 9), []);
}

#[test]
fn the_table_is_limited_and_those_told_by_others_give_way() {
    let mut router = router(Config { nodes_max: 3, ..config() });
    let told = |node: u32, hops: u8| ToldFix {
        node: NodeAddress(node),
        fix: Fix { at: Instant::from_secs(9), motion: moving(0.0, 0.0) },
        hops,
    };
    let now = Instant::from_secs(10);
    router.learn(now, told(2, 0));
    (10..5000).for_each(|node| router.learn(now, told(node, 2)));
    assert_eq!(router.learned_nodes(), 3);
    assert!(router.fix(NodeAddress(2)).is_some());
    router.learn(now, told(3, 0));
    router.learn(now, told(4, 0));
    router.learn(now, told(5, 0));
    let known = [2, 3, 4, 5].map(|node| router.fix(NodeAddress(node)).is_some());
    assert_eq!(known, [true, true, true, false], "those that were heard themselves stay");
    // Fixes that cannot be true.
    for motion in [moving(0.0, 1501.0), moving(0.0, f64::NAN), moving(0.0, f64::INFINITY)] {
        let fix = Fix { at: Instant::from_secs(10), motion };
        router.learn(now, ToldFix { node: NodeAddress(2), fix, hops: 0 });
        assert_eq!(router.fix(NodeAddress(2)), Some(told(2, 0).fix), "{motion:?}");
    }
    let ahead = Fix { at: Instant::from_secs(11), motion: moving(0.0, 0.0) };
    router.learn(now, ToldFix { node: NodeAddress(2), fix: ahead, hops: 0 });
    assert_eq!(router.fix(NodeAddress(2)), Some(told(2, 0).fix), "from the future");
}

#[test]
fn a_node_that_is_heard_stays_where_it_was_heard_and_keeps_its_place_whatever_others_tell() {
    let mut router = router(Config { nodes_max: 1, ..config() });
    let told = |seconds: u64, x_m: f64, hops| {
        let fix = Fix { at: Instant::from_secs(seconds), motion: moving(x_m, 0.0) };
        ToldFix { node: NodeAddress(2), fix, hops }
    };
    router.learn(Instant::from_secs(10), told(10, 700.0, 0));
    router.learn(Instant::from_secs(11), told(11, 0.0, 4));
    assert_eq!(router.fix(NodeAddress(2)), Some(told(10, 700.0, 0).fix));
    let other = ToldFix { node: NodeAddress(3), ..told(12, 0.0, 1) };
    router.learn(Instant::from_secs(12), other);
    assert_eq!(router.fix(NodeAddress(3)), None, "it takes no place of one that is heard");
    // It is silent for `tell_interval`: what others tell is better than nothing.
    router.learn(Instant::from_secs(20), told(19, 0.0, 4));
    assert_eq!(router.fix(NodeAddress(2)), Some(told(19, 0.0, 4).fix));
}

#[test]
fn settings_are_checked() {
    assert_eq!(Config::default().check(), Ok(()));
    let wrong = |config: Config| config.check().expect_err("it is wrong").key;
    assert_eq!(wrong(Config { range_m: 0.0, ..Config::default() }), "range-m");
    assert_eq!(wrong(Config { progress_mps: f64::NAN, ..Config::default() }), "progress-mps");
    assert_eq!(wrong(Config { margin: Duration::ZERO, ..Config::default() }), "margin");
    assert_eq!(wrong(Config { fill_percent_max: 101, ..Config::default() }), "fill-percent-max");
    assert_eq!(wrong(Config { known: vec![(GROUND, [f64::NAN; 3])], ..Config::default() }), "known");
}
