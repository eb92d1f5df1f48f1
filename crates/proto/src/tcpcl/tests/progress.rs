//! What the peer says that it has safe only grows.

use crate::service::{BundlesIndication, TransferFailure, TransferId};
use crate::tcpcl::Config;
use crate::tcpcl::incoming::Violation;
use crate::tcpcl::outgoing::Outgoing;
use bytes::Bytes;

const TRANSFER: TransferId = TransferId(7);

/// A transfer of 1,000 bytes of which 800 have left, in segments of 200.
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

/// RFC 9174 5.2.3: an acknowledgement says how much has come so far. One that says less than an earlier one is not to be
/// believed, nor is anything behind it: what would be sent again from there is safe with the peer.
#[test]
fn an_acknowledgement_that_goes_back_breaks_the_session() {
    let mut outgoing = midway();
    let acked = |up_to| Ok(Some(BundlesIndication::Acked { transfer: TRANSFER, up_to }));
    assert_eq!(outgoing.ack(Some(0), 200), acked(200));
    assert_eq!(outgoing.ack(Some(0), 600), acked(600));
    // The same once more says nothing new, and is no fault.
    assert_eq!(outgoing.ack(Some(0), 600), Ok(None));
    for back in [599, 400, 200, 0] {
        assert_eq!(outgoing.ack(Some(0), back), Err(Violation::Broken), "back to {back}");
    }
    // Nor one of what never left.
    assert_eq!(outgoing.ack(Some(0), 801), Err(Violation::Broken));
    assert_eq!(outgoing.ack(Some(0), 800), acked(800));
}

/// When the link breaks, what was acknowledged before an acknowledgement that went back still counts.
#[test]
fn what_is_safe_stays_safe_after_an_acknowledgement_that_went_back() {
    let mut outgoing = midway();
    outgoing.ack(Some(0), 600).expect("it is in order");
    outgoing.ack(Some(0), 200).expect_err("it goes back");
    let failed: Vec<BundlesIndication> = outgoing.fail_all().collect();
    let reason = TransferFailure::LinkDown;
    assert_eq!(failed, [BundlesIndication::Failed { transfer: TRANSFER, reason, acked: 600 }]);
}
