//! Prices of flash and disks: the core's list by year, a file, and single prices. A device is priced from its parts, so
//! that any row can be priced again without a simulation.

use std::collections::{BTreeMap, BTreeSet};

use bimetal_core::chip::{self, Cell, Chip, prices};
use bimetal_core::drive::{self, Drive};
use bimetal_core::toml_file;
use serde::{Deserialize, Serialize};

use crate::drives::products;
use crate::sweep::row::Figures;

/// Bytes of a GiB.
const GIB: f64 = (1u64 << 30) as f64;

/// A kind of parts whose prices change together: flash with the same kind of cells, or disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Flash with these cells.
    Flash(Cell),
    /// Disks.
    Disk,
}

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flash(cell) => cell.name(),
            Self::Disk => "disk",
        }
    }

    /// Whether its price changes with that of another kind: pSLC is TLC with one bit in a cell.
    pub fn follows(self, other: Self) -> bool {
        self == other || (self, other) == (Self::Flash(Cell::Pslc), Self::Flash(Cell::Tlc))
    }
}

/// A price list. Displays as a line.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceList {
    /// Its year.
    pub year: u16,
    /// Prices by year and kind of cells, in US dollars per GiB.
    by_year: BTreeMap<(u16, Cell), f64>,
    /// Years and kinds of cells of the file's prices.
    of_file: BTreeSet<(u16, Cell)>,
    /// Prices of single parts and of kinds, in US dollars per GiB. They take precedence over the year's.
    given: BTreeMap<String, f64>,
    /// Prices of whole drives, in US dollars.
    quoted: BTreeMap<String, f64>,
}

/// An error in a price, in a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PriceError(String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    prices: Vec<FilePrice>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePrice {
    year: u16,
    cell: String,
    usd_per_gib: f64,
}

/// A price as printed.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Listed {
    /// Name of the chip or drive.
    pub part: String,
    /// Its kind of cells, or `disk`.
    pub kind: &'static str,
    /// US dollars per GiB.
    pub usd_per_gib: f64,
}

impl PriceList {
    /// The price list of a year, by default the latest one. `file` is the text of a file of prices, which replace those
    /// of the same year and cells. `given` are prices of parts or kinds, such as `tlc=0.10`, and of whole drives, such
    /// as `samsung-980-1tb=75`, with the names of `bimetal drives`. A price of TLC also sets that of pSLC, which is TLC
    /// with one bit in a cell, unless pSLC has its own.
    ///
    /// # Errors
    /// An invalid file or price, or a year before or after all prices.
    pub fn new(year: Option<u16>, file: Option<&str>, given: &[(String, f64)]) -> Result<Self, PriceError> {
        let mut by_year: BTreeMap<(u16, Cell), f64> =
            prices::PRICES.iter().map(|price| ((price.year, price.cell), price.usd_per_gib)).collect();
        let mut years_of_file = BTreeSet::new();
        if let Some(text) = file {
            let mut of_file = BTreeMap::new();
            for price in parse(text)? {
                of_file.insert((price.year, cell(&price.cell)?), positive(&price.cell, price.usd_per_gib)?);
            }
            let tlc = of_file.iter().filter(|((_, cell), _)| *cell == Cell::Tlc);
            let pslc: Vec<_> = tlc.map(|((year, _), usd)| ((*year, Cell::Pslc), usd * prices::PSLC_PER_TLC)).collect();
            years_of_file.extend(of_file.keys().copied());
            years_of_file.extend(pslc.iter().map(|&(key, _)| key));
            by_year.extend(pslc);
            by_year.extend(of_file);
        }
        let years = || by_year.keys().map(|&(year, _)| year);
        let (first, last) = (years().min().unwrap_or(0), years().max().unwrap_or(0));
        let is_chosen = year.is_some();
        let year = year.unwrap_or(last);
        if !(first..=last).contains(&year) {
            return Err(PriceError(format!("there are no prices of {year}; hint: the list has {first} to {last}")));
        }
        if let Some(&(newest, _)) = years_of_file.last()
            && !is_chosen
            && !by_year
                .iter()
                .any(|(&(of, cell), _)| years_of_file.contains(&(of, cell)) && of == applying(&by_year, cell, year))
        {
            return Err(PriceError(format!(
                "no price of the file applies in {year}: its newest is of {newest}; hint: `--year {newest}`"
            )));
        }
        let mut list = Self { year, by_year, of_file: years_of_file, given: BTreeMap::new(), quoted: BTreeMap::new() };
        for (name, usd) in given {
            let name = name.to_ascii_lowercase();
            let is_part = name == Kind::Disk.name()
                || cell(&name).is_ok()
                || chip::find(&name).is_some()
                || drive::catalogue().iter().any(|drive| drive.name == name);
            if is_part {
                list.given.insert(name.clone(), positive(&name, *usd)?);
            } else {
                list.quote(&name, *usd)?;
            }
        }
        if let Some(tlc) = list.given.get(Cell::Tlc.name()) {
            let pslc = tlc * prices::PSLC_PER_TLC;
            list.given.entry(Cell::Pslc.name().to_owned()).or_insert(pslc);
        }
        Ok(list)
    }

