//! Every registered scheme against the simplest model there is: the version each sector was last written with.
//!
//! Random requests go through [`Checked`] media, which assert the rules of flash and follow the data, and `check()`
//! verifies the scheme's own state on the way. A new scheme is covered by its line in the registry.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "model/saved.rs"]
mod saved;

use bimetal_core::chip::{self, Chip};
use bimetal_core::drive::{self, Drive};
use bimetal_core::media::{Checked, Faults, SimMedia, SimRegion, Simulation, Volume};
use bimetal_core::part::random::{below, split_mix};
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme::{self, RegionShape, Regions, SCHEMES, Scheme, SchemeSpec, Shape};
use bimetal_core::units::Geometry;

type Media = Checked<SimMedia>;

/// Page bytes, pages per block, blocks.
type Layout = (u32, u32, u32);

/// A small device in the shapes that schemes ask for.
#[derive(Clone, Copy)]
struct Device {
    name: &'static str,
    logical_bytes: u64,
    fast: Layout,
    slow: Layout,
    dies: u32,
    faults: Faults,
}

const SOUND: Faults = Faults { program_fail_ppm: 0, erase_fail_ppm: 0, factory_bad_ppm: 0, replacement_blocks: 0 };
const FAULTY: Faults =
    Faults { program_fail_ppm: 100, erase_fail_ppm: 2000, factory_bad_ppm: 10_000, replacement_blocks: 1000 };

/// Devices of a few MiB; the slow regions have a little more than the spare area that any scheme asks for.
const DEVICES: &[Device] = &[
    Device {
        name: "small pages in front of larger ones",
        logical_bytes: 4 << 20,
        fast: (2048, 16, 16),
        slow: (4096, 32, 42),
        dies: 1,
        faults: SOUND,
    },
    Device {
        name: "equal pages, failing blocks",
        logical_bytes: 4 << 20,
        fast: (4096, 16, 12),
        slow: (4096, 16, 80),
        dies: 2,
        faults: FAULTY,
    },
    Device {
        name: "blocks of 384 large pages",
        logical_bytes: 36 << 20,
        fast: (4096, 64, 10),
        slow: (8192, 384, 20),
        dies: 1,
        faults: SOUND,
    },
    Device {
        name: "a fast page over several slow ones, logical end within a block",
        logical_bytes: (5 << 20) + (68 << 10),
        fast: (8192, 8, 20),
        slow: (2048, 48, 70),
        dies: 1,
        faults: FAULTY,
    },
];

fn chip_of(name: &str, (page_bytes, pages_per_block, _): Layout) -> Chip {
    let mut chip = chip::find(name).unwrap();
    // Few cycles, so that runs go far beyond them.
    (chip.page_bytes, chip.pages_per_block, chip.endurance) = (page_bytes, pages_per_block, chip.endurance / 1000);
    if let Some(mode) = &mut chip.slc_mode {
        mode.pages_per_block = pages_per_block / 2;
    }
    chip
}

fn region_of(chip: &str, layout: Layout, blocks: u32, dies: u32) -> RegionShape {
    let geometry = Geometry::new(layout.0, layout.1, blocks, dies).unwrap();
    RegionShape { chip: chip_of(chip, layout), geometry }
}

impl Device {
    fn shape(&self, regions: Regions) -> Shape {
        let fast = region_of("chang-slc", self.fast, self.fast.2, self.dies);
        let slow = region_of("chang-mlc", self.slow, self.slow.2, self.dies);
        let dual = region_of("chang-mlc", self.slow, self.slow.2 + 12, self.dies);
        let disks = match regions {
            Regions::FlashOverDisk => drive::catalogue(),
            Regions::One | Regions::FastAndSlow | Regions::DualMode => Vec::new(),
        };
        let regions = match regions {
            Regions::One => vec![slow],
            Regions::FastAndSlow => vec![fast, slow],
            Regions::DualMode => vec![dual],
            // Half as large as the disk, at most.
            Regions::FlashOverDisk => vec![region_of("chang-slc", self.fast, 2 * self.fast.2, self.dies)],
        };
        Shape { logical_sectors: self.logical_bytes / 512, regions, disks, seed: 1 }
    }

