//! Meaning of a table's columns: given by the user, by a header or by keys.
//!
//! ```text
//! time:ms,op,offset:bytes,size:bytes        by position: fields in this order; `-` is a field that is left out
//! time=started:us,op=rw,offset=lba:sectors,size=len     by name, in any order
//! ```

mod names;

use std::fmt;
use std::str::FromStr;

pub(super) use names::role;

use super::error::{ErrorKind, TraceError};
use super::time_unit::TimeUnit;
use crate::request::SECTOR_BYTES;

/// The columns of a table, as a user names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    columns: Vec<Column>,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    /// Its name in the header, or its key; none if it is given by position.
    name: Option<String>,
    role: Role,
}

/// The field that a column contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Time of issue. Without a unit, the unit of `--time-unit` applies.
    Time(Option<TimeUnit>),
    Op(OpCode),
    /// Address of the first byte, or length, with the size of its unit in bytes.
    Offset(u64),
    Size(u64),
    Device,
    /// A column that is ignored.
    Skipped,
}

/// Encoding of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpCode {
    /// As a word: `r`, `read`, `w`, `write`, `t`, `trim`, `discard`, `unmap`, in any case.
    Word,
    /// As 0 and 1. `read` is the digit of a read.
    Digit { read: u8 },
}

/// The fields of a record by their meaning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapping<T> {
    pub(super) time: Option<(T, Option<TimeUnit>)>,
    pub(super) op: (T, OpCode),
    /// With the size of the unit in bytes.
    pub(super) offset: (T, u64),
    pub(super) size: (T, u64),
    pub(super) device: Option<T>,
}

impl Role {
    /// The name that a user writes.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Time(_) => "time",
            Self::Op(_) => "op",
            Self::Offset(_) => "offset",
            Self::Size(_) => "size",
            Self::Device => "device",
            Self::Skipped => "-",
        }
    }
}

/// Units of addresses and lengths, in bytes.
const UNITS: [(&str, u64); 4] = [("bytes", 1), ("sectors", SECTOR_BYTES), ("kib", 1 << 10), ("4kib", 4 << 10)];

/// Bytes of a unit of addresses and lengths.
pub(super) fn unit_bytes(name: &str) -> Option<u64> {
    UNITS.iter().find(|(unit, _)| *unit == name).map(|&(_, bytes)| bytes)
}

/// The name of a unit of `bytes` bytes.
pub(super) fn unit_name(bytes: u64) -> &'static str {
    UNITS.iter().find(|(_, unit)| *unit == bytes).map_or("bytes", |(name, _)| name)
}

const SYNTAX: &str = "a list such as `time:ms,op,offset:bytes,size:bytes`, or with names of a header or JSON keys \
                      `time=started:ms,op=rw,offset=lba:sectors,size=len:bytes`; `device` is optional, as is `time`, and `-` leaves a field out";

impl FromStr for Columns {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let wrong =
            |what: String| TraceError::new(ErrorKind::Option, "", what).with_hint(format!("columns are {SYNTAX}"));
        let columns: Vec<Column> = text.split(',').map(|item| column(item).map_err(wrong)).collect::<Result<_, _>>()?;
        let named = columns.iter().filter(|column| column.name.is_some()).count();
        if named != 0 && named != columns.len() {
            return Err(wrong("some columns have a name and some have none".into()));
        }
        let roles = columns.iter().map(|column| (column.role, ()));
        Mapping::of(roles, Some(TimeUnit::Nanoseconds)).map_err(wrong)?;
        Ok(Self { columns })
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Column { name, role }) in self.columns.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{}", role.name())?;
            if let Some(name) = name {
                write!(f, "={name}")?;
            }
            match role {
                Role::Time(Some(unit)) => write!(f, ":{unit}")?,
                Role::Op(OpCode::Digit { read }) => write!(f, ":{}=read", char::from(*read))?,
                Role::Offset(bytes) | Role::Size(bytes) => write!(f, ":{}", unit_name(*bytes))?,
                Role::Time(None) | Role::Op(OpCode::Word) | Role::Device | Role::Skipped => {}
            }
        }
        Ok(())
    }
}

/// Parses a column: `offset`, `offset:sectors`, `offset=lba:sectors`.
fn column(text: &str) -> Result<Column, String> {
    // A name must not contain a colon.
    let (role, unit) = text.split_once(':').map_or((text, None), |(role, unit)| (role, Some(unit)));
    let (role, name) = role.split_once('=').map_or((role, None), |(role, name)| (role, Some(name)));
    let bytes = || match unit {
        None => Ok(1),
        Some(unit) => unit_bytes(unit)
            .ok_or_else(|| format!("`{unit}` is no unit of `{role}`: there are `bytes`, `sectors`, `kib` and `4kib`")),
    };
    let role = match role {
        "time" => Role::Time(unit.map(str::parse).transpose().map_err(|error: TraceError| error.to_string())?),
        "op" => Role::Op(match unit {
            None => OpCode::Word,
            Some("0=read") => OpCode::Digit { read: b'0' },
            Some("1=read") => OpCode::Digit { read: b'1' },
            Some(_) => return Err("an operation is `op`, `op:0=read` or `op:1=read`".into()),
        }),
        "offset" => Role::Offset(bytes()?),
        "size" => Role::Size(bytes()?),
        "device" if unit.is_none() => Role::Device,
        "-" if unit.is_none() && name.is_none() => Role::Skipped,
        _ => return Err(format!("there is no column `{}`", text.escape_debug())),
    };
    Ok(Column { name: name.map(str::to_owned), role })
}

