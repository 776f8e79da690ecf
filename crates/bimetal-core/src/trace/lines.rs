//! Text traces: lines, fields, and exact numbers on byte slices, without allocation.

use std::io::{self, Read};
use std::ops::ControlFlow;

use super::collect::{Collector, MAX_BYTES, Row};
use super::error::{ErrorKind, Fault, Parsed, Place, TraceError};
use super::input::BUFFER_BYTES;
use super::{Input, TimeUnit};
use crate::request::{Op, SECTOR_BYTES};

/// The non-empty lines of a text, [trimmed] and numbered from 1. Blank lines and `#` comments are skipped.
pub(super) struct Lines<'a> {
    rest: &'a [u8],
    number: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let byte_order_mark = b"\xef\xbb\xbf";
        Self { rest: bytes.strip_prefix(byte_order_mark).unwrap_or(bytes), number: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let end = memchr::memchr(b'\n', self.rest);
            let (line, rest) = match end {
                Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
                None => (self.rest, &[][..]),
            };
            self.rest = rest;
            self.number += 1;
            let line = trimmed(line);
            if !matches!(line.trim_ascii_start(), [] | [b'#', ..]) {
                return Some((self.number, line));
            }
        }
        None
    }
}

/// A line without the blanks around it, but with tabs at its start: the first field of a table may be empty.
#[inline]
fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii_end();
    let start = line.iter().position(|byte| *byte == b'\t' || !byte.is_ascii_whitespace());
    &line[start.unwrap_or(line.len())..]
}

/// The fields of a line, from left to right.
#[derive(Debug)]
pub struct Fields<'a> {
    rest: Option<&'a [u8]>,
    commas: bool,
}

impl<'a> Fields<'a> {
    /// Fields separated by commas. Blanks around them are ignored.
    #[inline]
    pub fn commas(line: &'a [u8]) -> Self {
        Self { rest: Some(line), commas: true }
    }

    /// Fields separated by runs of blanks. The line must not end with blanks.
    #[inline]
    pub fn blanks(line: &'a [u8]) -> Self {
        Self { rest: Some(line.trim_ascii_start()).filter(|line| !line.is_empty()), commas: false }
    }

    /// The next field, or `None` after the last.
    #[inline]
    pub fn optional(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        if self.commas {
            let Some(end) = rest.iter().position(|&byte| byte == b',') else {
                self.rest = None;
                return Some(trim(rest));
            };
            self.rest = Some(&rest[end + 1..]);
            return Some(trim(&rest[..end]));
        }
        let Some(end) = rest.iter().position(|&byte| byte == b' ' || byte == b'\t') else {
            self.rest = None;
            return Some(rest);
        };
        let next = rest[end..].iter().position(|&byte| byte != b' ' && byte != b'\t');
        self.rest = next.map(|next| &rest[end + next..]);
        Some(&rest[..end])
    }

