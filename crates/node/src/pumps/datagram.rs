//! Datagrams: for each UDP socket one task (the pump) that copies between it and the engines.
//!
//! Outgoing datagrams are limited by the room that the engine is granted: as many as the pump queues. Incoming ones are limited
//! by the window: while that many bytes are not released, the pump does not read, and the system drops what its own buffer
//! (`stream.udp-receive-buffer-bytes`) cannot hold.
//!
//! A peer answers from any port to the one on which this node listens. A datagram that arrives there from the address of a link
//! belongs to that link if it is the only link of its convergence layer to that address, or if it leads to the same port; all
//! others are from unknown senders. What is sent to a [group](super::group) belongs to those that have joined it, whoever sends it.
//!
//! An engine that checks its packets itself may ask for damaged ones as well: its socket then uses [no checksum](udp_check). The system
//! cannot tell which of these datagrams are damaged, so that none is marked.
//!
//! Units: bytes of datagram, without headers.

use crate::config::GroupAddress;
use crate::pumps::datagram_batch::{DatagramBatch, OutgoingDatagram};
use crate::pumps::group;
use crate::pumps::stream::reason_of;
use crate::pumps::udp_check;
use crate::tell::Tell;
use bytes::Bytes;
use longwire_proto::peers::Senders;
use longwire_proto::service::{CloseReason, DatagramsIndication, DatagramsRequest, LinkId, PeerId};
use rustix::net::sockopt::{set_socket_recv_buffer_size, socket_recv_buffer_size};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::Interest;
use tokio::net::{UdpSocket, lookup_host};
use tokio::sync::mpsc;

/// Datagrams that a pump queues.
const QUEUE: u64 = 64;
/// Maximum length of what the system delivers at once: one datagram, or several of one length.
const LENGTH_MAX: u64 = 65_536;
/// Maximum length of a sent datagram over IPv4 and over IPv6: 65,535 minus the headers.
const SENT_BYTES_MAX: (u64, u64) = (65_507, 65_527);
/// Maximum number of senders that a listening socket remembers.
const SENDERS_MAX: usize = 4096;
/// Datagrams read before other tasks run.
const READS_MAX: usize = 64;

#[derive(Debug)]
pub(crate) enum SocketEvent {
    /// The socket is open.
    Joined {
        /// Maximum length of a datagram that it can send.
        bytes_max: u64,
        /// Address of its only peer; `None` for a group and for a listening socket.
        at: Option<SocketAddr>,
    },
    /// Datagrams were passed to the system, or dropped.
    Sent {
        /// Number of datagrams.
        count: u64,
        /// Tokens of those that had one.
        tokens: Vec<u64>,
    },
    /// Datagrams arrived, each from this address.
    Received {
        datagrams: Vec<(Bytes, SocketAddr)>,
        /// They were sent to the group.
        to_group: bool,
    },
    /// The socket failed. The last event.
    Left(CloseReason),
}

#[derive(Debug)]
enum PumpRequest {
    /// Sends a datagram.
    Send(OutgoingDatagram),
    /// The user has processed this many received bytes.
    Release(u64),
}

#[derive(Debug)]
pub(crate) struct SocketReport {
    pub(crate) link: LinkId,
    /// Unique number of the socket.
    number: u64,
    pub(crate) event: SocketEvent,
}

/// A socket, as known to the task.
#[derive(Debug)]
struct Socket {
    /// Unique number of the socket.
    number: u64,
    requests: mpsc::UnboundedSender<PumpRequest>,
    queued: u64,
    address: String,
    /// Name of its convergence layer.
    kind: &'static str,
    /// Address of its only peer; `None` before the socket is open, for a group and for a listening socket.
    at: Option<SocketAddr>,
    /// It is that of a group.
    is_group: bool,
    /// Senders to a listening socket.
    senders: Senders<SocketAddr>,
    /// Bytes that were passed to this link's engine and read by the pumps of other sockets, which get the release.
    lent: VecDeque<(LinkId, u64)>,
}

