//! Tests of parts of a session.

use crate::engine::{Engine, drain};
use crate::rng::Rng;
use crate::service::{
    BundlesIndication, BundlesRequest, CloseReason, Priority, StreamIndication, StreamRequest, TransferId,
};
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

/// A stream that passes on quickly what it has room for needs no short segments, which cost more.
#[test]
fn segments_are_long_while_there_is_ample_room() {
    let cases: [(Option<u64>, u64, u64, u64); 6] = [
        (None, 5000, 1000, 100),
        (Some(1000), 1000, 1000, 100),
        (Some(1000), 1001, 1000, 400),
        (Some(1000), 5000, 250, 250),
        (Some(1000), 5000, 50, 50),
        (Some(1000), 800, 1000, 100),
    ];
    for (ample_room_bytes, room, peer_mru, expected) in cases {
        let config = Config { segment_bytes: 100, ample_room_bytes, ..Config::version_4("dtn://a/") };
        let mut session = Session::active(config, Rng::new(1));
        let now = Instant::from_secs(1);
        let (mut rooms, mut written) = (Vec::new(), Vec::new());
        let mut settle = |session: &mut Session| {
            drain(
                session,
                now,
                |said| rooms.extend(if let BundlesIndication::Room(room) = said { Some(room) } else { None }),
                |asked| {
                    if let StreamRequest::Write(bytes) = asked {
                        written.extend_from_slice(&bytes)
                    }
                },
            );
            (rooms.last().copied(), core::mem::take(&mut written))
        };
        session.handle_request(now, BundlesRequest::Connect);
        session.handle_indication(now, StreamIndication::Connected);
        session.handle_indication(now, StreamIndication::Room(room));
        // RFC 9174 4.6: no keepalives, segment and transfer MRU, node ID, no extensions.
        let init = [
            &[7, 0, 0][..],
            &u64::to_be_bytes(peer_mru),
            &u64::to_be_bytes(1 << 20),
            b"\0\x08dtn://b/",
            &[0; 4],
        ];
        session.handle_indication(now, StreamIndication::Data(Bytes::from_static(b"dtn!\x04\0")));
        session.handle_indication(now, StreamIndication::Data(init.concat().into()));
        settle(&mut session);
        session.handle_indication(now, StreamIndication::Room(room));
        assert_eq!(settle(&mut session).0, Some(expected), "{ample_room_bytes:?} {room} {peer_mru}");
        let transfer = TransferId(1);
        session.handle_request(
            now,
            BundlesRequest::Open { transfer, priority: Priority::Normal, length: expected },
        );
        let data = Bytes::from(vec![b'x'; expected as usize]);
        session.handle_request(now, BundlesRequest::Piece { transfer, data: data.clone(), last: true });
        let (_, sent) = settle(&mut session);
        // RFC 9174 5.2.2: with START and END, in one segment.
        assert_eq!(sent[..2], [1, 3]);
        assert!(sent.ends_with(&[&expected.to_be_bytes()[..], &data].concat()), "one segment");
    }
    // Peers of version 3 announce no maximum (RFC 7242 4.1), so theirs is what the operator sets.
    let config = Config { segment_bytes: 100, ample_room_bytes: Some(1000), ..Config::version_3("dtn://a/") };
    let mut session = Session::active(config, Rng::new(1));
    let (now, mut rooms) = (Instant::from_secs(1), Vec::new());
    session.handle_request(now, BundlesRequest::Connect);
    session.handle_indication(now, StreamIndication::Connected);
    session.handle_indication(now, StreamIndication::Data(Bytes::from_static(b"dtn!\x03\0\0\0\x08dtn://b/")));
    session.handle_indication(now, StreamIndication::Room(5000));
    let hear = |said| rooms.extend(if let BundlesIndication::Room(room) = said { Some(room) } else { None });
    drain(&mut session, now, hear, |_| {});
    assert_eq!(rooms.last(), Some(&100));
}
