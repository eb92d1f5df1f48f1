//! The applications over AeroTP: one connection, whose data the sink accepts as they arrive.

use super::ends::{Heard, Transport};
use bytes::Bytes;
use longwire_proto::aerotp::Endpoint;
use longwire_proto::engine::{Engine, Indication, Request, forward};
use longwire_proto::service::{
    ConnectionProperties, Connections, ConnectionsIndication, ConnectionsRequest, Datagrams,
    DatagramsRequest, LinkId, Many, Precedence, TransportService,
};
use longwire_proto::time::Instant;

const CONNECTION: u64 = 1;
const PORT: u16 = 9;

/// AeroTP: one connection with this service.
#[derive(Debug)]
pub(super) struct OverConnections {
    service: TransportService,
    is_source: bool,
    room: u64,
    accepted: u64,
}

impl OverConnections {
    pub(super) fn new(service: TransportService, is_source: bool) -> OverConnections {
        OverConnections { service, is_source, room: 0, accepted: 0 }
    }
}

impl Transport for OverConnections {
    type Service = Connections;

    fn open(&mut self) -> Vec<ConnectionsRequest> {
        if self.is_source { vec![ConnectionsRequest::Connect] } else { Vec::new() }
    }

    fn room(&self) -> u64 {
        self.room
    }

    fn write(&mut self, packet: Bytes, last: bool) -> Vec<ConnectionsRequest> {
        self.room -= packet.len() as u64;
        vec![ConnectionsRequest::Data { connection: CONNECTION, data: packet, last }]
    }

    fn hear(&mut self, said: ConnectionsIndication) -> Heard<Connections> {
        let mut heard = Heard::default();
        match said {
            ConnectionsIndication::Up { .. } if self.is_source => {
                let properties = ConnectionProperties {
                    service: self.service,
                    precedence: Precedence::Routine,
                    source_port: PORT,
                    destination_port: PORT,
                };
                heard.requests.push(ConnectionsRequest::Open { connection: CONNECTION, properties });
            }
            ConnectionsIndication::Room { bytes, .. } => self.room = bytes,
            ConnectionsIndication::Data { incoming, data, .. } => {
                self.accepted += data.len() as u64;
                heard.requests.push(ConnectionsRequest::Accept { incoming, up_to: self.accepted });
                heard.data = Some(data);
            }
            ConnectionsIndication::Sent { .. } | ConnectionsIndication::Failed { .. } => {
                self.room = 0;
                heard.ended = true;
            }
            _ => {}
        }
        heard
    }
}

/// An endpoint over datagrams on one link of a host, which passes damaged ones to it as well.
#[derive(Debug)]
pub(super) struct OnLink {
    link: LinkId,
    endpoint: Endpoint,
    /// The host has to be told that damaged datagrams are wanted: a listening endpoint does not open its port by itself.
    joins: bool,
}

impl OnLink {
    pub(super) fn source(link: LinkId, endpoint: Endpoint) -> OnLink {
        OnLink { link, endpoint, joins: false }
    }

    pub(super) fn sink(link: LinkId, endpoint: Endpoint) -> OnLink {
        OnLink { link, endpoint, joins: true }
    }
}

impl Engine for OnLink {
    type Above = Connections;
    type Below = Many<LinkId, Datagrams>;

    forward!(endpoint: handle_request handle_timeout poll_indication poll_timeout observe);

    fn handle_indication(&mut self, now: Instant, (_, indication): Indication<Self::Below>) {
        self.endpoint.handle_indication(now, indication);
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        let join =
            core::mem::replace(&mut self.joins, false).then_some(DatagramsRequest::Join { damaged: true });
        join.or_else(|| self.endpoint.poll_request(now)).map(|request| (self.link, request))
    }
}
