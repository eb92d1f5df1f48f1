//! Tests of rankings and their texts.

use super::ranking::Reason;
use super::*;
use crate::bench::{Played, Run};
use crate::limit::Bound;
use crate::run::{NotDelivered, Outcome, Wanted};

/// Returns a candidate with these transfer times; `None` for a run that did not complete.
fn candidate(name: &str, link: &str, times: &[Option<f64>]) -> Candidate {
    let text = format!("protocol = '{name}'\n[workload]\nbytes = 10\n[[link]]\nprofile = '{link}'");
    let scenario = Scenario::parse(&text, "test").expect("a scenario");
    let setup = Setup::with_files(scenario, Path::new("."), vec![Bytes::from_static(b"0123456789")]);
    let case = Chain::case(name, Params::new(), setup.expect("a setup"), times.len() as u32);
    let played = case.trial.setup.run(0, Wanted::default());
    let outcome = |(run, transfer_s): (u32, &Option<f64>)| {
        let mut outcome =
            Outcome { run, delivered: transfer_s.is_some(), transfer_s: *transfer_s, ..played.clone() };
        outcome.limit.streaming = Bound { error_free_s: 1.0, mean_s: 2.0 };
        (Run::new(case.seed, run), outcome)
    };
    let runs = (0..).zip(times).map(outcome).collect();
    let (protocol, variant) = protocols::find(name).expect("it is in the table");
    Candidate::new(Preset { protocol, variant }, Played { case, runs })
}

/// Returns a candidate on `lan` whose runs are all complete.
fn timed(name: &str, times: [f64; 4]) -> Candidate {
    candidate(name, "lan", &times.map(Some))
}

fn ranking(candidates: Vec<Candidate>, link: &str) -> Ranking {
    Ranking::of(candidates, &LinkPath::load(link, Path::new(".")).expect("it is shipped"))
}

