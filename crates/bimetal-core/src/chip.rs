//! The chip catalogue: geometry, times, endurance, energy and price of each part, with sources.
//!
//! Times are array times if a bus rate is given (the channel's time is added per page), and end-to-end times if the
//! source, usually a paper, includes the bus in them (`bus_mb_per_s` 0).
//!
//! Dies of today have several planes, which read, program and erase together, and program all pages of a wordline
//! together. Their array times are those of the whole operation: a read of the pages of all planes takes as long as
//! that of one page.

mod dies;
mod parts;
pub mod prices;

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Bits per cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
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

/// Bits that a cell of a block stores until the next erase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum CellMode {
    /// The mode in which the chip is sold.
    #[default]
    Native = 0,
    /// One bit per cell: fewer pages, faster and more durable. Only chips that declare it have it.
    Slc = 1,
}

/// The same silicon with one bit per cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// Channel rate in MB/s (10^6 bytes); 0 if the times above include the transfer.
    pub bus_mb_per_s: f64,
    /// Copy of a page within its die, in microseconds, from its sensing to the end of its program; it does not use the
    /// channel. If it is missing or 0, copies go through the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copyback_us: Option<f64>,
    /// Planes of a die: their pages at the same place are read together, and their blocks are programmed and erased together.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub planes: u32,
    /// Pages of a plane that one program operation writes: the bits of a cell if a wordline is programmed at once. In
    /// SLC mode it is one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub program_pages: u32,
    /// Pages of different planes that a die reads at once at independent places: 1 if all planes read at the same
    /// place.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub independent_reads: u32,
    /// Time to suspend a program or an erase for a read of the host, in microseconds. Without it a read waits for their
    /// end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend_us: Option<f64>,
    /// Program/erase cycles that a block lasts.
    pub endurance: u32,
    /// Supply voltage.
    pub supply_v: f64,
    /// Current while an operation runs, in milliamperes.
    pub current_ma: f64,
    /// Price per GiB in US dollars. Prices moved fourfold within three years: see the source, and override them.
    pub usd_per_gib: f64,
    /// Figures with one bit per cell, if the part has this mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc_mode: Option<SlcMode>,
    /// Where the figures come from, and which of them are derived.
    pub source: String,
}

/// Figures that a part may lack.
pub const OPTIONAL_FIGURES: [&str; 5] = ["copyback_us", "planes", "program_pages", "independent_reads", "suspend_us"];

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

impl Cell {
    /// All kinds, from few bits to many.
    pub const ALL: [Self; 5] = [Self::Slc, Self::Pslc, Self::Mlc, Self::Tlc, Self::Qlc];

    /// Name, as in device files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Slc => "slc",
            Self::Pslc => "pslc",
            Self::Mlc => "mlc",
            Self::Tlc => "tlc",
            Self::Qlc => "qlc",
        }
    }
}

impl Chip {
    /// Array times of page read, page program and block erase in a mode; native times if the part does not have the
    /// mode.
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

    /// Time of a page's copy within its die, if the part supports it; only in the native mode.
    pub fn copyback(&self, mode: CellMode) -> Option<Nanos> {
        let us = self.copyback_us.filter(|&us| us > 0.0 && mode == CellMode::Native)?;
        Some(Nanos((us * 1000.0).round() as u64))
    }

    /// Pages of a block in a mode.
    pub fn pages_per_block(&self, mode: CellMode) -> u32 {
        match (mode, &self.slc_mode) {
            (CellMode::Slc, Some(slc)) => slc.pages_per_block,
            _ => self.pages_per_block,
        }
    }

    /// Pages that a die reads together.
    pub fn read_group(&self) -> u32 {
        self.planes
    }

    /// Bytes of a block in all planes of a die, which a scheme fills and erases together; at least 1, because it is a
    /// divisor.
    pub fn block_bytes(&self) -> u64 {
        (u64::from(self.page_bytes) * u64::from(self.pages_per_block) * u64::from(self.planes)).max(1)
    }

    /// Pages that a die programs together in a mode.
    pub fn program_group(&self, mode: CellMode) -> u32 {
        match (mode, &self.slc_mode) {
            (CellMode::Slc, Some(_)) => self.planes,
            _ => self.planes * self.program_pages,
        }
    }

