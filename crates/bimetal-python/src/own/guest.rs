//! A scheme that is a Python object.
//!
//! The object is called once for each page of a request, with the [`Media`] that record its operations. These are
//! performed after each call. An error ends the work: the scheme does nothing from then on, and the error is kept in
//! the [`Errand`] for the caller.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use bimetal_core::media::Media as Seam;
use bimetal_core::request::{self, Op};
use bimetal_core::save::Save;
use bimetal_core::scheme::{Metrics, Scheme, Shape};
use bimetal_core::units::{Ppa, Span};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat};

use super::layout::Layout;
use super::media::{Media, Request};
use super::perform::perform;
use super::recorder::{Recorder, Step, Task};
use crate::error::{exception, json};
use crate::stop::{Caller, Stop};

/// Work with schemes in Python: one call of `compare` or of another function.
#[derive(Debug, Default)]
pub struct Errand {
    pub stop: Stop,
    failure: Mutex<Option<PyErr>>,
}

impl Errand {
    /// Ends the work with an error, unless it has already ended with another one.
    fn fail(&self, error: PyErr) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let late = if failure.is_none() { failure.replace(error) } else { Some(error) };
        drop(failure);
        // Dropping it may run Python code, which may have to wait for another thread. So the lock is not held here.
        drop(late);
        self.stop.set();
    }

    /// Fails if the work was ended by an error.
    ///
    /// # Errors
    /// The error that ended the work.
    pub fn end(&self) -> PyResult<()> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

/// The methods of the object.
struct Hooks {
    write: Py<PyAny>,
    read: Py<PyAny>,
    trim: Py<PyAny>,
    idle: Py<PyAny>,
    fill: Py<PyAny>,
    figures: Py<PyAny>,
}

/// The scheme.
pub struct Guest {
    /// Its name in messages, with the device if that is not the caller's.
    title: String,
    hooks: Hooks,
    media: Py<Media>,
    layout: Arc<Layout>,
    errand: Arc<Errand>,
    /// The thread that calls it, as long as it exists.
    _caller: Caller,
    /// Requests so far.
    served: u64,
    /// The names of its figures, once it has reported them.
    figures: Mutex<Option<Vec<&'static str>>>,
    steps: Vec<Step>,
    run: Vec<Ppa>,
}

impl Guest {
    /// Makes an object of a class on a device.
    ///
    /// # Errors
    /// The reason why the device is not suitable. If its constructor raised an exception, the errand has it.
    pub fn new(class: &Py<PyAny>, title: String, shape: &Shape, errand: Arc<Errand>) -> Result<Self, String> {
        let layout = Arc::new(Layout::of(shape)?);
        let made = Python::attach(|py| {
            // The constructor may never end, so it can be interrupted, too.
            let caller = errand.stop.enter(py);
            let made = caller.and_then(|caller| Ok((Self::make(py, class, &layout, shape)?, caller)));
            made.map_err(|error| failure(py, &format!("{title}, when it was made"), Fault::Raised(error)))
        });
        let ((hooks, media), caller) = made.map_err(|error| {
            let what = error.to_string();
            errand.fail(error);
            what
        })?;
        let (figures, steps, run) = (Mutex::new(None), Vec::new(), Vec::new());
        Ok(Self { title, hooks, media, layout, errand, _caller: caller, served: 0, figures, steps, run })
    }

    fn make(py: Python<'_>, class: &Py<PyAny>, layout: &Arc<Layout>, shape: &Shape) -> PyResult<(Hooks, Py<Media>)> {
        let facts = json(&layout.facts(shape))?;
        let page_bytes = layout.division.page_sectors() * 512;
        let shape = (layout.pages, page_bytes, shape.seed, layout.stride, facts);
        let object = py.import("bimetal._own")?.getattr("make")?.call1((class, shape))?;
        let hook = |name: &str| object.getattr(name).map(Bound::unbind);
        let hooks = Hooks {
            write: hook("write")?,
            read: hook("read")?,
            trim: hook("trim")?,
            idle: hook("idle")?,
            fill: hook("fill")?,
            figures: hook("figures")?,
        };
        let media = Py::new(py, Media { recorder: Recorder::new(Arc::clone(layout)), request: None })?;
        Ok((hooks, media))
    }

    /// Calls a method for a task, and performs its operations.
    fn call<M: Seam>(
        &mut self,
        py: Python<'_>,
        media: &mut M,
        (task, number): (Task, u32),
        hook: fn(&Hooks) -> &Py<PyAny>,
        span: Option<Span>,
    ) -> Result<(), Fault> {
        let recorder = self.media.bind(py);
        recorder.borrow_mut().recorder.begin(task);
        let result = hook(&self.hooks).call1(py, (recorder, number));
        let ended =
            recorder.try_borrow_mut().map_err(|error| Fault::Raised(error.into()))?.recorder.end(&mut self.steps);
        // The exception has the line. A broken rule is recorded even if the scheme caught the exception.
        result.map_err(Fault::Raised)?;
        ended.map_err(Fault::Broken)?;
        perform(media, &self.layout, &self.steps, span, &mut self.run);
        Ok(())
    }

