//! Settings of the user for all experiments: another reading of a paper, other cells, or other parameters of a generated
//! trace.
//!
//! A setting of a scheme applies to each of its replays in which the figure does not set the same parameter itself, so
//! that a sweep stays a sweep. A setting of a generated trace overrides the stand-in's own.

use std::fmt;

use bimetal_core::{scheme, workload};
use schemars::JsonSchema;
use serde::Serialize;

/// A setting `OF.KEY=VALUE` of the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Variation {
    /// The scheme, or the generated trace.
    pub of: String,
    /// A parameter of the scheme, a field of the device in the scheme's replays, or a parameter of the trace.
    pub key: String,
    /// The value.
    pub value: String,
}

impl fmt::Display for Variation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}={}", self.of, self.key, self.value)
    }
}

/// A setting of the user, and where it applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Applied {
    /// The setting.
    #[serde(flatten)]
    pub variation: Variation,
    /// Number of replays in which it applied.
    pub replays: usize,
}

impl Applied {
    /// A warning about a setting without effect, which must not look like one with.
    pub fn warning(&self) -> Option<String> {
        let Self { variation, replays } = self;
        let Variation { of, key, .. } = variation;
        (*replays == 0).then(|| {
            format!("`{variation}` changes no replay: the figures have none of `{of}`, or set `{key}` themselves")
        })
    }
}

/// Error in a setting of the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariationError {
    /// The name has no dot.
    #[error("`{name}` is not a setting; hint: write SCHEME.KEY=VALUE or TRACE.KEY=VALUE")]
    Form {
        /// The given name.
        name: String,
    },
    /// Neither a scheme nor a generated trace.
    #[error(
        "`{of}` is neither a scheme (`bimetal list schemes`) nor a generated trace of the chosen figures; these are: {known}"
    )]
    Unknown {
        /// The given name.
        of: String,
        /// The generated traces.
        known: String,
    },
    /// A parameter that the scheme does not have, or an unsuitable value.
    #[error(transparent)]
    Scheme(#[from] scheme::BuildError),
    /// A parameter that the workload does not have, or an unsuitable value.
    #[error("trace `{of}`: {source}")]
    Trace {
        /// The trace.
        of: String,
        /// The error of its workload.
        source: workload::WorkloadError,
    },
}

impl Variation {
    /// The setting `name=value`, where `name` is `OF.KEY`.
    ///
    /// # Errors
    /// A name without a dot.
    pub fn new(name: &str, value: &str) -> Result<Self, VariationError> {
        match name.split_once('.') {
            Some((of, key)) if !of.is_empty() && !key.is_empty() => {
                Ok(Self { of: of.into(), key: key.into(), value: value.into() })
            }
            _ => Err(VariationError::Form { name: name.into() }),
        }
    }

    /// Key and value as the pair that schemes and workloads take.
    pub(crate) fn pair(&self) -> (String, String) {
        (self.key.clone(), self.value.clone())
    }

    /// Whether it is about the trace of this name, and a workload of it has the parameter.
    pub(crate) fn applies_to(&self, trace: &str, workload: &str) -> bool {
        self.of == trace && workload::settings(workload, &[self.pair()]).is_ok()
    }
}
