//! Candidate devices: schemes, sensible pairs of chips, numbers of dies, sizes of the fast region and spare areas.
//!
//! Sizes and spare areas are geometric series, and each has at least a few blocks on every die, because a device with
//! few large blocks needs some of them for garbage collection. With a goal for wear or responses, raw capacities
//! continue far beyond the logical one, as long as they can help, up to the first beyond the budget. Devices between
//! those of the series are candidates once the series has been searched ([`Space::between`]). Every candidate is a
//! [`Point`] whose settings name all capacities, so that its device does not depend on prices. The cost of a candidate follows
//! from its settings. Whether its scheme accepts the device takes time to find out, so [`Space::confirmed`] does it
//! only for promising candidates.

use std::collections::{BTreeMap, BTreeSet};

use bimetal_core::chip::{self, Chip};
use bimetal_core::device::{BARE_DIES, Template};
use bimetal_core::drive::Drive;
use bimetal_core::part::real::{pow, whole};
use bimetal_core::scheme::{self, Regions, SchemeSpec};
use bimetal_core::units::ByteSize;

use super::asked::{Asked, SpaceError};
use super::dies::{self, COUNT_MAX, Dies};
use super::layout::Layout;
use super::parts;
use super::prices::{Kind, PriceList, total};
use crate::prepare;
use crate::sweep::point::{DeviceSource, Point, Replay};
use crate::sweep::source::TraceSource;

/// Fast regions: shares of the logical capacity, and minimum blocks on a die.
const FAST: [(f64, u64); 5] = [(0.015, 8), (0.03, 11), (0.06, 14), (0.12, 18), (0.24, 24)];
/// Spare areas: shares of the logical capacity, and minimum blocks on a die.
const SPARE: [(f64, u64); 6] = [(0.07, 3), (0.13, 4), (0.25, 6), (0.5, 8), (0.9, 11), (1.8, 16)];
/// Larger spare areas are each twice the previous one. This is the largest share if only responses are limited: beyond
/// it, garbage collection costs almost nothing.
const SPARE_FOR_RESPONSES: f64 = 7.2;
/// Number of sizes in each doubling, for devices between those of the series.
const FINER_STEPS: u32 = 4;
/// Raw capacities grow until, without write amplification, they would endure this multiple of the required host writes.
/// Small writes and garbage collection take several times the host writes.
const WEAR_ROOM: f64 = 4.0;
/// Largest extended raw capacity in pages, so that it can be simulated.
const PAGES_MAX: u64 = 1 << 24;
/// Larger devices are simulated at this size, in bytes.
const SIMULATED_MAX: u64 = 64 << 30;

/// Limits for capacities beyond the usual ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Required host writes until wear-out, in bytes.
    pub host_bytes: f64,
    /// Whether there is a response goal.
    pub is_timed: bool,
    /// Budget in US dollars.
    pub budget_usd: Option<f64>,
}

/// A candidate device.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The point to simulate.
    pub point: Point,
    /// The layout of that point.
    pub layout: Layout,
    /// Size relative to the simulated device.
    pub scale: f64,
    /// Price of the device by kinds of parts.
    pub shares: Vec<(Kind, f64)>,
    /// Price of the device, in US dollars.
    pub cost_usd: f64,
}

/// The space of candidate devices.
#[derive(Debug)]
pub struct Space<'a> {
    chips: Vec<Chip>,
    schemes: Vec<&'static SchemeSpec>,
    disk: Option<Drive>,
    dies: Vec<Dies>,
    template: Template,
    /// The simulated logical capacity, if a capacity is given.
    capacity: Option<ByteSize>,
    scale: f64,
    prices: &'a PriceList,
}

/// The simulated logical capacity of a device with logical capacity `capacity`, for a trace that touches
/// `touched_bytes`.
pub fn simulated_bytes(capacity: u64, touched_bytes: u64) -> u64 {
    capacity.min(SIMULATED_MAX.max(touched_bytes))
}

/// `bytes` rounded up to whole blocks of every die, and to at least `least` blocks of every die.
fn in_rows(chip: &Chip, dies: Dies, bytes: f64, least: u64) -> u64 {
    let row_bytes = chip.block_bytes() * u64::from(dies.count());
    whole((bytes / row_bytes as f64).ceil()).max(least) * row_bytes
}

