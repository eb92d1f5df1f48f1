//! A node's configuration: plain fields, the same in code and in TOML.
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
//! `[agent]` and `[tcpcl]` are the engines' own settings, so what an experiment finds best is pasted as it is; of TCP, which is
//! the kernel's, `[tcp]` has what a program can tell it. Lengths of time are written `"200 ms"`, `"90 s"`, `"20 min"`.

mod explain;
mod here;
mod http;
mod listing;
mod peers;
mod radio;
mod reload;
mod stream;
mod tcp;

pub use http::HttpSettings;
pub(crate) use http::is_loopback;
pub use peers::PeerPolicy;
pub(crate) use radio::RadioNeighbour;
pub use radio::TncSettings;
pub use stream::StreamSettings;
pub use tcp::TcpSettings;

use crate::tls::{self, Credentials, Rule};
use longwire_proto::ax25cl;
use longwire_proto::bp::{Accept, Eid, Emit, PeerRules, agent};
use longwire_proto::service::Priority;
use longwire_proto::setting::Fault;
use longwire_proto::tcpcl::{self, Tls, Versions};
use longwire_proto::{udpcl, uicl};
use longwire_settings::error::{Error, nearest};
use longwire_settings::toml_text;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The configuration of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The node id: `dtn://name/` or `ipn:N.0`. There is no default: each node needs its own. RFC 9171 4.2.5.
    pub node: String,
    /// Addresses on which peers may call, `host:port`; TCPCL has port 4556. Default: none. RFC 9174 8.1.
    pub listen: Vec<String>,
    /// Addresses on which anybody may send bundles over UDP, `host:port`; port 4556. Default: none. RFC 7122 3.2.2.
    pub listen_udp: Vec<String>,
    /// Which callers over TCP are let in, by the node id that they say: `known`, `proven` or `any`. Default: `any` from this
    /// machine, `known` from elsewhere. RFC 9174 4.6.
    pub peers: Option<PeerPolicy>,
    /// The socket for applications. Default: `longwire.sock` beside the store.
    pub control: Option<PathBuf>,
    /// Further endpoints that this node takes bundles for, though their node id is another: groups. Default: none.
    pub endpoints: Vec<String>,
    /// Where DTN time comes from. Default: the system's clock.
    pub clock: ClockSource,
    /// Answer pings, at service 7 or `echo`. Default: yes.
    pub echo: bool,
    /// Applications on this machine, over the socket for them.
    pub applications: ApplicationLimits,
    /// The HTTP interface, with events and metrics. Default: off.
    pub http: HttpSettings,
    /// The store.
    pub storage: StorageSettings,
    /// Limits of what waits between a connection and the engines.
    pub stream: StreamSettings,
    /// TNCs: packet radio.
    pub tnc: Vec<TncSettings>,
    /// Neighbours that this node calls.
    pub link: Vec<LinkSettings>,
    /// What is special about single peers, whoever calls whom.
    pub peer: Vec<PeerRules>,
    /// Ways to nodes that are no neighbours.
    pub route: Vec<RouteSettings>,
    /// When links can be used.
    pub contact: Vec<crate::contacts::PlannedContact>,
    /// Folders from which files are sent.
    pub drop: Vec<DropFolder>,
    /// Folders in which files appear.
    pub receive: Vec<ReceiveFolder>,
    /// How bundles find their way.
    pub routing: agent::RoutingConfig,
    /// The bundle agent.
    pub agent: agent::Config,
    /// All TCPCL sessions.
    pub tcpcl: tcpcl::Config,
    /// The node's certificate, and whom it trusts: for sessions with TLS.
    pub tls: tls::TlsSettings,
    /// All links over UDP.
    pub udp: udpcl::Config,
    /// All sessions of Longwire's convergence layer over AX.25.
    pub ax25cl: ax25cl::Config,
    /// All sessions of TCPCL 3 over AX.25 (AX25CM-CL, DTN2's).
    pub ax25cm: tcpcl::Config,
    /// All links to groups in UI frames of AX.25. What is as by default of `rate-bps`, `frame-bytes`, `access` and
    /// `answer-slot` is taken from the TNC's channel instead; `members` are a link's own.
    pub uicl: uicl::Config,
    /// Settings of the kernel's TCP, which is the node's.
    pub tcp: TcpSettings,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            node: String::new(),
            listen: Vec::new(),
            listen_udp: Vec::new(),
            peers: None,
            control: None,
            endpoints: Vec::new(),
            clock: ClockSource::default(),
            echo: true,
            applications: ApplicationLimits::default(),
            http: HttpSettings::default(),
            storage: StorageSettings::default(),
            stream: StreamSettings::default(),
            tnc: Vec::new(),
            link: Vec::new(),
            peer: Vec::new(),
            route: Vec::new(),
            contact: Vec::new(),
            drop: Vec::new(),
            receive: Vec::new(),
            routing: agent::RoutingConfig::default(),
            agent: agent::Config {
                limits: agent::Limits { buffer_bytes_max: 8 << 20, ..agent::Limits::default() },
                ..agent::Config::default()
            },
            tcpcl: tcpcl::Config::default(),
            tls: tls::TlsSettings::default(),
            udp: udpcl::Config::default(),
            ax25cl: ax25cl::Config::default(),
            // The link itself says when nobody answers. A table has no word for no limit; left out, it would be that of TCP.
            ax25cm: tcpcl::Config {
                connect_timeout: Some(longwire_proto::time::Duration::from_secs(86_400)),
                ..tcpcl::Config::ax25("")
            },
            uicl: uicl::Config::default(),
            tcp: TcpSettings::default(),
        }
    }
}

