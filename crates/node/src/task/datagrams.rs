//! UDP sockets of links: what the engines and the pumps say to each other.

use super::{EngineParts as _, Task};
use crate::pumps::datagram::{Destination, SocketEvent, SocketReport};
use longwire_proto::engine::Engine;
use longwire_proto::service::{DatagramsIndication, DatagramsRequest, LinkId, Port};
use longwire_proto::time::Instant;
use longwire_towers::MediaIndication;

impl Task {
    /// Passes an event of a pump to the engines.
    pub(super) fn hear_datagrams(&mut self, now: Instant, said: SocketReport) {
        let Some(said) = self.hear_program_socket(now, said) else { return };
        let link = said.link;
        let comes_or_goes = matches!(said.event, SocketEvent::Joined { .. } | SocketEvent::Left(_));
        let heard = self.connections.sockets.hear(said);
        if comes_or_goes {
            let neighbours = self.engines.neighbours_mut();
            match self.connections.sockets.at(link) {
                Some(at) => neighbours.set_address(link, at.ip()),
                None => neighbours.forget_address(link),
            }
        }
        for (link, indication) in heard {
            if let DatagramsIndication::Datagram { from, bytes, .. } = &indication
                && !self.engines.neighbours().recognises(link, bytes)
            {
                self.record_unrecognised(now, link, *from, bytes);
            }
            let indication = (link, MediaIndication::Datagrams(indication));
            self.engines.handle_indication(now, Port::Second(Port::First(indication)));
        }
    }

    /// Handles an engine's request to its socket.
    pub(super) fn datagrams_request(&mut self, now: Instant, link: LinkId, request: DatagramsRequest) {
        let joins = matches!(request, DatagramsRequest::Join { .. });
        if matches!(request, DatagramsRequest::Leave) {
            self.engines.neighbours_mut().forget_address(link);
        }
        let links = &self.engines.neighbours().links;
        let destination = || {
            let known = links.get(link);
            known
                .map(|known| Destination {
                    address: known.link.address.clone(),
                    kind: known.plan.carrier().about().name,
                    group: known.link.group(),
                    hops: known.link.hops,
                })
                .unwrap_or_default()
        };
        self.connections.sockets.request(link, request, destination);
        if joins {
            self.answer_programs(now, link);
        }
    }
}
