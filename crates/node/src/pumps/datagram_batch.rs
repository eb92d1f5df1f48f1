//! Datagrams of a UDP socket, many with each system call.
//!
//! - **Sending.** `sendmmsg` passes several messages at a time. Successive datagrams of one length to one address form one
//!   message, which the kernel divides (UDP GSO); the last one may be shorter. Where the kernel or the device cannot divide
//!   messages, or not into datagrams of this length, each datagram is a message. That depends on the path to an address and may
//!   change, so that it is remembered for this address only, and tried again after some thousand datagrams.
//! - **Receiving.** `recvmmsg` reads several messages at a time. A message may hold several datagrams of one length from one
//!   address (UDP GRO); they are separated here. All sockets that a thread serves read into the same buffers, because none
//!   keeps anything there.
//!
//! Units: bytes of datagram, without headers.

use bytes::Bytes;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg,
    setsockopt, sockopt,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Maximum length of a received message.
const MESSAGE_BYTES_MAX: usize = 65_536;
/// Maximum length of a message that the kernel divides: that of the longest datagram over IPv4.
const DIVIDED_BYTES_MAX: usize = 65_507;
/// Maximum number of datagrams of a message that the kernel divides (`UDP_MAX_SEGMENTS`).
const DIVIDED_DATAGRAMS_MAX: usize = 64;
/// Messages read with one system call.
const MESSAGES_MAX: usize = 16;
/// Number of datagrams that are not divided after the kernel has refused to divide a message to their address.
const REFUSED_DATAGRAMS: usize = 4096;
/// Maximum number of addresses with such refusals; more are tried again.
const REFUSALS_MAX: usize = 64;

thread_local! {
    /// Buffers for received messages. Those that are never filled take no memory.
    static BUFFERS: RefCell<Vec<Vec<u8>>> =
        RefCell::new((0..MESSAGES_MAX).map(|_| vec![0; MESSAGE_BYTES_MAX]).collect());
}

/// Datagram to send.
#[derive(Debug)]
pub(super) struct OutgoingDatagram {
    /// Address; `None` for the only peer of the socket.
    pub(super) to: Option<SocketAddr>,
    pub(super) bytes: Bytes,
    pub(super) token: Option<u64>,
}

/// Refusal of the kernel to divide messages to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Refusal {
    /// Maximum length of a datagram into which messages are divided nevertheless; zero if none are.
    bytes_max: usize,
    /// Number of datagrams until the next trial.
    datagrams_left: usize,
}

/// Abilities of the kernel for a socket.
#[derive(Debug)]
pub(super) struct DatagramBatch {
    /// The kernel divides messages, where it has not refused to.
    divides: bool,
    /// Refusals by address; `None` is the only peer of the socket.
    refusals: BTreeMap<Option<SocketAddr>, Refusal>,
    /// Errors in place of those of the kernel, for the next messages to divide.
    #[cfg(test)]
    errors: Vec<Errno>,
}

impl DatagramBatch {
    /// Prepares a socket. With `divides` the kernel divides and joins messages, if it can.
    pub(super) fn new(socket: &UdpSocket, divides: bool) -> Self {
        if divides {
            // Older kernels deliver each datagram by itself.
            let _ = setsockopt(socket, sockopt::UdpGroSegment, &true);
        }
        DatagramBatch {
            divides,
            refusals: BTreeMap::new(),
            #[cfg(test)]
            errors: Vec::new(),
        }
    }

