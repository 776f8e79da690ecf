//! How to read a trace where its bytes do not say.

use std::fmt;
use std::str::FromStr;

use super::error::{ErrorKind, TraceError};
use super::{Format, Input};

/// How to read a trace. The default detects the format and takes every device.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The format; `None` detects it.
    pub format: Option<&'static Format>,
    /// Which devices to take.
    pub devices: DeviceChoice,
    /// Unit of the time stamps; `None` takes the format's own.
    pub time_unit: Option<TimeUnit>,
    /// Which record of a request's life counts, in formats that have several (blktrace and blkparse); `None` takes the
    /// queue record and falls back on a later one, with a warning, where there is none.
    pub action: Option<Action>,
}

impl Options {
    /// Refuses options that a format does not take.
    pub(super) fn check(&self, name: &str, format: &Format) -> Result<(), TraceError> {
        let refuse = |option: &str, why: &str| {
            let what = format!("`{option}` does not apply to format `{}`, {why}", format.name);
            Err(TraceError::new(ErrorKind::Option, name, what).with_hint("leave it out"))
        };
        if self.time_unit.is_some() && format.time_unit.is_none() {
            return refuse("--time-unit", "whose time unit is fixed");
        }
        if self.action.is_some() && !format.has_actions {
            return refuse("--action", "which has one record a request");
        }
        Ok(())
    }
}

impl Input<'_> {
    /// The unit of the time stamps: the one asked for, or the format's.
    pub fn time_unit(&self) -> TimeUnit {
        self.options.time_unit.or(self.format.time_unit).unwrap_or(TimeUnit::Nanoseconds)
    }
}

/// Which devices of a trace to take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// All, laid end to end in order of id.
    #[default]
    All,
    /// Only those with these ids, laid end to end in order of id.
    Only(Vec<u64>),
}

impl DeviceChoice {
    pub(super) fn takes(&self, id: u64) -> bool {
        match self {
            Self::All => true,
            Self::Only(ids) => ids.contains(&id),
        }
    }
}

/// Unit of a time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Picoseconds; the part below a nanosecond is cut off.
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

    /// The power of ten of nanoseconds that one unit is.
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

/// A step in the life of a request, as blktrace records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `Q`: the request arrives at the block layer.
    Queue,
    /// `D`: the request, after merging, is issued to the driver.
    Issue,
    /// `C`: the request is complete.
    Complete,
}

impl Action {
    /// In the order in which they happen.
    pub const ALL: [Self; 3] = [Self::Queue, Self::Issue, Self::Complete];

    /// The letter blkparse prints.
    pub fn letter(self) -> char {
        match self {
            Self::Queue => 'Q',
            Self::Issue => 'D',
            Self::Complete => 'C',
        }
    }
}

impl FromStr for Action {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let found = Self::ALL.into_iter().find(|action| text.chars().eq([action.letter()]));
        found.ok_or_else(|| {
            TraceError::new(ErrorKind::Option, "", format!("no action is named `{}`", text.escape_debug()))
                .with_hint("the actions are `Q` (queue), `D` (issue), `C` (complete)")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_actions_parse_back() {
        for (name, unit) in TimeUnit::NAMES {
            assert_eq!(name.parse::<TimeUnit>().unwrap(), unit);
            assert_eq!(unit.to_string(), name);
        }
        assert!("min".parse::<TimeUnit>().unwrap_err().to_string().contains("`us`"));
        for action in Action::ALL {
            assert_eq!(action.letter().to_string().parse::<Action>().unwrap(), action);
        }
        for wrong in ["", "QQ", "q", "X"] {
            assert!(wrong.parse::<Action>().is_err(), "{wrong}");
        }
    }
}
