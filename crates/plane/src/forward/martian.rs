//! Addresses that no router forwards from or to (RFC 1812, sections 4.2.2.11 and 5.3.7; RFC 6890; RFC 4291).
//!
//! Only what cannot be right on any network is here: "this network", loopback, multicast and reserved sources, and
//! addresses that mean something on one link only. What is merely not announced on the Internet (private,
//! documentation, benchmarking, discard-only) is for the table to say: a router in a lab forwards all of them.

use fullview_table::Address;

use crate::verdict::{Punt, Reason, Verdict};

/// What the first byte of an address says.
type FirstByte = [bool; 256];

/// First bytes of IPv4 addresses that need a closer look.
static INET_SUSPECT: FirstByte = {
    let mut table = [false; 256];
    table[0] = true;
    table[127] = true;
    table[169] = true;
    let mut byte = 224;
    while byte < 256 {
        table[byte] = true;
        byte += 1;
    }
    table
};

/// First bytes of IPv6 addresses that need a closer look: ::/8, fe00::/8, ff00::/8.
static INET6_SUSPECT: FirstByte = {
    let mut table = [false; 256];
    table[0x00] = true;
    table[0xfe] = true;
    table[0xff] = true;
    table
};

/// Whether one of the addresses might be a martian. Two loads and no branch; false for nearly all packets.
#[inline(always)]
pub(super) fn inet_suspect(source: u32, destination: u32) -> bool {
    INET_SUSPECT[(source >> 24) as usize] | INET_SUSPECT[(destination >> 24) as usize]
}

/// As [`inet_suspect`], for IPv6.
#[inline(always)]
pub(super) fn inet6_suspect(source: u128, destination: u128) -> bool {
    INET6_SUSPECT[(source >> 120) as usize] | INET6_SUSPECT[(destination >> 120) as usize]
}

/// What an address names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// One host anywhere.
    Unicast,
    /// No host.
    Martian,
    /// One host on this link.
    LinkLocal,
    /// All hosts on this link.
    Broadcast,
    /// A group on this link or in this host.
    LinkGroup,
    /// A group anywhere.
    Group,
}

/// Addresses that agree in the bits of a mask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressBlock<A> {
    value: A,
    mask: A,
    scope: Scope,
}

const fn inet_block(value: u32, len: u32, scope: Scope) -> AddressBlock<u32> {
    AddressBlock { value, mask: u32::MAX << (32 - len), scope }
}

const fn inet6_block(value: u128, len: u32, scope: Scope) -> AddressBlock<u128> {
    AddressBlock { value, mask: u128::MAX << (128 - len), scope }
}

/// An IPv6 multicast scope, whatever the flags of the group (RFC 4291, section 2.7).
const fn multicast_scope(number: u128, scope: Scope) -> AddressBlock<u128> {
    AddressBlock { value: (0xff00 | number) << 112, mask: 0xff0f << 112, scope }
}

/// Blocks of IPv4; of those that hold an address the first one counts.
pub(crate) const INET_BLOCKS: &[AddressBlock<u32>] = &[
    inet_block(0xffff_ffff, 32, Scope::Broadcast),
    inet_block(0x0000_0000, 8, Scope::Martian),
    inet_block(0x7f00_0000, 8, Scope::Martian),
    inet_block(0xf000_0000, 4, Scope::Martian),
    inet_block(0xa9fe_0000, 16, Scope::LinkLocal),
    inet_block(0xe000_0000, 24, Scope::LinkGroup),
    inet_block(0xe000_0000, 4, Scope::Group),
];

/// Blocks of IPv6; of those that hold an address the first one counts.
pub(crate) const INET6_BLOCKS: &[AddressBlock<u128>] = &[
    multicast_scope(1, Scope::LinkGroup),
    multicast_scope(2, Scope::LinkGroup),
    inet6_block(0xff << 120, 8, Scope::Group),
    inet6_block(0xfe80 << 112, 10, Scope::LinkLocal),
    // Unspecified, loopback, and IPv4-mapped addresses, which no packet carries.
    inet6_block(0, 128, Scope::Martian),
    inet6_block(1, 128, Scope::Martian),
    inet6_block(0xffff << 32, 96, Scope::Martian),
];

fn scope<'b, A: Address>(mut blocks: impl Iterator<Item = &'b AddressBlock<A>>, addr: A) -> Scope {
    blocks.find(|block| addr & block.mask == block.value).map_or(Scope::Unicast, |block| block.scope)
}

/// What the addresses of an IPv4 packet decide; `None` leaves the packet to the table. If not `strict`, the table also
/// decides about martians.
pub fn inet(source: u32, destination: u32, strict: bool) -> Option<Verdict> {
    judge_by(|| INET_BLOCKS.iter(), source, destination, strict)
}

