//! Stored bundles, and why they wait.

use super::link_states::LinkObservation;
use super::{EngineParts as _, Task};
use crate::clock::clock_time;
use crate::surfaces::message::Reply;
use crate::tower::links::KnownLink;
use crate::tower::radio::frames_there;
use crate::view::{self, Bundle, Filter, Page, State};
use longwire_proto::bp::agent::{BundleStatus, RetentionReason};
use longwire_proto::bp::eid::Eid;
use longwire_proto::service::{BundleName, DownReason, LinkId, ManagementRequest, RecordId};
use longwire_proto::time::{Duration, Instant};
use longwire_towers::Medium;

/// Maximum bundles examined for one answer, so that other events wait no longer than that takes.
const LOOKED_AT_MAX: usize = 1000;
/// Minimum time without bytes of an arriving bundle that is told: pauses of links are shorter.
const SILENCE_MIN: Duration = Duration::from_secs(10);

impl Task {
    /// Returns a page of the list and the position of the next one.
    pub(super) fn bundles(&self, now: Instant, after: Option<&str>, limit: usize, filter: &Filter) -> Reply {
        let Ok(after) = after.map_or(Ok(0), str::parse) else {
            return Reply::error(
                "`after` is not a valid position in the list",
                Some("use the value of `next` from the previous answer"),
            );
        };
        let agent = &self.engines.upper;
        let mut page = Page { total: agent.holds().0 as u64, ..Page::default() };
        for (looked_at, bundle) in agent.bundles_after(now, RecordId(after)).enumerate() {
            if page.bundles.len() >= limit.max(1) || looked_at >= LOOKED_AT_MAX {
                return Reply::Bundles { page };
            }
            page.next = Some(bundle.record.0.to_string());
            let bundle = self.bundle_view(now, &bundle);
            if filter.wants(&bundle) {
                page.bundles.push(bundle);
            }
        }
        page.next = None;
        Reply::Bundles { page }
    }

    pub(super) fn bundle(&self, now: Instant, name: &BundleName) -> Reply {
        let agent = &self.engines.upper;
        let found = agent.bundles_named(now, name);
        if found.is_empty() {
            return if agent.is_ready() { no_bundle(name) } else { is_starting() };
        }
        let bundles: Vec<Bundle> =
            found.iter().take(LOOKED_AT_MAX).map(|bundle| self.bundle_view(now, bundle)).collect();
        Reply::Bundles { page: Page { total: found.len() as u64, bundles, next: None } }
    }

    fn bundle_view(&self, now: Instant, bundle: &BundleStatus) -> Bundle {
        let name = bundle.id.source.bundle_name(bundle.id.timestamp);
        let (state, why) = self.why(now, bundle);
        Bundle {
            id: name.to_string(),
            source: name.source,
            created: name.created,
            fragment: bundle
                .id
                .fragment
                .map(|(offset_bytes, _)| view::Fragment { offset_bytes, total_bytes: bundle.adu_bytes }),
            version: bundle.version.into(),
            wants_custody: bundle.wants_custody,
            custodian: bundle.custodian.as_ref().map(ToString::to_string),
            destination: bundle.destination.to_string(),
            priority: bundle.priority,
            payload_bytes: bundle.payload_bytes,
            safe_bytes: bundle.safe_bytes,
            transmitted_bytes: self.transmitted_bytes(bundle),
            age_s: bundle.age.as_secs_f64(),
            lifetime_left_s: bundle.lifetime_left.as_secs_f64(),
            arrived_over: bundle.arrived_over.map(|link| self.engines.neighbours().links.name(link)),
            refusals: bundle.refusals,
            signature: bundle.signature.as_ref().map(view::Signature::from),
            state,
            why,
        }
    }

    /// Payload bytes transmitted to the next hop, as far as known: over AX25-CL by the frames that the other station has
    /// acknowledged; over other links over TNCs and over datagrams, of which few wait below, the bytes that were passed to the link and
    /// do not wait there for their turn; over TCP, where the kernel queues many bytes, the bytes that the next hop has acknowledged.
    fn transmitted_bytes(&self, bundle: &BundleStatus) -> u64 {
        let RetentionReason::OnTheWay(link) = bundle.why else { return bundle.safe_bytes };
        let neighbours = self.engines.neighbours();
        let shown = neighbours.shown(link);
        // Of what waits in the session for its turn, the bytes that were passed to it last are the last to leave.
        let unsent = || {
            let number = |name| shown.as_ref().and_then(|session| session.number(name)).unwrap_or_default();
            (number("bytes_unsent") + number("bytes_waiting")).saturating_sub(bundle.handed_after_bytes)
        };
        let gone = match shown.as_ref().and_then(frames_there) {
            Some((there, all)) => {
                let share = u128::from(bundle.payload_bytes) * u128::from(there.min(all));
                (share / u128::from(all.max(1))) as u64
            }
            None if neighbours.radios.owns(link) || self.goes_in_datagrams(link) => {
                bundle.handed_bytes.saturating_sub(unsent())
            }
            None => 0,
        };
        gone.clamp(bundle.safe_bytes, bundle.payload_bytes.max(bundle.safe_bytes))
    }

