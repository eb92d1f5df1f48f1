//! Contacts: the times at which a link can be used, as planned by the operator.
//!
//! ```toml
//! [[contact]]
//! to = "orbiter"                     # a [[link]], or the node ID of its peer
//! start = 2026-11-21T12:30:00Z       # or after = "10 min", from the start of the node
//! lasts = "8 min"
//! every = "95 min"                   # repeats; once if not set
//! until = 2026-12-24T00:00:00Z       # no contact begins at this time or later
//! rate-bps = 9600
//! delay = "1300 ms"                  # one way
//! ```
//!
//! Every node may have the same plan: a contact `from` another node is ignored. A link without contacts can be used at all
//! times.

use crate::config::{Config, LinkSettings};
use longwire_proto::bp::Eid;
use longwire_proto::service::Contact;
use longwire_proto::time::Duration;
use longwire_settings::error::Error;
use serde::{Deserialize, Serialize};
use toml::value::{Datetime, Offset};

/// Number of future windows of each contact that the agent gets in advance; later windows follow as time passes.
const WINDOWS_AHEAD: usize = 8;
/// Maximum number of contacts in the plan.
const CONTACTS_MAX: usize = 4096;

/// Window, or series of windows, in which a link can be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PlannedContact {
    /// Node ID of the sending node. Default: this node. Contacts of other nodes are ignored.
    pub from: Option<String>,
    /// Name of the link, or node ID of its peer.
    pub to: String,
    /// Start: date and time in TOML, with `Z` or an offset (RFC 3339). Default: `after` the start of the node.
    pub start: Option<Datetime>,
    /// Start relative to the start of the node, without `start`. Default zero.
    pub after: Duration,
    /// Duration. No default.
    pub lasts: Duration,
    /// Interval between the starts of repeated windows; zero for a single window. Default zero.
    pub every: Duration,
    /// End of the series, in UTC: no window starts at this time or later. Default: none.
    pub until: Option<Datetime>,
    /// Rate during the contact, bit/s, for fitting bundles into the rest of it; zero for the rate of the link. Default zero.
    pub rate_bps: u64,
    /// One-way delay. Data that is unacknowledged when the window ends is resent, so no transfer begins whose
    /// acknowledgement cannot arrive before. Default zero.
    pub delay: Duration,
}

