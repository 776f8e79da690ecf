//! Edits of a store's files by an input: either damage, as decay or accidents cause it, or arbitrary changes with all
//! checksums recomputed, as an attacker would make them.

use std::ops::Range;

use bimetal_core::part::random::{below, split_mix};

use super::files::{Bytes, Files};
use super::prepared::{Prepared, SECTOR};
use super::seal::{self, CHECKPOINT_ENTRY, CHECKPOINT_HEAD, COPY_BYTES, HEAD_BYTES, LABEL_BYTES, LABEL_USED, number};

/// Maximum number of edits of an input; more edits find nothing new.
const EDITS_MAX: usize = 12;
/// Maximum number of bytes that an edit appends to a file.
const LONGER_MAX: usize = 1 << 16;

/// The bytes of an input in order, then zeros.
pub struct Input<'a>(pub &'a [u8]);

impl Input<'_> {
    /// Whether all bytes were taken.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next number, which has `bytes` bytes.
    pub fn number(&mut self, bytes: usize) -> usize {
        (0..bytes).fold(0, |number, _| number << 8 | usize::from(self.byte()))
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let byte = self.0.first().copied().unwrap_or(0);
        self.0 = self.0.get(1..).unwrap_or(&[]);
        byte
    }
}

/// The edited part of a store.
#[derive(Clone, Copy, Debug)]
enum Edited {
    /// Head of copy 0 or 1 of the superblock; 2 is the journal's seal behind both copies.
    Head(usize),
    /// Text of a copy of the superblock.
    Text(usize),
    Journal,
    /// A piece of the current checkpoint, see [`pieces`].
    Checkpoint(usize),
    OtherCheckpoint,
    Label(usize),
    Frame(usize),
    Image,
    Sums,
}

const PARTS: [Edited; 24] = [
    Edited::Head(2),
    Edited::Checkpoint(3),
    Edited::Checkpoint(2),
    Edited::Checkpoint(0),
    Edited::Journal,
    Edited::Checkpoint(4),
    Edited::Checkpoint(1),
    Edited::Head(0),
    Edited::Head(1),
    Edited::Text(0),
    Edited::Text(1),
    Edited::Checkpoint(4),
    Edited::OtherCheckpoint,
    Edited::Label(0),
    Edited::Label(1),
    Edited::Frame(0),
    Edited::Frame(1),
    Edited::Sums,
    Edited::Image,
    Edited::Journal,
    Edited::Checkpoint(3),
    Edited::Label(2),
    Edited::Label(3),
    Edited::Label(4),
];

/// Edits files and recomputes all checksums, as an attacker would. Returns the number of edits.
pub fn seal(prepared: &Prepared, files: &Files, input: &mut Input<'_>) -> usize {
    let (seed, mut checkpoints_changed, mut journal_changed, mut edits) = (prepared.seed(), false, false, 0);
    while !input.is_empty() && edits < EDITS_MAX {
        edits += 1;
        let part = PARTS[usize::from(input.byte()) % PARTS.len()];
        let at = input.number(3);
        match part {
            Edited::Head(copy) => {
                edit(files, "superblock", |_| copy * COPY_BYTES..copy * COPY_BYTES + HEAD_BYTES, at, input)
            }
            Edited::Text(copy) => edit_text(files, copy * COPY_BYTES, at, input),
            Edited::Journal => {
                journal_changed = true;
                edit_whole(files, "journal", at, input);
            }
            Edited::Checkpoint(piece) => {
                checkpoints_changed = true;
                edit_piece(files, prepared.checkpoint, prepared.regions.len(), piece, at, input);
            }
            Edited::OtherCheckpoint => {
                checkpoints_changed = true;
                edit_whole(files, &format!("checkpoint.{}", 1 - prepared.checkpoint), at, input);
            }
            Edited::Label(file) => {
                let name = labelled_file(prepared, file);
                let label_at =
                    if name == "disk.image" { files.with(&name, |file| seal::disk_label_at(file)) } else { 0 };
                edit(files, &name, |_| label_at..label_at + LABEL_USED, at, input);
                files.with(&name, |file| seal::label(file, label_at));
            }
            Edited::Frame(region) => {
                let name = region_file(prepared, region);
                let page_bytes = prepared.regions[region % prepared.regions.len()];
                let stride = seal::stride(page_bytes);
                let frames = files.with(&name, |file| file.length().saturating_sub(LABEL_BYTES) / stride).max(1);
                let start = LABEL_BYTES + at / stride % frames * stride;
                edit(files, &name, |_| start..start + stride, at % stride, input);
                files.with(&name, |file| seal::frames(file, page_bytes, start, start + stride, seed));
            }
            Edited::Image | Edited::Sums if !prepared.has_disk => {}
            Edited::Image => {
                let sectors = files.with("disk.image", |file| seal::disk_label_at(file) / SECTOR).max(1);
                let sector = at / SECTOR % sectors;
                edit(files, "disk.image", |_| sector * SECTOR..(sector + 1) * SECTOR, at % SECTOR, input);
                seal::disk(files, sector, sector + 1, seed);
            }
            Edited::Sums => {
                let sectors = files.with("disk.sums", |file| file.length().saturating_sub(LABEL_BYTES) / 16).max(1);
                let sector = at / 16 % sectors;
                let entry = LABEL_BYTES + sector * 16;
                edit(files, "disk.sums", |_| entry..entry + 16, at % 16, input);
                seal::disk(files, sector, sector + 1, seed);
            }
        }
    }
    if journal_changed {
        files.with("journal", |file| seal::journal(file, seed));
    }
    seal::superblock(files, seed, checkpoints_changed);
    edits
}