/// Where DTN time comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockSource {
    /// The system's clock, once it is past the year 2024: a board without a battery starts in 1970.
    #[default]
    System,
    /// There is none: bundles carry their age (RFC 9171 4.4.2).
    None,
}

/// The store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct StorageSettings {
    /// Its folder. Default: `store`, beside the configuration.
    pub path: PathBuf,
    /// What it is kept on. Default: disk.
    pub kind: StorageKind,
    /// Bytes of what was written last that stay in memory. Default 16 MiB.
    pub cache_bytes: usize,
    /// The most that a store in memory keeps, bytes; what is over is refused. From an eighth of it on, applications and
    /// peers are slowed to what leaves it. Default 256 MiB.
    pub memory_bytes: usize,
    /// So long after all that is on disk was read, reading it again begins, to find damage early; 0 s: never. Default 7 d.
    pub scrub_every: Duration,
    /// Bytes that this reads in a second while it lasts. Default 1 MiB.
    pub scrub_bytes_per_s: u64,
}

impl Default for StorageSettings {
    fn default() -> Self {
        StorageSettings {
            path: "store".into(),
            kind: StorageKind::Disk,
            cache_bytes: 16 << 20,
            memory_bytes: 256 << 20,
            scrub_every: Duration::from_secs(7 * 86_400),
            scrub_bytes_per_s: 1 << 20,
        }
    }
}

/// What a store is kept on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StorageKind {
    /// Disk: what is accepted survives.
    #[default]
    Disk,
    /// Memory: everything is gone with the node. For measurements.
    Memory,
}

/// Applications on this machine, over the socket for them (`control`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ApplicationLimits {
    /// Connections at a time; more are turned away. Default 256.
    pub connections_max: usize,
    /// An application that reads nothing of what it is told for so long is cut off; what it has not taken waits for the next
    /// that asks. Default 5 min.
    pub patience: Duration,
}

impl Default for ApplicationLimits {
    fn default() -> Self {
        ApplicationLimits { connections_max: 256, patience: Duration::from_secs(300) }
    }
}

