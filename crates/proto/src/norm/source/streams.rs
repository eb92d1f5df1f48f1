//! Streams of a remote sender (RFC 5740 4.2.1, 4.2.3.1, 4.2.3.3).

use super::{Position, Shared, Source, Watermark};
use crate::norm::incoming::{Incoming, Progress, Segment};
use crate::norm::wire::{FecScheme, PayloadId};
use crate::service::ObjectsIndication;
use bytes::Bytes;

impl Source {
    /// Returns the number of the block that a symbol of an object belongs to, and notes that a stream has reached it. `None` for one
    /// that no block of a stream has.
    pub(super) fn block_of(&mut self, number: u64, id: PayloadId, shared: &mut Shared<'_>) -> Option<u32> {
        let incoming = self.objects.get_mut(&number).expect("it has begun");
        let is_stream = incoming.stream.is_some();
        let sources = incoming.partition.block_symbols(id.block);
        // A block with fewer symbols has other parity symbols.
        if is_stream && incoming.scheme == FecScheme::SmallBlock && id.block_symbols != sources {
            return None;
        }
        let block = incoming.block_number(id.block, shared.config.earlier_objects)?;
        if is_stream && incoming.progress == Progress::Receiving {
            let reached = if id.symbol < sources { (block, id.symbol + 1) } else { (block + 1, 0) };
            self.reach_in_stream(number, reached, shared);
        }
        Some(block)
    }

    /// Returns the position that a FLUSH for a symbol states: the end of an object, and any symbol of a stream.
    pub(super) fn flushed(&mut self, number: u64, id: PayloadId, shared: &mut Shared<'_>) -> Position {
        let end = Position { object: number, block: u32::MAX, symbols: 0 };
        let incoming = self.objects.get_mut(&number).filter(|incoming| incoming.is_receiving_stream());
        let Some(incoming) = incoming else { return end };
        let Some(block) = incoming.block_number(id.block, shared.config.earlier_objects) else { return end };
        let symbols = id.symbol.saturating_add(1).min(incoming.partition.block_symbols(block));
        self.reach_in_stream(number, (block, symbols), shared);
        Position { object: number, block, symbols }
    }

    fn reach_in_stream(&mut self, number: u64, (block, symbols): (u32, u16), shared: &mut Shared<'_>) {
        let incoming = self.objects.get_mut(&number).expect("it has begun");
        let before = incoming.next_block;
        *shared.held -= incoming.reach(block, symbols);
        if incoming.next_block != before {
            self.rise_stream(number, shared);
        }
    }

    /// Notes from which block on a stream can be repaired.
    pub(super) fn squelch_stream(&mut self, object: u16, bits: u32, shared: &mut Shared<'_>) {
        let Some(number) = self.extend(object) else { return };
        let Some(incoming) = self.objects.get_mut(&number).filter(|incoming| incoming.is_receiving_stream())
        else {
            return;
        };
        let Some(block) = incoming.block_number(bits, false) else { return };
        let before = incoming.next_block;
        *shared.held -= incoming.skip_to(block);
        if incoming.next_block != before {
            self.rise_stream(number, shared);
        }
    }

    /// Indicates the segments of a stream that are there.
    pub(super) fn rise_stream(&mut self, number: u64, shared: &mut Shared<'_>) {
        let Some(object) = self.objects.get_mut(&number).filter(|incoming| incoming.is_receiving_stream())
        else {
            return;
        };
        let (before, risen) = (object.held, object.risen);
        let incoming = object.number;
        while let Some(Segment { gap, data, message, is_end, is_invalid }) = object.pop_segment() {
            shared.counters.violations += u64::from(is_invalid);
            if gap > 0 {
                shared.counters.gaps += 1;
                shared.up.push_back(ObjectsIndication::Gap { incoming, bytes: gap });
            }
            if !data.is_empty() {
                shared.up.push_back(ObjectsIndication::Piece { incoming, data, last: false });
            }
            if !message.is_empty() {
                shared.up.push_back(ObjectsIndication::Message { incoming });
                shared.up.push_back(ObjectsIndication::Piece { incoming, data: message, last: false });
            }
            if is_end {
                object.progress = Progress::Complete;
                shared.up.push_back(ObjectsIndication::Piece { incoming, data: Bytes::new(), last: true });
                break;
            }
        }
        *shared.held = *shared.held + object.held - before;
        shared.counters.payload_received += object.risen - risen;
        *shared.unaccepted += object.risen - risen;
        if object.progress == Progress::Complete {
            *shared.held -= object.held;
            object.clear();
            self.finish(number, shared);
        }
        self.acknowledge_if_through(shared);
    }

    /// Notes the point up to which the sender requests an acknowledgement.
    pub(super) fn set_watermark(
        &mut self,
        number: u64,
        scheme: FecScheme,
        object: u16,
        id: PayloadId,
        block: u32,
    ) {
        let point = |of: &Watermark| (of.number, of.block, of.id.symbol);
        let new = Watermark { number, scheme, object, id, block, risen: None };
        let risen = self.watermark.filter(|old| point(old) == point(&new)).and_then(|old| old.risen);
        self.watermark = Some(Watermark { risen, ..new });
    }

    /// Returns true if everything up to the watermark is accepted.
    pub(super) fn is_through(&mut self) -> bool {
        let Some(watermark) = self.watermark.as_mut().filter(|_| self.is_first_known) else { return false };
        if self.first > watermark.number {
            return true;
        }
        let stream = self.objects.get(&watermark.number).filter(|_| self.first == watermark.number);
        stream.is_some_and(|stream| {
            stream.has_risen(watermark.block, watermark.id.symbol)
                && stream.accepted >= *watermark.risen.get_or_insert(stream.risen)
        })
    }
}

impl Incoming {
    fn is_receiving_stream(&self) -> bool {
        self.stream.is_some() && self.progress == Progress::Receiving
    }
}
