//! Events of cables: sessions, transfers, arrivals, cuts.

use super::*;

impl World {
    pub(super) fn say(&mut self, cable: usize, end: usize, indication: BundlesIndication) {
        let (node, link) = self.cables[cable].ends[end];
        let now = self.now;
        if let Some(agent) = &mut self.nodes[node].agent {
            agent.handle_indication(now, Port::Second((link, indication)));
            self.settle(node);
        }
    }

    pub(super) fn post(&mut self, cable: usize, end: usize, at: Instant, wire: Wire) {
        let (epoch, delay) = (self.cables[cable].epoch, self.cables[cable].delay);
        self.at(at + delay, Event::Wire(cable, epoch, 1 - end, wire));
    }

    pub(super) fn cable_request(&mut self, index: usize, end: usize, request: BundlesRequest) {
        let now = self.now;
        let cable = &mut self.cables[index];
        match request {
            BundlesRequest::Connect => {
                cable.halves[end].connect = true;
                let epoch = cable.epoch;
                self.at(now, Event::Wire(index, epoch, end, Wire::Free(0)));
            }
            BundlesRequest::Close => {
                cable.halves[end].connect = false;
                self.end_session(index);
            }
            BundlesRequest::Open { transfer, length, .. } => {
                cable.halves[1 - end].next += 1;
                let there = TransferId(cable.halves[1 - end].next);
                let out = Out { sent: 0, acked: 0, there, start: BytesMut::new(), noted: false };
                cable.halves[end].outgoing.insert(transfer, out);
                self.post(index, end, now, Wire::Begin(transfer, length));
            }
            BundlesRequest::Piece { transfer, data, last } => {
                self.cable_piece(index, end, transfer, data, last)
            }
            BundlesRequest::Cancel { transfer } => {
                let Some(out) = cable.halves[end].outgoing.remove(&transfer) else { return };
                self.post(index, end, now, Wire::Cancelled(out.there));
                let (reason, acked) = (TransferFailure::Cancelled, out.acked);
                self.say(index, end, BundlesIndication::Failed { transfer, reason, acked });
            }
            BundlesRequest::Accept { transfer, up_to } => {
                let Some(arriving) = cable.halves[end].incoming.get_mut(&transfer) else { return };
                arriving.accepted = up_to;
                let here = arriving.here;
                if up_to == arriving.length {
                    cable.halves[end].incoming.remove(&transfer);
                }
                self.post(index, end, now, Wire::Acked(here, up_to));
            }
            BundlesRequest::Refuse { transfer, reason } => {
                let Some(arriving) = cable.halves[end].incoming.remove(&transfer) else { return };
                self.post(index, end, now, Wire::Refused(arriving.here, reason));
            }
        }
    }

    pub(super) fn cable_piece(
        &mut self,
        index: usize,
        end: usize,
        transfer: TransferId,
        mut data: Bytes,
        last: bool,
    ) {
        let now = self.now;
        let cable = &mut self.cables[index];
        if core::mem::take(&mut cable.damage) {
            let mut bytes = data.to_vec();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x10;
            data = bytes.into();
        }
        let length = data.len() as u64;
        cable.carried += length;
        let half = &mut cable.halves[end];
        half.in_flight += length;
        let begin = half.free_at.max(now);
        half.free_at = begin + cable.byte_time * length as u32;
        let done = half.free_at;
        let out = half.outgoing.get_mut(&transfer).expect("it is open");
        if !out.noted && out.sent < 16_384 {
            out.start.extend_from_slice(&data[..data.len().min(16_384)]);
        }
        out.sent += length;
        let start = out.start.clone().freeze();
        if !out.noted
            && let Ok((head, _)) = decode_head(&start, &DecodePolicy::STRICT)
        {
            out.noted = true;
            self.note_head(index, end, head);
        } else if !out.noted
            && let Ok((head, _)) = v6::decode_head(&start, &DecodePolicy::STRICT)
        {
            out.noted = true;
            cable.heads6.push(head);
        }
        let epoch = self.cables[index].epoch;
        self.at(done, Event::Wire(index, epoch, end, Wire::Free(length)));
        self.post(index, end, done, Wire::Piece(transfer, data, last));
    }

    /// Checks that a transfer with this header carries nothing that the peer has acknowledged.
    pub(super) fn note_head(&mut self, index: usize, end: usize, head: Head) {
        let from = head.primary.fragment.map_or(0, |fragment| fragment.offset);
        let to = from + head.payload.length;
        let cable = &mut self.cables[index];
        let of = head.primary.timestamp;
        if !self.strict {
            cable.heads.push(head);
            return;
        }
        for (_, _, a, b) in cable.safe.iter().filter(|(by, bundle, ..)| *by == end && *bundle == of) {
            assert!(*b <= from || to <= *a, "bytes {a}..{b} are safe, and sent again in {from}..{to}");
        }
        cable.heads.push(head);
    }

