//! What may differ between two right routers: the identification of IPv4 packets of their own, which is any number; it
//! is set to zero, and the header's checksum, which depends on it, made right again if it was. Of redirects, whether
//! the sender hears of the shorter way before or after its packet goes on, and whether the header that is quoted has
//! lost its hop by then (RFC 1812, section 4.3.2.3). Nothing else is changed.

use fullview_plane::wire::ethernet::{EtherType, Frame};
use fullview_plane::wire::{icmp, ipv4};

use crate::catalogue::Catalogue;
use crate::dut::Output;
use crate::topology::{ROUTER, SIDES, inet};

pub fn outputs(catalogue: Catalogue, outputs: &[Output]) -> Vec<Output> {
    let mut outputs: Vec<_> = outputs.iter().cloned().map(output).collect();
    if catalogue.redirects() {
        outputs.iter_mut().flat_map(|output| &mut output.0).for_each(|frames| frames.sort());
    }
    outputs
}

fn output(mut output: Output) -> Output {
    output.0.iter_mut().flatten().for_each(|frame| normalize(frame));
    output
}

fn normalize(frame: &mut [u8]) {
    let Ok(mut frame) = Frame::new_checked(frame) else { return };
    if frame.ethertype() != EtherType::IPV4 {
        return;
    }
    let Ok(mut packet) = ipv4::Packet::new_checked(frame.payload_mut()) else { return };
    let is_own = (0..SIDES.len()).any(|side| inet(side, ROUTER).to_bits() == packet.source());
    if is_own && packet.verify_checksum() {
        packet.set_identification(0);
        packet.fill_checksum();
        let (start, end) = (packet.header_len(), usize::from(packet.total_len()));
        forget_hop(&mut frame.payload_mut()[start..end]);
    }
}

/// Of a redirect that is in order, the hop count that it quotes becomes zero.
fn forget_hop(message: &mut [u8]) {
    let is_redirect = icmp::Message::new_checked(&*message)
        .is_ok_and(|message| message.kind() == icmp::Kind::Redirect && message.verify_checksum());
    let quoted = message.get_mut(icmp::HEADER..).filter(|quoted| is_redirect && quoted.len() >= ipv4::HEADER);
    let Some(mut quoted) = quoted.map(ipv4::Packet::new_unchecked) else { return };
    if quoted.header_len() <= quoted.bytes().len() && quoted.verify_checksum() {
        quoted.set_ttl(0);
        quoted.fill_checksum();
        icmp::Message::new_unchecked(message).fill_checksum();
    }
}
