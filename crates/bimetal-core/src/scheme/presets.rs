//! Presets: schemes of one family. The family declares all parameters once; a preset has them but for those that it fixes.

use super::{ParameterError, ParameterSet, ParameterSpec, SchemeSpec};

/// A scheme of a family.
pub trait Preset: 'static {
    /// The family's parameters.
    type Family: ParameterSet;
    /// Its line of the registry.
    const SPEC: &'static SchemeSpec;
    /// Parameters of the family that it does not have: they keep their defaults.
    const FIXED: &'static [&'static str];
}

/// The family's parameters as a preset has them.
pub struct Of<P: Preset>(pub P::Family);

impl<P: Preset> ParameterSet for Of<P> {
    fn specs() -> Vec<ParameterSpec> {
        P::Family::specs().into_iter().filter(|spec| !P::FIXED.contains(&spec.name)).collect()
    }

    fn parse(settings: &[(String, String)]) -> Result<Self, ParameterError> {
        let known: Vec<_> = Self::specs().iter().map(|spec| spec.name).collect();
        if let Some((name, _)) = settings.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            return Err(ParameterError::Unknown { scheme: P::SPEC.name, name: name.clone(), known: known.join(", ") });
        }
        P::Family::parse(settings).map(Self).map_err(|error| error.of(P::SPEC.name))
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.0.settings().into_iter().filter(|(name, _)| !P::FIXED.contains(&name.as_str())).collect()
    }
}

/// Declares presets of a family: for each a module as the registry takes it. What a preset does not name it has from a
/// [`SchemeSpec`](super::SchemeSpec) that all share. Paths are as seen from that module.
macro_rules! presets {
    (
        $family:ty, $shared:expr;
        $(
            $(#[doc = $doc:literal])+
            pub mod $module:ident::$type:ident { $($field:ident: $value:expr),+ }
            without [$($fixed:literal),*],
            |$shape:ident, $parameters:ident| -> $state:ty $new:block
        )+
    ) => {$(
        $(#[doc = $doc])+
        pub mod $module {
            use super::*;
            use $crate::scheme::presets::{Of, Preset};

            /// Registry line.
            pub static SPEC: SchemeSpec =
                SchemeSpec { $($field: $value,)+ parameters: <Parameters as ParameterSet>::specs, ..$shared };

            /// Its parameters.
            pub type Parameters = Of<$type>;

            /// Makes the scheme.
            pub struct $type;

            impl Preset for $type {
                type Family = $family;
                const SPEC: &'static SchemeSpec = &SPEC;
                const FIXED: &'static [&'static str] = &[$($fixed),*];
            }

            impl $type {
                /// The scheme on a device.
                ///
                /// # Errors
                /// Why the device does not suit it.
                #[expect(clippy::new_ret_no_self, reason = "the registry names the type")]
                pub fn new($shape: &Shape, Of($parameters): Parameters) -> Result<$state, String> $new
            }
        }
    )+};
}
pub(crate) use presets;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::Regions;

    crate::parameters! {
        "family";
        /// Parameters of a family.
        pub struct Family {
            /// Its size.
            pub size: u32 = 3, in 1..=9;
            /// Whether it adapts.
            pub adapts: bool = true;
        }
    }

    static SPEC: SchemeSpec = SchemeSpec {
        name: "static",
        summary: "a preset",
        source: "none",
        regions: Regions::One,
        parameters: <Of<Static> as ParameterSet>::specs,
        version: 1,
    };

    struct Static;

    impl Preset for Static {
        type Family = Family;
        const SPEC: &'static SchemeSpec = &SPEC;
        const FIXED: &'static [&'static str] = &["adapts"];
    }

    fn parse(name: &str, value: &str) -> Result<Of<Static>, String> {
        Of::parse(&[(name.into(), value.into())]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_preset_has_the_parameters_of_its_family_but_for_those_that_it_fixes() {
        assert_eq!(Of::<Static>::specs(), Family::specs()[..1]);
        assert_eq!(parse("size", "5").unwrap().settings(), [("size".to_string(), "5".to_string())]);
        assert!(parse("size", "5").unwrap().0.adapts);
        assert_eq!(parse("adapts", "false").err().unwrap(), "`static` has no parameter `adapts`; it has: size");
        assert!(parse("size", "10").err().unwrap().starts_with("parameter `size` of `static` cannot be `10`"));
    }
}
