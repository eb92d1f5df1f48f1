//! Statements of the paper, closed forms, and what is claimed beyond it, each with its criterion.
//!
//! Differences are between the same runs, with the 95 % interval of Student's t. "Above" means that the interval of the difference
//! lies above zero, "not above" that it does not.

use super::beyond;
use super::trials::{
    ACKNOWLEDGEMENTS, ADAPTIVE, AGGREGATED, FEC, MACK, MODES, NACK, Played, RATES, RELIABLE, Results, TCP,
    TCP_LINUX, UDP, WEAK_FEC, WEAK_MACK, WEAK_NACK, at,
};
use crate::claim::Claim;
use crate::format::{NO_FIGURE, known};
use crate::papers::text::Text;
use crate::record::Params;
use crate::stats::Summary;
use longwire_proto::aerotp::model;

/// Length of a frame of UDP that fills a packet, bytes, with the two bytes around it.
pub(super) const FRAME_BYTES: f64 = 1502.0;
/// Bytes of the headers of IPv4 and UDP whose damage loses a packet: all but the checksum of UDP.
const NETWORK_BYTES: f64 = 26.0;
/// Header of AeroTP, bytes.
const HEADER_BYTES: f64 = 20.0;
/// Strengths of the codes of the page.
const WEAK: u8 = 1;
const STRONG: u8 = 16;

/// Results with look-ups.
pub(super) struct Found<'a> {
    results: &'a Results,
    text: &'a Text,
}

fn percent(share: f64) -> String {
    if share.is_nan() { NO_FIGURE.into() } else { format!("{:.1} %", 100.0 * share) }
}

/// Returns a bit-error rate in words.
pub(super) fn ber(rate: f64) -> String {
    if rate == 0.0 { "0".into() } else { format!("{rate:e}") }
}

/// Expected share of the segments that arrive in the mode without answers, with the weak code or the strong one.
pub(super) fn expected_share(rate: f64, payload_bytes: usize, weak: bool) -> f64 {
    let headers = 1.0 - model::segment_error_probability(rate, NETWORK_BYTES);
    if weak {
        let (unknown, uncorrected) = model::coded_header_failure_probabilities(rate, payload_bytes, WEAK);
        return headers * (1.0 - unknown - uncorrected);
    }
    let own = 1.0 - model::segment_error_probability(rate, HEADER_BYTES);
    headers * own * (1.0 - model::payload_failure_probability(rate, payload_bytes, STRONG))
}

