//! What a peer has to do.

use bytes::Bytes;
use std::time::Duration;

/// How a run is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Caller {
    /// Our node opens the connection.
    We,
    /// The peer opens it.
    They,
}

/// Another implementation's node with one application.
pub trait Peer {
    /// The endpoint that its application receives at.
    fn inbox(&self) -> String;

    /// Its application sends a payload.
    fn send(&mut self, to: &str, payload: Bytes) -> impl Future<Output = Result<(), String>> + Send;

    /// Its application receives a payload; an error if none comes in this time.
    fn receive(&mut self, within: Duration) -> impl Future<Output = Result<Bytes, String>> + Send;
}

/// Waits for a condition that nothing tells of, asking again after a moment; false if it does not come in time.
pub async fn until<F: Future<Output = bool>>(within: Duration, mut condition: impl FnMut() -> F) -> bool {
    let waiting = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(within, waiting).await.is_ok()
}
