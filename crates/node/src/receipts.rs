//! Which status reports are believed.
//!
//! Bundles are not signed, so anybody can make a report that seems to come from anybody. A report is believed that came over a link
//! which leads to whoever makes it, or to where its bundle was sent: that is the way on which a true one comes back. That a bundle
//! was delivered, only the node can say that it was for. A neighbour on that way can still lie.

use crate::task::Task;
use longwire_proto::bp::agent::parse_node;
use longwire_proto::service::{AppIndication, ReportedStatus};

impl Task {
    /// True unless it is a report that is not believed.
    pub(crate) fn believes(&mut self, indication: &AppIndication) -> bool {
        let AppIndication::Report { created, status, reporter, over, .. } = indication else { return true };
        let destination = self.desk.destination_of(*created).map(str::to_owned);
        let agent = &mut self.engines.upper;
        let Some(reporter) = parse_node(reporter) else { return false };
        let to = destination.as_deref().and_then(parse_node);
        let for_one = destination
            .as_deref()
            .is_some_and(|to| to.parse().is_ok_and(|eid: longwire_proto::bp::Eid| eid.is_singleton()));
        if *status == ReportedStatus::Delivered && for_one && to.as_ref() != Some(&reporter) {
            return false;
        }
        match over {
            None => reporter == *agent.node(),
            Some(link) => agent.leads_to(*link, &reporter) || to.is_some_and(|to| agent.leads_to(*link, &to)),
        }
    }
}
