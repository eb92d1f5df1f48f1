//! Datagrams of a UDP socket, many with each system call.
//!
//! - **Sending.** `sendmmsg` passes several messages at a time. Successive datagrams of one length to one address form one
//!   message, which the kernel divides (UDP GSO); the last one may be shorter. Where the kernel or the device cannot divide
//!   messages, or not into datagrams of this length, each datagram is a message.
//! - **Receiving.** `recvmmsg` reads several messages at a time. A message may hold several datagrams of one length from one
//!   address (UDP GRO); they are separated here.
//!
//! Units: bytes of datagram, without headers.

use bytes::Bytes;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg,
    setsockopt, sockopt,
};
use std::collections::VecDeque;
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

/// Datagram to send.
#[derive(Debug)]
pub(super) struct OutgoingDatagram {
    /// Address; `None` for the only peer of the socket.
    pub(super) to: Option<SocketAddr>,
    pub(super) bytes: Bytes,
    pub(super) token: Option<u64>,
}

/// Buffers of a socket, and the abilities of the kernel.
#[derive(Debug)]
pub(super) struct DatagramBatch {
    /// Maximum length of a datagram into which the kernel divides messages; zero if it divides none.
    divided_bytes_max: usize,
    buffers: Vec<Vec<u8>>,
}

impl DatagramBatch {
    /// Prepares a socket. With `divides` the kernel divides and joins messages, if it can.
    pub(super) fn new(socket: &UdpSocket, divides: bool) -> Self {
        if divides {
            // Older kernels deliver each datagram by itself.
            let _ = setsockopt(socket, sockopt::UdpGroSegment, &true);
        }
        let divided_bytes_max = if divides { DIVIDED_BYTES_MAX } else { 0 };
        // Buffers that are never filled take no memory.
        let buffers = (0..MESSAGES_MAX).map(|_| vec![0; MESSAGE_BYTES_MAX]).collect();
        DatagramBatch { divided_bytes_max, buffers }
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
        loop {
            let divided_bytes_max = self.divided_bytes_max;
            let sent = socket.async_io(Interest::WRITABLE, || {
                let (sent, is_divided) = send_now(socket, datagrams, divided_bytes_max);
                match sent {
                    Err(Errno::EAGAIN | Errno::EINTR) => Err(io::ErrorKind::WouldBlock.into()),
                    sent => Ok((sent, is_divided)),
                }
            });
            let (sent, is_divided) = sent.await?;
            match sent {
                Ok(sent) => return Ok(sent),
                Err(error) if is_divided && self.cannot_divide(error, datagrams[0].bytes.len()) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns true if the kernel does not divide messages into datagrams of this length, which is then remembered.
    fn cannot_divide(&mut self, error: Errno, length: usize) -> bool {
        self.divided_bytes_max = match error {
            // Longer than the device carries.
            Errno::EINVAL | Errno::EMSGSIZE => length - 1,
            Errno::EIO | Errno::EOPNOTSUPP => 0,
            _ => return false,
        };
        true
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
        socket.try_io(Interest::READABLE, || Ok(receive_now(socket, &mut self.buffers[..count])?))
    }
}

/// Passes datagrams to the system. Returns the number of those that it took, and whether it had to divide messages.
fn send_now(
    socket: &UdpSocket,
    datagrams: &VecDeque<OutgoingDatagram>,
    divided_bytes_max: usize,
) -> (nix::Result<usize>, bool) {
    let length = datagrams[0].bytes.len();
    let run = divisible(datagrams, 0, divided_bytes_max);
    if run > 1 {
        let each = (DIVIDED_BYTES_MAX / length).min(DIVIDED_DATAGRAMS_MAX);
        let slices: Vec<_> = datagrams.range(..run).map(|datagram| IoSlice::new(&datagram.bytes)).collect();
        let messages: Vec<&[IoSlice<'_>]> = slices.chunks(each).collect();
        let sent = send_messages(socket, &messages, |_| datagrams[0].to, Some(length as u16));
        (sent.map(|messages| (messages * each).min(run)), true)
    } else {
        let begins_run = |at: &usize| divisible(datagrams, *at, divided_bytes_max) > 1;
        let singles = (1..datagrams.len()).find(begins_run).unwrap_or(datagrams.len());
        let slices: Vec<_> =
            datagrams.range(..singles).map(|datagram| [IoSlice::new(&datagram.bytes)]).collect();
        let messages: Vec<&[IoSlice<'_>]> = slices.iter().map(|slice| &slice[..]).collect();
        (send_messages(socket, &messages, |at| datagrams[at].to, None), false)
    }
}

/// Number of datagrams from this one on that can leave in messages which the kernel divides.
fn divisible(datagrams: &VecDeque<OutgoingDatagram>, at: usize, bytes_max: usize) -> usize {
    let first = &datagrams[at];
    let length = first.bytes.len();
    // A message of one datagram needs no division.
    if length == 0 || length > bytes_max.min(DIVIDED_BYTES_MAX / 2) {
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
        let run = |lengths: &[usize], bytes_max| divisible(&datagrams(to, lengths), 0, bytes_max);
        assert_eq!(run(&[1400, 1400, 1400], DIVIDED_BYTES_MAX), 3);
        assert_eq!(run(&[1400, 1400, 700, 700], DIVIDED_BYTES_MAX), 3, "a shorter one is the last");
        assert_eq!(run(&[1400, 1401], DIVIDED_BYTES_MAX), 1);
        assert_eq!(run(&[1400, 0], DIVIDED_BYTES_MAX), 1, "an empty datagram would be lost");
        assert_eq!(run(&[0, 0], DIVIDED_BYTES_MAX), 1);
        assert_eq!(run(&[40_000, 40_000], DIVIDED_BYTES_MAX), 1);
        assert_eq!(run(&[1400, 1400], 1399), 1);
        let mut two = datagrams(to, &[1400, 1400]);
        two[1].to = other;
        assert_eq!(divisible(&two, 0, DIVIDED_BYTES_MAX), 1);
    }

    /// A message that the device does not carry is sent again as datagrams; those that are as long are not tried again.
    #[tokio::test]
    async fn a_kernel_that_cannot_divide_is_believed() {
        let (socket, _) = socket().await;
        let mut batch = DatagramBatch::new(&socket, true);
        assert!(!batch.cannot_divide(Errno::ECONNREFUSED, 1400), "the error of an earlier datagram");
        assert_eq!(batch.divided_bytes_max, DIVIDED_BYTES_MAX);
        for (error, left) in
            [(Errno::EINVAL, 1399), (Errno::EMSGSIZE, 1399), (Errno::EIO, 0), (Errno::EOPNOTSUPP, 0)]
        {
            let mut batch = DatagramBatch::new(&socket, true);
            assert!(batch.cannot_divide(error, 1400));
            assert_eq!(batch.divided_bytes_max, left);
        }
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
