//! Entries of tables as operators write them: `192.0.2.0/24`, `!192.0.2.7` (pf), `192.0.2.0/24=5` (ipfw, with a value), and `80`
//! in a table of numbers.

use std::fmt::{self, Display};
use std::net::IpAddr;
use std::str::FromStr;

use super::entry::TableEntry;
use crate::address::Address;

/// Text that is no entry of a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{word}' is no address and no prefix: write one as in 192.0.2.1, 192.0.2.0/24 or 2001:db8::/32, an IPv4 address not as \
     IPv6 maps it{also}"
)]
pub struct TableEntryError {
    word: String,
    also: &'static str,
}

const NUMBERS: &str = ", or for a table of numbers one as in 80";

impl TableEntryError {
    fn of(text: &str, also: &'static str) -> Self {
        TableEntryError { word: crate::brief::brief(text), also }
    }
}

impl FromStr for TableEntry {
    type Err = TableEntryError;

    /// Bits behind the length become zero, as in pf and ipfw.
    fn from_str(text: &str) -> Result<TableEntry, TableEntryError> {
        let refused = || TableEntryError::of(text, NUMBERS);
        let (rest, negated) = text.strip_prefix('!').map_or((text, false), |rest| (rest, true));
        let (prefix, value) =
            rest.split_once('=').map_or((rest, None), |(prefix, value)| (prefix, Some(value)));
        if let Some(key) = number(prefix) {
            let value = value.map_or(Some(0), number).ok_or_else(refused)?;
            return Ok(TableEntry { negated, value, ..TableEntry::new(Address::number(key), 128) });
        }
        let (address, length) =
            prefix.split_once('/').map_or((prefix, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_| refused())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Some(longest), number).filter(|length| *length <= longest);
        let (length, value) =
            (length.ok_or_else(refused)?, value.map_or(Some(0), number).ok_or_else(refused)?);
        let entry = TableEntry::of_prefix(address, length).ok_or_else(refused)?;
        Ok(TableEntry { negated, value, ..entry })
    }
}

impl TableEntry {
    /// Reads an address or a prefix that stands for itself.
    ///
    /// # Errors
    /// Refuses numbers, exceptions and values too.
    pub fn prefix(text: &str) -> Result<TableEntry, TableEntryError> {
        let is_prefix = |entry: &TableEntry| {
            let plain = TableEntry::new(entry.address, entry.length);
            *entry == plain && entry.number().is_none()
        };
        let refused = || TableEntryError::of(text, "");
        text.parse().ok().filter(is_prefix).ok_or_else(refused)
    }
}

/// A number without a sign.
fn number<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl Display for TableEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.negated { "!" } else { "" })?;
        match self.number() {
            Some(number) => write!(f, "{number}")?,
            None => Address::fmt(&self.address, f)?,
        }
        if self.length < self.address.family().bits() {
            write!(f, "/{}", self.length)?;
        }
        if self.value > 0 { write!(f, "={}", self.value) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_and_written() {
        for (text, written) in [
            ("192.0.2.1", "192.0.2.1"),
            ("!192.0.2.7/28", "!192.0.2.0/28"),
            ("2001:db8::1/32", "2001:db8::/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("192.0.2.0/24=5", "192.0.2.0/24=5"),
            ("::/0", "::/0"),
            ("80", "80"),
            ("4294967295=7", "4294967295=7"),
        ] {
            assert_eq!(text.parse::<TableEntry>().unwrap().to_string(), written);
        }
        for text in [
            "",
            "!",
            "192.0.2",
            "192.0.2.1/33",
            "::/129",
            "192.0.2.1/",
            "192.0.2.1=",
            "host",
            "192.0.2.1/+8",
            "::ffff:1.2.3.4",
            "!::ffff:0:0/96",
            "4294967296",
            "80/32",
            "+80",
            "ffff:ffff:ffff:ffff:ffff:ffff:0:50",
        ] {
            let error = text.parse::<TableEntry>().unwrap_err().to_string();
            assert!(error.contains(&format!("'{text}'")) && error.contains("write one as in"), "{error}");
        }
        assert_eq!(TableEntry::prefix("192.0.2.1/24"), "192.0.2.0/24".parse());
        for text in ["80", "!192.0.2.1", "192.0.2.1=7", "host"] {
            assert!(TableEntry::prefix(text).is_err(), "{text}");
        }
    }
}
