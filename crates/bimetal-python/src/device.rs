//! Devices, as the text of device files.

use bimetal_core::device::{self, Device};
use pyo3::prelude::*;

use crate::error::{Raise, exception, json};

/// The device file of a preset.
#[pyfunction]
fn device_preset(py: Python<'_>, name: &str) -> PyResult<String> {
    device::preset(name).and_then(|device| device.to_toml()).map_err(|error| error.raise(py))
}

/// A device file in the form that this program writes.
#[pyfunction]
fn device_file(py: Python<'_>, text: &str) -> PyResult<String> {
    Device::from_toml(text).and_then(|device| device.to_toml()).map_err(|error| error.raise(py))
}

/// The JSON of a device file, as in results.
#[pyfunction]
fn device_json(py: Python<'_>, text: &str) -> PyResult<String> {
    json(&Device::from_toml(text).map_err(|error| error.raise(py))?)
}

/// The device file of such JSON.
#[pyfunction]
fn device_from_json(py: Python<'_>, text: &str) -> PyResult<String> {
    let device: Device =
        serde_json::from_str(text).map_err(|error| exception(py, "DeviceError", &error.to_string()))?;
    device.to_toml().map_err(|error| error.raise(py))
}

/// Adds the contents of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(device_preset, module)?)?;
    module.add_function(wrap_pyfunction!(device_file, module)?)?;
    module.add_function(wrap_pyfunction!(device_json, module)?)?;
    module.add_function(wrap_pyfunction!(device_from_json, module)?)
}
