//! TCP connections: calls, and the options of sockets.

use super::quick_ack::QuickAck;
use super::stream::ByteStream;
use crate::config::Config;
use rustix::net::sockopt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream, lookup_host};

/// Connection attempt in progress.
pub type Calling = Pin<Box<dyn Future<Output = io::Result<Box<dyn ByteStream>>> + Send>>;
/// Function that connects a link.
pub type Connector = Arc<dyn Fn(String, &Config) -> Calling + Send + Sync>;

/// Connects by TCP, trying the addresses of the host in turn.
pub(crate) async fn call(to: String, config: Config) -> io::Result<Box<dyn ByteStream>> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in lookup_host(&to).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        set_buffers(&socket, &config)?;
        match socket.connect(address).await {
            Ok(stream) => {
                prepare(&stream)?;
                return Ok(Box::new(QuickAck::new(stream)));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Sets the sizes of the kernel's buffers, if configured.
pub(crate) fn set_buffers(socket: &TcpSocket, config: &Config) -> io::Result<()> {
    if let Some(bytes) = config.tcp.send_buffer_bytes {
        socket.set_send_buffer_size(bytes)?;
    }
    if let Some(bytes) = config.tcp.receive_buffer_bytes {
        socket.set_recv_buffer_size(bytes)?;
    }
    Ok(())
}

/// Disables Nagle's algorithm: small messages must not wait, and the engines already combine what belongs together.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)
}

/// Prepares a connection that a peer opened. Its session may have no keep-alives (RFC 9174 4.7) and occupies a connection
/// and a node ID, so TCP keep-alive probes its system after two idle minutes and closes the connection one minute later.
/// While sent data is unacknowledged, TCP retransmits it `net.ipv4.tcp_retries2` times instead of probing.
/// `TCP_USER_TIMEOUT` would end that sooner, but also disconnect a peer that answers without reading for that long (tcp(7)),
/// which is no sign of a dead peer.
pub(crate) fn prepare_caller(stream: &TcpStream) -> io::Result<()> {
    prepare(stream)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(120))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(15))?;
    Ok(sockopt::set_tcp_keepcnt(stream, 4)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn the_system_of_a_caller_is_asked_whether_it_is_there() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let calling = TcpStream::connect(listener.local_addr().expect("it has one"));
        let (here, there) = tokio::join!(listener.accept(), calling);
        let ((here, _), _there) = (here.expect("it calls"), there.expect("it answers"));
        assert!(!sockopt::socket_keepalive(&here).expect("an option"), "a new one is not");
        prepare_caller(&here).expect("options");
        assert!(sockopt::socket_keepalive(&here).expect("an option"));
        let times = [sockopt::tcp_keepidle(&here), sockopt::tcp_keepintvl(&here)];
        let all: u64 = times.map(|time| time.expect("an option").as_secs()).iter().sum();
        assert!(all + 3 * 15 <= 180, "{times:?}");
        assert_eq!(sockopt::tcp_keepcnt(&here).expect("an option"), 4);
        assert_eq!(sockopt::tcp_user_timeout(&here).expect("an option"), 0, "who does not read may live");
    }
}
