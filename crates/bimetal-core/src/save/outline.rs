//! The outline of a state: a serializer that keeps the parts that never change, and skips the rest.

use std::fmt;

use serde::Serialize;
use serde::ser::{self, Serializer};

use super::{Save, fixed, sized, table};

/// The parts of a state that never change, as bytes to be compared.
pub(super) fn outline<T: Serialize>(state: &T) -> Vec<u8> {
    let mut outline = Outline { kept: Vec::new(), counts_elements: false };
    state.serialize(&mut outline).unwrap_or_else(|Never| unreachable!("nothing is written that could fail"));
    outline.kept
}

struct Outline {
    kept: Vec<u8>,
    /// Whether the next value is a sequence of fixed length.
    counts_elements: bool,
}

impl Outline {
    fn keep(&mut self, number: u64) {
        self.kept.extend(number.to_le_bytes());
    }
}

/// An error that only a state that refuses to be written can cause.
#[derive(Debug)]
pub(super) struct Never;

impl fmt::Display for Never {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the state cannot be written")
    }
}

impl std::error::Error for Never {}

impl ser::Error for Never {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// The methods of a serializer that skips numbers; `$body` is the body of each.
macro_rules! pass_over_numbers {
    ($self:ident, $body:expr) => {
        pass_over_numbers! {
            $self, $body;
            serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
            serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
            serialize_u128: u128, serialize_f32: f32, serialize_f64: f64, serialize_char: char
        }
    };
    ($self:ident, $body:expr; $($method:ident: $type:ty),+) => {
        $(
            #[inline]
            fn $method($self, _: $type) -> Result<(), Never> {
                $body
            }
        )+
    };
}
pub(super) use pass_over_numbers;

impl Serializer for &mut Outline {
    type Ok = ();
    type Error = Never;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    pass_over_numbers!(self, Ok(()));

    fn serialize_str(self, _: &str) -> Result<(), Never> {
        Ok(())
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), Never> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Never> {
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Never> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Never> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Never> {
        Ok(())
    }

    /// A choice without data may change, unless it is marked.
    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Never> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result<(), Never> {
        match name {
            fixed::NAME => (&value).save(&mut self.kept),
            table::NAME => {}
            sized::NAME => {
                self.counts_elements = true;
                value.serialize(&mut *self)?;
            }
            _ => value.serialize(self)?,
        }
        Ok(())
    }

    /// A choice with data is made with the object and never changes.
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Never> {
        self.keep(u64::from(index));
        value.serialize(self)
    }

    fn serialize_seq(self, elements: Option<usize>) -> Result<Self, Never> {
        if std::mem::take(&mut self.counts_elements) {
            self.keep(elements.unwrap_or_default() as u64);
        }
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Never> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Never> {
        Ok(self)
    }

    fn serialize_tuple_variant(self, _: &'static str, index: u32, _: &'static str, _: usize) -> Result<Self, Never> {
        self.keep(u64::from(index));
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Never> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Never> {
        Ok(self)
    }

    fn serialize_struct_variant(self, _: &'static str, index: u32, _: &'static str, _: usize) -> Result<Self, Never> {
        self.keep(u64::from(index));
        Ok(self)
    }
}

macro_rules! elements {
    ($($trait:ident { $method:ident($($key:ty)?) })+) => {$(
        impl ser::$trait for &mut Outline {
            type Ok = ();
            type Error = Never;

            fn $method<T: Serialize + ?Sized>(&mut self, $(_: $key,)? value: &T) -> Result<(), Never> {
                value.serialize(&mut **self)
            }

            fn end(self) -> Result<(), Never> {
                Ok(())
            }
        }
    )+};
}
elements! {
    SerializeSeq { serialize_element() }
    SerializeTuple { serialize_element() }
    SerializeTupleStruct { serialize_field() }
    SerializeTupleVariant { serialize_field() }
    SerializeStruct { serialize_field(&'static str) }
    SerializeStructVariant { serialize_field(&'static str) }
}

impl ser::SerializeMap for &mut Outline {
    type Ok = ();
    type Error = Never;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> Result<(), Never> {
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Never> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), Never> {
        Ok(())
    }
}
