//! Node that carries bundles over TCPCL over TCP, and its settings.

use super::node::{ONWARD_LINK, TalliedEngine, checked, counted_host};
use super::{Assembly, NodePosition, Tally, linux_6_as_installed, round_trip, tuned};
use crate::bundle_observer::BundleObserver;
use crate::error::Error;
use crate::format::figure;
use crate::link::LinkProfile;
use crate::toml_text;
use crate::workload::FileTask;
use crate::workload::bundles::FilesOverBundles;
use longwire_proto::bp::agent::{self, Agent};
use longwire_proto::engine::Engine;
use longwire_proto::joint::{Beside, Fan, Origin, PassThrough, Stack};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    AppRequest, Bundles, Contact, Frames, InterfaceId, LinkId, Many, NextHop, SendOptions, Storage,
};
use longwire_proto::setting::Settings as _;
use longwire_proto::tcp::config::Profile;
use longwire_proto::tcpcl::{self, Session, Versions};
use longwire_proto::time::Duration;
use longwire_sim::{Boot, NodeEngine};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use toml::Table;

/// Port of both TCPCL versions (RFC 7242 8.1, RFC 9174 9.1).
const TCPCL_PORT: u16 = 4556;

/// Lifetime of the bundle of a file, longer than any run.
const LIFETIME: Duration = Duration::from_secs(3650 * 86_400);

/// Timeout longer than any run.
const NEVER: Duration = Duration::from_secs(3650 * 86_400);

/// Parallel sessions, created by name and origin.
type Sessions = Fan<LinkId, Session, Box<dyn FnMut(LinkId, Origin) -> Option<Session> + Send>>;

/// Settings of a bundle node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct BundleSettings {
    agent: agent::Config,
    tcpcl: tcpcl::Config,
    tcp: Profile,
}

/// Default settings.
pub(super) fn defaults() -> Table {
    toml_text::to_table(&BundleSettings::default())
}

fn settings(mut tcpcl: tcpcl::Config, tcp: Profile) -> Table {
    // TOML has no value for "never", and a missing key means the default.
    tcpcl.connect_timeout.get_or_insert(NEVER);
    toml_text::to_table(&BundleSettings { agent: agent::Config::default(), tcpcl, tcp })
}

/// Settings of DTN2 on Linux of its time: windows of 64 KB, segments of 4,096 bytes.
pub(super) fn dtn2(_: &[LinkProfile]) -> Table {
    settings(tcpcl::Config::dtn2(""), Profile::linux_2_4())
}

/// Settings of version 3 tuned for the link.
pub(super) fn tuned_3(links: &[LinkProfile]) -> Table {
    settings(tcpcl::Config { versions: Versions::Three, ..patient(links) }, tuned(links))
}

/// Default settings of version 4 on current Linux.
pub(super) fn default_4(_: &[LinkProfile]) -> Table {
    settings(tcpcl::Config::version_4(""), linux_6_as_installed())
}

/// Settings of version 4 tuned for the link.
pub(super) fn tuned_4(links: &[LinkProfile]) -> Table {
    settings(tcpcl::Config { versions: Versions::Four, ..patient(links) }, tuned(links))
}

/// Segments that are acknowledged one by one and so limit the cost of a break, and timers longer than the round trip.
fn patient(links: &[LinkProfile]) -> tcpcl::Config {
    // Whole seconds, because more digits are hard to read and write.
    let round_trip = Duration::from_secs_f64(round_trip(links).as_secs_f64().ceil());
    let plain = tcpcl::Config::default();
    // The protocol has whole seconds.
    let keepalive = Duration::from_secs((round_trip * 2).as_secs().max(plain.keepalive.as_secs()));
    tcpcl::Config {
        segment_bytes: 16_384,
        keepalive,
        keepalive_timeout: Some(keepalive * 2 + round_trip * 2),
        connect_timeout: None,
        contact_timeout: plain.contact_timeout + round_trip * 4,
        close_timeout: plain.close_timeout + round_trip * 2,
        ..plain
    }
}

