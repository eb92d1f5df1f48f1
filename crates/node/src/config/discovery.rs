//! `[discovery]`: neighbours that announce themselves.

use super::{Config, GroupAddress, LinkSettings};
use longwire_proto::bp::Eid;
use longwire_proto::discovery::{self, Admission, Way, aprs};
use longwire_proto::setting::Settings as _;
use longwire_proto::settings;
use longwire_settings::duration::short;
use longwire_settings::error::Error;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Maximum number of groups, and of interfaces.
const GROUPS_MAX: usize = 16;
/// Section of TCPCL, which links to neighbours use.
const TCPCL: &str = "tcpcl";

settings! {
    /// Settings for the discovery of neighbours.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct DiscoverySettings {
        /// Nodes that become neighbours when they announce themselves: `any`; `known` for nodes that sign with the key that
        /// is known of them, or with any key if none is, and for nodes in this configuration; or a list of node IDs, in which a
        /// trailing `*` matches anything. Default: none, discovery is off.
        pub peers: Option<DiscoveredPeers>,
        /// Multicast groups, `address:port`, to which the node announces itself and in which it hears others; `%` and an
        /// interface may follow the address. Default: `224.0.1.20:4556` and `[ff02::114]:4556`. draft-ietf-dtn-bp-sand 4.6.
        pub groups: Vec<String> = vec!["224.0.1.20:4556".into(), "[ff02::114]:4556".into()],
        /// Groups in which the node only hears others, such as `224.0.0.142:4551` for IPND of IBR-DTN. Default: none.
        pub hear: Vec<String>,
        /// Network interfaces. Default: all that are up when the node announces itself, except loopback.
        pub interfaces: Vec<String>,
        /// Interval of announcements. A neighbour is lost after three intervals without one. Default 30 s.
        pub interval: Duration = Duration::from_secs(30),
        /// Time without bundles after which a link to a neighbour closes; the next bundle opens it again. Default 1 min.
        pub idle: Duration = Duration::from_secs(60),
        /// Maximum number of neighbours; further ones are ignored. Default 64.
        pub neighbours_max: usize = 64,
    }
}

/// Nodes that become neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DiscoveredPeers {
    /// A rule.
    Rule(DiscoveryRule),
    /// Node IDs and patterns.
    Listed(Vec<String>),
}

/// Rule for neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiscoveryRule {
    /// All nodes.
    Any,
    /// Nodes with a known key or their first one, and nodes in the configuration.
    Known,
}

impl DiscoverySettings {
    /// Returns the groups to which the node announces itself, and those in which it only hears others.
    pub(crate) fn all_groups(&self) -> impl Iterator<Item = (GroupAddress, bool)> {
        let all =
            self.groups.iter().map(|text| (text, true)).chain(self.hear.iter().map(|text| (text, false)));
        all.filter_map(|(text, announces)| Some((GroupAddress::parse(text)?, announces)))
    }

    fn check(&self) -> Result<(), Error> {
        for (key, text) in
            self.groups.iter().map(|text| ("groups", text)).chain(self.hear.iter().map(|text| ("hear", text)))
        {
            if GroupAddress::parse(text).is_none() {
                let what = format!("`discovery.{key}`: `{text}` is no address of a multicast group");
                return Err(Error::new(what).hint("use address:port, such as 224.0.1.20:4556"));
            }
        }
        if self.groups.len() + self.hear.len() > GROUPS_MAX || self.interfaces.len() > GROUPS_MAX {
            return Err(Error::new(format!("[discovery] has more than {GROUPS_MAX} groups or interfaces"))
                .hint("remove some"));
        }
        if self.idle < Duration::from_secs(1) {
            return Err(Error::new("`discovery.idle` is less than 1 s").hint("1 min is usual"));
        }
        if let Some(DiscoveredPeers::Listed(nodes)) = &self.peers {
            let is_wrong = |node: &&String| {
                !node.ends_with('*') && !node.parse::<Eid>().is_ok_and(|node| node.is_node_id())
            };
            if let Some(wrong) = nodes.iter().find(is_wrong) {
                return Err(Error::new(format!("`discovery.peers`: `{wrong}` is not a node ID")).hint(
                    "a node ID looks like dtn://alice/ or ipn:7.0; `dtn://team-*` stands for several",
                ));
            }
        }
        Ok(())
    }
}

