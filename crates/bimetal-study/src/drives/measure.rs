//! The tests of reviewers, run on a simulated drive.
//!
//! The drive is scaled down: the same numbers of dies and channels, smaller blocks ([`Device::scaled`]). Amounts of
//! data are given for the whole drive.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bimetal_core::device::{Device, DeviceError, Resolved};
use bimetal_core::ledger::Row;
use bimetal_core::media::{FlashOp, SimMedia};
use bimetal_core::part::random;
use bimetal_core::part::real::whole;
use bimetal_core::replay::{self, Arrivals, Fill, Outcome, Plan};
use bimetal_core::request::{Op, Request, SECTOR_BYTES};
use bimetal_core::scheme::{self, Regions, Scheme};
use bimetal_core::units::ByteSize;
use bimetal_core::workload::{Permutation, Zipf};

use super::review::{Figure, Review};

/// Scaled capacity of a drive that is filled once.
const FILLED: ByteSize = ByteSize(16 << 30);
/// Scaled capacity of a drive that is overwritten several times.
const OVERWRITTEN: ByteSize = ByteSize(4 << 30);
/// Points on the curve of a fill.
const POINTS: u32 = 800;
const MIB_SECTORS: u32 = 2048;
const RUN_SECTORS: u32 = 256;
const PAGE_SECTORS: u32 = 8;
/// Number of requests in a random test: one outstanding, and many outstanding.
const FEW: u64 = 4_000;
const MANY: u64 = 15_000;
/// Divisor of the capacity that short tests use. Their part fits into the smallest caches.
const SPAN_SHARE: u64 = 128;
/// Overwrites of the drive, of which the last one is measured: for the write speed, and for write amplification as in
/// SSD-iq.
const OVERWRITES: u64 = 3;
const AMPLIFIED_OVERWRITES: u64 = 4;
/// Exponent of page popularity in skewed tests.
const ZIPF_THETA: f64 = 0.8;

/// Write speed over a fill: points of GB written and MB/s since the previous point.
pub type Curve = Vec<(f64, f64)>;

/// Results of the tests.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The requested figures that could be determined.
    pub figures: BTreeMap<Figure, f64>,
    /// The curve of the fill, if it was run.
    pub curve: Curve,
}

/// A device under test.
struct Bench {
    resolved: Resolved,
    media: SimMedia,
    scheme: Box<dyn Scheme<SimMedia>>,
    seed: u64,
}

impl Bench {
    fn new(device: &Device, capacity: ByteSize) -> Result<Self, DeviceError> {
        let resolved = device.scaled(capacity)?.resolve()?;
        let scheme = resolved.build()?;
        Ok(Self { media: resolved.media(), resolved, scheme, seed: 1 })
    }

    fn sectors(&self) -> u64 {
        self.resolved.shape.logical_sectors
    }

    /// Serves requests in a closed loop of `depth`.
    fn run(&mut self, requests: &[Request], depth: u32, intervals: u32) -> Outcome {
        let arrivals = Arrivals::Closed { depth };
        let controller = self.resolved.controller.clone();
        let plan = Plan { arrivals, fill: Fill::None, intervals, controller, ..Plan::default() };
        replay::run(&mut self.media, self.scheme.as_mut(), requests, &plan, &mut replay::to_the_end)
    }

    /// Sequential requests over the first `sectors` sectors.
    fn sequence(op: Op, sectors: u64, size: u32) -> Vec<Request> {
        let starts = (0..sectors / u64::from(size)).map(|number| number * u64::from(size));
        starts.map(|sector| Request { arrival_ns: 0, sector, sectors: size, op, handle: 0 }).collect()
    }

    /// Uniformly distributed 4-KiB requests in the first `sectors` sectors.
    fn anywhere(&mut self, op: Op, sectors: u64, count: u64) -> Vec<Request> {
        self.scattered(op, sectors, count, &Pages::Uniform)
    }

    /// 4-KiB requests to pages of the first `sectors` sectors, distributed as `pages`.
    fn scattered(&mut self, op: Op, sectors: u64, count: u64, pages: &Pages) -> Vec<Request> {
        let all = sectors / u64::from(PAGE_SECTORS);
        let mut sector = || pages.draw(&mut self.seed, all) * u64::from(PAGE_SECTORS);
        (0..count).map(|_| Request { arrival_ns: 0, sector: sector(), sectors: PAGE_SECTORS, op, handle: 0 }).collect()
    }

