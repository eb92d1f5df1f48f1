//! An engine in one file: requests and replies over datagrams, with retransmission.
//!
//! ```text
//! cargo run -p longwire-proto --example echo
//! ```
//!
//! Each of two nodes returns the texts that the other one sends. The program runs both over a channel that loses a third
//! of the datagrams, prints every message that enters or leaves an engine, and ends with the outcome of each text. The
//! output is the same on every run.
//!
//! An engine is a value: a struct with the whole state of a protocol. It has no socket, clock, thread or random source;
//! its *owner* has those, passes in what happens, and carries out what comes out.
//!
//! | method | purpose |
//! |---|---|
//! | `handle_request` | the user above wants something |
//! | `handle_indication` | the provider below reports something |
//! | `handle_timeout` | time has passed; only this method expires timers |
//! | `poll_indication` | the next message for the user |
//! | `poll_request` | the next message for the provider; bytes are made here, when they can leave |
//! | `poll_timeout` | the time at which the owner has to call `handle_timeout`, if any |
//!
//! The steps are marked in the code:
//!
//! 1. **The service above**: what may the user request, and what is it told? Whatever occupies the line needs room, and
//!    every send has exactly one terminal indication.
//! 2. **The rules of the service**, as a program that checks both sides. Engines of the crate's own services have it.
//! 3. **The limits** of every queue, map and loop.
//! 4. **The state**, and the functions that change it. A wrong message of the peer is counted and dropped; an error of
//!    the user is a panic.
//! 5. **The engine**: the six methods.
//! 6. **An owner** in virtual time: two engines, a channel, and the loop that drains them.
//!
//! A protocol of this crate has more files than one: its codec, whose types have `decode` and `encode`; its limits as a
//! `Config`, which implements `setting::Settings`; and its laws (`src/laws`), which run engines in hostile worlds from
//! thousands of seeds.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use longwire_proto::engine::{Engine, Service};
use longwire_proto::joint::earlier;
use longwire_proto::kit::{Backoff, Deadlines};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    CloseReason, Datagrams, DatagramsIndication, DatagramsRequest, PeerId, Shares,
};
use longwire_proto::time::{Duration, Instant};
use longwire_proto::wrap::{Checked, CheckedService, ContractBreach, Tap, Timeline, TimelineWriter};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

// Step 1: the service above -------------------------------------------------------------------------------------------

/// The service of an [`EchoEngine`]: each text comes back from the peer, or it is known not to.
///
/// A service is an uninhabited type that names two message types. Requests go down, indications go up.
#[derive(Debug)]
enum Echo {}

impl Service for Echo {
    type Request = EchoRequest;
    type Indication = EchoIndication;
}

/// Requests of [`Echo`].
#[derive(Debug)]
enum EchoRequest {
    /// Sends a text to the peer. Needs room of 1. The user's number for the text is never used twice.
    Send { number: u64, text: Bytes },
}

/// Indications of [`Echo`].
#[derive(Debug)]
enum EchoIndication {
    /// Number of texts that may be passed down. The value is absolute: it replaces the previous one.
    Room(u64),
    /// The peer has returned the text. Terminal.
    Returned { number: u64, tries: u32 },
    /// The text was not returned. Terminal.
    Failed { number: u64, reason: EchoFailure },
}

/// Reason why a text was not returned.
#[derive(Debug)]
enum EchoFailure {
    /// The last try has no answer either. The peer may have received the text.
    NoAnswer,
    /// The text does not fit into a datagram.
    TooLong,
    /// The endpoint is closed.
    Closed(CloseReason),
}

impl fmt::Display for EchoFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EchoFailure::NoAnswer => f.write_str("no answer"),
            EchoFailure::TooLong => f.write_str("too long for a datagram"),
            EchoFailure::Closed(reason) => write!(f, "the endpoint is closed ({reason:?})"),
        }
    }
}

// Step 2: the rules of the service ------------------------------------------------------------------------------------

/// Record of the past messages on which the rules of [`Echo`] depend. [`Checked`] keeps it beside an engine, and blames
/// the side that breaks a rule.
#[derive(Debug, Default)]
struct EchoAccount {
    room: u64,
    /// Texts without a terminal indication.
    open: BTreeSet<u64>,
}

