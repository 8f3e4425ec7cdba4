//! Rules of policy routing: chooses the table of a packet whose interface has rules. Only the slow parser gets here, and what compares
//! the routes of shared flows.
//!
//! A table without a route to the destination is passed over, so this looks the destination up, table by table. The lookup
//! stage does it once more in the table that was chosen, with the rest of the burst.

use fullview_filter::state::FlowKey;
use fullview_filter::state::flow::WireFlow;
use fullview_table::NextHop;

use super::keys::{Destination, TableKeys};
use super::wire_flow::WireFamily;
use crate::adjacency::Adjacencies;
use crate::burst::Slot;
use crate::policy::{CompiledRule, PacketPorts, PacketTransport, PolicyAction};
use crate::verdict::{Punt, Reason, Verdict};
use crate::view::View;
use crate::wire::ethernet::Frame;
use crate::wire::ipv4::{self, Ipv4Packet};
use crate::wire::ipv6::{self, Ipv6Packet};
use crate::wire::transport::ports;

/// The table in which a correct packet with this destination is looked up.
#[cold]
pub(super) fn choose_table(
    tables: &mut [TableKeys],
    rules: (&[CompiledRule], &Adjacencies),
    packet: &Slot,
    destination: &Destination,
) -> Result<usize, Verdict> {
    let (from, to) = addresses(packet, destination);
    let selects = |rule: &CompiledRule| rule.selects(from, to, || transport(packet, destination));
    choose(tables, rules, destination, selects)
}

/// The next hop that the table has for packets of a known flow in which they are looked up.
#[cold]
pub(super) fn next_hop_of_flow<A: WireFamily>(
    tables: &mut [TableKeys],
    view: &View,
    flow: &WireFlow<A>,
) -> NextHop {
    let FlowKey { source, destination, source_port, destination_port, protocol } = flow.key();
    let (source, destination) = (A::destination(source), A::destination(destination));
    let interface = flow.words().interface;
    let rules = view.rules(interface, destination.family());
    let ports = PacketPorts::Known(source_port, destination_port);
    let selects = |rule: &CompiledRule| {
        rule.selects(source.bits(), destination.bits(), || Some(PacketTransport { protocol, ports }))
    };
    let table = match rules {
        [] => view.interface(interface).map(|interface| interface.table.into()),
        _ => choose(tables, (rules, &view.parts().adjacencies), &destination, selects).ok(),
    };
    table.map_or(NextHop::NONE, |table| route(&mut tables[table], &destination))
}

/// The table in which a packet is looked up that these rules select.
fn choose(
    tables: &mut [TableKeys],
    (rules, adjacencies): (&[CompiledRule], &Adjacencies),
    destination: &Destination,
    selects: impl Fn(&CompiledRule) -> Option<bool>,
) -> Result<usize, Verdict> {
    let mut next = 0;
    while let Some(rule) = rules.get(next) {
        next += 1;
        let action = match selects(rule) {
            Some(true) => rule.action,
            Some(false) => continue,
            None => PolicyAction::Punt,
        };
        match action {
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
    let source = match destination {
        Destination::Inet(_) => Ipv4Packet::new_unchecked(frame.payload()).source().into(),
        Destination::Inet6(_) => Ipv6Packet::new_unchecked(frame.payload()).source(),
    };
    (source, destination.bits())
}

/// Protocol and ports of a correct packet. `None` behind headers of IPv6 that the kernel reads too before it applies rules.
fn transport(packet: &Slot, destination: &Destination) -> Option<PacketTransport> {
    let frame = Frame::new_unchecked(packet.frame());
    let bytes = frame.payload();
    match destination {
        Destination::Inet(_) => {
            let ip = Ipv4Packet::new_unchecked(bytes);
            let is_fragment = ip.more_fragments() || ip.fragment_offset() > 0;
            let ports = known_ports(bytes, ip.protocol(), ip.header_len());
            let ports = if is_fragment { PacketPorts::Absent } else { ports };
            Some(PacketTransport { protocol: ip.protocol(), ports })
        }
        Destination::Inet6(_) => {
            let protocol = Ipv6Packet::new_unchecked(bytes).next_header();
            let ports = known_ports(bytes, protocol, ipv6::HEADER);
            (!EXTENSIONS.contains(&protocol)).then_some(PacketTransport { protocol, ports })
        }
    }
}

/// Headers of hop-by-hop options, of routes, of fragments and of options for the destination.
const EXTENSIONS: [u8; 4] = [0, 43, 44, 60];

/// The kernel finds ports in other protocols too.
fn known_ports(packet: &[u8], protocol: u8, header_len: usize) -> PacketPorts {
    let is_usual = matches!(protocol, ipv4::protocol::TCP | ipv4::protocol::UDP);
    let ports = is_usual.then(|| ports(packet, protocol, header_len)).flatten();
    ports.map_or(PacketPorts::Unknown, |(source, destination)| PacketPorts::Known(source, destination))
}

fn route(table: &mut TableKeys, destination: &Destination) -> NextHop {
    match destination {
        Destination::Inet(addr) => table.inet.find(*addr),
        Destination::Inet6(addr) => table.inet6.find(*addr),
    }
}
