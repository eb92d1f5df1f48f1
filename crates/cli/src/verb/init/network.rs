//! TNCs that announce themselves on the local network: `_kiss-tnc._tcp` of DNS-based service discovery (RFC 6763), as Dire Wolf does.
//!
//! One-shot queries of multicast DNS (RFC 6762 5.1): from a port of their own, so that answers come to this program alone and nothing
//! is shared with a responder of this machine. Later rounds ask for what an answer has left out. Records are read by hand: four types
//! of them, where libraries bring a thread of their own and cannot ask anybody but the group.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Group and port of multicast DNS (RFC 6762 3).
const GROUP: (Ipv4Addr, u16) = (Ipv4Addr::new(224, 0, 0, 251), 5353);
/// Rounds of questions, and time for the answers to each: responders delay theirs by up to 120 ms (RFC 6762 6).
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_millis(400);
/// Maximum messages that are read in a round.
const MESSAGES_MAX: usize = 256;
/// Maximum records of one type that are kept.
const RECORDS_MAX: usize = 32;
/// Maximum length of a message (RFC 6762 17), bytes.
const MESSAGE_BYTES_MAX: usize = 9000;
/// Types and class of records (RFC 1035 3.2.2, RFC 3596 2.1, RFC 2782).
const A: u16 = 1;
const PTR: u16 = 12;
const AAAA: u16 = 28;
const SRV: u16 = 33;
const INTERNET: u16 = 1;
/// Bit of the class that asks a responder to drop earlier records (RFC 6762 10.2).
const CACHE_FLUSH: u16 = 0x8000;

/// TNC that was announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Announced {
    /// Name for the user, without control characters.
    pub(super) name: String,
    pub(super) address: SocketAddr,
}

/// Returns the TNCs on the local network; none where multicast is not possible.
pub(super) fn announced() -> Vec<Announced> {
    match UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)) {
        Ok(socket) => ask(&socket, GROUP.into(), ROUND),
        Err(_) => Vec::new(),
    }
}

/// Asks the responders at this address, in rounds of this length.
fn ask(socket: &UdpSocket, to: SocketAddr, round: Duration) -> Vec<Announced> {
    let mut answers = Answers::default();
    let mut buffer = [0; MESSAGE_BYTES_MAX];
    for _ in 0..ROUNDS {
        let questions = answers.questions();
        if questions.is_empty() || socket.send_to(&query(&questions), to).is_err() {
            break;
        }
        let until = Instant::now() + round;
        for _ in 0..MESSAGES_MAX {
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let received = socket.set_read_timeout(Some(left)).and_then(|()| socket.recv_from(&mut buffer));
            match received {
                // A message that cannot be read has said what it has up to there.
                Ok((length, _)) => {
                    let _ = answers.read(&buffer[..length]);
                }
                Err(_) if Instant::now() >= until => break,
                Err(_) => {}
            }
        }
    }
    answers.announced()
}

/// Name in the DNS: its labels.
#[derive(Clone, Debug, Default)]
struct Name(Vec<Vec<u8>>);

/// Names have no upper and lower case (RFC 1035 2.3.3).
impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        let same = |(one, other): (&Vec<u8>, &Vec<u8>)| one.eq_ignore_ascii_case(other);
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

impl Name {
    fn service() -> Name {
        Name(["_kiss-tnc", "_tcp", "local"].map(|label| label.as_bytes().to_vec()).into())
    }

    /// Reads a name at `at`, and moves behind it. Pointers lead backwards (RFC 1035 4.1.4).
    fn read(message: &[u8], at: &mut usize) -> Option<Name> {
        let (mut name, mut here, mut end, mut bytes) = (Name::default(), *at, None, 0);
        loop {
            let length = usize::from(*message.get(here)?);
            if length & 0xc0 == 0xc0 {
                let to = (length & 0x3f) << 8 | usize::from(*message.get(here + 1)?);
                end.get_or_insert(here + 2);
                here = Some(to).filter(|to| *to < here)?;
            } else if length == 0 {
                *at = end.unwrap_or(here + 1);
                return Some(name);
            } else {
                bytes += length + 1;
                let label = message.get(here + 1..here + 1 + length);
                name.0.push(label.filter(|_| length < 64 && bytes < 255)?.to_vec());
                here += 1 + length;
            }
        }
    }

