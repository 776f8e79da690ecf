//! Which devices come into question: schemes, chips that make sense together, sizes of the fast region and spare areas.
//!
//! Sizes and spare areas are geometric series, each at least a few blocks of every die, since a device of few large blocks needs
//! some of them to turn over. What a scheme does not take is no candidate. Every candidate is a [`Point`] whose settings name all capacities, so
//! that its device does not depend on prices.

use std::collections::{BTreeMap, BTreeSet};

use bimetal_core::chip::{self, Cell, Chip};
use bimetal_core::device::{Resolved, Template};
use bimetal_core::drive::{self, Drive};
use bimetal_core::scheme::{self, Regions, SCHEMES, SchemeSpec};
use bimetal_core::units::ByteSize;
use rayon::prelude::*;

use super::prices::{Kind, PriceList};
use crate::number::{SIZES, percent, with_unit};
use crate::prepare;
use crate::sweep::point::{AUTO, DeviceSource, Point, Replay};
use crate::sweep::source::TraceSource;

/// Schemes that are tried if none are named: of each way of using cells one or two that have done well. A cache only over a disk.
const USUAL_SCHEMES: [&str; 8] =
    ["pagemap", "wlaftl", "cftl", "hyssd", "pslc-static", "pslc-dynamic", "opfcl", "fpfcl"];
/// Fast regions: shares of the logical capacity, and their least blocks on a die.
const FAST: [(f64, u64); 5] = [(0.015, 8), (0.03, 11), (0.06, 14), (0.12, 18), (0.24, 24)];
/// Spare areas: shares of the logical capacity, and their least blocks on a die.
const SPARE: [(f64, u64); 6] = [(0.07, 3), (0.13, 4), (0.25, 6), (0.5, 8), (0.9, 11), (1.8, 16)];

/// Most channels, and most dies on one.
const COUNT_MAX: u32 = 64;

/// What is asked for beyond the usual.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Names of chips; without any the newest ones that no other beats.
    pub chips: Vec<String>,
    /// Names of schemes; without any those that are usual, `all` for all.
    pub schemes: Vec<String>,
    /// What the host sees; without it what the trace touches.
    pub capacity: Option<ByteSize>,
    /// A drive under caches; without it there are none.
    pub disk: Option<String>,
    /// Channels of each region; without a number one.
    pub channels: Option<u32>,
    /// Dies on each channel; without a number one.
    pub dies_per_channel: Option<u32>,
}

impl Asked {
    /// Dies of each region.
    fn dies(&self) -> u32 {
        self.channels.unwrap_or(1) * self.dies_per_channel.unwrap_or(1)
    }
}

/// How a device is laid out.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Which regions its scheme needs.
    pub regions: Regions,
    /// The fast region, or what cells of the slow one can hold with one bit: the part, its bytes, and whether it is a mode of the
    /// slow part.
    pub fast: Option<(Chip, u64)>,
    /// The slow region with its spare area.
    pub slow: Option<(Chip, u64)>,
    /// The disk.
    pub disk: Option<Drive>,
    /// Dies of each region.
    pub dies: u32,
    /// What the host sees.
    pub logical_bytes: u64,
}

/// A device that comes into question.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What is simulated.
    pub point: Point,
    /// What it is made of.
    pub layout: Layout,
    /// Price by kinds of parts.
    pub shares: Vec<(Kind, f64)>,
    /// Price, in US dollars.
    pub cost_usd: f64,
}

/// Why there are no candidates, in a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpaceError(pub String);

