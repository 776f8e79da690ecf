//! Parameters of schemes: one declaration gives the struct, its defaults, the parser, the validation and the help.

use std::fmt::Display;

use serde::Serialize;

use crate::units::ByteSize;

/// One parameter as `list schemes` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ParameterSpec {
    /// Key of `--set key=value` and of a device file.
    pub name: &'static str,
    /// Meaning, unit and source.
    pub summary: &'static str,
    /// Default value, as it would be written.
    pub default: String,
    /// Values that are accepted.
    pub accepts: String,
}

/// A refused parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// The scheme has no parameter with this name.
    #[error("`{scheme}` has no parameter `{name}`; it has: {known}")]
    Unknown {
        /// The scheme.
        scheme: &'static str,
        /// The key that was given.
        name: String,
        /// The keys there are.
        known: String,
    },
    /// The value is not one of those accepted.
    #[error("parameter `{name}` of `{scheme}` cannot be `{value}`; it accepts {accepts}")]
    Value {
        /// The scheme.
        scheme: &'static str,
        /// The key.
        name: &'static str,
        /// The value that was given.
        value: String,
        /// What is accepted.
        accepts: String,
    },
}

impl ParameterError {
    /// The same error for another scheme that has the parameter, too.
    pub(super) fn of(self, scheme: &'static str) -> Self {
        match self {
            Self::Unknown { name, known, .. } => Self::Unknown { scheme, name, known },
            Self::Value { name, value, accepts, .. } => Self::Value { scheme, name, value, accepts },
        }
    }
}

/// A type that a parameter can have.
pub trait Value: Sized + Display {
    /// Reads a value.
    fn parse(text: &str) -> Option<Self>;
    /// Description of the accepted values.
    fn accepts() -> String;
}

macro_rules! numeric_value {
    ($($type:ty => $accepts:literal),*) => {$(
        impl Value for $type {
            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }
            fn accepts() -> String {
                $accepts.into()
            }
        }
    )*};
}
numeric_value!(u32 => "a whole number", u64 => "a whole number", bool => "`true` or `false`");

impl Value for f64 {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number: &Self| number.is_finite())
    }
    fn accepts() -> String {
        "a number".into()
    }
}

impl Value for ByteSize {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn accepts() -> String {
        "a size such as `64KiB` or `512MiB`".into()
    }
}

/// A set of parameters, as [`parameters!`](crate::parameters) declares it.
pub trait ParameterSet: Sized + 'static {
    /// Every parameter, for help texts.
    fn specs() -> Vec<ParameterSpec>;

    /// The defaults, with the given keys set; the last of several values of a key counts.
    ///
    /// # Errors
    /// An unknown key or a value out of range; the message lists the keys or the accepted values.
    fn parse(settings: &[(String, String)]) -> Result<Self, ParameterError>;

    /// Every key with its value, as [`Self::parse`] would read it.
    fn settings(&self) -> Vec<(String, String)>;
}

/// Declares the parameters of a scheme.
///
/// ```
/// bimetal_core::parameters! {
///     "example";
///     /// Parameters of the example.
///     pub struct Parameters {
///         /// Probes of the hash table.
///         pub probes: u32 = 8, in 1..=64;
///         /// Whether to collect at idle.
///         pub idle_gc: bool = false;
///     }
/// }
/// let parameters = Parameters::parse(&[("probes".into(), "4".into())]).unwrap();
/// assert_eq!(parameters.probes, 4);
/// assert!(Parameters::parse(&[("probes".into(), "65".into())]).is_err());
/// ```
#[macro_export]
macro_rules! parameters {
    (
        $scheme:expr;
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[doc = $doc:literal])+ pub $field:ident: $type:ty = $default:expr $(, in $range:expr)?; )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $( $(#[doc = $doc])+ pub $field: $type, )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl $name {
            /// Every parameter, for help texts.
            pub fn specs() -> Vec<$crate::scheme::ParameterSpec> {
                use $crate::scheme::Value;
                #[allow(unused_mut)]
                let mut specs = Vec::new();
                $(
                    let accepts = <$type as Value>::accepts() $( + &format!(" from {} to {}", $range.start(), $range.end()) )?;
                    let default: $type = $default;
                    specs.push($crate::scheme::ParameterSpec {
                        name: stringify!($field),
                        summary: concat!($($doc),+).trim(),
                        default: default.to_string(),
                        accepts,
                    });
                )*
                specs
            }

            /// The defaults, with the given keys set; the last of several values of a key counts.
            ///
            /// # Errors
            /// An unknown key or a value out of range; the message lists the keys or the accepted values.
            pub fn parse(settings: &[(String, String)]) -> Result<Self, $crate::scheme::ParameterError> {
                #[allow(unused_imports)]
                use $crate::scheme::{ParameterError, Value};
                #[allow(unused_mut)]
                let mut parameters = Self::default();
                for (key, text) in settings {
                    match key.as_str() {
                        $( stringify!($field) => {
                            parameters.$field = <$type as Value>::parse(text)
                                $( .filter(|value| $range.contains(value)) )?
                                .ok_or_else(|| ParameterError::Value {
                                    scheme: $scheme,
                                    name: stringify!($field),
                                    value: text.clone(),
                                    accepts: <$type as Value>::accepts()
                                        $( + &format!(" from {} to {}", $range.start(), $range.end()) )?,
                                })?;
                        } )*
                        _ => return Err(ParameterError::Unknown {
                            scheme: $scheme,
                            name: key.clone(),
                            known: Self::specs().iter().map(|spec| spec.name).collect::<Vec<_>>().join(", "),
                        }),
                    }
                }
                Ok(parameters)
            }

            /// Every key with its value, as `parse` would read it.
            pub fn settings(&self) -> Vec<(String, String)> {
                vec![ $( (stringify!($field).to_string(), self.$field.to_string()), )* ]
            }
        }

        impl $crate::scheme::ParameterSet for $name {
            fn specs() -> Vec<$crate::scheme::ParameterSpec> {
                Self::specs()
            }

            fn parse(settings: &[(String, String)]) -> Result<Self, $crate::scheme::ParameterError> {
                Self::parse(settings)
            }

            fn settings(&self) -> Vec<(String, String)> {
                self.settings()
            }
        }
    };
}

/// Declares a parameter whose value is one of several words.
#[macro_export]
macro_rules! choices {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$doc:meta])+ $variant:ident = $word:literal, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name { $( $(#[$doc])+ $variant, )+ }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $( Self::$variant => $word, )+ })
            }
        }

        impl $crate::scheme::Value for $name {
            fn parse(text: &str) -> Option<Self> {
                match text { $( $word => Some(Self::$variant), )+ _ => None }
            }
            fn accepts() -> String {
                [$( concat!("`", $word, "`") ),+].join(" or ")
            }
        }
    };
}
