//! How long a campaign is: a number of blocks, or until every comparison is decided.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// When a campaign ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Runs {
    /// When every comparison is decided, or a limit is reached.
    #[default]
    UntilDecided,
    /// After so many blocks.
    Blocks(u32),
}

const UNTIL_DECIDED: &str = "until decided";

impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Runs::UntilDecided => f.write_str(UNTIL_DECIDED),
            Runs::Blocks(blocks) => blocks.fmt(f),
        }
    }
}

impl Serialize for Runs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Runs::UntilDecided => serializer.serialize_str(UNTIL_DECIDED),
            Runs::Blocks(blocks) => serializer.serialize_u32(*blocks),
        }
    }
}

// Not derived, because an untagged enum would not say what is expected.
impl<'de> Deserialize<'de> for Runs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RunsVisitor)
    }
}

struct RunsVisitor;

impl Visitor<'_> for RunsVisitor {
    type Value = Runs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number of blocks, or \"{UNTIL_DECIDED}\"")
    }

    fn visit_i64<E: Error>(self, blocks: i64) -> Result<Runs, E> {
        let refused = |_| E::invalid_value(Unexpected::Signed(blocks), &self);
        u32::try_from(blocks).map(Runs::Blocks).map_err(refused)
    }

    fn visit_u64<E: Error>(self, blocks: u64) -> Result<Runs, E> {
        let refused = |_| E::invalid_value(Unexpected::Unsigned(blocks), &self);
        u32::try_from(blocks).map(Runs::Blocks).map_err(refused)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Runs, E> {
        let refused = || E::invalid_value(Unexpected::Str(text), &self);
        (text == UNTIL_DECIDED).then_some(Runs::UntilDecided).ok_or_else(refused)
    }
}
