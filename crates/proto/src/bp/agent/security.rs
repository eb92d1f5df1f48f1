//! Hooks for bundle security (RFC 9172): where a bundle is made, before it is forwarded, and before it is delivered.
//!
//! The hooks are not called for bundles of version 6, whose security protocol (RFC 6257) is a different one.
//!
//! Not implemented: whatever the hooks do, security blocks are blocks that the agent cannot process. It removes a block,
//! or refuses a bundle, on arrival if the flags of the block ask for that (RFC 9171 4.2.4).

use core::fmt::Debug;

use crate::bp::{Eid, Head, ReasonCode};
use crate::service::{RefuseReason, SendFailure};

use super::Agent;
use super::head::AnyHead;

/// End of a send whose bundle may not be forwarded or delivered.
pub(super) const NOT_PERMITTED: SendFailure = SendFailure::Refused(RefuseReason::NotAcceptable);

/// Bundle security of a node. By default, every bundle passes unchanged.
///
/// Only the header is available, because the payload is streamed: an integrity block over the payload cannot be made or
/// verified here. The primary block and the payload block must stay as they are.
pub trait Security: Debug + Send {
    /// Adds blocks to a bundle made at this node, before it is stored. Administrative records are such bundles, too.
    fn at_source(&self, _head: &mut Head) {}

    /// Changes the blocks of a bundle, or of the fragment that is about to be sent, for the neighbour with this node ID, if
    /// that is known. A bundle stays within the limits of the link only if its header does not grow.
    ///
    /// # Errors
    /// Fails with the reason for which the bundle is deleted instead.
    fn before_forwarding(&self, _head: &mut Head, _to: Option<&Eid>) -> Result<(), ReasonCode> {
        Ok(())
    }

    /// Examines a payload for this node once it is complete, after a restart again; `head` is that of its oldest part.
    /// If this header is longer than 512 bytes, `head` has only blocks that the agent itself reads, and no security
    /// blocks: the others are on disk.
    ///
    /// # Errors
    /// Fails with the reason for which the bundle, or all of its fragments, are deleted instead.
    fn before_delivery(&self, _head: &Head) -> Result<(), ReasonCode> {
        Ok(())
    }
}

/// Security of a node that has none.
#[derive(Debug)]
pub(super) struct NoSecurity;

impl Security for NoSecurity {}

impl Agent {
    /// Sets the bundle security of the node; initially there is none.
    pub fn set_security(&mut self, security: Box<dyn Security>) {
        self.security = security;
    }

    pub(super) fn secure_source(&self, head: &mut AnyHead) {
        if let AnyHead::V7(head) = head {
            self.security.at_source(head);
        }
    }

    pub(super) fn secure_forwarding(&self, head: &mut AnyHead, to: Option<&Eid>) -> Result<(), ReasonCode> {
        match head {
            AnyHead::V7(head) => self.security.before_forwarding(head, to),
            AnyHead::V6(_) => Ok(()),
        }
    }

    pub(super) fn secure_delivery(&self, head: &AnyHead) -> Result<(), ReasonCode> {
        match head {
            AnyHead::V7(head) => self.security.before_delivery(head),
            AnyHead::V6(_) => Ok(()),
        }
    }
}
