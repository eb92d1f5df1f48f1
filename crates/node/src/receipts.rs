//! Which status reports are believed.
//!
//! Bundles are not signed, so anybody can make a report that seems to come from anybody, and who made it cannot be told from what it
//! says. It can be told who has handed it in. A report is believed if all of it came over
//!
//! - a link of the configuration, whoever is at its other end;
//! - a caller at the address of such a link that says that it is the node there: two nodes that call each other, each of which sends
//!   over its own link;
//! - a caller whose node id a certificate proves, or a `[[peer]]` names, whether bundles go to it or over a link of this node's own: a
//!   neighbour like these may be on the way back, which need not be the way there;
//! - a caller to which bundles for the destination go, or for whoever makes the report.
//!
//! That leaves out unknown nodes, and who says a node id that another session has: that it is the `peer` of a link or the `via` of a
//! route lets it in, and no more. Nor does an address or a `[[peer]]` help where a certificate proves another session's node id. Those that are believed can lie, and pass on what others have made up.

use crate::task::Task;
use longwire_proto::bp::Eid;
use longwire_proto::bp::agent::parse_node;
use longwire_proto::service::{AppIndication, LinkId};

impl Task {
    /// True unless it is a report that is not believed.
    pub(crate) fn believes(&mut self, indication: &AppIndication) -> bool {
        let AppIndication::Report { created, reporter, over, .. } = indication else { return true };
        let Some(reporter) = parse_node(reporter) else { return false };
        let to = self.applications.destination_of(*created).and_then(parse_node);
        match &over[..] {
            [] => reporter == *self.engines.upper.node(),
            links => links.iter().all(|link| self.trusts(*link, &reporter, to.as_ref())),
        }
    }

    /// True if who hands in a report over this link is believed.
    fn trusts(&mut self, link: LinkId, reporter: &Eid, to: Option<&Eid>) -> bool {
        let identities = &self.engines.lower.second.identities;
        if !link.is_incoming() || identities.is_beside_its_link(link) || identities.is_proven(link) {
            return true;
        }
        let agent = &mut self.engines.upper;
        agent.peer(link).is_some_and(|peer| identities.is_trusted(peer))
            || agent.leads_to(link, reporter)
            || to.is_some_and(|to| agent.leads_to(link, to))
    }
}
