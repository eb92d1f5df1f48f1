//! Dire Wolf as a program, and its users over AGW.

use crate::channel::{Channel, Record, SAMPLES_HZ, TICK, pipe};
use crate::common::DEADLINE;
use bytes::{Bytes, BytesMut};
use longwire_proto::agwpe::{Frame, Kind, Queued, Registered, StationName, Via};
use longwire_proto::codec::DecodeError;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Callsigns of the stations.
pub(crate) const OURS: &str = "OURS";
pub(crate) const THEIRS: &str = "THEIRS";
/// Callsign of the digipeater, if there is one.
pub(crate) const BETWEEN: &str = "DIGI";

/// Reason for a failure.
pub(crate) type Failure = String;

/// Properties of the channel of a rig.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Air {
    pub(crate) rate_bps: u32,
    /// Window, frames; above 7: modulo 128.
    pub(crate) window: u8,
    /// Percentage of frames that are destroyed.
    pub(crate) destroyed_percent: u32,
    /// True for two stations that do not hear each other, and a digipeater between them.
    pub(crate) digipeater: bool,
}

impl Air {
    pub(crate) fn is_extended(self) -> bool {
        self.window > 7
    }

    /// Digipeaters between the stations.
    pub(crate) fn path(self) -> Vec<&'static str> {
        if self.digipeater { vec![BETWEEN] } else { vec![] }
    }
}

struct Station {
    program: Child,
    home: PathBuf,
    kiss: Port,
    agw: Port,
}

impl Station {
    /// Starts a station on the first of these ports that are free by then.
    fn start(
        home: &Path,
        mut ports: impl Iterator<Item = Port>,
        configuration: impl Fn(u16, u16) -> String,
    ) -> Station {
        loop {
            let [kiss, agw] = [(); 2].map(|()| ports.next().expect("a free port"));
            std::fs::write(home.join("direwolf.conf"), configuration(kiss.number, agw.number)).unwrap();
            let program = Station::run(home);
            let mut station = Station { program, home: home.to_owned(), kiss, agw };
            if station.is_ready() {
                return station;
            }
        }
    }

    /// Starts the program in its folder, which contains its configuration.
    fn run(home: &Path) -> Child {
        Command::new("direwolf")
            .args(["-t", "0", "-q", "hd", "-c", "direwolf.conf"])
            .current_dir(home)
            .env("HOME", home)
            .stdin(File::open(home.join("heard")).unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Waits until it accepts connections, over KISS and over AGW. Returns false if another program has one of its ports.
    fn is_ready(&mut self) -> bool {
        let out = BufReader::new(self.program.stdout.take().unwrap());
        let (tell, told) = std::sync::mpsc::channel();
        // Later output is read, too, or the program would block.
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let is_ready = line.starts_with("Ready to accept");
                if is_ready || line.starts_with("Bind failed") {
                    let _ = tell.send(is_ready);
                }
            }
        });
        (0..2).all(|_| told.recv_timeout(DEADLINE).expect("Dire Wolf starts"))
    }

    /// Kills the program.
    fn end(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        self.end();
    }
}

/// Two Dire Wolfs on one channel, or three with a digipeater. All end on drop.
pub(crate) struct Rig {
    place: PathBuf,
    stations: Vec<Station>,
    pub(crate) air: Air,
    pub(crate) channel: Channel,
}

/// True if the program is installed; if not, prints that the test is skipped.
pub(crate) fn is_installed() -> bool {
    let found =
        Command::new("direwolf").arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("skipped: no direwolf (Debian package direwolf)");
    }
    found
}

/// A port for a program that is configured with its number. It is below the ephemeral ports, and other tests do not use it while
/// its UDP twin is held; another program that takes it in between is detected when this one starts.
struct Port {
    number: u16,
    _twin: UdpSocket,
}

impl Port {
    /// Reserves this port if nobody listens on it.
    ///
    /// A listener would tell more, but a program that another test starts holds a copy of it until it runs, and the port
    /// is taken that long.
    fn hold(number: u16) -> Option<Port> {
        let twin = UdpSocket::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        let is_free = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, number)).is_err();
        is_free.then_some(Port { number, _twin: twin })
    }

    /// Free ports, each time different ones.
    fn free() -> impl Iterator<Item = Port> {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let first = 16_000 + (std::process::id() % 64) as u16 * 200;
        let numbers = std::iter::repeat_with(move || first + NEXT.fetch_add(1, Ordering::Relaxed) % 3000);
        numbers.take(3000).filter_map(Port::hold)
    }
}

impl Rig {
    pub(crate) fn start(name: &str, air: Air) -> Rig {
        Rig::of(name, air, if air.digipeater { 3 } else { 2 })
    }

