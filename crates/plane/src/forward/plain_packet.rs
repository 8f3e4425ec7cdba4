//! What the plain packets of a port have in common.

use crate::burst::Slot;
use crate::view::PortIngress;
use crate::wire::Field;
use crate::wire::ethernet::{EtherType, Mac};

/// The type of a frame and the first two bytes of its IP header, which are compared at once.
const TYPE_AND_VERSION: Field<4> = Field(12);

/// What the plain packets of a family have there: the bits of a mask.
#[derive(Clone, Copy)]
pub(super) struct FrameKind {
    pub value: u32,
    pub mask: u32,
}

/// IPv4 with a header of five words.
pub(super) const PLAIN_INET: FrameKind =
    FrameKind { value: (EtherType::IPV4.0 as u32) << 16 | 0x4500, mask: 0xffff_ff00 };
pub(super) const PLAIN_INET6: FrameKind =
    FrameKind { value: (EtherType::IPV6.0 as u32) << 16 | 0x6000, mask: 0xffff_f000 };

impl FrameKind {
    /// Whether the frame says that it is of this kind.
    #[inline(always)]
    pub fn is_of(self, packet: &Slot) -> bool {
        TYPE_AND_VERSION.number(packet.head()) & self.mask == self.value
    }
}

/// The port, and what is to be forwarded of what comes in there.
#[derive(Clone, Copy)]
pub(super) struct Ours {
    pub port: u16,
    pub interface: u16,
    /// The MAC address in the upper bytes.
    pub mac: u64,
    pub inet: bool,
    pub inet6: bool,
}

impl Ours {
    #[inline(always)]
    pub fn of(ingress: &PortIngress, port: u16) -> Ours {
        let PortIngress { interface, inet, inet6, .. } = *ingress;
        Ours { interface, inet, inet6, ..Ours::to(ingress.mac, port) }
    }

    /// Nothing is forwarded of what comes in there for this address.
    #[inline(always)]
    pub fn to(mac: Mac, port: u16) -> Ours {
        let mut bytes = [0; 8];
        bytes[2..].copy_from_slice(&mac.0);
        Ours { port, interface: 0, mac: u64::from_le_bytes(bytes), inet: false, inet6: false }
    }

    /// Whether a frame is for this MAC address: one load and one comparison.
    #[inline(always)]
    pub fn is_to(&self, head: &[u8; 64]) -> bool {
        u64::from_le_bytes(Field::<8>(0).get(head)) << 16 == self.mac
    }
}
