//! How to read a trace where its bytes do not say.

use std::str::FromStr;

use super::error::{ErrorKind, TraceError};
use super::object_places::Objects;
use super::roles::Columns;
use super::time_unit::TimeUnit;
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
    /// The columns of a table: delimited text, JSON lines or a Parquet file; `None` takes them from its header or keys.
    pub columns: Option<Columns>,
    /// How objects become addresses, in traces of caches; `None` gives each a place of its own.
    pub objects: Option<Objects>,
}

impl Options {
    /// Refuses options that a format does not take. A table is one whose columns can be named.
    pub(super) fn check(&self, name: &str, format: &Format, is_table: bool) -> Result<(), TraceError> {
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
        if self.columns.is_some() && !is_table {
            return refuse("--columns", "whose columns are fixed");
        }
        if self.objects.is_some() && !format.has_objects {
            return refuse("--objects", "which has addresses");
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
    fn actions_parse_back() {
        for action in Action::ALL {
            assert_eq!(action.letter().to_string().parse::<Action>().unwrap(), action);
        }
        for wrong in ["", "QQ", "q", "X"] {
            assert!(wrong.parse::<Action>().is_err(), "{wrong}");
        }
    }
}
