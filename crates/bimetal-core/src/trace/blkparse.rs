//! The text that blkparse prints for a blktrace recording, in its default format.
//!
//! `major,minor cpu sequence seconds.nanoseconds pid action RWBS sector + sectors [process]`: 512-byte sectors. RWBS is
//! letters: `R`ead, `W`rite, `D`iscard, `N`one, after a leading `F` for a flush before, followed by modifiers such as
//! `S`ync, `M`eta, `A`head. (blkparse(1), "DEFAULT OUTPUT"; kernel, blk_fill_rwbs.)
//!
//! Traps: every request has several lines, of which one action is used (see [`super::block_action`]). Other actions
//! have other fields after RWBS. A flush has no number of sectors, and when it completes a sector all the same. A
//! summary follows the records.

use super::block_action::Steps;
use super::collect::Row;
use super::detect::{Likeness, Sample};
use super::error::{ErrorKind, Fault, Parsed, TraceError};
use super::lines::{self, Fields};
use super::{Action, Format, Input, Shared, TimeUnit, Trace};
use crate::request::Op;

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "blkparse",
    aliases: &[],
    summary: "blkparse text",
    layout: "major,minor cpu sequence seconds pid action RWBS sector + sectors [process]: 512-byte sectors",
    time_unit: None,
    has_actions: true,
    has_objects: false,
    has_columns: false,
    shared: Shared::ClockAndDevices,
    probe,
    decode,
};

/// Bits of a Linux device number below the major.
const MINOR_BITS: u32 = 20;

/// Parses a line and counts it in `seen`. Returns the request if the line is its record of the `wanted` action.
fn row(line: &[u8]) -> Parsed<Option<(Action, Row)>> {
    let mut fields = Fields::blanks(line);
    let device = device(fields.next("major,minor")?)?;
    fields.whole("cpu")?;
    fields.whole("sequence")?;
    let time_ns = fields.time("seconds", TimeUnit::Seconds)?;
    fields.whole("pid")?;
    let mut letter = fields.next("action")?;
    if letter.contains(&b',') {
        letter = fields.next("action")?; // after the control group of a message
    }
    if letter.is_empty() || letter.len() > 2 || !letter.iter().all(u8::is_ascii_alphabetic) {
        return Err(Fault::field(ErrorKind::Field, "action", "is no action of blktrace", letter));
    }
    let action = match letter {
        b"Q" => Action::Queue,
        b"D" => Action::Issue,
        b"C" => Action::Complete,
        _ => return Ok(None),
    };
    let Some(op) = operation(fields.next("RWBS")?)? else {
        return Ok(None);
    };
    // A flush and a packet command have no sectors. The process or the packet follows instead.
    let Some(text) = fields.optional().filter(|text| text[0].is_ascii_digit()) else {
        return Ok(None);
    };
    let offset = Fields::blanks(text).sectors("sector")?;
    match fields.next("+")? {
        b"+" => {}
        // The completion of a flush has a sector and the error number, with `-t` after its duration. A packet command has
        // its bytes, and the command in parentheses.
        [b'[' | b'(', ..] => return Ok(None),
        other => return Err(Fault::field(ErrorKind::Field, "+", "is another character", other)),
    }
    let bytes = fields.sectors("sectors")?;
    Ok(Some((action, Row { time_ns, device, offset, bytes, op })))
}

/// A device number in the encoding of blktrace's binary format.
fn device(text: &[u8]) -> Parsed<u64> {
    let fault = |_| Fault::field(ErrorKind::Field, "major,minor", "is no device number", text);
    let mut parts = Fields::commas(text);
    let major = parts.whole("").map_err(fault)?;
    let minor = parts.whole("").map_err(fault)?;
    if parts.end().is_err() || major >= 1 << (32 - MINOR_BITS) || minor >= 1 << MINOR_BITS {
        return Err(Fault::field(ErrorKind::Field, "major,minor", "is no device number", text));
    }
    Ok(major << MINOR_BITS | minor)
}

/// The operation of an RWBS word; `None` if it moves no data.
fn operation(rwbs: &[u8]) -> Parsed<Option<Op>> {
    if !rwbs.iter().all(u8::is_ascii_uppercase) {
        return Err(Fault::field(ErrorKind::Field, "RWBS", "is not capital letters", rwbs));
    }
    let word = rwbs.strip_prefix(b"F").unwrap_or(rwbs);
    Ok(match word.first() {
        Some(b'R') => Some(Op::Read),
        Some(b'W') => Some(Op::Write),
        Some(b'D') => Some(Op::Trim),
        _ => None,
    })
}

