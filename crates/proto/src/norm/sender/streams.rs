//! Streams at their sender (RFC 5740 4.2.1, 5.4.3).

use super::{Sender, Timer};
use crate::norm::acknowledgements::Point;
use crate::norm::config::Counters;
use crate::norm::outgoing::{Outgoing, Stream};
use crate::service::{ObjectFailure, ObjectsIndication};
use crate::time::Instant;

impl Sender {
    /// Returns a stream of the user.
    fn stream_mut(&mut self, object: u64) -> Option<&mut Stream> {
        let number = self.numbers.get(&object)?;
        self.objects.get_mut(number)?.stream_mut()
    }

    /// Notes that the bytes of a stream so far end a message.
    pub(in crate::norm) fn end_message(&mut self, object: u64) {
        if let Some(stream) = self.stream_mut(object) {
            stream.end_message();
        }
    }

    /// Makes all bytes of a stream leave, and receivers be asked what they lack.
    pub(in crate::norm) fn flush_stream(&mut self, now: Instant, object: u64) {
        let Some(stream) = self.stream_mut(object) else { return };
        stream.flush();
        self.due.flush |= self.timers.get(Timer::Flush as usize).is_none();
        self.set_release(now);
    }

    /// Notes that an open stream has had no bytes for some time, about which receivers are asked then; false if they need not be.
    pub(super) fn rest(&mut self) -> bool {
        let filling = self.filling.and_then(|number| self.objects.get_mut(&number));
        filling.and_then(Outgoing::stream_mut).is_some_and(Stream::rest)
    }

    /// Returns true if receivers may be asked what they lack now that nothing leaves: the user has nothing more to give, or the
    /// stream waits for receivers.
    pub(super) fn wants_flush(&self) -> bool {
        let filling = self.filling.and_then(|number| self.objects.get(&number));
        filling.is_none_or(|outgoing| outgoing.stream().is_some_and(Stream::wants_flush))
    }

    /// Fails a stream that has as many blocks as can be numbered.
    pub(super) fn end_exhausted(&mut self, number: u64, counters: &mut Counters) {
        let stream = self.objects.get(&number).and_then(Outgoing::stream);
        if stream.is_some_and(|stream| stream.is_stalled() && stream.is_exhausted())
            && let Some(outgoing) = self.remove(number)
        {
            counters.objects_failed += 1;
            self.fail(outgoing.object, ObjectFailure::TooLong);
        }
    }

    /// Gives up the oldest block of a stream, so that another one has room.
    pub(super) fn release_block(&mut self, number: u64, counters: &mut Counters) {
        let stream = self.objects.get_mut(&number).and_then(Outgoing::stream_mut);
        let stream = stream.expect("a block of a stream");
        stream.release_oldest();
        let first = stream.blocks().start;
        counters.blocks_released += 1;
        self.forget_blocks(number, first);
    }

    /// Forgets the requests for the blocks of a stream before one.
    fn forget_blocks(&mut self, number: u64, first: u32) {
        self.repairs.remove_before((number, first));
        self.aggregate.retain(|key, _| key.0 != number || key.1 >= first);
    }

    /// Notes that all receivers have a stream up to a point; true if that is its end.
    pub(super) fn confirm_stream(&mut self, through: Point) -> bool {
        let outgoing = self.objects.get_mut(&through.object).expect("it is acknowledged");
        let is_end = outgoing.is_sent() && outgoing.last() <= Some((through.block, through.symbol));
        let object = outgoing.object;
        let Some(stream) = outgoing.stream_mut().filter(|_| !is_end) else { return true };
        let up_to = stream.acknowledge(through.block, through.symbol);
        let first = stream.blocks().start;
        self.forget_blocks(through.object, first);
        self.up.push_back(ObjectsIndication::Acknowledged { object, up_to });
        false
    }
}
