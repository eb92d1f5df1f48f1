//! The table of convergence layers, and a file for each of them.

mod aerotp;
mod ax25cl;
mod ax25cm;
#[cfg(feature = "dummy")]
mod dummy;
mod ltp;
mod ltp_fec;
mod members;
mod norm;
mod saratoga;
mod tcpcl;
mod udp;
mod uicl;

pub use aerotp::AeroTp;
pub use ax25cl::Ax25Cl;
pub use ax25cm::Ax25Cm;
pub use ltp::Ltp;
pub use ltp_fec::{LtpFec, LtpFecSettings};
pub use norm::Norm;
pub use saratoga::Saratoga;
pub use tcpcl::Tcpcl;
pub use udp::Udp;
pub use uicl::Uicl;

use crate::carrier::AnyCarrier;

/// Maximum number of members of a group that every carrier for groups can name: that of UI frames.
pub const GROUP_MEMBERS_MAX: usize = longwire_proto::uicl::MEMBERS_MAX;

/// All convergence layers, in the order in which they are listed.
pub const CARRIERS: &[&dyn AnyCarrier] = &[
    &Tcpcl,
    &Udp,
    &Ltp,
    &Norm,
    &LtpFec,
    &Saratoga,
    &AeroTp,
    &Ax25Cm,
    &Ax25Cl,
    &Uicl,
    #[cfg(feature = "dummy")]
    &dummy::Dummy,
];

