//! The rows of the chip catalogue.

use super::{Cell, Chip, SlcMode, prices};

/// A row of the catalogue.
pub(super) struct Part {
    pub(super) name: &'static str,
    /// Whether a paper has it, and not a data sheet or a conference of chip makers.
    pub(super) is_of_paper: bool,
    cell: Cell,
    /// Bytes of a page, bytes of its spare area, pages of a block.
    geometry: [u32; 3],
    /// Page read, page program, block erase, in microseconds.
    us: [f64; 3],
    bus_mb_per_s: f64,
    copyback_us: Option<f64>,
    endurance: u32,
    /// Year of [`prices`] whose price for its cells it has.
    pub(super) priced_in: u16,
    slc_mode: Option<SlcMode>,
    pub(super) source: &'static str,
}

impl Part {
    pub(super) fn chip(&self) -> Chip {
        let [page_bytes, spare_bytes, pages_per_block] = self.geometry;
        let [read_us, program_us, erase_us] = self.us;
        Chip {
            name: self.name.into(),
            cell: self.cell,
            page_bytes,
            spare_bytes,
            pages_per_block,
            read_us,
            program_us,
            erase_us,
            bus_mb_per_s: self.bus_mb_per_s,
            copyback_us: self.copyback_us,
            endurance: self.endurance,
            supply_v: 3.3,
            current_ma: 15.0,
            usd_per_gib: prices::of(self.cell, self.priced_in).unwrap_or_default(),
            slc_mode: self.slc_mode,
            source: self.source.into(),
        }
    }
}

/// 100 us for 4 KiB: the transfer that HySSD's and OP-FCL's page times include.
const BUS_100_US: f64 = 40.96;

/// Chang's baseline of dynamic density control: half the pages, 1.2 times the read and twice the write speed.
const CHANG_SLC_MODE: SlcMode =
    SlcMode { pages_per_block: 64, read_us: 50.0, program_us: 400.0, erase_us: 1500.0, endurance: 100_000 };

const fn pslc(pages_per_block: u32, endurance: u32) -> SlcMode {
    SlcMode { pages_per_block, read_us: 25.0, program_us: 200.0, erase_us: 3500.0, endurance }
}

