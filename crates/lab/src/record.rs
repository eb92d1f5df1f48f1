//! Results of an experiment: one [`Record`] per measured figure, one [`Row`] per run, as JSON and CSV.
//!
//! The JSON document is `{"experiment", "seed", "records": [..]}`, every record with the same keys in the same order,
//! absent values as `null`; a comparison also has `answer` and `ranking` (docs/results.md). Numbers are rounded to
//! twelve significant digits in both formats, so that the output does not depend on the last bit of a sum.

mod ranking;

pub use ranking::{Configuration, Difference, Key, Ranked, Setting};

use crate::stats::Summary;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

/// All results of one experiment.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Experiment {
    /// Name, such as `cislunar`.
    pub experiment: String,
    /// Seed of the random numbers of all runs.
    pub seed: u64,
    /// Answer in a few sentences; only of a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Protocols in the order of the ranking, then those without guaranteed delivery; only of a comparison.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranking: Vec<Ranked>,
    /// Figures, in the order of the output.
    pub records: Vec<Record>,
    /// Runs behind them, for `runs.csv`; not part of the JSON document.
    #[serde(skip)]
    pub runs: Vec<Row>,
}

/// Figure: a metric of one case at one point of the parameters, over all its runs.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Record {
    /// Case: a protocol with its settings, such as `tcpcl3/tuned`, or another name. In JSON and CSV it is in two parts,
    /// `protocol` and `settings`.
    #[serde(flatten, serialize_with = "serialized_parts")]
    pub case: String,
    /// Parameters of the point.
    pub params: Params,
    /// Name of the metric including its unit, such as `goodput_byte_per_s`.
    pub metric: String,
    /// Number of runs.
    pub n: usize,
    /// Mean of the runs.
    #[serde(serialize_with = "rounded")]
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean; `None` for a single run.
    #[serde(serialize_with = "rounded_option")]
    pub ci95: Option<f64>,
    /// Minimum.
    #[serde(serialize_with = "rounded")]
    pub min: f64,
    /// Maximum.
    #[serde(serialize_with = "rounded")]
    pub max: f64,
    /// Published figure.
    #[serde(serialize_with = "rounded_option")]
    pub reference: Option<f64>,
    /// Place of publication, such as `section III.A`.
    pub source: Option<String>,
    /// Relation of our figure to the published one.
    pub kind: FigureKind,
    /// Unit for axes and tables, such as `byte/s`.
    pub unit: String,
    /// Ideal value in the same unit.
    #[serde(serialize_with = "rounded_option")]
    pub limit: Option<f64>,
    /// Mean divided by the ideal value.
    #[serde(serialize_with = "rounded_option")]
    pub ratio: Option<f64>,
}

impl Record {
    /// Creates the predicted figure of these samples, one per run, without a reference.
    ///
    /// # Panics
    /// Panics without a sample ([`Summary::of`]).
    pub fn of(
        case: impl Into<String>,
        params: Params,
        metric: impl Into<String>,
        unit: impl Into<String>,
        samples: &[f64],
    ) -> Record {
        let summary = Summary::of(samples);
        Record {
            case: case.into(),
            params,
            metric: metric.into(),
            n: summary.n,
            mean: summary.mean,
            ci95: summary.ci95,
            min: summary.min,
            max: summary.max,
            reference: None,
            source: None,
            kind: FigureKind::Predicted,
            unit: unit.into(),
            limit: None,
            ratio: None,
        }
    }

    /// Adds the published figure.
    pub fn with_reference(mut self, value: f64, source: impl Into<String>) -> Record {
        self.reference = Some(value);
        self.source = Some(source.into());
        self
    }

    /// Adds the ideal value.
    pub fn with_limit(mut self, limit: f64) -> Record {
        self.limit = Some(limit);
        self.ratio = (limit != 0.0).then_some(self.mean / limit);
        self
    }

    /// Changes the kind.
    pub fn with_kind(mut self, kind: FigureKind) -> Record {
        self.kind = kind;
        self
    }

