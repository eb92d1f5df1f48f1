//! Live runs beside the virtual ones of a comparison.

use crate::live::{self, LiveRun};
use bytes::Bytes;
use longwire_lab::error::Error;
use longwire_lab::finding::Finding;
use longwire_lab::link::LinkPath;
use longwire_lab::progress::Progress;
use longwire_lab::record::{FigureKind, Params, Ranked, Record};
use longwire_lab::report::{Cell, Column, PageBlock, Section, Table};
use longwire_lab::stats::{Summary, most};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Rate up to which runs are concurrent: they use so little of the processor that they do not disturb each other, bit/s.
const CONCURRENT_BPS: u64 = 1_000_000;
/// Maximum concurrent runs.
const CONCURRENT_MAX: usize = 16;
/// Time limit of a run, as a multiple of the virtual time and in addition to it, seconds.
const TIME_LIMIT: (f64, f64) = (10.0, 120.0);
/// Lateness of one in a hundred packets from which a result is doubtful, milliseconds.
const LATE_MS: f64 = 10.0;

/// Runs the best settings of each protocol in real time, and adds the results to the finding.
///
/// # Errors
/// Fails if nothing can run live, or without the permissions that this needs.
pub(super) fn beside(
    mut finding: Finding,
    path: &LinkPath,
    files: &[PathBuf],
    runs: u32,
    seed: u64,
    progress: &Progress,
) -> Result<Finding, Error> {
    let mut seen = BTreeSet::new();
    let able = finding.experiment.ranking.iter().filter(|place| live::can_run(place, path));
    let delivers = able.filter(|place| place.acknowledged && place.transfer_s.is_some());
    let places: Vec<Ranked> = delivers.filter(|place| seen.insert(place.protocol.clone())).cloned().collect();
    if places.is_empty() {
        return Err(Error::new("nothing that runs live delivers the files over this link")
            .hint("without --live, the comparison is in virtual time only"));
    }
    let read = |file: &PathBuf| {
        let read = longwire_settings::file::read(file).map(Bytes::from);
        read.map_err(|error| Error::new(format!("cannot read {}: {error}", file.display())))
    };
    let files = files.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
    let played = play(&places, path, &files, runs, seed, progress)?;
    let params = finding.experiment.records.first().map(|record| record.params.clone()).unwrap_or_default();
    let blocks = [PageBlock::Table(table(&places, &played)), PageBlock::Text(explanation(&played))];
    finding.experiment.records.extend(records(&places, &played, &params));
    finding.summary.extend(blocks.clone());
    finding.report.sections.insert(0, Section::new("Live runs").with_all(blocks));
    Ok(finding)
}

/// Carries out all runs, by place.
fn play(
    places: &[Ranked],
    path: &LinkPath,
    files: &[Bytes],
    runs: u32,
    seed: u64,
    progress: &Progress,
) -> Result<Vec<Vec<LiveRun>>, Error> {
    let jobs: Vec<(usize, u64)> =
        (0..runs.into()).flat_map(|run| (0..places.len()).map(move |place| (place, seed + run))).collect();
    let rate = path.hops.iter().map(|hop| hop.rate_bps).max().unwrap_or(0);
    let threads = if rate <= CONCURRENT_BPS { CONCURRENT_MAX.min(jobs.len()) } else { 1 };
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let results: Mutex<Vec<Result<(usize, LiveRun), Error>>> = Mutex::default();
    let work = || {
        while let Some(&(place, seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if stop.load(Ordering::Relaxed) || progress.is_stopped() {
                return;
            }
            let virtual_s = places[place].transfer_s.unwrap_or(0.0);
            let limit = Duration::from_secs_f64(TIME_LIMIT.0 * virtual_s + TIME_LIMIT.1);
            let result = live::run(&places[place], path, files, seed, limit, &stop);
            stop.fetch_or(result.is_err(), Ordering::Relaxed);
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            results.push(result.map(|run| (place, run)));
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        // Ctrl-C ends the runs that are under way.
        while workers.iter().any(|worker| !worker.is_finished()) {
            stop.fetch_or(progress.is_stopped(), Ordering::Relaxed);
            thread::sleep(Duration::from_millis(50));
        }
    });
    let mut played: Vec<Vec<LiveRun>> = vec![Vec::new(); places.len()];
    for result in results.into_inner().unwrap_or_else(PoisonError::into_inner) {
        let (place, run) = result?;
        played[place].push(run);
    }
    Ok(played)
}

fn times(runs: &[LiveRun]) -> Vec<f64> {
    runs.iter().filter_map(|run| run.transfer_s).collect()
}

fn records(places: &[Ranked], played: &[Vec<LiveRun>], params: &Params) -> Vec<Record> {
    let of = |(place, runs): (&Ranked, &Vec<LiveRun>)| {
        let times = times(runs);
        let record = || Record::of(place.name(), params.clone(), "live_transfer_s", "s", &times);
        (!times.is_empty()).then(|| record().with_kind(FigureKind::Measured))
    };
    places.iter().zip(played).filter_map(of).collect()
}

fn table(places: &[Ranked], played: &[Vec<LiveRun>]) -> Table {
    let columns = [
        Column::text("protocol/settings"),
        Column::number("virtual", "s"),
        Column::number("live", "s"),
        Column::number("deviation", "%"),
        Column::text("arrived"),
        Column::number("late", "ms"),
    ];
    let mut table = Table::new("Live beside virtual: means, 95 % confidence intervals", columns);
    for (place, runs) in places.iter().zip(played) {
        let times = times(runs);
        let live = (!times.is_empty()).then(|| Summary::of(&times));
        let virtual_s = place.transfer_s.unwrap_or(f64::NAN);
        let ours =
            Summary { n: place.delivered, mean: virtual_s, ci95: place.ci95, min: virtual_s, max: virtual_s };
        let deviation = live.as_ref().map(|live| 100.0 * (live.mean / virtual_s - 1.0));
        let late = most(runs.iter().map(|run| run.lateness.p99_ms));
        table.row([
            Cell::text(place.name()),
            Cell::summary(&ours),
            live.as_ref().map_or_else(Cell::empty, Cell::summary),
            deviation.map_or_else(Cell::empty, |percent| Cell::precise(percent, 1)),
            Cell::text(format!("{} of {}", times.len(), runs.len())),
            Cell::precise(late, 2),
        ]);
    }
    table
}

fn explanation(played: &[Vec<LiveRun>]) -> String {
    let late = played.iter().flatten().map(|run| run.lateness.p99_ms).fold(0.0, f64::max);
    let doubt = match late > LATE_MS {
        true => {
            " This computer was too busy: one packet in a hundred was later than 10 ms, so the live times say little."
        }
        false => "",
    };
    format!(
        "Live: two nodes of this program, or the TCP of this computer's kernel with Reno, over the emulated link in real time, with the best \
         settings of each protocol that need no commands of the operating system. `late` is the lateness that 99 of 100 packets did not \
         exceed.{doubt}"
    )
}
