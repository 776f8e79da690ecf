//! What `bimetal profile` writes as JSON: apart from the command, whose arguments name the outputs that have a schema.

use bimetal_core::profile::Profile;
use bimetal_core::report::TraceFacts;
use serde::Serialize;

/// What `profile` writes as JSON.
#[derive(Serialize, schemars::JsonSchema)]
pub struct Profiled {
    /// Version of this program.
    pub bimetal: &'static str,
    /// The trace.
    pub trace: TraceFacts,
    /// What a user should know before trusting a figure.
    pub warnings: Vec<String>,
    /// What its requests are like.
    pub profile: Profile,
}
