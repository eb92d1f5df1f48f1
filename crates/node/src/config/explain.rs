//! A configuration in words.

use super::{ClockSource, Config, LinkKind, LinkSettings, StorageKind};
use crate::tls::{self, Rule};
use longwire_proto::bp::agent::RouterChoice as RouterKind;
use longwire_proto::bp::{Accept, Emit};
use longwire_proto::service::BundleVersion;
use longwire_proto::tcpcl::{Tls, Versions};
use std::fmt::Write;

impl Config {
    /// A summary of what a node with this configuration does, for an operator, and all warnings.
    pub fn explain(&self) -> String {
        self.explained().0
    }

    /// The same with limits and times in words, and every setting with its value.
    pub fn explain_all(&self) -> String {
        let (mut out, details) = self.explained();
        let settings = super::listing::lines(self).into_iter();
        for line in details.into_iter().chain(["Every setting:".to_owned()]).chain(settings) {
            let _ = writeln!(out, "{line}");
        }
        out
    }

    /// The text that comes first, and the lines with details.
    fn explained(&self) -> (String, Vec<String>) {
        let mut out = String::new();
        let mut details = Vec::new();
        let node = self.node_id().map_or_else(|_| self.node.clone(), |eid| eid.to_string());
        let mut line = |text: String| {
            let _ = writeln!(out, "{text}");
        };
        line(format!("This node is {node}."));
        match &self.listen[..] {
            [] if self.tnc.iter().any(|tnc| tnc.answer) => {
                line("Nobody can call it over TCP: `listen` is empty.".into());
            }
            [] => line("Nobody can call it: `listen` is empty.".into()),
            all => {
                let version = match (self.tcpcl.versions, self.tcpcl.tls) {
                    (_, Tls::Require) | (Versions::Four, _) => "4",
                    (Versions::Three, _) => "3",
                    (Versions::Both, _) => "3 or 4",
                };
                line(format!("Peers may call at {}, in TCPCL version {version}.", all.join(", ")));
            }
        }
        if let Some(who) = self.who_may_call() {
            line(who);
        }
        if !self.listen.is_empty() {
            let stream = &self.stream;
            details.push(format!(
                "At most {} of them at a time, {} from one address; then one that says nothing gives way, then one that has \
                 carried no bundles for {:?}. All connections together keep at most {} bytes received and {} bytes to send.",
                stream.callers_max,
                stream.callers_per_address_max,
                stream.caller_idle,
                stream.received_bytes_max,
                stream.queued_bytes_max
            ));
            details.push(format!(
                "A peer has {:?} to open a session, and may send {} messages that carry nothing in ten seconds.",
                self.tcpcl.contact_timeout, self.tcpcl.idle_messages_max
            ));
        }
        details.push(format!(
            "A connection whose peer takes nothing for {:?} is ended, and an application that reads nothing for {:?}; there are \
             at most {} applications at a time.",
            self.stream.stall, self.applications.patience, self.applications.connections_max
        ));
        if !self.listen_udp.is_empty() {
            line(format!("Anybody may send bundles over UDP to {}.", self.listen_udp.join(", ")));
            details.push(format!(
                "The kernel is asked to keep {} bytes of what comes over a UDP socket and was not read yet.",
                self.stream.udp_receive_buffer_bytes
            ));
        }
        for link in self.link.iter().filter(|link| link.kind == LinkKind::Udp) {
            self.explain_udp(link, &mut line);
        }
        self.explain_radio(&mut line);
        for link in self.link.iter().filter(|link| link.kind == LinkKind::Tcp) {
            let who =
                link.peer.as_ref().map_or("whoever is there".to_owned(), |peer| format!("{peer}, no other"));
            let when = if link.open { "It calls" } else { "When told to, it calls" };
            line(format!("{when} link `{}` at {}, and expects {who}.", link.name, link.address));
        }
        self.explain_tls(&mut line);
        for route in &self.route {
            line(format!("Bundles for {} go via {} at cost {}.", route.to, route.via, route.cost));
        }
        for peer in &self.peer {
            self.explain_manners(&peer.node, &peer.accept, &peer.emit, &mut line);
        }
        for link in &self.link {
            let name = format!("the peer of link `{}`", link.name);
            self.explain_manners(&name, &link.accept, &link.emit, &mut line);
        }
        for planned in &self.contact {
            line(planned.explain());
        }
        match self.routing.router {
            RouterKind::Static => details.push(self.explain_router()),
            _ => line(self.explain_router()),
        }
        for drop in &self.drop {
            let then = if drop.keep { "and moved to its `sent`" } else { "and removed" };
            line(format!(
                "What is put into {} is sent to {}, {then} once the node has it.",
                drop.folder.display(),
                drop.to
            ));
        }
        for receive in &self.receive {
            line(format!("What comes for {} appears in {}.", receive.endpoint, receive.folder.display()));
        }
        if self.agent.direct_neighbours {
            line("Bundles for a neighbour go straight to it, without a route.".into());
        }
        match self.storage.kind {
            StorageKind::Disk => line(format!(
                "What it accepts is kept in {}, at most {} bundles and {} bytes; when that is full, {}. {}",
                self.storage.path.display(),
                self.agent.limits.bundles_max,
                self.agent.limits.store_bytes_max,
                match self.agent.evict {
                    longwire_proto::bp::agent::EvictionPolicy::None => "newcomers are refused",
                    longwire_proto::bp::agent::EvictionPolicy::LowestPriority => {
                        "the least urgent and oldest give way to what is more urgent"
                    }
                },
                match self.storage.scrub_every.is_zero() {
                    true => "It is not looked through for damage.".to_owned(),
                    false => format!(
                        "All of it is read again after {} s each, at {} bytes a second, to find damage early.",
                        self.storage.scrub_every.as_secs(),
                        self.storage.scrub_bytes_per_s
                    ),
                }
            )),
            StorageKind::Memory => line(format!(
                "What it accepts is kept in memory only, at most {} bytes, and lost when it ends.",
                self.storage.memory_bytes
            )),
        }
        if self.clock == ClockSource::None {
            line("It uses no clock: its bundles carry their age.".into());
        }
        let reports = &self.agent.reports;
        let kinds = [
            (reports.reception, "reception"),
            (reports.custody, "the acceptance of custody"),
            (reports.forwarding, "forwarding"),
            (reports.delivery, "delivery"),
            (reports.deletion, "deletion"),
        ];
        let kinds: Vec<&str> = kinds.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
        if kinds.is_empty() {
            line("It sends no status reports: whoever waits for a receipt waits in vain. `[agent.reports] delivery = true` changes that.".into());
        } else {
            line(format!("It reports {}, to whoever asks for it.", kinds.join(", ")));
        }
        let version6 = &self.agent.version6;
        if version6.default_version == BundleVersion::V6 {
            line(
                "It sends bundles of version 6 unless it is told otherwise, and forwards both versions."
                    .into(),
            );
        } else if !version6.destinations.is_empty() {
            line(format!("It sends bundles of version 6 to {}.", version6.destinations.join(", ")));
        }
        if !version6.ages_in_seconds.is_empty() {
            line(format!(
                "In bundles of version 6 it reads and writes ages in seconds with {}.",
                version6.ages_in_seconds.join(", ")
            ));
        }
        let custody = &self.agent.custody;
        if !custody.accept_from.is_empty() {
            line(format!("It takes custody of what {} hands over.", custody.accept_from.join(", ")));
        }
        if !custody.accept_for.is_empty() {
            line(format!("It takes custody of what is for {}.", custody.accept_for.join(", ")));
        }
        if self.echo {
            line("It answers pings.".into());
        }
        line(format!("Applications reach it at {}.", self.control().display()));
        line(self.http.explain());
        self.explain_tcp(&mut line);
        match crate::descriptors::explain(self) {
            warning if warning.starts_with("WARNING") => line(warning),
            words => details.push(words),
        }
        (out, details)
    }

