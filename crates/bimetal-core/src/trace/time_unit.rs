//! Units of time stamps.

use std::fmt;
use std::str::FromStr;

use super::error::{ErrorKind, TraceError};

/// Unit of a time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Picoseconds; fractions of a nanosecond are cut off.
    Picoseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// 100 nanoseconds, the unit of a Windows FILETIME.
    HundredNanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
}

impl TimeUnit {
    const NAMES: [(&'static str, Self); 6] = [
        ("ps", Self::Picoseconds),
        ("ns", Self::Nanoseconds),
        ("100ns", Self::HundredNanoseconds),
        ("us", Self::Microseconds),
        ("ms", Self::Milliseconds),
        ("s", Self::Seconds),
    ];

    /// The power of ten of nanoseconds in one unit.
    pub(super) fn exponent(self) -> i32 {
        match self {
            Self::Picoseconds => -3,
            Self::Nanoseconds => 0,
            Self::HundredNanoseconds => 2,
            Self::Microseconds => 3,
            Self::Milliseconds => 6,
            Self::Seconds => 9,
        }
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, unit)| unit == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl FromStr for TimeUnit {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|&(_, unit)| unit).ok_or_else(|| {
            TraceError::new(ErrorKind::Option, "", format!("no time unit is named `{}`", text.escape_debug()))
                .with_hint("the units are `ps`, `ns`, `100ns`, `us`, `ms`, `s`")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_parse_back() {
        for (name, unit) in TimeUnit::NAMES {
            assert_eq!(name.parse::<TimeUnit>().unwrap(), unit);
            assert_eq!(unit.to_string(), name);
        }
        assert!("min".parse::<TimeUnit>().unwrap_err().to_string().contains("`us`"));
    }
}