/// Sorts devices by price, and by name at equal price.
pub fn sort_by_price(drafts: &mut [Candidate]) {
    drafts.sort_by(|a, b| {
        let name = |candidate: &Candidate| (candidate.point.scheme.clone(), candidate.point.set.clone());
        a.cost_usd.total_cmp(&b.cost_usd).then_with(|| name(a).cmp(&name(b)))
    });
}

/// A setting in bytes.
fn bytes_of(set: &BTreeMap<String, String>, key: &str) -> Option<u64> {
    Some(set.get(key)?.parse::<ByteSize>().ok()?.0)
}

impl<'a> Space<'a> {
    /// The space for a trace that touches `touched_bytes`.
    ///
    /// # Errors
    /// Unknown names, chips without a price, or invalid numbers of dies.
    pub fn new(asked: &Asked, touched_bytes: u64, prices: &'a PriceList) -> Result<Self, SpaceError> {
        for (option, count) in [("channels", asked.channels), ("dies-per-channel", asked.dies_per_channel)] {
            if let Some(count) = count.filter(|count| !(1..=COUNT_MAX).contains(count)) {
                return Err(SpaceError(format!("`--{option}` is {count}; hint: from 1 to {COUNT_MAX}")));
            }
        }
        let whole = asked.capacity.map(|capacity| capacity.0);
        let simulated = whole.map(|whole| simulated_bytes(whole, touched_bytes));
        let scale = whole.zip(simulated).map_or(1.0, |(whole, simulated)| whole as f64 / simulated as f64);
        Ok(Self {
            chips: parts::chips(asked, prices)?,
            schemes: parts::schemes(asked)?,
            disk: asked.disk.as_deref().map(parts::disk).transpose()?,
            dies: dies::searched(asked.channels, asked.dies_per_channel),
            template: Template::bare_dies(simulated.unwrap_or(touched_bytes))
                .map_err(|error| SpaceError(error.to_string()))?,
            capacity: simulated.map(ByteSize),
            scale,
            prices,
        })
    }

    /// Page sizes of its chips.
    pub fn page_bytes(&self) -> impl Iterator<Item = u32> {
        self.chips.iter().map(|chip| chip.page_bytes)
    }

    /// Size of devices relative to the simulated ones.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Logical capacity of a device, in bytes.
    pub fn capacity_bytes(&self) -> f64 {
        self.logical() as f64 * self.scale
    }

    /// The searched numbers of dies.
    pub fn die_counts(&self) -> Vec<u32> {
        self.dies.iter().map(|dies| dies.count()).collect()
    }

    fn logical(&self) -> u64 {
        self.template.device().logical.0
    }

    /// All devices, cheapest first. Whether their schemes accept them is unknown.
    pub fn drafts(&self, wanted: &Wanted, trace: &TraceSource, replay: &Replay) -> Vec<Candidate> {
        let mut drafts = Vec::new();
        for &spec in &self.schemes {
            let of_scheme: BTreeSet<BTreeMap<String, String>> = self.sets(spec, wanted).into_iter().collect();
            let point = |set| Point {
                trace: trace.clone(),
                device: DeviceSource { name: BARE_DIES.into(), file: None },
                scheme: spec.name.to_owned(),
                set,
                replay: replay.clone(),
            };
            drafts.extend(of_scheme.into_iter().filter_map(|set| self.draft(spec, point(set))));
        }
        sort_by_price(&mut drafts);
        drafts
    }

