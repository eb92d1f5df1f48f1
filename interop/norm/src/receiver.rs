//! Receives objects until there are as many as wanted.

use crate::norm::{
    Event, EventKind, NormNodeGetGrtt, NormNodeGetId, NormObjectRetain, NormSetDefaultRxRobustFactor,
    NormSetDefaultUnicastNack, NormSetSilentReceiver, NormStartReceiver, Object, ObjectKind,
};
use crate::options::{Options, ReceiveOptions};
use crate::{Outcome, Peer};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

/// Bytes that are read from a stream at a time.
const READ_BYTES: usize = 64 << 10;

/// What came of a stream so far.
#[derive(Debug, Default)]
struct Received {
    hash: Sha256,
    bytes: u64,
    /// How often data were missing for ever.
    breaks: u32,
}

impl Received {
    fn read(&mut self, stream: Object) {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match stream.read(&mut buffer) {
                Some(0) => return,
                Some(bytes) => {
                    self.hash.update(&buffer[..bytes]);
                    self.bytes += bytes as u64;
                }
                None => self.breaks += 1,
            }
        }
    }
}

pub(crate) fn run(peer: &Peer, options: &Options, receive: &ReceiveOptions) -> Result<Outcome, String> {
    let session = peer.session;
    if let Some(folder) = &receive.folder
        && !peer.instance.set_cache_directory(folder)
    {
        return Err(format!("no folder {}", folder.display()));
    }
    let is_unicast = crate::options::is_unicast(&options.address);
    NormSetDefaultUnicastNack(session, is_unicast || receive.unicast_nacks);
    NormSetSilentReceiver(session, receive.silent, -1);
    NormSetDefaultRxRobustFactor(session, options.robust);
    session.set_sync_policy(receive.sync);
    if !NormStartReceiver(session, options.buffer_bytes) {
        return Err(format!("the receiver does not start at port {}", options.port));
    }
    peer.enlarge_sockets();
    peer.report.line("ready").print();

    let mut streams: BTreeMap<Object, Received> = BTreeMap::new();
    let (mut complete, mut aborted) = (0, false);
    while complete < receive.objects {
        let Some(remaining) = peer.remaining() else {
            return Ok(Outcome::Timeout);
        };
        let Some(event) = peer.instance.next_event(remaining) else { continue };
        let object = event.object;
        match event.kind {
            EventKind::ObjectNew if object.kind() == Some(ObjectKind::Stream) => {
                NormObjectRetain(object);
                streams.entry(object).or_default().read(object);
            }
            EventKind::ObjectUpdated => {
                if let Some(stream) = streams.get_mut(&object) {
                    stream.read(object);
                }
            }
            EventKind::ObjectCompleted => {
                report_object(peer, event, receive.folder.as_deref(), streams.remove(&object))?;
                complete += 1;
            }
            EventKind::ObjectAborted => {
                streams.remove(&object);
                aborted = true;
                let kind = object.kind().map_or("none", ObjectKind::name);
                peer.report.line("object-aborted").text("kind", kind).print();
            }
            _ => report_sender(peer, event),
        }
    }
    Ok(if aborted { Outcome::Aborted } else { Outcome::Complete })
}

fn report_sender(peer: &Peer, event: Event) {
    let name = match event.kind {
        EventKind::SenderNew => "sender-new",
        EventKind::SenderInactive => "sender-inactive",
        EventKind::GrttUpdated => "grtt",
        _ => return,
    };
    let line = peer.report.line(name).number("sender", NormNodeGetId(event.sender));
    line.number("seconds", NormNodeGetGrtt(event.sender)).print();
}

/// An object has been received; a file gets the name that its info has.
fn report_object(
    peer: &Peer,
    event: Event,
    folder: Option<&Path>,
    stream: Option<Received>,
) -> Result<(), String> {
    let kind = event.object.kind().ok_or("an object without a kind")?;
    let info = event.object.info();
    let mut line = peer.report.line("object-completed").text("kind", kind.name());
    line = line.number("sender", NormNodeGetId(event.sender)).text("info", &String::from_utf8_lossy(&info));
    let (hash, bytes) = match kind {
        ObjectKind::Data => {
            let data = event.object.data();
            (Sha256::digest(&data), data.len() as u64)
        }
        ObjectKind::File => {
            let mut path = event.object.path().ok_or("a file without a name")?;
            let data = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            // The name comes from the sender: only its last part counts.
            let name = String::from_utf8_lossy(&info).into_owned();
            if let (Some(folder), Some(name)) = (folder, Path::new(&name).file_name()) {
                let wanted = folder.join(name);
                if event.object.rename(&wanted) {
                    path = wanted;
                }
            }
            line = line.text("path", &path.to_string_lossy());
            (Sha256::digest(&data), data.len() as u64)
        }
        ObjectKind::Stream => {
            let mut stream = stream.unwrap_or_default();
            stream.read(event.object);
            line = line.number("breaks", stream.breaks);
            (stream.hash.finalize(), stream.bytes)
        }
    };
    let hash: String = hash.iter().map(|octet| format!("{octet:02x}")).collect();
    line.number("bytes", bytes).text("sha256", &hash).print();
    Ok(())
}
