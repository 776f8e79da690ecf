//! Advice.

use std::sync::atomic::{AtomicUsize, Ordering};

use bimetal_core::units::ByteSize;
use bimetal_study::advise::answer::{Answer, response_of};
use bimetal_study::advise::asked::Asked;
use bimetal_study::advise::drives_to_buy::DrivesToBuy;
use bimetal_study::advise::goals::{Goal, Measure};
use bimetal_study::advise::offered::OfferedLoad;
use bimetal_study::advise::prices::PriceList;
use bimetal_study::advise::{self, AdviceError, Phase, Question};
use bimetal_study::{arrivals, html};
use pyo3::prelude::*;

use crate::error::{Raise, exception, json};
use crate::progress::Teller;
use crate::stop::interruptible;
use crate::table::{Table, table};
use crate::trace::Trace;

/// An answer.
#[pyclass(frozen, module = "bimetal._core")]
pub struct Advice {
    answer: Answer,
}

#[pymethods]
impl Advice {
    /// The complete result, in the JSON of the command line.
    fn json(&self) -> PyResult<String> {
        json(&self.answer)
    }

    /// The HTML page. It shows the command that reproduces it.
    fn html(&self, py: Python<'_>, command: &str) -> String {
        py.detach(|| html::advice(&self.answer, command))
    }

    /// A text about the search.
    fn searched(&self) -> String {
        self.answer.searched()
    }

    /// Texts about the replay, the computation of wear, and the notes.
    fn facts(&self) -> Vec<String> {
        let answer = &self.answer;
        let facts = [format!("every simulation: {}", answer.replayed()), answer.wear_terms()];
        facts.into_iter().chain(answer.notes.iter().cloned()).collect()
    }

    /// Texts about the limiting goals.
    fn binding(&self) -> Vec<String> {
        self.answer.binding()
    }

    /// Texts about the drives on the market; empty if none were candidates.
    fn drives(&self) -> Vec<String> {
        let about = |drives: &DrivesToBuy| [vec![drives.verdict(&self.answer.goals)], drives.failed.clone()].concat();
        self.answer.drives.as_ref().map(about).unwrap_or_default()
    }

    /// Name of the response shown with price and wear, and its meaning.
    fn response(&self) -> (&'static str, String) {
        (response_of(&self.answer.goals).name(), self.answer.response_head())
    }

    /// The goals in words.
    fn goals(&self) -> Vec<String> {
        self.answer.goals.iter().map(ToString::to_string).collect()
    }

    /// The recommended device, or else the closest ones.
    fn chosen(&self) -> Table {
        table(self.answer.listing(self.answer.chosen()))
    }

    /// The Pareto front.
    fn front(&self) -> Table {
        table(self.answer.listing(&self.answer.front))
    }
}

/// Parses a text. An error names the argument.
fn read<T>(py: Python<'_>, name: &str, text: &str, parse: impl Fn(&str) -> Result<T, String>) -> PyResult<T> {
    parse(text).map_err(|what| exception(py, "SettingError", &format!("`{name}`: {what}")))
}

fn goal(name: &str, text: &str) -> Result<Goal, String> {
    let measure = Measure::ALL.into_iter().find(|measure| measure.name() == name);
    Goal::parse(measure.ok_or_else(|| "there is no such goal".to_owned())?, text)
}

/// Finds the cheapest devices that meet goals. Goals have the names of options, `prices` is name and text of a file.
#[pyfunction]
#[pyo3(signature = (
    trace, goals, writes_per_day, chips, schemes, capacity, disk, channels, dies_per_channel, year, prices, price, arrivals,
    load, repeat, measure, simulations, jobs, drives, progress
))]
#[expect(clippy::too_many_arguments, reason = "one for each option of the command; called from one place")]
fn advise_devices(
    py: Python<'_>,
    trace: &Trace,
    goals: Vec<(String, String)>,
    writes_per_day: Option<&str>,
    chips: Vec<String>,
    schemes: Vec<String>,
    capacity: Option<&str>,
    disk: Option<String>,
    channels: Option<u32>,
    dies_per_channel: Option<u32>,
    year: Option<u16>,
    prices: Option<(String, String)>,
    price: Vec<(String, f64)>,
    arrivals: Option<&str>,
    load: Option<&str>,
    repeat: Option<u32>,
    measure: Option<u32>,
    simulations: Option<usize>,
    jobs: usize,
    drives: Vec<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Advice> {
    let goals: PyResult<Vec<Goal>> =
        goals.iter().map(|(name, text)| read(py, name, text, |text| goal(name, text))).collect();
    let goals = goals?;
    let size = |name: &str, text: Option<&str>| -> PyResult<Option<ByteSize>> {
        text.map(|text| read(py, name, text, str::parse)).transpose()
    };
    let capacity = size("capacity", capacity)?;
    let write_bytes_per_day = size("writes_per_day", writes_per_day)?.map(|bytes| bytes.0 as f64);
    let arrivals = arrivals.map(arrivals::parse).transpose();
    let arrivals = arrivals.map_err(|text| exception(py, "SettingError", &text))?;
    let load: Option<OfferedLoad> = load.map(|text| read(py, "load", text, str::parse)).transpose()?;
    let file = prices.as_ref().map(|(_, text)| text.as_str());
    let prices = PriceList::new(year, file, &price).map_err(|error| {
        let of = prices.as_ref().map_or_else(String::new, |(name, _)| format!("{name}: "));
        exception(py, "AdviceError", &format!("{of}{error}"))
    })?;
    let workload = trace.workload.clone();
    let answer = interruptible(py, |stop| {
        let teller = Teller::new(stop, progress);
        let told = AtomicUsize::new(usize::MAX);
        let progress = |phase, done, most| {
            if phase == Phase::Simulating && told.swap(done, Ordering::Relaxed) != done {
                teller.tell(done, most);
            }
            teller.flow()
        };
        let answer = || -> Result<Answer, AdviceError> {
            let replay = advise::replay(&workload, capacity, arrivals, load, repeat, measure)?;
            let asked = Asked { chips, schemes, capacity, disk, channels, dies_per_channel };
            let question = Question { goals, asked, drives, prices, write_bytes_per_day, replay, simulations, jobs };
            advise::advise(workload, &trace.source, &question, &progress)
        };
        let answer = answer();
        teller.end(answer)
    })??;
    Ok(Advice { answer: answer.map_err(|error| error.raise(py))? })
}

/// Adds the contents of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Advice>()?;
    module.add_function(wrap_pyfunction!(advise_devices, module)?)
}
