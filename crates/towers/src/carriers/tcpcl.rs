//! TCPCL over TCP: version 3 (RFC 7242) and version 4 (RFC 9174).

use crate::carrier::{About, Carrier, Family, LinkFacts, Medium, Preset, sections};
use crate::media::{Admission, Session, session_over};
use crate::path::{Hop, linux_6_as_installed, round_trip, tuned_tcp};
use longwire_proto::joint::Origin;
use longwire_proto::rng::Rng;
use longwire_proto::tcp::config::Profile;
use longwire_proto::tcpcl::{self, AdmissionDecision, CallerIdentity, Config, Tls, Versions};
use longwire_proto::time::{Duration, Instant};
use longwire_settings::error::Error;
use longwire_settings::figure::figure;
use longwire_settings::toml_text::to_table;
use toml::Table;

/// TCPCL over TCP.
#[derive(Debug)]
pub struct Tcpcl;

/// Description of the tuned settings.
const TUNED: &str = "windows of twice the bandwidth-delay product, an initial window that fills the link, segments of \
                     16 KB, timers set for its round trip";

/// Timeout longer than TCP tries to connect, also with the timers for the longest delays. TOML has no value for "never", and
/// a missing key means the default.
const A_DAY: Duration = Duration::from_secs(86_400);

impl Carrier for Tcpcl {
    type Settings = Config;
    const ABOUT: About = About {
        name: "tcp",
        section: "tcpcl",
        random_label: "tcpcl",
        port: Some(4556),
        media: &[Medium::Tcp],
        takes_turns: false,
        acknowledges: true,
        resumes: true,
        is_called: true,
        is_group: false,
        multicast: false,
        // Two nodes that both support both versions use the newer one.
        negotiated: &[("versions", "4")],
        families: &[
            Family {
                name: "tcpcl3",
                about: "bundles over TCPCL version 3 (RFC 7242), stored at each node",
                presets: &[
                    Preset::new(
                        "dtn2",
                        "defaults of DTN2 and Linux 2.4: windows of 64 KB, segments of 4,096 bytes",
                        |_| settings(Config::dtn2(""), Profile::linux_2_4()),
                    ),
                    Preset::new("tuned", TUNED, |path| tuned(Versions::Three, path)),
                ],
            },
            Family {
                name: "tcpcl4",
                about: "bundles over TCPCL version 4 (RFC 9174), stored at each node",
                presets: &[
                    Preset::new("default", "defaults, on current Linux (TCP as in tcp/linux-6)", |_| {
                        settings(Config::version_4(""), linux_6_as_installed())
                    }),
                    Preset::new("tuned", TUNED, |path| tuned(Versions::Four, path)),
                ],
            },
        ],
    };
    #[cfg(feature = "testing")]
    const FUZZ: longwire_proto::fuzz::Material = tcpcl::fuzz::FUZZ;

    fn finish(settings: Config, link: &LinkFacts<'_>) -> Result<Config, Error> {
        let encrypts = link.own.get("tls").is_some_and(|tls| tls.as_str() != Some("off"));
        if link.is_amateur && encrypts {
            return Err(Error::new("the link is `amateur`: encryption is not allowed")
                .hint("remove `tls`; amateur links never use it"));
        }
        let tls = if link.is_amateur { Tls::Off } else { settings.tls };
        if tls == Tls::Require && settings.versions == Versions::Three {
            return Err(
                Error::new("TCPCL version 3 has no TLS").hint("set `versions = \"4\"` or `tls = \"off\"`")
            );
        }
        let tls_identity = settings.tls_identity || link.peer_proves;
        let queue_bytes = Some(link.queue_bytes).filter(|bytes| *bytes > 0);
        let ample_room_bytes = settings.ample_room_bytes.or(queue_bytes);
        Ok(Config { tls, tls_identity, ample_room_bytes, ..identified(settings, link) })
    }

    fn session(settings: &Config, origin: Origin, rng: Rng) -> Session {
        session_over(session(settings, origin, rng))
    }

