//! Recognition of unambiguous column names.

use super::{OpCode, Role, unit_bytes};
use crate::trace::time_unit::TimeUnit;

/// The role of a column with this name; [`Role::Skipped`] for an unknown name.
pub fn role(name: &str) -> Role {
    let words = words(name);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (stem, unit) = match words.split_last() {
        Some((last, stem)) if !stem.is_empty() && (time_unit(last).is_some() || unit_bytes(last).is_some()) => {
            (stem.concat(), Some(*last))
        }
        _ => (words.concat(), None),
    };
    match (stem.as_str(), unit) {
        ("time" | "timestamp" | "datetime" | "ts" | "arrival" | "arrivaltime" | "issuetime", unit) => {
            match unit.map(time_unit) {
                Some(None) => Role::Skipped,
                unit => Role::Time(unit.flatten()),
            }
        }
        ("op" | "operation" | "opcode" | "rw" | "type" | "iotype" | "request" | "requesttype" | "direction", None) => {
            Role::Op(OpCode::Word)
        }
        ("offset" | "byteoffset" | "address" | "addr", unit) => by_unit(unit.or(Some("bytes")), Role::Offset),
        ("lba" | "lbn" | "sector" | "startsector" | "firstsector" | "sectornumber", None) => {
            by_unit(Some("sectors"), Role::Offset)
        }
        ("size" | "length" | "len" | "iosize" | "requestsize", unit) => by_unit(unit.or(Some("bytes")), Role::Size),
        ("bytes" | "nbytes", None) => by_unit(Some("bytes"), Role::Size),
        ("sectors" | "nsectors" | "sectorcount" | "numsectors", None) => by_unit(Some("sectors"), Role::Size),
        (
            "device" | "dev" | "deviceid" | "disk" | "diskid" | "disknumber" | "drive" | "lun" | "namespace" | "nsid"
            | "volume" | "volumeid" | "vol",
            None,
        ) => Role::Device,
        _ => Role::Skipped,
    }
}

fn by_unit(unit: Option<&str>, role: fn(u64) -> Role) -> Role {
    unit.and_then(unit_bytes).map_or(Role::Skipped, role)
}

fn time_unit(name: &str) -> Option<TimeUnit> {
    match name {
        "sec" | "secs" | "seconds" => Some(TimeUnit::Seconds),
        "msec" | "milliseconds" => Some(TimeUnit::Milliseconds),
        "usec" | "microseconds" => Some(TimeUnit::Microseconds),
        "nsec" | "nanoseconds" => Some(TimeUnit::Nanoseconds),
        name => name.parse().ok(),
    }
}

/// The words of a name in lower case, so that `Time (ms)` and `time_ms` are equal.
fn words(name: &str) -> Vec<String> {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_a_column_holds_and_in_what_unit() {
        for (name, expected) in [
            ("Timestamp", Role::Time(None)),
            ("time (ms)", Role::Time(Some(TimeUnit::Milliseconds))),
            ("arrival_time_us", Role::Time(Some(TimeUnit::Microseconds))),
            ("response_time_us", Role::Skipped),
            ("RW", Role::Op(OpCode::Word)),
            ("offset", Role::Offset(1)),
            ("offset_sectors", Role::Offset(512)),
            ("LBA", Role::Offset(512)),
            ("offset_ms", Role::Skipped),
            ("Length", Role::Size(1)),
            ("size_kib", Role::Size(1024)),
            ("sectors", Role::Size(512)),
            ("volume_id", Role::Device),
            ("block", Role::Skipped),
            ("", Role::Skipped),
        ] {
            assert_eq!(role(name), expected, "{name}");
        }
    }
}
