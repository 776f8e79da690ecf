//! Saving and restoring state: the content of a device's checkpoint.
//!
//! State is written as a whole, with serde in the format of postcard. Restoring needs a fresh object, made from the
//! same configuration. The restored state must have the outline of the fresh object, so that bytes of another device,
//! of other parameters or of unknown origin are refused. The outline is the part of a state that never changes while
//! the object lives. Fields are marked as part of it:
//!
//! ```text
//! #[serde(with = "save::fixed")]    its value: geometry, settings, limits
//! #[serde(with = "save::text")]     its value too, for types that leave fields out when they are written: chips, drives
//! #[serde(with = "save::sized")]    its length, and the outlines of its elements
//! save::Table                       its length: numbers, whose count never changes
//! ```
//!
//! A checksum over the bytes, or a name of the device before them, does not suffice. A checksum detects damage by a
//! disk, but accepts bytes that were edited and summed again, as the fuzzer does. For example, `wlaftl` collects its
//! log while fewer than `free_blocks` are erased. On a new device all blocks are erased, so that `check()` finds no
//! fault in a state with `free_blocks` equal to all of them; then the first write collects for ever. The constructor
//! refuses this number because it sees the device. `check()` sees only the state, and would need the device and a
//! comparison for each marked field. The outline is this comparison, written once.
//!
//! A field without a mark is restored, too, but foreign bytes may have any value in it that `check` accepts.
//! `save::list` is such a field: numbers as in a table, but of any length. Data that follow from other fields, above
//! all an index, are not saved but rebuilt. The bytes are not yet checked then, so that rebuilding may only take memory
//! in proportion to them.

mod image;
mod outline;
mod queue;
mod table;
mod walk;
mod word;

pub use image::{Chunks, Image, Piece, Source, is_passed_over, read_image};
pub use queue::Queue;
pub use table::Table;
pub use word::Word;
pub(crate) use word::{entry, number, words};

use serde::Serialize;
use serde::de::DeserializeOwned;

use outline::outline;

/// State that can be saved.
pub trait Save {
    /// Appends the state to `out`.
    fn save(&self, out: &mut Vec<u8>);
}

impl<T: Serialize> Save for T {
    fn save(&self, out: &mut Vec<u8>) {
        if is_passed_over() {
            return walk::walk(self);
        }
        let saved = postcard::to_extend(self, std::mem::take(out));
        *out = saved.unwrap_or_else(|_| unreachable!("memory takes everything, and all lengths are known"));
    }
}

/// Bytes that are not a valid state of the object to be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The bytes are damaged, or of another version.
    #[error("it cannot be read: {0}")]
    Malformed(postcard::Error),
    /// More bytes than the state has.
    #[error("it has {0} surplus bytes at its end")]
    TooLong(usize),
    /// The state is inconsistent.
    #[error("it is inconsistent: {0}")]
    Broken(String),
    /// The bytes are the state of another object.
    #[error("it belongs to another device or to other parameters")]
    Foreign,
}

/// Restores what [`Save::save`] wrote for an object that was made like `fresh`.
///
/// Memory is bounded by the length of `bytes` and the size of `fresh`. The consistency of the state is not checked
/// here.
///
/// # Errors
/// Bytes that are damaged, too long, or of another object.
pub fn restore<T: Serialize + DeserializeOwned>(fresh: &T, bytes: &[u8]) -> Result<T, RestoreError> {
    image::expect(|| walk::walk(fresh));
    let (restored, rest) = postcard::take_from_bytes::<T>(bytes).map_err(RestoreError::Malformed)?;
    if !rest.is_empty() {
        return Err(RestoreError::TooLong(rest.len()));
    }
    if outline(&restored) != outline(fresh) { Err(RestoreError::Foreign) } else { Ok(restored) }
}

/// A value that never changes.
pub mod fixed {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Name of the mark in the outline.
    pub const NAME: &str = "fixed";

    /// Writes the value.
    pub fn serialize<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(NAME, value)
    }

    /// Reads the value: the wrapper takes no bytes.
    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }
}

