//! Page of a scenario with messages: which routers deliver the most, and at what cost.

use super::RouterTrial;
use crate::finding::Shown;
use crate::format::figure;
use crate::label;
use crate::record::Params;
use crate::report::{Axis, Cell, PageBlock, Plot, PlotSeries, Point, Shape, Table};
use crate::scenario::{Messages, Scenario};
use crate::stats::Summary;

type Played = crate::bench::Played<RouterTrial>;

const DELIVERED: &str = "delivered";
const SENT: &str = "sent_byte";
const DELAY: &str = "delay_mean_s";

/// Name of a case: its router, with its point in a sweep.
fn name(played: &Played) -> String {
    let (routers, point): (Vec<_>, Vec<_>) = played.case.params.iter().partition(|(key, _)| *key == "router");
    let point = point.into_iter().fold(Params::new(), |point, (key, value)| point.with(key, value.clone()));
    let words = routers.into_iter().map(|(_, router)| router.to_string()).chain([label::point(&point)]);
    words.filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Table of all metrics, a row for each router.
fn table(played: &[Played]) -> Table {
    let mut table = Table::of(
        "Routers compared in the same scenario, 95 % confidence intervals",
        "router|# arrived|# delay (s)|# longest (s)|# copies|# most|# sent (byte)",
    );
    for router in played {
        table.row([Cell::text(name(router))].into_iter().chain(router.cells()));
    }
    table
}

/// Plot of the share delivered over the bytes sent, with a point for each router.
fn plot(played: &[Played]) -> Plot {
    let plot = Plot::new(
        "Messages delivered and bytes sent",
        Axis::new("sent", "byte").from_zero(),
        Axis::new("delivered", "% of the messages").from_zero(),
    );
    let mut plot = plot.captioned(
        "A point for each router: means with 95 % confidence intervals. The best router is at the top, the cheapest \
         at the left.",
    );
    for router in played {
        let shares: Vec<f64> = router.samples(DELIVERED).into_iter().map(|share| share * 100.0).collect();
        let point = Point::of_both(&Summary::of(&router.samples(SENT)), &Summary::of(&shares));
        plot = plot.with(PlotSeries::new(name(router), vec![point]).shaped(Shape::Points));
    }
    plot.table = Some(table(played));
    plot
}

/// Answers in a sentence which routers deliver the most, and what that costs. Routers whose shares do not differ
/// significantly in the same runs are equal. Returns `None` without runs, and for a sweep.
fn answer(played: &[Played]) -> Option<String> {
    if played.iter().any(|router| router.case.params.iter().count() > 1) {
        return None;
    }
    let all: Vec<_> = played.iter().collect();
    let best = least(&all, |router| -router.mean(DELIVERED))?;
    let winners: Vec<_> = all.iter().copied().filter(|router| !differ(router, best, DELIVERED)).collect();
    let cheapest = least(&winners, |router| router.mean(SENT))?;
    let fastest = least(&winners, |router| router.mean(DELAY))?;
    let mut answer = delivered(&winners, all.len());
    if let [winner] = winners[..] {
        let cheapest = least(&all, |router| router.mean(SENT))?;
        if name(cheapest) != name(winner) {
            let times = winner.mean(SENT) / cheapest.mean(SENT);
            answer += &format!(", for {times:.1} times the bytes of `{}`, the cheapest", name(cheapest));
        }
    } else {
        let of_these = if winners.len() < all.len() { "of these " } else { "" };
        answer += &format!("; {of_these}`{}` sends the fewest bytes", name(cheapest));
    }
    if differ(fastest, cheapest, DELAY) {
        let saved = (1.0 - fastest.mean(DELAY) / cheapest.mean(DELAY)) * 100.0;
        let times = fastest.mean(SENT) / cheapest.mean(SENT);
        answer +=
            &format!(", and `{}` takes {saved:.0} % less time for {times:.1} times the bytes", name(fastest));
    }
    Some(answer + ".")
}

/// Names the routers that deliver the most, of this number of routers, and their shares.
fn delivered(winners: &[&Played], of: usize) -> String {
    let shares = winners.iter().map(|router| router.mean(DELIVERED) * 100.0);
    let [from, to] = [shares.clone().fold(100.0, f64::min), shares.fold(0.0, f64::max)];
    let [from, to] = [from, to].map(|share| figure((share * 10.0).round() / 10.0));
    let share = if from == to { format!("{to} %") } else { format!("{from} to {to} %") };
    let names: Vec<String> = winners.iter().map(|router| format!("`{}`", name(router))).collect();
    match &names[..] {
        [name] if of == 1 => format!("{name} delivers {share} of the messages"),
        [name] => format!("{name} delivers the most messages, {share}"),
        [_, _] if of == 2 => format!("Both routers deliver {share} of the messages"),
        names if names.len() == of => format!("All {of} routers deliver {share} of the messages"),
        [names @ .., last] => format!("{} and {last} deliver the most messages, {share}", names.join(", ")),
        [] => String::new(),
    }
}

/// Router with the least of a quantity, the first of several.
fn least<'a>(routers: &[&'a Played], of: impl Fn(&Played) -> f64) -> Option<&'a Played> {
    routers.iter().copied().min_by(|a, b| of(a).total_cmp(&of(b)))
}

