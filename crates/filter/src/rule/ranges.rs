use crate::address::{Address, Family};

/// The index of a table in its rule set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u16);

/// Some addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressMatch {
    /// Both ends belong to it. Prefixes are ranges.
    Range(Address, Address),
    /// The address has the bits of the first where the second has ones.
    Mask(Address, Address),
    /// The table contains the address.
    Table(TableId),
    /// The table contains the address with this value.
    TableValue(TableId, u32),
}

impl AddressMatch {
    /// The addresses of a prefix, whose length counts in the prefix's own family.
    pub fn prefix(address: Address, length: u8) -> Self {
        let bits = match address.family() {
            Family::Inet => u32::from(length.min(32)) + u32::from(Address::MAPPED_BITS),
            Family::Inet6 => u32::from(length.min(128)),
        };
        let host = u128::MAX.checked_shr(bits).unwrap_or(0);
        AddressMatch::Range(Address(address.0 & !host), Address(address.0 | host))
    }

    /// One address.
    pub fn single(address: Address) -> Self {
        AddressMatch::Range(address, address)
    }
}

/// Ports from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    pub first: u16,
    pub last: u16,
}

impl PortRange {
    pub const fn single(port: u16) -> Self {
        PortRange { first: port, last: port }
    }

    #[inline]
    pub const fn contains(self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }
}

/// A set of byte values: protocols, or types of ICMP messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    #[inline]
    pub const fn contains(&self, value: u8) -> bool {
        self.0[(value >> 6) as usize] >> (value & 63) & 1 == 1
    }

    pub fn insert(&mut self, value: u8) {
        self.0[usize::from(value >> 6)] |= 1 << (value & 63);
    }
}

impl FromIterator<u8> for ByteSet {
    fn from_iter<I: IntoIterator<Item = u8>>(values: I) -> Self {
        let mut set = ByteSet::default();
        values.into_iter().for_each(|value| set.insert(value));
        set
    }
}

/// Interfaces by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceSet(Vec<u16>);

impl InterfaceSet {
    #[inline]
    pub fn contains(&self, interface: u16) -> bool {
        self.0.contains(&interface)
    }

    /// The numbers in ascending order.
    pub fn numbers(&self) -> &[u16] {
        &self.0
    }
}

impl FromIterator<u16> for InterfaceSet {
    fn from_iter<I: IntoIterator<Item = u16>>(interfaces: I) -> Self {
        let mut numbers: Vec<_> = interfaces.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        InterfaceSet(numbers)
    }
}
