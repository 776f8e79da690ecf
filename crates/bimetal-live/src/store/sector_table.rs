//! A table from sectors to numbers that is filled, searched and cleared without allocation: open addressing with linear
//! probing.

/// The table.
#[derive(Debug)]
pub struct SectorTable {
    /// A sector and its number; [`FREE`] instead of a sector marks a free entry.
    entries: Vec<(u64, u32)>,
    used: usize,
}

const FREE: u64 = u64::MAX;

impl SectorTable {
    /// An empty table.
    pub fn new() -> Self {
        Self { entries: vec![(FREE, 0); 64], used: 0 }
    }

    /// The number of a sector. A new sector gets the number `fresh`.
    pub fn find_or_insert(&mut self, sector: u64, fresh: u32) -> u32 {
        let at = self.place(sector);
        if self.entries[at].0 == sector {
            return self.entries[at].1;
        }
        self.entries[at] = (sector, fresh);
        self.used += 1;
        if self.used * 2 > self.entries.len() {
            self.grow();
        }
        fresh
    }

    /// The number of a sector.
    pub fn get(&self, sector: u64) -> Option<u32> {
        let (key, number) = self.entries[self.place(sector)];
        (key == sector).then_some(number)
    }

    /// Removes all entries and keeps the memory.
    pub fn clear(&mut self) {
        if self.used > 0 {
            self.entries.fill((FREE, 0));
            self.used = 0;
        }
    }

    fn place(&self, sector: u64) -> usize {
        let mask = self.entries.len() - 1;
        let mut at = (sector.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.entries[at].0 != sector && self.entries[at].0 != FREE {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let larger = vec![(FREE, 0); self.entries.len() * 2];
        for (sector, number) in std::mem::replace(&mut self.entries, larger) {
            if sector != FREE {
                let at = self.place(sector);
                self.entries[at] = (sector, number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_map() {
        let (mut table, mut map, mut state) = (SectorTable::new(), std::collections::BTreeMap::new(), 3);
        for round in 0..3 {
            for number in 0..5000 {
                let sector = bimetal_core::part::random::below(&mut state, 4000) << (round * 9);
                let known = *map.entry(sector).or_insert(number);
                assert_eq!(table.find_or_insert(sector, number), known);
                assert_eq!(table.get(sector ^ 1), map.get(&(sector ^ 1)).copied());
            }
            table.clear();
            map.clear();
        }
    }
}