    /// The part as seen by a scheme that maps `unit_bytes` at a time: a page is a unit, and a block is the blocks of
    /// all planes. A unit is a part of a page, or several pages of different planes.
    ///
    /// # Errors
    /// A unit that is neither, or a block of too many units.
    pub fn in_units(&self, unit_bytes: u32) -> Result<Self, String> {
        let together = u64::from(self.page_bytes) * u64::from(self.planes);
        let is_part = unit_bytes > 0
            && unit_bytes.is_multiple_of(512)
            && (self.page_bytes.is_multiple_of(unit_bytes) || unit_bytes.is_multiple_of(self.page_bytes))
            && together.is_multiple_of(u64::from(unit_bytes));
        if !is_part {
            return Err(format!(
                "{unit_bytes} bytes are neither a part of a page of {} bytes nor pages of several of its {} planes",
                self.page_bytes, self.planes
            ));
        }
        let factor = u32::try_from(together / u64::from(unit_bytes)).ok();
        let units = |pages: u32| factor.and_then(|factor| pages.checked_mul(factor));
        let too_many =
            || format!("a block of {} pages in {} planes has too many units", self.pages_per_block, self.planes);
        let mut chip = self.clone();
        chip.page_bytes = unit_bytes;
        let scaled = |figure: u32| u64::from(figure) * u64::from(unit_bytes) / u64::from(self.page_bytes);
        chip.spare_bytes = u32::try_from(scaled(self.spare_bytes)).map_err(|_| too_many())?;
        // A read of a unit in several planes occupies all of them.
        let planes_of_unit = (unit_bytes / self.page_bytes).max(1);
        chip.independent_reads = (self.independent_reads / planes_of_unit).max(1);
        chip.planes = factor.ok_or_else(too_many)?;
        chip.pages_per_block = units(self.pages_per_block).ok_or_else(too_many)?;
        if let Some(slc) = &mut chip.slc_mode {
            slc.pages_per_block = units(slc.pages_per_block).ok_or_else(too_many)?;
        }
        Ok(chip)
    }

    /// Cycles a block lasts in a mode.
    pub fn endurance(&self, mode: CellMode) -> u32 {
        match (mode, &self.slc_mode) {
            (CellMode::Slc, Some(slc)) => slc.endurance,
            _ => self.endurance,
        }
    }
}

/// The part with this name.
pub fn find(name: &str) -> Option<Chip> {
    catalogue().into_iter().find(|chip| chip.name == name)
}

/// The year in [`prices`] from which a part of the catalogue has its price.
pub fn priced_in(name: &str) -> Option<u16> {
    let part = parts::PARTS.iter().find(|part| part.name == name).map(|part| part.priced_in);
    part.or_else(|| dies::DIES.iter().any(|die| die.name == name).then_some(dies::PRICED_IN))
}

/// The year of a part of the catalogue: the year in its name, or that of the publication at the beginning of its
/// source.
pub fn year(name: &str) -> Option<u16> {
    let chip = find(name)?;
    let words = chip.name.rsplit('-').chain(chip.source.split(|character: char| !character.is_ascii_digit()));
    words.filter(|word| word.len() == 4).filter_map(|word| word.parse().ok()).find(|year| (1990..2100).contains(year))
}

/// Whether a part of the catalogue comes from a paper, with figures chosen for an experiment.
pub fn is_of_paper(name: &str) -> bool {
    parts::PARTS.iter().any(|part| part.name == name && part.is_of_paper)
}

