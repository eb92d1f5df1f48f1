//! Page of a scenario of meetings: which routers deliver the most, and at what cost.

use super::{MeetingScenario, RouterTrial};
use crate::bench::Played;
use crate::finding::Finding;
use crate::format::figure;
use crate::record::Experiment;
use crate::report::{Axis, Cell, PageBlock, Plot, PlotSeries, Point, Report, Section, Shape, Table};
use crate::stats::Summary;
use std::path::Path;

const DELIVERED: &str = "delivered";
const SENT: &str = "sent_byte";
const DELAY: &str = "delay_mean_s";

/// Table of all metrics, a row for each router.
pub(super) fn table(played: &[Played<RouterTrial<'_>>]) -> Table {
    let mut table = Table::of(
        "Routers compared in the same scenario, 95 % confidence intervals",
        "router|# arrived|# delay (s)|# longest (s)|# copies|# most|# sent (byte)",
    );
    for router in played {
        table.row([Cell::text(&router.case.name)].into_iter().chain(router.cells()));
    }
    table
}

/// Plot of the share delivered over the bytes sent, with a point for each router.
pub(super) fn plot(played: &[Played<RouterTrial<'_>>]) -> Plot {
    let plot = Plot::new(
        "Messages delivered and bytes sent",
        Axis::new("sent", "byte").from_zero(),
        Axis::new("delivered", "% of the messages").from_zero(),
    );
    let mut plot = plot.captioned(
        "A point for each router: means with 95 % confidence intervals. The best router is at the top, the cheapest \
         at the left.",
    );
    for router in played.iter().filter(|router| !router.runs.is_empty()) {
        let shares: Vec<f64> = router.samples(DELIVERED).into_iter().map(|share| share * 100.0).collect();
        let point = Point::of_both(&Summary::of(&router.samples(SENT)), &Summary::of(&shares));
        plot = plot.with(PlotSeries::new(&router.case.name, vec![point]).shaped(Shape::Points));
    }
    plot.table = Some(table(played));
    plot
}

/// Answers in a sentence which routers deliver the most, and what that costs. Routers whose shares do not differ
/// significantly in the same runs are equal. Returns `None` without runs.
pub(super) fn answer(played: &[Played<RouterTrial<'_>>]) -> Option<String> {
    let all: Vec<_> = played.iter().filter(|router| !router.runs.is_empty()).collect();
    let best = least(&all, |router| -router.mean(DELIVERED))?;
    let winners: Vec<_> = all.iter().copied().filter(|router| !differ(router, best, DELIVERED)).collect();
    let cheapest = least(&winners, |router| router.mean(SENT))?;
    let fastest = least(&winners, |router| router.mean(DELAY))?;
    let mut answer = delivered(&winners, all.len());
    if let [winner] = winners[..] {
        let cheapest = least(&all, |router| router.mean(SENT))?;
        if cheapest.case.name != winner.case.name {
            let times = winner.mean(SENT) / cheapest.mean(SENT);
            answer += &format!(", for {times:.1} times the bytes of `{}`, the cheapest", cheapest.case.name);
        }
    } else {
        let of_these = if winners.len() < all.len() { "of these " } else { "" };
        answer += &format!("; {of_these}`{}` sends the fewest bytes", cheapest.case.name);
    }
    if differ(fastest, cheapest, DELAY) {
        let saved = (1.0 - fastest.mean(DELAY) / cheapest.mean(DELAY)) * 100.0;
        let times = fastest.mean(SENT) / cheapest.mean(SENT);
        answer += &format!(
            ", and `{}` takes {saved:.0} % less time for {times:.1} times the bytes",
            fastest.case.name
        );
    }
    Some(answer + ".")
}

/// Names the routers that deliver the most, of this number of routers, and their shares.
fn delivered(winners: &[&Played<RouterTrial<'_>>], of: usize) -> String {
    let shares = winners.iter().map(|router| router.mean(DELIVERED) * 100.0);
    let [from, to] = [shares.clone().fold(100.0, f64::min), shares.fold(0.0, f64::max)];
    let [from, to] = [from, to].map(|share| figure((share * 10.0).round() / 10.0));
    let share = if from == to { format!("{to} %") } else { format!("{from} to {to} %") };
    let names: Vec<String> = winners.iter().map(|router| format!("`{}`", router.case.name)).collect();
    match &names[..] {
        [name] if of == 1 => format!("{name} delivers {share} of the messages"),
        [name] => format!("{name} delivers the most messages, {share}"),
        names if names.len() == of => format!("All {of} routers deliver {share} of the messages"),
        [names @ .., last] => format!("{} and {last} deliver the most messages, {share}", names.join(", ")),
        [] => String::new(),
    }
}

/// Router with the least of a quantity, the first of several.
fn least<'a, 'b>(
    routers: &[&'a Played<RouterTrial<'b>>],
    of: impl Fn(&Played<RouterTrial<'b>>) -> f64,
) -> Option<&'a Played<RouterTrial<'b>>> {
    routers.iter().copied().min_by(|a, b| of(a).total_cmp(&of(b)))
}

/// Returns true if a metric differs significantly between two routers in the same runs; in a single run, if it differs
/// at all.
fn differ<'b>(ours: &Played<RouterTrial<'b>>, theirs: &Played<RouterTrial<'b>>, key: &str) -> bool {
    let (ours, theirs) = ours.pairs(theirs, key);
    if ours.is_empty() {
        return false;
    }
    let difference = Summary::of_differences(&ours, &theirs);
    difference.is_significant() || (difference.ci95.is_none() && difference.mean != 0.0)
}

/// Creates the finding; after an early stop `plan` has the number of runs made.
pub(super) fn finding(
    plan: &MeetingScenario,
    path: &Path,
    experiment: Experiment,
    lead: String,
    table: Table,
    plot: Plot,
) -> Finding {
    let title = if plan.title.is_empty() { "Meetings" } else { &plan.title };
    let messages = format!("{} of {} bytes", plan.messages.count, figure(plan.messages.bytes as f64));
    let setting = format!(
        "{title}: {} messages of {} bytes, {} runs.",
        plan.messages.count, plan.messages.bytes, plan.runs
    );
    let words = "Arrived: share of messages delivered during the run. Delay, longest: time from sending to delivery \
                 of these messages. Copies, most: number of nodes that had a message, mean and maximum, without the \
                 destination. Sent: all bytes on all links, including headers, acknowledgements and keep-alives.";
    let text = toml::to_string(plan).expect("a plan is TOML");
    let report = Report {
        title: title.to_owned(),
        lead: lead.clone(),
        answer: vec![plot.into(), table.clone().into(), words.into()],
        command: format!("longwire run {} --runs {} --seed {}", path.display(), plan.runs, plan.seed),
        facts: vec![
            ("seed".into(), plan.seed.to_string()),
            ("runs".into(), plan.runs.to_string()),
            ("messages".into(), messages),
        ],
        sections: vec![
            Section::new("The scenario").with(PageBlock::Code { caption: "the scenario".into(), text }),
        ],
        assumptions: Vec::new(),
    };
    Finding {
        experiment,
        report,
        summary: vec![
            PageBlock::Text(lead),
            PageBlock::Text(setting),
            PageBlock::Table(table),
            PageBlock::Text(words.into()),
        ],
        traces: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::*;
    use crate::bench::{Case, Run};
    use crate::record::Params;
    use longwire_proto::bp::agent::RouterChoice;

    /// A router with the messages delivered of ten, their delay and the bytes sent in each run.
    fn router<'a>(
        plan: &'a MeetingScenario,
        name: &str,
        runs: &[(usize, f64, u64)],
    ) -> Played<RouterTrial<'a>> {
        let trial = RouterTrial { plan, router: RouterChoice::Epidemic };
        let outcome = |(delivered, delay_s, sent_bytes): &(usize, f64, u64)| Outcome {
            sent: 10,
            delays_s: vec![*delay_s; *delivered],
            holders: vec![2; 10],
            sent_bytes: *sent_bytes,
        };
        let run = |(number, figures)| (Run::new(1, number), outcome(figures));
        Played {
            case: Case::new(name, Params::new(), trial, 1, runs.len() as u32),
            runs: (0..).zip(runs).map(run).collect(),
        }
    }

    const CHEAP: [(usize, f64, u64); 3] = [(10, 100.0, 1000), (10, 110.0, 1010), (10, 120.0, 990)];
    const FAST: [(usize, f64, u64); 3] = [(10, 50.0, 3000), (10, 55.0, 3030), (10, 60.0, 2970)];

    #[test]
    fn routers_that_deliver_the_same_are_told_apart_by_their_cost() {
        let plan = MeetingScenario::default();
        let played = [router(&plan, "static", &CHEAP), router(&plan, "epidemic", &FAST)];
        assert_eq!(
            answer(&played).expect("there are runs"),
            "All 2 routers deliver 100 % of the messages; `static` sends the fewest bytes, and `epidemic` takes 50 % \
             less time for 3.0 times the bytes."
        );
        let picture = Report { sections: vec![Section::new("").with(plot(&played))], ..Report::default() };
        let page = picture.html(&Experiment::default());
        assert!(page.contains("sent (byte)") && page.contains("delivered (% of the messages)"));
        assert!(page.matches("class=\"error\"").count() >= 2, "both have intervals of their bytes");
    }

    #[test]
    fn a_router_that_delivers_more_is_named_with_what_it_costs() {
        let plan = MeetingScenario::default();
        let few = CHEAP.map(|(_, delay_s, sent)| (4, delay_s, sent));
        let played = [router(&plan, "static", &few), router(&plan, "epidemic", &FAST)];
        assert_eq!(
            answer(&played).expect("there are runs"),
            "`epidemic` delivers the most messages, 100 %, for 3.0 times the bytes of `static`, the cheapest."
        );
    }

    #[test]
    fn shares_that_differ_by_chance_are_equal() {
        let plan = MeetingScenario::default();
        let shares = |of: [usize; 3], bytes: u64| [0, 1, 2].map(|at| (of[at], 100.0, bytes));
        let played = [
            router(&plan, "spray", &shares([9, 10, 8], 2000)),
            router(&plan, "epidemic", &shares([10, 9, 9], 3000)),
            router(&plan, "static", &shares([1, 1, 1], 1000)),
        ];
        assert_eq!(
            answer(&played).expect("there are runs"),
            "`spray` and `epidemic` deliver the most messages, 90 to 93.3 %; of these `spray` sends the fewest bytes."
        );
        let alone = [router(&plan, "static", &shares([5, 5, 5], 1000))];
        assert_eq!(answer(&alone).expect("there are runs"), "`static` delivers 50 % of the messages.");
        assert_eq!(answer(&[]), None);
    }
}
