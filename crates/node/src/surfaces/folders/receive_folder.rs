//! A folder in which deliveries become files.

use super::{AGAIN_AFTER, FolderStatus, NodeConnection, NodeGone};
use crate::config::ReceiveFolder;
use crate::surfaces::inbox::{self, FileStart};
use crate::surfaces::message::{PART_BYTES, Reply, Request};
use longwire_proto::service::BundleName;
use std::io;
use tokio::sync::oneshot;

struct WaitingDelivery {
    number: u64,
    origin: BundleName,
    length: u64,
}

/// Receives until the node stops, or until the sender of `stop` is dropped. A file that is being written is finished first.
pub(super) async fn serve(
    receive: ReceiveFolder,
    mut talk: NodeConnection,
    line: FolderStatus,
    mut stop: oneshot::Receiver<()>,
) -> Result<(), NodeGone> {
    inbox::tidy(&receive.folder);
    register(&receive, &talk).await?;
    loop {
        let said = tokio::select! {
            biased;
            _ = &mut stop => return Ok(()),
            said = talk.hear() => said?,
        };
        match said.head {
            Reply::Delivered { delivery, source, created, length, .. } => {
                let delivery =
                    WaitingDelivery { number: delivery, origin: BundleName { source, created }, length };
                line.change(|folder| folder.waiting = 1 + talk.waiting.len() as u64);
                while let Err(error) = take(&receive, &mut talk, &line, &delivery).await? {
                    line.trouble(format!(
                        "cannot write: {error}; the node keeps the files that were not received"
                    ));
                    tokio::select! {
                        _ = &mut stop => return Ok(()),
                        () = tokio::time::sleep(AGAIN_AFTER) => {}
                    }
                }
                line.change(|folder| folder.waiting = talk.waiting.len() as u64);
            }
            // Another application has the endpoint.
            Reply::Error { what, .. } => {
                line.trouble(what);
                tokio::select! {
                    _ = &mut stop => return Ok(()),
                    () = tokio::time::sleep(AGAIN_AFTER) => {}
                }
                register(&receive, &talk).await?;
            }
            Reply::Registered { .. } => line.change(|folder| folder.trouble = None),
            _ => {}
        }
    }
}

async fn register(receive: &ReceiveFolder, talk: &NodeConnection) -> Result<(), NodeGone> {
    talk.ask(Request::Register { endpoint: receive.endpoint.clone(), inline_bytes: 0 }).await
}

/// Writes a delivery to a file, and only then takes it.
async fn take(
    receive: &ReceiveFolder,
    talk: &mut NodeConnection,
    line: &FolderStatus,
    delivery: &WaitingDelivery,
) -> Result<io::Result<()>, NodeGone> {
    let begun =
        inbox::make(&receive.folder).and_then(|()| inbox::begin(&receive.folder, delivery.origin.clone()));
    let mut file = match begun {
        Ok(FileStart::Arriving(file)) => file,
        Ok(FileStart::AlreadyPlaced) => return Ok(Ok(taken(receive, talk, delivery).await?)),
        Err(error) => return Ok(Err(error)),
    };
    let (number, mut at) = (delivery.number, 0);
    while at < delivery.length {
        talk.ask(Request::Read { delivery: number, offset: at, length: PART_BYTES }).await?;
        let end = delivery.length.min(at + u64::from(PART_BYTES));
        while at < end {
            let data = talk.wait(|said| match &said.head {
                Reply::Data { delivery, offset } if *delivery == number && *offset == at => {
                    Some(Some(said.body.clone()))
                }
                // The delivery has expired; no file appears.
                Reply::Gone { delivery, .. } if *delivery == number => Some(None),
                _ => None,
            });
            let Some(data) = data.await? else { return Ok(Ok(())) };
            if let Err(error) = file.write(&data) {
                return Ok(Err(error));
            }
            at += data.len() as u64;
        }
    }
    if let Err(error) = file.finish() {
        return Ok(Err(error));
    }
    line.done();
    Ok(Ok(taken(receive, talk, delivery).await?))
}

async fn taken(
    receive: &ReceiveFolder,
    talk: &mut NodeConnection,
    delivery: &WaitingDelivery,
) -> Result<(), NodeGone> {
    let number = delivery.number;
    talk.ask(Request::Taken { delivery: number }).await?;
    talk.wait(|said| matches!(said.head, Reply::Gone { delivery, .. } if delivery == number).then_some(()))
        .await?;
    inbox::forget(&receive.folder, &delivery.origin);
    Ok(())
}
