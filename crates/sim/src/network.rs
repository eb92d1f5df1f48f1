//! The lines and radio channels of a world, the frames on them, and the trace: everything that requests of nodes
//! affect.

use crate::channel::{ChannelId, Direction};
use crate::line::{EnqueueOutcome, Line, QueuedFrame, TransmittedFrame};
use crate::node::{Attachment, BoundInterface, NodeId, PendingIndication, find};
use crate::queue::{EventQueue, SimEvent, Slots};
use crate::radio::{ChannelContext, SharedChannel};
use crate::trace::{ChannelEnd, FrameFate, FrameRecord, FrameSink};
use longwire_proto::service::{FramesRequest, InterfaceId};
use longwire_proto::time::Instant;
use std::collections::VecDeque;

/// Implementation of a channel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChannelKind {
    /// Two lines: this one forward, the next one backward.
    Lines(u32),
    /// Radio channel.
    Radio(u32),
}

/// Frame in flight.
#[derive(Debug)]
pub(crate) struct FrameInFlight {
    pub(crate) line: u32,
    pub(crate) frame: TransmittedFrame,
}

/// Lines and radio channels, the frames on them, and the trace: everything that requests of nodes affect.
#[derive(Default)]
pub(crate) struct Network {
    pub(crate) now: Instant,
    pub(crate) queue: EventQueue,
    pub(crate) channels: Vec<ChannelKind>,
    pub(crate) lines: Vec<Line>,
    pub(crate) radios: Vec<SharedChannel>,
    pub(crate) flights: Slots<FrameInFlight>,
    pub(crate) trace: Option<FrameSink>,
    /// Interfaces that have joined and have no channel yet.
    pub(crate) unattached: Vec<ChannelEnd>,
}

impl Network {
    /// Handles a request of a node to an interface.
    pub(crate) fn frames_request(
        &mut self,
        ports: &[BoundInterface],
        node: NodeId,
        interface: InterfaceId,
        request: FramesRequest,
        pending_indications: &mut VecDeque<PendingIndication>,
    ) {
        let Some(outlet) = find(ports, interface) else {
            match request {
                // An interface without a channel has no carrier.
                FramesRequest::Join => {
                    self.unattached.push(ChannelEnd { node, interface });
                    pending_indications.push_back(PendingIndication::carrier(interface, false));
                }
                FramesRequest::Seize => {}
                FramesRequest::Frame { .. } => panic!("a frame for {interface:?}, which has no channel"),
            }
            return;
        };
        match (request, outlet) {
            (FramesRequest::Join, _) => {
                pending_indications.push_back(PendingIndication::carrier(interface, self.join(outlet)));
                pending_indications.push_back(PendingIndication::Room(interface, outlet));
            }
            // A point-to-point line needs no seizing.
            (FramesRequest::Seize, Attachment::Line(_)) => {}
            (FramesRequest::Seize, Attachment::Radio(radio, station)) => {
                let (radio, mut air) = self.radio(radio);
                radio.seize(&mut air, station);
            }
            (FramesRequest::Frame { bytes, token, shares, .. }, Attachment::Line(index)) => {
                let frame = QueuedFrame { bytes, token, shares, at: self.now };
                match self.lines[index as usize].hand(self.now, frame) {
                    EnqueueOutcome::Queued => {}
                    EnqueueOutcome::Starts(end) => self.queue.push(end, SimEvent::TransmissionEnds(index)),
                    EnqueueOutcome::Dropped(frame, fate) => {
                        pending_indications
                            .extend(token.map(|token| PendingIndication::transmitted(interface, token)));
                        pending_indications.push_back(PendingIndication::Room(interface, outlet));
                        self.drop_frame(index, frame, fate);
                    }
                }
            }
            (FramesRequest::Frame { bytes, token, shares, last }, Attachment::Radio(radio, station)) => {
                let frame = QueuedFrame { bytes, token, shares, at: self.now };
                let (radio, mut air) = self.radio(radio);
                if !radio.hand(&mut air, station, frame, last) {
                    pending_indications
                        .extend(token.map(|token| PendingIndication::transmitted(interface, token)));
                }
                pending_indications.push_back(PendingIndication::Room(interface, outlet));
            }
        }
    }

