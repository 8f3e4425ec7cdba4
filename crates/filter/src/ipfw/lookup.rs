//! The option `lookup`: what is looked up in a table.

use std::fmt::{self, Display, Formatter};
use std::net::{Ipv4Addr, Ipv6Addr};

use super::ast::IpfwKey;
use super::words::{Parsed, Words};
use crate::address::{Address, Family};
use crate::rule::{AddressMatch, LookupKey, Side, TableId, Test};

const KEYS: &str = "src-ip, dst-ip, src-ip4, dst-ip4, src-ip6, dst-ip6, src-port, dst-port, dscp and rulenum";

/// Reads what is looked up, perhaps with a mask behind a colon.
pub(super) fn key(words: &mut Words<'_>) -> Parsed<IpfwKey> {
    let word = words.need("what is looked up")?;
    let (name, mask) = word.split_once(':').map_or((word, None), |(name, mask)| (name, Some(mask)));
    let wrong_mask = |what: &str| words.error(format!("`{word}` has no mask; write {what} behind the colon"));
    let inet = |side| match mask.map_or(Ok(Ipv4Addr::BROADCAST), str::parse) {
        Ok(mask) => Ok(IpfwKey::Ip4(side, mask)),
        Err(_) => Err(wrong_mask("a mask such as 255.255.255.0")),
    };
    let inet6 = |side| match mask.map_or(Ok(Ipv6Addr::from_bits(u128::MAX)), str::parse) {
        Ok(mask) => Ok(IpfwKey::Ip6(side, mask)),
        Err(_) => Err(wrong_mask("a mask such as ffff:ffff::")),
    };
    let number = || match mask.map_or(Some(u32::MAX), number) {
        Some(mask) => Ok(mask),
        None => Err(wrong_mask("a number such as 255 or 0xff")),
    };
    match name {
        "src-ip" | "dst-ip" if mask.is_some() => {
            Err(words
                .error(format!("`{word}` is not supported; an address has a mask as {name}4 or {name}6")))
        }
        "src-ip" => Ok(IpfwKey::Ip(Side::Source)),
        "dst-ip" => Ok(IpfwKey::Ip(Side::Destination)),
        "src-ip4" => inet(Side::Source),
        "dst-ip4" => inet(Side::Destination),
        "src-ip6" => inet6(Side::Source),
        "dst-ip6" => inet6(Side::Destination),
        "src-port" => number().map(|mask| IpfwKey::Port(Side::Source, mask)),
        "dst-port" => number().map(|mask| IpfwKey::Port(Side::Destination, mask)),
        "dscp" => number().map(IpfwKey::Dscp),
        "rulenum" => number().map(IpfwKey::RuleNumber),
        other => Err(words.error(format!("`lookup {other}` is not supported; {KEYS} are"))),
    }
}

fn number(text: &str) -> Option<u32> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u32::from_str_radix(digits, radix).ok())?
}

impl IpfwKey {
    /// The compiled form, in a rule with this number.
    pub(super) fn test(self, rule: u16, table: TableId) -> Test {
        let key = match self {
            IpfwKey::Ip(Side::Source) => return Test::Source(AddressMatch::Table(table)),
            IpfwKey::Ip(Side::Destination) => return Test::Destination(AddressMatch::Table(table)),
            // The mask keeps the bits that say that an address is one of IPv4.
            IpfwKey::Ip4(side, mask) => {
                LookupKey::Address(side, Family::Inet, Address(u128::MAX << 32 | u128::from(mask.to_bits())))
            }
            IpfwKey::Ip6(side, mask) => LookupKey::Address(side, Family::Inet6, mask.into()),
            IpfwKey::Port(side, mask) => LookupKey::Port(side, mask),
            IpfwKey::Dscp(mask) => LookupKey::Dscp(mask),
            IpfwKey::RuleNumber(mask) => LookupKey::Number(u32::from(rule) & mask),
        };
        Test::Lookup(key, table)
    }
}

impl Display for IpfwKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let end = |side: &Side| side.of(("src", "dst"));
        match self {
            IpfwKey::Ip(side) => write!(f, "{}-ip", end(side)),
            IpfwKey::Ip4(side, Ipv4Addr::BROADCAST) => write!(f, "{}-ip4", end(side)),
            IpfwKey::Ip4(side, mask) => write!(f, "{}-ip4:{mask}", end(side)),
            IpfwKey::Ip6(side, mask) if mask.to_bits() == u128::MAX => write!(f, "{}-ip6", end(side)),
            IpfwKey::Ip6(side, mask) => write!(f, "{}-ip6:{mask}", end(side)),
            IpfwKey::Port(side, mask) => write!(f, "{}-port{}", end(side), shown(*mask)),
            IpfwKey::Dscp(mask) => write!(f, "dscp{}", shown(*mask)),
            IpfwKey::RuleNumber(mask) => write!(f, "rulenum{}", shown(*mask)),
        }
    }
}

/// A mask of a number behind its colon, if it has zeros.
fn shown(mask: u32) -> String {
    if mask == u32::MAX { String::new() } else { format!(":{mask:#x}") }
}
