//! Calls in connected mode, over simulated TNCs and the channel between them.

mod common;

use bytes::Bytes;
use common::air::Air;
use longwire_node::tnc::{Call, CallEnd, CallEvent, Driver, TEXTS_MAX, TncAddress, TncEngine, texts};
use longwire_proto::ax25::{self, LinkConfig, Station};
use longwire_proto::controller::{self, ChannelParameters};
use longwire_proto::joint::{OnFirst, Stack};
use longwire_proto::kiss;
use longwire_proto::service::{CloseReason, PacketsIndication, PacketsRequest};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// A fast channel, so that retries take little time.
fn channel() -> ChannelParameters {
    ChannelParameters {
        rate_bps: 1_000_000,
        tx_delay: Duration::ZERO,
        tx_tail: Duration::ZERO,
        slot_time: Duration::from_millis(10),
        ..ChannelParameters::default()
    }
}

fn call(air: &Air, retries: u8) -> Call {
    Call {
        own: "OE1ABC-1".parse().expect("a callsign"),
        peer: "OE1XYZ-7".parse().expect("a callsign"),
        path: Vec::new(),
        place: air.at(0).to_string().parse::<TncAddress>().expect("an address"),
        port: 0,
        channel: channel(),
        retries,
    }
}

/// Runs a mailbox at the second TNC: it greets, answers each line, and ends the connection after `BYE`, until its thread is no
/// longer needed.
fn mailbox(air: &Air, answers: bool) {
    let place = air.at(1).to_string().parse().expect("an address");
    let radio = ax25::RadioParameters { rate_bps: 1_000_000, ..ax25::RadioParameters::default() };
    let callers = answers.then(LinkConfig::default);
    let station =
        ax25::Config { radio, callers, ..ax25::Config::new("OE1XYZ-7".parse().expect("a callsign")) };
    let controller = controller::Config { channel: channel(), ..controller::Config::default() };
    let (ready, is_ready) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let tnc = TncEngine::kiss(kiss::Config::default(), controller, None);
        runtime.block_on(async {
            let mut driver = Driver::new(OnFirst(Stack::new(Station::new(station), tnc)), place);
            ready.send(()).expect("the test waits");
            let mut goodbye = false;
            loop {
                let (link, said) = driver.next().await;
                let mut say = |text: &'static [u8]| {
                    driver.request((link, PacketsRequest::payload(Bytes::from_static(text)))).is_ok()
                };
                match said {
                    PacketsIndication::Room(room) if room > 0 && !goodbye => {
                        // The greeting goes out once; later room is for answers.
                        goodbye = true;
                        assert!(say(b"Welcome to \x1b[31mXYZ-7\rBBS> "));
                    }
                    PacketsIndication::Packet(bytes) => {
                        let is_last = bytes.starts_with(b"BYE");
                        assert!(say(if is_last { b"73\r" } else { b"What?\rBBS> " }));
                        driver.request((link, PacketsRequest::Release(1))).expect("it may");
                        if is_last {
                            driver.request((link, PacketsRequest::Close)).expect("it may");
                        }
                    }
                    _ => {}
                }
            }
        });
    });
    is_ready.recv().expect("it starts");
}

/// Calls, sends each line once the text before it has come, and returns what was heard and how the call ended. After the last line, the
/// input may end.
fn converse(call: &Call, lines: &[(&str, &'static str)], ends_input: bool) -> (String, CallEnd) {
    let (send, input) = texts(TEXTS_MAX);
    let mut send = Some(send);
    let mut lines = lines.iter();
    let mut next = lines.next();
    let mut heard = String::new();
    let end = call.run(input, |event| {
        if let CallEvent::Received(bytes) = event {
            heard += &String::from_utf8_lossy(&bytes);
            if let Some((after, line)) = next
                && heard.ends_with(after)
            {
                let sender = send.take().expect("there is more to say");
                let line = Bytes::from_static(line.as_bytes());
                // The call runs on this thread, which must not wait for it.
                let told =
                    thread::spawn(move || sender.send(line).then_some(sender)).join().expect("it ends");
                next = lines.next();
                send = told.filter(|_| next.is_some() || !ends_input);
            }
        }
        Ok(())
    });
    (heard, end.expect("it can wait"))
}

#[test]
fn a_mailbox_is_called_and_answers() {
    let air = Air::new();
    mailbox(&air, true);
    let (heard, end) = converse(&call(&air, 10), &[("BBS> ", "HELP\r"), ("What?\rBBS> ", "BYE\r")], false);
    assert_eq!(heard, "Welcome to \x1b[31mXYZ-7\rBBS> What?\rBBS> 73\r");
    assert_eq!((end.was_connected, end.reason, end.unsent), (true, Some(CloseReason::Finished), 0));
}

#[test]
fn the_end_of_the_input_ends_the_connection_in_good_order() {
    let air = Air::new();
    mailbox(&air, true);
    let (heard, end) = converse(&call(&air, 10), &[("BBS> ", "HELP\r")], true);
    assert!(heard.starts_with("Welcome"), "{heard}");
    assert_eq!((end.was_connected, end.reason, end.unsent), (true, Some(CloseReason::Finished), 0));
}

#[test]
fn a_station_that_is_busy_refuses() {
    let air = Air::new();
    mailbox(&air, false);
    let (heard, end) = converse(&call(&air, 10), &[("never", "")], false);
    assert_eq!((heard.as_str(), end.was_connected, end.reason), ("", false, Some(CloseReason::Refused)));
}

#[test]
fn nobody_answers() {
    let air = Air::new();
    let (heard, end) = converse(&call(&air, 1), &[("never", "")], false);
    assert_eq!((heard.as_str(), end.was_connected, end.reason), ("", false, Some(CloseReason::TimedOut)));
}

/// An operator who calls a node gets its text; the node goes on.
#[test]
fn a_node_tells_an_operator_what_it_is() {
    let air = Air::new();
    let node = common::start(common::config(&format!(
        "node = 'dtn://xyz/'\npeers = 'any'\nstorage.kind = 'memory'\n[[tnc]]\nname = 'radio'\naddress = '{}'\n\
         callsign = 'OE1XYZ-7'\n[tnc.channel]\nrate-bps = 1_000_000\ntx-delay = '0 ms'\ntx-tail = '0 ms'\nslot-time = '10 ms'\n\
         [ax25cl]\nwelcome = 'This is dtn://xyz/, which carries messages of Longwire.'\nwelcome-after = '50 ms'\n",
        air.at(1)
    )));
    let mut app = common::App::new(&node);
    app.wait_status(|status| status["tncs"][0]["up"] == true);
    let (heard, end) = converse(&call(&air, 10), &[("never", "")], false);
    assert_eq!(heard, "This is dtn://xyz/, which carries messages of Longwire.\r");
    assert_eq!((end.was_connected, end.reason), (true, Some(CloseReason::Finished)));
    let status = app.wait_status(|status| status["callers"]["now"] == 0);
    assert_eq!(status["ready"], true);
}
