//! Engine for both kinds of controllers: a TNC in KISS mode, or a port of an AGWPE server.

use crate::config::TncSettings;
use crate::config::tnc_address::TncAddress;
use crate::view::{self, Counts};
use bytes::Bytes;
use longwire_proto::agwpe::{self, ServerFault};
use longwire_proto::ax25::{Frame, Modulo};
use longwire_proto::controller::{Config, ControllerLine};
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::kiss;
use longwire_proto::service::{CloseReason, Frames, Stream};
use longwire_proto::time::Instant;
use longwire_settings::error::Error;

/// Engine for a controller of either kind.
#[derive(Debug)]
pub enum TncEngine {
    /// TNC in KISS mode.
    Kiss(Box<kiss::KissTnc>),
    /// Port of an AGWPE server.
    Agwpe(Box<agwpe::RawPort>),
}

impl TncEngine {
    /// Creates the engine for a configured TNC.
    ///
    /// # Errors
    /// Fails if the address or the callsign is invalid.
    pub(crate) fn new(settings: &TncSettings) -> Result<TncEngine, Error> {
        let config = settings.controller_config();
        Ok(match settings.place()? {
            TncAddress::Kiss(_) => {
                // An identification may be sent at any time and is never answered.
                let probe = Frame::identification(settings.own()?).to_bytes(Modulo::Eight);
                TncEngine::kiss(settings.kiss.clone(), config, Some(probe))
            }
            TncAddress::Agwpe(_) => TncEngine::agwpe(settings.agwpe.clone(), config),
        })
    }

    /// Creates the engine for a TNC in KISS mode. If the configuration requires a test, `probe` shows whether the TNC
    /// acknowledges frames (see [`kiss::KissTnc::probing`]).
    pub fn kiss(config: kiss::Config, controller: Config, probe: Option<Bytes>) -> Self {
        let tnc = kiss::KissTnc::new(config, controller);
        TncEngine::Kiss(Box::new(match probe {
            Some(probe) => tnc.probing(probe),
            None => tnc,
        }))
    }

    /// Creates the engine for a port of an AGWPE server.
    pub fn agwpe(config: agwpe::Config, controller: Config) -> Self {
        TncEngine::Agwpe(Box::new(agwpe::RawPort::new(config, controller)))
    }

    /// Returns the state of the line.
    pub fn line(&self) -> &ControllerLine {
        match self {
            TncEngine::Kiss(tnc) => tnc.line(),
            TncEngine::Agwpe(raw) => raw.line(),
        }
    }

    /// Returns the reason for which the line last ended, for an operator.
    pub fn why_down(&self) -> Option<&'static str> {
        let trouble = match self {
            TncEngine::Kiss(_) => None,
            TncEngine::Agwpe(raw) => raw.trouble().map(trouble_words),
        };
        // The fault of the server explains only a line that this side closed.
        let reason = self.line().last_close()?;
        trouble.filter(|_| reason == CloseReason::Aborted).or(Some(line_words(reason)))
    }

    /// Returns the number of frames passed to the controller that have not left, as far as is known.
    pub(crate) fn held(&self) -> usize {
        match self {
            TncEngine::Kiss(tnc) => tnc.held(),
            TncEngine::Agwpe(raw) => raw.held(),
        }
    }

    /// Returns true while the controller waits for a clear channel.
    pub(crate) fn waits(&self) -> bool {
        match self {
            TncEngine::Kiss(tnc) => tnc.waits(),
            TncEngine::Agwpe(raw) => raw.waits(),
        }
    }

    /// Returns true if the TNC reports transmitted frames; `None` while that is unknown.
    pub(crate) fn acknowledges(&self) -> Option<bool> {
        match self {
            TncEngine::Kiss(tnc) => tnc.acknowledges(),
            TncEngine::Agwpe(_) => None,
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        match self {
            TncEngine::Kiss(tnc) => view::counts(&tnc.counters()),
            TncEngine::Agwpe(raw) => view::counts(&raw.counters()),
        }
    }
}

fn trouble_words(trouble: ServerFault) -> &'static str {
    match trouble {
        ServerFault::Silent => "no AGWPE response",
        ServerFault::NotAgwpe => "not an AGWPE server",
        ServerFault::NoPort => "no such AGWPE port",
    }
}

fn line_words(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Finished | CloseReason::Aborted => "connection closed",
        CloseReason::Reset => "connection lost",
        CloseReason::Refused => "connection refused",
        CloseReason::TimedOut => "no answer",
        CloseReason::Unreachable => "not reachable",
        CloseReason::Stalled => "the TNC stopped reading",
        CloseReason::Insecure | CloseReason::Limit | CloseReason::Damaged => "connection failed",
    }
}

impl Engine for TncEngine {
    type Above = Frames;
    type Below = Stream;

    fn handle_request(&mut self, now: Instant, request: Request<Frames>) {
        match self {
            TncEngine::Kiss(tnc) => tnc.handle_request(now, request),
            TncEngine::Agwpe(raw) => raw.handle_request(now, request),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Stream>) {
        match self {
            TncEngine::Kiss(tnc) => tnc.handle_indication(now, indication),
            TncEngine::Agwpe(raw) => raw.handle_indication(now, indication),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            TncEngine::Kiss(tnc) => tnc.handle_timeout(now),
            TncEngine::Agwpe(raw) => raw.handle_timeout(now),
        }
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Frames>> {
        match self {
            TncEngine::Kiss(tnc) => tnc.poll_indication(now),
            TncEngine::Agwpe(raw) => raw.poll_indication(now),
        }
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Stream>> {
        match self {
            TncEngine::Kiss(tnc) => tnc.poll_request(now),
            TncEngine::Agwpe(raw) => raw.poll_request(now),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            TncEngine::Kiss(tnc) => tnc.poll_timeout(),
            TncEngine::Agwpe(raw) => raw.poll_timeout(),
        }
    }
}
