//! The far side: bundles become TCP connections.

use super::{AppClient, GatewayStatus};
use crate::pumps::program::{ProgramStream, connect};
use crate::surfaces::message::{Message, PART_BYTES, Reply, Request};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Maximum concurrent deliveries.
const DELIVERIES_MAX: usize = 16;
/// Pauses after a failed delivery: the first one, and the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// Pauses between questions whether the program's system has acknowledged everything: the first one, and the longest one.
const ASK_AFTER: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(1));
/// Pause before the endpoint is registered again.
const REGISTER_AFTER: Duration = Duration::from_secs(5);

/// Message of a delivery to the task that owns the application.
#[derive(Debug)]
enum FromDelivery {
    /// Reads a part of the payload.
    Read { delivery: u64, offset: u64 },
    /// The program has taken everything.
    Done { delivery: u64, bytes: u64 },
}

/// A delivery that is under way.
#[derive(Debug)]
struct Running {
    parts: mpsc::UnboundedSender<(u64, Bytes)>,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A program at the far side.
#[derive(Debug)]
struct Program {
    address: String,
    /// Time for which it may read or end nothing.
    idle: Duration,
    status: GatewayStatus,
}

/// Delivers bundles for an endpoint until the node stops.
pub(super) async fn serve(
    endpoint: String,
    address: String,
    idle: Duration,
    mut client: AppClient,
    status: GatewayStatus,
) {
    let program = Arc::new(Program { address, idle, status: status.clone() });
    let (to_owner, mut from_deliveries) = mpsc::unbounded_channel();
    let mut running: BTreeMap<u64, Running> = BTreeMap::new();
    let mut waiting: VecDeque<(u64, u64)> = VecDeque::new();
    let register = || Message::from(Request::Register { endpoint: endpoint.clone(), inline_bytes: 0 });
    if !client.request(register()).await {
        return;
    }
    loop {
        while running.len() < DELIVERIES_MAX
            && let Some((delivery, length)) = waiting.pop_front()
        {
            let (parts, received) = mpsc::unbounded_channel();
            let job = Delivery { number: delivery, length, parts: received, owner: to_owner.clone() };
            let task = tokio::spawn(job.run(Arc::clone(&program)));
            running.insert(delivery, Running { parts, task });
        }
        status.change(|shown| shown.open = (running.len() + waiting.len()) as u64);
        let request = tokio::select! {
            reply = client.reply() => {
                let Some(Message { head, body }) = reply else { return };
                match head {
                    Reply::Delivered { delivery, length, .. } => waiting.push_back((delivery, length)),
                    Reply::Data { delivery, offset } => {
                        if let Some(running) = running.get(&delivery) {
                            let _ = running.parts.send((offset, body));
                        }
                    }
                    Reply::Gone { delivery, .. } => {
                        running.remove(&delivery);
                        waiting.retain(|(waits, _)| *waits != delivery);
                    }
                    // Another application has the endpoint.
                    Reply::Error { what, .. } => {
                        status.trouble(Some(what));
                        sleep(REGISTER_AFTER).await;
                        if !client.request(register()).await {
                            return;
                        }
                    }
                    Reply::Registered { .. } => status.trouble(None),
                    _ => {}
                }
                continue;
            }
            Some(said) = from_deliveries.recv() => match said {
                FromDelivery::Read { delivery, offset } => Request::Read { delivery, offset, length: PART_BYTES },
                FromDelivery::Done { delivery, bytes } => {
                    status.count("delivered", 1);
                    status.count("received_bytes", bytes);
                    status.trouble(None);
                    Request::Taken { delivery }
                }
            },
        };
        if !client.request(request).await {
            return;
        }
    }
}

/// A bundle on its way to a program.
struct Delivery {
    number: u64,
    length: u64,
    parts: mpsc::UnboundedReceiver<(u64, Bytes)>,
    owner: mpsc::UnboundedSender<FromDelivery>,
}

impl Delivery {
    /// Delivers until it succeeds, or the delivery is gone.
    async fn run(mut self, program: Arc<Program>) {
        let mut pause = PAUSES.0;
        while let Err(error) = self.deliver(&program).await {
            program.status.count("retries", 1);
            program.status.trouble(Some(format!(
                "cannot deliver to {}: {error}; the node keeps the data and tries again",
                program.address
            )));
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
        let _ = self.owner.send(FromDelivery::Done { delivery: self.number, bytes: self.length });
    }

    /// Writes the whole payload to a new connection, and waits until the program has ended it and its system has everything.
    async fn deliver(&mut self, program: &Program) -> io::Result<()> {
        let late =
            || io::Error::new(io::ErrorKind::TimedOut, "the program neither reads nor ends the connection");
        let idle = program.idle;
        let connected = timeout(idle, connect(&program.address)).await.map_err(|_| late())?;
        // Dropped before both sides have ended it, it is reset.
        let stream = ProgramStream::new(connected?);
        let (mut reader, mut writer) = tokio::io::split(stream);
        let write = async {
            let mut at = 0;
            while at < self.length {
                let part = self.read(at).await?;
                at += part.len() as u64;
                timeout(idle, writer.write_all(&part)).await.map_err(|_| late())??;
            }
            writer.shutdown().await
        };
        let read = async {
            let mut answer = BytesMut::with_capacity(16 * 1024);
            loop {
                answer.clear();
                match reader.read_buf(&mut answer).await? {
                    0 => return Ok::<(), io::Error>(()),
                    bytes => program.status.count("answer_bytes_dropped", bytes as u64),
                }
            }
        };
        {
            tokio::pin!(write, read);
            let has_ended = tokio::select! {
                written = &mut write => written.map(|()| false)?,
                ended = &mut read => ended.map(|()| true)?,
            };
            match has_ended {
                // A program that sends nothing may end its direction at once, and read all the same.
                true => write.await?,
                false => timeout(idle, read).await.map_err(|_| late())??,
            }
        }
        let stream = reader.unsplit(writer);
        timeout(idle, over(&stream)).await.map_err(|_| late())?
    }

    /// Reads the part of the payload that begins at an offset.
    async fn read(&mut self, offset: u64) -> io::Result<Bytes> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        self.owner.send(FromDelivery::Read { delivery: self.number, offset }).map_err(|_| gone())?;
        loop {
            match self.parts.recv().await {
                Some((at, part)) if at == offset => return Ok(part),
                // Asked for by an attempt that has failed.
                Some(_) => {}
                None => return Err(gone()),
            }
        }
    }
}

/// Waits until the program's system has acknowledged all bytes and the end. No event of the system tells that.
async fn over(stream: &ProgramStream) -> io::Result<()> {
    let mut pause = ASK_AFTER.0;
    while !stream.is_over()? {
        sleep(pause).await;
        pause = (pause * 2).min(ASK_AFTER.1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pumps::program::reset_unless_ended;
    use crate::surfaces::custody::SharedStatus;
    use crate::view;
    use tokio::net::{TcpListener, TcpSocket, TcpStream};

    /// A program that listens with a receive buffer of this length, if any.
    fn listener(buffer_bytes: Option<u32>) -> TcpListener {
        let socket = TcpSocket::new_v4().expect("a socket");
        if let Some(bytes) = buffer_bytes {
            socket.set_recv_buffer_size(bytes).expect("an option");
        }
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        socket.listen(1).expect("it listens")
    }

    /// Tries once to deliver a payload to a program.
    async fn delivered(
        shown: &SharedStatus,
        listener: TcpListener,
        payload: Vec<u8>,
        acts: impl AsyncFnOnce(TcpStream),
    ) -> io::Result<()> {
        let (owner, mut asked) = mpsc::unbounded_channel();
        let (give, parts) = mpsc::unbounded_channel();
        let payload = Bytes::from(payload);
        let mut delivery = Delivery { number: 1, length: payload.len() as u64, parts, owner };
        let status = GatewayStatus::new(shown, view::Gateway::default());
        let address = listener.local_addr().expect("it is bound").to_string();
        let program = Program { address, idle: Duration::from_secs(60), status };
        let node = async {
            while let Some(FromDelivery::Read { offset, .. }) = asked.recv().await {
                let rest = payload.slice(offset as usize..);
                let _ = give.send((offset, rest.slice(..rest.len().min(PART_BYTES as usize))));
            }
        };
        let there = async { acts(listener.accept().await.expect("it calls").0).await };
        tokio::select! {
            (result, ()) = async { tokio::join!(delivery.deliver(&program), there) } => result,
            () = node => unreachable!("the delivery lives as long"),
        }
    }

    /// Many programs that send nothing end their direction at once.
    #[tokio::test]
    async fn a_program_that_ends_its_direction_first_has_everything() {
        let payload: Vec<u8> = (0..8_000_000_u32).map(|at| (at >> 8) as u8).collect();
        let mut had = Vec::new();
        let acts = async |mut stream: TcpStream| {
            stream.shutdown().await.expect("it ends");
            stream.read_to_end(&mut had).await.expect("it arrives");
        };
        let result = delivered(&SharedStatus::default(), listener(None), payload.clone(), acts).await;
        result.expect("it is delivered");
        assert!(had == payload, "{} bytes", had.len());
    }

    /// Its early end confirms nothing: what is still in the buffers of this side when it dies would be lost.
    #[tokio::test]
    async fn a_program_that_dies_after_an_early_end_has_confirmed_nothing() {
        let shown = SharedStatus::default();
        let acts = async |mut stream: TcpStream| {
            stream.readable().await.expect("the beginning arrives");
            stream.write_all(b"answer").await.expect("it is read");
            stream.shutdown().await.expect("it ends");
            while shown.lock().expect("no thread panics with it")[0].counters.is_empty() {
                tokio::task::yield_now().await;
            }
            // The delivery sees the end as well.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            reset_unless_ended(&stream).expect("an option");
        };
        assert!(delivered(&shown, listener(Some(2048)), vec![7; 10_000], acts).await.is_err());
    }
}
