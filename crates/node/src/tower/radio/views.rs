//! Links over TNCs, described for operators.

use super::controller::TncEngine;
use super::{Radios, TncId};
use crate::config::TncSettings;
use crate::view;
use longwire_proto::ax25::{LinkPhase, LinkStatus, Modulo, Station};
use longwire_proto::observe::Part;
use longwire_proto::service::LinkId;
use longwire_proto::time::Instant;

/// Frames that the peer has of the bundles being sent, and their total number of frames.
pub(crate) type Sending = Option<(u64, u64)>;

impl Radios {
    /// Describes a link; `None` if it uses no TNC.
    pub(crate) fn link_view(&self, id: LinkId, tncs: &[TncSettings]) -> Option<view::Radio> {
        let (TncId(at), own) = self.owners.get(&id).copied()?;
        let (radio, tnc) = (self.radios.get(at)?, tncs.get(at)?);
        let (sessions, station, controller) = (radio.sessions(), radio.station(), radio.controller());
        let session = sessions.shown(own).unwrap_or_default();
        let link = sessions.connection_of(own);
        let standing = station.standing(link);
        let sending = frames_there(&session);
        let short_of_air = waits_to_transmit(station);
        let waits = || controller.waits().then_some("waiting for a clear channel");
        let state = match (controller.line().is_open(), session.text("words")) {
            (false, _) => {
                "TNC disconnected; waiting bundles are kept and sending resumes when it is back".to_owned()
            }
            (true, None) if station.is_inhibited() && standing.is_some_and(|standing| standing.wants_air) => {
                short_of_air.unwrap_or_default().to_owned()
            }
            (true, Some(words)) => short_of_air.unwrap_or(words).to_owned(),
            (true, None) => {
                let detached = session.flag("detached");
                state_words(standing, sending, detached, short_of_air.or_else(waits))
            }
        };
        let way = station.way_to(link);
        let peer = way.map(|(peer, _)| peer.to_string());
        let via = way.map(|(_, path)| path.iter().map(ToString::to_string).collect()).unwrap_or_default();
        let standing_counts = station.link_counters(link).map(view::counts).unwrap_or_default();
        Some(view::Radio {
            tnc: tnc.name.clone(),
            callsign: tnc.callsign.to_ascii_uppercase(),
            peer: peer.or_else(|| session.text("caller").map(str::to_owned)).unwrap_or_default(),
            via,
            convergence: sessions.carrier(own).map_or("", |about| about.name).to_owned(),
            state,
            retries: standing.map_or(0, |standing| standing.tries.0.into()),
            retries_max: standing.map_or(0, |standing| standing.tries.1.into()),
            frames_in_flight: standing.map_or(0, |standing| standing.frames.0 as u64),
            window_frames: standing.map_or(0, |standing| standing.frames.1.into()),
            modulo: standing.map_or(0, |standing| if standing.modulo == Modulo::Eight { 8 } else { 128 }),
            frames_acknowledged: sending.map(|(there, _)| there),
            frames_in_all: session.number("frames_in_all"),
            members: session.number("members").unwrap_or(0),
            members_that_have_it: session.number("members_that_have_it").unwrap_or(0),
            link: standing_counts,
        })
    }

    /// Describes the stations that all TNCs have heard, those heard last first.
    pub(crate) fn heard_views(&self, now: Instant, tncs: &[TncSettings]) -> Vec<view::HeardStation> {
        let of_tnc = |(radio, tnc): (&super::TncSessions, &TncSettings)| {
            let name = tnc.name.clone();
            let heard = radio.station().heard().map(move |(callsign, heard, link)| view::HeardStation {
                callsign: callsign.to_string(),
                tnc: name.clone(),
                first_s: now.saturating_since(heard.first).as_secs_f64(),
                last_s: now.saturating_since(heard.last).as_secs_f64(),
                frames: heard.frames,
                via: heard.via.map(|via| via.to_string()),
                text: heard.text.clone(),
                link: link.map(view::counts).unwrap_or_default(),
            });
            heard.collect::<Vec<_>>()
        };
        let mut stations: Vec<_> = self.radios.iter().zip(tncs).flat_map(of_tnc).collect();
        stations.sort_by(|one, other| one.last_s.total_cmp(&other.last_s));
        stations
    }

