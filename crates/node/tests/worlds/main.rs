//! One scenario, two worlds: the same functions run in virtual time, under many seeds that determine the lines and disks, and
//! over real sockets once.

#[path = "../common/mod.rs"]
mod common;
mod lines;
mod live;
mod plan;
mod scenarios;
mod simulated;
mod stage;

use lines::Cut;
use live::{Crash, Live};
use longwire_proto::rng::Rng;
use longwire_proto::tcpcl::Versions;
use plan::Plan;
use simulated::Simulated;
use stage::Stage;

/// Worlds of virtual time per scenario and version; `LONGWIRE_SEEDS` sets another number.
const SEEDS: u64 = 25;

type Story<W> = fn(&mut Stage<W>, &mut Rng);

fn in_virtual_time(title: &str, plan: Plan, story: Story<Simulated>) {
    let seeds = std::env::var("LONGWIRE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    for seed in 0..seeds {
        // On a failure, the last line shows the seed.
        eprintln!("{title}, seed {seed}");
        let mut rng = Rng::new(seed).fork(title);
        let plan = plan.clone().drawn(&mut rng);
        story(&mut Stage::new(Simulated::new(&plan, seed), plan), &mut rng);
    }
}

fn over_sockets(title: &str, mut plan: Plan, crash: Crash, cut: Cut, story: Story<Live>) {
    if cut == Cut::Reset {
        // A reset is noticed at once: no session ends because a node has to wait for the processor.
        plan.tcpcl.keepalive_timeout = Some(common::DEADLINE);
    }
    let title = format!("{title}-{crash:?}-{cut:?}");
    story(&mut Stage::new(Live::new(&plan, &title, crash, cut), plan), &mut Rng::new(1));
}

#[test]
fn bundles_of_all_sizes_go_both_ways_by_version_3_in_virtual_time() {
    in_virtual_time("transfer", scenarios::pair(Versions::Three), scenarios::transfer);
}

#[test]
fn bundles_of_all_sizes_go_both_ways_by_version_3_over_sockets() {
    over_sockets("transfer", scenarios::pair(Versions::Three), Crash::Kill, Cut::Silent, scenarios::transfer);
}

#[test]
fn what_was_acknowledged_does_not_go_again_by_version_3_in_virtual_time() {
    in_virtual_time(
        "an_outage_sends_nothing_acknowledged_again",
        scenarios::pair(Versions::Three),
        scenarios::an_outage_sends_nothing_acknowledged_again,
    );
}

#[test]
fn what_was_acknowledged_does_not_go_again_by_version_3_over_sockets() {
    over_sockets(
        "an_outage_sends_nothing_acknowledged_again",
        scenarios::pair(Versions::Three),
        Crash::Kill,
        Cut::Silent,
        scenarios::an_outage_sends_nothing_acknowledged_again,
    );
}

#[test]
fn a_full_store_refuses_by_version_3_in_virtual_time() {
    in_virtual_time(
        "a_full_store_refuses",
        scenarios::a_small_store(Versions::Three),
        scenarios::a_full_store_refuses,
    );
}

#[test]
fn a_full_store_refuses_by_version_3_over_sockets() {
    over_sockets(
        "a_full_store_refuses",
        scenarios::a_small_store(Versions::Three),
        Crash::Kill,
        Cut::Silent,
        scenarios::a_full_store_refuses,
    );
}

#[test]
fn bundles_of_all_sizes_go_both_ways_by_version_4_in_virtual_time() {
    in_virtual_time("transfer", scenarios::pair(Versions::Four), scenarios::transfer);
}

#[test]
fn bundles_of_all_sizes_go_both_ways_by_version_4_over_sockets() {
    over_sockets("transfer", scenarios::pair(Versions::Four), Crash::Kill, Cut::Silent, scenarios::transfer);
}

#[test]
fn what_was_acknowledged_does_not_go_again_by_version_4_in_virtual_time() {
    in_virtual_time(
        "an_outage_sends_nothing_acknowledged_again",
        scenarios::pair(Versions::Four),
        scenarios::an_outage_sends_nothing_acknowledged_again,
    );
}

#[test]
fn what_was_acknowledged_does_not_go_again_by_version_4_over_sockets() {
    over_sockets(
        "an_outage_sends_nothing_acknowledged_again",
        scenarios::pair(Versions::Four),
        Crash::Kill,
        Cut::Reset,
        scenarios::an_outage_sends_nothing_acknowledged_again,
    );
}

#[test]
fn a_full_store_refuses_by_version_4_in_virtual_time() {
    in_virtual_time(
        "a_full_store_refuses",
        scenarios::a_small_store(Versions::Four),
        scenarios::a_full_store_refuses,
    );
}

#[test]
fn a_full_store_refuses_by_version_4_over_sockets() {
    over_sockets(
        "a_full_store_refuses",
        scenarios::a_small_store(Versions::Four),
        Crash::Kill,
        Cut::Silent,
        scenarios::a_full_store_refuses,
    );
}

#[test]
fn a_relay_stores_and_forwards_in_virtual_time() {
    in_virtual_time(
        "a_relay_stores_and_forwards",
        Plan::named("row"),
        scenarios::a_relay_stores_and_forwards,
    );
}

