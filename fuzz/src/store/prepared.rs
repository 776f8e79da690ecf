//! The stores that inputs edit: one for each scheme and situation, made once.

use std::sync::{Arc, OnceLock};

use bimetal_core::part::random::{below, split_mix};
use bimetal_core::scheme::{SCHEMES, SchemeSpec};
use bimetal_live::store::soak::TINY;
use bimetal_live::store::{CreateOptions, OpenOptions, Store, create};
use bimetal_live::{BlockDevice, IoError};

use super::files::Files;
use super::seal;

/// Bytes of a sector.
pub const SECTOR: usize = 512;

/// Requests for each opening of a store.
const REQUESTS: u64 = 28;
/// Number of situations in which stores were left.
const SITUATIONS: usize = 3;
/// The store was never closed: all its changes are in the journal.
const NEVER_CLOSED: usize = 0;
/// The store was closed, opened again, written, and killed.
const KILLED: usize = 1;

/// A store, and its expected content.
pub struct Prepared {
    /// Its files.
    pub files: Files,
    /// Number of events and the version of each sector, at each commit. Version 0 is zeros.
    pub commits: Vec<(u64, Vec<u64>)>,
    /// Page size of each region, in bytes.
    pub regions: Vec<usize>,
    /// Whether it has a home disk.
    pub has_disk: bool,
    /// Number of the current checkpoint.
    pub checkpoint: usize,
    number: u64,
}

/// The store that a number selects; every number selects a store.
pub fn store(number: u8) -> &'static Prepared {
    static STORES: OnceLock<Vec<OnceLock<Prepared>>> = OnceLock::new();
    let stores = STORES.get_or_init(|| (0..SCHEMES.len() * SITUATIONS).map(|_| OnceLock::new()).collect());
    let number = usize::from(number) % stores.len();
    stores[number].get_or_init(|| {
        let (spec, situation) = (SCHEMES[number / SITUATIONS], number % SITUATIONS);
        Prepared::new(spec, situation).unwrap_or_else(|what| panic!("`{}` in situation {situation}: {what}", spec.name))
    })
}

impl Prepared {
    fn new(spec: &SchemeSpec, situation: usize) -> Result<Self, String> {
        // Situation 0 has the scheme's default settings, the others have random settings.
        let device = TINY[TINY.len() - 1].device(spec, situation as u64)?;
        let files = Files::default();
        let number = situation as u64 + 1;
        let options = CreateOptions { number: Some(number), ..CreateOptions::default() };
        create(&files, &device, &options).map_err(|error| error.to_string())?;
        let resolved = device.resolve().map_err(|error| error.to_string())?;
        let mut prepared = Self {
            files,
            commits: vec![(0, vec![0; resolved.shape.logical_sectors as usize])],
            regions: resolved.regions.iter().map(|region| region.geometry.page_bytes as usize).collect(),
            has_disk: !resolved.volumes.is_empty(),
            checkpoint: 0,
            number,
        };
        for part in 0..3 {
            let store = prepared.open(part)?;
            let versions = prepared.serve(&store, part).map_err(|error| error.to_string())?;
            if situation != NEVER_CLOSED && !(situation == KILLED && part == 2) {
                store.close().map_err(|error| error.to_string())?;
                prepared.commits.push((store.events(), versions));
                prepared.checkpoint = part as usize % 2;
            }
        }
        prepared.seal_again()?;
        Ok(prepared)
    }

    /// Checks [`seal`] against the store: recomputed checksums must be equal to the store's.
    fn seal_again(&self) -> Result<(), String> {
        let again = self.files.clone();
        seal::all(&again, &self.regions, self.has_disk, self.seed());
        let bytes = |files: &Files, name: &str| files.with(name, |file| file.get(0, file.length()));
        let differs = |(name, _): &(String, usize)| bytes(&again, name) != bytes(&self.files, name);
        self.files
            .names()
            .iter()
            .find(|file| differs(file))
            .map_or(Ok(()), |(name, _)| Err(format!("the checksums of `{name}` differ from the format")))
    }

    /// Seed of its checksums.
    pub fn seed(&self) -> u32 {
        seal::seed(self.number)
    }

    fn open(&self, part: u64) -> Result<Store, String> {
        // Writes change the files themselves, not a copy.
        let files = Arc::new(self.files.share());
        let options = OpenOptions { opening: Some(self.number + 100 + part), ..OpenOptions::default() };
        Store::open(files, options).map_err(|error| error.to_string())
    }

    /// Sends requests, with a flush after every sixth but none after the last. Returns the versions of the sectors.
    fn serve(&mut self, store: &Store, seed: u64) -> Result<Vec<u64>, IoError> {
        let (mut random, mut versions) = (seed, self.commits[self.commits.len() - 1].1.clone());
        split_mix(&mut random);
        for number in 1..=REQUESTS {
            let sectors = 1 + below(&mut random, 20);
            let hot = if below(&mut random, 2) == 0 { store.sectors() } else { 40 };
            let sector = below(&mut random, hot - sectors);
            let range = sector as usize..(sector + sectors) as usize;
            match below(&mut random, 8) {
                0 => {
                    versions[range].fill(0);
                    store.trim(sector, sectors, false)?;
                }
                1 => drop(store.idle(2)?),
                _ => {
                    let version = store.events() + 1;
                    versions[range].fill(version);
                    store.write(sector, &content(sector, sectors, version), false)?;
                }
            }
            if number % 6 == 0 {
                store.flush()?;
            }
            // A device also commits without a flush.
            if store.status().events_pending == 0 {
                self.commits.push((store.events(), versions.clone()));
            }
        }
        Ok(versions)
    }
}

/// Content of a version of sectors: words that contain the number of the sector and the version.
pub fn content(sector: u64, sectors: u64, version: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(sectors as usize * SECTOR);
    (sector..sector + sectors).for_each(|sector| bytes.extend(word(sector, version).repeat(SECTOR / 8)));
    bytes
}

/// Whether `bytes` are this version of the sector.
pub fn is_version(bytes: &[u8], sector: u64, version: u64) -> bool {
    bytes.starts_with(&word(sector, version)) && bytes[8..] == bytes[..SECTOR - 8]
}

/// The version according to the first word of a sector.
pub fn version_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|at| bytes[at])) >> 32
}

fn word(sector: u64, version: u64) -> [u8; 8] {
    if version == 0 { [0; 8] } else { (version << 32 | sector).to_le_bytes() }
}
