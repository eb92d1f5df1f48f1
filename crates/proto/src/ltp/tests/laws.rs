//! The laws, and what a link shows of itself.

use super::scene::SECOND;
use crate::laws::{Draw, hold_links_over_datagrams};
use crate::ltp::{BlockFormat, Config, Counters, Link};
use crate::rng::Rng;
use crate::time::Duration;

/// Settings for the hostile medium, on which a datagram takes up to 3 s and the next one may leave only then. The bundles of
/// the users are random bytes, so each has a block of its own. Both sides have the same engine ID.
fn settings(draw: &mut Rng) -> Config {
    let delay = |draw: &mut Rng| draw.span(Duration::ZERO, SECOND / 10);
    Config {
        block_format: BlockFormat::Single,
        segment_bytes: draw.between(96, 1_400),
        block_bytes_max: 20_001 + draw.below(1_000_000),
        sessions_max: 1 + draw.below(4) as usize,
        outgoing_bytes_max: 1 + draw.below(50_000),
        incoming_sessions_max: 2 + draw.below(4) as usize,
        open_max: 1 + draw.below(4) as usize,
        one_way_delay: draw.span(4 * SECOND, 6 * SECOND),
        margin: draw.span(SECOND, 2 * SECOND),
        retransmissions_max: 5 + draw.below(4) as u32,
        checkpoint_every: draw.below(5) as u32,
        report_delay: delay(draw),
        asynchronous_after: draw.chance(0.5).then(|| draw.span(SECOND / 100, 4 * SECOND)),
        retransmission_delay: delay(draw),
        claims_max: 1 + draw.below(20) as usize,
        copies: 1 + draw.below(3) as u32,
        closed_sessions_max: 1_000,
        aggregation_wait: delay(draw),
        rate_bps: if draw.chance(0.5) { 0 } else { 8_000 << draw.below(10) },
        ..Config::default()
    }
}

#[test]
fn links_keep_the_laws() {
    hold_links_over_datagrams("ltp", 100..=999, settings, Link::new);
}

#[test]
fn a_link_shows_all_its_counters() {
    let counters = crate::observe::counts(&Counters::default());
    crate::observe::tests::expect(&Link::new(Config::default(), Rng::new(1)), "ltp", &[counters]);
}