/// Every part of the catalogue: those of the papers, then those of data sheets and published chips by year.
///
/// If a source gives no supply and current, those of Chang (2010, section 5.1) are used: 3.3 V and 15 mA during every
/// operation. Prices are those of the list of [`prices`], each of a year that suits the part: override them.
pub fn catalogue() -> Vec<Chip> {
    parts::PARTS.iter().map(parts::CatalogueRow::chip).chain(dies::DIES.iter().map(dies::Die::chip)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Geometry;

    #[test]
    fn every_part_is_complete() {
        let parts = catalogue();
        for chip in &parts {
            assert!(Geometry::new(chip.page_bytes, chip.pages_per_block, 16, 1).is_ok(), "{}", chip.name);
            for figure in
                [chip.read_us, chip.program_us, chip.erase_us, chip.supply_v, chip.current_ma, chip.usd_per_gib]
            {
                assert!(figure > 0.0 && figure.is_finite(), "{}", chip.name);
            }
            assert!(chip.read_us < chip.program_us && chip.endurance > 0, "{}", chip.name);
            assert!(chip.bus_mb_per_s >= 0.0 && chip.source.len() > 20, "{}", chip.name);
            assert!(!chip.source.contains("  "), "{}: a line is broken in its source", chip.name);
            assert!(chip.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
            assert_eq!(parts.iter().filter(|other| other.name == chip.name).count(), 1, "{}", chip.name);
            assert_eq!(find(&chip.name).as_ref(), Some(chip));
        }
        assert_eq!(find("no-such-part"), None);
    }

    #[test]
    fn every_part_has_a_price_of_the_list() {
        for chip in catalogue() {
            let price = priced_in(&chip.name).and_then(|year| prices::of(chip.cell, year));
            assert_eq!(price, Some(chip.usd_per_gib), "{}", chip.name);
        }
        // The rules of the list.
        let of = |cell, year| prices::of(cell, year).unwrap();
        for year in [2009, 2011, 2013, 2026] {
            assert!((of(Cell::Slc, year) - 3.0 * of(Cell::Mlc, year)).abs() < 1e-12, "{year}");
        }
        assert_eq!(of(Cell::Pslc, 2026), 4.0 * of(Cell::Qlc, 2026));
    }

    #[test]
    fn every_part_has_a_year() {
        for chip in catalogue() {
            assert!(year(&chip.name).is_some_and(|year| (2005..=2030).contains(&year)), "{}", chip.name);
        }
        assert_eq!(["chang-mlc", "tlc-3d-2019", "none"].map(year), [Some(2010), Some(2019), None]);
    }

    #[test]
    fn a_unit_is_a_part_of_a_page_or_pages_of_several_planes() {
        let die = find("solidigm-192-qlc").unwrap();
        let block = |chip: &Chip| u64::from(chip.page_bytes) * u64::from(chip.pages_per_block);
        for (unit_kib, planes, independent_reads) in [(4, 16, 4), (16, 4, 4), (32, 2, 2), (64, 1, 1)] {
            let chip = die.in_units(unit_kib << 10).unwrap();
            assert_eq!((chip.planes, chip.independent_reads), (planes, independent_reads), "{unit_kib} KiB");
            assert_eq!(block(&chip), 4 * block(&die), "a block is those of all planes");
            assert_eq!(chip.spare_bytes, die.spare_bytes * unit_kib / 16);
        }
        for bytes in [0, 100, 24 << 10, 128 << 10] {
            assert!(die.in_units(bytes).unwrap_err().contains("4 planes"), "{bytes}");
        }
    }

    #[test]
    fn a_mode_with_fewer_bits_is_smaller_faster_and_lasts_longer() {
        for chip in catalogue() {
            let Some(slc) = chip.slc_mode else { continue };
            assert!(slc.pages_per_block < chip.pages_per_block, "{}", chip.name);
            assert!(slc.program_us < chip.program_us && slc.endurance > chip.endurance, "{}", chip.name);
        }
    }

    #[test]
    fn papers_page_times_are_whole_where_the_bus_is_split_off() {
        let end_to_end = |name: &str| {
            let chip = find(name).unwrap();
            let transfer_us = chip.transfer().as_us();
            (chip.read_us + transfer_us, chip.program_us + transfer_us)
        };
        assert_eq!(end_to_end("hyssd-slc"), (135.0, 350.0));
        assert_eq!(end_to_end("hyssd-mlc"), (175.0, 1400.0));
        assert_eq!(end_to_end("hyssd-tlc"), (350.0, 2500.0));
        assert_eq!(end_to_end("opfcl-slc"), (125.0, 300.0));
    }

    #[test]
    fn papers_copybacks_leave_out_the_transfers_but_for_one() {
        let beyond_array_us = |name: &str| {
            let chip = find(name).unwrap();
            chip.copyback_us.unwrap() - chip.read_us - chip.program_us
        };
        assert_eq!(["hyssd-mlc", "hyssd-tlc", "opfcl-slc"].map(beyond_array_us), [0.0; 3]);
        // As printed in HySSD's table II, with a transfer of 100 us.
        assert_eq!(beyond_array_us("hyssd-slc"), 100.0);
    }

    #[test]
    fn published_program_rates_give_the_page_times() {
        for (name, planes, mb_per_s) in [
            ("tlc-3d-2018", 2.0, 57.0),
            ("tlc-3d-2019", 4.0, 132.0),
            ("tlc-3d-2021", 4.0, 184.0),
            ("qlc-3d-2020", 4.0, 30.0),
        ] {
            let share_us = planes * 16384.0 / mb_per_s;
            assert!((find(name).unwrap().program_us - share_us).abs() < 0.5, "{name}: {share_us}");
        }
    }
}
