//! A connected-mode call through a TNC, for programs without an event loop.

use super::{Driver, TncAddress, TncEngine};
use bytes::Bytes;
use longwire_proto::ax25::{
    self, Callsign, Frame, LinkConfig, Modulo, PeerStation, RadioParameters, Station,
};
use longwire_proto::controller::{self, ChannelParameters};
use longwire_proto::joint::{OnFirst, Stack};
use longwire_proto::service::{CloseReason, LinkId, PacketsIndication, PacketsRequest};
use longwire_proto::{agwpe, kiss};
use std::collections::VecDeque;
use std::io;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// ID of the link that is called.
const LINK: LinkId = LinkId(1);
/// Maximum texts that wait for the link; whoever sends more waits.
pub const TEXTS_MAX: usize = 16;

type Engines = OnFirst<Stack<Station, TncEngine>>;

/// Texts on their way to a call.
#[derive(Debug)]
pub struct Texts(mpsc::Receiver<Bytes>);

/// Source of the texts of a call. Dropping it ends the input.
#[derive(Debug)]
pub struct Sender(mpsc::Sender<Bytes>);

/// Makes a queue for at most this many texts.
pub fn texts(texts_max: usize) -> (Sender, Texts) {
    let (sender, receiver) = mpsc::channel(texts_max);
    (Sender(sender), Texts(receiver))
}

impl Sender {
    /// Passes a text on, and waits while the queue is full; false after the end of the call. For threads without an event loop.
    pub fn send(&self, text: Bytes) -> bool {
        self.0.blocking_send(text).is_ok()
    }
}

/// A call to another station.
#[derive(Clone, Debug)]
pub struct Call {
    /// Callsign of this station.
    pub own: Callsign,
    /// Station that is called.
    pub peer: Callsign,
    /// Digipeaters, the nearest first.
    pub path: Vec<Callsign>,
    /// TNC.
    pub place: TncAddress,
    /// Port of the TNC.
    pub port: u8,
    /// Parameters of the channel.
    pub channel: ChannelParameters,
    /// Number of repetitions without an answer after which the call is given up (N2).
    pub retries: u8,
}

/// Event of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallEvent {
    /// The line to the TNC is open, and the station is called.
    Calling,
    /// The line was lost or could not be opened, with the reason; it is tried again.
    Lost(&'static str),
    /// The station has answered.
    Connected,
    /// Bytes from the station, of any kind.
    Received(Bytes),
}

/// End of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEnd {
    /// True if the station had answered.
    pub was_connected: bool,
    /// Reason; `None` if the user gave up before the link had ended.
    pub reason: Option<CloseReason>,
    /// Packets that were sent and not acknowledged.
    pub unacknowledged: u64,
    /// Texts that were not sent.
    pub unsent: usize,
}

impl Call {
    fn engines(&self) -> Engines {
        let ChannelParameters { rate_bps, tx_delay, tx_tail, slot_time, persistence, full_duplex } =
            self.channel;
        let radio = RadioParameters {
            rate_bps,
            tx_delay,
            tx_tail,
            slot_time,
            persistence,
            full_duplex,
            ..RadioParameters::default()
        };
        let link = LinkConfig { retries: self.retries, ..LinkConfig::default() };
        let peer = PeerStation { station: self.peer, path: self.path.clone(), link };
        let peers = [(LINK, peer)].into();
        // The TNC may still hold frames of an earlier run.
        let station = ax25::Config { radio, peers, restarts: true, ..ax25::Config::new(self.own) };
        let controller =
            controller::Config { channel: self.channel.clone(), ..controller::Config::default() };
        let tnc = match self.place {
            TncAddress::Kiss(_) => {
                let config = kiss::Config { port: self.port, ..kiss::Config::default() };
                // An identification, which nobody answers, shows whether the TNC reports transmitted frames.
                let probe = Frame::identification(self.own).to_bytes(Modulo::Eight);
                TncEngine::kiss(config, controller, Some(probe))
            }
            TncAddress::Agwpe(_) => {
                TncEngine::agwpe(agwpe::Config { port: self.port, ..agwpe::Config::default() }, controller)
            }
        };
        OnFirst(Stack::new(Station::new(station), tnc))
    }

    /// Calls the station, passes on what arrives, and sends the texts of `input` until both ends have finished. After the end of
    /// `input`, or SIGINT or SIGTERM, the link is closed in good order; a second signal ends the call at once.
    ///
    /// # Errors
    /// Fails if the system provides no event loop, or `hear` fails.
    pub fn run(&self, input: Texts, hear: impl FnMut(CallEvent) -> io::Result<()>) -> io::Result<CallEnd> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let driver = Driver::new(self.engines(), self.place.line().clone());
            Conversation::new(driver, input.0).run(hear).await
        })
    }
}

