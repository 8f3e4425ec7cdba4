use std::fmt::{self, Display};
use std::net::IpAddr;
use std::str::FromStr;

use fullview_filter::address::Address;
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

impl FromStr for TableKey {
    type Err = TableKeyError;

    fn from_str(text: &str) -> Result<TableKey, TableKeyError> {
        let number = || text.parse().map(TableKey::Number);
        text.parse().map(TableKey::Address).or_else(|_| number()).map_err(|_| TableKeyError)
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
