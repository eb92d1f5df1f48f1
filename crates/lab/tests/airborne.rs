//! Routers among nodes that move: relations that must hold between them in the same worlds.

use longwire_lab::airborne::{AirborneTrial, Outcome};
use longwire_lab::bench::{Run, Trial};
use longwire_lab::scenario::{Airborne, AirborneRouter};

const SEED: u64 = 1;

/// Fewer nodes and packets than in the shipped scenario, as sparse as there.
fn plan() -> Airborne {
    Airborne {
        test_articles: 9,
        relays: 3,
        ground_stations: 2,
        area_km: 120.0,
        duration_s: 700.0,
        within_s: 300.0,
        packets: 60,
        ..Airborne::default()
    }
}

fn play(plan: &Airborne, router: AirborneRouter, run: u32) -> Outcome {
    AirborneTrial { plan: plan.clone(), router }.play(Run::new(SEED, run))
}

/// Relations of AeroRP, static routes and epidemic routing in the same world.
fn law(ours: &Outcome, fixed: &Outcome, epidemic: &Outcome) -> Result<(), String> {
    let delivered = |outcome: &Outcome| outcome.delays_s.len();
    for (name, holds) in [
        ("AeroRP is not behind static routes", delivered(ours) >= delivered(fixed)),
        ("the worlds are equal", ours.out_of_reach == fixed.out_of_reach && ours.packets == fixed.packets),
        ("half or so are out of reach", (0.25..0.75).contains(&ours.out_of_reach)),
        ("copies cost transmissions", epidemic.sent.data > ours.sent.data),
        ("nothing arrives before it is sent", ours.delays_s.iter().all(|delay| *delay > 0.0)),
        ("packets are carried", ours.delays_s.iter().any(|delay| *delay > 30.0)),
        ("nothing arrives twice", {
            let mut numbers = ours.delivered.clone();
            numbers.sort_unstable();
            numbers.dedup();
            numbers.len() == delivered(ours)
        }),
    ] {
        if !holds {
            return Err(format!("{name}: {ours:?} {fixed:?}"));
        }
    }
    Ok(())
}

#[test]
fn aerorp_is_never_behind_static_routes_and_carries_packets() {
    for run in 0..4 {
        let [ours, fixed, epidemic] =
            [AirborneRouter::Aerorp, AirborneRouter::Static, AirborneRouter::Epidemic]
                .map(|router| play(&plan(), router, run));
        law(&ours, &fixed, &epidemic).unwrap_or_else(|why| panic!("run {run}: {why}"));
        // The relations notice a router that delivers one packet less than static routes.
        let mut behind = ours.clone();
        behind.delays_s.truncate(fixed.delays_s.len() - 1);
        behind.delivered.truncate(fixed.delays_s.len() - 1);
        let noticed = law(&behind, &fixed, &epidemic).expect_err("it is behind");
        assert!(noticed.starts_with("AeroRP is not behind static routes"), "{noticed}");
    }
}

#[test]
fn positions_and_indications_are_of_use() {
    let total = |router| (0..4).map(|run| play(&plan(), router, run).delays_s.len()).sum::<usize>();
    let ours = total(AirborneRouter::Aerorp);
    let without = [AirborneRouter::AerorpWithoutPosition, AirborneRouter::AerorpWithoutCorruption].map(total);
    assert!(without.iter().all(|without| *without < ours), "{without:?} beside {ours}");
}

#[test]
fn congestion_indication_saves_offers_to_full_queues() {
    // Eight packets with their headers.
    let small = Airborne { queue_bytes: 8300, packets: 120, ..plan() };
    let total = |router| (0..4).map(|run| play(&small, router, run).queue_full).sum::<u64>();
    let [ours, without] = [AirborneRouter::Aerorp, AirborneRouter::AerorpWithoutCongestion].map(total);
    assert!(2 * ours < without, "{ours} beside {without}");
}

#[test]
fn packets_are_admitted_alike_whatever_the_router() {
    // Nobody meets anybody, and half of the packets do not fit into the queue of their source.
    let alone = Airborne {
        test_articles: 1,
        relays: 0,
        ground_stations: 1,
        area_km: 10_000.0,
        command_share: 0.0,
        queue_bytes: 30_000,
        ..plan()
    };
    let unsent = AirborneRouter::ALL.map(|router| play(&alone, router, 0).unsent);
    assert!(unsent[0] > 20 && unsent.iter().all(|of| *of == unsent[0]), "{unsent:?}");
}

#[test]
fn intolerant_users_get_no_damaged_packet() {
    let run = |tolerant| play(&Airborne { tolerant, bad_share: 0.5, ..plan() }, AirborneRouter::Aerorp, 0);
    let [with, without] = [true, false].map(run);
    assert!(with.damaged > 0 && without.damaged == 0, "{} {}", with.damaged, without.damaged);
}

#[test]
fn the_same_run_is_the_same_to_the_bit_and_another_one_is_another() {
    let short = Airborne { duration_s: 120.0, within_s: 60.0, packets: 20, ..plan() };
    let one = play(&short, AirborneRouter::Aerorp, 0);
    assert_eq!(one, play(&short, AirborneRouter::Aerorp, 0));
    assert_ne!(one.out_of_reach, play(&short, AirborneRouter::Aerorp, 1).out_of_reach);
}
