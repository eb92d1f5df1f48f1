//! A wall clock that jumps, seen from outside: no bundle is deleted, `status` reports the jump, a restart remembers it, and the
//! operator confirms the clock.

mod common;

use common::{App, Place, config, payload};
use longwire_node::message::{MessageOptions, Reply, Request};
use longwire_node::{Node, NodeSetup, system_dtn_ms};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const TWO_DAYS_MS: i64 = 2 * 86_400_000;

fn start(store: &Path, off_ms: &Arc<AtomicI64>) -> Node {
    let text = format!("node = 'dtn://here/'\n[storage]\npath = '{}'\n", store.display());
    let off_ms = Arc::clone(off_ms);
    let wall_clock = move || system_dtn_ms()?.checked_add_signed(off_ms.load(Ordering::Relaxed));
    Node::start(NodeSetup { wall_clock: Arc::new(wall_clock), ..NodeSetup::new(config(&text)) })
        .expect("it starts")
}

#[test]
fn a_clock_two_days_ahead_deletes_nothing_until_it_is_said_to_be_right() {
    let place = Place::new("clock-ahead");
    let off_ms = Arc::new(AtomicI64::new(0));
    {
        let node = start(&place.0, &off_ms);
        let mut app = App::new(&node);
        let sent = app.send("dtn://far/x", &payload(100, 1), MessageOptions::default());
        app.wait_accepted(sent);
        off_ms.store(TWO_DAYS_MS, Ordering::Relaxed);
        node.clock_jumped();
        let status = app.wait_status(|status| status["clock_ahead_s"] != 0.0);
        assert_eq!(status["bundles"], 1, "{status:#}");
        let ahead_s = status["clock_ahead_s"].as_f64().unwrap();
        assert!((ahead_s - 172_800.0).abs() < 60.0, "{ahead_s}");
        node.stop();
    }
    // The same at the next start; and where the clock jumps between two starts.
    let node = start(&place.0, &off_ms);
    let mut app = App::new(&node);
    let status = app.wait_status(|status| status["ready"] == true);
    assert_eq!(status["bundles"], 1, "{status:#}");
    assert_ne!(status["clock_ahead_s"], 0.0, "{status:#}");
    app.ask(Request::TrustClock);
    app.wait(|said| (said.head == Reply::Done).then_some(()));
    let status = app.wait_status(|status| status["bundles"] == 0);
    assert_eq!((&status["clock_ahead_s"], &status["counters"]["deleted_expired"]), (&0.0.into(), &1.into()));
    // The clock needs no further confirmation.
    app.ask(Request::TrustClock);
    assert!(matches!(app.hear().head, Reply::Error { .. }));
}

#[cfg(target_os = "linux")]
#[test]
fn a_jump_between_two_starts_shows_by_the_clock_of_the_machine() {
    let place = Place::new("clock-between");
    let off_ms = Arc::new(AtomicI64::new(0));
    {
        let node = start(&place.0, &off_ms);
        let mut app = App::new(&node);
        let sent = app.send("dtn://far/x", &payload(100, 1), MessageOptions::default());
        app.wait_accepted(sent);
        node.stop();
    }
    off_ms.store(TWO_DAYS_MS, Ordering::Relaxed);
    let node = start(&place.0, &off_ms);
    let status = App::new(&node).wait_status(|status| status["ready"] == true);
    assert_eq!(status["bundles"], 1, "{status:#}");
    assert_ne!(status["clock_ahead_s"], 0.0, "{status:#}");
}
