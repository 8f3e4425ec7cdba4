use std::fmt::{self, Display};
use std::net::IpAddr;
use std::str::FromStr;

use fullview_filter::address::Address;
use fullview_filter::rule::TableKind;
use serde::{Deserialize, Serialize};

/// What is looked up in a table: an address, or a number in a table of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TableKey {
    Number(u32),
    Address(IpAddr),
}

/// Text that is neither an address nor a number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write an address as in 192.0.2.1 or 2001:db8::1, or for a table of numbers one as in 80")]
pub struct TableKeyError;

impl TableKey {
    /// The kind of tables that may contain it.
    pub fn kind(self) -> TableKind {
        match self {
            TableKey::Number(_) => TableKind::Numbers,
            TableKey::Address(_) => TableKind::Addresses,
        }
    }
}

impl FromStr for TableKey {
    type Err = TableKeyError;

    fn from_str(text: &str) -> Result<TableKey, TableKeyError> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let key = if is_number { text.parse().map(TableKey::Number).ok() } else { None };
        key.or_else(|| text.parse().map(TableKey::Address).ok()).ok_or(TableKeyError)
    }
}

impl Display for TableKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableKey::Number(number) => number.fmt(f),
            TableKey::Address(address) => address.fmt(f),
        }
    }
}

impl From<TableKey> for Address {
    fn from(key: TableKey) -> Address {
        match key {
            TableKey::Number(number) => Address::number(number),
            TableKey::Address(address) => address.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_written_as_text_and_as_json() {
        for (text, json) in [("80", "80"), ("192.0.2.1", "\"192.0.2.1\""), ("2001:db8::1", "\"2001:db8::1\"")]
        {
            let key: TableKey = text.parse().unwrap();
            assert_eq!((key.to_string(), serde_json::to_string(&key).unwrap()), (text.into(), json.into()));
            assert_eq!(serde_json::from_str::<TableKey>(json).unwrap(), key);
        }
        for text in ["", "+80", "4294967296", "192.0.2.0/24", "host"] {
            assert_eq!(text.parse::<TableKey>(), Err(TableKeyError), "{text}");
        }
        for json in ["\"80\"", "-1", "1.5", "4294967296", "null"] {
            assert!(serde_json::from_str::<TableKey>(json).is_err(), "{json}");
        }
    }
}
