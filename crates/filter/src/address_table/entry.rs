use std::net::IpAddr;

use crate::address::{Address, Family};

/// A prefix of a table, with what ipfw or pf say about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableEntry {
    pub address: Address,
    /// The length, counted in the prefix's own family.
    pub length: u8,
    /// The addresses of this prefix do not belong to the table (pf).
    pub negated: bool,
    /// The value of the entry (ipfw).
    pub value: u32,
}

impl TableEntry {
    /// An entry with value zero.
    pub const fn new(address: Address, length: u8) -> Self {
        TableEntry { address, length, negated: false, value: 0 }
    }

    /// The entry of a prefix, without the bits behind its length; `None` for an address of IPv4 as IPv6 maps it, and for one that
    /// stands for a number.
    pub fn of_prefix(address: IpAddr, length: u8) -> Option<Self> {
        let entry = TableEntry::new(address.into(), length).masked();
        (address.to_canonical() == address && entry.number().is_none()).then_some(entry)
    }

    /// The entry without the bits behind its length.
    pub fn masked(self) -> Self {
        TableEntry { address: self.ends().0, ..self }
    }

    /// The number that it is an entry for, in a table of numbers.
    pub fn number(&self) -> Option<u32> {
        let number = self.address.0 as u32;
        (self.length == 128 && self.address == Address::number(number)).then_some(number)
    }

    /// The first and the last address.
    pub fn ends(&self) -> (Address, Address) {
        let width = self.address.family().bits();
        let bits = Family::Inet6.bits() - width + self.length.min(width);
        let host = u128::MAX.checked_shr(u32::from(bits)).unwrap_or(0);
        (Address(self.address.0 & !host), Address(self.address.0 | host))
    }
}
