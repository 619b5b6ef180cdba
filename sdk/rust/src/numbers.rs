//! Finds the number that JSON has no word for: serde_json would write null for it.

use crate::typed::below;
use serde::ser::{self, Serialize, Serializer};
use std::fmt;

/// The path of the first number of a value that is NaN or infinite.
pub(crate) fn no_number<T: Serialize + ?Sized>(value: &T, path: &str) -> Option<String> {
    match value.serialize(Finder(path)) {
        Err(Found::At(path)) => Some(path),
        _ => None, // other errors are those of the writing itself
    }
}

#[derive(Debug)]
enum Found {
    At(String),
    Other,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("found")
    }
}

impl std::error::Error for Found {}

impl ser::Error for Found {
    fn custom<T: fmt::Display>(_: T) -> Found {
        Found::Other
    }
}

struct Finder<'a>(&'a str);

/// What a list, a map or a struct has so far.
struct Inside {
    path: String,
    index: usize,
    key: String,
}

impl Inside {
    fn at(path: String) -> Result<Inside, Found> {
        Ok(Inside { path, index: 0, key: String::new() })
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Found> {
        let path = format!("{}[{}]", self.path, self.index);
        self.index += 1;
        value.serialize(Finder(&path))
    }

    fn member<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), Found> {
        value.serialize(Finder(&below(&self.path, key)))
    }
}

macro_rules! nothing {
    ($($method:ident($($type:ty),*))*) => {$(
        fn $method(self $(, _: $type)*) -> Result<(), Found> {
            Ok(())
        }
    )*};
}

impl Serializer for Finder<'_> {
    type Ok = ();
    type Error = Found;
    type SerializeSeq = Inside;
    type SerializeTuple = Inside;
    type SerializeTupleStruct = Inside;
    type SerializeTupleVariant = Inside;
    type SerializeMap = Inside;
    type SerializeStruct = Inside;
    type SerializeStructVariant = Inside;

    nothing! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64) serialize_i128(i128)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_u128(u128)
        serialize_char(char) serialize_str(&str) serialize_bytes(&[u8]) serialize_none() serialize_unit()
        serialize_unit_struct(&'static str) serialize_unit_variant(&'static str, u32, &'static str)
    }

    fn serialize_f32(self, v: f32) -> Result<(), Found> {
        self.serialize_f64(v.into())
    }

    fn serialize_f64(self, v: f64) -> Result<(), Found> {
        if v.is_finite() {
            Ok(())
        } else {
            Err(Found::At(self.0.to_owned()))
        }
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Found> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Found> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Result<(), Found> {
        value.serialize(Finder(&below(self.0, name)))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside, Found> {
        Inside::at(self.0.to_owned())
    }

    fn serialize_tuple(self, _: usize) -> Result<Inside, Found> {
        Inside::at(self.0.to_owned())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Inside, Found> {
        Inside::at(self.0.to_owned())
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, name: &'static str, _: usize) -> Result<Inside, Found> {
        Inside::at(below(self.0, name))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Inside, Found> {
        Inside::at(self.0.to_owned())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Inside, Found> {
        Inside::at(self.0.to_owned())
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, name: &'static str, _: usize) -> Result<Inside, Found> {
        Inside::at(below(self.0, name))
    }
}

macro_rules! inside {
    ($($kind:ident $method:ident($($key:ident)?) $inner:ident;)*) => {$(
        impl ser::$kind for Inside {
            type Ok = ();
            type Error = Found;

            fn $method<T: Serialize + ?Sized>(&mut self $(, $key: &'static str)?, value: &T) -> Result<(), Found> {
                self.$inner($($key,)? value)
            }

            fn end(self) -> Result<(), Found> {
                Ok(())
            }
        }
    )*};
}

inside! {
    SerializeSeq serialize_element() element;
    SerializeTuple serialize_element() element;
    SerializeTupleStruct serialize_field() element;
    SerializeTupleVariant serialize_field() element;
    SerializeStruct serialize_field(key) member;
    SerializeStructVariant serialize_field(key) member;
}

impl ser::SerializeMap for Inside {
    type Ok = ();
    type Error = Found;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Found> {
        self.key = match serde_json::to_value(key) {
            Ok(serde_json::Value::String(key)) => key,
            Ok(key) => key.to_string(),
            Err(_) => return Err(Found::Other),
        };
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Found> {
        let key = std::mem::take(&mut self.key);
        self.member(&key, value)
    }

    fn end(self) -> Result<(), Found> {
        Ok(())
    }
}
