//! A carrier without a line of test of its own has laws, and its flaws are found.

mod table;

use longwire_proto::fuzz::{seeds, try_play};
use longwire_towers::carriers::find;
use longwire_towers::trial::plays;
use table::{Flawed, breaks, hold};

#[test]
fn the_dummy_keeps_the_laws_and_broken_ones_do_not() {
    let dummy = find("dummy").expect("the feature is on");
    for medium in dummy.about().media {
        let counts = hold(dummy, *medium, 100, None);
        assert!(counts.sent > 0 && counts.faults > 0 && counts.timeouts > 0, "{counts}");
        breaks(dummy, *medium, Flawed::that_confirms_early, &["safe"]);
        breaks(dummy, *medium, Flawed::that_loses_datagrams, &["has not released", "is not sent"]);
    }
}

#[test]
fn no_script_breaks_the_dummy() {
    let plays: Vec<_> = plays().filter(|play| play.name().starts_with("dummy")).collect();
    assert_eq!(plays.len(), 4, "on both media, from both sides");
    plays.iter().for_each(|play| try_play(&play.name(), seeds() / 2, |script| play.run(script)));
}
