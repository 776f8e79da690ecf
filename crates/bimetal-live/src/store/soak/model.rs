//! The expected contents of a device: the last version of each sector, and the event of each change.

use crate::block_device::pieces;

/// A change of sectors by an event: a new version, or 0 for zeros.
#[derive(Clone, Copy, Debug)]
struct Change {
    event: u64,
    sector: u64,
    sectors: u64,
    version: u64,
}

/// The simplest possible device.
#[derive(Clone, Debug)]
pub struct Model {
    /// Versions at the last recovery, and current versions.
    base: Vec<u64>,
    now: Vec<u64>,
    changes: Vec<Change>,
    /// The event up to which all changes must survive.
    acknowledged: u64,
    version: u64,
}

impl Model {
    /// A device of zeros.
    pub fn new(sectors: u64) -> Self {
        let zeros = vec![0; sectors as usize];
        Self { base: zeros.clone(), now: zeros, changes: Vec::new(), acknowledged: 0, version: 0 }
    }

    /// Number of sectors.
    pub fn sectors(&self) -> u64 {
        self.now.len() as u64
    }

    fn change(&mut self, sector: u64, sectors: u64, events: u64, sectors_per_event: u64, version: u64) {
        for (piece, event) in pieces(sector, sectors, sectors_per_event).zip(events + 1..) {
            self.now[piece.start as usize..piece.end as usize].fill(version);
            self.changes.push(Change { event, sector: piece.start, sectors: piece.end - piece.start, version });
        }
    }

    /// Sectors will be written, by the event after `events` and following ones. Returns their data.
    pub fn write(&mut self, sector: u64, sectors: u64, events: u64, sectors_per_event: u64) -> Vec<u8> {
        let (version, data) = self.next(sector, sectors);
        self.change(sector, sectors, events, sectors_per_event, version);
        data
    }

    /// The next version of some sectors: its number and their data.
    pub fn next(&mut self, sector: u64, sectors: u64) -> (u64, Vec<u8>) {
        self.version += 1;
        let version = self.version;
        (version, (sector..sector + sectors).flat_map(|sector| pattern(sector, version)).collect())
    }

    /// Sectors were written with this version, by the event after `events`.
    pub fn written(&mut self, sector: u64, sectors: u64, events: u64, version: u64) {
        self.change(sector, sectors, events, sectors, version);
    }

    /// Sectors will be trimmed.
    pub fn trim(&mut self, sector: u64, sectors: u64, events: u64, sectors_per_event: u64) {
        self.change(sector, sectors, events, sectors_per_event, 0);
    }

    /// A request was refused after `events` events, so later ones did not happen.
    pub fn refused(&mut self, events: u64) {
        self.changes.retain(|change| change.event <= events);
        self.now.clone_from(&self.base);
        for change in &self.changes {
            self.now[change.sector as usize..(change.sector + change.sectors) as usize].fill(change.version);
        }
    }

    /// All changes so far were acknowledged as durable.
    pub fn flushed(&mut self) {
        self.flushed_to(self.last_event());
    }

    /// The last event with a change since the last recovery; 0 if there is none.
    pub fn last_event(&self) -> u64 {
        self.changes.last().map_or(0, |change| change.event)
    }

    /// Changes up to this event were acknowledged as durable.
    pub fn flushed_to(&mut self, event: u64) {
        self.acknowledged = self.acknowledged.max(event);
    }

    /// The device has recovered to the state after `events` events.
    pub fn recovered(&mut self, events: u64) -> Result<(), String> {
        if events < self.acknowledged {
            return Err(format!("event {} was acknowledged, and {events} were recovered", self.acknowledged));
        }
        for change in self.changes.drain(..).take_while(|change| change.event <= events) {
            self.base[change.sector as usize..(change.sector + change.sectors) as usize].fill(change.version);
        }
        self.now.clone_from(&self.base);
        self.acknowledged = 0;
        Ok(())
    }

    /// Compares the contents of the device with the expected ones.
    pub fn compare(&self, sector: u64, bytes: &[u8]) -> Result<(), String> {
        for (bytes, sector) in bytes.chunks_exact(512).zip(sector..) {
            let version = self.now[sector as usize];
            if bytes.iter().ne(pattern(sector, version).iter()) {
                let word =
                    |at: usize| bytes[at..at + 8].iter().rev().fold(0, |word: u64, &byte| word << 8 | u64::from(byte));
                return Err(format!(
                    "sector {sector} has version {version} and reads as version {} of sector {}",
                    word(8),
                    word(0)
                ));
            }
        }
        Ok(())
    }
}

/// The contents of a version of a sector; version 0 is zeros.
fn pattern(sector: u64, version: u64) -> [u8; 512] {
    let mut bytes = [0; 512];
    if version > 0 {
        for (word, number) in bytes.chunks_exact_mut(16).zip(0..) {
            word[..8].copy_from_slice(&(sector + number * 1_000_000_007).to_le_bytes());
            word[8..].copy_from_slice(&version.to_le_bytes());
        }
    }
    bytes
}
