//! TNCs at this machine, and on the local network.

use super::network::{self, Announced};
use std::fs;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time for a connection to a port of this machine.
const CONNECTS: Duration = Duration::from_millis(300);
/// Usual ports of KISS and AGWPE over TCP, as Dire Wolf has them.
const KISS_PORTS: [u16; 2] = [8001, 8002];
const AGWPE_PORT: u16 = 8000;
/// Maximum serial ports in the list.
const SERIAL_MAX: usize = 20;

/// TNC, or a serial port at which one may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Place, as `--tnc` has it.
    pub(super) place: String,
    /// Description for the user.
    pub(super) what: String,
}

/// Returns all that are found: programs that listen, TNCs that announce themselves on the local network, and serial ports. The network is
/// asked only for a user who chooses: anybody on it can announce a TNC.
pub(super) fn tncs(asks_network: bool) -> Vec<Found> {
    let listens = |port: &u16| {
        let address = SocketAddr::from(([127, 0, 0, 1], *port));
        TcpStream::connect_timeout(&address, CONNECTS).is_ok()
    };
    let kiss = KISS_PORTS.iter().filter(|port| listens(port));
    let mut found: Vec<Found> = kiss
        .map(|port| Found {
            place: format!("127.0.0.1:{port}"),
            what: "KISS over TCP, such as Dire Wolf".to_owned(),
        })
        .collect();
    if found.is_empty() && listens(&AGWPE_PORT) {
        let what = "AGWPE server".to_owned();
        found.push(Found { place: format!("agwpe:127.0.0.1:{AGWPE_PORT}"), what });
    }
    if asks_network {
        let is_own = |address: IpAddr| UdpSocket::bind((address, 0)).is_ok();
        add_announced(&mut found, network::announced(), is_own);
    }
    found.extend(serial_ports(Path::new("/dev")));
    found
}

/// Adds the TNCs that were announced and are not in the list yet.
fn add_announced(found: &mut Vec<Found>, announced: Vec<Announced>, is_own: impl Fn(IpAddr) -> bool) {
    for Announced { name, address } in announced {
        // A program on this machine announces itself with an address that may change.
        let place = match is_own(address.ip()) {
            true => format!("127.0.0.1:{}", address.port()),
            false => address.to_string(),
        };
        if found.iter().all(|found| found.place != place) {
            found.push(Found { place, what: format!("KISS over TCP, announced as \"{name}\"") });
        }
    }
}

/// Serial ports below this folder: by their names that stay, or else by the others.
fn serial_ports(dev: &Path) -> Vec<Found> {
    let named = entries(&dev.join("serial/by-id"), |_| true);
    let plain =
        || entries(dev, |name| ["ttyUSB", "ttyACM", "ttyAMA"].iter().any(|start| name.starts_with(start)));
    let ports = if named.is_empty() { plain() } else { named };
    let found = ports.into_iter().take(SERIAL_MAX);
    found.map(|port| Found { place: port.display().to_string(), what: "serial port".to_owned() }).collect()
}

fn entries(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let wanted = entries.filter(|entry| is_wanted(&entry.file_name().to_string_lossy()));
    let mut paths: Vec<PathBuf> = wanted.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tnc_that_was_announced_is_in_the_list_once() {
        let here = Found { place: "127.0.0.1:8001".into(), what: "KISS".into() };
        let mut found = vec![here.clone()];
        let announced =
            ["192.0.2.7:8001", "192.0.2.8:8001", "192.0.2.7:8003", "[2001:db8::7]:8001"].map(|address| {
                Announced { name: "Dire Wolf".into(), address: address.parse().expect("an address") }
            });
        add_announced(&mut found, announced.into(), |address| address.to_string() == "192.0.2.7");
        let places: Vec<&str> = found.iter().map(|found| found.place.as_str()).collect();
        assert_eq!(places, ["127.0.0.1:8001", "192.0.2.8:8001", "127.0.0.1:8003", "[2001:db8::7]:8001"]);
        assert_eq!(found[0], here);
    }

    #[test]
    fn serial_ports_have_the_names_that_stay() {
        let dev = tempfile::tempdir().expect("a folder");
        let names = |dev: &Path| -> Vec<String> {
            serial_ports(dev)
                .iter()
                .map(|found| found.place.rsplit_once('/').expect("a path").1.to_owned())
                .collect()
        };
        assert_eq!(names(dev.path()), [""; 0]);
        for name in ["ttyUSB1", "ttyUSB0", "tty1", "null"] {
            fs::write(dev.path().join(name), "").expect("a file");
        }
        assert_eq!(names(dev.path()), ["ttyUSB0", "ttyUSB1"]);
        fs::create_dir_all(dev.path().join("serial/by-id")).expect("a folder");
        fs::write(dev.path().join("serial/by-id/usb-TNC-if00"), "").expect("a file");
        assert_eq!(names(dev.path()), ["usb-TNC-if00"]);
    }
}
