//! Every carrier of the table keeps the laws on each of its media, and no bytes break it.

mod table;

use longwire_proto::fuzz::{seeds, try_codec, try_play};
use longwire_towers::CARRIERS;
use longwire_towers::testing::plays;
use table::{finds_flaws, hold};

#[test]
fn every_carrier_keeps_the_laws_on_every_medium() {
    for carrier in CARRIERS {
        carrier.about().media.iter().for_each(|medium| hold(*carrier, *medium));
    }
}

#[test]
fn the_laws_find_flaws_in_every_carrier_on_every_medium() {
    for carrier in CARRIERS {
        carrier.about().media.iter().for_each(|medium| finds_flaws(*carrier, *medium));
    }
}

#[test]
fn no_bytes_break_a_codec() {
    let codecs = CARRIERS.iter().flat_map(|carrier| carrier.fuzz().codecs);
    codecs.for_each(|codec| try_codec(codec, seeds()));
}

#[test]
fn no_script_breaks_a_session() {
    plays().for_each(|play| try_play(&play.name(), seeds() / 2, |script| play.run(script)));
}
