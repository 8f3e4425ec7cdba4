//! Frames with the time at which the kernel received them, for measurements.
//!
//! A filter in the kernel selects frames by one word of their bytes, so that all others cost one comparison. The selected
//! ones wait in a ring that is read after the measurement: no thread takes a core's time meanwhile.

use std::time::Duration;

use super::PortError;
use super::link::Link;
use super::packet::address;
use super::sys::{PacketRing, RingSize, Socket};

/// Bytes of a selected frame that are kept.
pub const KEPT: usize = 80;

/// Bytes of a frame in the ring with its headers, which take up to 92.
const RING_FRAME: usize = 192;
const _: () = assert!(RING_FRAME - 92 >= KEPT);

/// The frames to receive: those with this word, in network order, at an offset in bytes.
#[derive(Clone, Copy, Debug)]
pub struct WordFilter {
    pub offset: u32,
    pub word: u32,
}

/// A socket that receives selected frames of an interface.
pub struct TimedCapture {
    link: Link,
    socket: Socket,
    ring: PacketRing,
}

impl TimedCapture {
    /// Starts to receive on the interface of that name, with room for so many frames.
    pub fn open(interface: &str, frames: usize, filter: WordFilter) -> Result<TimedCapture, PortError> {
        let link = Link::named(interface)?;
        let failed = link.cannot("be listened on");
        let socket = Socket::raw(libc::AF_PACKET).map_err(&failed)?;
        let ring = PacketRing::new(&socket, RingSize { frames, frame: RING_FRAME }).map_err(&failed)?;
        socket.filter(&program(filter)).map_err(link.cannot("be given a filter"))?;
        socket.bind(address(&link, libc::ETH_P_ALL as u16)).map_err(failed)?;
        Ok(TimedCapture { link, socket, ring })
    }

    /// The next frame: its first bytes, and when the kernel received it, by CLOCK_REALTIME since 1970.
    pub fn next_frame(&mut self) -> Option<(Duration, [u8; KEPT])> {
        let frame = self.ring.peek()?;
        let received = Duration::new(frame.header.tp_sec.into(), frame.header.tp_nsec);
        let mut bytes = [0; KEPT];
        let kept = (frame.header.tp_snaplen as usize).min(KEPT);
        frame.copy_to(&mut bytes[..kept]);
        self.ring.give_back();
        Some((received, bytes))
    }

    /// Selected frames since the last call that the ring had no room for.
    pub fn overruns(&mut self) -> Result<u64, PortError> {
        let asked = self.socket.get::<libc::tpacket_stats>(libc::SOL_PACKET, libc::PACKET_STATISTICS);
        asked.map(|since| since.tp_drops.into()).map_err(|error| self.link.failed(error))
    }
}

/// Loads the word, compares it, and keeps the beginning of the frame or nothing (classic BPF).
fn program(WordFilter { offset, word }: WordFilter) -> [libc::sock_filter; 4] {
    let instruction = |code: u32, jf, k| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, offset),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, word),
        instruction(libc::BPF_RET | libc::BPF_K, 0, KEPT as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0),
    ]
}
