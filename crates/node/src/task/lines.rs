//! The lines to TNCs: one pump each.

use super::event::TaskEvent;
use crate::config::tnc_address::TncAddress;
use crate::pumps::stream::PumpEvent;
use crate::pumps::tnc::LineConnection;
use crate::tower::radio::LineId;
use longwire_proto::service::{StreamIndication, StreamRequest};
use tokio::sync::mpsc;

/// All lines.
#[derive(Debug)]
pub(crate) struct Lines {
    connections: Vec<LineConnection>,
    tell: mpsc::UnboundedSender<TaskEvent>,
}

impl Lines {
    /// Creates the lines, all closed.
    pub(crate) fn new<'a>(
        places: impl Iterator<Item = &'a TncAddress>,
        tell: mpsc::UnboundedSender<TaskEvent>,
    ) -> Self {
        Lines { connections: places.map(|place| LineConnection::new(place.line().clone())).collect(), tell }
    }

    /// Carries out a request of the engine.
    pub(crate) fn request(&mut self, line: LineId, request: StreamRequest) {
        let tell = self.tell.clone();
        self.connections[line.0].request(request, || {
            Box::new(move |number, said| drop(tell.send(TaskEvent::Line(line, number, said))))
        });
    }

    /// Converts an event of a pump to indications for the engine.
    pub(crate) fn hear(&mut self, line: LineId, number: u64, said: PumpEvent) -> Vec<StreamIndication> {
        self.connections[line.0].hear(number, said)
    }
}