    /// Warns about sessions that time out before the peer's first message can arrive: one side knows the session up to a
    /// round trip before the other, and the other side's first keep-alive follows an interval later.
    fn cautions(settings: &Config, path: &[Hop]) -> Vec<String> {
        let silence = settings.keepalive_timeout.unwrap_or(settings.keepalive * 2);
        let round_trip = round_trip(path);
        if settings.keepalive.is_zero() || silence >= round_trip + settings.keepalive {
            return Vec::new();
        }
        vec![format!(
            "a session times out after {} s of silence, but with keep-alives every {} s and a round trip of {} s the \
             silence lasts longer, so the session reconnects for ever; increase `keepalive-timeout`",
            figure(silence.as_secs_f64()),
            figure(settings.keepalive.as_secs_f64()),
            figure(round_trip.as_secs_f64())
        )]
    }

    fn explain(_settings: &Config, link: &LinkFacts<'_>) -> Vec<String> {
        let LinkFacts { name, place, .. } = link;
        vec![format!("{} over link `{name}` to {place}; expects {}.", link.connects(), link.expected())]
    }

    fn tls(settings: &Config) -> Tls {
        settings.tls
    }
}

impl Admission for tcpcl::Session {
    fn await_admission(&mut self) {
        self.await_admission();
    }

    fn claim(&self) -> Option<CallerIdentity<'_>> {
        self.claim()
    }

    fn judge(&mut self, now: Instant, decision: AdmissionDecision) {
        self.judge(now, decision);
    }
}

/// Settings with the node IDs of both sides.
pub(super) fn identified(settings: Config, link: &LinkFacts<'_>) -> Config {
    let peer_node_id = settings.peer_node_id.or_else(|| link.peer.map(str::to_owned));
    Config { node_id: link.stated_node_id(settings.node_id), peer_node_id, ..settings }
}

/// Creates a session of TCPCL.
pub(super) fn session(settings: &Config, origin: Origin, rng: Rng) -> tcpcl::Session {
    match origin {
        Origin::Above => tcpcl::Session::active(settings.clone(), rng),
        Origin::Below => tcpcl::Session::passive(settings.clone(), rng),
    }
}

fn settings(mut tcpcl: Config, tcp: Profile) -> Table {
    tcpcl.connect_timeout.get_or_insert(A_DAY);
    sections([("tcpcl", to_table(&tcpcl)), ("tcp", to_table(&tcp))])
}

fn tuned(versions: Versions, path: &[Hop]) -> Table {
    settings(Config { versions, ..tuned_session(path) }, tuned_tcp(path))
}

/// Segments that are acknowledged one by one and so limit the cost of a break, and timers longer than the round trip.
fn tuned_session(path: &[Hop]) -> Config {
    // Whole seconds, because more digits are hard to read and write.
    let round_trip = Duration::from_secs_f64(round_trip(path).as_secs_f64().ceil());
    let plain = Config::default();
    // The protocol has whole seconds.
    let keepalive = Duration::from_secs((round_trip * 2).as_secs().max(plain.keepalive.as_secs()));
    Config {
        segment_bytes: 16_384,
        keepalive,
        keepalive_timeout: Some(keepalive * 2 + round_trip * 2),
        connect_timeout: None,
        contact_timeout: plain.contact_timeout + round_trip * 4,
        close_timeout: plain.close_timeout + round_trip * 2,
        ..plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(delays_s: f64) -> Hop {
        Hop {
            rate_bps: 115_200,
            back_rate_bps: None,
            delays_s,
            mtu_bytes: 1500,
            queue_bytes: 20_000,
            drops: false,
            mean_ber: 0.0,
            radio: None,
            ui_frames: false,
        }
    }

    #[test]
    fn sessions_that_cannot_outlive_their_round_trip_are_cautioned_about() {
        let (far, near) = ([hop(1500.0)], [hop(4.0)]);
        let cautions = Tcpcl::cautions(&Config::dtn2(""), &far);
        assert!(cautions[0].contains("after 30 s") && cautions[0].contains("1,500 s"), "{cautions:?}");
        assert!(Tcpcl::cautions(&Config::dtn2(""), &near).is_empty());
        assert!(Tcpcl::cautions(&tuned_session(&far), &far).is_empty(), "tuned settings know the link");
        let off = Config { keepalive: Duration::ZERO, ..Config::default() };
        assert!(Tcpcl::cautions(&off, &far).is_empty());
    }
}
