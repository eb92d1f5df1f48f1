//! Node that carries bundles over a convergence layer of the table, and its settings.
//!
//! ```text
//!   FilesOverBundles
//!         |
//!       Agent
//!      /     \
//!   storage   BundleObserver over Neighbours
//!                   |
//!             tcp::Host | UdpHost | Stations
//!                   |
//!                frames
//! ```

mod group;

use super::air::{INWARD_LINK, Stations};
use super::node::{ONWARD_LINK, checked, checked_link, host};
use super::udp::UdpHost;
use super::{Assembly, Medium, NodePosition, hops};
use crate::bundle_observer::BundleObserver;
use crate::error::Error;
use crate::link::LinkProfile;
use crate::toml_text::{self, check_keys};
use crate::workload::FileTask;
use crate::workload::bundles::FilesOverBundles;
use longwire_proto::ax25::LinkConfig;
use longwire_proto::bp::agent::{self, Agent};
use longwire_proto::engine::Engine;
use longwire_proto::joint::{Beside, OnFirst, OnSecond, PassThrough, Stack};
use longwire_proto::service::{
    AppRequest, BpaRequest, Contact, Frames, InterfaceId, LinkId, ManagementRequest, Many, NextHop,
    SendOptions, Storage,
};
use longwire_proto::setting::Settings as _;
use longwire_proto::tcp::config::Profile;
use longwire_proto::time::Duration;
use longwire_sim::{Boot, NodeEngine};
use longwire_towers::{
    About, AnyCarrier, LinkFacts, Media, Medium as CarrierMedium, Neighbours, Place, Plan, Preset, Provides,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use toml::{Table, Value};

/// Port of convergence layers without a registered one.
const OTHER_PORT: u16 = 4556;

/// Lifetime of the bundle of a file, longer than any run.
const LIFETIME: Duration = Duration::from_secs(3650 * 86_400);

/// End of the last contact, later than any run.
const NEVER: Duration = Duration::from_secs(3650 * 86_400);

/// Settings of a bundle node beside those of its convergence layer. A node has only those of the protocol below it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct NodeSettings {
    agent: agent::Config,
    tcp: Profile,
    ax25: LinkConfig,
}

/// Media on which a carrier can be simulated.
pub(super) fn media(about: &About) -> Vec<Medium> {
    let has = |medium| about.media.contains(&medium);
    let over_ip = about.media.iter().any(|medium| !medium.is_radio());
    let runs_over = |medium: &Medium| match medium {
        Medium::Line => over_ip,
        Medium::UiLine => over_ip && has(CarrierMedium::Ui),
        Medium::Radio => about.takes_turns,
    };
    [Medium::Line, Medium::UiLine, Medium::Radio].into_iter().filter(runs_over).collect()
}

/// The medium of a carrier for such links; its first one if it has none for them.
fn medium_on(about: &About, links: &[LinkProfile]) -> CarrierMedium {
    let is_ax25 = |link: &LinkProfile| Medium::of(link) != Medium::Line;
    let fits = |medium: &&CarrierMedium| links.first().is_none_or(|link| medium.is_radio() == is_ax25(link));
    *about.media.iter().find(fits).unwrap_or(&about.media[0])
}

/// Sections of the settings of a node on this medium.
fn sections(about: &About, medium: CarrierMedium) -> Vec<&'static str> {
    let below = match medium {
        CarrierMedium::Tcp => Some("tcp"),
        CarrierMedium::Udp => None,
        CarrierMedium::Ax25 | CarrierMedium::Ui => Some("ax25"),
    };
    ["agent", about.section].into_iter().chain(below).collect()
}

fn defaults_on(carrier: &dyn AnyCarrier, media: &[CarrierMedium]) -> Table {
    let about = carrier.about();
    let mut table = toml_text::to_table(&NodeSettings::default());
    table.insert(about.section.to_owned(), Value::Table(carrier.defaults()));
    let known: Vec<&str> = media.iter().flat_map(|medium| sections(about, *medium)).collect();
    table.retain(|key, _| known.contains(&key));
    table
}

/// Default settings, for all media of the carrier.
pub(super) fn defaults(carrier: &dyn AnyCarrier) -> Table {
    defaults_on(carrier, carrier.about().media)
}

pub(super) fn settings(carrier: &dyn AnyCarrier, preset: &Preset, links: &[LinkProfile]) -> Table {
    let mut table = defaults_on(carrier, &[medium_on(carrier.about(), links)]);
    toml_text::merge(&mut table, &(preset.settings)(&hops(links)));
    table
}