/// A value that never changes, as the text of a device file: binary formats cannot leave fields out.
pub mod text {
    use serde::de::{DeserializeOwned, Error as _};
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes the text.
    pub fn serialize<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        let text = toml::to_string(value).map_err(S::Error::custom)?;
        super::fixed::serialize(&text, serializer)
    }

    /// Reads the text.
    pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        toml::from_str(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// A vector in the form of a table, but of any length.
pub mod list {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Word;
    use super::table::{Bytes, Words};

    /// Writes the elements.
    pub fn serialize<W: Word, S: Serializer>(list: &[W], serializer: S) -> Result<S::Ok, S::Error> {
        Words(list).serialize(serializer)
    }

    /// Reads the elements.
    pub fn deserialize<'de, W: Word, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<W>, D::Error> {
        Bytes::deserialize(deserializer).map(|Bytes(list)| list)
    }
}

/// A number of tables that never changes. Old images have them in their skeletons.
pub(crate) mod tables {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Table, Word, image};

    struct Borrowed<'a, W>(&'a [W]);

    impl<W: Word> Serialize for Borrowed<'_, W> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            super::table::serialize(self.0, serializer)
        }
    }

    struct Owned<W>(Vec<W>);

    impl<'de, W: Word> Deserialize<'de> for Owned<W> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            super::table::deserialize(deserializer).map(Self)
        }
    }

    /// Writes the tables.
    pub fn serialize<W: Word, S: Serializer>(tables: &Vec<Table<W>>, serializer: S) -> Result<S::Ok, S::Error> {
        if image::takes_all() {
            return super::sized::serialize(tables, serializer);
        }
        let tables: Vec<Borrowed<'_, W>> = tables.iter().map(|table| Borrowed(table)).collect();
        super::sized::serialize(&tables, serializer)
    }

    /// Reads the tables.
    pub fn deserialize<'de, W: Word, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Table<W>>, D::Error> {
        if image::is_all_read() {
            return Vec::deserialize(deserializer);
        }
        let tables = Vec::<Owned<W>>::deserialize(deserializer)?;
        Ok(tables.into_iter().map(|table| table.0.into()).collect())
    }
}

