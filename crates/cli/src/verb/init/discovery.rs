//! TNCs at this machine.

use std::fs;
use std::net::{SocketAddr, TcpStream};
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
    pub(super) what: &'static str,
}

/// Returns all that are found: programs that listen, and serial ports.
pub(super) fn tncs() -> Vec<Found> {
    let listens = |port: &u16| {
        let address = SocketAddr::from(([127, 0, 0, 1], *port));
        TcpStream::connect_timeout(&address, CONNECTS).is_ok()
    };
    let kiss = KISS_PORTS.iter().filter(|port| listens(port));
    let mut found: Vec<Found> = kiss
        .map(|port| Found { place: format!("127.0.0.1:{port}"), what: "KISS over TCP, such as Dire Wolf" })
        .collect();
    if found.is_empty() && listens(&AGWPE_PORT) {
        found.push(Found { place: format!("agwpe:127.0.0.1:{AGWPE_PORT}"), what: "AGWPE server" });
    }
    found.extend(serial_ports(Path::new("/dev")));
    found
}

/// Serial ports below this folder: by their names that stay, or else by the others.
fn serial_ports(dev: &Path) -> Vec<Found> {
    let named = entries(&dev.join("serial/by-id"), |_| true);
    let plain =
        || entries(dev, |name| ["ttyUSB", "ttyACM", "ttyAMA"].iter().any(|start| name.starts_with(start)));
    let ports = if named.is_empty() { plain() } else { named };
    let found = ports.into_iter().take(SERIAL_MAX);
    found.map(|port| Found { place: port.display().to_string(), what: "serial port" }).collect()
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
