//! Units and addresses as newtypes, so that a block is never taken for a page; sizes as people write them.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Range, Sub};

use crate::request::Request;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A span of simulated time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// From microseconds, the unit of data sheets and papers.
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1000)
    }

    /// In microseconds.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// In seconds.
    pub fn as_s(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Nanos {
    type Output = Self;
    fn mul(self, count: u64) -> Self {
        Self(self.0 * count)
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self(0), Add::add)
    }
}

/// A region of a device: its position in the device's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RegionId(pub u8);

impl RegionId {
    /// As an index into the device's list of regions.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A physical block of one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockId(pub u32);

impl BlockId {
    /// As an index into a table of the region's blocks.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A physical page of one region: block and page-in-block packed into 32 bits by [`Geometry`].
///
/// The page takes the low `ceil(log2(pages_per_block))` bits, so that unpacking is a shift even if a block has 384
/// pages; tables indexed by it have [`Geometry::page_slots`] entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ppa(pub u32);

crate::save::words!(Ppa { 0: u32 });

impl Ppa {
    /// No page: an unmapped logical page.
    pub const NONE: Self = Self(u32::MAX);

    /// As an index into a table of the region's page slots.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Host sectors divided into pages, or mapping units, of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Division {
    page_sectors: u32,
    /// `ceil(2^63 / page_sectors)`: makes the division of an address a multiplication.
    reciprocal: u64,
}

/// The part of a request that falls on one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The logical page, or mapping unit.
    pub page: u32,
    /// First sector within it.
    pub first: u32,
    /// Number of sectors.
    pub sectors: u32,
    /// First sector within the request.
    pub at: u32,
}

/// Largest number of pages of a request for which memory is prefetched.
const PAGES_AHEAD_MAX: u32 = 16;

impl Division {
    /// Divides into pages of this number of sectors, at least 1.
    pub fn by(page_sectors: u32) -> Self {
        Self { page_sectors, reciprocal: (1u64 << 63).div_ceil(u64::from(page_sectors)) }
    }

    /// Sectors of a page.
    #[inline]
    pub fn page_sectors(&self) -> u32 {
        self.page_sectors
    }

    /// The page that a sector lies in, and the sector's position within it. Exact below 2^56 sectors.
    #[inline]
    pub fn page_of(&self, sector: u64) -> (u32, u32) {
        let page = ((u128::from(sector) * u128::from(self.reciprocal)) >> 63) as u64;
        (page as u32, (sector - page * u64::from(self.page_sectors)) as u32)
    }

    /// The spans of a request, in order.
    #[inline]
    pub fn spans(&self, request: &Request) -> impl Iterator<Item = Span> + use<> {
        let page_sectors = self.page_sectors;
        let (mut page, mut first) = self.page_of(request.sector);
        let (mut at, total) = (0, request.sectors);
        std::iter::from_fn(move || {
            if at >= total {
                return None;
            }
            let sectors = (page_sectors - first).min(total - at);
            let span = Span { page, first, sectors, at };
            (page, first, at) = (page + 1, 0, at + sectors);
            Some(span)
        })
    }

    /// The first pages of a request, as many as should be prefetched into the processor's cache.
    #[inline]
    pub fn pages_ahead(&self, request: &Request) -> Range<u32> {
        let last_sector = request.sector + u64::from(request.sectors.max(1) - 1);
        let (first, last) = (self.page_of(request.sector).0, self.page_of(last_sector).0);
        first..(last + 1).min(first + PAGES_AHEAD_MAX)
    }
}

/// Layout of the blocks and pages of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    /// Bytes of a page, a multiple of 512.
    pub page_bytes: u32,
    /// Pages of a block; not necessarily a power of two: 384, for example.
    pub pages_per_block: u32,
    /// Blocks of the region.
    pub blocks: u32,
    /// Dies that the blocks are striped over: block `b` lies on die `b % dies`.
    pub dies: u32,
    /// Consecutive pages on one die before the next die takes its turn: the pages that a die reads together, 1 if it
    /// reads them one by one.
    pub stripe_pages: u32,
    page_bits: u32,
    reciprocal: u64,
}

impl Geometry {
    /// Checks that a page address fits into 32 bits.
    ///
    /// # Errors
    /// What is wrong, as a sentence.
    pub fn new(page_bytes: u32, pages_per_block: u32, blocks: u32, dies: u32) -> Result<Self, String> {
        if page_bytes == 0 || !page_bytes.is_multiple_of(512) || page_bytes > 64 << 10 {
            return Err(format!("a page of {page_bytes} bytes is not a multiple of 512 up to 64 KiB"));
        }
        if pages_per_block == 0 || pages_per_block > 1 << 16 {
            return Err(format!("{pages_per_block} pages per block is not within 1 to 65536"));
        }
        if dies == 0 || dies > 4096 {
            return Err(format!("{dies} dies is not within 1 to 4096"));
        }
        if blocks < dies {
            return Err(format!(
                "the number of blocks, {blocks}, is less than the number of dies, {dies}: a die needs a block"
            ));
        }
        Self::addressed(page_bytes, pages_per_block, blocks, dies)
    }

