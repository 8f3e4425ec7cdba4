//! The slow path of the first stage: everything again, one thing after the other, until the reason is found why a
//! packet is not plain, or nothing speaks against it.

use super::parse::Destination;
use super::{Stages, martian, vlan};
use crate::adjacency::AdjacencyKind;
use crate::burst::Slot;
use crate::counters::Traffic;
use crate::interface::Interface;
use crate::verdict::{Punt, Reason, Verdict};
use crate::view::View;
use crate::wire::Malformed;
use crate::wire::ethernet::{EtherType, Frame};
use crate::wire::ipv4::Ipv4Packet;
use crate::wire::ipv6::Ipv6Packet;
use fullview_table::NextHop;

impl Stages {
    /// Gathers the packet's destination after all, or writes down its verdict. A packet that is rejected here or later
    /// has its vlan, one that is forwarded has lost it.
    #[inline(never)]
    pub(super) fn examine(&mut self, view: &View, place: usize, packet: &mut Slot) {
        let len = packet.frame_len();
        match self.judge(view, packet) {
            Ok((key, table)) => {
                if let Some(control) = vlan::pop(packet) {
                    self.tags.keep(place, control);
                }
                match key {
                    Destination::Inet(addr) => self.tables[table].inet.push(addr, place),
                    Destination::Inet6(addr) => self.tables[table].inet6.push(addr, place),
                }
            }
            Err(verdict) => packet.verdict = verdict,
        }
        let mut traffic = Traffic::default();
        traffic.count(len);
        self.counters.add_received(packet.interface, traffic);
    }

    /// The destination of a packet in order, and in which table it is looked up.
    fn judge(&mut self, view: &View, packet: &mut Slot) -> Result<(Destination, usize), Verdict> {
        let frame = Frame::new_checked(packet.frame()).map_err(|_| Verdict::Drop(Reason::TooShort))?;
        let port = view.port(packet.port).ok_or(Verdict::Drop(Reason::UnknownPort))?;
        let number = port.interface(frame.vlan().unwrap_or(0)).ok_or(Verdict::Punt(Punt::OtherVlan))?;
        let interface = view.interface(number).ok_or(Verdict::Drop(Reason::UnknownPort))?;
        let key = admit(&frame, interface).and_then(|()| destination(&frame, interface, view));
        let (group, table) = (frame.destination().is_group(), usize::from(interface.table));
        packet.interface = number;
        if group { Err(self.in_group_frame(view, table, key?)) } else { Ok((key?, table)) }
    }

    /// What becomes of a unicast packet in a broadcast or multicast frame: it may be for this router's network, as a
    /// directed broadcast that another router has made one, but it is never forwarded (RFC 1812, section 5.3.4).
    fn in_group_frame(&mut self, view: &View, table: usize, key: Destination) -> Verdict {
        let hop = self.find(table, key);
        match view.adjacencies().get(hop).kind {
            AdjacencyKind::Local => Verdict::Punt(Punt::Local),
            AdjacencyKind::Broadcast => Verdict::Punt(Punt::Broadcast),
            _ => Verdict::Drop(Reason::LinkBroadcast),
        }
    }

    fn find(&mut self, table: usize, key: Destination) -> NextHop {
        match key {
            Destination::Inet(addr) => self.tables[table].inet.find(addr),
            Destination::Inet6(addr) => self.tables[table].inet6.find(addr),
        }
    }
}

/// Whether the interface takes the frame at all.
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

/// Extension headers, hop-by-hop options among them, are not looked at, as RFC 8200 (section 4) lets routers that were
/// not told to and RFC 9673 (section 5) those whose fast path would suffer: a packet with them is forwarded as any other.
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

/// What IPv4 options decide (RFC 7126): source routes are dropped, what every router on the way has to write in or to
/// look at is punted, as is damage, other options are the end hosts' business.
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
            // A length below 2 or beyond the header is damage, of which the sender is told.
            [_, len, ..] if (2..=options.len()).contains(&len.into()) => options = &options[len.into()..],
            _ => return Some(Verdict::Punt(Punt::Options)),
        }
    }
}
