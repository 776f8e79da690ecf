//! Checks a scheme in Python against the requirements of every scheme: reads return the written data, and the same
//! requests lead to the same operations.

use std::sync::Arc;

use bimetal_core::scheme::conformance::{DEVICES, try_out};
use pyo3::prelude::*;

use super::guest::{Errand, Guest};
use super::{Class, regions_of};
use crate::error::exception;
use crate::stop::interruptible_by;

/// Serves random requests on small devices of all shapes, filled and erased.
#[pyfunction]
fn check_scheme(py: Python<'_>, scheme: Class, requests: u64, seed: u64) -> PyResult<()> {
    let wrong = |what: String| exception(py, "SchemeError", &what);
    let regions = regions_of(&scheme).map_err(|what| wrong(format!("`{}`: {what}", scheme.0)))?;
    for device in DEVICES {
        for filled in [true, false] {
            let state = if filled { "filled" } else { "not filled" };
            let name = format!("`{}` on the device `{}`, {state}", scheme.0, device.name);
            let mut states = Vec::with_capacity(2);
            for _ in 0..2 {
                let errand = Arc::new(Errand::default());
                let tried = interruptible_by(py, &errand.stop, |stop| {
                    let shape = device.shape(regions);
                    let guest = Guest::new(&scheme.2, name.clone(), &shape, Arc::clone(&errand))?;
                    let goes_on = &mut || stop.flow();
                    try_out(Box::new(guest), (device, regions), filled, requests, seed, goes_on)
                })?;
                errand.end()?;
                states.push(tried.map_err(|what| wrong(format!("{name}: {what}")))?);
            }
            if states[0] != states[1] {
                let what = "the same requests lead to other operations the second time";
                return Err(wrong(format!("{name}: {what}; hint: `random.Random(shape.seed)`, and no order of a set")));
            }
        }
    }
    Ok(())
}

/// Adds the contents of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(check_scheme, module)?)
}
