//! Bundles that this service sends, and what the node says about the way to a destination.

use super::NodeGone;
use crate::surfaces::client::AppClient;
use crate::surfaces::message::{Message, MessageOptions, PART_BYTES, Reply, Request};
use crate::view::Estimate;
use bytes::Bytes;
use longwire_proto::service::BundleName;

/// An application that sends one bundle at a time.
#[derive(Debug)]
pub(super) struct Sender {
    client: AppClient,
    next: u64,
}

/// Reason why a bundle was not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotStored {
    pub(super) reason: String,
    /// True if it may be stored later.
    pub(super) is_temporary: bool,
}

impl Sender {
    pub(super) fn new(client: AppClient) -> Self {
        Sender { client, next: 0 }
    }

    async fn ask(&self, request: impl Into<Message<Request>>) -> Result<(), NodeGone> {
        if self.client.request(request).await { Ok(()) } else { Err(NodeGone) }
    }

    async fn hear(&mut self) -> Result<Message<Reply>, NodeGone> {
        self.client.reply().await.ok_or(NodeGone)
    }

    /// Waits until the node stops; replies about earlier bundles are dropped.
    pub(super) async fn gone(&mut self) {
        while self.client.reply().await.is_some() {}
    }

    /// Sends a payload of two parts, and waits until it is durable.
    pub(super) async fn send(
        &mut self,
        to: String,
        head: Bytes,
        mut rest: Bytes,
        options: MessageOptions,
    ) -> Result<Result<(), NotStored>, NodeGone> {
        self.next += 1;
        let send = self.next;
        let length = (head.len() + rest.len()) as u64;
        let opening = Request::Send { send, to, length, options };
        self.ask(Message { head: opening, body: head }).await?;
        while !rest.is_empty() {
            let body = rest.split_to(rest.len().min(PART_BYTES as usize));
            self.ask(Message { head: Request::Piece { send }, body }).await?;
        }
        loop {
            match self.hear().await?.head {
                Reply::Accepted { send: of, .. } if of == send => return Ok(Ok(())),
                Reply::Failed { send: of, reason, code } if of == send => {
                    let is_temporary = matches!(&*code, "full" | "storage");
                    return Ok(Err(NotStored { reason, is_temporary }));
                }
                Reply::Error { what, .. } => return Ok(Err(NotStored { reason: what, is_temporary: false })),
                _ => {}
            }
        }
    }

    /// Deletes a bundle at this node, if it is still here.
    pub(super) async fn delete(&mut self, bundle: BundleName) -> Result<(), NodeGone> {
        self.ask(Request::Delete(bundle)).await?;
        while !matches!(self.hear().await?.head, Reply::Done | Reply::Error { .. }) {}
        Ok(())
    }

    /// Asks how a payload would be sent.
    pub(super) async fn estimate(&mut self, to: String, length: u64) -> Result<Estimate, NodeGone> {
        self.ask(Request::Estimate { to, length }).await?;
        loop {
            match self.hear().await?.head {
                Reply::Estimate { estimate } => return Ok(estimate),
                Reply::Error { .. } => return Ok(Estimate::default()),
                _ => {}
            }
        }
    }

    /// Time by which the clock is ahead of the lifetimes of bundles, milliseconds, once the node has read its store.
    pub(super) async fn clock_ahead_ms(&mut self) -> Result<i64, NodeGone> {
        self.ask(Request::Status).await?;
        loop {
            match self.hear().await?.head {
                Reply::Status { status } if status.ready => return Ok((status.clock_ahead_s * 1000.0) as i64),
                Reply::Status { .. } => self.ask(Request::NextStatus).await?,
                _ => {}
            }
        }
    }

    /// Starts the recording of events of bundles.
    pub(super) async fn watch(&mut self) -> Result<(), NodeGone> {
        self.ask(Request::Watch).await
    }
}
