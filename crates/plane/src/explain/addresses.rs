//! What the source and destination addresses of a packet decide before any lookup.
//!
//! The table below is written from the documents that reserve the addresses, and tests them with the standard library.
//! It uses nothing of the loop's table ([`crate::forward::martian`]), so that a mistake in one of the two shows as a
//! disagreement. `address_rules.rs` tests that the removal of any single rule, here or there, is noticed.

use std::net::IpAddr;

use crate::verdict::{Punt, Reason, Verdict};

/// The address of the packet that a rule looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Source,
    Destination,
}

/// Packets with such an address are not forwarded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressRule {
    /// The block and the document that reserves it, for messages of tests.
    #[cfg_attr(not(test), expect(dead_code, reason = "names the rule in messages of tests"))]
    pub name: &'static str,
    end: End,
    holds: fn(IpAddr) -> bool,
    /// Whether the rule applies only where the policy drops martians.
    strict_only: bool,
    verdict: Verdict,
}

impl AddressRule {
    const fn new(name: &'static str, end: End, holds: fn(IpAddr) -> bool, verdict: Verdict) -> AddressRule {
        AddressRule { name, end, holds, strict_only: false, verdict }
    }

    /// No host has such a source address.
    const fn no_source(name: &'static str, holds: fn(IpAddr) -> bool) -> AddressRule {
        let verdict = Verdict::Drop(Reason::MartianSource);
        AddressRule { strict_only: true, ..AddressRule::new(name, End::Source, holds, verdict) }
    }

    /// No host has such a destination address.
    const fn no_destination(name: &'static str, holds: fn(IpAddr) -> bool) -> AddressRule {
        let verdict = Verdict::Drop(Reason::MartianDestination);
        AddressRule { strict_only: true, ..AddressRule::new(name, End::Destination, holds, verdict) }
    }

    fn applies(&self, source: IpAddr, destination: IpAddr, strict: bool) -> bool {
        let address = if self.end == End::Source { source } else { destination };
        (strict || !self.strict_only) && (self.holds)(address)
    }
}

const LINK_MULTICAST: Verdict = Verdict::Punt(Punt::LinkMulticast);
const MULTICAST: Verdict = Verdict::Punt(Punt::Multicast);
const LINK_LOCAL: Verdict = Verdict::Punt(Punt::LinkLocal);
const BAD_SOURCE: Verdict = Verdict::Drop(Reason::MartianSource);

/// The first rule that applies decides. Groups of the own link come first, because DHCP clients and neighbour discovery
/// send to them from the unspecified address.
pub(crate) const RULES: &[AddressRule] = &[
    AddressRule::new("to 224.0.0.0/24, RFC 5771", End::Destination, is_local_control, LINK_MULTICAST),
    AddressRule::new("to ff?1::/16, RFC 4291", End::Destination, is_interface_group, LINK_MULTICAST),
    AddressRule::new("to ff?2::/16, RFC 4291", End::Destination, is_link_group, LINK_MULTICAST),
    AddressRule::new("to 255.255.255.255, RFC 919", End::Destination, is_limited_broadcast, BROADCAST),
    AddressRule::new("from 224.0.0.0/4, RFC 1112", End::Source, is_inet_multicast, BAD_SOURCE),
    AddressRule::new("from ff00::/8, RFC 4291", End::Source, is_inet6_multicast, BAD_SOURCE),
    AddressRule::new("from 255.255.255.255, RFC 919", End::Source, is_limited_broadcast, BAD_SOURCE),
    AddressRule::no_source("from 0.0.0.0/8, RFC 1122", is_this_network),
    AddressRule::no_source("from 127.0.0.0/8, RFC 1122", is_inet_loopback),
    AddressRule::no_source("from 240.0.0.0/4, RFC 1112", is_reserved),
    AddressRule::no_source("from ::, RFC 4291", is_inet6_unspecified),
    AddressRule::no_source("from ::1, RFC 4291", is_inet6_loopback),
    AddressRule::no_source("from ::ffff:0:0/96, RFC 4291", is_ipv4_mapped),
    AddressRule::no_destination("to 0.0.0.0/8, RFC 1122", is_this_network),
    AddressRule::no_destination("to 127.0.0.0/8, RFC 1122", is_inet_loopback),
    AddressRule::no_destination("to 240.0.0.0/4, RFC 1112", is_reserved),
    AddressRule::no_destination("to ::, RFC 4291", is_inet6_unspecified),
    AddressRule::no_destination("to ::1, RFC 4291", is_inet6_loopback),
    AddressRule::no_destination("to ::ffff:0:0/96, RFC 4291", is_ipv4_mapped),
    AddressRule::new("to 224.0.0.0/4, RFC 1112", End::Destination, is_inet_multicast, MULTICAST),
    AddressRule::new("to ff00::/8, RFC 4291", End::Destination, is_inet6_multicast, MULTICAST),
    AddressRule::new("from 169.254.0.0/16, RFC 3927", End::Source, is_inet_link_local, LINK_LOCAL),
    AddressRule::new("from fe80::/10, RFC 4291", End::Source, is_inet6_link_local, LINK_LOCAL),
    AddressRule::new("to 169.254.0.0/16, RFC 3927", End::Destination, is_inet_link_local, LINK_LOCAL),
    AddressRule::new("to fe80::/10, RFC 4291", End::Destination, is_inet6_link_local, LINK_LOCAL),
];

