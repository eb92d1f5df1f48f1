//! Mail between two nodes: submission, Maildirs, receipts and failures.

mod common;

use common::mail::{MailProgram, messages, python};
use common::{App, Place, config, reserved, start};
use longwire_node::config::security::new_key;
use longwire_node::message::{MessageOptions, Reply, Request};
use longwire_node::view::Filter;
use longwire_node::{Config, Node, NodeSetup, system_dtn_ms};
use longwire_proto::service::BundleName;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Two nodes with users, and a link between them.
struct Pair {
    place: Place,
    alice: Node,
    bob: Node,
}

impl Pair {
    /// `of_alice` is added to the mail settings of Alice.
    fn start(name: &str, of_alice: &str) -> Pair {
        Pair::start_both(name, of_alice, "message-bytes-max = 1000000")
    }

    /// `of_alice` and `of_bob` are added to the mail settings of each.
    fn start_both(name: &str, of_alice: &str, of_bob: &str) -> Pair {
        let place = Place::new(name);
        let mail = |node: &str, users: &str, more: &str| {
            format!(
                "node = 'dtn://{node}/'\nstorage.kind = 'memory'\n[mail]\nfolder = '{}'\nusers = [{users}]\nlisten = '127.0.0.1:0'\n{more}\n",
                place.0.join(node).display()
            )
        };
        let bob =
            start(config(&format!("listen = ['127.0.0.1:0']\n{}", mail("bob", "'bob', 'carol'", of_bob))));
        let alice = start(config(&format!(
            "{}\n[[link]]\nname = 'bob'\naddress = '{}'\npeer = 'dtn://bob/'",
            mail("alice", "'alice'", of_alice),
            bob.addresses()[0]
        )));
        Pair { place, alice, bob }
    }

    fn program(&self) -> MailProgram {
        MailProgram::connect(self.alice.mail_address().expect("it listens for mail programs"))
    }

    /// Waits until alice expects no receipt and no failure any more, and asserts that no failure was told.
    fn wait_without_failure(&self) {
        let status = App::new(&self.alice).wait_status(|status| status["mail"]["pending"] == 0);
        let counters = &status["mail"]["counters"];
        assert_eq!(counters["notices_failed"], 0, "{:?}", messages(&self.maildir("alice", "alice")));
    }

    fn maildir(&self, node: &str, user: &str) -> PathBuf {
        self.place.0.join(node).join(user)
    }

    /// Puts a file in the place of Carol's Maildir, which the node has made once a message is in it.
    fn block(&self, program: &mut MailProgram) -> PathBuf {
        let carol = self.maildir("bob", "carol");
        assert!(program.submit("alice@alice", &["carol@bob"], LETTER).starts_with("250 "));
        self.wait(&self.bob, "delivered", 1);
        std::fs::remove_dir_all(&carol).expect("a Maildir");
        std::fs::write(&carol, "").expect("a file");
        carol
    }

    /// Waits until a counter of a node is as high as this.
    fn wait(&self, node: &Node, counter: &str, count: u64) {
        App::new(node).wait_status(|status| status["mail"]["counters"][counter].as_u64() >= Some(count));
    }
}

const LETTER: &str = "From: Alice <alice@alice>\nTo: bob@bob\nSubject: A letter\nMessage-ID: <1@alice>\n\n.Hello Bob\n..\nend\n";

#[test]
fn a_message_goes_to_the_mailboxes_of_its_recipients() {
    let pair = Pair::start("mail-letter", "");
    let mut program = pair.program();
    let reply = program.submit("alice@alice", &["bob@bob", "Carol@BOB.dtn"], LETTER);
    assert!(reply.starts_with("250 2.0.0 Message stored"), "{reply}");
    pair.wait(&pair.bob, "delivered", 2);
    for (user, address) in [("bob", "bob@bob"), ("carol", "Carol@bob")] {
        let got = messages(&pair.maildir("bob", user));
        assert_eq!(got.len(), 1);
        let (trace, letter) = got[0].split_at(got[0].len() - LETTER.len());
        assert_eq!(letter, LETTER);
        let start = format!(
            "Return-Path: <alice@alice>\nDelivered-To: {address}\nReceived: from dtn://alice/ (not signed)\n by dtn://bob/ with BP \
             id "
        );
        assert!(trace.starts_with(&start), "{trace}");
    }
    // Nobody has asked for a receipt.
    let status = App::new(&pair.bob).status();
    assert_eq!(status["mail"]["counters"]["receipts_sent"], 0);
    let status = App::new(&pair.alice).status();
    assert_eq!(status["mail"]["counters"]["submitted"], 1, "{:#}", status["mail"]);
}

