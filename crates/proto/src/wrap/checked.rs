//! [`Checked`] enforces the contract; [`CheckedService`] contains the rules of a service.

use crate::engine::{Engine, Indication, Request, Service, forward};
use crate::time::Instant;
use core::fmt;

mod account;
mod app;
mod bundles;
mod connections;
mod datagrams;
mod frames;
mod packets;
mod storage;
mod stream;
mod submission;

/// A breach of the contract, described for a developer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractBreach(pub String);

impl fmt::Display for ContractBreach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A service whose rules can be checked by observing its messages: which side may send what, when, and against how much
/// room.
///
/// The account grows with the transfers, sends and records of a run: it is for tests, where runs end.
pub trait CheckedService: Service {
    /// Record of the past messages that the rules depend on.
    type Account: Default + fmt::Debug;

    /// Records a request of the user.
    fn request(account: &mut Self::Account, request: &Self::Request) -> Result<(), ContractBreach>;
    /// Records an indication of the provider.
    fn indication(account: &mut Self::Account, indication: &Self::Indication) -> Result<(), ContractBreach>;
    /// Returns the messages that the provider still owes: terminal indications, answers.
    fn owed(account: &Self::Account) -> Vec<String>;
}

/// An engine whose contract is enforced on both sides: its own obligations, its user's and its provider's.
///
/// It panics when room is overspent, when the service does not allow a message at that point, when a transfer has two
/// ends, when time runs backwards, when a poll is not stable, when draining does not end, when an early timeout has an
/// effect, and when an engine repeatedly requests a wake-up in the past.
#[derive(Debug)]
pub struct Checked<E: Engine>
where
    E::Above: CheckedService,
    E::Below: CheckedService,
{
    /// The checked engine.
    pub engine: E,
    name: String,
    above: <E::Above as CheckedService>::Account,
    below: <E::Below as CheckedService>::Account,
    now: Instant,
    /// True after `poll_indication` has returned `None`, until the next event.
    no_indication: bool,
    /// The same for `poll_request`.
    no_request: bool,
    /// True if the last event was a timeout.
    woken: bool,
    /// Consecutive wake-ups after which the engine requested a wake-up at the same instant again.
    restless: u32,
    /// Messages of the engine since the last event.
    said: u32,
    drains: u64,
}