    /// The buffers that the kernel is asked for, and whether it gives them.
    fn explain_tcp(&self, line: &mut impl FnMut(String)) {
        let asked = [
            ("send", self.tcp.send_buffer_bytes, "wmem"),
            ("receive", self.tcp.receive_buffer_bytes, "rmem"),
        ];
        for (what, bytes, name) in asked {
            let Some(bytes) = bytes else { continue };
            let most = std::fs::read_to_string(format!("/proc/sys/net/core/{name}_max"));
            match most.ok().and_then(|text| text.trim().parse::<u32>().ok()) {
                Some(most) if most < bytes => line(format!(
                    "WARNING: it asks for {what} buffers of {bytes} bytes, and the kernel gives {most}: `sysctl -w \
                     net.core.{name}_max={bytes}` allows more."
                )),
                _ => line(format!("Its TCP connections have {what} buffers of {bytes} bytes.")),
            }
        }
    }

    fn explain_udp(&self, link: &LinkSettings, line: &mut impl FnMut(String)) {
        let udp = self.udp(link).unwrap_or_default();
        let rate = match udp.rate_bps {
            0 => "as fast as the system takes it".to_owned(),
            rate => format!("at {rate} bit/s"),
        };
        let peer =
            udp.peer_node_id.as_deref().unwrap_or("whoever is there (bundles take it by a route only)");
        line(format!(
            "Link `{}` sends to {peer} at {} over UDP, {rate}, one bundle in a datagram of at most {} bytes. \
             Nothing is acknowledged: what is lost on the way is lost.",
            link.name, link.address, udp.datagram_bytes_max
        ));
    }

