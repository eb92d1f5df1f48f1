//! Sends objects, and waits for the watermark or for the last flush.

use crate::norm::{
    AckingStatus, Event, EventKind, NODE_ANY, NormAddAckingNode, NormGetGrttEstimate, NormGetTxRate,
    NormSetAutoParity, NormSetBackoffFactor, NormSetCongestionControl, NormSetEcnSupport, NormSetGroupSize,
    NormSetGrttEstimate, NormSetTxCacheBounds, NormSetTxOnly, NormSetTxRate, NormSetTxRateBounds,
    NormSetTxRobustFactor, NormSetWatermark, NormStartSender, NormStreamClose, NormStreamMarkEom, Object,
    Session,
};
use crate::options::{CongestionControl, Options, SendOptions, Source, is_unicast};
use crate::{Outcome, Peer};
use std::fs;

/// Objects that the library keeps for repair.
const OBJECTS_MAX: u32 = 256;
/// Bytes of them, which the library does not allocate at once.
const OBJECT_BYTES_MAX: i64 = 1 << 32;

/// A stream that is being written.
#[derive(Debug)]
struct OpenStream {
    object: Object,
    data: Vec<u8>,
    written: usize,
}

impl OpenStream {
    /// Writes as much as the library takes, in messages of this length.
    fn write(&mut self, message_bytes: usize) {
        while self.written < self.data.len() {
            let end = (self.written / message_bytes + 1).saturating_mul(message_bytes).min(self.data.len());
            self.written += self.object.write(&self.data[self.written..end]);
            if self.written < end {
                return;
            }
            NormStreamMarkEom(self.object);
        }
    }
}

pub(crate) fn run(peer: &Peer, options: &Options, send: &SendOptions) -> Result<Outcome, String> {
    let session = peer.session;
    configure(session, options, send);
    let started = NormStartSender(
        session,
        send.instance_id,
        options.buffer_bytes,
        send.segment_bytes,
        send.block,
        send.parity,
        send.fec_id,
    );
    if !started {
        return Err("the sender does not start with these segments and blocks".into());
    }
    peer.enlarge_sockets();
    NormSetTxCacheBounds(session, OBJECT_BYTES_MAX, 1, OBJECTS_MAX);
    NormSetAutoParity(session, send.auto_parity);
    for node in &send.watermark {
        NormAddAckingNode(session, *node);
    }
    peer.report.line("ready").print();

    let mut waiting = send.sources.iter();
    let mut next = waiting.next();
    let mut last = None;
    let mut stream: Option<OpenStream> = None;
    let mut is_finished = false;
    // The state of the watermark, while the end of a stream behind it is on its way.
    let mut acknowledged = None;
    loop {
        // As much as the library takes.
        while stream.is_none()
            && let Some(source) = next
        {
            let Some(object) = enqueue(session, source, send, &mut stream)? else { break };
            last = Some(object);
            next = waiting.next();
        }
        if let Some(open) = &mut stream {
            open.write(send.message_bytes);
            if open.written == open.data.len() {
                open.object.flush();
                // The watermark stands at the end of what was written, and the end of the stream behind it.
                if next.is_some() || send.watermark.is_empty() {
                    NormStreamClose(open.object, true);
                }
                stream = None;
            }
        }
        if let (None, None, Some(object), false) = (&stream, next, last, is_finished) {
            is_finished = true;
            peer.report.line("all-enqueued").print();
            if !send.watermark.is_empty() && !NormSetWatermark(session, object, false) {
                return Err("the library refuses the watermark".into());
            }
        }

        let Some(remaining) = peer.remaining() else {
            return Ok(Outcome::Timeout);
        };
        let Some(event) = peer.instance.next_event(remaining) else { continue };
        report(peer, event);
        match event.kind {
            EventKind::WatermarkCompleted if is_finished => {
                let outcome = watermark(peer, send);
                match (last, send.sources.last()) {
                    (Some(stream), Some(Source::Stream(_))) => NormStreamClose(stream, true),
                    _ => return Ok(outcome),
                }
                acknowledged = Some(outcome);
            }
            EventKind::FlushCompleted if is_finished && send.watermark.is_empty() => {
                return Ok(Outcome::Complete);
            }
            EventKind::FlushCompleted => {
                if let Some(outcome) = acknowledged {
                    return Ok(outcome);
                }
            }
            _ => {}
        }
    }
}

