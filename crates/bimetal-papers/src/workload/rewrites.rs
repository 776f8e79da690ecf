//! Common code of `phone`, `pc`, `mixture` and `wlaftl`: classes of requests by size, each of which repeatedly writes
//! its own data.
//!
//! The time between two writes of the same data is counted in bytes that the host writes meanwhile, over all its data.
//! Its mean is the MTBW of ComboFTL (2010, sections 4.1 and 6, figure 9). A class with a share `f` of the written bytes
//! that returns to its data every `T` bytes has `W = f T` bytes of data. Classes without an MTBW share the rest of the
//! address space in proportion to their bytes, so that they all have the same MTBW.
//!
//! The data of a class are in extents of one length, scattered over the address space. The space is divided into
//! extents of the first class, and a permutation determines which of them belong to it. The remaining ones are divided
//! into extents of the second class, and so on. So no two classes overlap, no space is lost, and no state is needed.

use bimetal_core::part::random;
use bimetal_core::part::real::whole;
use bimetal_core::request::{Op, Request, SECTOR_BYTES};
use bimetal_core::units::ByteSize;
use bimetal_core::workload::{Arrivals, Goal, Permutation, Target, Zipf, choose};

use super::sectors;

/// Requests of one size and the data that they rewrite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class {
    /// Bytes of each request: a power of two.
    pub(super) size: u64,
    /// Share of the requests; the shares of all classes add up to 1.
    pub(super) share: f64,
    /// Mean bytes that the host writes between two writes of the same data; larger values than the address space have
    /// no effect. Without it, the class gets its part of the remaining address space.
    pub(super) mtbw: Option<u64>,
    /// Contiguous bytes: a power of two, at least `size` and at most the extent of the previous class.
    pub(super) extent: u64,
    /// The choice of the data that are written next.
    pub(super) order: Order,
}

const MIB: f64 = (1 << 20) as f64;

/// The row of ComboFTL's table 3: MiB of the address space, divided by `scale`, and MiB written, of which a part.
pub(super) fn table_3(space_mib: f64, written_mib: f64, scale: u32, part: f64) -> Vec<Target> {
    const SOURCE: &str = "ComboFTL, JSA 2010, table 3";
    vec![
        Target::new("end of the last page (MiB)", SOURCE, space_mib, Goal::Within(0.01), |profile| {
            Some(profile.footprint.span_bytes as f64 / MIB)
        })
        .of_part(1.0 / f64::from(scale)),
        Target::new("written (MiB)", SOURCE, written_mib, Goal::Within(0.01), |profile| {
            Some(profile.writes.bytes as f64 / MIB)
        })
        .of_part(part),
    ]
}

/// Figure 9 of ComboFTL: the MTBW of small and of large requests.
pub(super) fn figure_9(scale: u32) -> [Target; 2] {
    const SOURCE: &str = "ComboFTL, JSA 2010, section 6, figure 9";
    [
        Target::new("written between two writes, below 8 KiB (MiB)", SOURCE, 2.0, Goal::AtMost, |profile| {
            mtbws(profile).take_while(|&(sectors, _)| sectors < 16).map(|(_, mtbw)| mtbw).reduce(f64::max)
        }),
        Target::new("written between two writes, above 32 KiB (MiB)", SOURCE, 1024.0, Goal::AtLeast, |profile| {
            mtbws(profile).skip_while(|&(sectors, _)| sectors <= 64).map(|(_, mtbw)| mtbw).reduce(f64::min)
        }),
    ]
    .map(|target| target.of_part(1.0 / f64::from(scale)))
}

/// MTBW in MiB, by the sectors of writes. Only for data that were written twice on average, because a shorter trace
/// does not show it.
fn mtbws(profile: &bimetal_core::profile::Profile) -> impl Iterator<Item = (u32, f64)> {
    let told = profile
        .sizes
        .iter()
        .filter_map(|class| Some((class.sectors, class.update_ratio.filter(|&ratio| ratio >= 2.0)?)));
    told.map(|(sectors, ratio)| (sectors, profile.writes.bytes as f64 / ratio / MIB))
}

/// The choice of the data of a class that are written next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// In turn, repeatedly: every interval is the MTBW.
    InTurn,
    /// Uniformly at random: intervals are exponentially distributed around the MTBW.
    AtRandom,
    /// At random, with Zipf popularity of this exponent.
    Popular(f64),
    /// The same, with data of similar popularity adjacent within an extent.
    PopularTogether(f64),
}