    /// Overwrites the drive `times` times and returns the outcome of the last time.
    fn overwrite(&mut self, times: u64, depth: u32, pages: &Pages) -> Outcome {
        let count = self.sectors() / u64::from(PAGE_SECTORS);
        for _ in 1..times {
            let requests = self.scattered(Op::Write, self.sectors(), count, pages);
            self.run(&requests, depth, 0);
        }
        let requests = self.scattered(Op::Write, self.sectors(), count, pages);
        self.run(&requests, depth, 0)
    }

    /// Bytes programmed for each byte written by the host.
    fn amplification(&self, outcome: &Outcome) -> f64 {
        let programs = |row: &Row| {
            let page_bytes = self.resolved.regions[row.region].geometry.page_bytes;
            row.counts.total(FlashOp::Program) * u64::from(page_bytes)
        };
        outcome.measured.ledger.rows.iter().map(programs).sum::<u64>() as f64
            / (outcome.measured.host.write_sectors * SECTOR_BYTES) as f64
    }
}

/// Distribution of random writes over pages.
enum Pages {
    /// Uniform.
    Uniform,
    /// Zipf, with the popular pages scattered.
    Scattered(Zipf, Permutation),
    /// Zipf, with the most popular pages first.
    InOrder(Zipf),
}

impl Pages {
    fn draw(&self, seed: &mut u64, pages: u64) -> u64 {
        match self {
            Self::Uniform => random::below(seed, pages),
            Self::Scattered(zipf, permutation) => permutation.of(zipf.draw(seed)),
            Self::InOrder(zipf) => zipf.draw(seed),
        }
    }
}

fn mb_per_s(bytes: u64, ns: u64) -> f64 {
    bytes as f64 * 1000.0 / ns as f64
}

fn bytes_of(requests: &[Request]) -> u64 {
    requests.iter().map(Request::bytes).sum()
}

/// Measures the figures of a review on its device. `step` is called after each test and may stop the measurement.
///
/// # Errors
/// An invalid device.
pub fn measure(review: &Review, step: &mut dyn FnMut() -> ControlFlow<()>) -> Result<Measured, DeviceError> {
    let device = review.made()?;
    let wants = |figures: &[Figure]| figures.iter().any(|figure| review.figures.contains_key(figure));
    let mut measured = Measured::default();
    use Figure::*;
    if wants(&[CacheMbPerS, CacheGb, AfterMbPerS, SecondGb, LastMbPerS, FillMbPerS]) {
        fill(&device, &mut measured)?;
        if step().is_break() {
            return Ok(measured);
        }
    }
    if wants(&[ReadMbPerS, WriteMbPerS, ReadQd1, WriteQd1, ReadDeep, WriteDeep]) {
        short_tests(&device, review.depth, &mut measured)?;
        if step().is_break() {
            return Ok(measured);
        }
    }
    if wants(&[WriteSteady]) {
        steady_state(&device, review.depth, &mut measured)?;
        if step().is_break() {
            return Ok(measured);
        }
    }
    for figure in [WriteAmplification, WriteAmplificationZipf, WriteAmplificationZipfInOrder] {
        if wants(&[figure]) || figure == WriteAmplification && wants(&[WriteAmplificationSequential]) {
            amplification(&device, review, figure, &mut measured)?;
            if step().is_break() {
                return Ok(measured);
            }
        }
    }
    measured.figures.retain(|figure, _| review.figures.contains_key(figure));
    Ok(measured)
}

/// One stream of 1-MiB writes over an empty drive.
fn fill(device: &Device, measured: &mut Measured) -> Result<(), DeviceError> {
    let mut bench = Bench::new(device, FILLED)?;
    let scale = device.logical.0 as f64 / (bench.sectors() * SECTOR_BYTES) as f64;
    let requests = Bench::sequence(Op::Write, bench.sectors(), MIB_SECTORS);
    let outcome = bench.run(&requests, 1, POINTS);
    let (mut before_bytes, mut before_ns) = (0, 0);
    for interval in &outcome.course.intervals {
        let bytes = interval.host.write_sectors * SECTOR_BYTES;
        let speed = mb_per_s(bytes - before_bytes, interval.end_ns - before_ns);
        measured.curve.push((bytes as f64 * scale / 1e9, speed));
        (before_bytes, before_ns) = (bytes, interval.end_ns);
    }
    measured.figures.insert(Figure::FillMbPerS, mb_per_s(bytes_of(&requests), outcome.measured.simulated_ns));
    measured.figures.extend(phases(&measured.curve));
    Ok(())
}

