//! Candidate whole drives, besides composed devices, and their prices.
//!
//! A drive counts as on the market in the year of its release and for [`SOLD_YEARS`] years after it, which is about as
//! long as a model stays in price lists. A drive without a published year of release is only a candidate if it is
//! named.

use std::collections::BTreeMap;

use bimetal_core::controller;
use bimetal_core::device::{Device, DeviceError, Template, preset};
use bimetal_core::part::real::whole;
use bimetal_core::request::SECTOR_BYTES;
use bimetal_core::units::ByteSize;

use super::AdviceError;
use super::prices::PriceList;
use crate::drives::{Product, products};
use crate::sweep::point::{DeviceSource, Point, Replay};
use crate::sweep::source::TraceSource;

/// Years on the market after the year of release.
pub const SOLD_YEARS: u16 = 6;
/// Stands for every drive.
const ALL: &str = "all";
/// Stands for no drive.
const NONE: &str = "none";
/// The setting that scales a drive down to the bytes that a trace touches.
const FIT_TO_TRACE: &str = "fit_to_trace";
/// The setting of the write buffer.
const BUFFER: &str = "controller.buffer";

/// A drive with enough capacity.
#[derive(Clone, Debug)]
pub struct OnSale {
    /// Its data as a product.
    pub product: Product,
    /// Price, in US dollars.
    pub cost_usd: f64,
    /// Logical capacity, in bytes.
    pub capacity_bytes: u64,
    /// All of its flash in native mode, in bytes.
    pub flash_bytes: u64,
    /// Channels of all regions.
    pub channels: u32,
    /// Dies of all regions.
    pub dies: u32,
    /// Its scheme.
    pub scheme: String,
    /// Its write buffer, if that keeps data to be overwritten.
    buffer: Option<Buffer>,
}

/// A write buffer that keeps data in half of its room.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    bytes: u64,
    /// Least size: the other half has a wordline for each die, so that all dies can program at once.
    least_bytes: u64,
}

/// The candidate drives.
#[derive(Clone, Debug, Default)]
pub struct Range {
    /// The drives with enough capacity, cheapest first.
    pub drives: Vec<OnSale>,
    /// Titles of the drives with too little capacity.
    pub too_small: Vec<String>,
    /// Titles of the drives without a price in the year of the prices.
    pub unpriced: Vec<String>,
    /// Capacity that a drive must have, in bytes.
    pub least_bytes: u64,
}

impl Range {
    /// The drives with these names. A name is as in `bimetal drives` or a part of such a name, or `all` or `none`.
    /// Without names: the drives on the market in the year of the prices. None if no drives are wanted.
    ///
    /// # Errors
    /// An unknown name, or a named drive without a price.
    pub fn new(names: &[String], prices: &PriceList, least_bytes: u64) -> Result<Option<Self>, AdviceError> {
        if names.iter().any(|name| name == NONE) {
            return match names {
                [_] => Ok(None),
                _ => Err(AdviceError::Refused(format!("`--drives {}` has both names and `{NONE}`", names.join(",")))),
            };
        }
        let is_all = names.iter().any(|name| name == ALL);
        let is_named = !is_all && !names.is_empty();
        let found = products(if is_all { &[] } else { names });
        let found = found.map_err(|error| AdviceError::Refused(format!("`--drives`: {error}")))?;
        let can_be_bought = |product: &Product| {
            product.released.is_some_and(|year| (year..=year.saturating_add(SOLD_YEARS)).contains(&prices.year))
        };
        let mut range = Self { least_bytes, ..Self::default() };
        for product in found.into_iter().filter(|product| is_all || is_named || can_be_bought(product)) {
            let title = product.title.clone();
            match OnSale::new(product, prices).map_err(|error| AdviceError::Refused(error.to_string()))? {
                Ok(drive) if drive.capacity_bytes < least_bytes => range.too_small.push(title),
                Ok(drive) => range.drives.push(drive),
                Err(name) if is_named => {
                    return Err(AdviceError::Refused(format!(
                        "drive `{name}` has no price in {}; hint: add one, such as `--price {name}=100`",
                        prices.year
                    )));
                }
                Err(_) => range.unpriced.push(title),
            }
        }
        range
            .drives
            .sort_by(|a, b| a.cost_usd.total_cmp(&b.cost_usd).then_with(|| a.product.name.cmp(&b.product.name)));
        Ok(Some(range))
    }
}

impl OnSale {
    /// The drive with its price; if it has no price, its name.
    fn new(product: Product, prices: &PriceList) -> Result<Result<Self, String>, DeviceError> {
        let device: Device = preset(&product.name)?;
        let resolved = device.resolve()?;
        let regions = &resolved.regions;
        // Capacity before rounding to whole blocks, so that drives with the same amount of flash have the same price.
        let flash = || {
            let bytes = device.regions.iter().map(|region| region.capacity.bytes(device.logical));
            regions.iter().map(|region| &region.chip).zip(bytes)
        };
        let Some(cost_usd) = prices.of_product(&product.name, flash()) else { return Ok(Err(product.name)) };
        let dies = regions.iter().map(|region| region.geometry.dies).sum();
        Ok(Ok(Self {
            cost_usd,
            capacity_bytes: device.logical.0,
            flash_bytes: flash().map(|(_, bytes)| bytes).sum(),
            channels: regions.iter().map(|region| region.channels).sum(),
            dies,
            buffer: resolved.controller.as_ref().and_then(|controller| Buffer::of(controller, dies)),
            scheme: device.scheme,
            product,
        }))
    }

