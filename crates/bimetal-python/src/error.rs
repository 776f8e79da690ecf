//! Errors of the study as exceptions of `bimetal`, with the messages of the command line.

use std::io;
use std::path::Path;

use bimetal_core::device::DeviceError;
use bimetal_core::scheme::BuildError;
use bimetal_core::trace::TraceError;
use bimetal_papers::ChoiceError;
use bimetal_papers::variation::VariationError;
use bimetal_study::StudyError;
use bimetal_study::advise::AdviceError;
use bimetal_study::columns::ColumnError;
use bimetal_study::input::InputError;
use bimetal_study::sweep::results::ResultsError;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use serde::Serialize;

/// An error with an exception class of `bimetal`.
pub trait Raise {
    /// Name of its class in `bimetal`.
    fn class(&self) -> &'static str;

    /// The exception.
    fn raise(self, py: Python<'_>) -> PyErr
    where
        Self: ToString + Sized,
    {
        exception(py, self.class(), &self.to_string())
    }
}

/// An exception of this class.
pub fn exception(py: Python<'_>, class: &str, message: &str) -> PyErr {
    let made = py.import("bimetal._errors").and_then(|module| module.getattr(class)?.call1((message,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

impl Raise for StudyError {
    fn class(&self) -> &'static str {
        match self {
            Self::Setting { .. } | Self::DeviceSetting(_) | Self::Sample { .. } | Self::TooLong { .. } => {
                "SettingError"
            }
            Self::Device(error) => error.class(),
            Self::Workload(_) => "WorkloadError",
            Self::Fit(_) => "FitError",
            Self::NoScheme { .. } => "SchemeError",
            Self::DoesNotFit { .. } => "DoesNotFitError",
            Self::Memory { .. } => "InsufficientMemoryError",
            _ => "BimetalError",
        }
    }
}

impl Raise for DeviceError {
    fn class(&self) -> &'static str {
        match self {
            Self::Setting { .. } => "SettingError",
            Self::Build(error) => error.class(),
            _ => "DeviceError",
        }
    }
}

impl Raise for BuildError {
    fn class(&self) -> &'static str {
        match self {
            Self::Parameter(_) => "SettingError",
            _ => "SchemeError",
        }
    }
}

impl Raise for TraceError {
    fn class(&self) -> &'static str {
        "TraceError"
    }
}

impl Raise for ColumnError {
    fn class(&self) -> &'static str {
        "TraceError"
    }
}

impl Raise for ChoiceError {
    fn class(&self) -> &'static str {
        "PaperError"
    }
}

impl Raise for VariationError {
    fn class(&self) -> &'static str {
        "SettingError"
    }
}

impl Raise for AdviceError {
    fn class(&self) -> &'static str {
        "AdviceError"
    }
}

impl Raise for ResultsError {
    fn class(&self) -> &'static str {
        "ResultsError"
    }

    fn raise(self, py: Python<'_>) -> PyErr {
        match &self {
            Self::Io { path, source, .. } => of_file(path, source),
            _ => exception(py, self.class(), &self.to_string()),
        }
    }
}

impl Raise for InputError {
    fn class(&self) -> &'static str {
        "TraceError"
    }

    fn raise(self, py: Python<'_>) -> PyErr {
        match &self {
            Self::Open { path, source } | Self::Read { path, source } => of_file(path, source),
            _ => exception(py, self.class(), &self.to_string()),
        }
    }
}

/// An error of the operating system about a file: `FileNotFoundError`, `PermissionError` and others.
fn of_file(path: &Path, error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((number, text, path.as_os_str().to_owned()))
        }
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

/// A result as JSON.
pub fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
