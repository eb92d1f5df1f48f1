//! Long computations: without Python's lock, with its signals and with reports of progress.

use longwire_lab::error::Error;
use longwire_lab::progress::Progress;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Interval between two looks at the signals, after each of which the progress is reported.
const BETWEEN: Duration = Duration::from_millis(100);

type Outcome<R> = Result<Result<R, Error>, Box<dyn Any + Send>>;

/// Computes in a thread of its own, and reports `(done, total)` to `report` meanwhile.
///
/// # Errors
/// Fails with the error of the computation as `longwire.Error`, and with the exception of a signal handler (Ctrl-C) or of `report`
/// at once: the runs that are under way then end in the background, and no further one begins.
pub(crate) fn compute<R: Send + 'static>(
    py: Python<'_>,
    report: Option<Py<PyAny>>,
    work: impl FnOnce(&Progress) -> Result<R, Error> + Send + 'static,
) -> PyResult<R> {
    let progress = Arc::new(Progress::new());
    let (tell, told) = mpsc::channel();
    let theirs = progress.clone();
    thread::spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&theirs)));
        // Nobody hears it after an exception.
        let _ = tell.send(outcome);
    });
    let outcome = py.detach(move || watch(told, &progress, report.as_ref()))?;
    outcome.map_err(|panic| failed(&*panic))?.map_err(|error| exception(py, &error))
}

/// A panic, which is a defect of this package, as an exception that tells so, and that `except Exception` catches.
fn failed(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    PyRuntimeError::new_err(format!("the computation has failed because of a defect of longwire: {text}"))
}

/// Waits for the outcome.
fn watch<R>(
    told: Receiver<Outcome<R>>,
    progress: &Progress,
    report: Option<&Py<PyAny>>,
) -> PyResult<Outcome<R>> {
    loop {
        let outcome = match told.recv_timeout(BETWEEN) {
            Ok(outcome) => Some(outcome),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                unreachable!("the thread tells its outcome, and panics, too")
            }
        };
        let looked = Python::attach(|py| {
            py.check_signals()?;
            match report {
                Some(report) if progress.total() > 0 => {
                    report.call1(py, (progress.done(), progress.total())).map(drop)
                }
                _ => Ok(()),
            }
        });
        if let Err(exception) = looked {
            progress.abandon();
            return Err(exception);
        }
        if let Some(outcome) = outcome {
            return Ok(outcome);
        }
    }
}

/// Returns an error as the exception `longwire.Error`.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let class = py.import("longwire._error").and_then(|module| module.getattr("Error"));
    match class.and_then(|class| class.call1((&error.what, &error.hint))) {
        Ok(value) => PyErr::from_value(value),
        Err(other) => other,
    }
}
