//! Options for reading a trace.

use std::str::FromStr;

use super::Format;
use super::error::{ErrorKind, TraceError};
use super::object_places::Objects;
use super::roles::Columns;
use super::time_unit::TimeUnit;

/// Options for reading a trace. The default detects the format and takes every device.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The format; `None` detects it.
    pub format: Option<&'static Format>,
    /// The devices to take.
    pub devices: DeviceChoice,
    /// Unit of the time stamps; `None` means the format's default.
    pub time_unit: Option<TimeUnit>,
    /// The record that counts as a request, in formats with several for each (blktrace and blkparse). `None` takes the
    /// queue record. Without queue records it falls back to a later one, with a warning.
    pub action: Option<Action>,
    /// The columns of a table: delimited text, JSON lines, a Parquet or an Arrow file. `None` takes them from its header
    /// or keys.
    pub columns: Option<Columns>,
    /// Mapping of objects to addresses, in traces of caches; `None` gives each object its own place.
    pub objects: Option<Objects>,
    /// Number of requests that are needed: the first ones of each file. Text with a request on each line, vscsi files and
    /// the compact form are read no further. Other formats are read whole. `None` takes all requests.
    pub limit: Option<u64>,
    /// Whether the file is one of several, so that it may lack some of the chosen devices.
    pub is_part: bool,
}

impl Options {
    /// Refuses options that do not apply to a format.
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
        if self.columns.is_some() && !format.has_columns {
            return refuse("--columns", "whose columns are fixed");
        }
        if self.objects.is_some() && !format.has_objects {
            return refuse("--objects", "which has addresses");
        }
        Ok(())
    }
}

/// The devices of a trace to take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// All, laid end to end in order of id.
    #[default]
    All,
    /// Only the devices with these ids, laid end to end in order of id.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// `Q`: the request arrives at the block layer.
    Queue,
    /// `D`: the request, after merging, is issued to the driver.
    Issue,
    /// `C`: the request is complete.
    Complete,
}

impl Action {
    /// All actions in their order in time.
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
