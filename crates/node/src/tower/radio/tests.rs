//! Links that come and go leave no state.

use super::*;
use crate::config::Config;
use crate::tower::links::{CallerIds, LinkTable};
use longwire_proto::service::{BundlesRequest, StreamIndication};
use std::path::Path;

const TEXT: &str = "node = 'dtn://a/'\n[[tnc]]\nname = 'vhf'\naddress = '127.0.0.1:8001'\ncallsign = 'A'\n\
    [[link]]\nname = 'bob'\nkind = 'ax25cl'\ntnc = 'vhf'\ncallsign = 'B'\n\
    [[link]]\nname = 'carol'\nkind = 'ax25cm'\ntnc = 'vhf'\ncallsign = 'C'\n\
    [[link]]\nname = 'all'\nkind = 'uicl'\ntnc = 'vhf'\ncallsign = 'QST'\n";

/// Takes everything that the TNCs emit.
fn drain(radios: &mut Radios, now: Instant) {
    let mut ids = CallerIds::new();
    while radios.poll_indication(now, &mut ids).is_some() || radios.poll_request(now).is_some() {}
}

/// Removed as by a reload: while open, after being closed, and never opened.
#[test]
fn a_link_that_is_removed_leaves_no_entry() {
    let config = Config::parse(TEXT, "test", Path::new("/nowhere")).expect("it makes sense");
    let links = LinkTable::new(&config).expect("they make sense");
    let ids: Vec<LinkId> = links.iter().map(|(id, _)| id).collect();
    for (open, close) in [(true, false), (true, true), (false, false)] {
        let mut radios = Radios::new(&config, &Rng::new(1)).expect("they make sense");
        for (id, known) in links.iter() {
            radios.add(id, known.neighbour.as_ref().expect("a radio neighbour"), &known.plan);
        }
        assert_eq!((radios.owners.len(), ids.len()), (3, 3));
        drain(&mut radios, Instant::ZERO);
        for said in [StreamIndication::Connected, StreamIndication::Room(u64::MAX)] {
            radios.handle_indication(Instant::ZERO, (LineId(0), said));
            drain(&mut radios, Instant::ZERO);
        }
        let ask = |radios: &mut Radios, id: LinkId, request: BundlesRequest| {
            radios.handle_request(Instant::ZERO, (id, request));
            drain(radios, Instant::ZERO);
        };
        for id in &ids {
            if open {
                ask(&mut radios, *id, BundlesRequest::Connect);
            }
            if close {
                ask(&mut radios, *id, BundlesRequest::Close);
            }
        }
        for id in &ids {
            radios.remove(*id);
            ask(&mut radios, *id, BundlesRequest::Close);
        }
        // Links end by themselves, although no station answers.
        for _ in 0..1000 {
            let Some(at) = radios.poll_timeout() else { break };
            radios.handle_timeout(at);
            drain(&mut radios, at);
        }
        assert!(radios.owners.is_empty() && radios.leaving.is_empty(), "{:?}", radios.owners);
        assert!(radios.opened.is_empty(), "{:?}", radios.opened);
        let radio = &radios.radios[0];
        for id in &ids {
            let gone = radio.sessions().shown(*id).is_none() && radio.sessions().carrier(*id).is_none();
            assert!(gone && radio.station().way_to(*id).is_none(), "{open} {close} {id:?}");
        }
    }
}
