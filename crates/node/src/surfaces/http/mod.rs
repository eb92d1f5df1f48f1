//! HTTP interface: operations for applications and operators, for programs in any language, browsers and Prometheus.
//!
//! ```text
//!   peer -- WriteTimeout -- hyper -- Guard -- Api: path, query -- operation -- AppClient -- engines' task
//!           (stalls)        (limits) (access) (described)         (one each)   (as any application)
//! ```
//!
//! HTTP/1.1 (RFC 9112) without TLS: beyond this machine it needs a tunnel or a proxy. It runs on its own thread and is an application
//! like others: it sends requests to the engines' task through an [`AppClient`], one at a time, and each is handled by the same
//! function as a request over the control socket. Reading requests, writing JSON and describing it takes no time of the engines.
//!
//! Access: with a token, any client that sends it. Without one, on loopback only, any program on this machine; browsers only for
//! pages of this interface (`guard`). The files of the web page itself (`page`) have no data and need no token. Limits: connections, bytes of a header, time without progress, bytes of a JSON body; what
//! exceeds them is refused and counted ([`HttpCounters`]). The document `/openapi.json` is generated from the table that routes
//! requests ([`api`]).
//!
//! Units: bytes, seconds.

mod answer;
mod api;
mod event_stream;
mod guard;
mod mailbox;
mod metrics;
mod operations;
mod page;
mod pinging;
mod sending;
mod serve;
mod unauthenticated;

use crate::config;
use crate::surfaces::client::{AppClient, ClientFactory};
use crate::surfaces::counter_changes::CounterChanges;
use crate::surfaces::event_log::EventLog;
use crate::surfaces::message::{Message, Reply, Request};
use crate::view::{Counts, counts};
use crate::write_timeout::WriteTimeout;
use answer::{Answer, RequestFailure};
use guard::Guard;
use longwire_settings::error::Error;
use mailbox::Mailboxes;
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{Mutex, oneshot};

/// The interface of a running node. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct HttpInterface {
    address: SocketAddr,
    counted: Arc<HttpCounters>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// State shared by all requests.
pub(crate) struct HttpState {
    client_factory: ClientFactory,
    /// Interface for requests that are answered at once, one after the other.
    status_client: Arc<Mutex<AppClient>>,
    guard: Guard,
    counted: Arc<HttpCounters>,
    /// Node ID.
    node: String,
    events: Arc<EventLog>,
    mailboxes: Mailboxes,
    /// Connections that have not been authenticated yet.
    waiting: unauthenticated::UnauthenticatedConnections,
    pings: AtomicU64,
}

impl HttpInterface {
    /// Starts listening, if configured.
    ///
    /// # Errors
    /// Fails if the address is in use, or would be reachable from other machines without a token.
    pub(crate) fn start(
        config: &config::HttpSettings,
        node: String,
        client_factory: &ClientFactory,
        events: Arc<EventLog>,
        counter_changes: CounterChanges,
    ) -> Result<Option<HttpInterface>, Error> {
        let Some(text) = &config.listen else { return Ok(None) };
        let addresses = config.addresses()?;
        let listener = std::net::TcpListener::bind(&addresses[..]).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        });
        let (address, listener) = listener.map_err(|error| {
            Error::new(format!("cannot listen on {text} for HTTP: {error}"))
                .hint("another program may be using the port; set `http.listen` to host:port")
        })?;
        let counted = Arc::new(HttpCounters::new(config.patience, counter_changes));
        let shared = HttpState {
            client_factory: client_factory.clone(),
            status_client: Arc::new(Mutex::new(client_factory.client())),
            guard: Guard::new(config, address)?,
            counted: counted.clone(),
            node,
            events,
            mailboxes: Mailboxes::default(),
            waiting: unauthenticated::UnauthenticatedConnections::default(),
            pings: AtomicU64::new(0),
        };
        let no_queue = |error: std::io::Error| Error::new(format!("cannot start the event loop: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(no_queue)?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(no_queue)?
        };
        let limits = serve::Limits {
            connections_max: config.connections_max,
            header_bytes_max: config.header_bytes_max,
        };
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("http".into())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = serve::accept(listener, limits, Arc::new(shared)) => {}
                        _ = stopped => {}
                    }
                });
            })
            .map_err(|error| Error::new(format!("cannot start a thread: {error}")))?;
        Ok(Some(HttpInterface { address, counted, stop: Some(stop), thread: Some(thread) }))
    }

    /// Address on which it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn counted(&self) -> Arc<HttpCounters> {
        self.counted.clone()
    }
}

impl Drop for HttpInterface {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the thread of the HTTP interface has panicked");
        }
    }
}

