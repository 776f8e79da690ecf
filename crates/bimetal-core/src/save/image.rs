//! An image of a state, written while the state keeps changing.
//!
//! At its beginning, an image gets everything but the words of tables: the *skeleton*. The tables are frozen. Their
//! words follow in chunks, in any order: a chunk that is about to change follows at once, the others when
//! [`Image::collect`] asks for them. So a state is never in memory twice, and no caller waits for all of it.
//!
//! ```text
//! begin     skeleton, and the number of chunks that follow it
//! collect   chunks of tables, until none is left
//! take      the chunks that are ready: number, bytes
//! read      skeleton and a source of chunks -> state
//! ```
//!
//! A chunk is stored as all of its words; or, if that is shorter, as its words that are not blank, each behind its
//! place in the chunk as `u16`. A chunk with only blank words is never written, and reading it takes no memory.
//!
//! Tables are found by saving the state again, without output. Serde passes no context to the objects that it saves, so
//! that the walk through the state is kept in a variable of the thread.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Word;
use super::word::bytes_of;

/// Words of a chunk.
const CHUNK_WORDS: usize = 1 << 12;
/// Bytes of the place of a word in its chunk.
const PLACE_BYTES: usize = 2;
/// Looking at a byte of a table costs 1 / `LOOK_PART` of handing it over.
const LOOK_PART: usize = 2;

/// A chunk of a table with words that are not blank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its number among the chunks of all tables, in the order in which the state is saved.
    pub chunk: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Pieces that are ready, and the bytes in memory of all chunks that the image has.
#[derive(Debug, Default)]
struct Ready {
    pieces: Mutex<Vec<Piece>>,
    bytes: AtomicUsize,
    got_bytes: AtomicU64,
}

impl Ready {
    fn push(&self, piece: Piece) {
        self.bytes.fetch_add(piece.bytes.len(), Ordering::Relaxed);
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner).push(piece);
    }
}

/// The form of a chunk in an image.
fn encode<W: Word>(words: &[W]) -> Vec<u8> {
    let used = words.iter().filter(|word| !word.is_blank()).count();
    if used * (PLACE_BYTES + W::BYTES) >= words.len() * W::BYTES {
        return bytes_of(words);
    }
    let mut bytes = vec![0; used * (PLACE_BYTES + W::BYTES)];
    let used = words.iter().zip(0u16..).filter(|(word, _)| !word.is_blank());
    for ((word, at), bytes) in used.zip(bytes.chunks_exact_mut(PLACE_BYTES + W::BYTES)) {
        let (place, of_word) = bytes.split_at_mut(PLACE_BYTES);
        at.put(place);
        word.put(of_word);
    }
    bytes
}

/// Reads this form into blank words.
fn decode<W: Word>(bytes: &[u8], words: &mut [W]) -> Result<(), String> {
    if bytes.len() == words.len() * W::BYTES {
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(W::BYTES)) {
            *word = W::get(bytes);
        }
        return Ok(());
    }
    let used = bytes.chunks_exact(PLACE_BYTES + W::BYTES);
    if !used.remainder().is_empty() {
        return Err(format!("{} bytes are not the size of a chunk of a table", bytes.len()));
    }
    for bytes in used {
        let (place, of_word) = bytes.split_at(PLACE_BYTES);
        let word = words.get_mut(usize::from(u16::get(place))).ok_or("a word lies beyond the end of its chunk")?;
        *word = W::get(of_word);
    }
    Ok(())
}

/// A table's part of the image for which it is frozen.
#[derive(Debug)]
pub(super) struct Frozen {
    ready: Arc<Ready>,
    /// Number of the table's first chunk.
    first: u64,
    /// Chunks that the image has: a bit for each, and the end of those that have been collected in order.
    kept: Vec<u64>,
    next: usize,
}

impl Frozen {
    /// Hands the chunks of these words to the image, unless it has them already. A separate function, to keep the code of
    /// each change of a word short.
    #[cold]
    #[inline(never)]
    pub(super) fn keep<W: Word>(&mut self, words: &[W], range: Range<usize>) {
        for chunk in range.start / CHUNK_WORDS..range.end.min(words.len()).div_ceil(CHUNK_WORDS) {
            self.keep_chunk(words, chunk);
        }
    }

    /// Hands over a chunk, unless the image has it already. Returns the cost, as bytes handed over.
    fn keep_chunk<W: Word>(&mut self, words: &[W], chunk: usize) -> usize {
        let (word, bit) = (chunk / 64, 1 << (chunk % 64));
        if self.kept[word] & bit != 0 {
            return 0;
        }
        self.kept[word] |= bit;
        let first = chunk * CHUNK_WORDS;
        let words = &words[first..words.len().min(first + CHUNK_WORDS)];
        let bytes = encode(words);
        let all = words.len() * W::BYTES;
        let took = bytes.len() + all / LOOK_PART;
        self.ready.got_bytes.fetch_add(all as u64, Ordering::Relaxed);
        if !bytes.is_empty() {
            self.ready.push(Piece { chunk: self.first + chunk as u64, bytes });
        }
        took
    }
}

