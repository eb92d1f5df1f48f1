//! The command line.

use crate::norm::{NodeId, Probing, SyncPolicy};
use std::path::PathBuf;
use std::time::Duration;

pub const HELP: &str = "\
A sender or receiver of NORM with NRL's library. It prints a line of JSON for each event.

usage: norm-peer send    --address ADDRESS --port PORT --node ID [OPTION..] OBJECT..
       norm-peer receive --address ADDRESS --port PORT --node ID [OPTION..]

The address is that of the receiver or of the multicast group; a receiver by unicast gives the address of the sender.

Both:
  --interface NAME        interface of the multicast group
  --loopback              multicast between processes of this machine, which share the port
  --tx-port PORT          source port; by default a free one
  --rx-loss PERCENT       share of the received messages that are dropped at random
  --tx-loss PERCENT       share of the sent messages that are dropped at random
  --buffer BYTES          memory for the blocks in flight; default 16000000
  --robust N              attempts to flush, and to ask for repair; default 20
  --timeout SECONDS       default 60
  --linger SECONDS        how long it stays after its task is done; default 0

Sender:
  --file PATH | --data PATH | --stream PATH
                          objects, in this order; a file has its name as its info
  --stream-buffer BYTES   sent bytes of a stream that can be repaired; default 4194304
  --message BYTES         length of the messages of streams; default: one message
  --rate BITS             bits a second; default 10000000
  --segment BYTES         default 1400
  --block N, --parity N   segments of a block; defaults 64 and 16
  --auto-parity N         parity segments that follow each block unasked; default 0
  --fec-id ID             2, 5 or 129; default 0, the choice of the library
  --instance ID           default 1
  --cc MODE               off, on, fixed (measures only), tolerant (of losses), ecn; default off
  --rate-bounds MIN:MAX   limits of congestion control, bits a second
  --grtt SECONDS          first estimate; default that of the library, 0.5
  --probing MODE          measurement of the round-trip time: off, passive or active; default active
  --backoff FACTOR        default that of the library, 4
  --group N               default that of the library, 1000
  --watermark ID,ID..     nodes that acknowledge the last object; the sender ends when all have, or one does not

Receiver:
  --folder PATH           place of received files, which keep their names; default: files are refused
  --objects N             ends after so many objects; default 1
  --silent                sends nothing
  --unicast-nacks         feedback to the address of the sender, also with a multicast group
  --sync POLICY           current, stream or all: what is wanted of a sender that has begun; default current

exit status: 0 if the task is done, 1 if not within the time or if a watermark failed, 2 for a wrong command line
";

#[derive(Clone, Debug)]
pub enum Role {
    Send(SendOptions),
    Receive(ReceiveOptions),
}

#[derive(Clone, Debug)]
pub struct Options {
    pub role: Role,
    pub address: String,
    pub port: u16,
    pub node: NodeId,
    pub interface: Option<String>,
    pub loopback: bool,
    pub tx_port: Option<u16>,
    pub rx_loss: f64,
    pub tx_loss: f64,
    pub buffer_bytes: u32,
    pub robust: i32,
    pub timeout: Duration,
    pub linger: Duration,
}

#[derive(Clone, Debug)]
pub struct SendOptions {
    pub sources: Vec<Source>,
    pub stream_buffer_bytes: u32,
    pub message_bytes: usize,
    pub rate_bps: f64,
    pub segment_bytes: u16,
    pub block: u16,
    pub parity: u16,
    pub auto_parity: u8,
    pub fec_id: u8,
    pub instance_id: u16,
    pub cc: CongestionControl,
    pub rate_bounds_bps: Option<(f64, f64)>,
    pub grtt: Option<f64>,
    pub probing: Probing,
    pub backoff: Option<f64>,
    pub group: Option<u32>,
    pub watermark: Vec<NodeId>,
}

#[derive(Clone, Debug)]
pub enum Source {
    File(PathBuf),
    Data(PathBuf),
    Stream(PathBuf),
}

#[derive(Clone, Copy, Debug)]
pub enum CongestionControl {
    Off,
    On,
    Fixed,
    Tolerant,
    Ecn,
}

#[derive(Clone, Debug)]
pub struct ReceiveOptions {
    pub folder: Option<PathBuf>,
    pub objects: usize,
    pub silent: bool,
    pub unicast_nacks: bool,
    pub sync: SyncPolicy,
}

