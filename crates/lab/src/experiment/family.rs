//! A series every variant is measured in: a name for the records and a title for the report.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A family of measurements. In TOML either a plain string, or `{ name = "inet", title = "IPv4" }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Family {
    /// Stands in the records and in the ministat labels.
    pub name: String,
    /// Stands above the ministat block and in the legend.
    pub title: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Titled {
    name: String,
    title: String,
}

// By hand, because an untagged enum would report every mistake at the start of the list instead of at its place.
impl<'de> Deserialize<'de> for Family {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

struct Written;

impl<'de> Visitor<'de> for Written {
    type Value = Family;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name such as \"inet\", or { name = \"inet\", title = \"IPv4\" }")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Family, E> {
        Ok(Family { name: name.into(), title: name.into() })
    }

    fn visit_map<M: MapAccess<'de>>(self, table: M) -> Result<Family, M::Error> {
        let Titled { name, title } = Titled::deserialize(MapAccessDeserializer::new(table))?;
        Ok(Family { name, title })
    }
}
