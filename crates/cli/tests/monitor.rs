//! `longwire monitor` with a TNC over TCP, or an AGWPE server, that receives a transfer.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use bytes::{Bytes, BytesMut};
use common::DEADLINE;
use longwire_proto::ax25::{Address, CommandResponse, Control, Frame, Modulo, Supervisory, Unnumbered};
use longwire_proto::{agwpe, kiss};
use rustix::process::{Pid, Signal, kill_process};

const HERE: &str = "EI7IG-1";
const THERE: &str = "EI2GYB";

fn frame(from: &str, role: CommandResponse, control: Control, information: &'static [u8]) -> Bytes {
    let to = if from == HERE { THERE } else { HERE };
    let address = Address::new(from.parse().unwrap(), to.parse().unwrap(), role, &[]);
    let pid = if control.has_pid() { 0xf0 } else { 0 };
    let frame = Frame { pid, information: Bytes::from_static(information), ..Frame::bare(address, control) };
    frame.to_bytes(Modulo::Eight)
}

fn transfer() -> Vec<Bytes> {
    let unnumbered = |function| Control::Unnumbered { function, poll_final: true };
    let information = |send, poll| Control::Information { send, receive: 0, poll };
    let ready =
        |receive| Control::Supervisory { function: Supervisory::ReceiveReady, receive, poll_final: true };
    vec![
        frame(HERE, CommandResponse::Command, unnumbered(Unnumbered::SetMode), b""),
        frame(THERE, CommandResponse::Response, unnumbered(Unnumbered::Acknowledge), b""),
        frame(HERE, CommandResponse::Command, information(0, false), b"seven bytes"),
        frame(HERE, CommandResponse::Command, information(1, true), b"and more"),
        frame(THERE, CommandResponse::Response, ready(2), b""),
        frame(HERE, CommandResponse::Command, information(2, true), b"end"),
        Bytes::from_static(b"noise"),
    ]
}

/// Sends the transfer as a TNC in KISS mode, which needs no requests.
fn by_kiss(line: &mut TcpStream) {
    let mut bytes = BytesMut::new();
    let frames = transfer().into_iter().map(|frame| kiss::Frame::data(0, frame));
    frames.for_each(|frame| kiss::enclose(&frame, kiss::Checksum::None, &mut bytes));
    line.write_all(&bytes).unwrap();
}

/// Reads a request of the monitor and checks its kind.
fn asked(line: &mut TcpStream, kind: agwpe::Kind) {
    let mut header = [0; agwpe::HEADER_BYTES];
    line.read_exact(&mut header).unwrap();
    let frame = agwpe::Frame::decode(&mut header.to_vec().into()).unwrap();
    assert_eq!((frame.kind, frame.port), (kind, 1));
}

/// Answers requests for the ports and for raw frames as a server with two ports, of which the second receives the transfer.
fn by_agwpe(line: &mut TcpStream) {
    use agwpe::{Frame, Kind};
    asked(line, Kind::Ports);
    line.write_all(&Frame::new(Kind::Ports).with(&b"2;Port1 HF;Port2 VHF;\0"[..]).to_bytes()).unwrap();
    asked(line, Kind::MonitorRaw);
    let raw = |port: u8, frame: &Bytes| {
        let data = [&[port << 4][..], frame].concat();
        Frame { port, ..Frame::new(Kind::Raw) }.with(data).to_bytes()
    };
    line.write_all(&raw(0, &transfer()[0])).unwrap();
    transfer().iter().for_each(|frame| line.write_all(&raw(1, frame)).unwrap());
}

/// Waits until the monitor connects; fails with what it has said if it does not.
#[track_caller]
fn accept(listener: TcpListener, monitor: &mut Child) -> TcpStream {
    let (sender, accepted) = mpsc::channel();
    std::thread::spawn(move || sender.send(listener.accept()));
    let Ok(accepted) = accepted.recv_timeout(DEADLINE) else {
        monitor.kill().unwrap();
        let mut talk = String::new();
        monitor.stderr.take().unwrap().read_to_string(&mut talk).unwrap();
        panic!("the monitor does not connect: {talk}");
    };
    let (line, _) = accepted.unwrap();
    line.set_read_timeout(Some(DEADLINE)).unwrap();
    line
}