    /// Inhibits or permits the transmissions of a TNC.
    pub(crate) fn inhibit(&mut self, TncId(at): TncId, inhibited: bool) {
        self.radios[at].station_mut().inhibit(inhibited);
        self.wake(TncId(at));
    }

    /// Makes stations that have transmitted since their last identification identify themselves.
    pub(crate) fn identify_at_end(&mut self) {
        for at in 0..self.radios.len() {
            self.radios[at].station_mut().end_communication();
            self.wake(TncId(at));
        }
    }

    /// Returns true while a station must identify itself, or its controller has frames that it may transmit.
    pub(crate) fn must_identify(&self) -> bool {
        self.radios.iter().any(|radio| {
            let (station, controller) = (radio.station(), radio.controller());
            let may = controller.line().is_open() && !station.is_inhibited();
            may && station.must_identify(controller.held())
        })
    }

    /// Returns the controller of a TNC.
    pub(crate) fn controller(&self, TncId(at): TncId) -> &TncEngine {
        self.radios[at].controller()
    }

    /// Describes the latest transmissions on the channels of all TNCs, the latest of each TNC first.
    pub(crate) fn transmission_views(&self, now: Instant, tncs: &[TncSettings]) -> Vec<view::Transmission> {
        let pairs = self.radios.iter().zip(tncs);
        pairs.flat_map(|(radio, tnc)| radio.channel_log().views(now, &tnc.name)).collect()
    }

    /// Describes all TNCs.
    pub(crate) fn tnc_views(&self, tncs: &[TncSettings]) -> Vec<view::Tnc> {
        let view = |(at, (radio, tnc)): (usize, (&super::TncSessions, &TncSettings))| {
            let (station, controller) = (radio.station(), radio.controller());
            let up = controller.line().is_open();
            let why = controller.why_down().filter(|_| !up).map(str::to_owned);
            let mut counters = controller.counts();
            counters.extend(view::counts(&station.counters()));
            let drops = view::counts(&station.drops());
            counters.extend(drops.into_iter().map(|(name, count)| (format!("dropped_{name}"), count)));
            let air_time = station.air_time();
            counters.insert("air_time_ms".into(), air_time.total.as_millis() as u64);
            counters.insert("air_time_waits".into(), air_time.waits);
            let announced = station.announcement_counts();
            counters.insert("identifications_sent".into(), announced.identifications_sent);
            counters.insert("beacons_sent".into(), announced.beacons_sent);
            counters.insert("callers_turned_away".into(), radio.sessions().turned_away);
            view::Tnc {
                name: tnc.name.clone(),
                address: self.place(TncId(at)).to_string(),
                callsign: tnc.callsign.to_ascii_uppercase(),
                up,
                why_down: why,
                inhibited: station.is_inhibited(),
                attempts_failed: controller.line().failures().into(),
                acknowledges: controller.acknowledges(),
                frames_waiting: controller.held() as u64,
                stations_heard: station.heard().count() as u64,
                counters,
            }
        };
        self.radios.iter().zip(tncs).enumerate().map(view).collect()
    }
}

/// Reason why a station transmits nothing at present although it may have something to send.
fn waits_to_transmit(station: &Station) -> Option<&'static str> {
    let air_time = station.air_time();
    if station.is_inhibited() {
        Some("waiting: transmission is inhibited")
    } else if air_time.waiting {
        Some("waiting: `air-time-max` is used up")
    } else {
        air_time.waiting_for_duty_cycle.then_some("waiting: `duty-cycle-max` is reached")
    }
}

/// Returns what a session shows of frames.
pub(crate) fn frames_there(session: &Part) -> Sending {
    session.number("frames_acknowledged").zip(session.number("frames_in_all"))
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