    /// Lines of blocks across all dies, as the blocks of one die. Left-over blocks belong to no line.
    ///
    /// # Errors
    /// Page addresses that do not fit into 32 bits.
    pub fn in_lines(&self) -> Result<Self, String> {
        Self::addressed(self.page_bytes, self.pages_per_block * self.dies, self.blocks / self.dies, 1)
    }

    /// The same blocks with each page divided into `parts` equal pages. Stripes remain numbers of undivided pages.
    ///
    /// # Errors
    /// Page addresses that do not fit into 32 bits.
    pub fn divided(&self, parts: u32) -> Result<Self, String> {
        let divided = Self::addressed(self.page_bytes / parts, self.pages_per_block * parts, self.blocks, self.dies)?;
        Ok(divided.striped(self.stripe_pages))
    }

    fn addressed(page_bytes: u32, pages_per_block: u32, blocks: u32, dies: u32) -> Result<Self, String> {
        let page_bits = pages_per_block.next_power_of_two().trailing_zeros();
        if u64::from(blocks) << page_bits >= u64::from(u32::MAX) {
            return Err(format!(
                "{blocks} blocks of {pages_per_block} pages exceed the 2^32 pages that one region can address"
            ));
        }
        let Division { reciprocal, .. } = Division::by(page_bytes / 512);
        Ok(Self { page_bytes, pages_per_block, blocks, dies, stripe_pages: 1, page_bits, reciprocal })
    }

    /// The same with `stripe_pages` consecutive pages, at least 1, on a die before the next takes its turn.
    #[must_use]
    pub fn striped(self, stripe_pages: u32) -> Self {
        Self { stripe_pages: stripe_pages.max(1), ..self }
    }

    /// Host sectors of a page.
    pub fn page_sectors(&self) -> u32 {
        self.page_bytes / 512
    }

    /// Host sectors divided into logical pages.
    #[inline]
    pub fn division(&self) -> Division {
        Division { page_sectors: self.page_sectors(), reciprocal: self.reciprocal }
    }

    /// The logical page that a host sector lies in, and the sector's position within it. Exact below 2^56 sectors.
    #[inline]
    pub fn logical_page(&self, sector: u64) -> (u32, u32) {
        self.division().page_of(sector)
    }

    /// The parts of a request that fall on each logical page, in order.
    #[inline]
    pub fn spans(&self, request: &Request) -> impl Iterator<Item = Span> + use<> {
        self.division().spans(request)
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> u64 {
        u64::from(self.page_bytes) * u64::from(self.pages_per_block)
    }

    /// Bytes of the region.
    pub fn capacity_bytes(&self) -> u64 {
        self.block_bytes() * u64::from(self.blocks)
    }

    /// Pages of the region.
    pub fn pages(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.pages_per_block)
    }

    /// Entries of a table indexed by [`Ppa`].
    pub fn page_slots(&self) -> usize {
        (self.blocks as usize) << self.page_bits
    }

    /// Packs an address.
    #[inline]
    pub fn ppa(&self, block: BlockId, page: u32) -> Ppa {
        debug_assert!(block.0 < self.blocks && page < self.pages_per_block);
        Ppa(block.0 << self.page_bits | page)
    }

    /// The block of a page.
    #[inline]
    pub fn block_of(&self, ppa: Ppa) -> BlockId {
        BlockId(ppa.0 >> self.page_bits)
    }

    /// The page's position in its block.
    #[inline]
    pub fn page_of(&self, ppa: Ppa) -> u32 {
        ppa.0 & ((1 << self.page_bits) - 1)
    }

    /// Whether the region has this page.
    #[inline]
    pub fn has_page(&self, ppa: Ppa) -> bool {
        self.block_of(ppa).0 < self.blocks && self.page_of(ppa) < self.pages_per_block
    }

    /// The die of a block, within the region.
    pub fn die_of(&self, block: BlockId) -> u32 {
        block.0 % self.dies
    }
}

/// A number of bytes as people write it: `512`, `64KiB`, `256MiB`, `20 GiB`; `K`, `M`, `G`, `T` are binary too and
/// `KB`, `MB`, `GB`, `TB` decimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

