//! The laws, and what a link shows of itself.

use super::SECOND;
use crate::laws::{Draw, hold_links_over_datagrams};
use crate::rng::Rng;
use crate::saratoga::{BundleCounters, Config, Counters, Link};
use crate::time::Duration;

/// Settings for the hostile medium, on which a datagram takes up to 3 s and the next one may leave only then.
fn settings(draw: &mut Rng) -> Config {
    Config {
        packet_bytes: draw.between(128, 1_400),
        file_bytes_max: 20_001 + draw.below(1_000_000),
        sessions_max: 1 + draw.below(4) as usize,
        outgoing_bytes_max: 1 + draw.below(50_000),
        incoming_sessions_max: 4 + draw.below(4) as usize,
        holes_max: 1 + draw.below(20) as usize,
        open_max: 1 + draw.below(4) as usize,
        one_way_delay: draw.span(4 * SECOND, 6 * SECOND),
        margin: draw.span(SECOND, 2 * SECOND),
        status_interval: draw.span(SECOND, 9 * SECOND),
        status_delay: draw.span(Duration::ZERO, SECOND / 10),
        status_bytes: draw.between(128, 1_400),
        status_rate_bps: if draw.chance(0.5) { 0 } else { 1_000 << draw.below(6) },
        copies: 1 + draw.below(3) as u32,
        closed_sessions_max: 1_000,
        rate_bps: if draw.chance(0.5) { 0 } else { 8_000 << draw.below(10) },
        ..Config::default()
    }
}

#[test]
fn links_keep_the_laws() {
    hold_links_over_datagrams("saratoga", 128..=999, settings, Link::new);
}

#[test]
fn a_link_shows_all_its_counters() {
    let (files, bundles) =
        (crate::observe::counts(&Counters::default()), crate::observe::counts(&BundleCounters::default()));
    let link = Link::new(Config::default(), Rng::new(1));
    crate::observe::tests::expect(&link, "saratoga", &[files]);
    crate::observe::tests::expect(&link, "saratoga-bundles", &[bundles]);
}
