//! Faults accepted from a peer, and encodings adapted to it.

use crate::bp::quirks::needed;
use crate::bp::{Accept, DecodePolicy, Emit, PeerRules};
use crate::service::LinkId;
use bytes::Bytes;
use std::collections::BTreeSet;

use super::head::AnyHead;
use super::{Agent, Config, LinkConfig};

/// Rules for the peer of a link.
#[derive(Debug, Default)]
pub(super) struct PeerQuirks {
    accept: BTreeSet<Accept>,
    emit: Vec<Emit>,
    /// Faults that would have to be accepted for the refused bundles.
    would_help: BTreeSet<Accept>,
    /// Ages in bundles of version 6 on this link are in seconds.
    ages_in_seconds: bool,
}

impl PeerQuirks {
    /// Combines the rules of a link and of the node at its other end. A peer without a node ID, as over UDP,
    /// matches only `*`.
    pub(super) fn of(link: &LinkConfig, peer: Option<&str>, config: &Config) -> Self {
        let about: Vec<&PeerRules> =
            config.peers.iter().filter(|other| other.is(peer.unwrap_or_default())).collect();
        let accept = about.iter().flat_map(|peer| &peer.accept).chain(&link.accept).copied().collect();
        let mut emit: Vec<Emit> = Vec::new();
        // Settings of the link take precedence.
        for way in about.iter().flat_map(|peer| &peer.emit).chain(&link.emit) {
            emit.retain(|other| other != way);
            emit.push(*way);
        }
        let slow = &config.version6.ages_in_seconds;
        let ages_in_seconds =
            peer.is_some_and(|node| slow.iter().any(|pattern| super::matches(pattern, node)));
        PeerQuirks { accept, emit, would_help: BTreeSet::new(), ages_in_seconds }
    }

    fn relax(&self, policy: DecodePolicy) -> DecodePolicy {
        self.accept.iter().fold(policy, |policy, accept| accept.relax(policy))
    }
}

impl Agent {
    /// Replaces the rules for peers; they apply to a peer from its next session on.
    pub fn configure_peers(&mut self, peers: Vec<PeerRules>) {
        self.config.peers = peers;
    }

    /// Faults that would have to be accepted for the bundles refused from this link's peer since the link
    /// came up.
    pub fn would_help(&self, link: LinkId) -> impl Iterator<Item = Accept> + '_ {
        self.links.get(link).into_iter().flat_map(|link| link.quirks.would_help.iter().copied())
    }

    /// Decoding policy of this link.
    pub(super) fn policy_of(&self, link: LinkId) -> DecodePolicy {
        self.links.get(link).map_or(self.intake.policy(), |link| link.quirks.relax(self.intake.policy()))
    }

    /// Age in the header of a bundle that arrived over this link, milliseconds.
    pub(super) fn age_ms_over(&self, link: LinkId, head: &AnyHead) -> Option<u64> {
        let in_seconds = self.links.get(link).is_some_and(|link| link.quirks.ages_in_seconds);
        match head {
            // The field is defined in microseconds; such a peer writes seconds.
            AnyHead::V6(head) if in_seconds => head.age_us().map(|seconds| seconds.saturating_mul(1000)),
            head => head.age_ms(),
        }
    }

    /// Counts the faults with which a header was accepted.
    pub(super) fn note_accepted(&mut self, link: LinkId, head: &Bytes) {
        if self.links.get(link).is_none_or(|link| link.quirks.accept.is_empty()) {
            return;
        }
        for accept in needed(head, &self.policy_of(link)) {
            *match accept {
                Accept::PrimaryWithoutCrc => &mut self.counters.accepted_primary_without_crc,
                Accept::NoTimeNoAge => &mut self.counters.accepted_no_time_no_age,
                Accept::FragmentBlocksNumberedZero => {
                    &mut self.counters.accepted_fragment_blocks_numbered_zero
                }
            } += 1;
        }
    }

    /// Counts and names the faults that would have to be accepted for a refused header. Empty if it would be
    /// refused in any case.
    pub(super) fn would_need(&mut self, link: LinkId, input: &Bytes) -> Vec<&'static str> {
        let needed = needed(input, &self.policy_of(link));
        for accept in &needed {
            *match accept {
                Accept::PrimaryWithoutCrc => &mut self.counters.refused_primary_without_crc,
                Accept::NoTimeNoAge => &mut self.counters.refused_no_time_no_age,
                Accept::FragmentBlocksNumberedZero => {
                    &mut self.counters.refused_fragment_blocks_numbered_zero
                }
            } += 1;
        }
        if let Some(link) = self.links.get_mut(link) {
            link.quirks.would_help.extend(&needed);
        }
        needed.into_iter().map(Accept::name).collect()
    }

    /// Adapts a header to the peer of a link. Returns true if it changed.
    pub(super) fn adapt(&self, link: LinkId, head: &mut AnyHead) -> bool {
        match (self.links.get(link), head) {
            (Some(link), AnyHead::V7(head)) => head.adapt(&link.quirks.emit),
            (Some(link), AnyHead::V6(head)) if link.quirks.ages_in_seconds => head.set_age_in_seconds(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_everyone_holds_for_who_says_no_name() {
        let accept = |node: &str, peer: Option<&str>| {
            let accept = vec![Accept::PrimaryWithoutCrc];
            let peers = vec![PeerRules { node: node.into(), accept, ..PeerRules::default() }];
            let config = Config { peers, ..Config::default() };
            !PeerQuirks::of(&LinkConfig::default(), peer, &config).accept.is_empty()
        };
        assert!(accept("*", None) && accept("*", Some("dtn://a/")));
        assert!(!accept("dtn://*", None) && !accept("dtn://a/", None));
        assert!(accept("dtn://*", Some("dtn://a/")));
    }
}
