//! ARP: questions for the router's addresses are answered, answers to its own taken note of (RFC 826, RFC 5227).

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::neighbor::Evidence;
use super::next_hop::NextHopResolver;
use super::output::Output;
use super::{HostStack, RxFrame};
use fullview_plane::wire::arp::{ArpOperation, ArpPacket};
use fullview_plane::wire::ethernet::{EtherType, Mac};

impl<W: NextHopResolver> HostStack<W> {
    pub(super) fn arp(&mut self, now: Duration, arrival: RxFrame<'_>, out: &mut Output) {
        let Ok(Some(message)) = ArpPacket::parse(arrival.payload) else { return };
        let (sender, target) = (Ipv4Addr::from(message.sender), Ipv4Addr::from(message.target));
        if message.sender_mac.is_group() || !may_speak(sender) {
            return;
        }
        if self.is_own(arrival.interface, sender.into()) {
            self.counters.conflicts += 1;
            return;
        }
        let is_for_us = self.is_own_on(arrival.interface, target.into());
        if let Some(evidence) = evidence(&message, arrival.to_group, is_for_us) {
            self.heard(now, arrival.interface, sender, message.sender_mac, evidence, out);
        }
        if message.operation == ArpOperation::Request && is_for_us {
            self.arp_answer(arrival.interface, &message, out);
        }
    }

    /// Takes note of a station, if it can be on this link.
    fn heard(
        &mut self,
        now: Duration,
        number: u16,
        sender: Ipv4Addr,
        mac: Mac,
        evidence: Evidence,
        out: &mut Output,
    ) {
        let on_link = self.interface(number).is_some_and(|interface| interface.is_on_link(sender.into()));
        let key = (number, IpAddr::V4(sender));
        if on_link || self.neighbors.first_waiting(key).is_some() || self.neighbors.mac(key).is_some() {
            self.learn(now, key, mac, evidence, out);
        }
    }

    fn arp_answer(&mut self, number: u16, request: &ArpPacket, out: &mut Output) {
        let Some(interface) = self.interface(number) else { return };
        let answer = ArpPacket {
            operation: ArpOperation::Reply,
            sender_mac: interface.mac,
            sender: request.target,
            target_mac: request.sender_mac,
            target: request.sender,
        };
        out.send(interface, request.sender_mac, EtherType::ARP, &answer.bytes());
        self.counters.neighbor_answers += 1;
    }

    /// Asks for a station: everybody, or only where it was last known to be.
    pub(super) fn arp_ask(&self, number: u16, target: Ipv4Addr, at: Option<Mac>, out: &mut Output) {
        let Some(interface) = self.interface(number) else { return };
        let key = (number, IpAddr::V4(target));
        let waiting = self.neighbors.first_waiting(key).map(|waiting| super::packet::source(&waiting.packet));
        let prompting = match waiting {
            Some(IpAddr::V4(source)) if self.is_own_on(number, source.into()) => Some(source),
            _ => None,
        };
        let Some(sender) = prompting.or_else(|| self.source_inet(number, target)) else { return };
        let request = ArpPacket {
            operation: ArpOperation::Request,
            sender_mac: interface.mac,
            sender: sender.to_bits(),
            target_mac: Mac::default(),
            target: target.to_bits(),
        };
        out.send(interface, at.unwrap_or(Mac::BROADCAST), EtherType::ARP, &request.bytes());
    }

    /// Tells a link of one's address, so that whoever knew another station there knows better (RFC 5227, section 3).
    pub(super) fn arp_announce(&self, number: u16, own: Ipv4Addr, out: &mut Output) {
        let Some(interface) = self.interface(number) else { return };
        let announcement = ArpPacket {
            operation: ArpOperation::Request,
            sender_mac: interface.mac,
            sender: own.to_bits(),
            target_mac: Mac::default(),
            target: own.to_bits(),
        };
        out.send(interface, Mac::BROADCAST, EtherType::ARP, &announcement.bytes());
    }
}

/// Whether an address may stand as the sender's; none is what a station writes that only asks whether one is free.
fn may_speak(sender: Ipv4Addr) -> bool {
    sender.is_unspecified() || !matches!(sender.octets()[0], 0 | 127 | 224..=255)
}

/// What the message proves about its sender: nothing, if it has no address yet.
fn evidence(message: &ArpPacket, to_group: bool, is_for_us: bool) -> Option<Evidence> {
    let answered = Evidence::Answer { overrides: true };
    let unasked = Evidence::Unasked { overrides: true };
    match message.operation {
        _ if message.sender == 0 => None,
        ArpOperation::Request if is_for_us => Some(Evidence::Question),
        ArpOperation::Reply if is_for_us && !to_group => Some(answered),
        _ => Some(unasked),
    }
}
