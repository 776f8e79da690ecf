//! Units of an address space, such as pages or extents, that requests touch.

use std::ops::Range;

use fixedbitset::FixedBitSet;

/// Bits of the bitmap for each range. With more, it would take more memory than the requests.
const BITS_PER_RANGE: u64 = 64;

/// Bits that any bitmap may have.
const BITS_MIN: u64 = 1 << 20;

/// The units in these ranges as a bitmap, much faster than sorting. `None` if the ranges are so few, or so long, that
/// sorting is better.
pub(crate) fn bitmap(ranges: impl Iterator<Item = Range<u64>> + Clone) -> Option<FixedBitSet> {
    let (mut bits_max, mut end, mut units) = (BITS_MIN, 0, 0u64);
    for range in ranges.clone() {
        bits_max += BITS_PER_RANGE;
        end = end.max(range.end);
        units = units.saturating_add(range.end - range.start);
    }
    // Long ranges that overlap would be set again and again.
    if end > bits_max || units / BITS_PER_RANGE > bits_max {
        return None;
    }
    let mut bits = FixedBitSet::with_capacity(end as usize);
    for range in ranges {
        bits.insert_range(range.start as usize..range.end as usize);
    }
    Some(bits)
}

/// Runs of consecutive units of a bitmap, in order.
pub(crate) fn runs(bits: &FixedBitSet) -> impl Iterator<Item = Range<u64>> {
    let mut ones = bits.ones().map(|unit| unit as u64).peekable();
    std::iter::from_fn(move || {
        let from = ones.next()?;
        let mut to = from + 1;
        while ones.next_if_eq(&to).is_some() {
            to += 1;
        }
        Some(from..to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_what_ranges_cover() {
        let ranges = [70..75, 3..4, 72..130, 4..5, 200..201, 9..9];
        let bits = bitmap(ranges.into_iter()).unwrap();
        assert_eq!(bits.count_ones(..), 63);
        assert_eq!(runs(&bits).collect::<Vec<_>>(), [3..5, 70..130, 200..201]);
        assert_eq!(runs(&bitmap(std::iter::empty()).unwrap()).count(), 0);
    }

    #[test]
    fn few_ranges_far_apart_and_long_ranges_have_no_bitmap() {
        assert!(bitmap([0..1, BITS_MIN..BITS_MIN + 1].into_iter()).is_some());
        assert!(bitmap([0..1, 2 * BITS_MIN..2 * BITS_MIN + 1].into_iter()).is_none());
        assert!(bitmap(std::iter::repeat_n(0..BITS_MIN, 70)).is_none());
    }
}