const SUFFIXES: &[(&str, u64)] = &[
    ("pib", 1 << 50),
    ("tib", 1 << 40),
    ("gib", 1 << 30),
    ("mib", 1 << 20),
    ("kib", 1 << 10),
    ("pb", 1_000_000_000_000_000),
    ("tb", 1_000_000_000_000),
    ("gb", 1_000_000_000),
    ("mb", 1_000_000),
    ("kb", 1_000),
    ("p", 1 << 50),
    ("t", 1 << 40),
    ("g", 1 << 30),
    ("m", 1 << 20),
    ("k", 1 << 10),
    ("b", 1),
];

impl std::str::FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.trim().to_ascii_lowercase();
        let (number, unit) = SUFFIXES
            .iter()
            .find_map(|&(suffix, unit)| lower.strip_suffix(suffix).map(|number| (number.trim(), unit)))
            .unwrap_or((lower.as_str(), 1));
        let wrong = || format!("`{text}` is not a size; write for example 4096, 64KiB, 256MiB or 20GiB");
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(unit).map(Self).ok_or_else(|| format!("`{text}` is larger than 2^64 bytes"));
        }
        if !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(wrong());
        }
        let fraction: f64 = number.parse().map_err(|_| wrong())?;
        let bytes = fraction * unit as f64;
        if bytes >= u64::MAX as f64 {
            return Err(format!("`{text}` is larger than 2^64 bytes"));
        }
        Ok(Self(bytes.round() as u64))
    }
}

impl fmt::Display for ByteSize {
    /// Exact: the largest binary unit that divides the number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &(name, unit) in &[("TiB", 1u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
            if self.0 != 0 && self.0.is_multiple_of(unit) {
                return f.pad(&format!("{}{name}", self.0 / unit));
            }
        }
        f.pad(&self.0.to_string())
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        if !deserializer.is_human_readable() {
            return u64::deserialize(deserializer).map(Self);
        }
        match Written::deserialize(deserializer)? {
            Written::Number(bytes) => Ok(Self(bytes)),
            Written::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

/// The greatest common divisor.
pub fn greatest_common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_as_people_write_them() {
        for (text, bytes) in [
            ("4096", 4096),
            ("64KiB", 64 << 10),
            ("256 MiB", 256 << 20),
            ("20g", 20 << 30),
            ("1.5GiB", 3 << 29),
            ("1MB", 1_000_000),
            ("2PB", 2_000_000_000_000_000),
            ("1 PiB", 1 << 50),
            ("7b", 7),
        ] {
            assert_eq!(text.parse::<ByteSize>(), Ok(ByteSize(bytes)), "{text}");
        }
        for text in ["", "GiB", "-1", "1e3", "1.2.3MiB", "inf", "99999999999TiB", "12 parsecs"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_print_exactly() {
        assert_eq!(ByteSize(256 << 20).to_string(), "256MiB");
        assert_eq!(ByteSize(1000).to_string(), "1000");
        assert_eq!(ByteSize(0).to_string(), "0");
    }

    #[test]
    fn a_block_of_384_pages_packs_and_unpacks() {
        let geometry = Geometry::new(8192, 384, 100, 2).unwrap();
        let ppa = geometry.ppa(BlockId(77), 383);
        assert_eq!((geometry.block_of(ppa), geometry.page_of(ppa)), (BlockId(77), 383));
        assert!(ppa.index() < geometry.page_slots());
        assert_eq!(geometry.block_bytes(), 3 << 20);
    }

    #[test]
    fn sectors_divide_into_pages_exactly() {
        for page_sectors in [1, 3, 4, 8, 16, 24, 32, 128] {
            let geometry = Geometry::new(page_sectors * 512, 64, 10, 1).unwrap();
            for base in [0, 1 << 20, (1u64 << 32) - 7] {
                for sector in (base * u64::from(page_sectors)).saturating_sub(5)..base * u64::from(page_sectors) + 5 {
                    let (page, offset) = geometry.logical_page(sector);
                    assert_eq!(u64::from(page), (sector / u64::from(page_sectors)) & 0xffff_ffff, "{sector}");
                    assert_eq!(u64::from(offset), sector % u64::from(page_sectors), "{sector}");
                }
            }
        }
    }

    #[test]
    fn geometries_that_cannot_be_are_refused() {
        assert!(Geometry::new(1000, 64, 10, 1).is_err());
        assert!(Geometry::new(4096, 0, 10, 1).is_err());
        assert!(Geometry::new(4096, 64, 3, 4).is_err());
        assert!(Geometry::new(4096, 256, 1 << 24, 1).is_err());
    }
}
