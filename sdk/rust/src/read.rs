//! Reads a call strictly: no two readers of it see two things in it.

use crate::errors::{codes::INVALID_ARGUMENT, Failure};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{json, Map, Value};
use std::cell::RefCell;
use std::fmt;

/// The host takes inputs of 64 levels, and the object around them is one more.
const MAX_DEPTH: usize = 65;

pub(crate) struct Given {
    pub skill_id: String,
    pub trace_id: String,
    pub input: Value,
}

pub(crate) fn malformed() -> Failure {
    Failure::because(INVALID_ARGUMENT, "malformed", "standard input must be one JSON object in UTF-8: {\"input\": {…}}")
}

pub(crate) fn read_call(raw: &[u8]) -> Result<Given, Failure> {
    if depth(raw) > MAX_DEPTH {
        return Err(Failure::because(INVALID_ARGUMENT, "depth", "standard input is nested deeper than 65 levels"));
    }
    let twice = RefCell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(raw);
    let read = Strict(&twice).deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    let mut call = match read {
        Ok(Value::Object(call)) => call,
        Ok(_) => return Err(malformed()),
        Err(err) => {
            if let Some(key) = twice.take() {
                let key: String = key.chars().take(64).collect();
                return Err(Failure::new(INVALID_ARGUMENT, "standard input has a key twice in one object")
                    .with(json!({ "key": key, "reason": "duplicate" })));
            }
            // serde_json has no other way to tell.
            if err.to_string().starts_with("number out of range") {
                let message = "standard input has a number beyond the range of a double";
                return Err(Failure::because(INVALID_ARGUMENT, "range", message));
            }
            return Err(malformed());
        }
    };
    let mut name = |key: &str| match call.remove(key) {
        Some(Value::String(name)) => name,
        _ => String::new(),
    };
    let (skill_id, trace_id) = (name("skill_id"), name("trace_id"));
    match call.remove("input") {
        None => Err(Failure::invalid("input", "missing", "input: required")),
        Some(input @ Value::Object(_)) => Ok(Given { skill_id, trace_id, input }),
        Some(_) => Err(Failure::invalid("input", "type", "input: must be an object")),
    }
}

/// How deep the brackets of a text nest that need not be JSON.
fn depth(raw: &[u8]) -> usize {
    let (mut now, mut deepest, mut i) = (0_isize, 0, 0);
    while i < raw.len() {
        match raw[i] {
            b'"' => {
                i += 1;
                while i < raw.len() && raw[i] != b'"' {
                    i += if raw[i] == b'\\' { 2 } else { 1 };
                }
            }
            b'{' | b'[' => {
                now += 1;
                deepest = deepest.max(now);
            }
            b'}' | b']' => now -= 1,
            _ => {}
        }
        i += 1;
    }
    deepest as usize
}

/// A value whose objects have no key twice; the key that one has is left in the cell.
#[derive(Clone, Copy)]
struct Strict<'a>(&'a RefCell<Option<String>>);

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element_seed(self)? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                self.0.replace(Some(key));
                return Err(A::Error::custom("a key twice"));
            }
            object.insert(key, map.next_value_seed(self)?);
        }
        Ok(Value::Object(object))
    }
}
