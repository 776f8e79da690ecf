//! Dies of today, and the pages that they program, read and erase together.
//!
//! Sources by letter. A: AnandTech, *Flash Memory at ISSCC 2021*, table (<https://www.anandtech.com/show/16491>):
//! throughput of a die, page read, planes, block, pin rate. B: AnandTech on the Samsung 870 QVO
//! (<https://www.anandtech.com/show/16136>): throughput of QLC dies. C: makers' announcements of dies. Figures without
//! a source are marked: *fitted* ones follow from the write speed of a drive with such dies (named in
//! `docs/real-drives.md`), *assumed* ones are typical of the generation.
//!
//! The program time of a wordline follows from the throughput: planes x 16 KiB x bits / throughput. No maker publishes
//! times of SLC mode. 130 us for the pages of all planes is the time that the drives with the fewest dies need for
//! their speed (at 200 us the WD SN550 of 500 GB could write 1,311 MB/s, and it writes 1,850).

use super::{Cell, Chip, SlcMode, prices};

/// A row of the list.
pub(super) struct Die {
    pub(super) name: &'static str,
    cell: Cell,
    planes: u32,
    /// Pages of a plane's block.
    pages_per_block: u32,
    read_us: f64,
    /// MB/s of programs that write the pages of a wordline in all planes at once.
    program_mb_per_s: f64,
    independent_reads: u32,
    /// MB/s (10^6 bytes) of its eight pins.
    bus_mb_per_s: f64,
    /// A page read, and a program of the pages of all planes, in SLC mode.
    slc_us: [f64; 2],
    endurance: u32,
    slc_endurance: u32,
    source: &'static str,
}

