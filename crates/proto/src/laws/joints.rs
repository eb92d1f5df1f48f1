//! The joints and the wrappers, held to the contract as the owners of engines and as engines, with toys inside.

use super::frames::Damage;
use super::sweep;
use super::toy::{Flaw, Toy, world};
use crate::engine::Engine;
use crate::joint::{Fan, Stack, Through};
use crate::rng::Rng;
use crate::service::{Bundles, Frames, LinkId, Many};
use crate::time::Duration;
use crate::wrap::{Crossing, Lawful, Spoil, SpoilConfig, Tap};

/// A node with a joint or a wrapper of every kind in it, each in a `Lawful`.
fn tower(rng: Rng) -> impl Engine<Above = Many<LinkId, Bundles>, Below = Many<LinkId, Frames>> {
    let storey = move |link: LinkId| {
        let rng = rng.fork(&format!("{link:?}"));
        let config = SpoilConfig {
            loss: 0.1,
            duplication: 0.1,
            delay: 0.1,
            delay_max: Duration::from_secs(3),
            ..Default::default()
        };
        let spoil = Lawful::new("spoil", Spoil::<Frames>::new(config, rng.fork("spoil")));
        let toy = Lawful::new("toy", Toy::new(Flaw::None, rng));
        let tapped = Tap::new(Stack::new(toy, spoil), |_, _: Crossing<'_, Bundles, Frames>| {});
        Lawful::new("storey", tapped)
    };
    let fan = Lawful::new("fan", Fan::new(move |link, _| Some(storey(link))));
    let roof = Lawful::new("roof", Through::<Many<LinkId, Bundles>>::new());
    let cellar = Lawful::new("cellar", Through::<Many<LinkId, Frames>>::new());
    Stack::new(Stack::new(roof, fan), cellar)
}

#[test]
fn joints_keep_the_laws() {
    sweep("joints", 0, 1_000, |replay| world(replay, Damage::Slight, tower));
}
