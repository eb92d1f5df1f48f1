//! `[[gateway]]`: programs that use TCP or UDP here, and programs at a peer, over a link.

use super::{CONNECTIONS_MAX, Config, LinkSettings, StorageKind, is_address};
use longwire_proto::aerotp::BUNDLES_PORT;
use longwire_proto::bp::Eid;
use longwire_proto::service::{Precedence, ProgramKind, TransportService};
use longwire_proto::settings;
use longwire_settings::duration::short;
use longwire_settings::error::{Error, did_you_mean};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Kind of the links that carry flows.
pub(crate) const FLOW_KIND: &str = "aerotp";
/// Highest port at which a gateway answers: those above are for its own connections (RFC 6335 6).
const PORT_MAX: u16 = 49_151;
/// Number of the service of an `ipn` node for port 0 of the gateway.
const IPN_SERVICES: u64 = 1_000_000;
/// Default time without data after which a TCP connection ends (RFC 5382, REQ-5).
const IDLE_TCP: Duration = Duration::from_secs(124 * 60);
/// Default time without datagrams after which the port of a sender is forgotten (RFC 4787, REQ-5).
const IDLE_UDP: Duration = Duration::from_secs(5 * 60);

settings! {
    /// Gateway between TCP or UDP and a link: at the near side it listens for programs, at the far side it connects to a program. A
    /// connection has one of each.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct GatewaySettings {
        /// Near side: address on which programs connect with TCP, `host:port`.
        pub listen_tcp: Option<String>,
        /// Near side: address to which programs send with UDP, `host:port`.
        pub listen_udp: Option<String>,
        /// Near side: name of the link to the far side, of kind `aerotp`; for `near-reliable` a link of any kind with a `peer`.
        pub link: String,
        /// Near side: service across the link. For TCP `reliable`, `near-reliable`, `nack`, `nack-mack`, `quasi-reliable` or `adaptive`;
        /// for UDP `unreliable-datagram`, `unreliable-connection` or `quasi-reliable`. Default: `reliable` for TCP,
        /// `unreliable-datagram` for UDP.
        pub service: Option<TransportService>,
        /// Near side: precedence of the data on the link: `routine`, `priority`, `immediate` or `flash`. Default `routine`.
        pub precedence: Precedence,
        /// Near side: port at the far side, from 1 to 49,151 except 4556, which is that of bundles.
        pub to_port: u16,
        /// Far side: port at which the gateway answers, from 1 to 49,151 except 4556, which is that of bundles.
        pub port: u16,
        /// Far side: address to which the gateway connects with TCP, `host:port`.
        pub connect_tcp: Option<String>,
        /// Far side: address to which the gateway sends with UDP, `host:port`.
        pub send_udp: Option<String>,
        /// Far side: passes on datagrams that contain bit errors. The link must deliver them as well (`deliver-damaged` in
        /// `[link.aerotp]`), and only `unreliable-datagram` does. Default: false, they are dropped.
        pub damaged: bool,
        /// The programs do not encrypt. Over links on amateur radio bands (`amateur`), where encryption is not allowed, a gateway
        /// needs this statement of its operator, because the node cannot tell by the bytes. Default: false.
        pub plain: bool,
        /// Maximum concurrent connections, or with UDP senders; further ones are refused. Default 256.
        pub connections_max: usize = 256,
        /// Time without data in either direction after which a connection is reset, or the port of a sender forgotten. Default 124 min
        /// for TCP (RFC 5382, REQ-5), 5 min for UDP (RFC 4787, REQ-5).
        pub idle: Option<Duration>,
        /// Near side, `near-reliable` only: maximum length of the data of a connection, bytes. Default 64 MiB.
        pub message_bytes_max: u64 = 64 << 20,
        /// Near side, `near-reliable` only: maximum length of the data of all connections that are not stored yet, bytes; a connection
        /// that would exceed it is reset. They wait in a file beside the store. Default 256 MiB.
        pub waiting_bytes_max: u64 = 256 << 20,
        /// Near side, `near-reliable` only: time after which data that could not be delivered are deleted. Default 1 day.
        pub lifetime: Duration = Duration::from_secs(86_400),
    }
}

