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
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::sync::watch as latest;

/// State of a folder, which its thread changes.
#[derive(Clone, Debug)]
struct FolderStatus(Arc<Mutex<view::Folder>>);

impl FolderStatus {
    fn new(view: view::Folder) -> FolderStatus {
        FolderStatus(Arc::new(Mutex::new(view)))
    }

    fn view(&self) -> view::Folder {
        self.0.lock().expect("no thread panics with it").clone()
    }

    fn change(&self, change: impl FnOnce(&mut view::Folder)) {
        change(&mut self.0.lock().expect("no thread panics with it"));
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

/// Settings of a folder.
#[derive(Clone, Debug, PartialEq)]
enum Settings {
    Drop(DropFolder),
    Receive(ReceiveFolder),
}

impl Settings {
    fn folder(&self) -> &Path {
        match self {
            Settings::Drop(drop) => &drop.folder,
            Settings::Receive(receive) => &receive.folder,
        }
    }

    fn view(&self) -> view::Folder {
        let (sends, endpoint) = match self {
            Settings::Drop(drop) => (true, drop.to.clone()),
            Settings::Receive(receive) => (false, receive.endpoint.clone()),
        };
        view::Folder {
            folder: self.folder().display().to_string(),
            sends,
            endpoint,
            ..view::Folder::default()
        }
    }

    /// True if both use the same folder, or receive at the same endpoint.
    fn is_in_the_way_of(&self, other: &Settings) -> bool {
        let endpoint = |settings: &Settings| match settings {
            Settings::Drop(_) => None,
            Settings::Receive(receive) => Some(receive.endpoint.clone()),
        };
        self.folder() == other.folder() || (endpoint(self).is_some() && endpoint(self) == endpoint(other))
    }
}

/// Connection to the thread of a folder, which ends when this is dropped.
#[derive(Debug)]
enum Hold {
    /// Its settings.
    Drop(latest::Sender<DropFolder>),
    Receive(#[expect(dead_code, reason = "dropped to end the thread")] oneshot::Sender<()>),
}

/// A folder that is served.
#[derive(Debug)]
struct Served {
    settings: Settings,
    status: FolderStatus,
    hold: Hold,
    thread: thread::JoinHandle<()>,
}

impl Served {
    /// Takes these settings over if they are for the same folder. Of a drop folder, files that are still being written and those
    /// that were sent are known to its thread only, which therefore goes on.
    fn takes_over(&mut self, settings: &Settings) -> bool {
        if self.settings == *settings {
            return true;
        }
        let (Settings::Drop(new), Hold::Drop(sender)) = (settings, &self.hold) else { return false };
        if new.folder != self.settings.folder() {
            return false;
        }
        let endpoint = new.to.clone();
        self.status.change(|folder| folder.endpoint = endpoint);
        sender.send_replace(new.clone());
        self.settings = settings.clone();
        true
    }
}

/// All folders of the configuration.
pub(crate) struct Folders {
    clock: WallClock,
    client_factory: ClientFactory,
    served: Vec<Served>,
    /// Threads of folders that are not served any more. They end as soon as they wait for something.
    ending: Vec<(Settings, thread::JoinHandle<()>)>,
}

impl fmt::Debug for Folders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.served).finish()
    }
}

impl Folders {
    /// Starts the threads of all folders.
    pub(crate) fn start(
        drops: &[DropFolder],
        receives: &[ReceiveFolder],
        clock: &WallClock,
        client_factory: &ClientFactory,
    ) -> Result<Folders, Error> {
        let (clock, client_factory) = (clock.clone(), client_factory.clone());
        let mut folders = Folders { clock, client_factory, served: Vec::new(), ending: Vec::new() };
        folders.follow(drops, receives)?;
        Ok(folders)
    }

    /// Serves these folders instead of the present ones.
    ///
    /// # Errors
    /// Fails if a thread cannot be started; its folder is not served, and the others are.
    pub(crate) fn follow(&mut self, drops: &[DropFolder], receives: &[ReceiveFolder]) -> Result<(), Error> {
        let drops = drops.iter().cloned().map(Settings::Drop);
        let wanted: Vec<Settings> = drops.chain(receives.iter().cloned().map(Settings::Receive)).collect();
        let mut present: Vec<Served> = self.served.drain(..).collect();
        let kept: Vec<Option<Served>> = wanted
            .iter()
            .map(|settings| {
                let position = present.iter_mut().position(|served| served.takes_over(settings))?;
                Some(present.swap_remove(position))
            })
            .collect();
        self.ending.retain(|(_, thread)| !thread.is_finished());
        self.ending.extend(present.into_iter().map(|served| (served.settings, served.thread)));
        let mut outcome = Ok(());
        for (settings, kept) in wanted.into_iter().zip(kept) {
            let served = kept.map(Ok).unwrap_or_else(|| {
                // The new thread begins when no other one has this folder or this endpoint.
                let before = self.ending.extract_if(.., |(other, _)| other.is_in_the_way_of(&settings));
                let before = before.map(|(_, thread)| thread).collect();
                self.serve(settings, before)
            });
            match served {
                Ok(served) => self.served.push(served),
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    fn serve(&self, settings: Settings, before: Vec<thread::JoinHandle<()>>) -> Result<Served, Error> {
        let status = FolderStatus::new(settings.view());
        let (clock, line) = (self.clock.clone(), status.clone());
        let client_factory = self.client_factory.clone();
        let failed = |error: std::io::Error| Error::new(format!("cannot start a thread: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let connect = move || {
            before.into_iter().for_each(|thread| _ = thread.join());
            NodeConnection { client: client_factory.client(), waiting: VecDeque::new() }
        };
        // The thread ends with the node: it need not be joined.
        let thread = thread::Builder::new().name("folder".into());
        let (hold, thread) = match settings.clone() {
            Settings::Drop(drop) => {
                let (sender, settings) = latest::channel(drop);
                let run = move || _ = runtime.block_on(drop_folder::serve(settings, clock, connect(), line));
                (Hold::Drop(sender), thread.spawn(run))
            }
            Settings::Receive(receive) => {
                let (sender, stop) = oneshot::channel();
                let run = move || _ = runtime.block_on(receive_folder::serve(receive, connect(), line, stop));
                (Hold::Receive(sender), thread.spawn(run))
            }
        };
        Ok(Served { settings, status, hold, thread: thread.map_err(failed)? })
    }

    /// State of all folders, in the order of the configuration.
    pub(crate) fn view(&self) -> Vec<view::Folder> {
        self.served.iter().map(|served| served.status.view()).collect()
    }
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