impl<E: Engine> Checked<E>
where
    E::Above: CheckedService,
    E::Below: CheckedService,
{
    /// Maximum messages that an engine may emit after one event: more than any meaningful burst.
    pub const SAID_MAX: u32 = 1_000_000;
    /// Maximum consecutive requests of an engine for a wake-up at the present instant.
    pub const RESTLESS_MAX: u32 = 64;
    /// Number of drains after each of which the engine gets a timeout that it did not request.
    pub const EARLY_TIMEOUT_EVERY: u64 = 4;

    /// Wraps `engine`; `name` is for the message of a panic.
    pub fn new(name: &str, engine: E) -> Self {
        Checked {
            engine,
            name: name.to_owned(),
            above: Default::default(),
            below: Default::default(),
            now: Instant::ZERO,
            no_indication: false,
            no_request: false,
            woken: false,
            restless: 0,
            said: 0,
            drains: 0,
        }
    }

    /// Returns the messages that the engine owes its user, and those that its provider owes the engine.
    pub fn owed(&self) -> Vec<String> {
        let above = E::Above::owed(&self.above).into_iter().map(|what| format!("{} owes {what}", self.name));
        let below =
            E::Below::owed(&self.below).into_iter().map(|what| format!("{} is owed {what}", self.name));
        above.chain(below).collect()
    }

    fn blame(&self, who: &str, breach: impl fmt::Display) -> ! {
        panic!("{} at {}: {who} broke the contract: {breach}", self.name, self.now);
    }

    fn tell_time(&mut self, now: Instant) {
        if now < self.now {
            self.blame("the owner", format_args!("it is {now}, but time does not run backwards"));
        }
        self.now = now;
    }

    fn heard(&mut self, now: Instant) {
        self.tell_time(now);
        self.no_indication = false;
        self.no_request = false;
        self.woken = false;
        self.said = 0;
    }

    fn says(&mut self) {
        self.said += 1;
        if self.said > Self::SAID_MAX {
            self.blame("the engine", "it does not stop talking");
        }
    }

    /// Checks a drained engine: its `None` must hold.
    fn drained(&mut self) {
        if self.engine.poll_indication(self.now).is_some() {
            self.blame("the engine", "an indication appeared after poll_indication said None");
        }
        let deadline = self.engine.poll_timeout();
        if core::mem::take(&mut self.woken) {
            self.check_deadline(deadline);
        }
        self.drains += 1;
        if self.drains.is_multiple_of(Self::EARLY_TIMEOUT_EVERY) && deadline.is_none_or(|at| at > self.now) {
            self.tell_early_timeout(deadline);
        }
    }

    fn check_deadline(&mut self, deadline: Option<Instant>) {
        match deadline {
            Some(at) if at < self.now => {
                self.blame(
                    "the engine",
                    format_args!("just woken, it wants to be woken at {at}, in the past"),
                );
            }
            Some(at) if at == self.now => {
                self.restless += 1;
                if self.restless > Self::RESTLESS_MAX {
                    self.blame("the engine", "it wants to be woken at this instant again and again");
                }
            }
            _ => self.restless = 0,
        }
    }

    fn tell_early_timeout(&mut self, deadline: Option<Instant>) {
        self.engine.handle_timeout(self.now);
        if let Some(indication) = self.engine.poll_indication(self.now) {
            self.blame("the engine", format_args!("an early timeout made it say {indication:?}"));
        }
        if let Some(request) = self.engine.poll_request(self.now) {
            self.blame("the engine", format_args!("an early timeout made it say {request:?}"));
        }
        let after = self.engine.poll_timeout();
        if after != deadline {
            self.blame(
                "the engine",
                format_args!("an early timeout moved its wake-up from {deadline:?} to {after:?}"),
            );
        }
    }
}

impl<E: Engine> Engine for Checked<E>
where
    E::Above: CheckedService,
    E::Below: CheckedService,
{
    type Above = E::Above;
    type Below = E::Below;

    forward!(engine: poll_timeout finished observe);

    fn handle_request(&mut self, now: Instant, request: Request<Self::Above>) {
        self.heard(now);
        if let Err(breach) = E::Above::request(&mut self.above, &request) {
            self.blame("the user above", format_args!("{breach} ({request:?})"));
        }
        self.engine.handle_request(now, request);
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>) {
        self.heard(now);
        if let Err(breach) = E::Below::indication(&mut self.below, &indication) {
            self.blame("the provider below", format_args!("{breach} ({indication:?})"));
        }
        self.engine.handle_indication(now, indication);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.heard(now);
        self.woken = true;
        self.engine.handle_timeout(now);
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>> {
        self.tell_time(now);
        let Some(indication) = self.engine.poll_indication(now) else {
            self.no_indication = true;
            return None;
        };
        if self.no_indication {
            self.blame("the engine", format_args!("{indication:?} appeared after poll_indication said None"));
        }
        self.says();
        self.no_request = false;
        if let Err(breach) = E::Above::indication(&mut self.above, &indication) {
            self.blame("the engine", format_args!("{breach} ({indication:?})"));
        }
        Some(indication)
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        self.tell_time(now);
        if !self.no_indication {
            self.blame("the owner", "poll_request before every indication has risen");
        }
        let Some(request) = self.engine.poll_request(now) else {
            if !core::mem::replace(&mut self.no_request, true) {
                self.drained();
            }
            return None;
        };
        if self.no_request {
            self.blame("the engine", format_args!("{request:?} appeared after poll_request said None"));
        }
        self.says();
        self.no_indication = false;
        if let Err(breach) = E::Below::request(&mut self.below, &request) {
            self.blame("the engine", format_args!("{breach} ({request:?})"));
        }
        Some(request)
    }
}
