//! Programs with controllers in KISS mode on an emulated radio channel.

use bytes::{Bytes, BytesMut};
use longwire_emulator::{Emulator, Ports};
use longwire_lab::link::LinkPath;
use longwire_proto::kiss::{Checksum, Command, Deframer, Frame, enclose};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Limit for every step, even on a heavily loaded machine.
const DEADLINE: Duration = Duration::from_secs(120);

struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    ports: Vec<SocketAddr>,
}

impl Running {
    /// A fast channel with this number of stations, without bit errors.
    fn start(stations: usize) -> Running {
        let changes = ["rate-bps=100000", "ber=0", "radio.tx-delay-ms=10", "radio.slot-time-ms=5"];
        let path = LinkPath::load_with("ax25-9600", &changes.map(str::to_owned), Path::new("."));
        let places = vec!["127.0.0.1:0".parse().expect("an address"); stations];
        let mut emulator =
            Emulator::open(&path.expect("it is a link"), &Ports::Kiss(places), 1).expect("ports are free");
        let (stop, ports) = (Arc::new(AtomicBool::new(false)), emulator.addresses().to_vec());
        let flag = stop.clone();
        let thread = thread::spawn(move || {
            emulator.run(&flag, None).expect("it can wait");
        });
        Running { stop, thread: Some(thread), ports }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().expect("it runs").join();
        assert!(ended.is_ok() || thread::panicking());
    }
}

struct Program {
    stream: TcpStream,
    deframer: Deframer,
    rest: Bytes,
}

impl Program {
    fn at(port: SocketAddr) -> Program {
        let stream = TcpStream::connect(port).expect("the controller listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("it can wait");
        Program { stream, deframer: Deframer::new(), rest: Bytes::new() }
    }

    fn say(&mut self, body: Command) {
        let mut line = BytesMut::new();
        enclose(&Frame { port: 0, body }, Checksum::None, &mut line);
        self.stream.write_all(&line).expect("the controller reads");
    }

    fn hear(&mut self) -> Command {
        loop {
            if let Some(mut content) = self.deframer.next(&mut self.rest) {
                return Frame::decode(&mut content).expect("it is a frame").body;
            }
            let mut buffer = [0; 4096];
            let length = self.stream.read(&mut buffer).expect("something comes");
            assert!(length > 0, "the controller has closed the line");
            self.rest = Bytes::copy_from_slice(&buffer[..length]);
        }
    }
}

fn frame(seed: u8) -> Bytes {
    (0..100).map(|at: u8| at.wrapping_mul(seed)).collect::<Vec<_>>().into()
}

#[test]
fn a_frame_reaches_all_other_stations_and_its_end_is_acknowledged() {
    let running = Running::start(3);
    let mut programs: Vec<Program> = running.ports.iter().map(|port| Program::at(*port)).collect();
    // A second program at the same controller hears what the first one hears.
    programs.push(Program::at(running.ports[2]));
    // Parameters and commands that it does not know are ignored, and noise on the line, too.
    programs[0].say(Command::TxDelay(50));
    programs[0].say(Command::SetHardware(Bytes::from_static(b"?")));
    programs[0].stream.write_all(&[0xc0, 0xff, 0xdb, 0x01, 0xc0, 0x10, 0xc0]).expect("it reads");
    // Programs whose connection is not accepted yet would miss the frame.
    for (program, token) in programs.iter_mut().zip(0..) {
        program.say(Command::DataAcknowledged { token, bytes: frame(token as u8 + 1) });
        let acknowledgement = Command::DataAcknowledged { token, bytes: Bytes::new() };
        while program.hear() != acknowledgement {}
    }
    programs[1].say(Command::Data(frame(99)));
    for at in [0, 2, 3] {
        while programs[at].hear() != Command::Data(frame(99)) {}
    }
}

#[test]
fn a_program_that_ends_and_one_that_does_not_read_leave_the_others_alone() {
    let running = Running::start(2);
    let deaf = Program::at(running.ports[1]);
    drop(Program::at(running.ports[1]));
    let (mut here, mut there) = (Program::at(running.ports[0]), Program::at(running.ports[1]));
    there.say(Command::Data(frame(1)));
    while here.hear() != Command::Data(frame(1)) {}
    for seed in 2..60 {
        here.say(Command::Data(frame(seed)));
    }
    for seed in 2..60 {
        assert_eq!(there.hear(), Command::Data(frame(seed)));
    }
    drop(deaf);
}
