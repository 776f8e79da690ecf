//! `wlaftl`: stands in for the six traces of WLAFTL (2018): UMass Financial1, two synthetic ones of DiskSim, three of a PC.
//!
//! Table 2 of the paper is legible for two traces, and Financial1 is known from elsewhere. The sizes of the writes
//! follow from the three static thresholds of table 3, never from WLAFTL's own column. A threshold of `k` KB sends
//! writes of up to `k` KB to SLC blocks of 128 KB, and the others to MLC blocks of 512 KB. In the long run the erased
//! bytes equal the written bytes. So the bytes of four classes of sizes, in units of 128 KB, are: the SLC erases at 4
//! KB, their increases at 8 and at 16 KB, and four times the MLC erases at 16 KB:
//!
//! | trace | ≤ 4 KB | ≤ 8 KB | ≤ 16 KB | larger | sum | shares |
//! |---|---|---|---|---|---|---|
//! | Fin1 | 82298 | 82376 − 82298 = 78 | 0 | 4 × 4561 = 18244 | 12.3 GB | 0.818, 0.001, 0, 0.181 |
//! | Sys | 30652 | 39838 − 30652 = 9186 | 4478 | 4 × 5083 = 20332 | 7.9 GB | 0.474, 0.142, 0.069, 0.315 |
//! | Test1 | 32431 | 0 | 0 | (4 × 938) | 4.0 GB | 1 |
//! | Test2 | 8369 | 43478 − 8369 = 35109 | 51228 | 4 × 8353 = 33412 | 15.6 GB | 0.065, 0.274, 0.400, 0.261 |
//! | Iotrace1 | 10237 | 51160 − 10237 = 40923 | 30916 | 4 × 7501 = 30004 | 13.7 GB | 0.091, 0.365, 0.276, 0.268 |
//! | Iotrace2 | 77801 | 132222 − 77801 = 54421 | 22573 | 4 × 28776 = 115104 | 32.9 GB | 0.288, 0.202, 0.084, 0.426 |
//!
//! Migration, collection and the device's initial free space add errors. If the written bytes are known (Fin1 14.5 GB,
//! Test1 4.05 GB, Iotrace2 27.4 GB), the sums are 0.85, 0.98 and 1.20 of them. For Test1, the SLC erases alone give its
//! bytes at any threshold; its MLC erases are migrations and are left out.
//!
//! | trace | requests | writes | mean write |
//! |---|---|---|---|
//! | Fin1 | 5,334,987 | 4,099,354 | 3.7 KB: UMass Financial1 |
//! | Test1 | 3,181,345 | 50.0 % | 2.67 KB: table 2 |
//! | Iotrace2 | 9,033,809 | 53.4 % | 5.95 KB: table 2 |
//! | Test2 | from its sum | as Test1 | from the shares |
//! | Sys, Iotrace1 | from their sums | as Iotrace2, of the same PC | from the shares |
//!
//! Chosen before any scheme was run on it:
//! - Writes of up to 4 KB have 2 or 4 KB, the pages of the two chips, in a mix that gives the mean of table 2. Test2
//!   has the mix of Test1; Sys and Iotrace1 have that of Iotrace2. The other classes have 8, 16 and 64 KB. 64 KB is the
//!   largest size under Windows in Chang (2010, figure 7a).
//! - The address space is the capacity that 2 GB of MLC (section 4.1) export with 7 % in reserve, the usual difference
//!   between binary and decimal gigabytes: 1,904 MB. SLC adds nothing to it, since its data return to MLC.
//! - The frequency of updates is not published. The text states that small writes are hot and large ones cold. So each
//!   class has a part of the address space in proportion to its bytes, and all have the same mean rewrite interval.
//!   Among writes of up to 16 KB, the largest static threshold, popularity follows Zipf with the usual exponent of 0.99
//!   (as in `zipf`); larger ones are written in turn. This choice is the same for all six traces.
//! - Small data are in extents of 16 KiB and large ones in extents of 1 MiB.
//! - FlashSim is open loop. At 10 ms between arrivals even the largest mean write, 11.4 KB of Test2, all to MLC (table
//!   1: 800 µs for 4 KB), would take a ninth of the time, since half of the requests are reads.

