//! Mapping of a cache trace's objects to addresses: the option of the formats in [`objects`](super::objects).

use std::fmt;
use std::str::FromStr;

use super::error::{ErrorKind, TraceError};
use super::roles::{unit_bytes, unit_name};

/// The mapping of a cache trace's objects to addresses, and the effect of the first access to an object.
///
/// ```
/// use bimetal_core::trace::Objects;
///
/// let objects: Objects = "sectors,insert".parse()?;
/// assert_eq!(objects.to_string(), "sectors,insert");
/// assert_eq!("insert".parse::<Objects>()?.to_string(), "slots,insert");
/// # Ok::<_, bimetal_core::trace::TraceError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Bytes of the unit in which ids are addresses; `None` gives each object a slot.
    pub(super) unit_bytes: Option<u64>,
    /// Whether a read of an absent object writes it, like a cache that was empty at first.
    pub(super) insert: bool,
}

const SYNTAX: &str = "use `slots` (each object gets an address at its first access), or `bytes`, `sectors`, `kib` or `4kib` (ids are \
                      addresses in this unit); append `,insert` if the first access to each object is a write";

impl FromStr for Objects {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let (place, insert) = match text.split_once(',') {
            Some((place, "insert")) => (place, true),
            None if text == "insert" => ("slots", true),
            _ => (text, false),
        };
        let unit_bytes = unit_bytes(place);
        if place == "slots" || unit_bytes.is_some() {
            return Ok(Self { unit_bytes, insert });
        }
        let what = format!("`{}` is not a way to place objects", text.escape_debug());
        Err(TraceError::new(ErrorKind::Option, "", what).with_hint(SYNTAX))
    }
}

impl fmt::Display for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.unit_bytes.map_or("slots", unit_name))?;
        f.write_str(if self.insert { ",insert" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_place_of_objects_says_what_there_is() {
        for text in ["slots", "bytes", "4kib", "slots,insert", "kib,insert"] {
            assert_eq!(text.parse::<Objects>().unwrap().to_string(), text);
        }
        for text in ["", "miles", "slots,", "slots,insert,insert", "insert,slots", "Slots"] {
            let error = text.parse::<Objects>().unwrap_err().to_string();
            assert!(error.contains("`sectors`") && error.contains("`,insert`"), "{text}: {error}");
        }
        assert_eq!(Objects::default().to_string(), "slots");
    }
}
