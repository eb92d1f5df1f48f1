//! Parameters with which a node starts.

use crate::config::{ClockSource, Config};
use crate::quick_ack::QuickAck;
use crate::storage::VolatileStore;
use crate::stream::ByteStream;
use longwire_proto::service::SteadyReading;
use rustix::net::sockopt;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::{TcpSocket, TcpStream, lookup_host};

/// Milliseconds from the Unix epoch to the DTN epoch, 2000-01-01 (RFC 9171 4.2.6).
pub(crate) const DTN_EPOCH_MS: u64 = 946_684_800_000;
/// 2024-01-01 in DTN time: an earlier clock has not been set.
const PLAUSIBLE_DTN_MS: u64 = 757_382_400_000;

/// Source of DTN time, milliseconds; returns `None` without a clock.
pub type WallClock = Arc<dyn Fn() -> Option<u64> + Send + Sync>;
/// Connection attempt in progress.
pub type Calling = Pin<Box<dyn Future<Output = io::Result<Box<dyn ByteStream>>> + Send>>;
/// Function that connects a link.
pub type Connector = Arc<dyn Fn(String, &Config) -> Calling + Send + Sync>;

/// Parameters with which a node starts: its configuration, and replacements for tests.
#[derive(Clone)]
pub struct NodeSetup {
    /// Configuration.
    pub config: Config,
    /// Path of the configuration file, for reloads.
    pub path: Option<PathBuf>,
    /// Wall clock.
    pub wall_clock: WallClock,
    /// Function that connects a link; TCP by default.
    pub connector: Connector,
    /// True if the node handles the signals of the process: SIGHUP reloads the configuration, SIGINT and SIGTERM stop the
    /// node in an orderly way.
    pub signals: bool,
    /// Store that loses unsynced data, used instead of the configured one.
    pub forgetful: Option<VolatileStore>,
}

impl NodeSetup {
    /// Creates the parameters for this configuration, with the system clock and TCP.
    pub fn new(config: Config) -> Self {
        let wall_clock: WallClock = match config.clock {
            ClockSource::System => Arc::new(system_dtn_ms),
            ClockSource::None => Arc::new(|| None),
        };
        NodeSetup {
            config,
            path: None,
            wall_clock,
            connector: Arc::new(|to, config| Box::pin(call(to, config.clone()))),
            signals: false,
            forgetful: None,
        }
    }
}

/// Converts DTN time to Unix seconds.
pub(crate) fn unix_s(dtn_ms: u64) -> u64 {
    dtn_ms.saturating_add(DTN_EPOCH_MS) / 1000
}

/// Returns the time of the system clock, Unix seconds; `None` if the clock is not set.
pub fn unix_now() -> Option<i64> {
    system_dtn_ms().and_then(|dtn_ms| i64::try_from(unix_s(dtn_ms)).ok())
}

/// Returns DTN time by the system clock; `None` if the clock is not set.
pub fn system_dtn_ms() -> Option<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let dtn_ms = u64::try_from(since.as_millis()).ok()?.checked_sub(DTN_EPOCH_MS)?;
    (dtn_ms >= PLAUSIBLE_DTN_MS).then_some(dtn_ms)
}

/// Returns the time since this machine started, including sleep; `None` if the system does not provide it.
pub(crate) fn steady() -> Option<SteadyReading> {
    static START: LazyLock<Option<u64>> = LazyLock::new(|| {
        let name = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let digits: String = name.chars().filter(char::is_ascii_hexdigit).take(16).collect();
        u64::from_str_radix(&digits, 16).ok().filter(|of| *of != 0)
    });
    let of = (*START)?;
    let since = std::fs::read_to_string("/proc/uptime").ok()?;
    let (seconds, hundredths) = since.split_whitespace().next()?.split_once('.')?;
    let ms = seconds.parse::<u64>().ok()?.checked_mul(1000)? + hundredths.parse::<u64>().ok()? * 10;
    Some(SteadyReading { of, ms })
}

/// Connects by TCP, trying the addresses of the host in turn.
async fn call(to: String, config: Config) -> io::Result<Box<dyn ByteStream>> {
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
