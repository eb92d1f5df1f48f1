//! Refusal of transfers, and its reason.

use crate::bp::ReasonCode;
use crate::bp::v6::wire::NO_PAYLOAD;
use crate::codec::DecodeError;
use crate::service::{Breach, BundlesRequest, LinkId, ManagementIndication, RefuseReason, TransferId};
use bytes::Bytes;

use super::Agent;
use super::head::AnyHead;

/// Reason for refusing a transfer, for the peer and for the operator.
#[derive(Debug)]
pub(super) struct TransferRefusal {
    pub(super) reason: RefuseReason,
    /// Rule that the bundle violates; `None` if it violates none.
    breach: Option<Breach>,
    /// Names of the faults that would have to be accepted from the peer.
    accept: Vec<&'static str>,
}

impl From<RefuseReason> for TransferRefusal {
    fn from(reason: RefuseReason) -> Self {
        TransferRefusal { reason, breach: None, accept: Vec::new() }
    }
}

impl TransferRefusal {
    /// Refuses invalid bytes. RFC 9171 5.6 step 3 deletes a malformed bundle, and so does this node. But
    /// between neighbours it is far more likely that the link damaged a bundle than that the peer accepted a
    /// malformed one. So the peer is asked to resend it, and a flipped bit loses nothing.
    pub(super) fn damaged(breach: Breach) -> Self {
        TransferRefusal { reason: RefuseReason::Retransmit, breach: Some(breach), accept: Vec::new() }
    }

    /// Refuses a bundle that would be invalid again if resent.
    pub(super) fn for_good(breach: Breach) -> Self {
        TransferRefusal { reason: RefuseReason::NotAcceptable, breach: Some(breach), accept: Vec::new() }
    }

    /// Refuses a bundle that exceeds the maximum length.
    pub(super) fn too_long() -> Self {
        Self::for_good(Breach::of_all(DecodeError::Limit { what: "a bundle" }))
    }

    /// Refusal of a bundle with an unsupported block whose flags require deletion; `None` without such a
    /// block.
    pub(super) fn unsupported(head: &AnyHead) -> Option<Self> {
        let block = head.unsupported().into_iter().find(|block| block.delete)?;
        let what = "a block whose flags require deletion of the bundle";
        let error = DecodeError::Unsupported { what, clause: head.reception() };
        Some(Self::for_good(Breach::new(error, block.place)))
    }
}

impl Agent {
    /// Refuses a transfer, and removes its state.
    pub(super) fn refuse(&mut self, id: LinkId, transfer: TransferId, refusal: impl Into<TransferRefusal>) {
        let TransferRefusal { reason, breach, accept } = refusal.into();
        let counter = match reason {
            RefuseReason::Completed => &mut self.counters.refused_completed,
            RefuseReason::NoResources => &mut self.counters.refused_no_resources,
            RefuseReason::Retransmit => &mut self.counters.refused_damaged,
            _ => &mut self.counters.refused_not_acceptable,
        };
        *counter += 1;
        if self.indications.are_watched() || breach.is_some() {
            self.indications.push(ManagementIndication::Refused { link: id, reason, breach, accept });
        }
        self.intake.remove(&(id, transfer));
        self.outgoing.tell(id, BundlesRequest::Refuse { transfer, reason });
    }

    /// Refuses the transfer of an arriving bundle that is deleted.
    pub(super) fn refuse_deleted(&mut self, id: LinkId, transfer: TransferId, reason: ReasonCode) {
        let reason = match reason {
            ReasonCode::LifetimeExpired | ReasonCode::TrafficPared => RefuseReason::Completed,
            _ => RefuseReason::NoResources,
        };
        self.refuse(id, transfer, reason);
    }

    /// Refuses a transfer whose header is invalid or not accepted.
    pub(super) fn refuse_head(&mut self, id: LinkId, transfer: TransferId, input: &Bytes, breach: Breach) {
        let accept = self.would_need(id, input);
        // The peer would resend a complete and valid bundle, or one that the operator could permit, again and
        // again.
        let mut refusal = match breach.error == NO_PAYLOAD || !accept.is_empty() {
            true => TransferRefusal::for_good(breach),
            false => TransferRefusal::damaged(breach),
        };
        refusal.accept = accept;
        self.refuse(id, transfer, refusal);
    }
}