    /// Passes some of these datagrams to the system, in order, when it can take them. Returns their number: at least one
    /// datagram.
    ///
    /// # Errors
    ///
    /// Fails if the system does not take the first datagram.
    pub(super) async fn send(
        &mut self,
        socket: &UdpSocket,
        datagrams: &VecDeque<OutgoingDatagram>,
    ) -> io::Result<usize> {
        let run = divisible(datagrams, 0, |to| self.divided_bytes_max(to));
        if run > 1 {
            match self.divide(socket, datagrams, run).await? {
                Err(error) if may_concern_division(error) => {
                    // The address or the memory may be at fault: the datagrams by themselves tell.
                    let sent = when_writable(socket, || send_singly(socket, datagrams, run)).await??;
                    self.refuse(datagrams[0].to, datagrams[0].bytes.len(), error);
                    return Ok(sent);
                }
                sent => return Ok(sent?),
            }
        }
        let begins_run = |at: &usize| divisible(datagrams, *at, |to| self.divided_bytes_max(to)) > 1;
        let singles = (1..datagrams.len()).find(begins_run).unwrap_or(datagrams.len());
        let sent = when_writable(socket, || send_singly(socket, datagrams, singles)).await??;
        self.count(datagrams.range(..sent).map(|datagram| datagram.to));
        Ok(sent)
    }

    /// Passes the first datagrams to the system in messages that it divides.
    async fn divide(
        &mut self,
        socket: &UdpSocket,
        datagrams: &VecDeque<OutgoingDatagram>,
        run: usize,
    ) -> io::Result<nix::Result<usize>> {
        #[cfg(test)]
        if let Some(error) = self.errors.pop() {
            return Ok(Err(error));
        }
        when_writable(socket, || send_divided(socket, datagrams, run)).await
    }

    /// Maximum length of a datagram into which the kernel divides messages to an address; zero if it divides none.
    fn divided_bytes_max(&self, to: Option<SocketAddr>) -> usize {
        match self.refusals.get(&to) {
            _ if !self.divides => 0,
            Some(refusal) => refusal.bytes_max,
            None => DIVIDED_BYTES_MAX,
        }
    }

    /// Remembers that the kernel does not divide messages into datagrams of this length, while it takes the datagrams by
    /// themselves.
    fn refuse(&mut self, to: Option<SocketAddr>, length: usize, error: Errno) {
        let bytes_max = match error {
            // Longer than the path carries.
            Errno::EINVAL | Errno::EMSGSIZE => length - 1,
            Errno::EIO | Errno::EOPNOTSUPP => 0,
            // A lack of memory passes.
            _ => return,
        };
        if self.refusals.len() >= REFUSALS_MAX {
            self.refusals.clear();
        }
        self.refusals.insert(to, Refusal { bytes_max, datagrams_left: REFUSED_DATAGRAMS });
    }

    /// Counts datagrams that were sent undivided to these addresses.
    fn count(&mut self, to: impl Iterator<Item = Option<SocketAddr>>) {
        if self.refusals.is_empty() {
            return;
        }
        for to in to {
            if let Some(refusal) = self.refusals.get_mut(&to) {
                refusal.datagrams_left -= 1;
                if refusal.datagrams_left == 0 {
                    self.refusals.remove(&to);
                }
            }
        }
    }

    /// Reads waiting datagrams from at most this number of messages.
    ///
    /// # Errors
    ///
    /// Fails with [`io::ErrorKind::WouldBlock`] if none is waiting, and if the socket has failed.
    pub(super) fn receive(
        &mut self,
        socket: &UdpSocket,
        messages_max: usize,
    ) -> io::Result<Vec<(Bytes, SocketAddr)>> {
        let count = messages_max.clamp(1, MESSAGES_MAX);
        socket.try_io(Interest::READABLE, || {
            BUFFERS.with_borrow_mut(|buffers| Ok(receive_now(socket, &mut buffers[..count])?))
        })
    }
}

/// Returns true if an error may concern only the division of a message.
fn may_concern_division(error: Errno) -> bool {
    matches!(
        error,
        Errno::EINVAL | Errno::EMSGSIZE | Errno::EIO | Errno::EOPNOTSUPP | Errno::ENOBUFS | Errno::ENOMEM
    )
}

