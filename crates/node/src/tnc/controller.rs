//! Controllers of both kinds as one engine: a TNC in KISS mode, or a port of an AGWPE server.

use crate::view::{self, Counts};
use bytes::Bytes;
use longwire_proto::agwpe::{self, Trouble};
use longwire_proto::controller::{Config, Line};
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::kiss;
use longwire_proto::service::{CloseReason, Frames, Stream};
use longwire_proto::time::Instant;

/// Either of them.
#[derive(Debug)]
pub enum Controller {
    /// A TNC in KISS mode.
    Kiss(Box<kiss::Tnc>),
    /// A port of an AGWPE server.
    Agwpe(Box<agwpe::Raw>),
}

impl Controller {
    /// A TNC in KISS mode. Where that is to be tried, `probe` shows whether it acknowledges (see [`kiss::Tnc::probing`]).
    pub fn kiss(config: kiss::Config, controller: Config, probe: Option<Bytes>) -> Self {
        let tnc = kiss::Tnc::new(config, controller);
        Controller::Kiss(Box::new(match probe {
            Some(probe) => tnc.probing(probe),
            None => tnc,
        }))
    }

    /// A port of an AGWPE server.
    pub fn agwpe(config: agwpe::Config, controller: Config) -> Self {
        Controller::Agwpe(Box::new(agwpe::Raw::new(config, controller)))
    }

    /// Its line.
    pub fn line(&self) -> &Line {
        match self {
            Controller::Kiss(tnc) => tnc.line(),
            Controller::Agwpe(raw) => raw.line(),
        }
    }

    /// Why the line ended the last time, for a person.
    pub fn why_down(&self) -> Option<&'static str> {
        let trouble = match self {
            Controller::Kiss(_) => None,
            Controller::Agwpe(raw) => raw.trouble().map(trouble_words),
        };
        // A line that this side ended ended for what was wrong with it; others end for reasons of their own.
        let reason = self.line().last_close()?;
        trouble.filter(|_| reason == CloseReason::Aborted).or(Some(line_words(reason)))
    }

    /// Frames that it has and that have not left, as far as is known.
    pub(crate) fn held(&self) -> usize {
        match self {
            Controller::Kiss(tnc) => tnc.held(),
            Controller::Agwpe(raw) => raw.held(),
        }
    }

    /// It waits for a clear channel.
    pub(crate) fn waits(&self) -> bool {
        match self {
            Controller::Kiss(tnc) => tnc.waits(),
            Controller::Agwpe(raw) => raw.waits(),
        }
    }

    /// It tells when a frame has left; none as long as that is not known.
    pub(crate) fn acknowledges(&self) -> Option<bool> {
        match self {
            Controller::Kiss(tnc) => tnc.acknowledges(),
            Controller::Agwpe(_) => None,
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        match self {
            Controller::Kiss(tnc) => view::counts(&tnc.counters()),
            Controller::Agwpe(raw) => view::counts(&raw.counters()),
        }
    }
}

fn trouble_words(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::Silent => "it does not answer as an AGWPE server does",
        Trouble::Nonsense => "it does not speak AGWPE",
        Trouble::NoPort => "it does not have the port",
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

impl Engine for Controller {
    type Above = Frames;
    type Below = Stream;

    fn handle_request(&mut self, now: Instant, request: Request<Frames>) {
        match self {
            Controller::Kiss(tnc) => tnc.handle_request(now, request),
            Controller::Agwpe(raw) => raw.handle_request(now, request),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Stream>) {
        match self {
            Controller::Kiss(tnc) => tnc.handle_indication(now, indication),
            Controller::Agwpe(raw) => raw.handle_indication(now, indication),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Controller::Kiss(tnc) => tnc.handle_timeout(now),
            Controller::Agwpe(raw) => raw.handle_timeout(now),
        }
    }

    fn poll_indication(&mut self) -> Option<Indication<Frames>> {
        match self {
            Controller::Kiss(tnc) => tnc.poll_indication(),
            Controller::Agwpe(raw) => raw.poll_indication(),
        }
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Stream>> {
        match self {
            Controller::Kiss(tnc) => tnc.poll_request(now),
            Controller::Agwpe(raw) => raw.poll_request(now),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Controller::Kiss(tnc) => tnc.poll_timeout(),
            Controller::Agwpe(raw) => raw.poll_timeout(),
        }
    }
}
