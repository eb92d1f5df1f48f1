//! A closed connection releases everything that it held, however it ended and whatever was not released before.

use super::super::*;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// End of a connection.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Both sides close.
    Finished,
    /// This side aborts.
    Aborted,
    /// Its owner is dropped.
    Forgotten,
}

/// Returns the bytes that count against all connections after one has ended: `came` had been received, and `released` of them
/// were released.
async fn left_behind(end: End, came: usize, released: u64) -> u64 {
    let (here, mut there) = tokio::io::duplex(1 << 20);
    let (orders, ordered) = mpsc::unbounded_channel();
    let (tell, mut said) = mpsc::unbounded_channel();
    let all = Arc::new(ReceiveBudget::new(1 << 20));
    let patience = WriteTimeout::new(Duration::from_secs(300));
    let window = ConnectionLimits { bytes: 1 << 20, all: all.clone(), patience };
    let pumping =
        tokio::spawn(async move { pump(Box::new(here), ordered, window, |it| drop(tell.send(it))).await });
    there.write_all(&vec![7; came]).await.expect("there is room");
    let mut bytes = 0;
    while bytes < came {
        if let Some(PumpEvent::Data(data)) = said.recv().await {
            bytes += data.len();
        }
    }
    assert_eq!(all.unreleased(), came as u64, "all of it counts");
    orders.send(PumpCommand::Release(released)).expect("it is there");
    match end {
        End::Finished => {
            orders.send(PumpCommand::Close).expect("it is there");
            drop(there);
        }
        End::Aborted => orders.send(PumpCommand::Abort).expect("it is there"),
        End::Forgotten => drop(orders),
    }
    pumping.await.expect("it ends");
    all.unreleased()
}

#[tokio::test]
async fn what_a_closed_connection_held_counts_no_more() {
    for end in [End::Finished, End::Aborted, End::Forgotten] {
        // No more bytes can be released than were received.
        for released in [0, 10_000, 50_000, 60_000] {
            assert_eq!(left_behind(end, 50_000, released).await, 0, "{end:?}, {released} bytes released");
        }
    }
}
