//! [`Tap`] shows every message to a sink; [`Timeline`] is a sink that writes a line for each.

use crate::engine::{Engine, Indication, Request, Service, forward};
use crate::time::Instant;
use core::fmt;
use std::sync::mpsc;

/// A message that enters or leaves an engine.
pub enum Crossing<'a, A: Service, B: Service> {
    /// The engine receives a request of its user.
    RequestIn(&'a A::Request),
    /// The engine receives an indication of its provider.
    IndicationIn(&'a B::Indication),
    /// The engine receives a timeout.
    Timeout,
    /// The engine emits an indication to its user.
    IndicationOut(&'a A::Indication),
    /// The engine emits a request to its provider.
    RequestOut(&'a B::Request),
}

impl<A: Service, B: Service> Crossing<'_, A, B> {
    /// Returns the direction in seven characters: `hears v` is a request from above, `says  ^` an indication upwards.
    pub const fn label(&self) -> &'static str {
        match self {
            Crossing::RequestIn(_) => "hears v",
            Crossing::IndicationIn(_) => "hears ^",
            Crossing::Timeout => "timeout",
            Crossing::IndicationOut(_) => "says  ^",
            Crossing::RequestOut(_) => "says  v",
        }
    }

    /// Returns the message.
    pub fn message(&self) -> &dyn fmt::Debug {
        match self {
            Crossing::RequestIn(message) => message,
            Crossing::IndicationIn(message) => message,
            Crossing::Timeout => &(),
            Crossing::IndicationOut(message) => message,
            Crossing::RequestOut(message) => message,
        }
    }
}

impl<A: Service, B: Service> fmt::Display for Crossing<'_, A, B> {
    /// Writes the label, and the message if there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())?;
        match self {
            Crossing::Timeout => Ok(()),
            _ => write!(f, " {:?}", self.message()),
        }
    }
}

/// An observer of an engine. Any closure that takes a time and a [`Crossing`] is one.
pub trait Sink<A: Service, B: Service> {
    /// Observes one message.
    fn cross(&mut self, at: Instant, crossing: Crossing<'_, A, B>);
}

impl<A: Service, B: Service, F: FnMut(Instant, Crossing<'_, A, B>)> Sink<A, B> for F {
    fn cross(&mut self, at: Instant, crossing: Crossing<'_, A, B>) {
        self(at, crossing);
    }
}

/// An engine with a sink that observes all messages and changes nothing.
#[derive(Debug)]
pub struct Tap<E, F> {
    /// The observed engine.
    pub engine: E,
    /// The observer.
    pub sink: F,
}

impl<E: Engine, F: Sink<E::Above, E::Below>> Tap<E, F> {
    /// Wraps `engine`, observed by `sink`.
    pub fn new(engine: E, sink: F) -> Self {
        Tap { engine, sink }
    }
}

impl<E: Engine, F: Sink<E::Above, E::Below>> Engine for Tap<E, F> {
    type Above = E::Above;
    type Below = E::Below;

    forward!(engine: poll_timeout finished observe);

    fn handle_request(&mut self, now: Instant, request: Request<Self::Above>) {
        self.sink.cross(now, Crossing::RequestIn(&request));
        self.engine.handle_request(now, request);
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>) {
        self.sink.cross(now, Crossing::IndicationIn(&indication));
        self.engine.handle_indication(now, indication);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.sink.cross(now, Crossing::Timeout);
        self.engine.handle_timeout(now);
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>> {
        let indication = self.engine.poll_indication(now)?;
        self.sink.cross(now, Crossing::IndicationOut(&indication));
        Some(indication)
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        let request = self.engine.poll_request(now)?;
        self.sink.cross(now, Crossing::RequestOut(&request));
        Some(request)
    }
}

/// The messages of several engines, one per line, in the order of their occurrence.
///
/// ```
/// use longwire_proto::engine::Engine;
/// use longwire_proto::joint::PassThrough;
/// use longwire_proto::service::{Frames, FramesRequest};
/// use longwire_proto::time::Instant;
/// use longwire_proto::wrap::{Tap, Timeline};
/// let mut timeline = Timeline::new();
/// let mut earth = Tap::new(PassThrough::<Frames>::new(), timeline.timeline_writer("earth"));
/// earth.handle_request(Instant::from_secs(1), FramesRequest::Join);
/// assert_eq!(timeline.text(), "     1.000000 earth hears v Join\n");
/// ```
#[derive(Debug)]
pub struct Timeline {
    sender: mpsc::Sender<String>,
    receiver: mpsc::Receiver<String>,
}

impl Timeline {
    /// Maximum lines of one writer: some tens of megabytes.
    pub const LINES_MAX: usize = 200_000;
    /// Maximum characters of a line; the rest is cut off.
    pub const LINE_CHARACTERS_MAX: usize = 180;

    /// Creates an empty timeline.
    pub fn new() -> Self {
        let (sender, receiver) = mpsc::channel();
        Timeline { sender, receiver }
    }

    /// Returns a sink that writes here for the engine called `name`.
    pub fn timeline_writer(&self, name: &str) -> TimelineWriter {
        TimelineWriter { name: name.to_owned(), sender: self.sender.clone(), told: 0 }
    }

    /// Removes and returns the lines written since the last call.
    pub fn lines(&mut self) -> Vec<String> {
        self.receiver.try_iter().collect()
    }

    /// Removes and returns the lines written since the last call, as one text that ends in a line feed.
    pub fn text(&mut self) -> String {
        self.lines().into_iter().map(|line| line + "\n").collect()
    }
}

impl Default for Timeline {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes the lines of one engine to a [`Timeline`].
#[derive(Clone, Debug)]
pub struct TimelineWriter {
    name: String,
    sender: mpsc::Sender<String>,
    told: usize,
}

impl TimelineWriter {
    /// Writes a line that is no message of the engine: a remark, or an event in the simulated world.
    pub fn tell(&mut self, at: Instant, what: impl fmt::Display) {
        if self.told == Timeline::LINES_MAX {
            return;
        }
        self.told += 1;
        let mut line = format!("{at:>13} {} {what}", self.name);
        if let Some((cut, _)) = line.char_indices().nth(Timeline::LINE_CHARACTERS_MAX) {
            line.truncate(cut);
            line.push_str("..");
        }
        // An error means that the timeline has been dropped and the line is not needed.
        let _ = self.sender.send(line);
    }
}

impl<A: Service, B: Service> Sink<A, B> for TimelineWriter {
    fn cross(&mut self, at: Instant, crossing: Crossing<'_, A, B>) {
        if self.told < Timeline::LINES_MAX {
            self.tell(at, crossing);
        }
    }
}
