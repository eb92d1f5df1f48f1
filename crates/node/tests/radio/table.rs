//! The table: a file of 7,182 bytes in each direction, and Dire Wolf to Dire Wolf, in turn on the same rig.
//!
//! Environment: `LONGWIRE_RADIO` measures only the rows that contain its words (`"9600 k=7 -lost"`), `LONGWIRE_RADIO_ROUNDS` sets
//! another number of rounds than five, `LONGWIRE_RADIO_TRACE` writes the transmitted frames to this folder, one file per transfer.

use crate::channel::Noted;
use crate::content;
use crate::direwolf::{Air, Failure, Rig};
use crate::transfers::{WAYS, Way};
use longwire_proto::ax25::ChannelMonitor;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Length of the file of the published measurements, bytes.
const FILE_BYTES: usize = 7182;
const ROUNDS: usize = 5;
/// Maximum concurrent rigs: each takes a few hundredths of a core.
const RIGS: usize = 24;
/// Maximum duration of a transfer.
const BOUND: Duration = Duration::from_secs(600);
/// Delay of the sound, or of this program, from which a transfer is measured again.
pub(crate) const LATE: Duration = Duration::from_millis(100);
/// Maximum measurements of one transfer.
pub(crate) const AGAIN: usize = 3;

/// All rows, the slow ones first, so that all rigs finish at about the same time.
fn rows() -> Vec<Air> {
    let air = |rate_bps, window, destroyed_percent, digipeater| Air {
        rate_bps,
        window,
        destroyed_percent,
        digipeater,
    };
    let mut rows = vec![air(1200, 4, 0, true)];
    rows.extend([(4, 25), (32, 25), (4, 10), (32, 10)].map(|(window, lost)| air(1200, window, lost, false)));
    rows.extend([1, 4, 7, 32].map(|window| air(1200, window, 0, false)));
    for lost in [25, 10] {
        rows.extend([1, 4, 7, 32].map(|window| air(9600, window, lost, false)));
    }
    rows.push(air(9600, 32, 28, false));
    rows.extend([4, 32].map(|window| air(9600, window, 0, true)));
    rows.extend([1, 4, 7, 32].map(|window| air(9600, window, 0, false)));
    rows
}

/// Approximate duration of a transfer, seconds, for the announcement of the total time.
fn guess(air: &Air) -> f64 {
    let plain = match (air.rate_bps, air.window) {
        (1200, 1) => 74.0,
        (1200, _) => 59.0,
        (_, 1) => 23.0,
        _ => 11.0,
    };
    let hops = if air.digipeater { 2.0 } else { 1.0 };
    let lost = f64::from(air.destroyed_percent) / 100.0;
    plain * hops / (1.0 - lost).powi(3) + 3.0
}

/// True if the row contains this word, or, with a minus sign, does not contain it.
pub(crate) fn is_meant(row: &str, word: &str) -> bool {
    let has = |word: &str| row.split(' ').any(|part| part == word);
    word.strip_prefix('-').map_or_else(|| has(word), |without| !has(without))
}

pub(crate) fn name(air: &Air) -> String {
    let Air { rate_bps, window, destroyed_percent, digipeater } = *air;
    let modulo = if air.is_extended() { " modulo 128" } else { "" };
    let lost = if destroyed_percent > 0 { format!(" {destroyed_percent} % lost") } else { String::new() };
    let path = if digipeater { " digipeater" } else { "" };
    format!("{rate_bps} bit/s k={window}{modulo}{lost}{path}")
}

/// Results of one row so far.
#[derive(Default)]
struct Row {
    /// Times by round; infinite for a transfer that did not finish.
    times: [BTreeMap<usize, f64>; 3],
    rounds: usize,
    misses: Vec<String>,
}

/// Times at which this program was behind the clock, and by how much.
#[derive(Default)]
pub(crate) struct Pulse(RefCell<Vec<(Instant, Duration)>>);

impl Pulse {
    /// Minimum delay that is recorded.
    const NOTED: Duration = Duration::from_millis(10);

    pub(crate) async fn beat(&self) {
        loop {
            let due = Instant::now() + Duration::from_millis(5);
            tokio::time::sleep_until(due.into()).await;
            let late = due.elapsed();
            if late > Pulse::NOTED {
                self.0.borrow_mut().push((due, late));
            }
        }
    }

    pub(crate) fn latest_since(&self, began: Instant) -> Duration {
        let noted = self.0.borrow();
        noted.iter().filter(|(at, _)| *at >= began).map(|(_, late)| *late).max().unwrap_or_default()
    }
}

