//! Controllers of both kinds as one engine: a TNC in KISS mode, or a port of an AGWPE server.

use crate::view::{self, Counts};
use bytes::Bytes;
use longwire_proto::agwpe::{self, ServerFault};
use longwire_proto::controller::{Config, ControllerLine};
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::kiss;
use longwire_proto::service::{CloseReason, Frames, Stream};
use longwire_proto::time::Instant;

/// Either of them.
#[derive(Debug)]
pub enum TncEngine {
    /// A TNC in KISS mode.
    Kiss(Box<kiss::KissTnc>),
    /// A port of an AGWPE server.
    Agwpe(Box<agwpe::RawPort>),
}

impl TncEngine {
    /// A TNC in KISS mode. Where that is to be tried, `probe` shows whether it acknowledges (see [`kiss::KissTnc::probing`]).
    pub fn kiss(config: kiss::Config, controller: Config, probe: Option<Bytes>) -> Self {
        let tnc = kiss::KissTnc::new(config, controller);
        TncEngine::Kiss(Box::new(match probe {
            Some(probe) => tnc.probing(probe),
            None => tnc,
        }))
    }

    /// A port of an AGWPE server.
    pub fn agwpe(config: agwpe::Config, controller: Config) -> Self {
        TncEngine::Agwpe(Box::new(agwpe::RawPort::new(config, controller)))
    }

    /// Its line.
    pub fn line(&self) -> &ControllerLine {
        match self {
            TncEngine::Kiss(tnc) => tnc.line(),
            TncEngine::Agwpe(raw) => raw.line(),
        }
    }

    /// Why the line ended the last time, for a person.
    pub fn why_down(&self) -> Option<&'static str> {
        let trouble = match self {
            TncEngine::Kiss(_) => None,
            TncEngine::Agwpe(raw) => raw.trouble().map(trouble_words),
        };
        // A line that this side ended ended for what was wrong with it; others end for reasons of their own.
        let reason = self.line().last_close()?;
        trouble.filter(|_| reason == CloseReason::Aborted).or(Some(line_words(reason)))
    }

    /// Frames that it has and that have not left, as far as is known.
    pub(crate) fn held(&self) -> usize {
        match self {
            TncEngine::Kiss(tnc) => tnc.held(),
            TncEngine::Agwpe(raw) => raw.held(),
        }
    }

    /// It waits for a clear channel.
    pub(crate) fn waits(&self) -> bool {
        match self {
            TncEngine::Kiss(tnc) => tnc.waits(),
            TncEngine::Agwpe(raw) => raw.waits(),
        }
    }

    /// It tells when a frame has left; none as long as that is not known.
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
        ServerFault::Silent => "it does not answer as an AGWPE server does",
        ServerFault::NotAgwpe => "it does not speak AGWPE",
        ServerFault::NoPort => "it does not have the port",
    }
}

fn line_words(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Finished | CloseReason::Aborted => "it closed the line",
        CloseReason::Reset => "the line broke",
        CloseReason::Refused => "nobody listens there",
        CloseReason::TimedOut => "no answer",
        CloseReason::Unreachable => "it is not there",
        CloseReason::Stalled => "it took nothing for too long",
        CloseReason::Insecure | CloseReason::Limit | CloseReason::Damaged => "the line failed",
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

    fn poll_indication(&mut self) -> Option<Indication<Frames>> {
        match self {
            TncEngine::Kiss(tnc) => tnc.poll_indication(),
            TncEngine::Agwpe(raw) => raw.poll_indication(),
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
