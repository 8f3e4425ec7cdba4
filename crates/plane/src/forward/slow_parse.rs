//! The slow parser: runs every check in sequence on one packet, until it finds the reason why the packet is not plain, or
//! finds that the packet is correct.

use fullview_table::{Family, NextHop};

use super::keys::Destination;
use super::stage_state::StageState;
use super::{martian, rules, source_check, vlan};
use crate::adjacency::AdjacencyKind;
use crate::burst::Slot;
use crate::counters::Traffic;
use crate::interface::{Interface, SourceCheck};
use crate::verdict::{Punt, Reason, Verdict};
use crate::view::View;
use crate::wire::Malformed;
use crate::wire::ethernet::{EtherType, Frame};
use crate::wire::ipv4::Ipv4Packet;
use crate::wire::ipv6::Ipv6Packet;

/// Gathers the destination of a correct packet and removes its tag, or sets the verdict. A packet that is rejected here
/// or later has its tag.
#[inline(never)]
pub(super) fn examine(state: &mut StageState, view: &View, position: usize, packet: &mut Slot) {
    let len = packet.frame_len();
    match judge(state, view, packet) {
        Ok((destination, table)) => {
            if let Some(control) = vlan::pop(packet) {
                state.tags.keep(position, control);
            }
            match destination {
                Destination::Inet(addr) => state.tables[table].inet.push(addr, position),
                Destination::Inet6(addr) => state.tables[table].inet6.push(addr, position),
            }
        }
        Err(verdict) => packet.verdict = verdict,
    }
    let mut traffic = Traffic::default();
    traffic.count(len);
    state.counters.add_received(packet.interface, traffic);
}

/// The destination of a correct packet, and the table to look it up in.
fn judge(state: &mut StageState, view: &View, packet: &mut Slot) -> Result<(Destination, usize), Verdict> {
    let frame = Frame::new_checked(packet.frame()).map_err(|_| Verdict::Drop(Reason::TooShort))?;
    let port = view.port(packet.port).ok_or(Verdict::Drop(Reason::UnknownPort))?;
    let number = port.interface(frame.vlan().unwrap_or(0)).ok_or(Verdict::Punt(Punt::OtherVlan))?;
    let interface = view.interface(number).ok_or(Verdict::Drop(Reason::UnknownPort))?;
    let destination = admit(&frame, interface).and_then(|()| destination(&frame, interface, view));
    let (group, table) = (frame.destination().is_group(), usize::from(interface.table));
    packet.interface = number;
    let destination = destination.map_err(|verdict| match verdict {
        Verdict::Punt(Punt::Options) => with_options(state, view, packet, table),
        other => other,
    })?;
    match (group, view.rules(number, destination.family())) {
        (true, _) => Err(in_group_frame(state, view, table, destination)),
        (false, []) => Ok((destination, table)),
        // The way back may be another table's.
        (false, _) if interface.source_check != SourceCheck::Off => Err(Verdict::Punt(Punt::WayBack)),
        (false, rules) => {
            let rules = (rules, &view.parts().adjacencies);
            let table = rules::choose_table(&mut state.tables, rules, packet, &destination)?;
            Ok((destination, table))
        }
    }
}

/// The verdict on a packet that the slow path forwards because of its options. Its source is checked here: the slow path
/// checks none.
fn with_options(state: &mut StageState, view: &View, packet: &Slot, table: usize) -> Verdict {
    let source = Ipv4Packet::new_unchecked(Frame::new_unchecked(packet.frame()).payload()).source();
    let has_rules = !view.rules(packet.interface, Family::Inet).is_empty();
    match source_check::check_of(view, packet) {
        SourceCheck::Off => Verdict::Punt(Punt::Options),
        // The way back may be another table's.
        _ if has_rules => Verdict::Punt(Punt::WayBack),
        _ => {
            let groups = state.groups.groups();
            let back = state.tables[table].inet.find(source);
            let objection = source_check::objection(view, groups, packet, back);
            objection.unwrap_or(Verdict::Punt(Punt::Options))
        }
    }
}

/// The verdict on a unicast packet in a broadcast or multicast frame. It may be a directed broadcast to a network of this
/// router, which another router sent as a link broadcast, but it is never forwarded (RFC 1812, section 5.3.4).
fn in_group_frame(state: &mut StageState, view: &View, table: usize, destination: Destination) -> Verdict {
    let hop = look_up(state, table, destination);
    match view.adjacencies().get(hop).kind {
        AdjacencyKind::Local => Verdict::Punt(Punt::Local),
        AdjacencyKind::Broadcast => Verdict::Punt(Punt::Broadcast),
        _ => Verdict::Drop(Reason::LinkBroadcast),
    }
}

