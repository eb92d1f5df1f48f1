//! Configuration of a node: plain fields, the same in code and in TOML.
//!
//! ```toml
//! node = "dtn://alice/"
//! listen = ["[::]:4556"]
//!
//! [[link]]
//! name = "bob"
//! address = "bob.example.org:4556"
//!
//! [[route]]
//! to = "dtn://carol/*"
//! via = "bob"
//! ```
//!
//! `[agent]` and `[tcpcl]` are the settings of the engines, so the settings that an experiment recommends can be pasted
//! unchanged. `[tcp]` has those settings of the kernel's TCP that a program can change. Durations are written `"200 ms"`,
//! `"90 s"`, `"20 min"`.

pub mod contacts;
pub(crate) mod descriptors;
mod discovery;
mod explain;
mod folders;
pub(crate) mod gateway;
mod group_address;
mod here;
mod http;
mod ip_network;
mod listing;
pub(crate) mod mail;
mod peers;
mod radio;
mod reload;
mod sections;
pub mod security;
mod stream;
mod tcp;
pub(crate) mod tnc_address;

pub(crate) use discovery::is_link_local;
pub use discovery::{DiscoveredPeers, DiscoveryRule, DiscoverySettings};
pub use gateway::GatewaySettings;
pub(crate) use group_address::GroupAddress;
pub use http::HttpSettings;
pub(crate) use http::is_loopback;
pub(crate) use ip_network::IpNetwork;
pub use mail::MailSettings;
pub use peers::PeerPolicy;
pub(crate) use radio::RadioNeighbour;
pub use radio::TncSettings;
pub(crate) use reload::Differences;
pub use sections::CarrierSections;
pub use security::SecuritySettings;
pub use stream::StreamSettings;
pub use tcp::TcpSettings;

use crate::tls::{self, Credentials, Rule};
use longwire_proto::bp::{Accept, Eid, Emit, PeerRules, agent};
use longwire_proto::service::Priority;
use longwire_proto::setting::Settings as _;
use longwire_proto::settings;
use longwire_proto::tcpcl::{self, Tls};
use longwire_settings::error::{Error, did_you_mean};
use longwire_settings::toml_text;
use longwire_towers::carriers::{self, Tcpcl};
use longwire_towers::{AnyCarrier, CARRIERS, ChannelFacts, LinkFacts, Medium, Place, Plan};
use serde::{Deserialize, Serialize};
use std::iter;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Upper limit for the maximum of concurrent connections: far more than a process can have, and few enough to be counted.
const CONNECTIONS_MAX: usize = 1_000_000;
/// Minimum interval between passes over the store: without it the device would never rest.
const SCRUB_EVERY_MIN: Duration = Duration::from_secs(1);