    /// The next field; a missing field is a fault.
    #[inline]
    pub fn next(&mut self, field: &'static str) -> Parsed<&'a [u8]> {
        self.optional().ok_or_else(|| Fault::missing(field))
    }

    /// The next field if it is a whole number right before a comma or the end, as nearly all numbers are: nothing has
    /// to search for the comma. Otherwise no field is taken.
    #[inline(always)]
    fn number(&mut self) -> Option<u64> {
        let rest = self.rest.filter(|_| self.commas)?;
        let (value, digits) = atoi_simd::parse_prefix_pos::<u64, false>(rest).ok()?;
        self.ends_at(rest, digits).then_some(value)
    }

    /// The next field in nanoseconds if it is a time right before a comma or the end, with no more decimals than
    /// nanoseconds have. Otherwise no field is taken.
    #[inline(always)]
    fn exact_time(&mut self, unit: TimeUnit) -> Option<u64> {
        let rest = self.rest.filter(|_| self.commas)?;
        let (whole, digits) = atoi_simd::parse_prefix_pos::<u64, false>(rest).ok()?;
        let ns = whole_ns(whole, unit)?;
        if rest.get(digits) != Some(&b'.') {
            return self.ends_at(rest, digits).then_some(ns);
        }
        let (fraction, decimals) = atoi_simd::parse_prefix_pos::<u64, false>(&rest[digits + 1..]).ok()?;
        let left = usize::try_from(unit.exponent()).ok()?.checked_sub(decimals)?;
        let ns = ns.checked_add(fraction * POWERS[left])?;
        self.ends_at(rest, digits + 1 + decimals).then_some(ns)
    }

    /// Whether the first field of `rest` has this length. If it has, it is taken.
    #[inline(always)]
    fn ends_at(&mut self, rest: &'a [u8], length: usize) -> bool {
        self.rest = match rest.get(length) {
            None => None,
            Some(b',') => Some(&rest[length + 1..]),
            Some(_) => return false,
        };
        true
    }

    /// The next field as a whole number.
    #[inline]
    pub fn whole(&mut self, field: &'static str) -> Parsed<u64> {
        self.number().map_or_else(|| whole(self.next(field)?, field), Ok)
    }

    /// The next field, a number of 512-byte sectors, in bytes.
    #[inline]
    pub fn sectors(&mut self, field: &'static str) -> Parsed<u64> {
        let sectors = self.whole(field)?;
        if sectors > MAX_BYTES / SECTOR_BYTES {
            let text = sectors.to_string();
            return Err(Fault::field(ErrorKind::Range, field, "lies beyond 2^63 bytes", text.as_bytes()));
        }
        Ok(sectors * SECTOR_BYTES)
    }

    /// The next field as a time in nanoseconds.
    #[inline]
    pub fn time(&mut self, field: &'static str, unit: TimeUnit) -> Parsed<u64> {
        self.exact_time(unit).map_or_else(|| time(self.next(field)?, field, unit), Ok)
    }

    /// The next field as `R`, `W`, `Read` or `Write`, in any case.
    #[inline]
    pub fn letter(&mut self, field: &'static str) -> Parsed<Op> {
        let text = match self.rest {
            // One letter, as usual: nothing has to search for the comma.
            Some(rest @ [letter, b',', next @ ..]) if self.commas && letter.is_ascii_alphabetic() => {
                self.rest = Some(next);
                &rest[..1]
            }
            _ => self.next(field)?,
        };
        match text {
            b"r" | b"R" => Ok(Op::Read),
            b"w" | b"W" => Ok(Op::Write),
            _ if text.eq_ignore_ascii_case(b"read") => Ok(Op::Read),
            _ if text.eq_ignore_ascii_case(b"write") => Ok(Op::Write),
            _ => Err(Fault::field(ErrorKind::Field, field, "is neither read nor write", text)),
        }
    }

    /// The next field as a read if it is the digit `read`, and as a write if it is the other one of 0 and 1.
    #[inline]
    pub fn digit(&mut self, field: &'static str, read: u8) -> Parsed<Op> {
        let text = self.next(field)?;
        match text {
            [digit @ (b'0' | b'1')] if *digit == read => Ok(Op::Read),
            [b'0' | b'1'] => Ok(Op::Write),
            _ => Err(Fault::field(ErrorKind::Field, field, "is neither `0` nor `1`", text)),
        }
    }

    /// Checks that no field is left.
    #[inline]
    pub fn end(&self) -> Parsed<()> {
        self.rest.map_or(Ok(()), |rest| Err(Fault::extra(rest)))
    }
}

#[inline]
fn trim(field: &[u8]) -> &[u8] {
    match field {
        [b' ' | b'\t', ..] | [.., b' ' | b'\t'] => field.trim_ascii(),
        _ => field,
    }
}

/// A whole decimal number.
#[inline]
pub(super) fn whole(text: &[u8], field: &'static str) -> Parsed<u64> {
    let (value, digits) = leading_digits(text);
    if digits == text.len() && digits > 0 {
        return Ok(value);
    }
    whole_slowly(text, field)
}

/// The value of the leading digits and their number, which is 0 if the value does not fit 64 bits.
#[inline]
fn leading_digits(text: &[u8]) -> (u64, usize) {
    atoi_simd::parse_prefix_pos::<u64, false>(text).unwrap_or((0, 0))
}

/// Slow path: numbers with zeros in front that have more than 20 digits, and invalid numbers.
#[cold]
fn whole_slowly(text: &[u8], field: &'static str) -> Parsed<u64> {
    if text.is_empty() {
        return Err(Fault::field(ErrorKind::Field, field, "is empty, not a whole number", text));
    }
    if !text.iter().all(u8::is_ascii_digit) {
        let negative = text.len() > 1 && text[0] == b'-' && text[1..].iter().all(u8::is_ascii_digit);
        let what = if negative { "is negative" } else { "is not a whole number" };
        return Err(Fault::field(ErrorKind::Field, field, what, text));
    }
    let number = text.iter().try_fold(0u64, |value, digit| {
        value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit - b'0')))
    });
    number.ok_or_else(|| Fault::field(ErrorKind::Range, field, "does not fit 64 bits", text))
}

