//! Figures that are derived from several points or from a trace, and the statements of the paper.

use super::{BERS, MAIN, OUTAGE_S, PUBLISHED, Played, Reproduction, over_delay, stated};
use crate::claim::trend::{Trend, slopes};
use crate::claim::{self, Claim};
use crate::papers::figures::Figures;
use crate::papers::text::Text;
use crate::record::{Params, Record};
use crate::run::Outcome;
use crate::stats::FittedLine;
use crate::trace::CapturedFrame;
use crate::trace::conversation::{Conversation, SegmentSeen, conversations};
use longwire_proto::tcp::wire::Flags;

pub(super) fn mx_to_rx(frames: &[CapturedFrame]) -> Option<Conversation> {
    conversations(frames)
        .into_iter()
        .find(|conversation| conversation.from == "mx" && conversation.to == "rx")
}

/// Course of the traced outage without errors, at mx.
pub(super) struct TracedOutage {
    /// Retransmissions of its last segment until the end of the session.
    retries: usize,
    /// Times of the connection attempts, seconds since the start of the outage.
    pub(super) calls_s: Vec<f64>,
}

impl Reproduction {
    /// Returns all figures, those with a published one compared with it, and all claims.
    pub(super) fn records_and_claims(&self, text: &Text) -> (Vec<Record>, Vec<Claim>) {
        let mut records: Vec<Record> = self.points().flat_map(Played::records).collect();
        records.extend(self.slopes());
        records.extend(BERS.into_iter().filter_map(|ber| {
            let repeated = |outcome: &Outcome| Some(outcome.hops.last()?.repeated_frames as f64);
            self.of_mx("mx_to_rx_retransmissions", &stated(ber, 0), |played| {
                played.outcomes().filter_map(repeated).collect()
            })
        }));
        if let Some(TracedOutage { retries, calls_s }) = self.traced_outage() {
            let counts = [("retries_before_giving_up", retries), ("syns_in_a_cluster", calls_s.len())];
            records.extend(counts.into_iter().filter_map(|(metric, count)| {
                self.of_mx(metric, &stated(0.0, OUTAGE_S), |_| vec![count as f64])
            }));
        }
        let mut claims = claim::attach(PUBLISHED, &mut records);
        claims.extend(self.statements(Figures(&records), text));
        (records, claims)
    }

    /// Slope of the transfer time over the delay in percent, seconds per millisecond, as the paper seems to print it.
    fn slopes(&self) -> impl Iterator<Item = Record> {
        let readings = [
            ("grid", "delay_slope_percent", "transfer_s"),
            ("grid", "mx_to_rx_delay_slope_percent", "last_hop_s"),
            ("second hop", "delay_slope_percent", "transfer_s"),
        ];
        let slope = |(ber, (group, name, metric)): (f64, (&str, &str, &str))| {
            let points = self.along(group, &over_delay(ber, 0));
            let samples: Vec<f64> =
                slopes(&points, "delay_ms", metric).iter().map(|slope| slope * 100.0).collect();
            let params = Params::new().with("ber", ber).with("outage_s", 0i64);
            let case = &points.first()?.case.name;
            (!samples.is_empty()).then(|| Record::of(case, params, name, "s per 100 ms", &samples))
        };
        BERS.into_iter().flat_map(move |ber| readings.map(|reading| (ber, reading))).filter_map(slope)
    }

    /// Figure of the segments that mx sent at a point of the grid.
    fn of_mx(&self, metric: &str, at: &str, samples: impl Fn(&Played) -> Vec<f64>) -> Option<Record> {
        let played = *self.along("grid", at).first()?;
        Some(Record::of(MAIN, played.case.params.clone(), metric, "segments", &samples(played)))
    }

    pub(super) fn traced_outage(&self) -> Option<TracedOutage> {
        let outcome = self.along("traced", &stated(0.0, OUTAGE_S)).first()?.outcomes().next()?;
        let hop = outcome.hops.last()?;
        let (begin_s, _) = *hop.outages.first()?;
        let changes = || hop.seen.changes.iter().filter(|(at, _)| at.as_secs_f64() >= begin_s);
        let (given_up, _) = *changes().find(|(_, down)| down.is_some())?;
        let (again, _) = *changes().find(|(at, down)| *at > given_up && down.is_none())?;
        let sent = mx_to_rx(&outcome.frames)?.sent;
        let in_outage = |sent: &&SegmentSeen| sent.at.as_secs_f64() >= begin_s && sent.at < again;
        let sent: Vec<&SegmentSeen> = sent.iter().filter(in_outage).collect();
        let is_retry = |sent: &&&SegmentSeen| sent.again && sent.data_bytes > 0 && sent.at < given_up;
        let calls = sent.iter().filter(|sent| sent.flags.contains(Flags::SYN));
        Some(TracedOutage {
            retries: sent.iter().filter(is_retry).count(),
            calls_s: calls.map(|sent| sent.at.as_secs_f64() - begin_s).collect(),
        })
    }