use bimetal_core::part::real::whole;
use bimetal_core::profile::Profile;
use bimetal_core::scheme::ParameterError;
use bimetal_core::units::ByteSize;
use bimetal_core::workload::{Goal, Measure, Requests, Target, WorkloadSpec};

use super::rewrites::{self, Class, Order, Rewrites};
use super::{share, writes_of};

/// Registry entry.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "wlaftl",
    summary: "one of six traces by its sizes of writes: OLTP, synthetic, a PC; small data with Zipf popularity",
    source: "WLAFTL, Chinese Journal of Computers 2018, section 4.1, tables 2 and 3: stands in for its traces",
    parameters: Parameters::specs,
    targets,
    in_small: &[("requests", "120000")],
};

bimetal_core::choices! {
    /// A trace of the paper.
    pub enum Name {
        /// OLTP of UMass, Financial1.
        Fin1 = "fin1",
        /// A PC, by DiskMon.
        Sys = "sys",
        /// Synthetic, by DiskSim: small writes only.
        Test1 = "test1",
        /// Synthetic, by DiskSim: mostly writes of 8 and 16 KB.
        Test2 = "test2",
        /// A PC, by DiskMon: mostly writes of 8 and 16 KB.
        Iotrace1 = "iotrace1",
        /// A PC, by DiskMon: the longest.
        Iotrace2 = "iotrace2",
    }
}

bimetal_core::parameters! {
    SPEC.name;
    /// Parameters of `wlaftl`.
    pub struct Parameters {
        /// The trace of the paper.
        pub trace: Name = Name::Fin1;
        /// Largest number of requests; by default a trace ends after 2 to 9 million.
        pub requests: u64 = 10_000_000, in 1..=1_000_000_000;
        /// Bytes of the address space: 2 GB of MLC with 7 % in reserve.
        pub span: ByteSize = ByteSize(1904 << 20);
        /// Divides the address space and the length of the trace; request sizes stay.
        pub scale: u32 = 1, in 1..=128;
        /// Exponent of the popularity of data written in requests of up to 16 KB.
        pub theta: f64 = 0.99, in 0.0..=4.0;
        /// Share of the address space that has data, from its beginning.
        pub footprint: f64 = 1.0, in 0.01..=1.0;
        /// Space of the data written in requests of up to 16 KB, relative to their part in proportion to the bytes.
        pub small_space: f64 = 1.0, in 0.001..=1.0;
        /// Blocks of SLC that were written before the first was erased: their bytes are in writes of up to 4 KB.
        pub free_slc_blocks: u32 = 0, in 0..=4096;
        /// Bytes written in requests of up to 16 KB, relative to those that follow from table 3.
        pub small_bytes: f64 = 1.0, in 0.1..=10.0;
        /// Bytes written in larger requests, relative to those that follow from table 3.
        pub large_bytes: f64 = 1.0, in 0.1..=10.0;
        /// Mean time between arrivals in microseconds.
        pub interval_us: f64 = 10_000.0, in 0.0..=1e9;
    }
}

/// Known facts about a trace.
struct Known {
    /// Table 3: blocks of SLC erased at static thresholds of 4, 8 and 16 KB.
    slc_erases: [u32; 3],
    /// Table 3: blocks of MLC erased at 16 KB.
    mlc_erases: u32,
    row: Row,
    /// Blocks of SLC that were written before the first was erased.
    free_slc_blocks: u32,
    /// Written bytes by erased bytes, for writes of up to 16 KB and for larger ones.
    written_by_erased: (f64, f64),
}

/// The row of table 2.
enum Row {
    Legible {
        requests: u64,
        write_share: f64,
        mean_kib: f64,
    },
    /// Illegible: the share of writes and the sizes of the smallest ones come from a similar trace.
    Like(Name),
}

