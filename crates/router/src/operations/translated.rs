//! What a trace says about packets that the filter translates. The explanation knows nothing of the filter.

use std::net::{IpAddr, SocketAddr};

use fullview_filter::address::Address;
use fullview_filter::packet::Packet;
use fullview_plane::trace::TracedPacket;
use fullview_plane::wire::ethernet::Frame;

/// Says what the packet was when it left, or that it did not leave.
pub fn describe(note: &TracedPacket) -> String {
    const STEPS: &str = "these steps are those without the filter, which translated the packet";
    match note.departure.as_ref().and_then(|(_, copied)| read(copied.frame())) {
        None => format!("{STEPS}: {}", note.verdict),
        Some(left) => {
            let (source, destination) = (
                end(&left, left.source, left.source_port),
                end(&left, left.destination, left.destination_port),
            );
            format!("{STEPS}: it left from {source} to {destination}")
        }
    }
}

fn read(frame: &[u8]) -> Option<Packet> {
    Packet::parse(Frame::new_checked(frame).ok()?.payload(), Packet::NOTHING.pass).ok()
}

fn end(packet: &Packet, address: Address, port: u16) -> String {
    let address = IpAddr::from(address);
    if packet.shows_ports() { SocketAddr::new(address, port).to_string() } else { address.to_string() }
}
