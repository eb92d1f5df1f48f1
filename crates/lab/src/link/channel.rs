//! Channels of a simulation with the properties of a link.

use super::outages::{Outage, OutageFrom};
use super::{LineFrames, LinkProfile, millis};
use longwire_proto::engine::Service;
use longwire_proto::service::InterfaceId;
use longwire_proto::time::Instant;
use longwire_sim::{
    ChannelConfig, ChannelId, Delay, DelayPoint, Direction, InjectedFault, LineConfig, NodeId, PathConfig,
    RadioConfig, Simulation, Window,
};

/// Interface of a node.
type End = (NodeId, InterfaceId);

impl LinkProfile {
    /// Adds a channel with the properties of this link and these outages to a simulation; the first end is the one towards
    /// the source. Outages relative to data are left to the caller.
    pub fn connect<A: Service>(
        &self,
        simulation: &mut Simulation<A>,
        ends: [End; 2],
        outages: &[Outage],
    ) -> ChannelId {
        match self.shared_channel() {
            Some(config) => cut(simulation, config, &ends, outages),
            None => {
                let [forward, backward] =
                    Direction::BOTH.map(|direction| self.line_config(direction, outages));
                simulation.add_channel(ends[0], ends[1], ChannelConfig { forward, backward })
            }
        }
    }

    /// Adds the shared channel of this link between all these stations, which hear each other. Towards the first one,
    /// frames have the errors of the way back.
    ///
    /// # Panics
    /// Panics if the link is not shared.
    pub fn connect_group<A: Service>(
        &self,
        simulation: &mut Simulation<A>,
        ends: &[End],
        outages: &[Outage],
    ) -> ChannelId {
        let config = self.shared_channel().expect("several stations are on one channel");
        let [there, back] = Direction::BOTH.map(|direction| self.errors(direction));
        let stations = 0..ends.len() as u16;
        let pairs = stations.clone().flat_map(|from| stations.clone().map(move |to| (from, to)));
        let path = |(from, to): (u16, u16)| {
            let errors = if to == 0 { back } else { there };
            PathConfig { errors: Some(errors), ..PathConfig::clear(from, to) }
        };
        let paths = pairs.filter(|(from, to)| from != to).map(path).collect();
        cut(simulation, RadioConfig { paths, ..config }, ends, outages)
    }

    /// Channel that both ends share; `None` for two lines.
    fn shared_channel(&self) -> Option<RadioConfig> {
        let errors = Direction::BOTH.map(|direction| self.errors(direction));
        match (&self.radio, &self.ethernet) {
            (Some(radio), _) => Some(radio.channel(self, errors)),
            (None, ethernet) => ethernet.as_ref().map(|ethernet| ethernet.channel(self, errors)),
        }
    }

    /// Line in one direction.
    fn line_config(&self, direction: Direction, outages: &[Outage]) -> LineConfig {
        let forward = direction == Direction::Forward;
        let pick = |there: f64, back: Option<f64>| if forward { there } else { back.unwrap_or(there) };
        let windows = on_schedule(outages).into_iter();
        LineConfig {
            rate_bps: if forward { self.rate_bps } else { self.back_rate_bps.unwrap_or(self.rate_bps) },
            delay: match &self.delay_schedule[..] {
                [] => Delay::Constant(millis(pick(self.delay_ms, self.back_delay_ms))),
                points => Delay::Schedule(
                    points.iter().map(|p| DelayPoint { at: at(p.at_s), delay: millis(p.delay_ms) }).collect(),
                ),
            },
            queue_bytes: self.queue_bytes,
            backpressure: !self.tail_drop,
            mtu_bytes: self.frame_bytes_max(),
            errors: self.errors(direction),
            fcs: self.fcs,
            // The flag of AX.25 between two frames.
            framing_bytes: u32::from(self.frames == LineFrames::Ax25Ui),
            outages: windows.map(|(from, to)| Window { from: at(from), to: at(to) }).collect(),
            announced: outages.iter().any(|outage| outage.announced),
            ..LineConfig::default()
        }
    }
}

/// Adds a shared channel, which the outages cut.
fn cut<A: Service>(
    simulation: &mut Simulation<A>,
    config: RadioConfig,
    ends: &[End],
    outages: &[Outage],
) -> ChannelId {
    let channel = simulation.add_radio(config, ends);
    for (begin, end) in on_schedule(outages) {
        simulation.fault_at(at(begin), InjectedFault::Cut(channel));
        simulation.fault_at(at(end), InjectedFault::Heal(channel));
    }
    channel
}

/// Time of this number of seconds since the start of a run.
pub(crate) fn at(seconds: f64) -> Instant {
    Instant::from_nanos((seconds * 1e9) as u64)
}

/// Scheduled outages: start and end, ascending.
pub(crate) fn on_schedule<'a>(outages: impl IntoIterator<Item = &'a Outage>) -> Vec<(f64, f64)> {
    let scheduled = outages.into_iter().filter(|outage| outage.from == OutageFrom::Run);
    let mut spans: Vec<(f64, f64)> =
        scheduled.map(|outage| (outage.after_s, outage.after_s + outage.length_s)).collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    spans
}
