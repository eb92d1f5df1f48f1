//! Tests of rankings and their texts.

use super::*;
use crate::bench::Run;
use crate::limit::Bound;
use crate::run::{NotDelivered, Wanted};

#[test]
fn words_are_quoted_where_a_shell_would_part_them() {
    for (word, expected) in
        [("a/b-1.bin", "a/b-1.bin"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("", "''"), ("$x", "'$x'")]
    {
        assert_eq!(quoted(word), expected);
    }
}

/// Returns a contender with these transfer times; `None` for a run that did not complete.
fn contender(name: &str, link: &str, times: &[Option<f64>]) -> Contender {
    let text = format!("stack = '{name}'\n[workload]\nbytes = 10\n[[link]]\nprofile = '{link}'");
    let scenario = Scenario::parse(&text, "test").expect("a scenario");
    let setup = Setup::with_files(scenario, Path::new("."), vec![Bytes::from_static(b"0123456789")]);
    let case = Chain::case(name, Params::new(), setup.expect("a setup"), times.len() as u32);
    let played = case.trial.setup.run(0, Wanted::default());
    let outcome = |(run, transfer_s): (u32, &Option<f64>)| {
        let mut outcome =
            Outcome { run, delivered: transfer_s.is_some(), transfer_s: *transfer_s, ..played.clone() };
        outcome.limit.store_and_forward = Bound { error_free_s: 1.0, mean_s: 2.0 };
        (Run::new(case.seed, run), outcome)
    };
    let runs = (0..).zip(times).map(outcome).collect();
    Contender::of(Played { case, runs })
}

/// Returns a contender on `lan` whose runs are all complete.
fn timed(name: &str, times: [f64; 4]) -> Contender {
    contender(name, "lan", &times.map(Some))
}

/// Evaluates a function of the comparison of these contenders.
fn said<T>(contenders: Vec<Contender>, link: &str, of: impl FnOnce(&Comparison<'_>) -> T) -> T {
    let (contenders, leading, unsure) = ranked(contenders);
    let (options, link) = (
        Options { files: Vec::new(), link: link.into(), runs: None, seed: 1, threads: 1, traces: false },
        LinkProfile::load(link, Path::new(".")).expect("it is shipped"),
    );
    let (planned, runs) = (4, 4);
    of(&Comparison { options: &options, link: &link, bytes: 10, planned, runs, contenders, leading, unsure })
}

#[test]
fn a_tie_behind_a_rival_that_is_significantly_slower_is_a_tie() {
    let first = timed("tcp/tuned", [10.0, 10.1, 9.9, 10.0]);
    let slower = timed("tcpcl4/tuned", [11.0, 11.1, 10.9, 11.0]);
    let wide = timed("tcpcl3/tuned", [5.0, 20.0, 6.0, 15.0]);
    let (ranked, leading, _) = ranked(vec![slower, wide, first]);
    let names: Vec<&str> = ranked.iter().map(|contender| contender.name.as_str()).collect();
    assert_eq!((leading, &names[..]), (2, &["tcpcl3/tuned", "tcp/tuned", "tcpcl4/tuned"][..]));
}

#[test]
fn what_gives_no_guarantee_is_the_fastest_only_if_it_was_faster_than_all() {
    // The first two tie, and the one that keeps accepted data is listed first although the other is faster.
    let all = |unsure_s: f64| {
        let keeps = timed("tcpcl4/tuned", [10.0, 12.0, 11.0, 10.0]);
        let faster = timed("tcp/tuned", [9.0, 11.5, 11.5, 9.9]);
        said(vec![keeps, faster, timed("udp/paced", [unsure_s; 4])], "lan", |comparison| {
            assert_eq!((comparison.leading, comparison.contenders[0].name.as_str()), (2, "tcpcl4/tuned"));
            format!("{:?}", comparison.without_guarantee())
        })
    };
    assert!(!all(10.6).contains("fastest and complete"), "tcp/tuned took 10.5 s");
    assert!(all(10.4).contains("`udp/paced` was fastest and complete in every run"));
}

#[test]
fn the_only_run_that_arrived_is_held_against_its_own_limit() {
    let ratio = |times: &[Option<f64>]| {
        let two = vec![timed("tcpcl4/tuned", [3.0; 4]), contender("tcp/tuned", "lan", times)];
        said(two, "lan", |comparison| comparison.row(false, &comparison.contenders[1])[3].value)
    };
    assert_eq!(ratio(&[None, Some(6.0), None, None]), Some(6.0), "without an error it could have been 1 s");
    assert_eq!(ratio(&[None, Some(6.0), Some(6.0), None]), Some(3.0), "on average it is 2 s");
}

#[test]
fn only_what_resumes_is_said_to_go_on_where_it_stopped() {
    let words = |name: &str| {
        let only = contender(name, "ax25-9600", &[Some(10.0); 4]);
        said(vec![only], "ax25-9600", |comparison| format!("{:?}", comparison.configuration()))
    };
    assert!(words("ax25cl/tuned").contains("keeps accepted data and resumes after a break"));
    assert!(words("uicl/one").contains("keeps accepted bundles and restarts an interrupted one"));
}

#[test]
fn a_link_that_lets_nothing_through_says_why() {
    let missed = |stack: &str| {
        let text = format!(
            "stack = '{stack}'\nduration-limit-s = 3000\n[workload]\nbytes = 10\n[[link]]\nber = 0.5"
        );
        let scenario = Scenario::parse(&text, "test").expect("a scenario");
        let setup = Setup::with_files(scenario, Path::new("."), vec![Bytes::from_static(b"0123456789")]);
        setup.expect("a setup").run(0, Wanted::default()).missed
    };
    assert_eq!(missed("tcpcl4"), Some(NotDelivered::Time(3000.0)));
    let text = missed("tcp/tuned").expect("nothing arrives").to_string();
    assert!(text.starts_with("failed after 10 tries") || text == "timed out after 3,000 s", "{text}");
}
