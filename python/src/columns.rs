//! Columns of tables from records, runs and rankings. Numbers are rounded as in the JSON document.

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    UInt32Array, UInt64Array,
};
use arrow_schema::{Field, Schema};
use longwire_lab::record::{Experiment, Params, Ranked, Record, Row, Value, protocol_and_settings, round};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Columns of a table in their order.
#[derive(Default)]
struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    fn add(&mut self, name: impl Into<String>, array: ArrayRef) {
        self.fields.push(Field::new(name, array.data_type().clone(), true));
        self.arrays.push(array);
    }

    fn text<T: AsRef<str>>(&mut self, name: &str, values: impl Iterator<Item = Option<T>>) {
        self.add(name, Arc::new(values.collect::<StringArray>()));
    }

    fn number(&mut self, name: &str, values: impl Iterator<Item = Option<f64>>) {
        self.add(name, Arc::new(values.map(|value| value.map(round)).collect::<Float64Array>()));
    }

    fn count(&mut self, name: &str, values: impl Iterator<Item = Option<u64>>) {
        self.add(name, Arc::new(values.collect::<UInt64Array>()));
    }

    fn flag(&mut self, name: &str, values: impl Iterator<Item = Option<bool>>) {
        self.add(name, Arc::new(values.collect::<BooleanArray>()));
    }

    /// Adds protocol and settings, and a column for each parameter of any point. A parameter with the name of one of the
    /// columns after them is called `param_NAME`.
    fn point<'a>(&mut self, rows: impl Iterator<Item = (&'a str, &'a Params)> + Clone, after: &[&str]) {
        let parts = rows.clone().map(|(case, _)| protocol_and_settings(case));
        self.text("protocol", parts.clone().map(|(protocol, _)| Some(protocol)));
        self.text("settings", parts.map(|(_, settings)| settings));
        let mut known = BTreeSet::new();
        let names = rows.clone().flat_map(|(_, params)| params.iter().map(|(name, _)| name));
        let names: Vec<&str> = names.filter(|name| known.insert(*name)).collect();
        for name in names {
            let is_taken = after.contains(&name) || ["protocol", "settings"].contains(&name);
            let column = if is_taken { format!("param_{name}") } else { name.to_owned() };
            self.add(column, values(rows.clone().map(|(_, params)| params.get(name))));
        }
    }

    fn batch(self) -> RecordBatch {
        let rows = self.arrays.first().map_or(0, |array| array.len());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(self.fields)), self.arrays, &options)
            .expect("the columns have equal lengths")
    }
}

/// Column of the narrowest type that has all values: integers, numbers, or texts.
fn values<'a>(values: impl Iterator<Item = Option<&'a Value>> + Clone) -> ArrayRef {
    let all = |fits: fn(&Value) -> bool| values.clone().flatten().all(fits);
    if all(|value| matches!(value, Value::Integer(_))) {
        let integer = |value: Option<&Value>| match value {
            Some(Value::Integer(integer)) => Some(*integer),
            _ => None,
        };
        return Arc::new(values.map(integer).collect::<Int64Array>());
    }
    if all(|value| value.as_f64().is_some()) {
        return Arc::new(
            values.map(|value| value.and_then(Value::as_f64).map(round)).collect::<Float64Array>(),
        );
    }
    Arc::new(values.map(|value| value.map(Value::to_string)).collect::<StringArray>())
}

/// Table of the records: the columns of `records.csv`.
pub(crate) fn records(experiment: &Experiment) -> RecordBatch {
    const AFTER: [&str; 12] = [
        "metric",
        "n",
        "mean",
        "ci95",
        "min",
        "max",
        "reference",
        "source",
        "kind",
        "unit",
        "limit",
        "ratio",
    ];
    let records = || experiment.records.iter();
    let mut columns = Columns::default();
    columns.point(records().map(|record| (record.case.as_str(), &record.params)), &AFTER);
    let number = |value: fn(&Record) -> Option<f64>| records().map(value);
    columns.text("metric", records().map(|record| Some(&record.metric)));
    columns.count("n", records().map(|record| Some(record.n as u64)));
    columns.number("mean", number(|record| Some(record.mean)));
    columns.number("ci95", number(|record| record.ci95));
    columns.number("min", number(|record| Some(record.min)));
    columns.number("max", number(|record| Some(record.max)));
    columns.number("reference", number(|record| record.reference));
    columns.text("source", records().map(|record| record.source.as_ref()));
    columns.text("kind", records().map(|record| Some(record.kind.to_string())));
    columns.text("unit", records().map(|record| Some(&record.unit)));
    columns.number("limit", number(|record| record.limit));
    columns.number("ratio", number(|record| record.ratio));
    columns.batch()
}

/// Table of the runs: the columns of `runs.csv`.
pub(crate) fn runs(experiment: &Experiment) -> RecordBatch {
    let runs = || experiment.runs.iter();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut metrics: Vec<(&str, Vec<Option<f64>>)> = Vec::new();
    for (at, Row { values, .. }) in runs().enumerate() {
        for (metric, value) in values {
            let place = *places.entry(metric).or_insert_with(|| {
                metrics.push((metric, vec![None; experiment.runs.len()]));
                metrics.len() - 1
            });
            metrics[place].1[at] = Some(*value);
        }
    }
    let after: Vec<&str> = ["run", "seed"].into_iter().chain(metrics.iter().map(|(name, _)| *name)).collect();
    let mut columns = Columns::default();
    columns.point(runs().map(|run| (run.case.as_str(), &run.params)), &after);
    columns.add("run", Arc::new(runs().map(|run| Some(run.run)).collect::<UInt32Array>()));
    columns.count("seed", runs().map(|run| Some(run.seed)));
    for (name, values) in metrics {
        columns.number(name, values.into_iter());
    }
    columns.batch()
}

/// Table of the ranking, without the configurations, which are in the JSON document.
pub(crate) fn ranking(experiment: &Experiment) -> RecordBatch {
    let places = || experiment.ranking.iter();
    let number = |value: fn(&Ranked) -> Option<f64>| places().map(value);
    let count =
        |value: fn(&Ranked) -> Option<usize>| places().map(move |place| value(place).map(|n| n as u64));
    let flag = |value: fn(&Ranked) -> Option<bool>| places().map(value);
    let mut columns = Columns::default();
    columns.count("rank", count(|place| place.rank));
    columns.flag("winner", flag(|place| Some(place.winner)));
    columns.count("tie_group", count(|place| place.tie_group));
    columns.text("protocol", places().map(|place| Some(&place.protocol)));
    columns.text("settings", places().map(|place| Some(&place.settings)));
    columns.flag("acknowledged", flag(|place| Some(place.acknowledged)));
    columns.flag("keeps_accepted", flag(|place| Some(place.keeps_accepted)));
    columns.count("runs", count(|place| Some(place.runs)));
    columns.count("delivered", count(|place| Some(place.delivered)));
    columns.number("transfer_s", number(|place| place.transfer_s));
    columns.number("ci95", number(|place| place.ci95));
    columns.number("limit_s", number(|place| place.limit_s));
    columns.number("ratio", number(|place| place.ratio));
    columns.number("behind_winner_s", number(|place| Some(place.behind_winner?.mean_s)));
    columns.number("behind_winner_ci95_s", number(|place| place.behind_winner?.ci95_s));
    columns.count("behind_winner_pairs", count(|place| Some(place.behind_winner?.pairs)));
    columns.flag("behind_winner_significant", flag(|place| Some(place.behind_winner?.significant)));
    columns.batch()
}