/// The parameters of the generator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Profile<'a> {
    pub(super) requests: u64,
    /// Bytes of the address space.
    pub(super) span: u64,
    /// Share of requests that read, from the data that writes of the same class write.
    pub(super) read_share: f64,
    pub(super) interval_us: f64,
    /// Classes with extents in descending order. The first class has no MTBW and takes rounding remainders.
    pub(super) classes: &'a [Class],
}

/// The generator.
#[derive(Debug)]
pub(super) struct Rewrites {
    left: u64,
    state: u64,
    arrivals: Arrivals,
    read_share: f64,
    /// Indexes of classes in `sets`, with their shares of the requests.
    shares: Vec<(usize, f64)>,
    sets: Vec<Set>,
}

/// The data of a class: their places and the order of writes.
#[derive(Debug)]
struct Set {
    size: u64,
    /// Number of pieces of `size` bytes, each written as a whole.
    pieces: u64,
    next: Next,
    extent: u64,
    bytes: u64,
    /// Order of all extents that the previous classes leave. The first ones are this class's, the others remain.
    places: Permutation,
}

#[derive(Debug)]
enum Next {
    InTurn { piece: u64 },
    AtRandom,
    Popular { ranks: Zipf, pieces: Permutation },
    PopularTogether { ranks: Zipf },
}

impl Rewrites {
    /// A generator of the profile.
    ///
    /// # Errors
    /// An address space that is too small for the classes.
    pub(super) fn new(profile: Profile<'_>, seed: u64) -> Result<Self, String> {
        let mut state = seed;
        let mut sets = Vec::new();
        let mut free_bytes = profile.span;
        for (class, extents) in profile.classes.iter().zip(extents(profile.classes, profile.span)?) {
            let bytes = extents * class.extent;
            let pieces = bytes / class.size;
            let places = Permutation::new(free_bytes / class.extent, random::split_mix(&mut state));
            let next = match class.order {
                Order::InTurn => Next::InTurn { piece: 0 },
                Order::AtRandom => Next::AtRandom,
                Order::Popular(theta) => Next::Popular {
                    ranks: Zipf::new(pieces, theta),
                    pieces: Permutation::new(pieces, random::split_mix(&mut state)),
                },
                Order::PopularTogether(theta) => Next::PopularTogether { ranks: Zipf::new(pieces, theta) },
            };
            sets.push(Set { size: class.size, pieces, next, extent: class.extent, bytes, places });
            free_bytes = free_bytes / class.extent * class.extent - bytes;
        }
        Ok(Self {
            left: profile.requests,
            arrivals: Arrivals::new(profile.interval_us),
            read_share: profile.read_share,
            shares: profile.classes.iter().map(|class| class.share).enumerate().collect(),
            sets,
            state,
        })
    }

    /// The address of a piece of a class.
    fn address(&self, class: usize, piece: u64) -> u64 {
        let set = &self.sets[class];
        let place = set.place(piece * set.size);
        self.sets[..class].iter().rev().fold(place, |place, before| before.place(before.bytes + place))
    }
}

impl Set {
    /// The place of a byte of this set in the space that the previous sets leave. Bytes beyond the set are those that
    /// it leaves.
    fn place(&self, byte: u64) -> u64 {
        self.places.of(byte / self.extent) * self.extent + byte % self.extent
    }

    /// The piece of a request. Reads do not advance the turn.
    fn choose(&mut self, op: Op, state: &mut u64) -> u64 {
        match &mut self.next {
            Next::InTurn { piece } if op == Op::Write => {
                let chosen = *piece;
                *piece = (chosen + 1) % self.pieces;
                chosen
            }
            Next::InTurn { .. } | Next::AtRandom => random::below(state, self.pieces),
            Next::Popular { ranks, pieces } => pieces.of(ranks.draw(state)),
            Next::PopularTogether { ranks } => ranks.draw(state),
        }
    }
}

