//! Workloads: seeded generators that stream requests without storing them.
//!
//! The same name, settings and seed give the same requests on every machine. The workloads here are of general use;
//! stand-ins for the papers' traces are in `bimetal-papers`. A new workload is one file, one `mod` line and one line of
//! the registry below; help texts and tests iterate the registry. A workload in another crate is the same file, and is
//! registered by [`add`]:
//!
//! ```
//! use bimetal_core::request::{Op, Request};
//! use bimetal_core::workload::{self, Entry, Requests, WorkloadSpec};
//!
//! static SPEC: WorkloadSpec = WorkloadSpec {
//!     name: "backup",
//!     summary: "reads from one end to the other",
//!     source: "none",
//!     parameters: Parameters::specs,
//!     targets: workload::no_targets,
//!     in_small: &[],
//! };
//!
//! bimetal_core::parameters! {
//!     SPEC.name;
//!     /// Parameters of `backup`.
//!     pub struct Parameters {
//!         /// Number of requests.
//!         pub requests: u64 = 1000, in 1..=1_000_000;
//!     }
//! }
//!
//! fn generate(parameters: &Parameters, _seed: u64) -> Result<Requests, String> {
//!     let read = |number| Request {
//!         arrival_ns: number * 1_000_000,
//!         sector: 256 * number,
//!         sectors: 256,
//!         op: Op::Read,
//!         handle: 0,
//!     };
//!     Ok(Box::new((0..parameters.requests).map(read)))
//! }
//!
//! workload::add(vec![Entry::of(&SPEC, generate)])?;
//! let set = [("requests".to_owned(), "10".to_owned())];
//! assert_eq!(workload::build("backup", &set, 1)?.count(), 10);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod kv_cache;
pub mod like;
mod phases;
mod sample;
mod sequential;
mod target;
mod uniform;
mod zipf;

pub use sample::{Arrivals, Permutation, Zipf, choose};
pub use target::none as no_targets;
pub use target::{Goal, JUDGED_REQUESTS, Judged, Measure, Target, Targets};

use std::sync::OnceLock;

use crate::registry::{Named, Registry, RegistryError};
use crate::request::{Request, SECTOR_BYTES};
use crate::scheme::{ParameterError, ParameterSet, ParameterSpec};
use crate::units::ByteSize;

/// Requests in the order of their arrival. The upper bound of their `size_hint` must be known, because it decides whether
/// memory suffices for them.
pub type Requests = Box<dyn Iterator<Item = Request> + Send>;

/// One entry of the registry.
#[derive(Debug)]
pub struct WorkloadSpec {
    /// Name on the command line.
    pub name: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// The paper, or another definition.
    pub source: &'static str,
    /// Its parameters.
    pub parameters: fn() -> Vec<ParameterSpec>,
    /// Published characteristics of the original workload, for given parameters.
    pub targets: Targets,
    /// Parameters of a quick version with the same characteristics; none if the full workload is quick.
    pub in_small: &'static [(&'static str, &'static str)],
}

impl Named for WorkloadSpec {
    const KIND: &'static str = "workload";

    fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name)
    }
}

/// A workload that cannot be generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// An unknown workload.
    #[error("there is no workload `{name}`; there are: {known}")]
    Unknown {
        /// The given name.
        name: String,
        /// The valid names.
        known: String,
    },
    /// A parameter was refused.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// Parameters that contradict each other.
    #[error("`{workload}` cannot be generated: {reason}")]
    Settings {
        /// The workload.
        workload: &'static str,
        /// The problem and the remedy.
        reason: String,
    },
}

/// Makes requests from settings and a seed.
type Generator = dyn Fn(&[(String, String)], u64) -> Result<Requests, WorkloadError> + Send + Sync;
/// Completes settings with the defaults.
type Completion = fn(&[(String, String)]) -> Result<Vec<(String, String)>, ParameterError>;

/// A workload that a program adds to the registry.
pub struct Entry {
    spec: &'static WorkloadSpec,
    settings: Completion,
    generate: Box<Generator>,
}

impl Entry {
    /// A workload: its registry entry, and the function that generates it from its parameters and a seed.
    pub fn of<P: ParameterSet>(spec: &'static WorkloadSpec, generate: fn(&P, u64) -> Result<Requests, String>) -> Self {
        Self {
            spec,
            settings: |settings| Ok(P::parse(settings)?.settings()),
            generate: Box::new(move |settings, seed| generated(spec, &P::parse(settings)?, seed, generate)),
        }
    }
}

static ADDED: OnceLock<Vec<Entry>> = OnceLock::new();