settings! {
    /// Configuration of a node.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Config {
        /// Node ID: `dtn://name/` or `ipn:N.0`. No default: each node needs its own. RFC 9171 4.2.5.
        pub node: String,
        /// Addresses on which the node accepts TCPCL connections, `host:port`; the port of TCPCL is 4556. Default: none. RFC
        /// 9174 8.1.
        pub listen: Vec<String>,
        /// Addresses on which the node accepts bundles over UDP from anyone, `host:port` for one bundle a datagram, whose port
        /// is 4556, or after the name of another convergence layer: `ltp host:port`, whose port is 1113. Default: none. RFC
        /// 7122 3.2.2, 3.3.2.
        pub listen_udp: Vec<String>,
        /// Peers whose incoming TCP connections are accepted, by the node ID that they claim: `known`, `proven` or `any`.
        /// Default: `any` from this machine, `known` from elsewhere. RFC 9174 4.6.
        pub peers: Option<PeerPolicy>,
        /// Control socket for applications. Default: `longwire.sock` next to the store.
        pub control: Option<PathBuf>,
        /// Further endpoints, of other node IDs, for which this node accepts bundles: groups. Default: none.
        pub endpoints: Vec<String>,
        /// Source of DTN time. Default: the system's clock.
        pub clock: ClockSource,
        /// Answers pings at service 7 or `echo`, and measurements at service 8 or `measure`. Default: true.
        pub echo: bool = true,
        /// Limits for applications on the control socket.
        pub applications: ApplicationLimits,
        /// HTTP interface, with events and metrics. Default: off.
        pub http: HttpSettings,
        /// Store.
        pub storage: StorageSettings,
        /// Limits of the buffers between connections and engines.
        pub stream: StreamSettings,
        /// Networks on amateur radio bands, such as `44.0.0.0/9`: peers that connect from them get no TLS and no encrypted bundles, as
        /// those of links with `amateur = true`. Default: none.
        pub amateur_networks: Vec<String>,
        /// Discovery of neighbours that announce themselves.
        pub discovery: DiscoverySettings,
        /// TNCs for packet radio.
        pub tnc: Vec<TncSettings>,
        /// Links to neighbours.
        pub link: Vec<LinkSettings>,
        /// Exceptions for single peers, whichever side opens the connection.
        pub peer: Vec<PeerRules>,
        /// Routes to nodes that are not neighbours.
        pub route: Vec<RouteSettings>,
        /// Contact plan: the times at which links can be used.
        pub contact: Vec<contacts::PlannedContact>,
        /// Folders from which files are sent.
        pub drop: Vec<DropFolder>,
        /// Folders to which received files are written.
        pub receive: Vec<ReceiveFolder>,
        /// Mail for users of this node, and a port for their mail programs.
        pub mail: MailSettings,
        /// Gateways: programs that use TCP or UDP, over links.
        pub gateway: Vec<GatewaySettings>,
        /// Routing of bundles.
        pub routing: agent::RoutingConfig,
        /// Bundle agent.
        pub agent: agent::Config = agent::Config {
            piece_bytes_max: 256 << 10,
            limits: agent::Limits { buffer_bytes_max: 8 << 20, ..agent::Limits::default() },
            ..agent::Config::default()
        },
        /// Keys for the signatures of bundles, and which bundles are signed and verified.
        pub security: SecuritySettings,
        /// Certificate of the node and trusted authorities, for sessions with TLS.
        pub tls: tls::TlsSettings,
        /// Common settings of all links of each convergence layer, each in a section: `[tcpcl]`, `[udp]`, `[ltp]`,
        /// `[ltp-fec]`, `[norm]`, `[saratoga]`, `[aerotp]`, `[ax25cl]`, `[ax25cm]`, `[uicl]`.
        #[serde(skip)]
        pub carriers: CarrierSections,
        /// Settings of the kernel's TCP, which the node uses.
        pub tcp: TcpSettings,
    }
}

/// Source of DTN time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockSource {
    /// The system's clock, once it is past the year 2024: a board without a battery starts in 1970.
    #[default]
    System,
    /// No clock: bundles carry their age (RFC 9171 4.4.2).
    None,
}

settings! {
    /// Settings of the store.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct StorageSettings {
        /// Folder of the store. Default: `store`, relative to the configuration file.
        pub path: PathBuf = "store".into(),
        /// Storage medium. Default: disk.
        pub kind: StorageKind = StorageKind::Disk,
        /// Cache for the most recently written data, bytes. Default 16 MiB.
        pub cache_bytes: usize = 16 << 20,
        /// Maximum size of a store in memory, bytes; further bundles are refused. When an eighth of it is in use, applications
        /// and peers are slowed to the rate at which bundles leave it. Default 256 MiB.
        pub memory_bytes: usize = 256 << 20,
        /// Interval between the end of one pass over the store and the start of the next, to find damage early; `0 s` turns
        /// scrubbing off. Default 7 d.
        pub scrub_every: Duration = Duration::from_secs(7 * 86_400),
        /// Rate at which scrubbing reads, bytes per second. Default 1 MiB.
        pub scrub_bytes_per_s: u64 = 1 << 20,
    }
}

/// Storage medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StorageKind {
    /// Disk: accepted bundles survive a restart.
    #[default]
    Disk,
    /// Memory: bundles are lost when the node stops. For measurements.
    Memory,
}

settings! {
    /// Limits for applications on the control socket (`control`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct ApplicationLimits {
        /// Maximum concurrent connections; further ones are refused. Default 256.
        pub connections_max: usize = 256,
        /// Time after which an application that reads nothing is disconnected; deliveries that it has not accepted wait for the
        /// next application that registers. Default 5 min.
        pub patience: Duration = Duration::from_secs(300),
    }
}

