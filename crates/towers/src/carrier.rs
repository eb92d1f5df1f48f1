//! [`Carrier`]: what the author of a convergence layer writes, and [`AnyCarrier`], the same without its types.

use crate::media::Session;
use crate::neighbours::{SessionLayer, independent_sessions};
use crate::path::Hop;
use longwire_proto::ax25::RadioParameters;
#[cfg(feature = "testing")]
use longwire_proto::fuzz::Material;
use longwire_proto::joint::Origin;
use longwire_proto::rng::Rng;
use longwire_proto::setting::{Fault, Settings};
use longwire_proto::tcpcl::Tls;
use longwire_proto::time::Duration;
use longwire_settings::error::Error;
use longwire_settings::toml_text::{self, changed};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::sync::Arc;
use toml::{Table, Value};

/// A convergence layer: its names, its settings, and its sessions.
pub trait Carrier: Sync + 'static {
    /// Settings of a session, as in the section of the carrier.
    type Settings: Settings + Clone + Default + Serialize + DeserializeOwned + Send + Sync;
    /// Names and properties.
    const ABOUT: About;
    /// True if sessions use damaged datagrams as well, which a socket on which a node listens has to receive then.
    const USES_DAMAGED: bool = false;
    /// Codecs and messages for the fuzz targets. Any bytes by default.
    #[cfg(feature = "testing")]
    const FUZZ: Material = Material::BYTES;

    /// Default settings.
    fn defaults() -> Self::Settings {
        Self::Settings::default()
    }

    /// Adapts the common settings to a link, before its own table is read: the rate of its channel.
    fn adapt(settings: Self::Settings, _link: &LinkFacts<'_>) -> Self::Settings {
        settings
    }

    /// Completes the settings of a link, after all tables are read: this node's ID, and the peer's.
    ///
    /// # Errors
    /// Fails, with a hint, on settings that do not fit the link.
    fn finish(settings: Self::Settings, link: &LinkFacts<'_>) -> Result<Self::Settings, Error>;

    /// Creates a session.
    fn session(settings: &Self::Settings, origin: Origin, rng: Rng) -> Session;

    /// Returns true if a caller that begins like this may be one of this carrier, or a datagram one of its packets. Asked in
    /// the order of the table, where peers may call with several carriers; a node reports other datagrams. By default
    /// everything may be.
    fn recognises(_first: &[u8]) -> bool {
        true
    }

    /// Returns the silence after which a caller of an unknown carrier is given to this one, which then hears an empty packet.
    /// By default such a caller is cut off after two minutes.
    fn silence_max(_settings: &Self::Settings) -> Option<Duration> {
        None
    }

    /// Creates the empty set of all sessions. By default there is one session for each link.
    fn sessions(_rng: &Rng) -> Box<dyn SessionLayer> {
        Box::new(independent_sessions())
    }

    /// Warns about settings that do not suit a path.
    fn cautions(_settings: &Self::Settings, _path: &[Hop]) -> Vec<String> {
        Vec::new()
    }

    /// Describes a link for an operator, in sentences.
    fn explain(settings: &Self::Settings, link: &LinkFacts<'_>) -> Vec<String>;

    /// Use of TLS, for which the provider of the stream needs a certificate.
    fn tls(_settings: &Self::Settings) -> Tls {
        Tls::Off
    }
}

/// Names and properties of a carrier.
#[derive(Debug)]
pub struct About {
    /// Kind of a `[[link]]` in the configuration of a node.
    pub name: &'static str,
    /// Section of its settings in a configuration.
    pub section: &'static str,
    /// Label of the random numbers of its sessions.
    pub random_label: &'static str,
    /// Registered port, over TCP or UDP.
    pub port: Option<u16>,
    /// Media on which it runs.
    pub media: &'static [Medium],
    /// True if it suits a half-duplex channel, on which stations wait for each other.
    pub takes_turns: bool,
    /// True if the source receives acknowledgements and retransmits.
    pub acknowledges: bool,
    /// True if a bundle resumes after a break, false if it restarts.
    pub resumes: bool,
    /// True if peers may open links: a node that listens on a medium of the carrier
    /// creates a session for each.
    pub is_called: bool,
    /// True if a link leads to a group, whose nodes are listed in the setting `members`.
    pub is_group: bool,
    /// True if the address of a link over UDP may be that of a multicast group.
    pub multicast: bool,
    /// Settings on which two nodes of this program agree by themselves, with the value on which they agree.
    pub negotiated: &'static [(&'static str, &'static str)],
    /// Names under which its settings are compared.
    pub families: &'static [Family],
}

/// Settings of a carrier that belong together, such as those of one protocol version.
#[derive(Debug)]
pub struct Family {
    /// Name on the command line and in records.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Settings worth trying; the first ones are the default.
    pub presets: &'static [Preset],
}

/// Settings worth trying.
#[derive(Debug)]
pub struct Preset {
    /// Name, which follows the slash: `tcpcl3/dtn2`.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Returns the settings for a path, by section: that of the carrier, and that of the protocol below it (`tcp`,
    /// `ax25`).
    pub settings: fn(&[Hop]) -> Table,
}

impl Preset {
    pub(crate) const fn new(
        name: &'static str,
        about: &'static str,
        settings: fn(&[Hop]) -> Table,
    ) -> Preset {
        Preset { name, about, settings }
    }
}

/// Medium of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A TCP connection.
    Tcp,
    /// UDP datagrams.
    Udp,
    /// A connected AX.25 link.
    Ax25,
    /// UI frames of AX.25.
    Ui,
}

