//! Bundles over UDP in virtual time: as fast as the link, without retransmissions.

use longwire_lab::run::{NotDelivered, Outcome, Setup, Wanted};
use longwire_lab::scenario::Scenario;
use std::path::Path;

fn play(nodes: &str, link: &str, run: u32) -> Outcome {
    let text = format!(
        "protocol = 'udp'\nnodes = [{nodes}]\nduration-limit-s = 3000\n[workload]\nbytes = 300000\n\
         [[link]]\nprofile = 'cislunar'\n{link}"
    );
    let scenario = Scenario::parse(&text, "test").unwrap();
    Setup::new(scenario, Path::new(".")).unwrap().run(run, Wanted::default())
}

#[test]
fn a_clean_link_is_used_from_the_first_bit_to_the_last() {
    // Every datagram is a bundle with its own header: with short datagrams a third is header.
    for (link, most) in
        [("ber = 0", 1.15), ("ber = 0\ntail-drop = true", 1.15), ("ber = 0\nmtu-bytes = 300", 1.9)]
    {
        let outcome = play("'tx', 'rx'", link, 0);
        assert!(outcome.delivered, "{link}: {:?}", outcome.missed);
        let ratio = outcome.transfer_s.unwrap() / outcome.limit.streaming.error_free_s;
        let counts = outcome.observed.sum("udp");
        let fragments = counts["sent"];
        assert!((1.0..most).contains(&ratio), "{link}: {ratio} times the limit in {fragments} datagrams");
        assert!(fragments > 200 && counts["dropped"] == 0, "{counts:?}");
        assert_eq!(outcome.hops[0].repeated_frames, 0);
    }
}

#[test]
fn a_relay_sends_each_fragment_on_when_it_has_come() {
    let one = play("'tx', 'rx'", "ber = 0", 0).transfer_s.unwrap();
    let two = play("'tx', 'mx', 'rx'", "ber = 0", 0);
    assert!(two.delivered);
    let more = two.transfer_s.unwrap() - one;
    // The relay's name makes each fragment a little longer than a datagram, so that it is forwarded as two.
    assert!(
        (1.28..one / 4.0).contains(&more),
        "{more} s more than {one} s: a delay of 1.28 s, and not the file again"
    );
}

#[test]
fn on_a_noisy_link_what_is_damaged_is_lost() {
    let outcome = play("'tx', 'rx'", "ber = 1e-5", 0);
    assert!(!outcome.delivered);
    assert_eq!(outcome.missed, Some(NotDelivered::Time(3000.0)));
    let hop = &outcome.hops[0];
    assert!(hop.damaged_frames > 5 && hop.repeated_frames == 0, "{} damaged", hop.damaged_frames);
    assert_eq!(outcome.transfer_s, None);
}