    /// What is encrypted, and what certificates have to say.
    fn explain_tls(&self, line: &mut impl FnMut(String)) {
        let words = |tls: Tls| match tls {
            Tls::Off => "is never used",
            Tls::Prefer => "is used where the peer offers it: who sits between can take the offer away",
            Tls::Require => "is required",
        };
        if !self.listen.is_empty() {
            line(format!("TLS with those who call {}.", words(self.tcpcl.tls)));
        }
        for link in self.link.iter().filter(|link| link.kind == LinkKind::Tcp) {
            let tls = self.session(link).map_or(Tls::Off, |session| session.tls);
            if link.amateur {
                line(format!("Link `{}` is on an amateur band: TLS is never used there.", link.name));
            } else {
                line(format!("TLS on link `{}` {}.", link.name, words(tls)));
            }
        }
        if !self.uses_tls() {
            return;
        }
        match self.credentials() {
            Ok(Some(credentials)) => self.explain_certificate(credentials.claims(), line),
            Ok(None) => {}
            Err(error) => line(format!("It cannot start: {}.", error.what)),
        }
        let tls::CertificatePolicy { node_id, network, purpose, anonymous_callers } = self.tls.policy;
        for (rule, what, key) in [
            (node_id, "its node id", "node-id"),
            (network, "its host name or address", "network"),
            (purpose, "that its key is for bundles", "purpose"),
        ] {
            let words = match rule {
                Rule::Require => "has to prove",
                Rule::IfPresent => "has to prove, if it says anything of the kind,",
                Rule::Ignore => "need not prove",
            };
            line(format!("A peer's certificate {words} {what} (`tls.policy.{key}`)."));
        }
        let words = if anonymous_callers { "is let in, if nothing has to be proven" } else { "is refused" };
        line(format!("A caller without a certificate {words} (`tls.policy.anonymous-callers`)."));
    }

    fn explain_certificate(&self, claims: &tls::certificate::Claims, line: &mut impl FnMut(String)) {
        let mut proves = claims.node_ids.clone();
        proves.extend(claims.names.iter().map(|name| format!("host {name}")));
        proves.extend(claims.addresses.iter().map(|address| format!("address {address}")));
        let proves = if proves.is_empty() { "nothing".to_owned() } else { proves.join(", ") };
        let (from, until) = (tls::day(claims.not_before), tls::day(claims.not_after));
        line(format!(
            "Its certificate proves {proves}; it is valid from {from} until {until}, and issued by {}.",
            claims.issuer
        ));
        let node = self.node_id().map_or_else(|_| self.node.clone(), |eid| eid.to_string());
        if !claims.node_ids.contains(&node) {
            line(format!(
                "WARNING: its certificate does not prove {node}: peers that ask for that refuse this node."
            ));
        }
        if claims.for_bundles == Some(false) {
            line("WARNING: the key purposes of its certificate do not include bundle security.".into());
        }
        match crate::node_setup::unix_now() {
            None => {
                line("WARNING: the system's clock has not been set: no certificate can be judged.".into())
            }
            Some(now) if now > claims.not_after => line("WARNING: its certificate has expired.".into()),
            Some(now) if now < claims.not_before => line("WARNING: its certificate is not valid yet.".into()),
            Some(_) => {}
        }
    }

    fn explain_manners(&self, who: &str, accept: &[Accept], emit: &[Emit], line: &mut impl FnMut(String)) {
        for accept in accept {
            let what = match accept {
                Accept::PrimaryWithoutCrc => "primary blocks without a checksum are accepted",
                Accept::NoTimeNoAge => "bundles with neither creation time nor age are accepted",
                Accept::FragmentBlocksNumberedZero => "fragments with blocks numbered 0 are accepted",
            };
            line(format!("From {who} {what}, against RFC 9171."));
        }
        for emit in emit {
            let what = match emit {
                Emit::NoPayloadCrc => "payloads without a checksum",
                Emit::TwoElementIpn => "ipn endpoints in two elements",
                Emit::ThreeElementIpn => "ipn endpoints in three elements",
            };
            line(format!("To {who} bundles go with {what}."));
        }
    }

    fn explain_router(&self) -> String {
        let routes = "where a [[route]] is set it is kept to";
        match self.routing.router {
            RouterKind::Static if self.routing.failover_after.is_zero() => {
                "Of several ways the one with the lowest cost that is there is taken.".into()
            }
            RouterKind::Static => format!(
                "Of several ways the one with the lowest cost is taken; when it has been gone for {} s, the next one.",
                self.routing.failover_after.as_secs_f64()
            ),
            RouterKind::ContactPlan => {
                "Of several ways that is taken, or waited for, which the plan of contacts says is the quickest.".into()
            }
            RouterKind::Epidemic => format!("Every node that it meets gets a copy of every bundle; {routes}."),
            RouterKind::SprayAndWait => format!(
                "Of each bundle made here there are at most {} copies, halved at each meeting; {routes}.",
                self.routing.copies
            ),
        }
    }
}
