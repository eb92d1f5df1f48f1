//! Peers that announce their version late or not at all.

use super::*;
use crate::tcpcl::Tls;

/// A peer of version 3 that ignores a contact header of version 4, as ION does, is soon tried in version 3; the result
/// is remembered.
#[test]
fn silence_in_version_4_is_answered_in_version_3() {
    let second = Duration::from_secs(1);
    let config = || Config { reconnect_jitter: 0.0, ..Solo::config() };
    for (set_up, silence) in [(0, 5), (1, 5), (3, 9), (30, 60)] {
        let mut solo = Solo::new(Session::active(config(), Rng::new(1)));
        solo.asks(BundlesRequest::Connect);
        solo.waits(set_up * second);
        solo.below(StreamIndication::Connected);
        solo.below(StreamIndication::Room(1 << 20));
        solo.waits(silence as u32 * second - Duration::from_millis(1));
        assert_eq!(solo.down(), None, "set up in {set_up} s");
        solo.waits(Duration::from_millis(1));
        assert_eq!(solo.down(), Some(DownReason::KeepAlive), "set up in {set_up} s");
        // Its stream is aborted, and the peer is tried in version 3.
        solo.waits(second);
        solo.below(StreamIndication::Closed(CloseReason::Aborted));
        solo.written.clear();
        solo.below(StreamIndication::Connected);
        solo.below(StreamIndication::Room(1 << 20));
        assert_eq!(solo.written[..5], *b"dtn!\x03");
        solo.says(b"dtn!\x03\x0f\0\x1e\x05dtn:a");
        assert!(matches!(solo.told.last(), Some(BundlesIndication::Up { .. })), "{:?}", solo.told);
        // The next connection uses version 3 at once.
        solo.waits(10 * second);
        solo.below(StreamIndication::Closed(CloseReason::Finished));
        solo.waits(10 * second);
        solo.written.clear();
        solo.told.clear();
        solo.below(StreamIndication::Connected);
        solo.below(StreamIndication::Room(1 << 20));
        assert_eq!(solo.written[..5], *b"dtn!\x03");
        solo.waits(59 * second);
        assert_eq!(solo.down(), None);
    }
}

/// An active session with both versions whose peer was too busy to answer in version 4, and has accepted version 3.
fn fallen_back() -> Solo {
    let config = Config { reconnect_jitter: 0.0, ..Solo::config() };
    let mut solo = Solo::calling(config);
    solo.waits(Duration::from_secs(5));
    assert_eq!(solo.down(), Some(DownReason::KeepAlive));
    solo.waits(Duration::from_secs(1));
    solo.below(StreamIndication::Closed(CloseReason::Aborted));
    assert_eq!(again(&mut solo)[..5], *b"dtn!\x03");
    solo.says(b"dtn!\x03\x0f\0\x1e\x05dtn:a");
    assert!(matches!(solo.told.last(), Some(BundlesIndication::Up { .. })), "{:?}", solo.told);
    solo.told.clear();
    solo
}

/// Connects the stream again; returns the first bytes written.
fn again(solo: &mut Solo) -> Vec<u8> {
    solo.written.clear();
    solo.below(StreamIndication::Connected);
    solo.below(StreamIndication::Room(1 << 20));
    core::mem::take(&mut solo.written)
}