    pub(super) fn wire(&mut self, index: usize, end: usize, wire: Wire) {
        let cable = &mut self.cables[index];
        match wire {
            Wire::Free(length) => {
                cable.halves[end].in_flight -= length;
                self.connect(index);
                let cable = &self.cables[index];
                if cable.session {
                    let room = cable.window.saturating_sub(cable.halves[end].in_flight);
                    self.say(index, end, BundlesIndication::Room(room));
                }
            }
            Wire::Begin(here, length) => {
                let transfer = cable.halves[1 - end].outgoing.get(&here).map(|out| out.there);
                let Some(transfer) = transfer else { return };
                cable.halves[end].incoming.insert(transfer, In { here, accepted: 0, length });
                self.say(index, end, BundlesIndication::Begin { transfer, length: Some(length) });
            }
            Wire::Piece(here, data, last) => {
                let found = cable.halves[end].incoming.iter().find(|(_, arriving)| arriving.here == here);
                let Some((&transfer, _)) = found else { return };
                self.say(index, end, BundlesIndication::Piece { transfer, data, last });
            }
            Wire::Acked(transfer, up_to) => {
                let Some(out) = cable.halves[end].outgoing.get_mut(&transfer) else { return };
                out.acked = up_to;
                let whole =
                    !cable.halves[1 - end].incoming.values().any(|arriving| arriving.here == transfer);
                self.say(index, end, BundlesIndication::Acked { transfer, up_to });
                if whole
                    && self.cables[index].halves[end]
                        .outgoing
                        .get(&transfer)
                        .is_some_and(|out| out.sent == up_to)
                {
                    self.cables[index].halves[end].outgoing.remove(&transfer);
                    self.say(index, end, BundlesIndication::Sent { transfer });
                }
            }
            Wire::Refused(transfer, reason) => {
                let Some(out) = cable.halves[end].outgoing.remove(&transfer) else { return };
                let (reason, acked) = (TransferFailure::Refused(reason), out.acked);
                self.say(index, end, BundlesIndication::Failed { transfer, reason, acked });
            }
            Wire::Cancelled(transfer) => {
                if cable.halves[end].incoming.remove(&transfer).is_some() {
                    self.say(index, end, BundlesIndication::Lost { transfer });
                }
            }
        }
        self.cut_when_due(index);
    }

    pub(super) fn cut_when_due(&mut self, index: usize) {
        let cable = &self.cables[index];
        if let Some((at, pause)) = cable.cut_at
            && cable.carried >= at
        {
            self.cables[index].cut_at = None;
            self.cut(index);
            let heal = self.now + pause;
            self.at(heal, Event::Heal(index));
        }
    }

    /// Begins a session unless something prevents it.
    pub(super) fn connect(&mut self, index: usize) {
        let cable = &mut self.cables[index];
        let alive = cable.ends.iter().all(|(node, _)| self.nodes[*node].agent.is_some());
        let wanted = cable.halves.iter().any(|half| half.connect);
        if cable.session || !cable.plugged || !alive || !wanted {
            return;
        }
        cable.session = true;
        for end in 0..2 {
            let cable = &self.cables[index];
            let peer = Some(self.nodes[cable.ends[1 - end].0].config.node.clone());
            let (interleave, transfer_bytes_max) = (cable.interleave, cable.transfer_bytes_max);
            let room = cable.window;
            self.say(index, end, BundlesIndication::Up { peer, interleave, transfer_bytes_max });
            if self.cables[index].session {
                self.say(index, end, BundlesIndication::Room(room));
            }
        }
    }

    /// Ends an idle session; it begins again when an agent requests it.
    pub(in super::super) fn rest(&mut self, index: usize) {
        let cable = &mut self.cables[index];
        assert!(cable.session && cable.halves.iter().all(|half| half.outgoing.is_empty()), "it is not idle");
        cable.session = false;
        cable.epoch += 1;
        cable.halves.iter_mut().for_each(|half| half.connect = false);
        for end in 0..2 {
            self.say(index, end, BundlesIndication::Down { reason: DownReason::Idle, retry: false });
        }
    }

    /// Cuts a cable: everything on it is lost.
    pub(in super::super) fn cut(&mut self, index: usize) {
        let cable = &mut self.cables[index];
        cable.plugged = false;
        cable.epoch += 1;
        if !core::mem::take(&mut cable.session) {
            return;
        }
        for end in 0..2 {
            let half = &mut self.cables[index].halves[end];
            half.in_flight = 0;
            half.free_at = self.now;
            let outgoing = core::mem::take(&mut half.outgoing);
            let incoming = core::mem::take(&mut half.incoming);
            for (transfer, out) in outgoing {
                self.note_safe(index, end, &out);
                let (reason, acked) = (TransferFailure::LinkDown, out.acked);
                self.say(index, end, BundlesIndication::Failed { transfer, reason, acked });
            }
            for transfer in incoming.into_keys() {
                self.say(index, end, BundlesIndication::Lost { transfer });
            }
            let reason = DownReason::Stream(CloseReason::Reset);
            self.say(index, end, BundlesIndication::Down { reason, retry: true });
        }
    }

    /// Ends a session that is closed while nothing is being sent.
    pub(super) fn end_session(&mut self, index: usize) {
        let cable = &mut self.cables[index];
        let idle = cable.halves.iter().all(|half| half.outgoing.is_empty() && half.incoming.is_empty());
        if !idle || !core::mem::take(&mut cable.session) {
            return;
        }
        cable.epoch += 1;
        for end in 0..2 {
            let wanted = core::mem::take(&mut self.cables[index].halves[end].connect);
            let reason = if wanted { DownReason::PeerClosed } else { DownReason::Closed };
            self.say(index, end, BundlesIndication::Down { reason, retry: false });
        }
    }

    pub(super) fn note_safe(&mut self, index: usize, end: usize, out: &Out) {
        let Ok((head, head_bytes)) = decode_head(&out.start.clone().freeze(), &DecodePolicy::STRICT) else {
            return;
        };
        let from = head.primary.fragment.map_or(0, |fragment| fragment.offset);
        let safe = out.acked.saturating_sub(head_bytes as u64).min(head.payload.length);
        if safe > 0 && !head.primary.flags.contains(crate::bp::BundleFlags::MUST_NOT_FRAGMENT) {
            self.cables[index].safe.push((end, head.primary.timestamp, from, from + safe));
        }
    }

    pub(in super::super) fn heal(&mut self, index: usize) {
        self.cables[index].plugged = true;
        self.connect(index);
    }
}
