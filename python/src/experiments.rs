//! The experiments: arguments of Python as options of the lab.

use crate::computation::{compute, exception};
use crate::input;
use crate::result::ExperimentResult;
use longwire_lab::bench::{self, Bench, Shard};
use longwire_lab::error::{Error, did_you_mean};
use longwire_lab::finding::Finding;
use longwire_lab::format::shell_word;
use longwire_lab::link::{self, LinkPath};
use longwire_lab::model::{Changes, Request};
use longwire_lab::papers::{PAPERS, find, reproduce as reproduced};
use longwire_lab::progress::Progress;
use longwire_lab::run::RECEIVERS_MAX;
use longwire_lab::scenario;
use longwire_lab::sweep::Sweep;
use longwire_lab::{compare as comparison, toml_text};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

type Found = PyResult<ExperimentResult>;

/// Computes a finding in the background of Python.
fn found(
    py: Python<'_>,
    report: Option<Py<PyAny>>,
    work: impl FnOnce(&Progress) -> Result<Finding, Error> + Send + 'static,
) -> Found {
    let finding = compute(py, report, work)?;
    ExperimentResult::new(py, finding)
}

pub(crate) fn threads_or_all(threads: Option<usize>) -> usize {
    threads.unwrap_or_else(bench::threads_available).max(1)
}

/// Refuses a number of runs that is none.
pub(crate) fn checked(py: Python<'_>, runs: Option<u32>) -> PyResult<Option<u32>> {
    match runs {
        Some(0) => Err(exception(py, &Error::new("no runs would be made").hint("`runs` must be at least 1"))),
        other => Ok(other),
    }
}

/// Runs a scenario with its sweeps.
#[pyfunction]
#[pyo3(signature = (scenario, name, grid, runs, seed, threads, traces, progress))]
#[expect(clippy::too_many_arguments, reason = "the arguments of the function in Python")]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Bound<'_, PyAny>,
    name: &str,
    grid: Option<&Bound<'_, PyDict>>,
    runs: Option<u32>,
    seed: Option<u64>,
    threads: Option<usize>,
    traces: bool,
    progress: Option<Py<PyAny>>,
) -> Found {
    let (text, path) = input::scenario(scenario, name)?;
    let options = scenario::Options {
        scenario: path,
        sweeps: input::sweeps(grid)?,
        runs: checked(py, runs)?,
        seed,
        shard: Shard::WHOLE,
        threads: threads_or_all(threads),
        traces,
    };
    found(py, progress, move |progress| Sweep::new(text, options)?.run(progress))
}

/// Compares protocols over a link.
#[pyfunction]
#[pyo3(signature = (link, name, files, runs, seed, receivers, threads, traces, progress))]
#[expect(clippy::too_many_arguments, reason = "the arguments of the function in Python")]
pub(crate) fn compare(
    py: Python<'_>,
    link: &Bound<'_, PyAny>,
    name: &str,
    files: Vec<PathBuf>,
    runs: Option<u32>,
    seed: u64,
    receivers: u32,
    threads: Option<usize>,
    traces: bool,
    progress: Option<Py<PyAny>>,
) -> Found {
    if !(1..=RECEIVERS_MAX).contains(&receivers) {
        let error = Error::new(format!("a link cannot have {receivers} receivers"));
        return Err(exception(py, &error.hint(format!("`receivers` must be from 1 to {RECEIVERS_MAX}"))));
    }
    let (path, link) = match link.cast::<PyDict>() {
        Ok(dictionary) => {
            let name = format!("{name}.toml");
            (LinkPath::of_table(input::table(dictionary)?, &name, Path::new(".")), name)
        }
        Err(_) => {
            let name = link.extract::<PathBuf>()?.display().to_string();
            (LinkPath::load(&name, Path::new(".")), name)
        }
    };
    let path = path.map_err(|error| exception(py, &error))?;
    let options = comparison::Options {
        files,
        link,
        runs: checked(py, runs)?,
        seed,
        threads: threads_or_all(threads),
        traces,
        receivers,
    };
    found(py, progress, move |progress| comparison::compare_over(&options, path, progress))
}

/// Reproduces a paper.
#[pyfunction]
#[pyo3(signature = (name, runs, seed, threads, thin, traces, progress))]
#[expect(clippy::too_many_arguments, reason = "the arguments of the function in Python")]
pub(crate) fn reproduce(
    py: Python<'_>,
    name: &str,
    runs: Option<u32>,
    seed: u64,
    threads: Option<usize>,
    thin: bool,
    traces: bool,
    progress: Option<Py<PyAny>>,
) -> Found {
    let known = || PAPERS.iter().map(|paper| paper.name);
    let paper = find(name).ok_or_else(|| {
        let all = known().collect::<Vec<_>>().join(", ");
        let hint = did_you_mean(name, known(), format!("known papers: {all}"));
        exception(py, &Error::new(format!("no such paper: `{name}`")).hint(hint))
    })?;
    let (threads, runs) = (threads_or_all(threads), checked(py, runs)?);
    found(py, progress, move |progress| {
        let bench = Bench { threads, runs, seed, thin, traces, ..Bench::new(progress) };
        Ok(reproduced(paper, &bench))
    })
}

/// Names of the papers, each with its subject.
#[pyfunction]
pub(crate) fn papers() -> Vec<(&'static str, &'static str)> {
    PAPERS.iter().map(|paper| (paper.name, paper.about)).collect()
}

/// Names of the built-in links.
#[pyfunction]
pub(crate) fn links() -> Vec<&'static str> {
    link::shipped().collect()
}

/// Computes the model of connected-mode AX.25.
#[pyfunction]
#[pyo3(signature = (preset, rates, file_bytes, file, changes))]
pub(crate) fn model(
    py: Python<'_>,
    preset: String,
    rates: Vec<f64>,
    file_bytes: u64,
    file: Option<PathBuf>,
    changes: &Bound<'_, PyDict>,
) -> Found {
    let wrong = |error: Error| exception(py, &error);
    if let Some(rate) = rates.iter().find(|rate| !(1.0..=1e12).contains(*rate)) {
        let error = Error::new(format!("{rate} bit/s is no rate of a channel"));
        return Err(wrong(error.hint("a rate must be a number from 1 to 1e12")));
    }
    let named: Table =
        input::table(changes)?.into_iter().map(|(name, value)| (name.replace('_', "-"), value)).collect();
    let option = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!(" --{name} {}", shell_word(text)),
        other => format!(" --{name} {other}"),
    };
    let options: String = named.iter().map(option).collect();
    let length = match &file {
        Some(file) => format!("--file {}", shell_word(&file.display().to_string())),
        None => format!("--bytes {file_bytes}"),
    };
    let list = rates.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
    let command = format!("longwire model ax25 --preset {preset} --rate {list} {length}{options}");
    let changes: Changes = toml_text::from_table(named, "model").map_err(wrong)?;
    let contents = file.map(|file| std::fs::read(&file)).transpose()?;
    let request = Request { preset, changes, rates_bps: rates, file_bytes, contents, command };
    let finding = py.detach(|| request.finding()).map_err(wrong)?;
    ExperimentResult::new(py, finding)
}
