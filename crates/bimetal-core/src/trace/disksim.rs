//! DiskSim ASCII, and FlashSim's dialect of it.
//!
//! `time devno blkno bcount flags`, scanned by DiskSim as `"%lf %d %lld %d %x"`: decimal milliseconds, 512-byte blocks,
//! and **hexadecimal** flags whose bit 0 is set for a read (DiskSim 4.0, disksim_iotrace.c).
//!
//! Trap: FlashSim's files look the same but have sizes in 4-KiB **pages**, while addresses are in 512-byte blocks. The
//! formats differ in the number of requests that continue others: thousands with the right unit, and almost none with
//! the wrong one. A stride of eight requests is no such sign: sizes that are nearly all multiples of eight are blocks.
//! If that is inconclusive, sizes are read as blocks, with a warning if they may be pages.

use super::collect::Row;
use super::columns::{self, Continued, Reading};
use super::detect::{self, Likeness, Sample};
use super::error::{ErrorKind, Fault, Parsed, TraceError};
use super::lines::{self, Fields};
use super::{Format, Input, Shared, TimeUnit, Trace};
use crate::request::{Op, SECTOR_BYTES};

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "disksim",
    aliases: &[],
    summary: "DiskSim ASCII",
    layout: "time device block count flags: milliseconds, 512-byte blocks, hexadecimal flags with bit 0 = read",
    time_unit: Some(TimeUnit::Milliseconds),
    has_actions: false,
    has_objects: false,
    has_columns: false,
    shared: Shared::Nothing,
    probe,
    decode,
};

/// The entry of FlashSim's dialect in [`super::FORMATS`].
pub static FLASHSIM: Format = Format {
    name: "flashsim",
    aliases: &[],
    summary: "FlashSim ASCII: DiskSim with sizes in 4-KiB pages",
    layout: "time device block pages flags: milliseconds, 512-byte blocks, 4-KiB pages, hexadecimal flags with bit 0 = read",
    time_unit: Some(TimeUnit::Milliseconds),
    has_actions: false,
    has_objects: false,
    has_columns: false,
    shared: Shared::Nothing,
    probe: probe_flashsim,
    decode: decode_flashsim,
};

/// Bytes of FlashSim's page.
const PAGE_BYTES: u64 = 4096;
/// Mean request size below which sizes are probably pages, in bytes if read as blocks.
const SMALL_MEAN_BYTES: u64 = 4 * SECTOR_BYTES;

#[inline]
fn row(line: &[u8], unit: TimeUnit, count_bytes: u64) -> Parsed<Option<Row>> {
    let mut fields = Fields::blanks(line);
    let time_ns = fields.time("time", unit)?;
    let device = fields.whole("device")?;
    let offset = fields.sectors("block")?;
    let text = fields.next("count")?;
    let count = lines::whole(text, "count")?;
    let Some(bytes) = count.checked_mul(count_bytes) else {
        return Err(Fault::field(ErrorKind::Range, "count", "lies beyond 2^64 bytes", text));
    };
    let op = if hexadecimal(fields.next("flags")?)? & 1 == 1 { Op::Read } else { Op::Write };
    fields.end()?;
    Ok(Some(Row { time_ns, device, offset, bytes, op }))
}

/// Parses flags like C's `%x`.
#[inline]
fn hexadecimal(text: &[u8]) -> Parsed<u64> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    let value = digits.iter().try_fold(0u64, |value, &digit| match (digit as char).to_digit(16) {
        Some(digit) if value < 1 << 28 => Some(value << 4 | u64::from(digit)),
        _ => None,
    });
    let value = value.filter(|_| !digits.is_empty());
    value.ok_or_else(|| Fault::field(ErrorKind::Field, "flags", "is not a hexadecimal number of 32 bits", text))
}

fn probe_any(sample: &Sample<'_>) -> Likeness {
    if !columns::allow(sample, Reading::MillisecondsAndSectors) {
        return Likeness::No;
    }
    detect::probe(sample, "", |line| row(line, TimeUnit::Milliseconds, SECTOR_BYTES))
}

