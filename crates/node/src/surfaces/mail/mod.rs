//! Mail: messages of ordinary mail programs as bundles.
//!
//! ```text
//!   mail program --SMTP--> submission --> bundle in the store ==> .. ==> receiving --> Maildir/new --> (taken) --> mail program
//!                              |                                             |
//!                 Maildir/new <-- notices <------ receipt, in a bundle <-----'
//! ```
//!
//! - **Accepted is stored.** A mail program gets its positive answer after the bundles of all nodes of its recipients are durable.
//! - **Delivered is written.** A bundle is taken after its message is synced in the Maildirs; its name there comes from the bundle, so that
//!   it does not appear twice.
//! - **Receipts** are bundles of this service: they tell the outcome for each recipient. What becomes of a message before it arrives, such
//!   as the end of its lifetime at this node or a deletion that another one reports, comes from the log of events. The senders to be
//!   notified are remembered in files, which outlive a restart.
//! - **Senders are proven as far as bundles are.** A mail program may only use addresses of this node's users. The domain of a sender must stand for the source node of
//!   the bundle, whose signature proves it if there is one; everything else is returned.
//!   Anybody may ask for receipts, so that their number is limited.
//!
//! One thread serves all of it, and uses the node as any application does.

mod connection;
mod domains;
mod envelope;
mod maildir;
mod notices;
mod pending;
mod receipt_limit;
mod receipts;
mod receiving;
mod sending;
mod submission;

use crate::clock::WallClock;
use crate::config::{Config, MailSettings};
use crate::surfaces::client::ClientFactory;
use crate::surfaces::event_log::EventLog;
use crate::view;
use domains::Domains;
use longwire_settings::error::Error;
use maildir::Maildirs;
use pending::PendingMessages;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Status of mail; `None` if it is off.
pub(crate) type SharedStatus = Arc<Mutex<Option<view::Mail>>>;

/// Time before a failed step is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// Folder in that of the Maildirs for files of this service.
const OWN_FOLDER: &str = ".longwire";

/// Mail of a node, for all of its connections and tasks.
#[derive(Debug)]
struct MailService {
    settings: MailSettings,
    domains: Domains,
    /// Endpoint of mail of this node, without the node ID.
    endpoint: &'static str,
    maildirs: Maildirs,
    pending: Mutex<PendingMessages>,
    clock: Clock,
    client_factory: ClientFactory,
    status: SharedStatus,
    troubles: Mutex<BTreeMap<Part, String>>,
}

/// Part of mail that can have a problem of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Folder of the Maildirs.
    Folder,
    /// Endpoint of mail.
    Endpoint,
    /// Messages that arrive.
    Delivery,
    /// Files of the messages on their way.
    Pending,
    /// Notices for senders.
    Notices,
}

/// Wall clock.
#[derive(Clone)]
struct Clock(WallClock);

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

impl Clock {
    /// Returns DTN time, milliseconds; `None` without a clock.
    fn dtn_ms(&self) -> Option<u64> {
        (self.0)()
    }
}

/// The node has stopped.
#[derive(Debug)]
struct NodeGone;

impl MailService {
    fn change<T>(&self, change: impl FnOnce(&mut view::Mail) -> T) -> T {
        change(self.status.lock().expect("no thread panics with it").get_or_insert_default())
    }

    fn count(&self, counter: &str) {
        self.change(|shown| *shown.counters.entry(counter.to_owned()).or_default() += 1);
    }

    /// Sets the current problem of a part, or none. Those of other parts stay.
    fn trouble(&self, part: Part, what: Option<String>) {
        let mut troubles = self.troubles.lock().expect("no thread panics with it");
        let before = match &what {
            Some(what) => troubles.insert(part, what.clone()),
            None => troubles.remove(&part),
        };
        let shown: Vec<_> = troubles.values().cloned().collect();
        self.change(|status| status.trouble = (!shown.is_empty()).then(|| shown.join("; ")));
        if before != what
            && let Some(what) = what
        {
            tracing::warn!(target: "mail", "{what}");
        }
    }

