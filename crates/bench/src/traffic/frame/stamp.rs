//! The stamp in a packet's payload, from which the receiver recognises it.

/// Number of the packet in the stream and of its flow: twelve bytes at the start of the payload, in network order.
///
/// IPv4 frames of 54 bytes and more have room, so all of them; IPv6 frames from 74 bytes on. A smaller IPv6 frame has
/// no number: it can be lost, but neither recognised as a duplicate nor as out of order. Its flow is still known, by
/// the flow label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Number of the packet in the stream, from 0.
    pub sequence: u64,
    /// Number of the flow.
    pub flow: u32,
}

impl Stamp {
    /// Length in bytes.
    pub const LEN: usize = 12;

    /// The bytes on the wire.
    #[inline(always)]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[8..].copy_from_slice(&self.flow.to_be_bytes());
        bytes
    }

    /// The stamp at the start of `payload`, if it is long enough.
    #[inline(always)]
    pub fn from_bytes(payload: &[u8]) -> Option<Self> {
        let (sequence, rest) = payload.split_first_chunk::<8>()?;
        let flow = rest.first_chunk::<4>()?;
        Some(Stamp { sequence: u64::from_be_bytes(*sequence), flow: u32::from_be_bytes(*flow) })
    }

    /// The bytes on the wire as words, for a checksum. The stamp starts at an even offset of its datagram.
    #[inline(always)]
    pub(super) fn words(self) -> [u16; Self::LEN / 2] {
        let bytes = self.to_bytes();
        std::array::from_fn(|word| u16::from_be_bytes([bytes[2 * word], bytes[2 * word + 1]]))
    }
}
