//! Detection among the formats with five numeric columns: DiskSim, SSDsim/MQSim and the replayers' ASCII.
//!
//! These formats differ only in units, so detection uses the values. Byte-addressed traces have offsets and sizes that
//! are multiples of 512. Sector numbers and counts are almost never all multiples of 512, unless all requests are as
//! large and as aligned as 256 KiB. Milliseconds have decimals; nanoseconds and microseconds have none and large gaps.

use super::detect::Sample;
use super::lines::{Fields, Lines, whole};

/// Units of the five columns.
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
/// Mean count above which sectors are no more likely than bytes: 1 MiB for each request.
const LARGE_MEAN_COUNT: u64 = 2048;
/// Mean gap of whole time stamps below which they may be milliseconds.
const SMALL_GAP: u64 = 100;

/// Whether the values of the sample allow this reading.
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
    // Byte-addressed traces may have a few odd records; in sector-addressed ones few records are aligned by chance.
    let most = rows - rows / 10;
    let bytes_fit = aligned >= most;
    // Offsets and sizes in files have no alignment. Sectors of large requests are aligned at least to 4 KiB.
    let bytes = bytes_fit || (sum / rows > LARGE_MEAN_COUNT && blocks < most);
    let sectors = !bytes_fit || round;
    let milliseconds = decimal || last.saturating_sub(first) / rows < SMALL_GAP;
    match reading {
        Reading::MillisecondsAndSectors => sectors && milliseconds,
        Reading::TicksAndSectors => sectors && !decimal,
        Reading::MillisecondsAndBytes => bytes && milliseconds,
    }
}

/// Number of preceding requests that a request may continue, because several streams are interleaved.
const STREAMS: usize = 16;
/// Lines of a file that are searched for requests that continue others.
const CONTINUED_LINES: usize = 20_000;
/// Least number of continuing requests for a decision, and least ratio between the two readings.
const CONTINUED_MIN: u64 = 50;
const CONTINUED_TIMES: u64 = 8;
/// 512-byte blocks of a page of 4 KiB.
const PAGE_BLOCKS: u64 = 8;
/// If sizes are pages, at least one in this number is no multiple of eight. Otherwise nearly all requests would be
/// multiples of 32 KiB.
const ODD_OF: u64 = 10;

/// Number of requests that begin at the end of one of the 16 requests before them in only one of two readings: sizes in
/// 512-byte blocks, or in 4-KiB pages. Addresses are in blocks in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Continued {
    pub blocks: u64,
    pub pages: u64,
    requests: u64,
    /// Requests whose size is no multiple of eight.
    odd: u64,
}

impl Continued {
    /// Counts over requests, given as first block and size in the file's unit.
    pub(super) fn of(requests: impl Iterator<Item = (u64, u64)>) -> Self {
        let (mut found, mut ends, mut next) = (Self::default(), [(u64::MAX, u64::MAX); STREAMS], 0);
        for (block, count) in requests {
            let as_blocks = ends.iter().any(|end| end.0 == block);
            let as_pages = ends.iter().any(|end| end.1 == block);
            found.requests += 1;
            found.odd += u64::from(!count.is_multiple_of(PAGE_BLOCKS));
            found.blocks += u64::from(as_blocks && !as_pages);
            found.pages += u64::from(as_pages && !as_blocks);
            ends[next] = (block.saturating_add(count), block.saturating_add(count.saturating_mul(PAGE_BLOCKS)));
            next = (next + 1) % STREAMS;
        }
        found
    }

    /// Whether the sizes are certainly pages. A stride of eight requests looks like pages, too, but has other sizes.
    pub(super) fn are_pages(&self) -> bool {
        let continues = self.pages >= CONTINUED_MIN && self.pages >= CONTINUED_TIMES * self.blocks;
        continues && self.odd >= self.requests / ODD_OF
    }

    /// Whether the sizes may be pages.
    pub(super) fn may_be_pages(&self) -> bool {
        self.pages >= 2 * self.blocks.max(1)
    }
}

/// Whether a file of five columns has sizes in 4-KiB pages and addresses in 512-byte blocks, like FlashSim's.
pub(super) fn counts_pages(sample: &Sample<'_>) -> bool {
    let requests = Lines::new(sample.bytes).take(CONTINUED_LINES).filter_map(|(_, line)| {
        let mut fields = Fields::blanks(line);
        let mut field = || fields.optional().unwrap_or_default();
        let (_, _, block, count) = (field(), field(), field(), field());
        Some((whole(block, "").ok()?, whole(count, "").ok()?))
    });
    Continued::of(requests).are_pages()
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
    fn sectors_of_large_requests_in_nanoseconds_are_no_bytes() {
        let text = "0 0 0 4096 1\n1500000 0 151552 4096 0\n3000000 0 303104 4096 1\n";
        assert_eq!(detect("x", text.as_bytes()).unwrap_err().kind(), ErrorKind::Undetected);
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

    #[test]
    fn sizes_in_pages_are_known_by_requests_that_continue_others() {
        use std::fmt::Write;
        // Two interleaved sequential streams with different request sizes.
        let text = |unit: u64| {
            let (mut text, mut streams) = (String::new(), [1000, 900_000]);
            for number in 0..200u64 {
                let count = 1 + number % 3;
                let at = &mut streams[(number % 2) as usize];
                writeln!(text, "{}.5 0 {at} {count} 0", number * 7).unwrap();
                *at += count * unit;
            }
            text
        };
        assert_eq!(name(&text(8)), Ok("flashsim"));
        assert_eq!(name(&text(1)), Ok("disksim"));
        let few: String = text(8).lines().take(40).map(|line| format!("{line}\n")).collect();
        assert_eq!(name(&few), Ok("disksim"), "forty requests decide nothing");
    }

    #[test]
    fn a_stride_of_eight_requests_is_no_sign_of_pages() {
        // IOzone reads and writes every eighth record of 256 KiB. The rest of a trace has few other sizes.
        let line = |number: u64| {
            format!("{}.5 0 {} {} 0\n", number * 7, 16 + number * 4096, if number % 50 == 9 { 9 } else { 512 })
        };
        assert_eq!(name(&(0..400).map(line).collect::<String>()), Ok("disksim"));
    }
}
