//! The module `_longwire` of the Python package `longwire`: experiments of the lab, and their results as Arrow tables.
//!
//! This crate converts arguments and results; everything else is the lab's: the same scenario and seed give the bytes that the
//! command gives. The functions for people are in Python, in `source/longwire` beside this folder.

#![forbid(unsafe_code)]

mod columns;
mod computation;
mod experiments;
mod input;
mod result;
mod table;
mod tasks;

#[pyo3::pymodule]
mod _longwire {
    #[pymodule_export]
    use crate::experiments::{compare, links, model, papers, reproduce, run};
    #[pymodule_export]
    use crate::result::ExperimentResult;
    #[pymodule_export]
    use crate::table::{Column, Table};
    #[pymodule_export]
    use crate::tasks::{TaskList, play};

    /// Version of the package, and of the simulator in it.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "the name that Python has for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
