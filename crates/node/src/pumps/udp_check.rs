//! UDP without its checksum, for protocols that check their packets themselves and use those that arrive damaged.
//!
//! The system drops a datagram whose checksum is wrong. One whose checksum is zero was sent without, and is not checked (RFC 768). Over
//! IPv6 a receiver drops these as well unless it asks for them (RFC 6935 5), so that both sides have to. A link layer with a check of its
//! own may still drop damaged frames. UDP-Lite (RFC 3828), which would protect the ports, is not used: few networks let it pass.
//!
//! The kernel does not divide messages (UDP GSO) of a socket without checksums.

use nix::libc;
use nix::sys::socket::{setsockopt, sockopt::SetBool};
use std::io;
use tokio::net::UdpSocket;

/// Option `SO_NO_CHECK`: over IPv4, datagrams are sent without a checksum.
const SO_NO_CHECK: libc::c_int = 11;
/// Option `UDP_NO_CHECK6_TX`: over IPv6, datagrams are sent without a checksum.
const UDP_NO_CHECK6_TX: libc::c_int = 101;
/// Option `UDP_NO_CHECK6_RX`: over IPv6, datagrams without a checksum are received.
const UDP_NO_CHECK6_RX: libc::c_int = 102;

#[derive(Clone, Copy, Debug)]
struct SendUnchecked;
nix::setsockopt_impl!(SendUnchecked, libc::SOL_SOCKET, SO_NO_CHECK, bool, SetBool);

#[derive(Clone, Copy, Debug)]
struct SendUnchecked6;
nix::setsockopt_impl!(SendUnchecked6, libc::IPPROTO_UDP, UDP_NO_CHECK6_TX, bool, SetBool);

#[derive(Clone, Copy, Debug)]
struct ReceiveUnchecked6;
nix::setsockopt_impl!(ReceiveUnchecked6, libc::IPPROTO_UDP, UDP_NO_CHECK6_RX, bool, SetBool);

/// Sends datagrams without a checksum, and receives those of peers that do the same.
///
/// # Errors
/// Fails if the system has no such option.
pub(super) fn leave_out(socket: &UdpSocket) -> io::Result<()> {
    setsockopt(socket, SendUnchecked, &true)?;
    if socket.local_addr()?.is_ipv6() {
        setsockopt(socket, SendUnchecked6, &true)?;
        setsockopt(socket, ReceiveUnchecked6, &true)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    /// Over IPv6 the system drops a datagram without a checksum unless the receiver has asked for such: that it drops one of two
    /// shows that the checksum is absent.
    #[tokio::test]
    async fn over_ipv6_only_a_receiver_that_asks_for_it_hears_a_datagram_without_checksum() {
        let bind = || UdpSocket::bind("[::1]:0");
        let (from, strict, lax) = (bind().await.unwrap(), bind().await.unwrap(), bind().await.unwrap());
        leave_out(&from).expect("an option");
        leave_out(&lax).expect("an option");
        let mut buffer = [0; 16];
        for to in [&strict, &lax] {
            from.send_to(b"unchecked", to.local_addr().unwrap()).await.unwrap();
        }
        // Loopback delivers in order: what was sent first would be there.
        let (length, _) = lax.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"unchecked");
        assert_eq!(strict.try_recv_from(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let checked = bind().await.unwrap();
        checked.send_to(b"checked", strict.local_addr().unwrap()).await.unwrap();
        let heard = timeout(Duration::from_secs(60), strict.recv_from(&mut buffer)).await;
        assert_eq!(heard.expect("it is there").unwrap().0, 7);
    }

    #[tokio::test]
    async fn over_ipv4_a_receiver_need_not_ask() {
        let (from, to) =
            (UdpSocket::bind("127.0.0.1:0").await.unwrap(), UdpSocket::bind("127.0.0.1:0").await.unwrap());
        leave_out(&from).expect("an option");
        from.send_to(b"unchecked", to.local_addr().unwrap()).await.unwrap();
        let mut buffer = [0; 16];
        assert_eq!(to.recv_from(&mut buffer).await.unwrap().0, 9);
    }
}
