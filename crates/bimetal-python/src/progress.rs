//! Tells Python how far work is.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use crate::stop::Stop;

/// Calls a function of Python from any thread. What it raises ends the work, as Ctrl-C does.
pub struct Teller<'a> {
    stop: &'a Stop,
    tell: Option<Py<PyAny>>,
    raised: Mutex<Option<PyErr>>,
}

impl<'a> Teller<'a> {
    /// Of a function of two numbers, or of none.
    pub fn new(stop: &'a Stop, tell: Option<Py<PyAny>>) -> Self {
        Self { stop, tell, raised: Mutex::default() }
    }

    /// Says how much is done, and of how much.
    pub fn tell(&self, done: usize, of: usize) {
        if let Some(tell) = &self.tell
            && let Err(error) = Python::attach(|py| tell.call1(py, (done, of)))
        {
            self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    /// Whether to go on.
    pub fn flow(&self) -> ControlFlow<()> {
        let has_raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if has_raised { ControlFlow::Break(()) } else { self.stop.flow() }
    }

    /// What came of the work.
    ///
    /// # Errors
    /// What the function raised.
    pub fn end<T>(self, result: T) -> PyResult<T> {
        self.raised.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(result), Err)
    }
}
