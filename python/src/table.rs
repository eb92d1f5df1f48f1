//! Tables and columns with the PyCapsule interface of Arrow: other libraries take them without a copy.

use arrow_array::cast::AsArray;
use arrow_array::ffi::to_ffi;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, StructArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Schema};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyTuple};
use std::ffi::CStr;

// Names of the capsules in the interface.
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

fn failed(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Table of figures.
///
/// The table has the PyCapsule interface of Arrow, so `pyarrow.table(table)`, `polars.DataFrame(table)` and
/// `pandas.DataFrame.from_arrow(table)` take it as it is, without a copy of the figures.
#[pyclass(frozen, module = "longwire")]
pub(crate) struct Table {
    batch: RecordBatch,
}

impl Table {
    pub(crate) fn new(batch: RecordBatch) -> Table {
        Table { batch }
    }
}

#[pymethods]
impl Table {
    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        let names = self.column_names().join(", ");
        format!("<longwire.Table of {} rows: {names}>", self.batch.num_rows())
    }

    /// Returns a column by its name.
    fn __getitem__(&self, name: &str) -> PyResult<Column> {
        match self.batch.column_by_name(name) {
            Some(array) => Ok(Column { array: array.clone() }),
            None => {
                let known = self.column_names().join(", ");
                Err(PyKeyError::new_err(format!("no such column: {name}; there are {known}")))
            }
        }
    }

    /// Returns the rows as dictionaries; what does not exist is None.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let schema = self.batch.schema();
        let row = |at: usize| {
            let row = PyDict::new(py);
            for (field, array) in schema.fields().iter().zip(self.batch.columns()) {
                row.set_item(field.name(), item(py, array, at)?)?;
            }
            Ok(row)
        };
        PyList::new(py, (0..self.batch.num_rows()).map(row).collect::<PyResult<Vec<_>>>()?)
    }

    /// Returns the table as a `pyarrow.Table`.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// Returns the table as a `pandas.DataFrame`; needs pyarrow, too.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Table::to_arrow(slf)?.call_method0("to_pandas")
    }

    /// Returns the table as a `polars.DataFrame`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// Returns the schema as a capsule of the Arrow interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema: &Schema = self.batch.schema_ref();
        PyCapsule::new_with_value(py, FFI_ArrowSchema::try_from(schema).map_err(failed)?, SCHEMA)
    }

    /// Returns the table as a stream of one batch.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A request is a wish that a producer may ignore.
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
    }

    /// Returns the table as an array of structs.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema;
        capsules(py, &StructArray::from(self.batch.clone()))
    }
}

/// Column of a table, with the PyCapsule interface of Arrow: `pyarrow.array(column)`, `polars.Series(column)`.
#[pyclass(frozen, module = "longwire")]
pub(crate) struct Column {
    array: ArrayRef,
}

#[pymethods]
impl Column {
    fn __len__(&self) -> usize {
        self.array.len()
    }

    fn __repr__(&self) -> String {
        format!("<longwire.Column of {} values, {}>", self.array.len(), self.array.data_type())
    }

    /// Returns the values; what does not exist is None.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        (0..self.array.len()).map(|at| item(py, &self.array, at)).collect()
    }

    /// Returns the type as a capsule of the Arrow interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.array.data_type()).map_err(failed)?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }

    /// Returns the column as an array.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema;
        capsules(py, &self.array)
    }
}

/// Capsules of the schema and of the array.
fn capsules<'py>(py: Python<'py>, array: &dyn Array) -> PyResult<Bound<'py, PyTuple>> {
    let (array, schema) = to_ffi(&array.to_data()).map_err(failed)?;
    let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
    (schema, PyCapsule::new_with_value(py, array, ARRAY)?).into_pyobject(py)
}

/// Value of an array for Python.
fn item<'py>(py: Python<'py>, array: &ArrayRef, at: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(at) {
        return Ok(py.None().into_bound(py));
    }
    match array.data_type() {
        DataType::Boolean => Ok(array.as_boolean().value(at).into_pyobject(py)?.to_owned().into_any()),
        DataType::Int64 => Ok(array.as_primitive::<Int64Type>().value(at).into_pyobject(py)?.into_any()),
        DataType::UInt32 => Ok(array.as_primitive::<UInt32Type>().value(at).into_pyobject(py)?.into_any()),
        DataType::UInt64 => Ok(array.as_primitive::<UInt64Type>().value(at).into_pyobject(py)?.into_any()),
        DataType::Float64 => Ok(array.as_primitive::<Float64Type>().value(at).into_pyobject(py)?.into_any()),
        DataType::Utf8 => Ok(array.as_string::<i32>().value(at).into_pyobject(py)?.into_any()),
        other => unreachable!("no column has the type {other}"),
    }
}
