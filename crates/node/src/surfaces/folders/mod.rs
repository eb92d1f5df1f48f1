//! Folders: files put into one are sent; bundles received for an endpoint become files in another.
//!
//! ```text
//!   outbox/letter.txt --> outbox/.longwire/TIME-NUMBER/letter.txt --> (queued by the node) --> outbox/sent/letter.txt
//!     at rest               claimed: has its bundle's timestamp
//!
//!   (delivered) --> inbox/.longwire/ID.part, synced --> inbox/letter.txt --> (taken)
//! ```
//!
//! **Once.** A file gets the creation timestamp of its bundle by a rename, before the node gets any of it, and keeps it until the
//! node has queued the bundle: after a crash at any moment the same bundle is sent again, and a bundle that is queued, being sent
//! or taken already is the same one for every node, and is not taken twice.
//!
//! **Complete.** A file is sent when it is at rest: it was moved in or closed after writing, where the system reports that, or its
//! length and modification time have not changed for a while. Names that begin with `.` or end in `~`, `.part`, `.tmp`,
//! `.crdownload`, `.filepart` or `.swp` are never sent: programs that write slowly use such a name and rename the file. A file that
//! changes while it is read is moved back.
//!
//! Each folder has its own thread, and uses the node as any application does.

mod drop_folder;
mod open_folder;
mod receive_folder;
mod watch;

use crate::clock::WallClock;
use crate::config::{DropFolder, ReceiveFolder};
use crate::surfaces::client::{AppClient, ClientFactory};
use crate::surfaces::message::{Message, Reply, Request};
use crate::view;
use longwire_settings::error::Error;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub(crate) type SharedStatus = Arc<Mutex<Vec<view::Folder>>>;

#[derive(Clone, Debug)]
pub(crate) struct FolderStatus {
    shown: SharedStatus,
    index: usize,
}

impl FolderStatus {
    fn new(shown: &SharedStatus, folder: view::Folder) -> FolderStatus {
        let mut all = shown.lock().expect("no thread panics with it");
        all.push(folder);
        FolderStatus { shown: shown.clone(), index: all.len() - 1 }
    }

    fn change(&self, change: impl FnOnce(&mut view::Folder)) {
        change(&mut self.shown.lock().expect("no thread panics with it")[self.index]);
    }

    /// Sets the current problem.
    fn trouble(&self, what: impl Into<String>) {
        let what = what.into();
        self.change(|folder| folder.trouble = Some(what));
    }

    /// Counts a finished file.
    fn done(&self) {
        self.change(|folder| {
            folder.files += 1;
            folder.trouble = None;
        });
    }
}

/// Time before a failed step is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Starts the threads of all folders.
pub(crate) fn start(
    drops: &[DropFolder],
    receives: &[ReceiveFolder],
    clock: &WallClock,
    client_factory: &ClientFactory,
) -> Result<SharedStatus, Error> {
    let shown = SharedStatus::default();
    let line = |folder: &Path, sends, endpoint: &str| {
        let (folder, endpoint) = (folder.display().to_string(), endpoint.to_owned());
        FolderStatus::new(&shown, view::Folder { folder, sends, endpoint, ..view::Folder::default() })
    };
    for drop in drops {
        let (line, drop, clock) = (line(&drop.folder, true, &drop.to), drop.clone(), clock.clone());
        run(client_factory, move |talk| drop_folder::serve(drop, clock, talk, line))?;
    }
    for receive in receives {
        let (line, receive) = (line(&receive.folder, false, &receive.endpoint), receive.clone());
        run(client_factory, move |talk| receive_folder::serve(receive, talk, line))?;
    }
    Ok(shown)
}

fn run<F: Future<Output = Result<(), NodeGone>>>(
    client_factory: &ClientFactory,
    serve: impl FnOnce(NodeConnection) -> F + Send + 'static,
) -> Result<(), Error> {
    let talk = NodeConnection { client: client_factory.client(), waiting: VecDeque::new() };
    let failed = |error: std::io::Error| Error::new(format!("cannot start a thread: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    // The thread ends with the node: it need not be joined.
    thread::Builder::new()
        .name("folder".into())
        .spawn(move || runtime.block_on(serve(talk)))
        .map_err(failed)?;
    Ok(())
}

#[derive(Debug)]
struct NodeGone;

struct NodeConnection {
    client: AppClient,
    /// Replies received while waiting for another one.
    waiting: VecDeque<Message<Reply>>,
}

impl NodeConnection {
    async fn ask(&self, request: impl Into<Message<Request>>) -> Result<(), NodeGone> {
        if self.client.request(request).await { Ok(()) } else { Err(NodeGone) }
    }

    async fn hear(&mut self) -> Result<Message<Reply>, NodeGone> {
        match self.waiting.pop_front() {
            Some(said) => Ok(said),
            None => self.client.reply().await.ok_or(NodeGone),
        }
    }

    /// Waits for a reply for which `wanted` returns a value; deliveries announced in the meantime are kept.
    async fn wait<T>(&mut self, mut wanted: impl FnMut(&Message<Reply>) -> Option<T>) -> Result<T, NodeGone> {
        loop {
            let said = self.client.reply().await.ok_or(NodeGone)?;
            if let Some(found) = wanted(&said) {
                return Ok(found);
            }
            match said.head {
                Reply::Delivered { .. } => self.waiting.push_back(said),
                // The delivery expired before it was handled.
                Reply::Gone { delivery: gone, .. } => self.waiting.retain(
                    |said| !matches!(said.head, Reply::Delivered { delivery, .. } if delivery == gone),
                ),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surfaces::client::{ClientEvent, ClientId};
    use crate::tell::Tell;

    #[tokio::test]
    async fn what_expires_before_its_turn_is_not_waited_for() {
        let (events, mut heard) = tokio::sync::mpsc::unbounded_channel::<ClientEvent>();
        let client = AppClient::new(ClientId(1), Tell::to(&events, |said| said));
        let mut talk = NodeConnection { client, waiting: VecDeque::new() };
        let Some(ClientEvent::Arrives(_, end)) = heard.recv().await else { panic!("an application comes") };
        let delivered = |delivery| {
            let (source, destination) = ("dtn://moon/".to_owned(), "dtn://earth/files".to_owned());
            Reply::Delivered {
                delivery,
                source,
                destination,
                created: (delivery, 0).into(),
                length: 5,
                signature: None,
            }
        };
        let gone = |delivery, taken| Reply::Gone { delivery, taken };
        for said in [delivered(2), delivered(3), gone(2, false), gone(1, true)] {
            end.replies.send(said.into()).expect("it listens");
        }
        let wanted =
            |said: &Message<Reply>| matches!(said.head, Reply::Gone { delivery: 1, .. }).then_some(());
        talk.wait(wanted).await.expect("the node is there");
        assert_eq!(talk.hear().await.expect("it waited").head, delivered(3));
        assert!(talk.waiting.is_empty());
    }
}
