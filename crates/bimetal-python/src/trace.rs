//! Traces: from files, columns and generators, and back to columns.

use std::path::PathBuf;

use bimetal_core::profile::CurvePlan;
use bimetal_core::request::Request;
use bimetal_core::trace::contract::TableColumn;
use bimetal_core::trace::{self, Action, DeviceChoice, Options, TimeUnit, TraceError};
use bimetal_study::characteristics;
use bimetal_study::columns::{self, Columns};
use bimetal_study::frame::{Cells, Frame};
use bimetal_study::prepare::Workload;
use bimetal_study::sweep::source::TraceSource;
use bimetal_study::{generate, input, sample};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::error::{Raise, json};
use crate::stop::interruptible;
use crate::table::{Table, table};

/// Heading, remark and table of figures of a profile.
type Section = (&'static str, String, Table);

/// Requests in memory.
#[pyclass(frozen, module = "bimetal._core")]
pub struct Trace {
    pub workload: Workload,
    /// Source of the requests for a command.
    pub source: TraceSource,
}

impl Trace {
    /// A trace of requests that a command cannot find.
    fn of(trace: trace::Trace) -> Self {
        let workload = Workload::of(trace, None);
        let source = TraceSource::in_memory(&workload.facts.name);
        Self { workload, source }
    }

    /// A trace from files, or the built-in one if there are none.
    fn opened(trace: trace::Trace, paths: &[PathBuf], options: &Options) -> Self {
        let workload = Workload::of(trace, options.limit);
        let source = TraceSource::opened(&workload.facts.name, paths, options);
        Self { workload, source }
    }
}

/// The requests as a column for each field.
type Arrays<'py> = (
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u8>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u32>>,
    Option<Bound<'py, PyArray1<u8>>>,
);