settings! {
    /// Settings of a link to a neighbour.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct LinkSettings {
        /// Name of the link, for routes and commands.
        pub name: String,
        /// Convergence layer: `tcp` (TCPCL), `udp`, `ltp`, `ltp-fec`, `norm`, `saratoga`, `aerotp`, `ax25cl`, `ax25cm` or `uicl`. Default: tcp.
        pub kind: String = "tcp".into(),
        /// Address of the neighbour: `host:port`; of NORM also that of a multicast group, in which the name of a network interface may
        /// follow `%`: `239.1.2.3%eth0:4557`. Over AX.25, `tnc` and `callsign` are used instead.
        pub address: String,
        /// Multicast groups only: maximum number of networks that a datagram crosses (TTL, or hop limit). Default 1: one network.
        pub hops: u8 = 1,
        /// AX.25 only: name of the `[[tnc]]` that carries the link.
        pub tnc: String,
        /// AX.25 only: callsign of the neighbour, with its SSID if it has one; for a group, a callsign such as `QST`.
        pub callsign: String,
        /// AX.25 only: callsigns of the digipeaters on the path, nearest first; at most eight. Default: none. AX.25 3.12.5.
        pub path: Vec<String>,
        /// Node ID that the neighbour must have; over UDP, the node ID that it is assumed to have. Default: any; over UDP the
        /// node ID is then unknown, and bundles use the link only through a route.
        pub peer: Option<String>,
        /// Opened at startup. Default: true.
        pub open: bool = true,
        /// Rate of the link, bit/s, for fitting bundles into the rest of a contact; over UDP also the sending rate. Zero if
        /// unknown. Default zero.
        pub rate_bps: u64,
        /// Bundles longer than this are fragmented, bytes; zero: only if the peer limits the length. Default zero. RFC 9171 5.8.
        pub bundle_bytes_max: u64,
        /// Number of relays behind the link that forward fragments of a bundle while they receive others. Default: `relays`
        /// in `[agent]`, which is 0: bundles leave whole.
        pub relays: Option<u32>,
        /// Deviations that are accepted from the peer: `primary-without-crc`, `no-time-no-age`, `fragment-blocks-numbered-zero`.
        /// Default: none. docs/peers.md.
        pub accept: Vec<Accept>,
        /// Deviations in bundles sent over the link: `no-payload-crc`, `two-element-ipn`, `three-element-ipn`. Default: none, as
        /// in RFC 9171.
        pub emit: Vec<Emit>,
        /// The link uses an amateur radio band, where encryption is not allowed: it never uses TLS, also when its peer connects,
        /// and encrypted bundles take another link or wait. Default: false; over a TNC as its `amateur` says.
        pub amateur: bool,
        /// Requirements for the peer's certificate that differ from `[tls.policy]`, with the same keys.
        pub tls: toml::Table,
        /// Settings of the AX.25 link that differ from `[tnc.ax25]`, with the same keys.
        pub ax25: toml::Table,
        /// True for a link to a neighbour that was found.
        #[serde(skip)]
        pub found: bool,
        /// Settings that differ from those of the section of the convergence layer, with the same keys; of a group also its
        /// `members`.
        #[serde(skip)]
        pub carriers: CarrierSections,
    }
}

impl LinkSettings {
    /// Returns the convergence layer.
    ///
    /// # Errors
    /// Fails if `kind` is unknown.
    pub(crate) fn carrier(&self) -> Result<&'static dyn AnyCarrier, Error> {
        carriers::find(&self.kind).ok_or_else(|| {
            let hint = did_you_mean(&self.kind, kinds(), kinds_in_words());
            Error::new(format!("link `{}`: unknown kind `{}`", self.name, self.kind)).hint(hint)
        })
    }

    /// Returns the multicast group to which the link leads, if its convergence layer serves groups.
    pub(crate) fn group(&self) -> Option<GroupAddress> {
        let serves_groups = self.carrier().is_ok_and(|carrier| carrier.about().multicast);
        GroupAddress::parse(&self.address).filter(|_| serves_groups)
    }

    /// Returns the medium: that of the convergence layer, or the one of several that fits the place of the link.
    pub(crate) fn medium(&self) -> Medium {
        let media = self.carrier().map_or(&[Medium::Tcp][..], |carrier| carrier.about().media);
        let fits = |medium: &&Medium| medium.is_radio() != self.callsign.is_empty();
        *media.iter().find(fits).unwrap_or(&media[0])
    }
}

