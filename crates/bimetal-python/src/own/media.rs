//! The media for a scheme in Python: operations are recorded, and performed when the call has ended.

use bimetal_core::chip::CellMode;
use bimetal_core::media::{Cause, Stream};
use bimetal_core::request::{self, Op};
use pyo3::prelude::*;

use super::recorder::Recorder;
use crate::error::exception;

/// A request of the host, as the scheme sees it.
#[pyclass(frozen, get_all, module = "bimetal._core")]
#[derive(Clone, Debug)]
pub struct Request {
    /// Number of earlier requests, including those of earlier passes of the trace.
    number: u64,
    /// `read`, `write` or `trim`.
    op: &'static str,
    /// The first 512-byte sector.
    sector: u64,
    /// The number of sectors.
    sectors: u32,
    /// The placement handle given by the host; 0 if it gives none.
    handle: u8,
}

impl Request {
    /// A request, with the number of earlier requests.
    pub fn of(number: u64, request: &request::Request) -> Self {
        let op = match request.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
        };
        Self { number, op, sector: request.sector, sectors: request.sectors, handle: request.handle }
    }
}

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { number, op, sector, sectors, .. } = self;
        write!(f, "request {number} ({op} of {sectors} sectors at sector {sector})")
    }
}

/// The flash of a device, as a scheme in Python uses it.
#[pyclass(module = "bimetal._core")]
pub struct Media {
    /// The recorder of the operations.
    pub recorder: Recorder,
    /// The request being served.
    pub request: Option<Request>,
}

fn broken<T>(py: Python<'_>, result: Result<T, String>) -> PyResult<T> {
    result.map_err(|what| exception(py, "SchemeError", &what))
}

fn cause_of(py: Python<'_>, name: &str) -> PyResult<Cause> {
    Cause::ALL.into_iter().find(|cause| cause.name() == name).ok_or_else(|| {
        let known = Cause::ALL.map(Cause::name).join(", ");
        exception(py, "SettingError", &format!("there is no cause `{name}`; there are: {known}"))
    })
}

fn stream_of(py: Python<'_>, number: usize) -> PyResult<Stream> {
    if number < Stream::MAX {
        return Ok(Stream::new(number));
    }
    let last = Stream::MAX - 1;
    Err(exception(py, "SettingError", &format!("there is no stream {number}; streams are 0 to {last}")))
}

#[pymethods]
impl Media {
    /// Programs the page that the host writes to the next free page of a block; returns its place.
    #[pyo3(signature = (block, *, stream=0))]
    fn program(&mut self, py: Python<'_>, block: u32, stream: usize) -> PyResult<u32> {
        let stream = stream_of(py, stream)?;
        broken(py, self.recorder.program(block, stream))
    }

    /// Programs a page without host data; returns its place.
    #[pyo3(signature = (block, *, cause="gc", stream=0))]
    fn pad(&mut self, py: Python<'_>, block: u32, cause: &str, stream: usize) -> PyResult<u32> {
        let (stream, cause) = (stream_of(py, stream)?, cause_of(py, cause)?);
        broken(py, self.recorder.pad(block, stream, cause))
    }

    /// Copies the page at a place to the next free page of a block; returns the new place.
    #[pyo3(signature = (place, block, *, cause="gc", stream=0))]
    fn copy(&mut self, py: Python<'_>, place: u32, block: u32, cause: &str, stream: usize) -> PyResult<u32> {
        let (stream, cause) = (stream_of(py, stream)?, cause_of(py, cause)?);
        broken(py, self.recorder.copy(place, block, stream, cause))
    }

    /// Reads the page at a place: for the host, or for the scheme with another cause.
    #[pyo3(signature = (place, *, cause="host"))]
    fn read(&mut self, py: Python<'_>, place: u32, cause: &str) -> PyResult<()> {
        let cause = cause_of(py, cause)?;
        broken(py, self.recorder.read(place, cause))
    }

    /// Erases a block, which is then programmed in SLC mode or in its native mode.
    #[pyo3(signature = (block, *, slc=false, cause="gc"))]
    fn erase(&mut self, py: Python<'_>, block: u32, slc: bool, cause: &str) -> PyResult<()> {
        let cause = cause_of(py, cause)?;
        let mode = if slc { CellMode::Slc } else { CellMode::Native };
        broken(py, self.recorder.erase(block, mode, cause))
    }

    /// The place of the valid copy of a host page; `None` if it has no data.
    fn place(&self, page: u32) -> Option<u32> {
        self.recorder.place(page)
    }

    /// The page whose newest data are at a place; `None` if its content is old or not host data.
    fn page(&self, place: u32) -> Option<u32> {
        self.recorder.page(place)
    }

    /// The places of a block's valid pages, in order.
    fn places(&mut self, py: Python<'_>, block: u32) -> PyResult<Vec<u32>> {
        broken(py, self.recorder.places(block))
    }

    /// The number of a block's valid pages.
    fn valid(&mut self, py: Python<'_>, block: u32) -> PyResult<u32> {
        broken(py, self.recorder.block(block)).map(|(valid, _, _)| valid)
    }

    /// The number of pages that can be programmed before the block is full, in its present mode.
    fn room(&mut self, py: Python<'_>, block: u32) -> PyResult<u32> {
        broken(py, self.recorder.block(block)).map(|(_, room, _)| room)
    }

    /// Number of erases of a block by the scheme.
    fn erases(&mut self, py: Python<'_>, block: u32) -> PyResult<u32> {
        broken(py, self.recorder.block(block)).map(|(_, _, erases)| erases)
    }

    /// The request of the host that is being served; `None` while the device is filled or idle.
    #[getter]
    fn request(&self) -> Option<Request> {
        self.request.clone()
    }
}
