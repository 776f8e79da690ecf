//! Whether the settings of a user suit the chosen figures.

use bimetal_core::{device, scheme, workload};

use crate::Chosen;
use crate::experiment::Source;
use crate::variation::{Variation, VariationError};

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
    variations.iter().try_for_each(|variation| check(variation, &traces))
}

/// Checks that a scheme or one of the traces takes it.
fn check(variation: &Variation, traces: &[&Source]) -> Result<(), VariationError> {
    let of_trace: Vec<&Source> = traces.iter().copied().filter(|source| source.name == variation.of).collect();
    if of_trace.is_empty() {
        if scheme::find(&variation.of).is_err() {
            let mut known: Vec<&str> = traces.iter().map(|source| source.name).collect();
            known.sort_unstable();
            known.dedup();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(VariationError::Unknown { of: variation.of.clone(), known });
        }
        if !device::is_device_key(&variation.key) {
            scheme::settings(&variation.of, &[variation.pair()])?;
        }
        return Ok(());
    }
    if of_trace.iter().any(|source| source.workloads().any(|workload| variation.applies_to(source.name, workload))) {
        return Ok(());
    }
    let refusal = |source: &Source| workload::settings(source.workload, &[variation.pair()]).err();
    match of_trace.into_iter().find_map(refusal) {
        Some(source) => Err(VariationError::Trace { of: variation.of.clone(), source }),
        None => Ok(()),
    }
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
