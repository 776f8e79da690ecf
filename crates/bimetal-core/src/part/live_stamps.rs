//! A set of consecutive stamps that counts its members before a given stamp.
//!
//! There is a bit per stamp, and counts of the members of 64, 2,048, 65,536 and 2^21 stamps. A query adds up the
//! preceding counts at each of these levels. That is at most 32 per level and takes constant time, since the processor
//! adds many at once. Adding or removing a member changes one count per level.

use serde::{Deserialize, Serialize};

use crate::save::Table;

/// Stamps per word of bits.
const WORD: usize = 64;

/// Number of counts that one count of the next level covers.
const FAN: usize = 32;

/// Stamps per group.
const GROUP: usize = WORD * FAN;
const REGION: usize = GROUP * FAN;
const SPACE: usize = REGION * FAN;

/// Counts aligned to cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Counts<T>([T; FAN]);

/// Members among the stamps `0..stamps`. Only the bits are saved, because the counts follow from them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Bits")]
pub struct LiveStamps {
    bits: Table<u64>,
    /// Members of each word, by group.
    #[serde(skip_serializing)]
    words: Vec<Counts<u16>>,
    /// Members of each group, by region.
    #[serde(skip_serializing)]
    groups: Vec<Counts<u16>>,
    /// Members of each region, by space.
    #[serde(skip_serializing)]
    regions: Vec<Counts<u32>>,
    /// Members of each space.
    #[serde(skip_serializing)]
    spaces: Vec<u32>,
}

/// The saved form.
#[derive(Deserialize)]
struct Bits {
    bits: Table<u64>,
}

impl From<Bits> for LiveStamps {
    fn from(Bits { bits }: Bits) -> Self {
        let mut stamps = Self::new(bits.len() * WORD);
        for (word, bits) in bits.iter().enumerate() {
            let (stamp, members) = (word * WORD, bits.count_ones());
            stamps.words[stamp / GROUP].0[word % FAN] = members as u16;
            stamps.groups[stamp / REGION].0[stamp / GROUP % FAN] += members as u16;
            stamps.regions[stamp / SPACE].0[stamp / REGION % FAN] += members;
            stamps.spaces[stamp / SPACE] += members;
        }
        stamps.bits = bits;
        stamps
    }
}

impl LiveStamps {
    /// An empty set for `stamps` stamps.
    pub fn new(stamps: usize) -> Self {
        Self {
            bits: vec![0; stamps.div_ceil(WORD)].into(),
            words: vec![Counts([0; FAN]); stamps.div_ceil(GROUP)],
            groups: vec![Counts([0; FAN]); stamps.div_ceil(REGION)],
            regions: vec![Counts([0; FAN]); stamps.div_ceil(SPACE)],
            spaces: vec![0; stamps.div_ceil(SPACE)],
        }
    }

    /// Whether the set is sized for `stamps` stamps and has no member beyond them.
    pub fn are_among(&self, stamps: usize) -> bool {
        self.bits.len() == stamps.div_ceil(WORD) && self.first(stamps) >= self.bits.len() * WORD
    }

    /// The members, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let members = |(word, &bits): (usize, &u64)| {
            let rest = std::iter::successors(Some(bits), |rest| Some(rest & rest.wrapping_sub(1)));
            let rest = rest.take_while(|&rest| rest != 0);
            rest.map(move |rest| word * WORD + rest.trailing_zeros() as usize)
        };
        self.bits.iter().enumerate().flat_map(members)
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        let small = size_of_val(&self.words[..]) + size_of_val(&self.groups[..]);
        size_of_val(&self.bits[..]) + small + size_of_val(&self.regions[..]) + size_of_val(&self.spaces[..])
    }

    /// Whether a stamp is a member.
    #[inline]
    pub fn contains(&self, stamp: usize) -> bool {
        self.bits[stamp / WORD] & (1 << (stamp % WORD)) != 0
    }

    /// Number of members.
    pub fn len(&self) -> u32 {
        self.spaces.iter().sum()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a stamp that is not a member.
    #[inline]
    pub fn set(&mut self, stamp: usize) {
        debug_assert!(!self.contains(stamp));
        self.bits[stamp / WORD] |= 1 << (stamp % WORD);
        self.words[stamp / GROUP].0[stamp / WORD % FAN] += 1;
        self.groups[stamp / REGION].0[stamp / GROUP % FAN] += 1;
        self.regions[stamp / SPACE].0[stamp / REGION % FAN] += 1;
        self.spaces[stamp / SPACE] += 1;
    }

    /// Removes a member.
    #[inline]
    pub fn clear(&mut self, stamp: usize) {
        debug_assert!(self.contains(stamp));
        self.bits[stamp / WORD] &= !(1 << (stamp % WORD));
        self.words[stamp / GROUP].0[stamp / WORD % FAN] -= 1;
        self.groups[stamp / REGION].0[stamp / GROUP % FAN] -= 1;
        self.regions[stamp / SPACE].0[stamp / REGION % FAN] -= 1;
        self.spaces[stamp / SPACE] -= 1;
    }

    /// Number of members up to and including a stamp.
    #[inline]
    pub fn through(&self, stamp: usize) -> u32 {
        let bits = self.bits[stamp / WORD] << (WORD - 1 - stamp % WORD);
        let words = sum_of_small(&self.words[stamp / GROUP], stamp / WORD % FAN);
        let groups = sum_of_small(&self.groups[stamp / REGION], stamp / GROUP % FAN);
        let regions = sum_of_large(&self.regions[stamp / SPACE], stamp / REGION % FAN);
        let spaces: u32 = self.spaces[..stamp / SPACE].iter().sum();
        bits.count_ones() + words + groups + regions + spaces
    }

    /// The first member at or after a stamp. If there is none, a number not below the number of all stamps.
    #[inline]
    pub fn first(&self, from: usize) -> usize {
        let mut word = from / WORD;
        let Some(&bits) = self.bits.get(word) else { return from };
        let mut bits = bits & (u64::MAX << (from % WORD));
        while bits == 0 {
            word += 1;
            match self.bits.get(word) {
                Some(&next) => bits = next,
                None => return word * WORD,
            }
        }
        word * WORD + bits.trailing_zeros() as usize
    }

    /// Makes the `members` consecutive stamps from `first` on, around a ring of `stamps` stamps, the only members.
    pub fn set_only(&mut self, first: usize, members: usize, stamps: usize) {
        let (end, wrapped) = ((first + members).min(stamps), (first + members).saturating_sub(stamps));
        // Number of members before a stamp; `wrapped` is at most `first`.
        let before = |stamp: usize| stamp.min(wrapped) + stamp.clamp(first, end) - first;
        let of = |at: usize, size: usize| before((at + 1) * size) - before(at * size);
        for (at, bits) in self.bits.as_mut_slice().iter_mut().enumerate() {
            *bits = match of(at, WORD) {
                0 => 0,
                WORD => u64::MAX,
                _ => (0..WORD).fold(0, |bits, bit| bits | (of(at * WORD + bit, 1) as u64) << bit),
            };
        }
        let words = self.words.iter_mut().flat_map(|counts| &mut counts.0);
        words.enumerate().for_each(|(at, count)| *count = of(at, WORD) as u16);
        let groups = self.groups.iter_mut().flat_map(|counts| &mut counts.0);
        groups.enumerate().for_each(|(at, count)| *count = of(at, GROUP) as u16);
        let regions = self.regions.iter_mut().flat_map(|counts| &mut counts.0);
        regions.enumerate().for_each(|(at, count)| *count = of(at, REGION) as u32);
        self.spaces.iter_mut().enumerate().for_each(|(at, count)| *count = of(at, SPACE) as u32);
    }
}

