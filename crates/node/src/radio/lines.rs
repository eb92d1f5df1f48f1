//! The lines of TNCs: one pump each.

use super::TncId;
use crate::event::Event;
use crate::patient::Patience;
use crate::pressure::Pressure;
use crate::stream::{Order, Said, Window, pump, reason_of};
use crate::tnc::{Line, QUEUE_BYTES, STALL, WINDOW_BYTES};
use longwire_proto::service::{CloseReason, StreamIndication, StreamRequest};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A line that was asked for.
#[derive(Debug)]
struct Open {
    orders: mpsc::UnboundedSender<Order>,
    task: JoinHandle<()>,
    /// Bytes handed over and not yet with the kernel.
    queued: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Where a TNC is, and its line.
#[derive(Debug)]
struct Place {
    line: Line,
    open: Option<Open>,
    /// Lines so far: what one says that is gone is not heard.
    number: u64,
}

/// The lines of all TNCs.
#[derive(Debug)]
pub(crate) struct Lines {
    places: Vec<Place>,
    tell: mpsc::UnboundedSender<Event>,
}

impl Lines {
    /// None of them is open.
    pub(crate) fn new(lines: Vec<Line>, tell: mpsc::UnboundedSender<Event>) -> Self {
        let places = lines.into_iter().map(|line| Place { line, open: None, number: 0 }).collect();
        Lines { places, tell }
    }

    /// Where a TNC is.
    pub(crate) fn line(&self, TncId(at): TncId) -> &Line {
        &self.places[at].line
    }

    /// It has had no line before the one that it has.
    pub(crate) fn is_first(&self, TncId(at): TncId) -> bool {
        self.places[at].number <= 1
    }

    /// Carries out what the engine asks for.
    pub(crate) fn request(&mut self, tnc: TncId, request: StreamRequest) {
        if request == StreamRequest::Connect {
            return self.connect(tnc);
        }
        let Some(open) = &mut self.places[tnc.0].open else { return };
        let order = match request {
            StreamRequest::Write(bytes) => {
                open.queued += bytes.len() as u64;
                Order::Write(bytes)
            }
            StreamRequest::Release(bytes) => Order::Release(bytes),
            StreamRequest::Close => Order::Close,
            StreamRequest::Abort => Order::Abort,
            StreamRequest::Connect => return,
            StreamRequest::Secure { .. } => panic!("there is no TLS on the line of a TNC"),
        };
        // A pump that is over has said so, and is heard soon.
        let _ = open.orders.send(order);
    }

    fn connect(&mut self, tnc: TncId) {
        let place = &mut self.places[tnc.0];
        place.number += 1;
        let (number, tell, line) = (place.number, self.tell.clone(), place.line.clone());
        let (orders, ordered) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let tell = move |said| drop(tell.send(Event::Line(tnc, number, said)));
            let window = Window {
                bytes: WINDOW_BYTES,
                all: Arc::new(Pressure::new(WINDOW_BYTES)),
                patience: Patience::new(STALL),
            };
            match line.open().await {
                Ok(wire) => pump(wire, ordered, window, tell).await,
                Err(error) => tell(Said::Closed(reason_of(&error))),
            }
        });
        place.open = Some(Open { orders, task, queued: 0 });
    }

    /// What a pump says, as the engine hears it.
    pub(crate) fn hear(&mut self, tnc: TncId, number: u64, said: Said) -> Vec<StreamIndication> {
        let place = &mut self.places[tnc.0];
        let Some(open) = place.open.as_mut().filter(|_| number == place.number) else { return Vec::new() };
        let room = |queued: u64| StreamIndication::Room(QUEUE_BYTES.saturating_sub(queued));
        match said {
            Said::Connected => vec![StreamIndication::Connected, room(0)],
            Said::Written(bytes) => {
                open.queued -= bytes;
                vec![room(open.queued)]
            }
            Said::Data(bytes) => vec![StreamIndication::Data(bytes)],
            Said::PeerClosed => vec![StreamIndication::PeerClosed],
            Said::Closed(reason) => {
                place.open = None;
                vec![StreamIndication::Closed(reason)]
            }
            Said::Secured { .. } | Said::Insecure(_) => {
                vec![StreamIndication::Closed(CloseReason::Insecure)]
            }
        }
    }
}
