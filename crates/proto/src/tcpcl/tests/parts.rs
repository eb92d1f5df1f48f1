//! Tests of parts of a session.

use crate::engine::{Engine, drain};
use crate::rng::Rng;
use crate::service::{CloseReason, StreamIndication};
use crate::tcpcl::stream_buffer::StreamBuffer;
use crate::tcpcl::{Config, Session};
use crate::time::Instant;
use bytes::Bytes;

/// A message that begins before there is room for any of it delays later, more urgent messages.
#[test]
fn a_message_begins_when_there_is_room_for_a_byte_of_it() {
    let mut pipe = StreamBuffer::default();
    assert!(!pipe.may_begin());
    pipe.set_room(1);
    assert!(pipe.may_begin());
    pipe.write(Bytes::from_static(b"message"));
    assert!(!pipe.may_begin(), "one is being written");
    let mut pipe = StreamBuffer::default();
    pipe.set_room(1);
    pipe.close();
    assert!(!pipe.may_begin(), "nothing comes behind the end");
}

/// RFC 9174 3.1: a session lives as long as its connection. A passive session does not use another connection.
#[test]
fn a_session_that_was_called_is_over_with_its_stream() {
    let now = Instant::from_secs(1);
    let mut session = Session::passive(Config::default(), Rng::new(1));
    session.handle_indication(now, StreamIndication::Connected);
    assert!(session.poll_timeout().is_some(), "it waits for a contact header");
    session.handle_indication(now, StreamIndication::Closed(CloseReason::Aborted));
    drain(&mut session, now, |_| {}, |_| {});
    assert!(session.finished());
    session.handle_indication(now, StreamIndication::Connected);
    drain(&mut session, now, |said| panic!("{said:?}"), |asked| panic!("{asked:?}"));
    assert!(session.finished() && session.poll_timeout().is_none());
}
