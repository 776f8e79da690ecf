//! Presets: schemes of one family. The family declares all parameters once. A preset has some of them, or all but some,
//! and may have different defaults.

use super::{ParameterError, ParameterSet, ParameterSpec, SchemeSpec};

/// A scheme of a family.
pub trait Preset: 'static {
    /// The family's parameters.
    type Family: ParameterSet;
    /// Its line of the registry.
    const SPEC: &'static SchemeSpec;
    /// Its own values instead of the family's defaults.
    const DEFAULTS: &'static [(&'static str, &'static str)];
    /// Whether it has this parameter of the family. The other parameters keep their defaults.
    fn has(parameter: &str) -> bool;
}

/// The family's parameters, restricted to those of a preset.
pub struct Of<P: Preset>(pub P::Family);

impl<P: Preset> ParameterSet for Of<P> {
    fn specs() -> Vec<ParameterSpec> {
        let mut specs = P::Family::specs();
        specs.retain(|spec| P::has(spec.name));
        for spec in &mut specs {
            if let Some((_, value)) = P::DEFAULTS.iter().find(|(name, _)| *name == spec.name) {
                (*value).clone_into(&mut spec.default);
            }
        }
        specs
    }

    fn parse(settings: &[(String, String)]) -> Result<Self, ParameterError> {
        if let Some((name, _)) = settings.iter().find(|(name, _)| !P::has(name)) {
            let known = Self::specs().iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
            return Err(ParameterError::Unknown { scheme: P::SPEC.name, name: name.clone(), known });
        }
        let own = P::DEFAULTS.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let settings: Vec<_> = own.chain(settings.iter().cloned()).collect();
        P::Family::parse(&settings).map(Self).map_err(|error| error.of(P::SPEC.name))
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.0.settings().into_iter().filter(|(name, _)| P::has(name)).collect()
    }
}

/// Declares presets of a family: for each a module in the form that the registry takes. Fields that a preset does not
/// name come from a [`SchemeSpec`](super::SchemeSpec) that all share. It is `with` some of the parameters or `without`
/// some. Paths are relative to that module.
macro_rules! presets {
    (@has $name:ident, with $names:expr) => {
        <[&str]>::contains(&$names, &$name)
    };
    (@has $name:ident, without $names:expr) => {
        !<[&str]>::contains(&$names, &$name)
    };
    (
        $family:ty, $shared:expr;
        $(
            $(#[doc = $doc:literal])+
            pub mod $module:ident::$type:ident { $($field:ident: $value:expr),+ }
            $has:ident [$($name:literal),*] $(default [$($key:literal = $default:literal),+])?,
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
                const DEFAULTS: &'static [(&'static str, &'static str)] = &[$($(($key, $default)),+)?];

                fn has(parameter: &str) -> bool {
                    presets!(@has parameter, $has [$($name),*])
                }
            }

            impl $type {
                /// Builds the scheme on a device.
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
        adapts: &[],
        version: 1,
    };

    struct Static;

    impl Preset for Static {
        type Family = Family;
        const SPEC: &'static SchemeSpec = &SPEC;
        const DEFAULTS: &'static [(&'static str, &'static str)] = &[("size", "4")];

        fn has(parameter: &str) -> bool {
            parameter != "adapts"
        }
    }

    fn parse(name: &str, value: &str) -> Result<Of<Static>, String> {
        Of::parse(&[(name.into(), value.into())]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_preset_has_the_parameters_of_its_family_but_for_those_that_it_fixes() {
        let size = ParameterSpec { default: "4".into(), ..Family::specs().remove(0) };
        assert_eq!(Of::<Static>::specs(), [size]);
        assert_eq!(Of::<Static>::parse(&[]).unwrap().settings(), [("size".to_string(), "4".to_string())]);
        assert_eq!(parse("size", "5").unwrap().settings(), [("size".to_string(), "5".to_string())]);
        assert!(parse("size", "5").unwrap().0.adapts);
        assert_eq!(parse("adapts", "false").err().unwrap(), "`static` has no parameter `adapts`; it has: size");
        assert!(parse("size", "10").err().unwrap().starts_with("parameter `size` of `static` cannot be `10`"));
    }
}
