//! Datagrams: one pump for each UDP socket, between it and the engines.
//!
//! What goes out was handed over against room: so many datagrams as the pump holds. What comes in is bounded by the window:
//! as long as so many bytes are not released, nothing is read, and the system drops what its own buffer cannot hold.
//!
//! Units: bytes of datagram, without headers.

use crate::event::Event;
use crate::stream::reason_of;
use bytes::Bytes;
use longwire_proto::service::{CloseReason, DatagramsIndication, DatagramsRequest, LinkId};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use tokio::io::Interest;
use tokio::net::{UdpSocket, lookup_host};
use tokio::sync::mpsc;

/// Datagrams that a pump holds.
const QUEUE: u64 = 64;
/// The longest datagram that there is.
const LENGTH_MAX: usize = 65_536;
/// The longest that can be sent over version 4 of IP, and over version 6: 65,535 less the headers.
const SENT_BYTES_MAX: (u64, u64) = (65_507, 65_527);
/// Datagrams read before others get their turn.
const READS_MAX: usize = 64;

/// From a pump.
#[derive(Debug)]
pub(crate) enum Said {
    /// The socket is there.
    Joined {
        /// The longest datagram that it can send.
        bytes_max: u64,
    },
    /// One datagram was handed to the system.
    Sent,
    /// A datagram came.
    Datagram(Bytes),
    /// The socket failed: the last word.
    Left(CloseReason),
}

/// A socket, as the task knows it.
#[derive(Debug)]
struct Socket {
    /// Never the same twice.
    number: u64,
    requests: mpsc::UnboundedSender<DatagramsRequest>,
    queued: u64,
    address: String,
}

/// All sockets for datagrams.
#[derive(Debug)]
pub(crate) struct Sockets {
    sockets: BTreeMap<LinkId, Socket>,
    made: u64,
    window: u64,
    tell: mpsc::UnboundedSender<Event>,
}

impl Sockets {
    /// None yet. `window`: the most bytes that rise of one without being released.
    pub(crate) fn new(window: u64, tell: mpsc::UnboundedSender<Event>) -> Self {
        Sockets { sockets: BTreeMap::new(), made: 0, window, tell }
    }

    /// Where the other end of a link is, or where others send to.
    pub(crate) fn address(&self, link: LinkId) -> Option<&str> {
        self.sockets.get(&link).map(|socket| socket.address.as_str())
    }

    /// A socket on which others may send.
    pub(crate) fn listen(&mut self, link: LinkId, socket: UdpSocket, address: String) {
        let (requests, tell) = self.enter(link, address);
        tokio::spawn(pump(socket, requests, self.window, tell));
    }

    /// Carries out what the engine asks for; `address`: where the peer is.
    pub(crate) fn request(&mut self, link: LinkId, request: DatagramsRequest, address: impl Fn() -> String) {
        match request {
            DatagramsRequest::Join => self.join(link, address()),
            // The pump ends when nobody can ask it for anything.
            DatagramsRequest::Leave => drop(self.sockets.remove(&link)),
            request => {
                let Some(socket) = self.sockets.get_mut(&link) else { return };
                socket.queued += u64::from(matches!(request, DatagramsRequest::Datagram(_)));
                // A pump that is over has said so, and is heard soon.
                let _ = socket.requests.send(request);
            }
        }
    }

    /// What a pump says, as the engine hears it.
    pub(crate) fn hear(&mut self, link: LinkId, number: u64, said: Said) -> Vec<DatagramsIndication> {
        let Some(socket) = self.sockets.get_mut(&link).filter(|socket| socket.number == number) else {
            return Vec::new();
        };
        let room = |queued: u64| DatagramsIndication::Room(QUEUE.saturating_sub(queued));
        match said {
            Said::Joined { bytes_max } => vec![DatagramsIndication::Joined { bytes_max }, room(0)],
            Said::Sent => {
                socket.queued -= 1;
                vec![room(socket.queued)]
            }
            Said::Datagram(bytes) => vec![DatagramsIndication::Datagram(bytes)],
            Said::Left(reason) => {
                self.sockets.remove(&link);
                vec![DatagramsIndication::Left(reason)]
            }
        }
    }

