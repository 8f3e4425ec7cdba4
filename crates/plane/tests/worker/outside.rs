//! The other ends of a worker's ports.

use fullview_plane::burst::{BURST, Burst, Packet};
use fullview_plane::port::Port;
use fullview_plane::port::memory::{MemoryPort, pair};

/// The other ends of a worker's ports, and the packet memory.
pub struct Outside<'a> {
    pub ports: Vec<MemoryPort<'a>>,
    pub free: Vec<Packet<'a>>,
}

/// The ports of a worker and their other ends, between which so many packets may wait.
pub fn cables<'a>(count: u16, room: usize) -> (Vec<Option<MemoryPort<'a>>>, Vec<MemoryPort<'a>>) {
    let cables = (0..count).map(|number| pair([number, number], room));
    cables.map(|(inside, outside)| (Some(inside), outside)).unzip()
}

impl Outside<'_> {
    pub fn send(&mut self, port: usize, frames: &[Vec<u8>]) {
        let mut burst = Burst::new();
        for frame in frames {
            let packet = self.free.pop().unwrap();
            assert!(packet.set_frame(frame));
            burst.push(packet).unwrap();
        }
        assert_eq!(self.ports[port].transmit(&mut burst).unwrap(), frames.len());
    }

    /// The frames that a port sent; returns their slots first.
    pub fn receive(&mut self, port: usize) -> Vec<Vec<u8>> {
        let mut burst = Burst::new();
        self.ports[port].receive(&mut burst, BURST).unwrap();
        let frames = burst.iter().map(|packet| packet.frame().to_vec()).collect();
        self.ports[port].recycle(&mut burst);
        assert!(burst.is_empty(), "the ring holds all slots");
        frames
    }

    /// Takes the slots that came back, and returns how many there are.
    pub fn reclaim(&mut self) -> usize {
        for port in &mut self.ports {
            let mut burst = Burst::new();
            while port.reclaim(&mut burst) > 0 {
                self.free.extend(burst.drain());
            }
        }
        self.free.len()
    }
}
