//! The bed's C interface (`peers/bed/bed.h`) as a safe type. The only file with `unsafe`.
//!
//! A packet is `&mut Slot`, and to the bed a pointer to a buffer with a frame at a known offset. The bed holds each pointer
//! that it was lent and hands it out once between two returns, so that never two references to a slot exist.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::marker::PhantomData;

use fullview_plane::burst::{BURST, Burst, Packet, Slot};

type Buffer = *mut c_void;

#[repr(C)]
struct RouterOfBed {
    frame_at: usize,
    frame_of: Option<extern "C" fn(*const c_void) -> *const u8>,
    describe: extern "C" fn(*const Buffer, u16, u16, i32),
    length_of: extern "C" fn(*const c_void) -> u16,
    quits: *mut bool,
}

unsafe extern "C" {
    fn bed_open(router: *const RouterOfBed);
    fn bed_lend(buffers: *const Buffer, count: usize);
    fn bed_rx_burst(packets: *mut Buffer, room: u16) -> u16;
    fn bed_tx_burst(port: u16, packets: *const Buffer, count: u16);
    fn bed_is_over() -> bool;
}

/// The open bed, with the packets that it was lent. There is one in a process, because the bed's state is static.
pub struct Bed<'a> {
    lent: PhantomData<Packet<'a>>,
    received: [Buffer; BURST],
}

impl<'a> Bed<'a> {
    /// Opens the bed, which ends the process if it cannot be opened, and lends it these packets.
    pub fn open(packets: impl Iterator<Item = Packet<'a>>) -> Bed<'a> {
        let mut packets: Vec<Packet<'a>> = packets.collect();
        let frame_at = packets
            .first()
            .map_or(0, |slot| slot.head().as_ptr().addr() - std::ptr::from_ref::<Slot>(slot).addr());
        let router =
            RouterOfBed { frame_at, frame_of: None, describe, length_of, quits: std::ptr::null_mut() };
        // SAFETY: `RouterOfBed` has the layout of `struct bed_router`, which the bed copies. The pointers that are lent are
        // exclusive references for 'a, given up here, because the vector is dropped and references have no destructor.
        unsafe {
            bed_open(&router);
            bed_lend(packets.as_mut_ptr().cast(), packets.len());
        }
        Bed { lent: PhantomData, received: [std::ptr::null_mut(); BURST] }
    }

    /// Adds up to `most` packets that arrived, as far as `burst` has room. Between slices it waits for the next command.
    #[inline]
    pub fn receive(&mut self, burst: &mut Burst<'a>, most: usize) {
        let room = most.min(burst.room());
        // SAFETY: the array has at least `room` elements.
        let count = unsafe { bed_rx_burst(self.received.as_mut_ptr(), room as u16) };
        let slots = self.received[..usize::from(count)].iter().map(|&packet| {
            // SAFETY: the bed hands out slots that it was lent for 'a, and each only once until it is returned.
            unsafe { &mut *packet.cast::<Slot>() }
        });
        burst.fill(slots);
    }

    /// Takes all packets of a burst, which leave by this port.
    #[inline]
    pub fn transmit(&mut self, port: u16, burst: &mut Burst<'a>) {
        if burst.is_empty() {
            return;
        }
        // SAFETY: a burst is an array of references, which have the layout of pointers. All of them are given up here,
        // because the burst is emptied before anything else can use it. All are of slots that the bed lent.
        unsafe { bed_tx_burst(port, burst.as_mut_ptr().cast(), burst.len() as u16) };
        burst.drain();
    }

    /// Whether the last command has been executed.
    #[inline]
    pub fn is_over(&self) -> bool {
        // SAFETY: it only reads the state of the bed, which one thread uses.
        unsafe { bed_is_over() }
    }
}

/// Writes into each slot what a port reports of a received frame.
extern "C" fn describe(buffers: *const Buffer, count: u16, length: u16, _family: i32) {
    for at in 0..usize::from(count) {
        // SAFETY: the bed passes `count` pointers to slots that it holds, so nothing else refers to them.
        let slot = unsafe { &mut *(*buffers.add(at)).cast::<Slot>() };
        slot.set_frame_len(usize::from(length));
        slot.port = 0;
    }
}

extern "C" fn length_of(buffer: *const c_void) -> u16 {
    // SAFETY: the bed passes a pointer to a slot that it holds.
    let slot = unsafe { &*buffer.cast::<Slot>() };
    slot.frame_len() as u16
}
