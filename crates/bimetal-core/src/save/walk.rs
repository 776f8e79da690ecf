//! A walk through a state that only visits its tables: a serializer that skips everything else.
//!
//! Lists can be as long as tables: a walk that wrote them would take as long as saving them.

use std::fmt::Display;

use serde::Serialize;
use serde::ser::{self, Serializer};

use super::outline::{Never, pass_over_numbers};
use super::{fixed, table};

/// Visits all tables of a state.
pub(super) fn walk<T: Serialize + ?Sized>(state: &T) {
    let passed = state.serialize(&mut Walker { was_number: false });
    passed.unwrap_or_else(|Never| unreachable!("nothing is written that could fail"));
}

struct Walker {
    /// Whether the last value was a number: if a list begins with a number, the rest are numbers, too.
    was_number: bool,
}

macro_rules! others {
    ($($method:ident($($type:ty),*)),+ $(,)?) => {$(
        fn $method(self, $(_: $type),*) -> Result<(), Never> {
            Ok(())
        }
    )+};
}

macro_rules! compounds {
    ($($method:ident($($type:ty),*) -> $compound:ident),+ $(,)?) => {$(
        fn $method(self, $(_: $type),*) -> Result<Self::$compound, Never> {
            self.was_number = false;
            Ok(self)
        }
    )+};
}

impl<'a> Serializer for &'a mut Walker {
    type Ok = ();
    type Error = Never;
    type SerializeSeq = Elements<'a>;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    pass_over_numbers!(self, {
        self.was_number = true;
        Ok(())
    });

    others! {
        serialize_str(&str), serialize_bytes(&[u8]), serialize_none(), serialize_unit(),
        serialize_unit_struct(&'static str), serialize_unit_variant(&'static str, u32, &'static str),
    }

    compounds! {
        serialize_tuple(usize) -> SerializeTuple,
        serialize_tuple_struct(&'static str, usize) -> SerializeTupleStruct,
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> SerializeTupleVariant,
        serialize_map(Option<usize>) -> SerializeMap,
        serialize_struct(&'static str, usize) -> SerializeStruct,
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> SerializeStructVariant,
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Never> {
        value.serialize(&mut *self)?;
        // In a list of options, a later element may have tables.
        self.was_number = false;
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result<(), Never> {
        // Marked values are the bytes of words, or never change: a table in an image is neither.
        if [fixed::NAME, table::NAME].contains(&name) { Ok(()) } else { value.serialize(self) }
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Never> {
        value.serialize(&mut *self)?;
        self.was_number = false;
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Elements<'a>, Never> {
        self.was_number = false;
        Ok(Elements { walker: self, has_tables: None })
    }

    fn collect_str<T: Display + ?Sized>(self, _: &T) -> Result<(), Never> {
        Ok(())
    }
}

/// A list whose elements have one type.
struct Elements<'a> {
    walker: &'a mut Walker,
    /// Whether it may have tables: unknown before the first element.
    has_tables: Option<bool>,
}

impl ser::SerializeSeq for Elements<'_> {
    type Ok = ();
    type Error = Never;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Never> {
        if self.has_tables == Some(false) {
            return Ok(());
        }
        self.walker.was_number = false;
        value.serialize(&mut *self.walker)?;
        self.has_tables = Some(!self.walker.was_number);
        Ok(())
    }

    fn end(self) -> Result<(), Never> {
        self.walker.was_number = false;
        Ok(())
    }
}

macro_rules! elements {
    ($($trait:ident { $($method:ident($($key:ty)?)),+ })+) => {$(
        impl ser::$trait for &mut Walker {
            type Ok = ();
            type Error = Never;

            $(
                #[inline]
                fn $method<T: Serialize + ?Sized>(&mut self, $(_: $key,)? value: &T) -> Result<(), Never> {
                    value.serialize(&mut **self)
                }
            )+

            #[inline]
            fn end(self) -> Result<(), Never> {
                self.was_number = false;
                Ok(())
            }
        }
    )+};
}
elements! {
    SerializeTuple { serialize_element() }
    SerializeTupleStruct { serialize_field() }
    SerializeTupleVariant { serialize_field() }
    SerializeMap { serialize_key(), serialize_value() }
    SerializeStruct { serialize_field(&'static str) }
    SerializeStructVariant { serialize_field(&'static str) }
}