    fn serve_page<M: Seam>(&mut self, py: Python<'_>, media: &mut M, op: Op, span: Span) -> Result<(), Fault> {
        let page = span.page;
        let is_whole = span.sectors == self.layout.division.page_sectors();
        let has_data = self.media.bind(py).borrow().recorder.place(page).is_some();
        match op {
            Op::Write => self.call(py, media, (Task::Write { page, is_whole }, page), |hooks| &hooks.write, Some(span)),
            Op::Read if has_data => {
                let task = Task::Read { page, is_answered: false };
                self.call(py, media, (task, page), |hooks| &hooks.read, Some(span))
            }
            Op::Read => {
                media.deliver_zeros(span.at, span.sectors);
                Ok(())
            }
            // Sectors of a page that is trimmed in part keep their content.
            Op::Trim if is_whole && has_data => {
                self.call(py, media, (Task::Trim { page }, page), |hooks| &hooks.trim, None)
            }
            Op::Trim => Ok(()),
        }
    }

    fn fail(&self, py: Python<'_>, place: &str, fault: Fault) {
        self.errand.fail(failure(py, &format!("{}, {place}", self.title), fault));
    }

    /// The names and values of its figures.
    fn told(&self, py: Python<'_>) -> Result<Vec<(&'static str, f64)>, Fault> {
        let told = self.hooks.figures.call0(py).map_err(Fault::Raised)?;
        let told = told.bind(py).cast::<PyDict>().map_err(|_| Fault::Broken("it returned no dict".into()))?;
        // The conversion of a value to a number may run code of the scheme, which may change the dict.
        let told: Vec<_> = told.iter().collect();
        let mut figures = Vec::with_capacity(told.len());
        for (name, value) in told {
            let name: String = name.extract().map_err(|_| Fault::Broken("a name is no text".into()))?;
            let value = value.extract::<f64>().map_err(Fault::Raised)?;
            if !value.is_finite() {
                return Err(Fault::Broken(format!("`{name}` is {}", PyFloat::new(py, value))));
            }
            figures.push((interned(&name), value));
        }
        // The scheme may have kept the media of an earlier call, and have caught the exception.
        let media = self.media.bind(py).try_borrow_mut();
        if let Some(broken) = media.map_err(|error| Fault::Raised(error.into()))?.recorder.take_broken() {
            return Err(Fault::Broken(broken));
        }
        let mut known = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<&'static str> = figures.iter().map(|&(name, _)| name).collect();
        match known.as_ref() {
            Some(known) if *known != names => Err(Fault::Broken(format!(
                "it told of {}, and before of {}; the figures of a scheme are always the same",
                names.join(", "),
                known.join(", ")
            ))),
            _ => {
                *known = Some(names);
                Ok(figures)
            }
        }
    }
}

/// Error of a call.
enum Fault {
    /// An exception.
    Raised(PyErr),
    /// A broken rule.
    Broken(String),
}

/// An exception with the place of the error, and the original exception as its cause.
fn failure(py: Python<'_>, place: &str, fault: Fault) -> PyErr {
    let error = match fault {
        Fault::Broken(what) => return exception(py, "SchemeError", &format!("{place}: {what}")),
        Fault::Raised(error) => error,
    };
    let is_ours = py.import("bimetal").and_then(|module| module.getattr("BimetalError"));
    let is_ours = is_ours.is_ok_and(|class| error.is_instance(py, &class));
    let text = error.value(py).to_string();
    let what = match (is_ours, error.get_type(py).name()) {
        (false, Ok(name)) if text.is_empty() => name.to_string(),
        (false, Ok(name)) => format!("{name}: {text}"),
        _ => text,
    };
    let raised = exception(py, "SchemeError", &format!("{place}: {what}"));
    raised.set_cause(py, Some(error));
    raised
}

/// A text with the lifetime of the program. There are only a few names of figures.
pub fn interned(text: &str) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.get(text).copied().unwrap_or_else(|| {
        let text: &'static str = text.to_owned().leak();
        known.insert(text);
        text
    })
}

impl Save for Guest {
    /// Python objects are not saved: the scheme is only simulated.
    fn save(&self, _: &mut Vec<u8>) {}
}

impl<M: Seam> Scheme<M> for Guest {
    fn fill(&mut self, media: &mut M) {
        Python::attach(|py| {
            for page in 0..self.layout.pages {
                if self.errand.stop.is_set() {
                    return;
                }
                let task = Task::Write { page, is_whole: true };
                if let Err(fault) = self.call(py, media, (task, page), |hooks| &hooks.fill, None) {
                    return self.fail(py, &format!("when the device was filled, page {page}"), fault);
                }
            }
        });
    }

    fn serve(&mut self, media: &mut M, request: &request::Request) {
        if self.errand.stop.is_set() {
            return;
        }
        let told = Request::of(self.served, request);
        self.served += 1;
        Python::attach(|py| {
            self.media.bind(py).borrow_mut().request = Some(told.clone());
            for span in self.layout.division.spans(request) {
                if let Err(fault) = self.serve_page(py, media, request.op, span) {
                    return self.fail(py, &format!("{told}, page {}", span.page), fault);
                }
            }
            self.media.bind(py).borrow_mut().request = None;
        });
    }

    fn idle(&mut self, media: &mut M, budget_pages: u32) {
        if self.errand.stop.is_set() {
            return;
        }
        Python::attach(|py| {
            if let Err(fault) = self.call(py, media, (Task::Idle, budget_pages), |hooks| &hooks.idle, None) {
                self.fail(py, &format!("idle before request {}", self.served), fault);
            }
        });
    }

    fn metrics(&self, metrics: &mut Metrics) {
        if self.errand.stop.is_set() {
            return;
        }
        Python::attach(|py| match self.told(py) {
            Ok(figures) => figures.into_iter().for_each(|(name, value)| metrics.push(name, value)),
            Err(fault) => self.fail(py, "in `figures`", fault),
        });
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}
