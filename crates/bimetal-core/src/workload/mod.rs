//! Workloads: seeded generators of requests, which stream and keep nothing of what they gave.
//!
//! The same name, settings and seed give the same requests on every machine. A new workload is one file, one `mod` line
//! and one line of the registry below; help texts and tests iterate the registry. One in another crate is the same file, and
//! joins by [`add`]:
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

mod bimodal;
mod bimodal_ext3;
mod bimodal_ntfs;
mod exchange;
mod financial;
mod home;
mod iozone;
mod kv_cache;
pub mod like;
mod msn;
mod pc;
mod phases;
mod phone;
mod rewrites;
mod sample;
mod search;
mod sequential;
mod server;
mod target;
mod uniform;
mod wlaftl;
mod zipf;

pub use sample::{Permutation, Zipf};
pub use target::none as no_targets;
pub use target::{Goal, JUDGED_REQUESTS, Judged, Measure, Target, Targets};

use std::sync::OnceLock;

use crate::registry::{Named, Registry, RegistryError};
use crate::request::{Request, SECTOR_BYTES};
use crate::scheme::{ParameterError, ParameterSet, ParameterSpec};
use crate::units::ByteSize;

/// Requests in the order of their arrival.
pub type Requests = Box<dyn Iterator<Item = Request> + Send>;

/// One line of the registry.
#[derive(Debug)]
pub struct WorkloadSpec {
    /// Name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// The paper, or what else defines it.
    pub source: &'static str,
    /// Its parameters.
    pub parameters: fn() -> Vec<ParameterSpec>,
    /// What was published of what it stands in for, with these parameters set.
    pub targets: Targets,
    /// Parameters with which it is as in full and quick to generate; none where it is quick in full.
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
    /// No such workload.
    #[error("there is no workload `{name}`; there are: {known}")]
    Unknown {
        /// The name that was given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A parameter was refused.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// Parameters that do not fit together.
    #[error("`{workload}` cannot be generated: {reason}")]
    Settings {
        /// The workload.
        workload: &'static str,
        /// What is wrong and what to do.
        reason: String,
    },
}

/// What makes requests of settings and a seed.
type Generator = dyn Fn(&[(String, String)], u64) -> Result<Requests, WorkloadError> + Send + Sync;
/// What fills settings up with the defaults.
type Completion = fn(&[(String, String)]) -> Result<Vec<(String, String)>, ParameterError>;

/// A workload that a program adds to the registry.
pub struct Entry {
    spec: &'static WorkloadSpec,
    settings: Completion,
    generate: Box<Generator>,
}

impl Entry {
    /// A workload: its line of the registry, and what generates it from its parameters and a seed.
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
/// A name is taken, or the registry is in use already.
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

        /// Generates the workload of that name, with the given parameters on top of its defaults.
        ///
        /// # Errors
        /// An unknown workload or parameter, or parameters that do not fit together.
        pub fn build(name: &str, settings: &[(String, String)], seed: u64) -> Result<Requests, WorkloadError> {
            $(
                if name == $module::SPEC.name {
                    let parameters = $module::Parameters::parse(settings)?;
                    return generated(&$module::SPEC, &parameters, seed, $module::generate);
                }
            )+
            (added(name)?.generate)(settings, seed)
        }

