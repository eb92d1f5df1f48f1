//! An application's side of a node, in the same process. The control socket is a pump over one of these.

use crate::message::{BODY_BYTES_MAX, Message, Reply, Request};
use crate::task_event::{ClientId, TaskEvent};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Semaphore, mpsc};

/// Bytes of sends that may wait in the node for each application.
pub(crate) const BUDGET_BYTES: usize = 4 << 20;
/// What a message costs beside its body.
pub(crate) const MESSAGE_BYTES: usize = 256;
/// Other requests of each application that may wait to be heard.
const ASKED_MAX: usize = 1024;

/// Whether a request brings payload, which counts by its bytes.
pub(crate) fn is_payload(request: &Request) -> bool {
    matches!(request, Request::Send { .. } | Request::Piece { .. })
}

/// An application. Dropping it ends what it has begun: sends that are not whole are given up, deliveries that were not
/// taken wait for the next registration.
#[derive(Debug)]
pub struct AppClient {
    id: ClientId,
    events: mpsc::UnboundedSender<TaskEvent>,
    budget: Arc<Semaphore>,
    asked: Arc<Semaphore>,
    replies: mpsc::UnboundedReceiver<Message<Reply>>,
    waiting: Arc<AtomicUsize>,
}

/// The node's side of it.
#[derive(Debug)]
pub(crate) struct ClientEnd {
    pub(crate) budget: Arc<Semaphore>,
    /// Room for requests that bring no payload; what was heard gives its place back.
    pub(crate) asked: Arc<Semaphore>,
    pub(crate) replies: mpsc::UnboundedSender<Message<Reply>>,
    /// Replies that were not read.
    pub(crate) waiting: Arc<AtomicUsize>,
}

impl AppClient {
    pub(crate) fn new(id: ClientId, events: mpsc::UnboundedSender<TaskEvent>) -> AppClient {
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
        let _ = events.send(TaskEvent::Client(id, end));
        AppClient { id, events, budget, asked, replies, waiting }
    }

    /// Asks the node for something. Waits while too much of what this application sends or asks is in the node's memory;
    /// false: the node is gone.
    pub async fn request(&self, request: impl Into<Message<Request>>) -> bool {
        let message = request.into();
        assert!(message.body.len() <= BODY_BYTES_MAX, "bodies are bounded");
        let permit = if is_payload(&message.head) {
            self.budget.acquire_many((message.body.len() + MESSAGE_BYTES) as u32).await
        } else {
            self.asked.acquire().await
        };
        match permit {
            Ok(permit) => permit.forget(),
            Err(_) => return false,
        }
        self.events.send(TaskEvent::Request(self.id, message)).is_ok()
    }

    /// The next thing that the node says; none: it is gone, or has cut this application off.
    pub async fn reply(&mut self) -> Option<Message<Reply>> {
        let reply = self.replies.recv().await?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(reply)
    }

    /// The next thing that the node has said already.
    pub fn try_reply(&mut self) -> Option<Message<Reply>> {
        let reply = self.replies.try_recv().ok()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(reply)
    }
}

impl Drop for AppClient {
    fn drop(&mut self) {
        let _ = self.events.send(TaskEvent::ClientGone(self.id));
    }
}