/// Destination of the datagrams of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Destination {
    /// `host:port` of a peer or a group.
    pub(crate) address: String,
    /// Name of the convergence layer.
    pub(crate) kind: &'static str,
    /// The group, if it is one.
    pub(crate) group: Option<GroupAddress>,
    /// Maximum number of networks that datagrams to a group cross.
    pub(crate) hops: u8,
}

/// Properties of a socket on which the node listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listening {
    /// It has joined a multicast group.
    pub(crate) is_group: bool,
    /// Damaged datagrams are received as well.
    pub(crate) damaged: bool,
}

#[derive(Debug)]
pub(crate) struct Sockets {
    sockets: BTreeMap<LinkId, Socket>,
    made: u64,
    window: u64,
    buffer: Arc<ReceiveBuffer>,
    tell: Tell<SocketReport>,
}

/// Receive buffer of the kernel: requested and actual size.
#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    asked: u32,
    /// Smallest size that a socket got, bytes; zero before the first socket.
    given: AtomicU64,
}

impl ReceiveBuffer {
    fn new(asked: u32) -> Self {
        ReceiveBuffer { asked, given: AtomicU64::new(0) }
    }

    /// Requests the buffer size from the kernel. Returns a warning the first time that the kernel gives less.
    fn enlarge(&self, socket: &UdpSocket) -> Option<String> {
        // On failure a socket keeps its buffer.
        let _ = set_socket_recv_buffer_size(socket, self.asked as usize);
        // The kernel reports twice the usable size: the other half is for its own book-keeping (socket(7)).
        let given = socket_recv_buffer_size(socket).map_or(0, |twice| twice as u64 / 2);
        let before = self.given.load(Ordering::Relaxed);
        if before == 0 || given < before {
            self.given.store(given, Ordering::Relaxed);
        }
        let is_new = before == 0 || before >= u64::from(self.asked);
        (given < u64::from(self.asked) && is_new).then(|| {
            format!(
                "UDP receive buffer limited to {given} of {asked} bytes; datagrams that arrive faster than they are read are lost\n\
                 hint: run `sysctl -w net.core.rmem_max={asked}` or reduce `stream.udp-receive-buffer-bytes`",
                asked = self.asked
            )
        })
    }

    /// Requests the buffer size from the kernel, and logs a warning if it gives less.
    fn set(&self, socket: &UdpSocket) {
        if let Some(words) = self.enlarge(socket) {
            tracing::warn!(target: "udp", "{words}");
        }
    }
}

impl Sockets {
    /// No sockets yet. `window`: maximum unreleased bytes of a socket; `buffer`: size of the receive buffer to request.
    pub(crate) fn new(window: u64, buffer: u32, tell: Tell<SocketReport>) -> Self {
        let buffer = Arc::new(ReceiveBuffer::new(buffer));
        Sockets { sockets: BTreeMap::new(), made: 0, window, buffer, tell }
    }

    /// Smallest receive buffer that the kernel gave a socket, bytes; zero before the first socket.
    pub(crate) fn receive_buffer_bytes(&self) -> u64 {
        self.buffer.given.load(Ordering::Relaxed)
    }

    /// Address of the other end of a link, or of a listening socket.
    pub(crate) fn address(&self, link: LinkId) -> Option<&str> {
        self.sockets.get(&link).map(|socket| socket.address.as_str())
    }

    /// Returns true while as many datagrams wait as a pump queues.
    pub(crate) fn is_full(&self, link: LinkId) -> bool {
        self.sockets.get(&link).is_none_or(|socket| socket.queued >= QUEUE)
    }

    /// Address of the peer of a link while its socket is open.
    pub(crate) fn at(&self, link: LinkId) -> Option<SocketAddr> {
        self.sockets.get(&link)?.at
    }

