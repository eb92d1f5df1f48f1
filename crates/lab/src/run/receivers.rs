//! Runs with several receivers: by one transmission to all of them, or to one after another.

use super::{HopOutcome, Outcome, PreparedRun, Setup, Wanted};
use crate::bench::Run;
use crate::error::Error;
use crate::ledger::Ledger;
use longwire_proto::rng::Rng;
use longwire_towers::carriers::GROUP_MEMBERS_MAX;

/// Maximum number of receivers: as many members as every group can name.
pub const RECEIVERS_MAX: u32 = GROUP_MEMBERS_MAX as u32;

impl Setup {
    /// The same with this number of receivers on the channel, each of which gets all files. A protocol that serves groups sends to all of
    /// them at once, and every other one to one after another.
    ///
    /// # Errors
    /// Fails if the path is not one shared channel, or there are none or too many.
    pub fn to_receivers(self, receivers: u32) -> Result<Setup, Error> {
        if !(1..=RECEIVERS_MAX).contains(&receivers) {
            return Err(Error::new(format!("{receivers} receivers are not possible"))
                .hint(format!("use 1 to {RECEIVERS_MAX}")));
        }
        if receivers > 1 && !matches!(&self.links[..], [link] if link.is_shared()) {
            return Err(Error::new("only stations on one channel can have several receivers")
                .hint("use a link with [radio] or [ethernet], such as ax25-1200 or dstar-dd"));
        }
        let mut setup = Setup { receivers, ..self };
        if receivers > 1 {
            let source = setup.scenario.nodes[0].clone();
            let receiver = |number: u32| format!("{}{number}", setup.scenario.nodes[1]);
            setup.group = [source].into_iter().chain((1..=receivers).map(receiver)).collect();
        }
        Ok(setup)
    }

    /// Number of receivers.
    pub fn receivers(&self) -> u32 {
        self.receivers
    }

    /// Returns true if one transmission serves all receivers.
    pub fn sends_to_group(&self) -> bool {
        self.receivers > 1 && self.assembly.serves_groups()
    }

    /// Simulates transfers to one receiver after another, each with its own noise.
    pub(super) fn play_in_turn(&self, run: Run, wanted: Wanted) -> Outcome {
        let draws = Rng::new(run.seed).fork("receivers");
        let seed = |receiver: u32| match receiver {
            0 => run.seed,
            other => draws.fork(&other.to_string()).next_u64(),
        };
        let outcomes = (0..self.receivers).map(|receiver| {
            let wanted = Wanted { frames: wanted.frames && receiver == 0, ..wanted };
            PreparedRun::new(self, Run { seed: seed(receiver), ..run }, wanted).play()
        });
        outcomes.reduce(Outcome::and_then).expect("there is a receiver")
    }
}

impl Outcome {
    /// The outcome of this run and a later one to another receiver.
    fn and_then(mut self, later: Outcome) -> Outcome {
        self.delivered &= later.delivered;
        self.transfer_s = self.transfer_s.zip(later.transfer_s).map(|(first, second)| first + second);
        self.missed = self.missed.or(later.missed);
        self.failures.extend(later.failures);
        let hops = self.hops.into_iter().zip(later.hops);
        self.hops = hops.map(|(first, second)| first.and_then(second)).collect();
        self.observed.parts.extend(later.observed.parts);
        self.events += later.events;
        self
    }
}

impl HopOutcome {
    fn and_then(mut self, later: HopOutcome) -> HopOutcome {
        for (ours, theirs) in self.ledgers.iter_mut().zip(&later.ledgers) {
            *ours =
                Ledger { way: ours.way, nanos: core::array::from_fn(|at| ours.nanos[at] + theirs.nanos[at]) };
        }
        self.frames += later.frames;
        self.channel_bytes += later.channel_bytes;
        self.repeated_frames += later.repeated_frames;
        self.damaged_frames += later.damaged_frames;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkProfile;
    use crate::protocols;
    use crate::scenario::Scenario;
    use bytes::Bytes;
    use std::path::Path;

    const BYTES: u64 = 6_000;

    fn setup(link: &str, protocol: &str, receivers: u32) -> Result<Setup, Error> {
        let text = format!(
            "protocol = '{protocol}'\n[workload]\nbytes = {BYTES}\n[[channel]]\nbetween = ['tx', 'rx']\nprofile = '{link}'"
        );
        let scenario = Scenario::parse(&text, "test")?;
        let file = Bytes::from(vec![7; BYTES as usize]);
        Setup::with_files(scenario, Path::new("."), vec![file])?.to_receivers(receivers)
    }

    #[test]
    fn every_protocol_brings_all_receivers_every_byte_and_a_group_costs_little_more_than_one() {
        for (link, groups) in [("dstar-dd", 1), ("ax25-9600", 2)] {
            let profile = LinkProfile::load(link, Path::new(".")).expect("it is built in");
            let (fitting, _) = protocols::fitting(&[profile]);
            let mut serving = 0;
            for protocol in fitting.iter().filter(|protocol| protocol.acknowledges()) {
                let play = |receivers| {
                    let setup = setup(link, protocol.name, receivers).expect("a setup");
                    (setup.sends_to_group(), setup.run(0, Wanted::default()))
                };
                let ((_, one), (is_group, four)) = (play(1), play(4));
                assert!(one.delivered && four.delivered, "{} over {link}: {:?}", protocol.name, four.missed);
                let bytes = |outcome: &Outcome| outcome.hops[0].channel_bytes as f64;
                let times = bytes(&four) / bytes(&one);
                serving += u32::from(is_group);
                let (least, most) = if is_group { (0.9, 2.0) } else { (3.0, 6.0) };
                assert!((least..most).contains(&times), "{} over {link}: {times} times", protocol.name);
                assert!(is_group || four.transfer_s > one.transfer_s, "{} over {link}", protocol.name);
                assert!(four.hops[0].ledgers[0].total() > 0);
            }
            assert_eq!(serving, groups, "{link}");
        }
    }

    #[test]
    fn receivers_need_a_channel_of_their_own() {
        assert!(setup("cislunar", "norm", 2).is_err_and(|error| error.what.contains("one channel")));
        assert!(setup("cislunar", "norm", 1).is_ok());
        for several in [0, RECEIVERS_MAX + 1] {
            assert!(setup("dstar-dd", "norm", several).is_err(), "{several}");
        }
    }
}
