//! Telling apart the formats that are five columns of numbers: DiskSim, SSDsim/MQSim and the replayers' ASCII.
//!
//! They differ in units only, so this looks at the values. Byte-addressed traces have offsets and sizes that are
//! multiples of 512, which sector numbers and counts all being is next to impossible unless requests are as large and
//! as aligned as 256 KiB throughout. Milliseconds have decimals; nanoseconds and microseconds have none and large gaps.

use super::detect::Sample;
use super::lines::{Fields, whole};

/// A way to read five columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Decimal milliseconds, 512-byte sectors.
    MillisecondsAndSectors,
    /// Whole small units of time, 512-byte sectors.
    TicksAndSectors,
    /// Decimal milliseconds, bytes.
    MillisecondsAndBytes,
}

/// Largest count that is plausible both as bytes and as sectors (1 MiB), if requests are aligned to their size.
const ROUND_COUNT: u64 = 2048;
/// Mean count above which sectors are no likelier than bytes: 1 MiB a request.
const LARGE_MEAN_COUNT: u64 = 2048;
/// Mean gap of whole stamps below which they may be milliseconds.
const SMALL_GAP: u64 = 100;

/// Whether the sample's values allow a reading.
pub(super) fn allow(sample: &Sample<'_>, reading: Reading) -> bool {
    let (mut rows, mut sum, mut aligned, mut blocks) = (0u64, 0u64, 0u64, 0u64);
    let (mut round, mut decimal) = (true, false);
    let (mut first, mut last) = (u64::MAX, 0u64);
    for (_, line) in sample.all_lines() {
        let mut fields = Fields::blanks(line);
        let mut field = || fields.optional().unwrap_or_default();
        let (time, _, offset, count) = (field(), field(), field(), field());
        let (Ok(offset), Ok(count)) = (whole(offset, ""), whole(count, "")) else {
            continue;
        };
        rows += 1;
        sum = sum.saturating_add(count);
        blocks += u64::from((offset | count).is_multiple_of(8));
        if (offset | count).is_multiple_of(512) {
            aligned += 1;
            round &= count <= ROUND_COUNT && offset.is_multiple_of(count.max(1));
        }
        match whole(time, "") {
            Ok(time) => (first, last) = (first.min(time), last.max(time)),
            Err(_) => decimal = true,
        }
    }
    if rows == 0 {
        return false;
    }
    // Byte-addressed traces may have a few odd records; sector-addressed ones have few that happen to be aligned.
    let most = rows - rows / 10;
    let bytes_fit = aligned >= most;
    // Files' offsets and sizes are aligned to nothing; sectors are so at least to 4 KiB, where requests are large.
    let bytes = bytes_fit || (sum / rows > LARGE_MEAN_COUNT && blocks < most);
    let sectors = !bytes_fit || round;
    let milliseconds = decimal || last.saturating_sub(first) / rows < SMALL_GAP;
    match reading {
        Reading::MillisecondsAndSectors => sectors && milliseconds,
        Reading::TicksAndSectors => sectors && !decimal,
        Reading::MillisecondsAndBytes => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::super::detect;
    use super::super::error::ErrorKind;

    fn name(text: &str) -> Result<&'static str, String> {
        detect("x", text.as_bytes()).map(|format| format.name).map_err(|error| {
            assert_eq!(error.kind(), ErrorKind::Ambiguous);
            error.to_string()
        })
    }

    #[test]
    fn values_tell_the_unit() {
        assert_eq!(name("0.000000 0 303560 16 0\n26.214000 0 303568 16 1\n"), Ok("disksim"));
        assert_eq!(name("5 0 303560 16 a\n6 0 303568 16 1\n"), Ok("disksim")); // hexadecimal flags
        assert_eq!(name("11413000 0 657728 16 1\n11565000 1 31244784 64 1\n"), Ok("mqsim"));
        assert_eq!(name("0 0 280605840 2 1\n979 0 287641400 128 1\n"), Ok("mqsim"));
        assert_eq!(name("0.000 0 200626176 4096 0\n223.412 0 3159347200 36864 0\n"), Ok("replayer"));
    }

    #[test]
    fn what_values_do_not_tell_is_asked() {
        let error = name("5 0 303560 16 1\n6 0 303568 16 1\n").unwrap_err();
        assert!(error.contains("`disksim`, `mqsim`") && error.contains("`--format`"), "{error}");
        let error = name("0.5 0 512 512 1\n0.9 0 1024 512 1\n").unwrap_err();
        assert!(error.contains("`disksim`, `replayer`"), "{error}");
        let error = name("0.5 0 77 10001 1\n0.9 0 10078 12345 1\n").unwrap_err();
        assert!(error.contains("`disksim`, `replayer`"), "{error}");
        assert_eq!(name("0.5 0 512 512 1\n0.9 0 1536 1024 1\n"), Ok("replayer"));
    }
}
