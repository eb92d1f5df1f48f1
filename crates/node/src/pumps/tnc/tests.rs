//! The driver over TCP and over a serial line: a pseudo-terminal.

use super::*;
use bytes::{Bytes, BytesMut};
use longwire_proto::ax25::{self, Station};
use longwire_proto::controller::{self, ChannelParameters};
use longwire_proto::joint::Stack;
use longwire_proto::kiss::{Acknowledgement, Command, Config, Deframer, Frame, KissTnc, enclose};
use longwire_proto::service::{
    DatagramsRequest, FramesIndication, FramesRequest, LinkId, PacketsRequest, PeerId, Port, Shares,
};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::net::unix::pipe;

/// Upper bound for every wait.
const BOUND: Duration = Duration::from_secs(240);

fn config() -> Config {
    Config { acknowledgement: Acknowledgement::Always, ..Config::default() }
}

fn tnc() -> KissTnc {
    let channel =
        ChannelParameters { rate_bps: 1_000_000, tx_delay: Duration::ZERO, ..ChannelParameters::default() };
    let reconnect_min = Duration::from_millis(1);
    KissTnc::new(config(), controller::Config { channel, reconnect_min, ..controller::Config::default() })
}

/// TNC operated by the test.
struct Far<T> {
    wire: T,
    deframer: Deframer,
    rest: Bytes,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Far<T> {
    fn new(wire: T) -> Self {
        Far { wire, deframer: Deframer::new(), rest: Bytes::new() }
    }

    async fn hear(&mut self) -> Command {
        loop {
            if let Some(content) = self.deframer.next(&mut self.rest) {
                return Frame::decode(&mut content.clone()).unwrap().body;
            }
            let mut buffer = vec![0; 4096];
            let length = self.wire.read(&mut buffer).await.unwrap();
            assert!(length > 0, "the line ended");
            self.rest = Bytes::copy_from_slice(&buffer[..length]);
        }
    }

    async fn say(&mut self, body: Command) {
        let mut line = BytesMut::new();
        enclose(&Frame { port: 0, body }, config().checksum, &mut line);
        self.wire.write_all(&line).await.unwrap();
    }

    /// Receives the parameters and two frames of a burst, acknowledges the last, and sends a frame.
    async fn converse(&mut self) {
        for _ in 0..5 {
            assert!(!matches!(self.hear().await, Command::Data(_)));
        }
        assert_eq!(self.hear().await, Command::Data(every_octet()));
        let Command::DataAcknowledged { token, bytes } = self.hear().await else {
            panic!("no acknowledgement is asked for")
        };
        assert_eq!(bytes, every_octet());
        self.say(Command::DataAcknowledged { token, bytes: Bytes::new() }).await;
        self.say(Command::Data(every_octet())).await;
    }
}

/// Every octet, for lines that are not transparent.
fn every_octet() -> Bytes {
    (0..=255).collect::<Vec<u8>>().into()
}

/// Sends two frames when there is room, and returns when both have left and one was received.
async fn converse(driver: &mut Driver<KissTnc>) {
    let (mut sent, mut left, mut came) = (false, false, false);
    while !(left && came) {
        match driver.next().await {
            FramesIndication::Carrier(true) => driver.request(FramesRequest::Seize).unwrap(),
            FramesIndication::Room(room) if room >= 2 && !sent => {
                sent = true;
                for (token, last) in [(None, false), (Some(7), true)] {
                    let (bytes, shares) = (every_octet(), Shares::default());
                    driver.request(FramesRequest::Frame { bytes, token, last, shares }).unwrap();
                }
            }
            FramesIndication::Transmitted(token) => left = token == 7,
            FramesIndication::Frame(bytes) => came = bytes == every_octet(),
            _ => {}
        }
    }
}

#[tokio::test]
async fn frames_go_over_a_serial_line() {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    fcntl_setfl(&master, OFlags::NONBLOCK).unwrap();
    let path = ptsname(&master, vec![]).unwrap();
    let line: LineAddress = format!("{}@38400", path.to_str().unwrap()).parse().unwrap();
    let reads = pipe::Receiver::from_owned_fd_unchecked(master.try_clone().unwrap()).unwrap();
    let master = tokio::io::join(reads, pipe::Sender::from_owned_fd_unchecked(master).unwrap());
    let mut driver = Driver::new(tnc(), line);
    driver.request(FramesRequest::Join).unwrap();
    let mut far = Far::new(master);
    let both = async { tokio::join!(converse(&mut driver), far.converse()) };
    tokio::time::timeout(BOUND, both).await.unwrap();
    assert_eq!((driver.engine().counters().sent, driver.engine().counters().received), (2, 1));
}

/// The TNC's program starts later, and is restarted.
#[tokio::test]
async fn a_lost_line_over_tcp_is_taken_up_again() {
    // A loopback address of this process, and below the ephemeral ports: nobody else gets it.
    let [_, a, b, c] = std::process::id().to_be_bytes();
    let address = SocketAddr::from(([127, 64 | a, b, c], 10_000));
    let mut driver = Driver::new(tnc(), address.to_string().parse().unwrap());
    driver.request(FramesRequest::Join).unwrap();
    let story = async {
        while driver.lost() == 0 {
            let _ = driver.step().await;
        }
        let listener = TcpListener::bind(address).await.unwrap();
        for round in 1..=2 {
            let far = async { Far::new(listener.accept().await.unwrap().0).converse().await };
            tokio::join!(converse(&mut driver), far);
            assert_eq!(driver.engine().counters().connections, round);
            while driver.next().await != FramesIndication::Carrier(false) {}
        }
    };
    tokio::time::timeout(BOUND, story).await.unwrap();
}

#[test]
fn lines_are_read() {
    let serial = |path: &str, speed_bps| Ok(LineAddress::Serial { path: path.into(), speed_bps });
    assert_eq!("127.0.0.1:8001".parse(), Ok(LineAddress::Tcp("127.0.0.1:8001".into())));
    assert_eq!("/dev/ttyUSB0".parse(), serial("/dev/ttyUSB0", 9600));
    assert_eq!("/dev/ttyUSB0@1200".parse(), serial("/dev/ttyUSB0", 1200));
    for wrong in ["", "8001", ":8001", "tnc:kiss", "/dev/ttyUSB0@fast"] {
        assert!(wrong.parse::<LineAddress>().is_err(), "{wrong}");
    }
}

#[test]
fn a_place_says_what_is_spoken_there() {
    let server = LineAddress::Tcp("pi:8000".into());
    assert_eq!("agwpe:pi:8000".parse(), Ok(TncAddress::Agwpe(server.clone())));
    assert_eq!("pi:8000".parse(), Ok(TncAddress::Kiss(server.clone())));
    assert_eq!(TncAddress::Agwpe(server).to_string(), "agwpe:pi:8000");
    for wrong in ["agwpe:", "agwpe:pi", "agwpe:/dev/ttyUSB0", "agwpe://pi:8000/"] {
        assert_eq!(
            wrong.parse::<TncAddress>().map_err(|hint| hint.contains("agwpe:127.0.0.1:8000")),
            Err(true)
        );
    }
}

/// A program that sends without room gets an error, and earlier requests continue.
#[tokio::test]
async fn what_there_is_no_room_for_is_refused_and_ends_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let config = controller::Config { burst_frames_max: 2, ..controller::Config::default() };
    let mut driver = Driver::new(KissTnc::new(self::config(), config), address.to_string().parse().unwrap());
    let frame =
        || FramesRequest::Frame { bytes: every_octet(), token: None, last: false, shares: Shares::default() };
    assert_eq!(driver.request(frame()), Err(RequestRefused::NoRoom), "nobody has said that there is any");
    driver.request(FramesRequest::Join).unwrap();
    let story = async {
        let stands = async { while driver.next().await != FramesIndication::Carrier(true) {} };
        let (far, ()) = tokio::join!(listener.accept(), stands);
        let _far = far.unwrap();
        assert_eq!(driver.request(frame()), Err(RequestRefused::NoRoom), "the channel is not taken");
        driver.request(FramesRequest::Seize).unwrap();
        while driver.next().await != FramesIndication::Room(2) {}
        let asked = [0; 3].map(|_| driver.request(frame()));
        assert_eq!(asked, [Ok(()), Ok(()), Err(RequestRefused::NoRoom)]);
    };
    tokio::time::timeout(BOUND, story).await.unwrap();
    assert_eq!(driver.engine().counters().sent, 2);
    // Packets of a link, and unconnected frames.
    let station = Station::new(ax25::Config::new("ALICE".parse().unwrap()));
    let mut driver = Driver::new(Stack::new(station, tnc()), address.to_string().parse().unwrap());
    let packet = Port::First((LinkId(1), PacketsRequest::payload(every_octet())));
    assert_eq!(driver.request(packet), Err(RequestRefused::NoRoom));
    let (to, bytes, shares) = (PeerId::CONFIGURED, every_octet(), Shares::default());
    let datagram = Port::Second((LinkId(1), DatagramsRequest::Datagram { to, bytes, shares, token: None }));
    assert_eq!(driver.request(datagram), Err(RequestRefused::NoRoom));
    assert_eq!(driver.request(Port::First((LinkId(1), PacketsRequest::Connect))), Ok(()));
}
