//! Reasons why an experiment cannot run.

use bimetal_core::device::DeviceError;
use bimetal_core::scheme::BuildError;
use bimetal_core::workload::WorkloadError;
use bimetal_core::workload::like::FitError;

/// Reason why an experiment cannot run. Displays as one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// A setting that is no parameter of any chosen scheme.
    #[error("none of the chosen schemes has a parameter `{key}`; they have: {known}")]
    Setting {
        /// The given key.
        key: String,
        /// The valid keys.
        known: String,
    },
    /// A setting of a part that none of the chosen schemes has.
    #[error("none of the chosen schemes has the part of the device that `{key}` sets, so it would change nothing")]
    Unused {
        /// The given key.
        key: String,
    },
    /// A device setting that the device does not have, or a value that it cannot have.
    #[error(transparent)]
    DeviceSetting(DeviceError),
    /// An invalid device, or a device on which a scheme cannot run.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A workload that cannot be generated.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A trace to which no generator can be fitted.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// None of the schemes can run on the device.
    #[error("no scheme can run on this device: {reason}")]
    NoScheme {
        /// The reason of the first scheme.
        reason: String,
    },
    /// The trace touches more data than the device holds.
    #[error(
        "the trace touches {touched_mib} MiB (compacted 64-KiB extents) and device `{device}` holds {logical_mib} MiB; hint: \
         enlarge the device, for example `--set logical={touched_mib}MiB`, or fit it to the trace"
    )]
    DoesNotFit {
        /// Name of the device.
        device: String,
        /// Size of the touched extents, in MiB.
        touched_mib: u64,
        /// Logical capacity of the device, in MiB.
        logical_mib: u64,
    },
    /// A sample of too few pages for hit rates.
    #[error(
        "a sample of {rate} of the trace's {pages} pages has about {sampled:.0}, and hit rates take at least {SAMPLED_PAGES_MIN}; \
         hint: a larger share"
    )]
    Sample {
        /// The requested share of the pages.
        rate: f64,
        /// Number of distinct pages of the trace.
        pages: u64,
        /// Expected number of sampled pages.
        sampled: f64,
    },
    /// The time of the replay does not fit into 64 bits of nanoseconds.
    #[error(
        "the replay takes {years:.0} years of simulated time, and at most {YEARS_MAX} are possible; hint: fewer passes \
         (`--repeat`), or faster arrivals (`--arrivals trace:SPEED`)"
    )]
    TooLong {
        /// From the first arrival to the end of the last pass.
        years: f64,
    },
    /// The progress callback stopped it.
    #[error("stopped before the end")]
    Stopped,
    /// The simulation needs more memory than is available.
    #[error(
        "this takes about {needed_mib} MiB of memory and {available_mib} MiB are available; hint: choose a smaller device, \
         fewer requests or `--jobs 1`"
    )]
    Memory {
        /// Estimated need, in MiB.
        needed_mib: u64,
        /// Available memory, in MiB.
        available_mib: u64,
    },
}

/// With fewer sampled pages, hit rates are noise.
pub(crate) const SAMPLED_PAGES_MIN: u64 = 100;

/// Longest simulated time, half of what 64 bits of nanoseconds hold: the rest is for requests that wait.
pub(crate) const YEARS_MAX: u64 = (u64::MAX / 2) / (365 * 86_400 * 1_000_000_000);

impl StudyError {
    /// Whether the request was invalid, as opposed to a failure while it ran.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Setting { .. }
            | Self::Unused { .. }
            | Self::DeviceSetting(_)
            | Self::Workload(_)
            | Self::Sample { .. }
            | Self::TooLong { .. } => true,
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