/// The request of a walk to each table.
enum Walk {
    /// Freeze: the image, the number of the next table's first chunk, and the bytes of all tables before.
    Freeze(Arc<Ready>, u64, u64),
    /// Hand over chunks: the number of bytes that are still wanted.
    Collect(usize),
    /// Forget the image.
    Thaw,
    /// Report the number of words.
    Measure(Measured),
    /// Read the words.
    Read(Reading),
}

/// Lengths of the tables of a state, and whether they include the tables that saved states write in line.
struct Measured {
    lengths: VecDeque<usize>,
    has_all: bool,
}

struct Reading {
    source: Box<dyn Source>,
    /// Lengths in a fresh object like the one that is being restored.
    fresh: Measured,
    /// Error of the source: the format of the state passes none on.
    failure: Option<String>,
}

thread_local! {
    static WALK: RefCell<Option<Walk>> = const { RefCell::new(None) };
}

/// The thread's walk, which also ends after an error.
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

/// Visits a table that is being saved. Returns whether an image takes its words.
pub(super) fn visit<W: Word>(words: &[W], frozen: &RefCell<Option<Box<Frozen>>>) -> bool {
    WALK.with_borrow_mut(|walk| match walk {
        Some(Walk::Freeze(ready, first, bytes)) => {
            let chunks = words.len().div_ceil(CHUNK_WORDS);
            let kept = vec![0; chunks.div_ceil(64)];
            let table = Frozen { ready: Arc::clone(ready), first: *first, kept, next: 0 };
            frozen.replace(Some(Box::new(table)));
            *first += chunks as u64;
            *bytes += (words.len() * W::BYTES) as u64;
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
        Some(Walk::Measure(measured)) => {
            measured.lengths.push_back(words.len());
            true
        }
        Some(Walk::Read(_)) | None => false,
    })
}

/// Hands chunks of a table to the image within the budget. A table whose chunks are all in the image is no longer
/// frozen.
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

/// Whether a state is saved only to visit its tables, and the output is discarded.
pub fn is_passed_over() -> bool {
    WALK.with_borrow(|walk| matches!(walk, Some(Walk::Collect(_) | Walk::Thaw | Walk::Measure(_))))
}

/// Whether an image takes the tables that saved states write in line, so that its skeleton has no long list.
pub(super) fn takes_all() -> bool {
    WALK.with_borrow(|walk| match walk {
        Some(Walk::Freeze(..) | Walk::Collect(_) | Walk::Thaw) => true,
        Some(Walk::Measure(measured)) => measured.has_all,
        Some(Walk::Read(_)) | None => false,
    })
}

/// Whether a state is read from an image.
pub(super) fn is_read() -> bool {
    WALK.with_borrow(|walk| matches!(walk, Some(Walk::Read(_))))
}

/// Whether the image also took the tables that saved states write in line.
pub(super) fn is_all_read() -> bool {
    WALK.with_borrow(|walk| matches!(walk, Some(Walk::Read(reading)) if reading.fresh.has_all))
}

/// Prepares for reading an object that must be like a fresh one: `measure` walks through the fresh object, and the
/// lengths of its tables are kept.
pub(super) fn expect(measure: impl FnOnce()) {
    let Some(Walk::Read(mut reading)) = WALK.take() else { return };
    let has_all = reading.fresh.has_all;
    let walking = Walking::begin(Walk::Measure(Measured { lengths: VecDeque::new(), has_all }));
    measure();
    if let Some(Walk::Measure(measured)) = walking.end() {
        reading.fresh = measured;
    }
    WALK.set(Some(Walk::Read(reading)));
}

/// The words of the next table, if `is_as_fresh` accepts their number, compared with that of the fresh object.
pub(super) fn read_words<W: Word>(
    length: usize,
    is_as_fresh: impl FnOnce(usize, usize) -> bool,
) -> Result<Vec<W>, String> {
    WALK.with_borrow_mut(|walk| {
        let Some(Walk::Read(Reading { source, fresh, failure })) = walk else {
            return Err("there is no image to read".into());
        };
        // The length may be anything; memory is taken only for an accepted number of words.
        let is_right = fresh.lengths.pop_front().is_some_and(|fresh| is_as_fresh(length, fresh));
        if !is_right {
            return Err(format!("a table of {length} words belongs to another device"));
        }
        let mut words = vec![W::BLANK; length];
        for chunk in words.chunks_mut(CHUNK_WORDS) {
            let bytes = source.next(chunk.len() * W::BYTES).inspect_err(|error| *failure = Some(error.clone()))?;
            if !bytes.is_empty() {
                decode(bytes, chunk)?;
            }
        }
        Ok(words)
    })
}

/// A source of the chunks of tables, in order.
pub trait Source {
    /// The next chunk; empty if it is blank. A chunk with all its words has `all` bytes.
    ///
    /// # Errors
    /// The chunk cannot be read, or there is none.
    fn next(&mut self, all: usize) -> Result<&[u8], String>;

    /// Whether no chunk is left.
    fn is_at_end(&self) -> bool;
}

/// All chunks of an image, in memory.
#[derive(Clone, Debug)]
pub struct Chunks {
    chunks: Vec<Vec<u8>>,
    next: usize,
}

impl Chunks {
    /// `count` chunks: those in `pieces`, and blank ones.
    pub fn new(count: u64, pieces: Vec<Piece>) -> Self {
        let mut chunks = vec![Vec::new(); count as usize];
        for Piece { chunk, bytes } in pieces {
            chunks[chunk as usize] = bytes;
        }
        Self { chunks, next: 0 }
    }
}

impl Source for Chunks {
    fn next(&mut self, _: usize) -> Result<&[u8], String> {
        self.next += 1;
        self.chunks.get(self.next - 1).map(Vec::as_slice).ok_or_else(|| "there is no chunk left".into())
    }

    fn is_at_end(&self) -> bool {
        self.next >= self.chunks.len()
    }
}

/// An image that is being written. A clone is the same image.
#[derive(Clone, Debug)]
pub struct Image {
    ready: Arc<Ready>,
    chunks: u64,
    tables_bytes: u64,
}

impl Image {
    /// Freezes a state, all of which `save` saves. Returns the image and its skeleton. The state must go on as the same
    /// object, and no other image of it may be begun until this one is complete or abandoned.
    pub fn begin(save: impl FnOnce(&mut Vec<u8>)) -> (Self, Vec<u8>) {
        let ready = Arc::<Ready>::default();
        let walking = Walking::begin(Walk::Freeze(Arc::clone(&ready), 0, 0));
        let mut skeleton = Vec::new();
        save(&mut skeleton);
        let walk = walking.end();
        let (chunks, tables_bytes) =
            if let Some(Walk::Freeze(_, chunks, bytes)) = walk { (chunks, bytes) } else { (0, 0) };
        (Self { ready, chunks, tables_bytes }, skeleton)
    }

    /// Number of chunks of all tables.
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Makes about `bytes` more bytes of the state's tables ready, or looks at up to `LOOK_PART` times as many. `save`
    /// saves this state. Returns whether the image is complete.
    pub fn collect(&self, bytes: usize, save: impl FnOnce(&mut Vec<u8>)) -> bool {
        let walking = Walking::begin(Walk::Collect(bytes));
        save(&mut Vec::new());
        matches!(walking.end(), Some(Walk::Collect(left)) if left > 0)
    }

    /// Bytes that are ready and not taken.
    pub fn ready_bytes(&self) -> usize {
        self.ready.bytes.load(Ordering::Relaxed)
    }

    /// Share of the tables that the image has so far, less than 1.
    pub fn progress(&self) -> f64 {
        self.ready.got_bytes.load(Ordering::Relaxed) as f64 / (self.tables_bytes as f64 + 1.0)
    }

    /// Takes the pieces that are ready.
    pub fn take(&self) -> Vec<Piece> {
        let pieces = std::mem::take(&mut *self.ready.pieces.lock().unwrap_or_else(PoisonError::into_inner));
        let bytes = pieces.iter().map(|piece| piece.bytes.len()).sum();
        self.ready.bytes.fetch_sub(bytes, Ordering::Relaxed);
        pieces
    }

    /// Gives the image up, and unfreezes the tables of its state, which `save` saves.
    pub fn abandon(self, save: impl FnOnce(&mut Vec<u8>)) {
        let _walking = Walking::begin(Walk::Thaw);
        save(&mut Vec::new());
    }
}

/// Reads a state from an image: `restore` reads the skeleton, and the tables in it get their words from `source`.
/// `has_all` says whether the image also took the tables that saved states write in line; old images did not.
///
/// # Errors
/// Those of `restore`, and chunks that are left in the source.
pub fn read_image<T>(
    source: Box<dyn Source>,
    has_all: bool,
    restore: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    let fresh = Measured { lengths: VecDeque::new(), has_all };
    let walking = Walking::begin(Walk::Read(Reading { source, fresh, failure: None }));
    let restored = restore();
    match (restored, walking.end()) {
        (Err(_), Some(Walk::Read(Reading { failure: Some(failure), .. }))) => Err(failure),
        (Ok(_), Some(Walk::Read(reading))) if !reading.source.is_at_end() => Err("more bytes follow its tables".into()),
        (restored, _) => restored,
    }
}

#[cfg(test)]
mod tests;