#[test]
fn receipts_tell_what_became_of_each_recipient() {
    let pair = Pair::start("mail-receipts", "");
    let mut program = pair.program();
    let to = ["bob@bob NOTIFY=SUCCESS", "nobody@bob", "nobody2@bob NOTIFY=NEVER", "carol@bob NOTIFY=FAILURE"];
    assert!(program.submit("alice@alice", &to, LETTER).starts_with("250 "));
    pair.wait(&pair.alice, "notices_failed", 1);
    let notices = messages(&pair.maildir("alice", "alice"));
    assert_eq!(notices.len(), 1);
    let notice = &notices[0];
    for part in [
        "Subject: Not delivered: A letter\n",
        "In-Reply-To: <1@alice>\n",
        "report-type=delivery-status",
        "Final-Recipient: rfc822; bob@bob\nAction: delivered\nStatus: 2.1.5\n",
        "Final-Recipient: rfc822; nobody@bob\nAction: failed\nStatus: 5.1.1\n",
        "Diagnostic-Code: smtp; 5.1.1 no such user at dtn://bob/\n",
        "This was reported by dtn://bob/.",
    ] {
        assert!(notice.contains(part), "{part}: {notice}");
    }
    assert_eq!(notice.matches("Final-Recipient").count(), 2, "{notice}");
    assert!(program.submit("alice@alice", &["bob@bob NOTIFY=SUCCESS"], LETTER).starts_with("250 "));
    pair.wait(&pair.alice, "notices_delivered", 1);
    assert!(
        messages(&pair.maildir("alice", "alice"))
            .iter()
            .any(|text| text.contains("Subject: Delivered: A letter\n"))
    );
    App::new(&pair.alice).wait_status(|status| status["mail"]["pending"] == 0);
}

/// A mail program sends to a user of the same node.
#[test]
fn users_of_one_node_write_to_each_other() {
    let pair = Pair::start("mail-own", "default-user = 'alice'\nreceipts = true");
    let reply = pair.program().submit(
        "alice@alice.dtn",
        &["postmaster", "any.body@alice", "Postmaster@alice.dtn"],
        LETTER,
    );
    assert!(reply.starts_with("250 "), "{reply}");
    pair.wait(&pair.alice, "notices_delivered", 1);
    let got = messages(&pair.maildir("alice", "alice"));
    assert_eq!(got.len(), 2, "the message and the receipt: {got:#?}");
}

#[test]
fn what_cannot_go_is_refused_with_its_reason() {
    let pair = Pair::start("mail-refused", "message-bytes-max = 20000");
    let mut program = pair.program();
    for (from, to, said) in [
        ("eve@alice", "bob@bob", "550 5.7.1 eve@alice is not an address of this node"),
        ("bob@bob", "bob@bob", "550 5.7.1 bob@bob is not an address of this node"),
        ("alice@alice", "dave@dave", "550 5.4.4 No route to dtn://dave/"),
        ("alice@alice", "eve@alice", "550 5.1.1 eve@alice is not a user of this node"),
        ("alice@alice", "eve@x.ipn", "550 5.1.2 x.ipn cannot be a node"),
        ("alice@alice", "../x@bob", "501 5.1.3 Not a valid address"),
    ] {
        let reply = program.submit(from, &[to], LETTER);
        assert!(reply.starts_with(said), "{from} {to}: {reply}");
    }
    // A node that accepts callers may hear from others later.
    let mut at_bob = MailProgram::connect(pair.bob.mail_address().expect("it listens"));
    let reply = at_bob.submit("bob@bob", &["dave@dave"], LETTER);
    assert!(reply.starts_with("451 4.4.4 No route to dtn://dave/ is known yet"), "{reply}");
    let long = format!("Subject: long\n\n{}", "x\n".repeat(10_000));
    assert!(
        program
            .submit("alice@alice", &["bob@bob"], &long)
            .starts_with("552 5.3.4 The message is longer than")
    );
    // Without its length, it is refused at its end.
    program.say("RSET");
    for command in ["MAIL FROM:<alice@alice>", "RCPT TO:<bob@bob>", "DATA"] {
        program.say(command);
    }
    program.write(format!("{}.\r\n", long.replace('\n', "\r\n")).as_bytes());
    assert!(program.reply().starts_with("552 5.3.4"));
    let status = App::new(&pair.alice).status();
    assert_eq!(status["bundles"], 0);
    assert_eq!(status["mail"]["counters"]["submitted"], 0);
}

