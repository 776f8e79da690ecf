//! Common code of `bimodal-ntfs` and `bimodal-ext3`: small writes to a small hot set, large writes to cold runs, and
//! reads without temporal locality (Chang 2010, section 5.2, figures 7 and 10).

use bimetal_core::part::random;
use bimetal_core::part::real::{ln, whole};
use bimetal_core::request::{Op, Request, SECTOR_BYTES};
use bimetal_core::units::ByteSize;
use bimetal_core::workload::{Arrivals, Goal, Permutation, Target, Zipf, choose};

use super::{share, writes_of};

const PAGE_SECTORS: u64 = 8;

/// Request sizes in sectors, with their shares.
pub(super) type Sizes = &'static [(u32, f64)];

/// The parameters, for any file system.
#[derive(Clone, Copy, Debug)]
pub(super) struct Profile {
    pub(super) requests: u64,
    pub(super) span: ByteSize,
    pub(super) used: ByteSize,
    pub(super) scale: u32,
    pub(super) hot_set: ByteSize,
    pub(super) hot_extent: ByteSize,
    pub(super) theta: f64,
    pub(super) small_share: f64,
    pub(super) hot_share: f64,
    pub(super) run: ByteSize,
    pub(super) read_share: f64,
    pub(super) interval_us: f64,
    pub(super) small_sizes: Sizes,
    pub(super) large_sizes: Sizes,
    pub(super) read_sizes: Sizes,
}

/// The profile from a file system's parameters and sizes. Both file systems have the same parameter names.
macro_rules! profile {
    ($parameters:expr, $small_sizes:expr, $large_sizes:expr, $read_sizes:expr) => {
        $crate::workload::bimodal::Profile {
            requests: $parameters.requests,
            span: $parameters.span,
            used: $parameters.used,
            scale: $parameters.scale,
            hot_set: $parameters.hot_set,
            hot_extent: $parameters.hot_extent,
            theta: $parameters.theta,
            small_share: $parameters.small_share,
            hot_share: $parameters.hot_share,
            run: $parameters.run,
            read_share: $parameters.read_share,
            interval_us: $parameters.interval_us,
            small_sizes: $small_sizes,
            large_sizes: $large_sizes,
            read_sizes: $read_sizes,
        }
    };
}
pub(super) use profile;

/// Characteristics of a file system in Chang's section 5 and figures 7 and 10.
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    /// The two most common sizes of a write in KiB.
    pub(super) sizes_kib: [f64; 2],
    /// Share of the written bytes that are in writes of up to 4 KiB.
    pub(super) small_bytes: f64,
    /// Most reads of a sector.
    pub(super) sector_reads: f64,
    /// Used part of the disk, in GiB.
    pub(super) used_gib: f64,
}

impl Published {
    /// The targets for a disk with `1 / scale` of the size.
    pub(super) fn targets(&self, scale: u32) -> Vec<Target> {
        let &Self { sizes_kib: [first, second], small_bytes, sector_reads, used_gib } = self;
        let figure_7a = "Chang, IEEE TC 2010, figure 7a";
        vec![
            Target::new("most common size of a write (KiB)", figure_7a, first, Goal::Within(0.0), |profile| {
                common_size_kib(profile, 0)
            }),
            Target::new("second most common (KiB)", figure_7a, second, Goal::Within(0.0), |profile| {
                common_size_kib(profile, 1)
            }),
            Target::new(
                "share of written bytes in writes up to 4 KiB",
                "Chang, IEEE TC 2010, table 3",
                small_bytes,
                Goal::Within(0.05),
                |profile| share(writes_of(profile, 0..=8).1, profile.writes.bytes),
            ),
            Target::new(
                "reads of the sector read most",
                "Chang, IEEE TC 2010, figure 7d",
                sector_reads,
                Goal::AtMost,
                |profile| Some(profile.sector_reads_max as f64),
            ),
            Target::new(
                "end of the last page (GiB)",
                "Chang, IEEE TC 2010, figure 10",
                used_gib,
                Goal::Within(0.01),
                |profile| Some(profile.footprint.span_bytes as f64 / f64::from(1 << 30)),
            )
            .of_part(1.0 / f64::from(scale)),
        ]
    }
}

/// The size of writes with rank `but` by frequency, in KiB.
fn common_size_kib(profile: &bimetal_core::profile::Profile, but: usize) -> Option<f64> {
    let mut classes: Vec<_> = profile.sizes.iter().filter(|class| class.writes > 0).collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.writes));
    classes.get(but).map(|class| f64::from(class.sectors) * SECTOR_BYTES as f64 / 1024.0)
}

/// The generator.
#[derive(Debug)]
pub(super) struct Bimodal {
    profile: Profile,
    left: u64,
    state: u64,
    arrivals: Arrivals,
    popularity: Zipf,
    hot_order: Permutation,
    /// Key of the permutation that places the hot extents.
    hot_key: u64,
    hot_extents: u64,
    hot_extent_pages: u64,
    used_sectors: u64,
    /// The current cold run: next sector, and remaining sectors.
    run: (u64, u64),
}