/// Assembles bundles over TCPCL with these settings.
pub(super) fn assemble(settings: Table, links: &[LinkProfile]) -> Result<Assembly, Error> {
    let parsed: BundleSettings = toml_text::from_table(settings.clone(), "[settings]")?;
    checked(parsed.agent.check(), "agent")?;
    checked(parsed.tcpcl.check(), "tcpcl")?;
    checked(parsed.tcp.check(), "tcp")?;
    let cautions = too_hasty(&parsed.tcpcl, links).into_iter().collect();
    let make = move |place: &NodePosition, boot: Boot| node(&parsed, place, boot);
    Ok(Assembly { make: Arc::new(make), carries_bundles: true, cautions, settings })
}

/// Warns about sessions that time out before the peer's first message can arrive: one side knows the session up to a
/// round trip before the other, and the other side's first keep-alive follows an interval later.
fn too_hasty(tcpcl: &tcpcl::Config, links: &[LinkProfile]) -> Option<String> {
    let silence = tcpcl.keepalive_timeout.unwrap_or(tcpcl.keepalive * 2);
    let round_trip = round_trip(links);
    (!tcpcl.keepalive.is_zero() && silence < round_trip + tcpcl.keepalive).then(|| {
        format!(
            "a session times out after {} s of silence, but with keep-alives every {} s and a round trip of {} s the \
             silence lasts longer, so the session reconnects for ever; increase `keepalive-timeout`",
            figure(silence.as_secs_f64()),
            figure(tcpcl.keepalive.as_secs_f64()),
            figure(round_trip.as_secs_f64())
        )
    })
}

fn node(settings: &BundleSettings, place: &NodePosition, boot: Boot) -> NodeEngine<FileTask> {
    let host = counted_host(place, &settings.tcp, TCPCL_PORT, &boot.rng);
    let sessions = sessions(&settings.tcpcl, place, boot.rng.fork("tcpcl"));
    agent_over(Stack::new(sessions, host), &settings.agent, place, &boot)
}

/// Creates a node that carries bundles over these links.
pub(super) fn agent_over<L>(
    links: L,
    settings: &agent::Config,
    place: &NodePosition,
    boot: &Boot,
) -> NodeEngine<FileTask>
where
    L: Engine<Above = Many<LinkId, Bundles>, Below = Many<InterfaceId, Frames>> + Send + 'static,
{
    agent_over_both(links, None, settings, place, boot)
}

/// Creates a node that also opens the link towards the source, because there are no incoming connections.
pub(super) fn agent_over_both<L>(
    links: L,
    inward: Option<LinkId>,
    settings: &agent::Config,
    place: &NodePosition,
    boot: &Boot,
) -> NodeEngine<FileTask>
where
    L: Engine<Above = Many<LinkId, Bundles>, Below = Many<InterfaceId, Frames>> + Send + 'static,
{
    let watched = (!place.is_destination()).then_some((ONWARD_LINK, place.position));
    let links = BundleObserver::new(links, watched, place.bundles.clone());
    let node = place.node_id(place.position);
    let config = agent::Config { node, ..settings.clone() };
    let agent = Agent::new(config, boot.rng.fork("agent")).expect("node names are checked with the scenario");
    let ports = Beside { first: PassThrough::<Storage>::new(), second: links };
    let options = SendOptions { lifetime: LIFETIME, ..SendOptions::default() };
    let said = setup(place, boot.dtn_ms).into_iter().chain(inward.map(|link| AppRequest::OpenLink { link }));
    let files = FilesOverBundles::new(said.collect(), place.endpoint(), options);
    Box::new(Stack::new(files, Stack::new(agent, ports)))
}