/// The time on the link is known from its rate, and limited.
#[test]
fn a_message_that_takes_too_long_is_refused() {
    let (place, nobody) = (Place::new("mail-slow"), reserved());
    let node = start(config(&format!(
        "node = 'dtn://alice/'\nstorage.kind = 'memory'\n[mail]\nfolder = '{}'\nusers = ['alice']\nlisten = '127.0.0.1:0'\n\
         air-time-max = '1 min'\n[[tnc]]\nname = 'vhf'\naddress = '{nobody}'\ncallsign = 'DL1XYZ-1'\n[[link]]\n\
         name = 'radio'\nkind = 'ax25cl'\ntnc = 'vhf'\ncallsign = 'DL1XYZ-2'\npeer = 'dtn://bob/'\n[[link]]\nname = 'slow'\n\
         address = '{nobody}'\nrate-bps = 8000\npeer = 'dtn://carol/'\n",
        place.0.join("mail").display()
    )));
    let mut program = MailProgram::connect(node.mail_address().expect("it listens"));
    let letter =
        |length: usize| format!("Subject: x\n\n{}", "0123456789012345678901234567890\n".repeat(length / 32));
    let reply = program.submit("alice@alice", &["bob@bob"], &letter(20_000));
    let words = &reply;
    assert!(words.starts_with("552 5.3.4 A message of 20.1 kB takes about 3 min "), "{reply}");
    let more = "over link `radio` at 1200 bit/s, and at most 60 s is allowed. Make attachments smaller, or raise `air-time-max` in \
                [mail] of the node\n";
    assert!(words.ends_with(more), "{reply}");
    // At its end, if its length is not declared.
    program.say("RSET");
    for command in ["MAIL FROM:<alice@alice>", "RCPT TO:<carol@carol>", "DATA"] {
        program.say(command);
    }
    program.write(format!("{}.\r\n", letter(100_000).replace('\n', "\r\n")).as_bytes());
    let reply = program.reply();
    assert!(
        reply.starts_with("552 5.3.4 A message of 100.0 kB takes about 100 s over link `slow`"),
        "{reply}"
    );
    let reply = program.submit("alice@alice", &["bob@bob"], &letter(2000));
    assert!(reply.contains("2.0.0 Message stored; about ") && reply.contains("over link `radio`"), "{reply}");
    App::new(&node).wait_status(|status| status["bundles"] == 1);
}

/// The sender's domain must stand for the node that sends the bundle, and nobody else can send a receipt.
#[test]
fn nobody_writes_in_the_name_of_another_node() {
    let pair = Pair::start("mail-forged", "");
    let mut here = App::new(&pair.alice);
    let mut bundle = |payload: &[u8]| {
        let payload = bytes::Bytes::copy_from_slice(payload);
        let sent = here.send("dtn://bob/mail", &payload, MessageOptions::default());
        here.wait_sent(sent);
    };
    // [1, 0, "eve@carol", [["bob@bob", 3]], "x"]
    let forged = b"\x85\x01\x00\x69eve@carol\x81\x82\x67bob@bob\x03\x41x";
    bundle(forged);
    pair.wait(&pair.bob, "returned", 1);
    pair.wait(&pair.bob, "receipts_sent", 1);
    for wrong in
        [&b""[..], b"\xff", b"not CBOR at all", &forged[..forged.len() - 1], b"\x84\x01\x01\x82\x01\x01\x80"]
    {
        bundle(wrong);
    }
    pair.wait(&pair.bob, "invalid", 4);
    // Names of users are never names of files.
    bundle(b"\x85\x01\x00\x6balice@alice\x81\x82\x6d\"../../x\"@bob\x03\x41x");
    pair.wait(&pair.bob, "returned", 2);
    assert_eq!(
        std::fs::read_dir(pair.place.0.join("bob")).expect("a folder").count(),
        3,
        "users and .longwire"
    );
    for user in ["bob", "carol"] {
        assert!(messages(&pair.maildir("bob", user)).is_empty());
    }
    assert!(messages(&pair.maildir("alice", "alice")).is_empty());
}