    /// Adds the price of a whole drive.
    fn quote(&mut self, name: &str, usd: f64) -> Result<(), PriceError> {
        let found = products(&[name.to_owned()]).map_err(|_| {
            PriceError(format!(
                "`{name}` is no chip, drive or kind of part; the kinds are {}, disk; drives are listed by `bimetal drives` \
                 and `bimetal list drives`",
                Cell::ALL.map(Cell::name).join(", ")
            ))
        })?;
        let [drive] = found.as_slice() else {
            let names: Vec<&str> = found.iter().map(|drive| drive.name.as_str()).collect();
            return Err(PriceError(format!(
                "`{name}` is the name of several drives: {}; give one of them",
                names.join(", ")
            )));
        };
        if !(usd > 0.0 && usd <= 1e6) {
            let what = "write US dollars for the whole drive, above 0 and at most 1000000";
            return Err(PriceError(format!("the price of `{}` is {usd}: {what}", drive.name)));
        }
        self.quoted.insert(drive.name.clone(), usd);
        Ok(())
    }

    /// Price of a whole drive in US dollars: its own, or else the price of its flash, given as chips and their bytes.
    /// `None` if a chip has no price.
    pub fn of_product<'a>(&self, name: &str, flash: impl Iterator<Item = (&'a Chip, u64)>) -> Option<f64> {
        let of_flash = || flash.map(|(chip, bytes)| Some(bytes as f64 / GIB * self.of_chip(chip)?)).sum();
        self.quoted.get(name).copied().or_else(of_flash)
    }

    /// Whether a whole drive has its own price.
    pub fn is_quoted(&self, name: &str) -> bool {
        self.quoted.contains_key(name)
    }

    /// Price per GiB of a chip: its own, or that of its kind, or that of its cells in the year or the latest earlier
    /// year with a price.
    pub fn of_chip(&self, chip: &Chip) -> Option<f64> {
        let given = self.given.get(&chip.name).or_else(|| self.given.get(chip.cell.name()));
        let listed = || self.by_year.iter().rev().find(|((year, cell), _)| *year <= self.year && *cell == chip.cell);
        given.copied().or_else(|| listed().map(|(_, &usd)| usd))
    }

    /// Whether the file has a price of these cells in the year of the list.
    pub fn is_of_file(&self, cell: Cell) -> bool {
        self.of_file.contains(&(self.year, cell))
    }

    /// The year of a chip's price, if it is earlier than that of the list.
    pub fn earlier_year(&self, chip: &Chip) -> Option<u16> {
        let is_given = self.given.contains_key(&chip.name) || self.given.contains_key(chip.cell.name());
        let year = applying(&self.by_year, chip.cell, self.year);
        (!is_given && year > 0 && year < self.year).then_some(year)
    }

    /// Names of single chips with a given price.
    pub fn given_chips(&self) -> impl Iterator<Item = &str> {
        self.given.keys().map(String::as_str).filter(|name| chip::find(name).is_some())
    }

    /// Price per GiB of a drive: its own, or that of disks, or that of the catalogue.
    pub fn of_drive(&self, drive: &Drive) -> f64 {
        let given = self.given.get(&drive.name).or_else(|| self.given.get(Kind::Disk.name()));
        given.copied().unwrap_or(drive.usd_per_gib)
    }

    /// Cost of a device by kinds of parts in US dollars, as in reports: all flash, and the part of the disks that holds
    /// data. `None` if a part has no price.
    pub fn shares(&self, figures: &Figures) -> Option<Vec<(Kind, f64)>> {
        let regions = figures.regions.iter().map(|region| (region.chip.as_str(), region.capacity_bytes));
        let disks = figures.disks.iter().map(|disk| (disk.drive.as_str(), disk.capacity_bytes));
        self.shares_of(regions, disks)
    }

    /// The same for names of chips and drives and their bytes.
    pub fn shares_of<'a>(
        &self,
        regions: impl Iterator<Item = (&'a str, u64)>,
        disks: impl Iterator<Item = (&'a str, u64)>,
    ) -> Option<Vec<(Kind, f64)>> {
        let flash = regions.map(|(name, bytes)| {
            let chip = chip::find(name)?;
            Some((Kind::Flash(chip.cell), bytes as f64 / GIB * self.of_chip(&chip)?))
        });
        let disks =
            disks.map(|(name, bytes)| Some((Kind::Disk, bytes as f64 / GIB * self.of_drive(&drive::find(name)?))));
        flash.chain(disks).collect()
    }

    /// Cost of a device, in US dollars.
    pub fn cost_usd(&self, figures: &Figures) -> Option<f64> {
        self.shares(figures).map(|shares| total(&shares, |_| 1.0))
    }

    /// The price of a chip as printed.
    pub fn listed(&self, chip: &Chip) -> Option<Listed> {
        Some(Listed { part: chip.name.clone(), kind: chip.cell.name(), usd_per_gib: self.of_chip(chip)? })
    }
}