pub(super) static PARTS: &[Part] = &[
    Part {
        name: "chang-slc",
        is_of_paper: true,
        cell: Cell::Slc,
        geometry: [2048, 0, 64],
        us: [25.0, 200.0, 1500.0],
        bus_mb_per_s: 0.0,
        copyback_us: None,
        endurance: 100_000,
        priced_in: 2009,
        slc_mode: None,
        source: "Chang, IEEE TC 2010, table 1, sections 4.2 and 5; times and endurance, illegible in copies, from table 1 \
                 of WLAFTL 2018, which has the same parts and agrees with every ratio in Chang's text; price 2009",
    },
    Part {
        name: "chang-mlc",
        is_of_paper: true,
        cell: Cell::Mlc,
        geometry: [4096, 0, 128],
        us: [60.0, 800.0, 1500.0],
        bus_mb_per_s: 0.0,
        copyback_us: None,
        endurance: 10_000,
        priced_in: 2009,
        slc_mode: Some(CHANG_SLC_MODE),
        source: "Chang, IEEE TC 2010, configuration C2 (endurance ratio 10:1); 800 us is in its energy example, the rest \
                 as for chang-slc; SLC mode: its baseline of dynamic density control (1.2 x read, 2 x write); price 2009",
    },
    Part {
        name: "chang-mlc-5k",
        is_of_paper: true,
        cell: Cell::Mlc,
        geometry: [4096, 0, 128],
        us: [60.0, 800.0, 1500.0],
        bus_mb_per_s: 0.0,
        copyback_us: None,
        endurance: 5_000,
        priced_in: 2009,
        slc_mode: Some(CHANG_SLC_MODE),
        source: "Chang, IEEE TC 2010, configuration C3: chang-mlc with an endurance ratio of 20:1, 5,000 derived from it",
    },
    Part {
        name: "chang-mlc-c1",
        is_of_paper: true,
        cell: Cell::Mlc,
        geometry: [2048, 0, 64],
        us: [60.0, 800.0, 1500.0],
        bus_mb_per_s: 0.0,
        copyback_us: None,
        endurance: 10_000,
        priced_in: 2009,
        slc_mode: None,
        source: "Chang, IEEE TC 2010, configuration C1: MLC with the geometry of chang-slc; the text's fourfold write time \
                 fixes 800 us; read time as chang-mlc and endurance ratio 10:1 are assumed",
    },
    Part {
        name: "comboftl-slc",
        is_of_paper: true,
        cell: Cell::Slc,
        geometry: [4096, 0, 64],
        us: [399.0, 417.0, 860.0],
        bus_mb_per_s: 0.0,
        copyback_us: None,
        endurance: 50_000,
        priced_in: 2009,
        slc_mode: None,
        source: "ComboFTL, JSA 2010, table 1, SLC chip, measured end to end; endurance: five times MLC (section 1), with \
                 10,000 assumed for MLC; price 2009",
    },
    Part {
        name: "comboftl-mlc",
        is_of_paper: true,
        cell: Cell::Mlc,
        geometry: [4096, 0, 128],
        us: [403.0, 994.0, 872.0],
        bus_mb_per_s: 0.0,
        copyback_us: None,
        endurance: 10_000,
        priced_in: 2009,
        slc_mode: Some(SlcMode {
            pages_per_block: 64,
            read_us: 409.0,
            program_us: 431.0,
            erase_us: 872.0,
            endurance: 50_000,
        }),
        source: "ComboFTL, JSA 2010, table 1, MLC chip in MLC and in SLC mode, measured end to end; endurance: SLC five times \
                 MLC (section 1), 10,000 assumed for MLC; price 2009",
    },
    Part {
        name: "comboftl-mlc-slc-mode",
        is_of_paper: true,
        cell: Cell::Pslc,
        geometry: [4096, 0, 64],
        us: [409.0, 431.0, 872.0],
        bus_mb_per_s: 0.0,
        copyback_us: None,
        endurance: 50_000,
        priced_in: 2009,
        slc_mode: None,
        source: "ComboFTL, JSA 2010, table 1, blocks of the MLC chip that stay in SLC mode: half the capacity, so twice the \
                 price of comboftl-mlc; endurance as there",
    },
    Part {
        name: "hyssd-slc",
        is_of_paper: true,
        cell: Cell::Slc,
        geometry: [4096, 0, 128],
        us: [35.0, 250.0, 1500.0],
        bus_mb_per_s: BUS_100_US,
        copyback_us: Some(385.0),
        endurance: 60_000,
        priced_in: 2013,
        slc_mode: None,
        source: "HySSD, MSST 2013, table II: read 135, program 350 us with the transfer of 100 us per 4 KiB, which is on \
                 the channel here; its copyback of 385 us is one transfer above what read and program take without their \
                 transfers, 285 us, which is how those of MLC and TLC are made up: as printed; price 2013",
    },
    Part {
        name: "hyssd-mlc",
        is_of_paper: true,
        cell: Cell::Mlc,
        geometry: [4096, 0, 256],
        us: [75.0, 1300.0, 3800.0],
        bus_mb_per_s: BUS_100_US,
        copyback_us: Some(1375.0),
        endurance: 3_000,
        priced_in: 2013,
        slc_mode: None,
        source: "HySSD, MSST 2013, table II: read 175, program 1400 us with the transfer of 100 us per 4 KiB, which is on \
                 the channel here; price 2013",
    },
    Part {
        name: "hyssd-tlc",
        is_of_paper: true,
        cell: Cell::Tlc,
        geometry: [8192, 0, 384],
        us: [150.0, 2300.0, 3000.0],
        bus_mb_per_s: BUS_100_US,
        copyback_us: Some(2450.0),
        endurance: 500,
        priced_in: 2013,
        slc_mode: None,
        source: "HySSD, MSST 2013, table II: read 350, program 2500 us with the transfer of 200 us per 8 KiB, which is on \
                 the channel here; price 2013",
    },
    Part {
        name: "opfcl-slc",
        is_of_paper: true,
        cell: Cell::Slc,
        geometry: [4096, 0, 64],
        us: [25.0, 200.0, 1500.0],
        bus_mb_per_s: BUS_100_US,
        copyback_us: Some(225.0),
        endurance: 100_000,
        priced_in: 2011,
        slc_mode: None,
        source: "OP-FCL, FAST 2012, table 2: read 125, program 300 us with the transfer of 100 us per 4 KiB, which is on \
                 the channel here; endurance not given, that of SLC of its time taken; price 2011",
    },
    Part {
        name: "wlaftl-slc",
        is_of_paper: true,
        cell: Cell::Slc,
        geometry: [2048, 0, 64],
        us: [25.0, 200.0, 1500.0],
        bus_mb_per_s: 0.0,
        copyback_us: None,
        endurance: 100_000,
        priced_in: 2009,
        slc_mode: None,
        source: "WLAFTL, Chinese Journal of Computers 2018, table 1; price 2009",
    },
    Part {
        name: "wlaftl-mlc",
        is_of_paper: true,
        cell: Cell::Mlc,
        geometry: [4096, 0, 128],
        us: [60.0, 800.0, 1500.0],
        bus_mb_per_s: 0.0,
        copyback_us: None,
        endurance: 10_000,
        priced_in: 2009,
        slc_mode: None,
        source: "WLAFTL, Chinese Journal of Computers 2018, table 1; price 2009",
    },
    Part {
        name: "slc-2006",
        is_of_paper: false,
        cell: Cell::Slc,
        geometry: [2048, 64, 64],
        us: [25.0, 300.0, 2000.0],
        bus_mb_per_s: 40.0,
        copyback_us: None,
        endurance: 100_000,
        priced_in: 2009,
        slc_mode: None,
        source: "data sheet Micron MT29F2G08AAC, typical times; asynchronous bus of 40 MB/s; price 2009; power as chang-slc",
    },
    Part {
        name: "mlc-2008",
        is_of_paper: false,
        cell: Cell::Mlc,
        geometry: [4096, 218, 128],
        us: [50.0, 900.0, 3500.0],
        bus_mb_per_s: 40.0,
        copyback_us: None,
        endurance: 10_000,
        priced_in: 2009,
        slc_mode: None,
        source: "data sheet Micron MT29F16G08MAA, typical times; asynchronous bus of 40 MB/s; price 2009; power as chang-slc",
    },
    Part {
        name: "slc-2011",
        is_of_paper: false,
        cell: Cell::Slc,
        geometry: [4096, 224, 128],
        us: [35.0, 350.0, 1500.0],
        bus_mb_per_s: 200.0,
        copyback_us: None,
        endurance: 60_000,
        priced_in: 2011,
        slc_mode: None,
        source: "data sheet Micron MT29F16G08ABACA, read maximum, program and erase typical; ONFI 2.2, 200 MT/s; price 2011; \
                 power as chang-slc",
    },
    Part {
        name: "mlc-2014",
        is_of_paper: false,
        cell: Cell::Mlc,
        geometry: [16384, 1872, 512],
        us: [115.0, 1600.0, 3000.0],
        bus_mb_per_s: 166.0,
        copyback_us: None,
        endurance: 3_000,
        priced_in: 2026,
        slc_mode: None,
        source: "data sheet Micron MT29F128G08CBECB, read maximum, program and erase typical; ONFI 3.2, 166 MT/s; price: \
                 3/2 of TLC in 2026; power as chang-slc",
    },
    Part {
        name: "mlc-l95b",
        is_of_paper: false,
        cell: Cell::Mlc,
        geometry: [16384, 1872, 512],
        us: [56.0, 1575.0, 3000.0],
        bus_mb_per_s: 166.0,
        copyback_us: None,
        endurance: 3_000,
        priced_in: 2026,
        slc_mode: None,
        source: "FEMU, nand.h: Micron L95B in a CNEX open-channel drive, measured: read 48/64, program 850/2300 us for lower \
                 and upper pages, their means here; geometry, bus and endurance as mlc-2014; power as chang-slc",
    },
    Part {
        name: "mlc-mqsim",
        is_of_paper: false,
        cell: Cell::Mlc,
        geometry: [8192, 448, 256],
        us: [75.0, 750.0, 3800.0],
        bus_mb_per_s: 333.0,
        copyback_us: None,
        endurance: 10_000,
        priced_in: 2026,
        slc_mode: None,
        source: "MQSim, ssdconfig.xml, the default part (FAST 2018), for comparisons with it; bus rate assumed; price: 3/2 of TLC in 2026; power \
                 as chang-slc",
    },
    Part {
        name: "tlc-2014",
        is_of_paper: false,
        cell: Cell::Tlc,
        geometry: [16384, 1872, 768],
        us: [80.0, 2926.5, 3000.0],
        bus_mb_per_s: 166.0,
        copyback_us: None,
        endurance: 1_000,
        priced_in: 2026,
        slc_mode: Some(pslc(256, 10_000)),
        source: "planar TLC of the SimpleSSD paper as in FEMU, nand.h: read 56.5/77.5/106, program 820.5/2225/5734 us, their \
                 means here; endurance 1,000 (HP white paper on flash); geometry and bus assumed as mlc-2014 with half as many \
                 pages again; SLC mode: a third of the pages, generic SLC times, ten times the endurance; power as chang-slc",
    },
    Part {
        name: "tlc-3d-2018",
        is_of_paper: false,
        cell: Cell::Tlc,
        geometry: [16384, 1952, 1152],
        us: [58.0, 575.0, 3500.0],
        bus_mb_per_s: 800.0,
        copyback_us: None,
        endurance: 3_000,
        priced_in: 2026,
        slc_mode: Some(pslc(384, 30_000)),
        source: "Toshiba 96 layers, ISSCC 2018 (AnandTech, table of ISSCC 2021): read 58 us, 57 MB/s, blocks of 18 MB; a die \
                 here is one of two planes, so a page takes its share 2 x 16 KiB / 57 MB/s; erase 3.5 ms (ConZone); endurance \
                 and SLC mode after Swissbit (3,000 and 30,000), generic SLC times; spare and bus assumed; power as chang-slc",
    },
    Part {
        name: "tlc-3d-2019",
        is_of_paper: false,
        cell: Cell::Tlc,
        geometry: [16384, 1952, 1536],
        us: [56.0, 496.5, 3500.0],
        bus_mb_per_s: 800.0,
        copyback_us: None,
        endurance: 3_000,
        priced_in: 2026,
        slc_mode: Some(pslc(512, 30_000)),
        source: "Toshiba 128 layers, ISSCC 2019 (AnandTech, table of ISSCC 2021): read 56 us, 132 MB/s, blocks of 24 MB; a die \
                 here is one of four planes, so a page takes its share 4 x 16 KiB / 132 MB/s; the rest as tlc-3d-2018",
    },
    Part {
        name: "tlc-3d-2021",
        is_of_paper: false,
        cell: Cell::Tlc,
        geometry: [16384, 1952, 1536],
        us: [40.0, 356.2, 3500.0],
        bus_mb_per_s: 2400.0,
        copyback_us: None,
        endurance: 3_000,
        priced_in: 2026,
        slc_mode: Some(pslc(512, 30_000)),
        source: "Samsung, more than 170 layers, ISSCC 2021 (AnandTech's table): read 40 us, 184 MB/s; a die here is one of four \
                 planes, so a page takes its share 4 x 16 KiB / 184 MB/s; blocks as tlc-3d-2019, bus ONFI 5, 2400 MT/s, both \
                 assumed; the rest as tlc-3d-2018",
    },
    Part {
        name: "qlc-3d-2020",
        is_of_paper: false,
        cell: Cell::Qlc,
        geometry: [16384, 1952, 1536],
        us: [110.0, 2184.5, 3500.0],
        bus_mb_per_s: 800.0,
        copyback_us: None,
        endurance: 1_000,
        priced_in: 2026,
        slc_mode: Some(pslc(384, 10_000)),
        source: "SK hynix 96 layers, ISSCC 2020, 13.2: 30 MB/s; a die here is one of four planes, so a page takes its share \
                 4 x 16 KiB / 30 MB/s; read: mean of FEMU's 59/85/127/170 us; blocks 96 layers x 4 strings x 4 bits; endurance \
                 1,000 (AnandTech 2018 on Intel/Micron); SLC mode: ten times that, generic SLC times; the rest as tlc-3d-2018",
    },
    Part {
        name: "pslc-tlc-2019",
        is_of_paper: false,
        cell: Cell::Pslc,
        geometry: [16384, 1952, 512],
        us: [25.0, 200.0, 3500.0],
        bus_mb_per_s: 800.0,
        copyback_us: None,
        endurance: 30_000,
        priced_in: 2026,
        slc_mode: None,
        source: "blocks of tlc-3d-2019 that stay in SLC mode: a third of the capacity, three times the price; 30,000 cycles \
                 (Swissbit); array times of generic SLC (HP white paper on flash: 25 us, 200 to 300 us)",
    },
    Part {
        name: "pslc-tlc-2021",
        is_of_paper: false,
        cell: Cell::Pslc,
        geometry: [16384, 1952, 512],
        us: [25.0, 200.0, 3500.0],
        bus_mb_per_s: 2400.0,
        copyback_us: None,
        endurance: 30_000,
        priced_in: 2026,
        slc_mode: None,
        source: "blocks of tlc-3d-2021 that stay in SLC mode; derived as pslc-tlc-2019",
    },
    Part {
        name: "pslc-qlc-2020",
        is_of_paper: false,
        cell: Cell::Pslc,
        geometry: [16384, 1952, 384],
        us: [25.0, 200.0, 3500.0],
        bus_mb_per_s: 800.0,
        copyback_us: None,
        endurance: 10_000,
        priced_in: 2026,
        slc_mode: None,
        source: "blocks of qlc-3d-2020 that stay in SLC mode: a quarter of the capacity, four times the price; ten times the \
                 endurance, assumed as for TLC; array times of generic SLC (HP white paper on flash)",
    },
];
