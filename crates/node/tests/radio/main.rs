//! Our AX.25 over KISS compared with Dire Wolf's own: stations on one channel of sound, without a sound card.
//!
//! `./test radio` runs the long tests, which are ignored otherwise, and prints their table.

mod calls;
mod channel;
#[path = "../common/mod.rs"]
mod common;
mod direwolf;
mod mail;
mod modem;
mod nodes;
mod ours;
mod pairs;
mod table;
mod transfers;

use common::DEADLINE;
use direwolf::{Air, Rig, THEIRS, is_installed};
use longwire_node::tnc::{TransmissionReport, identify};
use longwire_proto::controller::ChannelParameters;
use longwire_proto::kiss::Acknowledgement;
use longwire_proto::rng::Rng;
use ours::Ours;
use std::time::Duration;

fn content(length: usize, name: &str) -> Vec<u8> {
    let mut content = vec![0; length];
    Rng::new(1).fork(name).fill(&mut content);
    content
}

/// Our station connects, and every byte arrives in both directions; the TNC does not support acknowledgement mode, which is
/// detected.
#[tokio::test]
async fn a_short_transfer_both_ways() {
    if !is_installed() {
        return;
    }
    let air = Air { rate_bps: 9600, window: 4, destroyed_percent: 0, digipeater: false };
    let rig = Rig::start("short", air);
    let mut ours = Ours::new(&rig, Acknowledgement::Probe);
    let mut theirs = rig.user(1, THEIRS).await;
    let (there, back) = (content(900, "there"), content(700, "back"));
    let story = async {
        let (we_call, they_hear) = tokio::join!(ours.call(), theirs.called());
        we_call.and(they_hear)?;
        let (_, heard) = tokio::try_join!(ours.send(&there), theirs.receive(there.len()))?;
        assert!(heard == there, "every byte is as it was sent");
        theirs.send(&back).await;
        assert!(ours.receive(back.len()).await? == back, "every byte is as it was sent");
        tokio::join!(ours.close(), theirs.closed()).1
    };
    tokio::time::timeout(DEADLINE, story).await.unwrap().unwrap();
    assert_eq!(ours.driver.engine().lower.acknowledges(), Some(false));
    assert!(rig.channel.noted().said.len() > 8, "the channel has heard their frames");
}

/// Dire Wolf keys its transmitter for an identification. In KISS mode it reports nothing if it has no acknowledgement mode, as 1.6.
#[test]
fn an_identification_is_transmitted_and_reported() {
    if !is_installed() {
        return;
    }
    let air = Air { rate_bps: 9600, window: 4, destroyed_percent: 0, digipeater: false };
    let rig = Rig::start("identify", air);
    let own = direwolf::OURS.parse().unwrap();
    let channel =
        ChannelParameters { rate_bps: 9600, tx_delay: Duration::from_millis(150), ..Default::default() };
    for (place, reports) in [
        (rig.agwpe(0), &[TransmissionReport::Transmitted][..]),
        (rig.kiss(0), &[TransmissionReport::Nothing, TransmissionReport::Transmitted]),
    ] {
        let said = rig.channel.noted().said.len();
        let report = identify(own, "test", &place.parse().unwrap(), channel.clone(), Duration::from_secs(60));
        assert!(reports.contains(&report.unwrap()), "{place}");
        rig.channel.record().wait(|noted| noted.said.len() > said);
    }
}

/// The file in each direction, at each rate and window, compared with Dire Wolf to Dire Wolf on the same rig.
#[tokio::test]
#[ignore = "minutes of real time: ./test radio"]
async fn table() {
    if is_installed() {
        table::measure().await;
        pairs::measure().await;
    }
}
