//! `jsonl`: a JSON object on each line.

use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::NO_TIME;
use crate::trace::collect::Row;
use crate::trace::detect::{self, Likeness, Sample};
use crate::trace::error::{ErrorKind, Fault, Parsed, TraceError};
use crate::trace::lines;
use crate::trace::roles::{self, Columns, Mapping, OTHER_UNIT};
use crate::trace::time_unit::TimeUnit;
use crate::trace::{Format, Input, Shared, Trace};

/// The format's entry in [`FORMATS`](crate::trace::FORMATS).
pub static FORMAT: Format = Format {
    name: "jsonl",
    aliases: &["ndjson"],
    summary: "JSON lines: an object for each request, its keys known or named by `--columns`",
    layout: "an object with a time_ms and an op and an offset and a size: or with other keys, as a header of `csv` has",
    time_unit: Some(TimeUnit::Nanoseconds),
    has_actions: false,
    has_objects: false,
    has_columns: true,
    shared: Shared::Nothing,
    probe,
    decode,
};

/// The values of a line by their keys. Numbers remain text, so that times are exact.
type Object<'a> = BTreeMap<Key<'a>, &'a RawValue>;

/// A key, which is only copied if it has escapes. Writers escape the letters of many languages, also in keys that are
/// not needed.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl Borrow<str> for Key<'_> {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A value as text, without quotes.
fn text(value: &RawValue) -> &[u8] {
    let text = value.get().as_bytes();
    text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text)
}

/// The keys of the fields in objects with these keys.
fn mapping(object: &Object<'_>, columns: Option<&Columns>, unit: Option<TimeUnit>) -> Result<Mapping<String>, String> {
    let key = |name: &str| object.contains_key(name).then(|| name.to_owned());
    match columns {
        Some(columns) if columns.are_named() => columns.by_name(unit, key),
        Some(_) => Err("columns of JSON lines need names, such as `offset=lba:sectors`".to_owned()),
        None => Mapping::of(object.keys().map(|Key(name)| (roles::role(name), name.to_string())), unit),
    }
}

fn row(
    line: &[u8],
    of_first: &mut Option<Mapping<String>>,
    columns: Option<&Columns>,
    unit: Option<TimeUnit>,
) -> Parsed<Option<Row>> {
    let fault = |what, line: &[u8]| Fault::field(ErrorKind::Field, "", what, line);
    let object: Object<'_> = serde_json::from_slice(line).map_err(|_| fault("the line is no JSON object", line))?;
    if of_first.is_none() {
        *of_first = mapping(&object, columns, unit).ok();
    }
    let Some(mapping) = of_first else {
        return Err(fault("the keys do not say what they hold: name them with `--columns` or `--time-unit`", line));
    };
    mapping.row(|key| object.get(key.as_str()).map(|value| text(value))).map(Some)
}

fn probe(sample: &Sample<'_>) -> Likeness {
    let mut mapping = None;
    detect::probe(sample, "", |line| row(line, &mut mapping, None, Some(TimeUnit::Nanoseconds)))
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let (columns, unit, mut mapping) = (input.options.columns.as_ref(), input.options.time_unit, None);
    let mut collector = lines::decode(input, "", |line| {
        let row = row(line, &mut mapping, columns, unit)?;
        match &mapping {
            Some(mapping) if mapping.contradicts(unit) => Err(Fault::field(ErrorKind::Field, "", OTHER_UNIT, line)),
            _ => Ok(row),
        }
    })?;
    if columns.is_none() && mapping.is_some_and(|mapping| mapping.time.is_none()) {
        collector.warn(NO_TIME.to_owned());
    }
    collector.finish(input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::testing::fault_of;
    use crate::trace::{self, Options};

    const LINES: &str = "{\"ts_ms\": 0.5, \"rw\": \"r\", \"lba\": 8, \"bytes\": 512, \"who\": {\"pid\": 7}}\n\
                         {\"lba\": 16, \"bytes\": 1024, \"rw\": \"write\", \"ts_ms\": 0.75}\n";

    #[test]
    fn objects_with_keys_that_are_known_or_named() {
        let trace = trace::decode("t", LINES.as_bytes(), &Options::default()).unwrap();
        assert_eq!((trace.format, trace.reads, trace.write_bytes, trace.duration_ns()), ("jsonl", 1, 1024, 250_000));
        assert_eq!((trace.requests[1].sector, trace.warnings.len()), (16, 0));
        let untimed =
            trace::decode("t", b"{\"op\": \"r\", \"lba\": 8, \"bytes\": 512}\n", &Options::default()).unwrap();
        assert_eq!(untimed.warnings, [NO_TIME]);
        let columns = Some("op=rw,offset=lba:4kib,size=bytes".parse().unwrap());
        let named = trace::decode("t", LINES.as_bytes(), &Options { columns, ..Options::default() }).unwrap();
        assert_eq!(named.requests[1].sector, 128);
    }

    #[test]
    fn keys_may_have_escapes() {
        let escaped = LINES.replace("\"who\"", r#""gr\u00f6\u00dfe""#).replace("\"lba\"", r#""l\u0062a""#);
        assert!(escaped.contains(r#""gr\u00f6\u00dfe""#) && escaped.contains(r#""l\u0062a""#));
        let requests = |text: &str, columns: Option<&str>| {
            let columns = columns.map(|columns| columns.parse().unwrap());
            trace::decode("t", text.as_bytes(), &Options { columns, ..Options::default() }).unwrap().requests
        };
        assert_eq!(requests(&escaped, None), requests(LINES, None));
        let own = r#"{"art": "w", "gr\u00f6\u00dfe": 1024, "lba": 512}"#;
        assert_eq!(requests(own, Some("op=art,offset=lba,size=größe"))[0].sectors, 2);
    }

    #[test]
    fn faults_name_line_and_field() {
        for (line, field, what) in [
            ("[1]", "", "the line is no JSON object"),
            ("{\"ts_ms\": 1, \"rw\": \"r\", \"lba\": 8}", "size", "is missing"),
            ("{\"ts_ms\": 1, \"rw\": \"r\", \"lba\": -8, \"bytes\": 512}", "offset", "is negative"),
            ("{\"ts_ms\": 1, \"rw\": 3, \"lba\": 8, \"bytes\": 512}", "op", "is neither read nor write nor trim"),
        ] {
            fault_of(&FORMAT, LINES, line, field, what);
        }
        let unnamed =
            trace::decode("t", b"{\"ts\": 1, \"rw\": \"r\", \"lba\": 8, \"bytes\": 512}\n", &Options::default());
        assert!(unnamed.unwrap_err().to_string().contains("`--time-unit`"));
        let dated = LINES
            .replace("ts_ms", "ts")
            .replace("0.5,", "\"2024-01-31T12:00:00.5Z\",")
            .replace("0.75", "\"2024-01-31T12:00:01Z\"");
        let dated = trace::decode("t", dated.as_bytes(), &Options::default()).unwrap();
        assert_eq!(dated.duration_ns(), 500_000_000);
        let seconds = Options { time_unit: Some(TimeUnit::Seconds), ..Options::default() };
        let other = trace::decode("t", LINES.as_bytes(), &seconds).unwrap_err();
        assert!(other.to_string().contains("leave `--time-unit` out"), "{other}");
    }
}
