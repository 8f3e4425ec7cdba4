//! IPv4 packets for the router itself: echo requests are answered; nobody here takes anything else.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::next_hop::NextHopResolver;
use super::output::Output;
use super::{HostStack, RxFrame, sender};
use fullview_plane::wire::checksum::pseudo_ipv4;
use fullview_plane::wire::icmp::{Icmpv4Kind, Icmpv4Message};
use fullview_plane::wire::icmp_message::IcmpKind;
use fullview_plane::wire::ipv4::{Ipv4Packet, protocol};
use fullview_plane::wire::udp;

impl<W: NextHopResolver> HostStack<W> {
    /// A packet that came in by an interface that forwards nothing: it may be for the router all the same.
    pub(super) fn local_if_own(&mut self, now: Duration, arrival: RxFrame<'_>, out: &mut Output) {
        let packet = sender::inet(arrival.payload).filter(Ipv4Packet::verify_checksum);
        if packet
            .is_some_and(|packet| self.is_own(arrival.interface, Ipv4Addr::from(packet.destination()).into()))
        {
            self.local(now, arrival, out);
        }
    }

    /// A packet to one of the router's addresses. Fragments are not put together: what a router is asked is short.
    pub(super) fn local(&mut self, now: Duration, arrival: RxFrame<'_>, out: &mut Output) {
        let Some(packet) = sender::inet(arrival.payload) else { return };
        if packet.fragment_offset() != 0 || packet.more_fragments() {
            return;
        }
        match packet.protocol() {
            protocol::ICMP => self.icmp(now, arrival, packet, out),
            protocol::UDP if !is_intact(&packet) => {}
            protocol::UDP => self.error(now, arrival, Icmpv4Kind::PortUnreachable, 0, out),
            _ => self.error(now, arrival, Icmpv4Kind::ProtocolUnreachable, 0, out),
        }
    }

    fn icmp(&mut self, now: Duration, arrival: RxFrame<'_>, packet: Ipv4Packet<&[u8]>, out: &mut Output) {
        let Ok(request) = Icmpv4Message::new_checked(packet.payload()) else { return };
        let (kind, code) = request.kind().type_and_code();
        let is_echo = kind == Icmpv4Kind::EchoRequest.type_and_code().0;
        if is_echo && request.verify_checksum() && !arrival.to_group {
            self.echo(now, arrival, packet, code, out);
        }
    }

    fn echo(
        &mut self,
        now: Duration,
        arrival: RxFrame<'_>,
        packet: Ipv4Packet<&[u8]>,
        code: u8,
        out: &mut Output,
    ) {
        let (from, to): (Ipv4Addr, Ipv4Addr) = (packet.destination().into(), packet.source().into());
        let Some(way) = self.way(IpAddr::V4(to), arrival.interface) else { return };
        let mut bytes = packet.payload().to_vec();
        let mut reply = Icmpv4Message::new_unchecked(&mut bytes[..]);
        let kind = Icmpv4Kind::EchoReply.type_and_code().0;
        reply.set_kind(Icmpv4Kind::from_type_and_code(kind, code));
        reply.fill_checksum();
        self.counters.echoes += 1;
        self.originate_icmp(now, (from, to), packet.type_of_service(), &bytes, way, out);
    }
}

fn is_intact(packet: &Ipv4Packet<&[u8]>) -> bool {
    let datagram = udp::Datagram::new_checked(packet.payload());
    let pseudo = |len| pseudo_ipv4(packet.source(), packet.destination(), protocol::UDP, len);
    datagram.is_ok_and(|datagram| datagram.verify_checksum(pseudo(datagram.length())))
}
