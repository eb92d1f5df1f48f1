//! Mail between two nodes, each with its own Dire Wolf.

use crate::common::mail::{MailProgram, python};
use crate::common::{App, Place, config, start};
use crate::direwolf::{Air, Rig, is_installed};

const AIR: Air = Air { rate_bps: 9600, window: 7, destroyed_percent: 0, digipeater: false };

/// Length of the attachment, which Base64 makes longer by a third.
const ATTACHMENT_BYTES: usize = 2000;

/// An ordinary mail program sends a message with an attachment, it arrives byte for byte, and the receipt comes back.
#[test]
fn a_letter_with_an_attachment_and_its_receipt() {
    if !is_installed() {
        return;
    }
    let rig = Rig::start("mail", AIR);
    let place = Place::new("radio-mail");
    let node = |at: usize, own: &str| {
        let other = if own == "alice" { "bob" } else { "alice" };
        let text = format!(
            "node = 'dtn://{own}/'\n[storage]\nkind = 'memory'\n[mail]\nfolder = '{}'\nusers = ['{own}']\nlisten = '127.0.0.1:0'\n\
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
    let (alice, bob) = (node(0, "alice"), node(1, "bob"));
    let port = alice.mail_address().expect("it listens").port();
    if python(port, "send", ATTACHMENT_BYTES, &place.0).is_none() {
        return;
    }
    App::new(&bob).wait_status(|status| status["mail"]["counters"]["delivered"] == 1);
    python(port, "read", ATTACHMENT_BYTES, &place.0.join("bob/bob"));
    App::new(&alice).wait_status(|status| status["mail"]["counters"]["notices_delivered"] == 1);
    python(port, "receipt", ATTACHMENT_BYTES, &place.0.join("alice/alice"));
    // A message for which the channel would be busy for too long is refused at once.
    let mut program = MailProgram::connect(alice.mail_address().expect("it listens"));
    let long = format!("Subject: long\n\n{}", "0123456789012345678901234567890\n".repeat(1600));
    let reply = program.submit("alice@alice", &["bob@bob"], &long);
    assert!(reply.starts_with("552 5.3.4 A message of 5"), "{reply}");
    let reply = program.submit("alice@alice", &["bob@bob"], "Subject: short\n\nx\n");
    assert!(
        reply.starts_with("250 2.0.0 Message stored; about ") && reply.ends_with(" over link `bob`\n"),
        "{reply}"
    );
    App::new(&bob).wait_status(|status| status["mail"]["counters"]["delivered"] == 2);
}
