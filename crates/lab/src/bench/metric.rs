//! Metrics of a trial.

use crate::record::{Params, Record};

/// Quantity measured in a run.
#[derive(Debug)]
pub struct Metric<O: 'static> {
    /// Name including the unit, such as `transfer_s`.
    pub key: &'static str,
    /// Unit for display.
    pub unit: &'static str,
    /// Value in a run; `None` if it has none.
    pub value: fn(&O) -> Option<f64>,
    /// Ideal value for these runs, which all have the metric.
    pub limit: Option<fn(&[&O]) -> f64>,
}

impl<O> Metric<O> {
    /// Creates a metric without an ideal value.
    pub const fn new(key: &'static str, unit: &'static str, value: fn(&O) -> Option<f64>) -> Metric<O> {
        Metric { key, unit, value, limit: None }
    }

    /// Adds the ideal value.
    pub const fn with_limit(self, limit: fn(&[&O]) -> f64) -> Metric<O> {
        Metric { limit: Some(limit), ..self }
    }

    /// Returns the samples of these runs; those without the metric are omitted.
    pub fn samples(&self, outcomes: &[&O]) -> Vec<f64> {
        outcomes.iter().filter_map(|outcome| (self.value)(outcome)).collect()
    }

    /// Returns the record of these runs, with the ideal value of those that have the metric; `None` if none has it.
    pub fn record(&self, case: &str, params: &Params, outcomes: &[&O]) -> Option<Record> {
        let has_one = |outcome: &&O| (self.value)(outcome).is_some();
        let measured: Vec<&O> = outcomes.iter().copied().filter(has_one).collect();
        if measured.is_empty() {
            return None;
        }
        let record = Record::of(case, params.clone(), self.key, self.unit, &self.samples(&measured));
        Some(match self.limit {
            Some(limit) => record.with_limit(limit(&measured)),
            None => record,
        })
    }
}