/// Ones followed by zeros: the slice from `FAN - n` on holds the masks of the first `n` counts.
static MASKS: [u32; 2 * FAN] = {
    let mut masks = [0; 2 * FAN];
    let mut at = 0;
    while at < FAN {
        masks[at] = u32::MAX;
        at += 1;
    }
    masks
};

/// The same for counts of half the width.
static SMALL_MASKS: [u16; 2 * FAN] = {
    let mut masks = [0; 2 * FAN];
    let mut at = 0;
    while at < FAN {
        masks[at] = u16::MAX;
        at += 1;
    }
    masks
};

/// The sum of the counts before one. It fits in 16 bits, since the last count is never included.
#[inline]
fn sum_of_small(counts: &Counts<u16>, before: usize) -> u32 {
    let masks = &SMALL_MASKS[FAN - before % FAN..][..FAN];
    // Masks instead of a loop bound: all counts are read, but several at once.
    let sum = counts.0.iter().zip(masks).fold(0u16, |sum, (count, mask)| sum.wrapping_add(count & mask));
    u32::from(sum)
}

/// The sum of the counts before one.
#[inline]
fn sum_of_large(counts: &Counts<u32>, before: usize) -> u32 {
    let masks = &MASKS[FAN - before % FAN..][..FAN];
    counts.0.iter().zip(masks).fold(0u32, |sum, (count, mask)| sum.wrapping_add(count & mask))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::random;

    #[test]
    fn members_are_among_their_stamps() {
        let mut live = LiveStamps::new(70);
        live.set(69);
        assert_eq!([69, 70, 128, 129].map(|stamps| live.are_among(stamps)), [false, true, true, false]);
        assert!(LiveStamps::new(128).are_among(128));
    }

    /// Stamps of all kinds of counts, against a plain array.
    #[test]
    fn it_counts_like_an_array() {
        const STAMPS: usize = 2 * SPACE + 3 * REGION + 5 * GROUP + 70;
        let (mut live, mut naive, mut state) = (LiveStamps::new(STAMPS), vec![false; STAMPS], 4);
        let agree = |live: &LiveStamps, naive: &[bool]| {
            assert!(live.iter().eq((0..STAMPS).filter(|&stamp| naive[stamp])));
            let mut members = live.through(STAMPS - 1);
            assert_eq!(members as usize, naive.iter().filter(|&&member| member).count());
            let mut next = None;
            for stamp in (0..STAMPS).rev() {
                assert!(stamp % 97 > 0 || live.through(stamp) == members, "stamp {stamp}");
                members -= u32::from(naive[stamp]);
                next = if naive[stamp] { Some(stamp) } else { next };
                assert!(stamp % 97 > 0 || Some(live.first(stamp)).filter(|&at| at < STAMPS) == next, "stamp {stamp}");
            }
        };
        for _ in 0..STAMPS {
            let stamp = random::below(&mut state, STAMPS as u64) as usize;
            if naive[stamp] {
                live.clear(stamp)
            } else {
                live.set(stamp)
            }
            naive[stamp] = !naive[stamp];
        }
        agree(&live, &naive);
        for (first, members) in
            [(0, 0), (0, 1), (5, WORD), (SPACE - 9, REGION + 77), (STAMPS - 70, GROUP + 3), (9, STAMPS), (0, STAMPS)]
        {
            live.set_only(first, members, STAMPS);
            let is_member = |stamp: usize| (stamp + STAMPS - first) % STAMPS < members;
            naive.iter_mut().enumerate().for_each(|(stamp, member)| *member = is_member(stamp));
            agree(&live, &naive);
        }
    }
}
