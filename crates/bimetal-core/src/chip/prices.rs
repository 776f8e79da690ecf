//! Prices of flash by year and cells.
//!
//! Unpublished prices follow from rules: SLC = 3 x MLC (Chang 2010: MLC costs about a third of SLC), TLC = 2/3 MLC and
//! QLC = 3/4 TLC by bits per cell. One bit in a cell made for two, three or four costs two, three or four times as
//! much. Prices moved fourfold within three years, up and down.

use super::Cell;

/// Price of flash in a year.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Year.
    pub year: u16,
    /// Bits per cell.
    pub cell: Cell,
    /// US dollars per GiB.
    pub usd_per_gib: f64,
    /// Source, or the rule from which it is derived.
    pub source: &'static str,
}

/// Rounded to a hundredth of a cent, so that a derived price is printed with few digits.
const fn price(year: u16, cell: Cell, usd_per_gib: f64, source: &'static str) -> Price {
    let usd_per_gib = (usd_per_gib * 1e4 + 0.5) as u64 as f64 / 1e4;
    Price { year, cell, usd_per_gib, source }
}

/// Price of pSLC by that of TLC: one bit in a cell that is made for three.
pub const PSLC_PER_TLC: f64 = 3.0;

const MLC_2009: f64 = 3.0;
const MLC_2011: f64 = 2.0;
const TLC_2013: f64 = 0.68;
const TLC_2026: f64 = 0.234;

/// The list, by year.
pub static PRICES: &[Price] = &[
    price(2009, Cell::Slc, 3.0 * MLC_2009, "3 x MLC"),
    price(2009, Cell::Pslc, 2.0 * MLC_2009, "2 x MLC"),
    price(2009, Cell::Mlc, MLC_2009, "MLC drives at retail, 3.00 dollars per GB"),
    price(2011, Cell::Slc, 3.0 * MLC_2011, "3 x MLC"),
    price(2011, Cell::Mlc, MLC_2011, "MLC drives at retail, 2.00 dollars per GB (dfarq.homeip.net)"),
    price(2013, Cell::Slc, 4.5 * TLC_2013, "3 x MLC"),
    price(2013, Cell::Mlc, 1.5 * TLC_2013, "3/2 x TLC"),
    price(2013, Cell::Tlc, TLC_2013, "drives of FAST 2013, 0.63 to 6.50 dollars per GB; the lower end taken as TLC"),
    price(2026, Cell::Slc, 4.5 * TLC_2026, "3 x MLC"),
    price(2026, Cell::Pslc, PSLC_PER_TLC * TLC_2026, "3 x TLC, which is 4 x QLC"),
    price(2026, Cell::Mlc, 1.5 * TLC_2026, "3/2 x TLC"),
    price(2026, Cell::Tlc, TLC_2026, "a 1-TB drive for 218 dollars in February (storagediskprices.com)"),
    price(2026, Cell::Qlc, 0.75 * TLC_2026, "3/4 x TLC"),
];

/// US dollars per GiB of these cells in a year of the list.
pub fn of(cell: Cell, year: u16) -> Option<f64> {
    PRICES.iter().find(|price| price.cell == cell && price.year == year).map(|price| price.usd_per_gib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_printed_in_few_digits() {
        for price in PRICES {
            let digits = price.usd_per_gib.to_string();
            assert!(digits.len() <= 6, "{} in {}: {digits}", price.cell.name(), price.year);
        }
        assert_eq!((of(Cell::Slc, 2026), of(Cell::Qlc, 2026)), (Some(1.053), Some(0.1755)));
    }
}
