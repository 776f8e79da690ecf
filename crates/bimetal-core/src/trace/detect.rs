//! Detection of the format. Magic numbers and headers decide at once. Otherwise the first lines are parsed strictly in
//! every format, and exactly one format must accept all of them. An ambiguous file is an error, not a guess.

use super::collect::Row;
use super::error::{ErrorKind, Parsed, TraceError};
use super::lines::{Lines, is_header};
use super::{FORMATS, Format};

/// Bytes of a file that text detection reads.
const SAMPLE_BYTES: usize = 64 << 10;
/// Lines of a file that text detection reads.
const SAMPLE_LINES: usize = 100;

/// Similarity of a file to a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// None.
    No,
    /// Some of the first lines are valid.
    Some {
        /// Number of valid lines.
        good: usize,
    },
    /// All of the first lines are valid.
    All,
    /// It starts with the format's header line.
    Header,
    /// It starts with the format's magic number.
    Magic,
}

impl Likeness {
    /// The similarity for a number of valid lines among `all`.
    pub fn of_lines(good: usize, all: usize) -> Self {
        match good {
            0 => Self::No,
            _ if good == all => Self::All,
            _ => Self::Some { good },
        }
    }
}

/// The part of a file that detection uses.
#[derive(Debug)]
pub struct Sample<'a> {
    /// The first bytes of the file: at least one megabyte, if it is so long.
    pub bytes: &'a [u8],
    /// Its first whole lines.
    text: &'a [u8],
}

impl<'a> Sample<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let text = match bytes.get(..SAMPLE_BYTES) {
            Some(start) => &start[..memchr::memrchr(b'\n', start).unwrap_or(0)],
            None => bytes,
        };
        Self { bytes, text }
    }

    /// All complete lines of the sample.
    pub fn all_lines(&self) -> impl Iterator<Item = (u64, &'a [u8])> {
        Lines::new(self.text)
    }

    /// The first of them, which every text format parses.
    pub fn lines(&self) -> impl Iterator<Item = (u64, &'a [u8])> {
        Lines::new(self.text).take(SAMPLE_LINES)
    }
}

/// The format of a file, from its first bytes; `name` appears in errors.
///
/// # Errors
/// [`ErrorKind::Undetected`] if no format fits, [`ErrorKind::Ambiguous`] if several do.
pub fn detect(name: &str, bytes: &[u8]) -> Result<&'static Format, TraceError> {
    let sample = Sample::new(bytes);
    let likely: Vec<(&'static Format, Likeness)> =
        FORMATS.iter().map(|&format| (format, (format.probe)(&sample))).collect();
    for sure in [Likeness::Magic, Likeness::Header, Likeness::All] {
        let fitting: Vec<_> = likely.iter().filter(|(_, likeness)| *likeness == sure).map(|(f, _)| *f).collect();
        match fitting[..] {
            [] => {}
            [format] => return Ok(format),
            _ => return Err(ambiguous(name, &fitting)),
        }
    }
    // No format accepts every line. If most lines are valid in one format, decoding in that format reports the invalid
    // line.
    let good = |likeness: &Likeness| {
        if let Likeness::Some { good } = likeness { *good } else { 0 }
    };
    let most = likely.iter().map(|(_, likeness)| good(likeness)).max().unwrap_or(0);
    let mut best = likely.iter().filter(|(_, likeness)| good(likeness) == most);
    match (best.next(), best.next()) {
        (Some((format, _)), None) if 2 * most >= sample.lines().count() => Ok(format),
        _ => Err(undetected(name, &sample)),
    }
}

fn ambiguous(name: &str, fitting: &[&'static Format]) -> TraceError {
    let names = names(fitting.iter().copied());
    TraceError::new(ErrorKind::Ambiguous, name, format!("the records fit several formats: {names}"))
        .with_hint("name the right one with `--format`")
}

/// The similarity to a line format: the number of sampled lines that `row` accepts, or that the sample starts with the
/// header.
pub fn probe(sample: &Sample<'_>, header: &str, mut row: impl FnMut(&[u8]) -> Parsed<Option<Row>>) -> Likeness {
    let mut lines = sample.lines().peekable();
    if lines.next_if(|(_, line)| is_header(line, header)).is_some() {
        return Likeness::Header;
    }
    let (mut good, mut all) = (0, 0);
    for (_, line) in lines {
        all += 1;
        good += usize::from(row(line).is_ok());
    }
    Likeness::of_lines(good, all)
}

fn undetected(name: &str, sample: &Sample<'_>) -> TraceError {
    let known = names(FORMATS.iter().copied());
    let (what, hint) = match sample.bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => ("the file is UTF-16 text", "convert it to UTF-8".to_owned()),
        [b'P', b'K', 3, 4, ..] => ("the file is a zip archive", "unpack it first".to_owned()),
        [0x1f, 0x8b, ..]
        | [b'B', b'Z', b'h', ..]
        | [0xfd, b'7', b'z', b'X', b'Z', ..]
        | [0x28, 0xb5, 0x2f, 0xfd, ..] => ("the file is compressed, maybe twice", "decompress it first".to_owned()),
        [b'F', b'E', b'A', b'1', ..] => {
            ("the file is a Feather file of version 1", "write it as Feather version 2, Parquet or CSV".to_owned())
        }
        bytes if bytes.get(257..262) == Some(b"ustar") => ("the file is a tar archive", "unpack it first".to_owned()),
        _ => (
            "the file looks like no known trace format",
            format!(
                "name the columns of a table of your own with `--columns`, such as `time:ms,op,offset:bytes,size:bytes`; or name the \
                 format with `--format`, which then says what line does not fit; one of {known}"
            ),
        ),
    };
    TraceError::new(ErrorKind::Undetected, name, what).with_hint(hint)
}

/// Format names, for a message.
pub(super) fn names(formats: impl Iterator<Item = &'static Format>) -> String {
    formats.map(|format| format!("`{}`", format.name)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_guessed() {
        for (bytes, what) in [
            (&b"\x00\x01\x02\xfe random"[..], "no known trace format"),
            (b"# only a comment\n", "no known trace format"),
            (b"hello\nworld\n", "no known trace format"),
            (b"\xff\xfe1\x00", "UTF-16"),
            (b"PK\x03\x04", "zip"),
            (b"FEA1\0\0\0\0", "a Feather file of version 1"),
            (b"\x1f\x8b\x08", "compressed"),
        ] {
            let error = detect("x", bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Undetected);
            assert!(error.to_string().contains(what), "{error}");
        }
        let error = detect("x", b"\x00\x01").unwrap_err().to_string();
        for format in FORMATS {
            assert!(error.contains(&format!("`{}`", format.name)), "{error}");
        }
    }

    #[test]
    fn one_bad_line_does_not_hide_the_format() {
        let text = "0,8,4096,r,0.5\n0,8,4096,q,0.6\n0,8,4096,r,0.7\n";
        assert_eq!(detect("x", text.as_bytes()).unwrap().name, "spc");
    }

    #[test]
    fn a_sample_ends_with_a_whole_line() {
        let line = b"0,8,4096,r,0.500000000\n";
        let text = line.repeat(4000);
        assert_eq!(detect("x", &text).unwrap().name, "spc");
        assert_eq!(Sample::new(&text).lines().count(), SAMPLE_LINES);
        assert_eq!(detect("x", &vec![b'1'; 1 << 20]).unwrap_err().kind(), ErrorKind::Undetected);
    }
}