fn probe(sample: &Sample<'_>) -> Likeness {
    let likeness = probe_any(sample);
    if likeness == Likeness::All && columns::counts_pages(sample) { Likeness::No } else { likeness }
}

fn probe_flashsim(sample: &Sample<'_>) -> Likeness {
    let likeness = probe_any(sample);
    if likeness == Likeness::All && columns::counts_pages(sample) { likeness } else { Likeness::No }
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let unit = input.time_unit();
    let mut trace = lines::decode(input, "", |line| row(line, unit, SECTOR_BYTES))?.finish(input)?;
    let requests = trace.requests.len() as u64;
    let is_small = requests >= 100 && (trace.read_bytes + trace.write_bytes) / requests < SMALL_MEAN_BYTES;
    let continued = Continued::of(trace.requests.iter().map(|request| (request.sector, request.sectors.into())));
    if is_small || requests >= 100 && continued.may_be_pages() {
        let Continued { blocks, pages, .. } = continued;
        trace.warnings.push(format!(
            "sizes are taken as 512-byte blocks ({blocks} requests continue an earlier one), and may be FlashSim's 4-KiB pages \
             ({pages} do): if they are, use `--format flashsim`"
        ));
    }
    Ok(trace)
}

fn decode_flashsim(input: &Input<'_>) -> Result<Trace, TraceError> {
    let unit = input.time_unit();
    let mut trace = lines::decode(input, "", |line| row(line, unit, PAGE_BYTES))?.finish(input)?;
    if input.options.format.is_none() {
        let blocks_of_page = (PAGE_BYTES / SECTOR_BYTES) as u32;
        let requests = trace.requests.iter().map(|request| (request.sector, (request.sectors / blocks_of_page).into()));
        let Continued { blocks, pages, .. } = Continued::of(requests);
        trace.warnings.push(format!(
            "sizes are taken as FlashSim's 4-KiB pages ({pages} requests continue an earlier one), not as DiskSim's 512-byte \
             blocks ({blocks} would): if they are blocks, use `--format disksim`"
        ));
    }
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fault_of, read_as};
    use super::*;
    use crate::request::Request;

    const LINES: &str = "0.000000 0 303560 16 0\r\n26.214000\t\t0\t741200 16 b\r\n";

    #[test]
    fn the_published_syntax() {
        let trace = read_as(&FORMAT, LINES.as_bytes());
        let second = Request { arrival_ns: 26_214_000, sector: 741_200, sectors: 16, op: Op::Read, handle: 0 };
        assert_eq!(trace.requests[1], second);
        assert_eq!((trace.reads, trace.writes), (1, 1));
    }

    #[test]
    fn flashsim_counts_pages() {
        let trace = read_as(&FLASHSIM, b"26.214000\t0\t303574\t2\t0\n");
        assert_eq!((trace.requests[0].sector, trace.requests[0].sectors), (303_574, 16));
        let small = read_as(&FORMAT, "26.214000\t0\t303574\t2\t0\n".repeat(100).as_bytes());
        assert!(small.warnings.iter().any(|warning| warning.contains("use `--format flashsim`")));
    }

    #[test]
    fn faults_name_line_and_field() {
        for (line, field, what) in [
            ("0.5 0 1 8", "flags", "is missing"),
            ("0.5 0 1 8 g", "flags", "is not a hexadecimal number"),
            ("0.5 0 1 8 0x", "flags", "is not a hexadecimal number"),
            ("0.5 0 1 8 100000000", "flags", "is not a hexadecimal number"),
            ("0.5 0 1 -8 1", "count", "is negative"),
            ("0.5 0 1 99999999999999999 1", "count", "lies beyond"),
            ("-0.5 0 1 8 1", "time", "is negative"),
            ("0.5 0 1 8 1 1", "", "too many fields"),
        ] {
            fault_of(&FORMAT, LINES, line, field, what);
        }
    }
}
