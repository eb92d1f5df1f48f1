//! Links over TNCs, described for operators.

use super::controller::TncEngine;
use super::{Radios, TncId};
use crate::config::TncSettings;
use crate::view::{self, Counts};
use longwire_proto::ax25::{LinkPhase, LinkStatus, Modulo};
use longwire_proto::service::LinkId;
use longwire_proto::uicl::{Group, GroupProgress};

/// Frames that the peer has of the bundles being sent, and their total number of frames.
pub(crate) type Sending = Option<(u64, u64)>;

impl Radios {
    /// Returns the number of frames that the peer has of the bundles being sent, and their total number of frames; `None` if
    /// nothing is being sent or the progress is unknown.
    pub(crate) fn frames_there(&self, id: LinkId) -> Sending {
        let (TncId(at), own) = self.owners.get(&id).copied()?;
        let session = self.radios.get(at)?.tower.upper.ours.session(own)?;
        let (gone, all) = session.under_way()?;
        let frame = session.frame_bytes() as u64;
        let on_the_way = session.unacknowledged() as u64;
        (frame > 0).then(|| (gone.div_ceil(frame).saturating_sub(on_the_way), all.div_ceil(frame)))
    }

    /// Returns true for a link that uses AX25-CL.
    pub(crate) fn is_longwires(&self, id: LinkId) -> bool {
        let Some((TncId(at), own)) = self.owners.get(&id).copied() else { return false };
        self.radios.get(at).is_some_and(|radio| radio.tower.upper.ours.session(own).is_some())
    }

    /// Describes a link; `None` if it uses no TNC.
    pub(crate) fn link_view(&self, id: LinkId, tncs: &[TncSettings]) -> Option<view::Radio> {
        let (TncId(at), own) = self.owners.get(&id).copied()?;
        let (radio, tnc) = (self.radios.get(at)?, tncs.get(at)?);
        let (convergence, lower) = (&radio.tower.upper, &radio.tower.lower);
        let session = convergence.ours.session(own);
        let link = convergence.ours.link_of(own).unwrap_or(own);
        let station = &lower.upper;
        let standing = station.standing(link);
        let sending = self.frames_there(id);
        let detached = session.is_some_and(|session| session.is_detached());
        let group = convergence.groups.get(own);
        let progress = group.and_then(Group::progress);
        let short_of_air = station.air_time().waiting.then_some("waiting: `air-time-max` is used up");
        let waits = || lower.lower.waits().then_some("waiting for a clear channel");
        let state = match (lower.lower.line().is_open(), group) {
            (false, _) => {
                "TNC disconnected; waiting bundles are kept and sending resumes when it is back".to_owned()
            }
            (true, Some(group)) => short_of_air.map_or_else(|| group_words(group), str::to_owned),
            (true, None) => state_words(standing, sending, detached, short_of_air.or_else(waits)),
        };
        let way = station.way_to(link);
        let peer = way.map(|(peer, _)| peer.to_string());
        let via = way.map(|(_, path)| path.iter().map(ToString::to_string).collect()).unwrap_or_default();
        let standing_counts = station.link_counters(link).map(view::counts).unwrap_or_default();
        Some(view::Radio {
            tnc: tnc.name.clone(),
            callsign: tnc.callsign.to_ascii_uppercase(),
            peer: peer.or_else(|| convergence.ours.caller(own).map(str::to_owned)).unwrap_or_default(),
            via,
            convergence: convergence.layer(own).unwrap_or_default().to_owned(),
            state,
            retries: standing.map_or(0, |standing| standing.tries.0.into()),
            retries_max: standing.map_or(0, |standing| standing.tries.1.into()),
            frames_in_flight: standing.map_or(0, |standing| standing.frames.0 as u64),
            window_frames: standing.map_or(0, |standing| standing.frames.1.into()),
            modulo: standing.map_or(0, |standing| if standing.modulo == Modulo::Eight { 8 } else { 128 }),
            frames_acknowledged: sending.map(|(there, _)| there),
            frames_in_all: sending.map(|(_, all)| all).or(progress.map(|bundle| bundle.segments.into())),
            members: progress.map_or(0, |bundle| bundle.members as u64),
            members_that_have_it: progress.map_or(0, |bundle| bundle.have_it as u64),
            link: standing_counts,
        })
    }

