//! Work without the interpreter, which Ctrl-C can end.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// Interval between two checks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// Whether work is to end. Clones refer to the same work.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_set: AtomicBool,
    /// The threads that call Python for the work, one entry for each called object.
    callers: Mutex<Vec<u64>>,
}

impl Stop {
    /// Whether to continue.
    pub fn flow(&self) -> ControlFlow<()> {
        if self.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Whether the work is to end.
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Relaxed)
    }

    /// Ends the work.
    pub fn set(&self) {
        self.0.is_set.store(true, Ordering::Relaxed);
    }

    /// This thread begins to call Python, until the result is dropped.
    ///
    /// # Errors
    /// Python does not tell the number of the thread.
    pub fn enter(&self, py: Python<'_>) -> PyResult<Caller> {
        let thread = py.import("threading")?.getattr("get_ident")?.call0()?.extract()?;
        self.callers().push(thread);
        Ok(Caller { stop: self.clone(), thread })
    }

    /// Interrupts these threads in Python: the code of a scheme or of `progress` may never end.
    fn interrupt(&self, py: Python<'_>) {
        let callers = self.callers().clone();
        if callers.is_empty() {
            return;
        }
        let interrupted = py.import("bimetal._own").and_then(|module| module.getattr("interrupt")?.call1((callers,)));
        if let Err(error) = interrupted {
            error.write_unraisable(py, None);
        }
    }

    fn callers(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        self.0.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that calls Python. Ctrl-C interrupts its Python code.
#[derive(Debug)]
pub struct Caller {
    stop: Stop,
    /// Its number in Python.
    thread: u64,
}

impl Drop for Caller {
    fn drop(&mut self) {
        let mut callers = self.stop.callers();
        if let Some(at) = callers.iter().position(|&caller| caller == self.thread) {
            callers.swap_remove(at);
        }
    }
}

/// Does work on a separate thread, without the interpreter, while this thread checks for signals. If a signal raises an
/// exception, the work is told to stop and awaited, so that nothing continues in the background.
///
/// # Errors
/// The exception of a signal's handler.
pub fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(&Stop) -> T + Send) -> PyResult<T> {
    interruptible_by(py, &Stop::default(), work)
}

/// The same for work that other threads can stop, too.
///
/// # Errors
/// The exception of a signal's handler.
pub fn interruptible_by<T: Send>(py: Python<'_>, stop: &Stop, work: impl FnOnce(&Stop) -> T + Send) -> PyResult<T> {
    py.detach(|| {
        thread::scope(|scope| {
            let (end, ended) = channel::<()>();
            let worker = scope.spawn(move || {
                // Dropped at the end, also after a panic.
                let _end = end;
                work(stop)
            });
            let mut raised = None;
            while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if raised.is_none()
                    && let Err(error) = Python::attach(|py| py.check_signals())
                {
                    stop.set();
                    raised = Some(error);
                }
                if stop.is_set() {
                    Python::attach(|py| stop.interrupt(py));
                }
            }
            let result = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            raised.map_or(Ok(result), Err)
        })
    })
}