/// All candidates for a trace that touches so many bytes, the cheapest first.
///
/// # Errors
/// Names that do not exist, chips without a price, or nothing that a scheme takes.
pub fn candidates(
    asked: &Asked,
    trace: &TraceSource,
    touched_bytes: u64,
    replay: &Replay,
    prices: &PriceList,
) -> Result<Vec<Candidate>, SpaceError> {
    for (option, count) in [("channels", asked.channels), ("dies-per-channel", asked.dies_per_channel)] {
        if let Some(count) = count.filter(|count| !(1..=COUNT_MAX).contains(count)) {
            return Err(SpaceError(format!("`--{option}` is {count}; hint: from 1 to {COUNT_MAX}")));
        }
    }
    let chips = chips(asked, prices)?;
    let disk = asked.disk.as_deref().map(disk).transpose()?;
    let schemes = schemes(asked)?;
    let template = Template::auto(asked.capacity.map_or(touched_bytes, |capacity| capacity.0));
    let logical = template.device().logical.0;
    let space = Space { asked, chips: &chips, disk: disk.as_ref(), logical, prices };
    let mut sets: Vec<(&'static SchemeSpec, BTreeMap<String, String>)> = Vec::new();
    for &spec in &schemes {
        let of_scheme: BTreeSet<BTreeMap<String, String>> = space.sets(spec).into_iter().collect();
        sets.extend(of_scheme.into_iter().map(|set| (spec, set)));
    }
    let tried: Vec<Result<Candidate, String>> = (sets.into_par_iter())
        .map(|(spec, set)| {
            let point = Point {
                trace: trace.clone(),
                device: DeviceSource { name: AUTO.into(), file: None },
                scheme: spec.name.to_owned(),
                set,
                replay: replay.clone(),
            };
            let resolved = prepare::device(Template::auto(logical), spec, &point.settings());
            let resolved = resolved.map_err(|error| error.to_string())?;
            space.candidate(point, spec, &resolved).ok_or_else(|| "a part has no price".to_owned())
        })
        .collect();
    let first_refusal = tried.iter().find_map(|tried| tried.as_ref().err().cloned());
    let mut candidates: Vec<Candidate> = tried.into_iter().flatten().collect();
    if candidates.is_empty() {
        let why = first_refusal.unwrap_or_else(|| "chips and schemes do not go together".to_owned());
        return Err(SpaceError(format!(
            "no device comes into question: {why}; hint: allow more `--chips` or `--schemes`"
        )));
    }
    // In the order of prices, and by name where they are the same.
    candidates.sort_by(|a, b| {
        let name = |candidate: &Candidate| (candidate.point.scheme.clone(), candidate.point.set.clone());
        a.cost_usd.total_cmp(&b.cost_usd).then_with(|| name(a).cmp(&name(b)))
    });
    Ok(candidates)
}

/// The chips that are named, or those that could be bought: of each kind of cells the ones of data sheets priced last, without
/// those that another one beats in all times and cycles.
fn chips(asked: &Asked, prices: &PriceList) -> Result<Vec<Chip>, SpaceError> {
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
    if !asked.chips.is_empty() {
        return Ok(chips);
    }
    let year = |chip: &Chip| chip::priced_in(&chip.name).filter(|&year| year <= prices.year);
    let sold = |chip: &Chip| !chip::is_of_paper(&chip.name) && prices.of_chip(chip).is_some() && year(chip).is_some();
    for cell in Cell::ALL {
        let of_cell: Vec<Chip> = chip::catalogue().into_iter().filter(|chip| chip.cell == cell && sold(chip)).collect();
        let last = of_cell.iter().filter_map(year).max();
        let newest: Vec<&Chip> = of_cell.iter().filter(|chip| year(chip) == last).collect();
        let figures = |chip: &Chip| {
            [chip.read_us, chip.program_us, chip.erase_us, chip.transfer().as_us(), -f64::from(chip.endurance)]
        };
        // Of equal ones the last.
        let is_beaten = |at: usize| {
            let own = figures(newest[at]);
            newest.iter().enumerate().any(|(other_at, other)| {
                let other = figures(other);
                let no_worse = own.iter().zip(&other).all(|(own, other)| other <= own);
                no_worse && (other_at > at || other != own)
            })
        };
        chips.extend((0..newest.len()).filter(|&at| !is_beaten(at)).map(|at| newest[at].clone()));
    }
    Ok(chips)
}

fn disk(name: &str) -> Result<Drive, SpaceError> {
    drive::find(name).ok_or_else(|| {
        let known: Vec<String> = drive::catalogue().into_iter().map(|drive| drive.name).collect();
        SpaceError(format!("there is no drive `{name}`; there are: {}", known.join(", ")))
    })
}

fn schemes(asked: &Asked) -> Result<Vec<&'static SchemeSpec>, SpaceError> {
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

struct Space<'a> {
    asked: &'a Asked,
    chips: &'a [Chip],
    disk: Option<&'a Drive>,
    logical: u64,
    prices: &'a PriceList,
}

