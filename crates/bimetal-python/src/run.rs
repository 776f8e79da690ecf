//! Replays and their results.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bimetal_core::device::Device;
use bimetal_core::profile::{CurvePlan, Profile};
use bimetal_core::replay::Plan;
use bimetal_study::listing;
use bimetal_study::prepare::{Schemes, Workload, prepare};
use bimetal_study::ranking::{Ranking, Sort};
use bimetal_study::replays::Replays;
use bimetal_study::verdict::Verdict;
use bimetal_study::{StudyError, arrivals, compare, headline, html};
use pyo3::prelude::*;

use crate::error::{Raise, exception, json};
use crate::own::{self, Class, Errand};
use crate::progress::Teller;
use crate::stop::{interruptible, interruptible_by};
use crate::table::{Table, table};
use crate::trace::Trace;

/// A comparison of schemes, or the result of one scheme.
#[pyclass(frozen, module = "bimetal._core")]
pub struct Comparison {
    comparison: compare::Comparison,
    /// The original trace, for its profile.
    workload: Workload,
}

#[pymethods]
impl Comparison {
    /// The complete result, in the JSON of the command line.
    fn json(&self) -> PyResult<String> {
        json(&self.comparison)
    }

    /// The report as one HTML page. It shows the command that reproduces it.
    fn html(&self, py: Python<'_>, command: &str) -> PyResult<String> {
        interruptible(py, |_| {
            let profile = Profile::of(&self.workload.requests, &CurvePlan::default());
            html::comparison(&self.comparison, Sort::default(), &profile, command)
        })
    }

    /// The verdict, in at most two lines; empty for one scheme.
    fn verdict(&self) -> Vec<String> {
        Verdict::of(&self.comparison.results, &self.ranking()).map_or_else(Vec::new, |verdict| verdict.lines())
    }

    /// The main figures of each scheme, the best first. The title of a group is a row of one cell.
    fn headline(&self) -> Table {
        let sheet = headline::sheet(&self.comparison.results, &self.ranking());
        (sheet.flat_heads(), sheet.flat_rows())
    }

    /// The same as lines of text.
    fn lines(&self) -> Vec<String> {
        let sheet = headline::sheet(&self.comparison.results, &self.ranking());
        sheet.lines().iter().map(|line| line.text().to_owned()).collect()
    }

    /// Remarks for readers of this table.
    fn remarks(&self) -> Vec<String> {
        headline::remarks(&self.comparison.results, &self.ranking())
    }

    /// Indices of the results in the order of this table.
    fn order(&self) -> Vec<usize> {
        self.ranking().groups.into_iter().flat_map(|group| group.places).collect()
    }

    /// Operations of each scheme.
    fn operations(&self) -> Vec<Table> {
        self.comparison.results.iter().map(|entry| table(listing::operations(&entry.report))).collect()
    }

    /// Wear of each scheme.
    fn wear(&self) -> Vec<Table> {
        self.comparison.results.iter().map(|entry| table(listing::wear(&entry.report))).collect()
    }
}

impl Comparison {
    fn ranking(&self) -> Ranking {
        Ranking::of(&self.comparison.results, Sort::default())
    }
}

/// Reports finished schemes.
struct Watch<'a> {
    teller: &'a Teller<'a>,
    done: AtomicUsize,
    of: usize,
}

impl compare::Progress for Watch<'_> {
    fn served(&self, _run: usize, _requests: u64) -> ControlFlow<()> {
        self.teller.flow()
    }

    fn done(&self, _run: usize) {
        self.teller.tell(self.done.fetch_add(1, Ordering::Relaxed) + 1, self.of);
    }
}

/// Runs schemes on the device of a device file or on one fitted to the trace; all schemes that the device allows if
/// none is named. The names of `classes` are known while it runs.
#[pyfunction]
#[pyo3(signature = (trace, schemes, classes, device, settings, arrivals, repeat, measure, fill, intervals, seeds, jobs, progress))]
#[expect(clippy::too_many_arguments, reason = "one for each option of the command; called from one place, by name")]
fn compare_schemes(
    py: Python<'_>,
    trace: &Trace,
    schemes: Option<Vec<String>>,
    classes: Vec<Class>,
    device: Option<&str>,
    settings: Vec<(String, String)>,
    arrivals: Option<&str>,
    repeat: u32,
    measure: u32,
    fill: &str,
    intervals: u32,
    seeds: u32,
    jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Comparison> {
    let arrivals = arrivals.map(arrivals::parse).transpose().map_err(|text| exception(py, "SettingError", &text))?;
    let fill = fill.parse().map_err(|text: String| exception(py, "SettingError", &text))?;
    let plan = Plan { passes: repeat, measured_passes: measure, fill, intervals, ..Plan::default() };
    let replays = Replays::of(plan, arrivals, &trace.workload.facts);
    let errand = Arc::new(Errand::default());
    let _loans = own::lend(py, classes, &errand)?;
    let schemes = schemes.map_or_else(|| Ok(Schemes::all()), |names| Schemes::named(&names));
    let schemes = schemes.map_err(|error| error.raise(py))?;
    let device = device.map(Device::from_toml).transpose().map_err(|error| error.raise(py))?;
    let workload = trace.workload.clone();
    let run = |teller: &Teller<'_>| -> Result<compare::Comparison, StudyError> {
        let prepared = prepare(workload, device, &schemes, &settings)?;
        let watch = Watch { teller, done: AtomicUsize::new(0), of: prepared.runs.len() };
        compare::run(&prepared, &replays, seeds, jobs, &watch)
    };
    let comparison = interruptible_by(py, &errand.stop, |stop| {
        let teller = Teller::new(stop, progress);
        let comparison = run(&teller);
        teller.end(comparison)
    })?;
    // The exception of a class comes before an error of the work, which it has caused.
    errand.end()?;
    let comparison = comparison?.map_err(|error| error.raise(py))?;
    Ok(Comparison { comparison, workload: trace.workload.clone() })
}

/// Adds the contents of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Comparison>()?;
    module.add_function(wrap_pyfunction!(compare_schemes, module)?)
}
