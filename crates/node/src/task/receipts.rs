//! Trusted status reports.
//!
//! Bundles are not signed, so any node can forge a report of any other, and its content does not prove its sender. What is known is
//! the session that it came over. A report is trusted if all of it came over
//!
//! - a configured link, whatever peer it is connected to; a link to a neighbour that has announced itself is judged as a caller is;
//! - a caller at the address of such a link that claims the node ID of the node there: two nodes that connect to each other, each of
//!   which sends over its own link;
//! - a caller whose node ID is proven by a certificate or contained in a `[[peer]]`, whether bundles go to it or over a link of this
//!   node: a neighbour like these may be on the way back, which need not be the way there;
//! - a caller to which bundles for the destination go, or for the node that sends the report.
//!
//! That excludes unknown nodes, and a caller that claims a node ID that another session has: being the `peer` of a link or the `via`
//! of a route lets it connect, and no more. Neither an address nor a `[[peer]]` helps where a certificate proves another session's
//! node ID. Trusted nodes can lie, and pass on what other nodes have invented.

use super::{EngineParts as _, Task};
use longwire_proto::bp::Eid;
use longwire_proto::bp::agent::parse_node;
use longwire_proto::service::{AppIndication, LinkId};

impl Task {
    /// False for a report that is not trusted.
    pub(super) fn believes(&mut self, indication: &AppIndication) -> bool {
        let AppIndication::Report { name, reporter, over, .. } = indication else { return true };
        let Some(reporter) = parse_node(reporter) else { return false };
        let to = self.applications.destination_of(name.created).and_then(parse_node);
        match &over[..] {
            [] => reporter == *self.engines.upper.node(),
            links => links.iter().all(|link| self.trusts(*link, &reporter, to.as_ref())),
        }
    }

    /// True if reports that arrive over this link are trusted.
    fn trusts(&mut self, link: LinkId, reporter: &Eid, to: Option<&Eid>) -> bool {
        let (agent, neighbours) = self.engines.agent_and_neighbours();
        let identities = &neighbours.identities;
        // A link to a neighbour that was found leads to a node that nobody has chosen.
        let is_configured = |link: LinkId| neighbours.links.get(link).is_some_and(|known| !known.link.found);
        if (!link.is_incoming() && is_configured(link))
            || identities.is_beside_its_link(link, is_configured)
            || identities.is_proven(link)
        {
            return true;
        }
        agent.peer(link).is_some_and(|peer| identities.is_trusted(peer))
            || agent.leads_to(link, reporter)
            || to.is_some_and(|to| agent.leads_to(link, to))
    }
}