fn block_bytes(chip: &Chip) -> u64 {
    u64::from(chip.page_bytes) * u64::from(chip.pages_per_block)
}

impl Space<'_> {
    /// Bytes of a block of every die.
    fn row_bytes(&self, chip: &Chip) -> u64 {
        block_bytes(chip) * u64::from(self.asked.dies())
    }

    /// So many bytes in whole blocks of every die, rounded up, of which there are at least so many.
    fn in_rows(&self, chip: &Chip, bytes: f64, least: u64) -> u64 {
        ((bytes / self.row_bytes(chip) as f64).ceil() as u64).max(least) * self.row_bytes(chip)
    }

    /// The settings of all devices of a scheme.
    fn sets(&self, spec: &SchemeSpec) -> Vec<BTreeMap<String, String>> {
        let mut sets = Vec::new();
        let spares = |slow: &Chip| {
            let blocks = |(share, least): (f64, u64)| {
                let base = self.logical.div_ceil(self.row_bytes(slow)) + least;
                self.in_rows(slow, self.logical as f64 * (1.0 + share), base)
            };
            SPARE.map(blocks)
        };
        let fasts = |fast: &Chip| FAST.map(|(share, least)| self.in_rows(fast, self.logical as f64 * share, least));
        match spec.regions {
            Regions::One => {
                for chip in self.chips {
                    sets.extend(spares(chip).map(|bytes| self.set(&[("mlc", chip, bytes)])));
                }
            }
            Regions::FastAndSlow => {
                let pairs = self.chips.iter().flat_map(|fast| self.chips.iter().map(move |slow| (fast, slow)));
                for (fast, slow) in pairs.filter(|(fast, slow)| is_pair(fast, slow)) {
                    for fast_bytes in fasts(fast) {
                        for slow_bytes in spares(slow) {
                            sets.push(self.set(&[("slc", fast, fast_bytes), ("mlc", slow, slow_bytes)]));
                        }
                    }
                }
            }
            Regions::DualMode => {
                for chip in self.chips.iter().filter(|chip| chip.slc_mode.is_some()) {
                    for extra in fasts(chip) {
                        for bytes in spares(chip) {
                            let mut set = self.set(&[("mlc", chip, bytes + extra)]);
                            set.insert("slc.capacity".into(), "0".into());
                            if (spec.parameters)().iter().any(|parameter| parameter.name == "budget") {
                                set.insert("budget".into(), ByteSize(extra).to_string());
                            }
                            sets.push(set);
                        }
                    }
                }
            }
            Regions::FlashOverDisk => {
                let Some(disk) = self.disk else { return sets };
                for chip in self.chips {
                    for bytes in fasts(chip) {
                        let mut set = self.set(&[("slc", chip, bytes)]);
                        set.insert("disk.drive".into(), disk.name.clone());
                        let price = self.prices.of_drive(disk);
                        if price != disk.usd_per_gib {
                            set.insert("disk.usd_per_gib".into(), price.to_string());
                        }
                        sets.push(set);
                    }
                }
            }
        }
        sets
    }

    /// Settings of regions; the prices are among them where the catalogue has others, so that a replay has the same cost.
    fn set(&self, regions: &[(&str, &Chip, u64)]) -> BTreeMap<String, String> {
        let mut set = BTreeMap::new();
        for &(region, chip, bytes) in regions {
            set.insert(format!("{region}.chip"), chip.name.clone());
            set.insert(format!("{region}.capacity"), ByteSize(bytes).to_string());
            for (field, count) in [("channels", self.asked.channels), ("dies_per_channel", self.asked.dies_per_channel)]
            {
                if let Some(count) = count {
                    set.insert(format!("{region}.{field}"), count.to_string());
                }
            }
            if let Some(price) = self.prices.of_chip(chip).filter(|&price| price != chip.usd_per_gib) {
                set.insert(format!("{region}.usd_per_gib"), price.to_string());
            }
        }
        if let Some(capacity) = self.asked.capacity {
            set.insert("logical".into(), capacity.to_string());
        }
        set
    }

    fn candidate(&self, point: Point, spec: &SchemeSpec, resolved: &Resolved) -> Option<Candidate> {
        let regions =
            || resolved.regions.iter().map(|region| (region.chip.name.as_str(), region.geometry.capacity_bytes()));
        let disks = resolved.volumes.iter().map(|volume| (volume.drive.name.as_str(), volume.sectors * 512));
        let shares = self.prices.shares_of(regions(), disks)?;
        let parts: Vec<(Chip, u64)> =
            resolved.regions.iter().map(|region| (region.chip.clone(), region.geometry.capacity_bytes())).collect();
        let cost_usd = super::prices::total(&shares, |_| 1.0);
        let (fast, slow) = match spec.regions {
            Regions::One => (None, parts.into_iter().next()),
            Regions::FastAndSlow => {
                let mut parts = parts.into_iter();
                (parts.next(), parts.next())
            }
            Regions::DualMode => {
                let (chip, bytes) = parts.into_iter().next()?;
                let mode = chip.slc_mode?;
                // What may be given up in native mode, or, where it is not said, what there is beyond the least spare area.
                let budget = point.set.get("budget").and_then(|text| text.parse::<ByteSize>().ok());
                let least = (self.logical as f64 * (1.0 + SPARE[0].0)) as u64;
                let given_up = budget.map_or(bytes.saturating_sub(least), |budget| budget.0);
                let fast = Chip {
                    name: format!("{} in SLC mode", chip.name),
                    cell: Cell::Pslc,
                    pages_per_block: mode.pages_per_block,
                    read_us: mode.read_us,
                    program_us: mode.program_us,
                    erase_us: mode.erase_us,
                    endurance: mode.endurance,
                    slc_mode: None,
                    ..chip.clone()
                };
                let fast_bytes =
                    (given_up as f64 * f64::from(mode.pages_per_block) / f64::from(chip.pages_per_block)) as u64;
                (Some((fast, fast_bytes)), Some((chip, bytes - given_up.min(bytes))))
            }
            Regions::FlashOverDisk => (parts.into_iter().next(), None),
        };
        let disk = resolved.volumes.first().map(|volume| volume.drive.clone());
        let (dies, logical_bytes) = (self.asked.dies(), resolved.device.logical.0);
        let layout = Layout { regions: spec.regions, fast, slow, disk, dies, logical_bytes };
        Some(Candidate { point, layout, shares, cost_usd })
    }
}

