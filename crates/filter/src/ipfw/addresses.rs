//! Addresses, ports and protocols of rules.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::ast::{IpfwAddress, IpfwPorts, IpfwProtocol, IpfwTerm};
use super::codes;
use super::words::{Parsed, Words};

/// Reads one term, or several between braces with `or`, each perhaps after `not`.
pub(super) fn or_block<T>(
    words: &mut Words<'_>,
    mut one: impl FnMut(&mut Words<'_>) -> Parsed<T>,
) -> Parsed<Vec<IpfwTerm<T>>> {
    let braces = words.take("{");
    let mut terms = Vec::new();
    loop {
        let negated = words.take("not");
        terms.push(IpfwTerm { negated, value: one(words)? });
        if !braces {
            return Ok(terms);
        }
        if words.take("}") {
            return Ok(terms);
        }
        words.expect("or")?;
    }
}

pub(super) fn protocol(words: &mut Words<'_>) -> Parsed<IpfwProtocol> {
    let word = words.need("a protocol")?;
    known_protocol(word).ok_or_else(|| {
        words.error(format!(
            "`{word}` is no protocol; write ip, ip4, ip6, a name such as tcp, or a number up to 255"
        ))
    })
}

pub(super) fn known_protocol(word: &str) -> Option<IpfwProtocol> {
    Some(match word {
        "ip" | "all" | "any" => IpfwProtocol::Any,
        "ip4" | "ipv4" => IpfwProtocol::Ip4,
        "ip6" | "ipv6" => IpfwProtocol::Ip6,
        _ => IpfwProtocol::Number(codes::protocol(word)?),
    })
}

/// A list of addresses with commas between them. Commas between braces belong to a set of last bytes.
pub(super) fn list(words: &mut Words<'_>) -> Parsed<Vec<IpfwAddress>> {
    let mut text = words.need("an address")?.to_owned();
    // `table(1, 2)` and `1.2.3.0/24{1, 2}` may hold blanks, and blanks may stand after commas.
    while text.ends_with(',') || is_open(&text) {
        text += words.need("the rest of the list")?;
    }
    split(&text).into_iter().map(|item| address(words, item)).collect()
}

fn is_open(text: &str) -> bool {
    text.matches(['(', '{']).count() > text.matches([')', '}']).count()
}

/// Splits at the commas outside of parentheses and braces.
fn split(text: &str) -> Vec<&str> {
    let (mut items, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&text[start..]);
    items
}

fn address(words: &Words<'_>, text: &str) -> Parsed<IpfwAddress> {
    let read = match text {
        "any" => Some(IpfwAddress::Any),
        "me" => Some(IpfwAddress::Me),
        "me6" => Some(IpfwAddress::Me6),
        _ if text.starts_with("table(") => table(text),
        _ if text.ends_with('}') => set(text),
        _ => inet(text).or_else(|| inet6(text)),
    };
    read.ok_or_else(|| {
        words.error(format!(
            "`{text}` is no address; write any, me, me6, table(NAME), 192.0.2.0/24, 192.0.2.0:255.255.255.0, \
             192.0.2.0/24{{1,5-9}} or 2001:db8::/32 (names of hosts are not resolved)"
        ))
    })
}

fn table(text: &str) -> Option<IpfwAddress> {
    let inner = text.strip_prefix("table(")?.strip_suffix(')')?;
    let (name, value) = match inner.split_once(',') {
        None => (inner, None),
        Some((name, value)) => (name, Some(table_value(value.trim())?)),
    };
    (!name.is_empty()).then(|| IpfwAddress::Table(name.to_owned(), value))
}

/// The value of a table's entry: a number, or an IPv4 address that stands for one.
pub(super) fn table_value(text: &str) -> Option<u32> {
    text.parse().ok().or_else(|| text.parse::<Ipv4Addr>().ok().map(Ipv4Addr::to_bits))
}

fn inet(text: &str) -> Option<IpfwAddress> {
    if let Some((address, mask)) = text.split_once([':', '&']) {
        return Some(masked(address.parse().ok()?, mask.parse().ok()?));
    }
    let (address, length) = prefix(text, 32)?;
    let IpAddr::V4(address) = address else { return None };
    Some(masked(address, Ipv4Addr::from_bits(inet_mask(length))))
}

fn masked(address: Ipv4Addr, mask: Ipv4Addr) -> IpfwAddress {
    IpfwAddress::Inet(address & mask, mask)
}

fn inet6(text: &str) -> Option<IpfwAddress> {
    let (address, length) = prefix(text, 128)?;
    let IpAddr::V6(address) = address else { return None };
    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
    Some(IpfwAddress::Inet6(Ipv6Addr::from_bits(address.to_bits() & mask), length))
}

pub(super) fn inet_mask(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

/// An address with a length of at most `most`, which is the default.
pub(super) fn prefix(text: &str, most: u8) -> Option<(IpAddr, u8)> {
    let (address, length) = match text.split_once('/') {
        None => (text, most),
        Some((address, length)) => (address, length.parse().ok().filter(|length| *length <= most)?),
    };
    let address: IpAddr = address.parse().ok()?;
    (address.is_ipv4() == (most == 32)).then_some((address, length))
}

/// `192.0.2.0/24{1,5-9}`: the network must hold at most 256 addresses.
fn set(text: &str) -> Option<IpfwAddress> {
    let (network, bytes) = text.strip_suffix('}')?.split_once('{')?;
    let (IpAddr::V4(network), length @ 24..) = prefix(network, 32)? else { return None };
    let ranges = bytes.split(',').map(|range| byte_range(range.trim())).collect::<Option<_>>()?;
    let network = Ipv4Addr::from_bits(network.to_bits() & inet_mask(length));
    Some(IpfwAddress::InetSet(network, length, ranges))
}

fn byte_range(text: &str) -> Option<(u8, u8)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((first, last))
}

/// Whether a word looks like ports and not like an option or an address: it begins with a digit or is a service.
pub(super) fn are_ports(word: &str) -> bool {
    ranges(word, codes::port).is_some()
}

pub(super) fn ports(words: &mut Words<'_>) -> Parsed<IpfwPorts> {
    numbers(words, codes::port, "ports: numbers, services or ranges, with commas between them")
}

/// Ranges of plain numbers.
pub(super) fn plain_numbers(words: &mut Words<'_>, what: &str) -> Parsed<IpfwPorts> {
    numbers(words, |word| word.parse().ok(), what)
}

fn numbers(words: &mut Words<'_>, known: fn(&str) -> Option<u16>, what: &str) -> Parsed<IpfwPorts> {
    let mut text = words.need(what)?.to_owned();
    while text.ends_with(',') {
        text += words.need("the rest of the list")?;
    }
    ranges(&text, known).ok_or_else(|| words.error(format!("`{text}` are no {what}")))
}

fn ranges(text: &str, known: fn(&str) -> Option<u16>) -> Option<IpfwPorts> {
    text.split(',').map(|item| range(item, known)).collect()
}

/// A number, or two with a minus; a service's name may contain a minus itself, also one after a backslash.
fn range(item: &str, known: fn(&str) -> Option<u16>) -> Option<(u16, u16)> {
    if let Some(one) = known(item) {
        return Some((one, one));
    }
    let (first, last) = item.split_once('-')?;
    let (first, last) = (known(first)?, known(last)?);
    (first <= last).then_some((first, last))
}