#[test]
fn silence_proves_no_version_for_ever() {
    let lost = StreamIndication::Closed(CloseReason::Reset);
    let hour = Duration::from_secs(3600);
    // A stream that breaks carries no information about versions; a peer that ends a session at once, with a SHUTDOWN
    // or without, may require another version.
    for (says, closes, version) in [(false, false, 3), (true, false, 4), (false, true, 4)] {
        let mut solo = fallen_back();
        if says {
            solo.says(&[0x50]);
        }
        if closes {
            solo.below(StreamIndication::PeerClosed);
        }
        solo.below(lost.clone());
        solo.waits(Duration::from_secs(60));
        assert_eq!(again(&mut solo)[4], version, "after a SHUTDOWN: {says}, a close: {closes}");
    }
    // A peer that was established in version 3 and does not answer in it the next time may have changed to version 4.
    let mut solo = fallen_back();
    solo.waits(Duration::from_secs(10));
    solo.below(lost.clone());
    solo.waits(Duration::from_secs(1));
    assert_eq!(again(&mut solo)[4], 3);
    solo.waits(Duration::from_secs(60));
    assert_eq!(solo.down(), Some(DownReason::Stream(CloseReason::Reset)));
    solo.below(StreamIndication::Closed(CloseReason::Aborted));
    solo.waits(Duration::from_secs(60));
    assert_eq!(again(&mut solo)[4], 4);
    // After an hour version 4 is tried again, and not earlier.
    for (after, version) in [(hour - Duration::from_secs(10), 3), (hour, 4)] {
        let mut solo = fallen_back();
        let until = solo.now + (after - Duration::from_secs(1));
        while solo.now < until {
            solo.says(&[0x40]);
            solo.waits(Duration::from_secs(20).min(until.saturating_since(solo.now)));
        }
        assert_eq!(solo.down(), None);
        solo.below(lost.clone());
        solo.waits(Duration::from_secs(1));
        assert_eq!(again(&mut solo)[4], version, "{after:?}");
    }
    // If it then answers in version 4, it is of version 4.
    let mut solo = fallen_back();
    solo.says(&[0x50]);
    solo.below(lost.clone());
    solo.waits(Duration::from_secs(60));
    assert_eq!(again(&mut solo)[4], 4);
    solo.says(b"dtn!\x04\0");
    solo.below(lost);
    solo.waits(Duration::from_secs(60));
    assert_eq!(again(&mut solo)[4], 4);
    solo.told.clear();
    solo.waits(Duration::from_secs(59));
    assert_eq!(solo.down(), None, "it has all the time that a contact header has");
}

/// A peer that answers in version 3 has announced its version: neither time nor the way in which its sessions end
/// changes that.
#[test]
fn a_version_that_the_peer_has_said_stays() {
    let three = b"dtn!\x03\x0f\0\x1e\x05dtn:a";
    let mut solo = Solo::calling(Config { reconnect_jitter: 0.0, ..Solo::config() });
    solo.says(three);
    assert_eq!(solo.down(), Some(DownReason::Version));
    // It ends its session at once, after two hours, and at once again.
    for lives in [Duration::ZERO, Duration::from_secs(2 * 3600), Duration::ZERO] {
        solo.below(StreamIndication::Closed(CloseReason::Aborted));
        solo.waits(Duration::from_secs(60));
        assert_eq!(again(&mut solo)[4], 3, "before {lives:?}");
        solo.told.clear();
        solo.says(three);
        assert!(matches!(solo.told[..], [BundlesIndication::Up { .. }]), "{:?}", solo.told);
        let until = solo.now + lives;
        while solo.now < until {
            solo.says(&[0x40]);
            solo.waits(Duration::from_secs(20));
        }
        solo.says(&[0x50]);
    }
    solo.below(StreamIndication::Closed(CloseReason::Aborted));
    solo.waits(Duration::from_secs(60));
    assert_eq!(again(&mut solo)[4], 3);
}

#[test]
fn who_wants_tls_is_not_hurried_into_a_version_without_it() {
    for (tls, limit) in [(Tls::Off, 5), (Tls::Prefer, 60)] {
        let mut solo = Solo::calling(Config { tls, ..Solo::config() });
        solo.waits(Duration::from_secs(limit) - Duration::from_millis(1));
        assert_eq!(solo.down(), None, "{tls:?}");
        solo.waits(Duration::from_millis(1));
        assert_eq!(solo.down(), Some(DownReason::KeepAlive), "{tls:?}");
    }
}