/// A node that accepts only what is signed: the header says who signed, and the sender of the rest gets a notice.
#[test]
fn the_header_says_who_signed() {
    let place = Place::new("mail-signed");
    for node in ["alice", "bob"] {
        let folder = place.0.join(node);
        std::fs::create_dir_all(&folder).expect("a folder");
        new_key(&folder.join("node.key"), false).expect("a key");
    }
    let node = |name: &str, text: &str| {
        let folder = place.0.join(name);
        let text = format!(
            "node = 'dtn://{name}/'\nstorage.kind = 'memory'\nagent.reports.deletion = true\n{text}\n[mail]\nfolder = 'mail'\n\
             users = ['{name}']\nlisten = '127.0.0.1:0'\n"
        );
        let mut config = Config::parse(&text, "test", &folder).expect("it makes sense");
        config.control = None;
        start(config)
    };
    let private = "[security]\nprivate-key = 'node.key'\n";
    let bob =
        node("bob", &format!("listen = ['127.0.0.1:0']\n{private}[[security.policy]]\naction = 'require'\n"));
    let link = format!("[[link]]\nname = 'bob'\naddress = '{}'\npeer = 'dtn://bob/'\n", bob.addresses()[0]);
    let alice = node("alice", &format!("{link}{private}"));
    let mallory = node("mallory", &link);
    for (sender, name) in [(&mallory, "mallory"), (&alice, "alice")] {
        let mut program = MailProgram::connect(sender.mail_address().expect("it listens"));
        let reply = program.submit(&format!("{name}@{name}"), &["bob@bob"], LETTER);
        assert!(reply.starts_with("250 "), "{reply}");
    }
    App::new(&mallory).wait_status(|status| status["mail"]["counters"]["notices_failed"] == 1);
    let notices = messages(&place.0.join("mallory/mail/mallory"));
    // Bob refuses the transfer and reports the deletion; either comes first.
    let (refused, reported) = (
        "it was deleted at dtn://mallory/: no route, or the next node refused it",
        "it was deleted at dtn://bob/, on its way: missing security operation",
    );
    assert!(notices[0].contains(refused) || notices[0].contains(reported), "{notices:?}");
    App::new(&bob).wait_status(|status| status["mail"]["counters"]["delivered"] == 1);
    let got = messages(&place.0.join("bob/mail/bob"));
    let expected = "Received: from dtn://alice/ (signature valid, by dtn://alice/, key ";
    assert!(got.len() == 1 && got[0].contains(expected), "{got:?}");
}

/// The Maildir of one user is a file: mail for her waits, and that for others is delivered.
#[test]
fn a_mailbox_that_cannot_be_written_holds_up_no_other() {
    let pair = Pair::start("mail-blocked", "");
    let mut program = pair.program();
    let carol = pair.block(&mut program);
    assert!(program.submit("alice@alice", &["carol@bob"], LETTER).starts_with("250 "));
    App::new(&pair.bob).wait_status(|status| status["bundles"] == 1 && status["mail"]["trouble"].is_string());
    assert!(program.submit("alice@alice", &["bob@bob"], LETTER).starts_with("250 "));
    pair.wait(&pair.bob, "delivered", 2);
    assert_eq!(messages(&pair.maildir("bob", "bob")).len(), 1);
    std::fs::remove_file(&carol).expect("a file");
    pair.wait(&pair.bob, "delivered", 3);
    assert_eq!(messages(&carol).len(), 1);
    App::new(&pair.bob).wait_status(|status| status["bundles"] == 0 && status["mail"]["trouble"].is_null());
}