    /// Creates the Maildirs that are missing.
    fn make_maildirs(&self) {
        let made = self.maildirs.make(&self.settings.users);
        let trouble = made.err().map(|error| format!("cannot create the Maildirs: {error}"));
        self.trouble(Part::Folder, trouble);
    }

    /// Changes the messages whose senders are to be notified, and shows their number.
    fn with_pending<T>(&self, act: impl FnOnce(&mut PendingMessages) -> T) -> T {
        let mut pending = self.pending.lock().expect("no thread panics with it");
        let done = act(&mut pending);
        self.change(|shown| shown.pending = pending.len() as u64);
        done
    }
}

/// Names of all counters.
const COUNTERS: [&str; 10] = [
    "submitted",
    "submissions_refused",
    "delivered",
    "returned",
    "invalid",
    "receipts_sent",
    "receipts_not_sent",
    "notices_delivered",
    "notices_failed",
    "connections_refused",
];

/// Starts mail, if it is on. Returns its status, and the address for mail programs.
///
/// # Errors
/// Fails if the address is in use, or the system gives no thread.
pub(crate) fn start(
    config: &Config,
    node: &str,
    clock: &WallClock,
    client_factory: &ClientFactory,
    event_log: &Arc<EventLog>,
) -> Result<(SharedStatus, Option<SocketAddr>), Error> {
    let status = SharedStatus::default();
    let settings = config.mail.clone();
    let Some(folder) = settings.folder.clone() else { return Ok((status, None)) };
    let listener = listen(&settings)?;
    let address = listener.as_ref().and_then(|listener| listener.local_addr().ok());
    let service = MailService {
        domains: Domains::new(config, node),
        endpoint: config.mail_endpoint()?,
        maildirs: Maildirs::new(folder.clone()),
        pending: Mutex::new(PendingMessages::new(pending_folder(folder))),
        clock: Clock(clock.clone()),
        client_factory: client_factory.clone(),
        status: status.clone(),
        troubles: Mutex::default(),
        settings,
    };
    service.change(|shown| {
        shown.listen = address.map(|address| address.to_string());
        shown.counters = COUNTERS.iter().map(|name| ((*name).to_owned(), 0)).collect();
    });
    // Registered before the thread runs: no event is missed.
    let reader = event_log.reader(None);
    let failed = |error: std::io::Error| Error::new(format!("cannot start a thread: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    // The thread ends with the node: it need not be joined.
    thread::Builder::new()
        .name("mail".into())
        .spawn(move || {
            runtime.block_on(async {
                let service = Arc::new(service);
                service.make_maildirs();
                if let Err(error) = service.with_pending(PendingMessages::load) {
                    let what = format!("cannot read the messages on their way: {error}");
                    service.trouble(Part::Pending, Some(what));
                }
                if let Some(listener) = listener {
                    tokio::spawn(connection::accept(service.clone(), listener));
                }
                // Each ends when the node has stopped.
                let _ = tokio::join!(receiving::serve(service.clone()), receipts::serve(service, reader));
            });
        })
        .map_err(failed)?;
    Ok((status, address))
}

fn pending_folder(folder: PathBuf) -> PathBuf {
    folder.join(OWN_FOLDER).join("pending")
}

/// Opens the port for mail programs.
fn listen(settings: &MailSettings) -> Result<Option<TcpListener>, Error> {
    let addresses = settings.addresses()?;
    if addresses.is_empty() {
        return Ok(None);
    }
    let listener = TcpListener::bind(&addresses[..]).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    let listener = listener.map_err(|error| {
        let address = settings.listen.as_deref().unwrap_or_default();
        Error::new(format!("cannot listen for mail programs on {address}: {error}"))
            .hint("another program may be using the port; set `mail.listen` to another one")
    })?;
    Ok(Some(listener))
}