/// A table that saved states write as a vector of structs, because their form there differs from that of words.
macro_rules! listed {
    ($($(#[$doc:meta])* $module:ident: $mark:ident;)+) => {$(
        $(#[$doc])*
        pub(crate) mod $module {
            use serde::{Deserialize, Deserializer, Serialize, Serializer};

            use crate::save::{Table, Word, image, $mark};

            /// Writes the elements.
            pub fn serialize<W: Word + Serialize, S: Serializer>(
                table: &Table<W>,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                if image::takes_all() {
                    return table.serialize(serializer);
                }
                serializer.serialize_newtype_struct($mark::NAME, &**table)
            }

            /// Reads the elements.
            pub fn deserialize<'de, W: Word + Deserialize<'de>, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Table<W>, D::Error> {
                if image::is_all_read() {
                    return Table::deserialize(deserializer);
                }
                Vec::deserialize(deserializer).map(Table::from)
            }
        }
    )+};
}
listed! {
    /// A table whose elements never change.
    fixed_list: fixed;
    /// A table whose elements have marks.
    sized_list: sized;
}

/// A vector whose length never changes.
pub mod sized {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Name of the mark in the outline.
    pub const NAME: &str = "sized";

    /// Writes the elements.
    pub fn serialize<T: Serialize, S: Serializer>(elements: &Vec<T>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(NAME, elements)
    }

    /// Reads the elements.
    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
        Vec::deserialize(deserializer)
    }
}

/// An array whose length is a const parameter, written as a slice: serde supports only fixed lengths.
pub(crate) mod array {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes the elements.
    pub fn serialize<T: Serialize, S: Serializer, const N: usize>(
        elements: &[T; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        elements.as_slice().serialize(serializer)
    }

    /// Reads the elements.
    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[T; N], D::Error> {
        let elements = Vec::deserialize(deserializer)?;
        elements.try_into().map_err(|elements: Vec<T>| D::Error::invalid_length(elements.len(), &"another number"))
    }
}

/// An array whose length is a const parameter, written like serde's arrays of fixed lengths.
pub(crate) mod tuple {
    use std::fmt;
    use std::marker::PhantomData;

    use serde::de::{Error, SeqAccess, Visitor};
    use serde::ser::SerializeTuple;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes the elements.
    pub fn serialize<T: Serialize, S: Serializer, const N: usize>(
        elements: &[T; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(N)?;
        elements.iter().try_for_each(|element| tuple.serialize_element(element))?;
        tuple.end()
    }

    /// Reads the elements.
    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[T; N], D::Error> {
        deserializer.deserialize_tuple(N, Elements(PhantomData))
    }

    struct Elements<T, const N: usize>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Elements<T, N> {
        type Value = [T; N];

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{N} elements")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
            let mut read = Vec::with_capacity(N);
            while let Some(element) = elements.next_element()? {
                read.push(element);
            }
            read.try_into().map_err(|read: Vec<T>| A::Error::invalid_length(read.len(), &self))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Part {
        #[serde(with = "fixed")]
        limit: u32,
        used: Vec<u32>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Kind {
        Plain,
        Counted(u32),
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Whole {
        table: Table<u32>,
        #[serde(with = "tables")]
        tables: Vec<Table<u16>>,
        #[serde(with = "sized")]
        parts: Vec<Part>,
        #[serde(with = "list")]
        list: Vec<u32>,
        #[serde(with = "array")]
        pair: [u64; 2],
        #[serde(with = "text")]
        chip: crate::chip::Chip,
        option: Option<Part>,
        kind: Kind,
    }

    fn whole() -> Whole {
        let part = Part { limit: 3, used: vec![1, 2] };
        Whole {
            table: vec![7, 8, u32::MAX].into(),
            tables: vec![vec![1].into(), vec![2, 3].into()],
            parts: vec![part.clone(), part],
            list: vec![4, 5],
            pair: [5, 6],
            chip: crate::chip::find("chang-mlc").unwrap(),
            option: None,
            kind: Kind::Counted(9),
        }
    }

    fn saved(whole: &Whole) -> Vec<u8> {
        let mut bytes = vec![1, 2, 3];
        whole.save(&mut bytes);
        assert_eq!(bytes[..3], [1, 2, 3], "what was there stays");
        bytes.split_off(3)
    }

    #[test]
    fn what_changes_is_restored() {
        let mut changed = whole();
        changed.table[0] = 0x0102_0304;
        changed.tables[1][0] = 77;
        changed.parts[1].used = vec![9; 1000];
        changed.list = vec![u32::MAX; 300];
        changed.pair = [u64::MAX, 0];
        changed.kind = Kind::Counted(10);
        assert_eq!(restore(&whole(), &saved(&changed)), Ok(changed));
    }

    #[test]
    fn what_never_changes_is_asked_for() {
        let changes: &[fn(&mut Whole)] = &[
            |whole| whole.table = vec![0; 4].into(),
            |whole| whole.tables[1] = vec![2].into(),
            |whole| whole.tables.push(Table::default()),
            |whole| whole.parts[1].limit = 4,
            |whole| whole.parts.truncate(1),
            |whole| whole.chip.read_us += 1e-9,
            |whole| whole.chip.slc_mode = None,
            |whole| whole.option = Some(Part { limit: 0, used: vec![] }),
            |whole| whole.kind = Kind::Plain,
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut other = whole();
            change(&mut other);
            assert_eq!(restore(&whole(), &saved(&other)), Err(RestoreError::Foreign), "change {number}");
        }
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let bytes = saved(&whole());
        for length in 0..bytes.len() {
            assert!(matches!(restore(&whole(), &bytes[..length]), Err(RestoreError::Malformed(_))), "{length} bytes");
        }
        assert_eq!(restore(&whole(), &[&bytes[..], &[0]].concat()), Err(RestoreError::TooLong(1)));
    }
}
