//! Computations that are stopped early: at once, or after a few runs. Each reports the results of its runs and their
//! number.

use longwire_lab::bench::{Bench, Shard};
use longwire_lab::error::Error;
use longwire_lab::finding::Finding;
use longwire_lab::papers;
use longwire_lab::progress::Progress;
use longwire_lab::record::{Row, Value};
use longwire_lab::scenario;
use longwire_lab::{compare, sweep};
use std::fs;
use std::path::PathBuf;

const RUNS: u32 = 3;
const THREADS: usize = 2;

/// Stops a computation before its first run, and after some.
fn stopped(places: &[u64], compute: impl Fn(&Progress) -> Result<Finding, Error>) -> Vec<Finding> {
    let stopped = |units: &u64| {
        let progress = Progress::up_to(*units);
        let finding = compute(&progress).unwrap();
        let page = finding.report.html(&finding.experiment);
        assert!(progress.left_out() > 0, "nothing was left out of {} runs", progress.total());
        assert!(page.contains("Stopped early: "), "the page says so: {}", finding.report.lead);
        assert!(!page.contains("NaN") && !finding.experiment.records.is_empty(), "a page of numbers");
        assert!(!finding.experiment.runs.is_empty());
        let lead = &finding.report.lead;
        assert!(!lead.contains("Stopped early") || lead.contains(&progress.early_end().unwrap()), "{lead}");
        finding
    };
    places.iter().map(stopped).collect()
}

/// Number of runs of the point with the fewest.
fn fewest(finding: &Finding) -> u64 {
    let transfers = || finding.experiment.records.iter().filter(|record| record.metric == "delivered");
    transfers().map(|record| record.n as u64).min().expect("something is measured")
}

/// Stops a paper before its first run, and after some. The command of its page has the runs made.
fn stopped_paper(name: &str, bench: Bench<'_>, places: &[u64], per: &str) -> Vec<Finding> {
    let paper = papers::find(name).expect("it is in the table");
    let findings = stopped(places, |progress| {
        Ok(papers::reproduce(paper, &Bench { progress, threads: THREADS, ..bench }))
    });
    assert!(findings[0].report.command.ends_with(" --runs 1"), "{}", findings[0].report.command);
    assert!(findings[0].report.facts.contains(&(format!("runs per {per}"), "1".into())));
    findings
}

#[test]
fn a_stopped_cislunar_page_has_the_runs_that_were_made() {
    let progress = Progress::new();
    let bench = Bench { runs: Some(RUNS), thin: true, ..Bench::new(&progress) };
    stopped_paper("cislunar", bench, &[0, 60], "point");
}

#[test]
fn a_stopped_dtn_ax25_page_has_the_runs_that_were_made() {
    let progress = Progress::new();
    let bench = Bench { runs: Some(RUNS), thin: true, ..Bench::new(&progress) };
    let findings = stopped_paper("dtn-ax25", bench, &[0, 20, 300], "row");
    assert!(findings[0].experiment.runs.iter().all(|run| run.run == 0));
}

#[test]
fn a_stopped_ax25_throughput_page_has_the_runs_that_were_made() {
    let progress = Progress::new();
    // The other assumptions are then left out, so `thin` is not needed.
    let bench = Bench { runs: Some(8), ..Bench::new(&progress) };
    let findings = stopped_paper("ax25-throughput", bench, &[0, 1300], "transfer");
    for finding in &findings {
        let made = finding.experiment.runs.iter().map(|run| run.run + 1).max().unwrap();
        assert!(finding.report.command.ends_with(&format!(" --runs {made}")), "{}", finding.report.command);
        // A quarter of the runs are of long files, as in a complete page with this number of runs.
        let is_long = |run: &&Row| run.params.get("file_bytes").and_then(Value::as_f64) == Some(65_536.0);
        let long = finding.experiment.runs.iter().filter(is_long).map(|run| run.run + 1).max();
        assert_eq!(long, Some(made.div_ceil(4)), "of {made}");
    }
    assert!(findings[0].experiment.runs.iter().all(|run| run.run == 0));
}

/// Temporary folder, removed on drop.
struct Place(PathBuf);

impl Place {
    fn with(name: &str, text: &str) -> (Place, PathBuf) {
        let folder = std::env::temp_dir().join(format!("longwire-stopped-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("file.toml");
        fs::write(&file, text).unwrap();
        (Place(folder), file)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_stopped_comparison_has_the_runs_that_were_made() {
    let (_place, file) = Place::with("compare", "Nothing accepted is ever lost.\n");
    let options = compare::Options {
        files: vec![file],
        link: "lan".into(),
        runs: Some(RUNS),
        seed: 1,
        threads: THREADS,
        traces: false,
        receivers: 1,
    };
    let findings = stopped(&[0], |progress| compare::compare(&options, progress));
    assert_eq!(fewest(&findings[0]), 1);
    assert!(findings[0].report.command.ends_with(" --runs 1"), "{}", findings[0].report.command);
}

/// A chain, a scenario of contacts and a shared channel.
#[test]
fn a_stopped_run_of_any_scenario_has_the_runs_that_were_made() {
    let chain = "title = 'Chain'\nruns = 200\n[workload]\nbytes = 1000\n[[link]]\nprofile = 'lan'\n[sweep]\n'link.ber' = [0, 1e-5]";
    let meeting = "title = 'Meetings'\nruns = 200\nnodes = ['a', 'b']\nrouters = ['epidemic']\nduration-s = 100\n\
                   [messages]\nfrom = ['a']\nto = ['b']\ncount = 2\nwithin-s = 10\n[[meeting]]\nbetween = ['a', 'b']\nlasts-s = 50";
    let radio = include_str!("../../../scenarios/positions.toml");
    let airborne = "runs = 200\n[airborne]\nrouters = ['aerorp']\ntest-articles = 2\nrelays = 0\nground-stations = 1\n\
                    packets = 5\nduration-s = 60\nwithin-s = 50";
    let all = [
        ("chain", chain, 200),
        ("meeting", meeting, 200),
        ("radio", radio, 200),
        ("airborne", airborne, 200),
    ];
    for (name, text, runs) in all {
        let (_place, file) = Place::with(name, text);
        let options = scenario::Options {
            scenario: file,
            sweeps: Vec::new(),
            runs: Some(runs),
            seed: None,
            shard: Shard::WHOLE,
            threads: THREADS,
            traces: false,
        };
        for finding in stopped(&[0, 3], |progress| sweep::run(&options, progress)) {
            let made = finding.experiment.runs.iter().map(|run| run.run + 1).max().unwrap();
            assert!(made < runs, "{name}: {made}");
            let (command, lead) = (&finding.report.command, &finding.report.lead);
            assert!(command.contains(&format!(" --runs {made} ")), "{name}: {command}");
            assert!(lead.contains("Stopped early: "), "{name}: {lead}");
            assert!(!lead.contains(&format!(" {runs} runs.")), "{name}: {lead}");
        }
    }
}
