//! Slots that the kernel owns for a while, and their return, each once.

use std::ptr::NonNull;
use std::sync::Arc;

use crate::burst::{Packet, Slot};
use crate::verdict::Verdict;

/// Memory that the kernel may write to. It is never freed, because a network card may use it for a while after its socket
/// is closed.
#[derive(Clone)]
pub struct SlotMemory(Arc<SlotRange>);

struct SlotRange {
    first: NonNull<Slot>,
    count: usize,
}

// SAFETY: this is only an address and a number; slots are accessed through a `KernelSlots`, which has them exclusively.
unsafe impl Send for SlotRange {}
// SAFETY: as above: a shared reference gives access to address and number only.
unsafe impl Sync for SlotRange {}

impl SlotMemory {
    /// Gives up slots forever, and returns the set of all of them.
    pub fn new(slots: Vec<Slot>) -> (SlotMemory, KernelSlots) {
        let slots: &'static mut [Slot] = slots.leak();
        let count = slots.len();
        let memory = SlotMemory(Arc::new(SlotRange { first: NonNull::from(slots).cast(), count }));
        let mut all = KernelSlots::none(&memory);
        for index in 0..count {
            all.held[index / 64] |= 1 << (index % 64);
        }
        (memory, all)
    }

    /// The address of the first slot.
    pub fn start(&self) -> usize {
        self.0.first.as_ptr().addr()
    }

    /// The address after the last slot.
    pub fn end(&self) -> usize {
        self.start() + self.0.count * size_of::<Slot>()
    }

    /// Which slot holds the byte of that address.
    pub fn index(&self, address: usize) -> Option<usize> {
        let index = address.checked_sub(self.start())? / size_of::<Slot>();
        (index < self.0.count).then_some(index)
    }

    /// The address of a slot.
    pub fn address(&self, index: usize) -> usize {
        self.start() + index * size_of::<Slot>()
    }
}

/// The slots of a memory whose packets were given up, so that the kernel may use them. No slot is in two sets, because giving
/// one up takes the exclusive reference.
pub struct KernelSlots {
    memory: SlotMemory,
    held: Box<[u64]>,
}

impl KernelSlots {
    /// The empty set.
    pub fn none(memory: &SlotMemory) -> KernelSlots {
        KernelSlots { memory: memory.clone(), held: vec![0; memory.0.count.div_ceil(64)].into() }
    }

    /// Adds the slot of a packet and returns its number; hands back a packet of another memory.
    #[inline]
    pub fn put(&mut self, packet: Packet<'static>) -> Result<usize, Packet<'static>> {
        match self.memory.index(std::ptr::from_mut(packet).addr()) {
            Some(index) => {
                self.held[index / 64] |= 1 << (index % 64);
                Ok(index)
            }
            None => Err(packet),
        }
    }

    /// Removes a slot and returns its packet, if the slot is in the set.
    #[inline]
    pub fn take(&mut self, index: usize) -> Option<Packet<'static>> {
        let word = self.held.get_mut(index / 64)?;
        let bit = 1 << (index % 64);
        if *word & bit == 0 {
            return None;
        }
        *word &= !bit;
        // SAFETY: the bit is set, so the slot is inside the memory, which is never freed, and its exclusive reference
        // was given up to this set. The bit is cleared, so the reference is made again only once. The kernel returned
        // the slot before its index got here. Bytes of the frame and its numbers are valid whatever the kernel wrote,
        // and the verdict is valid because it is written here.
        unsafe {
            let slot = self.memory.0.first.as_ptr().add(index);
            (&raw mut (*slot).verdict).write(Verdict::Forward);
            Some(&mut *slot)
        }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.held.iter().all(|word| *word == 0)
    }

    /// Removes all slots and returns their packets.
    pub fn take_all(&mut self) -> impl Iterator<Item = Packet<'static>> + '_ {
        (0..self.memory.0.count).filter_map(|index| self.take(index))
    }
}