/// Assembles bundles over a carrier with these settings.
pub(super) fn assemble(
    carrier: &'static dyn AnyCarrier,
    settings: Table,
    links: &[LinkProfile],
) -> Result<Assembly, Error> {
    let about = carrier.about();
    let medium = medium_on(about, links);
    check_keys(&settings, &sections(about, medium), "[settings]")?;
    let mut others = settings.clone();
    let section = match others.remove(about.section) {
        Some(Value::Table(section)) => section,
        _ => Table::new(),
    };
    let others: NodeSettings = toml_text::from_table(others, "[settings]")?;
    checked(others.agent.check(), "agent")?;
    let plan = carrier.plan(&section, &LinkFacts::default(), Place::Experiment)?;
    match medium {
        CarrierMedium::Tcp => checked(others.tcp.check(), "tcp")?,
        CarrierMedium::Udp => {}
        CarrierMedium::Ax25 | CarrierMedium::Ui => checked_link(&others.ax25, links)?,
    }
    let cautions = carrier.cautions(&plan, &hops(links));
    let tower = Arc::new(Tower { carrier, medium, section, others });
    let in_group = tower.clone();
    let make_in_group = move |place: &NodePosition, boot: Boot| in_group.group_node(place, &boot);
    let make = move |place: &NodePosition, boot: Boot| tower.node(place, &boot);
    Ok(Assembly {
        make: Arc::new(make),
        make_in_group: (about.is_group || about.multicast)
            .then(|| Arc::new(make_in_group) as Arc<super::Make>),
        carries_bundles: true,
        cautions,
        settings,
    })
}

/// Parts of a bundle node.
struct Tower {
    carrier: &'static dyn AnyCarrier,
    medium: CarrierMedium,
    /// Settings of the carrier.
    section: Table,
    others: NodeSettings,
}

type LinkProvider = Box<dyn Engine<Above = Many<LinkId, Media>, Below = Many<InterfaceId, Frames>> + Send>;

impl Tower {
    fn node(&self, place: &NodePosition, boot: &Boot) -> NodeEngine<FileTask> {
        let neighbours = Stack::new(self.neighbours(place, boot), self.provider(place, boot));
        let watched = (!place.is_destination()).then_some((ONWARD_LINK, place.position));
        let links = BundleObserver::new(neighbours, watched, place.bundles.clone());
        let links = links.recording(place.recorded_arrivals());
        let node = place.node_id(place.position);
        let config = agent::Config { node, ..self.others.agent.clone() };
        let agent =
            Agent::new(config, boot.rng.fork("agent")).expect("node names are checked with the scenario");
        let ports = Beside { first: PassThrough::<Storage>::new(), second: links };
        let options = SendOptions { lifetime: LIFETIME, ..SendOptions::default() };
        // Without connections, both ends of a hop join the channel.
        let joins = (self.medium == CarrierMedium::Ui && place.position > 0).then_some(INWARD_LINK);
        let said = setup(place, boot.dtn_ms).into_iter();
        let said = said.chain(joins.map(|link| ManagementRequest::OpenLink { link }.into()));
        let files = FilesOverBundles::new(said.collect(), place.endpoint(), options);
        Box::new(Stack::new(files, Stack::new(agent, ports)))
    }

    /// A link to the next node, and links from the previous one.
    fn neighbours(&self, place: &NodePosition, boot: &Boot) -> Neighbours {
        let next = (!place.is_destination()).then(|| place.node_id(place.position + 1));
        let mut neighbours = Neighbours::new(self.carrier, boot.rng.fork(self.carrier.about().random_label));
        neighbours.set(ONWARD_LINK, self.plan(place, next));
        neighbours.set(INWARD_LINK, self.plan(place, None));
        neighbours.answer(self.plan(place, None));
        neighbours
    }

    /// The plan of a link to a known peer, or to any.
    fn plan(&self, place: &NodePosition, peer: Option<String>) -> Plan {
        let about = self.carrier.about();
        let node_id = place.node_id(place.position);
        let mut own = Table::new();
        if about.is_group {
            let members = peer.iter().cloned().map(Value::String).collect();
            own.insert("members".to_owned(), Value::Array(members));
        }
        let peer = peer.as_deref().filter(|_| !about.is_group);
        let facts = LinkFacts { node_id: &node_id, peer, own, ..LinkFacts::default() };
        self.carrier.plan(&self.section, &facts, Place::Experiment).expect("the settings are checked")
    }

