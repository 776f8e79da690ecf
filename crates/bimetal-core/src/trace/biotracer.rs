//! BIOtracer: block I/O of Android phones' eMMC (Zhou et al., IISWC 2015).
//!
//! Eight columns: start sector, sectors, bytes, type (bit 0: write; bit 2: the queue was empty), and the times at which
//! the request was generated, processed, submitted and finished, in seconds.
//!
//! Traps: the clock jumps by years (uptime, then 1970, then network time), also backwards. So the order of records is
//! kept, and after a jump the time continues from its last value. Rows slightly out of time order get the arrival of
//! the previous row. The sector count and the byte count of a record agree in sound files only; a record in which they
//! differ is an error.

use super::collect::{Row, count};
use super::detect::{self, Likeness, Sample};
use super::error::{ErrorKind, Fault, Parsed, TraceError};
use super::lines::{self, Fields};
use super::{Format, Input, Shared, TimeUnit, Trace};
use crate::request::Op;

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "biotracer",
    aliases: &[],
    summary: "BIOtracer logs of phones' eMMC (IISWC 2015)",
    layout: "sector sectors bytes type generate process submit finish: type bit 0 = write, seconds",
    time_unit: Some(TimeUnit::Seconds),
    has_actions: false,
    has_objects: false,
    has_columns: false,
    shared: Shared::Nothing,
    probe,
    decode,
};

/// A step back longer than this is a clock set back, not a record out of order.
const STEP_BACK_NS: u64 = 60_000_000_000;
/// A step forward longer than this (a day) is a clock set forward, not a quiet phone.
const STEP_FORWARD_NS: u64 = 86_400_000_000_000;

#[inline]
fn row(line: &[u8], unit: TimeUnit) -> Parsed<Option<Row>> {
    let mut fields = Fields::blanks(line);
    let offset = fields.sectors("sector")?;
    let sector_bytes = fields.sectors("sectors")?;
    let text = fields.next("bytes")?;
    let bytes = lines::whole(text, "bytes")?;
    if bytes != sector_bytes {
        return Err(Fault::field(ErrorKind::Field, "bytes", "is not 512 times the sectors", text));
    }
    let op = if fields.whole("type")? & 1 == 1 { Op::Write } else { Op::Read };
    let time_ns = fields.time("generate", unit)?;
    for field in ["process", "submit", "finish"] {
        fields.time(field, unit)?;
    }
    fields.end()?;
    Ok(Some(Row { time_ns, device: 0, offset, bytes, op }))
}

fn probe(sample: &Sample<'_>) -> Likeness {
    detect::probe(sample, "", |line| row(line, TimeUnit::Seconds))
}

/// A clock that never runs backwards, derived from one that does.
#[derive(Default)]
struct SteadyClock {
    /// Last stamp of the source.
    source: Option<u64>,
    /// Latest stamp of the source since the last jump.
    latest: u64,
    /// The steady time of `latest`.
    steady: u64,
    jumps: u64,
    late: u64,
}

impl SteadyClock {
    fn steady_ns(&mut self, stamp: u64) -> u64 {
        let Some(last) = self.source.replace(stamp) else {
            (self.latest, self.steady) = (stamp, stamp);
            return stamp;
        };
        let jump = last.saturating_sub(stamp) > STEP_BACK_NS || stamp.saturating_sub(last) > STEP_FORWARD_NS;
        if jump {
            self.jumps += 1;
            self.latest = stamp;
        } else if stamp < self.latest {
            self.late += 1;
        } else {
            self.steady = self.steady.saturating_add(stamp - self.latest);
            self.latest = stamp;
        }
        self.steady
    }
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let unit = input.time_unit();
    let mut clock = SteadyClock::default();
    let mut collector = lines::decode(input, "", |line| {
        let mut row = row(line, unit)?;
        if let Some(row) = &mut row {
            row.time_ns = clock.steady_ns(row.time_ns);
        }
        Ok(row)
    })?;
    if clock.jumps > 0 {
        collector.warn(format!("{} of the phone's clock: time goes on from where it was", count(clock.jumps, "jump")));
    }
    if clock.late > 0 {
        let late = count(clock.late, "row");
        collector.warn(format!("{late} earlier than one before: the file's order is kept, at the time reached"));
    }
    collector.finish(input)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fault_of, read_as};
    use super::*;

    const LINES: &str = "0\t\t8\t\t4096\t\t4\t\t1.740780627\t\t1.740812815\t\t1.740851877\t\t1.741075471\n\
                         61071320 8 4096 5 1.741969273 1.7 1.7 1.7\n";

    #[test]
    fn the_published_syntax() {
        let trace = read_as(&FORMAT, LINES.as_bytes());
        assert_eq!((trace.requests[0].op, trace.requests[1].op), (Op::Read, Op::Write));
        assert_eq!(trace.duration_ns(), 1_188_646);
    }

    #[test]
    fn record_order_survives_clock_jumps() {
        let text = "8 8 4096 1 100.0 1 1 1\n\
                    16 8 4096 1 101.0 1 1 1\n\
                    24 8 4096 1 1398396860.5 1 1 1\n\
                    32 8 4096 1 1398396860.25 1 1 1\n\
                    40 8 4096 1 1398396861.0 1 1 1\n\
                    48 8 4096 1 5.0 1 1 1\n\
                    56 8 4096 1 6.0 1 1 1\n";
        let trace = read_as(&FORMAT, text.as_bytes());
        let arrivals: Vec<_> = trace.requests.iter().map(|request| request.arrival_ns / 1_000_000).collect();
        assert_eq!(arrivals, [0, 1000, 1000, 1000, 1500, 1500, 2500]);
        assert!(trace.requests.is_sorted_by_key(|request| request.sector));
        assert!(trace.warnings[0].contains("2 jumps"), "{:?}", trace.warnings);
        assert!(trace.warnings[1].contains("1 row earlier than one before"), "{:?}", trace.warnings);
    }

    #[test]
    fn faults_name_line_and_field() {
        for (line, field, what) in [
            ("0 8 4097 4 1 1 1 1", "bytes", "is not 512 times the sectors"),
            ("0 8 4096 4 1 1 1", "finish", "is missing"),
            ("0 8 4096 4 -1 1 1 1", "generate", "is negative"),
            ("-8 8 4096 4 1 1 1 1", "sector", "is negative"),
        ] {
            fault_of(&FORMAT, LINES, line, field, what);
        }
    }
}
