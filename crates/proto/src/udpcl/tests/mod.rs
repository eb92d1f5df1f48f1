//! Links over datagrams: scenarios, codec and laws.

mod codec;
mod datagrams;
mod hostile;
mod laws;
mod receiving;
mod sending;

use super::wire::{Place, Transfer};
use super::{Config, Link};
use crate::engine::{Engine, drain};
use crate::rng::Rng;
use crate::service::{
    BundlesIndication, BundlesRequest, DatagramsIndication, DatagramsRequest, PeerId, Priority, Shares,
    TransferFailure, TransferId,
};
use crate::time::{Duration, Instant};
use bytes::Bytes;

const SECOND: Duration = Duration::from_secs(1);

/// A link, its last output, the time of it, and the room that it has granted.
struct Scene {
    link: Link,
    now: Instant,
    up: Vec<BundlesIndication>,
    down: Vec<DatagramsRequest>,
    told: u64,
}

impl Scene {
    fn new(config: Config) -> Self {
        let mut scene = Scene {
            link: Link::new(config, Rng::new(1)),
            now: Instant::ZERO,
            up: vec![],
            down: vec![],
            told: 0,
        };
        scene.ask(BundlesRequest::Connect);
        assert_eq!(scene.down, [DatagramsRequest::Join { damaged: false }]);
        scene.hear(joined(Some(PeerId::CONFIGURED)));
        scene.hear(DatagramsIndication::Room(100));
        scene
    }

    fn settle(&mut self) {
        (self.up, self.down) = (vec![], vec![]);
        let (up, down) = (&mut self.up, &mut self.down);
        drain(&mut self.link, self.now, |said| up.push(said), |asked| down.push(asked));
        for said in &self.up {
            match said {
                BundlesIndication::Room(room) => self.told = *room,
                BundlesIndication::Down { .. } => self.told = 0,
                _ => {}
            }
        }
    }

    fn ask(&mut self, request: BundlesRequest) {
        self.link.handle_request(self.now, request);
        self.settle();
    }

    fn hear(&mut self, indication: DatagramsIndication) {
        self.link.handle_indication(self.now, indication);
        self.settle();
    }

    fn open(&mut self, number: u64, length: u64) {
        self.ask(BundlesRequest::Open { transfer: TransferId(number), priority: Priority::Normal, length });
    }

    fn piece(&mut self, number: u64, data: &[u8], last: bool) {
        let data = Bytes::copy_from_slice(data);
        self.told = self.told.saturating_sub(data.len() as u64);
        self.ask(BundlesRequest::Piece { transfer: TransferId(number), data, last });
    }

    /// The bundles that rose last.
    fn risen(&self) -> Vec<Vec<u8>> {
        let mut bundles: Vec<Vec<u8>> = Vec::new();
        for said in &self.up {
            match said {
                BundlesIndication::Begin { .. } => bundles.push(Vec::new()),
                BundlesIndication::Piece { data, .. } => {
                    bundles.last_mut().expect("it has begun").extend_from_slice(data);
                }
                _ => {}
            }
        }
        bundles
    }

    /// The number of the bundle that rose last.
    fn last_begun(&self) -> Option<TransferId> {
        self.up.iter().rev().find_map(|said| match said {
            BundlesIndication::Begin { transfer, .. } => Some(*transfer),
            _ => None,
        })
    }

    /// Advances to the next deadline, and returns the time until it.
    fn wait(&mut self) -> Duration {
        let at = self.link.poll_timeout().expect("it waits for something");
        let waited = at.saturating_since(self.now);
        self.now = at;
        self.link.handle_timeout(at);
        self.settle();
        waited
    }
}

fn joined(peer: Option<PeerId>) -> DatagramsIndication {
    DatagramsIndication::Joined { bytes_max: 65_507, peer, group: None }
}

fn to_peer(bytes: &Bytes, shares: Shares) -> DatagramsRequest {
    DatagramsRequest::Datagram { to: PeerId::CONFIGURED, bytes: bytes.clone(), shares, token: None }
}

fn failed(number: u64, reason: TransferFailure) -> BundlesIndication {
    BundlesIndication::Failed { transfer: TransferId(number), reason, acked: 0 }
}

/// A packet with a transfer in one segment.
fn single(id: u64, data: &[u8]) -> Bytes {
    Transfer { id, place: None, data: Bytes::copy_from_slice(data) }.to_packet()
}

/// A packet with a segment of a transfer.
fn segment(id: u64, total_bytes: u64, offset: u64, data: &[u8]) -> Bytes {
    let place = Some(Place { total_bytes, offset });
    Transfer { id, place, data: Bytes::copy_from_slice(data) }.to_packet()
}

/// A datagram of the configured peer.
fn datagram(bytes: &[u8]) -> DatagramsIndication {
    datagram_from(PeerId::CONFIGURED, bytes)
}

fn datagram_from(from: PeerId, bytes: &[u8]) -> DatagramsIndication {
    let bytes = Bytes::copy_from_slice(bytes);
    DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false }
}