    /// Returns the summary of the samples.
    pub fn summary(&self) -> Summary {
        Summary { n: self.n, mean: self.mean, ci95: self.ci95, min: self.min, max: self.max }
    }
}

/// Relation of our figure to a published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// A constant or a choice between readings was fitted to this figure.
    Calibrated,
    /// Nothing was fitted to this figure.
    Predicted,
    /// Computed by a formula.
    ClosedForm,
    /// Measured in a live run.
    Measured,
}

impl fmt::Display for FigureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            FigureKind::Calibrated => "calibrated",
            FigureKind::Predicted => "predicted",
            FigureKind::ClosedForm => "closed-form",
            FigureKind::Measured => "measured",
        })
    }
}

/// One run: one seed at one point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Case of the run, as in [`Record`].
    pub case: String,
    /// Parameters of the point.
    pub params: Params,
    /// Number of the run at that point, from 0.
    pub run: u32,
    /// Seed of the run.
    pub seed: u64,
    /// Measurements: metric (with its unit in the name) and value, in the order of the columns. A run may lack a
    /// metric.
    pub values: Vec<(String, f64)>,
}

/// Point: names and values of parameters, in the order in which they were set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(Vec<(String, Value)>);

impl Params {
    /// Creates an empty point.
    pub fn new() -> Params {
        Params::default()
    }

    /// Sets a parameter; one that was set before keeps its position.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Params {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
        self
    }

    /// Returns the value of a parameter.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns the value of the parameter for which `at` has `*`, such as the delay for `delay_ms=* ber=1e-6`, or 0 if it
    /// has none. `None` at another point.
    pub fn along(&self, at: &str) -> Option<f64> {
        let words: Vec<&str> = at.split(' ').collect();
        let mut along = 0.0;
        for ((name, value), word) in self.iter().zip(&words) {
            match word.strip_prefix(name)?.strip_prefix('=')? {
                "*" => along = value.as_f64()?,
                text if text == value.to_string() => {}
                _ => return None,
            }
        }
        (words.len() == self.0.len()).then_some(along)
    }

    /// Iterates over all parameters in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl fmt::Display for Params {
    /// Formats as `delay_ms=2000 ber=0.000001`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.pad(&words.join(" "))
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Value of a parameter.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Integer.
    Integer(i64),
    /// Number other than an integer.
    Number(f64),
    /// Text.
    Text(String),
}

impl Value {
    /// Returns the value as a number, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Integer(value) => Some(*value as f64),
            Value::Number(value) => Some(*value),
            Value::Text(_) => None,
        }
    }

    /// Returns the value as text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        i64::try_from(value).map_or(Value::Number(value as f64), Value::Integer)
    }
}

impl From<f64> for Value {
    /// Converts integers to `Integer`, so that 0.0 and 0 are the same point.
    fn from(value: f64) -> Value {
        let whole = value.fract() == 0.0 && value.abs() < 1e15;
        if whole { Value::Integer(value as i64) } else { Value::Number(value) }
    }
}

macro_rules! values {
    ($($kind:ident($value:ty))+) => { $(
        impl From<$value> for Value {
            fn from(value: $value) -> Value {
                Value::$kind(value.into())
            }
        }
    )+ };
}

values!(Integer(i64) Integer(u32) Text(&str) Text(String));

impl fmt::Display for Value {
    /// Formats very small and very large numbers as `1e-6`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(value) => f.pad(&value.to_string()),
            Value::Number(value) => f.pad(&number(*value)),
            Value::Text(value) => f.pad(value),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Integer(value) => serializer.serialize_i64(*value),
            Value::Number(value) => rounded(value, serializer),
            Value::Text(value) => serializer.serialize_str(value),
        }
    }
}

