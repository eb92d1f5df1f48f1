//! Places of bundle security, with a made-up one that alters some bundles and drops others.

use super::forwarding::{EARTH, HOUR, MINUTE, MOON, ORBITER, chain_with, has_arrived, random};
use super::world::Payload;
use crate::bp::agent::Security;
use crate::bp::{Content, Eid, Head, HopCount, ReasonCode};
use crate::service::{AppIndication, ReportedStatus, SendOptions};

const AT_SOURCE: u8 = 40;
const AT_RELAY: u8 = 20;

/// Writes hop limits, and drops bundles by their destination.
#[derive(Debug)]
struct MadeUp {
    is_relay: bool,
}

impl Security for MadeUp {
    fn at_source(&self, head: &mut Head) {
        head.set(&Content::HopCount(HopCount { limit: AT_SOURCE, count: 0 }));
    }

    fn before_forwarding(&self, head: &mut Head, to: Option<&Eid>) -> Result<(), ReasonCode> {
        assert!(to.is_some(), "the neighbours have node IDs");
        if !self.is_relay {
            return Ok(());
        }
        let count = head.hop_count().expect("its source wrote one").count;
        head.set(&Content::HopCount(HopCount { limit: AT_RELAY, count }));
        let dropped = head.primary.destination.to_string() == "dtn://earth/dropped";
        if dropped { Err(ReasonCode::MissingSecurityOperation) } else { Ok(()) }
    }

    fn before_delivery(&self, head: &Head) -> Result<(), ReasonCode> {
        let refused = head.primary.destination.to_string() == "dtn://earth/refused";
        if refused { Err(ReasonCode::FailedSecurityOperation) } else { Ok(()) }
    }
}

#[test]
fn security_alters_and_drops_bundles_at_their_source_on_their_way_and_at_their_end() {
    for cut in [None, Some(12_000)] {
        let mut world = chain_with(1, |config| config.reports.deletion = true);
        world.start_all();
        for node in [MOON, ORBITER, EARTH] {
            let security = Box::new(MadeUp { is_relay: node == ORBITER });
            world.nodes[node].agent.as_mut().expect("it is up").engine.set_security(security);
        }
        let limit = |head: &Head| head.hop_count().expect("its source wrote one").limit;
        let send = |world: &mut super::world::World, number, service| {
            let options = SendOptions { report_deletion: true, ..SendOptions::default() };
            let payload = Payload::Given(random(number, 8000));
            world.send(MOON, number, &format!("dtn://earth/{service}"), payload, options);
        };
        let reports = |world: &super::world::World| -> Vec<_> {
            let log = world.nodes[MOON].user.log.iter().filter_map(|said| match said {
                AppIndication::Report { status, reason, reporter, .. } => {
                    assert_eq!(*status, ReportedStatus::Deleted);
                    Some((*reason, reporter.clone()))
                }
                _ => None,
            });
            log.collect()
        };
        // Bundles arrive whole, or in fragments after a break.
        world.cables[1].cut_at = cut.map(|at| (at, MINUTE));
        send(&mut world, 1, "in");
        world.run_until(HOUR, "delivery", |world| has_arrived(world, EARTH, 1));
        assert_eq!(world.nodes[EARTH].user.inbox[0].2, random(1, 8000));
        let limits = [0, 1].map(|cable: usize| limit(&world.cables[cable].heads[0]));
        assert_eq!(limits, [AT_SOURCE, AT_RELAY]);

        send(&mut world, 2, "dropped");
        world.run_until(HOUR, "a report", |world| !reports(world).is_empty());
        let missing = ReasonCode::MissingSecurityOperation.number();
        assert_eq!(reports(&world), [(missing, "dtn://orbiter/".to_owned())]);

        send(&mut world, 3, "refused");
        world.run_until(HOUR, "another report", |world| reports(world).len() > 1);
        world.run_for(HOUR);
        let failed = (ReasonCode::FailedSecurityOperation.number(), "dtn://earth/".to_owned());
        assert!(reports(&world)[1..].iter().all(|report| *report == failed), "{:?}", reports(&world));
        assert_eq!(world.nodes[EARTH].user.inbox.len(), 1);
        for node in [MOON, ORBITER, EARTH] {
            assert_eq!(world.agent(node).bundles(world.now).count(), 0, "something is left over");
        }
    }
}
