//! Acknowledged progress never decreases.

use crate::service::{BundlesIndication, TransferFailure, TransferId};
use crate::tcpcl::Config;
use crate::tcpcl::incoming::Violation;
use crate::tcpcl::outgoing::Outgoing;
use bytes::Bytes;

const TRANSFER: TransferId = TransferId(7);

/// A transfer of 1,000 bytes, 800 of them sent, in segments of 200.
fn midway() -> Outgoing {
    let mut outgoing = Outgoing::new(&Config::default(), true, true);
    assert_eq!(outgoing.open(TRANSFER, 1000, u64::MAX), None);
    outgoing.piece(TRANSFER, Bytes::from(vec![7; 800]), false);
    for segment in 0..4 {
        let (say, data, _) = outgoing.next_segment(200).expect("there is more");
        assert_eq!((say.start, say.end, data.len()), (segment == 0, false, 200));
    }
    outgoing
}

/// RFC 9174 5.2.3: an acknowledgement contains the length received so far. One with less than an earlier one is
/// invalid, as is everything after it: the data after that offset are already acknowledged.
#[test]
fn an_acknowledgement_that_goes_back_breaks_the_session() {
    let mut outgoing = midway();
    let acked = |up_to| Ok(Some(BundlesIndication::Acked { transfer: TRANSFER, up_to }));
    assert_eq!(outgoing.ack(Some(0), 200), acked(200));
    assert_eq!(outgoing.ack(Some(0), 600), acked(600));
    // A repeated acknowledgement adds nothing, and is not a violation.
    assert_eq!(outgoing.ack(Some(0), 600), Ok(None));
    for back in [599, 400, 200, 0] {
        assert_eq!(outgoing.ack(Some(0), back), Err(Violation::Broken), "back to {back}");
    }
    // An acknowledgement of unsent data is a violation, too.
    assert_eq!(outgoing.ack(Some(0), 801), Err(Violation::Broken));
    assert_eq!(outgoing.ack(Some(0), 800), acked(800));
}

/// When the link breaks, the acknowledged length from before the invalid acknowledgement still counts.
#[test]
fn what_is_safe_stays_safe_after_an_acknowledgement_that_went_back() {
    let mut outgoing = midway();
    outgoing.ack(Some(0), 600).expect("it is in order");
    outgoing.ack(Some(0), 200).expect_err("it goes back");
    let failed: Vec<BundlesIndication> = outgoing.fail_all().collect();
    let reason = TransferFailure::LinkDown;
    assert_eq!(failed, [BundlesIndication::Failed { transfer: TRANSFER, reason, acked: 600 }]);
}