impl Experiment {
    /// Writes the JSON document, with a newline at its end.
    ///
    /// # Errors
    /// Returns errors of the writer.
    pub fn write_json(&self, mut out: impl Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut out, self)?;
        out.write_all(b"\n")
    }

    /// Writes the same document without blanks.
    ///
    /// # Errors
    /// Returns errors of the writer.
    pub fn write_compact_json(&self, mut out: impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut out, self)?;
        out.write_all(b"\n")
    }

    /// Writes `records.csv`: one row per record, one column per parameter.
    ///
    /// # Errors
    /// Returns errors of the writer.
    pub fn write_records_csv(&self, out: impl Write) -> io::Result<()> {
        let after = "metric n mean ci95 min max reference source kind unit limit ratio".split(' ');
        let rows = self.records.iter().map(|record| {
            let mut cells = vec![record.metric.clone(), record.n.to_string(), number(record.mean)];
            cells.extend([optional(record.ci95), number(record.min), number(record.max)]);
            cells.extend([optional(record.reference), record.source.clone().unwrap_or_default()]);
            cells.extend([record.kind.to_string(), record.unit.clone()]);
            cells.extend([optional(record.limit), optional(record.ratio)]);
            (&record.case, &record.params, cells)
        });
        write_csv(out, &after.collect::<Vec<_>>(), rows.collect())
    }

    /// Writes `runs.csv`: one row per run, one column per parameter, one column per metric.
    ///
    /// # Errors
    /// Returns errors of the writer.
    pub fn write_runs_csv(&self, out: impl Write) -> io::Result<()> {
        let mut metrics = DistinctNames::default();
        self.runs.iter().flat_map(|run| &run.values).for_each(|(metric, _)| metrics.add(metric));
        let rows = self.runs.iter().map(|run| {
            let mut cells = vec![String::new(); 2 + metrics.in_order.len()];
            (cells[0], cells[1]) = (run.run.to_string(), run.seed.to_string());
            for (metric, value) in &run.values {
                cells[2 + metrics.index[metric]] = number(*value);
            }
            (&run.case, &run.params, cells)
        });
        let after = ["run", "seed"].into_iter().chain(metrics.in_order.iter().map(String::as_str));
        write_csv(out, &after.collect::<Vec<_>>(), rows.collect())
    }
}

/// Returns the distinct values in the order of their first occurrence.
pub(crate) fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// Distinct names, and the place of each.
#[derive(Default)]
struct DistinctNames {
    in_order: Vec<String>,
    index: BTreeMap<String, usize>,
}

impl DistinctNames {
    fn add(&mut self, name: &str) {
        if !self.index.contains_key(name) {
            self.index.insert(name.to_owned(), self.in_order.len());
            self.in_order.push(name.to_owned());
        }
    }
}

/// Writes rows of a case, its parameters, each in a column, and cells for the columns after them.
fn write_csv(out: impl Write, after: &[&str], rows: Vec<(&String, &Params, Vec<String>)>) -> io::Result<()> {
    let mut names = DistinctNames::default();
    rows.iter().flat_map(|(_, params, _)| params.iter()).for_each(|(name, _)| names.add(name));
    let names = names.in_order;
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(HEAD.into_iter().chain(names.iter().map(String::as_str)).chain(after.iter().copied()))?;
    for (case, params, cells) in rows {
        let (protocol, settings) = protocol_and_settings(case);
        let cell = |name: &String| params.get(name).map(Value::to_string).unwrap_or_default();
        let row = [protocol, settings.unwrap_or_default()].map(str::to_owned);
        csv.write_record(row.into_iter().chain(names.iter().map(cell)).chain(cells))?;
    }
    csv.flush()
}

const HEAD: [&str; 2] = ["protocol", "settings"];

/// Returns protocol and settings of a case. Protocols with settings have lowercase names: `TCP/IP` is one name.
pub fn protocol_and_settings(case: &str) -> (&str, Option<&str>) {
    match case.split_once('/') {
        Some((protocol, settings)) if !protocol.contains(char::is_uppercase) => (protocol, Some(settings)),
        _ => (case, None),
    }
}

fn serialized_parts<S: Serializer>(case: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let (protocol, settings) = protocol_and_settings(case);
    let mut map = serializer.serialize_map(Some(2))?;
    map.serialize_entry(HEAD[0], protocol)?;
    map.serialize_entry(HEAD[1], &settings)?;
    map.end()
}

