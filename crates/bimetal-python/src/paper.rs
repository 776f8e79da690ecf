//! Reproduction of the papers.

use std::collections::BTreeMap;

use bimetal_papers as papers;
use bimetal_papers::check_variations;
use bimetal_papers::experiment::Scale;
use bimetal_papers::variation::{Applied, Variation};
use pyo3::prelude::*;

use crate::error::{Raise, json};
use crate::progress::Teller;
use crate::stop::interruptible;
use crate::trace::Trace;

/// Figures and claims.
#[pyclass(frozen, module = "bimetal._core")]
pub struct Reproduction {
    reproduction: papers::Reproduction,
}

#[pymethods]
impl Reproduction {
    /// The complete result, in the JSON of the command line.
    fn json(&self) -> PyResult<String> {
        json(&self.reproduction)
    }

    /// Warnings about settings without effect.
    fn warnings(&self) -> Vec<String> {
        self.reproduction.settings.iter().filter_map(Applied::warning).collect()
    }

    /// The figures as one HTML page. It shows the command that reproduces it.
    fn html(&self, py: Python<'_>, title: &str, command: &str) -> String {
        py.detach(|| papers::figures(title, command, &self.reproduction.figures))
    }
}

/// Reproduces the figures of a paper whose names begin with one of `figures`, or all its figures, or those of all
/// papers.
#[pyfunction]
#[pyo3(signature = (paper, figures, quick, traces, settings, jobs, progress))]
#[expect(clippy::too_many_arguments, reason = "called from one place")]
fn reproduce(
    py: Python<'_>,
    paper: Option<&str>,
    figures: Vec<String>,
    quick: bool,
    traces: Vec<(String, Bound<'_, Trace>)>,
    settings: Vec<(String, String)>,
    jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Reproduction> {
    let chosen = papers::choose(paper, &figures).map_err(|error| error.raise(py))?;
    let names = traces.iter().map(|(name, _)| name.as_str());
    papers::check_traces(&chosen, names.clone()).map_err(|error| error.raise(py))?;
    let variations = variations(py, &chosen, names, &settings)?;
    let own: BTreeMap<_, _> = traces.into_iter().map(|(name, trace)| (name, trace.get().workload.clone())).collect();
    let scale = if quick { Scale::Quick } else { Scale::Full };
    let conditions = papers::Conditions { scale, jobs, own, variations };
    let made = interruptible(py, |stop| {
        let teller = Teller::new(stop, progress);
        let made = papers::reproduce(&chosen, conditions, &teller);
        teller.end(made)
    })??;
    Ok(Reproduction { reproduction: made.map_err(|error| error.raise(py))? })
}

/// Judges the claims of a paper, or of all papers, that any trace can decide, on each of these traces.
#[pyfunction]
#[pyo3(signature = (paper, traces, settings, jobs, progress))]
fn reproduce_on(
    py: Python<'_>,
    paper: Option<&str>,
    traces: Vec<Bound<'_, Trace>>,
    settings: Vec<(String, String)>,
    jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Reproduction> {
    let chosen = papers::choose_on_any_trace(paper).map_err(|error| error.raise(py))?;
    let variations = variations(py, &chosen, std::iter::empty(), &settings)?;
    let traces: Vec<_> = traces.into_iter().map(|trace| trace.get().workload.clone()).collect();
    papers::check_names(&traces).map_err(|error| error.raise(py))?;
    let made = interruptible(py, |stop| {
        let teller = Teller::new(stop, progress);
        let made = papers::reproduce_on(&chosen, &traces, jobs, &variations, &teller);
        teller.end(made)
    })??;
    Ok(Reproduction { reproduction: made.map_err(|error| error.raise(py))? })
}

/// The settings `OF.KEY=VALUE` of the user for these figures.
fn variations<'a>(
    py: Python<'_>,
    chosen: &[papers::Chosen],
    own: impl Iterator<Item = &'a str> + Clone,
    settings: &[(String, String)],
) -> PyResult<Vec<Variation>> {
    let variations = settings.iter().map(|(name, value)| Variation::new(name, value)).collect::<Result<Vec<_>, _>>();
    let variations = variations.map_err(|error| error.raise(py))?;
    check_variations(chosen, own, &variations).map_err(|error| error.raise(py))?;
    Ok(variations)
}

/// Adds the contents of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Reproduction>()?;
    module.add_function(wrap_pyfunction!(reproduce, module)?)?;
    module.add_function(wrap_pyfunction!(reproduce_on, module)?)
}
