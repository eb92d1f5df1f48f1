//! Checks of the configuration against the machine, and of a node that is not running.

use super::{Doctor, Findings, Reach, counted};
use crate::meter::{Meter, Unit};
use crate::node_connection::bytes;
use longwire_node::config::{ClockSource, DatagramListener, StorageKind, TncSettings};
use longwire_node::storage::{self, OpenError};
use longwire_node::{Config, unix_now};
use rustix::fs::{Access, access, statvfs};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

/// Free space of a disk below which the store is in danger of not being able to accept bundles, bytes.
const FREE_LOW_BYTES: u64 = 256 << 20;
/// Free space below which it cannot accept more than a few bundles, bytes.
const FREE_NONE_BYTES: u64 = 16 << 20;
/// Time within which a TNC must accept a connection.
const TNC_ANSWERS_WITHIN: Duration = Duration::from_secs(3);
/// Seconds of a day.
const DAY_S: i64 = 86_400;

const CANNOT_START: &str = "the node cannot start";

pub(super) fn look(doctor: &Doctor, config: &Config, reach: Reach, findings: &mut Findings) {
    if reach != Reach::RunningAsOther {
        match config.check_here() {
            Ok(()) => findings.ok("addresses, folders, certificates and tokens can be used here"),
            Err(error) => findings.failure(error, CANNOT_START),
        }
        certificate(config, doctor.expires_within, findings);
    }
    explanation(&config.explain(), findings);
    secrets(doctor, config, findings);
    clock(config, unix_now(), findings);
    if config.storage.kind == StorageKind::Disk {
        disk(&config.storage.path, findings);
    }
    if reach == Reach::Stopped {
        if config.storage.kind == StorageKind::Disk {
            store(&config.storage.path, findings);
        }
        ports(config, findings);
        config.tnc.iter().for_each(|tnc| station(tnc, findings));
    }
}

/// Reports the warnings of `longwire node --check`.
fn explanation(text: &str, findings: &mut Findings) {
    for warning in text.lines().filter_map(|line| line.strip_prefix("WARNING: ")) {
        if warning.contains("limit of open files") {
            findings.warning(
                warning,
                "connections and stored bundles are refused",
                "raise the limit as described",
            );
        } else if warning.contains("certificate has expired")
            || warning.contains("certificate is not valid yet")
        {
            findings.error(
                warning,
                "peers refuse all sessions with TLS",
                "create a certificate with `longwire certificate --replace`, or correct the system clock",
            );
        } else {
            findings.warning(
                warning,
                "a setting does not have its intended effect",
                "change it; `longwire node --check` describes the configuration",
            );
        }
    }
}

/// Reports a certificate that expires soon. `explanation` reports one that has expired.
fn certificate(config: &Config, within: Duration, findings: &mut Findings) {
    let (Ok(Some(credentials)), Some(now)) = (config.credentials(), unix_now()) else { return };
    let left_s = credentials.claims().not_after.saturating_sub(now);
    let Some(path) = config.tls.certificate.as_deref().filter(|_| left_s >= 0) else { return };
    let days = left_s / DAY_S;
    match left_s < i64::try_from(within.as_secs()).unwrap_or(i64::MAX) {
        true => findings.warning(
            format!("the certificate {} expires in {}", path.display(), counted(days as usize, "day")),
            "afterwards peers refuse all sessions with TLS",
            "create a certificate with `longwire certificate --replace`, and restart the node",
        ),
        false => findings.ok(format!(
            "certificate {}, valid for {}",
            path.display(),
            counted(days as usize, "day")
        )),
    }
}

/// Reports keys and tokens that other users can access.
fn secrets(doctor: &Doctor, config: &Config, findings: &mut Findings) {
    let mut files = config.secret_files();
    if config.http.token.is_some() {
        files.push(doctor.config.clone());
    }
    let (mut closed, before) = (0, findings.faults());
    for path in files {
        // A file that this user cannot examine is reported by `check_here`, if the node runs as the same user.
        let Ok(file) = path.metadata() else { continue };
        // Members of the group of a file may be meant: services have their keys so.
        if file.permissions().mode() & 0o027 != 0 {
            findings.warning(
                format!("other users have access to {}, which contains a key or token", path.display()),
                "anyone who has read it can act as this node, or control it",
                format!(
                    "run `chmod o= {0}` (and `chmod g-w {0}`), with the group of the node; replace the key or token if others may have \
                     read it",
                    path.display()
                ),
            );
        } else {
            closed += 1;
        }
    }
    if closed > 0 && findings.faults() == before {
        findings.ok(format!("{} with keys or tokens, closed to other users", counted(closed, "file")));
    }
}

fn clock(config: &Config, now: Option<i64>, findings: &mut Findings) {
    match (config.clock, now) {
        (ClockSource::None, _) => findings.ok("no clock in use: lifetimes follow the age of bundles"),
        (ClockSource::System, Some(_)) => findings.ok("the system clock is set"),
        (ClockSource::System, None) => findings.warning(
            "the system clock is not set: it is before the year 2024",
            "bundles are sent without a creation time, contacts of a plan are not known, and certificates cannot be checked",
            "set the clock with date or timedatectl, or set `clock = \"none\"` if this machine has none",
        ),
    }
}

/// Reports how much space the disk of the store has.
fn disk(store: &Path, findings: &mut Findings) {
    let there = store.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    // A folder that cannot be accessed is reported by `check_here`.
    if let Ok(disk) = statvfs(there) {
        free_space(there, disk.f_bavail.saturating_mul(disk.f_frsize), findings);
    }
}