impl Config {
    /// Returns the settings of the engine; `None` if discovery is off.
    pub(crate) fn neighbourhood(&self) -> Result<Option<discovery::Config>, Error> {
        let Some(admission) = self.discovered() else { return Ok(None) };
        let DiscoverySettings { interval, neighbours_max, .. } = self.discovery;
        let (node, configured) = (self.node_id()?, self.configured_nodes());
        let config = discovery::Config { node, admission, configured, interval, neighbours_max };
        config.check().map_err(|fault| Error::from(fault.within("discovery")))?;
        Ok(Some(config))
    }

    /// Returns the rule for neighbours; `None` if discovery is off.
    pub(crate) fn discovered(&self) -> Option<Admission> {
        Some(match self.discovery.peers.as_ref()? {
            DiscoveredPeers::Rule(DiscoveryRule::Any) => Admission::Any,
            DiscoveredPeers::Rule(DiscoveryRule::Known) => Admission::Known(self.configured_nodes()),
            DiscoveredPeers::Listed(nodes) => Admission::Listed(nodes.clone()),
        })
    }

    /// Nodes that the configuration names. Links to neighbours that were found name nobody.
    pub(crate) fn configured_nodes(&self) -> BTreeSet<Eid> {
        let links = self.link.iter().filter(|link| !link.found).cloned().collect();
        let configured = Config { link: links, ..self.clone() };
        configured.known_nodes().iter().filter_map(|node| node.parse().ok()).collect()
    }

