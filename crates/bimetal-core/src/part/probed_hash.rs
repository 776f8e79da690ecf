//! A hash table with bounded probing, small enough for a controller's memory (Chang 2010 §3.3, §3.4, §5.4).
//!
//! A key (a disk sector) is in one of the first `P` buckets of its probe sequence or not in the table. Its home bucket is
//! the key modulo the largest prime below the table's size. An entry is *regular*, the key's data are at a place on the
//! fast flash, or *virtual*: a trace of a key that has no data there, which lives until the block it is anchored to is
//! erased. A lookup tries all `P` buckets, as deletions leave holes.

use serde::{Deserialize, Serialize};

use crate::part::lru::Lists;
use crate::save::Table;

crate::choices! {
    /// How the buckets after a key's home are tried.
    pub enum Probing {
        /// One after the other.
        Linear = "linear",
        /// At the distances 1, 4, 9, …
        Quadratic = "quadratic",
    }
}

const FREE: u32 = u32::MAX;
/// Flag of a virtual entry; the other bits are its anchor.
const VIRTUAL: u32 = 1 << 31;
const RESERVED: u32 = u32::MAX;

/// The largest key that can be stored.
pub const KEY_MAX: u32 = FREE - 1;
/// Places and anchors are below this.
pub const PLACE_END: u32 = VIRTUAL - 1;

/// The table's entry for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Its data are at this place.
    Regular(u32),
    /// The key has no data on the fast flash; the entry is removed when this block is erased.
    Virtual(u32),
    /// The bucket is reserved for data that are being written.
    Reserved,
}

/// The table.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProbedHash {
    keys: Table<u32>,
    places: Table<u32>,
    /// Virtual entries by anchor.
    anchored: Lists,
    #[serde(with = "crate::save::fixed")]
    probing: Probing,
    #[serde(with = "crate::save::fixed")]
    probes: u32,
    /// Largest prime below the number of buckets (`H_d`).
    #[serde(with = "crate::save::fixed")]
    modulus: u32,
    /// 2^64 / modulus, rounded up: a remainder without division (Lemire, Kaser, Kurz 2019).
    #[serde(with = "crate::save::fixed")]
    reciprocal: u64,
    used: u32,
    regular: u32,
}

/// Position of a key among consecutive buckets, which are compared eight at a time.
#[inline]
fn position(keys: &[u32], key: u32) -> Option<u32> {
    let (eights, rest) = keys.as_chunks::<8>();
    for (at, eight) in (0..).step_by(8).zip(eights) {
        let equal = eight.iter().zip(0..).fold(0u32, |equal, (&other, bit)| equal | u32::from(other == key) << bit);
        if equal != 0 {
            return Some(at + equal.trailing_zeros());
        }
    }
    let at = rest.iter().position(|&other| other == key)?;
    Some((keys.len() - rest.len() + at) as u32)
}

fn is_prime(number: u32) -> bool {
    number >= 2
        && (2..).take_while(|&divisor| divisor <= number / divisor).all(|divisor| !number.is_multiple_of(divisor))
}

impl ProbedHash {
    /// An empty table of `entries` buckets (`H_n`, at least 3) for virtual entries anchored at `anchors` blocks.
    pub fn new(entries: u32, anchors: u32, probing: Probing, probes: u32) -> Self {
        let modulus = (2..entries).rev().find(|&number| is_prime(number)).unwrap_or(1);
        Self {
            keys: vec![FREE; entries as usize].into(),
            places: vec![RESERVED; entries as usize].into(),
            anchored: Lists::new(entries as usize, anchors as usize),
            probing,
            probes: probes.min(entries),
            modulus,
            reciprocal: (u64::MAX / u64::from(modulus)).wrapping_add(1),
            used: 0,
            regular: 0,
        }
    }

    #[inline]
    fn home(&self, key: u32) -> u32 {
        let fraction = self.reciprocal.wrapping_mul(u64::from(key));
        ((u128::from(fraction) * u128::from(self.modulus)) >> 64) as u32
    }

    #[inline]
    fn bucket(&self, home: u32, probe: u32) -> usize {
        let entries = self.keys.len();
        match self.probing {
            Probing::Linear => {
                let bucket = (home + probe) as usize;
                if bucket < entries { bucket } else { bucket - entries }
            }
            Probing::Quadratic => (home as usize + (probe as usize).pow(2)) % entries,
        }
    }