fn free_space(folder: &Path, free_bytes: u64, findings: &mut Findings) {
    let what = format!("the disk of {} has {} of free space", folder.display(), bytes(free_bytes));
    let hint =
        "remove files, or move the store to a larger disk with `storage.path` while the node is not running";
    match free_bytes {
        0..FREE_NONE_BYTES => findings.error(what, "the node refuses bundles for lack of space", hint),
        FREE_NONE_BYTES..FREE_LOW_BYTES => {
            findings.warning(what, "the node will soon refuse bundles for lack of space", hint);
        }
        _ => findings.ok(what),
    }
}

/// Reads the store as `longwire store check` does.
fn store(folder: &Path, findings: &mut Findings) {
    let checked = {
        let mut meter = Meter::new(false, Unit::Bytes("read"));
        storage::check(folder, &mut |done, all| meter.show(done, all))
    };
    match checked {
        Ok(store) if store.is_sound() => {
            findings.ok(format!("store: {}, no damage", counted(store.records as usize, "record")))
        }
        Ok(store) => findings.error(
            format!("the store {} has {}", folder.display(), counted(store.damage.len(), "damaged place")),
            "bundles are damaged or lost; the node reports each and deletes it",
            "`longwire store check` lists the damage; back up the folder, then run `longwire store repair`",
        ),
        Err(OpenError::Missing) => findings.ok("store: none yet; the node creates it"),
        Err(error) => {
            findings.error(format!("store {}: {error}", folder.display()), CANNOT_START, error.hint());
        }
    }
}

/// Reports ports of the configuration that another program uses.
fn ports(config: &Config, findings: &mut Findings) {
    let before = findings.faults();
    let datagrams =
        config.listen_udp.iter().filter_map(|text| Some(DatagramListener::parse(text).ok()?.address));
    let streams = config.listen.iter().chain(&config.http.listen).chain(&config.mail.listen);
    let streams = streams.chain(config.gateway.iter().filter_map(|gateway| gateway.listen_tcp.as_ref()));
    let datagrams =
        datagrams.chain(config.gateway.iter().filter_map(|gateway| gateway.listen_udp.as_deref()));
    let mut count = 0;
    for text in streams {
        count += 1;
        port("TCP", text, |address| TcpListener::bind(address).map(drop), findings);
    }
    for text in datagrams {
        count += 1;
        port("UDP", text, |address| UdpSocket::bind(address).map(drop), findings);
    }
    if count > 0 && findings.faults() == before {
        findings.ok(format!("{} in the configuration, not used by another program", counted(count, "port")));
    }
}

/// Other failures, such as those of foreign addresses, are reported by `check_here`.
fn port(protocol: &str, text: &str, bind: impl Fn(SocketAddr) -> io::Result<()>, findings: &mut Findings) {
    let Ok(mut addresses) = text.to_socket_addrs() else { return };
    // Several nodes on one machine may share the port of a multicast group.
    let failed = addresses.find_map(|address| match address.ip().is_multicast() {
        true => None,
        false => bind(address).err(),
    });
    match failed.map(|error| error.kind()) {
        Some(ErrorKind::AddrInUse) => findings.error(
            format!("{protocol} port {text} is in use by another program"),
            CANNOT_START,
            "stop that program (`ss -tulpn` shows it), or set another port",
        ),
        Some(ErrorKind::PermissionDenied) => findings.error(
            format!("this user may not use {protocol} port {text}"),
            CANNOT_START,
            "set a port from 1024 on, or set AmbientCapabilities=CAP_NET_BIND_SERVICE in the systemd unit",
        ),
        _ => {}
    }
}

/// Calls a TNC, without sending anything to it.
fn station(tnc: &TncSettings, findings: &mut Findings) {
    let why = "links over this TNC stay down";
    if let Some(path) = &tnc.serial {
        let is_device = Path::new(path).metadata().map(|file| file.file_type().is_char_device());
        let usable = is_device.and_then(|is_device| match is_device {
            true => access(Path::new(path), Access::READ_OK | Access::WRITE_OK).map_err(io::Error::from),
            false => Err(io::Error::other("it is not a device")),
        });
        match usable {
            Ok(()) => findings.ok(format!("TNC `{}`: this user can open {path}", tnc.name)),
            Err(error) => findings.error(
                format!("TNC `{}`: cannot open {path}: {error}", tnc.name),
                why,
                "check that the TNC is connected and switched on, and that the user of the node is in the group of the device \
                 (dialout)",
            ),
        }
    }
    if let Some(place) = &tnc.address {
        let address = place.strip_prefix("agwpe:").unwrap_or(place);
        match call(address) {
            Ok(()) => findings.ok(format!("TNC `{}`: {place} accepts connections", tnc.name)),
            Err(error) => findings.error(
                format!("TNC `{}`: {place} does not answer: {error}", tnc.name),
                why,
                "check that the program of the TNC is running and listens on that port",
            ),
        }
    }
}

fn call(address: &str) -> io::Result<()> {
    let mut last = io::Error::other("the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TNC_ANSWERS_WITHIN) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    #[test]
    fn a_full_disk_is_an_error_and_one_that_is_nearly_full_a_warning() {
        let severities = [1 << 20, 100 << 20, 1 << 30].map(|free_bytes| {
            let mut findings = Findings::default();
            free_space(Path::new("/var"), free_bytes, &mut findings);
            findings.0[0].severity
        });
        assert_eq!(severities, [Severity::Error, Severity::Warning, Severity::Ok]);
    }

    #[test]
    fn a_clock_that_is_not_set_is_reported_unless_none_is_wanted() {
        let system = Config::default();
        let none = Config { clock: ClockSource::None, ..Config::default() };
        let faults = [(&system, None), (&system, Some(1_800_000_000)), (&none, None)].map(|(config, now)| {
            let mut findings = Findings::default();
            clock(config, now, &mut findings);
            findings.faults()
        });
        assert_eq!(faults, [1, 0, 0]);
    }
}