/// Returns true if a metric differs significantly between two routers in the same runs; in a single run, if it differs
/// at all.
fn differ(ours: &Played, theirs: &Played, key: &str) -> bool {
    let (ours, theirs) = ours.pairs(theirs, key);
    if ours.is_empty() {
        return false;
    }
    let difference = Summary::of_differences(&ours, &theirs);
    difference.is_significant() || (difference.ci95.is_none() && difference.mean != 0.0)
}

/// Shows the results of all routers; after an early stop `runs` is the number of runs made.
pub fn shown(scenario: &Scenario, played: &[Played], runs: u32) -> Shown {
    let Messages { count, bytes, .. } = scenario.messages;
    let setting = format!("{}: {count} messages of {bytes} bytes, {runs} runs.", scenario.title);
    let words = "Arrived: share of messages delivered during the run. Delay, longest: time from sending to delivery \
                 of these messages. Copies, most: number of nodes that had a message, mean and maximum, without the \
                 destination. Sent: all bytes on all links, including headers, acknowledgements and keep-alives.";
    let mut summary = vec![PageBlock::Table(table(played)), words.into()];
    let answer = [plot(played).into()].into_iter().chain(summary.clone()).collect();
    let messages = format!("{count} of {} bytes", figure(bytes as f64));
    let facts = vec![("runs".to_owned(), runs.to_string()), ("messages".to_owned(), messages)];
    let lead = match self::answer(played) {
        Some(answer) => {
            summary.insert(0, setting.into());
            answer
        }
        None => setting,
    };
    Shown { lead, answer, summary, facts, sections: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::*;
    use crate::bench::{Case, Run};
    use crate::record::Experiment;
    use crate::report::{Report, Section};
    use longwire_proto::bp::agent::RouterChoice;

    /// A router with the messages delivered of ten, their delay and the bytes sent in each run.
    fn router(name: &str, runs: &[(usize, f64, u64)]) -> Played {
        let trial = RouterTrial { scenario: Scenario::default(), router: RouterChoice::Epidemic };
        let outcome = |(delivered, delay_s, sent_bytes): &(usize, f64, u64)| Outcome {
            sent: 10,
            delays_s: vec![*delay_s; *delivered],
            holders: vec![2; 10],
            sent_bytes: *sent_bytes,
        };
        let run = |(number, figures)| (Run::new(1, number), outcome(figures));
        Played {
            case: Case::new("tcpcl4", Params::new().with("router", name), trial, 1, runs.len() as u32),
            runs: (0..).zip(runs).map(run).collect(),
        }
    }

    const CHEAP: [(usize, f64, u64); 3] = [(10, 100.0, 1000), (10, 110.0, 1010), (10, 120.0, 990)];
    const FAST: [(usize, f64, u64); 3] = [(10, 50.0, 3000), (10, 55.0, 3030), (10, 60.0, 2970)];

    #[test]
    fn routers_that_deliver_the_same_are_told_apart_by_their_cost() {
        let played = [router("static", &CHEAP), router("epidemic", &FAST)];
        assert_eq!(
            answer(&played).expect("there are runs"),
            "Both routers deliver 100 % of the messages; `static` sends the fewest bytes, and `epidemic` takes 50 % \
             less time for 3.0 times the bytes."
        );
        let picture = Report { sections: vec![Section::new("").with(plot(&played))], ..Report::default() };
        let page = picture.html(&Experiment::default());
        assert!(page.contains("sent (byte)") && page.contains("delivered (% of the messages)"));
        assert!(page.matches("class=\"error\"").count() >= 2, "both have intervals of their bytes");
    }

    #[test]
    fn a_router_that_delivers_more_is_named_with_what_it_costs() {
        let few = CHEAP.map(|(_, delay_s, sent)| (4, delay_s, sent));
        let played = [router("static", &few), router("epidemic", &FAST)];
        assert_eq!(
            answer(&played).expect("there are runs"),
            "`epidemic` delivers the most messages, 100 %, for 3.0 times the bytes of `static`, the cheapest."
        );
    }

    #[test]
    fn shares_that_differ_by_chance_are_equal() {
        let shares = |of: [usize; 3], bytes: u64| [0, 1, 2].map(|at| (of[at], 100.0, bytes));
        let played = [
            router("spray", &shares([9, 10, 8], 2000)),
            router("epidemic", &shares([10, 9, 9], 3000)),
            router("static", &shares([1, 1, 1], 1000)),
        ];
        assert_eq!(
            answer(&played).expect("there are runs"),
            "`spray` and `epidemic` deliver the most messages, 90 to 93.3 %; of these `spray` sends the fewest bytes."
        );
        let alone = [router("static", &shares([5, 5, 5], 1000))];
        assert_eq!(answer(&alone).expect("there are runs"), "`static` delivers 50 % of the messages.");
        assert_eq!(answer(&[]), None);
        let mut swept = alone;
        swept[0].case.params = swept[0].case.params.clone().with("copies", 4u32);
        assert_eq!((answer(&swept), name(&swept[0])), (None, "static, copies 4".to_owned()));
    }
}