    fn sim(&self, shape: &Shape) -> SimMedia {
        let regions: Vec<SimRegion> = shape
            .regions
            .iter()
            .map(|region| SimRegion {
                chip: region.chip.clone(),
                geometry: region.geometry,
                channels: 1,
                faults: self.faults,
            })
            .collect();
        // Equal parts of the data are on each disk, the first part on the first one.
        let disks = shape.disks.len() as u64;
        let volume = |(index, drive): (u64, &Drive)| {
            let sectors = shape.logical_sectors * (index + 1) / disks - shape.logical_sectors * index / disks;
            Volume { drive: drive.clone(), sectors }
        };
        let volumes: Vec<Volume> = (0..).zip(&shape.disks).map(volume).collect();
        SimMedia::new(&regions, 7).with_disks(&volumes)
    }

    fn media(&self, shape: &Shape) -> Media {
        let slc_pages = |chip: &Chip| chip.slc_mode.as_ref().map_or(0, |mode| mode.pages_per_block);
        let checked: Vec<(Geometry, u32)> =
            shape.regions.iter().map(|region| (region.geometry, slc_pages(&region.chip))).collect();
        Checked::new(self.sim(shape), &checked)
    }
}

/// What a sector must read as.
#[derive(Clone, Copy, PartialEq)]
enum Content {
    /// Exactly this token.
    Token(u64),
    /// Never written or trimmed: zeros, or what was there, or undefined next to data in the same page.
    Free(u64),
}

#[derive(Clone)]
struct Model {
    sectors: Vec<Content>,
    state: u64,
}

impl Model {
    fn new(sectors: u64, filled: bool, seed: u64) -> Self {
        let content = if filled { Content::Token(0) } else { Content::Free(0) };
        Self { sectors: vec![content; sectors as usize], state: seed }
    }

    fn draw(&mut self, bound: u64) -> u64 {
        below(&mut self.state, bound)
    }

    /// Small writes to a hot tenth, bulk writes, reads anywhere, some trims; the hot tenth moves with `phase`.
    fn request(&mut self, phase: u64) -> Request {
        let total = self.sectors.len() as u64;
        let hot = total / 10;
        let (op, small) = match self.draw(100) {
            0..55 => (Op::Write, true),
            55..68 => (Op::Write, false),
            68..90 => (Op::Read, true),
            90..97 => (Op::Read, false),
            _ => (Op::Trim, false),
        };
        let sectors = if small {
            if self.draw(3) == 0 { 1 + self.draw(16) } else { 8 }
        } else {
            let largest = if self.draw(8) == 0 { 1024 } else { 128 };
            1 + self.draw(largest)
        };
        let sector = match self.draw(10) {
            0..7 if small => (phase * hot + self.draw(hot)) % total,
            _ => self.draw(total),
        };
        let sector = if self.draw(4) == 0 { sector } else { sector / 8 * 8 };
        let sector = sector.min(total - sectors);
        Request { arrival_ns: 0, sector, sectors: sectors as u32, op, handle: 0 }
    }

    fn step(&mut self, media: &mut Media, scheme: &mut dyn Scheme<Media>, request: &Request) {
        let now = media.end();
        media.begin(request, now);
        scheme.serve(media, request);
        media.end();
        for index in 0..request.sectors {
            let sector = &mut self.sectors[request.sector as usize + index as usize];
            match (request.op, *sector) {
                (Op::Write, _) => *sector = Content::Token(media.written_token(index)),
                (Op::Trim, Content::Token(token) | Content::Free(token)) => *sector = Content::Free(token),
                (Op::Read, Content::Token(token)) => {
                    assert_eq!(
                        media.read_token(index),
                        token,
                        "sector {} of {request:?}",
                        request.sector + u64::from(index)
                    );
                }
                (Op::Read, Content::Free(token)) => {
                    let read = media.read_token(index);
                    assert!(
                        read == token || read == Media::ZEROS || read == 0,
                        "free sector {} of {request:?} reads {read}",
                        request.sector + u64::from(index)
                    );
                }
            }
        }
    }
}

fn owned(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    settings.iter().map(|&(key, value)| (key.into(), value.into())).collect()
}

