//! The dies of today: what they program, read and erase at once.
//!
//! Sources by letter. A: AnandTech, *Flash Memory at ISSCC 2021*, table (<https://www.anandtech.com/show/16491>): throughput of a
//! die, page read, planes, block, pin rate. B: AnandTech on the Samsung 870 QVO (<https://www.anandtech.com/show/16136>): throughput
//! of QLC dies. C: makers' announcements of dies. Figures that no source has are marked: *fitted* ones follow from the writing
//! speed of a drive with such dies (`docs/drives.md` says which), *assumed* ones are those of the generation.
//!
//! A wordline's program time is what the throughput makes of it: planes x 16 KiB x bits / throughput. No maker publishes times of
//! SLC mode; 130 us for the pages of all planes is what the drives with the fewest dies need for their speed (at 200 us the WD
//! SN550 of 500 GB could write 1,311 MB/s, and writes 1,850).

use super::{Cell, Chip, SlcMode, prices};

/// A row of the list.
pub(super) struct Die {
    pub(super) name: &'static str,
    cell: Cell,
    planes: u32,
    /// Pages of a plane's block.
    pages_per_block: u32,
    read_us: f64,
    /// MB/s that a die programs, the pages of a wordline in all planes at once.
    program_mb_per_s: f64,
    independent_reads: u32,
    /// MB/s (10^6 bytes) of its eight pins.
    bus_mb_per_s: f64,
    endurance: u32,
    slc_endurance: u32,
    source: &'static str,
}

const PAGE_BYTES: u32 = 16384;
/// For the code that corrects errors, as in `tlc-3d-2018`: assumed.
const SPARE_BYTES: u32 = 1952;
/// Year of the prices that they have.
pub(super) const PRICED_IN: u16 = 2026;
const SLC_READ_US: f64 = 25.0;
const SLC_PROGRAM_US: f64 = 130.0;
/// 3 to 10 ms in the parameters of emulators.
const ERASE_US: f64 = 3500.0;
/// Assumed: reads of drives at work do not wait for a program of 1 to 2 ms.
const SUSPEND_US: f64 = 20.0;

impl Die {
    fn bits(&self) -> u32 {
        match self.cell {
            Cell::Slc | Cell::Pslc => 1,
            Cell::Mlc => 2,
            Cell::Tlc => 3,
            Cell::Qlc => 4,
        }
    }

    pub(super) fn chip(&self) -> Chip {
        Chip {
            name: self.name.into(),
            cell: self.cell,
            page_bytes: PAGE_BYTES,
            spare_bytes: SPARE_BYTES,
            pages_per_block: self.pages_per_block,
            read_us: self.read_us,
            program_us: self.program_us(),
            erase_us: ERASE_US,
            bus_mb_per_s: self.bus_mb_per_s,
            copyback_us: None,
            planes: self.planes,
            program_pages: self.bits(),
            independent_reads: self.independent_reads,
            suspend_us: Some(SUSPEND_US),
            endurance: self.endurance,
            supply_v: 3.3,
            current_ma: 15.0,
            usd_per_gib: prices::of(self.cell, PRICED_IN).unwrap_or_default(),
            slc_mode: self.slc_mode(),
            source: self.source.into(),
        }
    }

    /// Time in which a wordline of all planes is programmed.
    fn program_us(&self) -> f64 {
        let bytes = f64::from(self.planes * PAGE_BYTES * self.bits());
        (bytes / self.program_mb_per_s * 10.0).round() / 10.0
    }

    fn slc_mode(&self) -> Option<SlcMode> {
        (self.bits() > 1).then(|| SlcMode {
            pages_per_block: self.pages_per_block / self.bits(),
            read_us: SLC_READ_US,
            program_us: SLC_PROGRAM_US,
            erase_us: ERASE_US,
            endurance: self.slc_endurance,
        })
    }
}

const fn tlc(name: &'static str, source: &'static str) -> Die {
    Die {
        name,
        cell: Cell::Tlc,
        planes: 4,
        pages_per_block: 1536,
        read_us: 50.0,
        program_mb_per_s: 150.0,
        independent_reads: 1,
        bus_mb_per_s: 1600.0,
        endurance: 3_000,
        slc_endurance: 30_000,
        source,
    }
}

const fn qlc(name: &'static str, source: &'static str) -> Die {
    Die {
        cell: Cell::Qlc,
        read_us: 90.0,
        program_mb_per_s: 30.0,
        bus_mb_per_s: 800.0,
        endurance: 1_000,
        slc_endurance: 10_000,
        ..tlc(name, source)
    }
}

pub(super) static DIES: &[Die] = &[
    Die {
        planes: 2,
        pages_per_block: 1152,
        read_us: 58.0,
        program_mb_per_s: 57.0,
        bus_mb_per_s: 533.0,
        ..tlc(
            "bics4-tlc",
            "Toshiba/SanDisk BiCS4, 96 layers, 2018 (A): 57 MB/s, 58 us, 2 planes, blocks of 18 MB, 533 Mb/s a pin",
        )
    },
    Die {
        read_us: 56.0,
        program_mb_per_s: 132.0,
        bus_mb_per_s: 1066.0,
        ..tlc(
            "bics5-tlc",
            "Kioxia/WD BiCS5, 112 layers, 2019 (A): 132 MB/s, 56 us, 4 planes, blocks of 24 MB, 1,066 Mb/s a pin",
        )
    },
    Die {
        program_mb_per_s: 160.0,
        bus_mb_per_s: 2000.0,
        ..tlc(
            "bics6-tlc",
            "Kioxia/WD BiCS6, 162 layers, 2021 (A): 160 MB/s, 50 us, 4 planes, 2,000 Mb/s a pin; block assumed",
        )
    },
    Die {
        planes: 2,
        read_us: 45.0,
        program_mb_per_s: 82.0,
        bus_mb_per_s: 1200.0,
        ..tlc(
            "samsung-v6-tlc",
            "Samsung V6, 128 layers, 2019 (A): 82 MB/s, 45 us, 2 planes, 1,200 Mb/s a pin; block assumed",
        )
    },
    Die {
        read_us: 40.0,
        program_mb_per_s: 184.0,
        bus_mb_per_s: 2000.0,
        ..tlc(
            "samsung-v7-tlc",
            "Samsung V7, 176 layers, 2021 (A): 184 MB/s, 40 us, 2,000 Mb/s a pin; planes and block assumed",
        )
    },
    Die {
        program_mb_per_s: 168.0,
        ..tlc(
            "hynix-v7-tlc",
            "SK hynix V7, 176 layers, 2021 (A): 168 MB/s, 50 us, 4 planes, 1,600 Mb/s a pin; block assumed",
        )
    },
];
