//! Frames that ports drop.

use crate::verdict::Reason;

/// How many frames a port dropped, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortLosses {
    /// Received frames that are longer than a slot.
    pub too_long: u64,
    /// Received frames with several packets that the port cannot cut, such as in a tunnel, or that the kernel had no memory for.
    pub several: u64,
    /// Received frames with a checksum or tag outside of the frame.
    pub damaged: u64,
    /// Frames that waited for more than a second, received or to be sent: the router was stopped or had no core, or the link was down.
    pub stale: u64,
    /// Frames that the port can never send: too short, too long, or of another packet memory.
    pub unsendable: u64,
    /// Frames that the kernel dropped before the driver: an egress rule or a full queue, which count them too.
    pub dropped: u64,
}

impl PortLosses {
    /// The reasons with a count above zero.
    pub(crate) fn by_reason(self) -> impl Iterator<Item = (Reason, u64)> {
        let PortLosses { too_long, several, damaged, stale, unsendable, dropped } = self;
        let counts = [
            (Reason::FrameTooLong, too_long),
            (Reason::SeveralPackets, several),
            (Reason::FrameDamaged, damaged),
            (Reason::Stale, stale),
            (Reason::Unsendable, unsendable),
            (Reason::DroppedByKernel, dropped),
        ];
        counts.into_iter().filter(|(_, count)| *count > 0)
    }
}