impl Name {
    fn known(self) -> Known {
        let legible = |requests, write_share, mean_kib| Row::Legible { requests, write_share, mean_kib };
        let known = |slc_erases, mlc_erases, row| {
            let (free_slc_blocks, written_by_erased) = (0, (1.0, 1.0));
            Known { slc_erases, mlc_erases, row, free_slc_blocks, written_by_erased }
        };
        match self {
            Self::Fin1 => {
                let (writes, reads) = (4_099_354, 1_235_633);
                let write_share = writes as f64 / (writes + reads) as f64;
                known([82_298, 82_376, 82_376], 4561, legible(writes + reads, write_share, 3.7))
            }
            Self::Sys => known([30_652, 39_838, 44_316], 5083, Row::Like(Self::Iotrace2)),
            Self::Test1 => known([32_431; 3], 0, legible(3_181_345, 0.5, 2.67)),
            Self::Test2 => known([8369, 43_478, 94_706], 8353, Row::Like(Self::Test1)),
            Self::Iotrace1 => known([10_237, 51_160, 82_076], 7501, Row::Like(Self::Iotrace2)),
            Self::Iotrace2 => known([77_801, 132_222, 154_795], 28_776, legible(9_033_809, 0.534, 5.9505)),
        }
    }
}

/// Largest KiB of a write that is small: the largest static threshold.
const SMALL_KIB: u64 = 16;
/// Bytes of contiguous large data.
const EXTENT: u64 = 1 << 20;

/// KiB of an SLC block and of an MLC block (table 1).
const SLC_BLOCK: f64 = 128.0;
const MLC_BLOCK: f64 = 512.0;

impl Known {
    /// KiB written by writes of up to 4, 8 and 16 KiB and by larger ones.
    fn written_kib(&self) -> [f64; 4] {
        let (small, large) = self.written_by_erased;
        let [to_4, to_8, to_16] =
            self.slc_erases.map(|erases| f64::from(erases + self.free_slc_blocks) * SLC_BLOCK * small);
        [to_4, to_8 - to_4, to_16 - to_8, f64::from(self.mlc_erases) * MLC_BLOCK * large]
    }

    /// Mean KiB of writes of up to 4 KiB.
    fn small_kib(&self) -> f64 {
        let [to_4, to_8, to_16, larger] = self.written_kib();
        match self.row {
            Row::Legible { mean_kib, .. } => {
                let writes = (to_4 + to_8 + to_16 + larger) / mean_kib;
                to_4 / (writes - to_8 / 8.0 - to_16 / 16.0 - larger / 64.0)
            }
            Row::Like(other) => other.known().small_kib(),
        }
    }

    /// Sizes of writes in KiB, largest first, with their number in the erased bytes.
    fn writes(&self) -> [(u64, f64); 5] {
        let [to_4, to_8, to_16, larger] = self.written_kib();
        let small = to_4 / self.small_kib();
        let of_4 = (to_4 - small * 2.0) / 2.0;
        [(64, larger / 64.0), (16, to_16 / 16.0), (8, to_8 / 8.0), (4, of_4), (2, small - of_4)]
    }

    fn write_share(&self) -> f64 {
        match self.row {
            Row::Legible { write_share, .. } => write_share,
            Row::Like(other) => other.known().write_share(),
        }
    }

    /// Number of requests of the trace.
    fn requests(&self) -> u64 {
        match self.row {
            Row::Legible { requests, .. } => requests,
            Row::Like(_) => {
                let writes: f64 = self.writes().iter().map(|&(_, writes)| writes).sum();
                whole((writes / self.write_share()).round())
            }
        }
    }

    /// The classes on `data_bytes` of data. Small data have less space than their part in proportion to the bytes if
    /// `small_space` is below 1; large data have the rest.
    fn classes(&self, theta: f64, small_space: f64, data_bytes: u64) -> Vec<Class> {
        let writes = self.writes();
        let all: f64 = writes.iter().map(|&(_, writes)| writes).sum();
        let small_mtbw = (small_space < 1.0).then(|| whole(small_space * data_bytes as f64));
        let class = |&(kib, writes): &(u64, f64)| {
            let (extent, order, mtbw) = if kib > SMALL_KIB {
                (EXTENT, Order::InTurn, None)
            } else {
                (16 << 10, Order::Popular(theta), small_mtbw)
            };
            Class { size: kib << 10, share: writes / all, mtbw, extent, order }
        };
        let mut classes: Vec<Class> = writes.iter().filter(|&&(_, writes)| writes > 0.0).map(class).collect();
        if let Some(first) = classes.first_mut() {
            // Without large data the largest of the small ones have the rest.
            first.mtbw = None;
        }
        classes
    }
}