    /// Address of a sender to a link or to a listening socket; `None` if it is forgotten.
    pub(crate) fn sender(&self, link: LinkId, peer: PeerId) -> Option<SocketAddr> {
        let socket = self.sockets.get(&link)?;
        socket.senders.address(peer).copied().or(socket.at)
    }

    /// Serves a socket on which the node listens.
    pub(crate) fn listen(
        &mut self,
        link: LinkId,
        socket: UdpSocket,
        address: String,
        kind: &'static str,
        nature: Listening,
    ) {
        let (requests, tell) = self.enter(link, address, kind, nature.is_group);
        self.buffer.set(&socket);
        let endpoint = match socket.local_addr() {
            Ok(group) if nature.is_group => {
                Endpoint { group: Some(group), to_group: true, ..Endpoint::alone(socket) }
            }
            _ => Endpoint::alone(socket),
        };
        let endpoint = if nature.damaged { endpoint.unchecked() } else { endpoint };
        tokio::spawn(pump(endpoint, requests, self.window, tell));
    }

    /// Handles a request of an engine; `destination` is asked for when the link is opened.
    pub(crate) fn request(
        &mut self,
        link: LinkId,
        request: DatagramsRequest,
        destination: impl Fn() -> Destination,
    ) {
        match request {
            DatagramsRequest::Join { damaged } => self.join(link, destination(), damaged),
            DatagramsRequest::Leave => self.remove(link),
            DatagramsRequest::Release(bytes) => self.release(link, bytes),
            DatagramsRequest::Datagram { to, bytes, token, .. } => {
                let Some(socket) = self.sockets.get_mut(&link) else { return };
                socket.queued += 1;
                let sender = socket.senders.address(to).copied();
                if sender.is_some() || to == PeerId::CONFIGURED {
                    // A pump that has ended has sent an event about it, which arrives soon.
                    let datagram = OutgoingDatagram { to: sender, bytes, token };
                    let _ = socket.requests.send(PumpRequest::Send(datagram));
                } else {
                    // The sender is forgotten: the datagram is dropped.
                    let number = socket.number;
                    let event = SocketEvent::Sent { count: 1, tokens: token.into_iter().collect() };
                    self.tell.tell(SocketReport { link, number, event });
                }
            }
        }
    }

    /// Handles an event of a pump and returns the indications for the engine.
    pub(crate) fn hear(
        &mut self,
        SocketReport { link, number, event }: SocketReport,
    ) -> Vec<(LinkId, DatagramsIndication)> {
        let Some(socket) = self.sockets.get_mut(&link).filter(|socket| socket.number == number) else {
            return Vec::new();
        };
        let room = |queued: u64| DatagramsIndication::Room(QUEUE.saturating_sub(queued));
        match event {
            SocketEvent::Joined { bytes_max, at } => {
                socket.at = at;
                let peer = at.map(|_| PeerId::CONFIGURED);
                let group = socket.is_group.then_some(PeerId::CONFIGURED);
                vec![(link, DatagramsIndication::Joined { bytes_max, peer, group }), (link, room(0))]
            }
            SocketEvent::Sent { count, tokens } => {
                socket.queued -= count;
                let transmitted = tokens.into_iter().map(DatagramsIndication::Transmitted);
                transmitted.chain([room(socket.queued)]).map(|said| (link, said)).collect()
            }
            SocketEvent::Received { datagrams, to_group } => {
                let assign = |(bytes, from)| self.assign(link, bytes, from, to_group);
                datagrams.into_iter().map(assign).collect()
            }
            SocketEvent::Left(reason) => {
                self.remove(link);
                vec![(link, DatagramsIndication::Left(reason))]
            }
        }
    }

