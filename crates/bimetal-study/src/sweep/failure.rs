//! Failures of points.

use std::any::Any;
use std::fmt;

use bimetal_core::device::DeviceError;
use serde::{Deserialize, Serialize};

use crate::StudyError;

/// Reason why a point has no figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Failure {
    /// Kind of failure.
    pub kind: FailureKind,
    /// The error, in a line.
    pub what: String,
}

/// Kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The device is invalid, or the scheme cannot run on it.
    Refused,
    /// The trace cannot be read or generated.
    Trace,
    /// The simulation does not fit into memory.
    Memory,
    /// The program panicked.
    Panic,
    /// The point's worker was lost repeatedly, or has a different version.
    Worker,
    /// The caller stopped it.
    Stopped,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "refused",
            Self::Trace => "trace",
            Self::Memory => "memory",
            Self::Panic => "panic",
            Self::Worker => "worker",
            Self::Stopped => "stopped",
        })
    }
}

impl Failure {
    /// A failure of a trace.
    pub(super) fn trace(what: impl fmt::Display) -> Self {
        Self { kind: FailureKind::Trace, what: what.to_string() }
    }

    /// A panic of the program.
    pub(super) fn panic(panic: &(dyn Any + Send)) -> Self {
        let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Self { kind: FailureKind::Panic, what: format!("an error in this program: {said}") }
    }

    /// Whether a repeated run of the same point can succeed.
    pub fn may_pass(&self) -> bool {
        matches!(self.kind, FailureKind::Trace | FailureKind::Memory | FailureKind::Worker | FailureKind::Stopped)
    }
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Self {
        let kind = match error {
            StudyError::Memory { .. } => FailureKind::Memory,
            StudyError::Workload(_) => FailureKind::Trace,
            StudyError::Stopped => FailureKind::Stopped,
            _ => FailureKind::Refused,
        };
        Self { kind, what: error.to_string() }
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        StudyError::from(error).into()
    }
}
