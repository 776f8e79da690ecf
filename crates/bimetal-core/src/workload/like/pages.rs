//! The touched pages, from the most recent one, and the properties of each.

use super::Shape;
use crate::part::page_index::PageIndex;
use crate::part::reuse_stack::ReuseStacks;
use crate::request::{Op, Request};

/// Roles of a page by the last request that began there. Role 0: none, because a request has passed through the page
/// since. Then up to 1, 4, 8, 16 and more whole pages; then the same for requests that are not whole pages.
pub(super) const ROLES: usize = 11;

/// Longest remembered request, in sectors: 27 bits besides an offset and two marks.
const SECTORS_MAX: u32 = (1 << 27) - 1;

/// Classes of pages by the number of touches: up to 1, 3, 7, … touches; the last class is open.
const HEATS: u8 = 16;

/// Bytes of memory for each page of a capacity: 33 of the stack, and 12 of each index.
pub(super) const MEMORY_PER_PAGE: u64 = 57;

/// The known properties of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// Whether it was read (bit 0) and written (bit 1), and the last request that began there: its offset in the page
    /// (3 bits) and its length, both in sectors. The length is 0 if a request has passed through the page since.
    marks: u32,
    touches: u32,
}

/// The properties by which a request chooses a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Class {
    /// Whether it was read (bit 0) and written (bit 1).
    state: u8,
    /// The role of the request that begins there.
    role: u8,
    /// Power of two of the number of touches.
    heat: u8,
}

impl Class {
    /// Distance between two classes; 0 if they are equal.
    pub(super) fn distance(self, other: Self) -> u32 {
        let heats = u32::from(HEATS);
        2 * heats * u32::from(self.state != other.state)
            + heats * u32::from(self.role != other.role)
            + u32::from(self.heat.abs_diff(other.heat))
    }

    /// The role of the request that begins there.
    pub(super) fn role(self) -> usize {
        usize::from(self.role)
    }
}

/// Age of a request's last page, by the number of other pages touched since its last touch, in quadruplings. A special
/// value means never touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Age(u8);

impl Age {
    pub(super) const NEW: Self = Self(u8::MAX);

    /// Distance between two ages. A new page is farther from all ages than these are from each other.
    pub(super) fn distance(self, other: Self) -> u32 {
        u32::from(self.0.abs_diff(other.0))
    }
}

impl Known {
    /// The last request that began there.
    pub(super) fn shape(self) -> Option<Shape> {
        let shape = Shape { sectors: self.marks >> 5, offset: (self.marks >> 2 & 7) as u8 };
        (shape.sectors > 0).then_some(shape)
    }

    /// The role of the last request that began there.
    pub(super) fn role(self) -> usize {
        let Some(shape) = self.shape() else { return 0 };
        let length = match shape.pages() {
            0..=1 => 1,
            2..=4 => 2,
            5..=8 => 3,
            9..=16 => 4,
            _ => 5,
        };
        if shape.is_whole() { length } else { length + 5 }
    }

    /// The class by which requests choose it.
    pub(super) fn class(self) -> Class {
        let heat = self.touches.max(1).ilog2().min(u32::from(HEATS) - 1) as u8;
        Class { state: (self.marks & 3) as u8, role: self.role() as u8, heat }
    }
}

/// All touched pages.
#[derive(Debug)]
pub(super) struct Pages {
    recent: ReuseStacks,
    marks: PageIndex,
    touches: PageIndex,
    capacity: u32,
}

impl Pages {
    /// An empty set with room for `capacity` pages.
    pub(super) fn new(capacity: u32) -> Self {
        let index = || PageIndex::new(capacity);
        Self { recent: ReuseStacks::new(capacity), marks: index(), touches: index(), capacity }
    }

    pub(super) fn len(&self) -> u32 {
        self.marks.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.marks.len() == self.capacity
    }

    pub(super) fn contains(&self, page: u64) -> bool {
        self.marks.get(page as u32).is_some()
    }

    pub(super) fn known(&self, page: u32) -> Option<Known> {
        Some(Known { marks: self.marks.get(page)?, touches: self.touches.get(page)? })
    }