/// Adds workloads to the registry, once, before the first is looked up.
///
/// # Errors
/// A name is already taken, or the registry is already in use.
pub fn add(entries: Vec<Entry>) -> Result<(), RegistryError> {
    WORKLOADS.add(&entries.iter().map(|entry| entry.spec).collect::<Vec<_>>())?;
    ADDED.get_or_init(|| entries);
    Ok(())
}

fn added(name: &str) -> Result<&'static Entry, WorkloadError> {
    ADDED.get().into_iter().flatten().find(|entry| entry.spec.name == name).ok_or_else(|| unknown(name))
}

fn generated<P>(
    spec: &'static WorkloadSpec,
    parameters: &P,
    seed: u64,
    generate: fn(&P, u64) -> Result<Requests, String>,
) -> Result<Requests, WorkloadError> {
    generate(parameters, seed).map_err(|reason| WorkloadError::Settings { workload: spec.name, reason })
}

macro_rules! registry {
    ($($module:ident),+ $(,)?) => {
        /// Every workload.
        pub static WORKLOADS: &Registry<WorkloadSpec> = {
            static REGISTRY: Registry<WorkloadSpec> = Registry::new(&[$(&$module::SPEC),+]);
            &REGISTRY
        };

        /// Generates the workload with this name. The given parameters override its defaults.
        ///
        /// # Errors
        /// An unknown workload or parameter, or parameters that contradict each other.
        pub fn build(name: &str, settings: &[(String, String)], seed: u64) -> Result<Requests, WorkloadError> {
            $(
                if name == $module::SPEC.name {
                    let parameters = $module::Parameters::parse(settings)?;
                    return generated(&$module::SPEC, &parameters, seed, $module::generate);
                }
            )+
            (added(name)?.generate)(settings, seed)
        }

        /// All parameters of a workload, including those that have default values.
        ///
        /// # Errors
        /// An unknown workload or parameter.
        pub fn settings(name: &str, settings: &[(String, String)]) -> Result<Vec<(String, String)>, WorkloadError> {
            $(
                if name == $module::SPEC.name {
                    return Ok($module::Parameters::parse(settings)?.settings());
                }
            )+
            Ok((added(name)?.settings)(settings)?)
        }
    };
}

registry! {
    uniform,
    zipf,
    sequential,
    kv_cache,
    phases,
}

/// The workload with this name.
///
/// # Errors
/// An unknown name. The message lists the valid ones.
pub fn find(name: &str) -> Result<&'static WorkloadSpec, WorkloadError> {
    WORKLOADS.iter().copied().find(|spec| spec.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> WorkloadError {
    let known = WORKLOADS.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
    WorkloadError::Unknown { name: name.into(), known }
}

/// Sectors of a request of `size`, which must be a multiple of 512 bytes and at most `span`.
///
/// # Errors
/// An unsuitable size, in words.
pub fn request_sectors(size: ByteSize, span: ByteSize) -> Result<u32, String> {
    whole_sectors("a request", size, span)
}

/// The same for anything else that has a size; `what` names it.
fn whole_sectors(what: &str, size: ByteSize, span: ByteSize) -> Result<u32, String> {
    if size.0 == 0 || !size.0.is_multiple_of(SECTOR_BYTES) || size.0 > 1 << 30 {
        return Err(format!("{what} of {size} is not a multiple of 512 bytes up to 1GiB"));
    }
    if size > span {
        return Err(format!("{what} of {size} does not fit into a span of {span}"));
    }
    Ok((size.0 / SECTOR_BYTES) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_is_one() {
        for spec in WORKLOADS {
            conformance::repeats_to_the_bit(spec);
            conformance::stays_within_its_span(spec);
            conformance::is_shown_as_it_is(spec);
        }
    }

    /// A changed line means a changed workload.
    #[test]
    fn every_workload_is_pinned() {
        let pinned: String =
            WORKLOADS.iter().map(|spec| format!("{} {:016x}\n", spec.name, conformance::digest(spec))).collect();
        insta::assert_snapshot!(pinned, @r"
        uniform 559f9e9f183f164e
        zipf 5b1a486288fbd468
        sequential 545a737f33219420
        kv-cache d97b7be1d4a204e0
        phases 078917d0573cc782
        ");
    }

    #[test]
    fn mistakes_are_named() {
        let error = |name: &str, key: &str, value: &str| {
            build(name, &[(key.into(), value.into())], 1).map(|_| ()).unwrap_err().to_string()
        };
        assert!(error("no-such", "a", "1").contains("uniform, zipf"));
        assert!(error("zipf", "thetta", "1").contains("theta"));
        assert!(error("uniform", "size", "1000").contains("multiple of 512"));
        assert!(error("uniform", "span", "1KiB").contains("does not fit"));
        assert!(error("uniform", "align", "1000").contains("an alignment of 1000 is not a multiple of 512"));
    }
}