    /// Assigns a datagram that a socket has received to the link that leads to its sender.
    fn assign(
        &mut self,
        link: LinkId,
        bytes: Bytes,
        from: SocketAddr,
        to_group: bool,
    ) -> (LinkId, DatagramsIndication) {
        let listening = self.sockets.get(&link).filter(|socket| socket.at.is_none() && !socket.is_group);
        let over = listening.and_then(|socket| self.link_to(from, socket.kind));
        let peer = match self.sockets.get_mut(&link).filter(|socket| socket.at.is_none() && over.is_none()) {
            Some(socket) => socket.senders.hear(&from),
            None => PeerId::CONFIGURED,
        };
        if let Some(over) = over {
            self.lend(over, link, bytes.len() as u64);
        }
        let datagram = DatagramsIndication::Datagram { from: peer, to_group, bytes, damaged: false };
        (over.unwrap_or(link), datagram)
    }

    /// Link of a convergence layer that leads to the sender at this address.
    fn link_to(&self, from: SocketAddr, kind: &str) -> Option<LinkId> {
        let same = |socket: &Socket| {
            let at = socket.at.filter(|_| socket.kind == kind);
            at.filter(|at| at.ip().to_canonical() == from.ip().to_canonical())
        };
        let mut links = self.sockets.iter().filter_map(|(link, socket)| Some((*link, same(socket)?.port())));
        let first = links.next()?;
        match links.next() {
            None => Some(first.0),
            Some(second) => {
                let mut all = [first, second].into_iter().chain(links);
                all.find(|(_, port)| *port == from.port()).map(|(link, _)| link)
            }
        }
    }

    fn lend(&mut self, to: LinkId, lender: LinkId, bytes: u64) {
        let Some(socket) = self.sockets.get_mut(&to).filter(|_| bytes > 0) else { return };
        match socket.lent.back_mut().filter(|(last, _)| *last == lender) {
            Some((_, sum)) => *sum += bytes,
            None => socket.lent.push_back((lender, bytes)),
        }
    }

    /// Passes the release of these bytes to the pumps that have read them: other pumps first.
    fn release(&mut self, link: LinkId, mut bytes: u64) {
        let Some(socket) = self.sockets.get_mut(&link) else { return };
        let mut parts = Vec::new();
        while bytes > 0
            && let Some((lender, lent)) = socket.lent.front_mut()
        {
            let part = bytes.min(*lent);
            parts.push((*lender, part));
            bytes -= part;
            *lent -= part;
            if *lent == 0 {
                socket.lent.pop_front();
            }
        }
        parts.push((link, bytes));
        self.tell_released(parts);
    }

    fn tell_released(&self, parts: impl IntoIterator<Item = (LinkId, u64)>) {
        for (link, bytes) in parts.into_iter().filter(|(_, bytes)| *bytes > 0) {
            if let Some(socket) = self.sockets.get(&link) {
                let _ = socket.requests.send(PumpRequest::Release(bytes));
            }
        }
    }

    /// Removes a socket: its pump ends, and bytes read by other pumps are released to these.
    fn remove(&mut self, link: LinkId) {
        if let Some(gone) = self.sockets.remove(&link) {
            self.tell_released(gone.lent);
        }
    }

    fn enter(
        &mut self,
        link: LinkId,
        address: String,
        kind: &'static str,
        is_group: bool,
    ) -> (mpsc::UnboundedReceiver<PumpRequest>, impl Fn(SocketEvent) + Send + 'static) {
        self.remove(link);
        self.made += 1;
        let number = self.made;
        let (sender, requests) = mpsc::unbounded_channel();
        let socket = Socket {
            number,
            requests: sender,
            queued: 0,
            is_group,
            address,
            kind,
            at: None,
            senders: Senders::new(SENDERS_MAX),
            lent: VecDeque::new(),
        };
        self.sockets.insert(link, socket);
        let tell = self.tell.clone();
        let tell = move |event| {
            tell.tell(SocketReport { link, number, event });
        };
        (requests, tell)
    }

