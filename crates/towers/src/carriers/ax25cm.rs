//! AX25CM-CL: TCPCL version 3 over a connected AX.25 link, as in DTN2.

use super::tcpcl;
use crate::carrier::{About, Carrier, Family, LinkFacts, Medium, Preset, sections};
use crate::media::{Admission, Session, session_over};
use crate::path::{Hop, plain_ax25};
use longwire_proto::joint::{Origin, Stack};
use longwire_proto::rng::Rng;
use longwire_proto::tcpcl::{Config, PacketStream, Tls, Versions};
use longwire_proto::time::Duration;
use longwire_settings::error::Error;
use longwire_settings::toml_text::to_table;
use toml::Table;

/// TCPCL version 3 over a connected AX.25 link.
#[derive(Debug)]
pub struct Ax25Cm;

impl Carrier for Ax25Cm {
    type Settings = Config;
    const ABOUT: About = About {
        name: "ax25cm",
        section: "ax25cm",
        random_label: "tcpcl",
        port: None,
        media: &[Medium::Ax25],
        takes_turns: true,
        acknowledges: true,
        resumes: true,
        is_called: true,
        is_group: false,
        multicast: false,
        negotiated: &[],
        families: &[Family {
            name: "ax25cm",
            about: "bundles over AX25CM-CL (TCPCL version 3 on a connected-mode AX.25 link, as in DTN2), stored at each \
                    node",
            presets: &[
                Preset::new("k7", "window of 7 frames, an acknowledgement every 8 segments", |path| {
                    segments(path, 7, 8)
                }),
                Preset::new("k7-ack-1", "the same, every segment acknowledged", |path| segments(path, 7, 1)),
                Preset::new("k7-ack-32", "the same, every 32 segments acknowledged", |path| {
                    segments(path, 7, 32)
                }),
                Preset::new("k4", "window of 4 frames, an acknowledgement every 8 segments", |path| {
                    segments(path, 4, 8)
                }),
                Preset::new("k1", "window of 1 frame, an acknowledgement every 8 segments", |path| {
                    segments(path, 1, 8)
                }),
            ],
        }],
    };
    #[cfg(feature = "testing")]
    const FUZZ: longwire_proto::fuzz::Material = longwire_proto::tcpcl::fuzz::FUZZ_PACKETS;

    fn defaults() -> Config {
        // The AX.25 link itself reports when the peer does not answer. TOML has no null, and without a value the table
        // would get the default of TCP.
        Config { connect_timeout: Some(Duration::from_secs(86_400)), ..Config::ax25("") }
    }

    fn finish(settings: Config, link: &LinkFacts<'_>) -> Result<Config, Error> {
        if settings.versions != Versions::Three || settings.tls != Tls::Off {
            return Err(
                Error::new("`ax25cm` is TCPCL version 3, without TLS").hint("remove `versions` and `tls`")
            );
        }
        Ok(tcpcl::identified(settings, link))
    }

    fn session(settings: &Config, origin: Origin, rng: Rng) -> Session {
        session_over(Stack::new(tcpcl::session(settings, origin, rng), PacketStream::new()))
    }

    /// By the beginning of a contact header of TCPCL 3 (RFC 7242 4.1).
    fn recognises(first: &[u8]) -> bool {
        first.starts_with(b"dtn!")
    }

    fn explain(_settings: &Config, link: &LinkFacts<'_>) -> Vec<String> {
        vec![connection(link, "TCPCL 3 over AX.25, as in DTN2")]
    }
}

impl Admission for Stack<longwire_proto::tcpcl::Session, PacketStream> {}

/// Describes a link over AX.25 and its convergence layer.
pub(super) fn connection(link: &LinkFacts<'_>, layer: &str) -> String {
    let tnc = link.channel.as_ref().map_or("", |channel| channel.tnc);
    format!(
        "{} over link `{}` to {} with TNC `{tnc}`, using {layer}; expects {}. Not encrypted.",
        link.connects(),
        link.name,
        link.place,
        link.expected()
    )
}

fn segments(path: &[Hop], window_frames: u8, ack_window: u32) -> Table {
    let ax25cm = Config { ack_window, ..Ax25Cm::defaults() };
    sections([("ax25cm", to_table(&ax25cm)), ("ax25", to_table(&plain_ax25(path, window_frames)))])
}