    fn enter(
        &mut self,
        link: LinkId,
        address: String,
    ) -> (mpsc::UnboundedReceiver<DatagramsRequest>, impl Fn(Said) + Send + 'static) {
        self.made += 1;
        let number = self.made;
        let (sender, requests) = mpsc::unbounded_channel();
        self.sockets.insert(link, Socket { number, requests: sender, queued: 0, address });
        let tell = self.tell.clone();
        (requests, move |said| drop(tell.send(Event::Datagrams(link, number, said))))
    }

    fn join(&mut self, link: LinkId, address: String) {
        let (requests, tell) = self.enter(link, address.clone());
        let window = self.window;
        tokio::spawn(async move {
            match connected(&address).await {
                Ok(socket) => pump(socket, requests, window, tell).await,
                Err(error) => tell(Said::Left(reason_of(&error))),
            }
        });
    }
}

/// A socket towards one peer: it hears nobody else, and hears when nobody is there.
async fn connected(to: &str) -> io::Result<UdpSocket> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in lookup_host(to).await? {
        let any: SocketAddr = if address.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
        let socket = UdpSocket::bind(any).await?;
        match socket.connect(address).await {
            Ok(()) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Moves datagrams until the socket fails, or nobody wants it any more.
async fn pump(
    socket: UdpSocket,
    mut requests: mpsc::UnboundedReceiver<DatagramsRequest>,
    window: u64,
    tell: impl Fn(Said),
) {
    let six = socket.local_addr().is_ok_and(|address| address.is_ipv6());
    tell(Said::Joined { bytes_max: if six { SENT_BYTES_MAX.1 } else { SENT_BYTES_MAX.0 } });
    let mut unreleased = 0_u64;
    let mut buffer = vec![0; LENGTH_MAX];
    loop {
        tokio::select! {
            request = requests.recv() => match request {
                Some(DatagramsRequest::Datagram(bytes)) => {
                    if let Err(error) = socket.send(&bytes).await {
                        return tell(Said::Left(reason_of(&error)));
                    }
                    tell(Said::Sent);
                }
                Some(DatagramsRequest::Release(bytes)) => unreleased = unreleased.saturating_sub(bytes),
                Some(DatagramsRequest::Join | DatagramsRequest::Leave) => {}
                None => return,
            },
            ready = socket.ready(Interest::ERROR) => {
                if let Err(error) = ready.and_then(|_| fault(&socket)) {
                    return tell(Said::Left(reason_of(&error)));
                }
            }
            ready = socket.readable(), if unreleased < window => {
                let read = ready.and_then(|()| read(&socket, &mut buffer, window, &mut unreleased, &tell));
                if let Err(error) = read {
                    return tell(Said::Left(reason_of(&error)));
                }
            }
        }
    }
}

/// What the other side, or a router, has said against an earlier datagram: most often that nobody listens.
fn fault(socket: &UdpSocket) -> io::Result<()> {
    let error = socket.take_error()?;
    // It is not there any more: the socket is to say so when there is another.
    let _ = socket.try_io(Interest::ERROR, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
    error.map_or(Ok(()), Err)
}

/// Reads what is there, as far as the window goes.
fn read(
    socket: &UdpSocket,
    buffer: &mut [u8],
    window: u64,
    unreleased: &mut u64,
    tell: &impl Fn(Said),
) -> io::Result<()> {
    for _ in 0..READS_MAX {
        if *unreleased >= window {
            return Ok(());
        }
        match socket.try_recv(buffer) {
            Ok(length) => {
                *unreleased += length as u64;
                tell(Said::Datagram(Bytes::copy_from_slice(&buffer[..length])));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
