//! A family of measurements: every variant is measured in each of them.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A family of measurements. In TOML it is either a string or `{ name = "inet", title = "IPv4" }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Family {
    /// The name in the records and in the ministat labels.
    pub name: String,
    /// The title of the ministat block and the entry in the legend.
    pub title: String,
    /// What a rate of this family counts, if it is not [`super::Analysis::metric`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Where the family lies on the axis of the second graph, in which each variant is then a curve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TitledFamily {
    name: String,
    title: String,
    metric: Option<String>,
    at: Option<u64>,
}

// Not derived: an untagged enum would report every error at the start of the list instead of at its place.
impl<'de> Deserialize<'de> for Family {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FamilyVisitor)
    }
}

struct FamilyVisitor;

impl<'de> Visitor<'de> for FamilyVisitor {
    type Value = Family;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name such as \"inet\", or { name = \"inet\", title = \"IPv4\" }")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Family, E> {
        Ok(Family { name: name.into(), title: name.into(), metric: None, at: None })
    }

    fn visit_map<M: MapAccess<'de>>(self, table: M) -> Result<Family, M::Error> {
        let TitledFamily { name, title, metric, at } =
            TitledFamily::deserialize(MapAccessDeserializer::new(table))?;
        Ok(Family { name, title, metric, at })
    }
}
