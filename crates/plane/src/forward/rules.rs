//! Rules of policy routing: chooses the table of a packet whose interface has rules. Only the slow parser gets here.
//!
//! A table without a route to the destination is passed over, so this looks the destination up, table by table. The lookup
//! stage does it once more in the table that was chosen, with the rest of the burst.

use fullview_table::NextHop;

use super::keys::{Destination, TableKeys};
use crate::adjacency::Adjacencies;
use crate::burst::Slot;
use crate::policy::{CompiledRule, PolicyAction};
use crate::verdict::{Punt, Reason, Verdict};
use crate::wire::ethernet::Frame;
use crate::wire::ipv4::Ipv4Packet;
use crate::wire::ipv6::Ipv6Packet;

/// The table in which a correct packet with this destination is looked up.
#[cold]
pub(super) fn choose_table(
    tables: &mut [TableKeys],
    (rules, adjacencies): (&[CompiledRule], &Adjacencies),
    packet: &Slot,
    destination: &Destination,
) -> Result<usize, Verdict> {
    let (from, to) = addresses(packet, destination);
    let mut next = 0;
    while let Some(rule) = rules.get(next) {
        next += 1;
        if !rule.selects(from, to) {
            continue;
        }
        match rule.action {
            PolicyAction::Punt => return Err(Verdict::Punt(Punt::PolicyRule)),
            // It is a later one, so the loop ends.
            PolicyAction::SkipTo(place) => next = place.into(),
            PolicyAction::LookUp(table) => {
                let table = usize::from(table);
                if next == rules.len() || route(&mut tables[table], destination).is_some() {
                    return Ok(table);
                }
            }
            PolicyAction::LookUpSpecific(table) => {
                let table = usize::from(table);
                let hop = route(&mut tables[table], destination);
                if hop.is_some() && !adjacencies.is_default(hop) {
                    return Ok(table);
                }
            }
        }
    }
    Err(Verdict::Drop(Reason::NoRoute))
}

/// Source and destination.
fn addresses(packet: &Slot, destination: &Destination) -> (u128, u128) {
    let frame = Frame::new_unchecked(packet.frame());
    match destination {
        Destination::Inet(to) => {
            (Ipv4Packet::new_unchecked(frame.payload()).source().into(), u128::from(*to))
        }
        Destination::Inet6(to) => (Ipv6Packet::new_unchecked(frame.payload()).source(), *to),
    }
}

fn route(table: &mut TableKeys, destination: &Destination) -> NextHop {
    match destination {
        Destination::Inet(addr) => table.inet.find(*addr),
        Destination::Inet6(addr) => table.inet6.find(*addr),
    }
}
