//! An image of a state, written while the state goes on changing.
//!
//! Begun, it has everything but the words of tables: the *skeleton*. The tables are frozen. Their words come piece by piece, in any
//! order: a chunk that is about to change, at once, and the others as [`Image::collect`] asks for them. Each piece has its place in a
//! row of all tables, in the order in which the state is saved. So a state is never in memory twice, and nobody waits for all of it.
//!
//! ```text
//! begin     skeleton, and the number of bytes that follow it
//! collect   pieces of tables, until none is left
//! take      the pieces that are ready: place, bytes
//! read      skeleton and a source of the tables' bytes -> state
//! ```
//!
//! Tables are found by saving the state again, into nothing. Serde hands no context to what it saves, so that the walk through the
//! state is kept in a variable of the thread.

use std::cell::RefCell;
use std::io::{Cursor, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Word;
use super::table::bytes_of;

/// Words of a chunk.
const CHUNK_WORDS: usize = 1 << 12;

/// Bytes of tables, and their place in the row of all tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first byte's place.
    pub at: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Pieces that are ready, and the bytes of those that were taken.
#[derive(Debug, Default)]
struct Ready {
    pieces: Mutex<Vec<Piece>>,
    bytes: AtomicUsize,
    taken_bytes: AtomicU64,
}

impl Ready {
    fn push(&self, piece: Piece) {
        self.bytes.fetch_add(piece.bytes.len(), Ordering::Relaxed);
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner).push(piece);
    }
}

/// A table's share in the image that it is frozen for.
#[derive(Debug)]
pub(super) struct Frozen {
    ready: Arc<Ready>,
    /// Place of the table's first byte.
    at: u64,
    /// Chunks that the image has: a bit for each, and one past the last of the row from the first on.
    kept: Vec<u64>,
    next: usize,
}

impl Frozen {
    /// Hands the chunks of these words to the image, unless it has them.
    #[cold]
    pub(super) fn keep<W: Word>(&mut self, words: &[W], range: Range<usize>) {
        for chunk in range.start / CHUNK_WORDS..range.end.min(words.len()).div_ceil(CHUNK_WORDS) {
            self.keep_chunk(words, chunk);
        }
    }

    /// Returns how many bytes the image got.
    fn keep_chunk<W: Word>(&mut self, words: &[W], chunk: usize) -> usize {
        let (word, bit) = (chunk / 64, 1 << (chunk % 64));
        if self.kept[word] & bit != 0 {
            return 0;
        }
        self.kept[word] |= bit;
        let first = chunk * CHUNK_WORDS;
        let bytes = bytes_of(&words[first..words.len().min(first + CHUNK_WORDS)]);
        let length = bytes.len();
        self.ready.push(Piece { at: self.at + (first * W::BYTES) as u64, bytes });
        length
    }
}

/// The request to each table that the walk passes.
enum Walk {
    /// To be frozen: the image, and the place of the next table.
    Freeze(Arc<Ready>, u64),
    /// To hand over chunks: the number of bytes that are still wanted.
    Collect(usize),
    /// To forget the image.
    Thaw,
    /// Their words.
    Read(Box<dyn Source>),
}

thread_local! {
    static WALK: RefCell<Option<Walk>> = const { RefCell::new(None) };
}

/// The thread's walk, which ends whatever happens.
struct Walking;

impl Walking {
    fn begin(walk: Walk) -> Self {
        WALK.set(Some(walk));
        Self
    }

    fn end(self) -> Option<Walk> {
        WALK.take()
    }
}

impl Drop for Walking {
    fn drop(&mut self) {
        WALK.take();
    }
}

/// A table is saved. Returns whether an image takes its words.
pub(super) fn visit<W: Word>(words: &[W], frozen: &RefCell<Option<Box<Frozen>>>) -> bool {
    WALK.with_borrow_mut(|walk| match walk {
        Some(Walk::Freeze(ready, at)) => {
            let chunks = words.len().div_ceil(CHUNK_WORDS);
            let kept = vec![0; chunks.div_ceil(64)];
            frozen.replace(Some(Box::new(Frozen { ready: Arc::clone(ready), at: *at, kept, next: 0 })));
            *at += (words.len() * W::BYTES) as u64;
            true
        }
        Some(Walk::Collect(budget)) => {
            collect(words, &mut frozen.borrow_mut(), budget);
            true
        }
        Some(Walk::Thaw) => {
            frozen.replace(None);
            true
        }
        Some(Walk::Read(_)) | None => false,
    })
}

