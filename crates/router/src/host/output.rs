//! Frames that the host stack transmits.

use fullview_plane::interface::Interface;
use fullview_plane::wire::ethernet::{EtherType, Frame, HEADER, Mac, TAG};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutFrame {
    pub port: u16,
    /// The frame from the destination MAC address on, without padding and FCS.
    pub bytes: Vec<u8>,
}

/// Frames to transmit, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    pub frames: Vec<OutFrame>,
}

impl Output {
    /// Sends a frame to a station on an interface's link; nothing if the interface is down.
    pub(super) fn send(&mut self, interface: &Interface, to: Mac, ethertype: EtherType, payload: &[u8]) {
        if !interface.up {
            return;
        }
        let header = if interface.vlan.is_some() { HEADER + TAG } else { HEADER };
        let mut bytes = vec![0; header + payload.len()];
        bytes[header..].copy_from_slice(payload);
        bytes[header - 2..header].copy_from_slice(&ethertype.0.to_be_bytes());
        let mut frame = Frame::new_unchecked(&mut bytes);
        frame.set_destination(to);
        frame.set_source(interface.mac);
        if let Some(vlan) = interface.vlan {
            frame.set_tag(vlan);
        }
        self.frames.push(OutFrame { port: interface.port, bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_the_tag_of_their_interface() {
        let mut out = Output::default();
        let plain = Interface::new(3, Mac([2; 6]));
        out.send(&plain, Mac([4; 6]), EtherType::ARP, &[7]);
        out.send(&Interface { vlan: Some(100), ..plain.clone() }, Mac([4; 6]), EtherType::ARP, &[7]);
        out.send(&Interface { up: false, ..plain }, Mac([4; 6]), EtherType::ARP, &[7]);
        let [one, other] = &out.frames[..] else { panic!("{out:?}") };
        assert_eq!((one.port, &one.bytes[6..]), (3, &[2, 2, 2, 2, 2, 2, 8, 6, 7][..]));
        assert_eq!(&other.bytes[6..], &[2, 2, 2, 2, 2, 2, 0x81, 0, 0, 100, 8, 6, 7][..]);
    }
}
