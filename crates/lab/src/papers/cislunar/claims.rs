//! Figures that are derived from several points or from a trace, and the statements of the paper.

use super::{ANY, BERS, DELAY_MS, GRID, MAIN, OUTAGE_S, PUBLISHED, Played, Reproduction, SECOND};
use crate::claim::trend::{Trend, slopes};
use crate::claim::{self, Claim, Ours, Published, Rule};
use crate::record::{FigureKind, Params, Record};
use crate::run::Outcome;
use crate::stats::FittedLine;
use crate::trace::CapturedFrame;
use crate::trace::conversation::{Conversation, SegmentSeen, conversations};
use longwire_proto::tcp::wire::Flags;
use longwire_proto::time::Instant;

/// Returns the conversation from mx to rx.
pub(super) fn mx_to_rx(frames: &[CapturedFrame]) -> Option<Conversation> {
    conversations(frames)
        .into_iter()
        .find(|conversation| conversation.from == "mx" && conversation.to == "rx")
}

/// Traced outage without errors, as observed by mx.
struct TracedOutage {
    /// Segments sent from the start of the outage until the next session was established.
    sent: Vec<SegmentSeen>,
    /// Start of the outage, seconds.
    begin: f64,
    /// Time at which mx closed the session.
    given_up: Instant,
}

impl Reproduction {
    /// Returns all figures, those with a published one compared with it, and all claims.
    pub(super) fn records_and_claims(&self) -> (Vec<Record>, Vec<Claim>) {
        let mut records: Vec<Record> = self.points().flat_map(Played::records).collect();
        records.extend(self.slopes());
        records.extend(BERS.map(|ber| self.retransmissions(ber)));
        records.extend(self.retries().into_iter().flatten());
        let mut claims = claim::attach(PUBLISHED, &mut records);
        claims.extend(self.statements());
        (records, claims)
    }

    /// Slope of the transfer time over the delay in percent, seconds per millisecond, as the paper seems to print it.
    fn slopes(&self) -> Vec<Record> {
        let readings = [
            (&self.groups[GRID], "delay_slope_percent", "transfer_s"),
            (&self.groups[GRID], "mx_to_rx_delay_slope_percent", "last_hop_s"),
            (&self.groups[SECOND], "delay_slope_percent", "transfer_s"),
        ];
        let slope = |(ber, (grid, name, metric)): (f64, (&Vec<Played>, &str, &str))| {
            let points = Self::without_outage(grid, ber);
            let samples: Vec<f64> =
                slopes(&points, "delay_ms", metric).iter().map(|slope| slope * 100.0).collect();
            let params = Params::new().with("ber", ber).with("outage_s", 0i64);
            let case = &points.first()?.case.name;
            (!samples.is_empty()).then(|| Record::of(case, params, name, "s per 100 ms", &samples))
        };
        BERS.into_iter().flat_map(|ber| readings.map(|reading| (ber, reading))).filter_map(slope).collect()
    }

    /// Segments retransmitted by mx.
    fn retransmissions(&self, ber: f64) -> Record {
        let stated = self.stated(ber);
        let repeated = |outcome: &Outcome| Some(outcome.hops.last()?.repeated_frames as f64);
        let samples: Vec<f64> = stated.outcomes().filter_map(repeated).collect();
        let params = stated.case.params.clone();
        Record::of(MAIN, params, "mx_to_rx_retransmissions", "segments", &samples)
    }

    fn traced_outage(&self) -> Option<TracedOutage> {
        let traced = self.traced.iter().find(|traced| traced.ber == 0.0 && traced.outage_s == OUTAGE_S)?;
        let hop = traced.outcome.hops.last()?;
        let (begin, _) = *hop.outages.first()?;
        let after = |at: Instant| at.as_secs_f64() >= begin;
        let given_up = hop.seen.changes.iter().find(|(at, down)| after(*at) && down.is_some())?.0;
        let again = hop.seen.changes.iter().find(|(at, down)| *at > given_up && down.is_none())?.0;
        let sent = mx_to_rx(&traced.outcome.frames)?.sent;
        let sent = sent.into_iter().filter(|sent| after(sent.at) && sent.at < again).collect();
        Some(TracedOutage { sent, begin, given_up })
    }

    /// Behaviour of mx in an outage: retransmissions of its last segment until the end of the session, and SYNs of each
    /// connection attempt.
    fn retries(&self) -> Option<[Record; 2]> {
        let traced = self.traced_outage()?;
        let is_retry = |sent: &&SegmentSeen| sent.again && sent.data_bytes > 0 && sent.at < traced.given_up;
        let retries = traced.sent.iter().filter(is_retry).count();
        let calls = traced.sent.iter().filter(|sent| sent.flags.contains(Flags::SYN)).count();
        let record = |metric: &str, count: usize| {
            let params = self.grid_at(DELAY_MS as f64, 0.0, OUTAGE_S as f64).case.params.clone();
            Record::of(MAIN, params, metric, "segments", &[count as f64])
        };
        Some([record("retries_before_giving_up", retries), record("syns_in_a_cluster", calls)])
    }