/// Number of rounds: `usual` unless the environment sets another.
pub(crate) fn rounds_or(usual: usize) -> usize {
    std::env::var("LONGWIRE_RADIO_ROUNDS").map_or(usual, |rounds| rounds.parse().unwrap())
}

pub(crate) async fn measure() {
    let filter = std::env::var("LONGWIRE_RADIO").unwrap_or_default();
    let rounds = rounds_or(ROUNDS);
    let words: Vec<&str> = filter.split_whitespace().collect();
    let airs: Vec<Air> =
        rows().into_iter().filter(|air| words.iter().all(|word| is_meant(&name(air), word))).collect();
    let work = airs.iter().map(|air| guess(air) * (WAYS.len() * rounds) as f64).sum::<f64>();
    let longest = airs.iter().map(|air| guess(air) * WAYS.len() as f64).fold(0.0, f64::max);
    println!(
        "{} rows, {rounds} rounds of {} transfers, {RIGS} rigs at a time: about {:.0} minutes",
        airs.len(),
        WAYS.len(),
        (work / RIGS as f64 + longest).max(longest) / 60.0
    );
    println!(
        "seconds from the call to the last acknowledgement: mean, median, (shortest to longest); ratios to Dire Wolf's"
    );
    println!("| | we send | we receive | Dire Wolf to Dire Wolf | sending | receiving | |");
    println!("|---|---|---|---|---|---|---|");
    let jobs: VecDeque<(usize, usize)> =
        (0..airs.len()).flat_map(|row| (0..rounds).map(move |round| (row, round))).collect();
    let table: Vec<_> = airs.iter().map(|_| Rc::new(RefCell::new(Row::default()))).collect();
    let (places, pulse, file) = (Semaphore::new(RIGS), Pulse::default(), content(FILE_BYTES, "file"));
    let all = futures_util::future::join_all(jobs.into_iter().map(|(row, round)| {
        let (air, row, places, pulse, file) = (airs[row], table[row].clone(), &places, &pulse, &file);
        async move {
            let _place = places.acquire().await;
            for (way, result) in one_round(air, round, file, pulse).await {
                let mut row = row.borrow_mut();
                if let Err(failure) = &result {
                    row.misses.push(format!("{way:?}: {failure}"));
                }
                row.times[way as usize].insert(round, result.unwrap_or(f64::INFINITY));
            }
            row.borrow_mut().rounds += 1;
            if row.borrow().rounds == rounds {
                println!("{}", line(&air, &row.borrow()));
            }
        }
    }));
    tokio::select! {
        _ = all => {}
        () = pulse.beat() => {}
    }
    let done = table
        .iter()
        .all(|row| row.borrow().times.iter().all(|times| times.values().any(|seconds| seconds.is_finite())));
    assert!(done, "a row has no transfer that came to its end");
}

/// All three on one rig, in another order in every round.
async fn one_round(air: Air, round: usize, file: &[u8], pulse: &Pulse) -> Vec<(Way, Result<f64, Failure>)> {
    let named = format!("{} round {round}", name(&air));
    let mut rig = None;
    let mut results = vec![];
    for turn in 0..WAYS.len() {
        let way = WAYS[(turn + round) % WAYS.len()];
        for again in 0.. {
            let here = match rig.take() {
                Some(rig) => rig,
                None => {
                    let name = named.replace([' ', '/', '%'], "-");
                    // Starting a rig waits for the programs.
                    tokio::task::spawn_blocking(move || Rig::start(&name, air)).await.unwrap()
                }
            };
            here.channel.begin(0.0, 0);
            let began = Instant::now();
            let result = tokio::time::timeout(BOUND, way.go(&here, file, round as u64)).await;
            let result = result.unwrap_or_else(|_| Err(format!("not over after {BOUND:?}")));
            let noted = here.channel.noted();
            let (late, ours) = (noted.late.max(noted.unheard), pulse.latest_since(began));
            let disturbed = late.max(ours) > LATE;
            eprintln!("{named} {way:?}: {}", story(&result, &noted, ours, disturbed));
            if let Ok(folder) = std::env::var("LONGWIRE_RADIO_TRACE") {
                let file = format!("{named} {way:?} {again}.txt").replace([' ', '/', '%'], "-");
                trace(&Path::new(&folder).join(file), began, noted);
            }
            if result.is_ok() {
                rig = Some(here);
            } else {
                let _ = tokio::task::spawn_blocking(|| drop(here)).await;
            }
            if !disturbed || again == AGAIN {
                let note = if disturbed {
                    Err(format!("disturbed every time, {late:?} late"))
                } else {
                    result.map(|time| time.as_secs_f64())
                };
                results.push((way, note));
                break;
            }
        }
    }
    let _ = tokio::task::spawn_blocking(|| drop(rig)).await;
    results
}

