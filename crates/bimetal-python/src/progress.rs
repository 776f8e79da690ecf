//! Reports progress to Python.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use bimetal_papers::pool::LabProgress;
use pyo3::prelude::*;

use crate::stop::Stop;

/// Calls a Python function from any thread. An exception of the function ends the work, as Ctrl-C does.
pub struct Teller<'a> {
    stop: &'a Stop,
    tell: Option<Py<PyAny>>,
    raised: Mutex<Option<PyErr>>,
}

impl<'a> Teller<'a> {
    /// Calls `tell`, a function of two numbers, if there is one.
    pub fn new(stop: &'a Stop, tell: Option<Py<PyAny>>) -> Self {
        Self { stop, tell, raised: Mutex::default() }
    }

    /// Reports that `done` of `of` parts are done, unless the work is to end.
    pub fn tell(&self, done: usize, of: usize) {
        if let Some(tell) = &self.tell
            && self.flow().is_continue()
            && let Err(error) = Python::attach(|py| {
                let _caller = self.stop.enter(py)?;
                tell.call1(py, (done, of))
            })
        {
            self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    /// Whether to continue.
    pub fn flow(&self) -> ControlFlow<()> {
        let has_raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if has_raised { ControlFlow::Break(()) } else { self.stop.flow() }
    }

    /// The result of the work.
    ///
    /// # Errors
    /// The exception of the function.
    pub fn end<T>(self, result: T) -> PyResult<T> {
        self.raised.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(result), Err)
    }
}

impl LabProgress for Teller<'_> {
    fn replays(&self, done: usize, of: usize) {
        self.tell(done, of);
    }

    fn served(&self) -> ControlFlow<()> {
        self.flow()
    }
}

impl bimetal_papers::Progress for Teller<'_> {
    fn figure(&self, _paper: &str, _figure: &str, _number: usize, _of: usize) {}
}