/// A drop is a speed below this share of the level so far.
const DROP: f64 = 0.85;
/// Least duration of a drop in points: 1 % of the drive.
const LASTING: usize = 8;
/// First points, during which the write buffer fills.
const FILLING: usize = 2;
/// Points after a drop that belong to neither level.
const SETTLING: usize = 16;

/// The levels of a curve, as a reader would determine them.
fn phases(curve: &Curve) -> Vec<(Figure, f64)> {
    let start = FILLING.min(curve.len());
    let first = drop_after(curve, start);
    let mut figures = vec![(Figure::CacheMbPerS, level(curve, start, first))];
    if first < curve.len() {
        let settled = (first + SETTLING).min(curve.len() - 1);
        let second = drop_after(curve, settled);
        figures.extend([(Figure::CacheGb, curve[first - 1].0), (Figure::AfterMbPerS, level(curve, settled, second))]);
        if second < curve.len() {
            let last = level(curve, (second + SETTLING).min(curve.len() - 1), curve.len());
            figures.extend([(Figure::SecondGb, curve[second - 1].0), (Figure::LastMbPerS, last)]);
        }
    }
    figures
}

/// Mean speed between two points: data divided by time.
fn level(curve: &Curve, from: usize, to: usize) -> f64 {
    let points = &curve[from..to];
    points.len() as f64 / points.iter().map(|(_, speed)| 1.0 / speed).sum::<f64>()
}

/// The point where the level that begins at `from` ends.
fn drop_after(curve: &Curve, from: usize) -> usize {
    // The first points after a drop may still belong to the drop.
    for at in from + 2..curve.len() {
        let limit = DROP * level(curve, from, at);
        let ahead = &curve[at..(at + LASTING).min(curve.len())];
        if ahead.len() == LASTING && ahead.iter().all(|(_, speed)| *speed < limit) {
            return at;
        }
    }
    curve.len()
}

/// Tests over a part of the drive, which its cache can hold if it has one.
fn short_tests(device: &Device, depth: u32, measured: &mut Measured) -> Result<(), DeviceError> {
    let mut bench = Bench::new(device, FILLED)?;
    let span = (bench.sectors() / SPAN_SHARE) / u64::from(MIB_SECTORS) * u64::from(MIB_SECTORS);
    // Without a cache, a short write would only show the write buffer.
    let has_cache = scheme::find(&device.scheme).is_ok_and(|spec| spec.regions == Regions::DualMode);
    let written = if has_cache { span } else { bench.sectors() / 2 };
    let mut speed = |bench: &mut Bench, figure, op| {
        let requests = Bench::sequence(op, if op == Op::Write { written } else { span }, RUN_SECTORS);
        let outcome = bench.run(&requests, 32, 0);
        measured.figures.insert(figure, mb_per_s(bytes_of(&requests), outcome.measured.simulated_ns));
    };
    speed(&mut bench, Figure::WriteMbPerS, Op::Write);
    speed(&mut bench, Figure::ReadMbPerS, Op::Read);
    for (figure, op, depth, count) in [
        (Figure::ReadQd1, Op::Read, 1, FEW),
        (Figure::ReadDeep, Op::Read, depth, MANY * 4),
        (Figure::WriteQd1, Op::Write, 1, FEW),
        (Figure::WriteDeep, Op::Write, depth, MANY),
    ] {
        let requests = bench.anywhere(op, span, count);
        let outcome = bench.run(&requests, depth, 0);
        measured.figures.insert(figure, count as f64 * 1e9 / outcome.measured.simulated_ns as f64);
    }
    Ok(())
}

/// Speed of random writes over a full drive.
fn steady_state(device: &Device, depth: u32, measured: &mut Measured) -> Result<(), DeviceError> {
    let mut bench = Bench::new(device, OVERWRITTEN)?;
    bench.run(&Bench::sequence(Op::Write, bench.sectors(), MIB_SECTORS), 1, 0);
    let outcome = bench.overwrite(OVERWRITES, depth, &Pages::Uniform);
    let iops = outcome.measured.host.writes as f64 * 1e9 / outcome.measured.simulated_ns as f64;
    measured.figures.insert(Figure::WriteSteady, iops);
    Ok(())
}

