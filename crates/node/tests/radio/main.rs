//! Our AX.25 over KISS beside Dire Wolf's own: two of them on one channel of sound, without a sound card.
//!
//! `./test radio` runs the long ones, which are ignored otherwise, and prints their table.

mod channel;
mod direwolf;

use bytes::Bytes;
use direwolf::{Air, Rig, is_installed};
use longwire_node::tnc::Driver;
use longwire_proto::ax25::{self, LinkConfig, Peer, Radio, Station, Version};
use longwire_proto::joint::Stack;
use longwire_proto::kiss::{self, Acknowledgement, Tnc};
use longwire_proto::rng::Rng;
use longwire_proto::service::{LinkId, PacketsIndication, PacketsRequest, Port};
use std::time::{Duration, Instant};

const OURS: &str = "OURS";
const THEIRS: &str = "THEIRS";
const LINK: LinkId = LinkId(1);
/// The file of the published measurements, bytes.
const FILE_BYTES: usize = 7182;

/// Our station over the KISS interface of a Dire Wolf, and its user.
struct Ours {
    driver: Driver<Stack<Station, Tnc>>,
    link: LinkId,
    /// Packets that may be handed down, and the length of the best.
    room: u64,
    bytes_best: usize,
    acknowledged: u64,
    heard: Vec<u8>,
}

impl Ours {
    fn new(rig: &Rig, air: Air, acknowledgement: Acknowledgement) -> Ours {
        let (tx_delay, tx_tail) = (Duration::from_millis(150), Duration::from_millis(20));
        let slot_time = Duration::from_millis(20);
        let tnc = kiss::Config {
            rate_bps: air.rate_bps,
            tx_delay,
            tx_tail,
            slot_time,
            acknowledgement,
            ..kiss::Config::default()
        };
        let link = LinkConfig {
            version: if air.is_extended() { Version::Best } else { Version::Plain },
            window_frames: air.window.min(7),
            extended_window_frames: air.window,
            ..LinkConfig::default()
        };
        let radio = Radio { rate_bps: air.rate_bps, tx_delay, tx_tail, slot_time, ..Radio::default() };
        let station = OURS.parse().unwrap();
        let peer = Peer { station: THEIRS.parse().unwrap(), path: vec![], link: link.clone() };
        let config = ax25::Config { radio, callers: Some(link), ..ax25::Config::new(station) };
        let config = ax25::Config { peers: [(LINK, peer)].into(), ..config };
        let stack = Stack::new(Station::new(config), Tnc::new(tnc));
        let driver = Driver::new(stack, rig.kiss(0).parse().unwrap());
        Ours { driver, link: LINK, room: 0, bytes_best: 0, acknowledged: 0, heard: vec![] }
    }

    fn ask(&mut self, request: PacketsRequest) {
        self.driver.request(Port::First((self.link, request)));
    }

    /// The next thing that happens to the link; true: it is over.
    async fn step(&mut self) -> bool {
        let Port::First((link, said)) = self.driver.next().await else { return false };
        self.link = link;
        match said {
            PacketsIndication::Connected { bytes_best, .. } => {
                (self.bytes_best, self.acknowledged) = (bytes_best as usize, 0);
            }
            PacketsIndication::Room(room) => self.room = room,
            PacketsIndication::Packet(bytes) => {
                self.heard.extend_from_slice(&bytes);
                self.ask(PacketsRequest::Release(1));
            }
            PacketsIndication::Acknowledged(packets) => self.acknowledged = packets,
            PacketsIndication::Closed(reason) => {
                self.bytes_best = 0;
                eprintln!("our link has ended: {reason:?}");
                return true;
            }
        }
        false
    }

    async fn until(&mut self, holds: impl Fn(&Ours) -> bool) {
        while !holds(self) {
            assert!(!self.step().await || holds(self), "the link has ended");
        }
    }

    async fn call(&mut self) {
        self.ask(PacketsRequest::Connect);
        self.until(|ours| ours.bytes_best > 0).await;
    }

    /// Until the last packet is acknowledged.
    async fn send(&mut self, content: &[u8]) {
        let before = self.acknowledged;
        let packets: Vec<_> = content.chunks(self.bytes_best).map(Bytes::copy_from_slice).collect();
        let sent = before + packets.len() as u64;
        for packet in packets {
            self.until(|ours| ours.room > 0).await;
            self.room -= 1;
            self.ask(PacketsRequest::Packet(packet));
        }
        self.until(|ours| ours.acknowledged == sent).await;
    }

    async fn receive(&mut self, length: usize) -> Vec<u8> {
        self.until(|ours| ours.heard.len() >= length).await;
        std::mem::take(&mut self.heard)
    }

    async fn close(&mut self) {
        self.ask(PacketsRequest::Close);
        while !self.step().await {}
    }

    /// The peer has ended the link.
    async fn closed(&mut self) {
        while !self.step().await {}
    }