/// Returns the carrier with this name.
pub fn find(name: &str) -> Option<&'static dyn AnyCarrier> {
    CARRIERS.iter().copied().find(|carrier| carrier.about().name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::{Carrier, LinkFacts, Place};
    use crate::path::Hop;
    use longwire_proto::ax25::RadioParameters;
    use longwire_settings::toml_text::{from_table, merge, to_table};
    use std::fmt::Debug;
    use toml::Table;

    fn paths() -> [Vec<Hop>; 4] {
        let line = Hop {
            rate_bps: 115_200,
            back_rate_bps: Some(9600),
            delays_s: 2.56,
            mtu_bytes: 1500,
            queue_bytes: 20_000,
            drops: true,
            mean_ber: 1e-6,
            radio: None,
            ui_frames: false,
        };
        let radio = Hop {
            rate_bps: 1200,
            mtu_bytes: 256,
            radio: Some(RadioParameters { rate_bps: 1200, ..RadioParameters::default() }),
            ..line.clone()
        };
        let frames = Hop { mtu_bytes: 256, ui_frames: true, ..line.clone() };
        [vec![], vec![line], vec![radio], vec![frames]]
    }

    #[test]
    fn every_name_is_given_once() {
        let names = |of: fn(&'static dyn AnyCarrier) -> Vec<&'static str>| {
            let mut names: Vec<&str> = CARRIERS.iter().flat_map(|carrier| of(*carrier)).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{names:?}");
        };
        names(|carrier| vec![carrier.about().name]);
        names(|carrier| vec![carrier.about().section]);
        names(|carrier| carrier.about().families.iter().map(|family| family.name).collect());
        for family in CARRIERS.iter().flat_map(|carrier| carrier.about().families) {
            let mut presets: Vec<&str> = family.presets.iter().map(|preset| preset.name).collect();
            presets.sort_unstable();
            assert!(!presets.is_empty() && presets.windows(2).all(|two| two[0] != two[1]), "{presets:?}");
        }
        for carrier in CARRIERS {
            assert!(!carrier.about().media.is_empty());
            assert_eq!(
                find(carrier.about().name).map(|found| found.about().section),
                Some(carrier.about().section)
            );
        }
        assert!(find("tcpl").is_none());
    }

    #[test]
    fn every_preset_is_read_and_what_is_wrong_is_named() {
        for carrier in CARRIERS {
            let about = carrier.about();
            let plan = |section: &Table, own: &Table| {
                let link = LinkFacts { own: own.clone(), ..LinkFacts::default() };
                carrier.plan(section, &link, Place::Experiment)
            };
            assert!(plan(&Table::new(), &Table::new()).is_ok(), "the defaults of {}", about.name);
            for preset in about.families.iter().flat_map(|family| family.presets) {
                for path in paths() {
                    let section =
                        (preset.settings)(&path)[about.section].as_table().expect("a table").clone();
                    let read = plan(&section, &Table::new());
                    let read = read.unwrap_or_else(|error| panic!("{}: {error}", preset.name));
                    assert_eq!(read.carrier().about().name, about.name);
                }
            }
            let wrong: Table = "no-such-key = 1".parse().expect("TOML");
            for error in [plan(&wrong, &Table::new()), plan(&Table::new(), &wrong)].map(Result::unwrap_err) {
                let place = format!("[settings.{}]: unknown field `no-such-key`", about.section);
                assert!(error.what.starts_with(&place) && error.hint.is_some(), "{error}");
            }
            let wrong: Table = "open-max = 0".parse().expect("TOML");
            let error = plan(&Table::new(), &wrong).unwrap_err();
            let value = format!("`settings.{}.open-max` is 0", about.section);
            assert!(error.what.starts_with(&value) && error.hint.is_some(), "{error}");
        }
    }

    /// A datagram is recognised by its first octet if the decoder does not refuse its version or its type.
    #[test]
    fn datagrams_are_recognised_as_their_decoders_do() {
        use longwire_proto::codec::DecodeError;
        use longwire_proto::{fecframe, ltp, saratoga};
        let refuses = |error: Option<DecodeError>, places: &[&str]| {
            error.is_some_and(|error| places.iter().any(|place| error.to_string().starts_with(place)))
        };
        for first in 0..=u8::MAX {
            let datagram = [&[first][..], &[1; 40]].concat();
            let recognised = |name: &str| find(name).expect("a carrier").recognises(&datagram);
            let decoded = ltp::wire::Segment::decode(&mut datagram.clone().into()).err();
            assert_eq!(recognised("ltp"), !refuses(decoded, &["the version", "an undefined"]), "{first}");
            let decoded = fecframe::wire::Packet::decode(&mut datagram.clone().into()).err();
            assert_eq!(recognised("ltp-fec"), !refuses(decoded, &["kind of the packet"]), "{first}");
            let decoded = saratoga::wire::Packet::decode(&mut datagram.clone().into()).err();
            assert_eq!(recognised("saratoga"), !refuses(decoded, &["the version", "the packet"]), "{first}");
            let names = ["udp", "ltp", "ltp-fec", "saratoga"];
            assert!(names.into_iter().filter(|name| recognised(name)).count() <= 1, "{first}");
        }
        for name in ["udp", "ltp"] {
            assert!(find(name).expect("a carrier").recognises(&[0; 4]), "a keep-alive of {name}");
        }
        let bundles = [&[0x9f, 0x88][..], &[0x06, 0x10]];
        assert!(bundles.into_iter().all(|first| find("udp").expect("a carrier").recognises(first)));
    }

    /// The settings of a preset are those of the table that is made of them: nothing is lost that TOML cannot express.
    #[test]
    fn settings_survive_being_a_table() {
        fn survive<C: Carrier<Settings: PartialEq + Debug>>(_: &C) {
            for preset in C::ABOUT.families.iter().flat_map(|family| family.presets) {
                for path in paths() {
                    let table =
                        (preset.settings)(&path)[C::ABOUT.section].as_table().expect("a table").clone();
                    let read: C::Settings =
                        from_table(table.clone(), "a preset").expect("it is in the table");
                    assert_eq!(to_table(&read), table);
                    let mut over_defaults = to_table(&C::defaults());
                    merge(&mut over_defaults, &table);
                    let again: C::Settings = from_table(over_defaults, "a preset").expect("the same");
                    assert_eq!(again, read, "{}: no default shows through", preset.name);
                }
            }
        }
        survive(&Tcpcl);
        survive(&Udp);
        survive(&Ltp);
        survive(&LtpFec);
        survive(&Norm);
        survive(&Saratoga);
        survive(&Ax25Cm);
        survive(&Ax25Cl);
        survive(&Uicl);
    }

    /// An own table changes single settings of the section, and the facts of the link complete both.
    #[test]
    fn a_plan_is_made_from_the_section_the_own_table_and_the_link() {
        let section: Table = "keepalive = '20 s'\nsegment-bytes = 1000".parse().expect("TOML");
        let own: Table = "segment-bytes = 2000".parse().expect("TOML");
        let peer = Some("dtn://b/");
        let link = LinkFacts { node_id: "dtn://a/", peer, own, ..LinkFacts::default() };
        let plan = AnyCarrier::plan(&Tcpcl, &section, &link, Place::Configuration).expect("it makes sense");
        let settings = plan.settings::<Tcpcl>().expect("those of TCPCL");
        assert_eq!((settings.keepalive.as_secs(), settings.segment_bytes), (20, 2000));
        assert_eq!((&settings.node_id[..], settings.peer_node_id.as_deref()), ("dtn://a/", Some("dtn://b/")));
        assert_eq!(settings.transfers_max, <Tcpcl as Carrier>::defaults().transfers_max);
        assert!(plan.settings::<Udp>().is_none());
    }
}
