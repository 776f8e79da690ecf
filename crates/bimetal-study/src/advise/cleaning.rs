//! Background work of a region: garbage collection, and the stalls that it causes.

use bimetal_core::chip::Chip;
use bimetal_core::media::CellMode;
use bimetal_core::model::write_amplification;

/// A page map keeps one erased block on each die, and two open ones that are half full on average.
const BLOCKS_KEPT: f64 = 2.0;
/// Upper limit of the assumed utilisation.
const UTILISATION_MAX: f64 = 0.98;

/// Read time of a page with its transfer, in microseconds.
pub fn read_us(chip: &Chip) -> f64 {
    (chip.times(CellMode::Native).0 + chip.transfer()).as_us()
}

/// Program time of a page with its transfer, in microseconds.
pub fn program_us(chip: &Chip) -> f64 {
    (chip.times(CellMode::Native).1 + chip.transfer()).as_us()
}

/// Erase time of a block, in microseconds.
pub fn erase_us(chip: &Chip) -> f64 {
    chip.times(CellMode::Native).2.as_us()
}

/// Greedy garbage collection of a region.
#[derive(Clone, Copy, Debug)]
pub struct Cleaning {
    /// Read time of a page, in microseconds.
    pub read_us: f64,
    /// Program time of a page, in microseconds.
    pub program_us: f64,
    /// Pages programmed for each page that the host writes.
    pub amplification: f64,
    collections_per_page: f64,
    collection_us: f64,
}

impl Cleaning {
    /// Garbage collection of a region with `bytes` raw and `logical` visible bytes. `written` bytes of these are ever
    /// written; the others hold no data and leave more spare area.
    pub fn of(chip: &Chip, bytes: f64, dies: u32, logical: f64, written: f64) -> Self {
        let block = f64::from(chip.page_bytes) * f64::from(chip.pages_per_block);
        let spare = (bytes - logical - f64::from(dies) * BLOCKS_KEPT * block).max(0.0);
        let live = written.clamp(block, logical.max(block));
        let utilisation = (live / (live + spare)).clamp(0.01, UTILISATION_MAX);
        let amplification = write_amplification::greedy(utilisation, chip.pages_per_block);
        let pages = f64::from(chip.pages_per_block);
        let freed = pages / amplification;
        let (read_us, program_us) = (read_us(chip), program_us(chip));
        Self {
            read_us,
            program_us,
            amplification,
            collections_per_page: 1.0 / freed,
            collection_us: (pages - freed) * (read_us + program_us) + erase_us(chip),
        }
    }

    /// The stall that a written page may have to wait for.
    pub fn stall(&self) -> Stall {
        Stall { per_page: self.collections_per_page, us: self.collection_us }
    }
}

/// Background work that makes host requests wait.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// Stalls for each written page.
    pub per_page: f64,
    /// Duration, in microseconds.
    pub us: f64,
}
