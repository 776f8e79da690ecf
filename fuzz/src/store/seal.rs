//! Recomputes all checksums of an edited store, so that fuzzing also reaches the code behind their verification. It is
//! a second implementation of `docs/design/store-format.md`.

use super::files::{Bytes, Files};
use super::prepared::SECTOR;

/// Bytes from one copy of the superblock to the next.
pub const COPY_BYTES: usize = 65_536;
/// Bytes of a superblock before its text.
pub const HEAD_BYTES: usize = 132;
/// Bytes of a label, at the start of a file or, in the home disk, at the end.
pub const LABEL_BYTES: usize = 4096;
/// Bytes of a label that are used.
pub const LABEL_USED: usize = 64;
const BATCH_HEADER: usize = 64;
/// Bytes of a checkpoint before its state.
pub const CHECKPOINT_HEAD: usize = 40;
/// Bytes of an entry of a checkpoint's directory.
pub const CHECKPOINT_ENTRY: usize = 16;
const SUM_BYTES: usize = 16;

/// The little-endian number in `length` bytes from `at` on.
pub fn number(bytes: &[u8], at: usize, length: usize) -> usize {
    bytes[at..at + length].iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte))
}

/// Writes the CRC of `bytes[from..]`, continued from `seed`, at `at`.
fn put_sum(bytes: &mut [u8], at: usize, from: usize, seed: u32) {
    let sum = crc32c::crc32c_append(seed, &bytes[from..]);
    bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
}

/// Seed of all checksums except those of superblock and labels.
pub fn seed(store: u64) -> u32 {
    crc32c::crc32c(&store.to_le_bytes())
}

/// Recomputes the checksums of the checkpoints, both copies of the superblock and the journal's seal. If checkpoints
/// were changed, the superblock gets their new checksums and lengths.
pub fn superblock(files: &Files, seed: u32, checkpoints_changed: bool) {
    let sums = [0, 1].map(|file| files.with(&format!("checkpoint.{file}"), |bytes| checkpoint(bytes, seed)));
    files.with("superblock", |file| {
        for at in [0, COPY_BYTES] {
            let mut head = file.get(at, HEAD_BYTES);
            if checkpoints_changed && let Some((sum, length)) = sums.get(number(&head, 48, 4)) {
                head[52..56].copy_from_slice(&sum.to_le_bytes());
                head[56..64].copy_from_slice(&length.to_le_bytes());
            }
            let text = number(&head, 68, 4).min(COPY_BYTES - HEAD_BYTES);
            head.extend(file.get(at + HEAD_BYTES, text));
            put_sum(&mut head, 0, 4, 0);
            if at < file.length() {
                file.write(at, &head[..head.len().min(file.length() - at)]);
            }
        }
        if file.length() >= 2 * COPY_BYTES + BATCH_HEADER {
            let mut seal = file.get(2 * COPY_BYTES, BATCH_HEADER);
            put_sum(&mut seal, 0, 4, seed);
            file.write(2 * COPY_BYTES, &seal);
        }
    });
}

/// Seals a checkpoint: its chunks, their directory, its state, its head. Returns the two values that the superblock
/// contains: the checksum of the head, and the end of the directory.
fn checkpoint(file: &mut Bytes, seed: u32) -> (u32, u64) {
    let mut all = file.get(0, file.length());
    let sum = |bytes: &[u8]| crc32c::crc32c_append(seed, bytes).to_le_bytes();
    if all.len() < CHECKPOINT_HEAD || all[4..8] != *b"BMCC" {
        return (crc32c::crc32c_append(seed, &all), all.len() as u64);
    }
    let within = |at: usize, bytes: usize| at.min(all.len())..at.saturating_add(bytes).min(all.len());
    let state = within(CHECKPOINT_HEAD, number(&all, 8, 8));
    let directory = within(number(&all, 32, 8), number(&all, 24, 8).saturating_mul(CHECKPOINT_ENTRY));
    let mut entries = all[directory.clone()].to_vec();
    for entry in entries.chunks_exact_mut(CHECKPOINT_ENTRY).filter(|entry| number(entry, 0, 8) > 0) {
        let chunk = within(number(entry, 0, 8), number(entry, 8, 4));
        entry[12..].copy_from_slice(&sum(&all[chunk]));
    }
    all[directory.clone()].copy_from_slice(&entries);
    let [state_sum, directory_sum] = [state, directory.clone()].map(|range| sum(&all[range]));
    all[16..20].copy_from_slice(&state_sum);
    all[20..24].copy_from_slice(&directory_sum);
    let head = &mut all[..CHECKPOINT_HEAD];
    put_sum(head, 0, 4, seed);
    let head_sum = crc32c::crc32c_append(seed, head);
    file.write(0, &all);
    (head_sum, directory.end as u64)
}

