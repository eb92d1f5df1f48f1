//! Operations of a peer.

use bytes::Bytes;
use std::time::Duration;

/// Side that opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Caller {
    /// Our node opens the connection.
    We,
    /// The peer opens the connection.
    They,
}

/// Node of another implementation with one application.
pub trait Peer {
    /// Endpoint at which its application receives.
    fn inbox(&self) -> String;

    /// Sends a payload from its application.
    fn send(&mut self, to: &str, payload: Bytes) -> impl Future<Output = Result<(), String>> + Send;

    /// Receives a payload at its application. Fails if none arrives within this time.
    fn receive(&mut self, within: Duration) -> impl Future<Output = Result<Bytes, String>> + Send;
}

/// Polls a condition until it holds; false on a timeout.
pub async fn until<F: Future<Output = bool>>(within: Duration, mut condition: impl FnMut() -> F) -> bool {
    let waiting = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(within, waiting).await.is_ok()
}
