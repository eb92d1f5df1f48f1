//! Page of a scenario with moving nodes: how much each router delivers, and at what cost.

use super::AirborneTrial;
use crate::finding::Shown;
use crate::format::figure;
use crate::label;
use crate::record::Params;
use crate::report::{Axis, Cell, PageBlock, Plot, PlotSeries, Point, Shape, Table};
use crate::scenario::{AirborneRouter, Scenario};
use crate::stats::Summary;

type Played = crate::bench::Played<AirborneTrial>;

const DELIVERED: &str = "delivered";
const TRANSMISSIONS: &str = "transmissions";

/// Name of a case: its router, with its point in a sweep.
fn name(played: &Played) -> String {
    let (_, point): (Vec<_>, Vec<_>) = played.case.params.iter().partition(|(key, _)| *key == "router");
    let point = point.into_iter().fold(Params::new(), |point, (key, value)| point.with(key, value.clone()));
    let words = [played.case.trial.router.name().to_owned(), label::point(&point)];
    words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Table of all metrics, a row for each router.
fn table(played: &[Played]) -> Table {
    let mut table = Table::of(
        "Routers compared in the same worlds, 95 % confidence intervals",
        "router|# arrived|# delay (s)|# transmissions|# data (byte)|# control (byte)|# damaged|# unsent|# queue full|# out of range|# out of reach",
    );
    for router in played {
        table.row([Cell::text(name(router))].into_iter().chain(router.cells()));
    }
    table
}

/// Differences of the delivered share to that of AeroRP, in the same runs and at the same point of a sweep.
fn differences(played: &[Played]) -> Table {
    let mut table = Table::of(
        "Share of the packets that AeroRP delivers more than another router in the same runs, percentage points",
        "router|# difference|least|most",
    );
    for other in played.iter().filter(|other| other.case.trial.router != AirborneRouter::Aerorp) {
        let Some(difference) = of(played, AirborneRouter::Aerorp, other).and_then(|ours| gain(ours, other))
        else {
            continue;
        };
        let least = Cell::precise(difference.min, 1);
        table.row([
            Cell::text(name(other)),
            Cell::summary(&difference),
            least,
            Cell::precise(difference.max, 1),
        ]);
    }
    table
}

/// Case of a router at the same point as another one.
fn of<'a>(played: &'a [Played], router: AirborneRouter, other: &Played) -> Option<&'a Played> {
    let without_router = |played: &Played| {
        let all = played.case.params.iter().filter(|(key, _)| *key != "router");
        all.map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>()
    };
    let is_same = |ours: &&Played| without_router(ours) == without_router(other);
    played.iter().filter(|ours| ours.case.trial.router == router).find(is_same)
}

/// Gain of the delivered share over another router, percentage points; `None` without a run that both have, as in some shares.
fn gain(ours: &Played, theirs: &Played) -> Option<Summary> {
    let (ours, theirs) = ours.pairs(theirs, DELIVERED);
    let percent = |shares: Vec<f64>| shares.into_iter().map(|share| share * 100.0).collect::<Vec<_>>();
    (!ours.is_empty()).then(|| Summary::of_differences(&percent(ours), &percent(theirs)))
}

/// Plot of the share delivered over the transmissions for each, with a point for each router.
fn plot(played: &[Played]) -> Plot {
    let plot = Plot::new(
        "Packets delivered and transmissions",
        Axis::new("transmissions for each delivered packet", "").from_zero(),
        Axis::new("delivered", "% of the packets").from_zero(),
    );
    let mut plot = plot.captioned(
        "A point for each router: means with 95 % confidence intervals. The best router is at the top, the cheapest \
         at the left.",
    );
    for router in played {
        let shares: Vec<f64> = router.samples(DELIVERED).into_iter().map(|share| share * 100.0).collect();
        let transmissions = router.samples(TRANSMISSIONS);
        if !transmissions.is_empty() {
            let point = Point::of_both(&Summary::of(&transmissions), &Summary::of(&shares));
            plot = plot.with(PlotSeries::new(name(router), vec![point]).shaped(Shape::Points));
        }
    }
    plot.table = Some(table(played));
    plot
}

/// Answers in a sentence how much AeroRP delivers beside the others. Returns `None` without it, and for a sweep.
fn answer(played: &[Played]) -> Option<String> {
    if played.iter().any(|router| router.case.params.iter().count() > 1) {
        return None;
    }
    let ours = played.iter().find(|router| router.case.trial.router == AirborneRouter::Aerorp)?;
    let percent = |share: f64| figure((share * 1000.0).round() / 10.0);
    let each = |router: &Played| {
        let transmissions = figure((router.mean(TRANSMISSIONS) * 10.0).round() / 10.0);
        format!("{} % for {transmissions} transmissions each", percent(router.mean(DELIVERED)))
    };
    let others = played.iter().filter(|router| router.case.trial.router != AirborneRouter::Aerorp);
    let others: Vec<_> = others.map(|router| format!("`{}` {}", name(router), each(router))).collect();
    let mut answer = format!("`{}` delivers {}", name(ours), each(ours));
    if !others.is_empty() {
        answer += &format!("; {}", others.join(", "));
    }
    Some(answer + ".")
}

/// Shows the results of all routers; after an early stop `runs` is the number of runs made.
pub fn shown(scenario: &Scenario, played: &[Played], runs: u32) -> Shown {
    let plan = &scenario.airborne;
    let (articles, relays, ground) = (plan.test_articles, plan.relays, plan.ground_stations);
    let setting = format!(
        "{}: {articles} test articles, {relays} relays and {ground} ground stations, {} packets of {} bytes, {runs} \
         runs.",
        scenario.title, plan.packets, plan.bytes
    );
    let words = "Arrived: share of the packets delivered undamaged during the run. Delay: mean time from sending to \
                 delivery. Transmissions, data, control: data packets on all hops, their bytes, and the bytes of beacons \
                 and acknowledgements, each for one delivered packet; a beacon counts once for all neighbours. Damaged: \
                 share of the packets that arrived with damage only. Unsent: share of the packets for which their source had \
                 no room. Queue full: packets that a full queue refused or dropped, for each packet of the run; one that is \
                 sent again counts again. Out of range, out of reach: mean share of the \
                 moving nodes that no ground station hears, and of those that have no path to one over others either.";
    let channel = "The channel is ideal but for range and bit errors: each pair within range has the whole rate, frames do not \
                   collide, radio range is a distance, and nodes with positions know their own exactly. Each hop sends \
                   to one node. Epidemic routing and spray and wait exchange no summary vectors: a node offers a \
                   packet to each neighbour of which it does not know that it has it, so their transmissions are an \
                   upper bound.";
    let mut summary = vec![PageBlock::Table(table(played)), words.into(), channel.into()];
    let compared = differences(played);
    let has_others = played.iter().any(|other| {
        other.case.trial.router != AirborneRouter::Aerorp
            && of(played, AirborneRouter::Aerorp, other).is_some()
    });
    if has_others {
        summary.push(PageBlock::Table(compared));
    }
    let answer = [plot(played).into()].into_iter().chain(summary.clone()).collect();
    let facts = vec![("runs".to_owned(), runs.to_string()), ("packets".to_owned(), plan.packets.to_string())];
    let lead = match self::answer(played) {
        Some(answer) => {
            summary.insert(0, setting.into());
            answer
        }
        None => setting,
    };
    Shown { lead, answer, summary, facts, sections: Vec::new() }
}
