//! Third stage: hop count, checksum and MAC addresses.

use super::Stages;
use super::source_check::REJECTED;
use super::vlan::{self, RemovedTags};
use crate::adjacency::{AdjacencyKind, CompiledAdjacency};
use crate::burst::{Packet, Slot};
use crate::verdict::{Punt, Reason, Verdict};
use crate::view::View;
use crate::wire::Field;
use crate::wire::ethernet::HEADER as ETHERNET;
use crate::wire::ipv4::Ipv4Packet;
use crate::wire::ipv6::Ipv6Packet;
use fullview_table::NextHop;

const MACS: Field<12> = Field(0);

impl Stages {
    #[inline]
    pub(super) fn rewrite(&mut self, view: &View, packets: &mut [Packet<'_>]) {
        let (entries, tags) = (view.adjacencies(), &self.tags);
        for table in &self.tables {
            for (place, hop) in table.inet.destinations.found() {
                let entry = entries.get(hop);
                if !inet(packets[place], entry) {
                    reject(packets[place], place, hop, tags, |packet| refuse_inet(packet, entry, hop));
                }
            }
            for (place, hop) in table.inet6.destinations.found() {
                let entry = entries.get(hop);
                if !inet6(packets[place], entry) {
                    reject(packets[place], place, hop, tags, |packet| refuse_inet6(packet, entry, hop));
                }
            }
        }
    }
}

/// Whether the packet goes on; then it is written anew. A hop count of 1 is used up here as 0 is: the packet would leave
/// with 0 (RFC 1812, section 5.3.1).
#[inline(always)]
fn inet(packet: &mut Slot, entry: &CompiledAdjacency) -> bool {
    let mut ip = Ipv4Packet::new_unchecked(&mut packet.head_mut()[ETHERNET..]);
    let goes_on = (ip.ttl() > 1) & (ip.total_len() <= entry.mtu);
    if goes_on {
        ip.decrement_ttl();
        address(packet, entry);
    }
    goes_on
}

#[inline(always)]
fn inet6(packet: &mut Slot, entry: &CompiledAdjacency) -> bool {
    let mut ip = Ipv6Packet::new_unchecked(&mut packet.head_mut()[ETHERNET..]);
    let goes_on = (ip.hop_limit() > 1) & (ip.total_len() <= usize::from(entry.mtu6));
    if goes_on {
        ip.decrement_hop_limit();
        address(packet, entry);
    }
    goes_on
}

/// Writes the Ethernet header of the next link.
#[inline(always)]
fn address(packet: &mut Slot, entry: &CompiledAdjacency) {
    MACS.set(packet.head_mut(), entry.macs);
    packet.port = entry.port;
    packet.interface = entry.interface;
    packet.verdict = Verdict::Forward;
    if entry.vlan != 0 {
        vlan::push(packet, entry.vlan);
    }
}

/// Writes down why the packet does not go on, and gives it its tag back.
#[cold]
fn reject(
    packet: &mut Slot,
    place: usize,
    hop: NextHop,
    tags: &RemovedTags,
    why: impl FnOnce(&Slot) -> Verdict,
) {
    if hop != REJECTED {
        packet.verdict = why(packet);
    }
    tags.give_back(place, packet);
}

fn refuse_inet(packet: &Slot, entry: &CompiledAdjacency, hop: NextHop) -> Verdict {
    let ip = Ipv4Packet::new_unchecked(&packet.head()[ETHERNET..]);
    let expired = (ip.ttl() <= 1).then_some(Reason::TtlExpired);
    let too_long = if ip.dont_fragment() { Reason::TooBig } else { Reason::NeedsFragments };
    refuse(entry, hop, expired, too_long)
}

fn refuse_inet6(packet: &Slot, entry: &CompiledAdjacency, hop: NextHop) -> Verdict {
    let ip = Ipv6Packet::new_unchecked(&packet.head()[ETHERNET..]);
    refuse(entry, hop, (ip.hop_limit() <= 1).then_some(Reason::HopLimitExpired), Reason::TooBig)
}

/// Why a packet in order does not go on. What the route says comes first: what is for this router may arrive with its
/// last hop, and what cannot be reached is no question of hops.
fn refuse(entry: &CompiledAdjacency, hop: NextHop, expired: Option<Reason>, too_long: Reason) -> Verdict {
    let unless_expired = |verdict| expired.map_or(verdict, Verdict::Drop);
    match entry.kind {
        _ if !hop.is_some() => Verdict::Drop(Reason::NoRoute),
        AdjacencyKind::Local => Verdict::Punt(Punt::Local),
        AdjacencyKind::Broadcast => Verdict::Drop(Reason::DirectedBroadcast),
        AdjacencyKind::Blackhole => Verdict::Drop(Reason::Blackhole),
        AdjacencyKind::Unreachable => Verdict::Drop(Reason::Unreachable),
        AdjacencyKind::Prohibit => Verdict::Drop(Reason::Prohibited),
        AdjacencyKind::Down => Verdict::Drop(Reason::InterfaceDown),
        AdjacencyKind::Glean => unless_expired(Verdict::Punt(Punt::Glean)),
        AdjacencyKind::Missing => unless_expired(Verdict::Drop(Reason::NoAdjacency)),
        AdjacencyKind::Neighbor => unless_expired(Verdict::Drop(too_long)),
    }
}
