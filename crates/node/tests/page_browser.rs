//! The web page of the node in a real browser, at the size of a phone and of a desktop.

#[path = "common/browser.rs"]
mod browser;
mod common;

use browser::{Browser, DESKTOP, PHONE};
use common::air::Air;
use common::{App, Place, config, payload, reserved, start};
use longwire_node::Node;
use longwire_node::message::MessageOptions;
use std::net::SocketAddr;

fn node(name: &str, more: &str) -> (Node, SocketAddr) {
    let node = start(config(&format!(
        "node = 'dtn://{name}/'\nlisten = ['127.0.0.1:0']\n{more}\n[storage]\nkind = 'memory'\n[agent.reports]\ndelivery = true\n\
         [http]\nlisten = '127.0.0.1:0'\n"
    )));
    let at = node.http_address().expect("it has an HTTP interface");
    (node, at)
}

/// Checks of each view: every control has a name, each field a label, IDs are unique, headings do not skip a level, nothing is wider
/// than the window, and text has enough contrast with what is behind it (WCAG 2.2, 1.4.3).
const ACCESSIBLE: &str = include_str!("page_browser/accessible.js");

#[track_caller]
fn is_accessible(browser: &mut Browser, name: &str) {
    for (size, of) in [(PHONE, "phone"), (DESKTOP, "desktop")] {
        browser.resize(size);
        for scheme in ["light", "dark"] {
            let media = serde_json::json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
            browser.command("Emulation.setEmulatedMedia", media);
            let wrong = browser.evaluate(ACCESSIBLE);
            assert_eq!(wrong, "", "{name} on a {of}, {scheme}:\n{}", wrong.as_str().unwrap_or_default());
            browser.picture(&format!("{name}-{of}-{scheme}.png"));
        }
    }
    assert!(browser.errors.is_empty(), "{name}: {:?}", browser.errors);
}

#[test]
fn each_view_works_on_a_phone_and_on_a_desktop() {
    let Some(_alone) = browser::alone() else { return };
    let (bob, _) = node("bob", "");
    let (_alice, at) = node(
        "alice",
        &format!(
            "[[link]]\nname = 'bob'\naddress = '{}'\npeer = 'dtn://bob/'\n\
             [[link]]\nname = 'hilltop'\naddress = '127.0.0.1:1'\npeer = 'dtn://hilltop/'\n\
             [[link]]\nname = 'orbiter'\naddress = '127.0.0.1:1'\npeer = 'dtn://orbiter/'\n\
             [[contact]]\nto = 'orbiter'\nafter = '10 min'\nlasts = '8 min'\nevery = '95 min'\nrate-bps = 9600\n",
            bob.addresses()[0]
        ),
    );
    let mut browser = Browser::open(PHONE);
    browser.go(&format!("http://{at}/"));
    browser.wait("document.getElementById('node').textContent === 'dtn://alice/'");
    browser.wait("document.querySelector('#view-queue .empty') !== null");
    is_accessible(&mut browser, "queue-empty");
    // With the keyboard alone: past the link to the content, and from tab to tab.
    browser.press("Tab", 9);
    browser.wait("document.activeElement.matches('.skip')");
    let visible = browser.evaluate("document.activeElement.getBoundingClientRect().left >= 0");
    assert_eq!(visible, true, "what has the focus is seen");
    for _ in 0..2 {
        browser.evaluate(
            "document.activeElement.matches('#tabs a') || document.querySelector('summary')?.focus()",
        );
        browser.press("Tab", 9);
    }
    browser.wait("document.activeElement.matches('#tabs a')");
    browser.press("Enter", 13);
    browser.wait("document.activeElement.tagName === 'H2' || document.querySelector('#tabs [aria-current]') === document.activeElement");
    let views = browser
        .evaluate("[...document.querySelectorAll('#tabs a')].map((tab) => tab.hash.slice(1)).join(' ')");
    browser.evaluate("location.hash = 'queue'");
    for view in views.as_str().expect("their names").split(' ') {
        browser.evaluate(&format!("location.hash = '{view}'"));
        browser.wait(&format!("!document.getElementById('view-{view}').hidden"));
        is_accessible(&mut browser, view);
        let current = browser.evaluate("document.querySelectorAll('#tabs [aria-current=page]').length");
        assert_eq!(current, 1, "{view}");
        let focused =
            browser.evaluate("document.activeElement.tagName + ' ' + document.activeElement.textContent");
        assert!(
            view == "queue" || focused.as_str().is_some_and(|text| text.starts_with("H2 ")),
            "{view}: {focused}"
        );
    }
}

