//! Lines between real sockets: they have a rate, count their bytes, and can be cut.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

/// Bytes forwarded at once.
const CHUNK_BYTES: usize = 4096;

/// Effect of a cut on the ends of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// None: bytes stop arriving.
    Silent,
    /// The connections are reset.
    Reset,
}

/// A line that forwards connections to one node.
pub(crate) struct Line {
    address: SocketAddr,
    inner: Arc<Inner>,
}

struct Inner {
    rate_bps: u64,
    kernel_bytes: u32,
    manner: Cut,
    to: Mutex<Option<SocketAddr>>,
    carried: AtomicU64,
    /// False while the line is cut.
    there: watch::Sender<bool>,
}

impl Line {
    pub(crate) fn new(rate_bps: u64, kernel_bytes: usize, manner: Cut) -> Line {
        let inner = Arc::new(Inner {
            rate_bps,
            kernel_bytes: kernel_bytes as u32,
            manner,
            to: Mutex::new(None),
            carried: AtomicU64::new(0),
            there: watch::Sender::new(true),
        });
        let (sender, address) = std::sync::mpsc::channel();
        let served = Arc::downgrade(&inner);
        thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = listener(kernel_bytes as u32).expect("loopback has ports");
                let _ = sender.send(listener.local_addr().expect("it is bound"));
                // Until the line is dropped.
                while let Ok((here, _)) = listener.accept().await
                    && let Some(inner) = served.upgrade()
                {
                    tokio::spawn(inner.join(here));
                }
            });
        });
        Line { address: address.recv().expect("the line comes up"), inner }
    }

    /// Address to connect to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the destination of connections; `None` if there is none.
    pub(crate) fn lead_to(&self, to: Option<SocketAddr>) {
        *self.inner.to.lock().expect("no thread panics with it") = to;
    }

    /// Bytes forwarded to the node.
    pub(crate) fn carried(&self) -> u64 {
        self.inner.carried.load(Ordering::Relaxed)
    }

    pub(crate) fn cut(&self) {
        self.inner.there.send_replace(false);
    }

    pub(crate) fn heal(&self) {
        self.inner.there.send_replace(true);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.inner.there.send_replace(true);
        self.lead_to(None);
        // One more connection, so that the thread notices that the line was dropped.
        let address = self.address;
        self.inner = Arc::new(Inner {
            rate_bps: 1,
            kernel_bytes: 0,
            manner: Cut::Silent,
            to: Mutex::new(None),
            carried: AtomicU64::new(0),
            there: watch::Sender::new(true),
        });
        let _ = std::net::TcpStream::connect(address);
    }
}

fn listener(kernel_bytes: u32) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(kernel_bytes)?;
    socket.set_send_buffer_size(kernel_bytes)?;
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    socket.listen(64)
}

impl Inner {
    async fn is_there(&self) {
        let mut there = self.there.subscribe();
        let _ = there.wait_for(|there| *there).await;
    }

    /// Returns when connections must be reset.
    async fn breaks(&self) {
        let mut there = self.there.subscribe();
        let _ = there.wait_for(|there| !*there && self.manner == Cut::Reset).await;
    }

    /// Forwards a connection.
    async fn join(self: Arc<Self>, mut here: TcpStream) {
        self.is_there().await;
        let to = *self.to.lock().expect("no thread panics with it");
        let Some(to) = to else { return };
        let Ok(socket) = TcpSocket::new_v4() else { return };
        let _ = socket.set_send_buffer_size(self.kernel_bytes);
        let _ = socket.set_recv_buffer_size(self.kernel_bytes);
        let Ok(mut there) = socket.connect(to).await else { return };
        let (mut from, mut back) = here.split();
        let (mut answers, mut out) = there.split();
        tokio::select! {
            _ = async { tokio::try_join!(self.carry(&mut from, &mut out, true), self.carry(&mut answers, &mut back, false)) } => {}
            () = self.breaks() => {}
        }
    }

    async fn carry(
        &self,
        from: &mut (impl AsyncReadExt + Unpin),
        to: &mut (impl AsyncWriteExt + Unpin),
        counts: bool,
    ) -> std::io::Result<()> {
        let mut buffer = [0; CHUNK_BYTES];
        let mut free_at = Instant::now();
        loop {
            self.is_there().await;
            let some = from.read(&mut buffer).await?;
            self.is_there().await;
            if some == 0 {
                return to.shutdown().await;
            }
            let takes = Duration::from_nanos(some as u64 * 8_000_000_000 / self.rate_bps);
            free_at = free_at.max(Instant::now()) + takes;
            tokio::time::sleep_until(free_at).await;
            to.write_all(&buffer[..some]).await?;
            if counts {
                self.carried.fetch_add(some as u64, Ordering::Relaxed);
            }
        }
    }
}
