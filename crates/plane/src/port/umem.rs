//! Packet memory (UMEM) that AF_XDP sockets share with the kernel: the slots themselves, so that no frame is copied.
//!
//! The kernel keeps 256 bytes free before a frame. A frame begins 8 bytes into its slot, so the chunk that the kernel
//! uses begins in the slot before. The kernel does not write there, because classify.c removes metadata. In unaligned
//! mode a chunk may have any start and length; but a network card needs each chunk within one page, because consecutive
//! pages need not be consecutive for the card. So only the slots whose chunk lies within a page are handed out, 28 of 64.
//! The other slots are never used, which costs memory and no time.

use super::sys::{KernelSlots, SlotMemory};
use crate::burst::{FRAME_CAPACITY, Packet, Slot};

/// Bytes the kernel keeps before each frame.
const HEADROOM: usize = 256;
/// Bytes of a chunk, which ends with its slot.
const CHUNK: usize = HEADROOM + FRAME_CAPACITY;
/// The smallest page; larger pages are multiples of it.
const PAGE: usize = 4096;
/// Slots at the beginning and end that may lie outside of whole pages.
const MARGIN: usize = 3;

/// The bit position of a frame's offset within its chunk, in an address of unaligned mode.
const OFFSET_SHIFT: u32 = 48;

/// The memory of all AF_XDP ports of a process, so that packets can move between them.
#[derive(Clone)]
pub struct Umem {
    memory: SlotMemory,
    start: usize,
    len: usize,
}

impl Umem {
    /// Memory for this number of packets, and the packets. It is never freed.
    pub fn new(packets: usize) -> (Umem, Vec<Packet<'static>>) {
        let slots = packets.div_ceil(28) * 64 + 2 * MARGIN;
        let (memory, mut all) = SlotMemory::new((0..slots).map(|_| Slot::EMPTY).collect());
        let start = memory.start().next_multiple_of(PAGE);
        let umem = Umem { start, len: memory.end() / PAGE * PAGE - start, memory };
        let usable = (0..slots).filter(|slot| umem.is_usable(*slot)).take(packets);
        let packets = usable.filter_map(|slot| all.take(slot)).collect();
        (umem, packets)
    }

    /// The registration of the memory with the kernel.
    pub(super) fn registration(&self) -> libc::xdp_umem_reg {
        libc::xdp_umem_reg {
            addr: self.start as u64,
            len: self.len as u64,
            chunk_size: CHUNK as u32,
            headroom: 0,
            flags: libc::XDP_UMEM_UNALIGNED_CHUNK_FLAG,
            tx_metadata_len: 0,
        }
    }

    /// An empty set of slots that a port gives to the kernel.
    pub(super) fn kernel_slots(&self) -> KernelSlots {
        KernelSlots::none(&self.memory)
    }

    /// The chunk address of a slot in the kernel.
    #[inline]
    pub(super) fn chunk(&self, slot: usize) -> u64 {
        (self.frame(slot) as usize - HEADROOM) as u64
    }

    /// The frame address of a slot in the kernel.
    #[inline]
    pub(super) fn frame(&self, slot: usize) -> u64 {
        (self.memory.address(slot) + Slot::FRAME_OFFSET - self.start) as u64
    }

    /// The slot of a frame address, and the distance of the frame from its usual place in the slot.
    #[inline]
    pub(super) fn locate(&self, address: u64) -> Option<(usize, usize)> {
        let frame = (address & ((1 << OFFSET_SHIFT) - 1)) + (address >> OFFSET_SHIFT);
        let place = self.start.checked_add(usize::try_from(frame).ok()?)?;
        let slot = self.memory.index(place)?;
        Some((slot, place.checked_sub(self.memory.address(slot) + Slot::FRAME_OFFSET)?))
    }

    fn is_usable(&self, slot: usize) -> bool {
        let end = self.memory.address(slot) + size_of::<Slot>();
        let chunk = end - CHUNK;
        chunk >= self.start && end <= self.start + self.len && chunk / PAGE == (end - 1) / PAGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_lie_within_pages_and_are_found_again() {
        let (umem, packets) = Umem::new(1000);
        assert_eq!(packets.len(), 1000);
        let mut kernel_slots = umem.kernel_slots();
        for packet in packets {
            let frame = packet.head().as_ptr().addr();
            let slot = kernel_slots.put(packet).unwrap();
            let chunk = umem.chunk(slot);
            assert_eq!(chunk / PAGE as u64, (chunk + CHUNK as u64 - 1) / PAGE as u64);
            assert!(chunk + CHUNK as u64 <= umem.registration().len);
            assert_eq!(umem.start as u64 + umem.frame(slot), frame as u64);
            assert_eq!(umem.locate(chunk | 256 << OFFSET_SHIFT), Some((slot, 0)));
            assert_eq!(umem.locate(umem.frame(slot) + 9), Some((slot, 9)));
            assert_eq!(umem.locate(umem.frame(slot) - 1), None);
        }
        assert_eq!(umem.locate(u64::MAX), None);
        assert_eq!(umem.locate(umem.len as u64 + (3 * size_of::<Slot>()) as u64), None);
    }

    #[test]
    fn a_slot_comes_back_once_and_only_from_its_set() {
        let (umem, mut packets) = Umem::new(2);
        let (mut here, mut there) = (umem.kernel_slots(), umem.kernel_slots());
        let slot = here.put(packets.pop().unwrap()).unwrap();
        assert!(there.take(slot).is_none());
        assert!(here.take(slot).is_some());
        assert!(here.take(slot).is_none());
        assert!(here.take(usize::MAX).is_none());
        let (_, mut others) = Umem::new(1);
        assert!(here.put(others.pop().unwrap()).is_err(), "it belongs to another memory");
    }
}
