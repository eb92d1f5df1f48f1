//! `longwire ping`.

use crate::endpoint;
use crate::failure::{CommandFailure, CommandResult};
use crate::flag;
use crate::node_connection::{NodeOptions, print};
use crate::output::interrupts;
use clap::Args;
use longwire_node::message::{Reply, Request};
use longwire_node::ping;
use longwire_node::view::Pings;
use longwire_settings::error::Error;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Maximum time between two checks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

/// Measure the round-trip time to a node with small bundles
///
/// Press Ctrl-C to stop early and print the summary.
#[derive(Debug, Args)]
pub(crate) struct Ping {
    /// Node ID, or endpoint of an echo service: dtn://bob/, ipn:7.0, ipn:7.2047
    #[arg(value_name = "EID")]
    to: String,
    /// Number of pings
    #[arg(long, short, value_name = "N", default_value = "4", value_parser = flag::whole::<u32>(1, 1_000_000))]
    count: u32,
    /// Interval between pings: 0s, 200ms, 5s
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = flag::time)]
    interval: Duration,
    /// Payload bytes, 8 to 16,777,216
    #[arg(long, short, value_name = "N", default_value = "64", value_parser = flag::whole::<u32>(8, 16_777_216))]
    size: u32,
    /// Time to wait for the last replies
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = flag::time)]
    timeout: Duration,
    #[command(flatten)]
    reach: NodeOptions,
}

impl Ping {
    pub(crate) fn run(&self) -> CommandResult {
        let mut talk = self.reach.connect()?;
        let is_ipn = talk.status()?.node.starts_with("ipn:");
        // Concurrent pings on this machine are other processes and need other endpoints.
        let number = 0x10_0000 + std::process::id();
        let endpoint = if is_ipn { number.to_string() } else { format!("ping-{number}") };
        talk.ask(Request::Register { endpoint: endpoint.clone(), inline_bytes: 65_536 })?;
        talk.wait(|said| matches!(said.head, Reply::Registered { .. }).then_some(()))?;
        let to = ping::target(&self.to);
        talk.note_neighbour(&endpoint::check(&to)?)?;
        let (interval, timeout) = (self.interval, self.timeout);
        let lifetime_s = (interval.as_secs_f64() * f64::from(self.count) + timeout.as_secs_f64()).max(1.0);
        let stop = interrupts()?;
        let began = Instant::now();
        let mut sent_at: Vec<Instant> = Vec::new();
        let mut times: Vec<Option<f64>> = vec![None; self.count as usize];
        let mut next = began;
        // Replies that the node still has although it was told that they are taken: if the connection ended first, they would stay.
        let mut untaken = 0_u32;
        while (untaken > 0 || times.iter().any(Option::is_none)) && !stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            if sent_at.len() < times.len() && now >= next {
                let requests = ping::requests(sent_at.len() as u64, &to, &endpoint, self.size, lifetime_s);
                sent_at.push(Instant::now());
                for request in requests {
                    talk.ask(request)?;
                }
                next = now + interval;
                continue;
            }
            let until = if sent_at.len() < times.len() { next } else { sent_at[times.len() - 1] + timeout };
            let Some(patience) = until.checked_duration_since(now).filter(|left| !left.is_zero()) else {
                break;
            };
            let Some(said) = talk.hear_within(patience.min(LOOK))? else { continue };
            match said.head {
                Reply::Delivered { delivery, .. } if ping::number(&said.body).is_none() => {
                    // The payload is too long to come with its delivery; the number of the ping suffices.
                    talk.ask(Request::Read { delivery, offset: 0, length: ping::BYTES_MIN })?;
                }
                Reply::Delivered { delivery, .. } | Reply::Data { delivery, .. } => {
                    talk.ask(Request::Taken { delivery })?;
                    untaken += 1;
                    let number = ping::number(&said.body).and_then(|number| usize::try_from(number).ok());
                    self.came_back(number, &sent_at, &mut times)?;
                }
                Reply::Gone { .. } => untaken = untaken.saturating_sub(1),
                Reply::Failed { send, reason, .. } => {
                    return Err(Error::new(format!("ping {send} failed: {reason}")).into());
                }
                _ => {}
            }
        }
        times.truncate(sent_at.len());
        self.summary(to, times, stop.load(Ordering::Relaxed))
    }

    fn came_back(
        &self,
        number: Option<usize>,
        sent_at: &[Instant],
        times: &mut [Option<f64>],
    ) -> CommandResult {
        let Some((number, at)) = number.and_then(|number| Some((number, sent_at.get(number)?))) else {
            return Ok(());
        };
        let ms = at.elapsed().as_secs_f64() * 1000.0;
        if times[number].replace(ms).is_none() && !self.reach.json {
            print(&format!("{} bytes from {}: seq={number} time={ms:.1} ms", self.size, self.to))?;
        }
        Ok(())
    }

    fn summary(&self, to: String, times: Vec<Option<f64>>, is_stopped: bool) -> CommandResult {
        let pings = ping::add_up(to, times);
        self.reach.show(&pings, || words(&pings))?;
        if is_stopped {
            return Err(CommandFailure::Interrupted);
        }
        if pings.received == 0 {
            let hint = "use `longwire bundles` to see why pings are still here; other implementations use other echo services (HDTN: ipn:N.2047)";
            return Err(CommandFailure::failed(format!("no reply from {}", pings.to), hint));
        }
        Ok(())
    }
}

fn words(pings: &Pings) -> String {
    let Pings { sent, received, lost_percent, .. } = pings;
    let counts = format!("{sent} sent, {received} received, {lost_percent:.0} % loss");
    let (Some(least), Some(mean), Some(most), Some(deviation)) =
        (pings.least_ms, pings.mean_ms, pings.most_ms, pings.deviation_ms)
    else {
        return counts;
    };
    format!("{counts}; round trip min/avg/max/stddev = {least:.3}/{mean:.3}/{most:.3}/{deviation:.3} ms")
}