fn kinds() -> impl Iterator<Item = &'static str> {
    CARRIERS.iter().map(|carrier| carrier.about().name)
}

fn kinds_in_words() -> String {
    format!("`kind` is one of {}", kinds().collect::<Vec<_>>().join(", "))
}

/// Route to nodes that are not neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouteSettings {
    /// Destination endpoints; a trailing `*` matches anything.
    pub to: String,
    /// Name of the link, or node ID of the next hop.
    pub via: String,
    /// Cost; the lowest wins. Default zero.
    pub cost: u32,
}

settings! {
    /// Folder from which files are sent.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct DropFolder {
        /// Path of the folder, which is created if necessary.
        pub folder: PathBuf,
        /// Destination endpoint: `dtn://bob/files`.
        pub to: String,
        /// Lifetime of the bundles. Default 1 day.
        pub lifetime: Duration = Duration::from_secs(86_400),
        /// Priority. Default normal.
        pub priority: Priority = Priority::Normal,
        /// Sends the contents alone, without the file's name. Default: false.
        pub raw: bool,
        /// Moves sent files to the subfolder `sent` instead of removing them. Default: true.
        pub keep: bool = true,
        /// If the system does not report when a file is complete: time without changes after which it is sent. Default 2 s.
        pub settle: Duration = Duration::from_secs(2),
    }
}

/// Folder to which files for an endpoint are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReceiveFolder {
    /// Path of the folder, which is created if necessary.
    pub folder: PathBuf,
    /// Endpoint of this node: `files`, or `1` of an `ipn` node.
    pub endpoint: String,
}

impl Config {
    /// Reads a configuration file. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// Fails, with a hint, if the file cannot be read or the configuration is invalid.
    pub fn load(path: &Path) -> Result<Config, Error> {
        let text = longwire_settings::file::read_regular_text(path).map_err(|error| {
            Error::new(format!("cannot read {}: {error}", path.display()))
                .hint("give the configuration of the node with --config")
        })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Config::parse(&text, &path.display().to_string(), folder)
    }

    /// Parses a configuration. `place` names it in errors; paths in it are relative to `folder`.
    ///
    /// # Errors
    /// Fails, with a hint, if the configuration is invalid.
    pub fn parse(text: &str, place: &str, folder: &Path) -> Result<Config, Error> {
        let mut said = toml_text::parse(text, place)?;
        if let Some(toml::Value::Table(tcp)) = said.get("tcp") {
            TcpSettings::check_keys(tcp).map_err(|error| error.within(place))?;
        }
        let (carriers, links) = sections::take(&mut said, place)?;
        let table = toml_text::changed(&Config::default(), &said);
        let mut config: Config = toml_text::from_table(table, place)?;
        config.carriers = carriers;
        config.link.iter_mut().zip(links).for_each(|(link, own)| link.carriers = own);
        config.all_sections_mut().for_each(|sections| sections.beside(folder));
        config.tls.beside(folder);
        config.security.beside(folder);
        config.storage.path = folder.join(&config.storage.path);
        config.http.beside(folder);
        config.mail.beside(folder);
        let beside = config.storage.path.with_file_name("longwire.sock");
        config.control = Some(config.control.map_or(beside, |path| folder.join(path)));
        config.folders_beside(folder);
        config.check().map_err(|error| error.within(place))?;
        config.check_folders_are_not(folder).map_err(|error| error.within(place))?;
        Ok(config)
    }

    /// Settings of convergence layers: those of the configuration, and those of each link.
    fn all_sections_mut(&mut self) -> impl Iterator<Item = &mut CarrierSections> {
        iter::once(&mut self.carriers).chain(self.link.iter_mut().map(|link| &mut link.carriers))
    }

    /// Returns the paths of all files that the settings of convergence layers name.
    fn carrier_files(&self) -> impl Iterator<Item = PathBuf> {
        let sections = iter::once(&self.carriers).chain(self.link.iter().map(|link| &link.carriers));
        sections.flat_map(CarrierSections::files)
    }