fn rule(holds: bool, breach: &str) -> Result<(), ContractBreach> {
    if holds { Ok(()) } else { Err(ContractBreach(breach.to_owned())) }
}

impl CheckedService for Echo {
    type Account = EchoAccount;

    fn request(account: &mut EchoAccount, request: &EchoRequest) -> Result<(), ContractBreach> {
        let EchoRequest::Send { number, .. } = request;
        rule(account.room > 0, "a text without room")?;
        account.room -= 1;
        rule(account.open.insert(*number), "two texts with one number")
    }

    fn indication(account: &mut EchoAccount, indication: &EchoIndication) -> Result<(), ContractBreach> {
        match indication {
            EchoIndication::Room(room) => {
                account.room = *room;
                Ok(())
            }
            EchoIndication::Returned { number, .. } | EchoIndication::Failed { number, .. } => {
                rule(account.open.remove(number), "the end of a text that has none or had it before")
            }
        }
    }

    fn owed(account: &EchoAccount) -> Vec<String> {
        account.open.iter().map(|number| format!("the end of text {number}")).collect()
    }
}

// Step 3: the limits --------------------------------------------------------------------------------------------------

/// Maximum number of texts without a terminal indication.
const CALLS_MAX: usize = 2;
/// Maximum number of replies that wait for room; further requests of peers are dropped.
const REPLIES_MAX: usize = 16;
/// Maximum number of times that a text is sent.
const TRIES_MAX: u32 = 6;
/// Wait for a reply before the second try; it doubles with each further try, up to the maximum.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(8);
/// Delay before a failed endpoint is opened again.
const REJOIN: Duration = Duration::from_secs(5);

// Step 4: the state ---------------------------------------------------------------------------------------------------

/// First octet of a message that asks for a reply.
const REQUEST: u8 = 1;
/// First octet of a reply.
const REPLY: u8 = 2;
/// Length of the first octet and the number before the text, bytes.
const HEADER_BYTES: usize = 9;

fn message(kind: u8, number: u64, text: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(HEADER_BYTES + text.len());
    bytes.put_u8(kind);
    bytes.put_u64(number);
    bytes.put_slice(text);
    bytes.freeze()
}

/// A text without a terminal indication.
#[derive(Debug)]
struct Call {
    text: Bytes,
    /// Waits after each try; the number of failures is the number of tries.
    waits: Backoff,
    /// Time of the next try; `None` while the text waits for room.
    deadline: Option<Instant>,
}

/// Sends texts to the configured peer of an endpoint, and returns those of all peers.
#[derive(Debug)]
struct EchoEngine {
    /// Source of random numbers, given by the owner: the same seed gives the same messages.
    rng: Rng,
    wants_join: bool,
    rejoin_at: Option<Instant>,
    /// Configured peer; `None` while the endpoint is closed.
    peer: Option<PeerId>,
    /// Maximum length of a datagram, bytes.
    bytes_max: u64,
    /// Number of datagrams that the provider accepts now.
    room: u64,
    /// Received bytes that the provider does not know to be processed.
    release: u64,
    calls: BTreeMap<u64, Call>,
    /// Deadlines of the calls.
    deadlines: Deadlines<u64>,
    /// Calls that wait for room, each at most once.
    to_send: VecDeque<u64>,
    replies: VecDeque<(PeerId, Bytes)>,
    /// Messages that were dropped: invalid, late, from the wrong peer, or above a limit.
    dropped: u64,
    up: VecDeque<EchoIndication>,
    /// Room last indicated to the user.
    announced: u64,
}

impl EchoEngine {
    /// Creates an engine that opens its endpoint when it is first polled.
    fn new(rng: Rng) -> Self {
        EchoEngine {
            rng,
            wants_join: true,
            rejoin_at: None,
            peer: None,
            bytes_max: 0,
            room: 0,
            release: 0,
            calls: BTreeMap::new(),
            deadlines: Deadlines::new(),
            to_send: VecDeque::new(),
            replies: VecDeque::new(),
            dropped: 0,
            up: VecDeque::new(),
            announced: 0,
        }
    }

