//! A loop over packets, and what reads their headers for it.

use super::super::plain_packet::Ours;
use crate::burst::Slot;

/// A loop over packets.
pub trait HeaderLoop {
    /// What it returns.
    type Output;

    /// Runs the loop. To be inlined always, as what is not inlined is compiled for any processor.
    fn run(self, headers: impl FourHeaders) -> Self::Output;
}

/// Reads the headers of four packets at once.
pub trait FourHeaders: Copy + sealed::Sealed {
    /// The destinations of four packets, if each is a correct IPv4 packet without options from this port, which has IPv4, and
    /// none needs a closer look.
    fn inet(self, packets: [&Slot; 4], ours: &Ours) -> Option<[u32; 4]>;

    /// The destinations of four packets, if each is a correct IPv6 packet from this port, which has IPv6, and none needs a closer
    /// look.
    fn inet6(self, packets: [&Slot; 4], ours: &Ours) -> Option<[u128; 4]>;
}

/// Leaves all packets to the plain code.
#[derive(Clone, Copy)]
pub(super) struct OneByOne;

impl sealed::Sealed for OneByOne {}

impl FourHeaders for OneByOne {
    #[inline(always)]
    fn inet(self, _: [&Slot; 4], _: &Ours) -> Option<[u32; 4]> {
        None
    }

    #[inline(always)]
    fn inet6(self, _: [&Slot; 4], _: &Ours) -> Option<[u128; 4]> {
        None
    }
}

pub(super) mod sealed {
    pub trait Sealed {}
}
