//! Addresses as integers: `u32` and `u128` behind one small trait, so that IPv4 and IPv6 share one implementation.

use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use num_traits::{CheckedShr, PrimInt, Unsigned};

/// An address family, named as in the socket API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    Inet,
    /// IPv6.
    Inet6,
}

impl Family {
    /// `inet` or `inet6`, as logs and labels write it.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Inet => "inet",
            Family::Inet6 => "inet6",
        }
    }

    /// Finds the family of that name.
    pub fn named(name: &str) -> Option<Family> {
        [Family::Inet, Family::Inet6].into_iter().find(|family| family.name() == name)
    }
}

impl Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// An IP address in host byte order: the first bit on the wire is the most significant bit.
pub trait Address: PrimInt + Unsigned + CheckedShr + Hash + Debug + Default + Send + Sync + 'static {
    /// Bits in an address: 32 or 128.
    const BITS: u8;
    /// The family this integer stands for.
    const FAMILY: Family;
    /// The standard library's address type, used to parse and to print.
    type Ip: Display + std::str::FromStr + Into<IpAddr> + Copy;

    /// Converts to the standard library's type.
    fn to_ip(self) -> Self::Ip;
    /// Converts from the standard library's type.
    fn from_ip(ip: Self::Ip) -> Self;
    /// Converts an address of either family; `None` if it is not of this one.
    fn from_any(ip: IpAddr) -> Option<Self>;

    /// The mask whose `len` most significant bits are set; `len` above [`Self::BITS`] counts as all.
    fn mask(len: u8) -> Self {
        match len {
            0 => Self::zero(),
            len if len >= Self::BITS => Self::max_value(),
            len => Self::max_value() << usize::from(Self::BITS - len),
        }
    }

    /// The `width` bits that start `offset` bits from the most significant one, as an array index.
    /// Requires `offset + width <= BITS` and `1 <= width <= 32`.
    #[inline(always)]
    fn bits(self, offset: u8, width: u8) -> usize {
        let shifted = (self << usize::from(offset)) >> usize::from(Self::BITS - width);
        shifted.low_usize()
    }

    /// Converts the low bits to an index; the caller has shifted the others away.
    fn low_usize(self) -> usize;
}

impl Address for u32 {
    const BITS: u8 = 32;
    const FAMILY: Family = Family::Inet;
    type Ip = Ipv4Addr;

    fn to_ip(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self)
    }
    fn from_ip(ip: Ipv4Addr) -> u32 {
        ip.to_bits()
    }
    fn from_any(ip: IpAddr) -> Option<u32> {
        match ip {
            IpAddr::V4(ip) => Some(ip.to_bits()),
            IpAddr::V6(_) => None,
        }
    }
    #[inline(always)]
    fn low_usize(self) -> usize {
        self as usize
    }
}

impl Address for u128 {
    const BITS: u8 = 128;
    const FAMILY: Family = Family::Inet6;
    type Ip = Ipv6Addr;

    fn to_ip(self) -> Ipv6Addr {
        Ipv6Addr::from_bits(self)
    }
    fn from_ip(ip: Ipv6Addr) -> u128 {
        ip.to_bits()
    }
    fn from_any(ip: IpAddr) -> Option<u128> {
        match ip {
            IpAddr::V6(ip) => Some(ip.to_bits()),
            IpAddr::V4(_) => None,
        }
    }
    #[inline(always)]
    fn low_usize(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_cover_their_length_and_nothing_else() {
        assert_eq!(u32::mask(0), 0);
        assert_eq!(u32::mask(24), 0xffff_ff00);
        assert_eq!(u32::mask(32), u32::MAX);
        assert_eq!(u128::mask(1), 1 << 127);
        assert_eq!(u128::mask(128), u128::MAX);
    }

    #[test]
    fn bits_are_counted_from_the_wire_side() {
        assert_eq!(0xc633_6407u32.bits(0, 24), 0xc63364);
        assert_eq!(0xc633_6407u32.bits(24, 8), 7);
        assert_eq!((0x2001u128 << 112).bits(0, 16), 0x2001);
        assert_eq!(1u128.bits(120, 8), 1);
    }
}
