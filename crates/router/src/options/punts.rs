//! How many packets a second the host gets of which nothing becomes except an ICMP error or the resolution of a neighbour.

use std::num::NonZeroU32;

use fullview_plane::verdict::LimitedReason;

/// Packets per second by reason. Each worker, and each processor that runs the program in the kernel, hands over so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PuntRates(pub [Option<NonZeroU32>; LimitedReason::COUNT]);

impl PuntRates {
    /// The rate where none is configured.
    pub const USUAL: NonZeroU32 = NonZeroU32::MIN.saturating_add(9_999);

    /// The rate of a worker.
    pub fn of_worker(&self, reason: LimitedReason) -> NonZeroU32 {
        self.0[reason.index()].unwrap_or(PuntRates::USUAL)
    }

    /// The rate of a processor that runs the program in the kernel; `None` if it passes all of these packets. While routes
    /// change, the kernel has routes that the program does not have yet, and forwards by them.
    pub fn of_program(&self, reason: LimitedReason) -> Option<NonZeroU32> {
        let configured = self.0[reason.index()];
        match reason {
            LimitedReason::TtlExpired => configured.or(Some(PuntRates::USUAL)),
            LimitedReason::NoRoute | LimitedReason::Discarded => configured,
            LimitedReason::NoNeighbor | LimitedReason::TooBig => None,
        }
    }
}