#[test]
fn ten_thousand_bundles_scroll_with_few_rows_in_the_document() {
    let Some(_alone) = browser::alone() else { return };
    let (alice, at) = node("alice", "");
    let mut app = App::new(&alice);
    let body = payload(20, 1);
    for number in 0..10_000 {
        let sent = app.send(&format!("dtn://mars/{number}"), &body, MessageOptions::default());
        app.wait_accepted(sent);
    }
    let mut browser = Browser::open(PHONE);
    browser.go(&format!("http://{at}/"));
    browser.wait("document.querySelector('#view-queue .title')?.textContent === 'dtn://mars/0'");
    browser.wait("document.querySelector('#view-queue .rows').clientHeight > 900000");
    // From the beginning to the end in 240 frames, as a finger does; then to the very end.
    let measured = browser.evaluate(include_str!("page_browser/scrolling.js"));
    println!(
        "scrolling through 10,000 bundles: {} rows in the document at most, {} ms between frames (median), {} ms (99 of 100), \
         {} tasks of more than 50 ms, the longest {} ms",
        measured["rows"], measured["median"], measured["most"], measured["long"], measured["longest"]
    );
    assert!(measured["rows"].as_u64().is_some_and(|rows| (5..=60).contains(&rows)), "{measured}");
    browser.wait("[...document.querySelectorAll('#view-queue .title')].some((title) => title.textContent === 'dtn://mars/9999')");
    let place = browser.evaluate(
        "[...document.querySelectorAll('#view-queue .row')].find((row) => row.querySelector('.title').textContent === 'dtn://mars/9999').getAttribute('aria-posinset')",
    );
    assert_eq!(place, "10000");
    // A bundle is cancelled with the keyboard alone, after a question.
    browser.evaluate("document.querySelector('#view-queue .list').scrollTop = 0");
    browser.wait("[...document.querySelectorAll('#view-queue .title')].some((title) => title.textContent === 'dtn://mars/0')");
    browser.evaluate("[...document.querySelectorAll('#view-queue .row')].find((row) => row.getAttribute('aria-posinset') === '1').querySelector('button').focus()");
    browser.press("ArrowDown", 40);
    browser.wait("document.activeElement.querySelector('.title')?.textContent === 'dtn://mars/1'");
    browser.press("Enter", 13);
    browser.wait("document.querySelector('dialog[open] .facts') !== null");
    is_accessible(&mut browser, "bundle");
    browser.press("Tab", 9);
    browser.press("Enter", 13);
    browser.wait("document.activeElement.textContent === 'Keep as it is'");
    browser.press("Tab", 9);
    browser.press("Enter", 13);
    browser.wait("document.querySelector('dialog') === null");
    app.wait_status(|status| status["bundles"] == 9999);
    browser.wait("document.querySelector('#view-queue .summary').textContent.startsWith('9,999 bundles')");
    browser.wait("![...document.querySelectorAll('#view-queue .title')].some((title) => title.textContent === 'dtn://mars/1')");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// A file for the page, which a person would choose.
#[track_caller]
fn choose_file(browser: &mut Browser, path: &std::path::Path) {
    let input = browser.command(
        "Runtime.evaluate",
        serde_json::json!({"expression": "document.getElementById('files-picker')"}),
    );
    let parameters = serde_json::json!({"files": [path], "objectId": input["result"]["objectId"]});
    browser.command("DOM.setFileInputFiles", parameters);
}

/// Puts the focus into an element and types.
#[track_caller]
fn enter(browser: &mut Browser, selector: &str, text: &str) {
    browser.evaluate(&format!("document.querySelector({selector:?}).focus()"));
    browser.type_text(text);
}

/// Presses the only visible button with these words.
#[track_caller]
fn press_button(browser: &mut Browser, words: &str) {
    let find = format!(
        "[...document.querySelectorAll('button')].filter((button) => button.checkVisibility() && !button.disabled && button.textContent === {words:?})"
    );
    browser.wait(&format!("{find}.length > 0"));
    browser.evaluate(&format!("{find}[0].focus()"));
    browser.press("Enter", 13);
}

#[test]
fn a_file_and_a_message_travel_between_two_nodes_with_receipts_that_mean_delivered() {
    let Some(_alone) = browser::alone() else { return };
    let (bob, there) = node("bob", "");
    let (alice, here) = node(
        "alice",
        &format!("[[link]]\nname = 'bob'\naddress = '{}'\npeer = 'dtn://bob/'", bob.addresses()[0]),
    );
    App::new(&alice).wait_status(|status| status["links"][0]["up"] == true);
    let folder = Place::new("to-send");
    let path = folder.0.join("<b>map<img src=x>.txt");
    std::fs::write(&path, "Bridge 4 is <u>closed</u>.\n").expect("a file");

    let mut sender = Browser::open(DESKTOP);
    sender.go(&format!("http://{here}/#files"));
    sender.wait("document.getElementById('node').textContent === 'dtn://alice/'");
    choose_file(&mut sender, &path);
    enter(&mut sender, "#files-to", "bob");
    press_button(&mut sender, "Send");
    sender.wait("document.querySelector('.entry strong')?.textContent === '<b>map<img src=x>.txt'");
    sender.wait(
        "document.querySelector('.entry').innerText.includes('passed to the next node; no receipt yet')",
    );

    // It waits at the other node until somebody receives there.
    let mut receiver = Browser::open(PHONE);
    receiver.go(&format!("http://{there}/#files"));
    press_button(&mut receiver, "Receive files and messages here");
    receiver
        .wait("document.querySelector('#view-files .card strong')?.textContent === '_b_map_img src=x_.txt'");
    press_button(&mut receiver, "Show");
    receiver
        .wait("document.querySelector('#view-files pre')?.textContent === 'Bridge 4 is <u>closed</u>.\\n'");
    is_accessible(&mut receiver, "file-arrived");
    assert_eq!(App::new(&bob).status()["bundles"], 1, "a file that was shown is still at the node");
    press_button(&mut receiver, "Accept …");
    press_button(&mut receiver, "Accept and delete it on the node");
    receiver.wait("document.querySelector('dialog') === null");
    App::new(&bob).wait_status(|status| status["bundles"] == 0);
    sender.wait("document.querySelector('.entry').dataset.state === 'delivered'");
    sender.wait("document.querySelector('.entry').innerText.includes('receipt of dtn://bob/')");
    is_accessible(&mut sender, "file-delivered");

    // A message, with markup that nobody interprets, and an answer.
    sender.evaluate("location.hash = 'messages'");
    press_button(&mut sender, "New …");
    sender.wait("document.activeElement.id === 'messages-to'");
    sender.type_text("bob");
    sender.press("Enter", 13);
    sender.wait("document.activeElement.id === 'messages-text'");
    sender.type_text("Are you <b>well</b>? <script>alert(1)</script>");
    press_button(&mut sender, "Send");
    receiver.evaluate("location.hash = 'messages'");
    receiver.wait("document.querySelector('.theirs .text')?.textContent === 'Are you <b>well</b>? <script>alert(1)</script>'");
    receiver.wait("document.querySelector('#tabs a[href=\"#messages\"] .badge').textContent === '1 new'");
    is_accessible(&mut receiver, "message-arrived");
    let inside = receiver.evaluate("document.querySelectorAll('.thread b, .thread script').length");
    assert_eq!(inside, 0);
    assert_eq!(App::new(&bob).status()["bundles"], 1, "a message that was shown is still at the node");
    press_button(&mut receiver, "Accept");
    sender.wait("document.querySelector('.mine').dataset.state === 'delivered'");
    sender.wait("document.querySelector('.mine .fate').textContent.includes('receipt of dtn://bob/')");
    enter(&mut receiver, "#messages-text", "All well.");
    press_button(&mut receiver, "Send");
    press_button(&mut sender, "Receive files and messages here");
    sender.wait("document.querySelector('.theirs .text')?.textContent === 'All well.'");
    press_button(&mut sender, "Accept");
    sender.wait("document.querySelector('.theirs').dataset.state === 'accepted'");
    // A message without a sender that could be answered, and one that is longer than the page shows.
    let mut app = App::new(&bob);
    let long: Vec<u8> = b"0123456789".repeat(7_000);
    let anonymous = MessageOptions {
        source: Some("dtn:none".into()),
        must_not_fragment: true,
        ..MessageOptions::default()
    };
    let number = app.send("dtn://alice/messages", &long.into(), anonymous);
    app.wait_accepted(number);
    press_button(&mut sender, "dtn:none (1 new)");
    sender.wait("document.querySelector('.theirs .text')?.textContent.length === 64000");
    sender.wait("document.querySelector('.theirs').innerText.includes('Save as a file') && document.querySelector('.composer').hidden");
    press_button(&mut sender, "Accept …");
    sender.wait("document.querySelector('dialog[open]')?.innerText.includes('You have not saved')");
    press_button(&mut sender, "Accept and delete it on the node");
    sender.wait("document.querySelector('dialog') === null");
    press_button(&mut sender, "bob");
    sender.wait("document.querySelectorAll('.thread li').length === 2");
    receiver.wait("document.querySelector('.mine').dataset.state === 'delivered'");
    is_accessible(&mut sender, "conversation");
    for node in [&alice, &bob] {
        App::new(node).wait_status(|status| status["bundles"] == 0);
    }
    the_log_has_it(&mut receiver);
    // An accepted message is in the browser after the page was loaded again.
    receiver.go(&format!("http://{there}/?again#messages"));
    receiver.wait("document.querySelectorAll('.thread li').length === 2");
    for browser in [&mut sender, &mut receiver] {
        assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    }
}

/// The events in words, and the communications log as CSV, as text and on paper.
#[track_caller]
fn the_log_has_it(receiver: &mut Browser) {
    receiver.evaluate("location.hash = 'log'");
    receiver.wait("[...document.querySelectorAll('#view-log .open')].some((words) => words.textContent.startsWith('Receipt of dtn://alice/'))");
    enter(receiver, "#view-log input", "link");
    receiver.wait(
        "[...document.querySelectorAll('#view-log .open')].every((words) => /link/i.test(words.textContent))",
    );
    receiver.evaluate(include_str!("page_browser/keep_saved.js"));
    press_button(receiver, "Communications log (ICS 309) …");
    // The test may run at midnight.
    receiver.evaluate(
        "for (const [id, value] of [['ics-from', '2000-01-01T00:00'], ['ics-to', '2999-12-31T23:59']]) { const input = document.getElementById(id); \
         input.value = value; input.dispatchEvent(new Event('input', { bubbles: true })); }",
    );
    receiver.wait(
        "document.querySelector('dialog[open] [role=status]')?.textContent === '3 entries in this period.'",
    );
    enter(receiver, "#ics-incident", "Flood, river");
    enter(receiver, "#ics-operator", "=OE1ABC");
    is_accessible(receiver, "ics309");
    press_button(receiver, "CSV");
    receiver.wait("saved.length === 1");
    let csv = receiver.evaluate("saved[0]");
    let csv = csv.as_str().expect("text");
    assert!(csv.contains("Incident name,\"Flood, river\"\r\n"), "{csv}");
    assert!(csv.contains("Operator,'=OE1ABC\r\n"), "a cell is no formula: {csv}");
    let lines: Vec<&str> = csv.lines().filter(|line| line.starts_with("20")).collect();
    assert_eq!(lines.len(), 3, "{csv}");
    for (line, words) in lines.iter().zip([
        ",dtn://alice/,dtn://bob/,\"File _b_map_img src=x_.txt, 27 B\",\"sent ",
        ",dtn://alice/,dtn://bob/,Are you <b>well</b>? <script>alert(1)</script>,\"sent ",
        ",dtn://bob/,dtn://alice/messages,All well.,delivered ",
    ]) {
        assert!(line.contains(words), "{csv}");
    }
    press_button(receiver, "Text");
    receiver.wait("saved.length === 2 && saved[1].includes('COMMUNICATIONS LOG (ICS 309)') && saved[1].includes('All well.')");
    press_button(receiver, "Print");
    receiver.wait("printed === 1 && document.querySelectorAll('.print-only tbody tr').length === 8");
    receiver.evaluate("window.dispatchEvent(new Event('afterprint'))");
    receiver.wait("document.querySelector('.print-only') === null");
    press_button(receiver, "Close");
}

#[test]
fn a_map_and_a_time_line_show_who_hears_whom_and_who_transmits_when() {
    let Some(_alone) = browser::alone() else { return };
    let air = Air::new();
    let tnc = |at: usize, callsign: &str| {
        format!(
            "[ax25cl]\nretry-min = '50 ms'\nretry-max = '200 ms'\n\
             [[tnc]]\nname = 'vhf'\naddress = '{}'\ncallsign = '{callsign}'\nturnaround = '300 ms'\n\
             [tnc.channel]\nrate-bps = 1_000_000\ntx-delay = '0 ms'\ntx-tail = '0 ms'\nslot-time = '0 ms'\n",
            air.at(at)
        )
    };
    let (bob, _) = node("bob", &tnc(1, "B0B-2"));
    let link =
        "[[link]]\nname = 'uhf'\nkind = 'ax25cl'\ntnc = 'vhf'\ncallsign = 'b0b-2'\npeer = 'dtn://bob/'\n";
    let (alice, at) = node("alice", &format!("{}{link}", tnc(0, "AL1CE-1")));
    let (mut here, mut there) = (App::new(&alice), App::new(&bob));
    there.register("inbox", 1 << 20);
    here.wait_status(|status| status["links"][0]["up"] == true);
    here.send("dtn://bob/inbox", &payload(5_000, 2), MessageOptions::default());
    there.receive();
    let mut browser = Browser::open(PHONE);
    browser.go(&format!("http://{at}/#stations"));
    browser.wait("document.querySelector('.map line.up title')?.textContent.startsWith('dtn://alice/ to dtn://bob/: up, link uhf, AL1CE-1')");
    browser.wait("document.querySelectorAll('#view-stations .timeline rect.own').length > 0");
    browser.wait("document.querySelectorAll('#view-stations .timeline rect:not(.own)').length > 0");
    browser.evaluate("document.querySelector('#view-stations .timeline').scrollIntoView()");
    is_accessible(&mut browser, "stations-radio");
    browser.evaluate("location.hash = 'links'");
    browser.wait("document.querySelector('.radio')?.innerText.includes('AL1CE-1 to B0B-2, TNC vhf')");
    is_accessible(&mut browser, "links-radio");
}

#[test]
fn a_link_is_closed_and_opened_and_a_node_that_starts_again_is_followed_again() {
    let Some(_alone) = browser::alone() else { return };
    let (bob, _) = node("bob", "");
    let address = reserved();
    let start_alice = || {
        start(config(&format!(
            "node = 'dtn://alice/'\n[storage]\nkind = 'memory'\n[http]\nlisten = '{address}'\n\
             [[link]]\nname = 'bob'\naddress = '{}'\npeer = 'dtn://bob/'\n",
            bob.addresses()[0]
        )))
    };
    let alice = start_alice();
    let mut browser = Browser::open(DESKTOP);
    browser.go(&format!("http://{address}/#links"));
    let state =
        |words: &str| format!("document.querySelector('#view-links .pill')?.textContent.includes({words:?})");
    browser.wait(&state("up"));
    press_button(&mut browser, "Close …");
    press_button(&mut browser, "Keep as it is");
    browser.wait(
        "document.querySelector('dialog') === null && document.activeElement.textContent === 'Close …'",
    );
    assert_eq!(App::new(&alice).status()["links"][0]["up"], true, "nothing happens without an answer");
    press_button(&mut browser, "Close …");
    press_button(&mut browser, "Close it");
    browser.wait(&state("closed by the operator"));
    assert_eq!(App::new(&alice).status()["links"][0]["down_reason"], "cut");
    press_button(&mut browser, "Open again …");
    press_button(&mut browser, "Open it");
    browser.wait(&state("up"));
    // A file that is dropped onto the page.
    browser.evaluate("location.hash = 'files'");
    browser.evaluate(
        "{ const all = new DataTransfer(); all.items.add(new File(['dropped'], 'note.txt')); \
         document.querySelector('#view-files form').dispatchEvent(new DragEvent('drop', { dataTransfer: all, bubbles: true, cancelable: true })); }",
    );
    browser.wait("document.querySelector('.chosen strong')?.textContent === 'note.txt'");
    drop(alice);
    browser.wait("document.querySelector('.state .pill').textContent.includes('Not reachable')");
    let alice = start_alice();
    browser.wait("document.querySelector('.state .pill').textContent.includes('Running')");
    browser.evaluate("location.hash = 'queue'");
    let mut app = App::new(&alice);
    let sent = app.send("dtn://mars/x", &payload(5, 1), MessageOptions::default());
    app.wait_accepted(sent);
    browser.wait("document.querySelector('#view-queue .title')?.textContent === 'dtn://mars/x'");
    browser.evaluate("location.hash = 'log'");
    let told = "document.querySelector('#view-log .open')?.textContent";
    browser
        .wait(&format!("{told}.startsWith('Stored for sending: dtn://alice/') || {told}.startsWith('Link')"));
    let texts = browser.evaluate(include_str!("page_browser/format.js"));
    let texts: serde_json::Value = serde_json::from_str(texts.as_str().expect("text")).expect("JSON");
    let none = serde_json::Value::Null;
    assert_eq!(
        texts,
        serde_json::json!({
            "bytes": ["0 B", "999 B", "1.00 kB", "12.3 kB", "1.00 MB", "1.00 MB", "5.00 GB"],
            "rates": ["0 bit/s", "8 bit/s", "1.2 kbit/s", "9.6 kbit/s", "1.0 Mbit/s"],
            "durations": ["0 s", "0 s", "59 s", "1 min", "59 min", "1 h", "23 h 59 min", "1 d 1 h", "unknown"],
            "nodes": ["dtn://bob/", "dtn://bob/", "ipn:7.0", "ipn:977000.7.0", none, none, none],
            "entered": ["dtn://bob/", "dtn://bob/", "dtn://bob/", "dtn://bob/", "ipn:7.0", none, none, none],
            "endpoints": ["dtn://bob/files", "dtn://bob/messages", "ipn:7.1", "ipn:977000.7.2"],
        })
    );
}

/// Sends texts to an endpoint.
fn send_texts(app: &mut App, to: &str, texts: &[&str]) {
    for text in texts {
        let sent = app.send(to, &text.as_bytes().to_vec().into(), MessageOptions::default());
        app.wait_accepted(sent);
    }
}

#[test]
fn nothing_is_lost_by_two_tabs_or_by_an_acceptance_that_fails() {
    let Some(_alone) = browser::alone() else { return };
    let (alice, at) = node("alice", "");
    let mut app = App::new(&alice);
    send_texts(&mut app, "dtn://alice/messages", &["one", "two", "three"]);
    let mut browser = Browser::open(DESKTOP);
    browser.go(&format!("http://{at}/#messages"));
    press_button(&mut browser, "Receive files and messages here");
    let texts = |count: usize| format!("document.querySelectorAll('.thread .text').length === {count}");
    let accept = |text: &str| {
        let find = format!(
            "[...document.querySelectorAll('.thread li')].find((item) => item.innerText.startsWith({text:?}))"
        );
        format!("{find}.querySelector('button').click()")
    };
    browser.wait(&texts(3));
    let first = browser.add_tab(DESKTOP);
    browser.go(&format!("http://{at}/#messages"));
    browser.wait(&texts(3));
    let second = browser.switch_to(first);
    browser.evaluate(&accept("one"));
    app.wait_status(|status| status["bundles"] == 2);
    browser.switch_to(second);
    browser.evaluate(&accept("two"));
    app.wait_status(|status| status["bundles"] == 1);
    let accepted = |count: usize| {
        format!("document.querySelectorAll('.thread [data-state=accepted]').length === {count}")
    };
    browser.wait(&accepted(2));
    // The request to delete the third is lost: it is kept, and deleted as soon as the page reaches the node again.
    browser.evaluate(include_str!("page_browser/lose_deletes.js"));
    browser.evaluate(&accept("three"));
    browser.wait("document.querySelector('.thread').innerText.includes('the node has not confirmed it yet')");
    assert_eq!(app.status()["bundles"], 1);
    browser.evaluate("window.fetch = window.whole; document.dispatchEvent(new Event('visibilitychange'))");
    app.wait_status(|status| status["bundles"] == 0);
    browser.wait(&accepted(3));
    browser.go(&format!("http://{at}/?again#messages"));
    browser.wait(&accepted(3));
    press_button(&mut browser, "Remove old messages …");
    press_button(&mut browser, "Remove them");
    browser.wait("document.querySelector('.thread .empty') !== null");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// Both the acceptance and a look that has read the deliveries before it could confirm the message: the later one would find nothing
/// at the node, and the page would say that another client had taken it.
#[test]
fn a_message_that_is_accepted_during_a_look_is_confirmed_once() {
    let Some(_alone) = browser::alone() else { return };
    let (alice, at) = node("alice", "");
    let mut app = App::new(&alice);
    send_texts(&mut app, "dtn://alice/messages", &["one"]);
    let mut browser = Browser::open(DESKTOP);
    browser.go(&format!("http://{at}/#messages"));
    press_button(&mut browser, "Receive files and messages here");
    browser.wait("document.querySelectorAll('.thread .text').length === 1");
    browser.evaluate(include_str!("page_browser/look_late.js"));
    browser.wait("window.heldBack === 1");
    browser.evaluate("document.querySelector('.thread li button').click()");
    browser.wait("document.querySelector('.thread').innerText.includes('the node has not confirmed it yet')");
    browser.evaluate("window.goOn()");
    browser.wait("document.querySelectorAll('.thread [data-state=accepted]').length === 1");
    app.wait_status(|status| status["bundles"] == 0);
    assert_eq!(browser.evaluate("window.deletes"), 1);
    let shown = browser.evaluate("document.querySelector('.thread').innerText");
    let shown = shown.as_str().unwrap_or_default();
    assert!(!shown.contains("had no copy"), "{shown}");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// Anybody can send as many bundles as the node takes; each that is shown costs a request.
#[test]
fn many_deliveries_cost_the_page_a_bounded_number_of_rows_and_requests() {
    let Some(_alone) = browser::alone() else { return };
    let (alice, at) = node("alice", "");
    let mut app = App::new(&alice);
    send_texts(&mut app, "dtn://alice/messages", &["x"; 300]);
    // No text, which the page neither shows nor accepts without a question.
    let damaged = app.send("dtn://alice/files", &vec![0xff; 10].into(), MessageOptions::default());
    app.wait_accepted(damaged);
    send_texts(&mut app, "dtn://alice/files", &["y"; 300]);
    let mut browser = Browser::open(PHONE);
    browser.go(&format!("http://{at}/#messages"));
    press_button(&mut browser, "Receive files and messages here");
    browser.wait("document.querySelectorAll('.thread .text').length === 100");
    browser.wait(
        "document.querySelector('#view-messages').innerText.includes('200 further messages at the node.')",
    );
    browser.evaluate("location.hash = 'files'");
    browser
        .wait("document.querySelector('#view-files').innerText.includes('251 further files at the node.')");
    assert_eq!(browser.evaluate("document.querySelectorAll('#view-files article').length"), 50);
    browser.wait("[...document.querySelectorAll('#view-files article strong')].every((name) => name.textContent === '(payload without a name)')");
    // The name of each, and the text of each message.
    let asked = browser.evaluate(
        "performance.getEntriesByType('resource').filter((entry) => entry.name.includes('/deliveries/')).length",
    );
    assert!(asked.as_u64().is_some_and(|asked| (100..=250).contains(&asked)), "{asked} requests");
    browser.evaluate("document.querySelector('#view-files article button').click()");
    browser.wait(
        "document.querySelector('#view-files article .note')?.textContent.startsWith('This is neither text')",
    );
    is_accessible(&mut browser, "many-deliveries");
}

#[test]
fn the_page_asks_for_the_token_and_keeps_it_for_the_tab() {
    let Some(_alone) = browser::alone() else { return };
    let node = start(config(
        "node = 'dtn://alice/'\n[storage]\nkind = 'memory'\n[http]\nlisten = '127.0.0.1:0'\ntoken = '0123456789abcdef'\n",
    ));
    let at = node.http_address().expect("it has an HTTP interface");
    let mut browser = Browser::open(PHONE);
    browser.provoked.push("401 (Unauthorized)");
    browser.go(&format!("http://{at}/"));
    for (token, heard) in [("wrong-token-0123", "has refused this token"), ("0123456789abcdef", "")] {
        browser.wait("document.querySelector('dialog[open] input[type=password]') !== null");
        is_accessible(&mut browser, "token");
        enter(&mut browser, "dialog input", token);
        browser.press("Enter", 13);
        if !heard.is_empty() {
            browser.wait(&format!("document.querySelector('dialog[open]')?.innerText.includes({heard:?})"));
        }
    }
    browser.wait("document.getElementById('node').textContent === 'dtn://alice/'");
    browser.wait("document.querySelector('.pill').textContent.includes('Running')");
    browser.provoked.clear();
    // Events come with the token, too: the other end of the page sees a bundle at once.
    let mut app = App::new(&node);
    let sent = app.send("dtn://mars/x", &payload(5, 1), MessageOptions::default());
    app.wait_accepted(sent);
    browser.wait("document.querySelector('#view-queue .title')?.textContent === 'dtn://mars/x'");
    browser.go(&format!("http://{at}/?again"));
    browser.wait("document.querySelector('#view-queue .title')?.textContent === 'dtn://mars/x'");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    let kept = browser.evaluate("JSON.stringify(localStorage).includes('0123456789abcdef')");
    assert_eq!(kept, false, "nothing of it outlives the tab");
}

#[test]
fn what_is_too_large_is_refused_with_a_hint_and_a_photo_is_made_smaller() {
    let Some(_alone) = browser::alone() else { return };
    let (bob, _) = node("bob", "");
    let (_alice, at) = node(
        "alice",
        &format!(
            "[agent.limits]\nstore-bytes-max = 3000000\nbundle-bytes-max = 1500000\n\
             [[link]]\nname = 'uhf'\naddress = '{}'\npeer = 'dtn://bob/'\nrate-bps = 9600",
            bob.addresses()[0]
        ),
    );
    let mut browser = Browser::open(PHONE);
    browser.provoked.push("413 (Payload Too Large)");
    browser.go(&format!("http://{at}/#files"));
    browser.wait("document.getElementById('node').textContent === 'dtn://alice/'");
    let folder = Place::new("too-large");
    enter(&mut browser, "#files-to", "dtn://mars/files");
    for (length, words) in [
        (4_000_000, "does not fit into the store of the node: 3.00 MB are free"),
        (2_000_000, "It was not sent"),
    ] {
        let path = folder.0.join("large.bin");
        std::fs::write(&path, payload(length, 3)).expect("a file");
        choose_file(&mut browser, &path);
        press_button(&mut browser, "Send");
        browser.wait(&format!("document.querySelector('.chosen .problem')?.innerText.includes({words:?})"));
        browser.wait("document.querySelector('.chosen .problem .hint').textContent.startsWith('Hint: ')");
        is_accessible(&mut browser, "too-large");
        press_button(&mut browser, "Remove");
        browser.wait("document.querySelector('.chosen .problem') === null");
    }
    browser.evaluate("document.getElementById('files-to').value = ''");
    enter(&mut browser, "#files-to", "bob");
    let photo = browser.evaluate(include_str!("page_browser/photo.js"));
    let photo = photo.as_u64().expect("its size");
    browser.wait("document.querySelector('.chosen .soft')?.textContent.includes('at least')");
    browser.evaluate(
        "{ const size = document.querySelector('.chosen select'); size.value = '640'; size.dispatchEvent(new Event('change')); }",
    );
    browser.wait("document.querySelector('.chosen .soft').textContent.includes('made smaller to')");
    is_accessible(&mut browser, "photo");
    press_button(&mut browser, "Send");
    browser.wait("document.querySelector('.entry strong')?.textContent === 'photo.jpg'");
    let mut app = App::new(&bob);
    app.register("files", 0);
    let (_, file) = app.receive();
    assert!((file.len() as u64) < photo / 4, "{} of {photo}", file.len());
    let start = file.windows(3).position(|window| window == [0xff, 0xd8, 0xff]);
    assert!(start.is_some_and(|start| start < 40), "a JPEG behind its name");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
