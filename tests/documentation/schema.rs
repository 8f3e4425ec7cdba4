//! Finds every key that a type reads from TOML, by calling its `Deserialize` implementation.
//!
//! A [`Probe`] stands for a file that has only the key of interest. It follows a path into the type, records what the
//! type requests at its end, and then fails, so that no values are needed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, U64Deserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// The words that a key can have as its value; empty where it takes anything else.
pub type Words = &'static [&'static str];

/// Returns all keys of `T`, as `table.key`, `list[].key` and `map.NAME.key`. A table whose type occurred before is one key.
pub fn keys<T: DeserializeOwned>() -> BTreeMap<String, Words> {
    let mut walk = Walk { look: look::<T>, tables: Vec::new(), found: BTreeMap::new() };
    walk.below(&[], "");
    walk.found
}

#[derive(Clone, Copy)]
enum Step {
    Field(&'static str),
    /// Any entry of a map.
    Entry,
    /// Any item of a list.
    Item,
}

/// The form of the value that a type requests.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Table(Words),
    Map,
    List,
    Words(Words),
    Value,
}

struct Walk {
    look: fn(&[Step]) -> Shape,
    /// The fields of the tables that have occurred.
    tables: Vec<Words>,
    found: BTreeMap<String, Words>,
}

impl Walk {
    fn below(&mut self, path: &[Step], name: &str) {
        let step = |step| [path, &[step]].concat();
        match (self.look)(path) {
            Shape::Table(fields) if !self.tables.contains(&fields) => {
                self.tables.push(fields);
                let separator = if name.is_empty() { "" } else { "." };
                for field in fields {
                    self.below(&step(Step::Field(field)), &format!("{name}{separator}{field}"));
                }
            }
            Shape::Map => self.below(&step(Step::Entry), &format!("{name}.NAME")),
            Shape::List if matches!((self.look)(&step(Step::Item)), Shape::Table(_)) => {
                self.below(&step(Step::Item), &format!("{name}[]"));
            }
            Shape::Words(words) => self.insert(name, words),
            Shape::Table(_) | Shape::List | Shape::Value => self.insert(name, &[]),
        }
    }

    fn insert(&mut self, name: &str, words: Words) {
        self.found.insert(name.to_owned(), words);
    }
}

/// Returns the form of the value that `T` requests at `path`.
fn look<T: DeserializeOwned>(path: &[Step]) -> Shape {
    let seen = RefCell::new(Shape::Value);
    // It always fails: at the end of the path, or because other keys are missing.
    drop(T::deserialize(Probe { path, seen: &seen }));
    seen.into_inner()
}

#[derive(Clone, Copy)]
struct Probe<'a> {
    path: &'a [Step],
    seen: &'a RefCell<Shape>,
}

impl<'a> Probe<'a> {
    fn end<T>(self, shape: Shape) -> Result<T, Stop> {
        self.seen.replace(shape);
        Err(Stop::End)
    }

    fn next(self) -> Option<(Step, Probe<'a>)> {
        let (step, path) = self.path.split_first()?;
        Some((*step, Probe { path, ..self }))
    }

    fn table<'de, V: Visitor<'de>>(self, visitor: V, shape: Shape) -> Result<V::Value, Stop> {
        match self.next() {
            Some((Step::Field(field), below)) => visitor.visit_map(Entries::one(field, below)),
            Some((_, below)) => visitor.visit_map(Entries::one("NAME", below)),
            None => self.end(shape),
        }
    }
}

/// `toml::Spanned` requests its value in a table with this key.
const SPANNED: &str = "$__serde_spanned_private_value";

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Stop;

    /// The type requests a value, or a table as one of several forms. An unknown key makes a table's type name its fields.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        if !self.path.is_empty() {
            return self.table(visitor, Shape::Value);
        }
        match visitor.visit_map(Entries::one("?", self)) {
            Err(Stop::UnknownField(fields)) => self.end(Shape::Table(fields)),
            _ => self.end(Shape::Value),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: Words,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        if fields.contains(&SPANNED) {
            return visitor.visit_map(Entries::all(fields, self));
        }
        self.table(visitor, Shape::Table(fields))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.table(visitor, Shape::Map)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        match self.next() {
            Some((_, below)) => visitor.visit_seq(Items(below)),
            None => self.end(Shape::List),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: Words,
        _: V,
    ) -> Result<V::Value, Stop> {
        self.end(Shape::Words(variants))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple
        tuple_struct identifier ignored_any
    }
}

struct Items<'a>(Probe<'a>);

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Stop;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Stop> {
        seed.deserialize(self.0).map(Some)
    }
}

/// A table with these keys. Only the last has the value of interest; those before it are 0.
struct Entries<'a> {
    keys: std::vec::IntoIter<&'static str>,
    value: Probe<'a>,
}

impl<'a> Entries<'a> {
    fn one(key: &'static str, value: Probe<'a>) -> Self {
        Entries { keys: vec![key].into_iter(), value }
    }

    fn all(keys: Words, value: Probe<'a>) -> Self {
        Entries { keys: Vec::from(keys).into_iter(), value }
    }
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Stop;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Stop> {
        self.keys.next().map(|key| seed.deserialize(BorrowedStrDeserializer::new(key))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Stop> {
        if self.keys.len() > 0 {
            return seed.deserialize(U64Deserializer::new(0));
        }
        seed.deserialize(self.value)
    }
}

/// The reason for which deserialising ended.
#[derive(Debug)]
enum Stop {
    End,
    UnknownField(Words),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Stop {}

impl de::Error for Stop {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Stop::End
    }

    fn unknown_field(_: &str, expected: Words) -> Self {
        Stop::UnknownField(expected)
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[allow(dead_code)]
struct Sample {
    plain_text: String,
    number: Option<toml::Spanned<u16>>,
    list: Vec<Inner>,
    by_name: BTreeMap<String, Word>,
    again: Inner,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Inner {
    at: toml::Spanned<String>,
    pairs: Vec<[String; 2]>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Word {
    OneWord,
    Another,
}

#[test]
fn keys_of_all_kinds_are_found() {
    let found = keys::<Sample>();
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["again", "by-name.NAME", "list[].at", "list[].pairs", "number", "plain-text"]);
    assert_eq!(found["by-name.NAME"], ["one-word", "another"]);
}
