//! Bundles over UI frames of AX.25, for groups of stations.

use crate::carrier::{About, Carrier, Family, LinkFacts, Medium, Preset, sections};
use crate::media::{Session, session_over};
use crate::path::{Hop, plain_ax25};
use longwire_proto::joint::Origin;
use longwire_proto::rng::Rng;
use longwire_proto::time::Duration;
use longwire_proto::uicl::{Config, Group};
use longwire_settings::toml_text::to_table;
use toml::Table;

/// Bundles over UI frames.
#[derive(Debug)]
pub struct Uicl;

impl Carrier for Uicl {
    type Settings = Config;
    const ABOUT: About = About {
        name: "uicl",
        section: "uicl",
        random_label: "uicl",
        media: &[Medium::Ui],
        acknowledges: true,
        resumes: false,
        is_group: true,
        negotiated: &[],
        families: &[Family {
            name: "uicl",
            about: "bundles over UI frames, designed for groups of stations (here one receiver), stored at each node",
            presets: &[Preset {
                name: "one",
                about: "all segments once, then the missing ones on request",
                settings: group,
            }],
        }],
    };

    fn defaults() -> Config {
        Config::default()
    }

    fn finish(settings: Config, link: &LinkFacts<'_>) -> Config {
        Config { node_id: link.node_id.to_owned(), ..settings }
    }

    fn session(settings: &Config, _origin: Origin, rng: Rng) -> Session {
        session_over(Group::new(settings.clone(), rng))
    }
}

/// A group of one member, with response slots of the time that a response takes on the channel.
fn group(path: &[Hop]) -> Table {
    let plain = Config::default();
    let slowest = path.iter().min_by_key(|hop| hop.rate_bps);
    let uicl = match slowest.and_then(|hop| hop.radio.as_ref()) {
        Some(radio) => {
            let rate_bps = u64::from(radio.rate_bps);
            // Frames of 64 bytes: a question and a response. In whole milliseconds.
            let millis = |time: Duration| Duration::from_millis(time.as_millis() as u64 + 1);
            let frame = Duration::from_secs_f64(512.0 / rate_bps as f64);
            let (access, slot) = (millis(radio.access()), millis(radio.access() + frame));
            Config { rate_bps, access, answer_slot: slot.min(Duration::from_secs(65)), ..plain }
        }
        None => plain,
    };
    sections([("uicl", to_table(&uicl)), ("ax25", to_table(&plain_ax25(path, 7)))])
}