/// Sides of a gateway, with the address for its programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GatewaySide<'a> {
    /// Programs connect or send to this address.
    Near(&'a str),
    /// The program is at this address.
    Far(&'a str),
}

impl GatewaySettings {
    /// Shape of the data of its programs.
    pub(crate) fn kind(&self) -> ProgramKind {
        match self.listen_udp.is_some() || self.send_udp.is_some() {
            true => ProgramKind::Datagrams,
            false => ProgramKind::Stream,
        }
    }

    /// Side of the connections, if exactly one address is set.
    pub(crate) fn side(&self) -> Option<GatewaySide<'_>> {
        let near = [&self.listen_tcp, &self.listen_udp].into_iter().flatten().map(|at| GatewaySide::Near(at));
        let far = [&self.connect_tcp, &self.send_udp].into_iter().flatten().map(|at| GatewaySide::Far(at));
        let mut sides = near.chain(far);
        sides.next().filter(|_| sides.next().is_none())
    }

    /// Service across the link.
    pub(crate) fn service(&self) -> TransportService {
        self.service.unwrap_or(match self.kind() {
            ProgramKind::Stream => TransportService::Reliable,
            ProgramKind::Datagrams => TransportService::UnreliableDatagram,
        })
    }

    /// True if data are taken over as bundles.
    pub(crate) fn takes_custody(&self) -> bool {
        matches!(self.side(), Some(GatewaySide::Near(_))) && self.service() == TransportService::NearReliable
    }

    /// Time without data after which a connection ends.
    pub(crate) fn idle(&self) -> Duration {
        self.idle.unwrap_or(match self.kind() {
            ProgramKind::Stream => IDLE_TCP,
            ProgramKind::Datagrams => IDLE_UDP,
        })
    }

    /// Name of the gateway, for operators.
    pub(crate) fn name(&self) -> String {
        match (self.kind(), self.side()) {
            (ProgramKind::Stream, Some(GatewaySide::Near(at))) => format!("listen-tcp {at}"),
            (ProgramKind::Datagrams, Some(GatewaySide::Near(at))) => format!("listen-udp {at}"),
            _ => format!("port {}", self.port),
        }
    }

    fn check(&self, links: &[LinkSettings]) -> Result<(), Error> {
        let Some(side) = self.side() else {
            return Err(Error::new(
                "a [[gateway]] needs one of `listen-tcp`, `listen-udp`, `connect-tcp` and `send-udp`",
            )
            .hint("the near side listens, the far side connects or sends; use a [[gateway]] for each"));
        };
        let name = self.name();
        let fault = |what: String| Error::new(format!("gateway `{name}`: {what}"));
        let (GatewaySide::Near(address) | GatewaySide::Far(address)) = side;
        if !is_address(address) {
            return Err(fault(format!("`{address}` is not a valid address"))
                .hint("use host:port, such as 127.0.0.1:8080"));
        }
        let is_near = matches!(side, GatewaySide::Near(_));
        let (key, port) = if is_near { ("to-port", self.to_port) } else { ("port", self.port) };
        if !(1..=PORT_MAX).contains(&port) {
            return Err(fault(format!("`{key}` is {port}; it must be from 1 to {PORT_MAX}"))
                .hint("`to-port` at the near side is `port` at the far side"));
        }
        if port == BUNDLES_PORT {
            return Err(fault(format!("`{key}` is {port}, the port of bundles on the link"))
                .hint("use another number at both sides; the addresses of the programs may have any port"));
        }
        let strange = match is_near {
            true => [("port", self.port != 0), ("damaged", self.damaged)],
            false => [("to-port", self.to_port != 0), ("link", !self.link.is_empty())],
        };
        let service = ("service", !is_near && self.service.is_some());
        if let Some((key, _)) = strange.into_iter().chain([service]).find(|(_, is_set)| *is_set) {
            let sides = if is_near { ("near", "far") } else { ("far", "near") };
            return Err(fault(format!("`{key}` does not apply to the {} side", sides.0))
                .hint(format!("set it at the {} side", sides.1)));
        }
        if self.connections_max == 0 || self.connections_max > CONNECTIONS_MAX {
            return Err(fault("`connections-max` must be from 1 to 1,000,000".into())
                .hint("remove it to use the default"));
        }
        if self.idle.is_some_and(|idle| idle.is_zero())
            || self.message_bytes_max == 0
            || self.lifetime.is_zero()
        {
            return Err(fault("`idle`, `message-bytes-max` and `lifetime` must be greater than zero".into())
                .hint("remove them to use the defaults"));
        }
        if is_near { self.check_near(links, fault) } else { Ok(()) }
    }

    fn check_near(&self, links: &[LinkSettings], fault: impl Fn(String) -> Error) -> Result<(), Error> {
        let service = self.service();
        let services: &[TransportService] = match self.kind() {
            ProgramKind::Stream => &[
                TransportService::Reliable,
                TransportService::NearReliable,
                TransportService::Nack,
                TransportService::NackMack,
                TransportService::QuasiReliable,
                TransportService::Adaptive,
            ],
            ProgramKind::Datagrams => &[
                TransportService::UnreliableDatagram,
                TransportService::UnreliableConnection,
                TransportService::QuasiReliable,
            ],
        };
        if !services.contains(&service) {
            let words: Vec<String> = services.iter().map(|service| service_word(*service)).collect();
            let (over, word) = (kind_word(self.kind()), service_word(service));
            return Err(fault(format!("`{word}` is no service for {over}"))
                .hint(format!("use one of {}", words.join(", "))));
        }
        let Some(link) = links.iter().find(|link| link.name == self.link) else {
            let names = links.iter().map(|link| link.name.as_str());
            let hint = did_you_mean(&self.link, names, "`link` is the name of a [[link]] to the far side");
            return Err(fault(format!("no such link: `{}`", self.link)).hint(hint));
        };
        if service == TransportService::NearReliable {
            return match link.peer {
                Some(_) => Ok(()),
                None => Err(fault(format!("link `{}` has no `peer`", link.name))
                    .hint("set it to the node ID of the far side, to which the data are sent as bundles")),
            };
        }
        if link.kind != FLOW_KIND {
            return Err(fault(format!("link `{}` is of kind {}", link.name, link.kind)).hint(format!(
                "use a link of kind {FLOW_KIND}; only `near-reliable` uses links of other kinds"
            )));
        }
        Ok(())
    }
}