    /// The probed buckets of a home, if they follow each other.
    #[inline]
    fn run(&self, home: u32) -> Option<&[u32]> {
        match self.probing {
            Probing::Linear => self.keys.get(home as usize..(home + self.probes) as usize),
            Probing::Quadratic => None,
        }
    }

    /// The first of the probed buckets of a home with this key.
    #[inline]
    fn probe(&self, home: u32, key: u32) -> Option<u32> {
        match self.run(home) {
            Some(run) => position(run, key).map(|at| home + at),
            None => {
                let mut buckets = (0..self.probes).map(|probe| self.bucket(home, probe));
                buckets.find(|&bucket| self.keys[bucket] == key).map(|bucket| bucket as u32)
            }
        }
    }

    /// The bucket of a key.
    #[inline]
    pub fn find(&self, key: u32) -> Option<u32> {
        self.probe(self.home(key), key)
    }

    /// The bucket of a key, and whether it was newly reserved; `None` if other keys occupy all of its buckets.
    #[inline]
    pub fn reserve(&mut self, key: u32) -> Option<(u32, bool)> {
        let home = self.home(key);
        if let Some(bucket) = self.probe(home, key) {
            return Some((bucket, false));
        }
        let bucket = self.probe(home, FREE)?;
        self.keys[bucket as usize] = key;
        self.used += 1;
        Some((bucket, true))
    }

    /// The contents of a used bucket.
    #[inline]
    pub fn entry(&self, bucket: u32) -> Entry {
        match self.places[bucket as usize] {
            RESERVED => Entry::Reserved,
            place if place & VIRTUAL != 0 => Entry::Virtual(place & !VIRTUAL),
            place => Entry::Regular(place),
        }
    }

    /// The bucket and the place of a key's data, if they are on the fast flash.
    #[inline]
    pub fn place(&self, key: u32) -> Option<(u32, u32)> {
        let bucket = self.find(key)?;
        match self.entry(bucket) {
            Entry::Regular(place) => Some((bucket, place)),
            Entry::Virtual(_) | Entry::Reserved => None,
        }
    }

    #[inline]
    fn clear(&mut self, bucket: u32) {
        match self.entry(bucket) {
            Entry::Virtual(anchor) => self.anchored.remove(anchor as usize, bucket),
            Entry::Regular(_) => self.regular -= 1,
            Entry::Reserved => {}
        }
        self.places[bucket as usize] = RESERVED;
    }

    /// Marks a bucket as reserved for data that are being written.
    #[inline]
    pub fn make_reserved(&mut self, bucket: u32) {
        self.clear(bucket);
    }

    /// Records that the key's data are at `place`.
    #[inline]
    pub fn make_regular(&mut self, bucket: u32, place: u32) {
        debug_assert!(place < PLACE_END);
        self.clear(bucket);
        self.places[bucket as usize] = place;
        self.regular += 1;
    }

    /// Records that the key has no data; the entry is removed when the block `anchor` is erased.
    pub fn make_virtual(&mut self, bucket: u32, anchor: u32) {
        debug_assert!(anchor < PLACE_END);
        self.clear(bucket);
        self.places[bucket as usize] = VIRTUAL | anchor;
        self.anchored.push_back(anchor as usize, bucket);
    }

    /// Frees a bucket.
    #[inline]
    pub fn remove(&mut self, bucket: u32) {
        self.clear(bucket);
        self.keys[bucket as usize] = FREE;
        self.used -= 1;
    }

    /// Removes the entry of a key if it is virtual.
    pub fn forget_virtual(&mut self, key: u32) {
        if let Some(bucket) = self.find(key).filter(|&bucket| matches!(self.entry(bucket), Entry::Virtual(_))) {
            self.remove(bucket);
        }
    }

    /// Removes the virtual entries anchored at a block.
    pub fn forget_anchored(&mut self, anchor: u32) {
        while let Some(bucket) = self.anchored.front(anchor as usize) {
            self.remove(bucket);
        }
    }

    /// Number of buckets.
    pub fn entries(&self) -> u32 {
        self.keys.len() as u32
    }

    /// Buckets in use.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Regular entries.
    pub fn regular(&self) -> u32 {
        self.regular
    }

    /// Virtual entries, and buckets that are reserved at the moment.
    pub fn without_data(&self) -> u32 {
        self.used - self.regular
    }