    /// Returns true if peers can open links of this kind.
    pub fn admits(&self, kind: &str) -> bool {
        let is_heard = |text: &String| DatagramListener::parse(text).is_ok_and(|entry| entry.kind == kind);
        let media = carriers::find(kind).map_or(&[][..], |carrier| carrier.about().media);
        media.iter().any(|medium| match medium {
            Medium::Tcp => !self.listen.is_empty(),
            Medium::Udp => self.listen_udp.iter().any(is_heard),
            Medium::Ax25 | Medium::Ui => !self.tnc.is_empty(),
        })
    }

    /// Returns the addresses on which the node listens, with their keys.
    ///
    /// # Errors
    /// Fails if an entry of `listen-udp` names no convergence layer.
    pub(crate) fn listen_addresses(&self) -> Result<Vec<(&'static str, &str)>, Error> {
        let mut all: Vec<_> = self.listen.iter().map(|text| ("listen", text.as_str())).collect();
        for text in &self.listen_udp {
            all.push(("listen-udp", DatagramListener::parse(text)?.address));
        }
        Ok(all)
    }

    /// Checks that the configuration is valid.
    ///
    /// # Errors
    /// Returns the first fault.
    pub fn check(&self) -> Result<(), Error> {
        self.node_id()?;
        self.http.check()?;
        for (key, address) in self.listen_addresses()? {
            if !is_address(address) {
                return Err(Error::new(format!("`{key}`: `{address}` is not a valid address")).hint(
                    "use host:port, such as 127.0.0.1:4556, or [::]:4556 for all addresses; the port of TCPCL is 4556",
                ));
            }
        }
        for endpoint in &self.endpoints {
            endpoint.parse::<Eid>().map_err(|_| no_endpoint(endpoint))?;
        }
        self.check_radio()?;
        self.check_discovery()?;
        self.amateur_networks.iter().try_for_each(|text| text.parse::<IpNetwork>().map(drop))?;
        CARRIERS.iter().try_for_each(|carrier| self.callers(*carrier).map(drop))?;
        for (at, link) in self.link.iter().enumerate() {
            self.check_link(at, link)?;
        }
        for route in &self.route {
            self.check_route(route)?;
        }
        self.check_contacts()?;
        self.check_peers()?;
        self.check_security()?;
        self.agent.check().map_err(|fault| fault.within("agent"))?;
        self.routing.check().map_err(|fault| fault.within("routing"))?;
        self.tcp.check()?;
        if self.uses_tls() && self.clock == ClockSource::None {
            return Err(Error::new("TLS needs a clock to check certificates")
                .hint("set `clock = \"system\"` or turn `tls` off"));
        }
        if !self.agent.links.is_empty() {
            return Err(Error::new("`agent.links` cannot be set for a node")
                .hint("set `rate-bps` and `bundle-bytes-max` in the [[link]]"));
        }
        if self.agent.routing != agent::RoutingConfig::default() {
            return Err(Error::new("`agent.routing` cannot be set for a node").hint("use [routing]"));
        }
        self.check_folders()?;
        self.check_mail()?;
        self.check_gateways()?;
        self.stream.check()?;
        if self.storage.scrub_bytes_per_s == 0 {
            return Err(Error::new("`storage.scrub-bytes-per-s` must be greater than zero")
                .hint("to turn scrubbing off, set `storage.scrub-every = \"0 s\"`"));
        }
        if !self.storage.scrub_every.is_zero() && self.storage.scrub_every < SCRUB_EVERY_MIN {
            return Err(Error::new("`storage.scrub-every` is less than 1 s")
                .hint("remove it; the default is 7 days, and `0 s` turns scrubbing off"));
        }
        check_connections("applications", self.applications.connections_max)?;
        if self.applications.connections_max == 0 || self.applications.patience.is_zero() {
            return Err(Error::new(
                "`applications.connections-max` and `applications.patience` must be greater than zero",
            )
            .hint("remove them to use the defaults"));
        }
        Ok(())
    }

    /// Returns the complete node ID.
    ///
    /// # Errors
    /// Fails if `node` is not a valid node ID.
    pub fn node_id(&self) -> Result<Eid, Error> {
        if self.node.is_empty() {
            return Err(Error::new("`node` is missing")
                .hint("set `node` to a node ID such as dtn://alice/ or ipn:7.0"));
        }
        let eid = self.node.parse::<Eid>().or_else(|_| format!("{}/", self.node).parse::<Eid>());
        match eid {
            Ok(eid) if eid.is_singleton() && eid.node_id() == eid => Ok(eid.detached()),
            _ => Err(Error::new(format!("`{}` is not a valid node ID", self.node))
                .hint("a node ID looks like dtn://alice/ or ipn:7.0")),
        }
    }

