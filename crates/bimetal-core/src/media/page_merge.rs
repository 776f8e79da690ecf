//! Assembling a flash page from several sources: the host's payload and pages that were read.

use arrayvec::ArrayVec;

use super::Part;

/// Sectors of the largest page (64 KiB).
const PAGE_SECTORS_MAX: usize = 128;

/// The parts of a page to be programmed. Parts added first take precedence, because they are the newest.
#[derive(Debug)]
pub struct PageMerge<D: Copy> {
    parts: ArrayVec<Part<D>, PAGE_SECTORS_MAX>,
    covered: u128,
}

/// A mask of `sectors` sectors starting at `first`.
#[inline]
fn mask(first: u32, sectors: u32) -> u128 {
    if sectors == 0 { 0 } else { (u128::MAX >> (128 - sectors)) << first }
}

impl<D: Copy> Default for PageMerge<D> {
    #[inline]
    fn default() -> Self {
        Self { parts: ArrayVec::new_const(), covered: 0 }
    }
}

impl<D: Copy> PageMerge<D> {
    /// Sectors covered so far.
    #[inline]
    pub fn sectors(&self) -> u32 {
        self.covered.count_ones()
    }

    /// Whether all of the `sectors` sectors starting at `first` are covered.
    #[inline]
    pub fn covers(&self, first: u32, sectors: u32) -> bool {
        mask(first, sectors) & !self.covered == 0
    }

    /// The parts, for programming.
    #[inline]
    pub fn parts(&self) -> &[Part<D>] {
        &self.parts
    }

    /// Adds those of the `sectors` sectors starting at `first` that are not covered yet. They start at sector `from` of
    /// the source.
    #[inline]
    pub fn fill(&mut self, data: D, from: u32, first: u32, sectors: u32) {
        self.fill_with(from, first, sectors, || Some(data));
    }

    /// The same with a source that is read only if a sector is not covered yet. `None` is a source without data.
    #[inline]
    pub fn fill_with(&mut self, from: u32, first: u32, sectors: u32, read: impl FnOnce() -> Option<D>) {
        let wanted = mask(first, sectors);
        let gaps = wanted & !self.covered;
        if gaps == 0 {
            return;
        }
        let Some(data) = read() else { return };
        self.covered |= wanted;
        if gaps == wanted {
            self.parts.push(Part { data, from, to: first, sectors });
        } else {
            self.fill_gaps(data, from, first, gaps);
        }
    }

    /// Adds the sectors `gaps` of a source whose sector `from` becomes sector `first`.
    fn fill_gaps(&mut self, data: D, from: u32, first: u32, mut gaps: u128) {
        while gaps != 0 {
            let to = gaps.trailing_zeros();
            let run = (gaps >> to).trailing_ones();
            gaps &= !mask(to, run);
            self.parts.push(Part { data, from: from + (to - first), to, sectors: run });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_filled_around_what_is_there() {
        let mut merge = PageMerge::default();
        merge.fill('n', 0, 2, 3);
        merge.fill('m', 9, 6, 1);
        merge.fill('o', 0, 0, 8);
        let parts: Vec<_> = merge.parts().iter().map(|part| (part.data, part.from, part.to, part.sectors)).collect();
        assert_eq!(parts, [('n', 0, 2, 3), ('m', 9, 6, 1), ('o', 0, 0, 2), ('o', 5, 5, 1), ('o', 7, 7, 1)]);
        assert_eq!((merge.sectors(), merge.covers(0, 8), merge.covers(7, 2)), (8, true, false));
        merge.fill_with(0, 0, 128, || None);
        assert_eq!(merge.sectors(), 8, "a source without data covers nothing");
        merge.fill('x', 0, 0, 128);
        merge.fill_with(0, 5, 9, || unreachable!("there is no gap"));
        assert_eq!(merge.sectors(), 128);
    }
}
