//! Packets to the router itself. Echo requests are answered; other protocols have no receiver here, and the sender gets an
//! ICMP error. The IPv6 half is in `local6`.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::advertisers::RouterAdvertisers;
use super::error::IcmpErrors;
use super::group_reports::GroupReports;
use super::next_hop::NextHopResolver;
use super::reassembly::{Fragment, FragmentId, Reassembler};
use super::received::RxFrame;
use super::responder::NeighborResponder;
use super::sender::PacketSender;
use fullview_plane::wire::checksum::pseudo_ipv4;
use fullview_plane::wire::icmp::{Icmpv4Kind, Icmpv4Message};
use fullview_plane::wire::icmp_message::IcmpKind;
use fullview_plane::wire::ipv4::{Ipv4Packet, protocol};
use fullview_plane::wire::udp;

pub(super) struct LocalDelivery {
    /// Echo requests answered.
    pub echoes: u64,
    pub responder: NeighborResponder,
    pub advertisers: RouterAdvertisers,
    pub group_reports: GroupReports,
    pub reassembler: Reassembler,
}

impl LocalDelivery {
    pub fn new(advertisers: RouterAdvertisers) -> LocalDelivery {
        let (responder, reassembler) = (NeighborResponder::default(), Reassembler::default());
        let group_reports = GroupReports::default();
        LocalDelivery { echoes: 0, responder, advertisers, group_reports, reassembler }
    }

    /// Receives a packet that the router may not forward, if it is for the router.
    pub fn receive_if_own<R: NextHopResolver>(
        &mut self,
        errors: &mut IcmpErrors,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
    ) {
        let packet = frame.inet().filter(Ipv4Packet::verify_checksum);
        let destination = packet.map(|packet| Ipv4Addr::from(packet.destination()));
        let interfaces = &sender.ip.interfaces;
        if destination.is_some_and(|destination| interfaces.is_own(frame.interface, destination.into())) {
            self.receive(errors, sender, frame);
        }
    }

    /// Receives a packet to one of the router's addresses, when its last fragment has arrived.
    pub fn receive<R: NextHopResolver>(
        &mut self,
        errors: &mut IcmpErrors,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
    ) {
        let Some(packet) = frame.inet() else { return };
        if packet.fragment_offset() != 0 || packet.more_fragments() {
            let Some(payload) = self.reassemble(sender.now, frame.interface, &packet) else { return };
            return self.receive(errors, sender, RxFrame { reassembled: true, payload: &payload, ..frame });
        }
        match packet.protocol() {
            protocol::ICMP => self.receive_icmp(sender, frame, packet),
            protocol::UDP if !is_intact(&packet) => {}
            protocol::UDP => errors.report(sender, frame, Icmpv4Kind::PortUnreachable.into()),
            _ => errors.report(sender, frame, Icmpv4Kind::ProtocolUnreachable.into()),
        }
    }

    /// Returns the whole packet if this was its last missing fragment.
    fn reassemble(&mut self, now: Duration, interface: u16, packet: &Ipv4Packet<&[u8]>) -> Option<Vec<u8>> {
        let id = FragmentId {
            interface,
            source: Ipv4Addr::from(packet.source()).into(),
            destination: Ipv4Addr::from(packet.destination()).into(),
            protocol: packet.protocol(),
            identification: packet.identification().into(),
        };
        let fragment = Fragment {
            headers: packet.header(),
            offset: packet.fragment_offset(),
            more: packet.more_fragments(),
            bytes: packet.payload(),
        };
        let (header, payload) = self.reassembler.add(now, id, fragment)?;
        let mut bytes = [header, payload].concat();
        let total = u16::try_from(bytes.len()).ok()?;
        let mut whole = Ipv4Packet::new_unchecked(&mut bytes);
        whole.set_total_len(total);
        whole.set_fragment(0, false);
        whole.fill_checksum();
        Some(bytes)
    }

    fn receive_icmp<R: NextHopResolver>(
        &mut self,
        sender: &mut PacketSender<'_, R>,
        frame: RxFrame<'_>,
        packet: Ipv4Packet<&[u8]>,
    ) {
        let Ok(request) = Icmpv4Message::new_checked(packet.payload()) else { return };
        let is_echo = request.kind().type_and_code().0 == Icmpv4Kind::EchoRequest.type_and_code().0;
        if !is_echo || !request.verify_checksum() || frame.to_group {
            return;
        }
        let (own, to): (Ipv4Addr, Ipv4Addr) = (packet.destination().into(), packet.source().into());
        let Some(neighbor) = sender.ip.next_neighbor(IpAddr::V4(to), frame.interface) else { return };
        self.echoes += 1;
        sender.originate_icmp((own, to), packet.type_of_service(), &echo_reply(&packet), neighbor);
    }
}

/// The reply to an echo request, with the code of the request.
fn echo_reply(packet: &Ipv4Packet<&[u8]>) -> Vec<u8> {
    let mut bytes = packet.payload().to_vec();
    let mut reply = Icmpv4Message::new_unchecked(&mut bytes[..]);
    let (_, code) = reply.kind().type_and_code();
    let (kind, _) = Icmpv4Kind::EchoReply.type_and_code();
    reply.set_kind(Icmpv4Kind::from_type_and_code(kind, code));
    reply.fill_checksum();
    bytes
}

fn is_intact(packet: &Ipv4Packet<&[u8]>) -> bool {
    let datagram = udp::Datagram::new_checked(packet.payload());
    let pseudo = |len| pseudo_ipv4(packet.source(), packet.destination(), protocol::UDP, len);
    datagram.is_ok_and(|datagram| datagram.verify_checksum(pseudo(datagram.length())))
}
