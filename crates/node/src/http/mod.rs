//! The HTTP interface: what applications and operators can do, for programs in any language, browsers and Prometheus.
//!
//! ```text
//!   peer -- Patient -- hyper -- Guard -- Api: path, query -- operation -- Client -- engines' task
//!           (stalls)  (limits)  (who)      (described)      (one each)   (as any application)
//! ```
//!
//! HTTP/1.1 (RFC 9112) without TLS: beyond this machine it belongs behind a tunnel or a proxy. It runs on a thread of its
//! own and is an application like others: it asks the engines' task through a [`AppClient`], one operation at a time, and each
//! is carried out by the same function as when it comes over the control socket. Reading requests, writing JSON and
//! describing it all takes no time of the engines.
//!
//! Who may: with a token, whoever has it. Without, on loopback only, whoever runs on this machine; browsers only for pages
//! that came from here (`guard`). Limits: connections, bytes of a head, time without progress, bytes of a JSON body; what
//! is over them is refused and counted ([`HttpCounters`]). The document `/openapi.json` comes from the table that requests go by
//! ([`api`]).
//!
//! Units: bytes, seconds.

mod answer;
mod api;
mod event_stream;
mod guard;
mod mailbox;
mod metrics;
mod operations;
mod pinging;
mod sending;
mod serve;
mod unauthenticated;

use crate::client::AppClient;
use crate::config;
use crate::counter_changes::CounterChanges;
use crate::event_log::EventLog;
use crate::message::{Message, Reply, Request};
use crate::node::ClientFactory;
use crate::view::Counts;
use crate::write_timeout::WriteTimeout;
use answer::RequestFailure;
use guard::Guard;
use longwire_settings::error::Error;
use mailbox::Mailboxes;
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

/// What all requests share.
pub(crate) struct HttpState {
    client_factory: ClientFactory,
    /// Asks what is answered at once, one after the other.
    status_client: Arc<Mutex<AppClient>>,
    guard: Guard,
    counted: Arc<HttpCounters>,
    /// The node's id.
    node: String,
    events: Arc<EventLog>,
    mailboxes: Mailboxes,
    /// Connections that have not shown yet that they may ask.
    waiting: unauthenticated::UnauthenticatedConnections,
    /// How many pings were asked for.
    pings: AtomicU64,
}

impl HttpInterface {
    /// Begins to listen, if the configuration says so.
    ///
    /// # Errors
    /// The address is taken, or would be open to everybody.
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
            Error::new(format!("cannot listen on {text} for http: {error}"))
                .hint("another program may have the port; `http.listen` takes host:port")
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
        let no_queue =
            |error: std::io::Error| Error::new(format!("the system gives no event queue: {error}"));
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
            .map_err(|error| Error::new(format!("the system gives no thread: {error}")))?;
        Ok(Some(HttpInterface { address, counted, stop: Some(stop), thread: Some(thread) }))
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it counts.
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
    /// Asks the node for something that it answers at once. One at a time: so much of a turn goes to this interface at the
    /// most, however many ask.
    async fn ask(&self, request: Request) -> Result<Reply, RequestFailure> {
        let status_client = self.status_client.clone();
        // To the end, even if whoever asked does not wait for it: the next answer is for the next request.
        let asked = tokio::spawn(async move {
            let mut status_client = status_client.lock().await;
            if !status_client.request(request).await {
                return None;
            }
            status_client.reply().await
        });
        match asked.await {
            Ok(Some(Message { head: Reply::Error { what, hint }, .. })) => {
                Err(RequestFailure::bad(what, hint))
            }
            Ok(Some(Message { head, .. })) => Ok(head),
            Ok(None) | Err(_) => Err(RequestFailure::gone()),
        }
    }
}

/// What the interface counts.
#[derive(Debug)]
pub(crate) struct HttpCounters {
    connections: AtomicU64,
    requests: AtomicU64,
    refused_connections: AtomicU64,
    gave_way: AtomicU64,
    refused_token: AtomicU64,
    refused_host: AtomicU64,
    refused_origin: AtomicU64,
    refused_malformed: AtomicU64,
    refused_too_long: AtomicU64,
    /// With peers that neither read nor write.
    patience: WriteTimeout,
    /// Hears that any of them has changed.
    counter_changes: CounterChanges,
}

impl HttpCounters {
    fn new(patience: Duration, counter_changes: CounterChanges) -> Self {
        HttpCounters {
            connections: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            refused_connections: AtomicU64::new(0),
            gave_way: AtomicU64::new(0),
            refused_token: AtomicU64::new(0),
            refused_host: AtomicU64::new(0),
            refused_origin: AtomicU64::new(0),
            refused_malformed: AtomicU64::new(0),
            refused_too_long: AtomicU64::new(0),
            patience: WriteTimeout::new(patience),
            counter_changes,
        }
    }

    pub(crate) fn view(&self) -> Counts {
        let all = [
            ("connections", &self.connections),
            ("requests", &self.requests),
            ("refused_connections", &self.refused_connections),
            ("gave_way", &self.gave_way),
            ("refused_token", &self.refused_token),
            ("refused_host", &self.refused_host),
            ("refused_origin", &self.refused_origin),
            ("refused_malformed", &self.refused_malformed),
            ("refused_too_long", &self.refused_too_long),
        ];
        let all = all.map(|(name, count)| (name, count.load(Ordering::Relaxed)));
        let stalled = ("stalled", self.patience.stalled());
        all.into_iter().chain([stalled]).map(|(name, count)| (name.to_owned(), count)).collect()
    }
}

/// One more.
fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task_event::TaskEvent;
    use std::io::{Read, Write};

    /// Connections that never reach the engines are told to those who wait for what happens in the node.
    #[test]
    fn what_is_counted_is_told_when_it_happens() {
        let (tell, mut events) = tokio::sync::mpsc::unbounded_channel();
        let counter_changes = CounterChanges::new(tell.clone());
        let client_factory = ClientFactory::new(tell);
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
        let mut heard = |name: &str| {
            while http.counted().view()[name] == 0 {
                if let TaskEvent::Counted(counter_changes) =
                    events.blocking_recv().expect("the interface is there")
                {
                    counter_changes.heard();
                }
            }
        };
        let mut stream = std::net::TcpStream::connect(http.address()).expect("it listens");
        heard("connections");
        // Its head is no request.
        stream.write_all(b"nonsense\r\n\r\n").expect("it reads");
        heard("refused_malformed");
        let _ = stream.read_to_end(&mut Vec::new());
    }
}