/// A time such as `12`, `0.026214` or `1.5e-05` in nanoseconds. Fractions of a nanosecond are cut off.
#[inline]
pub(super) fn time(text: &[u8], field: &'static str, unit: TimeUnit) -> Parsed<u64> {
    let (whole, digits) = leading_digits(text);
    let fraction = match &text[digits..] {
        [] => &[][..],
        [b'.', fraction @ ..] => fraction,
        _ => return time_slowly(text, field, unit),
    };
    // At most the digits of the fraction down to a nanosecond.
    let decimals = unit.exponent().max(0) as usize;
    let taken = &fraction[..fraction.len().min(decimals)];
    let (part, taken_digits) = leading_digits(taken);
    let exact = digits > 0
        && taken_digits == taken.len()
        && fraction[taken_digits..].iter().all(u8::is_ascii_digit)
        && unit.exponent() >= 0;
    if exact {
        let scaled = whole.checked_mul(POWERS[decimals]);
        if let Some(ns) = scaled.and_then(|ns| ns.checked_add(part * POWERS[decimals - taken_digits])) {
            return Ok(ns);
        }
    }
    time_slowly(text, field, unit)
}

/// A whole number of units in nanoseconds.
#[inline]
pub(super) fn time_of_whole(value: u64, field: &'static str, unit: TimeUnit) -> Parsed<u64> {
    whole_ns(value, unit).ok_or_else(|| {
        let text = value.to_string();
        Fault::field(ErrorKind::Range, field, "does not fit 64 bits of nanoseconds", text.as_bytes())
    })
}

/// A whole number of units in nanoseconds, if it fits.
#[inline]
fn whole_ns(value: u64, unit: TimeUnit) -> Option<u64> {
    match usize::try_from(unit.exponent()) {
        Ok(exponent) => value.checked_mul(POWERS[exponent]),
        Err(_) => Some(value / POWERS[unit.exponent().unsigned_abs() as usize]),
    }
}

const POWERS: [u64; 10] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// Slow path: times with an exponent, in picoseconds or with very many digits, and invalid times.
#[cold]
fn time_slowly(text: &[u8], field: &'static str, unit: TimeUnit) -> Parsed<u64> {
    let fault = |kind, what| Err(Fault::field(kind, field, what, text));
    if text.is_empty() {
        return fault(ErrorKind::Field, "is empty, not a time");
    }
    let (mantissa, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&text[..at], std::str::from_utf8(&text[at + 1..]).ok().and_then(|e| e.parse::<i16>().ok())),
        None => (text, Some(0)),
    };
    let point = mantissa.iter().position(|&byte| byte == b'.').unwrap_or(mantissa.len());
    let fraction = mantissa.get(point + 1..).unwrap_or_default();
    let digits = || mantissa[..point].iter().chain(fraction);
    let (Some(exponent), true, true) = (exponent, point > 0, digits().all(u8::is_ascii_digit)) else {
        let what = if text[0] == b'-' { "is negative" } else { "is not a decimal number" };
        return fault(ErrorKind::Field, what);
    };
    // The digits to the left of the nanosecond point, with zeros if there are too few.
    let wanted = point as i64 + i64::from(exponent) + i64::from(unit.exponent());
    let mut ns = 0u64;
    for digit in digits().copied().chain(std::iter::repeat(b'0')).take(usize::try_from(wanted).unwrap_or(0)) {
        match ns.checked_mul(10).and_then(|ns| ns.checked_add(u64::from(digit - b'0'))) {
            Some(next) => ns = next,
            None => return fault(ErrorKind::Range, "does not fit 64 bits of nanoseconds"),
        }
    }
    Ok(ns)
}

/// The lines of a file, a buffer full at a time.
struct Pieces<R> {
    source: R,
    buffer: Vec<u8>,
    /// End of the lines that were returned.
    taken: usize,
    filled: usize,
}