    fn check_link(&self, at: usize, link: &LinkSettings) -> Result<(), Error> {
        if link.name.is_empty() {
            return Err(Error::new(format!("[[link]] number {} has no `name`", at + 1))
                .hint("routes and commands refer to links by name"));
        }
        link.carrier()?;
        self.check_place(link)?;
        if self.link[..at].iter().any(|other| other.name == link.name) {
            return Err(Error::new(format!("duplicate link name `{}`", link.name)).hint("rename one"));
        }
        self.check_sections(link)?;
        self.policy(link)?;
        self.check_unconnected(link)?;
        self.plan(link).map(drop)
    }

    fn check_place(&self, link: &LinkSettings) -> Result<(), Error> {
        let radio = link.medium().is_radio();
        let said = [
            ("address", !link.address.is_empty(), false),
            ("tnc", !link.tnc.is_empty(), true),
            ("callsign", !link.callsign.is_empty(), true),
            ("path", !link.path.is_empty(), true),
        ];
        if let Some((key, ..)) = said.iter().find(|(_, said, on_radio)| *said && *on_radio != radio) {
            let what = format!("link `{}`: `{key}` does not apply to kind {}", link.name, link.kind);
            return Err(Error::new(what).hint(match radio {
                true => "use `tnc` and `callsign`",
                false => "for a TNC, set `kind = \"ax25cl\"`",
            }));
        }
        if !radio && !is_address(&link.address) {
            let what = format!("link `{}`: `{}` is not a valid address", link.name, link.address);
            let port = match link.carrier()?.about().port {
                Some(port) => format!("the port of {} is {port}", link.kind),
                None => format!("no port is registered for {}", link.kind),
            };
            return Err(Error::new(what).hint(format!("use host:port; {port}")));
        }
        let name = &link.name;
        if link.hops == 0 {
            return Err(Error::new(format!(
                "link `{name}`: `hops` is 0, with which nothing leaves this computer"
            ))
            .hint("use 1 for one network, the default"));
        }
        if link.group().is_none() {
            return Ok(());
        }
        if link.peer.is_some() {
            return Err(Error::new(format!("link `{name}`: a group has no `peer`"))
                .hint("name its nodes with `norm = { members = [..] }`"));
        }
        Ok(())
    }

    /// Checks that a link has no sections of other kinds.
    fn check_sections(&self, link: &LinkSettings) -> Result<(), Error> {
        let section = link.carrier()?.about().section;
        let medium = link.medium();
        let others = [
            ("tls", !link.tls.is_empty() && medium != Medium::Tcp),
            ("ax25", !link.ax25.is_empty() && !medium.is_radio()),
        ];
        let strange = others.into_iter().filter(|(_, is_strange)| *is_strange).map(|(key, _)| key);
        let mut strange = link.carriers.names().filter(|name| *name != section).chain(strange);
        match strange.next() {
            Some(key) => {
                let what = format!("link `{}`: `{key}` does not apply to kind {}", link.name, link.kind);
                Err(Error::new(what).hint(kinds_in_words()))
            }
            None => Ok(()),
        }
    }

    fn check_route(&self, route: &RouteSettings) -> Result<(), Error> {
        if route.to.is_empty() {
            return Err(
                Error::new("a [[route]] has no `to`").hint("set it, for example to = \"dtn://carol/*\"")
            );
        }
        let is_link = self.link.iter().any(|link| link.name == route.via);
        let is_node = route.via.parse::<Eid>().is_ok_and(|eid| !eid.is_null());
        if is_link || is_node {
            return Ok(());
        }
        let names = self.link.iter().map(|link| link.name.as_str());
        let hint = did_you_mean(&route.via, names, "use the name of a [[link]] or a node ID");
        Err(Error::new(format!("route to {}: no such link: `{}`", route.to, route.via)).hint(hint))
    }