    /// Keeps the station alive while somebody else does something.
    async fn meanwhile<T>(&mut self, other: impl Future<Output = T>) -> T {
        tokio::pin!(other);
        loop {
            tokio::select! {
                done = &mut other => return done,
                _ = self.step() => {}
            }
        }
    }
}

fn content(length: usize, name: &str) -> Vec<u8> {
    let mut content = vec![0; length];
    Rng::new(1).fork(name).fill(&mut content);
    content
}

/// We call, and every byte arrives in both directions; the TNC does not know acknowledgement mode, and that is found out.
#[tokio::test]
async fn a_short_transfer_both_ways() {
    if !is_installed() {
        return;
    }
    let air = Air { rate_bps: 9600, window: 4 };
    let rig = Rig::start("short", air);
    let mut ours = Ours::new(&rig, air, Acknowledgement::Probe);
    let mut theirs = rig.user(1, THEIRS).await;
    let (there, back) = (content(900, "there"), content(700, "back"));
    let story = async {
        tokio::join!(ours.call(), theirs.called());
        let (_, heard) = tokio::join!(ours.send(&there), theirs.receive(there.len()));
        assert!(heard == there, "every byte is as it was sent");
        theirs.send(&back).await;
        assert!(ours.receive(back.len()).await == back, "every byte is as it was sent");
        tokio::join!(ours.close(), theirs.closed());
    };
    tokio::time::timeout(Duration::from_secs(90), story).await.unwrap();
    assert_eq!(ours.driver.engine().lower.acknowledges(), Some(false));
}

/// We send, from the call to the last acknowledgement.
async fn sending(rig: &Rig, air: Air, file: &[u8]) -> Duration {
    let mut ours = Ours::new(rig, air, Acknowledgement::Never);
    let mut theirs = rig.user(1, THEIRS).await;
    let began = Instant::now();
    tokio::join!(ours.call(), theirs.called());
    let (taken, heard) = tokio::join!(
        async {
            ours.send(file).await;
            began.elapsed()
        },
        theirs.receive(file.len())
    );
    assert!(heard == file, "every byte is as it was sent");
    tokio::join!(ours.close(), theirs.closed());
    taken
}

/// A Dire Wolf sends to us.
async fn receiving(rig: &Rig, air: Air, file: &[u8]) -> Duration {
    let mut ours = Ours::new(rig, air, Acknowledgement::Never);
    let mut theirs = rig.user(1, THEIRS).await;
    let began = Instant::now();
    ours.meanwhile(theirs.call(OURS)).await;
    theirs.send(file).await;
    assert!(ours.receive(file.len()).await == file, "every byte is as it was sent");
    ours.meanwhile(theirs.is_acknowledged()).await;
    let taken = began.elapsed();
    tokio::join!(ours.closed(), theirs.close());
    taken
}

/// A Dire Wolf sends to a Dire Wolf.
async fn beside(rig: &Rig, file: &[u8]) -> Duration {
    let (mut one, mut other) = (rig.user(0, OURS).await, rig.user(1, THEIRS).await);
    let began = Instant::now();
    tokio::join!(one.call(THEIRS), other.called());
    one.send(file).await;
    let heard = other.receive(file.len()).await;
    assert!(heard == file, "every byte is as it was sent");
    one.is_acknowledged().await;
    let taken = began.elapsed();
    tokio::join!(one.close(), other.closed());
    taken
}

/// The file in each direction, at each rate and window, beside Dire Wolf to Dire Wolf on the same rig.
#[tokio::test]
#[ignore = "minutes of real time: ./test radio"]
async fn table() {
    if !is_installed() {
        return;
    }
    let file = content(FILE_BYTES, "file");
    let rigs =
        [1200, 9600].into_iter().flat_map(|rate_bps| [1, 4, 7, 32].map(|window| Air { rate_bps, window }));
    let runs = rigs.map(|air| {
        let file = file.clone();
        async move {
            let rig = Rig::start(&format!("{}-{}", air.rate_bps, air.window), air);
            let times = [
                tokio::time::timeout(BOUND, sending(&rig, air, &file)).await,
                tokio::time::timeout(BOUND, receiving(&rig, air, &file)).await,
                tokio::time::timeout(BOUND, beside(&rig, &file)).await,
            ];
            (air, times.map(|time| time.expect("it comes to an end").as_secs_f64()))
        }
    });
    let runs: Vec<_> = runs.collect();
    let all = futures_util::future::join_all(runs).await;
    println!("rate bit/s  window  we send s  we receive s  Dire Wolf to Dire Wolf s");
    for (Air { rate_bps, window }, [sends, receives, beside]) in all {
        println!("{rate_bps:>10}  {window:>6}  {sends:>9.1}  {receives:>12.1}  {beside:>24.1}");
    }
}

/// A file of this length takes 74 s at the most when all goes well.
const BOUND: Duration = Duration::from_secs(300);