const BROADCAST: Verdict = Verdict::Punt(Punt::Broadcast);

/// What the addresses decide; `None` leaves the packet to the table.
pub(super) fn judge(source: IpAddr, destination: IpAddr, strict: bool) -> Option<Verdict> {
    judge_by(RULES.iter(), source, destination, strict)
}

/// As [`judge`], by other rules.
pub(crate) fn judge_by<'r>(
    mut rules: impl Iterator<Item = &'r AddressRule>,
    source: IpAddr,
    destination: IpAddr,
    strict: bool,
) -> Option<Verdict> {
    rules.find(|rule| rule.applies(source, destination, strict)).map(|rule| rule.verdict)
}

fn is_this_network(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V4(ip) if ip.octets()[0] == 0)
}

fn is_inet_loopback(ip: IpAddr) -> bool {
    ip.is_ipv4() && ip.is_loopback()
}

fn is_inet_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V4(ip) if ip.is_link_local())
}

fn is_inet_multicast(ip: IpAddr) -> bool {
    ip.is_ipv4() && ip.is_multicast()
}

/// The local network control block, which routers do not forward whatever the TTL.
fn is_local_control(ip: IpAddr) -> bool {
    is_inet_multicast(ip)
        && matches!(ip, IpAddr::V4(ip) if ip.octets()[1..3] == [0, 0] && ip.octets()[0] == 224)
}

/// Class E, the limited broadcast address included.
fn is_reserved(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V4(ip) if ip.octets()[0] >= 240)
}

fn is_limited_broadcast(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V4(ip) if ip.is_broadcast())
}

fn is_inet6_unspecified(ip: IpAddr) -> bool {
    ip.is_ipv6() && ip.is_unspecified()
}

fn is_inet6_loopback(ip: IpAddr) -> bool {
    ip.is_ipv6() && ip.is_loopback()
}

/// IPv4 addresses in the notation of IPv6: programs use them, no packet carries them.
fn is_ipv4_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

fn is_inet6_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

fn is_inet6_multicast(ip: IpAddr) -> bool {
    ip.is_ipv6() && ip.is_multicast()
}

/// Scope 1: the group does not leave the host.
fn is_interface_group(ip: IpAddr) -> bool {
    multicast_scope(ip) == Some(1)
}

/// Scope 2: the group does not leave the link.
fn is_link_group(ip: IpAddr) -> bool {
    multicast_scope(ip) == Some(2)
}

/// The last four bits of the second byte of an IPv6 multicast address.
fn multicast_scope(ip: IpAddr) -> Option<u16> {
    match ip {
        IpAddr::V6(ip) if ip.is_multicast() => Some(ip.segments()[0] % 16),
        _ => None,
    }
}
