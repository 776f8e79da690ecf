//! SSDsim and MQSim ASCII.
//!
//! `time device lsn sectors op`: a whole time stamp, 512-byte sectors, 1 for a read and 0 for a write (MQSim, README;
//! SSDsim, pre_process.c).
//!
//! Trap: the file does not state the unit of time. It is nanoseconds for SSDsim and by default for MQSim, but MQSim
//! also accepts picoseconds and microseconds, and such files circulate. A wrong unit shows as an absurd mean
//! inter-arrival time, which causes a warning. `--time-unit` sets the unit.

use super::collect::Row;
use super::columns::{self, Reading};
use super::detect::{self, Likeness, Sample};
use super::error::{Parsed, TraceError};
use super::lines::{self, Fields};
use super::{Format, Input, Shared, TimeUnit, Trace};

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "mqsim",
    aliases: &["ssdsim"],
    summary: "SSDsim and MQSim ASCII",
    layout: "time device sector count op: whole nanoseconds (or `--time-unit`), 512-byte sectors, 1 = read, 0 = write",
    time_unit: Some(TimeUnit::Nanoseconds),
    has_actions: false,
    has_objects: false,
    has_columns: false,
    shared: Shared::Nothing,
    probe,
    decode,
};

/// Mean gap below which nanoseconds are doubtful. Traces of disks and SSDs have longer ones.
const SHORT_GAP_NS: u64 = 10_000;

#[inline]
fn row(line: &[u8], unit: TimeUnit) -> Parsed<Option<Row>> {
    let mut fields = Fields::blanks(line);
    let text = fields.next("time")?;
    if text.contains(&b'.') {
        lines::whole(text, "time")?; // a decimal is another format's time
    }
    let time_ns = lines::time(text, "time", unit)?;
    let device = fields.whole("device")?;
    let offset = fields.sectors("sector")?;
    let bytes = fields.sectors("count")?;
    let op = fields.digit("op", b'1')?;
    fields.end()?;
    Ok(Some(Row { time_ns, device, offset, bytes, op }))
}

fn probe(sample: &Sample<'_>) -> Likeness {
    if !columns::allow(sample, Reading::TicksAndSectors) {
        return Likeness::No;
    }
    detect::probe(sample, "", |line| row(line, TimeUnit::Nanoseconds))
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let unit = input.time_unit();
    let mut trace = lines::decode(input, "", |line| row(line, unit))?.finish(input)?;
    let is_guess = input.options.format.is_none() && input.options.time_unit.is_none();
    let gaps = trace.requests.len().saturating_sub(1) as u64;
    if is_guess && trace.duration_ns().checked_div(gaps).is_some_and(|gap| gap < SHORT_GAP_NS) {
        trace.warnings.push(
            "whole time stamps are taken as nanoseconds, a mean of less than 10 us apart: if they are microseconds, use \
             `--time-unit us`; if milliseconds, `--format disksim`"
                .to_owned(),
        );
    }
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::super::testing::{fault_of, read_as};
    use super::*;
    use crate::request::{Op, Request};

    const LINES: &str = "11413000 0 657728 16 1\n11565000 1 31244784 64 0\n60066625000 1 34371424 64 1";

    #[test]
    fn the_published_syntax_with_a_last_line_without_end() {
        let trace = read_as(&FORMAT, LINES.as_bytes());
        assert_eq!(trace.requests[0], Request { arrival_ns: 0, sector: 657_728, sectors: 16, op: Op::Read, handle: 0 });
        assert_eq!(trace.requests[1].op, Op::Write);
        assert_eq!((trace.requests.len(), trace.duration_ns()), (3, 60_066_625_000 - 11_413_000));
    }

    #[test]
    fn the_unit_can_be_set_and_a_wrong_one_shows() {
        // Microseconds, as in Microsoft's production traces that were converted for SSDsim.
        let text: String = (0..400).map(|i| format!("{} 0 {} 128 1\n", i * 979, i * 128)).collect();
        let wrong = read_as(&FORMAT, text.as_bytes());
        assert!(
            wrong.warnings[0].starts_with("mean rate of 67.1 GB/s: is the time unit right?"),
            "{:?}",
            wrong.warnings
        );
        let options = Options { format: Some(&FORMAT), time_unit: Some(TimeUnit::Microseconds), ..Options::default() };
        let right = super::super::decode("t", text.as_bytes(), &options).unwrap();
        assert!(right.warnings.is_empty());
        assert_eq!(right.duration_ns(), 399 * 979_000);
    }

    #[test]
    fn whole_milliseconds_are_doubted() {
        let text: String = (0..300).map(|i| format!("{} 0 {} 8 {}\n", i * 1000, i * 63_352 % 999_999, i % 2)).collect();
        let trace = super::super::decode("t", text.as_bytes(), &Options::default()).unwrap();
        assert_eq!(trace.format, "mqsim");
        assert!(trace.warnings.iter().any(|warning| warning.contains("`--format disksim`")), "{:?}", trace.warnings);
    }

    #[test]
    fn faults_name_line_and_field() {
        let good = "11413000 0 657728 16 1\n";
        for (line, field, what) in [
            ("26.214 0 1 8 1", "time", "is not a whole number"),
            ("26 0 1 8 2", "op", "is neither `0` nor `1`"),
            ("26 0 1 -8 1", "count", "is negative"),
            ("26 0 1", "count", "is missing"),
            ("26 0 1 8 1 0", "", "too many fields"),
        ] {
            fault_of(&FORMAT, good, line, field, what);
        }
    }
}
