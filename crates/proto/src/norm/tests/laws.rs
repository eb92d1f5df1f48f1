//! The laws, and what a link shows of itself.

use super::SECOND;
use crate::laws::{Draw, hold_links_over_datagrams};
use crate::norm::wire::FecScheme;
use crate::norm::{BundleCounters, Config, CongestionControl, Counters, Link};
use crate::rng::Rng;
use crate::time::Duration;

/// Settings for the hostile medium, on which a datagram takes up to 3 s and the next one may leave only then.
fn settings(draw: &mut Rng) -> Config {
    let block_symbols = draw.between(1, 64);
    let parity_symbols = draw.below(20);
    let schemes = [FecScheme::ReedSolomon8, FecScheme::ReedSolomon, FecScheme::SmallBlock];
    Config {
        segment_bytes: draw.between(40, 1_000),
        block_symbols,
        parity_symbols,
        auto_parity: draw.below(parity_symbols + 1),
        fec_scheme: schemes[draw.below(3) as usize],
        backoff_factor: if draw.chance(0.5) { None } else { Some(draw.below(6) as u8) },
        group_size: if draw.chance(0.5) { None } else { Some(1 + draw.below(100)) },
        robust_factor: 20 + draw.below(10) as u32,
        watermark_interval: draw.span(SECOND / 10, 9 * SECOND),
        objects_max: 1 + draw.below(8) as usize,
        outgoing_bytes_max: 1 + draw.below(50_000),
        object_bytes_max: 20_001 + draw.below(1_000_000),
        incoming_bytes_max: 1 + draw.below(100_000),
        unaccepted_bytes_max: 1 + draw.below(100_000),
        open_max: 1 + draw.below(4) as usize,
        silence_limit: Duration::from_secs(60 + draw.below(100)),
        rate_bps: if draw.chance(0.5) { 0 } else { 8_000 << draw.below(10) },
        congestion_control: match draw.below(3) {
            0 => CongestionControl::None,
            1 => CongestionControl::Tfmcc,
            _ => CongestionControl::TfmccLossTolerant,
        },
        rate_min_bps: 8_000 << draw.below(5),
        group: Some(false),
        ..Config::default()
    }
}

/// A node has an identifier of its own.
fn link(config: Config, mut rng: Rng) -> Link {
    Link::new(Config { norm_node_id: Some(rng.next_u32() >> 1 | 1), ..config }, rng)
}

#[test]
fn links_keep_the_laws() {
    hold_links_over_datagrams("norm", 1_100..=1_999, settings, link);
}

#[test]
fn a_link_shows_all_its_counters() {
    let (session, bundles) =
        (crate::observe::counts(&Counters::default()), crate::observe::counts(&BundleCounters::default()));
    let link = Link::new(Config::default(), Rng::new(1));
    crate::observe::tests::expect(&link, "norm", &[session]);
    crate::observe::tests::expect(&link, "norm-bundles", &[bundles]);
}
