//! Addresses that no router forwards from or to (RFC 1812, sections 4.2.2.11 and 5.3.7; RFC 6890; RFC 4291).
//!
//! Only what cannot be right on any network is here: "this network", loopback, multicast and reserved sources, and
//! addresses that mean something on one link only. What is merely not announced on the Internet (private,
//! documentation, benchmarking, discard-only) is for the table to say: a router in a lab forwards all of them.

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

/// What kind of address it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Of any host.
    Unicast,
    /// Of no host at all.
    Martian,
    /// Of a host on this link.
    LinkLocal,
    /// Of all stations on this link.
    Broadcast,
    /// Of a group on this link or in this host.
    LinkGroup,
    /// Of a group anywhere.
    Group,
}

fn inet_scope(addr: u32) -> Scope {
    match addr.to_be_bytes() {
        [255, 255, 255, 255] => Scope::Broadcast,
        [0 | 127 | 240..=255, ..] => Scope::Martian,
        [169, 254, ..] => Scope::LinkLocal,
        [224, 0, 0, _] => Scope::LinkGroup,
        [224..=239, ..] => Scope::Group,
        _ => Scope::Unicast,
    }
}

fn inet6_scope(addr: u128) -> Scope {
    let [first, second, ..] = addr.to_be_bytes();
    match (first, second) {
        (0xff, flags_and_scope) if matches!(flags_and_scope & 0x0f, 1 | 2) => Scope::LinkGroup,
        (0xff, _) => Scope::Group,
        (0xfe, 0x80..=0xbf) => Scope::LinkLocal,
        // ::/128 unspecified, ::1/128 loopback, ::ffff:0:0/96 IPv4-mapped, which no wire carries.
        _ if addr <= 1 || addr >> 32 == 0xffff => Scope::Martian,
        _ => Scope::Unicast,
    }
}

/// What an IPv4 packet's addresses decide; `None` leaves it to the table. Where it is not strict, the table decides about
/// martians too.
pub fn inet(source: u32, destination: u32, strict: bool) -> Option<Verdict> {
    judge(inet_scope(source), inet_scope(destination), strict)
}

/// What an IPv6 packet's addresses decide; as [`inet`].
pub fn inet6(source: u128, destination: u128, strict: bool) -> Option<Verdict> {
    judge(inet6_scope(source), inet6_scope(destination), strict)
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
