//! Our station and its user.

use crate::direwolf::{Failure, OURS, Rig, THEIRS};
use bytes::Bytes;
use longwire_node::tnc::Driver;
use longwire_proto::ax25::{self, Frame, LinkConfig, Modulo, PeerStation, RadioParameters, Station, Version};
use longwire_proto::controller::{self, ChannelParameters};
use longwire_proto::joint::Stack;
use longwire_proto::kiss::{self, Acknowledgement, KissTnc};
use longwire_proto::service::{
    CloseReason, DatagramsIndication, DatagramsRequest, LinkId, PacketsIndication, PacketsRequest, PeerId,
    Port, Shares,
};
use std::time::Duration;

const LINK: LinkId = LinkId(1);
const EVERYBODY: LinkId = LinkId(2);

/// Our station over the KISS interface of a Dire Wolf, and its user.
pub(crate) struct Ours {
    pub(crate) driver: Driver<Stack<Station, KissTnc>>,
    link: LinkId,
    /// Packets that may be sent, and the preferred length of a packet.
    room: u64,
    bytes_best: usize,
    acknowledged: u64,
    heard: Vec<u8>,
    ended: Option<CloseReason>,
}

impl Ours {
    pub(crate) fn new(rig: &Rig, acknowledgement: Acknowledgement) -> Ours {
        Ours::at(rig, 0, acknowledgement)
    }

    /// At one station of the rig: the first one has our callsign, the second one that of its peer.
    pub(crate) fn at(rig: &Rig, at: usize, acknowledgement: Acknowledgement) -> Ours {
        let (own, peer) = if at == 0 { (OURS, THEIRS) } else { (THEIRS, OURS) };
        let air = rig.air;
        let (tx_delay, tx_tail) = (Duration::from_millis(150), Duration::from_millis(20));
        let slot_time = Duration::from_millis(20);
        let channel = ChannelParameters {
            rate_bps: air.rate_bps,
            tx_delay,
            tx_tail,
            slot_time,
            ..ChannelParameters::default()
        };
        let tnc = kiss::Config { acknowledgement, ..kiss::Config::default() };
        let tnc = KissTnc::new(tnc, controller::Config { channel, ..controller::Config::default() })
            .probing(Frame::identification(own.parse().unwrap()).to_bytes(Modulo::Eight));
        let link = LinkConfig {
            version: if air.is_extended() { Version::Best } else { Version::Plain },
            window_frames: air.window.min(7),
            extended_window_frames: air.window,
            ..LinkConfig::default()
        };
        let radio = RadioParameters {
            rate_bps: air.rate_bps,
            tx_delay,
            tx_tail,
            slot_time,
            ..RadioParameters::default()
        };
        let path = air.path().iter().map(|station| station.parse().unwrap()).collect();
        let peer = PeerStation { station: peer.parse().unwrap(), path, link: link.clone() };
        let config = ax25::Config { radio, callers: Some(link), ..ax25::Config::new(own.parse().unwrap()) };
        let everybody = PeerStation { station: "QST".parse().unwrap(), ..peer.clone() };
        let config = ax25::Config {
            peers: [(LINK, peer)].into(),
            unconnected: [(EVERYBODY, everybody)].into(),
            ..config
        };
        let stack = Stack::new(Station::new(config), tnc);
        let driver = Driver::new(stack, rig.kiss(at).parse().unwrap());
        Ours { driver, link: LINK, room: 0, bytes_best: 0, acknowledged: 0, heard: vec![], ended: None }
    }

    fn ask(&mut self, request: PacketsRequest) {
        self.driver.request(Port::First((self.link, request))).expect("it keeps to the room");
    }

    /// Waits until a frame to all stations is transmitted: Dire Wolf, which looks for new programs once a second, has found this
    /// one.
    pub(crate) async fn is_heard(&mut self, rig: &Rig) {
        let before = rig.channel.noted().said.len();
        self.driver.request(Port::Second((EVERYBODY, DatagramsRequest::Join { damaged: false }))).unwrap();
        while !matches!(self.driver.next().await, Port::Second((_, DatagramsIndication::Room(1..)))) {}
        let bytes = Bytes::from_static(b"on the air");
        let (to, shares) = (PeerId::CONFIGURED, Shares::payload(bytes.len()));
        let hello = DatagramsRequest::Datagram { to, bytes, shares, token: None };
        self.driver.request(Port::Second((EVERYBODY, hello))).unwrap();
        let record = rig.channel.record();
        let is_said = move || record.wait(|noted| noted.said.len() > before);
        self.meanwhile(tokio::task::spawn_blocking(is_said)).await.expect("it is transmitted");
    }

    /// Waits for the next event of the link.
    async fn step(&mut self) {
        let Port::First((link, said)) = self.driver.next().await else { return };
        self.link = link;
        match said {
            PacketsIndication::Connected { bytes_best, .. } => {
                (self.bytes_best, self.acknowledged) = (bytes_best as usize, 0);
            }
            PacketsIndication::Sizes { bytes_best, .. } => self.bytes_best = bytes_best as usize,
            PacketsIndication::Room(room) => self.room = room,
            PacketsIndication::Packet(bytes) => {
                self.heard.extend_from_slice(&bytes);
                self.ask(PacketsRequest::Release(1));
            }
            PacketsIndication::Acknowledged(packets) => self.acknowledged = packets,
            PacketsIndication::Closed(reason) => self.ended = Some(reason),
        }
    }

    async fn until(&mut self, holds: impl Fn(&Ours) -> bool) -> Result<(), Failure> {
        while !holds(self) {
            if let Some(reason) = self.ended {
                return Err(format!("our link has ended: {reason:?}"));
            }
            self.step().await;
        }
        Ok(())
    }

    pub(crate) async fn call(&mut self) -> Result<(), Failure> {
        self.ask(PacketsRequest::Connect);
        self.called().await
    }

    /// Waits until a link is established, by either side.
    pub(crate) async fn called(&mut self) -> Result<(), Failure> {
        self.until(|ours| ours.bytes_best > 0).await
    }

    /// Sends everything and waits until the last packet is acknowledged.
    pub(crate) async fn send(&mut self, content: &[u8]) -> Result<(), Failure> {
        let before = self.acknowledged;
        let packets: Vec<_> = content.chunks(self.bytes_best).map(Bytes::copy_from_slice).collect();
        let sent = before + packets.len() as u64;
        for packet in packets {
            self.until(|ours| ours.room > 0).await?;
            self.room -= 1;
            self.ask(PacketsRequest::payload(packet));
        }
        self.until(|ours| ours.acknowledged == sent).await
    }

    pub(crate) async fn receive(&mut self, length: usize) -> Result<Vec<u8>, Failure> {
        self.until(|ours| ours.heard.len() >= length).await?;
        Ok(std::mem::take(&mut self.heard))
    }

    pub(crate) async fn close(&mut self) {
        self.ask(PacketsRequest::Close);
        self.closed().await;
    }

    /// Waits until the link has ended, by either side.
    pub(crate) async fn closed(&mut self) {
        while self.ended.is_none() {
            self.step().await;
        }
    }

    /// Keeps the station running while another future runs.
    pub(crate) async fn meanwhile<T>(&mut self, other: impl Future<Output = T>) -> T {
        tokio::pin!(other);
        loop {
            tokio::select! {
                done = &mut other => return done,
                () = self.step() => {}
            }
        }
    }
}
