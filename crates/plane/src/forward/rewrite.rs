//! Third stage: hop count, checksum and Ethernet header.

use super::source_check::REJECTED;
use super::stage_state::StageState;
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

/// Rewrites the packets that were looked up. Returns whether any of them is not forwarded.
#[inline]
pub(super) fn rewrite(state: &StageState, view: &View, packets: &mut [Packet<'_>]) -> bool {
    let (adjacencies, tags, mut has_rejected) = (view.adjacencies(), &state.tags, false);
    for table in &state.tables {
        for (position, hop) in table.inet.destinations.found() {
            let entry = adjacencies.get(hop);
            if !inet(packets[position], entry) {
                reject(packets[position], position, hop, tags, |packet| refuse_inet(packet, entry, hop));
                has_rejected = true;
            }
        }
        for (position, hop) in table.inet6.destinations.found() {
            let entry = adjacencies.get(hop);
            if !inet6(packets[position], entry) {
                reject(packets[position], position, hop, tags, |packet| refuse_inet6(packet, entry, hop));
                has_rejected = true;
            }
        }
    }
    has_rejected
}

/// Rewrites a packet that is forwarded; `false` if it is not. A hop count of 1 is used up here just as 0 is: the packet
/// would leave with 0 (RFC 1812, section 5.3.1).
#[inline(always)]
fn inet(packet: &mut Slot, entry: &CompiledAdjacency) -> bool {
    let mut ip = Ipv4Packet::new_unchecked(&mut packet.head_mut()[ETHERNET..]);
    let is_forwarded = (ip.ttl() > 1) & (ip.total_len() <= entry.mtu);
    if is_forwarded {
        ip.decrement_ttl();
        write_ethernet(packet, entry);
    }
    is_forwarded
}

#[inline(always)]
fn inet6(packet: &mut Slot, entry: &CompiledAdjacency) -> bool {
    let mut ip = Ipv6Packet::new_unchecked(&mut packet.head_mut()[ETHERNET..]);
    let is_forwarded = (ip.hop_limit() > 1) & (ip.total_len() <= usize::from(entry.mtu6));
    if is_forwarded {
        ip.decrement_hop_limit();
        write_ethernet(packet, entry);
    }
    is_forwarded
}

/// Writes the Ethernet header of the next link.
#[inline(always)]
pub(super) fn write_ethernet(packet: &mut Slot, entry: &CompiledAdjacency) {
    MACS.set(packet.head_mut(), entry.macs);
    packet.port = entry.port;
    packet.interface = entry.interface;
    packet.verdict = Verdict::Forward;
    if entry.vlan != 0 {
        vlan::push(packet, entry.vlan);
    }
}

/// Sets the verdict of a packet that is not forwarded, and restores its tag.
#[cold]
fn reject(
    packet: &mut Slot,
    position: usize,
    hop: NextHop,
    tags: &RemovedTags,
    why: impl FnOnce(&Slot) -> Verdict,
) {
    if hop != REJECTED {
        packet.verdict = why(packet);
    }
    tags.restore(position, packet);
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

/// The verdict on a correct packet that is not forwarded. The route comes before the hop count: packets to this router may
/// arrive with their last hop, and an unreachable destination is unreachable with any number of hops.
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
