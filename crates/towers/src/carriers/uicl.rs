//! Bundles over UI frames of AX.25, for groups of stations.

use super::ltp::or;
use super::members;
use crate::carrier::{About, Carrier, ChannelFacts, Family, LinkFacts, Medium, Preset, sections};
use crate::media::{Admission, Session, session_over};
use crate::path::{Hop, plain_ax25};
use longwire_proto::ax25::ADDRESS_BYTES;
use longwire_proto::bp::Eid;
use longwire_proto::joint::Origin;
use longwire_proto::rng::Rng;
use longwire_proto::time::Duration;
use longwire_proto::uicl::{Config, Group};
use longwire_settings::duration::short;
use longwire_settings::error::Error;
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
        port: None,
        media: &[Medium::Ui],
        takes_turns: true,
        acknowledges: true,
        resumes: false,
        is_called: false,
        is_group: true,
        multicast: false,
        negotiated: &[],
        families: &[Family {
            name: "uicl",
            about: "bundles over UI frames, designed for groups of stations (here one receiver), stored at each node",
            presets: &[Preset::new("one", "all segments once, then the missing ones on request", group)],
        }],
    };
    #[cfg(feature = "testing")]
    const FUZZ: longwire_proto::fuzz::Material = longwire_proto::uicl::fuzz::FUZZ;

    /// Values that the section leaves at their defaults follow from the channel.
    fn adapt(settings: Config, link: &LinkFacts<'_>) -> Config {
        let Some(ChannelFacts { parameters: radio, digipeaters, .. }) = &link.channel else {
            return settings;
        };
        let plain = Config::default();
        let access = millis(radio.access() + radio.turnaround);
        let slot = millis(access + radio.air_time(1, SHORT_FRAME_BYTES)).min(SLOT_MAX);
        let path_bytes = (ADDRESS_BYTES * digipeaters) as u64;
        Config {
            rate_bps: or(settings.rate_bps, plain.rate_bps, radio.rate_bps.into()),
            frame_bytes: or(settings.frame_bytes, plain.frame_bytes, plain.frame_bytes + path_bytes),
            access: or(settings.access, plain.access, access),
            answer_slot: or(settings.answer_slot, plain.answer_slot, slot),
            ..settings
        }
    }

    fn finish(settings: Config, link: &LinkFacts<'_>) -> Result<Config, Error> {
        let wrong = |what: String, hint: &str| Err(Error::new(what).hint(hint));
        let in_section = |key: &str, is_set: bool| is_set && !link.own.contains_key(key);
        let is_named = !settings.node_id.is_empty();
        if in_section("members", !settings.members.is_empty()) || in_section("node-id", is_named) {
            return wrong(
                "`uicl.members` and `uicl.node-id` cannot be set for all groups".into(),
                "set `uicl = { members = [..] }` in the [[link]]",
            );
        }
        if link.peer.is_some() {
            return wrong("a group has no `peer`".into(), "name its nodes with `uicl = { members = [..] }`");
        }
        if is_named && settings.node_id != link.node_id {
            return wrong("this node cannot be a member".into(), "list only the other nodes");
        }
        let members = members::checked(&settings.members, link.node_id)?;
        let members = members.iter().map(Eid::to_string).collect();
        Ok(Config { node_id: link.node_id.to_owned(), members, ..settings })
    }

    fn session(settings: &Config, _origin: Origin, rng: Rng) -> Session {
        session_over(Group::new(settings.clone(), rng))
    }

    fn explain(settings: &Config, link: &LinkFacts<'_>) -> Vec<String> {
        let asked = match (&settings.members[..], settings.needed) {
            ([], _) => "No members are named: any station that misses a segment asks for it. A bundle counts as sent when \
                        no more requests arrive, whether or not any station received it."
                .to_owned(),
            (members, needed) => format!(
                "{} of the members {} must confirm each bundle, answering in slots of {}; otherwise it stays here and is \
                 sent again later.",
                needed.map_or("All".to_owned(), |needed| needed.to_string()),
                members.join(", "),
                short(settings.answer_slot)
            ),
        };
        let LinkFacts { name, place, .. } = link;
        let tnc = link.channel.as_ref().map_or("", |channel| channel.tnc);
        vec![format!(
            "Link `{name}` sends to the group {place} over TNC `{tnc}` in UI frames, which all stations in range receive. \
             {asked} Not encrypted."
        )]
    }
}

impl Admission for Group {}

/// Length of a question to three members, or of an answer, with its frame, bytes.
const SHORT_FRAME_BYTES: u64 = 64;
/// Longest slot of an answer.
const SLOT_MAX: Duration = Duration::from_secs(65);

/// Rounds up to whole milliseconds.
fn millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

/// A group of one member, with response slots of the time that a response takes on the channel.
fn group(path: &[Hop]) -> Table {
    let plain = Config::default();
    let slowest = path.iter().min_by_key(|hop| hop.rate_bps);
    let uicl = match slowest.and_then(|hop| hop.radio.as_ref()) {
        Some(radio) => {
            let rate_bps = u64::from(radio.rate_bps);
            // Frames of 64 bytes: a question and a response. In whole milliseconds.
            let longer = |time: Duration| Duration::from_millis(time.as_millis() as u64 + 1);
            let frame = Duration::from_secs_f64(512.0 / rate_bps as f64);
            let (access, slot) = (longer(radio.access()), longer(radio.access() + frame));
            Config { rate_bps, access, answer_slot: slot.min(SLOT_MAX), ..plain }
        }
        None => plain,
    };
    sections([("uicl", to_table(&uicl)), ("ax25", to_table(&plain_ax25(path, 7)))])
}
