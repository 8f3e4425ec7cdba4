//! SlotRange in the hands of the kernel: whose they are, and how they come back, each once.

use std::ptr::NonNull;
use std::sync::Arc;

use crate::burst::{Packet, Slot};
use crate::verdict::Verdict;

/// SlotRange that the kernel may write to. They are never freed: after a socket is closed, a network card may go on for a
/// while.
#[derive(Clone)]
pub struct SlotMemory(Arc<SlotRange>);

struct SlotRange {
    first: NonNull<Slot>,
    count: usize,
}

// SAFETY: it is only an address and a number; slots are reached through a `KernelSlots`, which has them exclusively.
unsafe impl Send for SlotRange {}
// SAFETY: as above: shared, it answers nothing but address and number.
unsafe impl Sync for SlotRange {}

impl SlotMemory {
    /// Gives slots away for good, and the custody of all of them.
    pub fn new(slots: Vec<Slot>) -> (SlotMemory, KernelSlots) {
        let slots: &'static mut [Slot] = slots.leak();
        let count = slots.len();
        let memory = SlotMemory(Arc::new(SlotRange { first: NonNull::from(slots).cast(), count }));
        let mut custody = KernelSlots::of_none(&memory);
        for index in 0..count {
            custody.held[index / 64] |= 1 << (index % 64);
        }
        (memory, custody)
    }

    /// The address of the first slot.
    pub fn start(&self) -> usize {
        self.0.first.as_ptr().addr()
    }

    /// The address behind the last slot.
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

/// The slots of a memory that somebody has given up, so that the kernel may use them. Two custodies never have the same
/// slot: it takes the exclusive reference to give one up.
pub struct KernelSlots {
    memory: SlotMemory,
    held: Box<[u64]>,
}

impl KernelSlots {
    /// Of no slots yet.
    pub fn of_none(memory: &SlotMemory) -> KernelSlots {
        KernelSlots { memory: memory.clone(), held: vec![0; memory.0.count.div_ceil(64)].into() }
    }

    /// Takes a packet, and says which slot it is; hands it back if it is of another memory.
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

    /// Gives a packet back, if it has that one.
    #[inline]
    pub fn take(&mut self, index: usize) -> Option<Packet<'static>> {
        let word = self.held.get_mut(index / 64)?;
        let bit = 1 << (index % 64);
        if *word & bit == 0 {
            return None;
        }
        *word &= !bit;
        // SAFETY: the bit says that the slot is inside the memory, which is never freed, and that its exclusive
        // reference was given up here; the bit is cleared, so it is made again once. The kernel has handed the slot
        // back before its index got here. Bytes of the frame and its numbers are valid whatever was written; the
        // verdict is, because it is written anew.
        unsafe {
            let slot = self.memory.0.first.as_ptr().add(index);
            (&raw mut (*slot).verdict).write(Verdict::Forward);
            Some(&mut *slot)
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.held.iter().all(|word| *word == 0)
    }

    /// Gives all its packets back.
    pub fn take_all(&mut self) -> impl Iterator<Item = Packet<'static>> + '_ {
        (0..self.memory.0.count).filter_map(|index| self.take(index))
    }
}
