//! A node of which a part fails reports that and ends, instead of continuing without it.

mod common;

use common::volatile::VolatileStore;
use common::{App, DEADLINE, config, payload};
use longwire_node::message::MessageOptions;
use longwire_node::{Node, NodeSetup, ending};
use rustix::fs::{Mode, OFlags, open};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Instant;

/// Variable that tells a process of this test program which part of its node fails.
const PART: &str = "LONGWIRE_FAILING_PART";

/// Used by the process that fails; does nothing in others.
#[test]
fn a_part_fails() {
    let Ok(part) = std::env::var(PART) else { return };
    ending::end_on_panic();
    match part.as_str() {
        "writer" => {
            failing(&VolatileStore::default()).wait();
        }
        "task" => {
            let link = "link = [{ name = 'bob', address = 'nowhere:1' }]";
            let mut setup =
                NodeSetup::new(config(&format!("node = 'dtn://alice/'\nstorage.kind = 'memory'\n{link}")));
            setup.connector =
                Arc::new(|_, _| Box::pin(async { panic!("a task fails, as a test has asked for") }));
            Node::start(setup).expect("it starts").wait();
        }
        other => panic!("there is no part called {other}"),
    }
}

fn with(forgetful: &VolatileStore) -> NodeSetup {
    NodeSetup { store: Some(forgetful.opener()), ..NodeSetup::new(config("node = 'dtn://alice/'")) }
}

/// A node whose store fails on the bundle that it has just received.
fn failing(forgetful: &VolatileStore) -> Node {
    let node = Node::start(with(forgetful)).expect("it starts");
    let mut app = App::new(&node);
    app.wait_status(|status| status["ready"] == true);
    forgetful.fail();
    app.send("dtn://bob/inbox", &payload(100, 1), MessageOptions::default());
    node
}

fn fail(part: &str) -> Output {
    failing_process(part).output().expect("it runs")
}

fn failing_process(part: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "a_part_fails", "--nocapture", "--test-threads=1"]).env(PART, part);
    command
}

#[test]
fn a_process_with_a_node_of_which_a_thread_or_a_task_fails_ends_with_a_status_of_its_own() {
    for (part, thread) in [("writer", "store-writer"), ("task", "node")] {
        let output = fail(part);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(ending::EXIT_STATUS), "{said}");
        assert!(said.contains("as a test has asked for"), "why: {said}");
        assert!(said.contains(&format!("internal error in thread `{thread}`: the node stops")), "{said}");
    }
}

/// With a standard error that is not read, as of a suspended terminal: the reason cannot be written, and the process ends.
#[test]
fn a_process_whose_node_fails_ends_though_nobody_reads_why() {
    let (read, write) = std::io::pipe().expect("a pipe");
    // Opened a second time: the process waits for room in the pipe, and this test does not.
    let options = OFlags::NONBLOCK | OFlags::WRONLY;
    let filling =
        open(format!("/proc/self/fd/{}", read.as_raw_fd()), options, Mode::empty()).expect("a pipe");
    for size in [4096, 1] {
        while rustix::io::write(&filling, &[b'\n'; 4096][..size]).is_ok() {}
    }
    let mut process = failing_process("writer").stdout(Stdio::null()).stderr(write).spawn().expect("it runs");
    let began = Instant::now();
    let status = loop {
        if let Some(status) = process.try_wait().expect("it is a child") {
            break status;
        }
        if began.elapsed() > DEADLINE {
            let _ = process.kill();
            panic!("it waits for somebody who reads why it ends");
        }
        std::thread::yield_now();
    };
    assert_eq!(status.code(), Some(ending::EXIT_STATUS));
}

#[test]
fn a_node_whose_store_fails_ends_and_passes_the_panic_on() {
    let forgetful = VolatileStore::default();
    let node = failing(&forgetful);
    let ended = catch_unwind(AssertUnwindSafe(|| node.wait()));
    let panic = ended.expect_err("it does not end as if all were well");
    let said = panic.downcast_ref::<&str>().copied().unwrap_or_default();
    assert!(said.contains("as a test has asked for"), "{said}");
}