    /// Keys and places of all regular entries.
    pub fn iter_regular(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let taken = self.keys.iter().zip(&self.places).filter(|&(&key, &place)| key != FREE && place & VIRTUAL == 0);
        taken.map(|(&key, &place)| (key, place))
    }

    /// Whether virtual entries are anchored at a block.
    pub fn is_anchor(&self, block: u32) -> bool {
        self.anchored.front(block as usize).is_some()
    }

    /// Checks that every key can be found, that no bucket is still reserved, and that the counts are right.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self) -> Result<(), String> {
        self.anchored.check()?;
        for anchor in 0..self.anchored.lists() {
            let strayed = |&bucket: &u32| self.entry(bucket) != Entry::Virtual(anchor as u32);
            if let Some(bucket) = self.anchored.iter(anchor).find(strayed) {
                return Err(format!(
                    "bucket {bucket} is listed at block {anchor}, but its entry is not anchored there"
                ));
            }
        }
        let (mut used, mut regular) = (0, 0);
        for (bucket, &key) in self.keys.iter().enumerate() {
            let linked = self.anchored.contains(bucket as u32);
            if key == FREE {
                if linked || self.places[bucket] != RESERVED {
                    return Err(format!("bucket {bucket} is free and has an entry"));
                }
                continue;
            }
            used += 1;
            if self.find(key) != Some(bucket as u32) {
                return Err(format!("key {key} is in bucket {bucket} and is not found there"));
            }
            match self.entry(bucket as u32) {
                Entry::Regular(_) if !linked => regular += 1,
                Entry::Virtual(_) if linked => {}
                entry => return Err(format!("bucket {bucket} of key {key} holds {entry:?}, anchored: {linked}")),
            }
        }
        if (used, regular) != (self.used, self.regular) {
            return Err(format!(
                "{used} buckets in use and {} counted, {regular} regular and {}",
                self.used, self.regular
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::random;
    use std::collections::BTreeMap;

    #[test]
    fn the_modulus_is_the_prime_below_the_size() {
        for (entries, prime) in [(3, 2), (4, 3), (16_384, 16_381), (32_768, 32_749), (65_536, 65_521)] {
            assert_eq!(ProbedHash::new(entries, 1, Probing::Linear, 8).modulus, prime);
        }
        let hash = ProbedHash::new(32_768, 1, Probing::Linear, 8);
        for key in [0, 1, 32_748, 32_749, 41_943_039, KEY_MAX] {
            assert_eq!(hash.home(key), key % 32_749, "{key}");
        }
    }

    #[test]
    fn it_agrees_with_a_map_and_never_finds_beyond_its_probes() {
        for (probing, probes) in [(Probing::Linear, 5), (Probing::Linear, 19), (Probing::Quadratic, 5)] {
            let mut hash = ProbedHash::new(61, 4, probing, probes);
            let mut model = BTreeMap::new();
            let (mut state, mut refused) = (11, 0);
            for step in 0..30_000u32 {
                let key = random::below(&mut state, 150) as u32;
                match random::below(&mut state, 11) {
                    0..6 => match hash.reserve(key) {
                        Some((bucket, fresh)) => {
                            assert_eq!(fresh, !model.contains_key(&key));
                            let entry = if step % 3 == 0 { Entry::Virtual(step % 4) } else { Entry::Regular(step) };
                            match entry {
                                Entry::Virtual(anchor) => hash.make_virtual(bucket, anchor),
                                Entry::Regular(place) => hash.make_regular(bucket, place),
                                Entry::Reserved => unreachable!(),
                            }
                            model.insert(key, entry);
                        }
                        None => {
                            refused += 1;
                            assert!(!model.contains_key(&key));
                        }
                    },
                    6..9 => {
                        if let Some(bucket) = hash.find(key) {
                            hash.remove(bucket);
                        }
                        model.remove(&key);
                    }
                    9 => {
                        hash.forget_virtual(key);
                        model.retain(|&known, entry| known != key || !matches!(entry, Entry::Virtual(_)));
                    }
                    _ => {
                        hash.forget_anchored(step % 4);
                        model.retain(|_, entry| *entry != Entry::Virtual(step % 4));
                    }
                }
                let found = hash.find(key).map(|bucket| hash.entry(bucket));
                assert_eq!(found, model.get(&key).copied());
            }
            hash.check().unwrap();
            assert_eq!(hash.used() as usize, model.len());
            assert!(refused > 0);
        }
    }
}
