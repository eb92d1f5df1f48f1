//! AX25-CL: Longwire's convergence layer over a connected AX.25 link.

use super::ax25cm::connection;
use crate::carrier::{About, Carrier, Family, LinkFacts, Medium, Plan, Preset, sections};
use crate::media::{Admission, Session, Uses, session_over};
use crate::neighbours::SessionLayer;
use crate::path::{extended_ax25, plain_ax25};
use longwire_proto::ax25::LinkConfig;
use longwire_proto::ax25cl::{self, Config, Sessions};
use longwire_proto::engine::Engine;
use longwire_proto::joint::Origin;
use longwire_proto::observe::Observation;
use longwire_proto::rng::Rng;
use longwire_proto::service::LinkId;
use longwire_proto::time::Duration;
use longwire_settings::error::Error;
use longwire_settings::toml_text::to_table;
use toml::Table;

/// Longwire's convergence layer over a connected AX.25 link.
#[derive(Debug)]
pub struct Ax25Cl;

impl Carrier for Ax25Cl {
    type Settings = Config;
    const ABOUT: About = About {
        name: "ax25cl",
        section: "ax25cl",
        random_label: "ax25cl",
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
            name: "ax25cl",
            about: "bundles over a connected AX.25 link, acknowledged by the link itself, stored at each node",
            presets: &[
                Preset::new("tuned", "version 2.2, window of 32 frames, selective reject", |path| {
                    over(extended_ax25(path))
                }),
                Preset::new("k7", "version 2.0, window of 7 frames", |path| over(plain_ax25(path, 7))),
                Preset::new("k4", "version 2.0, window of 4 frames", |path| over(plain_ax25(path, 4))),
                Preset::new("k1", "version 2.0, window of 1 frame", |path| over(plain_ax25(path, 1))),
            ],
        }],
    };
    #[cfg(feature = "testing")]
    const FUZZ: longwire_proto::fuzz::Material = ax25cl::fuzz::FUZZ;

    fn finish(settings: Config, link: &LinkFacts<'_>) -> Result<Config, Error> {
        let peer_node_id = settings.peer_node_id.or_else(|| link.peer.map(str::to_owned));
        Ok(Config { node_id: link.stated_node_id(settings.node_id), peer_node_id, ..settings })
    }

    fn session(settings: &Config, origin: Origin, rng: Rng) -> Session {
        session_over(match origin {
            Origin::Above => ax25cl::Session::active(settings.clone(), rng),
            Origin::Below => ax25cl::Session::passive(settings.clone(), rng),
        })
    }

    fn silence_max(settings: &Config) -> Option<Duration> {
        settings.welcome.as_ref().map(|_| settings.welcome_after)
    }

    fn explain(_settings: &Config, link: &LinkFacts<'_>) -> Vec<String> {
        let hint = link.peer.is_none().then(|| {
            format!(
                "If `peer` is set, link `{}` sends its first bundle without waiting for the peer to identify itself.",
                link.name
            )
        });
        [connection(link, "AX25-CL (Longwire)")].into_iter().chain(hint).collect()
    }

    /// A session outlives its link: a later link of the peer may continue it.
    fn sessions(rng: &Rng) -> Box<dyn SessionLayer> {
        Box::new(Uses(Sessions::new(Box::new(|_| None), rng.clone())))
    }
}

impl Admission for ax25cl::Session {}

impl SessionLayer for Uses<Sessions> {
    fn has(&self, link: LinkId) -> bool {
        self.0.session(link).is_some() || self.0.owns(link)
    }

    fn begin(&mut self, link: LinkId, plan: &Plan, _origin: Origin, _rng: Rng) {
        let config = plan.settings::<Ax25Cl>().expect("a plan of this carrier");
        self.0.configure_next(link, config.clone());
    }

    fn remove(&mut self, link: LinkId) {
        self.0.remove(link);
    }

    fn count(&self) -> usize {
        self.0.count()
    }

    fn show(&self, link: LinkId, view: &mut Observation) {
        let Some(session) = self.0.session(link) else { return };
        session.observe(view);
        if let (Some(part), Some(caller)) = (view.parts.last_mut(), self.0.caller(link)) {
            part.tell("caller", caller.to_owned());
        }
    }

    fn connection_of(&self, link: LinkId) -> LinkId {
        self.0.link_of(link).unwrap_or(link)
    }
}

fn over(ax25: LinkConfig) -> Table {
    sections([("ax25cl", to_table(&Config::default())), ("ax25", to_table(&ax25))])
}