/// A neighbour that this node calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkSettings {
    /// What it is called, by routes and commands.
    pub name: String,
    /// What carries bundles there. Default: tcp.
    pub kind: LinkKind,
    /// Where it is: `host:port`. Over AX.25 `tnc` and `callsign` say that.
    pub address: String,
    /// Over AX.25: the name of the `[[tnc]]` over which it is called.
    pub tnc: String,
    /// Over AX.25: its callsign, with its SSID where it has one; that of a group, such as `QST`.
    pub callsign: String,
    /// Over AX.25: the callsigns of the digipeaters on the way, the nearest first; at most eight. Default: none. AX.25 3.12.5.
    pub path: Vec<String>,
    /// The node id that it must have; over UDP, that it is taken to have. Default: any; over UDP none is known, and bundles
    /// take the link by a route only.
    pub peer: Option<String>,
    /// Open from the start. Default: yes.
    pub open: bool,
    /// Its rate in bit/s, for fitting bundles into what is left of a contact; over UDP the rate of sending, too. Zero: not
    /// known. Default zero.
    pub rate_bps: u64,
    /// Bundles longer than this are fragmented, bytes; zero: only as the peer asks. Default zero. RFC 9171 5.8.
    pub bundle_bytes_max: u64,
    /// Faults that are accepted of its peer: `primary-without-crc`, `no-time-no-age`,
    /// `fragment-blocks-numbered-zero`. Default: nothing. docs/peers.md.
    pub accept: Vec<Accept>,
    /// How bundles are made that go over it: `no-payload-crc`, `two-element-ipn`, `three-element-ipn`. Default: as RFC 9171
    /// has them.
    pub emit: Vec<Emit>,
    /// It goes over an amateur radio band, where nothing may be encrypted: it never uses TLS. Default: no.
    pub amateur: bool,
    /// Its sessions, where they differ from all others: keys of `[tcpcl]`.
    pub tcpcl: toml::Table,
    /// What its peer's certificate has to prove, where that differs: keys of `[tls.policy]`.
    pub tls: toml::Table,
    /// How it uses UDP, where that differs from all others: keys of `[udp]`.
    pub udp: toml::Table,
    /// How its AX.25 link works, where that differs from others of its TNC: keys of `[tnc.ax25]`.
    pub ax25: toml::Table,
    /// Its sessions, where they differ from all others: keys of `[ax25cl]`.
    pub ax25cl: toml::Table,
    /// Its sessions, where they differ from all others: keys of `[ax25cm]`.
    pub ax25cm: toml::Table,
    /// Its group, `members` and all that differs from other groups: keys of `[uicl]`.
    pub uicl: toml::Table,
}

/// What carries bundles over a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    /// TCPCL over TCP: acknowledged, encrypted where that is wanted.
    #[default]
    Tcp,
    /// One bundle a datagram over UDP: nothing is acknowledged.
    Udp,
    /// Longwire's own over AX.25: acknowledged, goes on where a lost link broke off.
    Ax25cl,
    /// TCPCL 3 over AX.25 (AX25CM-CL): for nodes that run DTN2.
    Ax25cm,
    /// To a group in UI frames of AX.25, which all of its stations hear: acknowledged by the members that are named.
    Uicl,
}

impl LinkKind {
    /// It goes over a TNC.
    pub fn is_radio(self) -> bool {
        matches!(self, LinkKind::Ax25cl | LinkKind::Ax25cm | LinkKind::Uicl)
    }

    /// Its name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            LinkKind::Tcp => "tcp",
            LinkKind::Udp => "udp",
            LinkKind::Ax25cl => "ax25cl",
            LinkKind::Ax25cm => "ax25cm",
            LinkKind::Uicl => "uicl",
        }
    }
}

impl Default for LinkSettings {
    fn default() -> Self {
        LinkSettings {
            name: String::new(),
            kind: LinkKind::default(),
            address: String::new(),
            tnc: String::new(),
            callsign: String::new(),
            path: Vec::new(),
            peer: None,
            open: true,
            rate_bps: 0,
            bundle_bytes_max: 0,
            accept: Vec::new(),
            emit: Vec::new(),
            amateur: false,
            tcpcl: toml::Table::new(),
            tls: toml::Table::new(),
            udp: toml::Table::new(),
            ax25: toml::Table::new(),
            ax25cl: toml::Table::new(),
            ax25cm: toml::Table::new(),
            uicl: toml::Table::new(),
        }
    }
}

/// A way to nodes that are no neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouteSettings {
    /// For which endpoints; a trailing `*` stands for any rest.
    pub to: String,
    /// Over which link, or by which node.
    pub via: String,
    /// The lower, the better. Default zero.
    pub cost: u32,
}

