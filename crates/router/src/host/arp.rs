//! ARP: answers requests for the router's addresses, and learns link addresses from messages of others (RFC 826,
//! RFC 5227).

use std::net::Ipv4Addr;

use super::ip_layer::IpLayer;
use super::neighbor::{Evidence, NeighborId};
use super::next_hop::NextHopResolver;
use super::received::RxFrame;
use super::responder::NeighborResponder;
use super::sender::PacketSender;
use fullview_plane::wire::arp::{ArpOperation, ArpPacket};
use fullview_plane::wire::ethernet::EtherType;

impl NeighborResponder {
    pub fn receive_arp<R: NextHopResolver>(&mut self, sender: &mut PacketSender<'_, R>, frame: RxFrame<'_>) {
        let Ok(Some(message)) = ArpPacket::parse(frame.payload) else { return };
        let (source, target) = (Ipv4Addr::from(message.sender), Ipv4Addr::from(message.target));
        if message.sender_mac.is_group() || !is_valid_sender(source) {
            return;
        }
        if sender.ip.interfaces.is_own(frame.interface, source.into()) {
            return self.conflict(sender, frame.interface, source.into(), message.sender_mac);
        }
        let is_for_us = sender.ip.interfaces.is_own_on(frame.interface, target.into());
        let neighbor = NeighborId { interface: frame.interface, ip: source.into() };
        if let Some(evidence) = evidence(&message, frame.to_group, is_for_us)
            && can_be_on_link(sender.ip, neighbor)
        {
            sender.learn(neighbor, message.sender_mac, evidence);
        }
        if message.operation == ArpOperation::Request && is_for_us {
            self.answer_arp(sender, frame.interface, &message);
        }
    }

    fn answer_arp<R>(&mut self, sender: &mut PacketSender<'_, R>, number: u16, request: &ArpPacket) {
        let Some(interface) = sender.ip.interfaces.get(number) else { return };
        let answer = ArpPacket {
            operation: ArpOperation::Reply,
            sender_mac: interface.mac,
            sender: request.target,
            target_mac: request.sender_mac,
            target: request.sender,
        };
        sender.out.send(interface, request.sender_mac, EtherType::ARP, &answer.bytes());
        self.answers += 1;
    }
}

/// Whether a station with this address can be on the link: a network of the interface holds it, or it is in the cache.
fn can_be_on_link<R: NextHopResolver>(ip: &IpLayer<R>, neighbor: NeighborId) -> bool {
    ip.interfaces.is_on_link(neighbor.interface, neighbor.ip)
        || ip.neighbors.oldest_queued(neighbor).is_some()
        || ip.neighbors.mac(neighbor).is_some()
}

/// Whether an address may be the sender's. A station that only probes whether an address is free sends 0.0.0.0.
fn is_valid_sender(sender: Ipv4Addr) -> bool {
    sender.is_unspecified() || !matches!(sender.octets()[0], 0 | 127 | 224..=255)
}

/// What the message proves about its sender: nothing, if the sender has no address yet.
fn evidence(message: &ArpPacket, to_group: bool, is_for_us: bool) -> Option<Evidence> {
    match message.operation {
        _ if message.sender == 0 => None,
        ArpOperation::Request if is_for_us => Some(Evidence::Request),
        ArpOperation::Reply if is_for_us && !to_group => Some(Evidence::Solicited { overrides: true }),
        _ => Some(Evidence::Unsolicited { overrides: true }),
    }
}
