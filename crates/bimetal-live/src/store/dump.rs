//! A store as text: superblock, journal, labels, pages. It is for people; nothing is replayed and the scheme is not
//! used.

use std::fmt::Write;
use std::io;

use super::backing::{Access, Storage};
use super::bytes::Buffer;
use super::error::{InFile, StoreError};
use super::frame::Layout;
use super::journal::Journal;
use super::label::{FileRole, Label};
use super::names::JOURNAL;
use super::region::FIRST_SLOT;
use super::superblock::{SUPERBLOCK, Superblock};

/// Parts of a store to show besides its superblock.
#[derive(Clone, Copy, Debug, Default)]
pub struct DumpOptions {
    /// Batches of the journal with their events.
    pub journal: bool,
    /// Every page of every region that is or was programmed.
    pub pages: bool,
}

/// Shows some lines.
type Show<'a> = &'a mut dyn FnMut(&str) -> io::Result<()>;

/// The name of what `show` writes to, in errors.
const OUTPUT: &str = "the output";

/// Passes the text to `show`, a few lines at a time.
///
/// # Errors
/// Errors of `show`, or the files cannot be read.
pub fn dump(storage: &dyn Storage, options: DumpOptions, show: Show<'_>) -> Result<(), StoreError> {
    let file = storage.open(SUPERBLOCK, Access::Read, false).in_file(SUPERBLOCK)?;
    let copies = Superblock::read_copies(file.as_ref()).in_file(SUPERBLOCK)?;
    for (copy, number) in copies.iter().zip(0..) {
        show(&match copy {
            Ok(superblock) => describe(superblock, number),
            Err(error) => format!("superblock copy {number}: {error:?}\n"),
        })
        .in_file(OUTPUT)?;
    }
    let superblock = Superblock::read(file.as_ref())?;
    let Some(contents) = &superblock.contents else { return Err(StoreError::Unfinished) };
    show(&format!("\n{}\n", toml::to_string(contents).unwrap_or_default())).in_file(OUTPUT)?;
    if options.journal {
        dump_journal(storage, &superblock, contents.device.logical.0 / 512, show)?;
    }
    for file in &contents.regions {
        dump_region(storage, file, superblock.seed(), options.pages, show)?;
    }
    Ok(())
}

fn describe(superblock: &Superblock, number: u32) -> String {
    let Superblock { store, generation, sequence, journal, scheme_version, openings, .. } = superblock;
    let checkpoint = superblock.checkpoint.map_or_else(
        || "no checkpoint".to_owned(),
        |checkpoint| {
            format!("checkpoint {} of {} bytes, CRC {:08x}", checkpoint.file, checkpoint.bytes, checkpoint.sum)
        },
    );
    let complete = if superblock.is_complete { "complete" } else { "being made" };
    format!(
        "superblock copy {number}: store {store:016x}, opening {:016x}, generation {generation}, {complete}; {checkpoint}; journal from batch \
         {} at byte {}; sequence numbers up to {sequence:#x}; scheme version {scheme_version}\n",
        openings[0], journal.batch, journal.offset
    )
}

fn dump_journal(
    storage: &dyn Storage,
    superblock: &Superblock,
    sectors: u64,
    show: Show<'_>,
) -> Result<(), StoreError> {
    let file = storage.open(JOURNAL, Access::Read, false).in_file(JOURNAL)?;
    let seal = storage.open(SUPERBLOCK, Access::Read, false).in_file(SUPERBLOCK)?;
    let mut journal = Journal::new(file.into(), seal.into(), superblock.seed(), superblock.journal, 0);
    loop {
        match journal.read_next() {
            Ok(Some(header)) => {
                let (batch, bytes) = (header.batch, header.bytes());
                let offset = journal.offset() - bytes;
                let mut text =
                    format!("batch {batch} at byte {offset}, {bytes} bytes, {} sectors of the disk\n", header.sectors);
                for (event, number) in journal.record().events().zip(header.first_event + 1..) {
                    // Writing to a string cannot fail.
                    match super::event::Event::decode(event, sectors) {
                        Some(event) => writeln!(text, "  event {number}: {event:?}").ok(),
                        None => writeln!(text, "  event {number}: {event:02x?}, which cannot be").ok(),
                    };
                }
                show(&text).in_file(OUTPUT)?;
            }
            Ok(None) => {
                return show(&format!("the journal ends at byte {}\n", journal.offset())).in_file(OUTPUT);
            }
            Err(source) => return Err(StoreError::Journal { file: JOURNAL.into(), source }),
        }
    }
}

fn dump_region(storage: &dyn Storage, file: &str, seed: u32, pages: bool, show: Show<'_>) -> Result<(), StoreError> {
    let backing = storage.open(file, Access::Read, false).in_file(file)?;
    let Some(Label { store, opening, part: part @ FileRole::Region { page_bytes, .. } }) =
        Label::read(backing.as_ref(), 0).in_file(file)?
    else {
        return show(&format!("`{file}`: no label of a region\n")).in_file(OUTPUT);
    };
    show(&format!("`{file}`: store {store:016x}, opening {opening:016x}, {part:?}\n")).in_file(OUTPUT)?;
    let layout = Layout::new(page_bytes);
    let mut frame = Buffer::new(layout.stride());
    let (length, stride) = (backing.length().in_file(file)?, layout.stride() as u64);
    let mut offset = FIRST_SLOT;
    while pages && offset + stride <= length {
        backing.read_at(offset, frame.bytes_mut()).in_file(file)?;
        if let Ok((place, sequence)) = layout.open(frame.bytes(), seed) {
            let tags = (0..layout.page_sectors()).map(|sector| layout.tag(frame.bytes(), sector).written());
            let sectors: Vec<String> =
                tags.map(|tag| tag.map_or_else(|| "-".into(), |(sector, _)| sector.to_string())).collect();
            let (slot, block, page) = (place.slot, place.block, place.page);
            show(&format!(
                "  slot {slot}, block {block}, page {page}, program {sequence:#x}: sectors {}\n",
                sectors.join(" ")
            ))
            .in_file(OUTPUT)?;
        }
        offset += stride;
    }
    Ok(())
}