fn configure(session: Session, options: &Options, send: &SendOptions) {
    // With one socket, feedback arrives where it is sent from, and a receiver beside it can have the port of the
    // session.
    NormSetTxOnly(session, is_unicast(&options.address), false);
    NormSetTxRate(session, send.rate_bps);
    match send.cc {
        CongestionControl::Off => {}
        CongestionControl::On => NormSetCongestionControl(session, true, true),
        CongestionControl::Fixed => NormSetCongestionControl(session, true, false),
        CongestionControl::Tolerant => {
            NormSetEcnSupport(session, false, false, true);
            NormSetCongestionControl(session, true, true);
        }
        CongestionControl::Ecn => {
            NormSetEcnSupport(session, true, false, false);
            NormSetCongestionControl(session, true, true);
        }
    }
    if let Some((min, max)) = send.rate_bounds_bps {
        NormSetTxRateBounds(session, min, max);
    }
    if let Some(seconds) = send.grtt {
        NormSetGrttEstimate(session, seconds);
    }
    session.set_probing(send.probing);
    if let Some(factor) = send.backoff {
        NormSetBackoffFactor(session, factor);
    }
    if let Some(size) = send.group {
        NormSetGroupSize(session, size);
    }
    NormSetTxRobustFactor(session, options.robust);
}

/// `None` if the library has no room for another object yet.
fn enqueue(
    session: Session,
    source: &Source,
    send: &SendOptions,
    stream: &mut Option<OpenStream>,
) -> Result<Option<Object>, String> {
    let read = |path| fs::read(path).map_err(|error| format!("{}: {error}", std::path::Path::display(path)));
    let object = match source {
        Source::File(path) => {
            let name = path.file_name().ok_or("a file without a name")?;
            read(path)?;
            session.enqueue_file(path, name.as_encoded_bytes())
        }
        Source::Data(path) => session.enqueue_data(read(path)?.leak(), &[]),
        Source::Stream(path) => {
            let object = session.open_stream(send.stream_buffer_bytes, &[]);
            if object.is_valid() {
                *stream = Some(OpenStream { object, data: read(path)?, written: 0 });
            }
            object
        }
    };
    Ok(Some(object).filter(|object| object.is_valid()))
}

fn report(peer: &Peer, event: Event) {
    let session = peer.session;
    match event.kind {
        EventKind::ObjectSent => peer.report.line("object-sent").print(),
        EventKind::ObjectPurged => peer.report.line("object-purged").print(),
        EventKind::FlushCompleted => peer.report.line("flush-completed").print(),
        EventKind::RateChanged => {
            peer.report.line("rate").number("bits_per_second", NormGetTxRate(session)).print();
        }
        EventKind::GrttUpdated => {
            peer.report.line("grtt").number("seconds", NormGetGrttEstimate(session)).print();
        }
        EventKind::CcActive => peer.report.line("cc-active").print(),
        EventKind::CcInactive => peer.report.line("cc-inactive").print(),
        EventKind::SendError => peer.report.line("send-error").print(),
        _ => {}
    }
}

/// Reports the state of the watermark, of each node and of all.
fn watermark(peer: &Peer, send: &SendOptions) -> Outcome {
    for node in &send.watermark {
        let status = peer.session.acking_status(*node);
        peer.report.line("acknowledgement").number("node", node).text("status", status.name()).print();
    }
    let status = peer.session.acking_status(NODE_ANY);
    peer.report.line("watermark").text("status", status.name()).print();
    if status == AckingStatus::Success { Outcome::Complete } else { Outcome::Unacknowledged }
}
