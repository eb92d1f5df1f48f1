//! The laws, and what a link shows of itself.

use super::hostile::inject;
use super::services::pair;
use crate::aerotp::{BundleCounters, Config, Counters, Link};
use crate::laws::{Draw, hold_links_over_datagrams};
use crate::observe::Observation;
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

/// Connections of all services, with those that no bundle uses, on a line that loses, damages and repeats packets.
#[test]
fn connections_of_every_service_end_and_leave_nothing_behind() {
    for seed in 0..48 {
        let mut draw = Rng::new(seed);
        let service = TransportService::ALL[seed as usize % TransportService::ALL.len()];
        let drawn = settings(&mut draw);
        let config = Config {
            // Messages are as long as the pair makes them.
            packet_bytes: if service.keeps_messages() { 1_472 } else { drawn.packet_bytes },
            segment_bytes: if drawn.segment_bytes == 0 { 0 } else { 200 },
            parity_segments: draw.below(3) as u32,
            deliver_damaged: draw.chance(0.5),
            ..drawn
        };
        let length = draw.below(20_000);
        let mut pair = pair(&config, [0.0, 1e-6, 1e-5, 1e-4][draw.below(4) as usize], seed);
        let (mut losses, loss) = (draw.fork("losses"), 0.1 * draw.unit());
        pair.loses = Box::new(move |_, _| losses.chance(loss));
        pair.send(0, 1, service, length.max(1));
        for _ in 0..20 {
            pair.run(SECOND / 4);
            let (_, node, bytes) = pair.log[draw.below(pair.log.len() as u64) as usize].clone();
            inject(&mut pair, 1 - node, bytes);
        }
        pair.run_to_end(2_000 * SECOND);
        assert_eq!((pair.sent.len(), pair.failed.len()), (1, 0), "{seed} {service:?}");
        let arrived: u64 = pair.sinks[1].values().map(|sink| sink.bytes).sum();
        if service.acknowledges() {
            assert_eq!((arrived, pair.sinks[1].len()), (length.max(1), 1), "{seed} {service:?}");
        }
        pair.run(3 * config.silence_limit);
        for node in 0..2 {
            let shown = Observation::of(&pair.nodes[node].engine);
            for name in ["connections_incoming", "connections_outgoing", "bytes_incoming", "bytes_outgoing"] {
                assert_eq!(shown.parts[0].number(name), Some(0), "{seed} {service:?}: {name}");
            }
        }
    }
}

#[test]
fn a_link_shows_all_its_counters() {
    let (connections, bundles) =
        (crate::observe::counts(&Counters::default()), crate::observe::counts(&BundleCounters::default()));
    let link = Link::new(Config::default(), Rng::new(1));
    crate::observe::tests::expect(&link, "aerotp", &[connections]);
    crate::observe::tests::expect(&link, "aerotp-bundles", &[bundles]);
}