/// Seals the label at `at`.
pub fn label(file: &mut Bytes, at: usize) {
    let mut label = file.get(at, LABEL_USED);
    put_sum(&mut label, 0, 4, 0);
    if file.length() >= at + 4 {
        file.write(at, &label[..4]);
    }
}

/// Where the label of the home disk is: behind its last sector.
pub fn disk_label_at(file: &Bytes) -> usize {
    file.length().saturating_sub(LABEL_BYTES) / SECTOR * SECTOR
}

/// Seals the frames of a region that overlap a range.
pub fn frames(file: &mut Bytes, page_bytes: usize, from: usize, to: usize, seed: u32) {
    let stride = stride(page_bytes);
    let (first, last) = (from.saturating_sub(LABEL_BYTES) / stride, to.saturating_sub(LABEL_BYTES).div_ceil(stride));
    let whole = file.length().saturating_sub(LABEL_BYTES) / stride;
    for at in (first..last.min(whole)).map(|frame| LABEL_BYTES + frame * stride) {
        let frame = file.get(at, stride);
        if frame[page_bytes + 4..page_bytes + 8] != *b"BMFR" {
            continue;
        }
        let page = crc32c::crc32c_append(seed, &frame[..page_bytes]);
        let sum = crc32c::crc32c_append(page, &frame[page_bytes + 4..]);
        file.write(at + page_bytes, &sum.to_le_bytes());
    }
}

/// Bytes from one frame to the next.
pub fn stride(page_bytes: usize) -> usize {
    (page_bytes + 32 + page_bytes / SECTOR * 14).next_multiple_of(SECTOR)
}

/// Seals all batches in the journal.
pub fn journal(file: &mut Bytes, seed: u32) {
    let mut bytes = file.get(0, file.length());
    let mut at = LABEL_BYTES;
    while at + SECTOR <= bytes.len() {
        let [events, sectors, runs, run_bytes] = [32, 36, 48, 52].map(|field| number(&bytes, at + field, 4));
        let data = (BATCH_HEADER + (events + runs + sectors) * 16).next_multiple_of(SECTOR);
        let end = at + data + sectors * SECTOR + run_bytes;
        if bytes[at + 4..at + 8] != *b"BMJB" || end > bytes.len() {
            at += SECTOR;
            continue;
        }
        put_sum(&mut bytes[at..end], 40, BATCH_HEADER, seed);
        put_sum(&mut bytes[at..at + BATCH_HEADER], 0, 4, seed);
        at = end;
    }
    file.write(0, &bytes);
}

/// Seals the home disk's checksums of the sectors `first..last`.
pub fn disk(files: &Files, first: usize, last: usize, seed: u32) {
    for sector in first..last {
        let data = files.with("disk.image", |file| file.get(sector * SECTOR, SECTOR));
        files.with("disk.sums", |file| {
            let at = LABEL_BYTES + sector * SUM_BYTES;
            let entry = file.get(at, SUM_BYTES);
            if at + SUM_BYTES > file.length() || entry.iter().all(|&byte| byte == 0) {
                return;
            }
            // Sector number, sequence number, kind, data.
            let head = [&(sector as u64).to_le_bytes()[..], &entry[8..16], &entry[4..8]].concat();
            let sum = crc32c::crc32c_append(crc32c::crc32c_append(seed, &head), &data);
            file.write(at, &sum.to_le_bytes());
        });
    }
}

/// Seals all files of a store.
pub fn all(files: &Files, regions: &[usize], has_disk: bool, seed: u32) {
    for (region, &page_bytes) in regions.iter().enumerate() {
        files.with(&format!("region{region}.flash"), |file| {
            label(file, 0);
            frames(file, page_bytes, LABEL_BYTES, file.length(), seed);
        });
    }
    if has_disk {
        let sectors = files.with("disk.image", |file| {
            label(file, disk_label_at(file));
            disk_label_at(file) / SECTOR
        });
        files.with("disk.sums", |file| label(file, 0));
        disk(files, 0, sectors, seed);
    }
    files.with("journal", |file| {
        label(file, 0);
        journal(file, seed);
    });
    superblock(files, seed, false);
}