/// A folder from which files are sent: whatever is put into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DropFolder {
    /// The folder. It is made if it is not there.
    pub folder: PathBuf,
    /// Where its files go: `dtn://bob/files`.
    pub to: String,
    /// How long they are worth delivering. Default 1 day.
    pub lifetime: Duration,
    /// How urgent they are. Default normal.
    pub priority: Priority,
    /// Send the bytes as they are, without the file's name. Default: no.
    pub raw: bool,
    /// What was sent stays, in the folder's `sent`. Default: yes; else it is removed.
    pub keep: bool,
    /// A file of which the system does not tell when it is finished is sent once it has not changed for so long. Default
    /// 2 s.
    pub settle: Duration,
}

impl Default for DropFolder {
    fn default() -> Self {
        DropFolder {
            folder: PathBuf::new(),
            to: String::new(),
            lifetime: Duration::from_secs(86_400),
            priority: Priority::Normal,
            raw: false,
            keep: true,
            settle: Duration::from_secs(2),
        }
    }
}

/// A folder in which files appear: whatever comes for an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReceiveFolder {
    /// The folder. It is made if it is not there.
    pub folder: PathBuf,
    /// For which endpoint of this node: `files`, or `1` of an `ipn` node.
    pub endpoint: String,
}

impl Config {
    /// Reads a file. Paths in it are meant beside it.
    ///
    /// # Errors
    /// What cannot be read or makes no sense, with a hint.
    pub fn load(path: &Path) -> Result<Config, Error> {
        let text = longwire_settings::file::read_text(path).map_err(|error| {
            Error::new(format!("cannot read {}: {error}", path.display()))
                .hint("--config names the node's configuration")
        })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Config::parse(&text, &path.display().to_string(), folder)
    }

    /// Reads a text that `place` names in errors; its paths are meant in `folder`.
    ///
    /// # Errors
    /// What makes no sense, with a hint.
    pub fn parse(text: &str, place: &str, folder: &Path) -> Result<Config, Error> {
        let said = toml_text::parse(text, place)?;
        if let Some(toml::Value::Table(tcp)) = said.get("tcp") {
            TcpSettings::check_keys(tcp)
                .map_err(|error| Error { what: format!("{place}: {}", error.what), ..error })?;
        }
        let mut table = toml_text::to_table(&Config::default());
        toml_text::merge(&mut table, &said);
        let mut config: Config = toml_text::from_table(table, place)?;
        config.tls.beside(folder);
        config.storage.path = folder.join(&config.storage.path);
        config.http.beside(folder);
        let beside = config.storage.path.with_file_name("longwire.sock");
        config.control = Some(config.control.map_or(beside, |path| folder.join(path)));
        for path in config.drop.iter_mut().map(|drop| &mut drop.folder) {
            *path = folder.join(&*path);
        }
        for path in config.receive.iter_mut().map(|receive| &mut receive.folder) {
            *path = folder.join(&*path);
        }
        config.check().map_err(|error| Error { what: format!("{place}: {}", error.what), ..error })?;
        Ok(config)
    }

    /// Whether it makes sense.
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn check(&self) -> Result<(), Error> {
        self.node_id()?;
        self.http.check()?;
        for (key, addresses) in [("listen", &self.listen), ("listen-udp", &self.listen_udp)] {
            if let Some(wrong) = addresses.iter().find(|address| !is_address(address)) {
                return Err(Error::new(format!("`{key}`: `{wrong}` is no address")).hint(
                    "write host:port, such as 127.0.0.1:4556, or [::]:4556 for all addresses of this machine; TCPCL has port 4556",
                ));
            }
        }
        for endpoint in &self.endpoints {
            endpoint.parse::<Eid>().map_err(|_| no_endpoint(endpoint))?;
        }
        self.check_radio()?;
        for (at, link) in self.link.iter().enumerate() {
            self.check_link(at, link)?;
        }
        for route in &self.route {
            self.check_route(route)?;
        }
        self.check_contacts()?;
        self.check_peers()?;
        self.agent.check().map_err(|fault| out_of_range(fault.within("agent")))?;
        self.routing.check().map_err(|fault| out_of_range(fault.within("routing")))?;
        self.tcpcl.check().map_err(|fault| out_of_range(fault.within("tcpcl")))?;
        self.tcp.check()?;
        if self.uses_tls() && self.clock == ClockSource::None {
            return Err(Error::new("without a clock no certificate can be judged")
                .hint("`clock = \"system\"`, or leave `tls` off"));
        }
        if !self.agent.links.is_empty() {
            return Err(Error::new("`agent.links` is not for nodes")
                .hint("say `rate-bps` and `bundle-bytes-max` in the [[link]] itself"));
        }
        if self.agent.routing != agent::RoutingConfig::default() {
            return Err(Error::new("`agent.routing` is not for nodes").hint("say it in [routing]"));
        }
        self.check_folders()?;
        self.stream.check()?;
        if self.storage.scrub_bytes_per_s == 0 {
            return Err(Error::new("`storage.scrub-bytes-per-s` is more than zero")
                .hint("`storage.scrub-every = \"0 s\"` turns it off"));
        }
        if self.applications.connections_max == 0 || self.applications.patience.is_zero() {
            return Err(Error::new(
                "`applications.connections-max` and `applications.patience` are more than zero",
            )
            .hint("leave them out"));
        }
        Ok(())
    }

