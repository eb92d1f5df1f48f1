//! Losses in both directions: measured here, and reported by peers.

use super::config::Config;
use super::wire::LossReport;
use crate::service::PeerId;
use std::collections::BTreeMap;

/// Number of symbols above which older ones count half.
const SYMBOLS_MAX: u64 = 20_000;
/// Maximum number of peers whose losses are known.
const PEERS_MAX: usize = 64;

#[derive(Debug, Default)]
struct Losses {
    /// Lost symbols, and all, in our direction.
    measured: (u64, u64),
    /// Losses of our packets, as the peer reports them.
    reported: Option<LossReport>,
    /// Number of events of all peers before the last one of this.
    changed: u64,
}

/// Losses between this side and its peers.
#[derive(Debug, Default)]
pub(super) struct LossTable {
    peers: BTreeMap<PeerId, Losses>,
    changed: u64,
}

impl LossTable {
    fn of(&mut self, peer: PeerId) -> &mut Losses {
        if self.peers.len() >= PEERS_MAX && !self.peers.contains_key(&peer) {
            let oldest = self.peers.iter().min_by_key(|(_, losses)| losses.changed).map(|(peer, _)| *peer);
            oldest.map(|oldest| self.peers.remove(&oldest));
        }
        self.changed += 1;
        let losses = self.peers.entry(peer).or_default();
        losses.changed = self.changed;
        losses
    }

    pub(super) fn clear(&mut self) {
        self.peers.clear();
    }

    /// Adds symbols from a peer.
    pub(super) fn measure(&mut self, peer: PeerId, (lost, all): (u64, u64)) {
        if all > 0 {
            let measured = &mut self.of(peer).measured;
            (measured.0, measured.1) = (measured.0 + lost, measured.1 + all);
            while measured.1 > SYMBOLS_MAX {
                (measured.0, measured.1) = (measured.0.div_ceil(2), measured.1.div_ceil(2));
            }
        }
    }

    /// Notes the report of a peer.
    pub(super) fn hear(&mut self, peer: PeerId, report: LossReport) {
        self.of(peer).reported = Some(report);
    }

    /// Report for a peer; `None` if nothing was measured.
    pub(super) fn report(&self, peer: PeerId) -> Option<LossReport> {
        let (lost, of) = self.peers.get(&peer)?.measured;
        (of > 0).then_some(LossReport { lost: lost as u16, of: of as u16 })
    }

    /// Probability that a datagram to this peer is lost: the share of those that are lost in its report and in the setting,
    /// which counts as a number of datagrams.
    pub(super) fn to(&self, peer: PeerId, config: &Config) -> f64 {
        let weight = f64::from(config.loss_weight);
        let Some(LossReport { lost, of }) = self.peers.get(&peer).and_then(|losses| losses.reported) else {
            return config.loss;
        };
        (f64::from(lost) + weight * config.loss) / (f64::from(of) + weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_outweighs_the_setting_as_its_datagrams_do() {
        let (mut table, peer) = (LossTable::default(), PeerId(1));
        let config = Config { loss: 0.01, loss_weight: 500, ..Config::default() };
        assert_eq!(table.to(peer, &config), 0.01);
        table.hear(peer, LossReport { lost: 55, of: 500 });
        assert_eq!(table.to(peer, &config), 60.0 / 1_000.0);
        assert_eq!(table.to(peer, &Config { loss_weight: 0, ..config }), 0.11);
    }

    #[test]
    fn old_losses_fade() {
        let (mut table, peer) = (LossTable::default(), PeerId(1));
        assert_eq!(table.report(peer), None);
        table.measure(peer, (20_000, 20_000));
        assert_eq!(table.report(peer), Some(LossReport { lost: 20_000, of: 20_000 }));
        table.measure(peer, (0, 10_000));
        assert_eq!(table.report(peer), Some(LossReport { lost: 10_000, of: 15_000 }));
        (0..20).for_each(|_| table.measure(peer, (0, 10_000)));
        assert!(table.report(peer).unwrap().lost < 10);
        for other in 2..200 {
            table.measure(PeerId(other), (0, 1));
        }
        assert_eq!((table.report(peer), table.peers.len()), (None, PEERS_MAX));
    }
}