    /// Tests whether a scheme accepts a device, and whether its size is as expected.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub fn confirmed(&self, draft: &Candidate) -> Result<(), String> {
        let spec = scheme::find(&draft.point.scheme).map_err(|error| error.to_string())?;
        let resolved = prepare::device(self.template.clone(), spec, &draft.point.settings());
        let resolved = resolved.map_err(|error| error.to_string())?;
        let flash_bytes: u64 = resolved.regions.iter().map(|region| region.geometry.capacity_bytes()).sum();
        if flash_bytes == draft.layout.flash_bytes {
            return Ok(());
        }
        Err(format!("{} bytes of flash would be {flash_bytes}", draft.layout.flash_bytes))
    }

    /// Raw capacities of a slow region, in bytes.
    fn spares(&self, slow: &Chip, dies: Dies, wanted: &Wanted) -> Vec<u64> {
        let logical = self.logical();
        let rows = logical.div_ceil(slow.block_bytes() * u64::from(dies.count()));
        let sized = |share: f64, least: u64| in_rows(slow, dies, logical as f64 * (1.0 + share), rows + least);
        let mut sizes = SPARE.map(|(share, least)| sized(share, least)).to_vec();
        let (mut share, least) = SPARE[SPARE.len() - 1];
        while let Some(&last) = sizes.last() {
            share *= 2.0;
            let size = sized(share, least);
            let is_of_use = last as f64 * self.scale * f64::from(slow.endurance) < WEAR_ROOM * wanted.host_bytes
                || wanted.is_timed && share <= SPARE_FOR_RESPONSES;
            // The first size beyond the budget is tried, too: a smaller one within the budget may do as well.
            let is_paid = |budget: f64| self.price(slow, last).is_some_and(|usd| usd <= budget);
            let is_simulated = size / u64::from(slow.page_bytes) <= PAGES_MAX;
            if !(is_of_use && wanted.budget_usd.is_none_or(is_paid) && is_simulated) {
                break;
            }
            sizes.push(size);
        }
        sizes
    }

    /// Whether a larger device than every candidate is within the budget. Raw capacities then end at limits of the
    /// search, and such a device would live longer.
    pub fn leaves_out_larger(&self, wanted: &Wanted) -> bool {
        let is_left_out = |chip: &Chip, dies: Dies| {
            let larger = self.spares(chip, dies, wanted).last().map_or(0, |last| 2 * last);
            self.price(chip, larger).is_some_and(|usd| wanted.budget_usd.is_none_or(|budget| usd <= budget))
        };
        self.chips.iter().any(|chip| self.dies.iter().any(|&dies| is_left_out(chip, dies)))
    }

    /// Price of a number of simulated bytes, in US dollars.
    fn price(&self, chip: &Chip, bytes: u64) -> Option<f64> {
        let regions = std::iter::once((chip.name.as_str(), bytes));
        self.prices.shares_of(regions, std::iter::empty()).map(|shares| self.scale * total(&shares, |_| 1.0))
    }

    fn fasts(&self, fast: &Chip, dies: Dies) -> [u64; FAST.len()] {
        FAST.map(|(share, least)| in_rows(fast, dies, self.logical() as f64 * share, least))
    }

    /// The settings of all devices of a scheme.
    fn sets(&self, spec: &SchemeSpec, wanted: &Wanted) -> Vec<BTreeMap<String, String>> {
        let mut sets = Vec::new();
        for &dies in &self.dies {
            match spec.regions {
                Regions::One => {
                    for chip in &self.chips {
                        let sizes = self.spares(chip, dies, wanted);
                        sets.extend(sizes.into_iter().map(|bytes| self.set(&[("slow", chip, bytes, dies)])));
                    }
                }
                Regions::FastAndSlow => sets.extend(self.hybrids(dies, wanted)),
                Regions::DualMode => sets.extend(self.dual_modes(spec, dies, wanted)),
                Regions::FlashOverDisk => sets.extend(self.caches(dies)),
            }
        }
        sets
    }

    fn hybrids(&self, dies: Dies, wanted: &Wanted) -> Vec<BTreeMap<String, String>> {
        let mut sets = Vec::new();
        let Some((fast_dies, slow_dies)) = dies.shared() else { return sets };
        let pairs = self.chips.iter().flat_map(|fast| self.chips.iter().map(move |slow| (fast, slow)));
        for (fast, slow) in pairs.filter(|(fast, slow)| parts::is_pair(fast, slow)) {
            for fast_bytes in self.fasts(fast, fast_dies) {
                for slow_bytes in self.spares(slow, slow_dies, wanted) {
                    let regions = [("fast", fast, fast_bytes, fast_dies), ("slow", slow, slow_bytes, slow_dies)];
                    sets.push(self.set(&regions));
                }
            }
        }
        sets
    }

    fn dual_modes(&self, spec: &SchemeSpec, dies: Dies, wanted: &Wanted) -> Vec<BTreeMap<String, String>> {
        let has_budget = (spec.parameters)().iter().any(|parameter| parameter.name == "budget");
        let mut sets = Vec::new();
        for chip in self.chips.iter().filter(|chip| chip.slc_mode.is_some()) {
            for extra in self.fasts(chip, dies) {
                for bytes in self.spares(chip, dies, wanted) {
                    let mut set = self.set(&[("slow", chip, bytes + extra, dies)]);
                    set.insert("fast.capacity".into(), "0".into());
                    if has_budget {
                        set.insert("budget".into(), ByteSize(extra).to_string());
                    }
                    sets.push(set);
                }
            }
        }
        sets
    }

    fn caches(&self, dies: Dies) -> Vec<BTreeMap<String, String>> {
        let mut sets = Vec::new();
        let Some(disk) = &self.disk else { return sets };
        for chip in &self.chips {
            for bytes in self.fasts(chip, dies) {
                let mut set = self.set(&[("fast", chip, bytes, dies)]);
                set.insert("disk.drive".into(), disk.name.clone());
                let price = self.prices.of_drive(disk);
                if price != disk.usd_per_gib {
                    set.insert("disk.usd_per_gib".into(), price.to_string());
                }
                sets.push(set);
            }
        }
        sets
    }

    /// Settings of regions. They include prices that differ from the catalogue, so that a replay gives the same cost.
    fn set(&self, regions: &[(&str, &Chip, u64, Dies)]) -> BTreeMap<String, String> {
        let mut set = BTreeMap::new();
        let usual = &self.template.device().regions;
        for &(region, chip, bytes, dies) in regions {
            set.insert(format!("{region}.chip"), chip.name.clone());
            set.insert(format!("{region}.capacity"), ByteSize(bytes).to_string());
            let usual = if region == "fast" { usual.first() } else { usual.last() };
            let counts = [
                ("channels", dies.channels, usual.map(|usual| usual.channels)),
                ("dies_per_channel", dies.per_channel, usual.map(|usual| usual.dies_per_channel)),
            ];
            for (field, count, _) in counts.into_iter().filter(|(_, count, usual)| Some(*count) != *usual) {
                set.insert(format!("{region}.{field}"), count.to_string());
            }
            if let Some(price) = self.prices.of_chip(chip).filter(|&price| price != chip.usd_per_gib) {
                set.insert(format!("{region}.usd_per_gib"), price.to_string());
            }
        }
        if let Some(capacity) = self.capacity {
            set.insert("logical".into(), capacity.to_string());
        }
        set
    }

    /// Devices between a candidate and the next smaller ones of the series: up to half of its spare area, up to half of
    /// its fast region, or both.
    pub fn between(&self, candidate: &Candidate) -> Vec<Candidate> {
        let Ok(spec) = scheme::find(&candidate.point.scheme) else { return Vec::new() };
        let set = &candidate.point.set;
        let chip = |region: &str| self.chips.iter().find(|chip| Some(&chip.name) == set.get(&format!("{region}.chip")));
        let part = |region: &str, dies: Option<Dies>| Some((chip(region)?, dies?));
        let slow = part("slow", candidate.layout.slow_dies);
        let fast = part("fast", candidate.layout.fast_dies);
        let budget = bytes_of(set, "budget").unwrap_or(0);
        let logical = self.logical();
        let share = |step: u32| pow(0.5, f64::from(step) / f64::from(FINER_STEPS));
        let sized = |spare_step: u32, fast_step: u32| {
            let mut set = set.clone();
            let fast_bytes = |chip, dies, bytes| in_rows(chip, dies, bytes as f64 * share(fast_step), FAST[0].1);
            if let Some((chip, dies)) = slow {
                let spare = bytes_of(&set, "slow.capacity")?.saturating_sub(budget + logical);
                let rows = logical.div_ceil(chip.block_bytes() * u64::from(dies.count()));
                let bytes = logical as f64 + spare as f64 * share(spare_step);
                let mut bytes = in_rows(chip, dies, bytes, rows + SPARE[0].1);
                if budget > 0 {
                    let budget = fast_bytes(chip, dies, budget);
                    set.insert("budget".into(), ByteSize(budget).to_string());
                    bytes += budget;
                }
                set.insert("slow.capacity".into(), ByteSize(bytes).to_string());
            }
            if let Some((chip, dies)) = fast {
                let bytes = fast_bytes(chip, dies, bytes_of(&set, "fast.capacity")?);
                set.insert("fast.capacity".into(), ByteSize(bytes).to_string());
            }
            Some(set)
        };
        let steps = |is_there: bool| 0..=if is_there { FINER_STEPS - 1 } else { 0 };
        let sizes =
            steps(slow.is_some()).flat_map(|spare| steps(fast.is_some() || budget > 0).map(move |fast| (spare, fast)));
        let sets: BTreeSet<_> =
            sizes.filter_map(|(spare, fast)| sized(spare, fast)).filter(|other| other != set).collect();
        sets.into_iter().filter_map(|set| self.draft(spec, Point { set, ..candidate.point.clone() })).collect()
    }

    /// A device with these settings; none if a part has no price.
    fn draft(&self, spec: &SchemeSpec, point: Point) -> Option<Candidate> {
        let bytes = |key: &str| bytes_of(&point.set, key);
        let usual = &self.template.device().regions;
        let region = |name: &str| {
            let chip = self.chips.iter().find(|chip| Some(&chip.name) == point.set.get(&format!("{name}.chip")))?;
            let usual = if name == "fast" { usual.first()? } else { usual.last()? };
            let count = |field: &str, usual: u32| {
                point.set.get(&format!("{name}.{field}")).map_or(Some(usual), |count| count.parse().ok())
            };
            let dies = Dies {
                channels: count("channels", usual.channels)?,
                per_channel: count("dies_per_channel", usual.dies_per_channel)?,
            };
            Some((chip.clone(), bytes(&format!("{name}.capacity"))?, dies))
        };
        let (fast, slow) = (region("fast"), region("slow"));
        let parts = [fast.as_ref(), slow.as_ref()].into_iter().flatten();
        let disk = (spec.regions == Regions::FlashOverDisk).then_some(self.disk.as_ref()).flatten();
        let disks = disk.map(|disk| (disk.name.as_str(), self.logical()));
        let mut shares =
            self.prices.shares_of(parts.map(|(chip, bytes, _)| (chip.name.as_str(), *bytes)), disks.into_iter())?;
        shares.iter_mut().for_each(|(_, usd)| *usd *= self.scale);
        let layout = Layout::of(spec.regions, fast, slow, disk.cloned(), self.logical());
        // The bytes that may be in SLC mode: the budget, or by default everything beyond the least spare area.
        let layout = if spec.regions == Regions::DualMode {
            let least = whole(self.logical() as f64 * (1.0 + SPARE[0].0));
            let given_up = bytes("budget").unwrap_or_else(|| layout.flash_bytes.saturating_sub(least));
            layout.in_slc_mode(given_up)?
        } else {
            layout
        };
        let cost_usd = total(&shares, |_| 1.0);
        Some(Candidate { point, layout, scale: self.scale, shares, cost_usd })
    }
}