/// A column of a data frame.
#[derive(FromPyObject)]
enum GivenCells<'py> {
    #[pyo3(transparent)]
    Signed(PyReadonlyArray1<'py, i64>),
    #[pyo3(transparent)]
    Unsigned(PyReadonlyArray1<'py, u64>),
    #[pyo3(transparent)]
    Float(PyReadonlyArray1<'py, f64>),
    Words(Vec<String>, PyReadonlyArray1<'py, u64>),
}

impl GivenCells<'_> {
    fn cells(&self) -> PyResult<Cells<'_>> {
        Ok(match self {
            Self::Signed(values) => Cells::Signed(values.as_slice()?),
            Self::Unsigned(values) => Cells::Unsigned(values.as_slice()?),
            Self::Float(values) => Cells::Float(values.as_slice()?),
            Self::Words(words, of_row) => Cells::Words(words, of_row.as_slice()?),
        })
    }
}

#[pymethods]
impl Trace {
    /// Reads files as one trace.
    #[staticmethod]
    #[pyo3(signature = (paths, format, time_unit, columns, objects, action, volumes, limit))]
    #[expect(clippy::too_many_arguments, reason = "Python has names for them")]
    fn open(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        format: Option<&str>,
        time_unit: Option<&str>,
        columns: Option<&str>,
        objects: Option<&str>,
        action: Option<&str>,
        volumes: Option<Vec<u64>>,
        limit: Option<u64>,
    ) -> PyResult<Self> {
        let options = || -> Result<Options, TraceError> {
            Ok(Options {
                format: format.map(trace::format).transpose()?,
                devices: volumes.map_or(DeviceChoice::All, DeviceChoice::Only),
                time_unit: time_unit.map(str::parse::<TimeUnit>).transpose()?,
                columns: columns.map(str::parse::<trace::Columns>).transpose()?,
                objects: objects.map(str::parse::<trace::Objects>).transpose()?,
                action: action.map(str::parse::<Action>).transpose()?,
                limit,
                ..Options::default()
            })
        };
        let options = options().map_err(|error| error.raise(py))?;
        let opened = interruptible(py, |stop| {
            let trace = input::open_with_progress(&paths, &options, &|_, _| stop.flow())?;
            Ok(Self::opened(trace, &paths, &options))
        })?;
        opened.map_err(|error: input::InputError| error.raise(py))
    }

    /// The built-in trace.
    #[staticmethod]
    #[pyo3(signature = (limit))]
    fn sample(py: Python<'_>, limit: Option<u64>) -> PyResult<Self> {
        let options = Options { limit, ..Options::default() };
        let opened = py.detach(|| sample::open().map(|trace| Self::opened(trace, &[], &options)));
        opened.map_err(|error| error.raise(py))
    }

    /// A trace from columns of equal length.
    #[staticmethod]
    #[pyo3(signature = (name, time_ns, op, sector, sectors, handle))]
    fn from_columns(
        py: Python<'_>,
        name: &str,
        time_ns: PyReadonlyArray1<'_, u64>,
        op: PyReadonlyArray1<'_, u64>,
        sector: PyReadonlyArray1<'_, u64>,
        sectors: PyReadonlyArray1<'_, u64>,
        handle: Option<PyReadonlyArray1<'_, u64>>,
    ) -> PyResult<Self> {
        let columns = Columns {
            time_ns: time_ns.as_slice()?,
            op: op.as_slice()?,
            sector: sector.as_slice()?,
            sectors: sectors.as_slice()?,
            handle: handle.as_ref().map(|handle| handle.as_slice()).transpose()?,
        };
        let made = py.detach(|| columns::trace(name, &columns).map(Self::of));
        made.map_err(|error| error.raise(py))
    }

    /// A trace from a data frame with columns of these names, and of these units if their types have one. `cells`
    /// returns a column.
    #[staticmethod]
    #[pyo3(signature = (name, columns, time_unit, names, cells))]
    fn from_table(
        py: Python<'_>,
        name: &str,
        columns: Option<&str>,
        time_unit: Option<&str>,
        names: Vec<(String, Option<String>)>,
        cells: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let raise = |error: TraceError| error.raise(py);
        let unit = |unit: Option<&str>| unit.map(str::parse::<TimeUnit>).transpose().map_err(raise);
        let options = Options {
            time_unit: unit(time_unit)?,
            columns: columns.map(str::parse::<trace::Columns>).transpose().map_err(raise)?,
            ..Options::default()
        };
        let named = names.iter().map(|(name, of_type)| Ok(TableColumn { name, time_unit: unit(of_type.as_deref())? }));
        let named = named.collect::<PyResult<Vec<_>>>()?;
        let frame = Frame::new(name, options, &named);
        let given = frame.needed().map_err(raise)?.into_iter().map(|needed| cells.call1(needed)?.extract());
        let given = given.collect::<PyResult<Vec<GivenCells<'_>>>>()?;
        let cells = given.iter().map(GivenCells::cells).collect::<PyResult<Vec<Cells<'_>>>>()?;
        py.detach(|| frame.trace(&cells).map(Self::of)).map_err(raise)
    }

    /// A generated workload.
    #[staticmethod]
    fn generate(py: Python<'_>, workload: &str, settings: Vec<(String, String)>, seed: u64) -> PyResult<Self> {
        let made = interruptible(py, |stop| {
            let trace = generate::trace_with_progress(workload, &settings, seed, &mut |_| stop.flow());
            trace.map(Self::of)
        })?;
        made.map_err(|error| error.raise(py))
    }

    /// Requests like those of this trace.
    fn like(&self, py: Python<'_>, settings: Vec<(String, String)>, seed: u64) -> PyResult<Self> {
        let made = interruptible(py, |stop| {
            generate::like_with_progress(&self.workload, &settings, seed, &mut |_| stop.flow()).map(Self::of)
        })?;
        made.map_err(|error| error.raise(py))
    }

    fn __len__(&self) -> usize {
        self.workload.requests.len()
    }

    /// Its description in results, as JSON.
    fn facts(&self) -> PyResult<String> {
        json(&self.workload.facts)
    }

    /// Warnings about the trace.
    fn warnings(&self) -> Vec<String> {
        self.workload.warnings.clone()
    }

    /// Its profile, as JSON and as tables, each with a heading and a remark.
    #[pyo3(signature = (curve_points, sample))]
    fn profile(&self, py: Python<'_>, curve_points: u32, sample: Option<f64>) -> PyResult<(String, Vec<Section>)> {
        let curves = CurvePlan { points: curve_points, sampling_rate: sample };
        self.workload.check_sample(&curves).map_err(|error| error.raise(py))?;
        let profile = interruptible(py, |_| self.workload.profile(&curves))?;
        let sections = characteristics::sections(&profile);
        let shown = sections.into_iter().map(|section| (section.title, section.remark, table(section.listing)));
        Ok((json(&profile)?, shown.collect()))
    }

    /// Its columns: time, operation, sector, sectors, and placement handle if any request has one.
    fn columns<'py>(&self, py: Python<'py>) -> Arrays<'py> {
        let requests: &[Request] = &self.workload.requests;
        (
            PyArray1::from_iter(py, requests.iter().map(|request| request.arrival_ns)),
            PyArray1::from_iter(py, requests.iter().map(|request| request.op as u8)),
            PyArray1::from_iter(py, requests.iter().map(|request| request.sector)),
            PyArray1::from_iter(py, requests.iter().map(|request| request.sectors)),
            requests
                .iter()
                .any(|request| request.handle != 0)
                .then(|| PyArray1::from_iter(py, requests.iter().map(|request| request.handle))),
        )
    }
}

/// Adds the contents of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Trace>()
}