fn buildable(spec: &SchemeSpec, device: &Device, settings: &[(&str, &str)]) -> bool {
    scheme::build::<Media>(spec.name, &device.shape(spec.regions), &owned(settings)).is_ok()
}

/// Settings under which a scheme is tried beside its defaults: each other word of each parameter that is a choice.
fn choices(spec: &SchemeSpec) -> Vec<(&'static str, String)> {
    let mut settings = Vec::new();
    for parameter in (spec.parameters)() {
        for word in parameter.accepts.split('`').skip(1).step_by(2) {
            if word != parameter.default {
                settings.push((parameter.name, word.to_string()));
            }
        }
    }
    settings
}

/// Settings that bring a scheme into situations which its defaults avoid on a small device.
const SITUATIONS: &[(&str, &[(&str, &str)])] = &[
    // Every logical block for itself, units of two, and all of the region as one unit.
    ("unitmap", &[("unit_blocks", "1")]),
    ("unitmap", &[("unit_blocks", "2"), ("reserve_blocks", "1"), ("idle_gc", "true")]),
    ("unitmap", &[("unit_blocks", "1000"), ("idle_gc", "true")]),
    ("conventional", &[("map_cache_chains", "0"), ("spare_low", "4"), ("wear_threshold", "1")]),
    // The hash table never full: the log fills with valid data, tail data go round and are forced down.
    ("chang", &[("hash_entries", "100000"), ("throttle", "false"), ("mlc_writeback", "false")]),
    ("chang", &[("hash_entries", "5000"), ("throttle", "false"), ("k", "3"), ("wear_threshold", "1")]),
    // The log at its shortest and back, update share up and down.
    ("chang", &[("hash_entries", "5000"), ("k_step", "2"), ("k_period", "10"), ("k_min_percent", "0")]),
    ("chang", &[("hash_entries", "5000"), ("update_window", "20"), ("update_low", "0.99"), ("update_high", "1")]),
    ("chang", &[("initial_threshold", "1024"), ("threshold_mode", "fixed"), ("hash_entries", "9000")]),
    // Logical blocks change modes all the time.
    ("density-control", &[("hot_accesses", "6"), ("cold_accesses", "3"), ("ageing_period", "500")]),
    ("density-control", &[("hot_accesses", "30"), ("ageing_period", "3000"), ("wear_threshold", "1")]),
    // The log takes everything, or hardly anything; each kind of detection with units of all sizes.
    ("comboftl", &[("threshold_mode", "fixed"), ("threshold", "64KiB"), ("unit_blocks", "1")]),
    ("comboftl", &[("threshold_mode", "fixed"), ("threshold", "512"), ("detection", "page")]),
    ("comboftl", &[("threshold", "64KiB"), ("hot_hits_low", "0"), ("hot_hits_high", "0"), ("unit_blocks", "2")]),
    // One ring, a lap, all laps; partitions at their extremes.
    ("comboftl", &[("chances_mode", "fixed"), ("chances", "0")]),
    ("comboftl", &[("chances_mode", "fixed"), ("chances", "1"), ("hot_percent", "99")]),
    ("comboftl", &[("chances_mode", "fixed"), ("chances", "16"), ("early_migration", "false"), ("hot_percent", "1")]),
    ("comboftl", &[("update_low", "0"), ("update_high", "0"), ("chances", "15"), ("observation_window", "16")]),
    ("combo-static", &[("threshold", "1GiB")]),
    ("mixedftl", &[("compact_percent", "0")]),
    ("mixedftl", &[("compact_percent", "99")]),
    ("2q-gclock", &[("hot_percent", "1"), ("update_low", "1"), ("chances", "16")]),
    ("2q-gclock", &[("hot_percent", "99"), ("update_high", "0"), ("boundary_shift", "false")]),
    ("chang", &[("threshold_period", "50"), ("histogram_halving", "true"), ("map_cache_chains", "0")]),
    // Everything to the log, pages that go round up to 15 times or never, the threshold at rest and in motion.
    ("wlaftl", &[("threshold", "1GiB"), ("threshold_max", "1GiB"), ("threshold_step", "0"), ("max_cycle_time", "15")]),
    ("wlaftl", &[("threshold", "1MiB"), ("max_cycle_time", "0"), ("free_blocks", "1"), ("wear_compare", "exact")]),
    ("wlaftl", &[("free_blocks", "8"), ("max_cycle_time", "15"), ("threshold_step", "64KiB"), ("gc_free_blocks", "1")]),
    ("wlaftl-static", &[("threshold", "1GiB"), ("max_cycle_time", "15"), ("free_blocks", "1")]),
    ("cftl", &[("threshold_mode", "fixed"), ("initial_threshold", "1024"), ("free_blocks", "8")]),
    ("wlaftl", &[("threshold", "0"), ("threshold_interval", "50"), ("wear_compare", "exact"), ("free_blocks", "1")]),
    // A cache of a few blocks; one that goes full and is never emptied; one that idle time keeps half empty.
    ("pslc-static", &[("usual_spare_percent", "40")]),
    ("pslc-static", &[("usual_spare_percent", "40"), ("when_full", "direct"), ("idle_fold", "false")]),
    ("pslc-static", &[("when_full", "direct"), ("idle_fold_percent", "50"), ("idle_gc", "true")]),
    // A cache that grows and shrinks with what is written and trimmed, to the last block.
    ("pslc-dynamic", &[("usual_spare_percent", "0"), ("exchange_period", "1")]),
    ("pslc-dynamic", &[("usual_spare_percent", "40"), ("idle_fold", "false")]),
    ("pslc-dynamic", &[("usual_spare_percent", "10"), ("cache_percent_max", "50"), ("idle_fold_percent", "50")]),
    (
        "pslc-dynamic",
        &[("usual_spare_percent", "40"), ("when_full", "direct"), ("gc_free_blocks", "2"), ("idle_gc", "true")],
    ),
    // Blocks folded at once, past the cache until none is erased, a cache that shrinks early, breaks too short to fold.
    ("pslc-static", &[("fold_in_steps", "false"), ("idle_fold_start_percent", "75"), ("idle_fold_min_pages", "20")]),
    ("pslc-dynamic", &[("fold_in_steps", "false"), ("exchange_period", "2"), ("idle_fold_min_pages", "20")]),
    ("pslc-dynamic", &[("when_full", "direct-then-fold"), ("usual_spare_percent", "40"), ("idle_fold", "false")]),
    ("pslc-dynamic", &[("when_full", "direct-then-fold"), ("fold_in_steps", "false"), ("cache_percent_max", "60")]),
    ("pslc-dynamic", &[("when_full", "direct"), ("shrink_to_percent", "50"), ("usual_spare_percent", "40")]),
    ("pslc-dynamic", &[("shrink_from_percent", "20"), ("shrink_to_percent", "90"), ("idle_fold_start_percent", "75")]),
    // Sizes that change all the time and a map that is written all the time; nothing and everything past the cache.
    ("opfcl", &[("period", "50"), ("sequential_unit", "0"), ("segment_bytes", "4KiB")]),
    ("opfcl", &[("period", "300"), ("period_unit", "pages"), ("resize_pages", "1"), ("curve_keep", "0.5")]),
    ("opfcl", &[("period", "100"), ("sequential_unit", "512"), ("keep_clean", "true")]),
    ("opfcl", &[("period", "20"), ("sequential_unit", "12KiB"), ("initial_read_percent", "100")]),
    ("opfcl", &[("period", "200"), ("curve", "sampled"), ("sample_rate", "0.2"), ("sequential_unit", "1GiB")]),
    // Full to the last block, without anything but data in it; groups of one page and of a sixteenth.
    (
        "opfcl",
        &[("initial_spare_percent", "1"), ("summary_pages", "false"), ("checkpoint", "false"), ("destage_group", "1")],
    ),
    ("rwfcl", &[("cache_percent", "99"), ("period", "30"), ("keep_clean", "true"), ("sequential_unit", "0")]),
    ("rwfcl", &[("cache_percent", "1"), ("period", "100"), ("checkpoint", "false")]),
    ("rwfcl", &[("cache_percent", "50"), ("initial_read_percent", "0"), ("gc_free_percent", "10")]),
    ("fpfcl", &[("cache_percent", "99"), ("period", "10"), ("sequential_unit", "0")]),
    ("fpfcl", &[("cache_percent", "1"), ("destage_group", "1"), ("summary_pages", "false")]),
    // A fast SSD that is hardly used and one that is full; utilisations that move all the time, with pages too many that
    // go down at once, slowly, or at idle only.
    ("hyssd-static", &[("utilisation_percent", "5")]),
    ("hyssd-static", &[("utilisation_percent", "97"), ("gc_free_blocks", "2")]),
    ("hyssd-static", &[("utilisation_percent", "0"), ("reading", "hot_set")]),
    ("hyssd", &[("period", "50"), ("excess_pages", "1000000"), ("curve_keep", "0"), ("cost_of", "unit")]),
    ("hyssd", &[("period", "20"), ("excess_pages", "0"), ("timeout", "0"), ("victim", "greedy")]),
    (
        "hyssd",
        &[("period", "30"), ("timeout", "100"), ("reading", "hot_set"), ("curve_keep", "0.9"), ("segments", "7")],
    ),
    ("hyssd", &[("period", "40"), ("goal", "lifetime"), ("life_step_percent", "20"), ("reading", "hot_set")]),
    ("hyssd", &[("period", "10"), ("goal", "lifetime"), ("life_mode", "integrate"), ("life_step_percent", "5")]),
    ("hyssd", &[("period", "25"), ("curve", "sampled"), ("sample_rate", "0.2"), ("initial_utilisation_percent", "97")]),
];

