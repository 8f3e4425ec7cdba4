//! Packets of flows that come in by the inner interface, leave by the outer one with another source, or come in there for
//! another destination.

use fullview_filter::address::Address;
use fullview_filter::packet::protocol::tcp::{ACK, FIN, RST, SYN};
use fullview_filter::packet::protocol::{ICMP, TCP};
use fullview_filter::packet::{Direction, IcmpMessage, Packet, Pass, TcpSegment, Transport};
use proptest::prelude::*;

/// What a flow's next packet is.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    Datagram,
    Echo,
    Open,
    Data(u16),
    Close,
    Reset,
    /// Its sequence number is so far from what it should be.
    Stray(i32),
}

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Wait(u64),
    Send { flow: u16, from_client: bool, content: Content },
}

/// Flows with numbers below this.
const FLOWS: u16 = 9;

pub fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let content = prop_oneof![
        2 => Just(Content::Datagram),
        1 => Just(Content::Echo),
        4 => Just(Content::Open),
        8 => (0_u16..3000).prop_map(Content::Data),
        2 => Just(Content::Close),
        1 => Just(Content::Reset),
        2 => (-80_000..80_000).prop_map(Content::Stray),
    ];
    let send = (0..FLOWS, any::<bool>(), content).prop_map(|(flow, from_client, content)| Step::Send {
        flow,
        from_client,
        content,
    });
    let wait = prop_oneof![4 => 0_u64..9, 1 => 10_000_u64..130_000].prop_map(Step::Wait);
    prop::collection::vec(prop_oneof![12 => send, 1 => wait], 1..most)
}

/// How far each end of each flow has come: first the client.
#[derive(Default)]
pub struct Conversations([[u32; 2]; FLOWS as usize]);

impl Conversations {
    /// The packet, which both ends are taken to have seen.
    pub fn packet(&mut self, flow: u16, from_client: bool, content: Content) -> Packet {
        let packet = packet(flow, from_client);
        let sent = &mut self.0[usize::from(flow)];
        let (own, other) = (usize::from(!from_client), usize::from(from_client));
        let segment = |flags, seq, payload| {
            let scale = (flags & SYN != 0).then_some(2);
            let window = 4000 + 100 * flow;
            Transport::Tcp(TcpSegment { seq, ack: sent[other], flags, window, payload, scale })
        };
        let start = 1000 * u32::from(flow) + own as u32 * 900_000_000;
        let (transport, next) = match content {
            Content::Datagram => return packet,
            Content::Echo => return echo(packet, from_client),
            Content::Open => {
                let flags = if from_client { SYN } else { SYN | ACK };
                (segment(flags, start, 0), start.wrapping_add(1))
            }
            Content::Data(length) => {
                (segment(ACK, sent[own], length), sent[own].wrapping_add(u32::from(length)))
            }
            Content::Close => (segment(FIN | ACK, sent[own], 0), sent[own].wrapping_add(1)),
            Content::Reset => (segment(RST, sent[own], 0), sent[own]),
            Content::Stray(by) => (segment(ACK, sent[own].wrapping_add_signed(by), 10), sent[own]),
        };
        sent[own] = next;
        Packet { protocol: TCP, transport, length: 40, ..packet }
    }
}

fn echo(packet: Packet, from_client: bool) -> Packet {
    let kind = if from_client { 8 } else { 0 };
    let message = IcmpMessage { kind, code: 0, id: packet.source_port, is_query: true };
    Packet {
        protocol: ICMP,
        transport: Transport::Icmp(message),
        source_port: 0,
        destination_port: 0,
        ..packet
    }
}

fn packet(flow: u16, from_client: bool) -> Packet {
    let inside = (Address::inet(0x0a00_0001 + u32::from(flow / 6)), 40_000 + flow);
    let outside = (super::address("198.51.100.2"), 443);
    let (interface, direction, client, server) = match flow % 3 {
        0 => (2, Direction::In, inside, outside),
        // Its source is translated.
        1 if from_client => (1, Direction::Out, inside, outside),
        1 => (1, Direction::Out, (super::address("192.0.2.7"), inside.1), outside),
        // Its destination is.
        _ if from_client => (1, Direction::In, (outside.0, inside.1), (super::address("192.0.2.1"), 8080)),
        _ => (1, Direction::In, (outside.0, inside.1), (super::address("10.0.0.9"), 80)),
    };
    let direction = if from_client { direction } else { direction.opposite() };
    let pass = Pass { direction, interface, received_on: interface };
    match from_client {
        true => Packet::udp(pass, client, server),
        false => Packet::udp(pass, server, client),
    }
}
