//! Detection of spurious retransmission timeouts (F-RTO with SACK, RFC 5682 3.1).
//!
//! After a timeout only the first segment is retransmitted. If the next acknowledgement advances, new data are sent instead
//! of further retransmissions: acknowledgements of data that were sent only once, before the timeout, show that the network
//! was slow and nothing was lost; a selective acknowledgement of the new data shows that what lies before them is lost. As
//! in Linux, the reduction of the window is undone completely (RFC 5682 leaves the response open), and a timeout within a
//! recovery that lost retransmissions have caused is not examined.

use super::congestion::Phase;
use super::connection::Connection;
use super::send::AckOutcome;

/// State of the examination of a timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ForwardRto {
    /// There was no timeout, or it was genuine, or nothing can be sent that would show more.
    #[default]
    Off,
    /// The next acknowledgement is awaited.
    Waits,
    /// New data are sent before retransmissions until the next acknowledgement arrives.
    SendsNew,
}

impl Connection {
    /// Starts the examination of a timeout (RFC 5682 3.1 step 1); `new` is true if no other recovery was in progress.
    pub(super) fn examine_timeout(&mut self, new: bool) {
        let examines = self.profile.forward_rto && self.peer.sack && (new || self.timeouts > 1);
        self.forward_rto = if examines { ForwardRto::Waits } else { ForwardRto::Off };
    }

    /// Judges an acknowledgement after a timeout (RFC 5682 3.1 steps 2 and 3).
    pub(super) fn judge_timeout(&mut self, advanced: bool, delivery: &AckOutcome) {
        let Phase::Loss { point } = self.congestion.phase else {
            self.forward_rto = ForwardRto::Off;
            return;
        };
        if self.forward_rto == ForwardRto::Off {
            return;
        }
        self.forward_rto = ForwardRto::Waits;
        if delivery.original {
            self.undo_reduction();
            self.forward_rto = ForwardRto::Off;
        } else if self.next > point {
            if delivery.sacked > 0 {
                self.forward_rto = ForwardRto::Off;
            }
        } else if advanced && self.unacknowledged < point {
            let has_new = self.has_unsent() && self.peer.limit > self.next;
            self.forward_rto = if has_new { ForwardRto::SendsNew } else { ForwardRto::Off };
        }
    }
}