impl Parameters {
    /// Facts about the trace, with the bytes of these parameters.
    fn known(&self) -> Known {
        let Self { free_slc_blocks, small_bytes, large_bytes, .. } = *self;
        Known { free_slc_blocks, written_by_erased: (small_bytes, large_bytes), ..self.trace.known() }
    }
}

/// Known facts about the trace as targets: its row of table 2 if that is legible, and the bytes of table 3.
fn targets(settings: &[(String, String)]) -> Result<Vec<Target>, ParameterError> {
    /// Share of the written bytes in writes of `sectors` sectors.
    fn bytes(profile: &Profile, sectors: std::ops::RangeInclusive<u32>) -> Option<f64> {
        share(writes_of(profile, sectors).1, profile.writes.bytes)
    }
    let known = Parameters::parse(settings)?.known();
    let mut targets = Vec::new();
    if let Row::Legible { write_share, mean_kib, .. } = known.row {
        let row = |name, published, measure| {
            let source = "WLAFTL, 2018, table 2 (Fin1: UMass Financial1)";
            Target::new(name, source, published, Goal::Within(0.02), measure)
        };
        targets.push(row("share of writes", write_share, |profile| share(profile.writes.requests, profile.requests)));
        targets.push(row("mean size of a write (KiB)", mean_kib, |profile| Some(profile.writes.mean_bytes / 1024.0)));
    }
    let written = known.written_kib();
    let all: f64 = written.iter().sum();
    let measures: [(&str, Measure); 4] = [
        ("share of written bytes, up to 4 KiB", |profile| bytes(profile, 0..=8)),
        ("share of written bytes, up to 8 KiB", |profile| bytes(profile, 9..=16)),
        ("share of written bytes, up to 16 KiB", |profile| bytes(profile, 17..=32)),
        ("share of written bytes, larger", |profile| bytes(profile, 33..=u32::MAX)),
    ];
    // Small classes vary too much by chance.
    let told = measures.into_iter().zip(written.map(|kib| kib / all)).filter(|&(_, share)| share >= 0.01);
    targets.extend(told.map(|((name, measure), share)| {
        Target::new(name, "WLAFTL, 2018, table 3, from static thresholds", share, Goal::Within(0.05), measure)
    }));
    Ok(targets)
}