/// Word for a service, as in the configuration.
pub(crate) fn service_word(service: TransportService) -> String {
    serde_json::to_value(service).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

fn kind_word(kind: ProgramKind) -> &'static str {
    match kind {
        ProgramKind::Stream => "TCP",
        ProgramKind::Datagrams => "UDP",
    }
}

/// Endpoint of the gateway of a node to which data for a port are sent as bundles.
pub(crate) fn custody_endpoint(node: &Eid, port: u16) -> String {
    let node = node.to_string();
    match node.strip_suffix(".0") {
        Some(ipn) if node.starts_with("ipn:") => format!("{ipn}.{}", IPN_SERVICES + u64::from(port)),
        _ => format!("{node}gateway/{port}"),
    }
}

impl Config {
    /// Returns the addresses at which gateways listen over TCP and over UDP.
    pub(super) fn gateway_addresses(&self) -> impl Iterator<Item = &str> {
        self.gateway
            .iter()
            .flat_map(|gateway| [&gateway.listen_tcp, &gateway.listen_udp])
            .flatten()
            .map(String::as_str)
    }

    pub(super) fn check_gateways(&self) -> Result<(), Error> {
        self.check_plain_gateways()?;
        for (at, gateway) in self.gateway.iter().enumerate() {
            gateway.check(&self.link)?;
            if gateway.takes_custody() && self.storage.kind == StorageKind::Memory {
                let what = format!("gateway `{}`: `near-reliable` needs a store on disk", gateway.name());
                return Err(Error::new(what).hint(
                    "set `kind = \"disk\"` in [storage], or use `reliable`: in memory, data taken into custody would end with the process",
                ));
            }
            let same =
                |other: &&GatewaySettings| other.port == gateway.port && other.kind() == gateway.kind();
            if gateway.port != 0 && self.gateway[..at].iter().any(|other| same(&other)) {
                let what = format!(
                    "two gateways answer over {} at port {}",
                    kind_word(gateway.kind()),
                    gateway.port
                );
                return Err(Error::new(what).hint("use another port for one of them"));
            }
        }
        Ok(())
    }

