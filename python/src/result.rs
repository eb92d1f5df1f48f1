//! Results of experiments: tables, the page, the documents.

use crate::columns;
use crate::table::Table;
use longwire_lab::finding::Finding;
use longwire_lab::{output, trace};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::io;
use std::path::PathBuf;

/// Result of an experiment.
///
/// A notebook shows its page. The same arguments give the same bytes, on every machine and with any number of threads or workers.
#[pyclass(frozen, module = "longwire", name = "Result")]
pub(crate) struct ExperimentResult {
    finding: Finding,
    records: Py<Table>,
    runs: Py<Table>,
    ranking: Py<Table>,
}

impl ExperimentResult {
    pub(crate) fn new(py: Python<'_>, finding: Finding) -> PyResult<ExperimentResult> {
        let experiment = &finding.experiment;
        let table = |batch| Py::new(py, Table::new(batch));
        Ok(ExperimentResult {
            records: table(columns::records(experiment))?,
            runs: table(columns::runs(experiment))?,
            ranking: table(columns::ranking(experiment))?,
            finding,
        })
    }
}

#[pymethods]
impl ExperimentResult {
    /// Name of the experiment: that of its scenario or paper, `compare` or `model-ax25`.
    #[getter]
    fn experiment(&self) -> &str {
        &self.finding.experiment.experiment
    }

    /// Seed of the random numbers of all runs.
    #[getter]
    fn seed(&self) -> u64 {
        self.finding.experiment.seed
    }

    /// Title of the page.
    #[getter]
    fn title(&self) -> &str {
        &self.finding.report.title
    }

    /// The answer in a few sentences.
    #[getter]
    fn answer(&self) -> String {
        self.finding.report.lead.replace('`', "")
    }

    /// Command that gives the same bytes; a scenario or link that was given as a dictionary has to be in the file that it names.
    #[getter]
    fn command(&self) -> &str {
        &self.finding.report.command
    }

    /// Figures: a row for each metric at each point, as in `records.csv`.
    #[getter]
    fn records(&self, py: Python<'_>) -> Py<Table> {
        self.records.clone_ref(py)
    }

    /// Runs: a row for each, as in `runs.csv`.
    #[getter]
    fn runs(&self, py: Python<'_>) -> Py<Table> {
        self.runs.clone_ref(py)
    }

    /// Ranking of a comparison: a row for each protocol with its settings; empty for other experiments.
    #[getter]
    fn ranking(&self, py: Python<'_>) -> Py<Table> {
        self.ranking.clone_ref(py)
    }

    /// Returns the JSON document, as `--json` prints it.
    fn json(&self) -> PyResult<String> {
        text(|out| self.finding.experiment.write_json(out))
    }

    /// Returns the JSON document as a dictionary.
    fn document<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let document = py.import("json")?.call_method1("loads", (self.json()?,))?;
        Ok(document.cast_into::<PyDict>()?)
    }

    /// Returns the content of `records.csv`.
    fn records_csv(&self) -> PyResult<String> {
        text(|out| self.finding.experiment.write_records_csv(out))
    }

    /// Returns the content of `runs.csv`.
    fn runs_csv(&self) -> PyResult<String> {
        text(|out| self.finding.experiment.write_runs_csv(out))
    }

    /// Returns the page, which is one file without scripts or other resources.
    fn html(&self) -> String {
        self.finding.report.html(&self.finding.experiment)
    }

    /// Returns the summary that a terminal of this width shows.
    #[pyo3(signature = (width=100))]
    fn summary(&self, width: usize) -> String {
        output::terminal(&self.finding.summary, width, false)
    }

    /// Writes `report.html`, the JSON document, `records.csv` and `runs.csv` to a directory, which is created if necessary;
    /// returns their paths.
    fn write(&self, py: Python<'_>, directory: PathBuf) -> PyResult<Vec<PathBuf>> {
        Ok(py.detach(|| self.finding.write(&directory))?)
    }

    /// Writes packet captures and timelines of the first runs, if `traces=True` was given; returns their paths.
    fn write_traces(&self, py: Python<'_>, directory: PathBuf) -> PyResult<Vec<PathBuf>> {
        let traces = self.finding.traces.iter();
        let written =
            traces.map(|traced| trace::write(&directory.join(traced.folder()), &traced.name, &traced.frames));
        Ok(py.detach(|| written.collect::<io::Result<Vec<_>>>())?.concat())
    }

    fn __str__(&self) -> String {
        self.summary(100)
    }

    fn __repr__(&self) -> String {
        let experiment = &self.finding.experiment;
        let (records, runs) = (experiment.records.len(), experiment.runs.len());
        format!("<longwire.Result of {}: {records} records, {runs} runs>", experiment.experiment)
    }

    /// Shows the page in a frame of its own, whose style and that of the notebook do not meet.
    fn _repr_html_(&self) -> String {
        let page = self.html().replace('&', "&amp;").replace('"', "&quot;");
        format!(
            "<iframe srcdoc=\"{page}\" sandbox=\"allow-downloads\" style=\"width:100%;height:40em;border:0;resize:vertical\">\
             </iframe>"
        )
    }
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> PyResult<String> {
    let mut out = Vec::new();
    write(&mut out)?;
    String::from_utf8(out).map_err(|error| PyOSError::new_err(error.to_string()))
}
