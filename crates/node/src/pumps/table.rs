//! All pumps of streams: those of links and those of lines to TNCs.
//!
//! A pump accepts everything that it is told to write, so that an abort never waits behind data; the room that is granted for it is
//! counted here. Connections that share a limit get only a small share each while all of them together have queued that much.
//!
//! Units: bytes.

use super::connect::Calling;
use super::pace::Pace;
use super::receive_budget::SHARE_BYTES;
use super::stream::{ByteStream, ConnectionLimits, PumpCommand, PumpEvent, pump, reason_of};
use crate::tell::Tell;
use longwire_proto::service::CloseReason;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Ends of a pump.
pub(crate) enum Source {
    /// An open connection.
    Stream(Box<dyn ByteStream>),
    /// A connection attempt in progress.
    Calling(Calling),
}

/// Limit of the bytes that are queued for a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum QueueLimit {
    /// Limit of this connection alone, bytes.
    Own(u64),
    /// Limit of this connection while it is not fast, bytes, which also count in the sum of all connections with this kind of limit.
    Shared(u64),
}

/// Event of a pump.
#[derive(Debug)]
pub(crate) struct PumpReport<Key> {
    pub(crate) key: Key,
    /// Number of the pump: the events of earlier pumps with the same key are ignored.
    number: u64,
    event: PumpEvent,
}

impl<Key> PumpReport<Key> {
    /// Number of bytes that were passed to the kernel, if it tells that.
    pub(crate) fn written(&self) -> Option<u64> {
        if let PumpEvent::Written(bytes) = self.event { Some(bytes) } else { None }
    }
}

/// A pump that has been started and has not been closed.
#[derive(Debug)]
struct OpenPump {
    number: u64,
    commands: mpsc::UnboundedSender<PumpCommand>,
    /// Address of the other end.
    address: String,
    limit: QueueLimit,
    /// Bytes queued and not yet accepted by the kernel.
    queued: u64,
    pace: Pace,
    /// True once the connection is established.
    stands: bool,
}

/// All pumps of streams, by key.
#[derive(Debug)]
pub(crate) struct Pumps<Key> {
    pumps: BTreeMap<Key, OpenPump>,
    made: u64,
    /// Bytes queued for all connections with a shared limit.
    queued: u64,
    queued_max: u64,
    /// True while the shared limit is reached.
    is_full: bool,
    /// Pumps whose room has changed.
    changed: BTreeSet<Key>,
    tell: Tell<PumpReport<Key>>,
}

