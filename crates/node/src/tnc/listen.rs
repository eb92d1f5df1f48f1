//! Listening to what a TNC hears, for programs without an event loop.

use super::{Driver, Line};
use bytes::Bytes;
use longwire_proto::engine::Engine;
use longwire_proto::service::{CloseReason, Frames, FramesIndication, FramesRequest, Stream};
use longwire_proto::{agwpe, kiss};
use std::io;
use std::ops::ControlFlow;
use std::str::FromStr;
use tokio::signal::unix::{SignalKind, signal};

/// What is listened to: a TNC in KISS mode on a [`Line`], or `agwpe:127.0.0.1:8000`, the raw frames of an AGWPE server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A TNC in KISS mode.
    Kiss(Line),
    /// A server that speaks AGWPE, over TCP.
    Agwpe(Line),
}

impl FromStr for Place {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("agwpe:") {
            None => Ok(Place::Kiss(text.parse()?)),
            Some(server) => match server.parse()? {
                line @ Line::Tcp(_) => Ok(Place::Agwpe(line)),
                Line::Serial { .. } => {
                    Err("an AGWPE server is at a host and port, as in agwpe:127.0.0.1:8000")
                }
            },
        }
    }
}

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
pub fn listen(
    place: Place,
    config: kiss::Config,
    hear: impl FnMut(Heard) -> ControlFlow<()>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match place {
        Place::Kiss(line) => {
            let tnc = kiss::Tnc::new(kiss::Config { send_parameters: false, ..config });
            runtime.block_on(listen_to(Driver::new(tnc, line), hear))
        }
        Place::Agwpe(line) => {
            let raw = agwpe::Raw::new(agwpe::Config { port: config.port, ..agwpe::Config::default() });
            runtime.block_on(listen_to(Driver::new(raw, line), hear))
        }
    }
}

/// An engine that says why its line ended.
trait Controller: Engine<Above = Frames, Below = Stream> {
    fn last_close(&self) -> Option<CloseReason>;
}

impl Controller for kiss::Tnc {
    fn last_close(&self) -> Option<CloseReason> {
        kiss::Tnc::last_close(self)
    }
}

impl Controller for agwpe::Raw {
    fn last_close(&self) -> Option<CloseReason> {
        agwpe::Raw::last_close(self)
    }
}

async fn listen_to<E: Controller>(
    mut driver: Driver<E>,
    mut hear: impl FnMut(Heard) -> ControlFlow<()>,
) -> io::Result<()> {
    let (mut interrupt, mut end) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    driver.request(FramesRequest::Join);
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

/// The next thing to be heard; `lost`: how often the line was reported as lost.
async fn next_or_lost<E: Controller>(driver: &mut Driver<E>, lost: &mut u64) -> Heard {
    loop {
        match driver.step().await {
            Some(FramesIndication::Frame(bytes)) => return Heard::Frame(bytes),
            Some(FramesIndication::Carrier(true)) => return Heard::Open,
            _ => {}
        }
        let reason = driver.engine().last_close();
        if let Some(reason) = reason.filter(|_| driver.lost() > *lost) {
            *lost = driver.lost();
            return Heard::Lost(reason);
        }
    }
}