    /// The node id in full.
    ///
    /// # Errors
    /// It is not one.
    pub fn node_id(&self) -> Result<Eid, Error> {
        if self.node.is_empty() {
            return Err(
                Error::new("`node` is missing").hint("give the node an id, such as dtn://alice/ or ipn:7.0")
            );
        }
        let eid = self.node.parse::<Eid>().or_else(|_| format!("{}/", self.node).parse::<Eid>());
        match eid {
            Ok(eid) if eid.is_singleton() && eid.node_id() == eid => Ok(eid.detached()),
            _ => Err(Error::new(format!("`{}` is not a node id", self.node))
                .hint("a node id looks like dtn://alice/ or ipn:7.0")),
        }
    }

    fn check_folders(&self) -> Result<(), Error> {
        for drop in &self.drop {
            if drop.to.parse::<Eid>().map_or(true, |eid| eid.is_null()) {
                return Err(no_endpoint(&drop.to));
            }
        }
        if let Some(receive) = self.receive.iter().find(|receive| receive.endpoint.is_empty()) {
            let what = format!("[[receive]] {} has no `endpoint`", receive.folder.display());
            return Err(Error::new(what).hint("such as endpoint = \"files\""));
        }
        let drops = self.drop.iter().map(|drop| &drop.folder);
        let mut folders: Vec<&PathBuf> = drops.chain(self.receive.iter().map(|it| &it.folder)).collect();
        folders.sort();
        if let Some(twice) = folders.windows(2).find(|two| two[0] == two[1]) {
            let what = format!("{} is two folders of [[drop]] and [[receive]]", twice[0].display());
            return Err(Error::new(what).hint("each needs a folder of its own, or what arrives is sent"));
        }
        match folders.iter().find(|folder| folder.as_os_str().is_empty()) {
            Some(_) => Err(Error::new("a [[drop]] or [[receive]] has no `folder`").hint("name one")),
            None => Ok(()),
        }
    }

    fn check_link(&self, at: usize, link: &LinkSettings) -> Result<(), Error> {
        if link.name.is_empty() {
            return Err(Error::new(format!("[[link]] number {} has no `name`", at + 1))
                .hint("routes and commands need one"));
        }
        self.check_place(link)?;
        if self.link[..at].iter().any(|other| other.name == link.name) {
            return Err(
                Error::new(format!("two links are called `{}`", link.name)).hint("name one otherwise")
            );
        }
        self.check_sections(link)?;
        self.neighbour(link)?;
        self.udp(link)?;
        self.policy(link)?;
        self.session(link).map(drop)
    }

    /// Where a link leads to.
    fn check_place(&self, link: &LinkSettings) -> Result<(), Error> {
        let radio = link.kind.is_radio();
        let said = [
            ("address", !link.address.is_empty(), false),
            ("tnc", !link.tnc.is_empty(), true),
            ("callsign", !link.callsign.is_empty(), true),
            ("path", !link.path.is_empty(), true),
        ];
        if let Some((key, ..)) = said.iter().find(|(_, said, on_radio)| *said && *on_radio != radio) {
            let what =
                format!("link `{}` is of kind {}: `{key}` means nothing there", link.name, link.kind.name());
            return Err(Error::new(what).hint(match radio {
                true => "`tnc` and `callsign` say where it leads",
                false => "`kind = \"ax25cl\"` goes over a TNC",
            }));
        }
        if !radio && !is_address(&link.address) {
            let what = format!("link `{}`: `{}` is no address", link.name, link.address);
            return Err(Error::new(what).hint("write host:port; TCPCL has port 4556"));
        }
        Ok(())
    }

