//! Joints and wrappers under the contract, both as owners of engines and as engines, with toys inside.

use super::frames::BitErrors;
use super::sweep;
use super::toy::{Flaw, Toy, world};
use crate::engine::Engine;
use crate::joint::{Fan, PassThrough, Stack};
use crate::rng::Rng;
use crate::service::{Bundles, Frames, LinkId, Many};
use crate::time::Duration;
use crate::wrap::{Checked, Crossing, Impair, ImpairConfig, Tap};

/// A node with a joint and a wrapper of every kind, each in a `Checked`.
fn tower(rng: Rng) -> impl Engine<Above = Many<LinkId, Bundles>, Below = Many<LinkId, Frames>> {
    let storey = move |link: LinkId| {
        let rng = rng.fork(&format!("{link:?}"));
        let config = ImpairConfig {
            loss: 0.1,
            duplication: 0.1,
            delay: 0.1,
            delay_max: Duration::from_secs(3),
            ..Default::default()
        };
        let spoil = Checked::new("spoil", Impair::<Frames>::new(config, rng.fork("spoil")));
        let toy = Checked::new("toy", Toy::new(Flaw::None, rng));
        let tapped = Tap::new(Stack::new(toy, spoil), |_, _: Crossing<'_, Bundles, Frames>| {});
        Checked::new("storey", tapped)
    };
    let mut fan = Fan::new(move |link, _| Some(storey(link)));
    fan.on_end(|_, storey| assert!(storey.finished(), "only engines that have finished end here"));
    let fan = Checked::new("fan", fan);
    let roof = Checked::new("roof", PassThrough::<Many<LinkId, Bundles>>::new());
    let cellar = Checked::new("cellar", PassThrough::<Many<LinkId, Frames>>::new());
    Stack::new(Stack::new(roof, fan), cellar)
}

#[test]
fn joints_keep_the_laws() {
    sweep("joints", 0, 1_000, |replay| world(replay, BitErrors::Slight, tower));
}
