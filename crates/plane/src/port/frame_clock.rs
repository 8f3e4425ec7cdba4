//! The age of frames in the receive ring of a packet socket.

use libc::tpacket2_hdr;
use rustix::time::{ClockId, clock_gettime};

/// The present time of the clock by which the kernel stamps frames (`CLOCK_REALTIME`).
///
/// That clock may be set. Frames from before a step forward seem old, and frames from before a step backward seem to come
/// from the future, which is not old. Frames that come later have stamps of the clock as it was set. So a step costs what waits in
/// the ring at that moment at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameClock {
    seconds: u32,
    nanos: u32,
}

impl FrameClock {
    /// Reads the coarse clock, which is cheap and lags behind by a tick: no frame seems older than it is.
    pub fn read() -> FrameClock {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        FrameClock { seconds: now.tv_sec as u32, nanos: now.tv_nsec as u32 }
    }

    /// Whether a frame has waited for more than a second: the router was stopped or had no core, and senders have sent again
    /// what they missed.
    #[inline]
    pub fn is_stale(self, frame: &tpacket2_hdr) -> bool {
        // The stamp has 32 bits for the seconds, which overflow in 2106.
        let age = self.seconds.wrapping_sub(frame.tp_sec) as i32;
        (age, self.nanos) > (1, frame.tp_nsec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(tp_sec: u32, tp_nsec: u32) -> tpacket2_hdr {
        tpacket2_hdr {
            tp_status: 0,
            tp_len: 60,
            tp_snaplen: 60,
            tp_mac: 92,
            tp_net: 106,
            tp_sec,
            tp_nsec,
            tp_vlan_tci: 0,
            tp_vlan_tpid: 0,
            tp_padding: [0; 4],
        }
    }

    #[test]
    fn a_frame_is_stale_after_a_second_by_any_clock() {
        let cases = [
            ((100, 5), (99, 5), false),
            ((100, 5), (99, 4), true),
            ((100, 0), (98, 999_999_999), true),
            ((100, 999_999_999), (99, 999_999_999), false),
            // The coarse clock lags behind.
            ((100, 5), (100, 6), false),
            // The clock was set back, or forward.
            ((100, 0), (5000, 0), false),
            ((5000, 0), (100, 0), true),
            // The seconds overflow.
            ((0, 5), (u32::MAX, 5), false),
            ((1, 5), (u32::MAX, 5), true),
        ];
        for ((seconds, nanos), (tp_sec, tp_nsec), is_stale) in cases {
            let clock = FrameClock { seconds, nanos };
            assert_eq!(clock.is_stale(&frame(tp_sec, tp_nsec)), is_stale, "{clock:?} {tp_sec} {tp_nsec}");
        }
    }
}