/// Hands chunks of a table to the image as far as the budget reaches. A table of which it has all is free again.
fn collect<W: Word>(words: &[W], frozen: &mut Option<Box<Frozen>>, budget: &mut usize) {
    let Some(table) = frozen else { return };
    let chunks = words.len().div_ceil(CHUNK_WORDS);
    while table.next < chunks && *budget > 0 {
        *budget = budget.saturating_sub(table.keep_chunk(words, table.next));
        table.next += 1;
    }
    if table.next == chunks {
        *frozen = None;
    }
}

/// Whether a state is read from an image.
pub(super) fn is_read() -> bool {
    WALK.with_borrow(|walk| matches!(walk, Some(Walk::Read(_))))
}

/// The words of the next table.
pub(super) fn read_words<W: Word>(length: usize) -> Result<Vec<W>, String> {
    WALK.with_borrow_mut(|walk| {
        let Some(Walk::Read(source)) = walk else { return Err("no image is read".into()) };
        // The length may be anything, and memory is taken only for words that are there.
        let bytes = (length as u64).checked_mul(W::BYTES as u64).filter(|&bytes| bytes <= source.left());
        bytes.ok_or("a table is longer than the image")?;
        let mut words = Vec::with_capacity(length);
        let mut buffer = vec![0; CHUNK_WORDS * W::BYTES];
        while words.len() < length {
            let chunk = &mut buffer[..(length - words.len()).min(CHUNK_WORDS) * W::BYTES];
            source.read(chunk)?;
            words.extend(chunk.chunks_exact(W::BYTES).map(W::get));
        }
        Ok(words)
    })
}

/// Where the bytes of tables are read from, one after the other.
pub trait Source {
    /// Bytes that are left.
    fn left(&self) -> u64;

    /// Reads the next ones, no more than are left.
    ///
    /// # Errors
    /// They cannot be read.
    fn read(&mut self, bytes: &mut [u8]) -> Result<(), String>;
}

impl Source for Cursor<Vec<u8>> {
    fn left(&self) -> u64 {
        (self.get_ref().len() as u64).saturating_sub(self.position())
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), String> {
        self.read_exact(bytes).map_err(|error| error.to_string())
    }
}

/// An image that is being written. A clone is the same image.
#[derive(Clone, Debug)]
pub struct Image {
    ready: Arc<Ready>,
    tables_bytes: u64,
}

impl Image {
    /// Freezes a state: `save` saves all of it. Returns its skeleton, too. The state must go on as the same object, and no other image
    /// of it may be begun until this one is complete or abandoned.
    pub fn begin(save: impl FnOnce(&mut Vec<u8>)) -> (Self, Vec<u8>) {
        let ready = Arc::<Ready>::default();
        let walking = Walking::begin(Walk::Freeze(Arc::clone(&ready), 0));
        let mut skeleton = Vec::new();
        save(&mut skeleton);
        let tables_bytes = if let Some(Walk::Freeze(_, at)) = walking.end() { at } else { 0 };
        (Self { ready, tables_bytes }, skeleton)
    }

    /// Bytes of all tables.
    pub fn tables_bytes(&self) -> u64 {
        self.tables_bytes
    }

    /// Makes about `bytes` more bytes of the state's tables ready. `save` saves that state. Returns whether the image is complete.
    pub fn collect(&self, bytes: usize, save: impl FnOnce(&mut Vec<u8>)) -> bool {
        let walking = Walking::begin(Walk::Collect(bytes));
        save(&mut Vec::new());
        matches!(walking.end(), Some(Walk::Collect(left)) if left > 0)
    }

    /// Bytes that are ready and not taken.
    pub fn ready_bytes(&self) -> usize {
        self.ready.bytes.load(Ordering::Relaxed)
    }

    /// The part of the tables' bytes that was taken so far, less than 1.
    pub fn progress(&self) -> f64 {
        self.ready.taken_bytes.load(Ordering::Relaxed) as f64 / (self.tables_bytes as f64 + 1.0)
    }

