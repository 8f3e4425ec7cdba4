//! A packet filter as the program in the kernel applies it: bits of a key that must be equal.

use super::filter::{FilterPrefix, FilterTest, PacketFilter};
use crate::wire::ethernet::EtherType;

/// A key, and which of its bits count. Packets that match the filter match these bits; others may, for example fragments,
/// whose ports are other bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterMask {
    pub value: [u8; FilterMask::BYTES],
    pub mask: [u8; FilterMask::BYTES],
}

/// The places in the key, `struct header_key` in `bpf/observe.h`.
const DEVICE: usize = 0;
const VLAN: usize = 4;
const TYPE: usize = 6;
const SOURCE: usize = 8;
const DESTINATION: usize = 24;
const SOURCE_PORT: usize = 40;
const DESTINATION_PORT: usize = 42;
const PROTOCOL: usize = 44;

impl FilterMask {
    pub const BYTES: usize = 48;

    /// The bits of a field that must be equal. Of two tests of a field the later one counts here.
    fn set(&mut self, place: usize, value: &[u8], mask: &[u8]) {
        let masked: Vec<u8> = value.iter().zip(mask).map(|(value, mask)| value & mask).collect();
        self.value[place..place + value.len()].copy_from_slice(&masked);
        self.mask[place..place + value.len()].copy_from_slice(mask);
    }

    fn set_all<const N: usize>(&mut self, place: usize, value: [u8; N]) {
        self.set(place, &value, &[0xff; N]);
    }

    fn set_test(&mut self, test: &FilterTest) {
        match test {
            FilterTest::Type(ethertype) => self.set_type(*ethertype),
            FilterTest::Vlan(vlan) => self.set_all(VLAN, vlan.to_ne_bytes()),
            FilterTest::Source(prefix) => self.set_prefix(SOURCE, prefix),
            FilterTest::Destination(prefix) => self.set_prefix(DESTINATION, prefix),
            FilterTest::Protocol(protocol) => self.set_all(PROTOCOL, [*protocol]),
            FilterTest::SourcePort(port) => self.set_all(SOURCE_PORT, port.to_be_bytes()),
            FilterTest::DestinationPort(port) => self.set_all(DESTINATION_PORT, port.to_be_bytes()),
        }
    }

    fn set_type(&mut self, ethertype: EtherType) {
        self.set_all(TYPE, ethertype.0.to_be_bytes());
    }

    fn set_prefix(&mut self, place: usize, prefix: &FilterPrefix) {
        match prefix {
            FilterPrefix::Inet(prefix) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix.len())).unwrap_or(0);
                self.set_type(EtherType::IPV4);
                self.set(place, &prefix.first().to_be_bytes(), &mask.to_be_bytes());
            }
            FilterPrefix::Inet6(prefix) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix.len())).unwrap_or(0);
                self.set_type(EtherType::IPV6);
                self.set(place, &prefix.first().to_be_bytes(), &mask.to_be_bytes());
            }
        }
    }
}

impl PacketFilter {
    /// The bits that packets which match have in common. `device` gives the kernel's number of a port's device; a port without
    /// one has no packets.
    pub fn mask(&self, device: impl Fn(u16) -> Option<u32>) -> FilterMask {
        let mut mask = FilterMask { value: [0; FilterMask::BYTES], mask: [0; FilterMask::BYTES] };
        self.tests.iter().for_each(|test| mask.set_test(test));
        if let Some((port, vlan)) = self.ingress {
            mask.set_all(DEVICE, device(port).unwrap_or(0).to_ne_bytes());
            mask.set_all(VLAN, vlan.to_ne_bytes());
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(text: &str, ingress: Option<(u16, u16)>) -> FilterMask {
        let filter = PacketFilter { ingress, ..text.parse().unwrap() };
        filter.mask(|port| (port == 1).then_some(9))
    }

    #[test]
    fn tests_become_bits_of_the_key() {
        let FilterMask { value, mask } = mask("dst 198.51.100.0/22 and udp and dport 53", None);
        assert_eq!(value[TYPE..SOURCE], [8, 0]);
        assert_eq!(
            (&value[DESTINATION..28], &mask[DESTINATION..28]),
            (&[198, 51, 100, 0][..], &[255, 255, 252, 0][..])
        );
        assert_eq!(
            (value[PROTOCOL], mask[PROTOCOL], &value[DESTINATION_PORT..PROTOCOL]),
            (17, 255, &[0, 53][..])
        );
        assert!(mask[..TYPE].iter().chain(&mask[SOURCE..DESTINATION]).all(|bits| *bits == 0));
    }

    #[test]
    fn an_interface_is_a_device_and_a_vlan() {
        let at = mask("", Some((1, 7)));
        assert_eq!(
            (&at.value[..4], &at.value[VLAN..TYPE]),
            (&9u32.to_ne_bytes()[..], &7u16.to_ne_bytes()[..])
        );
        assert_eq!(&at.mask[..TYPE], [0xff; TYPE]);
        assert_eq!(mask("", Some((2, 0))).value[..4], [0; 4], "no packet comes in by device 0");
        let all = mask("src ::/0", None);
        assert_eq!(
            (&all.value[TYPE..SOURCE], &all.mask[SOURCE..DESTINATION]),
            (&[0x86, 0xdd][..], &[0; 16][..])
        );
    }
}
