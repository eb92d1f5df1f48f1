//! A file from one station to another, timed from the connection request to the last acknowledgement, with every byte compared.

use crate::direwolf::{Failure, OURS, Rig, THEIRS};
use crate::ours::Ours;
use longwire_proto::kiss::Acknowledgement;
use std::time::{Duration, Instant};

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Sending,
    Receiving,
    /// From one Dire Wolf to another.
    Beside,
}

pub(crate) const WAYS: [Way; 3] = [Way::Sending, Way::Receiving, Way::Beside];

/// Maximum time for closing; leftovers are cleared by the next connection request.
const CLOSING: Duration = Duration::from_secs(60);

impl Way {
    /// Transfers the file. Frames are destroyed by random numbers from this seed, from the connection request on: the same ones
    /// for the same frames, whichever station sends them.
    pub(crate) async fn go(self, rig: &Rig, file: &[u8], seed: u64) -> Result<Duration, Failure> {
        match self {
            Way::Sending => sending(rig, file, seed).await,
            Way::Receiving => receiving(rig, file, seed).await,
            Way::Beside => beside(rig, file, seed).await,
        }
    }
}

fn begin(rig: &Rig, seed: u64) -> Instant {
    rig.channel.begin(f64::from(rig.air.destroyed_percent) / 100.0, seed);
    Instant::now()
}

async fn sending(rig: &Rig, file: &[u8], seed: u64) -> Result<Duration, Failure> {
    let mut ours = Ours::new(rig, Acknowledgement::Never);
    ours.is_heard(rig).await;
    let mut theirs = rig.user(1, THEIRS).await;
    let began = begin(rig, seed);
    let (called, heard) = tokio::join!(ours.call(), theirs.called());
    called.and(heard)?;
    let send = async {
        ours.send(file).await?;
        Ok::<_, Failure>(began.elapsed())
    };
    let (taken, heard) = tokio::try_join!(send, theirs.receive(file.len()))?;
    assert!(heard == file, "every byte is as it was sent");
    let close = async { tokio::join!(ours.close(), theirs.closed()) };
    let _ = tokio::time::timeout(CLOSING, close).await;
    theirs.leave().await;
    Ok(taken)
}

async fn receiving(rig: &Rig, file: &[u8], seed: u64) -> Result<Duration, Failure> {
    let mut ours = Ours::new(rig, Acknowledgement::Never);
    ours.is_heard(rig).await;
    let mut theirs = rig.user(1, THEIRS).await;
    let began = begin(rig, seed);
    ours.meanwhile(theirs.call(OURS, &rig.air.path())).await?;
    theirs.send(file).await;
    let heard = ours.receive(file.len()).await?;
    assert!(heard == file, "every byte is as it was sent");
    ours.meanwhile(theirs.is_acknowledged()).await?;
    let taken = began.elapsed();
    let close = ours.meanwhile(theirs.close());
    let _ = tokio::time::timeout(CLOSING, close).await;
    theirs.leave().await;
    Ok(taken)
}

async fn beside(rig: &Rig, file: &[u8], seed: u64) -> Result<Duration, Failure> {
    let (mut one, mut other) = (rig.user(0, OURS).await, rig.user(1, THEIRS).await);
    let began = begin(rig, seed);
    let path = rig.air.path();
    let (called, heard) = tokio::join!(one.call(THEIRS, &path), other.called());
    called.and(heard)?;
    one.send(file).await;
    let heard = other.receive(file.len()).await?;
    assert!(heard == file, "every byte is as it was sent");
    one.is_acknowledged().await?;
    let taken = began.elapsed();
    let close = async { tokio::join!(one.close(), other.closed()) };
    let _ = tokio::time::timeout(CLOSING, close).await;
    one.leave().await;
    other.leave().await;
    Ok(taken)
}