/// Name of a file with a label. The order is: regions, journal, and the home disk and its checksums if the store has
/// one.
fn labelled_file(prepared: &Prepared, file: usize) -> String {
    let others: &[&str] = if prepared.has_disk { &["journal", "disk.image", "disk.sums"] } else { &["journal"] };
    let number = file % (prepared.regions.len() + others.len());
    match number.checked_sub(prepared.regions.len()) {
        Some(other) => others[other].to_owned(),
        None => region_file(prepared, number),
    }
}

fn region_file(prepared: &Prepared, region: usize) -> String {
    format!("region{}.flash", region % prepared.regions.len())
}

/// Edits bytes without changing their number.
fn edit(files: &Files, name: &str, range: impl FnOnce(&Bytes) -> Range<usize>, at: usize, input: &mut Input<'_>) {
    files.with(name, |file| {
        let range = range(file);
        let range = range.start.min(file.length())..range.end.min(file.length());
        let mut bytes = file.get(range.start, range.len());
        change(&mut bytes, at, input);
        bytes.resize(range.len(), 0);
        file.write(range.start, &bytes);
    });
}

/// Edits all bytes of a file.
fn edit_whole(files: &Files, name: &str, at: usize, input: &mut Input<'_>) {
    files.with(name, |file| {
        let mut bytes = file.get(0, file.length());
        change(&mut bytes, at, input);
        replace(file, &bytes);
    });
}

fn replace(file: &mut Bytes, bytes: &[u8]) {
    file.set_length(bytes.len());
    file.write(0, bytes);
}

/// Edits the text of a superblock, and updates its length.
fn edit_text(files: &Files, copy: usize, at: usize, input: &mut Input<'_>) {
    files.with("superblock", |file| {
        let length = number(&file.get(copy + 68, 4), 0, 4).min(COPY_BYTES - HEAD_BYTES);
        let mut text = file.get(copy + HEAD_BYTES, length);
        change(&mut text, at, input);
        text.truncate(COPY_BYTES - HEAD_BYTES);
        file.write(copy + 68, &(text.len() as u32).to_le_bytes());
        file.write(copy + HEAD_BYTES, &text);
    });
}

/// Number of the last piece of a checkpoint: the tables and their directory.
const TABLES: usize = 4;

/// Edits a piece of a checkpoint: 0 the store's own state, 1 the counts of the host's requests, 2 the simulated media,
/// 3 the scheme, 4 the tables of all these, with their directory. Edits the whole checkpoint if earlier edits made the
/// pieces impossible to find.
fn edit_piece(files: &Files, checkpoint: usize, regions: usize, piece: usize, at: usize, input: &mut Input<'_>) {
    files.with(&format!("checkpoint.{checkpoint}"), |file| {
        let mut bytes = file.get(0, file.length());
        let Some(pieces) = pieces(&bytes, regions) else {
            change(&mut bytes, at, input);
            return replace(file, &bytes);
        };
        let range = pieces[piece].clone();
        let mut inside = bytes[range.clone()].to_vec();
        change(&mut inside, at, input);
        let (is_section, is_in_state) = ((1..TABLES).contains(&piece), piece < TABLES);
        if is_section {
            bytes[range.start - 8..range.start].copy_from_slice(&(inside.len() as u64).to_le_bytes());
        }
        let moved = |number: usize| number.wrapping_add(inside.len()).wrapping_sub(range.len()) as u64;
        let directory = number(&bytes, 32, 8);
        if is_in_state {
            let state = moved(number(&bytes, 8, 8));
            bytes[8..16].copy_from_slice(&state.to_le_bytes());
            for entry in bytes[directory..].chunks_exact_mut(CHECKPOINT_ENTRY).filter(|entry| number(entry, 0, 8) > 0) {
                let at = moved(number(entry, 0, 8));
                entry[..8].copy_from_slice(&at.to_le_bytes());
            }
        }
        bytes[32..40].copy_from_slice(&moved(directory).to_le_bytes());
        bytes.splice(range.clone(), inside);
        replace(file, &bytes);
    });
}

