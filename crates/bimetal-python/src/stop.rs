//! Work without the interpreter, which Ctrl-C ends.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use bimetal_papers::lab::LabProgress;
use bimetal_study::compare;
use pyo3::prelude::*;

/// How often signals are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Whether work is to end.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Whether to go on.
    pub fn flow(&self) -> ControlFlow<()> {
        if self.0.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl compare::Progress for Stop {
    fn served(&self, _run: usize, _requests: u64) -> ControlFlow<()> {
        self.flow()
    }

    fn done(&self, _run: usize) {}
}

impl LabProgress for Stop {
    fn replays(&self, _done: usize, _of: usize) {}

    fn served(&self) -> ControlFlow<()> {
        self.flow()
    }
}

impl bimetal_papers::Progress for Stop {
    fn figure(&self, _paper: &str, _figure: &str, _number: usize, _of: usize) {}
}

/// Does work on a thread of its own, without the interpreter, while this one looks for signals. When one raises an
/// exception the work is told to stop and waited for: nothing runs on behind it.
///
/// # Errors
/// What a signal's handler raised.
pub fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(&Stop) -> T + Send) -> PyResult<T> {
    let stop = Stop::default();
    py.detach(|| {
        thread::scope(|scope| {
            let (end, ended) = channel::<()>();
            let stop = &stop;
            let worker = scope.spawn(move || {
                // Dropped at the end, also that of a panic.
                let _end = end;
                work(stop)
            });
            let mut raised = None;
            while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if raised.is_none()
                    && let Err(error) = Python::attach(|py| py.check_signals())
                {
                    stop.0.store(true, Ordering::Relaxed);
                    raised = Some(error);
                }
            }
            let result = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            raised.map_or(Ok(result), Err)
        })
    })
}
