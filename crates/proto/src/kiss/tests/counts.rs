//! The counters of a TNC, and the frames that it holds.

use crate::controller::{self, GATHER};
use crate::engine::{Engine, drain};
use crate::kiss::{Acknowledgement, Command, Config, Counters, Deframer, FRAME_BYTES_MAX, Frame, KissTnc};
use crate::service::{FramesIndication, FramesRequest, Shares, StreamIndication};
use crate::time::Instant;
use bytes::{Bytes, BytesMut};

/// Returns a TNC with an open line.
fn tnc(config: Config) -> KissTnc {
    let mut tnc = KissTnc::new(config, controller::Config::default());
    tnc.handle_request(Instant::ZERO, FramesRequest::Join);
    for said in [StreamIndication::Connected, StreamIndication::Room(100_000)] {
        tnc.handle_indication(Instant::ZERO, said);
    }
    all_of(&mut tnc, Instant::ZERO);
    tnc
}

/// Requests the channel for the user, waits for room, and returns the time of the grant.
fn with_room(tnc: &mut KissTnc) -> Instant {
    tnc.handle_request(Instant::ZERO, FramesRequest::Seize);
    assert_eq!(all_of(tnc, Instant::ZERO), [], "room comes with the channel alone");
    let now = Instant::ZERO + GATHER;
    tnc.handle_timeout(now);
    let room = controller::Config::default().burst_frames_max;
    assert_eq!(all_of(tnc, now), [FramesIndication::Room(room)]);
    now
}

/// Drains the TNC and returns its indications.
fn all_of(tnc: &mut KissTnc, now: Instant) -> Vec<FramesIndication> {
    let mut said = Vec::new();
    drain(tnc, now, |up| said.push(up), |_| {});
    said
}

#[test]
fn every_content_that_is_too_long_counts() {
    let (mut deframer, mut dropped) = (Deframer::new(), vec![]);
    for _ in 0..3 {
        dropped.push(deframer.dropped());
        let mut line = vec![5; FRAME_BYTES_MAX + 1];
        line.push(0xc0);
        assert_eq!(deframer.next(&mut line.into()), None);
    }
    assert_eq!((dropped, deframer.dropped()), (vec![0, 1, 2], 3));
    // A content of exactly the maximum length is not too long.
    let mut line = vec![5; FRAME_BYTES_MAX];
    line.push(0xc0);
    assert_eq!(deframer.next(&mut line.into()).map(|content| content.len()), Some(FRAME_BYTES_MAX));
    assert_eq!(deframer.dropped(), 3);
}

#[test]
fn what_is_heard_is_counted_by_its_kind() {
    let mut tnc = tnc(Config { port: 3, ..Config::default() });
    let mut line = BytesMut::new();
    let mut says = |port, body| {
        crate::kiss::enclose(&Frame { port, body }, crate::kiss::Checksum::None, &mut line);
    };
    for _ in 0..2 {
        says(3, Command::Data(Bytes::from_static(b"for this one")));
        says(3, Command::Data(Bytes::from_static(b"and one more")));
        says(4, Command::Data(Bytes::from_static(b"for another")));
        // Commands that a TNC never sends to a host.
        says(3, Command::TxDelay(9));
        says(3, Command::Poll);
    }
    // Type octets without the required parameter.
    line.extend_from_slice(&[0xc0, 0x31, 0xc0, 0x3c, 7, 0xc0]);
    // The last is the beginning of a content that is too long.
    line.extend_from_slice(&vec![9; FRAME_BYTES_MAX + 1]);
    line.extend_from_slice(&[0xc0]);
    tnc.handle_indication(Instant::ZERO, StreamIndication::Data(line.freeze()));
    let said = all_of(&mut tnc, Instant::ZERO);
    let frames = said.iter().filter(|said| matches!(said, FramesIndication::Frame(_))).count();
    let counters = tnc.counters();
    let expected = Counters { received: 4, damaged: 3, foreign: 4, connections: 1, ..Counters::default() };
    assert_eq!((frames, counters), (4, expected));
}

#[test]
fn what_has_not_left_is_held_and_what_is_never_acknowledged_counts() {
    let mut tnc = tnc(Config { acknowledgement: Acknowledgement::Always, ..Config::default() });
    let now = with_room(&mut tnc);
    for number in 0..3 {
        let (bytes, last) = (Bytes::from_static(b"a frame"), number == 2);
        let frame = FramesRequest::Frame { bytes, token: Some(number), last, shares: Shares::default() };
        assert_eq!(tnc.held(), number as usize);
        tnc.handle_request(now, frame);
    }
    all_of(&mut tnc, now);
    let counted = |tnc: &KissTnc| (tnc.held(), tnc.counters().sent, tnc.counters().unacknowledged);
    assert_eq!(counted(&tnc), (3, 3, 0));
    // The TNC reports the first frame as transmitted, and none of the others.
    tnc.handle_indication(now, StreamIndication::Data(Bytes::from_static(&[0xc0, 0x0c, 0, 0, 0xc0])));
    assert_eq!(all_of(&mut tnc, now)[0], FramesIndication::Transmitted(0));
    assert_eq!(counted(&tnc), (2, 3, 0));
    while let Some(at) = tnc.poll_timeout().filter(|at| *at < Instant::from_secs(60)) {
        tnc.handle_timeout(at);
        all_of(&mut tnc, at);
    }
    assert_eq!(counted(&tnc), (0, 3, 2));
}