    fn statements(&self, figures: Figures<'_>, text: &Text) -> Vec<Claim> {
        let grid: Vec<&Played> = self.group("grid").iter().collect();
        let without_outage = BERS.into_iter().flat_map(|ber| self.along("grid", &over_delay(ber, 0)));
        let any_moment: Vec<&Played> = without_outage.chain(self.group("any moment")).collect();
        let (delay, outage) = (("delay_ms", ["ber", "outage_s"]), ("outage_s", ["ber", "delay_ms"]));
        let goes = |name, points: &[&Played], (along, others), metric, sign| {
            let (way, against) = if sign > 0.0 { ("grow", "fall") } else { ("fall", "grow") };
            let trend = Trend::of(points, along, others, metric, sign);
            text.statement(name, trend.holds(), trend.words(way, against))
        };
        vec![
            goes("goodput-by-delay", &grid, delay, "goodput_byte_per_s", -1.0),
            goes("time-by-delay", &grid, delay, "transfer_s", 1.0),
            goes("time-by-outage", &grid, outage, "transfer_s", 1.0),
            goes("time-by-outage-at-any-moment", &any_moment, outage, "transfer_s", 1.0),
            merging(figures, text),
            exponential(figures, text),
            self.everything_arrives(text),
            self.nothing_again(text),
        ]
    }

    fn everything_arrives(&self, text: &Text) -> Claim {
        let delivered: Vec<f64> =
            self.group("grid").iter().flat_map(|played| played.samples("delivered")).collect();
        let (whole, all) = (delivered.iter().filter(|delivered| **delivered > 0.0).count(), delivered.len());
        let found = format!("{whole} of {all} runs delivered all bytes");
        text.statement("everything-arrives", Some(whole == all), found)
    }

    fn nothing_again(&self, text: &Text) -> Claim {
        let with_outage: Vec<&Played> =
            self.group("grid").iter().filter(|played| played.param("outage_s") > 0.0).collect();
        let sum = |key| with_outage.iter().flat_map(|played| played.samples(key)).sum::<f64>();
        let (again, overlap) = (sum("acknowledged_again_bytes"), sum("overlap_bytes"));
        let hops = with_outage.iter().flat_map(|played| played.outcomes()).flat_map(|outcome| &outcome.hops);
        let safe: u64 = hops.filter_map(|hop| hop.acknowledged_at_outage_bytes).sum();
        let found = format!(
            "of {safe} bytes acknowledged before outages, {again} were sent again ({overlap} bytes in overlapping \
             fragments, because an acknowledgement was lost on the previous hop)"
        );
        text.statement("nothing-again", Some(again == 0.0), found)
    }
}

/// Claims that the curves of different outages converge.
fn merging(figures: Figures<'_>, text: &Text) -> Claim {
    // Cost of the longest outage, as a share of the goodput without one.
    let cost = |delay_ms: &str, ber: f64| {
        let at = |outage_s| over_delay(ber, outage_s).replace('*', delay_ms);
        let [without, with] = [0, OUTAGE_S].map(|s| figures.mean(MAIN, "goodput_byte_per_s", &at(s)));
        (without - with) / without
    };
    let (apart, together) = (cost("1280", 0.0), cost("5000", 1e-5));
    let found = format!(
        "120 s of outage cost {:.0} % of the goodput at 1280 ms without errors and {:.0} % at 5000 ms and 1e-5",
        apart * 100.0,
        together * 100.0
    );
    text.statement("merging", Some(together < apart / 3.0), found)
}

fn exponential(figures: Figures<'_>, text: &Text) -> Claim {
    let fits = BERS.map(|ber| {
        let curve = figures.along(MAIN, "goodput_byte_per_s", &over_delay(ber, 0)).into_iter();
        let points: Vec<(f64, f64)> = curve.map(|(delay_ms, record)| (delay_ms, record.mean)).collect();
        FittedLine::fit_exponential(&points).map_or(0.0, |fit| fit.r_squared)
    });
    let found = format!("r² of the fit: {:.3}, {:.3}, {:.3}", fits[0], fits[1], fits[2]);
    text.statement("exponential", Some(fits.iter().all(|fit| *fit > 0.9)), found)
}
