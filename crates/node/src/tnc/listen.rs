//! Listening to what a TNC hears, for programs without an event loop.

use super::{Driver, Line};
use bytes::Bytes;
use longwire_proto::kiss::{Config, Tnc};
use longwire_proto::service::{CloseReason, FramesIndication, FramesRequest};
use std::io;
use std::ops::ControlFlow;
use tokio::signal::unix::{SignalKind, signal};

/// What a listener hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The line stands.
    Open,
    /// The line is lost, or could not be had; it is tried again.
    Lost(CloseReason),
    /// A frame, without flags and check sequence.
    Frame(Bytes),
}

/// Listens until an interrupt (Ctrl-C) or a request to end, or until who hears has enough. Nothing is sent: the TNC keeps its
/// parameters.
///
/// # Errors
/// The system gives no event loop.
pub fn listen(line: Line, config: Config, mut hear: impl FnMut(Heard) -> ControlFlow<()>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut interrupt, mut end) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let tnc = Tnc::new(Config { send_parameters: false, poll_interval: config.poll_interval, ..config });
        let mut driver = Driver::new(tnc, line);
        driver.request(FramesRequest::Join);
        let mut attempts = 0;
        loop {
            let said = tokio::select! {
                said = driver.next_or_lost(&mut attempts) => said,
                _ = interrupt.recv() => return Ok(()),
                _ = end.recv() => return Ok(()),
            };
            if hear(said).is_break() {
                return Ok(());
            }
        }
    })
}

impl Driver<Tnc> {
    /// The next thing to be heard; `lost`: how often the line was reported as lost.
    async fn next_or_lost(&mut self, lost: &mut u64) -> Heard {
        loop {
            match self.step().await {
                Some(FramesIndication::Frame(bytes)) => return Heard::Frame(bytes),
                Some(FramesIndication::Carrier(true)) => return Heard::Open,
                _ => {}
            }
            let reason = self.engine().last_close();
            if let Some(reason) = reason.filter(|_| self.lost() > *lost) {
                *lost = self.lost();
                return Heard::Lost(reason);
            }
        }
    }
}