    /// True if the convergence layer of a link never uses TCP.
    fn goes_in_datagrams(&self, link: LinkId) -> bool {
        let carrier = self.engines.neighbours().carrier(link);
        carrier.is_some_and(|about| !about.media.contains(&Medium::Tcp))
    }

    /// Reason why a bundle is still stored, as text.
    fn why(&self, now: Instant, bundle: &BundleStatus) -> (State, String) {
        let names = |ids: &[LinkId]| {
            let links = &self.engines.neighbours().links;
            ids.iter().map(|id| format!("`{}`", links.name(*id))).collect::<Vec<_>>().join(", ")
        };
        match &bundle.why {
            RetentionReason::Arriving { heard } => {
                let silence = heard.map(|heard| now.saturating_since(heard));
                (State::Arriving, being_received(silence.unwrap_or_default()))
            }
            RetentionReason::Storing => (State::Storing, "being written to the store".into()),
            RetentionReason::Checking => (State::Checking, "its signature is being verified".into()),
            RetentionReason::WithoutKey(failure) => (
                State::WithoutKey,
                format!("accepted with earlier keys; waits for its key, because {failure}"),
            ),
            RetentionReason::NoRoute => match self.neighbour_that_is_down(&bundle.destination) {
                Some(words) => (State::LinksDown, words),
                None => {
                    let words = "no route to the destination, and it is not a connected neighbour";
                    (State::NoRoute, format!("{words}{}", self.links_that_might_lead_there()))
                }
            },
            RetentionReason::Encrypted { link } => {
                (State::Encrypted, format!("encrypted; link {} is amateur radio", names(&[*link])))
            }
            RetentionReason::LinksDown(ids) => {
                (State::LinksDown, format!("every usable link is down: {}", names(ids)))
            }
            RetentionReason::NoContact { link, next_dtn_ms: None } => {
                (State::NoContact, format!("no further contact planned for link {}", names(&[*link])))
            }
            RetentionReason::NoContact { link, next_dtn_ms: Some(next) } => {
                let dtn_ms = self.clock.dtn_ms().unwrap_or(0);
                let wait = next.saturating_sub(dtn_ms) / 1000;
                let words = format!(
                    "waiting for the contact over link {} at {}, in {wait} s",
                    names(&[*link]),
                    clock_time(*next, dtn_ms)
                );
                (State::NoContact, words)
            }
            RetentionReason::ExpectedContact { node, wait } => {
                let words = format!("waiting for {node}, expected in {}", in_words(*wait));
                (State::NoContact, words)
            }
            RetentionReason::Queued(link) => (State::Queued, format!("queued for link {}", names(&[*link]))),
            RetentionReason::OnTheWay(link) => {
                (State::OnTheWay, format!("being sent over link {}", names(&[*link])))
            }
            RetentionReason::BetterHop { until } => {
                let wait = until.saturating_since(now).as_secs();
                let words = format!("the preferred link is down; the next one is used in {wait} s");
                (State::BetterHop, words)
            }
            RetentionReason::Spread { given, copies: Some(1) } => {
                (State::Spread, format!("{given} nodes have a copy; the last copy waits for the destination"))
            }
            RetentionReason::Spread { given, copies } => {
                let more = copies.map_or(String::new(), |copies| format!(", {copies} copies left"));
                let words = format!("{given} nodes have a copy{more}; waiting for a node without one");
                (State::Spread, words)
            }
            RetentionReason::Resting(until) => {
                let wait = until.saturating_since(now).as_secs();
                let words = format!("the next hop had no space; retrying in {wait} s");
                (State::Resting, words)
            }
            RetentionReason::InCustody { of, until } => {
                let wait = until.saturating_since(now).as_secs();
                let to = of.as_ref().map_or(String::new(), |node| format!(" sent to {node};"));
                let words = format!("in custody:{to} waiting for a custody signal, resending in {wait} s");
                (State::InCustody, words)
            }
            RetentionReason::InParts { have, of } => {
                (State::InParts, format!("for this node: {have} of {of} bytes received"))
            }
            RetentionReason::NobodyRegistered(_) => {
                (State::NobodyRegistered, "for this node: no application has registered the endpoint".into())
            }
            RetentionReason::NotTaken(_) => {
                (State::NotTaken, "for this node: the application has not taken it".into())
            }
        }
    }

