//! What may differ between two right routers: the identification of IPv4 packets of their own, which is any number. It
//! is set to zero, and the header's checksum, which depends on it, made right again if it was. Nothing else is changed.

use fullview_plane::wire::ethernet::{EtherType, Frame};
use fullview_plane::wire::ipv4;

use crate::dut::Output;
use crate::topology::{ROUTER, SIDES, inet};

pub fn outputs(outputs: &[Output]) -> Vec<Output> {
    outputs.iter().cloned().map(output).collect()
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
    }
}