    /// Checks that the bytes of programs go over an amateur radio band only if the operator says that they are plain.
    ///
    /// # Errors
    /// Fails with the first gateway that may use such a link without saying so.
    pub(crate) fn check_plain_gateways(&self) -> Result<(), Error> {
        self.gateway.iter().try_for_each(|gateway| self.check_plain(gateway))
    }

    fn check_plain(&self, gateway: &GatewaySettings) -> Result<(), Error> {
        let leads = |link: &&LinkSettings| match gateway.side() {
            // Bundles may take any link.
            Some(GatewaySide::Near(_)) if gateway.takes_custody() => true,
            Some(GatewaySide::Near(_)) => link.name == gateway.link,
            // It answers over any link that carries flows.
            _ => link.kind == FLOW_KIND,
        };
        let Some(link) = self.link.iter().filter(leads).find(|link| !gateway.plain && self.is_amateur(link))
        else {
            return Ok(());
        };
        let what = format!(
            "gateway `{}`: link `{}` is amateur radio, where encryption is not allowed",
            gateway.name(),
            link.name
        );
        Err(Error::new(what).hint("if the programs never encrypt, say so with `plain = true`"))
    }

    /// Describes the gateways for an operator.
    pub(super) fn explain_gateways(&self, line: &mut impl FnMut(String), details: &mut Vec<String>) {
        for gateway in &self.gateway {
            let over = kind_word(gateway.kind());
            match gateway.side() {
                Some(GatewaySide::Near(at)) => {
                    let (to, link, word) = (gateway.to_port, &gateway.link, service_word(gateway.service()));
                    line(match (gateway.kind(), gateway.service()) {
                        (ProgramKind::Stream, TransportService::NearReliable) => format!(
                            "Gateway: TCP connections to {at} go to port {to} at the far side of link `{link}`, {word}: when such a \
                             connection is closed in good order, the node has stored its data and delivers them later."
                        ),
                        (ProgramKind::Stream, service) if service.acknowledges() => format!(
                            "Gateway: TCP connections to {at} go to port {to} at the far side of link `{link}`, {word}."
                        ),
                        (ProgramKind::Stream, _) => format!(
                            "Gateway: TCP connections to {at} go to port {to} at the far side of link `{link}`, {word}: a connection is \
                             reset when data are lost."
                        ),
                        (ProgramKind::Datagrams, _) => format!(
                            "Gateway: datagrams to {at} go to port {to} at the far side of link `{link}`, {word}."
                        ),
                    });
                }
                Some(GatewaySide::Far(to)) => {
                    let damaged = if gateway.damaged { ", with those that contain bit errors" } else { "" };
                    line(match gateway.kind() {
                        ProgramKind::Stream => {
                            format!("Gateway: connections for port {} go to {to}.", gateway.port)
                        }
                        ProgramKind::Datagrams => {
                            format!("Gateway: datagrams for port {} go to {to}{damaged}.", gateway.port)
                        }
                    });
                }
                None => {}
            }
            details.push(format!(
                "Gateway `{}`: at most {} connections over {over}, each of which ends after {} without data.",
                gateway.name(),
                gateway.connections_max,
                short(gateway.idle())
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const LINK: &str = "[[link]]\nname = 'aircraft'\nkind = 'aerotp'\naddress = '192.0.2.7:4560'\n";
    const OTHER: &str =
        "[[link]]\nname = 'ship'\nkind = 'ltp'\naddress = '192.0.2.8:1113'\npeer = 'ipn:7.0'\n";

    fn read(gateway: &str) -> Result<Config, String> {
        let text = format!("node = 'dtn://a/'\n{LINK}{OTHER}{gateway}");
        Config::parse(&text, "node.toml", Path::new("/")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_gateway_that_makes_no_sense_is_refused_with_a_hint() {
        let near = "[[gateway]]\nlisten-tcp = '127.0.0.1:8080'\nlink = 'aircraft'\nto-port = 80\n";
        let udp = near.replace("tcp", "udp");
        let custody = format!("{near}service = 'near-reliable'\n[storage]\n").replace("aircraft", "ship");
        let far = "[[gateway]]\nport = 80\nconnect-tcp = '127.0.0.1:80'\n";
        for (text, said) in [
            ("[[gateway]]\n".to_owned(), "needs one of"),
            (format!("{near}send-udp = '127.0.0.1:9'\n"), "needs one of"),
            (near.replace("127.0.0.1:8080", "8080"), "not a valid address"),
            (near.replace("to-port = 80", ""), "`to-port` is 0"),
            (near.replace("= 80\n", "= 49152\n"), "`to-port` is 49152"),
            (far.replace("port = 80\n", ""), "`port` is 0"),
            (near.replace("aircraft", "airkraft"), "no such link: `airkraft`"),
            (near.replace("aircraft", "ship"), "is of kind ltp"),
            (format!("{near}service = 'near-reliable'\n"), "has no `peer`"),
            (format!("{near}service = 'unreliable-datagram'\n"), "no service for TCP"),
            (format!("{udp}service = 'reliable'\n"), "no service for UDP"),
            (format!("{near}damaged = true\n"), "`damaged` does not apply to the near side"),
            (format!("{far}service = 'reliable'\n"), "`service` does not apply to the far side"),
            (format!("{far}link = 'aircraft'\n"), "`link` does not apply to the far side"),
            (format!("{far}{far}"), "two gateways answer over TCP at port 80"),
            (format!("{near}connections-max = 0\n"), "`connections-max`"),
            (format!("{near}idle = '0 s'\n"), "must be greater than zero"),
            (near.replace("= 80\n", "= 4556\n"), "`to-port` is 4556, the port of bundles"),
            (far.replace("port = 80\n", "port = 4556\n"), "`port` is 4556, the port of bundles"),
            (custody.replace("[storage]", "[storage]\nkind = 'memory'"), "needs a store on disk"),
        ] {
            let error = read(&text).expect_err(&text);
            assert!(error.contains(said) && error.contains("hint: "), "{text}{error}");
        }
        for text in [
            near.to_owned(),
            far.to_owned(),
            custody.clone(),
            format!("{near}[storage]\nkind = 'memory'\n"),
            format!("{udp}service = 'quasi-reliable'\nprecedence = 'flash'\n"),
            format!("{far}[[gateway]]\nport = 80\nsend-udp = '127.0.0.1:80'\ndamaged = true\n"),
        ] {
            assert_eq!(read(&text).map(drop), Ok(()), "{text}");
        }
    }

    #[test]
    fn the_endpoint_of_a_port_follows_from_the_node_id() {
        for (node, endpoint) in [("dtn://b/", "dtn://b/gateway/80"), ("ipn:7.0", "ipn:7.1000080")] {
            assert_eq!(custody_endpoint(&node.parse().expect("a node ID"), 80), endpoint);
        }
    }
}
