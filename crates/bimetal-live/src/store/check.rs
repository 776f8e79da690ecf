//! Check of a store: all contents are read and verified against their checksums. No file is changed.

use std::sync::Arc;

use super::backing::Storage;
use super::device::Store;
use super::engine::Engine;
use super::error::{InFile, StoreError};
use super::extract::read_range;
use super::files::OpenOptions;
use super::frame::{SECTOR, Tag};
use super::open::Recovery;
use super::superblock::{SUPERBLOCK, Superblock};
use crate::block_device::BlockDevice;

/// Findings that are reported in full.
const FINDINGS_MAX: usize = 100;
/// Sectors that are read at once.
const RUN_SECTORS: u64 = 256;

/// Result of a check.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// The recovery when the store was opened.
    pub recovery: Recovery,
    /// Number of programmed pages.
    pub pages: u64,
    /// Number of damaged pages among them.
    pub pages_damaged: u64,
    /// Number of sectors of the home disk that have been written.
    pub disk_sectors: u64,
    /// Number of damaged sectors among them.
    pub disk_sectors_damaged: u64,
    /// Number of host sectors that hold data.
    pub sectors: u64,
    /// Runs of unreadable host sectors: first sector, number.
    pub lost: Vec<(u64, u64)>,
    /// The findings except lost sectors, one line each. Findings beyond 100 are only counted.
    pub findings: Vec<String>,
    /// Number of findings beyond these.
    pub findings_left_out: u64,
}

impl CheckReport {
    /// Whether the check found no damage.
    pub fn is_sound(&self) -> bool {
        self.pages_damaged == 0 && self.disk_sectors_damaged == 0 && self.lost.is_empty() && self.findings.is_empty()
    }

    fn find(&mut self, what: impl FnOnce() -> String) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(what());
        } else {
            self.findings_left_out += 1;
        }
    }
}

/// Checks a store.
///
/// # Errors
/// The store cannot be opened.
pub fn check(storage: Arc<dyn Storage>) -> Result<CheckReport, StoreError> {
    let mut report = CheckReport::default();
    let store = Store::open(storage, OpenOptions { read_only: true, ..OpenOptions::default() })?;
    report.recovery = store.recovery().clone();
    store.inspect(|committer, engine| {
        let copies = Superblock::read_copies(committer.files.superblock.as_ref()).in_file(SUPERBLOCK)?;
        for (copy, number) in copies.iter().zip(0..) {
            if copy.is_err() {
                report.find(|| format!("`{SUPERBLOCK}`: copy {number} is damaged; the other one is used"));
            }
        }
        check_pages(engine, committer.superblock.seed(), &mut report)?;
        check_disk(engine, &mut report)
    })?;
    report.sectors = store.status().written_sectors;
    let (_, lost) = read_range(&store, 0..store.sectors(), &mut |_, _| Ok(())).in_file("the device")?;
    report.lost = lost;
    Ok(report)
}

/// Checks the frames of all flash pages, and that the pages of a block have ascending sequence numbers.
fn check_pages(engine: &Engine, seed: u32, report: &mut CheckReport) -> Result<(), StoreError> {
    for region in engine.media.regions() {
        let mut frame = super::bytes::Buffer::new(region.layout.stride());
        let mut before = 0;
        for spot in region.programmed() {
            if spot.place.page == 0 {
                before = 0;
            }
            report.pages += 1;
            engine.media.load(&spot, frame.bytes_mut()).in_file("a region")?;
            let wrong = match region.verify(&spot, frame.bytes(), seed) {
                Ok(sequence) if sequence > before => {
                    before = sequence;
                    continue;
                }
                Ok(_) => "it is older than the page before it".to_owned(),
                Err(error) => error.to_string(),
            };
            report.pages_damaged += 1;
            let (place, offset) = (spot.place, spot.offset);
            report.find(|| {
                format!(
                    "region {}, block {}, page {}, at byte {offset}: {wrong}",
                    place.region, place.block, place.page
                )
            });
        }
    }
    Ok(())
}

/// Checks the sectors of the home disk.
fn check_disk(engine: &mut Engine, report: &mut CheckReport) -> Result<(), StoreError> {
    let sectors = engine.sectors;
    let Some(disk) = engine.media.disk() else { return Ok(()) };
    let mut bytes = super::bytes::Buffer::new(RUN_SECTORS as usize * SECTOR);
    let mut tags = vec![Tag::NONE; RUN_SECTORS as usize];
    for sector in (0..sectors).step_by(RUN_SECTORS as usize) {
        let count = (sectors - sector).min(RUN_SECTORS) as usize;
        let (bytes, tags) = (&mut bytes.bytes_mut()[..count * SECTOR], &mut tags[..count]);
        disk.read(sector, bytes, tags).in_file("the home disk")?;
        for (tag, sector) in tags.iter().zip(sector..) {
            report.disk_sectors += u64::from(*tag != Tag::NONE);
            if tag.is_lost() {
                report.disk_sectors_damaged += 1;
                report.find(|| format!("sector {sector} of the home disk: the checksum is wrong"));
            }
        }
    }
    Ok(())
}
