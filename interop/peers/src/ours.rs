//! Our node, in this process.

use crate::DEADLINE;
use bytes::{Bytes, BytesMut};
use longwire_node::message::{BODY_BYTES_MAX, Message, MessageOptions, Reply, Request};
use longwire_node::{AppClient, Config, Node, NodeSetup};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Node and an application at its inbox.
#[derive(Debug)]
pub struct Ours {
    node: Node,
    client: AppClient,
    sends: u64,
}

impl Ours {
    /// Starts a node with a store in memory and this configuration.
    pub async fn start(text: &str) -> Ours {
        let text = format!("{text}\n[storage]\nkind = 'memory'\n");
        let mut config = Config::parse(&text, "interop", Path::new("/nowhere")).expect("it makes sense");
        config.control = None;
        longwire_node::log::begin().expect("the filter is valid");
        let node = Node::start(NodeSetup::new(config)).expect("it starts");
        let client = node.client();
        let mut ours = Ours { node, client, sends: 0 };
        let inbox = if text.contains("ipn:") { "5" } else { "inbox" };
        ours.ask(Request::Register { endpoint: inbox.to_owned(), inline_bytes: 0 }).await;
        let registered = |said: &Message<Reply>| matches!(said.head, Reply::Registered { .. });
        ours.hear(DEADLINE, registered).await.expect("the inbox is free");
        ours
    }

    /// Address at which the node listens.
    pub fn address(&self) -> SocketAddr {
        self.node.addresses()[0]
    }

    async fn ask(&mut self, request: impl Into<Message<Request>>) {
        assert!(self.client.request(request).await, "the node is there");
    }

    /// Waits for the next reply of this kind from the node.
    async fn hear(
        &mut self,
        within: Duration,
        wanted: impl Fn(&Message<Reply>) -> bool,
    ) -> Result<Message<Reply>, String> {
        let hearing = async {
            loop {
                let said = self.client.reply().await.expect("the node is there");
                if let Reply::Error { what, .. } = &said.head {
                    panic!("the node says: {what}");
                }
                if wanted(&said) {
                    return said;
                }
            }
        };
        tokio::time::timeout(within, hearing).await.map_err(|_| "nothing came".to_owned())
    }

    /// Sends a payload.
    pub async fn send(&mut self, to: &str, payload: Bytes) {
        self.sends += 1;
        let (send, length) = (self.sends, payload.len() as u64);
        self.ask(Request::Send { send, to: to.to_owned(), length, options: MessageOptions::default() }).await;
        let mut left = payload;
        while !left.is_empty() {
            let body = left.split_to(left.len().min(BODY_BYTES_MAX));
            self.ask(Message { head: Request::Piece { send }, body }).await;
        }
    }

    /// Receives a payload and accepts it.
    pub async fn receive(&mut self, within: Duration) -> Result<Bytes, String> {
        let said = self.hear(within, |said| matches!(said.head, Reply::Delivered { .. })).await?;
        let Reply::Delivered { delivery, length, .. } = said.head else { unreachable!("it was wanted") };
        let mut whole = BytesMut::new();
        while (whole.len() as u64) < length {
            let offset = whole.len() as u64;
            self.ask(Request::Read { delivery, offset, length: 65_536 }).await;
            let part =
                |said: &Message<Reply>| matches!(said.head, Reply::Data { offset: at, .. } if at == offset);
            let data = self.hear(within, part).await?;
            whole.extend_from_slice(&data.body);
        }
        self.ask(Request::Taken { delivery }).await;
        self.hear(within, |said| matches!(said.head, Reply::Gone { .. })).await?;
        Ok(whole.freeze())
    }

    /// Returns the status of the node.
    pub async fn status(&mut self) -> Value {
        self.ask(Request::Status).await;
        let said = self.hear(DEADLINE, |said| matches!(said.head, Reply::Status { .. }));
        match said.await.expect("the node answers").head {
            Reply::Status { status } => serde_json::to_value(status).expect("a status is JSON"),
            _ => unreachable!("it was wanted"),
        }
    }

    /// Waits until a link is up; false on a timeout.
    pub async fn wait_up(&mut self, within: Duration) -> bool {
        let waiting = async {
            loop {
                let status = self.status().await;
                let links = status["links"].as_array().cloned().unwrap_or_default();
                if links.iter().any(|link| link["up"] == true) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(within, waiting).await.is_ok()
    }
}
