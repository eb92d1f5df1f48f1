//! An application's interface to a node in the same process. The control socket copies messages between a connection and one of
//! these.

use crate::surfaces::message::{BODY_BYTES_MAX, Message, Reply, Request};
use crate::surfaces::operations::Weight;
use crate::tell::Tell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::{Semaphore, mpsc};

/// Maximum bytes of sends that wait in the node, per application.
pub(crate) const BUDGET_BYTES: usize = 4 << 20;
/// Bytes that a message counts in addition to its body.
pub(crate) const MESSAGE_BYTES: usize = 256;
/// Maximum other requests that wait in the node, per application.
const ASKED_MAX: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientId(pub(crate) u64);

#[derive(Debug)]
pub(crate) enum ClientEvent {
    /// It connects.
    Arrives(ClientId, ClientEnd),
    /// It sends a request.
    Request(ClientId, Message<Request>),
    /// It disconnects.
    Leaves(ClientId),
}

/// Creates the interfaces of applications.
#[derive(Clone, Debug)]
pub(crate) struct ClientFactory {
    tell: Tell<ClientEvent>,
    next_client: Arc<AtomicU64>,
}

impl ClientFactory {
    /// Creates the factory for the task that hears these events.
    pub(crate) fn new(tell: Tell<ClientEvent>) -> Self {
        ClientFactory { tell, next_client: Arc::new(AtomicU64::new(0)) }
    }

    pub(crate) fn client(&self) -> AppClient {
        let id = ClientId(self.next_client.fetch_add(1, Ordering::Relaxed));
        AppClient::new(id, self.tell.clone())
    }
}

/// An application. Dropping it cancels its incomplete sends; deliveries that were not taken wait for the next registration.
#[derive(Debug)]
pub struct AppClient {
    id: ClientId,
    tell: Tell<ClientEvent>,
    budget: Arc<Semaphore>,
    asked: Arc<Semaphore>,
    replies: mpsc::UnboundedReceiver<Message<Reply>>,
    waiting: Arc<AtomicUsize>,
}

/// The node's side of the application.
#[derive(Debug)]
pub(crate) struct ClientEnd {
    pub(crate) budget: Arc<Semaphore>,
    /// Room for requests without payload; handling a request frees its place.
    pub(crate) asked: Arc<Semaphore>,
    pub(crate) replies: mpsc::UnboundedSender<Message<Reply>>,
    /// Number of unread replies.
    pub(crate) waiting: Arc<AtomicUsize>,
}

impl AppClient {
    pub(crate) fn new(id: ClientId, tell: Tell<ClientEvent>) -> AppClient {
        let (sender, replies) = mpsc::unbounded_channel();
        let budget = Arc::new(Semaphore::new(BUDGET_BYTES));
        let waiting = Arc::new(AtomicUsize::new(0));
        let asked = Arc::new(Semaphore::new(ASKED_MAX));
        let end = ClientEnd {
            budget: budget.clone(),
            asked: asked.clone(),
            replies: sender,
            waiting: waiting.clone(),
        };
        tell.tell(ClientEvent::Arrives(id, end));
        AppClient { id, tell, budget, asked, replies, waiting }
    }

    /// Sends a request to the node. Waits while too many bytes or requests of this application are in the node's memory. Returns
    /// false if the node has stopped.
    pub async fn request(&self, request: impl Into<Message<Request>>) -> bool {
        let message = request.into();
        assert!(message.body.len() <= BODY_BYTES_MAX, "bodies are bounded");
        let permit = if message.head.operation().weight == Weight::Payload {
            self.budget.acquire_many((message.body.len() + MESSAGE_BYTES) as u32).await
        } else {
            self.asked.acquire().await
        };
        match permit {
            Ok(permit) => permit.forget(),
            Err(_) => return false,
        }
        self.tell.tell(ClientEvent::Request(self.id, message))
    }

    /// Returns the next reply of the node; `None` if the node has stopped or has disconnected this application.
    pub async fn reply(&mut self) -> Option<Message<Reply>> {
        let reply = self.replies.recv().await?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(reply)
    }

    /// Returns the next reply if one is waiting.
    pub fn try_reply(&mut self) -> Option<Message<Reply>> {
        let reply = self.replies.try_recv().ok()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(reply)
    }
}

impl Drop for AppClient {
    fn drop(&mut self) {
        self.tell.tell(ClientEvent::Leaves(self.id));
    }
}
