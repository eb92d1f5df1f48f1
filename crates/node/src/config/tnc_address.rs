//! Addresses of TNCs and of the lines to them.

use std::str::FromStr;

/// Default speed of serial lines, bit/s.
const SPEED_BPS: u32 = 9600;

/// Address of a TNC: `127.0.0.1:8001` over TCP, `/dev/ttyUSB0` for a serial line at 9,600 bit/s, `/dev/ttyUSB0@38400` for
/// another speed; 8 data bits, one stop bit, no parity, no flow control (KISS 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineAddress {
    /// Host and port for TCP.
    Tcp(String),
    /// Serial line.
    Serial {
        /// Path of the device.
        path: String,
        /// Speed, bit/s.
        speed_bps: u32,
    },
}

impl FromStr for LineAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !text.starts_with('/') {
            let port =
                text.rsplit_once(':').map(|(host, port)| (host.is_empty(), port.parse::<u16>().is_ok()));
            return match port {
                Some((false, true)) => Ok(LineAddress::Tcp(text.to_owned())),
                _ => Err("give host:port, such as 127.0.0.1:8001, or a serial device, such as /dev/ttyUSB0"),
            };
        }
        let (path, speed_bps) = match text.rsplit_once('@') {
            Some((path, speed)) => {
                (path, speed.parse().map_err(|_| "give the speed in bit/s, as in /dev/ttyUSB0@9600")?)
            }
            None => (text, SPEED_BPS),
        };
        Ok(LineAddress::Serial { path: path.to_owned(), speed_bps })
    }
}

impl std::fmt::Display for LineAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LineAddress::Tcp(address) => f.write_str(address),
            LineAddress::Serial { path, speed_bps } => write!(f, "{path}@{speed_bps}"),
        }
    }
}

/// Address and protocol of a TNC: KISS mode at a [`LineAddress`], or an AGWPE server such as `agwpe:127.0.0.1:8000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TncAddress {
    /// TNC in KISS mode.
    Kiss(LineAddress),
    /// AGWPE server over TCP.
    Agwpe(LineAddress),
}

impl TncAddress {
    /// Returns the address of the line.
    pub fn line(&self) -> &LineAddress {
        match self {
            TncAddress::Kiss(line) | TncAddress::Agwpe(line) => line,
        }
    }

    /// Returns a hint for when the TNC cannot be reached.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            TncAddress::Kiss(LineAddress::Tcp(_)) => {
                "check that the TNC's program is running, with KISS over TCP on that port"
            }
            TncAddress::Kiss(LineAddress::Serial { .. }) => {
                "check that the TNC is connected and switched on, and that this user may open the device (group dialout)"
            }
            TncAddress::Agwpe(_) => {
                "check that the server is running, with AGWPE on that TCP port and the radio port of `agwpe.port`, counted \
                 from 0"
            }
        }
    }
}

impl FromStr for TncAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("agwpe:") {
            None => Ok(TncAddress::Kiss(text.parse()?)),
            Some(server) => match server.parse() {
                Ok(line @ LineAddress::Tcp(_)) => Ok(TncAddress::Agwpe(line)),
                _ => Err("give agwpe:host:port, such as agwpe:127.0.0.1:8000"),
            },
        }
    }
}

impl std::fmt::Display for TncAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TncAddress::Kiss(line) => write!(f, "{line}"),
            TncAddress::Agwpe(line) => write!(f, "agwpe:{line}"),
        }
    }
}