const PAGE_BYTES: u32 = 16384;
/// Room for the error-correcting code, as in `tlc-3d-2018`: assumed.
const SPARE_BYTES: u32 = 1952;
/// Year of their prices.
pub(super) const PRICED_IN: u16 = 2026;
const SLC_US: [f64; 2] = [25.0, 130.0];
/// Dies with floating gates, such as those of Intel and Micron up to 144 layers: fitted to the Crucial P1, which reads
/// 170,000 pages a second from 8 of them and writes 1,600 MB/s.
const FLOATING_GATE_SLC_US: [f64; 2] = [42.0, 300.0];
/// Emulators use 3 to 10 ms.
const ERASE_US: f64 = 3500.0;
/// Assumed: in real drives, reads do not wait for a program of 1 to 2 ms.
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

    /// Time to program a wordline in all planes.
    fn program_us(&self) -> f64 {
        let bytes = f64::from(self.planes * PAGE_BYTES * self.bits());
        (bytes / self.program_mb_per_s * 10.0).round() / 10.0
    }

    fn slc_mode(&self) -> Option<SlcMode> {
        (self.bits() > 1).then(|| SlcMode {
            pages_per_block: self.pages_per_block / self.bits(),
            read_us: self.slc_us[0],
            program_us: self.slc_us[1],
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
        slc_us: SLC_US,
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

/// Every die, by maker and age.
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
        independent_reads: 4,
        program_mb_per_s: 160.0,
        bus_mb_per_s: 2000.0,
        ..tlc(
            "bics6-tlc",
            "Kioxia/WD BiCS6, 162 layers, 2021 (A): 160 MB/s, 50 us, 4 planes, 2,000 Mb/s a pin; block assumed",
        )
    },
    Die {
        cell: Cell::Pslc,
        pages_per_block: 512,
        read_us: SLC_US[0],
        program_mb_per_s: 504.0,
        independent_reads: 4,
        bus_mb_per_s: 2000.0,
        endurance: 30_000,
        ..tlc(
            "bics6-pslc",
            "bics6-tlc, 2021, whose blocks stay in SLC mode: a third of the capacity, three times the price; 25 us and 130 us \
              for the pages of all planes as in that mode",
        )
    },
    Die {
        planes: 2,
        read_us: 60.0,
        program_mb_per_s: 38.0,
        bus_mb_per_s: 800.0,
        ..tlc(
            "samsung-v4-tlc",
            "Samsung V4, 64 layers, 2017: 38 MB/s fitted to the 970 EVO of 500 GB with 16 dies; the rest assumed",
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
        independent_reads: 4,
        read_us: 40.0,
        program_mb_per_s: 184.0,
        bus_mb_per_s: 2000.0,
        ..tlc(
            "samsung-v7-tlc",
            "Samsung V7, 176 layers, 2021 (A): 184 MB/s, 40 us, 2,000 Mb/s a pin; planes and block assumed",
        )
    },
    Die {
        program_mb_per_s: 120.0,
        bus_mb_per_s: 1200.0,
        ..tlc(
            "hynix-v6-tlc",
            "SK hynix V6, 128 layers, 2019: 120 MB/s fitted to the Gold P31 of 1 TB with 16 dies; the rest assumed",
        )
    },
    Die {
        independent_reads: 4,
        program_mb_per_s: 168.0,
        ..tlc(
            "hynix-v7-tlc",
            "SK hynix V7, 176 layers, 2021 (A): 168 MB/s, 50 us, 4 planes, 1,600 Mb/s a pin; block assumed",
        )
    },
    Die {
        planes: 2,
        read_us: 70.0,
        program_mb_per_s: 22.0,
        bus_mb_per_s: 400.0,
        ..tlc(
            "intel-32-tlc",
            "Intel/Micron, 32 layers, 2016: 22 MB/s fitted to the DC P4500 of 1 TB with 24 dies; pins 400 MT/s, the rest assumed",
        )
    },
    Die {
        program_mb_per_s: 40.0,
        bus_mb_per_s: 1200.0,
        ..tlc(
            "micron-96-tlc",
            "Micron B27A and B27B, 96 layers, 2019: 4 planes (flash ID of a Phison E12 drive); 40 MB/s fitted to the \
              Kingston A2000 of 1 TB with 16 dies, 1,200 MT/s assumed",
        )
    },
    Die {
        independent_reads: 4,
        program_mb_per_s: 110.0,
        ..tlc(
            "micron-b47r-tlc",
            "Micron B47R, 176 layers, 2020 (C): 4 planes, 1,600 MT/s; 110 MB/s fitted to an E18 drive of 2 TB that \
              writes 3.5 GB/s past its cache on 32 dies; 50 us and block assumed",
        )
    },
    Die {
        planes: 6,
        pages_per_block: 1152,
        independent_reads: 6,
        program_mb_per_s: 220.0,
        bus_mb_per_s: 2400.0,
        ..tlc(
            "micron-b58r-tlc",
            "Micron B58R, 232 layers, 2022 (C): 6 planes, 2,400 MT/s, twice the writing speed of B47R; block assumed",
        )
    },
    Die {
        independent_reads: 4,
        program_mb_per_s: 160.0,
        bus_mb_per_s: 2400.0,
        ..tlc(
            "ymtc-232-tlc",
            "YMTC, 232 layers, 2022: 2,400 MT/s (C); 160 MB/s as other dies of 2021 and 2022, 4 planes and block assumed",
        )
    },
    Die {
        slc_us: FLOATING_GATE_SLC_US,
        program_mb_per_s: 17.0,
        bus_mb_per_s: 667.0,
        ..qlc(
            "intel-64-qlc",
            "Intel/Micron N18A, 64 layers, 2018: 1 Tbit, 4 planes; 17 MB/s fitted to the Crucial P1 of 1 TB with 8 dies",
        )
    },
    Die {
        slc_us: [25.0, 170.0],
        independent_reads: 4,
        program_mb_per_s: 35.0,
        bus_mb_per_s: 1200.0,
        ..qlc(
            "intel-144-qlc",
            "Intel/Solidigm, 144 layers, 2020: 1 Tbit, 4 planes; 35 MB/s and SLC mode of 170 us fitted to the \
              P41 Plus of 1 TB with 8 dies",
        )
    },
    Die {
        planes: 2,
        program_mb_per_s: 18.0,
        ..qlc("samsung-v5-qlc", "Samsung V5, 92 layers, 2019 (B): 1 Tbit, 18 MB/s; 2 planes assumed")
    },
    Die {
        slc_us: FLOATING_GATE_SLC_US,
        program_mb_per_s: 30.0,
        ..qlc("micron-96-qlc", "Micron N28A, 96 layers, 2019 (B): 1 Tbit, 30 MB/s; 4 planes (C)")
    },
    Die {
        independent_reads: 4,
        program_mb_per_s: 45.0,
        bus_mb_per_s: 1600.0,
        ..qlc(
            "solidigm-192-qlc",
            "Solidigm, 192 layers, 2023: 45 MB/s, 4 planes, 1,600 MT/s, all assumed from 144 layers",
        )
    },
    Die {
        program_mb_per_s: 60.0,
        bus_mb_per_s: 2400.0,
        ..qlc("ymtc-232-qlc", "YMTC, 232 layers, 2022: 2,400 MT/s (C); 60 MB/s and 4 planes assumed")
    },
];