    /// Connection attempts of mx in the traced outage without errors, seconds since the start of the outage.
    pub(super) fn calls_s(&self) -> Vec<f64> {
        let Some(traced) = self.traced_outage() else { return Vec::new() };
        let calls = traced.sent.iter().filter(|sent| sent.flags.contains(Flags::SYN));
        calls.map(|sent| sent.at.as_secs_f64() - traced.begin).collect()
    }

    fn statements(&self) -> Vec<Claim> {
        let grid: Vec<&Played> = self.groups[GRID].iter().collect();
        let at_any_moment: Vec<&Played> = BERS
            .into_iter()
            .flat_map(|ber| Self::without_outage(&self.groups[GRID], ber))
            .chain(&self.groups[ANY])
            .collect();
        let (delay, outage) = (("delay_ms", ["ber", "outage_s"]), ("outage_s", ["ber", "delay_ms"]));
        let goes = |what, points: &[&Played], (along, others), metric, sign| {
            let way = if sign > 0.0 { ("grow", "fall") } else { ("fall", "grow") };
            Trend::of(points, along, others, metric, sign).claim(what, "section III", way)
        };
        vec![
            goes("Goodput falls with the delay.", &grid, delay, "goodput_byte_per_s", -1.0),
            goes("Transfer time grows with the delay.", &grid, delay, "transfer_s", 1.0),
            goes("Transfer time grows with the outage.", &grid, outage, "transfer_s", 1.0),
            goes(
                "The same with a random start of the outage in every run.",
                &at_any_moment,
                outage,
                "transfer_s",
                1.0,
            ),
            self.merging(),
            self.exponential(),
            self.everything_arrives(),
            self.nothing_again(),
        ]
    }

    /// Claims that the curves of different outages converge.
    fn merging(&self) -> Claim {
        // Cost of the longest outage, as a share of the goodput without one.
        let spread = |delay_ms: f64, ber: f64| {
            let goodput = |outage_s: f64| self.grid_at(delay_ms, ber, outage_s).mean("goodput_byte_per_s");
            (goodput(0.0) - goodput(OUTAGE_S as f64)) / goodput(0.0)
        };
        let (apart, together) = (spread(1280.0, 0.0), spread(5000.0, 1e-5));
        statement(
            "The curves for different outages converge at 5000 ms and 1e-5.",
            together < apart / 3.0,
            format!(
                "120 s of outage cost {:.0} % of the goodput at 1280 ms without errors and {:.0} % at 5000 ms and 1e-5",
                apart * 100.0,
                together * 100.0
            ),
            "the cost has to fall to a third",
        )
    }

    fn exponential(&self) -> Claim {
        let fits = BERS.map(|ber| {
            let curve = Self::without_outage(&self.groups[GRID], ber).into_iter();
            let points: Vec<(f64, f64)> =
                curve.map(|played| (played.param("delay_ms"), played.mean("goodput_byte_per_s"))).collect();
            FittedLine::fit_exponential(&points).map_or(0.0, |fit| fit.r_squared)
        });
        statement(
            "Goodput falls roughly exponentially with the delay.",
            fits.iter().all(|fit| *fit > 0.9),
            format!("r² of the fit: {:.3}, {:.3}, {:.3}", fits[0], fits[1], fits[2]),
            "r² has to be above 0.9",
        )
    }

    fn everything_arrives(&self) -> Claim {
        let runs: Vec<&Outcome> = self.groups[GRID].iter().flat_map(Played::outcomes).collect();
        let whole = runs.iter().filter(|outcome| outcome.delivered).count();
        statement(
            "Outages cause no loss.",
            whole == runs.len(),
            format!("{whole} of {} runs delivered all bytes", runs.len()),
            "all runs have to",
        )
    }

    fn nothing_again(&self) -> Claim {
        let with_outage = self.groups[GRID].iter().filter(|played| played.param("outage_s") > 0.0);
        let hops = || with_outage.clone().flat_map(Played::outcomes).flat_map(|outcome| &outcome.hops);
        let again: u64 = hops().map(|hop| hop.acknowledged_again_bytes).sum();
        let safe: u64 = hops().filter_map(|hop| hop.acknowledged_at_outage_bytes).sum();
        let overlap: u64 = hops().map(|hop| hop.seen.overlap_bytes).sum();
        statement(
            "When the link is back, mx sends the remaining data.",
            again == 0,
            format!(
                "of {safe} bytes acknowledged before outages, {again} were sent again ({overlap} bytes in \
                 overlapping fragments, because an acknowledgement was lost on the previous hop)"
            ),
            "none may be",
        )
    }
}

fn statement(what: &str, holds: bool, found: String, why: &str) -> Claim {
    Claim {
        what: what.into(),
        place: "section III".into(),
        published: Published::Statement,
        ours: Ours::Words(found),
        rule: Rule::Criterion(Some(holds)),
        kind: FigureKind::Predicted,
        why: why.into(),
    }
}
