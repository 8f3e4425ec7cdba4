//! Addresses, ports and owners of sockets.

use std::fmt::{Display, Formatter, Result, Write};

use ipnet::IpNet;

use crate::pf::address::{
    InterfaceAddresses, InterfaceModifiers, InterfacePart, NumberTest, OwnerTest, PfAddress, PfHost, PfPeer,
    PortTest,
};
use crate::pf::config::PfTableEntry;
use crate::pf::names::services;

/// A prefix, without its length if it holds one address.
pub fn prefix(out: &mut Formatter<'_>, prefix: &IpNet) -> Result {
    if prefix.prefix_len() == prefix.max_prefix_len() {
        return prefix.addr().fmt(out);
    }
    prefix.fmt(out)
}

impl Display for PfAddress {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            PfAddress::Any => out.write_str("any"),
            PfAddress::Prefix(one) => prefix(out, one),
            PfAddress::Range(first, last) => write!(out, "{first} - {last}"),
            PfAddress::Table(name) => write!(out, "<{name}>"),
            PfAddress::Dynamic(addresses) => addresses.fmt(out),
            PfAddress::NoRoute => out.write_str("no-route"),
            PfAddress::UrpfFailed => out.write_str("urpf-failed"),
        }
    }
}

impl Display for InterfaceAddresses {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "({}{})", self.interface, self.modifiers)?;
        self.length.map_or(Ok(()), |length| write!(out, "/{length}"))
    }
}

impl Display for InterfaceModifiers {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(match self.part {
            None => "",
            Some(InterfacePart::Network) => ":network",
            Some(InterfacePart::Broadcast) => ":broadcast",
            Some(InterfacePart::Peer) => ":peer",
        })?;
        out.write_str(if self.first_only { ":0" } else { "" })
    }
}

impl Display for PfHost {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "{}{}", if self.not { "! " } else { "" }, self.address)
    }
}

impl Display for PfTableEntry {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(if self.not { "!" } else { "" })?;
        prefix(out, &self.prefix)
    }
}

/// Both ends, or `all` if there is nothing to say of them.
pub fn from_to(
    out: &mut impl Write,
    from: &PfPeer,
    os: Option<&str>,
    to: &PfPeer,
    protocol: Option<u8>,
) -> Result {
    if *from == PfPeer::ANY && *to == PfPeer::ANY && os.is_none() {
        return out.write_str(" all");
    }
    write!(out, " from {}", from.host)?;
    port(out, from.port, protocol)?;
    if let Some(os) = os {
        write!(out, " os \"{os}\"")?;
    }
    write!(out, " to {}", to.host)?;
    port(out, to.port, protocol)
}

fn port(out: &mut impl Write, test: Option<PortTest>, protocol: Option<u8>) -> Result {
    let Some(test) = test else { return Ok(()) };
    let name = |port: u16| services::name(port, protocol).map_or_else(|| port.to_string(), str::to_owned);
    out.write_str(" port")?;
    comparison(out, test, name, |port| port.to_string())
}

/// The number of a user or group.
pub fn owner(out: &mut impl Write, word: &str, test: Option<OwnerTest>) -> Result {
    let Some(test) = test else { return Ok(()) };
    let name = |owner: Option<u32>| owner.map_or_else(|| "unknown".to_owned(), |number| number.to_string());
    write!(out, " {word}")?;
    comparison(out, test, name, name)
}

/// An operator and its operands, of which those of `=` and `!=` may have names.
fn comparison<T>(
    out: &mut impl Write,
    test: NumberTest<T>,
    name: impl Fn(T) -> String,
    number: impl Fn(T) -> String,
) -> Result {
    match test {
        NumberTest::Equal(one) => write!(out, " = {}", name(one)),
        NumberTest::NotEqual(one) => write!(out, " != {}", name(one)),
        NumberTest::Less(one) => write!(out, " < {}", number(one)),
        NumberTest::LessOrEqual(one) => write!(out, " <= {}", number(one)),
        NumberTest::Greater(one) => write!(out, " > {}", number(one)),
        NumberTest::GreaterOrEqual(one) => write!(out, " >= {}", number(one)),
        NumberTest::Range(first, last) => write!(out, " {}:{}", number(first), number(last)),
        NumberTest::Inside(low, high) => write!(out, " {} >< {}", number(low), number(high)),
        NumberTest::Outside(low, high) => write!(out, " {} <> {}", number(low), number(high)),
    }
}
