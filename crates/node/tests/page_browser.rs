//! The web page of the node in a real browser, at the size of a phone and of a desktop.

#[path = "common/browser.rs"]
mod browser;
mod common;

use browser::{Browser, DESKTOP, PHONE, is_installed};
use common::{App, config, payload, start};
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
    if !is_installed() {
        return;
    }
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
    let views = browser
        .evaluate("[...document.querySelectorAll('#tabs a')].map((tab) => tab.hash.slice(1)).join(' ')");
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
    if !is_installed() {
        return;
    }
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
