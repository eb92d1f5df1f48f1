//! Every carrier of the table keeps the laws on each of its media, and no bytes break it.

mod table;

use longwire_proto::fuzz::{seeds, try_codec, try_play};
use longwire_towers::trial::plays;
use longwire_towers::{CARRIERS, Medium};
use table::{Flawed, breaks, hold};

#[test]
fn every_carrier_keeps_the_laws_on_every_medium() {
    for carrier in CARRIERS {
        for medium in carrier.about().media {
            let counts = hold(*carrier, *medium, 100, None);
            let happened = [counts.sent, counts.faults, counts.timeouts];
            assert!(happened.iter().all(|count| *count > 0), "{}: {counts}", carrier.about().name);
        }
    }
}

#[test]
fn a_carrier_that_confirms_before_its_user_accepts_is_found() {
    for carrier in CARRIERS.iter().filter(|carrier| carrier.about().acknowledges) {
        for medium in carrier.about().media {
            breaks(*carrier, *medium, Flawed::that_confirms_early, &["safe"]);
        }
    }
}

#[test]
fn a_carrier_that_loses_datagrams_silently_is_found() {
    for carrier in CARRIERS {
        for medium in carrier.about().media.iter().filter(|medium| matches!(medium, Medium::Udp | Medium::Ui))
        {
            breaks(*carrier, *medium, Flawed::that_loses_datagrams, &["has not released", "is not sent"]);
        }
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