/// Sends when the system can take something.
///
/// # Errors
///
/// The outer error is one of waiting, the inner one that of the system call.
async fn when_writable(
    socket: &UdpSocket,
    send: impl Fn() -> nix::Result<usize>,
) -> io::Result<nix::Result<usize>> {
    let sent = socket.async_io(Interest::WRITABLE, || match send() {
        Err(Errno::EAGAIN | Errno::EINTR) => Err(io::ErrorKind::WouldBlock.into()),
        sent => Ok(sent),
    });
    sent.await
}

/// Passes the first datagrams to the system in messages that it divides. Returns the number of those that it took.
fn send_divided(
    socket: &UdpSocket,
    datagrams: &VecDeque<OutgoingDatagram>,
    run: usize,
) -> nix::Result<usize> {
    let length = datagrams[0].bytes.len();
    let each = (DIVIDED_BYTES_MAX / length).min(DIVIDED_DATAGRAMS_MAX);
    let slices: Vec<_> = datagrams.range(..run).map(|datagram| IoSlice::new(&datagram.bytes)).collect();
    let messages: Vec<&[IoSlice<'_>]> = slices.chunks(each).collect();
    let sent = send_messages(socket, &messages, |_| datagrams[0].to, Some(length as u16))?;
    Ok((sent * each).min(run))
}

/// Passes the first datagrams to the system, each as a message. Returns the number of those that it took.
fn send_singly(
    socket: &UdpSocket,
    datagrams: &VecDeque<OutgoingDatagram>,
    count: usize,
) -> nix::Result<usize> {
    let slices: Vec<_> = datagrams.range(..count).map(|datagram| [IoSlice::new(&datagram.bytes)]).collect();
    let messages: Vec<&[IoSlice<'_>]> = slices.iter().map(|slice| &slice[..]).collect();
    send_messages(socket, &messages, |at| datagrams[at].to, None)
}

/// Number of datagrams from this one on that can leave in messages which the kernel divides into datagrams of at most the
/// length for their address.
fn divisible(
    datagrams: &VecDeque<OutgoingDatagram>,
    at: usize,
    bytes_max: impl Fn(Option<SocketAddr>) -> usize,
) -> usize {
    let first = &datagrams[at];
    let length = first.bytes.len();
    // A message of one datagram needs no division.
    if length == 0 || length > bytes_max(first.to).min(DIVIDED_BYTES_MAX / 2) {
        return 1;
    }
    let mut run = 1;
    for next in datagrams.range(at + 1..) {
        if next.to != first.to || next.bytes.is_empty() || next.bytes.len() > length {
            break;
        }
        run += 1;
        if next.bytes.len() < length {
            break;
        }
    }
    run
}

/// Passes messages to the system, each divided into datagrams of this length. Returns the number of those that it took.
fn send_messages(
    socket: &UdpSocket,
    messages: &[&[IoSlice<'_>]],
    to: impl Fn(usize) -> Option<SocketAddr>,
    divided_bytes: Option<u16>,
) -> nix::Result<usize> {
    let addresses: Vec<_> = (0..messages.len()).map(|at| to(at).map(SockaddrStorage::from)).collect();
    let control: Vec<_> = divided_bytes.iter().map(ControlMessage::UdpGsoSegments).collect();
    let space = divided_bytes.map(|_| cmsg_space!(u16));
    let mut headers = MultiHeaders::preallocate(messages.len(), space);
    let sent =
        sendmmsg(socket.as_raw_fd(), &mut headers, messages, &addresses, &control, MsgFlags::MSG_DONTWAIT)?;
    Ok(sent.count())
}

/// Reads messages into these buffers, and separates their datagrams.
fn receive_now(socket: &UdpSocket, buffers: &mut [Vec<u8>]) -> nix::Result<Vec<(Bytes, SocketAddr)>> {
    // The system shortens the headers that it has filled in, so that they serve once.
    let mut headers: MultiHeaders<SockaddrStorage> =
        MultiHeaders::preallocate(buffers.len(), Some(cmsg_space!(i32)));
    let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
    let messages =
        recvmmsg(socket.as_raw_fd(), &mut headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None)?;
    let mut received = Vec::new();
    for message in messages {
        let Some(from) = message.address.as_ref().and_then(socket_address) else { continue };
        let joined = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::UdpGroSegments(length) => usize::try_from(length).ok(),
            _ => None,
        });
        let bytes = message.iovs().next().unwrap_or_default();
        let length = joined.filter(|length| (1..bytes.len()).contains(length)).unwrap_or(bytes.len());
        match bytes.is_empty() {
            true => received.push((Bytes::new(), from)),
            false => received.extend(bytes.chunks(length).map(|bytes| (Bytes::copy_from_slice(bytes), from))),
        }
    }
    Ok(received)
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
        (Some(four), _) => Some(SocketAddr::V4((*four).into())),
        (_, Some(six)) => Some(SocketAddr::V6((*six).into())),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn socket() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        let at = socket.local_addr().expect("an address");
        (socket, at)
    }

    fn datagrams(to: Option<SocketAddr>, lengths: &[usize]) -> VecDeque<OutgoingDatagram> {
        let datagram = |(at, length): (usize, &usize)| OutgoingDatagram {
            to,
            bytes: vec![at as u8; *length].into(),
            token: Some(at as u64),
        };
        lengths.iter().enumerate().map(datagram).collect()
    }

    /// Reads this number of datagrams. Returns them, and the largest number that one call has read.
    async fn receive(
        batch: &mut DatagramBatch,
        socket: &UdpSocket,
        count: usize,
    ) -> (Vec<(Bytes, SocketAddr)>, usize) {
        let (mut all, mut most) = (Vec::new(), 0);
        while all.len() < count {
            socket.readable().await.expect("a socket");
            match batch.receive(socket, usize::MAX) {
                Ok(some) => {
                    most = most.max(some.len());
                    all.extend(some);
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        (all, most)
    }

    const LENGTHS: [usize; 12] = [1400, 1400, 1400, 700, 700, 0, 0, 60_000, 60_000, 1, 2, 65_507];

    /// The kernel divides and joins messages, or does neither, at either end.
    #[tokio::test]
    async fn datagrams_of_any_length_arrive_as_they_were_sent() {
        for (divides, joins) in [(true, true), (true, false), (false, true), (false, false)] {
            let ((from, here), (to, there)) = (socket().await, socket().await);
            let (mut sending, mut receiving) =
                (DatagramBatch::new(&from, divides), DatagramBatch::new(&to, joins));
            let mut queue = datagrams(Some(there), &LENGTHS);
            let expected: Vec<_> = queue.iter().map(|datagram| (datagram.bytes.clone(), here)).collect();
            let mut got = Vec::new();
            while !queue.is_empty() {
                let sent = sending.send(&from, &queue).await.expect("they are sent");
                queue.drain(..sent);
                got.extend(receive(&mut receiving, &to, sent).await.0);
            }
            assert!(got == expected, "{divides} {joins}");
        }
    }

    #[tokio::test]
    async fn many_datagrams_take_few_system_calls() {
        for (divides, sent_max) in [(true, 200), (false, 1024)] {
            let ((from, _), (to, there)) = (socket().await, socket().await);
            from.connect(there).await.expect("it leads there");
            let (mut sending, mut receiving) =
                (DatagramBatch::new(&from, divides), DatagramBatch::new(&to, divides));
            let queue = datagrams(None, &[500; 100]);
            let sent = sending.send(&from, &queue).await.expect("they are sent");
            assert!((17..=sent_max).contains(&sent), "{sent} with one call");
            let (got, most) = receive(&mut receiving, &to, sent).await;
            assert!(got.iter().zip(&queue).all(|((bytes, _), datagram)| *bytes == datagram.bytes));
            assert!(most >= MESSAGES_MAX && (!divides || most > MESSAGES_MAX), "{most} with one call");
        }
    }

    #[test]
    fn datagrams_leave_in_one_message_as_far_as_the_kernel_can_divide_it() {
        let [to, other] = ["192.0.2.7:9", "192.0.2.8:9"].map(|at| at.parse().ok());
        let run = |lengths: &[usize], bytes_max| divisible(&datagrams(to, lengths), 0, |_| bytes_max);
        assert_eq!(run(&[1400, 1400, 1400], DIVIDED_BYTES_MAX), 3);
        assert_eq!(run(&[1400, 1400, 700, 700], DIVIDED_BYTES_MAX), 3, "a shorter one is the last");
        assert_eq!(run(&[1400, 1401], DIVIDED_BYTES_MAX), 1);
        assert_eq!(run(&[1400, 0], DIVIDED_BYTES_MAX), 1, "an empty datagram would be lost");
        assert_eq!(run(&[0, 0], DIVIDED_BYTES_MAX), 1);
        assert_eq!(run(&[40_000, 40_000], DIVIDED_BYTES_MAX), 1);
        assert_eq!(run(&[1400, 1400], 1399), 1);
        let mut two = datagrams(to, &[1400, 1400]);
        two[1].to = other;
        assert_eq!(divisible(&two, 0, |_| DIVIDED_BYTES_MAX), 1);
    }

    /// A message that the path does not carry is sent again as datagrams; those that are as long are not tried again for a while.
    #[tokio::test]
    async fn a_kernel_that_cannot_divide_is_believed_for_a_while() {
        let (socket, at) = socket().await;
        let (to, other) = (Some(at), Some(SocketAddr::from(([127, 0, 0, 1], 9))));
        for (error, left) in [
            (Errno::EINVAL, 1399),
            (Errno::EMSGSIZE, 1399),
            (Errno::EIO, 0),
            (Errno::EOPNOTSUPP, 0),
            (Errno::ENOBUFS, DIVIDED_BYTES_MAX),
            (Errno::ENOMEM, DIVIDED_BYTES_MAX),
        ] {
            assert!(may_concern_division(error));
            let mut batch = DatagramBatch::new(&socket, true);
            batch.refuse(to, 1400, error);
            assert_eq!([to, other].map(|to| batch.divided_bytes_max(to)), [left, DIVIDED_BYTES_MAX]);
            // Datagrams to others do not count.
            batch.count([other; REFUSED_DATAGRAMS].into_iter());
            batch.count([to; REFUSED_DATAGRAMS - 1].into_iter());
            assert_eq!(batch.divided_bytes_max(to), left);
            batch.count([to].into_iter());
            assert_eq!(batch.divided_bytes_max(to), DIVIDED_BYTES_MAX);
        }
        assert!(!may_concern_division(Errno::ECONNREFUSED), "the error of an earlier datagram");
    }

    #[tokio::test]
    async fn refusals_of_many_addresses_take_little_memory() {
        let (socket, _) = socket().await;
        let mut batch = DatagramBatch::new(&socket, true);
        for port in 1..10_000 {
            batch.refuse(Some(([192, 0, 2, 7], port).into()), 1400, Errno::EINVAL);
            assert!(batch.refusals.len() <= REFUSALS_MAX);
        }
    }

    /// Nothing can be sent to port 0, which a forged datagram may have come from.
    #[tokio::test]
    async fn an_address_that_takes_nothing_does_not_end_the_division_for_others() {
        let ((from, _), (to, there)) = (socket().await, socket().await);
        let (mut sending, mut receiving) = (DatagramBatch::new(&from, true), DatagramBatch::new(&to, true));
        let nowhere = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let error = sending.send(&from, &datagrams(nowhere, &[500; 4])).await.expect_err("it leads nowhere");
        assert_eq!(error.raw_os_error(), Some(Errno::EINVAL as i32));
        assert_eq!(sending.refusals, BTreeMap::new());
        let queue = datagrams(Some(there), &[500; 40]);
        assert_eq!(sending.send(&from, &queue).await.ok(), Some(40));
        let (got, most) = receive(&mut receiving, &to, 40).await;
        assert!(got.iter().zip(&queue).all(|((bytes, _), datagram)| *bytes == datagram.bytes));
        assert!(most > MESSAGES_MAX, "{most} with one call: they were not divided by the kernel");
    }

    #[tokio::test]
    async fn messages_that_the_kernel_does_not_divide_are_sent_as_datagrams_and_divided_again_later() {
        let ((from, _), (to, there)) = (socket().await, socket().await);
        let (mut sending, mut receiving) = (DatagramBatch::new(&from, true), DatagramBatch::new(&to, true));
        for (error, is_remembered) in [(Errno::ENOBUFS, false), (Errno::EINVAL, true)] {
            sending.errors.push(error);
            assert_eq!(sending.send(&from, &datagrams(Some(there), &[500; 16])).await.ok(), Some(16));
            let (got, _) = receive(&mut receiving, &to, 16).await;
            assert!((0..16).all(|at| got[at].0 == [at as u8; 500][..]), "{error}");
            assert_eq!(sending.refusals.len(), usize::from(is_remembered), "{error}");
        }
        let mut undivided = 0;
        while !sending.refusals.is_empty() {
            let queue = datagrams(Some(there), &[500; 16]);
            let sent = sending.send(&from, &queue).await.expect("they are sent");
            undivided += sent;
            assert!(undivided <= REFUSED_DATAGRAMS);
            receive(&mut receiving, &to, sent).await;
        }
        assert_eq!(undivided, REFUSED_DATAGRAMS);
        let queue = datagrams(Some(there), &[500; 40]);
        assert_eq!(sending.send(&from, &queue).await.ok(), Some(40));
        let (_, most) = receive(&mut receiving, &to, 40).await;
        assert!(most > MESSAGES_MAX, "{most} with one call: they were not divided by the kernel");
    }

    /// Sockets that one thread serves in turn read into the same buffers.
    #[tokio::test]
    async fn what_one_socket_has_read_stays_when_another_reads() {
        let ((from, _), (one, first), (two, second)) = (socket().await, socket().await, socket().await);
        let mut batch = DatagramBatch::new(&from, true);
        for to in [first, second] {
            let mut queue = datagrams(Some(to), &[9; 3]);
            queue.iter_mut().for_each(|datagram| datagram.bytes = vec![to.port() as u8; 9].into());
            assert_eq!(batch.send(&from, &queue).await.ok(), Some(3));
        }
        let mut receiving = [DatagramBatch::new(&one, true), DatagramBatch::new(&two, true)];
        let (a, _) = receive(&mut receiving[0], &one, 3).await;
        let (b, _) = receive(&mut receiving[1], &two, 3).await;
        let is_own = |got: &[(Bytes, SocketAddr)], at: SocketAddr| {
            got.iter().all(|(bytes, _)| bytes[..] == [at.port() as u8; 9])
        };
        assert!(is_own(&a, first) && is_own(&b, second));
        let sizes = BUFFERS.with_borrow(|buffers| buffers.iter().map(Vec::len).collect::<Vec<_>>());
        assert_eq!(sizes, [MESSAGE_BYTES_MAX; MESSAGES_MAX]);
    }

    /// A datagram that is too long fails by itself; those before it have left.
    #[tokio::test]
    async fn only_the_first_datagram_fails() {
        let ((from, _), (to, there)) = (socket().await, socket().await);
        let mut batch = DatagramBatch::new(&from, true);
        let mut queue = datagrams(Some(there), &[10, 66_000, 20]);
        assert_eq!(batch.send(&from, &queue).await.ok(), Some(1));
        queue.pop_front();
        let error = batch.send(&from, &queue).await.expect_err("it is too long");
        assert_eq!(error.raw_os_error(), Some(Errno::EMSGSIZE as i32));
        queue.pop_front();
        assert_eq!(batch.send(&from, &queue).await.ok(), Some(1));
        let (got, _) = receive(&mut DatagramBatch::new(&to, true), &to, 2).await;
        assert_eq!(got.iter().map(|(bytes, _)| bytes.len()).collect::<Vec<_>>(), [10, 20]);
    }
}