impl Columns {
    /// Whether the columns have names.
    pub(super) fn are_named(&self) -> bool {
        self.columns.iter().any(|column| column.name.is_some())
    }

    /// The mapping of columns by position.
    pub(super) fn by_position(&self, unit: Option<TimeUnit>) -> Result<Mapping<usize>, String> {
        Mapping::of(self.columns.iter().map(|column| column.role).zip(0..), unit)
    }

    /// The mapping of columns by name. `find` looks a name up.
    pub(super) fn by_name<T>(
        &self,
        unit: Option<TimeUnit>,
        mut find: impl FnMut(&str) -> Option<T>,
    ) -> Result<Mapping<T>, String> {
        Mapping::of(self.roles_by_name(&mut find)?, unit)
    }

    /// The role of each column and its index: by position, or as `find` returns it for the name.
    pub(super) fn places(&self, mut find: impl FnMut(&str) -> Option<usize>) -> Result<Vec<(Role, usize)>, String> {
        if self.are_named() {
            self.roles_by_name(&mut find)
        } else {
            Ok(self.columns.iter().map(|column| column.role).zip(0..).collect())
        }
    }

    fn roles_by_name<T>(&self, find: &mut impl FnMut(&str) -> Option<T>) -> Result<Vec<(Role, T)>, String> {
        let found = self.columns.iter().map(|column| {
            let name = column.name.as_deref().unwrap_or_default();
            find(name).map(|found| (column.role, found)).ok_or_else(|| format!("there is no `{}`", name.escape_debug()))
        });
        found.collect()
    }
}

impl<T> Mapping<T> {
    /// The mapping of columns with these roles and places.
    pub(super) fn of(columns: impl IntoIterator<Item = (Role, T)>, unit: Option<TimeUnit>) -> Result<Self, String> {
        let (mut time, mut op, mut offset, mut size, mut device) = (None, None, None, None, None);
        for (role, place) in columns {
            let was_there = match role {
                Role::Time(own) => time.replace((place, own.or(unit))).is_some(),
                Role::Op(code) => op.replace((place, code)).is_some(),
                Role::Offset(bytes) => offset.replace((place, bytes)).is_some(),
                Role::Size(bytes) => size.replace((place, bytes)).is_some(),
                Role::Device => device.replace(place).is_some(),
                Role::Skipped => false,
            };
            if was_there {
                return Err(format!("there are two columns `{}`", role.name()));
            }
        }
        let missing = |name: &str| format!("there is no column `{name}`");
        Ok(Self {
            time,
            op: op.ok_or_else(|| missing("op"))?,
            offset: offset.ok_or_else(|| missing("offset"))?,
            size: size.ok_or_else(|| missing("size"))?,
            device,
        })
    }

    /// Whether the name of the time column, or `--columns`, has another unit than `said`.
    pub(super) fn contradicts(&self, said: Option<TimeUnit>) -> bool {
        let own = self.time.as_ref().and_then(|(_, own)| *own);
        own.zip(said).is_some_and(|(own, said)| own != said)
    }
}

/// The error of a time unit that the columns contradict.
pub(super) const OTHER_UNIT: &str =
    "the name of the time column, or `--columns`, already gives another unit: leave `--time-unit` out";

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<Columns>().unwrap_err().to_string()
    }

    #[test]
    fn columns_that_say_too_little_or_too_much_are_refused() {
        for (text, shown) in [
            ("time:ms,op,offset:sectors,size,-,device", "time:ms,op,offset:sectors,size:bytes,-,device"),
            ("op=rw:0=read,offset=lba:4kib,size=len:kib,time=t", "op=rw:0=read,offset=lba:4kib,size=len:kib,time=t"),
        ] {
            let columns: Columns = text.parse().unwrap();
            assert_eq!(columns.to_string(), shown);
            assert_eq!(shown.parse::<Columns>().unwrap(), columns);
        }
        for (text, what) in [
            ("op,offset", "there is no column `size`"),
            ("op,offset,size,size", "there are two columns `size`"),
            ("op,offset,size,colour", "there is no column `colour`"),
            ("op,offset:miles,size", "`miles` is no unit of `offset`"),
            ("time:h,op,offset,size", "no time unit is named `h`"),
            ("op:2=read,offset,size", "an operation is `op`"),
            ("op=rw,offset,size", "some columns have a name and some have none"),
            ("", "there is no column ``"),
        ] {
            assert!(error(text).starts_with(what), "{text}: {}", error(text));
        }
    }
}