/// Whether the summary that follows the records begins with this line.
fn is_summary(line: &[u8]) -> bool {
    line.starts_with(b"CPU") || line.starts_with(b"Total (")
}

/// Whether a line begins like a record, as no line of the summary does.
fn is_record(line: &[u8]) -> bool {
    Fields::blanks(line).optional().is_some_and(|first| device(first).is_ok())
}

/// Whether blkparse says with this line which files it reads: before the records, on the same output.
fn is_notice(line: &[u8]) -> bool {
    line.starts_with(b"Input file ") && line.ends_with(b" added")
}

fn probe(sample: &Sample<'_>) -> Likeness {
    let (mut good, mut all) = (0, 0);
    let lines = sample.lines().filter(|(_, line)| !is_notice(line));
    for (_, line) in lines.take_while(|(_, line)| !is_summary(line)) {
        all += 1;
        good += usize::from(row(line).is_ok());
    }
    Likeness::of_lines(good, all)
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let (mut steps, mut is_over) = (Steps::new(input), false);
    lines::each(input, "", |line| {
        is_over |= is_summary(line);
        if is_notice(line) {
            return Ok(());
        }
        match row(line) {
            Ok(Some((action, row))) => steps.push(action, || Ok(row)),
            Ok(None) => Ok(()),
            // A line of the summary. Another recording may follow it.
            Err(_) if is_over && !is_record(line) => Ok(()),
            Err(fault) => Err(fault),
        }
    })?;
    steps.finish()
}

#[cfg(test)]
mod tests {
    use super::super::error::ErrorKind;
    use super::super::testing::{fault_of, read_as};
    use super::super::{Options, decode as decode_any};
    use super::*;

    const TEXT: &str = "  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]\n\
                        \x20 8,0    3        2     0.000001829   697  G   W 223490 + 8 [kjournald]\n\
                        \x20 8,0    3        3     0.000002197   697  P   N [kjournald]\n\
                        \x20 8,0    3        5     0.000009450   697  D  WS 223490 + 8 [kjournald]\n\
                        \x20 8,0    0        1     0.001000000     0  m   N cfq workload slice:100\n\
                        \x20 8,0    3        6     0.002000000   697  Q FWS [kjournald]\n\
                        \x20 8,0    3        7     0.003000000   697  Q  RA 0 + 16 [cat]\n\
                        \x20 8,0    3        8     0.004000000   697  D  DS 64 + 2048 [fstrim]\n\
                        \x20 8,0    1        4     0.005000000     0  C   W 223490 + 8 [0]\n\
                        CPU0 (8,0):\n Reads Queued:           1,        8KiB\n";

    fn with(action: Action) -> Options {
        Options { action: Some(action), ..Options::default() }
    }

    #[test]
    fn one_record_a_request() {
        let trace = read_as(&FORMAT, TEXT.as_bytes());
        assert_eq!((trace.requests.len(), trace.reads, trace.writes), (2, 1, 1));
        assert_eq!(trace.duration_ns(), 3_000_000);
        assert_eq!(trace.devices[0].id, 8 << 20);
        let issued = decode_any("t", TEXT.as_bytes(), &with(Action::Issue)).unwrap();
        assert_eq!((issued.writes, issued.trims), (1, 1));
    }