    fn join(&mut self, link: LinkId, destination: Destination, damaged: bool) {
        let Destination { address, kind, group, hops } = destination;
        let (requests, tell) = self.enter(link, address.clone(), kind, group.is_some());
        let (window, buffer) = (self.window, self.buffer.clone());
        tokio::spawn(async move {
            let opened = match group {
                Some(group) => Endpoint::of_group(&group, hops).await,
                None => connected(&address).await.map(Endpoint::alone),
            };
            match opened {
                Ok(endpoint) => {
                    let endpoint = if damaged { endpoint.unchecked() } else { endpoint };
                    endpoint.sockets().for_each(|socket| buffer.set(socket));
                    pump(endpoint, requests, window, tell).await;
                }
                Err(error) => tell(SocketEvent::Left(reason_of(&error))),
            }
        });
    }
}

/// Opens a socket to one peer: it receives from no other, and reports an error if no program listens at the peer.
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

/// Sockets of a link, or of the address on which the node listens.
#[derive(Debug)]
struct Endpoint {
    socket: UdpSocket,
    /// Address of the group to which all datagrams without another address go.
    group: Option<SocketAddr>,
    /// The socket receives what is sent to the group.
    to_group: bool,
    /// Socket that receives what is sent to the group, if that is another one.
    of_group: Option<UdpSocket>,
    /// The sockets use checksums.
    checked: bool,
}

impl Endpoint {
    fn alone(socket: UdpSocket) -> Self {
        Endpoint { socket, group: None, to_group: false, of_group: None, checked: true }
    }

    async fn of_group(group: &GroupAddress, hops: u8) -> io::Result<Self> {
        let (socket, address) = group::sender(group, hops).await?;
        let of_group = Some(group::receiver(group)?);
        Ok(Endpoint { socket, group: Some(address), to_group: false, of_group, checked: true })
    }

    /// Leaves out the checksums, if the system can.
    fn unchecked(self) -> Self {
        let failed = self.sockets().find_map(|socket| udp_check::leave_out(socket).err());
        if let Some(error) = failed {
            tracing::warn!(target: "udp", "cannot leave out UDP checksums, so that damaged datagrams are lost: {error}");
            return self;
        }
        Endpoint { checked: false, ..self }
    }

    fn sockets(&self) -> impl Iterator<Item = &UdpSocket> {
        [&self.socket].into_iter().chain(&self.of_group)
    }
}

/// Waits until a socket can be read; without one, for ever.
async fn readable(socket: Option<&UdpSocket>) -> io::Result<()> {
    match socket {
        Some(socket) => socket.readable().await,
        None => std::future::pending().await,
    }
}

/// Copies datagrams until the socket fails or is removed.
async fn pump(
    endpoint: Endpoint,
    mut requests: mpsc::UnboundedReceiver<PumpRequest>,
    window: u64,
    tell: impl Fn(SocketEvent),
) {
    let Endpoint { socket, group, to_group, of_group, checked } = endpoint;
    let six = socket.local_addr().is_ok_and(|address| address.is_ipv6());
    let bytes_max = if six { SENT_BYTES_MAX.1 } else { SENT_BYTES_MAX.0 };
    tell(SocketEvent::Joined { bytes_max, at: socket.peer_addr().ok() });
    let mut unreleased = 0_u64;
    // The kernel does not divide messages without a checksum.
    let mut batch = DatagramBatch::new(&socket, checked);
    let receivers = group.filter(|_| of_group.is_some());
    let mut heard = of_group.as_ref().map(|socket| DatagramBatch::new(socket, true));
    let (mut asked, mut queue) = (Vec::new(), VecDeque::new());
    loop {
        tokio::select! {
            count = requests.recv_many(&mut asked, QUEUE as usize) => {
                if count == 0 {
                    return;
                }
                for request in asked.drain(..) {
                    match request {
                        PumpRequest::Send(datagram) => {
                            queue.push_back(OutgoingDatagram { to: datagram.to.or(group), ..datagram });
                        }
                        PumpRequest::Release(bytes) => unreleased = unreleased.saturating_sub(bytes),
                    }
                }
                if let Err(error) = send(&socket, receivers, &mut batch, &mut queue, &tell).await {
                    return tell(SocketEvent::Left(reason_of(&error)));
                }
            },
            ready = socket.ready(Interest::ERROR) => {
                if let Err(error) = ready.and_then(|_| fault(&socket)) {
                    return tell(SocketEvent::Left(reason_of(&error)));
                }
            }
            ready = socket.readable(), if unreleased < window => {
                let read = ready.and_then(|()| read(&socket, to_group, &mut batch, window, &mut unreleased, &tell));
                if let Err(error) = read {
                    return tell(SocketEvent::Left(reason_of(&error)));
                }
            }
            ready = readable(of_group.as_ref()), if unreleased < window => {
                let (Some(socket), Some(heard)) = (&of_group, &mut heard) else { continue };
                let read = ready.and_then(|()| read(socket, true, heard, window, &mut unreleased, &tell));
                if let Err(error) = read {
                    return tell(SocketEvent::Left(reason_of(&error)));
                }
            }
        }
    }
}

