//! Elements of tables: numbers, and structs of numbers.

use std::num::NonZeroU32;

/// A number, or several, with a fixed length in bytes.
pub trait Word: Copy {
    /// This length.
    const BYTES: usize;

    /// The word that is all zeros in memory. An image has no bytes for it, and a table of such words takes no memory.
    const BLANK: Self;

    /// Whether it is the blank word.
    fn is_blank(&self) -> bool;

    /// Writes it into bytes of this length.
    fn put(&self, bytes: &mut [u8]);

    /// Reads it from bytes of this length.
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($number:ty),+) => {$(
        impl Word for $number {
            const BYTES: usize = size_of::<Self>();
            const BLANK: Self = 0 as Self;

            #[inline]
            fn is_blank(&self) -> bool {
                // Compares all bits: -0.0 differs from 0.0.
                self.to_le_bytes() == [0; size_of::<Self>()]
            }

            #[inline]
            fn put(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn get(bytes: &[u8]) -> Self {
                let mut number = [0; size_of::<Self>()];
                number.copy_from_slice(bytes);
                Self::from_le_bytes(number)
            }
        }
    )+};
}
numbers!(u8, u16, u32, u64, f64);

/// An optional number: see [`entry`]. In bytes, `None` is the largest number.
impl Word for Option<NonZeroU32> {
    const BYTES: usize = 4;
    const BLANK: Self = None;

    #[inline]
    fn is_blank(&self) -> bool {
        self.is_none()
    }

    #[inline]
    fn put(&self, bytes: &mut [u8]) {
        number(*self).put(bytes);
    }

    #[inline]
    fn get(bytes: &[u8]) -> Self {
        entry(u32::get(bytes))
    }
}

/// A number as an optional entry of a table; `u32::MAX` is `None`, which is zero in memory, so that a table of `None`
/// takes no memory.
#[inline(always)]
pub(crate) fn entry(number: u32) -> Option<NonZeroU32> {
    NonZeroU32::new(!number)
}

/// The number of an entry.
#[inline(always)]
pub(crate) fn number(entry: Option<NonZeroU32>) -> u32 {
    !entry.map_or(0, NonZeroU32::get)
}

impl Word for bool {
    const BYTES: usize = 1;
    const BLANK: Self = false;

    #[inline]
    fn is_blank(&self) -> bool {
        !self
    }

    #[inline]
    fn put(&self, bytes: &mut [u8]) {
        u8::from(*self).put(bytes);
    }

    #[inline]
    fn get(bytes: &[u8]) -> Self {
        u8::get(bytes) != 0
    }
}

impl<const N: usize> Word for [u8; N] {
    const BYTES: usize = N;
    const BLANK: Self = [0; N];

    #[inline]
    fn is_blank(&self) -> bool {
        *self == [0; N]
    }

    #[inline]
    fn put(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(self);
    }

    #[inline]
    fn get(bytes: &[u8]) -> Self {
        let mut array = [0; N];
        array.copy_from_slice(bytes);
        array
    }
}

/// Makes a struct of numbers a [`Word`].
macro_rules! words {
    ($struct:ident { $($field:tt: $number:ty),+ }) => {
        impl $crate::save::Word for $struct {
            const BYTES: usize = 0 $(+ <$number as $crate::save::Word>::BYTES)+;
            const BLANK: Self = Self { $($field: <$number as $crate::save::Word>::BLANK),+ };

            #[inline]
            fn is_blank(&self) -> bool {
                true $(&& $crate::save::Word::is_blank(&self.$field))+
            }

            #[inline]
            fn put(&self, bytes: &mut [u8]) {
                let mut end = 0;
                $(
                    let start = end;
                    end += <$number as $crate::save::Word>::BYTES;
                    $crate::save::Word::put(&self.$field, &mut bytes[start..end]);
                )+
                debug_assert_eq!(end, bytes.len());
            }

            #[inline]
            fn get(bytes: &[u8]) -> Self {
                let mut end = 0;
                let word = Self {
                    $(
                        $field: {
                            let start = end;
                            end += <$number as $crate::save::Word>::BYTES;
                            <$number as $crate::save::Word>::get(&bytes[start..end])
                        },
                    )+
                };
                debug_assert_eq!(end, bytes.len());
                word
            }
        }
    };
}
pub(crate) use words;
/// The bytes of words.
pub(super) fn bytes_of<W: Word>(words: &[W]) -> Vec<u8> {
    let mut bytes = vec![0; words.len() * W::BYTES];
    for (word, bytes) in words.iter().zip(bytes.chunks_exact_mut(W::BYTES)) {
        word.put(bytes);
    }
    bytes
}
