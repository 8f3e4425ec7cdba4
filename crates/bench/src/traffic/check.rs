//! The check of one packet: did exactly what was sent come out, changed as a router has to change it?

use fullview_table::NextHop;

use fullview_plane::burst::Slot;
use fullview_plane::wire::ethernet::Mac;

use super::flow::{Flow, FlowSet};
use super::frame::{Frames, HOP_LIMIT, Headers, Stamp, Template};

/// What can be wrong with a packet that came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    /// A frame length that is not sent.
    Length,
    /// The number of the flow, or the packet's own number, is none that was sent, or they do not belong together.
    Flow,
    /// Not the Ethernet addresses of the next hop.
    Macs,
    /// TTL or hop limit not lowered by exactly one (without a router: not as sent).
    HopLimit,
    /// The IPv4 header checksum is wrong.
    Checksum,
    /// Another header field differs from what was sent: addresses, ports, lengths, protocol, flags, UDP checksum.
    Headers,
    /// The payload differs from what was sent.
    Payload,
    /// Not the egress port of the next hop, or the flow has no route and had to be dropped.
    Egress,
}

impl Fault {
    /// All of them, in the order of their numbers.
    pub const ALL: [Fault; 8] = [
        Fault::Length,
        Fault::Flow,
        Fault::Macs,
        Fault::HopLimit,
        Fault::Checksum,
        Fault::Headers,
        Fault::Payload,
        Fault::Egress,
    ];

    /// The name under which it is counted and reported.
    pub const fn name(self) -> &'static str {
        match self {
            Fault::Length => "length",
            Fault::Flow => "flow",
            Fault::Macs => "macs",
            Fault::HopLimit => "hop-limit",
            Fault::Checksum => "checksum",
            Fault::Headers => "headers",
            Fault::Payload => "payload",
            Fault::Egress => "egress",
        }
    }
}

/// The faults of one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults(u8);

impl Faults {
    fn only(fault: Fault) -> Faults {
        let mut faults = Faults::default();
        faults.note(fault, true);
        faults
    }

    fn note(&mut self, fault: Fault, present: bool) {
        self.0 |= u8::from(present) << fault as u8;
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Fault> {
        Fault::ALL.into_iter().filter(move |fault| self.0 & (1 << *fault as u8) != 0)
    }
}

/// The device between generator and receiver.
#[derive(Clone, Copy, Debug)]
pub enum Passage<'p> {
    /// Nothing: packets have to come as they were sent.
    Direct,
    /// A router: packets have to be changed as RFC 1812 and RFC 8200 demand, and leave as their next hop
    /// demands, listed by next-hop index (entry 0 is never used).
    Routed(&'p [Departure]),
}

/// How packets to one next hop leave a router: without a VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The port.
    pub port: u16,
    /// That port's MAC address.
    pub source: Mac,
    /// The neighbour's MAC address.
    pub destination: Mac,
}

/// Compares packets with what was sent.
pub struct Checker<'f, A> {
    flows: &'f FlowSet<A>,
    frames: &'f Frames<A>,
    passage: Passage<'f>,
}

impl<'f, A: Headers> Checker<'f, A> {
    /// For packets of these flows and frames.
    pub fn new(flows: &'f FlowSet<A>, frames: &'f Frames<A>, passage: Passage<'f>) -> Self {
        Checker { flows, frames, passage }
    }

    /// The packet's faults, and its stamp if that matches what was sent.
    pub fn check(&self, slot: &Slot) -> (Faults, Option<Stamp>) {
        let Some(template) = self.frames.of_len(slot.frame_len()) else {
            return (Faults::only(Fault::Length), None);
        };
        let id = A::flow_id(slot.head());
        let stamp = if template.is_stamped() { A::stamp(slot.frame()) } else { None };
        match self.flows.flow(id) {
            Some(flow) if stamp.is_none_or(|stamp| self.was_sent(stamp, id, template)) => {
                (self.compare(slot, template, flow, stamp), stamp)
            }
            _ => (Faults::only(Fault::Flow), None),
        }
    }

    /// Packets go out in the order of the set, so a packet's number determines its flow and its size.
    fn was_sent(&self, stamp: Stamp, id: u32, template: &Template) -> bool {
        let packets = self.flows.packets();
        let sent = packets[(stamp.sequence % packets.len() as u64) as usize].id;
        let turn = (stamp.sequence % self.frames.turns() as u64) as usize;
        stamp.flow == id && sent == id && self.frames.template(turn).frame_len() == template.frame_len()
    }

    fn compare(&self, slot: &Slot, template: &Template, flow: &Flow<A>, stamp: Option<Stamp>) -> Faults {
        let head = slot.head();
        let mut expected = [0; 64];
        A::write_head(&mut expected, template, flow, stamp.map_or(0, |stamp| stamp.sequence));
        let mut faults = self.compare_departure(slot, &expected, self.flows.next_hops()[flow.id as usize]);
        let lowered = u8::from(matches!(self.passage, Passage::Routed(_)));
        faults.note(Fault::HopLimit, head[A::HOP_LIMIT_AT] != HOP_LIMIT - lowered);
        faults.note(Fault::Checksum, !A::header_checksum_holds(head));
        // Compared already; what is left of the headers must be as sent.
        expected[A::HOP_LIMIT_AT] = head[A::HOP_LIMIT_AT];
        expected[A::CHECKSUM_AT].copy_from_slice(&head[A::CHECKSUM_AT]);
        faults.note(Fault::Headers, head[12..A::PAYLOAD] != expected[12..A::PAYLOAD]);
        let body = &slot.frame()[template.body_at(A::PAYLOAD)..];
        faults.note(Fault::Payload, body != self.frames.body(template));
        faults
    }

    /// Ethernet addresses and egress port.
    fn compare_departure(&self, slot: &Slot, sent: &[u8; 64], next_hop: NextHop) -> Faults {
        let mut faults = Faults::default();
        let head = slot.head();
        let Passage::Routed(departures) = self.passage else {
            faults.note(Fault::Macs, head[..12] != sent[..12]);
            return faults;
        };
        match departures.get(next_hop.index()).filter(|_| next_hop.is_some()) {
            Some(departure) => {
                faults.note(Fault::Egress, slot.port != departure.port);
                let right = head[..6] == departure.destination.0 && head[6..12] == departure.source.0;
                faults.note(Fault::Macs, !right);
            }
            None => faults.note(Fault::Egress, true),
        }
        faults
    }
}