    fn write(&self, message: &mut Vec<u8>) {
        for label in &self.0 {
            message.push(u8::try_from(label.len()).unwrap_or(0));
            message.extend(label);
        }
        message.push(0);
    }

    /// First label, which is what the user of a service reads.
    fn shown(&self) -> String {
        let label = self.0.first().map(|label| String::from_utf8_lossy(label).into_owned());
        label.unwrap_or_default().chars().map(|c| if c.is_control() { '_' } else { c }).collect()
    }
}

/// A query (RFC 1035 4.1).
fn query(questions: &[(Name, u16)]) -> Vec<u8> {
    let count = u16::try_from(questions.len()).unwrap_or(u16::MAX);
    let mut message = vec![0; 4];
    message.extend(count.to_be_bytes());
    message.extend([0; 6]);
    for (name, kind) in questions {
        name.write(&mut message);
        message.extend(kind.to_be_bytes());
        message.extend(INTERNET.to_be_bytes());
    }
    message
}

/// Records of all answers.
#[derive(Debug, Default)]
struct Answers {
    instances: Vec<Name>,
    /// Port and host of an instance.
    services: Vec<(Name, (u16, Name))>,
    hosts: Vec<(Name, IpAddr)>,
}

impl Answers {
    /// Adds the records of a message. Returns `None` if it cannot be read to its end.
    fn read(&mut self, message: &[u8]) -> Option<()> {
        let number = |at: usize| Some(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]));
        if number(2)? & 0x8000 == 0 {
            return None;
        }
        let mut at = 12;
        for _ in 0..number(4)? {
            Name::read(message, &mut at)?;
            at += 4;
        }
        let records = u32::from(number(6)?) + u32::from(number(8)?) + u32::from(number(10)?);
        for _ in 0..records {
            let name = Name::read(message, &mut at)?;
            let (kind, class) = (number(at)?, number(at + 2)? & !CACHE_FLUSH);
            let (mut data, length) = (at + 10, usize::from(number(at + 8)?));
            at = data + length;
            let bytes = message.get(data..at)?;
            match kind {
                _ if class != INTERNET => {}
                PTR if name == Name::service() => {
                    add(&mut self.instances, Name::read(message, &mut data)?);
                }
                SRV => {
                    let port = number(data + 4)?;
                    data += 6;
                    add(&mut self.services, (name, (port, Name::read(message, &mut data)?)));
                }
                A => {
                    let address = <[u8; 4]>::try_from(bytes).ok()?;
                    add(&mut self.hosts, (name, Ipv4Addr::from(address).into()));
                }
                AAAA => {
                    let address = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?);
                    // A link-local address is of no use without its interface.
                    if !address.is_unicast_link_local() {
                        add(&mut self.hosts, (name, address.into()));
                    }
                }
                _ => {}
            }
        }
        Some(())
    }

    /// Questions about everything that is missing.
    fn questions(&self) -> Vec<(Name, u16)> {
        if self.instances.is_empty() {
            return vec![(Name::service(), PTR)];
        }
        let missing = |name: &Name| match self.service_of(name) {
            None => Some((name.clone(), SRV)),
            Some((_, host)) => self.addresses_of(host).next().is_none().then(|| (host.clone(), A)),
        };
        self.instances.iter().filter_map(missing).collect()
    }

    /// Announced TNCs whose address is known: by IPv4 first, in which TNCs listen.
    fn announced(&self) -> Vec<Announced> {
        let one = |name: &Name| {
            let (port, host) = self.service_of(name)?;
            let address = self.addresses_of(host).min_by_key(IpAddr::is_ipv6)?;
            Some(Announced { name: name.shown(), address: SocketAddr::new(address, *port) })
        };
        self.instances.iter().filter_map(one).filter(|tnc| tnc.address.port() != 0).collect()
    }

    fn service_of(&self, instance: &Name) -> Option<&(u16, Name)> {
        self.services.iter().find(|(name, _)| name == instance).map(|(_, service)| service)
    }

    fn addresses_of<'a>(&'a self, host: &'a Name) -> impl Iterator<Item = IpAddr> + 'a {
        self.hosts.iter().filter(move |(name, _)| name == host).map(|(_, address)| *address)
    }
}

/// Adds a record that is new, as long as there are few.
fn add<T: PartialEq>(records: &mut Vec<T>, record: T) {
    if records.len() < RECORDS_MAX && !records.contains(&record) {
        records.push(record);
    }
}

#[cfg(test)]
mod tests;