#[test]
fn a_message_whose_lifetime_ends_is_told_as_failed() {
    const LIFETIME_MS: u64 = 600_000;
    let place = Place::new("mail-expired");
    let config = config(&format!(
        "node = 'dtn://alice/'\nstorage.kind = 'memory'\n[mail]\nfolder = '{}'\nusers = ['alice']\nlisten = '127.0.0.1:0'\n\
         lifetime = '{LIFETIME_MS} ms'\n[[link]]\nname = 'bob'\naddress = '{}'\npeer = 'dtn://bob/'\n",
        place.0.join("mail").display(),
        reserved()
    ));
    // The time passes once the message is accepted.
    let passed_ms = Arc::new(AtomicU64::new(0));
    let clock = passed_ms.clone();
    let wall_clock = Arc::new(move || system_dtn_ms()?.checked_add(clock.load(Ordering::Relaxed)));
    let node = Node::start(NodeSetup { wall_clock, ..NodeSetup::new(config) }).expect("it starts");
    let mut program = MailProgram::connect(node.mail_address().expect("it listens"));
    let reply = program.submit("alice@alice", &["bob@bob"], LETTER);
    assert!(reply.starts_with("250 "), "{reply}");
    passed_ms.store(LIFETIME_MS, Ordering::Relaxed);
    node.clock_jumped();
    let mut app = App::new(&node);
    app.wait_status(|status| status["clock_ahead_s"] != 0.0);
    app.ask(Request::TrustClock);
    app.wait_status(|status| status["mail"]["counters"]["notices_failed"] == 1);
    let notices = messages(&place.0.join("mail/alice"));
    assert!(notices[0].contains("Status: 5.4.7\n"), "{notices:?}");
    assert!(notices[0].contains("its lifetime ended before it could leave dtn://alice/"), "{notices:?}");
}

#[test]
fn an_attachment_goes_from_one_mail_program_to_another() {
    let pair = Pair::start("mail-python", "");
    let port = pair.alice.mail_address().expect("it listens").port();
    if python(port, "send", 100_000, &pair.place.0).is_none() {
        return;
    }
    pair.wait(&pair.bob, "delivered", 1);
    python(port, "read", 100_000, &pair.maildir("bob", "bob"));
    pair.wait(&pair.alice, "notices_delivered", 1);
    let receipt = python(port, "receipt", 100_000, &pair.maildir("alice", "alice"));
    assert!(receipt.is_some_and(|subject| subject.starts_with("Delivered: ")));
}