/// A request during which a device is filled.
const NOTHING: Request = Request { arrival_ns: 0, sector: 0, sectors: 0, op: Op::Write, handle: 0 };

/// Runs random requests, comparing every read, and reads everything at the end.
fn run(spec: &SchemeSpec, device: &Device, settings: &[(&str, &str)], filled: bool, requests: u64, seed: u64) {
    println!("{} on `{}`, {settings:?}, filled: {filled}, seed {seed}", spec.name, device.name);
    let shape = device.shape(spec.regions);
    let mut scheme = scheme::build::<Media>(spec.name, &shape, &owned(settings)).unwrap();
    let mut media = device.media(&shape);
    let mut model = Model::new(shape.logical_sectors, filled, seed);
    if filled {
        media.begin(&NOTHING, 0);
        scheme.fill(&mut media);
        scheme.check().unwrap();
    }
    for number in 0..requests {
        let request = model.request(number * 20 / requests);
        model.step(&mut media, scheme.as_mut(), &request);
        if number % 64 == 0 {
            media.begin_background();
            scheme.idle(&mut media, 8);
        }
        if number % (requests / 50).max(1) == 0 {
            scheme.check().unwrap_or_else(|broken| panic!("after request {number}: {broken}"));
        }
    }
    scheme.check().unwrap();
    for sector in (0..shape.logical_sectors).step_by(256) {
        let sectors = 256.min(shape.logical_sectors - sector) as u32;
        model.step(&mut media, scheme.as_mut(), &Request { arrival_ns: 0, sector, sectors, op: Op::Read, handle: 0 });
    }
}