fn optional(value: Option<f64>) -> String {
    value.map(number).unwrap_or_default()
}

/// Rounds to twelve significant digits.
pub fn round(value: f64) -> f64 {
    if value.is_finite() { format!("{value:.11e}").parse().unwrap_or(value) } else { value }
}

/// Formats a number for CSV and tables of parameters: at most twelve significant digits, `1e-6` where plain digits
/// would be long.
pub fn number(value: f64) -> String {
    let value = round(value);
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e15).contains(&size) { format!("{value:e}") } else { format!("{value}") }
}

fn rounded<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(round(*value))
}

fn rounded_option<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.serialize_some(&round(*value)),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment() -> Experiment {
        let point = Params::new().with("delay_ms", 2000u32).with("ber", 1e-6).with("outage_s", 0.0);
        let record =
            Record::of("tcpcl3/dtn2", point.clone(), "goodput_byte_per_s", "byte/s", &[2400.0, 2500.1])
                .with_reference(2550.0, "section III.A")
                .with_limit(13_700.0);
        let plain = Record::of("TCP/IP", Params::new().with("file", "a, b"), "time_s", "s", &[0.1 + 0.2])
            .with_kind(FigureKind::ClosedForm);
        let run = |number: u32, values: &[(&str, f64)]| Row {
            case: "tcpcl3/dtn2".into(),
            params: point.clone(),
            run: number,
            seed: u64::MAX,
            values: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        };
        Experiment {
            experiment: "cislunar".into(),
            seed: 1,
            records: vec![record, plain],
            runs: vec![
                run(0, &[("time_s", 185.25)]),
                run(1, &[("goodput_byte_per_s", 1e-9), ("time_s", 7.0)]),
            ],
            ..Experiment::default()
        }
    }

    #[test]
    fn a_point_is_found_by_its_text_and_a_curve_by_an_asterisk() {
        let point = Params::new().with("delay_ms", 2000u32).with("ber", 1e-6).with("to", "b");
        let along = |at| point.along(at);
        assert_eq!(along("delay_ms=2000 ber=1e-6 to=b"), Some(0.0));
        assert_eq!(along("delay_ms=* ber=1e-6 to=b"), Some(2000.0));
        for other in ["delay_ms=2000 ber=1e-6", "delay_ms=* ber=1e-6 to=b x=1", "delay_ms=* ber=1e-5 to=b"] {
            assert_eq!(along(other), None, "{other}");
        }
        assert_eq!(along("ber=1e-6 delay_ms=2000 to=b"), None, "another order");
        assert_eq!(along("delay_ms=2000 ber=1e-6 to=*"), None, "a text is no place on an axis");
    }

    #[test]
    fn json_has_every_key_in_order_and_no_rounding_noise() {
        let mut out = Vec::new();
        experiment().write_json(&mut out).unwrap();
        let expected = r#"{
  "experiment": "cislunar",
  "seed": 1,
  "records": [
    {
      "protocol": "tcpcl3",
      "settings": "dtn2",
      "params": {
        "delay_ms": 2000,
        "ber": 1e-6,
        "outage_s": 0
      },
      "metric": "goodput_byte_per_s",
      "n": 2,
      "mean": 2450.05,
      "ci95": 635.945547046,
      "min": 2400.0,
      "max": 2500.1,
      "reference": 2550.0,
      "source": "section III.A",
      "kind": "predicted",
      "unit": "byte/s",
      "limit": 13700.0,
      "ratio": 0.178835766423
    },
    {
      "protocol": "TCP/IP",
      "settings": null,
      "params": {
        "file": "a, b"
      },
      "metric": "time_s",
      "n": 1,
      "mean": 0.3,
      "ci95": null,
      "min": 0.3,
      "max": 0.3,
      "reference": null,
      "source": null,
      "kind": "closed-form",
      "unit": "s",
      "limit": null,
      "ratio": null
    }
  ]
}
"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_place_in_a_ranking_has_every_key_in_order_and_null_where_there_is_no_value() {
        let configuration = Configuration {
            kind: Some("tcp"),
            node: Some("tcpcl.segment-bytes = 16384".parse().unwrap()),
            system: vec!["sysctl -w net.ipv4.tcp_sack=0".into()],
            at_default: vec![(Key { section: "tcpcl".into(), name: "keepalive-timeout".into() }, None)],
            ..Configuration::default()
        };
        let first = Ranked {
            rank: Some(1),
            winner: true,
            tie_group: Some(1),
            protocol: "tcpcl3".into(),
            settings: "tuned".into(),
            acknowledged: true,
            keeps_accepted: true,
            runs: 2,
            delivered: 2,
            transfer_s: Some(0.1 + 0.2),
            ci95: Some(0.0),
            limit_s: Some(0.1),
            ratio: Some(3.0),
            behind_winner: Some(Difference { mean_s: 0.0, ci95_s: None, pairs: 1, significant: false }),
            configuration,
        };
        let nothing = Ranked {
            rank: None,
            winner: false,
            tie_group: None,
            acknowledged: false,
            delivered: 0,
            transfer_s: None,
            ci95: None,
            limit_s: None,
            ratio: None,
            behind_winner: None,
            configuration: Configuration::default(),
            ..first.clone()
        };
        assert!(first.is_for_nodes() && !nothing.is_for_nodes());
        let answer = Some("It is the fastest.".to_owned());
        let ranking = vec![first, nothing];
        let document =
            Experiment { experiment: "compare".into(), seed: 1, answer, ranking, ..Experiment::default() };
        let mut out = Vec::new();
        document.write_compact_json(&mut out).unwrap();
        let expected = concat!(
            r#"{"experiment":"compare","seed":1,"answer":"It is the fastest.","ranking":["#,
            r#"{"rank":1,"winner":true,"tie_group":1,"protocol":"tcpcl3","settings":"tuned","acknowledged":true,"#,
            r#""keeps_accepted":true,"runs":2,"delivered":2,"transfer_s":0.3,"ci95":0.0,"limit_s":0.1,"ratio":3.0,"#,
            r#""behind_winner":{"mean_s":0.0,"ci95_s":null,"pairs":1,"significant":false},"#,
            r#""configuration":{"kind":"tcp","node":{"tcpcl":{"segment-bytes":16384}},"engine":null,"#,
            r#""system":["sysctl -w net.ipv4.tcp_sack=0"],"fixed_by_kernel":[]}},"#,
            r#"{"rank":null,"winner":false,"tie_group":null,"protocol":"tcpcl3","settings":"tuned","#,
            r#""acknowledged":false,"keeps_accepted":true,"runs":2,"delivered":0,"transfer_s":null,"ci95":null,"#,
            r#""limit_s":null,"ratio":null,"behind_winner":null,"configuration":{"kind":null,"node":null,"#,
            r#""engine":null,"system":[],"fixed_by_kernel":[]}}],"records":[]}"#,
            "\n"
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn csv_has_one_column_for_every_parameter_of_any_record() {
        let mut out = Vec::new();
        experiment().write_records_csv(&mut out).unwrap();
        let expected = "\
protocol,settings,delay_ms,ber,outage_s,file,metric,n,mean,ci95,min,max,reference,source,kind,unit,limit,ratio
tcpcl3,dtn2,2000,1e-6,0,,goodput_byte_per_s,2,2450.05,635.945547046,2400,2500.1,2550,section III.A,predicted,byte/s,13700,0.178835766423
TCP/IP,,,,,\"a, b\",time_s,1,0.3,,0.3,0.3,,,closed-form,s,,
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let mut out = Vec::new();
        experiment().write_runs_csv(&mut out).unwrap();
        let expected = "\
protocol,settings,delay_ms,ber,outage_s,run,seed,time_s,goodput_byte_per_s
tcpcl3,dtn2,2000,1e-6,0,0,18446744073709551615,185.25,
tcpcl3,dtn2,2000,1e-6,0,1,18446744073709551615,7,1e-9
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