/// Evaluates a function of the comparison of these candidates, of four planned runs each.
fn said<T>(candidates: Vec<Candidate>, link: &str, of: impl FnOnce(&Comparison<'_>) -> T) -> T {
    planned(4, candidates, link, of)
}

/// The same with another number of planned runs.
fn planned<T>(
    planned: u32,
    candidates: Vec<Candidate>,
    link: &str,
    of: impl FnOnce(&Comparison<'_>) -> T,
) -> T {
    let ranking = ranking(candidates, link);
    let (options, link) = (
        Options {
            files: Vec::new(),
            link: link.into(),
            runs: None,
            seed: 1,
            threads: 1,
            traces: false,
            receivers: 1,
        },
        LinkPath::load(link, Path::new(".")).expect("it is shipped"),
    );
    of(&Comparison { options: &options, path: &link, bytes: 10, planned, runs: planned, ranking })
}

/// Returns name, rank and tie group of each, in order.
fn order(ranking: &Ranking) -> Vec<(&str, Option<usize>, Option<usize>)> {
    let places = ranking.all().iter();
    places.map(|place| (place.candidate.name(), place.values.rank, place.values.tie_group)).collect()
}

#[test]
fn a_tie_behind_a_rival_that_is_significantly_slower_is_a_tie() {
    let first = timed("tcp/tuned", [10.0, 10.1, 9.9, 10.0]);
    let slower = timed("tcpcl4/tuned", [11.0, 11.1, 10.9, 11.0]);
    let wide = timed("tcpcl3/tuned", [5.0, 20.0, 6.0, 15.0]);
    let ranking = ranking(vec![slower, wide, first], "lan");
    let expected = [
        ("tcpcl3/tuned", Some(1), Some(1)),
        ("tcp/tuned", Some(1), Some(1)),
        ("tcpcl4/tuned", Some(3), Some(2)),
    ];
    assert_eq!((ranking.tied().len(), &order(&ranking)[..]), (2, &expected[..]));
    assert_eq!(ranking.reasons, [Reason::KeepsAccepted]);
}

#[test]
fn equal_means_share_a_rank_and_the_next_rank_counts_them() {
    let all = vec![
        timed("tcpcl4/default", [20.0, 21.0, 22.0, 23.0]),
        timed("tcpcl3/dtn2", [20.0, 22.0, 21.0, 23.0]),
        timed("tcp/tuned", [10.0, 10.1, 9.9, 10.0]),
        timed("tcp/linux-6", [15.0; 4]),
        timed("udp/paced", [15.0; 4]),
        candidate("tcp/rfc5681", "lan", &[Some(20.0), None, Some(21.5), Some(23.0)]),
        candidate("tcp/linux-6-64k", "lan", &[None; 4]),
        candidate("tcpcl3/tuned", "lan", &[None; 4]),
    ];
    let expected = [
        ("tcp/tuned", Some(1), Some(1)),
        ("tcp/linux-6", Some(2), Some(2)),
        ("tcpcl4/default", Some(3), Some(3)),
        ("tcpcl3/dtn2", Some(3), Some(3)),
        // The same mean of fewer runs is not level with them.
        ("tcp/rfc5681", Some(5), Some(4)),
        ("tcp/linux-6-64k", Some(6), Some(5)),
        ("tcpcl3/tuned", Some(6), Some(5)),
        ("udp/paced", None, None),
    ];
    let ranking = ranking(all, "lan");
    assert_eq!(order(&ranking), expected);
    assert!(ranking.reasons.is_empty(), "{:?}", ranking.reasons);
    let winners = ranking.all().iter().filter(|place| place.values.winner);
    assert_eq!(winners.map(|place| place.candidate.name()).collect::<Vec<_>>(), ["tcp/tuned"]);
    let node = ranking.best_for_nodes().expect("two arrived");
    assert_eq!(node.candidate.name(), "tcpcl4/default");
}

#[test]
fn where_nothing_arrives_there_is_no_winner() {
    let none = |name: &str| candidate(name, "lan", &[None; 4]);
    let all = vec![none("tcp/tuned"), none("tcpcl4/tuned"), none("udp/paced")];
    said(all, "lan", |comparison| {
        let ranks =
            [("tcp/tuned", Some(1), Some(1)), ("tcpcl4/tuned", Some(1), Some(1)), ("udp/paced", None, None)];
        assert_eq!(order(&comparison.ranking), ranks);
        for Place { values, .. } in comparison.ranking.all() {
            let figures = [values.transfer_s, values.ci95, values.limit_s, values.ratio];
            assert_eq!((values.winner, figures, values.behind_winner), (false, [None; 4], None));
        }
        assert!(comparison.ranking.best_for_nodes().is_none());
        assert!(comparison.lead().starts_with("No protocol delivered "), "{}", comparison.lead());
        assert!(comparison.configuration().is_empty());
    });
}

#[test]
fn a_difference_to_the_winner_is_of_the_same_runs() {
    let all = vec![
        timed("tcp/tuned", [100.0, 180.0, 140.0, 220.0]),
        timed("tcp/rfc5681", [105.0, 185.1, 145.2, 225.3]),
        candidate("tcp/linux-6", "lan", &[None, Some(170.0), None, None]),
        timed("udp/paced", [90.0, 170.0, 130.0, 210.0]),
    ];
    let ranking = ranking(all, "lan");
    let behind = |at: usize| ranking.all()[at].values.behind_winner.expect("both arrived");
    assert_eq!((behind(0).mean_s, behind(0).ci95_s, behind(0).pairs), (0.0, Some(0.0), 4));
    assert!(!behind(0).significant);
    // The runs differ by much more than the protocols.
    assert!((behind(1).mean_s - 5.15).abs() < 1e-9 && behind(1).significant, "{:?}", behind(1));
    assert_eq!((behind(2).mean_s, behind(2).ci95_s, behind(2).pairs), (-10.0, None, 1));
    assert!(!behind(2).significant, "one pair says nothing about the variation");
    assert_eq!((behind(3).mean_s, behind(3).pairs, behind(3).significant), (-10.0, 4, true));
    let values = &ranking.all()[2].values;
    assert_eq!((values.runs, values.delivered, values.ci95), (4, 1, None));
    assert_eq!((values.transfer_s, values.limit_s, values.ratio), (Some(170.0), Some(1.0), Some(170.0)));
}

#[test]
fn sentence_table_and_document_show_the_same_ranking() {
    let keeps = timed("tcpcl4/tuned", [10.0, 12.0, 11.0, 10.0]);
    let faster = timed("tcp/tuned", [9.0, 11.5, 11.5, 9.9]);
    let behind = timed("tcpcl3/dtn2", [50.0; 4]);
    let all = vec![behind, keeps, faster, timed("udp/paced", [20.0; 4])];
    said(all, "lan", |comparison| {
        let experiment = comparison.experiment();
        let names: Vec<String> = experiment.ranking.iter().map(|place| place.name()).collect();
        assert_eq!(names, ["tcpcl4/tuned", "tcp/tuned", "tcpcl3/dtn2", "udp/paced"]);
        let winners: Vec<bool> = experiment.ranking.iter().map(|place| place.winner).collect();
        assert_eq!(winners, [true, false, false, false]);
        let answer = experiment.answer.clone().expect("a comparison has one");
        assert_eq!(answer, comparison.lead().replace('`', ""));
        assert!(answer.starts_with("tcpcl4/tuned and tcp/tuned may be the fastest of 3 "), "{answer}");
        let ranked = &experiment.ranking[..3];
        let rows = comparison.ranking_table();
        let expected = ranked.iter().map(|place| (place.rank.map(|rank| rank as f64), place.name()));
        let shown = rows.rows.iter().map(|cells| (cells[0].value, cells[1].text.clone()));
        assert!(shown.eq(expected), "{rows:?}");
        let mut json = Vec::new();
        experiment.write_json(&mut json).expect("memory has room");
        let json: serde_json::Value = serde_json::from_slice(&json).expect("it is JSON");
        for (place, row) in experiment.ranking.iter().zip(json["ranking"].as_array().expect("a list")) {
            assert_eq!(row["rank"].as_u64(), place.rank.map(|rank| rank as u64), "{row}");
            assert_eq!(row["transfer_s"].as_f64(), place.transfer_s.map(crate::record::round), "{row}");
        }
    });
}

#[test]
fn few_runs_that_cannot_tell_protocols_apart_say_so() {
    // One of the two runs of each meets an outage.
    let lead = |runs: u32, times: &[f64], others: &[f64]| {
        let timed = |name, times: &[f64]| {
            let times: Vec<_> = times.iter().copied().map(Some).collect();
            candidate(name, "lan", &times)
        };
        let both = vec![timed("tcpcl4/tuned", times), timed("tcp/tuned", others)];
        planned(runs, both, "lan", |comparison| comparison.lead())
    };
    let few = lead(2, &[30.0, 150.0], &[148.0, 31.0]);
    assert!(few.contains("`tcpcl4/tuned` and `tcp/tuned` may be the fastest of 2 "), "{few}");
    assert!(few.contains(", and 2 runs cannot tell them apart: use `--runs 16` or more. "), "{few}");
    let many: Vec<f64> = (0..RUNS).map(|run| if run % 2 == 0 { 30.0 } else { 150.0 }).collect();
    let others: Vec<f64> = many.iter().rev().copied().collect();
    let enough = lead(RUNS, &many, &others);
    assert!(enough.contains("`tcpcl4/tuned` and `tcp/tuned` are the fastest of 2 "), "{enough}");
    assert!(enough.contains(", and 16 runs show no significant difference. "), "{enough}");
    let same = lead(2, &[30.0, 150.0], &[30.0, 150.0]);
    assert!(same.contains(" are the fastest of 2 ") && same.contains("identical times"), "{same}");
}

#[test]
fn a_single_protocol_is_no_fastest_one() {
    let lead = |time_s: f64| {
        let only = vec![timed("tcp/tuned", [time_s; 4])];
        said(only, "lan", |comparison| comparison.lead())
    };
    // The ideal time is 2 s.
    assert_eq!(
        lead(2.0),
        "`tcp/tuned` takes 2 ± 0 s on average for 0 files (10 bytes) over `lan`, 1.00 times the ideal time (2 s)."
    );
    assert!(lead(3.0).ends_with(", 1.5 times the ideal time (2 s)."), "{}", lead(3.0));
}

#[test]
fn what_gives_no_guarantee_is_the_fastest_only_if_it_was_faster_than_all() {
    // The first two tie, and the one that keeps accepted data is listed first although the other is faster.
    let all = |unsure_s: f64| {
        let keeps = timed("tcpcl4/tuned", [10.0, 12.0, 11.0, 10.0]);
        let faster = timed("tcp/tuned", [9.0, 11.5, 11.5, 9.9]);
        said(vec![keeps, faster, timed("udp/paced", [unsure_s; 4])], "lan", |comparison| {
            let ranking = &comparison.ranking;
            assert_eq!((ranking.tied().len(), ranking.first().candidate.name()), (2, "tcpcl4/tuned"));
            format!("{:?}", comparison.without_guarantee())
        })
    };
    assert!(!all(10.6).contains("fastest and complete"), "tcp/tuned took 10.5 s");
    assert!(all(10.4).contains("`udp/paced` was fastest and complete in every run"));
}

#[test]
fn the_only_run_that_arrived_is_held_against_its_own_limit() {
    let ratio = |times: &[Option<f64>]| {
        let two = vec![timed("tcpcl4/tuned", [3.0; 4]), candidate("tcp/tuned", "lan", times)];
        said(two, "lan", |comparison| comparison.row(&comparison.ranking.all()[1])[3].value)
    };
    assert_eq!(ratio(&[None, Some(6.0), None, None]), Some(6.0), "without an error it could have been 1 s");
    assert_eq!(ratio(&[None, Some(6.0), Some(6.0), None]), Some(3.0), "on average it is 2 s");
}

#[test]
fn only_what_resumes_is_said_to_go_on_where_it_stopped() {
    let words = |name: &str| {
        let only = candidate(name, "ax25-9600", &[Some(10.0); 4]);
        said(vec![only], "ax25-9600", |comparison| format!("{:?}", comparison.configuration()))
    };
    assert!(words("ax25cl/tuned").contains("keeps accepted data and resumes after a break"));
    assert!(words("uicl/one").contains("keeps accepted bundles and restarts an interrupted one"));
}

#[test]
fn a_link_whose_passes_are_too_short_says_so() {
    let lead = |limit_s| {
        let mut only = candidate("tcp/tuned", "lan", &[None, None]);
        for (_, outcome) in &mut only.played.runs {
            outcome.missed = Some(NotDelivered::Time(1000.0));
            outcome.limit.streaming = Bound { error_free_s: limit_s, mean_s: limit_s };
        }
        said(vec![only], "lan", |comparison| comparison.lead())
    };
    assert_eq!(lead(999.0), "No protocol delivered 0 files (10 bytes) over `lan`.");
    assert!(lead(1000.0).ends_with(
        "over `lan`. Nothing could: even without errors, the passes and outages of the link leave too \
                                    little time for these bytes within the time limit of a run."
    ));
}

#[test]
fn a_link_that_lets_nothing_through_says_why() {
    let missed = |protocol: &str| {
        let text = format!(
            "protocol = '{protocol}'\nduration-limit-s = 3000\n[workload]\nbytes = 10\n[[link]]\nber = 0.5"
        );
        let scenario = Scenario::parse(&text, "test").expect("a scenario");
        let setup = Setup::with_files(scenario, Path::new("."), vec![Bytes::from_static(b"0123456789")]);
        setup.expect("a setup").run(0, Wanted::default()).missed
    };
    assert_eq!(missed("tcpcl4"), Some(NotDelivered::Time(3000.0)));
    let text = missed("tcp/tuned").expect("nothing arrives").to_string();
    assert!(text.starts_with("failed after 10 tries") || text == "timed out after 3,000 s", "{text}");
}

/// One run of every protocol over links with outages.
fn over_outages(path: &LinkPath) -> Vec<Candidate> {
    let options = Options {
        files: Vec::new(),
        link: "cislunar-outage".into(),
        runs: None,
        seed: 1,
        threads: 1,
        traces: false,
        receivers: 1,
    };
    let files = [Bytes::from(vec![7; 100_000])];
    let played = |preset: Preset| {
        let setup = setup(preset, &options, &files, path).expect("a setup");
        let case = Chain::case(preset.name(), Params::new(), setup, 1);
        let run = Run::new(case.seed, 0);
        let outcome = case.trial.play(run);
        Candidate::new(preset, Played { case, runs: vec![(run, outcome)] })
    };
    Preset::fitting(path).map(played).collect()
}

#[test]
fn arrivals_end_with_the_whole_file_and_are_never_ahead_of_the_channel() {
    let path = LinkPath::load("cislunar-outage", Path::new(".")).expect("it is shipped");
    for candidate in over_outages(&path) {
        let (_, outcome) = &candidate.played.runs[0];
        let links = path.hops.iter().zip(&outcome.hops);
        let hops: Vec<_> = links.map(|(link, hop)| link.hop(hop.outages.clone())).collect();
        let points: Vec<(f64, u64)> =
            outcome.arrivals.points().map(|(at, bytes)| (at.as_secs_f64(), bytes)).collect();
        assert!(points.is_sorted_by(|a, b| a.0 <= b.0), "{}", candidate.name());
        for (at_s, bytes) in points.iter().filter(|(_, bytes)| *bytes > 0) {
            let least_s = crate::limit::limit(&hops, *bytes).streaming.error_free_s;
            assert!(*at_s + 1e-6 >= least_s, "{}: {bytes} at {at_s}, before {least_s}", candidate.name());
        }
        if let Some(transfer_s) = outcome.transfer_s {
            let (at_s, bytes) = points.last().expect("something has arrived");
            assert!(*bytes == 100_000 && *at_s <= transfer_s, "{}: {bytes} at {at_s}", candidate.name());
        }
    }
}

#[test]
fn a_comparison_over_links_with_outages_begins_with_its_time_line() {
    let path = LinkPath::load("cislunar-outage", Path::new(".")).expect("it is shipped");
    let plot = said(over_outages(&path), "cislunar-outage", |comparison| {
        match &comparison.report(Vec::new()).answer[..] {
            [PageBlock::Plot(plot)] => plot.clone(),
            other => panic!("{other:?}"),
        }
    });
    let links: Vec<(&str, bool)> =
        plot.bands.iter().map(|band| (band.name.as_str(), band.outages.is_empty())).collect();
    assert_eq!(links, [("lander to orbiter", true), ("orbiter to earth", false)]);
    let (ideal, protocols) = plot.series.split_last().expect("series");
    assert_eq!((ideal.name.as_str(), ideal.points.last().map(|point| point.y)), ("ideal", Some(100_000.0)));
    // One for each protocol, the fastest of its settings, and nothing behind the right edge.
    let names: Vec<&str> = protocols.iter().filter_map(|series| series.name.split('/').next()).collect();
    assert_eq!(distinct(names.iter()).len(), names.len());
    let ends_s = || protocols.iter().filter_map(|series| Some(series.points.last()?.x));
    assert!(ends_s().all(|end_s| end_s <= 3.0 * ends_s().fold(f64::MAX, f64::min)), "{protocols:?}");
    let without = said(vec![timed("tcp/tuned", [1.0; 4])], "lan", |comparison| {
        comparison.report(Vec::new()).answer.len()
    });
    assert_eq!(without, 0);
}