#[test]
fn a_relay_stores_and_forwards_over_sockets() {
    over_sockets(
        "a_relay_stores_and_forwards",
        Plan::named("row"),
        Crash::Kill,
        Cut::Silent,
        scenarios::a_relay_stores_and_forwards,
    );
}

#[test]
fn the_sender_crashes_in_virtual_time() {
    in_virtual_time("the_sender_crashes", Plan::named("row"), scenarios::the_sender_crashes);
}

#[test]
fn the_sender_crashes_over_sockets() {
    over_sockets(
        "the_sender_crashes",
        Plan::named("row"),
        Crash::Kill,
        Cut::Reset,
        scenarios::the_sender_crashes,
    );
}

#[test]
fn the_sender_crashes_and_loses_what_was_not_synced_over_sockets() {
    over_sockets(
        "the_sender_crashes",
        Plan::named("row"),
        Crash::Power,
        Cut::Reset,
        scenarios::the_sender_crashes,
    );
}

#[test]
fn the_relay_crashes_in_virtual_time() {
    in_virtual_time("the_relay_crashes", Plan::named("row"), scenarios::the_relay_crashes);
}

#[test]
fn the_relay_crashes_over_sockets() {
    over_sockets(
        "the_relay_crashes",
        Plan::named("row"),
        Crash::Kill,
        Cut::Reset,
        scenarios::the_relay_crashes,
    );
}

#[test]
fn the_relay_crashes_and_loses_what_was_not_synced_over_sockets() {
    over_sockets(
        "the_relay_crashes",
        Plan::named("row"),
        Crash::Power,
        Cut::Reset,
        scenarios::the_relay_crashes,
    );
}

#[test]
fn a_relay_crashes_between_fragments_in_virtual_time() {
    in_virtual_time(
        "a_relay_crashes_between_fragments",
        scenarios::cut_through(),
        scenarios::a_relay_crashes_between_fragments,
    );
}

#[test]
fn a_relay_crashes_between_fragments_over_sockets() {
    over_sockets(
        "a_relay_crashes_between_fragments",
        scenarios::cut_through(),
        Crash::Kill,
        Cut::Reset,
        scenarios::a_relay_crashes_between_fragments,
    );
}

#[test]
fn a_relay_crashes_between_fragments_and_loses_what_was_not_synced_over_sockets() {
    over_sockets(
        "a_relay_crashes_between_fragments",
        scenarios::cut_through(),
        Crash::Power,
        Cut::Reset,
        scenarios::a_relay_crashes_between_fragments,
    );
}

#[test]
fn the_receiver_crashes_in_virtual_time() {
    in_virtual_time("the_receiver_crashes", Plan::named("row"), scenarios::the_receiver_crashes);
}

#[test]
fn the_receiver_crashes_over_sockets() {
    over_sockets(
        "the_receiver_crashes",
        Plan::named("row"),
        Crash::Kill,
        Cut::Reset,
        scenarios::the_receiver_crashes,
    );
}

#[test]
fn the_receiver_crashes_and_loses_what_was_not_synced_over_sockets() {
    over_sockets(
        "the_receiver_crashes",
        Plan::named("row"),
        Crash::Power,
        Cut::Reset,
        scenarios::the_receiver_crashes,
    );
}

#[test]
fn a_lifetime_ends_while_the_line_is_down_in_virtual_time() {
    in_virtual_time(
        "a_lifetime_ends_while_the_line_is_down",
        scenarios::pair(Versions::Both),
        scenarios::a_lifetime_ends_while_the_line_is_down,
    );
}

#[test]
fn a_lifetime_ends_while_the_line_is_down_over_sockets() {
    over_sockets(
        "a_lifetime_ends_while_the_line_is_down",
        scenarios::pair(Versions::Both),
        Crash::Kill,
        Cut::Silent,
        scenarios::a_lifetime_ends_while_the_line_is_down,
    );
}

#[test]
fn the_urgent_overtakes_in_virtual_time() {
    in_virtual_time("the_urgent_overtakes", scenarios::pair(Versions::Both), scenarios::the_urgent_overtakes);
}

#[test]
fn the_urgent_overtakes_over_sockets() {
    over_sockets(
        "the_urgent_overtakes",
        scenarios::pair(Versions::Both),
        Crash::Kill,
        Cut::Silent,
        scenarios::the_urgent_overtakes,
    );
}

#[test]
fn fragments_are_put_together_in_virtual_time() {
    in_virtual_time(
        "fragments_are_put_together",
        scenarios::in_fragments(Versions::Both),
        scenarios::fragments_are_put_together,
    );
}

#[test]
fn fragments_are_put_together_over_sockets() {
    over_sockets(
        "fragments_are_put_together",
        scenarios::in_fragments(Versions::Both),
        Crash::Kill,
        Cut::Silent,
        scenarios::fragments_are_put_together,
    );
}

#[test]
fn neighbours_of_two_versions_in_virtual_time() {
    in_virtual_time(
        "neighbours_of_two_versions",
        scenarios::of_two_versions(),
        scenarios::neighbours_of_two_versions,
    );
}

#[test]
fn neighbours_of_two_versions_over_sockets() {
    over_sockets(
        "neighbours_of_two_versions",
        scenarios::of_two_versions(),
        Crash::Kill,
        Cut::Silent,
        scenarios::neighbours_of_two_versions,
    );
}