impl<Key: Copy + Ord + Send + Sync + Unpin + 'static> Pumps<Key> {
    /// No pumps yet. `queued_max`: the shared limit; `tell`: receives the events of the pumps.
    pub(crate) fn new(queued_max: u64, tell: Tell<PumpReport<Key>>) -> Self {
        Pumps {
            pumps: BTreeMap::new(),
            made: 0,
            queued: 0,
            queued_max,
            is_full: false,
            changed: BTreeSet::new(),
            tell,
        }
    }

    /// Starts a pump in place of the one that has this key.
    pub(crate) fn open(
        &mut self,
        key: Key,
        address: String,
        source: Source,
        limits: ConnectionLimits,
        limit: QueueLimit,
    ) {
        self.close(key);
        self.made += 1;
        let number = self.made;
        let (commands, commanded) = mpsc::unbounded_channel();
        let pace = Pace::new(Instant::now());
        self.pumps.insert(key, OpenPump { number, commands, address, limit, queued: 0, pace, stands: false });
        let tell = self.tell.clone();
        let tell = move |event| {
            tell.tell(PumpReport { key, number, event });
        };
        tokio::spawn(run(source, commanded, limits, tell));
    }

    /// Passes on a command; without a pump nothing happens.
    pub(crate) fn command(&mut self, key: Key, command: PumpCommand) {
        let Some(pump) = self.pumps.get_mut(&key) else { return };
        if let PumpCommand::Write(bytes) = &command {
            pump.queued += bytes.len() as u64;
            if let QueueLimit::Shared(_) = pump.limit {
                self.queued += bytes.len() as u64;
                pump.pace.queued(Instant::now);
            }
        }
        // A pump that has ended has sent an event about it, which arrives soon.
        let _ = pump.commands.send(command);
    }

    /// Takes an event into account. Returns what is left to handle; `None` for a pump that is gone, and if only the room has
    /// changed. After `Closed` the pump keeps its place until it is closed here.
    pub(crate) fn hear(&mut self, said: PumpReport<Key>) -> Option<PumpEvent> {
        let PumpReport { key, number, event } = said;
        let pump = self.pumps.get_mut(&key).filter(|pump| pump.number == number)?;
        match event {
            PumpEvent::Connected { .. } => {
                pump.stands = true;
                self.changed.insert(key);
            }
            PumpEvent::Written(bytes) => {
                pump.queued -= bytes;
                if let QueueLimit::Shared(limit) = pump.limit {
                    self.queued -= bytes;
                    pump.pace.passed(Instant::now(), bytes, pump.queued, limit);
                }
                self.changed.insert(key);
                return None;
            }
            _ => {}
        }
        Some(event)
    }

    /// Returns the room of each connection with a shared limit if it has changed. When the sum of what is queued reaches its
    /// limit, the room granted before is void.
    pub(crate) fn shared_rooms(&mut self) -> Vec<(Key, u64)> {
        let is_full = self.queued >= self.queued_max;
        let shares = |pump: &OpenPump| matches!(pump.limit, QueueLimit::Shared(_));
        if std::mem::replace(&mut self.is_full, is_full) != is_full {
            self.changed.extend(self.pumps.iter().filter(|(_, pump)| shares(pump)).map(|(key, _)| *key));
        }
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().filter_map(|key| Some((key, self.room_of(key)?))).collect()
    }

    /// Returns the room of a connection if it has changed.
    pub(crate) fn room(&mut self, key: Key) -> Option<u64> {
        self.changed.take(&key).and_then(|key| self.room_of(key))
    }

    fn room_of(&self, key: Key) -> Option<u64> {
        let pump = self.pumps.get(&key).filter(|pump| pump.stands)?;
        let most = match pump.limit {
            QueueLimit::Shared(bytes) if self.is_full => bytes.min(SHARE_BYTES),
            QueueLimit::Shared(bytes) => {
                // Several fast connections must not take from the others all that is left.
                let left = self.queued_max.saturating_sub(self.queued);
                pump.pace.limit(bytes).min(bytes.max(left / self.pumps.len() as u64))
            }
            QueueLimit::Own(bytes) => bytes,
        };
        Some(most.saturating_sub(pump.queued))
    }

    /// Ends a pump and forgets it; returns false if there is none.
    pub(crate) fn close(&mut self, key: Key) -> bool {
        let Some(gone) = self.pumps.remove(&key) else { return false };
        if let QueueLimit::Shared(_) = gone.limit {
            self.queued -= gone.queued;
        }
        true
    }

    /// Address of the other end.
    pub(crate) fn address(&self, key: Key) -> Option<&str> {
        self.pumps.get(&key).map(|pump| pump.address.as_str())
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        self.pumps.keys().copied()
    }

    /// Bytes queued for all connections with a shared limit.
    pub(crate) fn queued(&self) -> u64 {
        self.queued
    }
}

