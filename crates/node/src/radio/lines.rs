//! The lines of TNCs: one pump each.

use super::TncId;
use crate::event::Event;
use crate::stream::Said;
use crate::tnc::{Connection, Place};
use longwire_proto::service::{StreamIndication, StreamRequest};
use tokio::sync::mpsc;

/// The line of a TNC.
#[derive(Debug)]
struct Wire {
    place: Place,
    connection: Connection,
    /// What was told of it last: it is up, or down.
    told: Option<bool>,
}

/// The lines of all TNCs.
#[derive(Debug)]
pub(crate) struct Lines {
    wires: Vec<Wire>,
    tell: mpsc::UnboundedSender<Event>,
}

impl Lines {
    /// None of them is open.
    pub(crate) fn new(places: Vec<Place>, tell: mpsc::UnboundedSender<Event>) -> Self {
        let wire = |place: Place| {
            let connection = Connection::new(place.line().clone());
            Wire { place, connection, told: None }
        };
        Lines { wires: places.into_iter().map(wire).collect(), tell }
    }

    /// Where a TNC is.
    pub(crate) fn place(&self, TncId(at): TncId) -> &Place {
        &self.wires[at].place
    }

    /// It is up, or down; false: that has been told.
    pub(crate) fn is_news(&mut self, TncId(at): TncId, up: bool) -> bool {
        self.wires[at].told.replace(up) != Some(up)
    }

    /// Carries out what the engine asks for.
    pub(crate) fn request(&mut self, tnc: TncId, request: StreamRequest) {
        let tell = self.tell.clone();
        self.wires[tnc.0].connection.request(request, || {
            Box::new(move |number, said| drop(tell.send(Event::Line(tnc, number, said))))
        });
    }

    /// What a pump says, as the engine hears it.
    pub(crate) fn hear(&mut self, tnc: TncId, number: u64, said: Said) -> Vec<StreamIndication> {
        self.wires[tnc.0].connection.hear(number, said)
    }
}