    /// From the records of an NVMe drive under dm-crypt and ext4, `TestData/test.1` of the GitHub repository
    /// OxDeadmeat/blktrace_merge.
    #[test]
    fn flushes_of_a_real_drive_are_no_requests() {
        let text = "#Maj,Mn CPU   SeqNo     Seconds     PID  Evt Typ Sector   +Len Description\n\
                    259,0    3       70     0.023997320  1867  A  WS 575513040 + 8 <- (253,3) 407738832\n\
                    259,0    3       72     0.023997395  1867  Q  WS 592294352 + 8 [dmcrypt_write/2]\n\
                    259,0    3      115     0.024002149  1867  D  WS 592294352 + 88 [dmcrypt_write/2]\n\
                    259,0    3      116     0.024098235     0  C  WS 592294352 + 88 [0]\n\
                    259,0   11        1     0.024124329  1889  A FWFS 575480360 + 0 <- (253,3) 407706152\n\
                    259,0   11        2     0.024124474  1889  Q FWFS [jbd2/dm-4-8]\n\
                    259,0   11        4     0.024133625   612  D  FN [kworker/11:1H]\n\
                    259,0   11        5     0.024899010     0  C  FN 0 [0]\n\
                    259,0   11        6     0.024903271     0  C WFS 575480360 [0]\n";
        for (action, bytes) in [(Action::Queue, 4096), (Action::Issue, 88 * 512), (Action::Complete, 88 * 512)] {
            let trace = decode_any("t", text.as_bytes(), &with(action)).unwrap();
            assert_eq!((trace.writes, trace.write_bytes), (1, bytes), "{action:?}");
        }
    }

    /// As blkparse 1.3.0 prints them: with `-t`, with control groups, to the standard output.
    #[test]
    fn lines_beside_requests_are_no_requests() {
        let text = "Input file sda.blktrace.0 added\n\
                    8,0 0 2 0.001 697 D R 36 (12 00 00 00 24 ..) [smartd]\n\
                    8,0 0 3 0.002 0 C WFS 5754 (    1234) [0]\n\
                    8,0 3 0 0.003 697 1,1  m   N bfq x\n";
        let again = "8,0 3 9 1.0 697 Q W 8 + 8 [x]\n";
        let trace = decode_any("t", [text, TEXT, again].concat().as_bytes(), &Options::default()).unwrap();
        assert_eq!((trace.format, trace.requests.len(), trace.duration_ns()), ("blkparse", 3, 1_000_000_000));
    }

    #[test]
    fn a_summary_hides_no_fault_of_a_later_record() {
        let text = TEXT.to_owned() + "8,0 3 9 1.0 697 Q W 8 + -8 [x]\n";
        let error = decode_any("t", text.as_bytes(), &Options::default()).unwrap_err();
        assert!(error.to_string().starts_with("t: line 12: field `sectors` is negative"), "{error}");
    }

    #[test]
    fn without_queue_records_the_issue_stands_in() {
        let text: String = TEXT.lines().filter(|line| !line.contains(" Q ")).map(|line| format!("{line}\n")).collect();
        let trace = decode_any("t", text.as_bytes(), &Options::default()).unwrap();
        assert_eq!(trace.requests.len(), 2);
        assert!(trace.warnings[0].starts_with("no `Q` (queue) records"), "{:?}", trace.warnings);
        let error = decode_any("t", text.as_bytes(), &with(Action::Queue)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoRequests);
        assert!(error.to_string().contains("only 2 `D` and 1 `C`; hint: take those with `--action D`"), "{error}");
    }

    /// A recording may begin between the steps of a request.
    #[test]
    fn records_before_the_first_queue_record_are_no_requests() {
        let before = "8,0 3 1 0.0 1 C R 64 + 8 [0]\n8,0 3 2 0.0 1 D R 72 + 8 [x]\n";
        let trace = read_as(&FORMAT, (before.to_owned() + TEXT).as_bytes());
        assert_eq!((trace.requests.len(), trace.reads, trace.read_bytes), (2, 1, 8192));
        assert!(trace.warnings.is_empty(), "{:?}", trace.warnings);
        let alone = read_as(&FORMAT, before.as_bytes());
        assert_eq!((alone.requests.len(), alone.requests[0].sector), (1, 72));
    }

    #[test]
    fn faults_name_line_and_field() {
        let good = TEXT.lines().next().unwrap().to_owned() + "\n";
        for (line, field, what) in [
            ("8,0 3 1 0.0 697 Q W 223490 - 8 [x]", "+", "is another character"),
            ("8,0 3 1 0.0 697 Q W 223490 + -8 [x]", "sectors", "is negative"),
            ("8,0 3 1 0.0 697 Q w 223490 + 8 [x]", "RWBS", "is not capital letters"),
            ("8 3 1 0.0 697 Q W 223490 + 8 [x]", "major,minor", "is no device number"),
            ("8,0 3 1 0.0 697 7 W 223490 + 8 [x]", "action", "is no action"),
            ("8,0 3 1 0.0 697", "action", "is missing"),
        ] {
            fault_of(&FORMAT, &good, line, field, what);
        }
    }
}
