//! Why transfers are refused, and what is told of it.

use crate::bp::ReasonCode;
use crate::bp::v6::wire::NO_PAYLOAD;
use crate::codec::DecodeError;
use crate::service::{AppIndication, Breach, BundlesRequest, LinkId, RefuseReason, TransferId};
use bytes::Bytes;

use super::Agent;
use super::head::AnyHead;

/// Why a transfer is refused: what the peer hears, and what the operator does.
#[derive(Debug)]
pub(super) struct TransferRefusal {
    pub(super) reason: RefuseReason,
    /// The rule that the bundle breaks, if it breaks one.
    breach: Option<Breach>,
    /// The faults that would have to be accepted from the peer, by name.
    accept: Vec<&'static str>,
}

impl From<RefuseReason> for TransferRefusal {
    fn from(reason: RefuseReason) -> Self {
        TransferRefusal { reason, breach: None, accept: Vec::new() }
    }
}

impl TransferRefusal {
    /// Bytes that are no bundle. RFC 9171 5.6 step 3 deletes what is malformed, and the copy here is deleted. But between
    /// neighbours it is far likelier that the link has damaged a bundle than that the peer has accepted such a thing: the
    /// peer is asked for it once more, and nothing is lost by a flipped bit.
    pub(super) fn damaged(breach: Breach) -> Self {
        TransferRefusal { reason: RefuseReason::Retransmit, breach: Some(breach), accept: Vec::new() }
    }

    /// A bundle that would be no better the next time.
    pub(super) fn for_good(breach: Breach) -> Self {
        TransferRefusal { reason: RefuseReason::NotAcceptable, breach: Some(breach), accept: Vec::new() }
    }

    /// A bundle that is longer than the agent takes.
    pub(super) fn too_long() -> Self {
        Self::for_good(Breach::of_all(DecodeError::Limit { what: "a bundle" }))
    }

    /// A bundle with a block that nobody here processes and that deletes it for that.
    pub(super) fn unsupported(head: &AnyHead) -> Option<Self> {
        let block = head.unsupported().into_iter().find(|block| block.delete)?;
        let what = "a block without which the bundle is not to travel";
        let error = DecodeError::Unsupported { what, clause: head.reception() };
        Some(Self::for_good(Breach::new(error, block.place)))
    }
}

impl Agent {
    /// Says that a transfer is not wanted, and forgets it.
    pub(super) fn refuse(&mut self, id: LinkId, transfer: TransferId, refusal: impl Into<TransferRefusal>) {
        let TransferRefusal { reason, breach, accept } = refusal.into();
        let counter = match reason {
            RefuseReason::Completed => &mut self.counters.refused_completed,
            RefuseReason::NoResources => &mut self.counters.refused_no_resources,
            RefuseReason::Retransmit => &mut self.counters.refused_damaged,
            _ => &mut self.counters.refused_not_acceptable,
        };
        *counter += 1;
        if self.watched || breach.is_some() {
            self.up.push_back(AppIndication::Refused { link: id, reason, breach, accept });
        }
        self.incoming.remove(&(id, transfer));
        self.control.push_back((id, BundlesRequest::Refuse { transfer, reason }));
    }

    /// A bundle goes while it arrives.
    pub(super) fn refuse_deleted(&mut self, id: LinkId, transfer: TransferId, reason: ReasonCode) {
        let reason = match reason {
            ReasonCode::LifetimeExpired | ReasonCode::TrafficPared => RefuseReason::Completed,
            _ => RefuseReason::NoResources,
        };
        self.refuse(id, transfer, reason);
    }

    /// The head of a bundle that is none, or that is not taken.
    pub(super) fn refuse_head(&mut self, id: LinkId, transfer: TransferId, input: &Bytes, breach: Breach) {
        let accept = self.would_need(id, input);
        // A bundle that is whole and legal, or that the operator might allow, would come again and again.
        let mut refusal = match breach.error == NO_PAYLOAD || !accept.is_empty() {
            true => TransferRefusal::for_good(breach),
            false => TransferRefusal::damaged(breach),
        };
        refusal.accept = accept;
        self.refuse(id, transfer, refusal);
    }
}