    /// Starts a rig with this many stations, at most three.
    pub(crate) fn of(name: &str, air: Air, stations: usize) -> Rig {
        let count = stations;
        let place = std::env::temp_dir().join(format!("longwire-radio-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        let mut stations = vec![];
        let mut ends = vec![];
        for own in [OURS, THEIRS, BETWEEN].iter().take(count) {
            let home = place.join(own);
            ends.push(furnish(&home));
            stations
                .push(Station::start(&home, Port::free(), |kiss, agw| configuration(air, own, kiss, agw)));
        }
        let channel = Channel::start(ends, air.rate_bps, air.digipeater.then_some([0, 1]));
        let heard = channel.all_listen();
        assert!(heard, "Dire Wolf hears");
        Rig { place, stations, air, channel }
    }

    /// Kills the program of a station and starts it again on the same ports.
    pub(crate) fn restart(&mut self, at: usize) {
        let station = &mut self.stations[at];
        station.end();
        station.program = Station::run(&station.home);
        assert!(station.is_ready(), "its ports are its own");
    }

    /// Address of the KISS interface of a station.
    pub(crate) fn kiss(&self, at: usize) -> String {
        format!("127.0.0.1:{}", self.stations[at].kiss.number)
    }

    /// Address of its AGWPE server, as in a node's configuration.
    pub(crate) fn agwpe(&self, at: usize) -> String {
        format!("agwpe:127.0.0.1:{}", self.stations[at].agw.number)
    }

    /// Connects a user with this callsign to a station.
    pub(crate) async fn user(&self, at: usize, own: &str) -> User {
        let stream = TcpStream::connect(("127.0.0.1", self.stations[at].agw.number)).await.unwrap();
        let own: StationName = own.parse().unwrap();
        let record = self.channel.record();
        let mut user = User { stream, input: BytesMut::new(), own, peer: StationName::NONE, record };
        user.say(Frame::new(Kind::Register).between(own, StationName::NONE)).await;
        let mut reply = user.hear_kind(Kind::Register).await.unwrap();
        assert_eq!(Registered::decode(&mut reply.data), Ok(Registered(true)));
        user
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stations.clear();
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

/// Creates the folder of a station; returns the pipes for its sound and for its input.
fn furnish(home: &Path) -> (File, File) {
    std::fs::create_dir_all(home).unwrap();
    let sound = home.join("sound");
    let ends = (pipe(&sound), pipe(&home.join("heard")));
    let asound =
        format!("pcm.radio {{ type file slave.pcm \"null\" file \"{}\" format \"raw\" }}\n", sound.display());
    std::fs::write(home.join(".asoundrc"), asound).unwrap();
    ends
}

fn configuration(air: Air, own: &str, kiss: u16, agw: u16) -> String {
    let Air { rate_bps, window, .. } = air;
    let versions = match air.is_extended() {
        true => String::new(),
        false => format!("V20 {OURS}\nV20 {THEIRS}\n"),
    };
    // Damaged frames are not repaired (FIX_BITS): trying each bit takes Dire Wolf a tenth of a second, in which it does not
    // listen. Stations without digipeater have no callsign of their own; only their users answer to theirs.
    let (own, repeats) = if own == BETWEEN { (own, "CDIGIPEAT 0 0\n") } else { ("NOCALL", "") };
    format!(
        "ADEVICE stdin radio\nARATE {SAMPLES_HZ}\nACHANNELS 1\nCHANNEL 0\nMYCALL {own}\nMODEM {rate_bps}\n\
         DWAIT 0\nSLOTTIME 2\nPERSIST 63\nTXDELAY 15\nTXTAIL 2\n\
         FRACK 3\nRETRY 10\nPACLEN 256\nMAXFRAME {}\nEMAXFRAME {}\n{versions}{repeats}FIX_BITS 0\n\
         AGWPORT {agw}\nKISSPORT {kiss}\n",
        window.min(7),
        window.max(8),
    )
}

/// A program with a link over Dire Wolf.
pub(crate) struct User {
    stream: TcpStream,
    input: BytesMut,
    own: StationName,
    peer: StationName,
    record: Arc<Record>,
}

impl User {
    async fn say(&mut self, frame: Frame) {
        // A broken connection is noticed when the answer is awaited.
        let _ = self.stream.write_all(&frame.to_bytes()).await;
    }

    async fn hear(&mut self) -> Result<Frame, Failure> {
        loop {
            let mut input = Bytes::copy_from_slice(&self.input);
            match Frame::decode(&mut input) {
                Ok(frame) => {
                    self.input = BytesMut::from(&input[..]);
                    return Ok(frame);
                }
                Err(DecodeError::Incomplete) => {}
                Err(error) => panic!("{error}"),
            }
            if self.stream.read_buf(&mut self.input).await.is_ok_and(|length| length == 0) {
                return Err("Dire Wolf has ended".into());
            }
        }
    }

    async fn hear_kind(&mut self, kind: Kind) -> Result<Frame, Failure> {
        loop {
            let frame = self.hear().await?;
            if frame.kind == Kind::Disconnect && kind != Kind::Disconnect {
                return Err("Dire Wolf has ended the link".into());
            }
            if frame.kind == kind {
                return Ok(frame);
            }
        }
    }

    pub(crate) async fn call(&mut self, peer: &str, path: &[&str]) -> Result<(), Failure> {
        let path: Vec<StationName> = path.iter().map(|name| name.parse().unwrap()).collect();
        let kind = if path.is_empty() { Kind::Connect } else { Kind::ConnectVia };
        let frame = Frame::new(kind).between(self.own, peer.parse().unwrap());
        let mut via = BytesMut::new();
        if !path.is_empty() {
            Via(path).encode(&mut via);
        }
        self.say(frame.with(via.freeze())).await;
        self.called().await
    }

    /// Waits until a link is established, by either side.
    pub(crate) async fn called(&mut self) -> Result<(), Failure> {
        self.peer = self.hear_kind(Kind::Connect).await?.from;
        Ok(())
    }

    pub(crate) async fn send(&mut self, content: &[u8]) {
        for piece in content.chunks(256) {
            let frame = Frame { pid: 0xf0, ..Frame::new(Kind::Data) };
            self.say(frame.between(self.own, self.peer).with(piece.to_vec())).await;
        }
    }

    pub(crate) async fn receive(&mut self, length: usize) -> Result<Vec<u8>, Failure> {
        let mut content = vec![];
        while content.len() < length {
            content.extend_from_slice(&self.hear_kind(Kind::Data).await?.data);
        }
        Ok(content)
    }

    /// Waits until all data sent is acknowledged.
    pub(crate) async fn is_acknowledged(&mut self) -> Result<(), Failure> {
        loop {
            self.say(Frame::new(Kind::QueuedOnLink).between(self.own, self.peer)).await;
            let mut reply = self.hear_kind(Kind::QueuedOnLink).await?;
            if Queued::decode(&mut reply.data) == Ok(Queued(0)) {
                return Ok(());
            }
            // There is no event for it: the request is repeated, at most as often as something can be heard on the channel.
            let record = self.record.clone();
            tokio::task::spawn_blocking(move || record.carries(TICK)).await.expect("the channel is there");
        }
    }

    pub(crate) async fn close(&mut self) -> Result<(), Failure> {
        self.say(Frame::new(Kind::Disconnect).between(self.own, self.peer)).await;
        self.closed().await
    }

    /// Waits until the link has ended.
    pub(crate) async fn closed(&mut self) -> Result<(), Failure> {
        self.hear_kind(Kind::Disconnect).await.map(drop)
    }

    /// Releases its callsign: a program that has gone does not answer connection requests.
    pub(crate) async fn leave(mut self) {
        self.say(Frame::new(Kind::Unregister).between(self.own, StationName::NONE)).await;
        // Dire Wolf has read the frame once it has answered the request after it.
        self.say(Frame::new(Kind::Version)).await;
        while self.hear().await.is_ok_and(|frame| frame.kind != Kind::Version) {}
        let _ = self.stream.shutdown().await;
    }
}

/// Another program takes a port after it was found free, and before this program has it.
#[test]
fn a_port_that_somebody_takes_in_between_costs_another_start() {
    if !is_installed() {
        return;
    }
    let place = std::env::temp_dir().join(format!("longwire-radio-ports-{}", std::process::id()));
    let air = Air { rate_bps: 9600, window: 4, destroyed_percent: 0, digipeater: false };
    let ends = furnish(&place);
    for taken in 0..2 {
        let mut ports: Vec<Port> = Port::free().take(4).collect();
        let numbers: Vec<u16> = ports.iter().map(|port| port.number).collect();
        assert!(Port::hold(numbers[taken]).is_none(), "no other test has it meanwhile");
        let _somebody = TcpListener::bind((Ipv4Addr::LOCALHOST, numbers[taken])).unwrap();
        let station =
            Station::start(&place, ports.drain(..), |kiss, agw| configuration(air, OURS, kiss, agw));
        assert_eq!([station.kiss.number, station.agw.number], numbers[2..], "the next two");
        std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, station.kiss.number)).unwrap();
    }
    drop(ends);
    std::fs::remove_dir_all(&place).unwrap();
}