/// Converts a date and time to DTN milliseconds; `None` if a part is missing or the time is before the year 2000.
pub(super) fn dtn_ms(at: &Datetime) -> Option<u64> {
    let (date, clock, offset) = (at.date?, at.time?, at.offset?);
    let month = time::Month::try_from(date.month).ok()?;
    let date = time::Date::from_calendar_date(i32::from(date.year), month, date.day).ok()?;
    // DTN time does not count leap seconds (RFC 9171 4.2.6), so a leap second is mapped to the second before it.
    let second = clock.second.unwrap_or(0).min(59);
    let milli = u16::try_from(clock.nanosecond.unwrap_or(0) / 1_000_000).ok()?;
    let clock = time::Time::from_hms_milli(clock.hour, clock.minute, second, milli).ok()?;
    let minutes = match offset {
        Offset::Z => 0,
        Offset::Custom { minutes } => i64::from(minutes),
    };
    let unix_ms = date.with_time(clock).assume_utc().unix_timestamp_nanos() / 1_000_000;
    let dtn_ms = unix_ms - i128::from(minutes) * 60_000 - i128::from(crate::clock::DTN_EPOCH_MS);
    u64::try_from(dtn_ms).ok()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl PlannedContact {
    /// Returns true if the contact is for this link of this node.
    pub(crate) fn concerns(&self, config: &Config, link: &LinkSettings) -> bool {
        let id = |text: &str| text.parse::<Eid>().or_else(|_| format!("{text}/").parse()).ok();
        let ours = self.from.as_deref().is_none_or(|from| id(from) == config.node_id().ok());
        let peer = link.peer.as_deref().and_then(id);
        ours && (self.to == link.name || (peer.is_some() && id(&self.to) == peer))
    }

    /// Returns the first windows that are not over; if all are over, the first of the series.
    fn windows(&self, started_dtn_ms: u64, now_dtn_ms: u64) -> Vec<Contact> {
        let first = match &self.start {
            None => started_dtn_ms.saturating_add(millis(self.after)),
            Some(at) => dtn_ms(at).unwrap_or(0),
        };
        let (lasts, every) = (millis(self.lasts), millis(self.every));
        let last = self.until.as_ref().and_then(dtn_ms).unwrap_or(u64::MAX);
        let window = |number: u64| {
            let start_dtn_ms = first.saturating_add(every.saturating_mul(number));
            let (end_dtn_ms, delay_ms) = (start_dtn_ms.saturating_add(lasts), millis(self.delay));
            Contact { start_dtn_ms, end_dtn_ms, rate_bps: self.rate_bps, delay_ms }
        };
        let over = now_dtn_ms.saturating_sub(first.saturating_add(lasts)).checked_div(every).unwrap_or(0);
        let count = if every == 0 { 1 } else { WINDOWS_AHEAD as u64 };
        let series = (over..over.saturating_add(count)).map(window);
        let series: Vec<Contact> = series.take_while(|contact| contact.start_dtn_ms < last).collect();
        // An expired plan remains a plan: the link must not become usable at all times.
        if series.is_empty() { vec![window(0)] } else { series }
    }

    /// Describes the contact for an operator.
    pub(crate) fn explain(&self) -> String {
        let start = match &self.start {
            None => format!("starting {} s after startup", self.after.as_secs_f64()),
            Some(at) => format!("starting at {at}"),
        };
        let again = match (self.every.is_zero(), &self.until) {
            (true, _) => String::new(),
            (false, None) => format!(", repeated every {} s", self.every.as_secs_f64()),
            (false, Some(until)) => format!(", repeated every {} s until {until}", self.every.as_secs_f64()),
        };
        let rate = match self.rate_bps {
            0 => String::new(),
            rate => format!(", at {rate} bit/s"),
        };
        format!(
            "Contact with {} {start}, for {} s{again}{rate}, one-way delay {} ms.",
            self.to,
            self.lasts.as_secs_f64(),
            self.delay.as_millis()
        )
    }
}

impl Config {
    /// Returns the windows of a link; `None` for a link that can be used at all times.
    pub(crate) fn windows(
        &self,
        link: &LinkSettings,
        started_dtn_ms: u64,
        now_dtn_ms: u64,
    ) -> Option<Vec<Contact>> {
        let planned = self.contact.iter().filter(|planned| planned.concerns(self, link));
        let mut windows: Vec<Contact> =
            planned.flat_map(|planned| planned.windows(started_dtn_ms, now_dtn_ms)).collect();
        windows.sort_by_key(|contact| contact.start_dtn_ms);
        // Where two windows overlap, the earlier one keeps its end.
        let mut apart: Vec<Contact> = Vec::with_capacity(windows.len());
        for mut contact in windows {
            if let Some(before) = apart.last() {
                contact.start_dtn_ms = contact.start_dtn_ms.max(before.end_dtn_ms);
            }
            if contact.start_dtn_ms < contact.end_dtn_ms {
                apart.push(contact);
            }
        }
        (!apart.is_empty()).then_some(apart)
    }

    pub(crate) fn is_planned(&self, link: &LinkSettings) -> bool {
        self.contact.iter().any(|planned| planned.concerns(self, link))
    }

    pub(crate) fn check_contacts(&self) -> Result<(), Error> {
        if self.contact.len() > CONTACTS_MAX {
            return Err(Error::new(format!("more than {CONTACTS_MAX} contacts"))
                .hint("use `every` for repeated contacts"));
        }
        for planned in &self.contact {
            let place = format!("contact with `{}`", planned.to);
            self.check_contact(planned).map_err(|error| error.within(place))?;
        }
        Ok(())
    }

    fn check_contact(&self, planned: &PlannedContact) -> Result<(), Error> {
        let wrong = |what: &str, hint: &str| Err(Error::new(what).hint(hint));
        let is_time = |at: &Datetime| dtn_ms(at).is_some();
        if planned.lasts.is_zero() {
            return wrong("`lasts` is missing", "set it, for example lasts = \"10 min\"");
        }
        if !planned.every.is_zero() && planned.every < planned.lasts {
            return wrong(
                "`every` is shorter than `lasts`",
                "remove the contact; without one the link is always available",
            );
        }
        if planned.start.is_some() && !planned.after.is_zero() {
            return wrong("both `start` and `after` are set", "remove one");
        }
        if planned.start.iter().chain(&planned.until).any(|at| !is_time(at)) {
            let hint = "use a form such as start = 2026-11-21T12:30:00Z, with Z for UTC, without quotes";
            return wrong("`start` or `until` is not a valid time", hint);
        }
        let ours = PlannedContact { from: None, ..planned.clone() };
        let known = self.link.iter().any(|link| ours.concerns(self, link));
        if planned.from.is_none() && !known {
            return wrong("no such link", "use the name of a [[link]] or its `peer`");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn config(contacts: &str) -> Result<Config, Error> {
        let links = "[[link]]\nname = 'bob'\naddress = 'bob:4556'\npeer = 'dtn://bob/'\n";
        Config::parse(&format!("node = 'dtn://a/'\n{links}{contacts}"), "node.toml", Path::new("/"))
    }

    fn starts(config: &Config, now_dtn_ms: u64) -> Option<Vec<(u64, u64)>> {
        let windows = config.windows(&config.link[0], 1000, now_dtn_ms)?;
        Some(windows.iter().map(|contact| (contact.start_dtn_ms, contact.end_dtn_ms)).collect())
    }

    #[test]
    fn times_are_utc_and_offsets_count() {
        let at = |text: &str| dtn_ms(&text.parse().expect("a date and time"));
        assert_eq!(at("2000-01-01T00:00:00Z"), Some(0));
        assert_eq!(at("2000-01-01T01:00:00+01:00"), Some(0));
        assert_eq!(at("2026-11-21T12:30:00.250Z"), Some(848_579_400_250));
        assert_eq!(at("1999-12-31T23:59:59Z"), None);
        assert_eq!(at("2026-11-21T12:30:00"), None, "a local time is ambiguous");
    }

    #[test]
    fn windows_come_again_and_the_next_ones_are_told() {
        let each =
            config("[[contact]]\nto = 'bob'\nafter = '10 s'\nlasts = '5 s'\nevery = '1 min'").expect("fine");
        let from = |number: u64| (11_000 + 60_000 * number, 16_000 + 60_000 * number);
        assert_eq!(starts(&each, 0), Some((0..8).map(from).collect()));
        assert_eq!(
            starts(&each, 16_001).expect("a plan")[0],
            from(0),
            "the one that is over may stay a while"
        );
        assert_eq!(starts(&each, 76_000).expect("a plan")[0], from(1));
        assert_eq!(starts(&each, 600_000).expect("a plan")[0], from(9));
    }

    #[test]
    fn a_plan_that_is_over_is_not_the_same_as_none() {
        let once = config("[[contact]]\nto = 'dtn://bob/'\nafter = '10 s'\nlasts = '5 s'").expect("fine");
        assert_eq!(starts(&once, 1_000_000), Some(vec![(11_000, 16_000)]));
        assert_eq!(starts(&config("").expect("fine"), 0), None);
        let others = "[[contact]]\nfrom = 'dtn://z/'\nto = 'dtn://y/'\nlasts = '1 h'";
        assert_eq!(starts(&config(others).expect("a shared plan"), 0), None);
    }

    #[test]
    fn windows_never_overlap() {
        let two =
            "[[contact]]\nto = 'bob'\nlasts = '10 s'\n[[contact]]\nto = 'bob'\nafter = '5 s'\nlasts = '10 s'";
        assert_eq!(starts(&config(two).expect("fine"), 0), Some(vec![(1000, 11_000), (11_000, 16_000)]));
    }

    #[test]
    fn contacts_that_make_no_sense_are_refused() {
        for (text, what) in [
            ("to = 'bob'", "`lasts` is missing"),
            ("to = 'carol'\nlasts = '1 s'", "contact with `carol`: no such link"),
            ("to = 'bob'\nlasts = '1 min'\nevery = '1 s'", "`every` is shorter"),
            ("to = 'bob'\nlasts = '1 min'\nstart = 2026-11-21T12:30:00", "is not a valid time"),
            ("to = 'bob'\nlasts = '1 min'\nstarts = 1", "unknown field `starts`"),
        ] {
            let said = config(&format!("[[contact]]\n{text}")).expect_err(text).to_string();
            assert!(said.contains(what), "{text}: {said}");
        }
    }

    #[test]
    fn a_contact_is_explained() {
        let text = "[[contact]]\nto = 'bob'\nstart = 2026-11-21T12:30:00Z\nlasts = '8 min'\nevery = '95 min'\n\
                    rate-bps = 9600\ndelay = '1300 ms'";
        let words = config(text).expect("fine").explain_all();
        let part = "Contact with bob starting at 2026-11-21T12:30:00Z, for 480 s, repeated every 5700 s, at 9600 bit/s, \
                    one-way delay 1300 ms.";
        assert!(words.contains(part), "{words}");
    }
}