/// Number of extents of each class.
fn extents(classes: &[Class], span: u64) -> Result<Vec<u64>, String> {
    debug_assert!(classes.is_sorted_by(|before, class| before.extent >= class.extent));
    debug_assert!(classes.iter().all(|class| class.size.is_power_of_two() && class.size <= class.extent));
    debug_assert!(classes.first().is_some_and(|class| class.mtbw.is_none()));
    let bytes = |class: &Class| class.share * class.size as f64;
    let total: f64 = classes.iter().map(bytes).sum();
    let bounded = |class: &Class| class.mtbw.map(|mtbw| bytes(class) / total * mtbw.min(span) as f64);
    let left = span as f64 - classes.iter().filter_map(bounded).sum::<f64>();
    let sharing: f64 = classes.iter().filter(|class| class.mtbw.is_none()).map(bytes).sum();
    let set_bytes = |class: &Class| bounded(class).unwrap_or_else(|| left * bytes(class) / sharing);
    let mut counts: Vec<u64> =
        classes.iter().map(|class| whole((set_bytes(class) / class.extent as f64).round()).max(1)).collect();
    let first = classes.first().map_or(1, |class| class.extent);
    let of_others = classes.iter().zip(&counts).skip(1).rev().fold(0u64, |needed, (class, count)| {
        needed.next_multiple_of(class.extent).saturating_add(count * class.extent)
    });
    counts[0] = (span / first).saturating_sub(of_others.div_ceil(first));
    if counts[0] == 0 {
        return Err(format!(
            "after scaling, the address space is {}; small data need {} of it and large ones at least {} more; set a \
             larger `span` or a smaller `scale`",
            ByteSize(span),
            ByteSize(of_others.next_multiple_of(first)),
            ByteSize(first)
        ));
    }
    Ok(counts)
}

impl Iterator for Rewrites {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.left = self.left.checked_sub(1)?;
        let arrival_ns = self.arrivals.next(&mut self.state);
        let op = if random::unit(&mut self.state) < self.read_share { Op::Read } else { Op::Write };
        let class = choose(&mut self.state, &self.shares)?;
        let piece = self.sets[class].choose(op, &mut self.state);
        let sectors = sectors(self.sets[class].size);
        Some(Request { arrival_ns, sector: self.address(class, piece) / SECTOR_BYTES, sectors, op, handle: 0 })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, usize::try_from(self.left).ok())
    }
}