/// The requests.
///
/// # Errors
/// An address space that is too small.
pub(super) fn generate(parameters: &Parameters, seed: u64) -> Result<Requests, String> {
    let known = parameters.known();
    let small_kib = known.small_kib();
    if !(2.0..=4.0).contains(&small_kib) {
        return Err(format!(
            "with `small_bytes={}` and `large_bytes={}`, writes of up to 4 KB would have {small_kib:.2} KB on average for \
             the mean of table 2; they have 2 to 4",
            parameters.small_bytes, parameters.large_bytes
        ));
    }
    let scale = u64::from(parameters.scale);
    let span = whole((parameters.span.0 / scale) as f64 * parameters.footprint);
    let profile = rewrites::Profile {
        requests: parameters.requests.min(known.requests() / scale),
        span,
        read_share: 1.0 - known.write_share(),
        interval_us: parameters.interval_us,
        classes: &known.classes(parameters.theta, parameters.small_space, span),
    };
    Ok(Box::new(Rewrites::new(profile, seed)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::rewrites::tests::by_size;
    use bimetal_core::profile::CurvePlan;
    use bimetal_core::request::Request;

    const NAMES: [Name; 6] = [Name::Fin1, Name::Sys, Name::Test1, Name::Test2, Name::Iotrace1, Name::Iotrace2];

    fn requests(trace: Name, requests: u64) -> Vec<Request> {
        let parameters = Parameters { trace, requests, ..Parameters::default() };
        generate(&parameters, 1).unwrap().collect()
    }

    /// The tables of the module documentation.
    #[test]
    fn they_have_the_papers_sizes() {
        let expected = [
            (0.768, 3.70, [0.818, 0.001, 0.000, 0.181]),
            (0.534, 4.13, [0.474, 0.142, 0.069, 0.315]),
            (0.500, 2.67, [1.000, 0.000, 0.000, 0.000]),
            (0.500, 11.4, [0.065, 0.274, 0.400, 0.261]),
            (0.534, 9.21, [0.091, 0.365, 0.276, 0.268]),
            (0.534, 5.95, [0.288, 0.202, 0.084, 0.426]),
        ];
        for (name, (write_share, mean_kib, shares)) in NAMES.into_iter().zip(expected) {
            let requests = requests(name, 120_000);
            let sizes = by_size(requests.iter().copied());
            let writes: u64 = sizes.values().map(|written| written.requests).sum();
            let bytes: u64 = sizes.values().map(|written| written.bytes).sum();
            assert!((writes as f64 / 120_000.0 - write_share).abs() < 0.005, "{name}: {writes}");
            let mean = bytes as f64 / 1024.0 / writes as f64;
            assert!((mean / mean_kib - 1.0).abs() < 0.02, "{name}: {mean}");
            let profile = Profile::of(&requests, &CurvePlan::default());
            for target in targets(&[("trace".into(), name.to_string())]).unwrap() {
                let judged = target.judge(&profile);
                assert_eq!(judged.met, Some(true), "{name}: {judged:?}");
            }
            let ranges = [0..=4, 5..=8, 9..=16, 17..=1024];
            for (range, share) in ranges.into_iter().zip(shares) {
                let found: u64 = sizes.range(range.clone()).map(|(_, written)| written.bytes).sum();
                let found = found as f64 / bytes as f64;
                assert!((found - share).abs() < 0.01, "{name}, {range:?} KiB: {found}");
            }
        }
    }

    #[test]
    fn each_has_its_length() {
        let lengths = NAMES.map(|name| name.known().requests());
        assert_eq!(lengths, [5_334_987, 3_756_389, 3_181_345, 2_879_205, 2_916_474, 9_033_809]);
        // If the row is illegible, the written bytes are the erased ones: 7.9, 15.6 and 13.7 GB.
        for (name, gib) in [(Name::Sys, 7.89), (Name::Test2, 15.64), (Name::Iotrace1, 13.68)] {
            let written: f64 = name.known().written_kib().iter().sum();
            assert!((written / f64::from(1 << 20) - gib).abs() < 0.01, "{name}: {written}");
        }
    }

    #[test]
    fn each_can_be_scaled_to_the_end() {
        for trace in NAMES {
            let parameters = Parameters { trace, scale: 128, requests: 100, ..Parameters::default() };
            assert_eq!(generate(&parameters, 1).unwrap().count(), 100, "{trace}");
        }
    }

    #[test]
    fn small_data_are_hot_and_large_data_are_not() {
        let parameters = Parameters { trace: Name::Iotrace2, requests: 500_000, scale: 4, ..Parameters::default() };
        let requests: Vec<Request> = generate(&parameters, 1).unwrap().collect();
        let end = requests.iter().map(Request::end).max().unwrap() * 512;
        assert!((475 << 20..=476 << 20).contains(&end), "{end}");
        let sizes = by_size(requests.into_iter());
        // If all data were equally popular, a tenth would return within a tenth of the address space.
        for kib in [2, 4, 8, 16] {
            let soon = sizes[&kib].share_below((476 << 20) / 10);
            assert!(soon > 0.3, "{kib} KiB: {soon}");
        }
        assert_eq!(sizes[&64].share_below(400 << 20), 0.0);
        let mtbw = sizes[&64].mtbw / f64::from(1 << 20);
        assert!((mtbw / 476.0 - 1.0).abs() < 0.05, "all are rewritten alike on average: {mtbw}");
    }
}