    /// The number of other pages touched since, and the properties of the page.
    pub(super) fn find(&self, page: u64) -> Option<(u32, Known)> {
        Some((self.recent.position(page as u32)?, self.known(page as u32)?))
    }

    /// The age of a page.
    pub(super) fn age(&self, page: u64) -> Age {
        let position = self.recent.position(page as u32);
        position.map_or(Age::NEW, |position| Age((position.saturating_add(1).ilog2() / 2) as u8))
    }

    /// Whether a page was touched by a request of this kind.
    pub(super) fn is_of(&self, page: u32, op: Op) -> bool {
        self.marks.get(page).is_some_and(|marks| marks & mark(op) != 0)
    }

    /// Pages from a position towards the most recent one.
    pub(super) fn towards_recent_from(&self, position: u32) -> impl Iterator<Item = u32> {
        self.recent.towards_recent_from(position)
    }

    /// Touches the pages of a read or a write. If there is no room, new pages are ignored.
    pub(super) fn touch(&mut self, request: &Request) {
        let (first, end) = request.pages();
        let shape = Shape::of(request);
        let begins = request.sectors.min(SECTORS_MAX) << 5 | u32::from(shape.offset) << 2;
        for page in first..end {
            if self.is_full() && !self.contains(page) {
                continue;
            }
            let page = page as u32;
            let begin = if u64::from(page) == first { begins } else { 0 };
            self.marks.update(page, |marks| marks.unwrap_or(0) & 3 | mark(request.op) | begin);
            self.touches.update(page, |touches| touches.unwrap_or(0).saturating_add(1));
            self.recent.touch(page);
        }
    }
}

/// The bit of a kind of request.
fn mark(op: Op) -> u32 {
    if op == Op::Read { 1 } else { 2 }
}

/// Positions below this have wider bins, so that each bin has several pages.
const COARSE: u32 = 64;

/// The bin of a position: four for each doubling, from [`COARSE`] on.
pub(super) fn bin(position: u32) -> u8 {
    if position < COARSE {
        return (position / 16).min(2) as u8;
    }
    let power = position.ilog2();
    (3 + (power - COARSE.ilog2()) * 4 + (position >> (power - 2) & 3)) as u8
}

/// First position of a bin, and the end of the bin.
pub(super) fn positions(bin: u8) -> (u32, u32) {
    let first = |bin: u32| match bin.checked_sub(3) {
        None => u64::from(bin) * 16,
        Some(bin) => u64::from(COARSE / 4 * (4 + bin % 4)) << (bin / 4),
    };
    let [from, to] = [0, 1].map(|after| first(u32::from(bin) + after).min(u64::from(u32::MAX)) as u32);
    (from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_as_estimated() {
        let pages = Pages::new(1_000_000);
        let bytes = pages.recent.bytes() + pages.marks.bytes() + pages.touches.bytes();
        assert!((bytes as f64 / 1e6 - MEMORY_PER_PAGE as f64).abs() < 1.0, "{bytes}");
    }

    #[test]
    fn bins_follow_each_other() {
        for position in (0..5000).chain([1 << 20, (1 << 26) - 1, 1 << 26]) {
            let (from, to) = positions(bin(position));
            assert!((from..to).contains(&position), "{position}: {from}..{to}");
            assert!(to - from <= 32.max(position / 4));
        }
    }

    #[test]
    fn a_page_is_known_by_its_last_request() {
        let request = |op, sector, sectors| Request { arrival_ns: 0, sector, sectors, op, handle: 0 };
        let mut pages = Pages::new(3);
        pages.touch(&request(Op::Write, 11, 20));
        let (position, known) = pages.find(1).unwrap();
        assert_eq!((position, known.shape()), (2, Some(Shape { sectors: 20, offset: 3 })));
        assert_eq!((known.role() - 5, pages.known(2).unwrap().role(), pages.find(4)), (2, 0, None));
        pages.touch(&request(Op::Read, 0, 64));
        assert!(pages.is_full() && pages.known(0).is_none(), "there is no room for page 0");
        let class = pages.known(1).unwrap().class();
        assert_eq!(class, Class { state: 3, role: 0, heat: 1 });
        assert_eq!(class.distance(class), 0);
        assert_eq!(pages.towards_recent_from(2).collect::<Vec<_>>(), [1, 2, 3]);
    }
}