/// Common code of these workloads' tests.
#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const PAGE_SECTORS: u64 = 8;

    /// Writes of one size.
    #[derive(Debug, Default)]
    pub(in crate::workload) struct Written {
        pub(in crate::workload) requests: u64,
        pub(in crate::workload) bytes: u64,
        /// 4-KiB pages written for the first time.
        pub(in crate::workload) new_pages: u64,
        /// Mean bytes that the host writes between two writes of a page: all its bytes divided by the writes of each
        /// page.
        pub(in crate::workload) mtbw: f64,
        /// The interval of each second or later write of a page.
        intervals: Vec<u64>,
    }

    impl Written {
        /// Share of the intervals that are shorter than `bytes`.
        pub(in crate::workload) fn share_below(&self, bytes: u64) -> f64 {
            self.intervals.iter().filter(|&&interval| interval < bytes).count() as f64 / self.intervals.len() as f64
        }
    }

    /// All writes, by their size in KiB.
    pub(in crate::workload) fn by_size(requests: impl Iterator<Item = Request>) -> BTreeMap<u64, Written> {
        let mut sizes: BTreeMap<u64, Written> = BTreeMap::new();
        let mut last: Vec<Option<u64>> = Vec::new();
        let mut host_bytes = 0;
        for request in requests.filter(|request| request.op == Op::Write) {
            let written = sizes.entry(request.bytes() >> 10).or_default();
            host_bytes += request.bytes();
            written.requests += 1;
            written.bytes += request.bytes();
            for page in request.sector / PAGE_SECTORS..request.end().div_ceil(PAGE_SECTORS) {
                let page = usize::try_from(page).unwrap();
                last.resize(last.len().max(page + 1), None);
                match last[page].replace(host_bytes) {
                    Some(before) => written.intervals.push(host_bytes - before),
                    None => written.new_pages += 1,
                }
            }
        }
        for written in sizes.values_mut() {
            let page_writes = written.new_pages + written.intervals.len() as u64;
            written.mtbw = host_bytes as f64 * written.new_pages as f64 / page_writes as f64;
        }
        sizes
    }

    /// Checks a stream against figure 9 of ComboFTL (2010): small requests return within 2 MB, large ones not within
    /// 1,024 MB. Between them, larger sizes return later.
    pub(in crate::workload) fn assert_figure_9(sizes: &BTreeMap<u64, Written>) {
        const MIB: f64 = (1 << 20) as f64;
        let mtbws: Vec<f64> = sizes.values().map(|written| written.mtbw / MIB).collect();
        assert!(mtbws.is_sorted(), "{mtbws:?}");
        for (&kib, written) in sizes {
            let mtbw = written.mtbw / MIB;
            match kib {
                0..8 => {
                    assert!(mtbw < 2.0, "{kib} KiB: {mtbw} MiB");
                    assert!(written.share_below(2 << 20) > 0.8, "most are updated within 2 MB");
                }
                8..=32 => assert!((1.5..1100.0).contains(&mtbw), "{kib} KiB: {mtbw} MiB"),
                _ => assert!(written.share_below(1024 << 20) == 0.0 && mtbw > 1024.0, "{kib} KiB: {mtbw} MiB"),
            }
        }
    }

    const CLASSES: [Class; 4] = [
        Class { size: 64 << 10, share: 0.1, mtbw: None, extent: 256 << 10, order: Order::InTurn },
        Class { size: 16 << 10, share: 0.2, mtbw: Some(40 << 20), extent: 32 << 10, order: Order::AtRandom },
        Class { size: 4 << 10, share: 0.3, mtbw: None, extent: 16 << 10, order: Order::Popular(0.9) },
        Class { size: 4 << 10, share: 0.4, mtbw: Some(2 << 20), extent: 8 << 10, order: Order::AtRandom },
    ];

    fn rewrites(requests: u64, span: u64) -> Result<Rewrites, String> {
        Rewrites::new(Profile { requests, span, read_share: 0.0, interval_us: 1.0, classes: &CLASSES }, 5)
    }

    #[test]
    fn classes_lie_apart_and_within_the_address_space() {
        for span in [1 << 20, 3 << 20, (7 << 20) + 12_345] {
            let generator = rewrites(1, span).unwrap();
            let mut owners = vec![None; (span >> 12) as usize];
            for (class, set) in generator.sets.iter().enumerate() {
                for piece in 0..set.pieces {
                    let start = generator.address(class, piece);
                    assert!(start.is_multiple_of(set.size) && start + set.size <= span);
                    for owner in &mut owners[(start >> 12) as usize..((start + set.size) >> 12) as usize] {
                        assert_eq!(owner.replace(class), None, "class {class}, piece {piece}");
                    }
                }
            }
            let unused = owners.iter().filter(|owner| owner.is_none()).count();
            assert!(unused < 2 * 256 / 4, "{unused} pages of {span} bytes are nobody's");
        }
    }

    #[test]
    fn each_class_has_its_share_and_its_mtbw() {
        let span = 100 << 20;
        let sizes = by_size(rewrites(200_000, span).unwrap());
        let bytes: u64 = sizes.values().map(|written| written.bytes).sum();
        let expect = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.03, "{found} {expected}");
        expect(sizes[&64].bytes as f64 / bytes as f64, 6.4 / 12.4);
        expect(sizes[&16].bytes as f64 / bytes as f64, 3.2 / 12.4);
        expect(sizes[&16].mtbw, f64::from(40 << 20));
        // The space left by the bounded classes, divided among classes with 7.6 of 12.4 parts of the bytes.
        let left = f64::from(100 << 20) - 3.2 / 12.4 * f64::from(40 << 20) - 1.6 / 12.4 * f64::from(2 << 20);
        expect(sizes[&64].mtbw, left * 12.4 / 7.6);
        // In turn: every interval is close to the mean.
        assert_eq!(sizes[&64].share_below(whole(0.9 * sizes[&64].mtbw)), 0.0);
        // At random: 1 - 1/e of the intervals are below the mean.
        expect(sizes[&16].share_below(40 << 20), 0.632);
    }

    #[test]
    fn an_address_space_that_is_too_small_is_refused() {
        assert!(rewrites(1, 300 << 10).unwrap_err().contains("smaller `scale`"));
    }

    #[test]
    fn reads_take_no_turn() {
        let class = [Class { share: 1.0, ..CLASSES[0] }];
        let profile = Profile { requests: 4000, span: 10 << 20, read_share: 0.5, interval_us: 1.0, classes: &class };
        let mut writes = Rewrites::new(profile, 9).unwrap().filter(|request| request.op == Op::Write);
        let mut first: Vec<u64> = writes.by_ref().take(160).map(|request| request.sector).collect();
        let second: Vec<u64> = writes.take(160).map(|request| request.sector).collect();
        assert_eq!(first, second);
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 160);
    }
}
