//! Mail as a user sees it: real processes, and SIGKILL between acceptance and delivery.

mod common;

use common::{DEADLINE, Place, reserved, wait};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

/// Submits a message over SMTP, and returns the last reply.
fn submit(at: SocketAddr, number: u32) -> String {
    let mut stream = BufReader::new(TcpStream::connect(at).unwrap());
    stream.get_ref().set_read_timeout(Some(DEADLINE)).unwrap();
    let mut last = String::new();
    for command in [
        "",
        "HELO localhost\r\n",
        "MAIL FROM:<ann@alice>\r\n",
        "RCPT TO:<ben@bob> NOTIFY=SUCCESS,FAILURE\r\n",
        "DATA\r\n",
        &format!("Subject: number {number}\r\n\r\nHello\r\n.\r\n"),
        "QUIT\r\n",
    ] {
        stream.get_mut().write_all(command.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_line(&mut reply).unwrap();
        if command == "QUIT\r\n" {
            break;
        }
        last = reply;
    }
    last
}

/// Texts in a Maildir.
fn messages(maildir: &Path) -> Vec<String> {
    let entries = fs::read_dir(maildir.join("new")).into_iter().flatten().flatten();
    entries.filter_map(|entry| fs::read_to_string(entry.path()).ok()).collect()
}

#[test]
fn what_was_accepted_arrives_once_whatever_is_killed() {
    let place = Place::new("mail");
    let (at, port) = (reserved(), reserved());
    let quick = "[tcpcl]\nreconnect-min = '20 ms'\nreconnect-max = '100 ms'";
    place.configure(
        "alice",
        &format!(
            "[mail]\nfolder = 'mail-alice'\nusers = ['ann']\nlisten = '{port}'\n[[link]]\nname = 'bob'\naddress = '{at}'\n\
             peer = 'dtn://bob/'\n{quick}"
        ),
    );
    place.configure(
        "bob",
        &format!("listen = ['{at}']\n[mail]\nfolder = 'mail-bob'\nusers = ['ben']\n{quick}"),
    );
    let words = place.asked("alice", &["node", "--check"]);
    assert!(
        words.contains("SMTP at ") && words.contains("Mail for ann is written to Maildirs in "),
        "{words}"
    );
    let mut alice = place.start("alice");
    for number in 0..6 {
        let reply = submit(port, number);
        assert!(reply.starts_with("250 2.0.0 "), "{reply}");
        alice.kill();
        alice = place.start("alice");
    }
    let subject = |number: u32| format!("Subject: number {number}\n");
    let got = || messages(&place.path("mail-bob/ben"));
    for _ in 0..6 {
        // Killed at any step of the delivery.
        let bob = place.begin("bob");
        let before = got().len();
        wait("one more comes", &place, || got().len() > before || got().len() == 6);
        bob.kill();
    }
    let _bob = place.start("bob");
    wait("all come", &place, || {
        (0..6).all(|number| got().iter().any(|text| text.contains(&subject(number))))
    });
    let receipts = || messages(&place.path("mail-alice/ann"));
    let delivered = |number| {
        let words = format!("Subject: Delivered: number {number}\n");
        receipts().iter().filter(|text| text.contains(&words)).count()
    };
    wait("all receipts come", &place, || (0..6).all(|number| delivered(number) == 1));
    for number in 0..6 {
        let count = got().iter().filter(|text| text.contains(&subject(number))).count();
        assert_eq!(count, 1, "number {number} appears once");
    }
    // A receipt is in the mailbox before its message is forgotten.
    wait("no message waits for a receipt", &place, || {
        let status = place.asked("alice", &["status"]);
        status.contains("mail: 0 submitted, 0 delivered, 0 waiting for a receipt; mail programs at ")
    });
    alice.kill();
}

#[test]
fn the_doctor_names_what_keeps_mail_from_working() {
    let place = Place::new("mail-doctor");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = port.local_addr().unwrap();
    fs::write(place.path("file"), "").unwrap();
    for (folder, said) in
        [("mail", format!("TCP port {at} is in use")), ("file/mail", "cannot create the folder".into())]
    {
        place.configure("alice", &format!("[mail]\nfolder = '{folder}'\nusers = ['ann']\nlisten = '{at}'"));
        let output = place.ask("alice", &["doctor"]);
        let words = String::from_utf8(output.stdout).unwrap();
        assert!(words.contains(&said), "{words}");
    }
}
