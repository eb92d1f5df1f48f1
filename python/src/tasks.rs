//! Sweeps in tasks that other processes compute.

use crate::computation::{compute, exception};
use crate::experiments::{checked, threads_or_all};
use crate::input;
use crate::result::ExperimentResult;
use longwire_lab::bench::Shard;
use longwire_lab::error::Error;
use longwire_lab::scenario::Options;
use longwire_lab::share::{Assignment, Outcomes, Share};
use longwire_lab::sweep::Sweep;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::absolute;
use std::sync::{Mutex, PoisonError};

/// Tasks of a sweep, and their outcomes as they arrive, in any order.
#[pyclass(frozen, module = "longwire")]
pub(crate) struct TaskList {
    text: String,
    options: Options,
    /// Place of the first case of each task, and what is to be done.
    tasks: Vec<(usize, Assignment)>,
    arrived: Mutex<Arrived>,
}

#[derive(Default)]
struct Arrived {
    outcomes: Outcomes,
    is_there: Vec<bool>,
}

#[pymethods]
impl TaskList {
    #[new]
    #[pyo3(signature = (scenario, name, grid, runs, seed, runs_per_task))]
    fn new(
        py: Python<'_>,
        scenario: &Bound<'_, PyAny>,
        name: &str,
        grid: Option<&Bound<'_, PyDict>>,
        runs: Option<u32>,
        seed: Option<u64>,
        runs_per_task: Option<u32>,
    ) -> PyResult<TaskList> {
        let (text, path) = input::scenario(scenario, name)?;
        let options = Options {
            scenario: path,
            sweeps: input::sweeps(grid)?,
            runs: checked(py, runs)?,
            seed,
            shard: Shard::WHOLE,
            threads: threads_or_all(None),
            traces: false,
        };
        let runs_max = checked(py, runs_per_task)?;
        let sweep = Sweep::new(text.clone(), options.clone());
        let tasks = sweep.and_then(|sweep| sweep.tasks(runs_max)).map_err(|error| exception(py, &error))?;
        // Files that the scenario names are relative to it, wherever a worker was started.
        let place = absolute(&options.scenario)?;
        let placed = |(first_case, mut task): (usize, Assignment)| {
            task.scenario.clone_from(&place);
            (first_case, task)
        };
        let tasks: Vec<_> = tasks.into_iter().map(placed).collect();
        let arrived = Arrived { outcomes: Outcomes::default(), is_there: vec![false; tasks.len()] };
        Ok(TaskList { text, options, tasks, arrived: Mutex::new(arrived) })
    }

    fn __len__(&self) -> usize {
        self.tasks.len()
    }

    /// Returns a task for `play`.
    fn __getitem__<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyBytes>> {
        let (_, task) = self.tasks.get(at).ok_or_else(|| PyIndexError::new_err("no such task"))?;
        Ok(PyBytes::new(py, &task.to_bytes()))
    }

    /// Takes the outcomes of a task; those that arrive again are the same, and change nothing.
    fn add(&self, py: Python<'_>, at: usize, outcomes: &[u8]) -> PyResult<()> {
        let (first_case, task) = self.tasks.get(at).ok_or_else(|| PyIndexError::new_err("no such task"))?;
        let share = Share::from_bytes(outcomes).map_err(|error| exception(py, &error))?;
        if share.assignment != *task {
            return Err(PyValueError::new_err(format!("these are not the outcomes of task {at}")));
        }
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut arrived.is_there[at], true) {
            arrived.outcomes.add(share, *first_case);
        }
        Ok(())
    }

    /// Number of tasks whose outcomes are there.
    #[getter]
    fn done(&self) -> usize {
        let arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        arrived.is_there.iter().filter(|is_there| **is_there).count()
    }

    /// Returns the result, once all outcomes are there, and forgets them.
    fn result(&self, py: Python<'_>) -> PyResult<ExperimentResult> {
        if self.done() < self.tasks.len() {
            let (done, all) = (self.done(), self.tasks.len());
            return Err(exception(py, &Error::new(format!("{done} of {all} tasks are done"))));
        }
        let arrived = std::mem::take(&mut *self.arrived.lock().unwrap_or_else(PoisonError::into_inner));
        let (text, options) = (self.text.clone(), self.options.clone());
        let finding = compute(py, None, move |_| Sweep::new(text, options)?.merged(arrived.outcomes, 1))?;
        ExperimentResult::new(py, finding)
    }
}

/// Computes a task, and returns its outcomes.
#[pyfunction]
pub(crate) fn play<'py>(py: Python<'py>, task: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let task = Assignment::from_bytes(task).map_err(|error| exception(py, &error))?;
    let share = compute(py, None, move |progress| {
        let options = task.options()?;
        Ok(Sweep::new(task.text, options)?.share(progress)?.to_bytes())
    })?;
    Ok(PyBytes::new(py, &share))
}
