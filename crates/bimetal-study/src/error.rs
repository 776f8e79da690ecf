//! Why an experiment cannot be done.

use bimetal_core::device::DeviceError;
use bimetal_core::scheme::BuildError;
use bimetal_core::workload::WorkloadError;
use bimetal_core::workload::like::FitError;

/// Why an experiment cannot be done. Displays as one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// A setting that none of the chosen schemes has.
    #[error("none of the chosen schemes has a parameter `{key}`; they have: {known}")]
    Setting {
        /// The key that was given.
        key: String,
        /// The keys there are.
        known: String,
    },
    /// A setting of the device that it does not have, or cannot have.
    #[error(transparent)]
    DeviceSetting(DeviceError),
    /// A device that cannot be, or on which a scheme cannot run.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A workload that cannot be generated.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A trace that no generator can be fitted to.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// None of the schemes can run on the device.
    #[error("no scheme can run on this device: {reason}")]
    NoScheme {
        /// Why the first one cannot.
        reason: String,
    },
    /// The trace touches more than the device holds.
    #[error(
        "the trace touches {touched_mib} MiB (64-KiB extents, put next to each other) and device `{device}` holds \
         {logical_mib} MiB; hint: enlarge it, for example `--set logical={touched_mib}MiB`, or let it be fitted to the trace"
    )]
    DoesNotFit {
        /// Name of the device.
        device: String,
        /// What the trace touches.
        touched_mib: u64,
        /// What the host sees of the device.
        logical_mib: u64,
    },
    /// The caller stopped it through the progress callback.
    #[error("stopped before the end")]
    Stopped,
    /// It would not fit into memory.
    #[error(
        "this takes about {needed_mib} MiB of memory and {available_mib} MiB are available; hint: choose a smaller device, \
         fewer requests or `--jobs 1`"
    )]
    Memory {
        /// Estimate of what is needed.
        needed_mib: u64,
        /// What the machine has left.
        available_mib: u64,
    },
}

impl StudyError {
    /// Whether what was asked for cannot be, rather than that it failed.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Setting { .. } | Self::DeviceSetting(_) | Self::Workload(_) => true,
            Self::Device(DeviceError::Build(BuildError::Unknown { .. } | BuildError::Parameter(_))) => true,
            Self::Device(_)
            | Self::Fit(_)
            | Self::NoScheme { .. }
            | Self::DoesNotFit { .. }
            | Self::Stopped
            | Self::Memory { .. } => false,
        }
    }
}