/// Initial requests of the operator of the node.
fn setup(place: &NodePosition, dtn_ms: Option<u64>) -> Vec<AppRequest> {
    let mut said = vec![AppRequest::SetClock { dtn_ms, steady: None }];
    if place.is_destination() {
        said.push(AppRequest::Register { endpoint: place.endpoint() });
        return said;
    }
    let pattern = format!("{}*", place.node_id(place.names.len() - 1));
    said.push(AppRequest::SetRoute { pattern, via: NextHop::Link(ONWARD_LINK), cost: 1 });
    said.push(AppRequest::OpenLink { link: ONWARD_LINK });
    if let Some(now_dtn_ms) = dtn_ms.filter(|_| !place.announced_outages.is_empty()) {
        let contacts = contacts(now_dtn_ms, &place.announced_outages);
        said.push(AppRequest::SetContacts { link: ONWARD_LINK, contacts });
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

fn sessions(config: &tcpcl::Config, place: &NodePosition, rng: Rng) -> TalliedEngine<Sessions> {
    let config = tcpcl::Config { node_id: place.node_id(place.position), ..config.clone() };
    let make = move |link: LinkId, origin: Origin| {
        let rng = rng.fork(&link.0.to_string());
        Some(match origin {
            Origin::Above => Session::active(config.clone(), rng),
            Origin::Below => Session::passive(config.clone(), rng),
        })
    };
    TalliedEngine::new(Fan::new(Box::new(make) as Box<_>), place.tally.clone(), count)
}

fn count(sessions: &Sessions, tally: &mut Tally) {
    for (_, session) in sessions.iter() {
        let counters = session.counters();
        for (name, count) in [
            ("tcpcl_sessions", counters.sessions),
            ("tcpcl_attempts", counters.attempts),
            ("tcpcl_segments", counters.segments_sent),
            ("tcpcl_keepalives", counters.keepalives_sent),
        ] {
            *tally.entry(name).or_default() += count;
        }
    }
}

impl NodePosition {
    /// Node ID of the node at a position.
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

    #[test]
    fn contacts_are_what_outages_leave() {
        let window = |start_dtn_ms, end_dtn_ms| Contact { start_dtn_ms, end_dtn_ms, ..Contact::default() };
        let end = 1000 + NEVER.as_millis() as u64;
        let expected = [window(1000, 6000), window(8000, 9000), window(11_500, end)];
        assert_eq!(contacts(1000, &[(5.0, 7.0), (8.0, 10.5)]), expected);
        assert_eq!(contacts(1000, &[(0.0, 7.0)]), [window(8000, end)]);
    }

    #[test]
    fn sessions_that_cannot_outlive_their_round_trip_are_cautioned_about() {
        let far = [LinkProfile { delay_ms: 750_000.0, ..LinkProfile::default() }];
        let near = [LinkProfile { delay_ms: 2000.0, ..LinkProfile::default() }];
        let caution = too_hasty(&tcpcl::Config::dtn2(""), &far).expect("30 s of silence");
        assert!(caution.contains("after 30 s") && caution.contains("1,500 s"), "{caution}");
        assert_eq!(too_hasty(&tcpcl::Config::dtn2(""), &near), None);
        assert_eq!(too_hasty(&patient(&far), &far), None, "tuned settings know the link");
        let off = tcpcl::Config { keepalive: Duration::ZERO, ..tcpcl::Config::default() };
        assert_eq!(too_hasty(&off, &far), None);
    }

    #[test]
    fn settings_that_no_engine_can_work_with_are_refused() {
        for (text, what) in [
            ("[tcp]\nreceive-buffer-bytes = 0", "`settings.tcp.receive-buffer-bytes` is 0"),
            ("[tcpcl]\nsegment-bytes = 0", "`settings.tcpcl.segment-bytes` is 0"),
            ("[agent.limits]\nbundles-max = 0", "`settings.agent.limits.bundles-max` is 0"),
        ] {
            let mut table = defaults();
            toml_text::merge(&mut table, &toml_text::parse(text, "test").unwrap());
            let error = assemble(table, &[]).err().expect(text);
            assert!(error.what.contains(what) && error.hint.is_some(), "{error}");
        }
    }

    #[test]
    fn settings_survive_being_a_table() {
        let link = LinkProfile { delay_ms: 2000.0, ..LinkProfile::default() };
        for preset in [dtn2, tuned_3, default_4, tuned_4] {
            let table = preset(std::slice::from_ref(&link));
            let read: BundleSettings = toml_text::from_table(table.clone(), "a preset").unwrap();
            assert_eq!(toml_text::to_table(&read), table);
        }
        let read: BundleSettings = toml_text::from_table(dtn2(&[]), "dtn2").unwrap();
        let expected = tcpcl::Config { connect_timeout: Some(NEVER), ..tcpcl::Config::dtn2("") };
        assert_eq!((read.tcpcl, read.tcp), (expected, Profile::linux_2_4()));
    }
}
