//! A program with the commands of `bimetal`.

use std::process::ExitCode;

use bimetal_core::registry::RegistryError;
use bimetal_core::scheme::{ParameterSet, SchemeSpec, Shape};
use bimetal_core::trace::Format;
use bimetal_core::workload::{Requests, WorkloadSpec};
use bimetal_core::{scheme, trace, workload};

use crate::failure::Failure;
use crate::scheme_entry::{StoredScheme, scheme_entry};
use crate::{messages, run};

/// A program with all commands of `bimetal`, and with additional schemes, trace formats and workloads. These are listed
/// after the built-in ones, in the order in which they were added.
///
/// ```no_run
/// # use bimetal_cli::Program;
/// # use bimetal_core::workload::{self, Requests, WorkloadSpec};
/// # bimetal_core::parameters! { SPEC.name; /// Parameters.
/// # pub struct Parameters { /// Number of requests.
/// # pub requests: u64 = 10; } }
/// # static SPEC: WorkloadSpec = WorkloadSpec { name: "ours", summary: "", source: "", parameters: Parameters::specs,
/// #     targets: workload::no_targets, in_small: &[] };
/// # fn generate(_: &Parameters, _: u64) -> Result<Requests, String> { Err(String::new()) }
/// let status = Program::new().workload(&SPEC, generate).run();
/// ```
#[must_use = "nothing happens before it is run"]
pub struct Program {
    schemes: Vec<scheme::Entry>,
    formats: Vec<&'static Format>,
    workloads: Vec<workload::Entry>,
}

impl Default for Program {
    fn default() -> Self {
        Self::new()
    }
}

impl Program {
    /// Plain `bimetal`, with the workloads that stand in for the papers' traces.
    pub fn new() -> Self {
        Self { schemes: Vec::new(), formats: Vec::new(), workloads: bimetal_papers::workload::entries() }
    }

    /// Adds a scheme that can be simulated and, if the program has stores, served: its line of the registry, and its
    /// constructor from a device and parameters. [`scheme::contract`] has the requirements.
    pub fn scheme<P: ParameterSet, S: StoredScheme>(
        mut self,
        spec: &'static SchemeSpec,
        new: fn(&Shape, P) -> Result<S, String>,
    ) -> Self {
        self.schemes.push(scheme_entry(spec, new));
        self
    }

    /// Adds a trace format. [`trace::contract`] has the requirements.
    pub fn format(mut self, format: &'static Format) -> Self {
        self.formats.push(format);
        self
    }

    /// Adds a workload: its line of the registry, and its generator from parameters and a seed.
    pub fn workload<P: ParameterSet>(
        mut self,
        spec: &'static WorkloadSpec,
        generate: fn(&P, u64) -> Result<Requests, String>,
    ) -> Self {
        self.workloads.push(workload::Entry::of(spec, generate));
        self
    }

    /// Adds all of them to the registries of this process, as [`Self::run`] does first. Tests can then find schemes,
    /// formats and workloads by their names.
    ///
    /// # Errors
    /// A name is already taken, or a registry is already in use.
    pub fn register(self) -> Result<(), RegistryError> {
        scheme::add(self.schemes)?;
        trace::add(&self.formats)?;
        workload::add(self.workloads)
    }

    /// Runs the command given by the arguments of the process. Errors are printed on the standard error.
    pub fn run(self) -> ExitCode {
        match self.register().map_err(Failure::failed).and_then(|()| run()) {
            Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
            Err(Failure::Message { status, text }) => {
                messages::error(&text);
                ExitCode::from(status)
            }
        }
    }
}
