//! Packets that the program in the kernel copies for this process.

use std::sync::Arc;
use std::time::SystemTime;

use crate::program_verdict::ProgramVerdict;
use crate::sample_backlog::SampleBacklog;
use crate::trace::TraceRequest;

/// A copy of a packet, with what the program decided about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedPacket {
    /// When the program decided.
    pub at: SystemTime,
    /// The port that received it.
    pub port: u16,
    pub verdict: ProgramVerdict,
    /// Of a forwarded packet: the port that it left by.
    pub egress: Option<u16>,
    /// The length of the frame, of which `frame` may be the beginning only.
    pub frame_len: u32,
    /// The frame as it came in, with the VLAN tag that the kernel keeps beside it.
    pub frame: Vec<u8>,
    /// Whether it is several segments in one frame, which are split later.
    pub is_segmented: bool,
}

impl ObservedPacket {
    /// Whether bytes are missing at the end of the frame.
    pub fn is_cut(&self) -> bool {
        self.frame.len() < self.frame_len as usize
    }
}

/// What the program has copied since it was read last.
#[derive(Default)]
pub struct Observed {
    /// Packets that requests may ask for; they are more than match.
    pub packets: Vec<ObservedPacket>,
    /// Packets that there was no room for.
    pub missed: u64,
}

/// The process's end of a program's copies.
pub trait PacketObserver: Send {
    /// Copies the packets that these requests ask for from now on, in place of those of the requests before.
    fn watch(&mut self, requests: &[Arc<TraceRequest>]);

    /// The ports have these devices from now on, by port number, 0 for a port without one. What was copied before has to be read
    /// before, and the requests have to be made again afterwards.
    fn follow_devices(&mut self, devices: Vec<u32>);

    /// Takes what was copied; samples go to the backlog.
    fn read(&mut self, samples: &mut SampleBacklog) -> Observed;
}
