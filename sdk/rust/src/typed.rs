//! Puts values as they come in JSON into a skill's types, and says which field is wrong.

use crate::errors::Failure;
use serde::de::{
    self, value::StringDeserializer, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer,
    MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde_json::{map, Number, Value};
use std::fmt;

/// A value as it comes in an input as the type T: for fields whose type depends on other
/// fields. `field` is the value's name in errors.
pub fn typed<T: DeserializeOwned>(value: Value, field: &str) -> Result<T, Failure> {
    T::deserialize(Node { value, path: field.to_owned() }).map_err(|wrong| {
        let mut path = wrong.path.unwrap_or_else(|| field.to_owned());
        if path.is_empty() {
            path.push_str("input");
        }
        Failure::invalid(&path, wrong.reason, format!("{}: {}", path, wrong.text))
    })
}

/// What is wrong, and where. The innermost value says where.
#[derive(Debug)]
struct Wrong {
    path: Option<String>,
    child: Option<&'static str>,
    reason: &'static str,
    text: String,
}

impl Wrong {
    fn new(reason: &'static str, text: impl Into<String>) -> Wrong {
        Wrong { path: None, child: None, reason, text: text.into() }
    }

    fn must_be(what: &str) -> Wrong {
        Wrong::new("type", format!("must be {what}"))
    }

    fn at(mut self, path: &str) -> Wrong {
        if self.path.is_none() {
            self.path = Some(match self.child {
                Some(name) => below(path, name),
                None => path.to_owned(),
            });
        }
        self
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Wrong {
        Wrong::new("value", message.to_string())
    }

    fn missing_field(field: &'static str) -> Wrong {
        Wrong { child: Some(field), ..Wrong::new("missing", "required") }
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Wrong {
        let field: String = field.chars().take(64).collect();
        Wrong::new("unknown", format!("has a field {:?} that is not known; accepted: {}", field, known.join(", ")))
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Wrong {
        Wrong::new("unsupported", format!("must be one of {}", known.join(", ")))
    }

    fn invalid_type(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Wrong {
        Wrong::new("type", format!("must be {expected}"))
    }

    fn invalid_length(_: usize, expected: &dyn de::Expected) -> Wrong {
        Wrong::new("length", format!("must be {expected}"))
    }
}

pub(crate) fn below(path: &str, name: &str) -> String {
    let name: String = name.chars().take(64).collect();
    if path.is_empty() {
        name
    } else {
        format!("{path}.{name}")
    }
}

/// A value and where it stands.
struct Node {
    value: Value,
    path: String,
}

impl Node {
    fn wrong<T>(&self, what: &str) -> Result<T, Wrong> {
        Err(Wrong::must_be(what).at(&self.path))
    }

    /// 3.0 is the integer 3, as in JSON Schema. What is written with a point or an
    /// exponent is a double.
    fn integer(&self, least: i128, most: i128) -> Result<i128, Wrong> {
        let number = match &self.value {
            Value::Number(number) => number,
            _ => return self.wrong("an integer"),
        };
        let n = match whole(number) {
            Some(n) => n,
            None => return self.wrong("an integer"),
        };
        if n < least || n > most {
            let text = format!("must be an integer from {least} to {most}");
            return Err(Wrong::new("range", text).at(&self.path));
        }
        Ok(n)
    }
}

fn whole(number: &Number) -> Option<i128> {
    if let Some(n) = number.as_i64() {
        return Some(n.into());
    }
    if let Some(n) = number.as_u64() {
        return Some(n.into());
    }
    let f = number.as_f64()?;
    if f.fract() == 0.0 {
        Some(f as i128) // beyond it: the nearest, which is out of every range
    } else {
        None
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
            let n = self.integer(<$type>::MIN as i128, <$type>::MAX as i128)?;
            visitor.$visit(n as $type).map_err(|e: Wrong| e.at(&self.path))
        }
    )*};
}

impl<'de> Deserializer<'de> for Node {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let Node { value, path } = self;
        match value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(b) => visitor.visit_bool(b),
            Value::Number(n) => match (n.as_u64(), n.as_i64()) {
                (Some(u), _) => visitor.visit_u64(u),
                (_, Some(i)) => visitor.visit_i64(i),
                _ => visitor.visit_f64(n.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(s) => visitor.visit_string(s),
            Value::Array(list) => visitor.visit_seq(Elements { items: list.into_iter(), index: 0, path: &path }),
            Value::Object(object) => visitor.visit_map(Members { items: object.into_iter(), value: None, path: &path }),
        }
        .map_err(|wrong: Wrong| wrong.at(&path))
    }

    integers! {
        deserialize_i8 visit_i8 i8
        deserialize_i16 visit_i16 i16
        deserialize_i32 visit_i32 i32
        deserialize_i64 visit_i64 i64
        deserialize_u8 visit_u8 u8
        deserialize_u16 visit_u16 u16
        deserialize_u32 visit_u32 u32
        deserialize_u64 visit_u64 u64
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let n = self.integer(i128::MIN, i128::MAX)?;
        visitor.visit_i128(n).map_err(|wrong: Wrong| wrong.at(&self.path))
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let n = self.integer(0, i128::MAX)?;
        visitor.visit_u128(n as u128).map_err(|wrong: Wrong| wrong.at(&self.path))
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.value.as_f64() {
            Some(f) => visitor.visit_f64(f).map_err(|wrong: Wrong| wrong.at(&self.path)),
            None => self.wrong("a number"),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if !self.value.is_boolean() {
            return self.wrong("true or false");
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if !self.value.is_string() {
            return self.wrong("a string");
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_string(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_string(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if self.value.is_null() {
            return visitor.visit_none().map_err(|wrong: Wrong| wrong.at(&self.path));
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if !self.value.is_array() {
            return self.wrong("a list");
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Wrong> {
        match &self.value {
            Value::Array(list) if list.len() != length => {
                Err(Wrong::new("length", format!("must be a list of {length}")).at(&self.path))
            }
            _ => self.deserialize_seq(visitor),
        }
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if !self.value.is_object() {
            return self.wrong("an object");
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let Node { value, path } = self;
        match value {
            Value::String(name) => visitor.visit_enum(Variant { name, content: None, path: &path }),
            Value::Object(object) if object.len() == 1 => match object.into_iter().next() {
                Some((name, content)) => visitor.visit_enum(Variant { name, content: Some(content), path: &path }),
                None => Err(Wrong::must_be("an object")),
            },
            _ => Err(Wrong::new("type", format!("must be one of {}", known.join(", ")))),
        }
        .map_err(|wrong: Wrong| wrong.at(&path))
    }

    serde::forward_to_deserialize_any! { bytes byte_buf unit unit_struct ignored_any }
}

struct Elements<'a> {
    items: std::vec::IntoIter<Value>,
    index: usize,
    path: &'a str,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        let value = match self.items.next() {
            Some(value) => value,
            None => return Ok(None),
        };
        let path = format!("{}[{}]", self.path, self.index);
        self.index += 1;
        seed.deserialize(Node { value, path: path.clone() }).map(Some).map_err(|wrong| wrong.at(&path))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Members<'a> {
    items: map::IntoIter,
    value: Option<(String, Value)>,
    path: &'a str,
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        let (name, value) = match self.items.next() {
            Some(item) => item,
            None => return Ok(None),
        };
        self.value = Some((below(self.path, &name), value));
        let key: StringDeserializer<Wrong> = name.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Wrong> {
        let (path, value) = match self.value.take() {
            Some(member) => member,
            None => return Err(Wrong::new("value", "is read in the wrong order")),
        };
        seed.deserialize(Node { value, path: path.clone() }).map_err(|wrong| wrong.at(&path))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Variant<'a> {
    name: String,
    content: Option<Value>,
    path: &'a str,
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Wrong;
    type Variant = Content;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content), Wrong> {
        let path = below(self.path, &self.name);
        let name: StringDeserializer<Wrong> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, Content { node: self.content.map(|value| Node { value, path }) }))
    }
}

struct Content {
    node: Option<Node>,
}

impl Content {
    fn node(self) -> Result<Node, Wrong> {
        self.node.ok_or_else(|| Wrong::must_be("an object with one field, which has what belongs to it"))
    }
}

impl<'de> VariantAccess<'de> for Content {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        match self.node {
            Some(node) if !node.value.is_null() => node.wrong("null"),
            _ => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Wrong> {
        seed.deserialize(self.node()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Wrong> {
        self.node()?.deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Wrong> {
        self.node()?.deserialize_map(visitor)
    }
}