/// The sum of shares after their prices have changed by factors.
pub fn total(shares: &[(Kind, f64)], factor: impl Fn(Kind) -> f64) -> f64 {
    shares.iter().map(|&(kind, usd)| usd * factor(kind)).sum()
}

/// The latest year up to `year` with a price of these cells; 0 without one.
fn applying(by_year: &BTreeMap<(u16, Cell), f64>, cell: Cell, year: u16) -> u16 {
    by_year.keys().filter(|&&(of, kind)| kind == cell && of <= year).map(|&(of, _)| of).max().unwrap_or(0)
}

fn parse(text: &str) -> Result<Vec<FilePrice>, PriceError> {
    toml_file::parse(text).map(|file: File| file.prices).map_err(|error| PriceError(error.to_string()))
}

fn cell(name: &str) -> Result<Cell, PriceError> {
    let known = || Cell::ALL.map(Cell::name).join(", ");
    let found = Cell::ALL.into_iter().find(|cell| cell.name() == name.to_ascii_lowercase());
    found.ok_or_else(|| PriceError(format!("`{name}` is no kind of cells; there are: {}", known())))
}

fn positive(of: &str, usd: f64) -> Result<f64, PriceError> {
    if usd > 0.0 && usd <= 1e6 {
        return Ok(usd);
    }
    Err(PriceError(format!("the price of `{of}` is {usd}: write US dollars per GiB, above 0 and at most 1000000")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::point::{DeviceSource, Point, Replay};
    use crate::sweep::run;
    use crate::sweep::source::{Origin, TraceSource};
    use bimetal_core::device::BARE_DIES;
    use bimetal_core::replay::to_the_end;
    use std::path::Path;

    fn figures(scheme: &str, set: &[(&str, &str)]) -> Figures {
        let point = Point {
            trace: TraceSource { name: "s".into(), from: Origin::Sample, limit: Some(200) },
            device: DeviceSource { name: BARE_DIES.into(), file: None },
            scheme: scheme.into(),
            set: set.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect(),
            replay: Replay::default(),
        };
        run::run(&point, Path::new("."), &mut to_the_end).figures.unwrap()
    }

    #[test]
    fn the_lists_own_year_gives_the_cost_of_the_report() {
        let (of_2009, of_2026) = (PriceList::new(Some(2009), None, &[]), PriceList::new(None, None, &[]));
        let (of_2009, of_2026) = (of_2009.unwrap(), of_2026.unwrap());
        assert_eq!(of_2026.year, 2026);
        let (fast, slow) = (("fast.chip", "pslc-tlc-2021"), ("slow.chip", "tlc-3d-2021"));
        let schemes: [(&str, &[(&str, &str)]); 4] =
            [("pagemap", &[slow]), ("wlaftl", &[fast, slow]), ("pslc-dynamic", &[fast, slow]), ("opfcl", &[fast])];
        for (scheme, chips_2026) in schemes {
            let old = figures(scheme, &[]);
            assert_eq!(of_2009.cost_usd(&old), Some(old.key_figures.cost_usd), "{scheme}");
            let new = figures(scheme, chips_2026);
            assert_eq!(of_2026.cost_usd(&new), Some(new.key_figures.cost_usd), "{scheme}");
            assert!(of_2026.cost_usd(&old).unwrap() < old.key_figures.cost_usd, "{scheme}");
        }
    }

    #[test]
    fn prices_can_be_given_by_file_kind_and_part() {
        let file = "[[prices]]\nyear = 2027\ncell = \"TLC\"\nusd_per_gib = 0.5\n";
        let of = |year, given: &[(String, f64)], name: &str| {
            let list = PriceList::new(year, Some(file), given).unwrap();
            list.of_chip(&chip::find(name).unwrap())
        };
        assert_eq!(of(None, &[], "tlc-3d-2021"), Some(0.5));
        // A kind without a price in 2027 has the price of the latest earlier year.
        assert_eq!(of(None, &[], "qlc-3d-2020"), prices::of(Cell::Qlc, 2026));
        assert_eq!(of(Some(2026), &[], "tlc-3d-2021"), prices::of(Cell::Tlc, 2026));
        assert_eq!(of(Some(2009), &[], "tlc-3d-2021"), None);
        let given = [("TLC".to_owned(), 0.1), ("tlc-2014".to_owned(), 0.05)];
        assert_eq!(of(None, &given, "tlc-3d-2021"), Some(0.1));
        // pSLC is TLC with one bit in a cell.
        assert_eq!(of(None, &[], "pslc-tlc-2021"), Some(1.5));
        assert_eq!(of(None, &given, "pslc-tlc-2021"), Some(0.1 * 3.0));
        let both = [("tlc".to_owned(), 0.1), ("pslc".to_owned(), 0.9)];
        assert_eq!(of(None, &both, "pslc-tlc-2021"), Some(0.9));
        assert_eq!(of(None, &given, "tlc-2014"), Some(0.05));
    }

    #[test]
    fn a_year_without_prices_has_those_of_an_earlier_one() {
        let (tlc, pslc) = (chip::find("tlc-3d-2021").unwrap(), chip::find("pslc-tlc-2021").unwrap());
        let list = |year, given: &[(String, f64)]| PriceList::new(Some(year), None, given).unwrap();
        assert_eq!((list(2020, &[]).earlier_year(&tlc), list(2026, &[]).earlier_year(&tlc)), (Some(2013), None));
        assert_eq!(list(2020, &[("tlc".to_owned(), 0.1)]).earlier_year(&tlc), None);
        let file = "[[prices]]\nyear = 2024\ncell = \"tlc\"\nusd_per_gib = 0.05\n";
        let of_file = PriceList::new(Some(2024), Some(file), &[]).unwrap();
        assert!(of_file.is_of_file(Cell::Tlc) && of_file.is_of_file(pslc.cell) && !of_file.is_of_file(Cell::Qlc));
        let [tlc, pslc] = [Cell::Tlc, Cell::Pslc].map(Kind::Flash);
        assert!(pslc.follows(tlc) && tlc.follows(tlc) && !tlc.follows(pslc));
    }

    #[test]
    fn a_whole_drive_costs_its_flash_or_what_is_quoted() {
        let tlc = chip::find("tlc-3d-2021").unwrap();
        let of = |year, given: &[(&str, f64)]| {
            let given: Vec<_> = given.iter().map(|&(name, usd)| (name.to_owned(), usd)).collect();
            let list = PriceList::new(year, None, &given).unwrap();
            list.of_product("samsung-980-1tb", [(&tlc, 1000 << 30)].into_iter())
        };
        assert_eq!(of(None, &[("tlc", 0.25)]), Some(250.0));
        assert_eq!(of(None, &[("samsung-980-1TB", 75.0)]), Some(75.0));
        assert_eq!(of(None, &[("tlc", 0.25), ("samsung-980-pro", 75.0)]), Some(250.0), "another drive's quote");
        assert_eq!(of(Some(2009), &[]), None);
        assert_eq!(of(Some(2009), &[("samsung-980-1tb", 75.0)]), Some(75.0));
    }

    #[test]
    fn what_cannot_be_is_said() {
        let error = |year, file: Option<&str>, given: &[(&str, f64)]| {
            let given: Vec<_> = given.iter().map(|&(name, usd)| (name.to_owned(), usd)).collect();
            PriceList::new(year, file, &given).unwrap_err().to_string()
        };
        assert!(error(Some(1999), None, &[]).contains("2009"));
        let old = "[[prices]]\nyear = 2024\ncell = \"tlc\"\nusd_per_gib = 0.05\n";
        assert!(
            error(None, Some(old), &[])
                .contains("no price of the file applies in 2026: its newest is of 2024; hint: `--year")
        );
        assert!(error(Some(3000), None, &[]).contains("to 2026"));
        assert!(error(None, None, &[("plc", 1.0)]).contains("qlc"));
        assert!(error(None, None, &[("tlc", 0.0)]).contains("above 0"));
        let several = error(None, None, &[("sn550", 50.0)]);
        assert!(several.contains("`sn550`") && several.contains("wd-sn550-500gb, wd-sn550-1tb"), "{several}");
        let free = error(None, None, &[("sn550-1tb", 0.0)]);
        assert!(free.contains("`wd-sn550-1tb` is 0") && free.contains("whole drive"), "{free}");
        assert!(error(None, Some("[[prices]]\nyear = 2026\n"), &[]).contains("cell"));
        assert!(error(None, Some("[[prices]]\nyear = 2026\ncell = \"plc\"\nusd_per_gib = 1.0"), &[]).contains("plc"));
    }
}
