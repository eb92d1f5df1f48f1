//! The laws, and what a link shows of itself.

use crate::aerotp::{BundleCounters, Config, Counters, Link};
use crate::laws::{Draw, hold_links_over_datagrams};
use crate::rng::Rng;
use crate::service::TransportService;
use crate::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Settings for the hostile medium, on which a datagram takes up to 3 s and the next one may leave only then.
fn settings(draw: &mut Rng) -> Config {
    let services = [
        TransportService::Adaptive,
        TransportService::Adaptive,
        TransportService::Reliable,
        TransportService::NearReliable,
        TransportService::NackMack,
    ];
    // Without a timer, each lot of acknowledgements that is not full costs timeouts.
    let has_timer = draw.chance(0.8);
    Config {
        service: services[draw.below(5) as usize],
        packet_bytes: draw.between(128, 1_472),
        segment_bytes: if draw.chance(0.5) { 0 } else { draw.between(1, 1_000) },
        fec_strength: [0, 1, 2, 4, 8, 16][draw.below(6) as usize],
        block_segments: 1 + draw.below(64) as u32,
        acks_per_mack: 1 + draw.below(if has_timer { 20 } else { 2 }) as u32,
        mack_interval: if has_timer { draw.span(SECOND / 1_000, 2 * SECOND) } else { Duration::ZERO },
        cumulative: draw.chance(0.7),
        header_in_code: draw.chance(0.2),
        rto_initial: draw.span(SECOND, 9 * SECOND),
        reordering: draw.span(Duration::ZERO, 4 * SECOND),
        window_segments: 1 + draw.below(1_000) as u32,
        outgoing_bytes_max: 1 + draw.below(50_000),
        incoming_bytes_max: 65_536 + draw.below(100_000),
        outgoing_max: 1 + draw.below(8) as usize,
        open_max: 1 + draw.below(4) as usize,
        silence_limit: Duration::from_secs(60 + draw.below(100)),
        rate_bps: if draw.chance(0.5) { 0 } else { 8_000 << draw.below(10) },
        ..Config::default()
    }
}

#[test]
fn links_keep_the_laws() {
    hold_links_over_datagrams("aerotp", 128..=1_999, settings, Link::new);
}

#[test]
fn a_link_shows_all_its_counters() {
    let (connections, bundles) =
        (crate::observe::counts(&Counters::default()), crate::observe::counts(&BundleCounters::default()));
    let link = Link::new(Config::default(), Rng::new(1));
    crate::observe::tests::expect(&link, "aerotp", &[connections]);
    crate::observe::tests::expect(&link, "aerotp-bundles", &[bundles]);
}