/// Ranges of the pieces of a checkpoint; `None` if they cannot be found.
fn pieces(bytes: &[u8], regions: usize) -> Option<[Range<usize>; TABLES + 1]> {
    let table_end = |at: usize, element: usize| {
        let count = number(bytes.get(at..at.checked_add(8)?)?, 0, 8);
        (at + 8).checked_add(count.checked_mul(element)?).filter(|&end| end <= bytes.len())
    };
    // Four numbers, and a bit for each sector that holds data.
    let mut at = table_end(CHECKPOINT_HEAD + 4 * 8, 1)?;
    for _ in 0..regions {
        // Slots of blocks, free slots, parked slots, two numbers, programmed pages, first programs.
        at = table_end(table_end(table_end(at, 1)?, 4)?, 4)? + 2 * 4;
        at = table_end(table_end(at, 1)?, 1)?;
    }
    let host = at + 8..table_end(at, 1)?;
    let sim = host.end + 8..table_end(host.end, 1)?;
    let scheme = sim.end + 8..table_end(sim.end, 1)?;
    let tables = scheme.end..bytes.len();
    let is_directory_there = (scheme.end..=bytes.len()).contains(&number(bytes, 32, 8));
    is_directory_there.then_some([CHECKPOINT_HEAD..at, host, sim, scheme, tables])
}

/// Changes bytes at position `at` (modulo the length) in one of eight ways.
fn change(bytes: &mut Vec<u8>, at: usize, input: &mut Input<'_>) {
    let at = at % (bytes.len() + 1);
    let (rest, how) = (bytes.len() - at, input.byte());
    match how % 8 {
        0 => {
            for byte in &mut bytes[at..at + rest.min(1 + usize::from(how >> 3) % 16)] {
                *byte = input.byte();
            }
        }
        1 if rest > 0 => bytes[at] ^= 1 << (how >> 3 & 7),
        2 if rest > 0 => bytes[at] = bytes[at].wrapping_add(input.byte()),
        3 => {
            let (count, byte) = (input.number(2), input.byte());
            bytes[at..at + rest.min(count)].fill(byte);
        }
        4 => {
            let (from, count) = (input.number(3) % (bytes.len() + 1), input.number(2));
            let count = count.min(rest).min(bytes.len() - from);
            bytes.copy_within(from..from + count, at);
        }
        5 => bytes.truncate(at),
        6 => {
            let inserted: Vec<u8> = (0..1 + usize::from(how >> 3) % 16).map(|_| input.byte()).collect();
            bytes.splice(at..at, inserted);
        }
        7 => drop(bytes.drain(at..at + rest.min(input.number(2)))),
        _ => {}
    }
}

/// Damages files, as decay or accidents would. The input does not choose the bytes, so it cannot supply correct
/// checksums. Returns the number of damaged places.
pub fn damage(files: &Files, input: &mut Input<'_>) -> usize {
    let mut random = u64::from(crc32c::crc32c(input.0));
    split_mix(&mut random);
    let (names, mut edits) = (files.names(), 0);
    while !input.is_empty() && edits < EDITS_MAX {
        edits += 1;
        let (file, how, at) = (usize::from(input.byte()) % names.len(), input.byte(), input.number(3));
        files.with(&names[file].0, |file| damage_file(file, how, at, input, &mut random));
    }
    edits
}

fn damage_file(file: &mut Bytes, how: u8, at: usize, input: &mut Input<'_>, random: &mut u64) {
    let at = at % (file.length() + 1);
    let rest = file.length() - at;
    match how % 7 {
        // A burst of at most 32 bits, which always changes the CRC.
        0 => {
            let burst: Vec<u8> = (0..rest.min(4)).map(|_| below(random, 256) as u8).collect();
            file.write(at, &burst);
        }
        1 if rest > 0 => file.write(at, &[file.get(at, 1)[0] ^ 1 << (how / 7 % 8)]),
        2 => {
            let byte = [0, 0xff, below(random, 256) as u8][usize::from(how / 7) % 3];
            file.write(at, &vec![byte; rest.min(input.number(2))]);
        }
        // Whole sectors, replaced by others of the file.
        3 => {
            let (at, from) = (at / SECTOR * SECTOR, input.number(3) % (file.length() + 1) / SECTOR * SECTOR);
            let count = (1 + usize::from(how / 7 % 8)) * SECTOR;
            let sectors = file.get(from, count.min(file.length() - at));
            file.write(at, &sectors);
        }
        // Whole sectors, lost.
        4 => {
            let at = at / SECTOR * SECTOR;
            file.write(at, &vec![0; (file.length() - at).min((1 + usize::from(how / 7 % 8)) * SECTOR)]);
        }
        5 => file.set_length(at),
        _ => {
            let length = file.length();
            file.write(length, &vec![if how & 128 == 0 { 0 } else { 0xa5 }; at.min(LONGER_MAX)]);
        }
    }
}
