//! Mail between two nodes, each with its own Dire Wolf.

use crate::common::mail::{MailProgram, messages};
use crate::common::{App, Place, config, start};
use crate::direwolf::{Air, Rig, is_installed};
use longwire_proto::rng::Rng;

const AIR: Air = Air { rate_bps: 9600, window: 7, destroyed_percent: 0, digipeater: false };

/// A letter with an attachment goes out, it arrives byte for byte, and the receipt comes back.
#[test]
fn a_letter_with_an_attachment_and_its_receipt() {
    if !is_installed() {
        return;
    }
    let rig = Rig::start("mail", AIR);
    let place = Place::new("radio-mail");
    let node = |at: usize, own: &str, user: &str| {
        let other = if own == "alice" { "bob" } else { "alice" };
        let text = format!(
            "node = 'dtn://{own}/'\n[storage]\nkind = 'memory'\n[mail]\nfolder = '{}'\nusers = ['{user}']\nlisten = '127.0.0.1:0'\n\
             air-time-max = '30 s'\n[[tnc]]\nname = 'vhf'\naddress = '{}'\ncallsign = '{}'\n[tnc.channel]\nrate-bps = {}\n\
             tx-delay = '150 ms'\nslot-time = '20 ms'\n[tnc.ax25]\nversion = 'plain'\n[[link]]\nname = '{other}'\n\
             kind = 'ax25cl'\ntnc = 'vhf'\ncallsign = '{}'\npeer = 'dtn://{other}/'\nopen = {}\n",
            place.0.join(own).display(),
            rig.kiss(at),
            own.to_uppercase(),
            AIR.rate_bps,
            other.to_uppercase(),
            own == "alice",
        );
        start(config(&text))
    };
    let (alice, bob) = (node(0, "alice", "ann"), node(1, "bob", "ben"));
    // Base64 of an attachment, in lines of 76 letters.
    let mut rng = Rng::new(5);
    let letters: Vec<u8> = (b'A'..=b'Z').chain(b'a'..=b'z').chain(b'0'..=b'9').collect();
    let mut line = || -> String { (0..76).map(|_| char::from(letters[rng.below(62) as usize])).collect() };
    let attachment: String = (0..30).map(|_| line() + "\n").collect();
    let letter = format!(
        "From: ann@alice\nTo: ben@bob\nSubject: Map\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"x\"\n\n--x\n\n\
         See the map.\n--x\nContent-Type: image/png; name=\"map.png\"\nContent-Transfer-Encoding: base64\n\n{attachment}--x--\n"
    );
    let mut program = MailProgram::connect(alice.mail_address().expect("it listens"));
    // A letter for which the channel would be busy for too long is refused at once.
    let reply = program.submit("ann@alice", &["ben@bob"], &letter.repeat(20));
    assert!(reply.starts_with("552 5.3.4 A message of 5"), "{reply}");
    let reply = program.submit("ann@alice", &["ben@bob NOTIFY=SUCCESS,FAILURE"], &letter);
    assert!(
        reply.starts_with("250 2.0.0 Message stored; about ") && reply.ends_with(" over link `bob`\n"),
        "{reply}"
    );
    App::new(&bob).wait_status(|status| status["mail"]["counters"]["delivered"] == 1);
    let got = messages(&place.0.join("bob/ben"));
    assert!(got.len() == 1 && got[0].ends_with(&letter), "every byte is as it was sent");
    App::new(&alice).wait_status(|status| status["mail"]["counters"]["notices_delivered"] == 1);
    let receipt = messages(&place.0.join("alice/ann"));
    assert!(receipt[0].contains("Subject: Delivered: Map\n"), "{receipt:?}");
    assert!(receipt[0].contains("Final-Recipient: rfc822; ben@bob\nAction: delivered\n"), "{receipt:?}");
}
