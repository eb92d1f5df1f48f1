//! The command line.

use bytes::Bytes;
use longwire_proto::norm::wire::FecScheme;
use longwire_proto::norm::{Config, CongestionControl};
use longwire_proto::service::ObjectKind;
use longwire_proto::setting::Settings as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

pub const HELP: &str = "\
A sender or receiver of NORM with the engine of Longwire. It prints a line of JSON for each event.

usage: norm-longwire send    --address ADDRESS --port PORT --node ID [OPTION..] OBJECT..
       norm-longwire receive --address ADDRESS --port PORT --node ID [OPTION..]

The address is that of the receiver or of the multicast group; a receiver by unicast has the address itself. Groups are on the
loopback interface.

Both:
  --tx-port PORT          source port of a sender; by default a free one
  --rx-loss PERCENT       share of the received messages that are dropped, by a seeded choice
  --seed N                seed of the losses and of the engine; default 1
  --timeout SECONDS       default 60
  --linger SECONDS        how long it stays after its task is done; default 0
  --cc CONTROL            none, tfmcc or tfmcc-loss-tolerant: of a sender its rate, up to that of --rate; of a receiver the losses that
                          count; default none
  --fast                  computes no hash of what arrives
  --trace                 prints the messages to standard error

Sender:
  --file PATH | --data PATH | --stream PATH
                          objects, in this order; a file has its name as its info
  --stream-buffer BYTES   sent bytes of the streams that follow that can be repaired; default 4194304
  --message BYTES         length of the messages of streams, each flushed; default: one message
  --info TEXT             info of the data objects that follow
  --rate BITS             bits a second; default 10000000
  --segment BYTES         default 1400
  --block N, --parity N   segments of a block; defaults 64 and 16
  --auto-parity N         parity segments that follow each block unasked; default 0
  --fec-id ID             2, 5 or 129; default 5
  --grtt SECONDS          first estimate; default 0.5
  --backoff FACTOR        default 0, and 4 for a group
  --group N               receivers; default 10, and 1000 for a group
  --watermark ID,ID..     nodes that acknowledge; default the peer, none of a group

Receiver:
  --objects N             ends after so many objects; default 1
  --silent                sends nothing
  --group-answers           repair requests to the group instead of the sender
  --sync POLICY           current or all: what is wanted of a sender that has begun; default current

exit status: 0 if the task is done, 1 if not within the time or if an object failed, 2 for a wrong command line
";

/// Maximum length of an object, bytes.
const OBJECT_BYTES_MAX: u64 = 1 << 30;

/// Object to send.
#[derive(Clone, Debug)]
pub struct Source {
    pub kind: ObjectKind,
    pub info: Option<Bytes>,
    pub bytes: Bytes,
    /// Length of the object; of a stream, that of its buffer.
    pub length: u64,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub sends: bool,
    pub address: Ipv4Addr,
    pub port: u16,
    pub tx_port: u16,
    /// Share of the received messages that are dropped.
    pub rx_loss: f64,
    pub seed: u64,
    pub timeout: Duration,
    pub linger: Duration,
    pub traces: bool,
    /// Received objects are not hashed.
    pub is_fast: bool,
    pub config: Config,
    pub sources: Vec<Source>,
    /// Length of the messages of streams.
    pub message_bytes: usize,
    /// Number of objects to receive.
    pub objects: usize,
}