    /// Ends a call. No other function emits a terminal indication, so that there is exactly one.
    fn end(&mut self, number: u64, result: Result<(), EchoFailure>) {
        let Some(call) = self.calls.remove(&number) else { return };
        self.deadlines.remove(number, call.deadline);
        self.to_send.retain(|other| *other != number);
        self.up.push_back(match result {
            Ok(()) => EchoIndication::Returned { number, tries: call.waits.failures() },
            Err(reason) => EchoIndication::Failed { number, reason },
        });
    }

    /// Handles a datagram, which anybody may have sent: nothing in it is used before it is checked.
    fn hear(&mut self, from: PeerId, mut bytes: Bytes) {
        let fits = bytes.len() as u64 <= self.bytes_max;
        if bytes.len() < HEADER_BYTES {
            self.dropped += 1;
            return;
        }
        let kind = bytes.get_u8();
        let number = bytes.get_u64();
        let asked = self.peer == Some(from) && self.calls.get(&number).is_some_and(|call| call.text == bytes);
        match kind {
            REQUEST if fits && self.replies.len() < REPLIES_MAX => {
                self.replies.push_back((from, message(REPLY, number, &bytes)));
            }
            REPLY if asked => self.end(number, Ok(())),
            _ => self.dropped += 1,
        }
    }

    /// Handles the loss of the endpoint: every call ends, and the endpoint is opened again after a delay.
    fn left(&mut self, now: Instant, reason: CloseReason) {
        (self.peer, self.room, self.release) = (None, 0, 0);
        self.replies.clear();
        let open: Vec<u64> = self.calls.keys().copied().collect();
        for number in open {
            self.end(number, Err(EchoFailure::Closed(reason)));
        }
        self.rejoin_at = Some(now + REJOIN);
    }

    fn next_reply(&mut self) -> Option<(PeerId, Bytes, Shares)> {
        let (to, bytes) = self.replies.pop_front()?;
        let shares = Shares::acknowledgement(bytes.len());
        Some((to, bytes, shares))
    }

    /// Makes the next request to the peer. The wait for its reply begins here, when it leaves, and not when the user
    /// passed the text down.
    fn next_call(&mut self, now: Instant) -> Option<(PeerId, Bytes, Shares)> {
        let peer = self.peer?;
        let number = self.to_send.pop_front()?;
        let call = self.calls.get_mut(&number).expect("only open calls wait for room");
        let bytes = message(REQUEST, number, &call.text);
        let shares = match call.waits.failures() {
            0 => Shares::payload(call.text.len()),
            _ => Shares::repeated(bytes.len()),
        };
        // Nodes that began together must not repeat together for ever.
        let wait = call.waits.fail().mul_f64(1.0 + self.rng.unit() / 4.0);
        self.deadlines.set(number, &mut call.deadline, Some(now + wait));
        Some((peer, bytes, shares))
    }
}

// Step 5: the engine --------------------------------------------------------------------------------------------------

impl Engine for EchoEngine {
    type Above = Echo;
    type Below = Datagrams;

