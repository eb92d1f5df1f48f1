use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Trial whose outcome is the run itself.
struct Echo;

impl Trial for Echo {
    type Outcome = Run;

    const METRICS: &'static [Metric<Run>] = &[
        Metric::new("number", "", |run| Some(f64::from(run.number))),
        Metric::new("odd", "", |run: &Run| (run.number % 2 == 1).then_some(f64::from(run.number)))
            .with_limit(|runs| runs.len() as f64),
    ];

    fn play(&self, run: Run) -> Run {
        run
    }
}

fn case(name: &str, rounds: u32) -> Case<Echo> {
    Case::new(name, Params::new().with("rounds", rounds), Echo, 7, rounds)
}

fn cases() -> Vec<Case<Echo>> {
    vec![case("all", 9), case("few", 3), case("every fourth", 9).every(4)]
}

fn numbers(played: &[Played<Echo>]) -> Vec<Vec<u32>> {
    played.iter().map(|played| played.outcomes().map(|run| run.number).collect()).collect()
}

fn bench(progress: &Progress, threads: usize) -> Bench<'_> {
    Bench { threads, ..Bench::new(progress) }
}

#[test]
fn runs_have_their_own_seeds_whatever_the_case_and_the_number_of_threads() {
    let play = |threads| bench(&Progress::new(), threads).play(cases());
    let (one, three) = (play(1), play(3));
    assert_eq!(numbers(&one), [(0..9).collect(), vec![0, 1, 2], vec![0, 1, 2]]);
    for (one, three) in one.iter().zip(&three) {
        assert_eq!(one.runs, three.runs);
        let of_seed = |number| Rng::new(7).fork(&format!("run {number}")).next_u64();
        assert!(one.runs.iter().all(|(run, played)| run == played && run.seed == of_seed(run.number)));
    }
    assert_eq!(rounds(&one), 9);
}

#[test]
fn shares_divide_the_runs_round_by_round() {
    let progress = Progress::new();
    let share = |index| Bench { shard: Shard { index, count: 2 }, ..bench(&progress, 2) }.play(cases());
    let (first, second) = (share(1), share(2));
    assert_eq!(numbers(&first), [vec![0, 4, 5, 7], vec![1, 2], vec![0, 2]]);
    for (at, case) in cases().iter().enumerate() {
        let mut both: Vec<u32> =
            [&first, &second].iter().flat_map(|share| numbers(share)[at].clone()).collect();
        both.sort_unstable();
        assert_eq!(both, (0..case.rounds.div_ceil(case.every)).collect::<Vec<u32>>());
    }
}

/// Trial that requests a stop in one of its runs.
struct Stops(Option<u32>, Arc<AtomicBool>);

impl Trial for Stops {
    type Outcome = u32;

    const METRICS: &'static [Metric<u32>] = &[];

    fn play(&self, run: Run) -> u32 {
        if self.0 == Some(run.number) {
            self.1.store(true, Ordering::Relaxed);
        }
        run.number
    }
}

#[test]
fn a_stop_leaves_whole_rounds_in_every_case() {
    for threads in [1, 3] {
        let stop = Arc::new(AtomicBool::new(false));
        let case = |rounds, in_run| Case::new("", Params::new(), Stops(in_run, stop.clone()), 1, rounds);
        let progress = Progress::until(stop.clone());
        let played =
            bench(&progress, threads).play(vec![case(9, Some(4)), case(3, None), case(9, None).every(4)]);
        // Other threads may be in any later round when the fifth run requests the stop.
        let made = rounds(&played);
        assert!(if threads == 1 { made == 4 } else { (4..=9).contains(&made) }, "{made}");
        let counts: Vec<u32> = played.iter().map(|played| played.runs.len() as u32).collect();
        assert_eq!(counts, [made, 3, made.div_ceil(4)]);
        assert_eq!(progress.left_out(), u64::from(9 + 3 + 3 - counts.iter().sum::<u32>()));
    }
    // A stop before the first run leaves the first round.
    let progress = Progress::until(Arc::new(AtomicBool::new(true)));
    assert_eq!(numbers(&bench(&progress, 2).play(cases())), [[0], [0], [0]]);
    assert!(bench(&progress, 2).play(Vec::<Case<Echo>>::new()).is_empty());
}

#[test]
fn records_and_rows_have_what_the_runs_have() {
    let played = bench(&Progress::new(), 1).play(vec![case("few", 4), case("two", 2)]);
    let records = played[0].records();
    assert_eq!(records.iter().map(|record| record.metric.as_str()).collect::<Vec<_>>(), ["number", "odd"]);
    assert_eq!((records[1].n, records[1].mean, records[1].limit), (2, 2.0, Some(2.0)));
    assert_eq!((played[0].mean("number"), played[0].param("rounds")), (1.5, 4.0));
    let rows = played[0].rows();
    let odd = |row: &Row| row.values.iter().find(|(name, _)| name == "odd").map(|(_, value)| *value);
    assert_eq!((rows[3].run, odd(&rows[3]), odd(&rows[2])), (3, Some(3.0), None));
    assert_eq!(rows[3].seed, Run::new(7, 3).seed);
    // Only the run that both have is a pair.
    assert_eq!(played[0].pairs(&played[1], "odd"), (vec![1.0], vec![1.0]));
    let empty = Played { case: case("none", 1), runs: Vec::new() };
    assert!(empty.record("number").is_none() && empty.mean("number").is_nan());
}

#[test]
fn work_besides_the_runs_is_left_out_of_a_thin_experiment_and_after_a_stop() {
    let progress = Progress::new();
    assert_eq!(bench(&progress, 1).besides(|| 5), Some(5));
    assert_eq!((progress.done(), progress.left_out()), (1, 0));
    assert_eq!(Bench { thin: true, ..bench(&progress, 1) }.besides(|| 5), None);
    assert_eq!((progress.done(), progress.left_out()), (1, 0));
    let stopped = Progress::up_to(0);
    assert_eq!(bench(&stopped, 1).besides(|| 5), None);
    assert_eq!((stopped.done(), stopped.left_out()), (0, 1));
}
