//! `longwire monitor`, with a TNC over TCP that hears a transfer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use bytes::{Bytes, BytesMut};
use longwire_proto::ax25::{Address, Control, Frame, Modulo, Role, Supervisory, Unnumbered};
use longwire_proto::kiss;

const HERE: &str = "EI7IG-1";
const THERE: &str = "EI2GYB";

fn frame(from: &str, role: Role, control: Control, information: &'static [u8]) -> kiss::Frame {
    let to = if from == HERE { THERE } else { HERE };
    let address = Address::new(from.parse().unwrap(), to.parse().unwrap(), role, &[]);
    let pid = if control.has_pid() { 0xf0 } else { 0 };
    let frame = Frame { pid, information: Bytes::from_static(information), ..Frame::bare(address, control) };
    kiss::Frame::data(0, frame.to_bytes(Modulo::Eight))
}

fn transfer() -> Vec<kiss::Frame> {
    let unnumbered = |function| Control::Unnumbered { function, poll_final: true };
    let information = |send, poll| Control::Information { send, receive: 0, poll };
    let ready =
        |receive| Control::Supervisory { function: Supervisory::ReceiveReady, receive, poll_final: true };
    vec![
        frame(HERE, Role::Command, unnumbered(Unnumbered::SetMode), b""),
        frame(THERE, Role::Response, unnumbered(Unnumbered::Acknowledge), b""),
        frame(HERE, Role::Command, information(0, false), b"seven bytes"),
        frame(HERE, Role::Command, information(1, true), b"and more"),
        frame(THERE, Role::Response, ready(2), b""),
        frame(HERE, Role::Command, information(2, true), b"end"),
        kiss::Frame::data(0, Bytes::from_static(b"noise")),
    ]
}

/// What it says of the transfer, without the times; it ends with an interrupt.
fn heard(options: &[&str]) -> Vec<String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut monitor = Command::new(env!("CARGO_BIN_EXE_longwire"))
        .args(["monitor", "--tnc", &address])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut line, _) = listener.accept().unwrap();
    let mut bytes = BytesMut::new();
    transfer().iter().for_each(|frame| kiss::enclose(frame, kiss::Checksum::None, &mut bytes));
    line.write_all(&bytes).unwrap();
    let mut out = BufReader::new(monitor.stdout.take().unwrap());
    let mut lines: Vec<String> = (&mut out).lines().take(transfer().len()).map(Result::unwrap).collect();
    let interrupt = Command::new("kill").args(["-INT", &monitor.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    lines.extend(out.lines().map(Result::unwrap));
    assert!(monitor.wait().unwrap().success());
    let mut talk = String::new();
    monitor.stderr.take().unwrap().read_to_string(&mut talk).unwrap();
    assert_eq!(talk, format!("{address} listens\n"));
    // It listens, and nothing else.
    let mut sent = vec![];
    line.read_to_end(&mut sent).unwrap();
    assert!(sent.is_empty(), "{sent:?}");
    lines
}

#[test]
fn frames_are_shown_with_their_windows_and_counted_at_the_end() {
    let lines = heard(&[]);
    let (frames, end) = lines.split_at(transfer().len());
    let frames: Vec<_> = frames.iter().map(|line| line.split_once("  ").unwrap().1).collect();
    assert_eq!(
        frames,
        [
            "EI7IG-1 > EI2GYB  SABM P",
            "EI2GYB > EI7IG-1  UA F",
            "EI7IG-1 > EI2GYB  I S0 R0 pid F0, 11 bytes, number 1 of its window, 1 unacknowledged",
            "EI7IG-1 > EI2GYB  I S1 R0 P pid F0, 8 bytes, number 2 of its window, 2 unacknowledged",
            "EI2GYB > EI7IG-1  RR R2 F",
            "EI7IG-1 > EI2GYB  I S2 R0 P pid F0, 3 bytes, number 1 of its window, 1 unacknowledged",
            "5 bytes that are no frame: the data end too early",
        ]
    );
    assert_eq!(
        end,
        [
            "",
            "Windows really used: I frames until the other side was heard, and how often",
            &format!("EI7IG-1     1      1  {}", "#".repeat(50)),
            &format!("EI7IG-1     2      1  {}", "#".repeat(50)),
        ]
    );
}

#[test]
fn json_has_a_line_for_each_frame() {
    let lines: Vec<serde_json::Value> =
        heard(&["--json"]).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[3]["kind"], &lines[3]["window"]), (&"I".into(), &2.into()));
    assert_eq!(lines.last().unwrap()["windows"]["EI7IG-1"], serde_json::json!({ "1": 1, "2": 1 }));
}