impl Candidate {
    /// The chips of the device.
    pub fn chips(&self) -> impl Iterator<Item = &Chip> {
        let layout = &self.layout;
        let parts = [layout.fast.as_ref(), layout.slow.as_ref()].into_iter().flatten();
        parts.map(|(chip, _)| chip).filter(|part| chip::find(&part.name).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drafts(asked: &Asked, wanted: &Wanted) -> Vec<Candidate> {
        let prices = PriceList::new(None, None, &[]).unwrap();
        let space = Space::new(asked, 256 << 20, &prices).unwrap();
        space.drafts(wanted, &TraceSource::in_memory("m"), &Replay::default())
    }

    fn few() -> Asked {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Asked {
            chips: names(&["pslc-tlc-2021", "qlc-3d-2020"]),
            schemes: names(&["pagemap", "wlaftl"]),
            ..Asked::default()
        }
    }

    fn most_flash(drafts: &[Candidate]) -> u64 {
        drafts.iter().map(|draft| draft.layout.flash_bytes).max().unwrap()
    }

    #[test]
    fn no_device_has_more_dies_than_are_asked_for() {
        let asked = Asked { channels: Some(2), dies_per_channel: Some(2), ..few() };
        let drafts = drafts(&asked, &Wanted::default());
        assert!(drafts.iter().any(|draft| draft.point.scheme == "wlaftl"));
        for draft in &drafts {
            assert_eq!((draft.layout.channels(), draft.layout.dies()), (2, 4), "{}", draft.layout.words(1.0));
        }
    }

    #[test]
    fn chips_with_several_planes_have_candidates() {
        for name in ["micron-b58r-tlc", "samsung-v7-tlc"] {
            let asked = Asked { chips: vec![name.to_owned()], schemes: vec!["pagemap".to_owned()], ..Asked::default() };
            let found = drafts(&asked, &Wanted::default());
            assert!(!found.is_empty(), "{name}");
            let chip = chip::find(name).unwrap();
            for draft in found {
                let of_dies = draft.layout.flash_bytes / chip.block_bytes();
                assert!(of_dies.is_multiple_of(draft.layout.dies().into()), "{name}: {}", draft.layout.words(1.0));
            }
        }
    }

    #[test]
    fn capacities_go_on_while_wear_asks_for_more_and_the_budget_allows_it() {
        let asked = Asked { channels: Some(1), dies_per_channel: Some(1), ..few() };
        let usual = most_flash(&drafts(&asked, &Wanted::default()));
        let timed = most_flash(&drafts(&asked, &Wanted { is_timed: true, ..Wanted::default() }));
        assert!(timed > 2 * usual, "{timed} {usual}");
        // 8 TB of writes need at least 8 GB of QLC with 1,000 cycles.
        let worn = Wanted { host_bytes: 8e12, ..Wanted::default() };
        let enough = most_flash(&drafts(&asked, &worn));
        assert!((32e9..80e9).contains(&(enough as f64)), "{enough}");
        let paid = drafts(&asked, &Wanted { budget_usd: Some(1.0), ..worn });
        assert!(most_flash(&paid) > usual && most_flash(&paid) < enough);
    }

    #[test]
    fn devices_between_two_sizes_have_prices_between_theirs() {
        let prices = PriceList::new(None, None, &[]).unwrap();
        let asked = Asked {
            schemes: ["pagemap", "hyssd", "pslc-dynamic", "pslc-static"].map(str::to_owned).to_vec(),
            chips: ["pslc-tlc-2021", "tlc-3d-2021"].map(str::to_owned).to_vec(),
            ..Asked::default()
        };
        let space = Space::new(&asked, 1 << 30, &prices).unwrap();
        let all = space.drafts(&Wanted::default(), &TraceSource::in_memory("m"), &Replay::default());
        let largest = |scheme: &str| all.iter().rfind(|draft| draft.point.scheme == scheme).unwrap();
        for (scheme, count) in [("pagemap", 3), ("hyssd", 15), ("pslc-dynamic", 15), ("pslc-static", 15)] {
            let whole = largest(scheme);
            let between = space.between(whole);
            assert_eq!(between.len(), count, "{scheme}");
            for draft in &between {
                assert!(draft.cost_usd < whole.cost_usd && draft.cost_usd > whole.cost_usd / 2.0, "{}", draft.cost_usd);
                assert_eq!(draft.layout.dies(), whole.layout.dies());
                space.confirmed(draft).unwrap();
            }
        }
        // The least sizes have nothing below them.
        for draft in all.iter().filter(|draft| draft.point.scheme == "pagemap").take(1) {
            assert!(space.between(draft).is_empty(), "{}", draft.layout.words(1.0));
        }
    }

    #[test]
    fn a_large_device_is_simulated_at_a_fraction_of_its_size() {
        let asked = Asked { capacity: Some(ByteSize(10 << 40)), ..few() };
        let prices = PriceList::new(None, None, &[]).unwrap();
        let space = Space::new(&asked, 256 << 20, &prices).unwrap();
        assert_eq!((space.scale(), space.capacity_bytes()), (160.0, (10u64 << 40) as f64));
        let drafts = space.drafts(&Wanted::default(), &TraceSource::in_memory("m"), &Replay::default());
        for draft in drafts {
            let gib = draft.layout.flash_bytes as f64 / (1u64 << 30) as f64;
            assert!(gib < 1000.0 && draft.cost_usd > 0.17 * 160.0 * gib, "{gib} GiB, {} USD", draft.cost_usd);
        }
    }
}
