//! What tables are made of: numbers, and structs of numbers.

/// A number, or several, with a form of fixed length in bytes.
pub trait Word: Copy {
    /// Length of that form.
    const BYTES: usize;

    /// Writes it into so many bytes.
    fn put(&self, bytes: &mut [u8]);

    /// Reads it from so many bytes.
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($number:ty),+) => {$(
        impl Word for $number {
            const BYTES: usize = size_of::<Self>();

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

impl Word for bool {
    const BYTES: usize = 1;

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
