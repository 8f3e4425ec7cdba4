//! What identifies a flow beside its addresses, in one word.

use crate::rule::Side;

/// Both ports as they stand in the header, the protocol, the interface that the packets come in by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireEnds(u64);

/// The same in parts.
#[derive(Clone, Copy, Debug)]
pub struct EndParts {
    /// Both ports as they stand in the header.
    pub ports: [u8; 4],
    pub protocol: u8,
    /// The interface that the packets come in by.
    pub interface: u16,
}

/// Where the protocol stands.
const PROTOCOL: u32 = 32;
/// Where the interface stands, in the uppermost bits.
const INTERFACE: u32 = 48;

impl WireEnds {
    /// The word that has the bytes of the parts in their order, and one zero before the interface.
    #[inline(always)]
    pub(super) fn of_word(word: u64) -> WireEnds {
        WireEnds(word)
    }

    #[inline(always)]
    pub(super) fn new(parts: EndParts) -> WireEnds {
        let EndParts { ports, protocol, interface } = parts;
        let ports = u64::from(u32::from_le_bytes(ports));
        WireEnds(ports | u64::from(protocol) << PROTOCOL | u64::from(interface) << INTERFACE)
    }

    /// Both ports in order, as a little-endian word.
    pub(super) fn ports(self) -> u32 {
        self.0 as u32
    }

    /// The port of one end.
    pub(super) fn port(self, side: Side) -> u16 {
        let word = side.of((self.0, self.0 >> 16));
        (word as u16).swap_bytes()
    }

    pub(super) fn protocol(self) -> u8 {
        (self.0 >> PROTOCOL) as u8
    }

    pub(super) fn interface(self) -> u16 {
        (self.0 >> INTERFACE) as u16
    }

    /// The ends with the destination's port of others.
    pub(super) fn with_destination_of(self, other: WireEnds) -> WireEnds {
        const DESTINATION: u64 = 0xffff_0000;
        WireEnds(self.0 & !DESTINATION | other.0 & DESTINATION)
    }

    /// Nonzero if others are not the same.
    #[inline(always)]
    pub(super) fn differs(self, other: WireEnds) -> u64 {
        self.0 ^ other.0
    }

    /// What is the same whichever interface the packets come in by.
    #[inline(always)]
    pub(super) fn without_interface(self) -> u64 {
        self.0 & ((1 << INTERFACE) - 1)
    }
}