#[test]
fn only_so_many_mail_programs_at_a_time() {
    let pair = Pair::start("mail-many", "connections-max = 2");
    let programs = [pair.program(), pair.program()];
    let at = pair.alice.mail_address().expect("it listens");
    let mut refused = std::io::BufReader::new(std::net::TcpStream::connect(at).expect("it listens"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut refused, &mut line).expect("a reply");
    assert_eq!(line, "421 4.3.2 Too many connections; try again later\r\n");
    drop(programs);
    App::new(&pair.alice).wait_status(|status| status["mail"]["open"] == 0);
    pair.program();
}

/// A node with mail and two links that never come up.
fn lonely(place: &Place, first: &str, of_mail: &str) -> Node {
    let nobody = reserved();
    start(config(&format!(
        "node = 'dtn://alice/'\n{first}\nstorage.kind = 'memory'\n[mail]\nfolder = '{}'\nusers = ['alice']\n\
         listen = '127.0.0.1:0'\n{of_mail}\n[[link]]\nname = 'bob'\naddress = '{nobody}'\npeer = 'dtn://bob/'\n[[link]]\nname = 'dave'\n\
         address = '{nobody}'\npeer = 'dtn://dave/'\n",
        place.0.join("mail").display()
    )))
}

/// The store takes the bundle for one of two nodes: nothing is accepted, so that the mail program tries again.
#[test]
fn a_message_is_accepted_for_all_of_its_nodes_or_for_none() {
    let place = Place::new("mail-all-or-none");
    let node = lonely(&place, "", "[agent.limits]\nstore-bytes-max = 25000\n");
    let mut program = MailProgram::connect(node.mail_address().expect("it listens"));
    let letter = format!("Subject: long\n\n{}", "0123456789\n".repeat(1500));
    for notify in ["", " NOTIFY=NEVER", " NOTIFY=SUCCESS"] {
        let to = [format!("bob@bob{notify}"), format!("dave@dave{notify}")];
        let reply = program.submit("alice@alice", &[&to[0], &to[1]], &letter);
        assert!(reply.starts_with("452 4.3.1 Not accepted: "), "{reply}");
        let status = App::new(&node).status();
        assert_eq!((&status["bundles"], &status["mail"]["pending"]), (&0.into(), &0.into()), "{notify}");
    }
    assert!(program.submit("alice@alice", &["dave@dave"], &letter).starts_with("250 "));
    assert!(messages(&place.0.join("mail/alice")).is_empty(), "no notice about what was refused");
}

/// Other nodes know neither the aliases nor the spelling of this one.
#[test]
fn envelopes_have_the_addresses_that_every_node_knows() {
    let pair = Pair::start(
        "mail-alias",
        "[mail.domains]\n'club.example' = 'dtn://bob/'\n'home.example' = 'dtn://alice/'",
    );
    let mut program = pair.program();
    for (number, from) in ["ALICE@Alice", "alice@home.example", "alice@ALICE.dtn"].into_iter().enumerate() {
        let to = ["bob@Club.Example NOTIFY=SUCCESS,FAILURE", "bob@BOB.dtn", "nobody@club.example"];
        assert!(program.submit(from, &to, LETTER).starts_with("250 "), "{from}");
        pair.wait(&pair.bob, "delivered", number as u64 + 1);
        pair.wait(&pair.alice, "notices_failed", number as u64 + 1);
    }
    let got = messages(&pair.maildir("bob", "bob"));
    assert!(
        got.iter().all(|text| text.starts_with("Return-Path: <alice@alice>\nDelivered-To: bob@bob\n")),
        "{got:?}"
    );
    let notices = messages(&pair.maildir("alice", "alice"));
    for part in ["bob@Club.Example: it is in the mailbox", "nobody@club.example: no such user at dtn://bob/"]
    {
        assert!(notices.iter().all(|notice| notice.contains(part)), "as it was written: {part}: {notices:?}");
    }
}

/// Nothing of it leaves the node, and it is no failure.
#[test]
fn a_message_to_a_user_of_the_same_node_waits_for_nothing() {
    let pair = Pair::start("mail-local", "");
    assert!(pair.program().submit("alice@alice", &["alice@alice"], LETTER).starts_with("250 "));
    pair.wait(&pair.alice, "delivered", 1);
    pair.wait_without_failure();
    assert_eq!(messages(&pair.maildir("alice", "alice")).len(), 1);
}

/// The creation time of version 6 is in seconds.
#[test]
fn receipts_find_their_message_in_version_6() {
    let version6 = "[agent.version6]\ndefault-version = 6\n";
    let pair = Pair::start_both("mail-version6", version6, version6);
    let mut program = pair.program();
    for number in 1..=3 {
        assert!(program.submit("alice@alice", &["bob@bob NOTIFY=SUCCESS"], LETTER).starts_with("250 "));
        pair.wait(&pair.bob, "delivered", number);
        pair.wait(&pair.alice, "notices_delivered", number);
    }
    pair.wait_without_failure();
}

/// One entry for each of many addresses of one user is one message; the list comes from another node.
#[test]
fn a_mailbox_gets_one_copy_of_a_message() {
    let pair = Pair::start("mail-copies", "");
    let mut here = App::new(&pair.alice);
    let mut payload = b"\x85\x01\x00\x6balice@alice\x98\x64".to_vec();
    for number in 0..100 {
        payload.extend_from_slice(if number % 2 == 0 {
            b"\x82\x67bob@bob\x00"
        } else {
            b"\x82\x67BOB@Bob\x00"
        });
    }
    payload.extend_from_slice(b"\x41x");
    let sent = here.send("dtn://bob/mail", &payload.into(), MessageOptions::default());
    here.wait_sent(sent);
    App::new(&pair.bob)
        .wait_status(|status| status["bundles"] == 0 && status["mail"]["counters"]["delivered"] != 0);
    assert_eq!(messages(&pair.maildir("bob", "bob")).len(), 1);
}

/// One of two Maildirs cannot be written: the other one gets the message once, also after it was deleted there.
#[test]
fn what_a_user_deletes_does_not_come_again() {
    let pair = Pair::start("mail-again", "");
    let to = ["carol@bob", "bob@bob"];
    let mut program = pair.program();
    let carol = pair.block(&mut program);
    assert!(program.submit("alice@alice", &to, LETTER).starts_with("250 "));
    pair.wait(&pair.bob, "delivered", 2);
    let new = pair.maildir("bob", "bob").join("new");
    for entry in std::fs::read_dir(&new).expect("a folder").flatten() {
        std::fs::remove_file(entry.path()).expect("a file");
    }
    std::fs::remove_file(&carol).expect("a file");
    App::new(&pair.bob).wait_status(|status| status["bundles"] == 0 && status["mail"]["trouble"].is_null());
    assert_eq!((messages(&carol).len(), messages(&pair.maildir("bob", "bob")).len()), (1, 0));
}

/// A header that a message begins with cannot go on in the line of the node.
#[test]
fn the_way_in_the_header_ends_before_the_message() {
    let pair = Pair::start("mail-trace", "");
    let mut program = pair.program();
    for (number, message) in [" (signature valid)\nFrom: x\n", "no header\n", "\nbody\n"].iter().enumerate() {
        assert!(program.submit("alice@alice", &["bob@bob"], message).starts_with("250 "));
        pair.wait(&pair.bob, "delivered", number as u64 + 1);
        let got = messages(&pair.maildir("bob", "bob"));
        let text = got.iter().find(|text| text.ends_with(message)).expect("it came");
        let (trace, _) = text.split_at(text.len() - message.trim_start_matches('\n').len());
        assert!(trace.ends_with(" +0000\n\n"), "{text}");
    }
}

/// An operator sees it before the first message comes.
#[test]
fn a_folder_that_cannot_be_made_is_told_at_once() {
    let place = Place::new("mail-no-folder");
    std::fs::create_dir_all(place.0.join("mail")).expect("a folder");
    std::fs::write(place.0.join("mail/alice"), "").expect("a file");
    let node = lonely(&place, "", "");
    let mut app = App::new(&node);
    app.wait_status(|status| status["mail"]["trouble"].is_string());
    // A port that is open, and an endpoint that is registered, do not end it.
    let sent =
        app.send("dtn://alice/mail", &bytes::Bytes::from_static(b"no mail"), MessageOptions::default());
    app.wait_sent(sent);
    let status =
        app.wait_status(|status| status["mail"]["counters"]["invalid"] == 1 && status["bundles"] == 0);
    let trouble = status["mail"]["trouble"].as_str().unwrap_or_default();
    assert!(trouble.contains("cannot create the Maildirs"), "{:#}", status["mail"]);
}

/// The clock jumps beyond the lifetime of a message while the node is stopped: the node keeps the bundle, and the sender is told nothing.
#[cfg(target_os = "linux")]
#[test]
fn a_jump_of_the_clock_ends_no_message() {
    let place = Place::new("mail-clock");
    let off_ms = Arc::new(AtomicI64::new(0));
    let nobody = reserved();
    let begin = || {
        let text = format!(
            "node = 'dtn://alice/'\n[storage]\npath = '{0}/store'\n[mail]\nfolder = '{0}/mail'\nusers = ['alice']\n\
             listen = '127.0.0.1:0'\n[[link]]\nname = 'bob'\naddress = '{nobody}'\npeer = 'dtn://bob/'",
            place.0.display()
        );
        let off_ms = Arc::clone(&off_ms);
        let wall_clock = move || system_dtn_ms()?.checked_add_signed(off_ms.load(Ordering::Relaxed));
        Node::start(NodeSetup { wall_clock: Arc::new(wall_clock), ..NodeSetup::new(config(&text)) })
            .expect("it starts")
    };
    let submit = |node: &Node| {
        let mut program = MailProgram::connect(node.mail_address().expect("it listens"));
        assert!(program.submit("alice@alice", &["bob@bob"], LETTER).starts_with("250 "));
    };
    let alice = begin();
    submit(&alice);
    alice.stop();
    off_ms.store(4 * 86_400_000, Ordering::Relaxed);
    let alice = begin();
    submit(&alice);
    // Events are handled after the messages whose lifetime ended before.
    let mut app = App::new(&alice);
    app.ask(Request::Bundles { limit: 10, after: None, filter: Filter::default() });
    let page = app.wait(|said| match said.head {
        Reply::Bundles { page } => Some(page),
        _ => None,
    });
    let [_, second] = &page.bundles[..] else { panic!("two bundles wait: {page:#?}") };
    app.ask(Request::Delete(BundleName { source: second.source.clone(), created: second.created }));
    app.wait(|said| (said.head == Reply::Done).then_some(()));
    let notices = || messages(&place.0.join("mail/alice"));
    app.wait_status(|_| notices().iter().any(|notice| notice.contains("was deleted")));
    assert_eq!(notices().len(), 1, "{:?}", notices());
    // Once the operator says that the clock is right, the first one ends.
    app.ask(Request::TrustClock);
    app.wait_status(|status| status["mail"]["counters"]["notices_failed"] == 2);
}

/// Forged messages, each of which asks for a receipt to a node that nobody reaches.
#[test]
fn strangers_do_not_fill_a_store_with_receipts() {
    let place = Place::new("mail-flood");
    let alice = lonely(&place, "listen = ['127.0.0.1:0']", "");
    let mut here = App::new(&alice);
    let eve = start(config(&format!(
        "node = 'dtn://eve/'\nstorage.kind = 'memory'\n[[link]]\nname = 'alice'\naddress = '{}'\n",
        alice.addresses()[0]
    )));
    let mut there = App::new(&eve);
    // [1, 0, "eve@eve", [["x@alice", 3]], "x"]
    let forged = bytes::Bytes::from_static(b"\x85\x01\x00\x67eve@eve\x81\x82\x67x@alice\x03\x41x");
    let sent: Vec<u64> =
        (0..100).map(|_| there.send("dtn://alice/mail", &forged, MessageOptions::default())).collect();
    sent.into_iter().for_each(|sent| there.wait_sent(sent));
    let count =
        |status: &serde_json::Value, name: &str| status["mail"]["counters"][name].as_u64().unwrap_or(0);
    let status =
        here.wait_status(|status| count(status, "receipts_sent") + count(status, "receipts_not_sent") == 100);
    // One more follows in each 15 s that the test takes.
    assert!((30..60).contains(&count(&status, "receipts_sent")), "{:#}", status["mail"]);
}

/// The right receipt from another node than that of the recipients is none.
#[test]
fn only_the_node_of_the_recipients_sends_receipts() {
    let place = Place::new("mail-receipt-forged");
    let alice = lonely(&place, "listen = ['127.0.0.1:0']", "");
    let mut program = MailProgram::connect(alice.mail_address().expect("it listens"));
    assert!(program.submit("alice@alice", &["bob@bob NOTIFY=SUCCESS"], LETTER).starts_with("250 "));
    let pending =
        std::fs::read_dir(place.0.join("mail/.longwire/pending")).expect("a folder").flatten().next();
    let name = pending.expect("a file").file_name().into_string().expect("a name");
    let (time, number) =
        name.strip_suffix(".json").and_then(|name| name.split_once('-')).expect("a timestamp");
    let mut receipt = b"\x84\x01\x01\x82".to_vec();
    for part in [time, number] {
        receipt.push(0x1b);
        receipt.extend(part.parse::<u64>().expect("a number").to_be_bytes());
    }
    // [["bob@bob", "2.1.5", ""]]
    receipt.extend(b"\x81\x83\x67bob@bob\x652.1.5\x60");
    let other = |name: &str| {
        start(config(&format!(
            "node = 'dtn://{name}/'\nstorage.kind = 'memory'\n[mail]\nfolder = '{}'\nusers = ['{name}']\n[[link]]\nname = 'alice'\n\
             address = '{}'\npeer = 'dtn://alice/'\n",
            place.0.join(name).display(),
            alice.addresses()[0]
        )))
    };
    let carol = other("carol");
    let mut app = App::new(&carol);
    let sent = app.send("dtn://alice/mail", &receipt.into(), MessageOptions::default());
    app.wait_sent(sent);
    let status = App::new(&alice).wait_status(|status| status["mail"]["counters"]["invalid"] == 1);
    assert_eq!((&status["mail"]["pending"], messages(&place.0.join("mail/alice")).len()), (&1.into(), 0));
    let _bob = other("bob");
    App::new(&alice).wait_status(|status| status["mail"]["counters"]["notices_delivered"] == 1);
}