impl Options {
    /// Reads the arguments behind the name of the program.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let role = arguments.next().ok_or("send or receive is missing")?;
        let (sends, receives) = (role == "send", role == "receive");
        if !sends && !receives {
            return Err(format!("send or receive, not {role}"));
        }
        let mut config = Config {
            rate_bps: 10_000_000,
            earlier_objects: false,
            object_bytes_max: OBJECT_BYTES_MAX,
            outgoing_bytes_max: OBJECT_BYTES_MAX,
            ..Config::default()
        };
        let (mut address, mut port, mut tx_port) = (None, None, 0);
        let (mut rx_loss, mut seed, mut objects) = (0.0, 1, 1);
        let (mut timeout, mut linger) = (Duration::from_secs(60), Duration::ZERO);
        let (mut traces, mut is_fast) = (false, false);
        let (mut sources, mut info) = (Vec::new(), None);
        let (mut stream_buffer, mut message_bytes) = (4 << 20, usize::MAX);
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{option} needs a value"));
            match option.as_str() {
                "--address" => address = Some(number(&value()?)?),
                "--port" => port = Some(number(&value()?)?),
                "--node" => config.norm_node_id = Some(number(&value()?)?),
                "--tx-port" => tx_port = number(&value()?)?,
                "--rx-loss" => rx_loss = number::<f64>(&value()?)? / 100.0,
                "--seed" => seed = number(&value()?)?,
                "--timeout" => timeout = seconds(&value()?)?,
                "--linger" => linger = seconds(&value()?)?,
                "--trace" => traces = true,
                "--fast" => is_fast = true,
                "--cc" => config.congestion_control = congestion_control(&value()?)?,
                "--file" if sends => sources.push(file(&value()?)?),
                "--data" if sends => {
                    sources.push(Source::new(ObjectKind::Data, info.clone(), read(&value()?)?));
                }
                "--stream" if sends => {
                    let stream = Source::new(ObjectKind::Stream, info.clone(), read(&value()?)?);
                    sources.push(Source { length: stream_buffer, ..stream });
                }
                "--stream-buffer" if sends => stream_buffer = number(&value()?)?,
                "--message" if sends => message_bytes = number(&value()?)?,
                "--info" if sends => info = Some(value()?.into()),
                "--rate" if sends => config.rate_bps = number(&value()?)?,
                "--segment" if sends => config.segment_bytes = number(&value()?)?,
                "--block" if sends => config.block_symbols = number(&value()?)?,
                "--parity" if sends => config.parity_symbols = number(&value()?)?,
                "--auto-parity" if sends => config.auto_parity = number(&value()?)?,
                "--fec-id" if sends => {
                    let code = number(&value()?)?;
                    config.fec_scheme = FecScheme::from_code(code).map_err(|error| error.to_string())?;
                }
                "--grtt" if sends => config.grtt = seconds(&value()?)?,
                "--backoff" if sends => config.backoff_factor = Some(number(&value()?)?),
                "--group" if sends => config.group_size = Some(number(&value()?)?),
                "--watermark" if sends => {
                    config.acknowledging = value()?.split(',').map(number).collect::<Result<_, _>>()?;
                }
                "--objects" if receives => objects = number(&value()?)?,
                "--silent" if receives => config.silent = true,
                "--group-answers" if receives => config.group_answers = true,
                "--sync" if receives => config.earlier_objects = value()? == "all",
                _ => return Err(format!("{role} has no option {option}")),
            }
        }
        if sends && sources.is_empty() {
            return Err("there is no object to send".into());
        }
        config.check().map_err(|fault| format!("{fault:?}"))?;
        let (address, port) = (address.ok_or("--address is missing")?, port.ok_or("--port is missing")?);
        Ok(Options {
            sends,
            address,
            port,
            tx_port,
            rx_loss,
            seed,
            timeout,
            linger,
            traces,
            is_fast,
            config,
            sources,
            message_bytes,
            objects,
        })
    }

    /// Returns true if the address is that of a multicast group.
    pub fn is_group(&self) -> bool {
        self.address.is_multicast()
    }
}

impl Source {
    fn new(kind: ObjectKind, info: Option<Bytes>, bytes: Bytes) -> Source {
        Source { kind, info, length: bytes.len() as u64, bytes }
    }
}

fn congestion_control(name: &str) -> Result<CongestionControl, String> {
    match name {
        "none" => Ok(CongestionControl::None),
        "tfmcc" => Ok(CongestionControl::Tfmcc),
        "tfmcc-loss-tolerant" => Ok(CongestionControl::TfmccLossTolerant),
        _ => Err(format!("--cc: none, tfmcc or tfmcc-loss-tolerant, not {name}")),
    }
}

fn read(path: &str) -> Result<Bytes, String> {
    std::fs::read(path).map(Bytes::from).map_err(|error| format!("{path}: {error}"))
}

fn file(path: &str) -> Result<Source, String> {
    let name = Path::new(path).file_name().ok_or("a file without a name")?;
    let info = Bytes::copy_from_slice(name.as_encoded_bytes());
    Ok(Source::new(ObjectKind::File, Some(info), read(path)?))
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text} is not valid here"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    Duration::try_from_secs_f64(number(text)?).map_err(|_| format!("{text} is no number of seconds"))
}