    /// The sections of a link that are for another kind.
    fn check_sections(&self, link: &LinkSettings) -> Result<(), Error> {
        let sections: [(&str, &toml::Table, &[LinkKind]); 7] = [
            ("tcpcl", &link.tcpcl, &[LinkKind::Tcp]),
            ("tls", &link.tls, &[LinkKind::Tcp]),
            ("udp", &link.udp, &[LinkKind::Udp]),
            ("ax25", &link.ax25, &[LinkKind::Ax25cl, LinkKind::Ax25cm, LinkKind::Uicl]),
            ("ax25cl", &link.ax25cl, &[LinkKind::Ax25cl]),
            ("ax25cm", &link.ax25cm, &[LinkKind::Ax25cm]),
            ("uicl", &link.uicl, &[LinkKind::Uicl]),
        ];
        let strange = |(_, table, kinds): &&(&str, &toml::Table, &[LinkKind])| {
            !table.is_empty() && !kinds.contains(&link.kind)
        };
        match sections.iter().find(strange) {
            Some((key, ..)) => Err(Error::new(format!(
                "link `{}` is of kind {}: `{key}` means nothing there",
                link.name,
                link.kind.name()
            ))
            .hint("`kind` says what carries a link: tcp, udp, ax25cl, ax25cm or uicl")),
            None => Ok(()),
        }
    }

    fn check_route(&self, route: &RouteSettings) -> Result<(), Error> {
        if route.to.is_empty() {
            return Err(Error::new("a [[route]] has no `to`").hint("such as to = \"dtn://carol/*\""));
        }
        let is_link = self.link.iter().any(|link| link.name == route.via);
        let is_node = route.via.parse::<Eid>().is_ok_and(|eid| !eid.is_null());
        if is_link || is_node {
            return Ok(());
        }
        let names = self.link.iter().map(|link| link.name.as_str());
        let hint = match nearest(&route.via, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "name a [[link]] or a node id".to_owned(),
        };
        Err(Error::new(format!("route to {}: there is no link `{}`", route.to, route.via)).hint(hint))
    }

    fn check_peers(&self) -> Result<(), Error> {
        if !self.agent.peers.is_empty() {
            return Err(Error::new("`agent.peers` is not for nodes").hint("say it in [[peer]]"));
        }
        let is_node = |text: &str| text.parse::<Eid>().is_ok_and(|eid| eid.is_node_id());
        match self.peer.iter().find(|peer| !peer.node.ends_with('*') && !is_node(&peer.node)) {
            Some(peer) => Err(Error::new(format!("[[peer]]: `{}` is not a node id", peer.node))
                .hint("such as node = \"dtn://bob/\" or \"ipn:7.0\"; a trailing * stands for any rest")),
            None => Ok(()),
        }
    }

    /// The settings of a link's sessions.
    ///
    /// # Errors
    /// Its own settings make no sense.
    pub(crate) fn session(&self, link: &LinkSettings) -> Result<tcpcl::Config, Error> {
        let mut table =
            toml_text::to_table(&tcpcl::Config { node_id: self.callers().node_id, ..self.tcpcl.clone() });
        toml_text::merge(&mut table, &link.tcpcl);
        let session: tcpcl::Config = toml_text::from_table(table, &format!("link `{}`: [tcpcl]", link.name))?;
        let encrypts = link.tcpcl.get("tls").is_some_and(|tls| tls.as_str() != Some("off"));
        if link.amateur && encrypts {
            return Err(Error::new(format!(
                "link `{}` is `amateur`, and nothing may be encrypted there",
                link.name
            ))
            .hint("leave `tls` out: an amateur link never uses it"));
        }
        let tls = if link.amateur { Tls::Off } else { session.tls };
        if tls == Tls::Require && session.versions == Versions::Three {
            return Err(Error::new(format!("link `{}`: TCPCL version 3 has no TLS", link.name))
                .hint("`versions = \"4\"`, or `tls = \"off\"`"));
        }
        let session = tcpcl::Config { tls, ..session };
        session
            .check()
            .map_err(|fault| out_of_range(fault.within(&format!("link `{}`: tcpcl", link.name))))?;
        let tls_identity = session.tls_identity || self.policy(link)?.node_id == Rule::Require;
        let peer = match &link.peer {
            Some(peer) => Some(peer.parse::<Eid>().map_err(|_| no_endpoint(peer))?.to_string()),
            None => None,
        };
        Ok(tcpcl::Config { peer_node_id: session.peer_node_id.or(peer), tls_identity, ..session })
    }