    /// Returns a radio channel and its context.
    pub(crate) fn radio(&mut self, index: u32) -> (&mut SharedChannel, ChannelContext<'_>) {
        let air = ChannelContext { now: self.now, queue: &mut self.queue, trace: &mut self.trace };
        (&mut self.radios[index as usize], air)
    }

    /// Joins a sender. Returns the carrier, which is unknown for a radio channel.
    pub(crate) fn join(&mut self, outlet: Attachment) -> bool {
        match outlet {
            Attachment::Line(index) => {
                let line = &mut self.lines[index as usize];
                line.joined = true;
                line.carrier()
            }
            Attachment::Radio(radio, station) => {
                self.radios[radio as usize].join(station);
                true
            }
        }
    }

    /// Returns the line of one direction of a channel.
    ///
    /// # Panics
    /// Panics if it is a radio channel, which has no directions.
    pub(crate) fn line_index(&self, channel: ChannelId, direction: Direction) -> u32 {
        let line = self.find_line(channel, direction);
        line.unwrap_or_else(|| panic!("{channel:?} is a radio channel, which has no directions"))
    }

    /// Returns the line of one direction of a channel; `None` for a radio channel.
    pub(crate) fn find_line(&self, channel: ChannelId, direction: Direction) -> Option<u32> {
        match self.channels[channel.0 as usize] {
            ChannelKind::Lines(forward) => Some(forward + u32::from(direction == Direction::Backward)),
            ChannelKind::Radio(_) => None,
        }
    }

    /// Returns the room of an interface if it differs from the one last reported.
    pub(crate) fn changed_room(&mut self, outlet: Attachment) -> Option<u32> {
        let line = match outlet {
            Attachment::Line(index) => &mut self.lines[index as usize],
            Attachment::Radio(radio, station) => return self.radios[radio as usize].changed_room(station),
        };
        let room = line.room();
        (core::mem::replace(&mut line.told, room) != room).then_some(room)
    }

    /// Adds a frame that has left and arrives at the given time.
    pub(crate) fn fly(&mut self, line: u32, frame: TransmittedFrame, arrival: Instant) {
        let index = self.flights.insert(FrameInFlight { line, frame });
        self.queue.push(arrival, SimEvent::FrameArrives(index));
    }

    /// Records the fate of a frame that has left.
    pub(crate) fn end_frame(&mut self, index: u32, left: TransmittedFrame, received: Option<Instant>) {
        let line = &mut self.lines[index as usize];
        line.count(left.fate);
        if let Some(trace) = &mut self.trace {
            trace(FrameRecord {
                started: Some(left.started),
                left: Some(left.left),
                received,
                damaged: left.damaged,
                ..record(index, line, left.frame, left.fate)
            });
        }
    }

    /// Drops a frame whose transmission never began.
    pub(crate) fn drop_frame(&mut self, index: u32, frame: QueuedFrame, fate: FrameFate) {
        let line = &mut self.lines[index as usize];
        line.count(fate);
        if let Some(trace) = &mut self.trace {
            trace(record(index, line, frame, fate));
        }
    }
}

/// Makes the record of a frame that did not leave.
fn record(index: u32, line: &Line, frame: QueuedFrame, fate: FrameFate) -> FrameRecord {
    let direction = if index.is_multiple_of(2) { Direction::Forward } else { Direction::Backward };
    FrameRecord {
        channel: line.channel,
        direction,
        from: line.from,
        to: line.to,
        handed: frame.at,
        started: None,
        left: None,
        received: None,
        bytes: frame.bytes,
        damaged: None,
        shares: frame.shares,
        fate,
    }
}
