//! Bimetal for Python: converts arguments, releases the interpreter, calls the study, returns results as JSON.
//!
//! This crate has no logic, except for schemes that are Python classes ([`own`]). Python programs use `python/bimetal`,
//! which converts the results of these functions to typed objects. The JSON is that of the command line.

#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod advise;
mod catalogue;
mod device;
mod error;
mod own;
mod paper;
mod progress;
mod run;
mod stop;
mod sweep;
mod table;
mod trace;

use bimetal_core::workload;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The compiled part of `python/bimetal`. Not for direct use.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    workload::add(bimetal_papers::workload::entries()).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    trace::register(module)?;
    device::register(module)?;
    run::register(module)?;
    paper::register(module)?;
    sweep::register(module)?;
    advise::register(module)?;
    own::register(module)?;
    catalogue::register(module)
}
