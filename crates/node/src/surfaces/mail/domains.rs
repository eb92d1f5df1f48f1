//! Domains of addresses, and the nodes that they stand for.

use crate::config::Config;
use longwire_proto::bp::Eid;
use std::collections::BTreeMap;

/// Domains of this node and of others. A domain has no upper and lower case, unlike a node ID: of a node that the configuration
/// names, either is understood.
#[derive(Clone, Debug)]
pub(super) struct Domains {
    own: String,
    /// Node IDs by domain, in lower case.
    named: BTreeMap<String, String>,
}

impl Domains {
    /// `own` is the complete node ID.
    pub(super) fn new(config: &Config, own: &str) -> Self {
        let mut named = BTreeMap::new();
        let peers = config.link.iter().filter_map(|link| link.peer.clone());
        let others = config.peer.iter().map(|peer| peer.node.clone());
        let routes = config.route.iter().map(|route| route.to.clone());
        let text = |eid: Eid| eid.node_id().to_string();
        let known = peers.chain(others).chain(routes).filter_map(|node| {
            let node = node.trim_end_matches('*').to_owned();
            node.parse::<Eid>().ok().map(text)
        });
        for node in known {
            named.extend(domain_of(&node).map(|domain| (domain.to_ascii_lowercase(), node.clone())));
        }
        let written = config.mail.domains.iter().map(|(domain, node)| {
            let node = node.parse::<Eid>().map(text).unwrap_or_else(|_| node.clone());
            (domain.to_ascii_lowercase(), node)
        });
        named.extend(written);
        // Nothing else stands for this node's own name.
        named.extend(domain_of(own).map(|domain| (domain.to_ascii_lowercase(), own.to_owned())));
        Domains { own: own.to_owned(), named }
    }

    /// Returns the node ID for a domain; an empty one is that of this node. `None` if it cannot be a node.
    pub(super) fn node(&self, domain: &str) -> Option<String> {
        let lower = domain.to_ascii_lowercase();
        let (short, lower_short) = match lower.strip_suffix(".dtn") {
            Some(short) => (&domain[..short.len()], short),
            None => (domain, &*lower),
        };
        if let Some(node) = self.named.get(&lower).or_else(|| self.named.get(lower_short)) {
            return Some(node.clone());
        }
        if short.is_empty() {
            return Some(self.own.clone());
        }
        let node = match lower.strip_suffix(".ipn") {
            Some(number) => format!("ipn:{number}.0"),
            None => format!("dtn://{short}/"),
        };
        node.parse::<Eid>().ok().filter(Eid::is_node_id).map(|eid| eid.to_string())
    }

    /// True if a domain stands for a node. That of the node itself is understood in upper and lower case, also if the configuration
    /// does not name the node.
    pub(super) fn stands_for(&self, domain: &str, node: &str) -> bool {
        let short = match domain.len().checked_sub(4).and_then(|at| domain.split_at_checked(at)) {
            Some((short, end)) if end.eq_ignore_ascii_case(".dtn") => short,
            _ => domain,
        };
        let is_its_name = |own: String| own.eq_ignore_ascii_case(domain) || own.eq_ignore_ascii_case(short);
        self.node(domain).is_some_and(|found| found == node) || domain_of(node).is_some_and(is_its_name)
    }

    pub(super) fn is_own(&self, node: &str) -> bool {
        node == self.own
    }

    pub(super) fn own(&self) -> &str {
        &self.own
    }

    /// Name of this node in addresses.
    pub(super) fn own_domain(&self) -> String {
        domain_of(&self.own).unwrap_or_else(|| "localhost".into())
    }
}

/// Returns the domain that stands for a node, at every node.
pub(super) fn domain_of(node: &str) -> Option<String> {
    match node.strip_prefix("ipn:").and_then(|rest| rest.strip_suffix(".0")) {
        Some(number) => Some(format!("{number}.ipn")),
        None => Some(node.strip_prefix("dtn://")?.strip_suffix('/')?.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_domain_is_the_name_of_a_node() {
        let text = "node = 'dtn://alice/'\n[mail]\nfolder = 'mail'\nusers = ['a']\n\
                    domains = { 'Club.example' = 'dtn://carol/', 'relay' = 'ipn:12.0' }\n\
                    [[link]]\nname = 'b'\naddress = 'b:1'\npeer = 'dtn://DL1XYZ/'\n[[route]]\nto = 'dtn://Dave/*'\nvia = 'b'";
        let config = Config::parse(text, "node.toml", Path::new("/nowhere")).expect("it fits");
        let domains = Domains::new(&config, "dtn://alice/");
        for (domain, node) in [
            ("alice", "dtn://alice/"),
            ("ALICE.dtn", "dtn://alice/"),
            ("", "dtn://alice/"),
            ("bob", "dtn://bob/"),
            ("Bob.DTN", "dtn://Bob/"),
            ("dl1xyz", "dtn://DL1XYZ/"),
            ("dave.dtn", "dtn://Dave/"),
            ("club.EXAMPLE", "dtn://carol/"),
            ("relay", "ipn:12.0"),
            ("7.ipn", "ipn:7.0"),
            ("mail.example.org", "dtn://mail.example.org/"),
        ] {
            assert_eq!(domains.node(domain).as_deref(), Some(node), "{domain}");
        }
        assert_eq!(domains.node("x.ipn"), None);
        for (domain, node, stands) in [
            ("ALICE", "dtn://alice/", true),
            ("dl2abc.DTN", "dtn://DL2ABC/", true),
            ("7.IPN", "ipn:7.0", true),
            ("club.example", "dtn://carol/", true),
            ("club.example", "dtn://dave/", false),
            ("x", "dtn://y/", false),
            ("\u{e4}dtn", "dtn://y/", false),
        ] {
            assert_eq!(domains.stands_for(domain, node), stands, "{domain} {node}");
        }
        assert!(domains.is_own("dtn://alice/") && !domains.is_own("dtn://bob/"));
        assert_eq!(domains.own_domain(), "alice");
    }
}