impl<R: Read> Pieces<R> {
    fn new(source: R) -> Self {
        Self { source, buffer: vec![0; BUFFER_BYTES], taken: 0, filled: 0 }
    }

    /// The next whole lines; `None` at the end of the file. A line longer than the buffer enlarges it.
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.buffer.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        self.taken = 0;
        while self.taken == 0 {
            if self.filled == self.buffer.len() {
                self.buffer.resize(2 * self.filled, 0);
            }
            let read = match self.source.read(&mut self.buffer[self.filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            let end = memchr::memrchr(b'\n', &self.buffer[self.filled..self.filled + read]);
            match end {
                Some(end) => self.taken = self.filled + end + 1,
                None if read == 0 && self.filled == 0 => return Ok(None),
                None if read == 0 => self.taken = self.filled,
                None => {}
            }
            self.filled += read;
        }
        Ok(Some(&self.buffer[..self.taken]))
    }
}

/// Decodes a file with one record on each line. `row` parses a line, which may begin with tabs but has no other blanks
/// around it, and returns `None` for a valid line without a request.
#[inline]
pub fn decode<'a>(
    input: &Input<'a>,
    header: &str,
    mut row: impl FnMut(&[u8]) -> Parsed<Option<Row>>,
) -> Result<Collector<'a>, TraceError> {
    // Records are rarely shorter, so the list grows at most once or twice.
    let mut collector = Collector::new(input.options, input.expected_length / 32);
    until(input, header, |line| {
        if let Some(row) = row(line)? {
            collector.push(&row)?;
        }
        Ok(collector.flow())
    })?;
    Ok(collector)
}

/// Parses each line except the header.
#[inline]
pub(super) fn each(
    input: &Input<'_>,
    header: &str,
    mut read: impl FnMut(&[u8]) -> Parsed<()>,
) -> Result<(), TraceError> {
    until(input, header, |line| read(line).map(ControlFlow::Continue))
}

/// Parses each line except the header, until `read` ends it.
#[inline]
fn until(
    input: &Input<'_>,
    header: &str,
    mut read: impl FnMut(&[u8]) -> Parsed<ControlFlow<()>>,
) -> Result<(), TraceError> {
    let mut pieces = Pieces::new(input.bytes());
    let (mut number, mut is_first) = (0, true);
    while let Some(piece) = pieces.next().map_err(|error| input.unread(&error))? {
        let mut lines = if number == 0 { Lines::new(piece) } else { Lines { rest: piece, number } };
        for (number, line) in &mut lines {
            if std::mem::take(&mut is_first) && is_header(line, header) {
                continue;
            }
            if read(line).map_err(|fault| input.fault(Place::Line(number), *fault))?.is_break() {
                return Ok(());
            }
        }
        number = lines.number;
    }
    Ok(())
}

