//! Addresses in rules.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::address::Family;

/// What a rule compares an address with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PfAddress {
    Any,
    Prefix(IpNet),
    /// Both ends belong to the range.
    Range(IpAddr, IpAddr),
    /// The name of a table.
    Table(String),
    /// The addresses that an interface has when the packet comes.
    Dynamic(InterfaceAddresses),
    NoRoute,
    UrpfFailed,
}

/// `(em0:network:0)/24`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceAddresses {
    pub interface: String,
    pub modifiers: InterfaceModifiers,
    /// The length of the prefix around each address, if it is not the address alone.
    pub length: Option<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InterfaceModifiers {
    pub part: Option<InterfacePart>,
    /// `:0`: without aliases.
    pub first_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterfacePart {
    Network,
    Broadcast,
    Peer,
}

impl PfAddress {
    /// The family of a literal address.
    pub fn family(&self) -> Option<Family> {
        match self {
            PfAddress::Prefix(prefix) => Some(family_of(prefix.addr())),
            PfAddress::Range(first, _) => Some(family_of(*first)),
            _ => None,
        }
    }

    /// A prefix, or any address if the prefix holds all of its family.
    pub fn prefix(prefix: IpNet) -> PfAddress {
        match prefix.prefix_len() {
            0 => PfAddress::Any,
            _ => PfAddress::Prefix(prefix.trunc()),
        }
    }
}

pub fn family_of(address: IpAddr) -> Family {
    match address {
        IpAddr::V4(_) => Family::Inet,
        IpAddr::V6(_) => Family::Inet6,
    }
}

/// An address of one end of a packet, or its opposite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PfHost {
    pub not: bool,
    pub address: PfAddress,
}

impl PfHost {
    pub const ANY: PfHost = PfHost { not: false, address: PfAddress::Any };
}

/// One end of a packet: its address and its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PfPeer {
    pub host: PfHost,
    pub port: Option<PortTest>,
}

impl PfPeer {
    pub const ANY: PfPeer = PfPeer { host: PfHost::ANY, port: None };
}

/// What a port, or the number of a user or group, is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberTest<T> {
    Equal(T),
    NotEqual(T),
    Less(T),
    LessOrEqual(T),
    Greater(T),
    GreaterOrEqual(T),
    /// `first:last`, with both.
    Range(T, T),
    /// `low><high`, without both.
    Inside(T, T),
    /// `low<>high`: below the low one or above the high one.
    Outside(T, T),
}

pub type PortTest = NumberTest<u16>;

/// `None` stands for `unknown`: no socket, or one whose owner cannot be found.
pub type OwnerTest = NumberTest<Option<u32>>;

impl<T: Ord + Copy> NumberTest<T> {
    pub fn accepts(&self, number: T) -> bool {
        match *self {
            NumberTest::Equal(one) => number == one,
            NumberTest::NotEqual(one) => number != one,
            NumberTest::Less(one) => number < one,
            NumberTest::LessOrEqual(one) => number <= one,
            NumberTest::Greater(one) => number > one,
            NumberTest::GreaterOrEqual(one) => number >= one,
            NumberTest::Range(first, last) => (first..=last).contains(&number),
            NumberTest::Inside(low, high) => low < number && number < high,
            NumberTest::Outside(low, high) => number < low || high < number,
        }
    }
}