    /// Message that the link to the node of this destination is down, with the reason, or is not up yet. It is the link over which
    /// that neighbour was last connected, or the one that is configured for it.
    fn neighbour_that_is_down(&self, destination: &Eid) -> Option<String> {
        let node = destination.node_id().to_string();
        let links = &self.engines.neighbours().links;
        let configured = |id: LinkId| {
            let peer = links.get(id).and_then(|known| known.link.peer.clone());
            peer.is_some_and(|peer| peer.parse::<Eid>().is_ok_and(|peer| peer.to_string() == node))
        };
        let is_opening = |id: LinkId| {
            let seen = self.link_states.seen.get(&id);
            seen.is_none_or(|seen| !seen.up && seen.down.is_none_or(|down| down == DownReason::Idle))
        };
        let mut found = links.iter().filter(|(id, known)| known.link.found && configured(*id));
        if let Some((id, _)) = found.find(|(id, _)| is_opening(*id)) {
            return Some(format!("link `{}` to {node} is opening", links.name(id)));
        }
        // The first attempt of a link has neither succeeded nor failed yet.
        let is_first = |id: LinkId| !self.link_states.seen.contains_key(&id);
        if let Some((id, _)) = links.iter().find(|(id, _)| configured(*id) && is_first(*id)) {
            let radio = self.engines.neighbours().radios.link_view(id, &self.configuration.config.tnc);
            let state = radio.map(|radio| format!(": {}", radio.state)).unwrap_or_default();
            return Some(format!("link `{}` to {node} is being established{state}", links.name(id)));
        }
        let led_there =
            |id: &LinkId, seen: &LinkObservation| seen.led_to.as_ref() == Some(&node) || configured(*id);
        let (id, seen) = self.link_states.seen.iter().find(|(id, seen)| !seen.up && led_there(id, seen))?;
        let why = seen.down.map_or("", |down| self.down_words(*id, down).1);
        Some(format!("link `{}` to {node} is down: {why}", links.name(*id)))
    }

    /// Links whose neighbour is still unknown, as text.
    fn links_that_might_lead_there(&self) -> String {
        /// Maximum number of links named.
        const NAMED_MAX: usize = 3;
        let links = &self.engines.neighbours().links;
        let unknown = |(id, known): &(LinkId, &KnownLink)| {
            let seen = self.link_states.seen.get(id);
            known.link.peer.is_none() && seen.is_none_or(|seen| !seen.up && seen.led_to.is_none())
        };
        let names = links.iter().filter(unknown).map(|(id, _)| format!("`{}`", links.name(id)));
        let mut names: Vec<String> = names.take(NAMED_MAX + 1).collect();
        if names.len() > NAMED_MAX {
            names[NAMED_MAX] = "others".to_owned();
        }
        match names.split_last() {
            None => String::new(),
            Some((only, [])) => format!("; link {only} has not connected yet and may lead there"),
            Some((last, rest)) => {
                format!("; links {} and {last} have not connected yet and may lead there", rest.join(", "))
            }
        }
    }

    pub(super) fn delete(&mut self, now: Instant, name: &BundleName) -> Reply {
        if !self.engines.upper.is_ready() {
            return is_starting();
        }
        let before = self.engines.upper.counters().deleted_cancelled;
        self.ask(now, ManagementRequest::Delete(name.clone()));
        if self.engines.upper.counters().deleted_cancelled > before {
            return Reply::Done;
        }
        no_bundle(name)
    }
}

/// Describes an arriving bundle of which nothing has come for this time.
fn being_received(silence: Duration) -> String {
    if silence < SILENCE_MIN {
        return "being received".to_owned();
    }
    format!("being received; no further bytes in order for {}", in_words(silence))
}

/// A time in the largest unit of which there are two or more.
fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds if seconds < 7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

fn is_starting() -> Reply {
    Reply::Error {
        what: "the node is still reading its store".to_owned(),
        hint: Some("try again; `longwire status` says when it is ready".to_owned()),
        is_temporary: true,
    }
}

fn no_bundle(name: &BundleName) -> Reply {
    Reply::error(
        format!("no such bundle: {name}"),
        Some("it may have been delivered or forwarded; list bundles with `longwire bundles`"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arriving_bundle_says_for_how_long_nothing_has_come() {
        let words = |seconds| being_received(Duration::from_secs(seconds));
        assert_eq!([words(0), words(9)], ["being received", "being received"]);
        for (seconds, time) in [(10, "10 s"), (119, "119 s"), (120, "2 min"), (754, "12 min"), (7_200, "2 h")]
        {
            assert_eq!(words(seconds), format!("being received; no further bytes in order for {time}"));
        }
    }
}
