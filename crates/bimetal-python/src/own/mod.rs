//! Schemes that are Python classes, for small studies.
//!
//! A scheme is compiled for every type of media, and a Python object cannot hold a reference into the simulation. So
//! the object calls a recorder: the media operations return nothing on which a scheme's decisions depend, and can be
//! performed when the call has ended. [`recorder`] detects broken rules at once, while the author's line is still on
//! the stack. [`guest`] is the scheme between the two, and [`perform`] performs the recorded operations. The scheme is
//! lent to the registry while a function runs.

mod check;
mod guest;
mod layout;
mod media;
mod perform;
mod recorder;

use std::sync::{Arc, Mutex, PoisonError};

use bimetal_core::scheme::{self, BuildError, Entry, Loan, Regions, SchemeSpec};
use bimetal_study::catalogue;
use pyo3::prelude::*;

use crate::error::exception;
pub use guest::Errand;
use guest::{Guest, interned};

/// A class: name, regions in the words of `list schemes`, and itself.
pub type Class = (String, String, Py<PyAny>);

/// Lends classes to the registry, for an errand.
///
/// # Errors
/// The name is already taken, or no device has these regions.
pub fn lend(py: Python<'_>, classes: Vec<Class>, errand: &Arc<Errand>) -> PyResult<Vec<Loan>> {
    classes.into_iter().map(|class| lend_one(py, class, errand)).collect()
}

fn lend_one(py: Python<'_>, class: Class, errand: &Arc<Errand>) -> PyResult<Loan> {
    let (name, _, _) = &class;
    let wrong = |what: String| exception(py, "SchemeError", &format!("`{name}`: {what}"));
    let spec = spec(&class).map_err(wrong)?;
    let errand = Arc::clone(errand);
    let object = class.2.clone_ref(py);
    let entry = Entry::simulated(
        spec,
        Box::new(move |shape, _, _| {
            match Guest::new(&object, format!("`{}`", spec.name), shape, Arc::clone(&errand)) {
                Ok(guest) => Ok(Box::new(guest)),
                Err(reason) => Err(BuildError::Device { scheme: spec.name, reason }),
            }
        }),
    );
    scheme::lend(entry).map_err(|error| wrong(format!("{error}, or wait for the other one's end")))
}

/// The regions that a class requires.
fn regions_of(class: &Class) -> Result<Regions, String> {
    const KNOWN: [Regions; 3] = [Regions::One, Regions::FastAndSlow, Regions::DualMode];
    KNOWN.into_iter().find(|&known| catalogue::regions(known) == class.1).ok_or_else(|| {
        let known = KNOWN.map(|known| format!("`{}`", catalogue::regions(known))).join(", ");
        format!("`regions` is `{}`; for a scheme in Python it is one of {known}", class.1)
    })
}

/// The registry line of a class. It has the lifetime of the program, and classes with equal lines share it.
fn spec(class: &Class) -> Result<&'static SchemeSpec, String> {
    static KNOWN: Mutex<Vec<&'static SchemeSpec>> = Mutex::new(Vec::new());
    let (name, regions) = (interned(&class.0), regions_of(class)?);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&spec) = known.iter().find(|spec| (spec.name, spec.regions) == (name, regions)) {
        return Ok(spec);
    }
    let spec: &SchemeSpec = Box::leak(Box::new(SchemeSpec {
        name,
        summary: "a class of Python",
        source: "its author",
        regions,
        parameters: Vec::new,
        adapts: &[],
        version: 1,
    }));
    known.push(spec);
    Ok(spec)
}

/// Adds the contents of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<media::Media>()?;
    module.add_class::<media::Request>()?;
    check::register(module)
}
