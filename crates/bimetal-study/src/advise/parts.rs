//! Candidate parts and schemes: the named ones, or else chips on the market, and schemes for each way to use cells.

use bimetal_core::chip::{self, Cell, Chip};
use bimetal_core::drive::{self, Drive};
use bimetal_core::scheme::{self, Regions, SCHEMES, SchemeSpec};

use super::asked::{Asked, SpaceError};
use super::prices::PriceList;

/// Schemes that are tried if none are named: two or three successful ones for each way to combine cells, and the page
/// map. Caches are only tried over a disk.
const USUAL_SCHEMES: [&str; 8] =
    ["pagemap", "wlaftl", "cftl", "hyssd", "pslc-static", "pslc-dynamic", "opfcl", "fpfcl"];

/// The named chips, or the chips on the market in the year of the prices: for each kind of cells those with data
/// sheets, without those that another one equals or beats in all times and cycles. If no chip has a price in that year,
/// the latest earlier year with prices applies.
///
/// # Errors
/// Unknown names, or chips without a price.
pub fn chips(asked: &Asked, prices: &PriceList) -> Result<Vec<Chip>, SpaceError> {
    if !asked.chips.is_empty() {
        return named(asked, prices);
    }
    let is_of_file =
        |chip: &Chip| prices.is_of_file(chip.cell) && chip::year(&chip.name).is_none_or(|year| year <= prices.year);
    let year = |chip: &Chip| match chip::priced_in(&chip.name).filter(|&year| year <= prices.year) {
        _ if is_of_file(chip) => Some(prices.year),
        year => year,
    };
    let mut sold: Vec<Chip> = chip::catalogue();
    sold.retain(|chip| !chip::is_of_paper(&chip.name) && prices.of_chip(chip).is_some());
    let last = sold.iter().filter_map(year).max();
    sold.retain(|chip| year(chip).is_some() && year(chip) == last);
    let mut chips: Vec<Chip> = Vec::new();
    for cell in Cell::ALL {
        let of_cell: Vec<&Chip> = sold.iter().filter(|chip| chip.cell == cell).collect();
        chips.extend((0..of_cell.len()).filter(|&at| !is_beaten(&of_cell, at)).map(|at| of_cell[at].clone()));
    }
    Ok(chips)
}

/// Whether another chip is at least as good in everything; of equal ones the last is kept.
fn is_beaten(chips: &[&Chip], at: usize) -> bool {
    let figures = |chip: &Chip| {
        [chip.read_us, chip.program_us, chip.erase_us, chip.transfer().as_us(), -f64::from(chip.endurance)]
    };
    let own = figures(chips[at]);
    chips.iter().enumerate().any(|(other_at, other)| {
        let other = figures(other);
        let no_worse = own.iter().zip(&other).all(|(own, other)| other <= own);
        no_worse && (other_at > at || other != own)
    })
}

fn named(asked: &Asked, prices: &PriceList) -> Result<Vec<Chip>, SpaceError> {
    let mut chips: Vec<Chip> = Vec::new();
    for name in &asked.chips {
        let chip = chip::find(name).ok_or_else(|| {
            let known: Vec<String> = chip::catalogue().into_iter().map(|chip| chip.name).collect();
            SpaceError(format!("there is no chip `{name}`; there are: {}", known.join(", ")))
        })?;
        if prices.of_chip(&chip).is_none() {
            let cell = chip.cell.name();
            let what =
                format!("chip `{name}` has no price in {}; hint: add one, such as `--price {cell}=0.10`", prices.year);
            return Err(SpaceError(what));
        }
        if !chips.contains(&chip) {
            chips.push(chip);
        }
    }
    Ok(chips)
}

/// The drive with this name.
///
/// # Errors
/// An unknown name.
pub fn disk(name: &str) -> Result<Drive, SpaceError> {
    drive::find(name).ok_or_else(|| {
        let known: Vec<String> = drive::catalogue().into_iter().map(|drive| drive.name).collect();
        SpaceError(format!("there is no drive `{name}`; there are: {}", known.join(", ")))
    })
}

/// The named schemes, or the usual ones.
///
/// # Errors
/// Unknown names, or caches without a disk.
pub fn schemes(asked: &Asked) -> Result<Vec<&'static SchemeSpec>, SpaceError> {
    if asked.schemes.iter().any(|name| name == "all") {
        return Ok(SCHEMES.to_vec());
    }
    let usual = USUAL_SCHEMES.map(str::to_owned);
    let names = if asked.schemes.is_empty() { usual.as_slice() } else { &asked.schemes };
    let mut specs: Vec<&'static SchemeSpec> = Vec::new();
    for name in names {
        let spec = scheme::find(name).map_err(|error| SpaceError(error.to_string()))?;
        if spec.regions == Regions::FlashOverDisk && asked.disk.is_none() && !asked.schemes.is_empty() {
            let what =
                format!("scheme `{name}` is a cache over a disk; hint: add `--disk`, such as `--disk nearline-18tb`");
            return Err(SpaceError(what));
        }
        if !specs.iter().any(|known| known.name == spec.name) {
            specs.push(spec);
        }
    }
    Ok(specs)
}

/// Whether a fast region of one chip in front of a slow region of the other makes sense: only the fast chip stores one
/// bit per cell, and it programs faster and lasts longer.
pub fn is_pair(fast: &Chip, slow: &Chip) -> bool {
    let is_one_bit = |chip: &Chip| matches!(chip.cell, Cell::Slc | Cell::Pslc);
    is_one_bit(fast) && !is_one_bit(slow) && fast.program_us < slow.program_us && fast.endurance > slow.endurance
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual(year: Option<u16>) -> Vec<Chip> {
        chips(&Asked::default(), &PriceList::new(year, None, &[]).unwrap()).unwrap()
    }

    #[test]
    fn usual_chips_can_be_bought_in_the_year_of_the_prices() {
        let prices = PriceList::new(None, None, &[]).unwrap();
        let found = usual(None);
        assert!(found.len() > 2, "{found:?}");
        for chip in &found {
            assert!(
                chip::priced_in(&chip.name) == Some(prices.year) && !chip::is_of_paper(&chip.name),
                "{}",
                chip.name
            );
        }
        for chip in usual(Some(2011)) {
            assert_eq!(chip::priced_in(&chip.name), Some(2011), "{}", chip.name);
        }
        // No chip has a price in 2012.
        assert_eq!(usual(Some(2012)), usual(Some(2011)));
    }

    #[test]
    fn a_chip_of_a_paper_is_taken_by_its_name() {
        let asked = Asked { chips: vec!["chang-slc".into()], ..Asked::default() };
        let found = chips(&asked, &PriceList::new(None, None, &[]).unwrap()).unwrap();
        assert_eq!(found.iter().map(|chip| chip.name.as_str()).collect::<Vec<_>>(), ["chang-slc"]);
    }
}
