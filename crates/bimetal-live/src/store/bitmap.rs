//! Bitmap of the host sectors that hold data.
//!
//! A sector that was never written, or was trimmed, reads as zeros, even if the scheme still has old data of it.

use bimetal_core::save::Table;

use super::state::{Reader, Writer};

/// A bit for each host sector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmap {
    words: Table<u64>,
}

impl Bitmap {
    /// A bitmap in which no sector holds data.
    pub fn new(sectors: u64) -> Self {
        Self { words: vec![0; sectors.div_ceil(64) as usize].into() }
    }

    /// Its words. The first sector is the lowest bit of the first word.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Whether a sector holds data.
    #[inline]
    pub fn get(&self, sector: u64) -> bool {
        self.words[(sector / 64) as usize] >> (sector % 64) & 1 != 0
    }

    /// Sets whether sectors hold data.
    pub fn set(&mut self, sector: u64, sectors: u64, data: bool) {
        let end = sector + sectors;
        let mut at = sector;
        while at < end {
            let next = (at / 64 * 64 + 64).min(end);
            let mask = (u64::MAX >> (64 - (next - at))) << (at % 64);
            let word = &mut self.words[(at / 64) as usize];
            *word = if data { *word | mask } else { *word & !mask };
            at = next;
        }
    }

    /// Number of sectors from `sector` on, up to `end`, with the same bit.
    pub fn run(&self, sector: u64, end: u64) -> u64 {
        let same = if self.get(sector) { u64::MAX } else { 0 };
        let (first, words) = (sector / 64, &self.words[..end.div_ceil(64) as usize]);
        let differs = (words[first as usize] ^ same) >> (sector % 64);
        if differs != 0 {
            return u64::from(differs.trailing_zeros()).min(end - sector);
        }
        let rest = &words[first as usize + 1..];
        match rest.iter().position(|&word| word != same) {
            Some(after) => {
                let bit = (rest[after] ^ same).trailing_zeros();
                ((first + 1 + after as u64) * 64 + u64::from(bit)).min(end) - sector
            }
            None => end - sector,
        }
    }

    /// Number of sectors that hold data.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Appends the bitmap to a checkpoint.
    pub fn save(&self, out: &mut Writer<'_>) {
        out.table(&self.words);
    }

    /// Reads the bitmap from a checkpoint.
    ///
    /// # Errors
    /// It is not a bitmap of this number of sectors.
    pub fn restore(&mut self, state: &mut Reader<'_>) -> Result<(), String> {
        state.table(&mut self.words)
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.words.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bimetal_core::part::random::below;

    #[test]
    fn agrees_with_a_list() {
        let (mut state, mut bitmap, mut list) = (1, Bitmap::new(1000), [false; 1000]);
        for _ in 0..2000 {
            let sector = below(&mut state, 1000);
            let sectors = 1 + below(&mut state, 1000 - sector) / (1 + below(&mut state, 50));
            let data = below(&mut state, 2) == 0;
            bitmap.set(sector, sectors, data);
            list[sector as usize..(sector + sectors) as usize].fill(data);
            assert_eq!(bitmap.count(), list.iter().filter(|&&data| data).count() as u64);
            let (at, end) = (below(&mut state, 1000), 1000);
            let run = list[at as usize..].iter().take_while(|&&data| data == list[at as usize]).count() as u64;
            assert_eq!((bitmap.get(at), bitmap.run(at, end)), (list[at as usize], run.min(end - at)));
        }
    }
}