/// Error that the peer or a router has reported for an earlier datagram: usually that no program listens at the peer.
fn fault(socket: &UdpSocket) -> io::Result<()> {
    let error = socket.take_error()?;
    // Clears the readiness, so that the socket signals the next error.
    let _ = socket.try_io(Interest::ERROR, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
    error.map_or(Ok(()), Err)
}

/// Sends all of these datagrams.
///
/// # Errors
///
/// Fails if a datagram to the only peer of the socket, or to the group of a link, cannot be sent.
async fn send(
    socket: &UdpSocket,
    group: Option<SocketAddr>,
    batch: &mut DatagramBatch,
    queue: &mut VecDeque<OutgoingDatagram>,
    tell: &impl Fn(SocketEvent),
) -> io::Result<()> {
    while let Some(first) = queue.front() {
        let sent = match batch.send(socket, queue).await {
            Ok(sent) => sent,
            // A failure concerns this sender alone: the datagram is lost, and the socket serves the others.
            Err(_) if first.to.is_some() && first.to != group => 1,
            Err(error) => return Err(error),
        };
        let tokens = queue.drain(..sent).filter_map(|datagram| datagram.token).collect();
        tell(SocketEvent::Sent { count: sent as u64, tokens });
    }
    Ok(())
}

/// Reads the waiting datagrams as far as the window allows.
fn read(
    socket: &UdpSocket,
    to_group: bool,
    batch: &mut DatagramBatch,
    window: u64,
    unreleased: &mut u64,
    tell: &impl Fn(SocketEvent),
) -> io::Result<()> {
    let mut count = 0;
    while count < READS_MAX && *unreleased < window {
        let messages_max = 1 + (window - *unreleased) / LENGTH_MAX;
        match batch.receive(socket, usize::try_from(messages_max).unwrap_or(usize::MAX)) {
            Ok(received) => {
                count += received.len();
                *unreleased += received.iter().map(|(bytes, _)| bytes.len() as u64).sum::<u64>();
                tell(SocketEvent::Received { datagrams: received, to_group });
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::service::Shares;

    const HERE: LinkId = LinkId(LinkId::FIRST_INCOMING);
    const BOB: LinkId = LinkId(1);
    const CAROL: LinkId = LinkId(2);

    fn sockets(
        links: &[(LinkId, &str)],
    ) -> (Sockets, BTreeMap<LinkId, mpsc::UnboundedReceiver<PumpRequest>>) {
        let mut sockets = Sockets::new(
            1 << 20,
            1 << 20,
            Tell::to(&mpsc::unbounded_channel::<SocketReport>().0, |said| said),
        );
        let mut asked = BTreeMap::from([(HERE, sockets.enter(HERE, String::new(), "udp", false).0)]);
        for (link, at) in links {
            asked.insert(*link, sockets.enter(*link, String::new(), "udp", false).0);
            let number = sockets.made;
            let at = Some(at.parse().expect("an address"));
            let event = SocketEvent::Joined { bytes_max: 1000, at };
            sockets.hear(SocketReport { link: *link, number, event });
        }
        (sockets, asked)
    }

    fn received(bytes: Bytes, from: &str) -> SocketEvent {
        let datagrams = vec![(bytes, from.parse().expect("an address"))];
        SocketEvent::Received { datagrams, to_group: false }
    }

    /// Passes a datagram to the port on which this node listens; returns the link that it is assigned to.
    fn comes(sockets: &mut Sockets, from: &str, bytes: usize) -> LinkId {
        let said = received(vec![0; bytes].into(), from);
        let heard = sockets.hear(SocketReport { link: HERE, number: 1, event: said });
        assert!(matches!(heard[..], [(_, DatagramsIndication::Datagram { .. })]), "{heard:?}");
        heard[0].0
    }

    fn released(requests: &mut mpsc::UnboundedReceiver<PumpRequest>) -> Vec<u64> {
        std::iter::from_fn(|| requests.try_recv().ok())
            .map(|request| match request {
                PumpRequest::Release(bytes) => bytes,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn a_datagram_is_of_the_one_link_that_leads_to_its_sender() {
        let (mut all, _asked) = sockets(&[(BOB, "192.0.2.7:4556"), (CAROL, "[2001:db8::7]:4556")]);
        for (from, link) in [
            ("192.0.2.7:4556", BOB),
            ("192.0.2.7:9", BOB),
            ("[::ffff:192.0.2.7]:9", BOB),
            ("[2001:db8::7]:9", CAROL),
            ("192.0.2.8:4556", HERE),
        ] {
            assert_eq!(comes(&mut all, from, 10), link, "{from}");
        }
        // Two links to one address are distinguished by their ports, or not at all.
        let (mut all, _asked) = sockets(&[(BOB, "192.0.2.7:4556"), (CAROL, "192.0.2.7:4557")]);
        for (from, link) in [("192.0.2.7:4556", BOB), ("192.0.2.7:4557", CAROL), ("192.0.2.7:9", HERE)] {
            assert_eq!(comes(&mut all, from, 10), link, "{from}");
        }
        all.request(BOB, DatagramsRequest::Leave, Default::default);
        assert_eq!(comes(&mut all, "192.0.2.7:9", 10), CAROL);
        // A link of another convergence layer to the same address does not count.
        let (mut all, _asked) = sockets(&[(BOB, "192.0.2.7:4556"), (CAROL, "192.0.2.7:1113")]);
        all.sockets.get_mut(&CAROL).expect("a socket").kind = "ltp";
        for (from, link) in [("192.0.2.7:9", BOB), ("192.0.2.7:1113", BOB)] {
            assert_eq!(comes(&mut all, from, 10), link, "{from}");
        }
        // A datagram on the socket of a link belongs to that link.
        let (mut all, _asked) = sockets(&[(BOB, "192.0.2.7:4556"), (CAROL, "192.0.2.7:4556")]);
        let said = received(vec![0; 10].into(), "192.0.2.7:4556");
        assert_eq!(all.hear(SocketReport { link: CAROL, number: 3, event: said })[0].0, CAROL);
    }

    #[test]
    fn every_byte_is_released_to_the_pump_that_has_read_it() {
        let (mut all, mut asked) = sockets(&[(BOB, "192.0.2.7:4556")]);
        for bytes in [100, 0, 50] {
            assert_eq!(comes(&mut all, "192.0.2.7:9", bytes), BOB);
        }
        let own = received(vec![0; 7].into(), "192.0.2.7:4556");
        assert_eq!(all.hear(SocketReport { link: BOB, number: 2, event: own })[0].0, BOB);
        for bytes in [60, 97] {
            all.request(BOB, DatagramsRequest::Release(bytes), Default::default);
        }
        let sums =
            [HERE, BOB].map(|link| released(asked.get_mut(&link).expect("a socket")).iter().sum::<u64>());
        assert_eq!(sums, [150, 7]);
        // Bytes that a link has not released when it is removed are released with it.
        assert_eq!(comes(&mut all, "192.0.2.7:9", 30), BOB);
        let event = SocketEvent::Left(CloseReason::Refused);
        all.hear(SocketReport { link: BOB, number: 2, event });
        assert_eq!(released(asked.get_mut(&HERE).expect("a socket")), [30]);
    }

    #[test]
    fn an_answer_goes_to_the_sender_that_it_names_and_not_to_a_forgotten_one() {
        let (mut all, mut asked) = sockets(&[(BOB, "192.0.2.7:4556")]);
        let mut named = |from: &str| {
            let said = received(Bytes::new(), from);
            match &all.hear(SocketReport { link: HERE, number: 1, event: said })[..] {
                [(link, DatagramsIndication::Datagram { from, .. })] => (*link, *from),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(named("192.0.2.7:9"), (BOB, PeerId::CONFIGURED), "the link knows its peer");
        let [first, second] = ["192.0.2.8:1", "192.0.2.8:2"].map(|from| named(from).1);
        assert_eq!((first, named("192.0.2.8:1").1), (PeerId(1), first));
        let (tell, mut events) = mpsc::unbounded_channel::<SocketReport>();
        all.tell = Tell::to(&tell, |said| said);
        for to in [second, PeerId(77)] {
            let (bytes, shares) = (Bytes::from_static(b"answer"), Shares::payload(6));
            let datagram = DatagramsRequest::Datagram { to, bytes, shares, token: Some(3) };
            all.request(HERE, datagram, Default::default);
        }
        let requests = asked.get_mut(&HERE).expect("a socket");
        let sent = std::iter::from_fn(|| requests.try_recv().ok());
        let to: Vec<_> = sent
            .map(|request| match request {
                PumpRequest::Send(OutgoingDatagram { to, token: Some(3), .. }) => to.map(|to| to.to_string()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(to, [Some("192.0.2.8:2".to_owned())]);
        let dropped = events.try_recv().expect("it is told");
        assert_eq!((dropped.link, dropped.number), (HERE, 1));
        let heard = all.hear(dropped);
        let room = DatagramsIndication::Room(QUEUE - 1);
        assert_eq!(heard, [(HERE, DatagramsIndication::Transmitted(3)), (HERE, room)]);
    }

    #[tokio::test]
    async fn a_socket_has_the_buffer_that_is_asked_for_and_less_is_told_once() {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
        let most: u32 = std::fs::read_to_string("/proc/sys/net/core/rmem_max")
            .expect("Linux says it")
            .trim()
            .parse()
            .expect("a number");
        // The kernel doubles the value and counts in 31 bits.
        let most = most.min(i32::MAX as u32 / 2);
        let some = most.min(50_000);
        let small = ReceiveBuffer::new(some);
        assert_eq!(small.enlarge(&socket), None);
        assert_eq!(small.given.load(Ordering::Relaxed), u64::from(some));
        assert_eq!(socket_recv_buffer_size(&socket), Ok(2 * some as usize), "the kernel says twice as much");
        let asked = most + 1;
        let large = ReceiveBuffer::new(asked);
        let words = large.enlarge(&socket).expect("it is less");
        assert!(words.contains(&format!("{most} of {asked} bytes")), "{words}");
        assert!(words.contains(&format!("sysctl -w net.core.rmem_max={asked}")), "{words}");
        assert_eq!(large.enlarge(&socket), None, "it was told");
        assert_eq!(large.given.load(Ordering::Relaxed), u64::from(most));
    }
}