/// Whether one makes sense in front of the other: it has fewer bits in a cell, or only one, programs faster and lasts longer.
fn is_pair(fast: &Chip, slow: &Chip) -> bool {
    let is_one_bit = |chip: &Chip| matches!(chip.cell, Cell::Slc | Cell::Pslc);
    is_one_bit(fast) && !is_one_bit(slow) && fast.program_us < slow.program_us && fast.endurance > slow.endurance
}

impl Layout {
    /// The device in words.
    pub fn words(&self) -> String {
        let size = |bytes: u64| with_unit(SIZES, bytes as f64);
        let beyond = |bytes: u64| percent((bytes as f64 / self.logical_bytes as f64 - 1.0).max(0.0));
        let fast = self.fast.as_ref().map(|(chip, bytes)| format!("{} of {}", size(*bytes), chip.name));
        match (&self.slow, &self.disk) {
            (Some((slow, bytes)), _) => {
                let slow = format!("{} of {} ({} spare)", size(*bytes), slow.name, beyond(*bytes));
                fast.map_or(slow.clone(), |fast| format!("{fast} in front of {slow}"))
            }
            (None, Some(disk)) => {
                format!("{} in front of {} of {}", fast.unwrap_or_default(), size(self.logical_bytes), disk.name)
            }
            (None, None) => fast.unwrap_or_default(),
        }
    }
}