    /// Returns the counters of a link's session.
    pub(crate) fn counts(&self, id: LinkId) -> Option<Counts> {
        let (TncId(at), own) = self.owners.get(&id).copied()?;
        let convergence = &self.radios.get(at)?.tower.upper;
        match convergence.cm.get(own) {
            Some(session) => Some(view::counts(session.upper.counters())),
            None => match convergence.groups.get(own) {
                Some(group) => Some(view::counts(group.counters())),
                None => convergence.ours.counters(own).map(view::counts),
            },
        }
    }

    /// Returns the TCPCL version of a link.
    pub(crate) fn version(&self, id: LinkId) -> Option<u8> {
        let (TncId(at), own) = self.owners.get(&id).copied()?;
        let session = self.radios.get(at)?.tower.upper.cm.get(own)?;
        session.upper.version().map(|version| version.number())
    }

    /// Returns the controller of a TNC.
    pub(crate) fn controller(&self, TncId(at): TncId) -> &TncEngine {
        &self.radios[at].tower.lower.lower
    }

    /// Describes all TNCs.
    pub(crate) fn tnc_views(&self, tncs: &[TncSettings]) -> Vec<view::Tnc> {
        let view = |(at, (radio, tnc)): (usize, (&super::TncSessions, &TncSettings))| {
            let (station, controller) = (&radio.tower.lower.upper, &radio.tower.lower.lower);
            let up = controller.line().is_open();
            let why = controller.why_down().filter(|_| !up).map(str::to_owned);
            let mut counters = controller.counts();
            counters.extend(view::counts(&station.counters()));
            let drops = view::counts(&station.drops());
            counters.extend(drops.into_iter().map(|(name, count)| (format!("dropped_{name}"), count)));
            let air_time = station.air_time();
            counters.insert("air_time_ms".into(), air_time.total.as_millis() as u64);
            counters.insert("air_time_waits".into(), air_time.waits);
            counters.insert("callers_turned_away".into(), radio.tower.upper.turned_away);
            view::Tnc {
                name: tnc.name.clone(),
                address: self.place(TncId(at)).to_string(),
                callsign: tnc.callsign.to_ascii_uppercase(),
                up,
                why_down: why,
                attempts_failed: controller.line().failures().into(),
                acknowledges: controller.acknowledges(),
                frames_waiting: controller.held() as u64,
                counters,
            }
        };
        self.radios.iter().zip(tncs).enumerate().map(view).collect()
    }
}

/// Describes the state of a group.
fn group_words(group: &Group) -> String {
    let Some(GroupProgress { round, segments, to_send, members, have_it }) = group.progress() else {
        return if group.is_up() { "listening" } else { "not joined" }.to_owned();
    };
    let what = match (to_send, round) {
        (0, _) => "asking members for missing segments".to_owned(),
        (_, 0) => format!("sending {} of {segments} frames", segments - to_send),
        (_, round) => format!("resending {to_send} of {segments} frames (round {round})"),
    };
    match members {
        0 => what,
        members => format!("{what}; {have_it} of {members} members have the bundle"),
    }
}

/// Describes the state of a link.
fn state_words(
    standing: Option<LinkStatus>,
    sending: Sending,
    detached: bool,
    waits: Option<&str>,
) -> String {
    let Some(LinkStatus { phase, tries: (tries, most), wants_air, frames, .. }) = standing else {
        return match detached {
            true => "link lost; resumes where it stopped when it is back".to_owned(),
            false => "no link".to_owned(),
        };
    };
    let retry = |words: &str| match tries {
        0 => words.to_owned(),
        tries => format!("{words}, retry {tries} of {most}"),
    };
    match phase {
        LinkPhase::Connecting => retry("calling"),
        LinkPhase::Disconnecting => retry("ending"),
        LinkPhase::Connected if tries > 0 => retry("no answer"),
        LinkPhase::Connected => match (waits.filter(|_| wants_air || frames.0 > 0), sending) {
            (Some(waits), _) => waits.to_owned(),
            (None, Some((there, all))) => format!("sending {there} of {all} frames"),
            (None, None) => "connected".to_owned(),
        },
    }
}