        /// The parameters of a workload as they will be, defaults included.
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
    bimodal_ntfs,
    bimodal_ext3,
    phone,
    pc,
    iozone,
    wlaftl,
    financial,
    home,
    search,
    exchange,
    msn,
    kv_cache,
    phases,
}

/// The workload of that name.
///
/// # Errors
/// An unknown name, with those there are.
pub fn find(name: &str) -> Result<&'static WorkloadSpec, WorkloadError> {
    WORKLOADS.iter().copied().find(|spec| spec.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> WorkloadError {
    let known = WORKLOADS.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
    WorkloadError::Unknown { name: name.into(), known }
}

/// Sectors of a request of `size`, which must be whole sectors and at most `span`.
fn request_sectors(size: ByteSize, span: ByteSize) -> Result<u32, String> {
    if size.0 == 0 || !size.0.is_multiple_of(SECTOR_BYTES) || size.0 > 1 << 30 {
        return Err(format!("a request of {size} is not a multiple of 512 bytes up to 1GiB"));
    }
    if size > span {
        return Err(format!("a request of {size} does not fit into a span of {span}"));
    }
    Ok((size.0 / SECTOR_BYTES) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{CurvePlan, Profile};
    use crate::request::Op;

    fn generate(name: &str, settings: &[(&str, &str)], seed: u64) -> Vec<Request> {
        let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect();
        build(name, &settings, seed).unwrap().collect()
    }

    #[test]
    fn every_workload_is_reproducible_and_orderly() {
        for spec in WORKLOADS {
            let requests = generate(spec.name, &[("requests", "20000")], 7);
            assert_eq!(requests.len(), 20_000, "{}", spec.name);
            assert_eq!(requests, generate(spec.name, &[("requests", "20000")], 7), "{}", spec.name);
            assert_ne!(requests, generate(spec.name, &[("requests", "20000")], 8), "{}", spec.name);
            assert!(requests.is_sorted_by_key(|request| request.arrival_ns), "{}", spec.name);
            assert!(requests.iter().all(|request| request.sectors > 0 && request.op != Op::Trim), "{}", spec.name);
        }
    }

    /// The same bits on every machine and with every compiler: a changed line is a changed workload.
    #[test]
    fn every_workload_is_pinned() {
        let mut pinned = String::new();
        for spec in WORKLOADS {
            let requests = generate(spec.name, &[("requests", "20000")], 7);
            let digest = requests.iter().fold(0xcbf2_9ce4_8422_2325u64, |digest, request| {
                let kind = request.op as u64 | u64::from(request.handle) << 8;
                let fields = [request.arrival_ns, request.sector, u64::from(request.sectors), kind];
                fields
                    .iter()
                    .fold(digest, |digest, field| (digest ^ field).wrapping_mul(0x0100_0000_01b3).rotate_left(29))
            });
            pinned += &format!("{} {digest:016x}\n", spec.name);
        }
        insta::assert_snapshot!(pinned, @r"
        uniform 559f9e9f183f164e
        zipf 5b1a486288fbd468
        sequential 545a737f33219420
        bimodal-ntfs e9785f3bd98b0737
        bimodal-ext3 487b998de2dbc1e8
        phone df4edc8cac89e27c
        pc 1eb3b1b213a6af32
        iozone 78cea776a9f4b732
        wlaftl 01760888c94bb232
        financial 99f4837e0a946d4a
        home 5dace65355e742c6
        search bb11abdf02dbbbcc
        exchange 6b6eda1610776aeb
        msn 66e873bbad4009dd
        kv-cache d97b7be1d4a204e0
        phases 360d48100b284737
        ");
    }

    #[test]
    fn every_workload_stays_within_its_span() {
        for spec in WORKLOADS {
            let keys: Vec<_> = (spec.parameters)().into_iter().map(|parameter| parameter.name).collect();
            assert!(keys.contains(&"requests") && keys.contains(&"span"), "{}", spec.name);
            let mut settings = vec![("requests", "20000"), ("span", "96MiB")];
            if keys.contains(&"used") {
                settings.push(("used", "64MiB"));
            }
            let end = generate(spec.name, &settings, 3).iter().map(Request::end).max().unwrap();
            assert!(end <= (96 << 20) / SECTOR_BYTES, "{}: {end}", spec.name);
        }
    }

    #[test]
    fn every_target_is_met() {
        for spec in WORKLOADS {
            let requests = generate(spec.name, spec.in_small, 1);
            let profile = Profile::of(&requests, &CurvePlan { points: 0, sampling_rate: None });
            let settings: Vec<_> = spec.in_small.iter().map(|&(key, value)| (key.into(), value.into())).collect();
            for judged in (spec.targets)(&settings).unwrap().iter().map(|target| target.judge(&profile)) {
                println!("{}: {}: {:?} for {}", spec.name, judged.name, judged.measured, judged.expected);
                assert_eq!(judged.met, Some(true), "{}: {judged:?}", spec.name);
                assert!(!judged.name.is_empty() && !judged.source.is_empty());
            }
        }
    }

    #[test]
    fn every_parameter_is_accepted_as_it_is_shown() {
        for spec in WORKLOADS {
            let shown = settings(spec.name, &[]).unwrap();
            assert_eq!(settings(spec.name, &shown).unwrap(), shown, "{}", spec.name);
            assert!(!spec.summary.is_empty() && !spec.source.is_empty());
        }
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
        for spec in WORKLOADS {
            for span in ["0", "512", "16KiB", "100TiB"] {
                // Refused or generated, without a panic.
                if let Ok(requests) = build(spec.name, &[("span".into(), span.into())], 1) {
                    requests.take(100).for_each(drop);
                }
            }
        }
    }
}
