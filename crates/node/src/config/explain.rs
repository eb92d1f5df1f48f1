//! Description of a configuration for an operator.

use super::{ClockSource, Config, LinkSettings, StorageKind, descriptors};
use crate::tls::{self, Rule};
use longwire_proto::bp::agent::RouterChoice as RouterKind;
use longwire_proto::bp::{Accept, Emit};
use longwire_proto::service::BundleVersion;
use longwire_proto::tcpcl::{Tls, Versions};
use longwire_settings::duration::short;
use longwire_towers::Medium;
use std::fmt::Write;

impl Config {
    /// Returns a summary of what a node with this configuration does, and all warnings.
    pub fn explain(&self) -> String {
        self.explained().0
    }

    /// Returns the summary, the limits and times, and every setting with its value.
    pub fn explain_all(&self) -> String {
        let (mut out, details) = self.explained();
        let settings = super::listing::lines(self).into_iter();
        for line in details.into_iter().chain(["Every setting:".to_owned()]).chain(settings) {
            let _ = writeln!(out, "{line}");
        }
        out
    }

    /// Returns the summary and the lines with details.
    fn explained(&self) -> (String, Vec<String>) {
        let mut out = String::new();
        let mut details = Vec::new();
        let node = self.node_id().map_or_else(|_| self.node.clone(), |eid| eid.to_string());
        let mut line = |text: String| {
            let _ = writeln!(out, "{text}");
        };
        line(format!("Node {node}"));
        let callers = self.tcp_callers();
        match &self.listen[..] {
            [] if self.tnc.iter().any(|tnc| tnc.answer) => {
                line("Accepts no TCP connections (`listen` is empty).".into());
            }
            [] => line("Accepts no connections (`listen` is empty).".into()),
            all => {
                let version = match (callers.versions, callers.tls) {
                    (_, Tls::Require) | (Versions::Four, _) => "4",
                    (Versions::Three, _) => "3",
                    (Versions::Both, _) => "3 or 4",
                };
                line(format!("Listens on {} for TCPCL version {version}.", all.join(", ")));
            }
        }
        if let Some(who) = self.who_may_call() {
            line(who);
        }
        self.explain_discovery(&mut line);
        if !self.listen.is_empty() {
            let stream = &self.stream;
            details.push(format!(
                "At most {} incoming connections, {} per address. Beyond that, a new connection replaces one without a \
                 session, then one that has carried no bundles for {}. All connections together buffer at most {} \
                 received bytes and {} bytes to send.",
                stream.callers_max,
                stream.callers_per_address_max,
                short(stream.caller_idle),
                stream.received_bytes_max,
                stream.queued_bytes_max
            ));
            details.push(format!(
                "A peer must open a session within {} and may send at most {} messages without content in ten seconds.",
                short(callers.contact_timeout),
                callers.idle_messages_max
            ));
        }
        details.push(format!(
            "A connection closes when the peer stops reading for {}, or an application for {}. At most {} applications \
             can connect.",
            short(self.stream.stall),
            short(self.applications.patience),
            self.applications.connections_max
        ));
        if !self.listen_udp.is_empty() {
            line(format!("Accepts bundles over UDP from anyone at {}.", self.listen_udp.join(", ")));
            details.push(format!(
                "Requests UDP receive buffers of {} bytes.",
                self.stream.udp_receive_buffer_bytes
            ));
        }
        for link in self.link.iter().filter(|link| link.medium() == Medium::Udp) {
            self.explain_link(link, &mut line);
        }
        self.explain_radio(&mut line);
        for link in self.link.iter().filter(|link| link.medium() == Medium::Tcp) {
            self.explain_link(link, &mut line);
        }
        self.explain_tls(&mut line);
        self.explain_security(&mut line);
        for route in &self.route {
            line(format!("Route: {} via {}, cost {}.", route.to, route.via, route.cost));
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
                "Drop folder {}: files are sent to {}, {then} when stored.",
                drop.folder.display(),
                drop.to
            ));
        }
        for receive in &self.receive {
            line(format!("Files for {} are written to {}.", receive.endpoint, receive.folder.display()));
        }
        self.explain_mail(&mut line);
        self.explain_gateways(&mut line, &mut details);
        if self.agent.direct_neighbours {
            line("Bundles to a neighbour are sent directly, without a route.".into());
        }
        let has_relays = self.agent.relays > 0
            || self.link.iter().any(|link| link.relays.is_some_and(|relays| relays > 0));
        if self.agent.relay_losses > 0 && !has_relays {
            line(
                "WARNING: `agent.relay-losses` has no effect, because bundles leave whole: neither `agent.relays` nor \
                 `relays` of a [[link]] is set."
                    .into(),
            );
        }
        match self.storage.kind {
            StorageKind::Disk => line(format!(
                "Store: {}, at most {} bundles and {} bytes; when it is full, {}. {}",
                self.storage.path.display(),
                self.agent.limits.bundles_max,
                self.agent.limits.store_bytes_max,
                match self.agent.evict {
                    longwire_proto::bp::agent::EvictionPolicy::None => "new bundles are refused",
                    longwire_proto::bp::agent::EvictionPolicy::LowestPriority => {
                        "the oldest of the lowest priority are deleted for more urgent ones"
                    }
                },
                match self.storage.scrub_every.is_zero() {
                    true => "Scrubbing is off.".to_owned(),
                    false => format!(
                        "Scrubbing reads the whole store every {}, at {} bytes/s, to detect damage early.",
                        short(self.storage.scrub_every),
                        self.storage.scrub_bytes_per_s
                    ),
                }
            )),
            StorageKind::Memory => line(format!(
                "Store: memory only, at most {} bytes; bundles are lost when the node stops.",
                self.storage.memory_bytes
            )),
        }
        if self.clock == ClockSource::None {
            line("No clock: bundles carry their age.".into());
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
            line("Sends no status reports, so `send --wait` to this node never completes. To change this, set \
                  `[agent.reports] delivery = true`.".into());
        } else {
            line(format!("Sends reports of {} when requested.", kinds.join(", ")));
        }
        let version6 = &self.agent.version6;
        if version6.default_version == BundleVersion::V6 {
            line("Creates bundles of version 6 by default; forwards both versions.".into());
        } else if !version6.destinations.is_empty() {
            line(format!("Creates bundles of version 6 for {}.", version6.destinations.join(", ")));
        }
        if !version6.ages_in_seconds.is_empty() {
            line(format!(
                "Uses ages in seconds in bundles of version 6 with {}.",
                version6.ages_in_seconds.join(", ")
            ));
        }
        let custody = &self.agent.custody;
        if !custody.accept_from.is_empty() {
            line(format!("Accepts custody of bundles from {}.", custody.accept_from.join(", ")));
        }
        if !custody.accept_for.is_empty() {
            line(format!("Accepts custody of bundles to {}.", custody.accept_for.join(", ")));
        }
        if self.echo {
            line("Answers pings.".into());
        }
        line(format!("Control socket: {}", self.control().display()));
        line(self.http.explain());
        self.explain_tcp(&mut line);
        match descriptors::explain(self, descriptors::limits().1) {
            warning if warning.starts_with("WARNING") => line(warning),
            words => details.push(words),
        }
        (out, details)
    }

    /// Describes the socket buffers requested from the kernel, with a warning if it allows less.
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
                    "WARNING: requests TCP {what} buffers of {bytes} bytes, but the kernel allows {most}; run `sysctl -w \
                     net.core.{name}_max={bytes}`."
                )),
                _ => line(format!("Requests TCP {what} buffers of {bytes} bytes.")),
            }
        }
    }

    /// Describes a link, in the words of its convergence layer.
    pub(super) fn explain_link(&self, link: &LinkSettings, line: &mut impl FnMut(String)) {
        let Ok(plan) = self.plan(link) else { return };
        if let Ok(words) = self.with_facts(link, |facts| plan.carrier().explain(&plan, facts)) {
            words.into_iter().for_each(line);
        }
    }

    /// Describes where TLS is used and what certificates must prove.
    fn explain_tls(&self, line: &mut impl FnMut(String)) {
        let words = |tls: Tls| match tls {
            Tls::Off => "is never used",
            Tls::Prefer => "is used if the peer offers it (an attacker in between can remove the offer)",
            Tls::Require => "is required",
        };
        if !self.listen.is_empty() {
            line(format!("TLS for incoming connections {}.", words(self.tcp_callers().tls)));
        }
        for link in self.link.iter().filter(|link| !link.medium().is_radio()) {
            let tls = self.plan(link).map_or(Tls::Off, |plan| plan.carrier().tls(&plan));
            if link.amateur {
                line(format!(
                    "Link `{}` is amateur radio: TLS is never used, also when the peer connects from that address, and encrypted \
                     bundles take another link or wait.",
                    link.name
                ));
            } else if link.medium() == Medium::Tcp {
                line(format!("TLS on link `{}` {}.", link.name, words(tls)));
            }
        }
        for (amateur, other) in self.links_to_one_host() {
            line(format!(
                "WARNING: links `{amateur}` and `{other}` lead to one host, and only `{amateur}` is amateur radio: calls from that host count as \
                 amateur radio, without TLS and without encrypted bundles."
            ));
        }
        if !self.uses_tls() {
            return;
        }
        match self.credentials() {
            Ok(Some(credentials)) => self.explain_certificate(credentials.claims(), line),
            Ok(None) => {}
            Err(error) => line(format!("The node cannot start: {}.", error.what)),
        }
        let tls::CertificatePolicy { node_id, network, purpose, anonymous_callers } = self.tls.policy;
        for (rule, what, key) in [
            (node_id, "its node ID", "node-id"),
            (network, "its host name or address", "network"),
            (purpose, "that its key is for bundles", "purpose"),
        ] {
            let words = match rule {
                Rule::Require => "must prove",
                Rule::IfPresent => "must prove, if it contains such a name,",
                Rule::Ignore => "need not prove",
            };
            line(format!("A peer's certificate {words} {what} (`tls.policy.{key}`)."));
        }
        let words = if anonymous_callers { "are accepted if nothing must be proven" } else { "are refused" };
        line(format!("Incoming connections without a certificate {words} (`tls.policy.anonymous-callers`)."));
    }

    /// Names of TCP links to the same host of which only the first one is amateur radio.
    fn links_to_one_host(&self) -> Vec<(&str, &str)> {
        let host = |link: &LinkSettings| {
            let (host, _) = link.address.rsplit_once(':')?;
            (link.medium() == Medium::Tcp && !host.is_empty()).then(|| host.to_ascii_lowercase())
        };
        let pairs = self.link.iter().flat_map(|one| self.link.iter().map(move |other| (one, other)));
        pairs
            .filter(|(one, other)| {
                one.amateur && !other.amateur && host(one).is_some() && host(one) == host(other)
            })
            .map(|(one, other)| (&one.name[..], &other.name[..]))
            .collect()
    }

    fn explain_certificate(&self, claims: &tls::certificate::Claims, line: &mut impl FnMut(String)) {
        let mut proves = claims.node_ids.clone();
        proves.extend(claims.names.iter().map(|name| format!("host {name}")));
        proves.extend(claims.addresses.iter().map(|address| format!("address {address}")));
        let proves = if proves.is_empty() { "nothing".to_owned() } else { proves.join(", ") };
        let (from, until) = (tls::day(claims.not_before), tls::day(claims.not_after));
        line(format!(
            "Certificate: proves {proves}; valid from {from} until {until}; issued by {}.",
            claims.issuer
        ));
        let node = self.node_id().map_or_else(|_| self.node.clone(), |eid| eid.to_string());
        if !claims.node_ids.contains(&node) {
            line(format!(
                "WARNING: the certificate does not prove {node}; peers that require it will refuse this node."
            ));
        }
        if claims.for_bundles == Some(false) {
            line("WARNING: the key purposes of the certificate do not include bundle security.".into());
        }
        match crate::clock::unix_now() {
            None => line("WARNING: the system clock is not set; certificates cannot be checked.".into()),
            Some(now) if now > claims.not_after => line("WARNING: the certificate has expired.".into()),
            Some(now) if now < claims.not_before => line("WARNING: the certificate is not valid yet.".into()),
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
            line(format!("From {who}: {what}, contrary to RFC 9171."));
        }
        for emit in emit {
            let what = match emit {
                Emit::NoPayloadCrc => "payloads without a checksum",
                Emit::TwoElementIpn => "ipn endpoints in two elements",
                Emit::ThreeElementIpn => "ipn endpoints in three elements",
            };
            line(format!("To {who}: bundles with {what}."));
        }
    }

    fn explain_router(&self) -> String {
        let routes = "[[route]] entries take precedence";
        match self.routing.router {
            RouterKind::Static if self.routing.failover_after.is_zero() => {
                "Routing: the cheapest available route.".into()
            }
            RouterKind::Static => format!(
                "Routing: the cheapest route; the next one when it has been down for {} s.",
                self.routing.failover_after.as_secs_f64()
            ),
            RouterKind::ContactPlan => {
                "Routing: the route with the earliest arrival according to the contact plan, waiting for it if \
                 necessary.".into()
            }
            RouterKind::Epidemic => format!("Routing: epidemic, a copy of every bundle to every node in contact; {routes}."),
            RouterKind::Dtlsr => format!(
                "Routing: DTLSR, the path of least expected delay, from links that all nodes announce at changes and every {} s; \
                 {routes}.",
                self.routing.announce_every.as_secs_f64()
            ),
            RouterKind::SprayAndWait => format!(
                "Routing: spray and wait, at most {} copies of each bundle created here, halved at each contact; {routes}.",
                self.routing.copies
            ),
        }
    }
}