    /// The size of the write buffer if it shrinks like the drive, which is scaled down to the bytes that the trace
    /// touches. None if the buffer keeps no data.
    pub fn scaled_buffer(&self, touched_bytes: u64) -> Option<ByteSize> {
        let buffer = self.buffer?;
        let fit = [(FIT_TO_TRACE.to_owned(), true.to_string())];
        let template = Template::for_trace(Some(preset(&self.product.name).ok()?), &fit, touched_bytes).ok()?;
        let share = template.device().logical.0 as f64 / self.capacity_bytes as f64;
        let scaled = whole(buffer.bytes as f64 * share).max(buffer.least_bytes);
        (scaled < buffer.bytes).then_some(ByteSize(scaled))
    }

    /// The point to simulate: the filled drive, scaled down to the bytes that the trace touches, with this write buffer
    /// if one is given.
    pub fn point(&self, trace: &TraceSource, replay: &Replay, buffer: Option<ByteSize>) -> Point {
        let mut set: BTreeMap<String, String> = [(FIT_TO_TRACE.to_owned(), true.to_string())].into();
        set.extend(buffer.map(|buffer| (BUFFER.to_owned(), buffer.to_string())));
        Point {
            trace: trace.clone(),
            device: DeviceSource { name: self.product.name.clone(), file: None },
            scheme: self.scheme.clone(),
            set,
            replay: replay.clone(),
        }
    }
}

impl Buffer {
    /// The buffer of a drive with these dies; none if it keeps no data. Only a buffer that survives a power cut does,
    /// in half of its room.
    fn of(controller: &controller::Spec, dies: u32) -> Option<Self> {
        let settings = &controller.settings;
        let die_bytes = u64::from(controller.wordline_sectors) * SECTOR_BYTES;
        let keeps = settings.power_protected && settings.buffer.0 > 0;
        keeps.then_some(Self { bytes: settings.buffer.0, least_bytes: 2 * u64::from(dies) * die_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(names: &[&str], year: Option<u16>, least_bytes: u64) -> Result<Option<Range>, String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let prices = PriceList::new(year, None, &[]).unwrap();
        Range::new(&names, &prices, least_bytes).map_err(|error| error.to_string())
    }

    fn names(range: &Range) -> Vec<&str> {
        range.drives.iter().map(|drive| drive.product.name.as_str()).collect()
    }

    #[test]
    fn drives_of_the_last_years_can_be_bought() {
        let usual = range(&[], Some(2026), 1).unwrap().unwrap();
        assert!(usual.drives.len() >= 6, "{:?}", names(&usual));
        assert!(
            usual.drives.iter().all(|drive| drive.product.released.is_some_and(|year| (2020..=2026).contains(&year)))
        );
        assert!(usual.drives.is_sorted_by(|a, b| a.cost_usd <= b.cost_usd) && usual.too_small.is_empty());
        // Neither drives that are too old, nor drives before their release.
        let file = "[[prices]]\nyear = 2040\ncell = \"tlc\"\nusd_per_gib = 0.1\n";
        let later = PriceList::new(Some(2040), Some(file), &[]).unwrap();
        assert!(Range::new(&[], &later, 1).unwrap().unwrap().drives.is_empty());
        assert!(range(&[], Some(2011), 1).unwrap().unwrap().drives.is_empty());
        assert!(range(&["all"], Some(2026), 1).unwrap().unwrap().drives.len() > usual.drives.len());
        assert!(range(&["none"], None, 1).unwrap().is_none());
    }

    #[test]
    fn a_drive_that_is_too_small_is_not_offered() {
        let found = range(&["sn550", "sn770"], None, 600_000_000_000).unwrap().unwrap();
        assert_eq!(names(&found), ["wd-sn550-1tb", "wd-sn770-1tb"]);
        assert_eq!(found.too_small, ["WD Blue SN550 500GB"]);
        let whole = &found.drives[0];
        assert_eq!((whole.capacity_bytes, whole.dies, whole.channels), (1_000_000_000_000, 16, 4));
        let usd_per_gib = whole.cost_usd / (whole.flash_bytes as f64 / f64::from(1 << 30));
        assert!((0.2..0.3).contains(&usd_per_gib), "the price of TLC: {usd_per_gib}");
    }

    #[test]
    fn what_cannot_be_is_said() {
        let error = |names: &[&str], year| range(names, year, 1).unwrap_err();
        assert!(error(&["nosuch"], None).contains("`nosuch`; there are: wd-sn550-500gb"));
        assert!(error(&["none", "sn770"], None).contains("`--drives none,sn770`"));
        let unpriced = error(&["sn770"], Some(2009));
        assert!(unpriced.contains("`wd-sn770-1tb` has no price in 2009") && unpriced.contains("--price wd-sn770-1tb="));
        assert_eq!(range(&["all"], Some(2009), 1).unwrap().unwrap().drives.len(), 0);
    }
}
