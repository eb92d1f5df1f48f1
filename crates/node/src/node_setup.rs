//! What a node is started with.

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
/// 2024-01-01 in DTN time: a clock that is before it has not been set.
const PLAUSIBLE_DTN_MS: u64 = 757_382_400_000;

/// DTN time now, milliseconds; none: there is no clock.
pub type WallClock = Arc<dyn Fn() -> Option<u64> + Send + Sync>;
/// A call under way.
pub type Calling = Pin<Box<dyn Future<Output = io::Result<Box<dyn ByteStream>>> + Send>>;
/// How links are called.
pub type Connector = Arc<dyn Fn(String, &Config) -> Calling + Send + Sync>;

/// What a node is started with: its configuration, and what tests exchange.
#[derive(Clone)]
pub struct NodeSetup {
    /// The configuration.
    pub config: Config,
    /// Its file, for reading it again.
    pub path: Option<PathBuf>,
    /// The wall clock.
    pub wall_clock: WallClock,
    /// How links are called. By TCP.
    pub connector: Connector,
    /// Whether the process's signals are the node's: hang-up reads the configuration again, interrupt and terminate end
    /// it in good order.
    pub signals: bool,
    /// A store that forgets what was not synced, instead of the configured one.
    pub forgetful: Option<VolatileStore>,
}

impl NodeSetup {
    /// With this configuration, and the world as it is.
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

/// DTN time as Unix seconds.
pub(crate) fn unix_s(dtn_ms: u64) -> u64 {
    dtn_ms.saturating_add(DTN_EPOCH_MS) / 1000
}

/// The time by the system's clock, Unix seconds, if that has been set.
pub fn unix_now() -> Option<i64> {
    system_dtn_ms().and_then(|dtn_ms| i64::try_from(unix_s(dtn_ms)).ok())
}

/// DTN time by the system's clock, if that has been set.
pub fn system_dtn_ms() -> Option<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let dtn_ms = u64::try_from(since.as_millis()).ok()?.checked_sub(DTN_EPOCH_MS)?;
    (dtn_ms >= PLAUSIBLE_DTN_MS).then_some(dtn_ms)
}

/// The time since this machine's start, sleep included, where the system says it.
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

/// Calls by TCP, one address of the host after the other.
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

/// Sets the sizes of the kernel's buffers, where the configuration says them.
pub(crate) fn set_buffers(socket: &TcpSocket, config: &Config) -> io::Result<()> {
    if let Some(bytes) = config.tcp.send_buffer_bytes {
        socket.set_send_buffer_size(bytes)?;
    }
    if let Some(bytes) = config.tcp.receive_buffer_bytes {
        socket.set_recv_buffer_size(bytes)?;
    }
    Ok(())
}

/// Small messages are not to wait for others: the engines put together what belongs together.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)
}

/// The same for a connection that a peer has opened. Its session may have no keep-alives (RFC 9174 4.7), and holds a place and a node
/// id: so its system is asked whether it is there, after two minutes in which nothing came, and taken for gone after one more. While
/// data are on their way to it, it is not asked: they are repeated `net.ipv4.tcp_retries2` times. `TCP_USER_TIMEOUT` would end that
/// sooner, and a caller, too, that answers and does not read for so long (tcp(7)): that is no reason to take it for gone.
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
