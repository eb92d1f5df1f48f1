//! Grids of parameters: all combinations of values for dotted keys of a file.

use crate::error::Error;
use crate::record::{self, Params};
use crate::toml_text;
use toml::{Table, Value};

const POINTS_MAX: usize = 100_000;

/// Combination of values.
#[derive(Clone)]
pub(super) struct Combination {
    /// Parameters, by their names in records.
    pub(super) params: Params,
    /// Keys with the value of each.
    pub(super) values: Vec<(String, Value)>,
    /// File with these values.
    pub(super) table: Table,
}

/// Expands all combinations of the values of these keys, the last one varying fastest.
///
/// # Errors
/// Fails if a key cannot be set, two keys have the same name in records, or the grid is empty or too large.
pub(super) fn swept(base: Table, sweeps: &[(String, Vec<Value>)]) -> Result<Vec<Combination>, Error> {
    let mut points = vec![Combination { params: Params::new(), values: Vec::new(), table: base }];
    for (key, values) in sweeps {
        if key.split('.').next() == Some("sweep") {
            return Err(Error::new(format!("`{key}` is the key of a sweep, not of what it changes"))
                .hint("give the key as it stands outside of [sweep], such as workload.bytes"));
        }
        let count = points.len() * values.len();
        if !(1..=POINTS_MAX).contains(&count) {
            return Err(Error::new(format!("the sweep of `{key}` has {count} points"))
                .hint(format!("a grid can have 1 to {POINTS_MAX} points")));
        }
        let name = param_name(key);
        if points[0].params.get(&name).is_some() {
            return Err(Error::new(format!("two sweeps have the same name in the results, `{name}`"))
                .hint("sweep one of the keys, or all channels together, such as channel.ber"));
        }
        let mut finer = Vec::with_capacity(count);
        for point in &points {
            for value in values {
                let mut next = point.clone();
                toml_text::set(&mut next.table, key, value)?;
                next.params = next.params.with(&name, param_value(value));
                next.values.push((key.clone(), value.clone()));
                finer.push(next);
            }
        }
        points = finer;
    }
    Ok(points)
}

/// Merges the sweeps of a file with further ones, which replace those of the same key and follow the others.
///
/// # Errors
/// Fails if a sweep is not a list.
pub(super) fn merged(
    own: &Table,
    further: &[(String, Vec<Value>)],
) -> Result<Vec<(String, Vec<Value>)>, Error> {
    let mut sweeps = Vec::new();
    for (key, values) in own {
        let values = values.as_array().ok_or_else(|| {
            Error::new(format!("the sweep of `{key}` is not a list"))
                .hint(format!("use \"{key}\" = [first, second]"))
        })?;
        sweeps.push((key.clone(), values.clone()));
    }
    for (key, values) in further {
        match sweeps.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = values.clone(),
            None => sweeps.push((key.clone(), values.clone())),
        }
    }
    Ok(sweeps)
}

/// Parses `--sweep key=a,b,c` into a key and its values.
///
/// # Errors
/// Fails without `=`.
pub fn parse_sweep(word: &str) -> Result<(String, Vec<Value>), Error> {
    let parts = word.split_once('=').filter(|(key, values)| !key.is_empty() && !values.is_empty());
    let (key, values) = parts.ok_or_else(|| {
        Error::new(format!("`{word}` is not a valid sweep"))
            .hint("use key=a,b,c, such as channel.ber=0,1e-6,1e-5")
    })?;
    Ok((key.to_owned(), values.split(',').map(toml_text::value_of).collect()))
}

/// Name of a key in records: its last part with underscores (`channel.delay-ms` is `delay_ms`).
fn param_name(key: &str) -> String {
    match key.rsplit_once('.') {
        Some((before, last)) if before.split('.').any(|part| part == "outage") => format!("outage_{last}"),
        Some((_, last)) => last.to_owned(),
        None => key.to_owned(),
    }
    .replace('-', "_")
}

pub(crate) fn param_value(value: &Value) -> record::Value {
    match value {
        Value::Integer(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::String(value) => value.as_str().into(),
        other => other.to_string().into(),
    }
}