    /// How a link uses UDP.
    ///
    /// # Errors
    /// Its own settings make no sense.
    pub(crate) fn udp(&self, link: &LinkSettings) -> Result<udpcl::Config, Error> {
        let mut table = toml_text::to_table(&self.udp);
        if link.rate_bps > 0 {
            table.insert("rate-bps".into(), i64::try_from(link.rate_bps).unwrap_or(i64::MAX).into());
        }
        toml_text::merge(&mut table, &link.udp);
        let place = format!("link `{}`: [udp]", link.name);
        let udp: udpcl::Config = toml_text::from_table(table, &place)?;
        if udp.keepalive.is_some_and(|interval| interval < udpcl::config::KEEPALIVE_MIN) {
            return Err(Error::new(format!("{place}: `keepalive` is at least 15 s (RFC 7122 3.4)"))
                .hint("leave it out for none"));
        }
        let peer = match &link.peer {
            Some(peer) => Some(peer.parse::<Eid>().map_err(|_| no_endpoint(peer))?.to_string()),
            None => None,
        };
        Ok(udpcl::Config { peer_node_id: udp.peer_node_id.clone().or(peer), ..udp })
    }

    /// What the certificate of a link's peer has to prove.
    ///
    /// # Errors
    /// Its own settings make no sense.
    pub(crate) fn policy(&self, link: &LinkSettings) -> Result<tls::CertificatePolicy, Error> {
        let mut table = toml_text::to_table(&self.tls.policy);
        toml_text::merge(&mut table, &link.tls);
        toml_text::from_table(table, &format!("link `{}`: [tls]", link.name))
    }

    /// Some session may use TLS.
    pub fn uses_tls(&self) -> bool {
        let calls = |link: &LinkSettings| {
            link.kind == LinkKind::Tcp && self.session(link).is_ok_and(|session| session.tls != Tls::Off)
        };
        (self.tcpcl.tls != Tls::Off && !self.listen.is_empty()) || self.link.iter().any(calls)
    }

    /// What sessions with TLS need, read from its files; none where no session uses it.
    ///
    /// # Errors
    /// A file is not named, cannot be read, or holds something else.
    pub fn credentials(&self) -> Result<Option<Credentials>, Error> {
        if self.uses_tls() { Credentials::load(&self.tls).map(Some) } else { Ok(None) }
    }

    /// The settings of sessions that peers open.
    pub(crate) fn callers(&self) -> tcpcl::Config {
        let node_id = self.node_id().map(|eid| eid.to_string()).unwrap_or_default();
        let tls_identity = self.tcpcl.tls_identity || self.tls.policy.node_id == Rule::Require;
        tcpcl::Config { node_id, tls_identity, ..self.tcpcl.clone() }
    }

    /// The socket for applications.
    pub fn control(&self) -> PathBuf {
        self.control.clone().unwrap_or_else(|| self.storage.path.with_file_name("longwire.sock"))
    }
}

/// True for `host:port`, and for `[address]:port` where the address has colons itself.
fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let names = match bracketed {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok() || address.contains('%'),
        None => !host.is_empty() && !host.contains([':', '[', ']']),
    };
    names && port.parse::<u16>().is_ok()
}

/// A setting of an engine with which it could not work.
fn out_of_range(fault: Fault) -> Error {
    Error::new(fault.to_string()).hint(fault.hint)
}

fn no_endpoint(text: &str) -> Error {
    Error::new(format!("`{text}` is not an endpoint"))
        .hint("an endpoint looks like dtn://name/inbox or ipn:3.1")
}

#[cfg(test)]
mod tests;
