//! Control socket: applications on this machine, one connection each. Copies messages between a connection and an
//! [`AppClient`](crate::AppClient).

use crate::config::ApplicationLimits;
use crate::surfaces::client::{AppClient, ClientFactory};
use crate::surfaces::counter_changes::CounterChanges;
use crate::surfaces::message::{HEAD_BYTES_MAX, Message, Reply, Request, decode, encode};
use crate::surfaces::operations::Weight;
use crate::view;
use crate::write_timeout::{WriteTimeout, WriteTimeoutStream};
use bytes::{Buf, BytesMut};
use longwire_settings::error::Error;
use std::fs::FileType;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

/// Bytes of replies from which no more are added to one write.
const WRITE_BYTES: usize = 256 * 1024;

/// Number of connections, and counters of those that were refused or too slow.
#[derive(Debug)]
pub(crate) struct ControlCounters {
    connections_max: usize,
    places: Arc<Semaphore>,
    turned_away: AtomicU64,
    patience: WriteTimeout,
    counter_changes: CounterChanges,
}

impl ControlCounters {
    pub(crate) fn new(limits: &ApplicationLimits, counter_changes: CounterChanges) -> Self {
        ControlCounters {
            connections_max: limits.connections_max,
            places: Arc::new(Semaphore::new(limits.connections_max)),
            turned_away: AtomicU64::new(0),
            patience: WriteTimeout::new(limits.patience),
            counter_changes,
        }
    }

    pub(crate) fn view(&self) -> view::Control {
        view::Control {
            now: (self.connections_max - self.places.available_permits()) as u64,
            turned_away: self.turned_away.load(Ordering::Relaxed),
            stalled: self.patience.stalled(),
        }
    }
}

/// Listens for applications. Replaces a socket that a crash has left; fails if another node answers on it.
pub(crate) fn listen(
    path: &Path,
    client_factory: ClientFactory,
    counted: Arc<ControlCounters>,
    runtime: &Runtime,
) -> Result<(), Error> {
    let bound = bind(path).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::AlreadyExists => "set `control` to a path at which there is no file",
            _ => "set `control` to a writable path shorter than 108 bytes",
        };
        Error::new(format!("cannot create the control socket {}: {error}", path.display())).hint(hint)
    })?;
    runtime.spawn(async move {
        loop {
            match bound.accept().await {
                Ok((stream, _)) => admit(stream, &client_factory, &counted),
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
            }
        }
    });
    Ok(())
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        crate::private_files::make_folder(folder)?;
    }
    match std::fs::symlink_metadata(path) {
        Ok(about) => {
            check_stale(path, about.file_type())?;
            std::fs::remove_file(path)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(path)?;
    // Write access to the socket is full control of the node.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
    Ok(listener)
}

/// Fails unless the file is a socket on which nobody listens: anything else belongs to someone.
fn check_stale(path: &Path, kind: FileType) -> io::Result<()> {
    if !kind.is_socket() {
        let what = "what is there is not a socket; it was kept";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another node is using it")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        // A full queue of a node, a socket of another type, or another user's socket.
        Err(error) => {
            let what = format!("the socket there may be in use and was kept: {error}");
            Err(io::Error::new(io::ErrorKind::AlreadyExists, what))
        }
    }
}

/// Serves an application unless there are too many.
fn admit(stream: UnixStream, client_factory: &ClientFactory, counted: &ControlCounters) {
    let Ok(place) = counted.places.clone().try_acquire_owned() else {
        counted.turned_away.fetch_add(1, Ordering::Relaxed);
        counted.counter_changes.changed();
        let hint = Some("close another application or raise `applications.connections-max`");
        let mut out = BytesMut::new();
        encode(&Reply::error("too many applications are connected", hint).into(), &mut out);
        // Only what fits into the empty socket buffer: the node does not wait for the application.
        let _ = stream.try_write(&out);
        return;
    };
    counted.counter_changes.changed();
    let (client, patience, counter_changes) =
        (client_factory.client(), counted.patience.clone(), counted.counter_changes.clone());
    tokio::spawn(async move {
        serve(stream, client, patience).await;
        drop(place);
        counter_changes.changed();
    });
}

/// Serves one application until either side closes the connection.
async fn serve(stream: UnixStream, mut client: AppClient, patience: WriteTimeout) {
    let (mut read, write) = stream.into_split();
    let mut write = WriteTimeoutStream::new(write, patience);
    let mut input = BytesMut::new();
    let mut out = BytesMut::new();
    // The request that waits until earlier replies are sent.
    let mut held: Option<Message<Request>> = None;
    loop {
        while out.len() < WRITE_BYTES
            && let Some(reply) = client.try_reply()
        {
            encode(&reply, &mut out);
        }
        if held.is_none() {
            match decode::<Request>(&mut input, HEAD_BYTES_MAX) {
                Ok(request) => held = request,
                Err(what) => {
                    encode(&Reply::error(what, None).into(), &mut out);
                    let _ = write.write_all(&out).await;
                    return;
                }
            }
        }
        // An application that does not read cannot cause more output by its requests. A request with a small answer is accepted
        // all the same: a single-threaded application may write while it could read, and each side would wait for the other.
        if let Some(request) =
            held.take_if(|request| out.is_empty() || request.head.operation().weight != Weight::Long)
        {
            if !client.request(request).await {
                return;
            }
            continue;
        }
        let hears = held.is_none();
        tokio::select! {
            biased;
            written = write.write(&out), if !out.is_empty() => match written {
                Ok(some @ 1..) => out.advance(some),
                Ok(0) | Err(_) => return,
            },
            reply = client.reply(), if out.is_empty() => match reply {
                Some(reply) => encode(&reply, &mut out),
                None => return,
            },
            some = read.read_buf(&mut input), if hears => if !matches!(some, Ok(1..)) {
                return;
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;
    use std::fs;
    use std::os::unix::net::{UnixDatagram, UnixListener as StdListener};

    #[tokio::test]
    async fn only_a_socket_without_a_listener_is_replaced() {
        let folder = TestFolder::new("control-bind");
        let (file, link, path) =
            (folder.0.join("data.txt"), folder.0.join("link"), folder.0.join("longwire.sock"));
        fs::write(&file, "kept").unwrap();
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let refused = |path: &Path| bind(path).unwrap_err().kind();
        for other in [&file, &link, &folder.0] {
            assert_eq!(refused(other), io::ErrorKind::AlreadyExists, "{}", other.display());
        }
        assert_eq!((fs::read_to_string(&file).unwrap(), fs::read_link(&link).is_ok()), ("kept".into(), true));

        let datagrams = UnixDatagram::bind(&path).unwrap();
        assert_eq!((refused(&path), path.exists()), (io::ErrorKind::AlreadyExists, true));
        drop(datagrams);
        fs::remove_file(&path).unwrap();

        let in_use = StdListener::bind(&path).unwrap();
        assert_eq!((refused(&path), path.exists()), (io::ErrorKind::AddrInUse, true));
        drop(in_use);
        assert!(bind(&path).is_ok(), "a crash has left it");
    }
}
