//! The registries as JSON.

use bimetal_study::catalogue;
use pyo3::prelude::*;

use crate::error::{Raise, json};

/// Every scheme.
#[pyfunction]
fn schemes() -> PyResult<String> {
    json(&catalogue::schemes())
}

/// Every flash part.
#[pyfunction]
fn chips() -> PyResult<String> {
    json(&catalogue::chips())
}

/// Every hard disk.
#[pyfunction]
fn drives() -> PyResult<String> {
    json(&catalogue::drives())
}

/// Every device preset.
#[pyfunction]
fn devices(py: Python<'_>) -> PyResult<String> {
    json(&catalogue::devices().map_err(|error| error.raise(py))?)
}

/// Every trace format.
#[pyfunction]
fn formats() -> PyResult<String> {
    json(&catalogue::formats())
}

/// Every workload.
#[pyfunction]
fn workloads() -> PyResult<String> {
    json(&catalogue::workloads())
}

/// Every paper.
#[pyfunction]
fn papers() -> PyResult<String> {
    json(&bimetal_papers::catalogue::papers())
}

/// Adds the contents of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(schemes, module)?)?;
    module.add_function(wrap_pyfunction!(chips, module)?)?;
    module.add_function(wrap_pyfunction!(drives, module)?)?;
    module.add_function(wrap_pyfunction!(devices, module)?)?;
    module.add_function(wrap_pyfunction!(formats, module)?)?;
    module.add_function(wrap_pyfunction!(workloads, module)?)?;
    module.add_function(wrap_pyfunction!(papers, module)?)
}
