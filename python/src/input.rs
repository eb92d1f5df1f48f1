//! Arguments from Python: paths, and dictionaries as TOML.

use crate::computation::exception;
use longwire_lab::error::Error;
use longwire_lab::scenario::Scenario;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyMapping, PyMemoryView, PySet, PyString,
};
use std::path::PathBuf;
use toml::{Table, Value};

/// Maximum depth of dictionaries and lists, which could contain themselves.
const DEPTH_MAX: usize = 32;

/// Reads a scenario: the path of its file, or a dictionary with the keys of such a file; returns its text, and the path that it
/// has on the page.
pub(crate) fn scenario(given: &Bound<'_, PyAny>, name: &str) -> PyResult<(String, PathBuf)> {
    if let Ok(dictionary) = given.cast::<PyDict>() {
        return Ok((table(dictionary)?.to_string(), PathBuf::from(format!("{name}.toml"))));
    }
    let path: PathBuf = given.extract()?;
    let text = Scenario::text(&path).map_err(|error| exception(given.py(), &error))?;
    Ok((text, path))
}

/// Reads a grid: a dictionary of lists.
pub(crate) fn sweeps(grid: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(String, Vec<Value>)>> {
    let of = |(key, values): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let key: String = key.extract()?;
        match value(&values, 0)? {
            Value::Array(values) => Ok((key, values)),
            _ => Err(exception(
                values.py(),
                &Error::new(format!("the sweep of `{key}` is not a list"))
                    .hint(format!("use {{\"{key}\": [first, second]}}")),
            )),
        }
    };
    grid.map_or(Ok(Vec::new()), |grid| grid.iter().map(of).collect())
}

/// Reads a dictionary as a TOML table.
pub(crate) fn table(dictionary: &Bound<'_, PyDict>) -> PyResult<Table> {
    table_at(dictionary, 0)
}

fn table_at(dictionary: &Bound<'_, PyDict>, depth: usize) -> PyResult<Table> {
    let entries = dictionary.iter();
    entries.map(|(key, given)| Ok((key.extract::<String>()?, value(&given, depth + 1)?))).collect()
}

/// Reads a value: of Python, of NumPy, or a path.
fn value(given: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > DEPTH_MAX {
        return Err(PyTypeError::new_err(format!(
            "more than {DEPTH_MAX} dictionaries and lists in one another"
        )));
    }
    if let Ok(dictionary) = given.cast::<PyDict>() {
        return Ok(Value::Table(table_at(dictionary, depth)?));
    }
    if let Ok(mapping) = given.cast::<PyMapping>() {
        let entries = PyDict::new(given.py());
        entries.update(mapping)?;
        return Ok(Value::Table(table_at(&entries, depth)?));
    }
    if let Ok(flag) = given.cast::<PyBool>() {
        return Ok(Value::Boolean(flag.is_true()));
    }
    if let Ok(text) = given.cast::<PyString>() {
        return Ok(Value::String(text.extract()?));
    }
    if let Ok(number) = given.cast::<PyFloat>() {
        return Ok(Value::Float(number.extract()?));
    }
    // The order of a set differs from process to process, and bytes are no list of numbers to anybody.
    let is_set = given.is_instance_of::<PySet>() || given.is_instance_of::<PyFrozenSet>();
    let is_bytes = given.is_instance_of::<PyBytes>()
        || given.is_instance_of::<PyByteArray>()
        || given.is_instance_of::<PyMemoryView>();
    if is_set || is_bytes {
        return Err(no_value(given)?);
    }
    // Scalars and arrays of NumPy, which have more methods than they can carry out.
    if given.hasattr("tolist")? {
        let plain = given.call_method0("tolist")?;
        // A long double is its own, and so is a complex one.
        if !plain.get_type().is(given.get_type()) {
            return value(&plain, depth + 1);
        }
        let real = given.py().import("numbers")?.getattr("Real")?;
        if !given.is_instance(&real)? {
            return Err(no_value(given)?);
        }
    }
    if given.hasattr("__index__")? {
        return Ok(Value::Integer(given.extract()?));
    }
    if given.hasattr("__fspath__")? {
        let path: PathBuf = given.extract()?;
        return Ok(Value::String(path.display().to_string()));
    }
    if given.hasattr("__len__")? {
        let items = given.try_iter()?.map(|item| value(&item?, depth + 1));
        return Ok(Value::Array(items.collect::<PyResult<_>>()?));
    }
    if given.hasattr("__float__")? {
        return Ok(Value::Float(given.extract()?));
    }
    Err(no_value(given)?)
}

/// Error for a value that a scenario cannot contain.
fn no_value(given: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let kind = given.get_type().qualname()?;
    Ok(PyTypeError::new_err(format!(
        "a {kind} is no value of a scenario: use numbers, texts, lists and dictionaries"
    )))
}
