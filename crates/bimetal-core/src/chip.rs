//! The chip catalogue: what a part's geometry, times, endurance, energy and price are, and who says so.
//!
//! Times are array times where a bus rate is given (the channel's time is added per page) and end-to-end times where
//! the source, usually a paper, has the bus in them (`bus_mb_per_s` 0).

use serde::{Deserialize, Serialize};

use crate::media::CellMode;
use crate::units::Nanos;

/// Bits per cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cell {
    /// One bit.
    Slc,
    /// One bit in a cell that is made for more.
    Pslc,
    /// Two bits.
    Mlc,
    /// Three bits.
    Tlc,
    /// Four bits.
    Qlc,
}

/// The same silicon with one bit per cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcMode {
    /// Pages of a block in this mode.
    pub pages_per_block: u32,
    /// Page read, in microseconds.
    pub read_us: f64,
    /// Page program, in microseconds.
    pub program_us: f64,
    /// Block erase, in microseconds.
    pub erase_us: f64,
    /// Program/erase cycles that a block lasts in this mode.
    pub endurance: u32,
}

/// A flash part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chip {
    /// Name in device files and on the command line.
    pub name: String,
    /// Bits per cell.
    pub cell: Cell,
    /// Bytes of a page, without its spare area.
    pub page_bytes: u32,
    /// Bytes of a page's spare area; they take time on the channel.
    pub spare_bytes: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Page read, in microseconds.
    pub read_us: f64,
    /// Page program, in microseconds.
    pub program_us: f64,
    /// Block erase, in microseconds.
    pub erase_us: f64,
    /// Channel rate in MB/s (10^6 bytes); 0 where the times above include the transfer.
    pub bus_mb_per_s: f64,
    /// Program/erase cycles that a block lasts.
    pub endurance: u32,
    /// Supply voltage.
    pub supply_v: f64,
    /// Current while an operation runs, in milliamperes.
    pub current_ma: f64,
    /// Price per GiB in US dollars. Prices moved fourfold within three years: see the source, and override them.
    pub usd_per_gib: f64,
    /// The part run with one bit per cell, where it can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc_mode: Option<SlcMode>,
    /// Where the figures come from, and which of them are derived.
    pub source: String,
}

impl Chip {
    /// Array times of page read, page program and block erase in a mode; a part without the mode has its own.
    pub fn times(&self, mode: CellMode) -> (Nanos, Nanos, Nanos) {
        let us = |us: f64| Nanos((us * 1000.0).round() as u64);
        match (mode, &self.slc_mode) {
            (CellMode::Slc, Some(slc)) => (us(slc.read_us), us(slc.program_us), us(slc.erase_us)),
            _ => (us(self.read_us), us(self.program_us), us(self.erase_us)),
        }
    }

    /// Channel time of one page with its spare area.
    pub fn transfer(&self) -> Nanos {
        if self.bus_mb_per_s == 0.0 {
            return Nanos(0);
        }
        let bytes = f64::from(self.page_bytes + self.spare_bytes);
        Nanos((bytes * 1000.0 / self.bus_mb_per_s).round() as u64)
    }

    /// Pages of a block in a mode.
    pub fn pages_per_block(&self, mode: CellMode) -> u32 {
        match (mode, &self.slc_mode) {
            (CellMode::Slc, Some(slc)) => slc.pages_per_block,
            _ => self.pages_per_block,
        }
    }

    /// Cycles a block lasts in a mode.
    pub fn endurance(&self, mode: CellMode) -> u32 {
        match (mode, &self.slc_mode) {
            (CellMode::Slc, Some(slc)) => slc.endurance,
            _ => self.endurance,
        }
    }
}

/// The part of that name.
pub fn find(name: &str) -> Option<Chip> {
    catalogue().into_iter().find(|chip| chip.name == name)
}

/// Every part of the catalogue.
pub fn catalogue() -> Vec<Chip> {
    let chang = Chip {
        name: "chang-slc".into(),
        cell: Cell::Slc,
        page_bytes: 2048,
        spare_bytes: 0,
        pages_per_block: 64,
        read_us: 25.0,
        program_us: 200.0,
        erase_us: 1500.0,
        bus_mb_per_s: 0.0,
        endurance: 100_000,
        supply_v: 3.3,
        current_ma: 15.0,
        usd_per_gib: 9.0,
        slc_mode: None,
        source: "Chang 2010".into(),
    };
    let mlc = Chip {
        name: "chang-mlc".into(),
        cell: Cell::Mlc,
        page_bytes: 4096,
        pages_per_block: 128,
        read_us: 60.0,
        program_us: 800.0,
        endurance: 10_000,
        usd_per_gib: 3.0,
        slc_mode: Some(SlcMode {
            pages_per_block: 64,
            read_us: 50.0,
            program_us: 400.0,
            erase_us: 1500.0,
            endurance: 100_000,
        }),
        ..chang.clone()
    };
    vec![chang, mlc]
}
