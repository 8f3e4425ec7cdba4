//! Third stage: hop count, checksum and MAC addresses.

use super::{Forwarder, tag};
use crate::adjacency::{Entry, Kind};
use crate::burst::{Packet, Slot};
use crate::verdict::{Punt, Reason, Verdict};
use crate::wire::ethernet::HEADER as ETHERNET;
use crate::wire::{Field, ipv4, ipv6};
use fullview_table::NextHop;

const MACS: Field<12> = Field(0);

impl Forwarder {
    #[inline]
    pub(super) fn rewrite(&self, packets: &mut [Packet<'_>]) {
        for (place, hop) in self.inet_keys.found() {
            inet(packets[place], self.adjacencies.get(hop), hop);
        }
        for (place, hop) in self.inet6_keys.found() {
            inet6(packets[place], self.adjacencies.get(hop), hop);
        }
    }
}

/// A hop count of 1 is used up here as 0 is: the packet would leave with 0 (RFC 1812, section 5.3.1).
#[inline(always)]
fn inet(packet: &mut Slot, entry: &Entry, hop: NextHop) {
    let mut ip = ipv4::Packet::new_unchecked(&mut packet.head_mut()[ETHERNET..]);
    let expired = ip.ttl() <= 1;
    if expired | (ip.total_len() > entry.mtu) {
        packet.verdict = refuse(entry, hop, expired.then_some(Reason::TtlExpired));
        return;
    }
    ip.decrement_ttl();
    address(packet, entry);
}

#[inline(always)]
fn inet6(packet: &mut Slot, entry: &Entry, hop: NextHop) {
    let mut ip = ipv6::Packet::new_unchecked(&mut packet.head_mut()[ETHERNET..]);
    let expired = ip.hop_limit() <= 1;
    if expired | (ip.total_len() > usize::from(entry.mtu)) {
        packet.verdict = refuse(entry, hop, expired.then_some(Reason::HopLimitExpired));
        return;
    }
    ip.decrement_hop_limit();
    address(packet, entry);
}

/// Writes the Ethernet header of the next link.
#[inline(always)]
fn address(packet: &mut Slot, entry: &Entry) {
    MACS.set(packet.head_mut(), entry.macs);
    packet.port = entry.port;
    packet.verdict = Verdict::Forward;
    if entry.vlan != 0 {
        tag::push(packet, entry.vlan);
    }
}

/// Why a packet in order does not go on. What is for this router may arrive with its last hop.
#[cold]
fn refuse(entry: &Entry, hop: NextHop, expired: Option<Reason>) -> Verdict {
    if entry.kind == Kind::Local {
        return Verdict::Punt(Punt::Local);
    }
    let reason = match entry.kind {
        _ if !hop.is_some() => Reason::NoRoute,
        Kind::Neighbor => Reason::TooBig,
        _ => Reason::NoAdjacency,
    };
    Verdict::Drop(expired.unwrap_or(reason))
}