impl Medium {
    /// Returns true for AX.25 on a radio channel, false for IP.
    pub fn is_radio(self) -> bool {
        matches!(self, Medium::Ax25 | Medium::Ui)
    }
}

/// Facts about a link beside the settings of its carrier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkFacts<'a> {
    /// Node ID of this node.
    pub node_id: &'a str,
    /// Node ID that the peer must have; `None` for any.
    pub peer: Option<&'a str>,
    /// Name of the link.
    pub name: &'a str,
    /// Address or callsign of the peer, in words.
    pub place: &'a str,
    /// True if the address is that of a multicast group.
    pub to_group: bool,
    /// True if the link is opened at startup.
    pub is_opened: bool,
    /// Rate, bit/s; zero if unknown.
    pub rate_bps: u64,
    /// Bytes that are queued for a connection unless it passes them on quickly; zero without a node.
    pub queue_bytes: u64,
    /// True on an amateur radio band, where encryption is not allowed.
    pub is_amateur: bool,
    /// True if the peer's certificate must prove its node ID.
    pub peer_proves: bool,
    /// Channel of a link over AX.25.
    pub channel: Option<ChannelFacts<'a>>,
    /// Settings of this link alone.
    pub own: Table,
}

impl LinkFacts<'_> {
    /// Returns the node ID of the peer, or the words for any.
    pub fn expected(&self) -> String {
        self.peer.map_or("any node".to_owned(), |peer| format!("{peer} only"))
    }

    /// Returns the node ID that sessions of the link state: `own` if the settings of this link alone set it, otherwise that of
    /// the node.
    pub fn stated_node_id(&self, own: String) -> String {
        if self.own.contains_key("node-id") { own } else { self.node_id.to_owned() }
    }

    /// Returns the words for a connection at startup or later.
    pub fn connects(&self) -> &'static str {
        if self.is_opened { "Connects" } else { "Connects on command" }
    }
}

/// Channel of a link over AX.25.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelFacts<'a> {
    /// Name of the TNC.
    pub tnc: &'a str,
    /// Timing.
    pub parameters: RadioParameters,
    /// Number of digipeaters on the path.
    pub digipeaters: usize,
}

/// Place of a section of settings, for errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// Section of a configuration.
    Configuration,
    /// Section of the settings of an experiment.
    Experiment,
    /// Section of the link with this name.
    Link(&'a str),
}

impl Place<'_> {
    fn table(self, section: &str) -> String {
        match self {
            Place::Configuration => format!("[{section}]"),
            Place::Experiment => format!("[settings.{section}]"),
            Place::Link(name) => format!("link `{name}`: [{section}]"),
        }
    }

    fn out_of_range(self, section: &str, fault: Fault) -> Error {
        match self {
            Place::Configuration => fault.within(section).into(),
            Place::Experiment => fault.within(&format!("settings.{section}")).into(),
            Place::Link(_) => Error::from(fault).within(self.table(section)),
        }
    }

    fn of_link(self, error: Error) -> Error {
        match self {
            Place::Link(name) => error.within(format!("link `{name}`")),
            Place::Configuration | Place::Experiment => error,
        }
    }
}

/// Checked settings of a link, from which its sessions are made.
#[derive(Clone)]
pub struct Plan {
    carrier: &'static dyn AnyCarrier,
    settings: Arc<dyn Any + Send + Sync>,
}

impl Plan {
    /// Creates the plan for links with these settings, which the caller has checked.
    pub fn new<C: Carrier>(carrier: &'static C, settings: C::Settings) -> Plan {
        Plan { carrier, settings: Arc::new(settings) }
    }

    /// The carrier.
    pub fn carrier(&self) -> &'static dyn AnyCarrier {
        self.carrier
    }

    /// Returns the settings if they are those of the carrier `C`.
    pub fn settings<C: Carrier>(&self) -> Option<&C::Settings> {
        self.settings.downcast_ref().filter(|_| self.is::<C>())
    }

    /// Returns true if the carrier is `C`.
    pub fn is<C: Carrier>(&self) -> bool {
        self.settings.is::<C::Settings>() && self.carrier.about().name == C::ABOUT.name
    }

    /// Creates a session.
    pub fn session(&self, origin: Origin, rng: Rng) -> Session {
        self.carrier.session(self, origin, rng)
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan").field("carrier", &self.carrier.about().name).finish_non_exhaustive()
    }
}

