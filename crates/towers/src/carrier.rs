//! [`Carrier`]: what the author of a convergence layer writes, and [`AnyCarrier`], the same without its types.

use crate::media::Session;
use crate::neighbours::{SessionLayer, independent_sessions};
use crate::path::Hop;
use longwire_proto::joint::Origin;
use longwire_proto::rng::Rng;
use longwire_proto::setting::Settings;
use longwire_settings::error::Error;
use longwire_settings::toml_text;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::sync::Arc;
use toml::{Table, Value};

/// A convergence layer: its names, its settings, and its sessions.
pub trait Carrier: Sync + 'static {
    /// Settings of a session, as in the section of the carrier.
    type Settings: Settings + Clone + Serialize + DeserializeOwned + Send + Sync;
    /// Names and properties.
    const ABOUT: About;

    /// Default settings.
    fn defaults() -> Self::Settings;

    /// Completes the settings of a link, after all tables are read: this node's ID, and the peer's.
    fn finish(settings: Self::Settings, link: &LinkFacts<'_>) -> Self::Settings;

    /// Creates a session.
    fn session(settings: &Self::Settings, origin: Origin, rng: Rng) -> Session;

    /// Creates the empty set of all sessions. By default there is one session for each link.
    fn sessions(_rng: &Rng) -> Box<dyn SessionLayer> {
        Box::new(independent_sessions())
    }

    /// Warns about settings that do not suit a path.
    fn cautions(_settings: &Self::Settings, _path: &[Hop]) -> Vec<String> {
        Vec::new()
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
    /// Media on which it runs.
    pub media: &'static [Medium],
    /// True if the source receives acknowledgements and retransmits.
    pub acknowledges: bool,
    /// True if a bundle resumes after a break, false if it restarts.
    pub resumes: bool,
    /// True if a link leads to a group, whose nodes are listed in the setting `members`.
    pub is_group: bool,
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

/// What a link runs on.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkFacts<'a> {
    /// Node ID of this node.
    pub node_id: &'a str,
    /// Node ID that the peer must have; `None` for any.
    pub peer: Option<&'a str>,
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
        self.settings.downcast_ref()
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

    /// Reads the settings of a link: `own` changes single settings of `section`, which changes those of the defaults.
    /// `place` names the section in errors: `settings.udp`.
    ///
    /// # Errors
    /// Fails, with a hint, on unknown keys and on values with which a session could not work.
    fn plan(
        &'static self,
        section: &Table,
        own: &Table,
        link: &LinkFacts<'_>,
        place: &str,
    ) -> Result<Plan, Error>;

    /// Creates a session.
    ///
    /// # Panics
    /// Panics if the plan is that of another carrier.
    fn session(&self, plan: &Plan, origin: Origin, rng: Rng) -> Session;

    /// Creates the empty set of all sessions.
    fn sessions(&self, rng: &Rng) -> Box<dyn SessionLayer>;

    /// Warns about settings that do not suit a path.
    fn cautions(&self, plan: &Plan, path: &[Hop]) -> Vec<String>;
}

impl<C: Carrier> AnyCarrier for C {
    fn about(&self) -> &'static About {
        &C::ABOUT
    }

    fn defaults(&self) -> Table {
        toml_text::to_table(&C::defaults())
    }

    fn plan(
        &'static self,
        section: &Table,
        own: &Table,
        link: &LinkFacts<'_>,
        place: &str,
    ) -> Result<Plan, Error> {
        let mut table = AnyCarrier::defaults(self);
        toml_text::merge(&mut table, section);
        toml_text::merge(&mut table, own);
        let settings: C::Settings = toml_text::from_table(table, &format!("[{place}]"))?;
        settings.check().map_err(|fault| {
            let hint = fault.hint;
            Error::new(fault.within(place).to_string()).hint(hint)
        })?;
        Ok(Plan::new(self, C::finish(settings, link)))
    }

    fn session(&self, plan: &Plan, origin: Origin, rng: Rng) -> Session {
        C::session(of_carrier::<C>(plan), origin, rng)
    }

    fn sessions(&self, rng: &Rng) -> Box<dyn SessionLayer> {
        C::sessions(rng)
    }

    fn cautions(&self, plan: &Plan, path: &[Hop]) -> Vec<String> {
        C::cautions(of_carrier::<C>(plan), path)
    }
}

fn of_carrier<C: Carrier>(plan: &Plan) -> &C::Settings {
    plan.settings::<C>().expect("a plan of this carrier")
}

/// Returns the settings of several sections as one table.
pub(crate) fn sections<const N: usize>(sections: [(&str, Table); N]) -> Table {
    sections.into_iter().map(|(name, table)| (name.to_owned(), Value::Table(table))).collect()
}