struct Conversation {
    driver: Driver<Engines>,
    input: mpsc::Receiver<Bytes>,
    /// Texts that wait for room.
    waiting: VecDeque<Bytes>,
    room: u64,
    packet_bytes: usize,
    is_connected: bool,
    was_connected: bool,
    input_ended: bool,
    is_closing: bool,
    sent: u64,
    acknowledged: u64,
    lost: u64,
}

impl Conversation {
    fn new(driver: Driver<Engines>, input: mpsc::Receiver<Bytes>) -> Self {
        Conversation {
            driver,
            input,
            waiting: VecDeque::new(),
            room: 0,
            packet_bytes: 1,
            is_connected: false,
            was_connected: false,
            input_ended: false,
            is_closing: false,
            sent: 0,
            acknowledged: 0,
            lost: 0,
        }
    }

    async fn run(mut self, mut hear: impl FnMut(CallEvent) -> io::Result<()>) -> io::Result<CallEnd> {
        let (mut interrupt, mut end) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        self.request(PacketsRequest::Connect)?;
        hear(CallEvent::Calling)?;
        loop {
            let reads = !self.input_ended && self.waiting.len() < TEXTS_MAX;
            let signalled = tokio::select! {
                said = self.driver.step() => {
                    if let Some(said) = said
                        && let Some(end) = self.hear(said, &mut hear)?
                    {
                        return Ok(end);
                    }
                    self.tell_loss(&mut hear)?;
                    false
                }
                text = self.input.recv(), if reads => {
                    match text {
                        Some(text) => self.waiting.push_back(text),
                        None => self.input_ended = true,
                    }
                    false
                }
                _ = interrupt.recv() => true,
                _ = end.recv() => true,
            };
            if signalled {
                if self.is_closing {
                    return Ok(self.end(None));
                }
                self.input_ended = true;
                self.waiting.clear();
            }
            self.send()?;
        }
    }

    fn request(&mut self, request: PacketsRequest) -> io::Result<()> {
        self.driver.request((LINK, request)).map_err(io::Error::other)
    }

    /// Handles an indication; returns the end of the call.
    fn hear(
        &mut self,
        (link, said): (LinkId, PacketsIndication),
        hear: &mut impl FnMut(CallEvent) -> io::Result<()>,
    ) -> io::Result<Option<CallEnd>> {
        if link != LINK {
            // Somebody else calls this station, which has no use for him.
            if matches!(said, PacketsIndication::Connected { .. }) {
                self.driver.request((link, PacketsRequest::Close)).map_err(io::Error::other)?;
            }
            return Ok(None);
        }
        match said {
            PacketsIndication::Connected { bytes_best, .. } => {
                (self.is_connected, self.was_connected) = (true, true);
                self.packet_bytes = (bytes_best as usize).max(1);
                hear(CallEvent::Connected)?;
            }
            PacketsIndication::Sizes { bytes_best, .. } => self.packet_bytes = (bytes_best as usize).max(1),
            PacketsIndication::Room(room) => self.room = room,
            PacketsIndication::Packet(bytes) => {
                hear(CallEvent::Received(bytes))?;
                self.request(PacketsRequest::Release(1))?;
            }
            PacketsIndication::Acknowledged(packets) => self.acknowledged = packets,
            PacketsIndication::Closed(reason) => return Ok(Some(self.end(Some(reason)))),
        }
        Ok(None)
    }

    /// Tells that the line to the TNC was lost since the last time.
    fn tell_loss(&mut self, hear: &mut impl FnMut(CallEvent) -> io::Result<()>) -> io::Result<()> {
        if self.driver.lost() > self.lost
            && let Some(why) = self.driver.engine().0.lower.why_down()
        {
            self.lost = self.driver.lost();
            hear(CallEvent::Lost(why))?;
        }
        Ok(())
    }

    /// Passes texts down as far as there is room; after the last one, the end of the link.
    fn send(&mut self) -> io::Result<()> {
        while self.is_connected
            && self.room > 0
            && let Some(text) = self.waiting.front_mut()
        {
            let packet = text.split_to(text.len().min(self.packet_bytes));
            if text.is_empty() {
                self.waiting.pop_front();
            }
            self.room -= 1;
            self.sent += 1;
            self.request(PacketsRequest::payload(packet))?;
        }
        if self.input_ended && self.waiting.is_empty() && !self.is_closing {
            self.is_closing = true;
            self.request(PacketsRequest::Close)?;
        }
        Ok(())
    }

    fn end(&self, reason: Option<CloseReason>) -> CallEnd {
        CallEnd {
            was_connected: self.was_connected,
            reason,
            unacknowledged: self.sent.saturating_sub(self.acknowledged),
            unsent: self.waiting.len(),
        }
    }
}
