//! A table: numbers, or structs of numbers, whose count never changes.
//!
//! Nearly all of a state is in tables, so they are saved as bytes, the lowest first, in the time of copying memory.
//! Their length comes first, separately, so that the outline need not look at the bytes.
//!
//! Tables of zeros take memory only where they are overwritten. States are designed so that most words are zero.
//!
//! A table can be *frozen* at a moment: an [`Image`](super::Image) of the state is then written piece by piece while
//! the table keeps changing. The first change of a chunk hands the old content of the chunk to the image. A table that
//! is not frozen pays one predictable branch per change.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Index, IndexMut, Range};
use std::slice::SliceIndex;

use serde::de::{Deserializer, Error, Visitor};
use serde::ser::{SerializeTuple, Serializer};
use serde::{Deserialize, Serialize};

use super::image::{self, Frozen};
use super::word::bytes_of;
use super::{Word, fixed};

/// Name of the bytes that the outline skips.
pub const NAME: &str = "table";

/// A table of `W`, read as a slice and changed by index.
#[derive(Default)]
pub struct Table<W> {
    words: Vec<W>,
    frozen: RefCell<Option<Box<Frozen>>>,
}

impl<W> Table<W> {
    /// Bytes of memory that its words take.
    pub fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<W>()
    }
}

impl<W: Word> Table<W> {
    /// Hands the chunks of these words to the image that is being written, if there is one.
    #[inline(always)]
    fn keep(&mut self, words: Range<usize>) {
        if let Some(frozen) = self.frozen.get_mut() {
            frozen.keep(&self.words, words);
        }
    }

    /// Its words, all of which may be changed.
    pub fn as_mut_slice(&mut self) -> &mut [W] {
        self.keep(0..self.words.len());
        &mut self.words
    }

    /// One of its words, if it exists.
    #[inline(always)]
    pub fn get_mut(&mut self, at: usize) -> Option<&mut W> {
        self.keep(at..at + 1);
        self.words.get_mut(at)
    }

    /// Sets all words to one value.
    pub fn fill(&mut self, word: W) {
        self.as_mut_slice().fill(word);
    }

    /// Exchanges two words.
    #[inline]
    pub fn swap(&mut self, one: usize, other: usize) {
        self.keep(one..one + 1);
        self.keep(other..other + 1);
        self.words.swap(one, other);
    }
}

impl<W> Deref for Table<W> {
    type Target = [W];

    #[inline(always)]
    fn deref(&self) -> &[W] {
        &self.words
    }
}

impl<W> AsRef<[W]> for Table<W> {
    fn as_ref(&self) -> &[W] {
        &self.words
    }
}

impl<W, I: SliceIndex<[W]>> Index<I> for Table<W> {
    type Output = I::Output;

    #[inline(always)]
    fn index(&self, at: I) -> &I::Output {
        &self.words[at]
    }
}

impl<W: Word> IndexMut<usize> for Table<W> {
    #[inline(always)]
    fn index_mut(&mut self, at: usize) -> &mut W {
        self.keep(at..at + 1);
        &mut self.words[at]
    }
}

impl<W: Word> IndexMut<Range<usize>> for Table<W> {
    #[inline(always)]
    fn index_mut(&mut self, range: Range<usize>) -> &mut [W] {
        self.keep(range.clone());
        &mut self.words[range]
    }
}

impl<W> From<Vec<W>> for Table<W> {
    fn from(words: Vec<W>) -> Self {
        Self { words, frozen: RefCell::new(None) }
    }
}

impl<W> FromIterator<W> for Table<W> {
    fn from_iter<I: IntoIterator<Item = W>>(words: I) -> Self {
        Vec::from_iter(words).into()
    }
}

impl<'a, W> IntoIterator for &'a Table<W> {
    type Item = &'a W;
    type IntoIter = std::slice::Iter<'a, W>;

    fn into_iter(self) -> Self::IntoIter {
        self.words.iter()
    }
}

/// A copy is not frozen.
impl<W: Clone> Clone for Table<W> {
    fn clone(&self) -> Self {
        self.words.clone().into()
    }
}

impl<W: PartialEq> PartialEq for Table<W> {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl<W: Eq> Eq for Table<W> {}

impl<W: fmt::Debug> fmt::Debug for Table<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words.fmt(f)
    }
}

/// Writes the words, unless an image of the state takes them separately.
impl<W: Word> Serialize for Table<W> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if image::visit(&self.words, &self.frozen) {
            Length(self.words.len()).serialize(serializer)
        } else {
            serialize(&self.words, serializer)
        }
    }
}

/// Writes words whose count never changes.
pub(super) fn serialize<W: Word, S: Serializer>(words: &[W], serializer: S) -> Result<S::Ok, S::Error> {
    let mut pair = serializer.serialize_tuple(2)?;
    pair.serialize_element(&Length(words.len()))?;
    pair.serialize_element(&Words(words))?;
    pair.end()
}

/// Reads such words.
pub(super) fn deserialize<'de, W: Word, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<W>, D::Error> {
    let (Length(length), Bytes(words)) = Deserialize::deserialize(deserializer)?;
    if words.len() != length {
        return Err(D::Error::invalid_length(words.len(), &"the announced number"));
    }
    Ok(words)
}

impl<'de, W: Word> Deserialize<'de> for Table<W> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if image::is_read() {
            return deserialize_apart(deserializer, |length, fresh| length == fresh);
        }
        deserialize(deserializer).map(Self::from)
    }
}

/// Reads a table whose words are in an image, if `is_as_fresh` accepts their number, compared with that of the fresh
/// object.
pub(super) fn deserialize_apart<'de, W: Word, D: Deserializer<'de>>(
    deserializer: D,
    is_as_fresh: impl FnOnce(usize, usize) -> bool,
) -> Result<Table<W>, D::Error> {
    let Length(length) = Deserialize::deserialize(deserializer)?;
    image::read_words(length, is_as_fresh).map(Table::from).map_err(D::Error::custom)
}

#[derive(Serialize, Deserialize)]
struct Length(#[serde(with = "fixed")] usize);

/// Words as bytes, to be written.
pub(super) struct Words<'a, W>(pub(super) &'a [W]);

impl<W: Word> Serialize for Words<'_, W> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct AsBytes<'a, W>(&'a [W]);

        impl<W: Word> Serialize for AsBytes<'_, W> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bytes(&bytes_of(self.0))
            }
        }

        serializer.serialize_newtype_struct(NAME, &AsBytes(self.0))
    }
}

/// Words read from their bytes.
pub(super) struct Bytes<W>(pub(super) Vec<W>);

impl<'de, W: Word> Deserialize<'de> for Bytes<W> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(OfBytes(PhantomData)).map(Self)
    }
}

struct OfBytes<W>(PhantomData<W>);

impl<W: Word> Visitor<'_> for OfBytes<W> {
    type Value = Vec<W>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a table of {} bytes each", W::BYTES)
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        let words = bytes.chunks_exact(W::BYTES);
        if !words.remainder().is_empty() {
            return Err(E::invalid_length(bytes.len(), &self));
        }
        Ok(words.map(W::get).collect())
    }
}