fn look_up(state: &mut StageState, table: usize, destination: Destination) -> NextHop {
    match destination {
        Destination::Inet(addr) => state.tables[table].inet.find(addr),
        Destination::Inet6(addr) => state.tables[table].inet6.find(addr),
    }
}

/// Checks that the interface is up and the frame is addressed to it.
fn admit(frame: &Frame<&[u8]>, interface: &Interface) -> Result<(), Verdict> {
    let destination = frame.destination();
    if !interface.up {
        return Err(Verdict::Drop(Reason::InterfaceDown));
    }
    if destination != interface.mac && !destination.is_group() {
        return Err(Verdict::Drop(Reason::NotOurMac));
    }
    Ok(())
}

fn destination(frame: &Frame<&[u8]>, interface: &Interface, view: &View) -> Result<Destination, Verdict> {
    let strict = view.parts().policy.drops_martians;
    match frame.ethertype() {
        EtherType::IPV4 if interface.forwards_inet => inet(frame.payload(), strict).map(Destination::Inet),
        EtherType::IPV6 if interface.forwards_inet6 => inet6(frame.payload(), strict).map(Destination::Inet6),
        EtherType::IPV4 | EtherType::IPV6 => Err(Verdict::Punt(Punt::NotForwarding)),
        EtherType::ARP => Err(Verdict::Punt(Punt::Arp)),
        _ => Err(Verdict::Punt(Punt::NotIp)),
    }
}

fn inet(payload: &[u8], strict: bool) -> Result<u32, Verdict> {
    let ip = Ipv4Packet::new_checked(payload).map_err(malformed)?;
    if !ip.verify_checksum() {
        return Err(Verdict::Drop(Reason::Checksum));
    }
    let martian = martian::inet(ip.source(), ip.destination(), strict);
    let verdict = martian.or_else(|| options(ip.options()));
    verdict.map_or(Ok(ip.destination()), Err)
}

/// Ignores extension headers, hop-by-hop options included, and forwards packets with them like others. RFC 8200 (section
/// 4) allows that to routers that are not configured otherwise, RFC 9673 (section 5) to those whose fast path would
/// suffer.
fn inet6(payload: &[u8], strict: bool) -> Result<u128, Verdict> {
    let ip = Ipv6Packet::new_checked(payload).map_err(malformed)?;
    martian::inet6(ip.source(), ip.destination(), strict).map_or(Ok(ip.destination()), Err)
}

fn malformed(error: Malformed) -> Verdict {
    Verdict::Drop(match error {
        Malformed::TooShort { .. } => Reason::TooShort,
        Malformed::Version { .. } => Reason::BadVersion,
        Malformed::HeaderLength { .. } => Reason::HeaderLength,
        Malformed::TotalLength { .. } => Reason::TotalLength,
    })
}

/// The verdict on IPv4 options (RFC 7126): packets with a source route are dropped. Packets with an option that every
/// router on the path has to write or read are punted, and so are damaged options. Other options concern the end hosts.
fn options(mut options: &[u8]) -> Option<Verdict> {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const RECORD_ROUTE: u8 = 7;
    const TIMESTAMP: u8 = 68;
    const LOOSE_SOURCE_ROUTE: u8 = 131;
    const STRICT_SOURCE_ROUTE: u8 = 137;
    const ROUTER_ALERT: u8 = 148;
    let mut verdict = None;
    loop {
        match *options {
            [] | [END, ..] => return verdict,
            [LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE, ..] => {
                return Some(Verdict::Drop(Reason::SourceRoute));
            }
            [RECORD_ROUTE | TIMESTAMP | ROUTER_ALERT, ..] => verdict = Some(Verdict::Punt(Punt::Options)),
            _ => {}
        }
        match *options {
            [NO_OPERATION, ..] => options = &options[1..],
            // A length below 2 or beyond the header is damage; the slow path sends an ICMP error.
            [_, len, ..] if (2..=options.len()).contains(&len.into()) => options = &options[len.into()..],
            _ => return Some(Verdict::Punt(Punt::Options)),
        }
    }
}
