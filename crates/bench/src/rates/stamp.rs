//! The stamp of a probe: when the schedule wanted it sent. Even the smallest frame has room for it.

use std::time::Duration;

use fullview_plane::burst::Slot;
use fullview_plane::port::timed::{KEPT, WordFilter};
use fullview_plane::wire::checksum::Sum;
use fullview_table::Family;

use super::frame::payload_at;
use crate::traffic::frame::udp_checksum;

/// The first word of a probe's payload; that of other packets is zero.
const WORD: u32 = 0x7072_6f62;
/// Bytes of the word and of the time after it.
const LENGTH: usize = 12;
const _: () = assert!(payload_at(Family::Inet) + LENGTH <= 60 && payload_at(Family::Inet6) + LENGTH <= KEPT);

/// Where the packets of a family have their stamps.
#[derive(Clone, Copy, Debug)]
pub struct StampPlace {
    payload: usize,
    /// UDP over IPv4 goes without a checksum.
    checksum: Option<usize>,
}

impl StampPlace {
    pub fn of(family: Family) -> StampPlace {
        let payload = payload_at(family);
        StampPlace { payload, checksum: (family == Family::Inet6).then(|| payload - 2) }
    }

    /// The packets that have a stamp.
    pub fn probes(self) -> WordFilter {
        WordFilter { offset: self.payload as u32, word: WORD }
    }

    /// Writes a stamp, in nanoseconds since 1970, into a packet whose checksum is that of a payload of zeros.
    pub fn write(self, slot: &mut Slot, due: Duration) {
        let mut stamp = [0; LENGTH];
        stamp[..4].copy_from_slice(&WORD.to_be_bytes());
        stamp[4..].copy_from_slice(&(due.as_nanos() as u64).to_be_bytes());
        let bytes = slot.frame_mut();
        bytes[self.payload..self.payload + LENGTH].copy_from_slice(&stamp);
        if let Some(field) = self.checksum {
            let without = u16::from_be_bytes([bytes[field], bytes[field + 1]]);
            let sum = Sum::ZERO.word(!without).bytes(&stamp);
            bytes[field..field + 2].copy_from_slice(&udp_checksum(sum).to_be_bytes());
        }
    }

    /// Removes the stamp of the slot's packet before.
    pub fn clear(self, slot: &mut Slot) {
        slot.frame_mut()[self.payload..self.payload + LENGTH].fill(0);
    }

    /// The time that is written in a probe.
    pub fn read(self, frame: &[u8; KEPT]) -> Duration {
        let mut nanos = [0; 8];
        nanos.copy_from_slice(&frame[self.payload + 4..self.payload + LENGTH]);
        Duration::from_nanos(u64::from_be_bytes(nanos))
    }
}

#[cfg(test)]
mod tests {
    use fullview_plane::burst::Arena;
    use fullview_plane::wire::checksum::pseudo_ipv6;
    use fullview_plane::wire::ipv6::Ipv6Packet;

    use super::super::frame::{TrafficAddresses, TrafficFrames};
    use super::*;
    use crate::traffic::frame::FrameSize;

    #[test]
    fn a_stamp_is_read_back_and_removed() {
        for family in [Family::Inet, Family::Inet6] {
            let frames = TrafficFrames::new(&TrafficAddresses::of_bed(family), FrameSize::Smallest, &[]);
            let (mut arena, place) = (Arena::new(1), StampPlace::of(family));
            let slot = arena.packets().next().unwrap();
            frames.prepare(slot);
            frames.write(slot, 7);
            let before = slot.frame().to_vec();
            let due = Duration::new(1_700_000_000, 123_456_789);
            place.write(slot, due);
            let mut kept = [0; KEPT];
            kept[..slot.frame_len()].copy_from_slice(slot.frame());
            assert_eq!(place.read(&kept), due);
            let at = place.probes().offset as usize;
            assert_eq!(slot.frame()[at..at + 4], place.probes().word.to_be_bytes());
            if family == Family::Inet6 {
                let ip = Ipv6Packet::new_checked(&slot.frame()[14..]).unwrap();
                let pseudo = pseudo_ipv6(ip.source(), ip.destination(), 17, ip.payload_len().into());
                assert!(pseudo.bytes(ip.payload()).verifies());
            }
            frames.write(slot, 7);
            place.clear(slot);
            assert_eq!(slot.frame(), before);
        }
    }
}