impl Options {
    /// Reads the arguments behind the name of the program.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let role = arguments.next().ok_or("send or receive is missing")?;
        let mut send = SendOptions {
            sources: Vec::new(),
            stream_buffer_bytes: 4 << 20,
            message_bytes: usize::MAX,
            rate_bps: 10e6,
            segment_bytes: 1_400,
            block: 64,
            parity: 16,
            auto_parity: 0,
            fec_id: 0,
            instance_id: 1,
            cc: CongestionControl::Off,
            rate_bounds_bps: None,
            grtt: None,
            probing: Probing::Active,
            backoff: None,
            group: None,
            watermark: Vec::new(),
        };
        let mut receive = ReceiveOptions {
            folder: None,
            objects: 1,
            silent: false,
            unicast_nacks: false,
            sync: SyncPolicy::Current,
        };
        let (mut address, mut port, mut node) = (None, None, None);
        let (mut interface, mut loopback, mut tx_port) = (None, false, None);
        let (mut rx_loss, mut tx_loss) = (0.0, 0.0);
        let (mut buffer_bytes, mut robust) = (16_000_000, 20);
        let (mut timeout, mut linger) = (Duration::from_secs(60), Duration::ZERO);

        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{option} needs a value"));
            let (sends, receives) = (role == "send", role == "receive");
            match option.as_str() {
                "--address" => address = Some(value()?),
                "--port" => port = Some(number(&value()?)?),
                "--node" => node = Some(number(&value()?)?),
                "--interface" => interface = Some(value()?),
                "--loopback" => loopback = true,
                "--tx-port" => tx_port = Some(number(&value()?)?),
                "--rx-loss" => rx_loss = percent(&value()?)?,
                "--tx-loss" => tx_loss = percent(&value()?)?,
                "--buffer" => buffer_bytes = number(&value()?)?,
                "--robust" => robust = number(&value()?)?,
                "--timeout" => timeout = seconds(&value()?)?,
                "--linger" => linger = seconds(&value()?)?,
                "--file" if sends => send.sources.push(Source::File(value()?.into())),
                "--data" if sends => send.sources.push(Source::Data(value()?.into())),
                "--stream" if sends => send.sources.push(Source::Stream(value()?.into())),
                "--stream-buffer" if sends => send.stream_buffer_bytes = number(&value()?)?,
                "--message" if sends => send.message_bytes = number(&value()?)?,
                "--rate" if sends => send.rate_bps = number(&value()?)?,
                "--segment" if sends => send.segment_bytes = number(&value()?)?,
                "--block" if sends => send.block = number(&value()?)?,
                "--parity" if sends => send.parity = number(&value()?)?,
                "--auto-parity" if sends => send.auto_parity = number(&value()?)?,
                "--fec-id" if sends => send.fec_id = number(&value()?)?,
                "--instance" if sends => send.instance_id = number(&value()?)?,
                "--cc" if sends => send.cc = congestion_control(&value()?)?,
                "--rate-bounds" if sends => {
                    let text = value()?;
                    let (min, max) = text.split_once(':').ok_or("--rate-bounds needs MIN:MAX")?;
                    send.rate_bounds_bps = Some((number(min)?, number(max)?));
                }
                "--grtt" if sends => send.grtt = Some(number(&value()?)?),
                "--probing" if sends => send.probing = probing(&value()?)?,
                "--backoff" if sends => send.backoff = Some(number(&value()?)?),
                "--group" if sends => send.group = Some(number(&value()?)?),
                "--watermark" if sends => {
                    send.watermark = value()?.split(',').map(number).collect::<Result<_, _>>()?;
                }
                "--folder" if receives => receive.folder = Some(value()?.into()),
                "--objects" if receives => receive.objects = number(&value()?)?,
                "--silent" if receives => receive.silent = true,
                "--unicast-nacks" if receives => receive.unicast_nacks = true,
                "--sync" if receives => receive.sync = sync_policy(&value()?)?,
                _ => return Err(format!("{role} has no option {option}")),
            }
        }
        let role = match role.as_str() {
            "send" if send.sources.is_empty() => return Err("there is no object to send".into()),
            "send" => Role::Send(send),
            "receive" => Role::Receive(receive),
            other => return Err(format!("send or receive, not {other}")),
        };
        Ok(Options {
            role,
            address: address.ok_or("--address is missing")?,
            port: port.ok_or("--port is missing")?,
            node: node.filter(|node| *node != 0).ok_or("--node is missing or 0")?,
            interface,
            loopback,
            tx_port,
            rx_loss,
            tx_loss,
            buffer_bytes,
            robust,
            timeout,
            linger,
        })
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text} is no number, or too large"))
}

fn percent(text: &str) -> Result<f64, String> {
    number(text).ok().filter(|share| (0.0..=100.0).contains(share)).ok_or(format!("{text} is no percentage"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = number(text)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{text} is no number of seconds"))
}

fn congestion_control(text: &str) -> Result<CongestionControl, String> {
    match text {
        "off" => Ok(CongestionControl::Off),
        "on" => Ok(CongestionControl::On),
        "fixed" => Ok(CongestionControl::Fixed),
        "tolerant" => Ok(CongestionControl::Tolerant),
        "ecn" => Ok(CongestionControl::Ecn),
        _ => Err(format!("--cc: off, on, fixed, tolerant or ecn, not {text}")),
    }
}

fn probing(text: &str) -> Result<Probing, String> {
    match text {
        "off" => Ok(Probing::Off),
        "passive" => Ok(Probing::Passive),
        "active" => Ok(Probing::Active),
        _ => Err(format!("--probing: off, passive or active, not {text}")),
    }
}

fn sync_policy(text: &str) -> Result<SyncPolicy, String> {
    match text {
        "current" => Ok(SyncPolicy::Current),
        "stream" => Ok(SyncPolicy::Stream),
        "all" => Ok(SyncPolicy::All),
        _ => Err(format!("--sync: current, stream or all, not {text}")),
    }
}

/// Returns false for a multicast group. A name is that of a host.
pub fn is_unicast(address: &str) -> bool {
    !address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_multicast())
}
