//! TNCs, reached over a serial line or TCP.
//!
//! ```text
//!     user:             request            next
//!                          |                ^
//!                       [ engine: a Tnc, or a Station over one ]
//!                          |                ^
//!                       stream::pump, one per connection
//!                          |                ^
//!                       a serial line, or TCP
//! ```
//!
//! The engine requests its line and requests it again after a loss. Outgoing data waits in the pump, limited by the room
//! granted to the engine; incoming data is limited by the pump's window.

mod call;
mod line;
mod listen;
mod room;
#[cfg(test)]
mod tests;
mod transmit;

pub use call::{Call, CallEnd, CallEvent, Sender, TEXTS_MAX, Texts, texts};
pub use listen::{ListenEvent, listen};
pub use room::{CreditedService, RequestRefused};
pub use transmit::{TransmissionReport, identify};

use super::table::{PumpReport, Pumps};
pub use crate::config::tnc_address::{LineAddress, TncAddress};
use crate::tell::Tell;
pub use crate::tower::radio::controller::TncEngine;
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::service::{Stream, StreamIndication};
use longwire_proto::time::Instant;
use tokio::sync::mpsc;

/// Runs an engine over the line of a TNC, while [`Driver::next`] is awaited.
#[derive(Debug)]
pub struct Driver<E: Engine>
where
    E::Above: CreditedService,
{
    engine: E,
    /// Room that the user can still spend.
    room: <E::Above as CreditedService>::Room,
    line: LineAddress,
    pumps: Pumps<()>,
    began: tokio::time::Instant,
    lost: u64,
    said: mpsc::UnboundedReceiver<PumpReport<()>>,
}

impl<E: Engine<Below = Stream>> Driver<E>
where
    E::Above: CreditedService,
{
    /// Creates a driver; the time of the engine starts now.
    pub fn new(engine: E, line: LineAddress) -> Self {
        let (tell, said) = mpsc::unbounded_channel::<PumpReport<()>>();
        let pumps = Pumps::new(u64::MAX, Tell::to(&tell, |said| said));
        let began = tokio::time::Instant::now();
        Driver { engine, room: Default::default(), line, pumps, began, lost: 0, said }
    }

    /// Returns the engine.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// Returns the time of the engine.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.began.elapsed()
    }

    /// Passes a request to the engine. It is carried out while [`Driver::next`] is awaited.
    ///
    /// # Errors
    /// Fails if the request needs more room than [`Driver::next`] has granted and is unspent; only
    /// [`Room`](longwire_proto::service::PacketsIndication::Room) allows requests that occupy a link. The engine does not
    /// receive the request.
    pub fn request(&mut self, request: Request<E::Above>) -> Result<(), RequestRefused> {
        <E::Above as CreditedService>::spend(&mut self.room, &request)?;
        self.engine.handle_request(self.now(), request);
        Ok(())
    }

    /// Returns how often the line was lost or could not be opened.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the next indication of the engine. Cancel-safe: a dropped future loses nothing.
    pub async fn next(&mut self) -> Indication<E::Above> {
        loop {
            if let Some(said) = self.step().await {
                return said;
            }
        }
    }

    /// Performs one step: returns an indication of the engine, or passes one event to it.
    async fn step(&mut self) -> Option<Indication<E::Above>> {
        if let Some(said) = self.engine.poll_indication(self.now()) {
            <E::Above as CreditedService>::hear(&mut self.room, &said);
            return Some(said);
        }
        if let Some(request) = self.engine.poll_request(self.now()) {
            self.pumps.request_line((), &self.line, request);
            return None;
        }
        let deadline = self.engine.poll_timeout();
        tokio::select! {
            Some(said) = self.said.recv() => self.hear(said),
            () = until(self.began, deadline) => self.engine.handle_timeout(self.now()),
        }
        None
    }

    fn hear(&mut self, said: PumpReport<()>) {
        for indication in self.pumps.hear_line(said) {
            self.lost += u64::from(matches!(indication, StreamIndication::Closed(_)));
            let now = self.now();
            self.engine.handle_indication(now, indication);
        }
    }
}

async fn until(began: tokio::time::Instant, deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(began + at.saturating_since(Instant::ZERO)).await,
        None => std::future::pending().await,
    }
}