pub(crate) fn story(
    result: &Result<Duration, Failure>,
    noted: &Noted,
    ours: Duration,
    disturbed: bool,
) -> String {
    let result = match result {
        Ok(time) => format!("{:.2} s", time.as_secs_f64()),
        Err(failure) => failure.clone(),
    };
    let destroyed = noted.said.iter().filter(|said| said.destroyed).count();
    let mut text = format!("{result}; {} frames, {destroyed} destroyed", noted.said.len());
    if !noted.collided.is_zero() {
        write!(text, ", {} ms of collisions", noted.collided.as_millis()).unwrap();
    }
    if noted.torn > 0 {
        write!(text, ", {} torn", noted.torn).unwrap();
    }
    write!(
        text,
        "; late: channel {} ms, sound {} ms, we {} ms{}",
        noted.late.as_millis(),
        noted.unheard.as_millis(),
        ours.as_millis(),
        if disturbed { ": DISTURBED" } else { "" }
    )
    .unwrap();
    text
}

/// Writes the transmitted frames, one per line: its end, the time since the end of the frame before, and the station.
pub(crate) fn trace(path: &Path, began: Instant, noted: Noted) {
    let (mut watcher, mut text, mut before) = (ChannelMonitor::new(), String::new(), began);
    for said in noted.said {
        let station = said.station;
        let heard = match watcher.hear(said.frame) {
            Ok(heard) => {
                let role = if heard.frame.is_command() { "command " } else { "response" };
                let again =
                    if heard.frame.address.path.iter().any(|hop| hop.repeated) { "repeated " } else { "" };
                let length = heard.frame.information.len();
                format!("{again}{role} {:?} {length}", heard.frame.control)
            }
            Err(error) => error.to_string(),
        };
        let (at, gap) = ((said.at - began).as_secs_f64(), (said.at - before).as_secs_f64());
        let lost = if said.destroyed { " DESTROYED" } else { "" };
        writeln!(text, "{at:8.3} {gap:7.3}  {station} {heard}{lost}").unwrap();
        before = said.at;
    }
    std::fs::write(path, text).unwrap();
}

pub(crate) fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

/// Median of all rounds, including those that did not finish.
fn median(times: &BTreeMap<usize, f64>) -> f64 {
    let mut times: Vec<f64> = times.values().copied().collect();
    times.sort_by(f64::total_cmp);
    let last = times.len() - 1;
    (times[last / 2] + times[last.div_ceil(2)]) / 2.0
}

/// Ratio of the means of the rounds in which both finished.
fn ratio(ours: &BTreeMap<usize, f64>, theirs: &BTreeMap<usize, f64>) -> f64 {
    let both = |round: &&usize| ours[*round].is_finite() && theirs[*round].is_finite();
    let rounds: Vec<&usize> = ours.keys().filter(both).collect();
    let of =
        |times: &BTreeMap<usize, f64>| mean(&rounds.iter().map(|round| times[*round]).collect::<Vec<_>>());
    of(ours) / of(theirs)
}

fn cell(times: &BTreeMap<usize, f64>) -> String {
    let ended: Vec<f64> = times.values().copied().filter(|seconds| seconds.is_finite()).collect();
    let least = ended.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ended.iter().copied().fold(0.0, f64::max);
    let lost = match times.len() - ended.len() {
        0 => String::new(),
        lost => format!(", {lost} without an end"),
    };
    format!("{:.2}, {:.2} ({least:.1} to {most:.1}{lost})", mean(&ended), median(times))
}

fn line(air: &Air, row: &Row) -> String {
    let [sends, receives, beside] = &row.times;
    // Where more than a quarter of the frames is destroyed, a few long waits would determine a mean.
    let compare = |ours: &BTreeMap<usize, f64>| match air.destroyed_percent > 25 {
        true => median(ours) / median(beside),
        false => ratio(ours, beside),
    };
    let (there, back) = (compare(sends), compare(receives));
    // Aims: sending at most 3 % above Dire Wolf, receiving at most 5 %; where more than a quarter is destroyed, not slower at
    // all.
    let (there_most, back_most) = if air.destroyed_percent > 25 { (1.0, 1.0) } else { (1.03, 1.05) };
    let mut notes = vec![];
    if there > there_most {
        notes.push("sending misses the aim".to_owned());
    }
    if back > back_most {
        notes.push("receiving misses the aim".to_owned());
    }
    notes.extend(row.misses.iter().cloned());
    format!(
        "| {} | {} | {} | {} | {there:.3} | {back:.3} | {} |",
        name(air),
        cell(sends),
        cell(receives),
        cell(beside),
        notes.join("; ")
    )
}
