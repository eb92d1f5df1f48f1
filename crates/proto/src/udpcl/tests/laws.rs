//! The laws, and what a link shows of itself.

use super::SECOND;
use crate::fuzz::{seeds, try_codec};
use crate::joint::{Fan, Origin};
use crate::laws::{BundleUserBehaviour, Draw, Layer, hold_over_datagrams};
use crate::rng::Rng;
use crate::service::LinkId;
use crate::time::Duration;
use crate::udpcl::{Config, Counters, Link, fuzz};
use crate::wrap::Checked;

/// All links of a node.
type Links = Fan<LinkId, Checked<Link>, Box<dyn FnMut(LinkId, Origin) -> Option<Checked<Link>>>>;

fn layer(draw: &mut Rng, config: Config) -> Layer<'static, Links> {
    let users = BundleUserBehaviour { acknowledged: false, ..BundleUserBehaviour::draw(draw) };
    let crashes = config.copies == 1;
    let layer = Layer::new(users, move |start| {
        let config = config.clone();
        let link = move || Checked::new("link", Link::new(config.clone(), start.rng.clone()));
        Fan::new(Box::new(move |_, origin| (origin == Origin::Above).then(&link)) as Box<_>)
    });
    // A receiver that crashes forgets what it has received, and receives the copies.
    Layer { crashes, patience: Duration::from_secs(20_000), ..layer }
}

#[test]
fn links_keep_the_laws() {
    hold_over_datagrams("udpcl", 1_000, 65_507..=65_507, |world| {
        let draw = &mut world.draw;
        let config = Config {
            datagram_bytes_max: 65_507,
            rate_bps: if draw.chance(0.2) { 0 } else { 8_000 << draw.below(14) },
            burst: draw.span(Duration::ZERO, SECOND),
            open_max: 1 + draw.below(4) as usize,
            incoming_max: 1 + draw.below(4) as usize,
            ..Config::default()
        };
        layer(draw, config)
    });
}

/// Segments are lost, overtake each other and, as copies, arrive several times.
#[test]
fn links_with_transfers_keep_the_laws() {
    hold_over_datagrams("udpcl transfers", 1_000, 64..=1_999, |world| {
        let draw = &mut world.draw;
        let copies = 1 + draw.below(3) as u32;
        let config = Config {
            datagram_bytes_max: draw.between(64, 3_000),
            transfers: true,
            transfer_bytes_max: draw.between(100, 40_000),
            copies,
            copy_interval: draw.span(Duration::from_millis(1), 5 * SECOND),
            copies_bytes_max: draw.between(1, 50_000),
            rate_bps: if draw.chance(0.2) { 0 } else { 8_000 << draw.below(14) },
            burst: draw.span(Duration::ZERO, SECOND),
            open_max: 1 + draw.below(4) as usize,
            incoming_max: 1 + draw.below(4) as usize,
            // With little memory a receiver forgets which copies it has received.
            incoming_bytes_max: if copies == 1 { draw.between(1_000, 400_000) } else { 16 << 20 },
            ..Config::default()
        };
        layer(draw, config)
    });
}

#[test]
fn no_bytes_break_the_codec() {
    fuzz::FUZZ.codecs.iter().for_each(|codec| try_codec(codec, seeds()));
}

#[test]
fn a_link_shows_all_its_counters() {
    let counters = crate::observe::counts(&Counters::default());
    crate::observe::tests::expect(&Link::new(Config::default(), Rng::new(1)), "udpcl", &[counters]);
}