/// As [`inet`], for IPv6.
pub fn inet6(source: u128, destination: u128, strict: bool) -> Option<Verdict> {
    judge_by(|| INET6_BLOCKS.iter(), source, destination, strict)
}

/// As [`inet`], by other blocks.
pub(crate) fn judge_by<'b, A: Address, B: Iterator<Item = &'b AddressBlock<A>>>(
    blocks: impl Fn() -> B,
    source: A,
    destination: A,
    strict: bool,
) -> Option<Verdict> {
    judge(scope(blocks(), source), scope(blocks(), destination), strict)
}

/// What stays on the link comes first: neighbour discovery and DHCP talk to its groups from no address.
fn judge(source: Scope, destination: Scope, strict: bool) -> Option<Verdict> {
    match (source, destination) {
        (_, Scope::LinkGroup) => Some(Verdict::Punt(Punt::LinkMulticast)),
        (_, Scope::Broadcast) => Some(Verdict::Punt(Punt::Broadcast)),
        (Scope::Group | Scope::LinkGroup | Scope::Broadcast, _) => Some(Verdict::Drop(Reason::MartianSource)),
        (Scope::Martian, _) if strict => Some(Verdict::Drop(Reason::MartianSource)),
        (_, Scope::Martian) if strict => Some(Verdict::Drop(Reason::MartianDestination)),
        (_, Scope::Group) => Some(Verdict::Punt(Punt::Multicast)),
        (Scope::LinkLocal, _) | (_, Scope::LinkLocal) => Some(Verdict::Punt(Punt::LinkLocal)),
        (Scope::Unicast | Scope::Martian, Scope::Unicast | Scope::Martian) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    /// A suspicion may be wrong, its absence may not.
    #[test]
    fn no_judged_address_escapes_suspicion() {
        let good = 0xc612_0001;
        for bits in (0..=u32::MAX).step_by(0x0000_ffff) {
            assert!(inet(bits, good, true).is_none() || inet_suspect(bits, good), "{bits:#x}");
            assert!(inet(good, bits, true).is_none() || inet_suspect(good, bits), "{bits:#x}");
        }
        let good = 0x2001_0002u128 << 96;
        for top in 0..=u128::from(u16::MAX) {
            let bits = top << 112 | 5;
            assert!(inet6(bits, good, true).is_none() || inet6_suspect(bits, good), "{bits:#x}");
            assert!(inet6(good, bits, true).is_none() || inet6_suspect(good, bits), "{bits:#x}");
        }
    }

    #[test]
    fn edges_of_the_ranges() {
        let verdict = |text: &str| inet(0xc612_0001, text.parse::<Ipv4Addr>().unwrap().to_bits(), true);
        for good in
            ["1.0.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "223.255.255.255"]
        {
            assert_eq!(verdict(good), None, "{good}");
        }
        for bad in ["0.0.0.0", "0.255.255.255", "127.0.0.0", "240.0.0.0", "255.255.255.254"] {
            assert_eq!(verdict(bad), Some(Verdict::Drop(Reason::MartianDestination)), "{bad}");
        }
        assert_eq!(verdict("255.255.255.255"), Some(Verdict::Punt(Punt::Broadcast)));
        assert_eq!(verdict("169.254.0.0"), Some(Verdict::Punt(Punt::LinkLocal)));
        assert_eq!(verdict("224.0.0.255"), Some(Verdict::Punt(Punt::LinkMulticast)));
        assert_eq!(verdict("224.0.1.0"), Some(Verdict::Punt(Punt::Multicast)));
        assert_eq!(verdict("239.255.255.255"), Some(Verdict::Punt(Punt::Multicast)));
    }

    #[test]
    fn edges_of_the_inet6_ranges() {
        let verdict =
            |text: &str| inet6(0x2001 << 112 | 9, text.parse::<Ipv6Addr>().unwrap().to_bits(), true);
        for good in
            ["::2", "::fffe:ffff:ffff", "::1:0:0:0", "64:ff9b::1", "fe7f::1", "fec0::1", "2001:db8::1"]
        {
            assert_eq!(verdict(good), None, "{good}");
        }
        for bad in ["::", "::1", "::ffff:0:0", "::ffff:255.255.255.255"] {
            assert_eq!(verdict(bad), Some(Verdict::Drop(Reason::MartianDestination)), "{bad}");
        }
        for local in ["fe80::", "febf:ffff::1"] {
            assert_eq!(verdict(local), Some(Verdict::Punt(Punt::LinkLocal)), "{local}");
        }
        for group in ["ff01::1", "ff02::1:ff00:1", "ff12::1"] {
            assert_eq!(verdict(group), Some(Verdict::Punt(Punt::LinkMulticast)), "{group}");
        }
        assert_eq!(verdict("ff0e::1"), Some(Verdict::Punt(Punt::Multicast)));
    }
}
