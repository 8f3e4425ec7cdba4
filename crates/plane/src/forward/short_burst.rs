//! Short bursts: prefetches the table's memory before the headers are checked.
//!
//! In a long burst, prefetched memory arrives while the parser reads the headers of other packets, and the lookups
//! overlap. A short burst has too few packets for either: it would wait for the table, and twice if the first level of
//! the table says where the second level lies. So the destinations are read beforehand, whatever else the headers say;
//! they serve the prefetch only and decide nothing.

use super::fast_parse;
use super::stage_state::StageState;
use crate::burst::{Packet, Slot};
use crate::view::View;
use crate::wire::ethernet::{EtherType, Frame, HEADER as ETHERNET};
use crate::wire::ipv4::Ipv4Packet;

/// Packets of a short burst at most. From 64 on it makes no difference; in bursts of 256 it costs 3 to 5 %.
const SHORT: usize = 32;

/// Whether [`read`] is faster than the fast parser alone for a burst of `count` packets. The first packet stands for the
/// whole burst: IPv6 tables have no prefetch that would be worth reading the destinations twice.
#[inline(always)]
pub(super) fn pays(first: &Slot, count: usize) -> bool {
    count <= SHORT && is_inet(first)
}

/// Reads all packets of a short burst.
#[inline(never)]
pub(super) fn read(state: &mut StageState, view: &View, packets: &mut [Packet<'_>]) {
    let Some(first) = packets.first() else { return };
    // Packets from another port may use another table: then this prefetch is of no use.
    let table = usize::from(view.ingress(first.port).table);
    let (half, mut room) = (packets.len() / 2, [0; SHORT]);
    let destinations = read_destinations(packets, &mut room);
    state.tables[table].inet.prefetch_all(destinations);
    fast_parse::read(state, view, packets, 0..half);
    state.tables[table].inet.prefetch_deeper(destinations);
    fast_parse::read(state, view, packets, half..packets.len());
}

/// Whether the type field says IPv4; the frame may be too short for it.
#[inline(always)]
fn is_inet(packet: &Slot) -> bool {
    Frame::new_unchecked(packet.head()).outer_ethertype() == EtherType::IPV4
}

/// The unchecked destination fields of the IPv4 packets.
#[inline(always)]
fn read_destinations<'r>(packets: &[Packet<'_>], room: &'r mut [u32; SHORT]) -> &'r [u32] {
    let mut count = 0;
    for packet in packets {
        room[count % SHORT] = Ipv4Packet::new_unchecked(&packet.head()[ETHERNET..]).destination();
        count += usize::from(is_inet(packet));
    }
    &room[..count.min(SHORT)]
}