    pub(super) fn check_discovery(&self) -> Result<(), Error> {
        self.discovery.check()?;
        self.neighbourhood()?;
        let node = self.node_id()?;
        for tnc in self.tnc.iter().filter(|tnc| tnc.discovery) {
            let place = format!("TNC `{}`", tnc.name);
            if self.discovery.peers.is_none() {
                return Err(Error::new(format!(
                    "{place}: `discovery` is true, but there is no `peers` in [discovery]"
                ))
                .hint("set `[discovery] peers = \"any\"`, or `\"known\"`, or a list of node IDs"));
            }
            if let Some(text) = &tnc.position
                && aprs::Position::parse(text).is_none()
            {
                return Err(Error::new(format!("{place}: `{text}` is no position"))
                    .hint("use degrees north and east: `position = \"53.2734, -7.7783\"`"));
            }
            if tnc.announcement_text(&node).is_none() {
                return Err(Error::new(format!("{place}: the node ID is too long to be announced")).hint(
                    format!(
                        "it has at most {} bytes with a position, and {} without",
                        aprs::COMMENT_BYTES_MAX,
                        aprs::STATUS_BYTES_MAX
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Makes the settings of a link to a neighbour; `None` if it cannot be called, or if the configuration has a link to it.
    pub(crate) fn found_link(&self, node: &Eid, way: &Way) -> Option<LinkSettings> {
        let configured = || self.link.iter().filter(|link| !link.found);
        let leads_there = |link: &LinkSettings| {
            link.peer.as_ref().is_some_and(|peer| peer.parse::<Eid>().is_ok_and(|peer| peer == *node))
        };
        let node = node.to_string();
        let short = node.strip_prefix("dtn://").unwrap_or(&node).trim_end_matches('/');
        let name = format!("found-{short}");
        let is_there = |link: &LinkSettings| match way {
            Way::Tcp(address) => link.address.parse::<SocketAddr>().is_ok_and(|known| known == *address),
            Way::Station { .. } | Way::Calls(_) => false,
        };
        if configured().any(|link| leads_there(link) || link.name == name || is_there(link)) {
            return None;
        }
        let link =
            LinkSettings { name, peer: Some(node), open: false, found: true, ..LinkSettings::default() };
        match way {
            Way::Tcp(address) => {
                let mut link = LinkSettings {
                    address: address_text(address),
                    amateur: self.is_amateur_address(address),
                    ..link
                };
                let idle = BTreeMap::from([("idle-timeout", short_text(self.discovery.idle))]);
                link.carriers.set(TCPCL, &idle);
                Some(link)
            }
            Way::Station { tnc, callsign } => {
                let tnc = self.tnc.get(*tnc)?.name.clone();
                Some(LinkSettings { kind: "ax25cl".into(), tnc, callsign: callsign.to_string(), ..link })
            }
            Way::Calls(_) => None,
        }
    }

    /// True for an address in one of the amateur networks, and for that of a configured amateur link, at whatever port. Addresses
    /// that are valid on one link only do not tell which network it is: beside amateur networks they are taken for amateur radio.
    fn is_amateur_address(&self, address: &SocketAddr) -> bool {
        let address = address.ip().to_canonical();
        let networks = self.amateur_networks.iter().filter_map(|text| text.parse::<super::IpNetwork>().ok());
        let is_link = |link: &LinkSettings| {
            let host = link.address.rsplit_once(':').map_or("", |(host, _)| host.trim_matches(['[', ']']));
            let host = host.split('%').next().and_then(|host| host.parse::<IpAddr>().ok());
            host.is_some_and(|host| host.to_canonical() == address)
        };
        let mut amateur = self.link.iter().filter(|link| !link.found && self.is_amateur(link));
        networks.into_iter().any(|network| network.contains(address))
            || amateur.any(is_link)
            || (is_link_local(address) && !self.amateur_networks.is_empty())
    }

    /// Describes discovery for an operator.
    pub(super) fn explain_discovery(&self, line: &mut impl FnMut(String)) {
        let Some(peers) = &self.discovery.peers else { return };
        let who = match peers {
            DiscoveredPeers::Rule(DiscoveryRule::Any) => "every node that announces itself".to_owned(),
            DiscoveredPeers::Rule(DiscoveryRule::Known) => {
                "nodes that sign with a known key or their first one, and nodes in this configuration"
                    .to_owned()
            }
            DiscoveredPeers::Listed(nodes) => nodes.join(", "),
        };
        let DiscoverySettings { groups, hear, interval, .. } = &self.discovery;
        if !groups.is_empty() {
            line(format!(
                "Discovery: announces itself every {} to {}, and hears others there.",
                short(*interval),
                groups.join(" and ")
            ));
        }
        if !hear.is_empty() {
            line(format!("Discovery: hears others on {}.", hear.join(" and ")));
        }
        for tnc in self.tnc.iter().filter(|tnc| tnc.discovery) {
            line(format!(
                "Discovery: announces itself every {} over TNC `{}`, and hears others there.",
                short(tnc.beacon_interval),
                tnc.name
            ));
        }
        if !groups.is_empty() && self.security.private_key.is_none() {
            line(
                "Its announcements are not signed: without `[security] private-key`, nodes that admit only known keys ignore them."
                    .to_owned(),
            );
        }
        line(format!(
            "Links are made to {who}, each of which opens when a bundle needs it; connections from these nodes are accepted."
        ));
    }
}

/// True for an address that is valid on one link only.
pub(crate) fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn short_text(time: Duration) -> String {
    format!("{} s", time.as_secs().max(1))
}

/// Writes an address, with the number of its interface if it is valid on one link only.
fn address_text(address: &SocketAddr) -> String {
    match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => {
            format!("[{}%{}]:{}", v6.ip(), v6.scope_id(), v6.port())
        }
        address => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn parse(text: &str) -> Result<Config, Error> {
        Config::parse(&format!("node = 'dtn://alice/'\n{text}"), "test", Path::new("/"))
    }

    const TNC: &str =
        "[[tnc]]\nname = 'vhf'\naddress = '127.0.0.1:8001'\ncallsign = 'OE1ABC-1'\ndiscovery = true\n";

    #[test]
    fn what_makes_no_sense_is_refused_with_a_hint() {
        let on = "[discovery]\npeers = 'any'\n";
        let long = format!("node = 'dtn://{}/'\n{on}{TNC}", "x".repeat(60));
        for (text, what) in [
            ("[discovery]\ngroups = ['192.0.2.1:4556']".to_owned(), "no address of a multicast group"),
            ("[discovery]\npeers = ['bob']".to_owned(), "`bob` is not a node ID"),
            (format!("{on}interval = '1 s'"), "`discovery.interval`"),
            (format!("{on}idle = '0 s'"), "`discovery.idle`"),
            (format!("{on}neighbours-max = 0"), "`discovery.neighbours-max`"),
            (TNC.to_owned(), "there is no `peers`"),
            (format!("{on}{TNC}position = 'here'"), "`here` is no position"),
        ] {
            let error = parse(&text).expect_err(&text);
            assert!(error.to_string().contains(what) && error.hint.is_some(), "{text}: {error}");
        }
        let error = Config::parse(&long, "test", Path::new("/")).expect_err("it is too long");
        assert!(error.to_string().contains("too long to be announced"), "{error}");
        assert!(parse("[discovery]\npeers = 'some'").is_err());
        assert!(parse(&format!("{on}{TNC}position = '-33.9, 18.4'")).is_ok());
    }

    /// The links of the configuration come first, and amateur radio stays amateur radio.
    #[test]
    fn a_link_to_a_neighbour_is_made_unless_there_is_one() {
        let config = parse(
            "amateur-networks = ['44.0.0.0/9']\n[discovery]\npeers = 'any'\nidle = '90 s'\n\
             [[link]]\nname = 'bob'\naddress = 'bob:4556'\npeer = 'dtn://bob/'\n\
             [[link]]\nname = 'found-carol'\naddress = 'carol:4556'",
        )
        .expect("it makes sense");
        let link = |node: &str, at: &str| {
            let way = Way::Tcp(at.parse().expect("an address"));
            config.found_link(&node.parse().expect("a node ID"), &way)
        };
        assert_eq!(link("dtn://bob/", "192.0.2.1:4556"), None, "it has a link");
        assert_eq!(link("dtn://carol/", "192.0.2.1:4556"), None, "the name is in use");
        let dave = link("dtn://dave/", "192.0.2.1:4556").expect("a link");
        assert_eq!((&dave.name[..], &dave.address[..]), ("found-dave", "192.0.2.1:4556"));
        assert!(!dave.open && !dave.amateur && config.plan(&dave).is_ok());
        let erin = link("dtn://erin/", "[fe80::1%3]:4556").expect("a link");
        assert_eq!(&erin.address[..], "[fe80::1%3]:4556");
        assert!(link("ipn:7.0", "44.1.2.3:4556").expect("a link").amateur);
        let calls = Way::Calls("192.0.2.1:4556".parse().expect("an address"));
        assert_eq!(config.found_link(&"dtn://dave/".parse().expect("a node ID"), &calls), None);
    }

    /// Nothing on a found link is encrypted if it may be amateur radio.
    #[test]
    fn a_neighbour_at_an_address_of_amateur_radio_gets_an_amateur_link() {
        let amateur = |text: &str, at: &str| {
            let config = parse(text).expect("it makes sense");
            let way = Way::Tcp(at.parse().expect("an address"));
            config.found_link(&"dtn://dave/".parse().expect("a node ID"), &way).map(|link| link.amateur)
        };
        let network = "amateur-networks = ['44.0.0.0/9']";
        let link = "[[link]]\nname = 'gw'\naddress = '10.0.0.5:4556'\namateur = true";
        let wide = "[[link]]\nname = 'gw'\naddress = '[2001:db8::5]:4556'\namateur = true";
        for (text, at, is_amateur) in [
            (network, "44.1.2.3:4556", true),
            (network, "192.0.2.1:4556", false),
            (network, "[fe80::1%3]:4556", true),
            (network, "169.254.1.2:4556", true),
            ("", "[fe80::1%3]:4556", false),
            (link, "10.0.0.5:4557", true),
            (link, "[::ffff:10.0.0.5]:4557", true),
            (link, "10.0.0.6:4556", false),
            (wide, "[2001:db8::5]:1", true),
        ] {
            assert_eq!(amateur(text, at), Some(is_amateur), "{text} {at}");
        }
        assert_eq!(amateur(link, "10.0.0.5:4556"), None, "the configured link leads there");
    }
}
