//! `longwire ping`.

use crate::failure::Failure;
use crate::reach::{Reach, print};
use bytes::{BufMut, BytesMut};
use clap::Args;
use longwire_node::message::{Message, Options, Reply, Request};
use longwire_settings::error::Error;
use serde_json::json;
use std::time::{Duration, Instant};

/// Send small bundles to a node's echo service and wait for them to come back
#[derive(Debug, Args)]
pub(crate) struct Ping {
    /// The node, or the endpoint of an echo service: dtn://bob/, ipn:7.0, ipn:7.2047
    #[arg(value_name = "EID")]
    to: String,
    /// How many
    #[arg(long, short, value_name = "N", default_value_t = 4)]
    count: u32,
    /// Seconds from one to the next
    #[arg(long, short, value_name = "S", default_value_t = 1.0)]
    interval: f64,
    /// Bytes of payload, 8 to 65,536
    #[arg(long, short, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(8..=65_536))]
    size: u32,
    /// Seconds to wait for the last ones
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    timeout: f64,
    #[command(flatten)]
    reach: Reach,
}

impl Ping {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut talk = self.reach.connect()?;
        let is_ipn = talk.status()?.node.starts_with("ipn:");
        // Other pings of this machine are other processes.
        let number = 0x10_0000 + std::process::id();
        let endpoint = if is_ipn { number.to_string() } else { format!("ping-{number}") };
        talk.ask(Request::Register { endpoint: endpoint.clone(), inline_bytes: 65_536 })?;
        talk.wait(|said| matches!(said.head, Reply::Registered { .. }).then_some(()))?;
        let to = self.endpoint();
        let interval = seconds(self.interval)?;
        let timeout = seconds(self.timeout)?;
        let began = Instant::now();
        let mut sent_at: Vec<Instant> = Vec::new();
        let mut times: Vec<Option<f64>> = vec![None; self.count as usize];
        let mut next = began;
        while times.iter().any(Option::is_none) {
            let now = Instant::now();
            if sent_at.len() < times.len() && now >= next {
                let lifetime_s = (self.interval * f64::from(self.count) + self.timeout).max(1.0);
                let options = Options { source: Some(endpoint.clone()), lifetime_s, ..Options::default() };
                let mut body = BytesMut::with_capacity(self.size as usize);
                body.put_u64(sent_at.len() as u64);
                body.resize(self.size as usize, b'.');
                let head = Request::Send {
                    send: sent_at.len() as u64,
                    to: to.clone(),
                    length: body.len() as u64,
                    options,
                };
                sent_at.push(Instant::now());
                talk.ask(Message { head, body: body.freeze() })?;
                next = now + interval;
                continue;
            }
            let until = if sent_at.len() < times.len() { next } else { sent_at[times.len() - 1] + timeout };
            let Some(patience) = until.checked_duration_since(now).filter(|left| !left.is_zero()) else {
                break;
            };
            let Some(said) = talk.hear_within(patience)? else { continue };
            match said.head {
                Reply::Delivered { delivery, .. } => {
                    talk.ask(Request::Taken { delivery })?;
                    let number =
                        said.body.first_chunk::<8>().map(|number| u64::from_be_bytes(*number) as usize);
                    self.came_back(number, &sent_at, &mut times)?;
                }
                Reply::Failed { send, reason } => {
                    return Err(Failure::Failed(Error::new(format!("ping {send} was not sent: {reason}"))));
                }
                _ => {}
            }
        }
        self.summary(&to, &times)
    }

    /// The echo service of a node that is named by its id.
    fn endpoint(&self) -> String {
        match &self.to {
            to if to.starts_with("dtn://") && to.ends_with('/') => {
                format!("{to}{}", longwire_node::echo_service(false))
            }
            to if to.starts_with("dtn://") && to.matches('/').count() == 2 => {
                format!("{to}/{}", longwire_node::echo_service(false))
            }
            to if to.starts_with("ipn:") && to.ends_with(".0") => {
                format!("{}.{}", &to[..to.len() - 2], longwire_node::echo_service(true))
            }
            to => to.clone(),
        }
    }

    fn came_back(
        &self,
        number: Option<usize>,
        sent_at: &[Instant],
        times: &mut [Option<f64>],
    ) -> Result<(), Failure> {
        let Some((number, at)) = number.and_then(|number| Some((number, sent_at.get(number)?))) else {
            return Ok(());
        };
        let ms = at.elapsed().as_secs_f64() * 1000.0;
        if times[number].replace(ms).is_none() && !self.reach.json {
            print(&format!("{} bytes back, number {number}, {ms:.3} ms", self.size))?;
        }
        Ok(())
    }

    fn summary(&self, to: &str, times: &[Option<f64>]) -> Result<(), Failure> {
        let back: Vec<f64> = times.iter().flatten().copied().collect();
        let mean = back.iter().sum::<f64>() / back.len().max(1) as f64;
        let least = back.iter().copied().fold(f64::INFINITY, f64::min);
        let most = back.iter().copied().fold(0.0, f64::max);
        let value = json!({"to": to, "sent": times.len(), "received": back.len(), "round_trips_ms": times});
        self.reach.show(&value, || match back.len() {
            0 => String::new(),
            _ => format!(
                "{} of {} came back; least {least:.3}, mean {mean:.3}, most {most:.3} ms",
                back.len(),
                times.len()
            ),
        })?;
        if back.is_empty() {
            let hint = "`longwire bundles` says why they are still here; other nodes have other echo services (HDTN: 2047)";
            return Err(Failure::Failed(Error::new(format!("nothing came back from {to}")).hint(hint)));
        }
        Ok(())
    }
}

fn seconds(value: f64) -> Result<Duration, Failure> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        Failure::Usage(Error::new(format!("{value} is no time")).hint("give seconds, such as 0.5"))
    })
}