/// Bytes programmed for each byte written: sequentially over an empty drive, then at random.
fn amplification(device: &Device, review: &Review, figure: Figure, measured: &mut Measured) -> Result<(), DeviceError> {
    let mut device = device.clone();
    if let Some(controller) = &mut device.controller {
        // Unscaled, the buffer would hold a larger share of the popular pages than in the real drive.
        let share = OVERWRITTEN.0 as f64 / device.logical.0 as f64;
        controller.buffer.0 = whole(controller.buffer.0 as f64 * share.min(1.0));
    }
    let mut bench = Bench::new(&device, OVERWRITTEN)?;
    let fill = bench.run(&Bench::sequence(Op::Write, bench.sectors(), MIB_SECTORS), 1, 0);
    let zipf = || Zipf::new(bench.sectors() / u64::from(PAGE_SECTORS), ZIPF_THETA);
    let pages = match figure {
        Figure::WriteAmplificationZipf => {
            Pages::Scattered(zipf(), Permutation::new(bench.sectors() / u64::from(PAGE_SECTORS), bench.seed))
        }
        Figure::WriteAmplificationZipfInOrder => Pages::InOrder(zipf()),
        _ => Pages::Uniform,
    };
    let random = bench.overwrite(AMPLIFIED_OVERWRITES, review.depth, &pages);
    let [sequential, random] = [fill, random].map(|outcome| bench.amplification(&outcome) * review.overhead);
    measured.figures.extend([(Figure::WriteAmplificationSequential, sequential), (figure, random)]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_drops_of_a_curve_are_told() {
        let speed = |gb: u32| match gb {
            0..100 => 5000.0,
            100..400 => 2000.0 + f64::from(gb % 7) * 50.0,
            _ => 500.0,
        };
        let curve: Curve = (0..1000).map(|gb| (f64::from(gb + 1), speed(gb))).collect();
        let figures: BTreeMap<Figure, f64> = phases(&curve).into_iter().collect();
        assert!((figures[&Figure::CacheMbPerS] - 5000.0).abs() < 1e-6);
        assert_eq!((figures[&Figure::CacheGb], figures[&Figure::SecondGb]), (100.0, 400.0));
        assert!(
            (figures[&Figure::AfterMbPerS] - 2150.0).abs() < 20.0
                && (figures[&Figure::LastMbPerS] - 500.0).abs() < 1e-6
        );
    }

    #[test]
    fn a_level_curve_has_no_drop() {
        let curve: Curve = (0..100).map(|gb| (f64::from(gb), 450.0 + f64::from(gb % 3))).collect();
        assert_eq!(phases(&curve).len(), 1);
    }

    /// Figures of a small drive with this overhead of parity and metadata.
    fn amplified(overhead: f64, figure: Figure) -> [f64; 2] {
        let preset = bimetal_core::device::preset("solidigm-d7-p5520-1920gb").unwrap();
        let mut device = preset.scaled(ByteSize(1 << 30)).unwrap();
        device.controller.as_mut().unwrap().buffer = ByteSize(64 << 10);
        let mut review = Review::of_device(device.clone()).unwrap();
        review.overhead = overhead;
        let mut measured = Measured::default();
        amplification(&device, &review, figure, &mut measured).unwrap();
        [Figure::WriteAmplificationSequential, figure].map(|figure| measured.figures[&figure])
    }

    #[test]
    fn parity_is_a_part_of_every_write_amplification() {
        let [without, with] = [1.0, 1.1].map(|overhead| amplified(overhead, Figure::WriteAmplification));
        assert!((without[0] - 1.0).abs() < 0.01 && without[1] > 2.5, "{without:?}");
        assert!((0..2).all(|at| (with[at] / without[at] - 1.1).abs() < 1e-9), "{with:?}");
    }

    #[test]
    fn where_popular_pages_lie_does_not_matter_to_a_page_map() {
        let [_, uniform] = amplified(1.0, Figure::WriteAmplification);
        let [scattered, packed] = [Figure::WriteAmplificationZipf, Figure::WriteAmplificationZipfInOrder]
            .map(|figure| amplified(1.0, figure)[1]);
        assert!((scattered / packed - 1.0).abs() < 0.03, "{scattered} {packed}");
        assert!(scattered > 1.03 * uniform, "hot and cold data lie in the same blocks: {scattered} {uniform}");
    }

    #[test]
    fn popular_pages_are_packed_or_scattered() {
        let pages = 1 << 16;
        let zipf = || Zipf::new(pages, ZIPF_THETA);
        let low = |choice: &Pages| {
            let mut seed = 7;
            (0..10_000).filter(|_| choice.draw(&mut seed, pages) < pages / 100).count()
        };
        let (packed, scattered) =
            (low(&Pages::InOrder(zipf())), low(&Pages::Scattered(zipf(), Permutation::new(pages, 3))));
        assert!((3_000..4_500).contains(&packed), "{packed} of 10,000 go to the first hundredth");
        assert!(scattered < 1_000, "{scattered}");
        assert!((50..200).contains(&low(&Pages::Uniform)));
    }
}
