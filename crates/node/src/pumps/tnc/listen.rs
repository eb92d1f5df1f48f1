//! Reception through a TNC, for programs without an event loop.

use super::{Driver, TncAddress, TncEngine};
use bytes::Bytes;
use longwire_proto::service::{FramesIndication, FramesRequest};
use longwire_proto::{agwpe, controller, kiss};
use std::io;
use std::ops::ControlFlow;
use tokio::signal::unix::{SignalKind, signal};

/// Event for a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenEvent {
    /// The line is open.
    Open,
    /// The line was lost or could not be opened, with the reason; it is tried again.
    Lost(&'static str),
    /// Frame, without flags and check sequence.
    Frame(Bytes),
}

/// Listens until SIGINT (Ctrl-C) or SIGTERM, or until `hear` breaks. Sends nothing: the TNC keeps its parameters.
///
/// # Errors
/// Fails if the system provides no event loop.
pub fn listen(
    place: TncAddress,
    config: kiss::Config,
    hear: impl FnMut(ListenEvent) -> ControlFlow<()>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let plain = controller::Config::default();
    let engine = match place {
        TncAddress::Kiss(_) => {
            TncEngine::kiss(kiss::Config { send_parameters: false, ..config }, plain, None)
        }
        TncAddress::Agwpe(_) => {
            TncEngine::agwpe(agwpe::Config { port: config.port, ..agwpe::Config::default() }, plain)
        }
    };
    runtime.block_on(listen_to(Driver::new(engine, place.line().clone()), hear))
}

async fn listen_to(
    mut driver: Driver<TncEngine>,
    mut hear: impl FnMut(ListenEvent) -> ControlFlow<()>,
) -> io::Result<()> {
    let (mut interrupt, mut end) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    driver.request(FramesRequest::Join).map_err(io::Error::other)?;
    let mut attempts = 0;
    loop {
        let said = tokio::select! {
            said = next_or_lost(&mut driver, &mut attempts) => said,
            _ = interrupt.recv() => return Ok(()),
            _ = end.recv() => return Ok(()),
        };
        if hear(said).is_break() {
            return Ok(());
        }
    }
}

/// Returns the next event; `lost` is the number of losses reported so far.
async fn next_or_lost(driver: &mut Driver<TncEngine>, lost: &mut u64) -> ListenEvent {
    loop {
        match driver.step().await {
            Some(FramesIndication::Frame(bytes)) => return ListenEvent::Frame(bytes),
            Some(FramesIndication::Carrier(true)) => return ListenEvent::Open,
            _ => {}
        }
        let why = driver.engine().why_down();
        if let Some(why) = why.filter(|_| driver.lost() > *lost) {
            *lost = driver.lost();
            return ListenEvent::Lost(why);
        }
    }
}
