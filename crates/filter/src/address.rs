//! Addresses of both families as one number.

use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The version of the Internet Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Family {
    Inet,
    Inet6,
}

impl Family {
    /// How many bits an address has.
    pub const fn bits(self) -> u8 {
        match self {
            Family::Inet => 32,
            Family::Inet6 => 128,
        }
    }
}

/// An address. IPv4 addresses are IPv4-mapped (`::ffff:0:0/96`), which no IPv6 packet may carry on the wire (RFC 4038,
/// section 4.2); the parser refuses those that do, so a number stands for one address only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub u128);

/// The bits above an IPv4 address.
const MAPPED: u128 = 0xffff << 32;

/// The bits above a number.
const NUMBERS: u128 = u128::MAX << 32;

impl Address {
    /// The bits in front of an IPv4 prefix.
    pub const MAPPED_BITS: u8 = 96;

    /// The family, which a number alone decides.
    #[inline]
    pub const fn family(self) -> Family {
        if self.0 >> 32 == 0xffff { Family::Inet } else { Family::Inet6 }
    }

    /// A number in a table of numbers. It is none of the addresses that hosts have: those above it are multicast of a reserved scope
    /// (RFC 7346, section 2).
    #[inline]
    pub const fn number(number: u32) -> Self {
        Address(NUMBERS | number as u128)
    }

    /// The IPv4 address of these bits.
    #[inline]
    pub const fn inet(bits: u32) -> Self {
        Address(MAPPED | bits as u128)
    }
}

impl From<Ipv4Addr> for Address {
    fn from(address: Ipv4Addr) -> Self {
        Address::inet(address.to_bits())
    }
}

impl From<Ipv6Addr> for Address {
    fn from(address: Ipv6Addr) -> Self {
        Address(address.to_bits())
    }
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => address.into(),
        }
    }
}

impl From<Address> for IpAddr {
    fn from(address: Address) -> Self {
        match address.family() {
            Family::Inet => Ipv4Addr::from_bits(address.0 as u32).into(),
            Family::Inet6 => Ipv6Addr::from_bits(address.0).into(),
        }
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        IpAddr::from(*self).fmt(f)
    }
}