/// A [`Carrier`] of the table. Its settings are tables here, and typed within the carrier.
pub trait AnyCarrier: Sync {
    /// Names and properties.
    fn about(&self) -> &'static About;

    /// Default settings.
    fn defaults(&self) -> Table;

    /// Returns all settings of a section as a document, with nulls for those that have no value.
    ///
    /// # Errors
    /// Fails, with a hint, on unknown keys and on values of the wrong type.
    fn document(&self, section: &Table) -> Result<serde_json::Value, Error>;

    /// Reads the settings of a link: its own table changes single settings of `section`, which changes those of the
    /// defaults.
    ///
    /// # Errors
    /// Fails, with a hint, on unknown keys, on values with which a session could not work, and on settings that do not
    /// fit the link.
    fn plan(&'static self, section: &Table, link: &LinkFacts<'_>, place: Place<'_>) -> Result<Plan, Error>;

    /// Creates a session.
    ///
    /// # Panics
    /// Panics if the plan is that of another carrier.
    fn session(&self, plan: &Plan, origin: Origin, rng: Rng) -> Session;

    /// Returns true if a caller that begins like this may be one of this carrier, or a datagram one of its packets.
    fn recognises(&self, first: &[u8]) -> bool;

    /// Returns the silence after which a caller of an unknown carrier is given to this one.
    ///
    /// # Panics
    /// Panics if the plan is that of another carrier.
    fn silence_max(&self, plan: &Plan) -> Option<Duration>;

    /// Returns true if sessions use damaged datagrams as well.
    fn uses_damaged(&self) -> bool;

    /// Creates the empty set of all sessions.
    fn sessions(&self, rng: &Rng) -> Box<dyn SessionLayer>;

    /// Warns about settings that do not suit a path.
    fn cautions(&self, plan: &Plan, path: &[Hop]) -> Vec<String>;

    /// Describes a link for an operator, in sentences.
    fn explain(&self, plan: &Plan, link: &LinkFacts<'_>) -> Vec<String>;

    /// Use of TLS, for which the provider of the stream needs a certificate.
    fn tls(&self, plan: &Plan) -> Tls;

    /// Codecs and messages for the fuzz targets.
    #[cfg(feature = "testing")]
    fn fuzz(&self) -> &'static Material;
}

impl<C: Carrier> AnyCarrier for C {
    fn about(&self) -> &'static About {
        &C::ABOUT
    }

    fn defaults(&self) -> Table {
        toml_text::to_table(&C::defaults())
    }

    fn document(&self, section: &Table) -> Result<serde_json::Value, Error> {
        let table = Place::Configuration.table(C::ABOUT.section);
        let settings: C::Settings = toml_text::from_table(changed(&C::defaults(), section), &table)?;
        Ok(serde_json::to_value(&settings).expect("settings are a document"))
    }

    fn plan(&'static self, section: &Table, link: &LinkFacts<'_>, place: Place<'_>) -> Result<Plan, Error> {
        let name = C::ABOUT.section;
        let common = toml_text::from_table(changed(&C::defaults(), section), &place.table(name))?;
        let adapted = C::adapt(common, link);
        let own = toml_text::from_table(changed(&adapted, &link.own), &place.table(name))?;
        let settings = C::finish(own, link).map_err(|error| place.of_link(error))?;
        settings.check().map_err(|fault| place.out_of_range(name, fault))?;
        Ok(Plan::new(self, settings))
    }

    fn session(&self, plan: &Plan, origin: Origin, rng: Rng) -> Session {
        C::session(of_carrier::<C>(plan), origin, rng)
    }

    fn recognises(&self, first: &[u8]) -> bool {
        C::recognises(first)
    }

    fn silence_max(&self, plan: &Plan) -> Option<Duration> {
        C::silence_max(of_carrier::<C>(plan))
    }

    fn uses_damaged(&self) -> bool {
        C::USES_DAMAGED
    }

    fn sessions(&self, rng: &Rng) -> Box<dyn SessionLayer> {
        C::sessions(rng)
    }

    fn cautions(&self, plan: &Plan, path: &[Hop]) -> Vec<String> {
        C::cautions(of_carrier::<C>(plan), path)
    }

    fn explain(&self, plan: &Plan, link: &LinkFacts<'_>) -> Vec<String> {
        C::explain(of_carrier::<C>(plan), link)
    }

    fn tls(&self, plan: &Plan) -> Tls {
        C::tls(of_carrier::<C>(plan))
    }

    #[cfg(feature = "testing")]
    fn fuzz(&self) -> &'static Material {
        const { &C::FUZZ }
    }
}

fn of_carrier<C: Carrier>(plan: &Plan) -> &C::Settings {
    plan.settings::<C>().expect("a plan of this carrier")
}

/// Returns the settings of several sections as one table.
pub(crate) fn sections<const N: usize>(sections: [(&str, Table); N]) -> Table {
    sections.into_iter().map(|(name, table)| (name.to_owned(), Value::Table(table))).collect()
}