    fn check_peers(&self) -> Result<(), Error> {
        if !self.agent.peers.is_empty() {
            return Err(Error::new("`agent.peers` cannot be set for a node").hint("use [[peer]]"));
        }
        let is_node = |text: &str| text.parse::<Eid>().is_ok_and(|eid| eid.is_node_id());
        match self.peer.iter().find(|peer| !peer.node.ends_with('*') && !is_node(&peer.node)) {
            Some(peer) => Err(Error::new(format!("[[peer]]: `{}` is not a valid node ID", peer.node))
                .hint("for example node = \"dtn://bob/\" or \"ipn:7.0\"; a trailing * matches anything")),
            None => Ok(()),
        }
    }

    /// Returns the settings of a link's sessions.
    ///
    /// # Errors
    /// Fails if the link's own settings are invalid.
    pub(crate) fn plan(&self, link: &LinkSettings) -> Result<Plan, Error> {
        let carrier = link.carrier()?;
        let section = self.carriers.get(carrier.about().section);
        self.with_facts(link, |facts| carrier.plan(&section, facts, Place::Link(&link.name)))?
    }

    /// Returns the settings of the sessions that peers open.
    ///
    /// # Errors
    /// Fails if the section of the convergence layer is invalid.
    pub(crate) fn callers(&self, carrier: &'static dyn AnyCarrier) -> Result<Plan, Error> {
        let node_id = self.node_id().map(|eid| eid.to_string()).unwrap_or_default();
        let peer_proves = self.tls.policy.node_id == Rule::Require;
        let queue_bytes = self.stream.queue_bytes;
        let facts = LinkFacts { node_id: &node_id, peer_proves, queue_bytes, ..LinkFacts::default() };
        carrier.plan(&self.carriers.get(carrier.about().section), &facts, Place::Configuration)
    }

    /// Returns true if the link uses an amateur radio band.
    pub(crate) fn is_amateur(&self, link: &LinkSettings) -> bool {
        let over = self.tnc_of(link).filter(|_| link.medium().is_radio());
        link.amateur || over.is_some_and(|tnc| self.is_amateur_tnc(tnc))
    }

    /// Returns the settings of the sessions that peers open on amateur radio bands over TCP, which use no TLS.
    ///
    /// # Errors
    /// Fails if the section of the convergence layer is invalid.
    pub(crate) fn amateur_callers(&self) -> Result<Plan, Error> {
        let node_id = self.node_id().map(|eid| eid.to_string()).unwrap_or_default();
        let queue_bytes = self.stream.queue_bytes;
        let facts = LinkFacts { node_id: &node_id, queue_bytes, is_amateur: true, ..LinkFacts::default() };
        let carrier: &'static dyn AnyCarrier = &Tcpcl;
        carrier.plan(&self.carriers.get(carrier.about().section), &facts, Place::Configuration)
    }

    /// Returns the settings of the sessions that peers open, of each convergence layer that has such.
    ///
    /// # Errors
    /// Fails if the section of a convergence layer is invalid.
    pub(crate) fn all_callers(&self) -> Result<Vec<Plan>, Error> {
        let called = CARRIERS.iter().filter(|carrier| carrier.about().is_called);
        called.map(|carrier| self.callers(*carrier)).collect()
    }

    /// Returns the TCPCL settings of sessions that peers open.
    fn tcp_callers(&self) -> tcpcl::Config {
        let plan = self.callers(&Tcpcl).ok();
        plan.and_then(|plan| plan.settings::<Tcpcl>().cloned()).unwrap_or_default()
    }