/// Opens a connection and copies its bytes until it ends.
async fn run(
    source: Source,
    mut commands: mpsc::UnboundedReceiver<PumpCommand>,
    limits: ConnectionLimits,
    tell: impl Fn(PumpEvent) + Unpin,
) {
    let wire = match source {
        Source::Stream(wire) => Ok(wire),
        Source::Calling(mut calling) => tokio::select! {
            wire = &mut calling => wire,
            // The only command to a connection that is not established is to end it.
            _ = commands.recv() => return tell(PumpEvent::Closed(CloseReason::Aborted)),
        },
    };
    match wire {
        Ok(wire) => pump(wire, commands, limits, tell).await,
        Err(error) => tell(PumpEvent::Closed(reason_of(&error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pumps::receive_budget::ReceiveBudget;
    use crate::write_timeout::WriteTimeout;
    use std::sync::Arc;
    use std::time::Duration;

    const QUEUE_BYTES: u64 = 100 * 1024;
    const ALL_BYTES: u64 = 64 * 1024;

    /// Pumps whose events the test hears.
    struct Scene {
        pumps: Pumps<u8>,
        said: mpsc::UnboundedReceiver<PumpReport<u8>>,
    }

    impl Scene {
        fn new() -> Self {
            let (tell, said) = mpsc::unbounded_channel::<PumpReport<u8>>();
            Scene { pumps: Pumps::new(ALL_BYTES, Tell::to(&tell, |said| said)), said }
        }

        fn open(&mut self, key: u8, source: Source, limit: QueueLimit) {
            let patience = WriteTimeout::new(Duration::from_secs(300));
            let all = Arc::new(ReceiveBudget::new(1 << 20));
            let limits = ConnectionLimits { bytes: 1 << 20, all, patience };
            self.pumps.open(key, format!("peer {key}"), source, limits, limit);
        }

        /// Opens a connection whose other end takes nothing after `buffer` bytes, and waits until it stands.
        async fn stands(&mut self, key: u8, buffer: usize, limit: QueueLimit) -> tokio::io::DuplexStream {
            let (here, there) = tokio::io::duplex(buffer);
            self.open(key, Source::Stream(Box::new(here)), limit);
            let said = self.said.recv().await.expect("a pump");
            assert!(matches!(self.pumps.hear(said), Some(PumpEvent::Connected { .. })));
            there
        }
    }

    #[tokio::test]
    async fn while_all_have_queued_too_much_each_gets_a_share_and_a_line_has_its_own_room() {
        let mut scene = Scene::new();
        let shared = QueueLimit::Shared(QUEUE_BYTES);
        let _one = scene.stands(1, 1, shared).await;
        let _two = scene.stands(2, 1, shared).await;
        let _line = scene.stands(9, 1, QueueLimit::Own(QUEUE_BYTES)).await;
        assert_eq!(scene.pumps.room(9), Some(QUEUE_BYTES));
        assert_eq!(scene.pumps.room(9), None, "it has not changed since");
        assert_eq!(scene.pumps.shared_rooms(), [(1, QUEUE_BYTES), (2, QUEUE_BYTES)]);
        scene.pumps.command(9, PumpCommand::Write(vec![0; ALL_BYTES as usize].into()));
        assert_eq!((scene.pumps.queued(), scene.pumps.shared_rooms()), (0, vec![]));
        scene.pumps.command(1, PumpCommand::Write(vec![0; ALL_BYTES as usize].into()));
        assert_eq!(scene.pumps.queued(), ALL_BYTES);
        assert_eq!(scene.pumps.shared_rooms(), [(1, 0), (2, SHARE_BYTES)]);
        assert!(scene.pumps.close(1) && !scene.pumps.close(1));
        assert_eq!((scene.pumps.queued(), scene.pumps.shared_rooms()), (0, vec![(2, QUEUE_BYTES)]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_fast_connection_may_queue_more_but_not_all_that_others_need() {
        let cases =
            [(1000, 0, 8000), (10_000, 0, ALL_BYTES), (10_000, 4, ALL_BYTES / 5), (20_000, 4, 20_000)];
        for (limit, others, expected) in cases {
            let mut scene = Scene::new();
            let _there = scene.stands(1, 1 << 20, QueueLimit::Shared(limit)).await;
            let mut ends = Vec::new();
            for other in 0..others {
                ends.push(scene.stands(2 + other, 1, QueueLimit::Shared(limit)).await);
            }
            scene.pumps.shared_rooms();
            for time in 1..=8 {
                scene.pumps.command(1, PumpCommand::Write(vec![0; limit as usize].into()));
                while scene.pumps.queued() > 0 {
                    let said = scene.said.recv().await.expect("it writes");
                    scene.pumps.hear(said);
                }
                let room = if time < 8 { limit } else { expected };
                assert_eq!(scene.pumps.room(1), Some(room), "{limit} bytes, {others} others, {time}");
            }
        }
    }

    #[tokio::test]
    async fn of_a_pump_that_was_replaced_nothing_is_heard() {
        let mut scene = Scene::new();
        let ends = [(); 2].map(|()| {
            let (here, there) = tokio::io::duplex(1);
            scene.open(1, Source::Stream(Box::new(here)), QueueLimit::Own(QUEUE_BYTES));
            there
        });
        // The first one tells of its beginning and of its end, the second one of its beginning.
        let mut heard = Vec::new();
        for _ in 0..3 {
            let said = scene.said.recv().await.expect("a pump");
            heard.extend(scene.pumps.hear(said));
        }
        assert!(matches!(heard[..], [PumpEvent::Connected { .. }]), "{heard:?}");
        assert_eq!(scene.pumps.address(1), Some("peer 1"));
        assert_eq!(scene.pumps.keys().collect::<Vec<_>>(), [1]);
        drop(ends);
    }

    #[tokio::test]
    async fn a_command_ends_an_attempt_to_connect() {
        let mut scene = Scene::new();
        scene.open(1, Source::Calling(Box::pin(std::future::pending())), QueueLimit::Own(1));
        scene.pumps.command(1, PumpCommand::Close);
        let said = scene.said.recv().await.expect("it ends");
        assert!(matches!(scene.pumps.hear(said), Some(PumpEvent::Closed(CloseReason::Aborted))));
        assert_eq!((scene.pumps.room(1), scene.pumps.keys().count()), (None, 1), "it keeps its place");
        let failed = async { Err(std::io::ErrorKind::ConnectionRefused.into()) };
        scene.open(1, Source::Calling(Box::pin(failed)), QueueLimit::Own(1));
        let said = scene.said.recv().await.expect("it fails");
        assert!(matches!(scene.pumps.hear(said), Some(PumpEvent::Closed(CloseReason::Refused))));
    }
}
