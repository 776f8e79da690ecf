//! JSON outputs of `bimetal generate`. They are not in the module of the command, whose arguments list the outputs with a
//! schema.

use bimetal_core::report::TraceFacts;
use bimetal_core::workload::Judged;
use bimetal_core::workload::like::Comparison;
use serde::Serialize;

/// JSON output for a generated workload.
#[derive(Serialize, schemars::JsonSchema)]
pub struct Generated {
    /// Version of this program.
    pub bimetal: &'static str,
    /// Name of the workload.
    pub workload: String,
    /// Its parameters.
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// Seed of its random numbers.
    pub seed: u64,
    /// The generated trace.
    pub trace: TraceFacts,
    /// Published characteristics of the original trace, with those of the generated one.
    pub targets: Vec<Judged>,
}

/// JSON output for a workload fitted to a trace.
#[derive(Serialize, schemars::JsonSchema)]
pub struct GeneratedLike {
    /// Version of this program.
    pub bimetal: &'static str,
    /// The trace to which the model was fitted.
    pub like: TraceFacts,
    /// Parameters of the generator.
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// Seed of its random numbers.
    pub seed: u64,
    /// The generated trace.
    pub trace: TraceFacts,
    /// Number of values in the fitted model.
    pub model_numbers: usize,
    /// Statistics of both traces.
    #[serde(flatten)]
    pub comparison: Comparison,
}
