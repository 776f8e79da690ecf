//! Times that are dates: ISO 8601, as RFC 3339 profiles it, with a `T` or a blank before the time of day.

use chrono::{DateTime, NaiveDateTime};

use crate::trace::error::{ErrorKind, Fault, Parsed};

/// Whether a time begins like a date, with a year and a hyphen, as no number does.
pub fn is_date(text: &[u8]) -> bool {
    text.get(4) == Some(&b'-') && text[..4].iter().all(u8::is_ascii_digit)
}

/// A date and time in nanoseconds since 1970. Without an offset it is UTC.
pub fn nanoseconds(text: &[u8]) -> Parsed<u64> {
    let fault = |kind, what| Fault::field(kind, "time", what, text);
    let text = str::from_utf8(text).unwrap_or_default();
    let without_offset = || {
        let formats = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"];
        formats
            .into_iter()
            .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
            .map(|date| date.and_utc())
    };
    let date = DateTime::parse_from_rfc3339(text).ok().map(|date| date.to_utc()).or_else(without_offset);
    let date = date.ok_or_else(|| fault(ErrorKind::Field, "is no date and time such as `2024-01-31T12:00:00.25Z`"))?;
    let ns = date.timestamp_nanos_opt().and_then(|ns| u64::try_from(ns).ok());
    ns.ok_or_else(|| fault(ErrorKind::Range, "is not between 1970 and 2262"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(text: &str) -> Result<u64, String> {
        assert!(is_date(text.as_bytes()), "{text}");
        nanoseconds(text.as_bytes()).map_err(|fault| fault.what.to_owned())
    }

    #[test]
    fn dates_are_nanoseconds_since_1970() {
        const NOON: u64 = 1_706_702_400_000_000_000;
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2024-01-31T12:00:00Z", NOON),
            ("2024-01-31 12:00:00", NOON),
            ("2024-01-31T12:00:00.25", NOON + 250_000_000),
            ("2024-01-31T14:00:00.000000001+02:00", NOON + 1),
            ("2024-01-31 12:00:00.5Z", NOON + 500_000_000),
        ] {
            assert_eq!(ns(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_told() {
        for text in [
            "2024-01-31",
            "2024-02-30T00:00:00Z",
            "2024-01-31T25:00:00Z",
            "2024-",
            "2024-01-31T12:00:00Z+",
            "2024-01-31T12",
        ] {
            assert_eq!(ns(text).unwrap_err(), "is no date and time such as `2024-01-31T12:00:00.25Z`", "{text}");
        }
        for text in ["1969-12-31T23:59:59Z", "2999-01-01T00:00:00Z"] {
            assert_eq!(ns(text).unwrap_err(), "is not between 1970 and 2262");
        }
        for number in ["12", "1.5e-05", "1234", "-123-", ""] {
            assert!(!is_date(number.as_bytes()), "{number}");
        }
    }
}
