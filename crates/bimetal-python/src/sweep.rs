//! Sweeps: on threads of this process, or point by point on other machines.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use bimetal_study::html;
use bimetal_study::sweep::export::{self, Cells};
use bimetal_study::sweep::kept::Kept;
use bimetal_study::sweep::label::Varying;
use bimetal_study::sweep::pareto::{self, Goal};
use bimetal_study::sweep::point::Point;
use bimetal_study::sweep::results::{Results, ResultsError};
use bimetal_study::sweep::row::Row;
use bimetal_study::sweep::schedule;
use bimetal_study::sweep::study::Study;
use bimetal_study::sweep::worker::Worker;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use serde::de::DeserializeOwned;

use crate::error::{Raise, exception, json};
use crate::progress::Teller;
use crate::stop::interruptible;

/// State that this process keeps between points.
static WORKER: LazyLock<Worker> = LazyLock::new(Worker::default);

/// Runs a point. An error is in its row.
#[pyfunction]
fn run_point(py: Python<'_>, point: &str, folder: PathBuf) -> PyResult<String> {
    let point: Point = serde_json::from_str(point).map_err(|error| {
        let own = env!("CARGO_PKG_VERSION");
        PyRuntimeError::new_err(format!(
            "Bimetal {own} of a worker cannot read the point: {error}; hint: give all the same"
        ))
    })?;
    json(&interruptible(py, |stop| WORKER.run(&point, &folder, &mut |_| stop.flow()))?)
}

fn parsed<T: DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn study(py: Python<'_>, text: &str, is_json: bool, folder: &Path) -> PyResult<Study> {
    // A study of many points takes seconds.
    let study = interruptible(py, |_| {
        if is_json {
            Study::from_json(text, folder)
        } else {
            Study::parse(text, folder).map_err(|error| error.to_string())
        }
    })?;
    study.map_err(|what| exception(py, "StudyError", &what))
}

fn opened(py: Python<'_>, results: Option<PathBuf>, restart: bool) -> PyResult<Option<Results>> {
    let opened = py.detach(|| results.map(|path| Results::open(&path, restart)).transpose());
    opened.map_err(|error| error.raise(py))
}

/// Counts the completed points.
struct Watch<'a> {
    teller: Teller<'a>,
    done: AtomicUsize,
    of: usize,
}

impl Watch<'_> {
    fn add(&self, points: usize) {
        self.teller.tell(self.done.fetch_add(points, Ordering::Relaxed) + points, self.of);
    }
}

impl schedule::Progress for Watch<'_> {
    fn resumed(&self, points: usize) {
        self.add(points);
    }

    fn advanced(&self, _share: f64) -> ControlFlow<()> {
        self.teller.flow()
    }

    fn done(&self, _row: &Row) {
        self.add(1);
    }
}

