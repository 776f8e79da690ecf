//! JSON output of `bimetal profile`. It is not in the module of the command, whose arguments list the outputs with a
//! schema.

use bimetal_core::profile::Profile;
use bimetal_core::report::TraceFacts;
use serde::Serialize;

/// JSON output of `profile`.
#[derive(Serialize, schemars::JsonSchema)]
pub struct Profiled {
    /// Version of this program.
    pub bimetal: &'static str,
    /// The trace.
    pub trace: TraceFacts,
    /// Warnings about the figures.
    pub warnings: Vec<String>,
    /// Profile of its requests.
    pub profile: Profile,
}