/// Returns the output of a monitor that receives the transfer and is then interrupted.
fn heard(prefix: &str, options: &[&str], says: impl Fn(&mut TcpStream)) -> Vec<String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("{prefix}{}", listener.local_addr().unwrap());
    let mut monitor = Command::new(env!("CARGO_BIN_EXE_longwire"))
        .args(["monitor", "--tnc", &address])
        .args(options)
        .env_clear()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = accept(listener, &mut monitor);
    says(&mut line);
    let mut out = BufReader::new(monitor.stdout.take().unwrap());
    let mut lines: Vec<String> = (&mut out).lines().take(transfer().len()).map(Result::unwrap).collect();
    kill_process(Pid::from_child(&monitor), Signal::INT).unwrap();
    lines.extend(out.lines().map(Result::unwrap));
    assert!(monitor.wait().unwrap().success());
    let mut talk = String::new();
    monitor.stderr.take().unwrap().read_to_string(&mut talk).unwrap();
    assert_eq!(talk, format!("listening on {address}\n"));
    // The monitor sends nothing else.
    let mut sent = vec![];
    line.read_to_end(&mut sent).unwrap();
    assert!(sent.is_empty(), "{sent:?}");
    lines
}

/// Checks the printed transfer, without the times.
#[track_caller]
fn shows_the_transfer(lines: &[String]) {
    let (frames, end) = lines.split_at(transfer().len());
    let frames: Vec<_> = frames.iter().map(|line| line.split_once("  ").unwrap().1).collect();
    assert_eq!(
        frames,
        [
            "EI7IG-1 > EI2GYB  SABM P",
            "EI2GYB > EI7IG-1  UA F",
            "EI7IG-1 > EI2GYB  I S0 R0 pid F0, 11 bytes, frame 1 of the window, 1 unacknowledged",
            "EI7IG-1 > EI2GYB  I S1 R0 P pid F0, 8 bytes, frame 2 of the window, 2 unacknowledged",
            "EI2GYB > EI7IG-1  RR R2 F",
            "EI7IG-1 > EI2GYB  I S2 R0 P pid F0, 3 bytes, frame 1 of the window, 1 unacknowledged",
            "invalid frame, 5 bytes: unexpected end of data",
        ]
    );
    assert_eq!(
        end,
        [
            "",
            "Window sizes in use: station, I frames until the other station transmitted, number of windows",
            &format!("EI7IG-1     1      1  {}", "#".repeat(50)),
            &format!("EI7IG-1     2      1  {}", "#".repeat(50)),
        ]
    );
}

#[test]
fn frames_are_shown_with_their_windows_and_counted_at_the_end() {
    shows_the_transfer(&heard("", &[], by_kiss));
}

#[test]
fn an_agwpe_server_is_asked_for_the_raw_frames_of_a_port() {
    shows_the_transfer(&heard("agwpe:", &["--port", "1"], by_agwpe));
}

/// Message after the first attempt to connect to a server of another protocol.
#[test]
fn what_is_no_agwpe_server_is_called_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("agwpe:{}", listener.local_addr().unwrap());
    let mut monitor = Command::new(env!("CARGO_BIN_EXE_longwire"))
        .args(["monitor", "--tnc", &address])
        .env_clear()
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = accept(listener, &mut monitor);
    line.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").unwrap();
    let mut talk = BufReader::new(monitor.stderr.take().unwrap()).lines();
    let said = talk.next().unwrap().unwrap();
    monitor.kill().unwrap();
    monitor.wait().unwrap();
    assert_eq!(said, format!("no connection to {address}: not an AGWPE server; retrying"));
}

#[test]
fn json_has_a_line_for_each_frame() {
    let lines: Vec<serde_json::Value> =
        heard("", &["--json"], by_kiss).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[3]["kind"], &lines[3]["window"]), (&"I".into(), &2.into()));
    assert_eq!(lines.last().unwrap()["windows"]["EI7IG-1"], serde_json::json!({ "1": 1, "2": 1 }));
}