impl Bimodal {
    /// A generator over `span / scale` bytes.
    ///
    /// # Errors
    /// A span, used part or hot set that do not fit into each other.
    pub(super) fn new(profile: Profile, seed: u64) -> Result<Self, String> {
        let scaled = |size: ByteSize| size.0 / u64::from(profile.scale);
        let used_sectors = scaled(profile.used) / SECTOR_BYTES / PAGE_SECTORS * PAGE_SECTORS;
        if profile.used > profile.span {
            return Err(format!(
                "{} cannot be used of a span of {}; set both, or `scale` alone",
                profile.used, profile.span
            ));
        }
        let hot_bytes = scaled(profile.hot_set);
        let hot_extent_pages = profile.hot_extent.0.min(hot_bytes).div_ceil(PAGE_SECTORS * SECTOR_BYTES).max(1);
        let hot_extents = hot_bytes.div_ceil(hot_extent_pages * PAGE_SECTORS * SECTOR_BYTES).max(1);
        let hot_pages = hot_extents * hot_extent_pages;
        let needed_sectors = (2 * hot_pages * PAGE_SECTORS).max(4096);
        if used_sectors < needed_sectors {
            return Err(format!(
                "after scaling, {} are used; the hot set and the largest requests need {}",
                ByteSize(used_sectors * SECTOR_BYTES),
                ByteSize(needed_sectors * SECTOR_BYTES)
            ));
        }
        let mut state = seed;
        Ok(Self {
            left: profile.requests,
            arrivals: Arrivals::new(profile.interval_us),
            popularity: Zipf::new(hot_pages, profile.theta),
            hot_order: Permutation::new(hot_pages, random::split_mix(&mut state)),
            hot_key: random::split_mix(&mut state),
            hot_extents,
            hot_extent_pages,
            used_sectors,
            run: (0, 0),
            state,
            profile,
        })
    }

    /// First sector of a page of the hot set. The used part is divided into equal cells, with one extent at a random
    /// place in each.
    fn hot_page(&self, page: u64) -> u64 {
        let cell = page / self.hot_extent_pages;
        let cell_pages = self.used_sectors / PAGE_SECTORS / self.hot_extents;
        let mut key = self.hot_key ^ cell;
        let extent = cell * cell_pages + random::below(&mut key, cell_pages - self.hot_extent_pages + 1);
        (extent + page % self.hot_extent_pages) * PAGE_SECTORS
    }

    fn size(&mut self, sizes: Sizes) -> u32 {
        choose(&mut self.state, sizes).unwrap_or(8)
    }

    /// A random page-aligned place for `sectors` sectors in the used part.
    fn anywhere(&mut self, sectors: u64) -> u64 {
        random::below(&mut self.state, (self.used_sectors - sectors) / PAGE_SECTORS + 1) * PAGE_SECTORS
    }

    fn small_write(&mut self) -> (u64, u32) {
        let sectors = self.size(self.profile.small_sizes);
        let page = if random::unit(&mut self.state) < self.profile.hot_share {
            let rank = self.popularity.draw(&mut self.state);
            self.hot_page(self.hot_order.of(rank))
        } else {
            self.anywhere(PAGE_SECTORS)
        };
        let slots = PAGE_SECTORS / u64::from(sectors);
        (page + random::below(&mut self.state, slots) * u64::from(sectors), sectors)
    }

    /// The next piece of a run: contiguous file data with an exponentially distributed length.
    fn large_write(&mut self) -> (u64, u32) {
        let sectors = self.size(self.profile.large_sizes);
        if self.run.1 < u64::from(sectors) {
            let mean_sectors = (self.profile.run.0 / SECTOR_BYTES) as f64;
            let drawn = -ln(1.0 - random::unit(&mut self.state)) * mean_sectors;
            let length = whole(drawn).clamp(u64::from(sectors), self.used_sectors);
            self.run = (self.anywhere(length), length);
        }
        let sector = self.run.0;
        self.run = (sector + u64::from(sectors), self.run.1 - u64::from(sectors));
        (sector, sectors)
    }
}

impl Iterator for Bimodal {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.left = self.left.checked_sub(1)?;
        let arrival_ns = self.arrivals.next(&mut self.state);
        let (op, (sector, sectors)) = if random::unit(&mut self.state) < self.profile.read_share {
            let sectors = self.size(self.profile.read_sizes);
            (Op::Read, (self.anywhere(u64::from(sectors)), sectors))
        } else if random::unit(&mut self.state) < self.profile.small_share {
            (Op::Write, self.small_write())
        } else {
            (Op::Write, self.large_write())
        };
        Some(Request { arrival_ns, sector, sectors, op, handle: 0 })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, usize::try_from(self.left).ok())
    }
}

/// Common code of both workloads' tests.
#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Shares of small writes among write requests and among written sectors, and the counts by size.
    pub(in crate::workload) fn shares(requests: &[Request]) -> (f64, f64, Vec<(u32, usize)>) {
        let writes: Vec<u32> =
            requests.iter().filter(|request| request.op == Op::Write).map(|request| request.sectors).collect();
        let small: Vec<u32> = writes.iter().copied().filter(|&sectors| sectors <= 8).collect();
        let sum = |sizes: &[u32]| sizes.iter().map(|&sectors| f64::from(sectors)).sum::<f64>();
        let mut counts: Vec<(u32, usize)> = (0..11)
            .map(|power| 1 << power)
            .map(|size| (size, writes.iter().filter(|&&sectors| sectors == size).count()))
            .collect();
        counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        (small.len() as f64 / writes.len() as f64, sum(&small) / sum(&writes), counts)
    }
}
