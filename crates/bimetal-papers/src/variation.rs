//! Settings of the user for all experiments: another reading of a paper, other cells, or other parameters of a generated
//! trace.
//!
//! A setting of a scheme applies to each of its replays in which the figure does not set the same parameter itself, so
//! that a sweep stays a sweep. A setting of a generated trace overrides the stand-in's own.

use std::fmt;

use bimetal_core::{device, scheme, workload};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Chosen;
use crate::experiment::Source;

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

    /// Whether it is about this trace, and a workload of it has the parameter.
    pub(crate) fn applies_to(&self, source: &Source, workload: &str) -> bool {
        self.of == source.name && workload::settings(workload, &[self.pair()]).is_ok()
    }

    /// Checks that a scheme or one of the traces takes it.
    fn check(&self, traces: &[&Source]) -> Result<(), VariationError> {
        let of_trace: Vec<&Source> = traces.iter().copied().filter(|source| source.name == self.of).collect();
        if of_trace.is_empty() {
            if scheme::find(&self.of).is_err() {
                let mut known: Vec<&str> = traces.iter().map(|source| source.name).collect();
                known.sort_unstable();
                known.dedup();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(VariationError::Unknown { of: self.of.clone(), known });
            }
            if !device::is_device_key(&self.key) {
                scheme::settings(&self.of, &[self.pair()])?;
            }
            return Ok(());
        }
        if of_trace.iter().any(|source| source.workloads().any(|workload| self.applies_to(source, workload))) {
            return Ok(());
        }
        let refusal = |source: &Source| workload::settings(source.workload, &[self.pair()]).err();
        match of_trace.into_iter().find_map(refusal) {
            Some(source) => Err(VariationError::Trace { of: self.of.clone(), source }),
            None => Ok(()),
        }
    }
}

/// Checks settings of the user for these figures, in which traces of these names are the user's.
///
/// # Errors
/// The first setting that neither a scheme nor a generated trace takes.
pub fn check_variations<'a>(
    chosen: &[Chosen],
    own: impl Iterator<Item = &'a str> + Clone,
    variations: &[Variation],
) -> Result<(), VariationError> {
    let generated = |source: &&Source| !source.is_any() && !own.clone().any(|name| name == source.name);
    let traces: Vec<&Source> =
        chosen.iter().flat_map(|(_, figure)| figure.sources).copied().filter(generated).collect();
    variations.iter().try_for_each(|variation| variation.check(&traces))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PAPERS, choose};

    /// Settings of generated traces are tested with the command, in which the papers' workloads are registered.
    #[test]
    fn settings_of_schemes_are_checked_before_anything_is_replayed() {
        let checked = |name, value| {
            let chosen = choose(Some("wlaftl"), &[]).unwrap();
            let variation = Variation::new(name, value).map_err(|error| error.to_string())?;
            check_variations(&chosen, std::iter::empty(), &[variation]).map_err(|error| error.to_string())
        };
        assert_eq!(checked("wlaftl.threshold_rule", "cycles"), Ok(()));
        assert_eq!(checked("wlaftl.mlc.spare", "15%"), Ok(()));
        for (name, value, what) in [
            ("threshold_rule", "cycles", "SCHEME.KEY=VALUE"),
            (".x", "1", "SCHEME.KEY=VALUE"),
            ("nobody.x", "1", "`nobody` is neither a scheme"),
            ("nobody.x", "1", "fin1, iotrace1"),
            ("wlaftl.rule", "cycles", "threshold_rule"),
            ("wlaftl.threshold_rule", "seldom", "cycles"),
        ] {
            let error = checked(name, value).unwrap_err();
            assert!(error.contains(what), "{name}={value}: {error}");
        }
    }

    /// A setting is told apart by its first name.
    #[test]
    fn no_trace_has_the_name_of_a_scheme() {
        let sources = PAPERS.iter().flat_map(|paper| paper.figures).flat_map(|figure| figure.sources);
        for source in sources {
            assert!(scheme::find(source.name).is_err(), "{}", source.name);
        }
    }
}