    /// Takes what is ready.
    pub fn take(&self) -> Vec<Piece> {
        let pieces = std::mem::take(&mut *self.ready.pieces.lock().unwrap_or_else(PoisonError::into_inner));
        let bytes = pieces.iter().map(|piece| piece.bytes.len()).sum();
        self.ready.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.ready.taken_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        pieces
    }

    /// Gives the image up, and frees the tables of its state, which `save` saves.
    pub fn abandon(self, save: impl FnOnce(&mut Vec<u8>)) {
        let _walking = Walking::begin(Walk::Thaw);
        save(&mut Vec::new());
    }
}

/// Reads a state from an image: `restore` reads the skeleton, and tables in it have their words from `source`.
///
/// # Errors
/// Those of `restore`; the source has bytes left.
pub fn read_image<T>(source: Box<dyn Source>, restore: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let walking = Walking::begin(Walk::Read(source));
    let restored = restore()?;
    match walking.end() {
        Some(Walk::Read(source)) if source.left() > 0 => Err(format!("{} bytes follow its tables", source.left())),
        _ => Ok(restored),
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::part::random::below;
    use crate::save::{Save, Table, restore};

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct State {
        first: Table<u32>,
        count: u64,
        empty: Table<u8>,
        bits: Table<u64>,
        list: Vec<u32>,
    }

    impl State {
        fn new() -> Self {
            let words = |count: usize| vec![0; count];
            let (first, bits) = (words(3 * CHUNK_WORDS + 5).into(), vec![0; CHUNK_WORDS].into());
            Self { first, count: 0, empty: Table::default(), bits, list: vec![] }
        }

        fn change(&mut self, random: &mut u64) {
            let at = below(random, self.first.len() as u64) as usize;
            self.first[at] += 1;
            self.first[at.saturating_sub(3)..at].fill(7);
            self.first.swap(at, 0);
            let at = below(random, self.bits.len() as u64) as usize;
            self.bits[at] |= 1 << (at % 64);
            self.count += 1;
            self.list.push(at as u32);
        }
    }

    fn read(skeleton: &[u8], tables: Vec<u8>) -> Result<State, String> {
        read_image(Box::new(Cursor::new(tables)), || {
            restore(&State::new(), skeleton).map_err(|error| error.to_string())
        })
    }

    #[test]
    fn an_image_is_the_state_of_its_beginning() {
        let (mut state, mut random) = (State::new(), 1);
        for round in 0..20 {
            (0..50).for_each(|_| state.change(&mut random));
            let then = state.clone();
            let (image, skeleton) = Image::begin(|out| state.save(out));
            let mut tables = vec![0xee; image.tables_bytes() as usize];
            let mut written = 0;
            loop {
                (0..round).for_each(|_| state.change(&mut random));
                let is_complete = image.collect(5000, |out| state.save(out));
                (0..round).for_each(|_| state.change(&mut random));
                for Piece { at, bytes } in image.take() {
                    tables[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
                    written += bytes.len();
                }
                if is_complete {
                    break;
                }
            }
            assert_eq!((written, image.ready_bytes()), (tables.len(), 0), "each byte once");
            assert_eq!(read(&skeleton, tables.clone()), Ok(then));
            assert!(
                read(&skeleton, tables[1..].to_vec()).is_err() && read(&skeleton, [tables, vec![0]].concat()).is_err()
            );
        }
    }

    #[test]
    fn a_state_is_saved_whole_beside_its_image() {
        let mut state = State::new();
        let mut before = Vec::new();
        state.save(&mut before);
        let (image, _) = Image::begin(|out| state.save(out));
        let mut beside = Vec::new();
        state.save(&mut beside);
        assert_eq!(before, beside);
        assert!(!image.collect(1, |out| state.save(out)));
        image.abandon(|out| state.save(out));
        state.first[9] = 1;
        let (image, _) = Image::begin(|out| state.save(out));
        assert_eq!(image.ready_bytes(), 0);
        state.first[10] = 1;
        assert_eq!(image.ready_bytes(), CHUNK_WORDS * 4);
    }
}
