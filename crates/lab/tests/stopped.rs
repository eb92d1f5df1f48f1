//! Computations that are stopped early: at once, or after a few runs. Each reports the results of its runs and their
//! number.

use longwire_lab::bench::Shard;
use longwire_lab::error::Error;
use longwire_lab::finding::Finding;
use longwire_lab::papers::{ax25_throughput, cislunar, dtn_ax25};
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

#[test]
fn a_stopped_cislunar_page_has_the_runs_that_were_made() {
    let options =
        cislunar::Options { runs: Some(RUNS), seed: None, threads: THREADS, traces: false, thin: true };
    let findings = stopped(&[0, 60], |progress| cislunar::reproduce(&options, progress));
    assert!(findings[0].report.command.ends_with(" --runs 1"), "{}", findings[0].report.command);
    assert!(findings[0].report.facts.contains(&("runs per point".into(), "1".into())));
}

#[test]
fn a_stopped_dtn_ax25_page_has_the_runs_that_were_made() {
    let options = dtn_ax25::Options { runs: Some(RUNS), seed: None, threads: THREADS, thin: true };
    let findings = stopped(&[0, 20, 300], |progress| Ok(dtn_ax25::reproduce(&options, progress)));
    assert!(findings[0].report.command.ends_with(" --runs 1"), "{}", findings[0].report.command);
    assert!(findings[0].report.facts.contains(&("runs per row".into(), "1".into())));
    assert!(findings[0].experiment.runs.iter().all(|run| run.run == 0));
}

#[test]
fn a_stopped_ax25_throughput_page_has_the_runs_that_were_made() {
    // The other assumptions are then left out, so `thin` is not needed.
    let options = ax25_throughput::Options { runs: Some(8), seed: None, threads: THREADS, thin: false };
    let findings = stopped(&[0, 1300], |progress| Ok(ax25_throughput::reproduce(&options, progress)));
    for finding in &findings {
        let made = finding.experiment.runs.iter().map(|run| run.run + 1).max().unwrap();
        assert!(finding.report.command.contains(&format!(" --runs {made} ")), "{}", finding.report.command);
        // A quarter of the runs are of long files, as in a complete page with this number of runs.
        let is_long = |run: &&Row| run.params.get("file_bytes").and_then(Value::as_f64) == Some(65_536.0);
        let long = finding.experiment.runs.iter().filter(is_long).map(|run| run.run + 1).max();
        assert_eq!(long, Some(made.div_ceil(4)), "of {made}");
    }
    assert!(findings[0].report.command.contains(" --runs 1 "), "{}", findings[0].report.command);
    assert!(findings[0].report.facts.contains(&("runs per transfer".into(), "1".into())));
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
    };
    let findings = stopped(&[0], |progress| compare::compare(&options, progress));
    assert_eq!(fewest(&findings[0]), 1);
    assert!(findings[0].report.command.ends_with(" --runs 1"), "{}", findings[0].report.command);
}

/// A chain, a scenario of meetings and a shared channel.
#[test]
fn a_stopped_run_of_any_scenario_has_the_runs_that_were_made() {
    let chain = "title = 'Chain'\nruns = 200\n[workload]\nbytes = 1000\n[[link]]\nprofile = 'lan'\n[sweep]\n'link.ber' = [0, 1e-5]";
    let meeting = "title = 'Meetings'\nruns = 200\nnodes = ['a', 'b']\nrouters = ['epidemic']\nduration-s = 100\n\
                   [messages]\nfrom = ['a']\nto = ['b']\ncount = 2\nwithin-s = 10\n[[meeting]]\nbetween = ['a', 'b']\nlasts-s = 50";
    let radio = include_str!("../../../scenarios/positions.toml");
    for (name, text, runs) in [("chain", chain, 200), ("meeting", meeting, 200), ("radio", radio, 200)] {
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