    fn provider(&self, place: &NodePosition, boot: &Boot) -> LinkProvider {
        let NodeSettings { tcp, ax25, .. } = &self.others;
        let port = self.carrier.about().port.unwrap_or(OTHER_PORT);
        match self.medium {
            CarrierMedium::Tcp => Box::new(Provides(host(place, tcp, port, &boot.rng))),
            CarrierMedium::Udp => Box::new(Provides(UdpHost::new(place, port))),
            CarrierMedium::Ax25 => Box::new(Provides(OnFirst(Stations::new(place, ax25)))),
            CarrierMedium::Ui => Box::new(Provides(OnSecond(Stations::new(place, ax25)))),
        }
    }
}

/// Initial requests of the operator of the node.
fn setup(place: &NodePosition, dtn_ms: Option<u64>) -> Vec<BpaRequest> {
    let mut said = vec![ManagementRequest::SetClock { dtn_ms, steady: None }.into()];
    if place.is_destination() {
        said.push(AppRequest::Register { endpoint: place.endpoint() }.into());
        return said;
    }
    let pattern = format!("{}*", place.node_id(place.names.len() - 1));
    said.push(ManagementRequest::SetRoute { pattern, via: NextHop::Link(ONWARD_LINK), cost: 1 }.into());
    said.push(ManagementRequest::OpenLink { link: ONWARD_LINK }.into());
    if let Some(now_dtn_ms) = dtn_ms.filter(|_| !place.announced_outages.is_empty()) {
        let contacts = contacts(now_dtn_ms, &place.announced_outages);
        said.push(ManagementRequest::SetContacts { link: ONWARD_LINK, contacts }.into());
    }
    said
}

/// Contacts between outages, for a clock that showed `began_dtn_ms` at the start of the run.
fn contacts(began_dtn_ms: u64, outages: &[(f64, f64)]) -> Vec<Contact> {
    let at = |seconds: f64| began_dtn_ms + (seconds * 1e3) as u64;
    let starts = [began_dtn_ms].into_iter().chain(outages.iter().map(|(_, end)| at(*end)));
    let ends = outages.iter().map(|(begin, _)| at(*begin)).chain([at(NEVER.as_secs_f64())]);
    let window = |(start_dtn_ms, end_dtn_ms)| Contact { start_dtn_ms, end_dtn_ms, ..Contact::default() };
    starts.zip(ends).filter(|(start, end)| start < end).map(window).collect()
}

impl NodePosition {
    pub(super) fn node_id(&self, position: usize) -> String {
        format!("dtn://{}/", self.names[position])
    }

    /// Destination endpoint of the files.
    fn endpoint(&self) -> String {
        format!("{}files", self.node_id(self.names.len() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_towers::carriers::Tcpcl;

    #[test]
    fn contacts_are_what_outages_leave() {
        let window = |start_dtn_ms, end_dtn_ms| Contact { start_dtn_ms, end_dtn_ms, ..Contact::default() };
        let end = 1000 + NEVER.as_millis() as u64;
        let expected = [window(1000, 6000), window(8000, 9000), window(11_500, end)];
        assert_eq!(contacts(1000, &[(5.0, 7.0), (8.0, 10.5)]), expected);
        assert_eq!(contacts(1000, &[(0.0, 7.0)]), [window(8000, end)]);
    }

    #[test]
    fn settings_that_no_engine_can_work_with_are_refused() {
        for (text, what) in [
            ("[tcp]\nreceive-buffer-bytes = 0", "`settings.tcp.receive-buffer-bytes` is 0"),
            ("[tcpcl]\nsegment-bytes = 0", "`settings.tcpcl.segment-bytes` is 0"),
            ("[tcpcl]\nkeepalve = 1", "[settings.tcpcl]: unknown field `keepalve`"),
            (
                "[tcpl]\nkeepalive = 1",
                "[settings]: unknown field `tcpl`, expected one of `agent`, `tcpcl`, `tcp`",
            ),
            ("[agent.limits]\nbundles-max = 0", "`settings.agent.limits.bundles-max` is 0"),
        ] {
            let mut table = defaults(&Tcpcl);
            toml_text::merge(&mut table, &toml_text::parse(text, "test").unwrap());
            let error = assemble(&Tcpcl, table, &[]).err().expect(text);
            assert!(error.what.contains(what) && error.hint.is_some(), "{error}");
        }
    }
}