impl HttpState {
    /// Sends a request that the node answers at once. One at a time: this limits the share of a pass of the event loop that the
    /// interface takes, however many clients there are.
    async fn ask(&self, request: Request) -> Answer<Reply> {
        let status_client = self.status_client.clone();
        // Runs to its end even if the requester has gone: the next reply belongs to the next request.
        let asked = tokio::spawn(async move {
            let mut status_client = status_client.lock().await;
            if !status_client.request(request).await {
                return None;
            }
            status_client.reply().await
        });
        match asked.await {
            Ok(Some(Message { head: Reply::Error { what, hint, is_temporary: true }, .. })) => {
                Err(RequestFailure::later(what, hint))
            }
            Ok(Some(Message { head: Reply::Error { what, hint, .. }, .. })) => {
                Err(RequestFailure::bad(what, hint))
            }
            Ok(Some(Message { head, .. })) => Ok(head),
            Ok(None) | Err(_) => Err(RequestFailure::gone()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct HttpCounters {
    counts: HttpCounts,
    /// Limits the time for which a peer neither reads nor writes.
    patience: WriteTimeout,
    /// Notified of changes to any of the counters.
    counter_changes: CounterChanges,
}

/// Counters of the interface, by their names in the status.
#[derive(Debug, Default, Serialize)]
struct HttpCounts {
    connections: AtomicU64,
    requests: AtomicU64,
    refused_connections: AtomicU64,
    gave_way: AtomicU64,
    refused_token: AtomicU64,
    refused_host: AtomicU64,
    refused_origin: AtomicU64,
    refused_malformed: AtomicU64,
    refused_too_long: AtomicU64,
}

impl HttpCounters {
    fn new(patience: Duration, counter_changes: CounterChanges) -> Self {
        let (counts, patience) = (HttpCounts::default(), WriteTimeout::new(patience));
        HttpCounters { counts, patience, counter_changes }
    }

    pub(crate) fn view(&self) -> Counts {
        let mut all = counts(&self.counts);
        all.insert("stalled".to_owned(), self.patience.stalled());
        all
    }
}

async fn say(client: &AppClient, request: impl Into<Message<Request>>) -> Answer<()> {
    if client.request(request).await { Ok(()) } else { Err(RequestFailure::gone()) }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surfaces::client::ClientEvent;
    use crate::tell::Tell;
    use std::io::{Read, Write};

    /// The interface of a node whose task is the receiver of the requests.
    fn interface(
        counter_changes: CounterChanges,
    ) -> (HttpInterface, tokio::sync::mpsc::UnboundedReceiver<ClientEvent>) {
        let (clients, heard) = tokio::sync::mpsc::unbounded_channel::<ClientEvent>();
        let client_factory = ClientFactory::new(Tell::to(&clients, |said| said));
        let config =
            config::HttpSettings { listen: Some("127.0.0.1:0".into()), ..config::HttpSettings::default() };
        let http = HttpInterface::start(
            &config,
            "dtn://moon/".into(),
            &client_factory,
            Arc::new(EventLog::new(1)),
            counter_changes,
        )
        .expect("it starts")
        .expect("it is on");
        (http, heard)
    }

    /// Connections that never reach the engines wake applications that wait for a change.
    #[test]
    fn what_is_counted_is_told_when_it_happens() {
        let (tell, mut events) = tokio::sync::mpsc::unbounded_channel::<CounterChanges>();
        let counter_changes = CounterChanges::new(Tell::to(&tell, |said| said));
        let (http, _heard) = interface(counter_changes);
        let mut heard = |name: &str| {
            while http.counted().view()[name] == 0 {
                events.blocking_recv().expect("the interface is there").heard();
            }
        };
        let mut stream = std::net::TcpStream::connect(http.address()).expect("it listens");
        heard("connections");
        // Its header is not a request.
        stream.write_all(b"nonsense\r\n\r\n").expect("it reads");
        heard("refused_malformed");
        let _ = stream.read_to_end(&mut Vec::new());
    }

    /// A script that deletes a bundle during the start does not take it for one that is gone.
    #[test]
    fn a_node_that_reads_its_store_says_of_no_bundle_that_it_is_not_there() {
        let (tell, _events) = tokio::sync::mpsc::unbounded_channel::<CounterChanges>();
        let (http, mut heard) = interface(CounterChanges::new(Tell::to(&tell, |said| said)));
        let task = std::thread::spawn(move || {
            let mut ends = std::collections::BTreeMap::new();
            while let Some(event) = heard.blocking_recv() {
                match event {
                    ClientEvent::Arrives(id, end) => drop(ends.insert(id, end)),
                    ClientEvent::Request(id, _) => {
                        let (what, hint) = ("still reading".to_owned(), None);
                        let _ =
                            ends[&id].replies.send(Reply::Error { what, hint, is_temporary: true }.into());
                    }
                    ClientEvent::Leaves(id) => drop(ends.remove(&id)),
                }
            }
        });
        for method in ["GET", "DELETE"] {
            let mut stream = std::net::TcpStream::connect(http.address()).expect("it listens");
            let host = http.address();
            let path = "/bundles/dtn%3A%2F%2Falice%2F%40842000000000-256";
            write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
                .expect("it reads");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("it answers");
            assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("still reading"), "{answer}");
        }
        drop(http);
        task.join().expect("it ends with the interface");
    }
}