impl<'a> Found<'a> {
    pub(super) fn new(results: &'a Results, text: &'a Text) -> Found<'a> {
        Found { results, text }
    }

    pub(super) fn find(&self, case: &str, params: &Params) -> Option<&'a Played> {
        self.results.played.iter().find(|played| played.case.name == case && played.case.params == *params)
    }

    fn at(&self, case: &str, rate: f64) -> Option<&'a Played> {
        self.find(case, &at(rate))
    }

    fn mean(&self, case: &str, rate: f64, metric: &str) -> f64 {
        self.at(case, rate).map_or(f64::NAN, |played| played.mean(metric))
    }

    /// Difference of a metric between two modes at one rate, over the same runs.
    fn difference(&self, ours: &str, theirs: &str, rate: f64, metric: &str) -> Option<Summary> {
        let (ours, theirs) = self.at(ours, rate)?.pairs(self.at(theirs, rate)?, metric);
        (ours.len() > 1).then(|| Summary::of_differences(&ours, &theirs))
    }

    /// Returns true if the first mode is above the second one.
    fn above(&self, ours: &str, theirs: &str, rate: f64, metric: &str) -> Option<bool> {
        let difference = self.difference(ours, theirs, rate, metric)?;
        Some(difference.interval().0 > 0.0)
    }

    fn all<T>(items: impl IntoIterator<Item = T>, holds: impl Fn(T) -> Option<bool>) -> Option<bool> {
        items.into_iter().try_fold(true, |all, item| Some(holds(item)? && all))
    }

    fn claim(&self, name: &str, holds: Option<bool>, found: String) -> Claim {
        self.text.statement(name, holds, found)
    }

    /// Everything arrives in all runs of these cases.
    fn complete(&self, name: &str, cases: &[&str]) -> Claim {
        let played =
            || self.results.played.iter().filter(|played| cases.contains(&played.case.name.as_str()));
        let runs: usize = played().map(|played| played.runs.len()).sum();
        let complete =
            played().flat_map(Played::outcomes).filter(|carried| carried.bytes == carried.offered).count();
        let holds = (runs > 0).then_some(complete == runs);
        self.claim(name, holds, format!("Complete in {complete} of {runs} runs."))
    }

    fn delivered_order(&self) -> Option<bool> {
        let (weak, share) = ([WEAK_FEC, WEAK_NACK, WEAK_MACK], "delivered_share");
        let rises =
            |rate: f64| Self::all(weak.windows(2), |pair| Some(!self.above(pair[0], pair[1], rate, share)?));
        let strictly = |pair: &[&str]| self.above(pair[1], pair[0], 1e-4, share);
        Some(Self::all(RATES, rises)? && Self::all(weak.windows(2), strictly)?)
    }

    fn goodput_order(&self) -> Option<bool> {
        let weak = [WEAK_FEC, WEAK_NACK, WEAK_MACK];
        let better = |rate: f64| Self::all(weak, |mode| self.above(mode, RELIABLE, rate, "goodput_mbps"));
        Self::all([2.5e-5, 5e-5, 7.5e-5, 1e-4], better)
    }

    /// Both orders of the modes hold; `None` with too few runs.
    pub(super) fn order(&self) -> Option<bool> {
        Some(self.delivered_order()? && self.goodput_order()?)
    }

    fn orders(&self) -> Vec<Claim> {
        let share = "delivered_share";
        let weak = [WEAK_FEC, WEAK_NACK, WEAK_MACK];
        let found = weak.map(|mode| percent(self.mean(mode, 1e-4, share))).join(", ");
        let found = format!("Delivered at 1e-4: {found}.");
        let order = self.claim("delivered-order", self.delivered_order(), found);

        let goodput = "goodput_mbps";
        let of = |mode: &str| known(self.mean(mode, 1e-4, goodput), 2);
        let found = format!(
            "At 1e-4 {} Mbit/s for FEC, {} for NACK and {} for NACK + MACK, {} for reliable.",
            of(WEAK_FEC),
            of(WEAK_NACK),
            of(WEAK_MACK),
            of(RELIABLE)
        );
        let above = self.claim("goodput-order", self.goodput_order(), found);

        let tcp = |rate: f64| {
            let difference = self.difference(RELIABLE, TCP, rate, goodput)?;
            Some(
                difference.interval().0 > 0.0
                    && self.mean(TCP, rate, goodput) < 0.2 * self.mean(RELIABLE, rate, goodput),
            )
        };
        let found = format!(
            "{} Mbit/s at 1e-5 and {} at 1e-4.",
            known(self.mean(TCP, 1e-5, goodput), 2),
            known(self.mean(TCP, 1e-4, goodput), 3)
        );
        let far = self.claim("tcp-goodput", Self::all([1e-5, 2.5e-5, 5e-5, 7.5e-5, 1e-4], tcp), found);

        let others = [RELIABLE, WEAK_NACK, WEAK_MACK];
        let udp = |rate: f64| Self::all(others, |mode| self.above(UDP, mode, rate, goodput));
        let first = udp(0.0).zip(udp(1e-6));
        let falls = self.mean(UDP, 1e-4, goodput) < self.mean(UDP, 0.0, goodput);
        let of = |mode: &str, rate: f64| known(self.mean(mode, rate, goodput), 3);
        let found = format!(
            "{} Mbit/s at 0, where reliable has {}, {} at 1e-5, where it has {}, and {} at 1e-4.",
            of(UDP, 0.0),
            of(RELIABLE, 0.0),
            of(UDP, 1e-5),
            of(RELIABLE, 1e-5),
            of(UDP, 1e-4)
        );
        let udp = self.claim("udp-goodput", first.map(|(zero, low)| zero && low && falls), found);
        vec![order, above, far, udp]
    }

    /// Delays at the highest rate: of segments until a copy is intact, and in order beside them.
    fn delays(&self) -> Vec<Claim> {
        let delay = |mode: &str, metric: &str| known(self.mean(mode, 1e-4, metric), 0);
        let both = |mode: &str| {
            format!("{} ms ({} in order)", delay(mode, "intact_delay_ms"), delay(mode, "delay_ms"))
        };
        let hybrids = [WEAK_NACK, WEAK_MACK];
        let above = Self::all(hybrids, |mode| self.above(RELIABLE, mode, 1e-4, "intact_delay_ms"));
        let found =
            format!("{}; NACK {}, NACK + MACK {}.", both(RELIABLE), both(hybrids[0]), both(hybrids[1]));
        let reliable = self.claim("reliable-delay", above, found);

        let ratio = |mode: &str| self.mean(mode, 1e-4, "delay_ms") / self.mean(mode, 0.0, "delay_ms");
        let ratios = [WEAK_FEC, UDP].map(ratio);
        let same = ratios.iter().all(|ratio| (0.99..=1.01).contains(ratio));
        let found = format!("{} and {} times that without errors.", known(ratios[0], 3), known(ratios[1], 3));
        let none =
            self.claim("no-delay", ratios.iter().all(|ratio| ratio.is_finite()).then_some(same), found);
        vec![reliable, none]
    }

    fn tcp(&self) -> Vec<Claim> {
        let delay = |mode: &str| self.mean(mode, 1e-4, "complete_intact_delay_ms");
        let in_order = |mode: &str| known(self.mean(mode, 1e-4, "complete_delay_ms"), 0);
        let ratio = delay(TCP) / delay(RELIABLE);
        let found = format!(
            "{} ms and {} ms at 1e-4, ratio {}; in order {} ms and {} ms.",
            known(delay(TCP), 0),
            known(delay(RELIABLE), 0),
            known(ratio, 1),
            in_order(TCP),
            in_order(RELIABLE)
        );
        let judged = (ratio.is_finite() && self.results.runs > 1).then_some((1.5..=2.5).contains(&ratio));
        let twice = self.claim("tcp-delay", judged, found);

        let complete = |rate: f64| self.mean(TCP, rate, "complete_share");
        let list = [5e-5, 7.5e-5, 1e-4].map(|rate| format!("{} at {}", percent(complete(rate)), ber(rate)));
        let fails = complete(7.5e-5) < 1.0 && complete(1e-4) < 1.0;
        let enough = self.results.runs > 1;
        let fails = self.claim(
            "tcp-incomplete",
            enough.then_some(fails),
            format!("Complete runs: {}.", list.join(", ")),
        );

        let others = MODES.into_iter().filter(|mode| mode.starts_with("AeroTP") && *mode != ADAPTIVE);
        let most =
            |rate: f64| Self::all(others.clone(), |mode| self.above(TCP, mode, rate, "overhead_ratio"));
        let ratios = [0.0, 1e-5, 5e-5]
            .map(|rate| format!("{} at {}", known(self.mean(TCP, rate, "overhead_ratio"), 2), ber(rate)));
        let found = format!(
            "Bytes of overhead for each byte: {}; reliable {} at 5e-5.",
            ratios.join(", "),
            known(self.mean(RELIABLE, 5e-5, "overhead_ratio"), 2)
        );
        let rates = RATES.into_iter().filter(|rate| *rate <= 5e-5);
        let most = self.claim("tcp-overhead", Self::all(rates, most), found);
        vec![twice, fails, most]
    }

    fn aggregation(&self) -> Vec<Claim> {
        let place = |count: u32, rate: f64| Params::new().with("acknowledgements", count).with("ber", rate);
        let of = |count: u32, rate: f64| self.find(AGGREGATED, &place(count, rate));
        let overheads = |rate: f64| -> Option<Vec<f64>> {
            ACKNOWLEDGEMENTS.iter().map(|count| Some(of(*count, rate)?.mean("overhead_mb"))).collect()
        };
        let rates = RATES.into_iter().filter(|rate| *rate >= 1e-5);
        let rises = |overheads: &[f64]| overheads.windows(2).all(|pair| pair[0] < pair[1]);
        let rising = |rate: f64| Some(rises(&overheads(rate)?));
        let rising_from_second = |rate: f64| Some(rises(overheads(rate)?.get(1..)?));
        let words = |rate: f64| {
            let all = overheads(rate).unwrap_or_default();
            all.iter().map(|overhead| known(*overhead, 2)).collect::<Vec<_>>().join(", ")
        };
        let found = format!("At 1e-4 with 1, 10, 50, 100, 200 and 363: {} MB.", words(1e-4));
        let monotone = self.claim("aggregation-rises", Self::all(rates.clone(), rising), found.clone());
        let several =
            self.claim("aggregation-rises-from-10", Self::all(rates.clone(), rising_from_second), found);

        // Growth for each acknowledgement between two numbers of them, run by run.
        let growth = |from: u32, to: u32, rate: f64| {
            let (more, less) = of(to, rate)?.pairs(of(from, rate)?, "overhead_mb");
            let growth = more.iter().zip(&less).map(|(more, less)| (more - less) / f64::from(to - from));
            Some(growth.collect::<Vec<f64>>())
        };
        let above = |rate: f64| {
            let (beyond, before) = (growth(200, 363, rate)?, growth(100, 200, rate)?);
            (beyond.len() > 1).then(|| Summary::of_differences(&beyond, &before).interval().0 > 0.0)
        };
        let found = format!("At 1e-5: {} MB.", words(1e-5));
        let knee = self.claim("aggregation-knee", Self::all(rates, above), found);

        let goodput = |count: u32| of(count, 1e-5).map_or(f64::NAN, |played| played.mean("goodput_mbps"));
        let metrics = ["goodput_mbps", "delay_ms"];
        let differs = |count: u32, rate: f64, metric: &str| {
            let (few, many) = of(1, rate)?.pairs(of(count, rate)?, metric);
            (few.len() > 1).then(|| Summary::of_differences(&few, &many).is_significant())
        };
        let pairs = ACKNOWLEDGEMENTS[1..].iter().flat_map(|count| RATES.map(|rate| (*count, rate)));
        let same = Self::all(pairs, |(count, rate)| {
            Self::all(metrics, |metric| Some(!differs(count, rate, metric)?))
        });
        let found = format!(
            "At 1e-5 {} Mbit/s with 1 and {} with 200.",
            known(goodput(1), 2),
            known(goodput(200), 2)
        );
        let same = self.claim("aggregation-goodput", same, found);

        let place = |count: u32| Params::new().with("acknowledgements", count).with("reverse", 0.01);
        let slow = |count: u32| self.find(AGGREGATED, &place(count));
        let difference = |metric: &str| {
            let (several, single) = slow(10)?.pairs(slow(1)?, metric);
            (several.len() > 1).then(|| Summary::of_differences(&several, &single).interval())
        };
        let more = difference("goodput_mbps").zip(difference("overhead_mb"));
        let of =
            |count: u32, metric: &str| known(slow(count).map_or(f64::NAN, |played| played.mean(metric)), 2);
        let found = format!(
            "{} Mbit/s and {} MB of overhead with 10, {} and {} with single ones.",
            of(10, "goodput_mbps"),
            of(10, "overhead_mb"),
            of(1, "goodput_mbps"),
            of(1, "overhead_mb")
        );
        let reverse = more.map(|(goodput, overhead)| goodput.0 > 0.0 && overhead.1 < 0.0);
        vec![monotone, several, knee, same, self.claim("reverse", reverse, found)]
    }

    fn losses(&self) -> Vec<Claim> {
        let share = |mode: &str, rate: f64| self.mean(mode, rate, "delivered_share");
        let loses = |rate: &f64| share(WEAK_NACK, *rate) < 0.999;
        let onset = RATES.into_iter().find(loses);
        let list = [1e-5, 2.5e-5, 5e-5, 1e-4]
            .map(|rate| format!("{} at {}", percent(share(WEAK_NACK, rate)), ber(rate)));
        let words = onset.map_or("nowhere".to_owned(), |rate| format!("from {} on", ber(rate)));
        let found = format!("Less than 99.9 % {words}; delivered: {}.", list.join(", "));
        let holds = onset.map(|rate| (1e-5..=5e-5).contains(&rate)).filter(|_| self.results.runs > 1);
        let onset = self.claim("nack-onset", holds, found);

        let overhead = "overhead_mb";
        let larger = |rate: f64| {
            let pairs = [WEAK_NACK, WEAK_MACK]
                .into_iter()
                .flat_map(|ours| [RELIABLE, WEAK_FEC].map(|other| (ours, other)));
            Self::all(pairs, |(ours, other)| self.above(ours, other, rate, overhead))
        };
        let of = |mode: &str, rate: f64| known(self.mean(mode, rate, overhead), 2);
        let found = format!(
            "At 1e-4 {} and {} MB, reliable {} and FEC {}.",
            of(WEAK_NACK, 1e-4),
            of(WEAK_MACK, 1e-4),
            of(RELIABLE, 1e-4),
            of(WEAK_FEC, 1e-4)
        );
        let hybrids = self.claim("hybrid-overhead", Self::all(RATES, larger), found);

        let (fec, nack, mack) = (share(FEC, 1e-4), share(NACK, 1e-4), share(MACK, 1e-4));
        let found = format!(
            "Delivered at 1e-4: {} with FEC, {} with NACK and {} with NACK + MACK. Headers are damaged in {} of the packets.",
            percent(fec),
            percent(nack),
            percent(mack),
            percent(model::segment_error_probability(1e-4, NETWORK_BYTES + HEADER_BYTES))
        );
        let corrected =
            self.difference(NACK, FEC, 1e-4, "delivered_share").map(|more| !more.is_significant());
        vec![onset, hybrids, self.claim("strong-code", corrected.map(|same| !same), found)]
    }

    /// Closed forms beside the runs.
    fn closed(&self) -> Vec<Claim> {
        let agrees = |case: &str, metric: &str, expected: &dyn Fn(f64) -> f64| {
            let inside = |rate: f64| {
                let record = self.at(case, rate)?.record(metric)?;
                let (from, to) = record.summary().interval();
                // At a rate of zero all runs are the same, and rare losses need more runs than these to show at all.
                let slack = 1.0 / (1000.0 * self.results.runs as f64).max(1.0);
                Some(record.n > 1 && from - slack <= expected(rate) && expected(rate) <= to + slack)
            };
            // `None` where the mode was not played.
            (self.results.runs > 1 && self.at(case, RATES[0]).is_some())
                .then(|| RATES.into_iter().filter(|rate| inside(*rate) == Some(true)).count())
        };
        let claim = |name: &str, within: Option<usize>, at_most: (f64, f64)| {
            // Of nine intervals of 95 %, one may miss: two do so in 7 % of all repetitions.
            let holds = within.map(|count| count + 1 >= RATES.len());
            let count =
                within.map_or(String::new(), |count| format!("{count} of {} intervals; ", RATES.len()));
            self.claim(
                name,
                holds,
                format!("{count}at 1e-4 {} found, {} expected.", percent(at_most.0), percent(at_most.1)),
            )
        };
        let udp = |rate: f64| 1.0 - model::segment_error_probability(rate, FRAME_BYTES);
        let payload = |case: &str| self.at(case, 0.0).map_or(0, payload_bytes);
        let weak = |rate: f64| expected_share(rate, payload(WEAK_FEC), true);
        let strong = |rate: f64| expected_share(rate, payload(FEC), false);
        let damaged = |rate: f64| model::segment_error_probability(rate, self.frame_bytes(UDP));
        let share = "delivered_share";
        vec![
            claim("udp-share", agrees(UDP, share, &udp), (self.mean(UDP, 1e-4, share), udp(1e-4))),
            claim(
                "segment-errors",
                agrees(UDP, "damaged_share", &damaged),
                (self.mean(UDP, 1e-4, "damaged_share"), damaged(1e-4)),
            ),
            claim(
                "weak-share",
                agrees(WEAK_FEC, share, &weak),
                (self.mean(WEAK_FEC, 1e-4, share), weak(1e-4)),
            ),
            claim("strong-share", agrees(FEC, share, &strong), (self.mean(FEC, 1e-4, share), strong(1e-4))),
        ]
    }

    fn frame_bytes(&self, case: &str) -> f64 {
        self.at(case, 0.0).map_or(f64::NAN, |played| played.case.trial.0.offer.packet_bytes as f64 + 30.0)
    }

    /// The adaptive mode beside the best of the fixed ones: how far behind it is, and by the upper end of the interval, as shares of
    /// the best goodput.
    pub(super) fn behind(&self, params: &Params) -> Option<(String, [f64; 2])> {
        let fixed = beyond::fixed().into_iter().filter_map(|(name, _)| {
            let played = self.find(&name, params)?;
            let complete = played.outcomes().all(|carried| carried.bytes == carried.offered);
            complete.then(|| (name, played.mean("goodput_mbps")))
        });
        let (name, most) = fixed.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let ours = self.find(ADAPTIVE, params)?;
        let complete = ours.outcomes().all(|carried| carried.bytes == carried.offered);
        let (best, ours) = self.find(&name, params)?.pairs(ours, "goodput_mbps");
        complete.then(|| {
            let difference = Summary::of_differences(&best, &ours);
            (name, [difference.mean, difference.interval().1].map(|mbps| mbps / most))
        })
    }

    fn beyond(&self) -> Vec<Claim> {
        let short = RATES.map(|rate| self.behind(&at(rate).with("at_once_mb", 1u32)));
        let long = self.behind(&at(1e-4).with("at_once_mb", 20u32));
        let changing = self.behind(&Params::new().with("changing_mb", 20u32));
        let all: Option<Vec<[f64; 2]>> =
            short.iter().chain([&long, &changing]).map(|one| Some(one.as_ref()?.1)).collect();
        let found = all.as_ref().map_or(String::new(), |all| {
            let most = |at: usize| all.iter().map(|behind| behind[at]).fold(f64::MIN, f64::max);
            let changing = all.last().map_or(f64::NAN, |behind| behind[0]);
            format!(
                "At most {} behind, {} by the interval; with a changing rate {}.",
                percent(most(0)),
                percent(most(1)),
                percent(changing)
            )
        });
        let enough = self.results.runs > 1;
        let within = all.filter(|_| enough).map(|all| all.iter().all(|behind| behind[1] <= 0.03));
        let mut claims = vec![self.claim("adaptive", within, found)];

        let played = self.find(ADAPTIVE, &at(1e-4).with("at_once_mb", 20u32));
        let rate_mbps = super::path::RATE_BPS as f64 * 1e-6;
        let share = played.map(|played| played.mean("goodput_mbps") / rate_mbps);
        let least = played.filter(|_| enough).and_then(|played| {
            let complete = played.outcomes().all(|carried| carried.bytes == carried.offered);
            let least = played.record("goodput_mbps")?.summary().interval().0;
            Some(complete && least / rate_mbps >= 0.80)
        });
        let found = share
            .map_or(String::new(), |share| format!("{} of the rate, headers included.", known(share, 3)));
        claims.push(self.claim("long", least, found));

        let place = |rate: f64| at(rate).with("contact_s", 10u32);
        let contact = |case: &str, rate: f64, metric: &str| {
            self.find(case, &place(rate)).map(|played| played.mean(metric))
        };
        let coded = "AeroTP, NACK + MACK, RS(255,239)";
        let shares = contact(ADAPTIVE, 0.0, "contact_share").zip(contact(coded, 1e-5, "contact_share"));
        let least = |case: &str, rate: f64| {
            let record = self.find(case, &place(rate))?.record("contact_share")?;
            Some(record.summary().interval().0)
        };
        let enough_carried = || Some(least(ADAPTIVE, 0.0)? >= 0.95 && least(coded, 1e-5)? >= 0.88);
        let adaptive = contact(ADAPTIVE, 1e-5, "contact_share").unwrap_or(f64::NAN);
        let tcp =
            [0.0, 1e-5].map(|rate| known(contact(TCP_LINUX, rate, "contact_share").unwrap_or(f64::NAN), 3));
        let found = shares.map_or(String::new(), |(clean, coded)| {
            format!(
                "{} without errors, {} with RS(255,239) at 1e-5, {} for the adaptive mode there; TCP of Linux {} and {}.",
                known(clean, 3),
                known(coded, 3),
                known(adaptive, 3),
                tcp[0],
                tcp[1]
            )
        });
        claims.push(self.claim("contact", enough_carried().filter(|_| enough), found));

        let again: Option<Vec<f64>> = [(ADAPTIVE, 0.0), (ADAPTIVE, 1e-5), (coded, 1e-5)]
            .map(|(case, rate)| contact(case, rate, "repeated_answered_kb"))
            .into_iter()
            .collect();
        let found = again.as_ref().map_or(String::new(), |again| {
            let again: Vec<String> = again.iter().map(|kb| known(*kb, 1)).collect();
            format!("Sent again after the contact: {} kB of what was acknowledged in it.", again.join(", "))
        });
        claims.push(self.claim("again", again.map(|again| again.iter().all(|kb| *kb == 0.0)), found));
        claims
    }

    pub(super) fn claims(&self) -> Vec<Claim> {
        let mut claims = vec![
            self.complete("reliable-complete", &[RELIABLE, AGGREGATED]),
            self.complete("mack-complete", &[WEAK_MACK, MACK]),
        ];
        claims.extend(self.orders());
        claims.extend(self.losses());
        claims.extend(self.delays());
        claims.extend(self.tcp());
        claims.extend(self.aggregation());
        claims.extend(self.closed());
        claims.extend(self.beyond());
        claims
    }
}

/// Payload of a full segment, bytes.
pub(super) fn payload_bytes(played: &Played) -> usize {
    played.case.trial.0.offer.packet_bytes as usize
}