/// Runs a study on threads.
#[pyfunction]
#[pyo3(signature = (text, is_json, folder, results, restart, jobs, progress))]
#[expect(clippy::too_many_arguments, reason = "called from one place")]
fn sweep(
    py: Python<'_>,
    text: &str,
    is_json: bool,
    folder: PathBuf,
    results: Option<PathBuf>,
    restart: bool,
    jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Rows> {
    let study = study(py, text, is_json, &folder)?;
    let results = opened(py, results, restart)?;
    let rows = interruptible(py, |stop| {
        let (done, of) = (AtomicUsize::new(0), study.points.len());
        let watch = Watch { teller: Teller::new(stop, progress), done, of };
        let rows = schedule::run(&study.points, &folder, results, jobs, &watch);
        watch.teller.end(rows)
    })??;
    Ok(Rows::of(&study, rows.map_err(|error| error.raise(py))?))
}

/// A study whose points are run elsewhere.
#[pyclass(frozen, module = "bimetal._core")]
pub struct Sweep {
    study: Study,
    /// `None` after the end.
    kept: Mutex<Option<Kept>>,
}

impl Sweep {
    fn with<T>(&self, py: Python<'_>, work: impl FnOnce(&mut Kept) -> Result<T, ResultsError>) -> PyResult<T> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.as_mut().ok_or_else(|| PyRuntimeError::new_err("the sweep has ended"))?;
        work(kept).map_err(|error| error.raise(py))
    }
}

#[pymethods]
impl Sweep {
    #[new]
    #[pyo3(signature = (text, is_json, folder, results, restart))]
    fn new(
        py: Python<'_>,
        text: &str,
        is_json: bool,
        folder: PathBuf,
        results: Option<PathBuf>,
        restart: bool,
    ) -> PyResult<Self> {
        let study = study(py, text, is_json, &folder)?;
        let results = opened(py, results, restart)?;
        let kept = interruptible(py, |_| Kept::new(&study.points, &folder, results))?;
        Ok(Self { study, kept: Mutex::new(Some(kept)) })
    }

    /// Number of points.
    fn __len__(&self) -> usize {
        self.study.points.len()
    }

    /// The remaining points: their indices, and the arguments for [`run_point`].
    fn left(&self, py: Python<'_>) -> PyResult<Vec<(usize, String)>> {
        let places = self.with(py, |kept| Ok(kept.left()))?;
        py.detach(|| places.into_iter().map(|(_, at)| Ok((at, json(&self.study.points[at].point)?))).collect())
    }

    /// Saves the row of a point.
    fn keep(&self, py: Python<'_>, at: usize, row: &str) -> PyResult<()> {
        self.with(py, |kept| kept.keep_foreign(at, &self.study.points[at], row))
    }

    /// Saves that a point's workers were lost.
    fn lose(&self, py: Python<'_>, at: usize, what: &str) -> PyResult<()> {
        self.with(py, |kept| kept.lose(at, &self.study.points[at], what))
    }

    /// Closes the results file, and returns the rows.
    fn end(&self) -> Rows {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        Rows::of(&self.study, kept.map(Kept::into_rows).unwrap_or_default())
    }
}

/// The rows of a sweep.
#[pyclass(frozen, module = "bimetal._core")]
pub struct Rows {
    title: String,
    rows: Vec<Row>,
    left_out: Vec<Row>,
}

impl Rows {
    /// An interrupted sweep has no rows, because their points are unknown.
    fn of(study: &Study, rows: Vec<Row>) -> Self {
        let rows = if rows.len() == study.points.len() { rows } else { Vec::new() };
        let (rows, left_out) = export::without_left_out(&study.points, rows);
        Self { title: study.title.clone(), rows, left_out }
    }

    fn written(
        &self,
        py: Python<'_>,
        write: impl FnOnce(&export::Table, &mut Vec<u8>) -> std::io::Result<()> + Send,
    ) -> PyResult<Vec<u8>> {
        py.detach(|| {
            let mut bytes = Vec::new();
            write(&export::Table::of(&self.rows), &mut bytes).map(|()| bytes).map_err(PyErr::from)
        })
    }
}

/// Name, type and cells of a column.
type Column<'py> = (String, &'static str, Bound<'py, PyList>);

#[pymethods]
impl Rows {
    /// Rows from the output of [`Rows::json`] and [`Rows::left_out`].
    #[new]
    fn new(title: String, rows: &str, left_out: &str) -> PyResult<Self> {
        Ok(Self { title, rows: parsed(rows)?, left_out: parsed(left_out)? })
    }

    /// Title of the study.
    fn title(&self) -> &str {
        &self.title
    }

    /// The complete rows.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| json(&self.rows))
    }

    /// The rows of points that a device does not allow and whose scheme was not named.
    fn left_out(&self) -> PyResult<String> {
        json(&self.left_out)
    }

    /// The indices of rows that no row of the same trace beats in all of these goals, or by default in the usual ones.
    fn front(&self, py: Python<'_>, goals: Vec<String>) -> PyResult<Vec<usize>> {
        let named = goals.iter().map(|name| name.parse()).collect::<Result<Vec<Goal>, String>>();
        let named = named.map_err(|what| exception(py, "SettingError", &what))?;
        Ok(pareto::of_rows(&self.rows, if named.is_empty() { &pareto::USUAL } else { &named }))
    }

    /// Indices of rows that are compared with each other.
    fn groups(&self) -> Vec<Vec<usize>> {
        pareto::groups(&self.rows)
    }

    /// Labels of rows: the values that differ between points.
    fn labels(&self) -> Vec<String> {
        let varying = Varying::of(&self.rows);
        self.rows.iter().map(|row| varying.short(&row.point)).collect()
    }

    /// The table of the exports.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Vec<Column<'py>>> {
        let column = |column: export::Column| {
            let (kind, cells) = match column.cells {
                Cells::Text(cells) => ("text", PyList::new(py, cells)?),
                Cells::Whole(cells) => ("whole", PyList::new(py, cells)?),
                Cells::Number(cells) => ("number", PyList::new(py, cells)?),
                Cells::Truth(cells) => ("truth", PyList::new(py, cells)?),
            };
            Ok((column.name, kind, cells))
        };
        export::Table::of(&self.rows).columns.into_iter().map(column).collect()
    }

    /// The table as CSV.
    fn csv(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        self.written(py, |table, to| table.write_csv(to))
    }

    /// The table as JSON.
    fn table_json(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        self.written(py, |table, to| table.write_json(to))
    }

    /// The table as Parquet.
    fn parquet(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        self.written(py, |table, to| bimetal_study::sweep::parquet_file::write(table, to))
    }

    /// The HTML page. It shows the command that reproduces it.
    fn html(&self, py: Python<'_>, command: &str) -> String {
        py.detach(|| html::sweep(&self.title, &self.rows, self.left_out.len(), command))
    }
}

/// Adds the contents of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Sweep>()?;
    module.add_class::<Rows>()?;
    module.add_function(wrap_pyfunction!(run_point, module)?)?;
    module.add_function(wrap_pyfunction!(sweep, module)?)
}