    fn handle_request(&mut self, _now: Instant, request: EchoRequest) {
        let EchoRequest::Send { number, text } = request;
        assert!(self.announced > 0, "a text without room");
        self.announced -= 1;
        let refusal = match self.peer {
            None => Some(EchoFailure::Closed(CloseReason::Unreachable)),
            Some(_) if (HEADER_BYTES + text.len()) as u64 > self.bytes_max => Some(EchoFailure::TooLong),
            Some(_) => None,
        };
        let call = Call { text, waits: Backoff::new(WAIT_MIN, WAIT_MAX), deadline: None };
        let before = self.calls.insert(number, call);
        assert!(before.is_none(), "two texts with one number");
        match refusal {
            Some(reason) => self.end(number, Err(reason)),
            None => self.to_send.push_back(number),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: DatagramsIndication) {
        match indication {
            DatagramsIndication::Joined { bytes_max, peer, .. } => {
                (self.peer, self.bytes_max, self.room) = (peer, bytes_max, 0);
            }
            DatagramsIndication::Room(room) => self.room = room,
            DatagramsIndication::Datagram { from, bytes, .. } => {
                self.release += bytes.len() as u64;
                self.hear(from, bytes);
            }
            // Where datagrams may wait long below, an engine starts its timers at `Transmitted`, and stops them without a
            // carrier.
            DatagramsIndication::Carrier(_) | DatagramsIndication::Transmitted(_) => {}
            DatagramsIndication::Left(reason) => self.left(now, reason),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.rejoin_at.take_if(|at| *at <= now).is_some() {
            self.wants_join = true;
        }
        while let Some(number) = self.deadlines.pop_due(now) {
            let Some(call) = self.calls.get_mut(&number) else { continue };
            call.deadline = None;
            if call.waits.failures() < TRIES_MAX {
                self.to_send.push_back(number);
            } else {
                self.end(number, Err(EchoFailure::NoAnswer));
            }
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<EchoIndication> {
        if let Some(indication) = self.up.pop_front() {
            return Some(indication);
        }
        // Room is computed at the last moment, and indicated if it differs from what the user knows.
        let room = match self.peer {
            Some(_) => (CALLS_MAX - self.calls.len()) as u64,
            None => 0,
        };
        let known = std::mem::replace(&mut self.announced, room);
        (room != known).then_some(EchoIndication::Room(room))
    }

    fn poll_request(&mut self, now: Instant) -> Option<DatagramsRequest> {
        // Control needs no room.
        if std::mem::take(&mut self.wants_join) {
            return Some(DatagramsRequest::Join { damaged: false });
        }
        if self.release > 0 {
            return Some(DatagramsRequest::Release(std::mem::take(&mut self.release)));
        }
        if self.room == 0 {
            return None;
        }
        let (to, bytes, shares) = self.next_reply().or_else(|| self.next_call(now))?;
        self.room -= 1;
        Some(DatagramsRequest::Datagram { to, bytes, shares, token: None })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earlier(self.deadlines.next(), self.rejoin_at)
    }
}

// Step 6: an owner ----------------------------------------------------------------------------------------------------

/// Nodes by their index.
const NAMES: [&str; 2] = ["earth", "moon"];
const EARTH: usize = 0;
/// Least time of a datagram on the channel; the most is twice as much, so that datagrams overtake each other.
const DELAY: Duration = Duration::from_millis(100);

/// An engine, the checker of its contract, and a timeline of what crosses its edge.
type Node = Tap<Checked<EchoEngine>, TimelineWriter>;

struct World {
    now: Instant,
    nodes: [Node; 2],
    open: [bool; 2],
    /// Probability that a datagram is lost.
    loss: f64,
    rng: Rng,
    timeline_writer: TimelineWriter,
    /// Datagrams on the channel by the time of their arrival, with the index of the receiver.
    in_flight: BTreeMap<(Instant, u64), (usize, Bytes)>,
    carried: u64,
    /// Texts of the user on earth that wait for room, and the room. The user on the moon sends none.
    texts: VecDeque<&'static str>,
    room: u64,
    sent: u64,
    /// Fate of each text.
    ends: Vec<String>,
}

impl World {
    /// Passes texts down as far as there is room.
    fn speak(&mut self) {
        while self.room > 0
            && let Some(text) = self.texts.pop_front()
        {
            self.room -= 1;
            self.sent += 1;
            let request = EchoRequest::Send { number: self.sent, text: Bytes::from_static(text.as_bytes()) };
            self.nodes[EARTH].handle_request(self.now, request);
        }
    }

    /// The user of a node receives an indication.
    fn hear(&mut self, at: usize, indication: EchoIndication) {
        match indication {
            EchoIndication::Room(_) if at != EARTH => {}
            EchoIndication::Room(room) => {
                self.room = room;
                self.speak();
            }
            EchoIndication::Returned { number, tries } => {
                self.ends.push(format!("text {number}: returned after try {tries}"));
            }
            EchoIndication::Failed { number, reason } => {
                self.ends.push(format!("text {number}: failed, {reason}"));
            }
        }
    }

    /// Carries out a request of a node.
    fn carry(&mut self, at: usize, request: DatagramsRequest) {
        let answer = match request {
            DatagramsRequest::Join { .. } => {
                self.open[at] = true;
                let peer = Some(PeerId::CONFIGURED);
                let joined = DatagramsIndication::Joined { bytes_max: 1_400, peer, group: None };
                self.nodes[at].handle_indication(self.now, joined);
                DatagramsIndication::Room(1)
            }
            DatagramsRequest::Datagram { bytes, .. } => {
                let arrives = self.now + DELAY.mul_f64(1.0 + self.rng.unit());
                if self.rng.chance(self.loss) {
                    self.timeline_writer.tell(self.now, format_args!("loses a datagram of {}", NAMES[at]));
                } else {
                    self.carried += 1;
                    self.in_flight.insert((arrives, self.carried), (1 - at, bytes));
                }
                // The channel takes datagrams as fast as they come, one at a time.
                DatagramsIndication::Room(1)
            }
            DatagramsRequest::Leave | DatagramsRequest::Release(_) => return,
        };
        self.nodes[at].handle_indication(self.now, answer);
    }

    /// Drains a node: every indication goes up before the next request goes down, until there is neither.
    fn settle(&mut self, at: usize) {
        loop {
            if let Some(indication) = self.nodes[at].poll_indication(self.now) {
                self.hear(at, indication);
            } else if let Some(request) = self.nodes[at].poll_request(self.now) {
                self.carry(at, request);
            } else {
                return;
            }
        }
    }

    /// The endpoint of a node fails.
    fn fail(&mut self, at: usize) {
        self.open[at] = false;
        self.nodes[at].handle_indication(self.now, DatagramsIndication::Left(CloseReason::Unreachable));
        self.settle(at);
    }

    /// Runs until nothing is left to do: an engine without work asks for no wake-up.
    fn run(&mut self) {
        self.speak();
        (0..NAMES.len()).for_each(|at| self.settle(at));
        while let Some(at) = self.next_event() {
            self.now = self.now.max(at);
            while let Some(entry) = self.in_flight.first_entry()
                && entry.key().0 <= self.now
            {
                let (at, bytes) = entry.remove();
                if self.open[at] {
                    let from = PeerId::CONFIGURED;
                    let datagram =
                        DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false };
                    self.nodes[at].handle_indication(self.now, datagram);
                    self.settle(at);
                }
            }
            for at in 0..NAMES.len() {
                if self.nodes[at].poll_timeout().is_some_and(|due| due <= self.now) {
                    self.nodes[at].handle_timeout(self.now);
                    self.settle(at);
                }
            }
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let arrival = self.in_flight.keys().next().map(|(at, _)| *at);
        self.nodes.iter().filter_map(|node| node.poll_timeout()).chain(arrival).min()
    }
}

fn main() {
    let (rng, mut timeline) = (Rng::new(1), Timeline::new());
    let nodes = NAMES.map(|name| {
        let engine = Checked::new(name, EchoEngine::new(rng.fork(name)));
        Tap::new(engine, timeline.timeline_writer(name))
    });
    let mut world = World {
        now: Instant::ZERO,
        nodes,
        open: [false; 2],
        loss: 1.0 / 3.0,
        rng: rng.fork("channel"),
        timeline_writer: timeline.timeline_writer("channel"),
        in_flight: BTreeMap::new(),
        carried: 0,
        texts: VecDeque::from(["one", "two", "three", "four"]),
        room: 0,
        sent: 0,
        ends: Vec::new(),
    };
    println!("Four texts, room for two of them, and a channel that loses a third of the datagrams:\n");
    world.run();
    print!("{}", timeline.text());

    println!("\nThe channel loses everything:\n");
    world.loss = 1.0;
    world.texts.push_back("five");
    world.run();
    print!("{}", timeline.text());

    println!("\nThe channel loses nothing, and the endpoint of earth fails while a text is under way:\n");
    world.loss = 0.0;
    world.texts.push_back("six");
    world.speak();
    world.settle(EARTH);
    world.texts.push_back("seven");
    world.fail(EARTH);
    world.run();
    print!("{}", timeline.text());

    println!("\nEach text has one end:\n");
    world.ends.iter().for_each(|end| println!("{end}"));
    for (name, node) in NAMES.iter().zip(&world.nodes) {
        println!("{name} has dropped {} messages", node.engine.engine.dropped);
        assert!(node.engine.owed().is_empty(), "everything that was begun has ended");
    }
    assert_eq!(world.ends.len(), 7, "each text has one end");
}