/// Whether a line is the header: the same comma-separated names, in any case.
pub(super) fn is_header(line: &[u8], header: &str) -> bool {
    if header.is_empty() || !line.trim_ascii_start().first().is_some_and(u8::is_ascii_alphabetic) {
        return false;
    }
    let (mut found, mut names) = (Fields::commas(line), Fields::commas(header.as_bytes()));
    loop {
        match (found.optional(), names.optional()) {
            (None, None) => return true,
            (Some(found), Some(name)) if found.eq_ignore_ascii_case(name) => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    #[test]
    fn lines_skip_blanks_and_comments_but_count_them() {
        let lines: Vec<_> = Lines::new(b"\xef\xbb\xbf# a\r\n\r\n x y \r\nlast").collect();
        assert_eq!(lines, [(3, &b"x y"[..]), (4, b"last")]);
    }

    #[test]
    fn fields_by_commas_and_blanks() {
        let mut fields = Fields::commas(b"a, b ,,c");
        let found: Vec<_> = std::iter::from_fn(|| fields.optional()).collect();
        assert_eq!(found, [&b"a"[..], b"b", b"", b"c"]);
        let mut fields = Fields::blanks(b"a \t b\tc");
        let found: Vec<_> = std::iter::from_fn(|| fields.optional()).collect();
        assert_eq!(found, [&b"a"[..], b"b", b"c"]);
        assert!(fields.end().is_ok());
        assert_eq!(fields.next("x").unwrap_err().kind, ErrorKind::FieldCount);
    }

    #[test]
    fn whole_numbers() {
        assert_eq!(whole(b"0", "f").unwrap(), 0);
        assert_eq!(whole(b"9999999999999999999", "f").unwrap(), 9_999_999_999_999_999_999);
        assert_eq!(whole(b"18446744073709551615", "f").unwrap(), u64::MAX);
        assert_eq!(whole(b"00000000000000000000042", "f").unwrap(), 42);
        for (text, what) in [
            (&b""[..], "is empty, not a whole number"),
            (b"-5", "is negative"),
            (b"-", "is not a whole number"),
            (b"4x", "is not a whole number"),
            (b"1.0", "is not a whole number"),
            (b"18446744073709551616", "does not fit 64 bits"),
        ] {
            assert_eq!(whole(text, "f").unwrap_err().what, what);
        }
    }

    #[test]
    fn numbers_before_commas_are_those_of_their_fields() {
        let numbers =
            ["0,x", "42", "18446744073709551615,", " 7 ,", "7 ,8", "4x,", ",1", "", "18446744073709551616,", "1.5,"];
        let times = ["0.026214,r", "3.,4", "1.5", "12.3456789012,", "1.5 ,8", "1.2.3,", "1.5e-05,", "18446744073.8,"];
        for text in numbers.into_iter().chain(times) {
            let (mut found, mut fields) = (Fields::commas(text.as_bytes()), Fields::commas(text.as_bytes()));
            let expected = fields.next("f").and_then(|field| whole(field, "f"));
            let given = found.whole("f");
            assert_eq!(given.map_err(|fault| fault.what), expected.map_err(|fault| fault.what), "{text}");
            assert_eq!(found.rest, fields.rest, "{text}");
            for unit in [TimeUnit::Picoseconds, TimeUnit::HundredNanoseconds, TimeUnit::Seconds] {
                let (mut found, mut fields) = (Fields::commas(text.as_bytes()), Fields::commas(text.as_bytes()));
                let expected = fields.next("f").and_then(|field| time(field, "f", unit));
                let given = found.time("f", unit);
                assert_eq!(given.map_err(|fault| fault.what), expected.map_err(|fault| fault.what), "{text} in {unit}");
                assert_eq!(found.rest, fields.rest, "{text} in {unit}");
            }
        }
    }

    #[test]
    fn times_are_exact() {
        let s = |text: &str| time(text.as_bytes(), "t", TimeUnit::Seconds);
        assert_eq!(s("0.026214").unwrap(), 26_214_000);
        assert_eq!(s("1398396860.158634645").unwrap(), 1_398_396_860_158_634_645);
        assert_eq!(s("3.").unwrap(), 3_000_000_000);
        assert_eq!(s("0.1234567899").unwrap(), 123_456_789);
        assert_eq!(s("1.5e-05").unwrap(), 15_000);
        assert_eq!(s("2E3").unwrap(), 2_000_000_000_000);
        assert_eq!(s("1e-30").unwrap(), 0);
        assert_eq!(s("99999999999").unwrap_err().kind, ErrorKind::Range);
        assert_eq!(s("1e32000").unwrap_err().kind, ErrorKind::Range);
        assert_eq!(s("-0.5").unwrap_err().what, "is negative");
        for text in ["", ".", ".5", "1.2.3", "0x10", "nan", "inf", "1e", "1ee2", "1.5 "] {
            assert_eq!(s(text).unwrap_err().kind, ErrorKind::Field, "{text}");
        }
        assert_eq!(time(b"1234567", "t", TimeUnit::Picoseconds).unwrap(), 1_234);
        assert_eq!(time(b"128166385295514663", "t", TimeUnit::HundredNanoseconds).unwrap(), 12_816_638_529_551_466_300);
        assert_eq!(time(b"853429.443000", "t", TimeUnit::Milliseconds).unwrap(), 853_429_443_000);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

        #[test]
        fn fast_and_slow_times_agree(whole in 0u64..10_000_000_000, fraction in "[0-9]{0,12}", unit in 0usize..6) {
            let units = ["ps", "ns", "100ns", "us", "ms", "s"];
            let unit: TimeUnit = units[unit].parse().unwrap();
            let text = format!("{whole}.{fraction}");
            let fast = time(text.as_bytes(), "t", unit).unwrap();
            prop_assert_eq!(fast, time_slowly(text.as_bytes(), "t", unit).unwrap());
        }
    }
}