#[test]
fn every_scheme_returns_what_was_written() {
    for spec in SCHEMES {
        for device in DEVICES.iter() {
            for filled in [true, false] {
                let mut seed = u64::from(filled);
                run(spec, device, &[], filled, 4000, split_mix(&mut seed));
            }
        }
    }
}

#[test]
fn every_choice_returns_what_was_written() {
    for spec in SCHEMES {
        for device in DEVICES.iter() {
            for (name, word) in choices(spec) {
                // A combination that a device cannot have is refused, with the reason.
                if buildable(spec, device, &[(name, &word)]) {
                    run(spec, device, &[(name, &word)], true, 2000, 5);
                }
            }
        }
    }
}

#[test]
fn every_situation_returns_what_was_written() {
    for &(name, settings) in SITUATIONS {
        let Ok(spec) = scheme::find(name) else { panic!("no scheme `{name}`") };
        for device in DEVICES.iter() {
            assert!(buildable(spec, device, settings));
            run(spec, device, settings, true, 10_000, 9);
            run(spec, device, settings, false, 3000, 11);
        }
    }
}

#[test]
fn every_scheme_survives_far_beyond_endurance() {
    for spec in SCHEMES {
        for device in DEVICES.iter().take(2) {
            run(spec, device, &[], true, 200_000, 3);
        }
    }
}