    /// Calls a function with the facts about a link.
    fn with_facts<T>(&self, link: &LinkSettings, act: impl FnOnce(&LinkFacts<'_>) -> T) -> Result<T, Error> {
        let node_id = self.node_id()?.to_string();
        let peer = match &link.peer {
            Some(peer) => Some(peer.parse::<Eid>().map_err(|_| no_endpoint(peer))?.to_string()),
            None => None,
        };
        let neighbour = self.neighbour(link)?;
        let place = neighbour.as_ref().map_or(link.address.clone(), RadioNeighbour::place);
        let channel = neighbour.as_ref().map(|neighbour| {
            let tnc = &self.tnc[neighbour.tnc];
            let digipeaters = neighbour.peer.path.len();
            ChannelFacts { tnc: &tnc.name, parameters: tnc.radio(), digipeaters }
        });
        Ok(act(&LinkFacts {
            node_id: &node_id,
            peer: peer.as_deref(),
            name: &link.name,
            place: &place,
            to_group: link.group().is_some(),
            is_opened: link.open,
            rate_bps: link.rate_bps,
            queue_bytes: self.stream.queue_bytes,
            is_amateur: self.is_amateur(link),
            peer_proves: self.policy(link)?.node_id == Rule::Require,
            channel,
            own: link.carriers.get(link.carrier()?.about().section),
        }))
    }

    /// Returns the requirements for the certificate of a link's peer.
    ///
    /// # Errors
    /// Fails if the link's own settings are invalid.
    pub(crate) fn policy(&self, link: &LinkSettings) -> Result<tls::CertificatePolicy, Error> {
        let table = toml_text::changed(&self.tls.policy, &link.tls);
        toml_text::from_table(table, &format!("link `{}`: [tls]", link.name))
    }

    /// Returns true if any session can use TLS.
    pub fn uses_tls(&self) -> bool {
        let uses = |plan: Result<Plan, Error>| plan.is_ok_and(|plan| plan.carrier().tls(&plan) != Tls::Off);
        (!self.listen.is_empty() && uses(self.callers(&Tcpcl)))
            || self.link.iter().any(|link| uses(self.plan(link)))
    }

    /// Returns certificate, key and trusted authorities, read from their files; `None` if no session uses TLS.
    ///
    /// # Errors
    /// Fails if a file is not configured, cannot be read, or has the wrong contents.
    pub fn credentials(&self) -> Result<Option<Credentials>, Error> {
        if self.uses_tls() { Credentials::load(&self.tls).map(Some) } else { Ok(None) }
    }

    /// Returns the path of the control socket.
    pub fn control(&self) -> PathBuf {
        self.control.clone().unwrap_or_else(|| self.storage.path.with_file_name("longwire.sock"))
    }
}

/// Entry of `listen-udp`.
#[derive(Clone, Copy, Debug)]
pub struct DatagramListener<'a> {
    /// Name of the convergence layer.
    pub kind: &'static str,
    /// Address.
    pub address: &'a str,
}

impl<'a> DatagramListener<'a> {
    /// Reads an address, which may follow the name of a convergence layer.
    ///
    /// # Errors
    /// Fails if no convergence layer over UDP has this name.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let over_udp = || {
            let all = CARRIERS.iter().map(|carrier| carrier.about());
            all.filter(|about| about.media.contains(&Medium::Udp)).map(|about| about.name)
        };
        let found = match text.split_once(' ') {
            None => over_udp().next().map(|kind| (kind, text)),
            Some((name, address)) => over_udp().find(|kind| *kind == name).map(|kind| (kind, address)),
        };
        let (kind, address) = found.ok_or_else(|| {
            let names: Vec<&str> = over_udp().collect();
            Error::new(format!("`listen-udp`: `{text}` names no convergence layer over UDP"))
                .hint(format!("use host:port, alone or after one of {}", names.join(", ")))
        })?;
        Ok(DatagramListener { kind, address })
    }

    /// Returns the multicast group, if the convergence layer serves groups.
    pub(crate) fn group(&self) -> Option<GroupAddress> {
        let serves_groups = carriers::find(self.kind).is_some_and(|carrier| carrier.about().multicast);
        GroupAddress::parse(self.address).filter(|_| serves_groups)
    }
}

/// Returns true for `host:port`, and for `[address]:port` if the address contains colons.
fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let names = match bracketed {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok() || address.contains('%'),
        None => !host.is_empty() && !host.contains([':', '[', ']']),
    };
    names && port.parse::<u16>().is_ok()
}

/// Checks the maximum of concurrent connections in a section.
fn check_connections(section: &str, connections_max: usize) -> Result<(), Error> {
    if connections_max <= CONNECTIONS_MAX {
        return Ok(());
    }
    let what = format!("`{section}.connections-max` is greater than 1,000,000");
    Err(Error::new(what).hint("remove it to use the default"))
}

fn no_endpoint(text: &str) -> Error {
    Error::new(format!("`{text}` is not an endpoint"))
        .hint("an endpoint looks like dtn://name/inbox or ipn:3.1")
}

#[cfg(test)]
mod tests;
