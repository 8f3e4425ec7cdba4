//! What every kind of port has to do.

use std::collections::HashSet;
use std::time::Duration;
use std::{ptr, thread};

use fullview_plane::burst::{Arena, Burst, FRAME_CAPACITY, Packet};
use fullview_plane::port::{Port, PortError};

/// Slots of a test: more than are ever in use.
pub const SLOTS: usize = 512;
/// Frames sent together: fewer than any port has room for.
const WAVE: usize = 64;
/// Polls before a frame counts as lost: some ten seconds.
pub const PATIENCE: usize = 10_000;

/// The free slots of a test.
pub struct Pool<'a> {
    slots: Vec<Packet<'a>>,
}

impl<'a> Pool<'a> {
    pub fn of(slots: Vec<Packet<'a>>) -> Pool<'a> {
        Pool { slots }
    }

    pub fn new(arena: &'a mut Arena) -> Pool<'a> {
        Pool::of(arena.packets().collect())
    }

    /// The number of distinct slots.
    pub fn distinct(&self) -> usize {
        self.slots.iter().map(|slot| ptr::from_ref(&**slot)).collect::<HashSet<_>>().len()
    }

    pub fn give(&mut self, burst: &mut Burst<'a>) {
        self.slots.extend(burst.drain());
    }

    pub fn take(&mut self, count: usize) -> Burst<'a> {
        let mut burst = Burst::new();
        burst.fill(self.slots.drain(self.slots.len() - count..));
        burst
    }
}

/// A unique frame of this length.
pub fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..len).map(|at| (at as u32 + number) as u8).collect();
    // Unicast addresses, so that no bridge or driver treats the frame specially.
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]); // an ethertype for experiments
    let stamp = number.to_be_bytes();
    let stamped = (len - 14).min(4);
    frame[14..14 + stamped].copy_from_slice(&stamp[..stamped]);
    frame
}

/// Sends frames from one port to another and returns the received frames. Checks that every slot comes back.
pub fn carry<'a>(
    from: &mut dyn Port<'a>,
    to: &mut dyn Port<'a>,
    pool: &mut Pool<'a>,
    frames: &[Vec<u8>],
) -> Vec<Vec<u8>> {
    let slots = pool.slots.len();
    let mut arrived = Vec::new();
    for wave in frames.chunks(WAVE) {
        let mut free = pool.take(wave.len());
        assert_eq!(to.recycle(&mut free), wave.len(), "a port has room for a wave of free slots");
        let mut burst = pool.take(wave.len());
        for (slot, frame) in burst.iter_mut().zip(wave) {
            assert!(slot.set_frame(frame));
        }
        send(from, &mut burst);
        arrived.extend(receive(to, pool, wave.len()));
        reclaim(from, pool, wave.len());
    }
    assert_eq!(pool.distinct(), slots, "every slot came back once");
    arrived
}

/// Sends a whole burst, in several calls if necessary.
pub fn send<'a>(port: &mut dyn Port<'a>, burst: &mut Burst<'a>) {
    for _ in 0..PATIENCE {
        port.transmit(burst).unwrap();
        if burst.is_empty() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("{} packets are not sent", burst.len());
}

/// Receives this number of frames.
pub fn receive<'a>(port: &mut dyn Port<'a>, pool: &mut Pool<'a>, count: usize) -> Vec<Vec<u8>> {
    let mut arrived = Vec::new();
    let mut burst = Burst::new();
    for _ in 0..PATIENCE {
        port.receive(&mut burst, count - arrived.len()).unwrap();
        arrived.extend(burst.iter().map(|packet| packet.frame().to_vec()));
        pool.slots.extend(burst.drain());
        if arrived.len() == count {
            return arrived;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("{} of {count} packets arrived", arrived.len());
}

fn reclaim<'a>(port: &mut dyn Port<'a>, pool: &mut Pool<'a>, count: usize) {
    let mut free = Burst::new();
    for _ in 0..PATIENCE {
        port.reclaim(&mut free);
        if free.len() == count {
            pool.slots.extend(free.drain());
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("{} of {count} slots came back", free.len());
}

/// Checks everything that holds for any two connected ports, in both directions.
pub fn carries_everything_in_order<'a>(
    ports: [&mut dyn Port<'a>; 2],
    pool: &mut Pool<'a>,
    lengths: impl Iterator<Item = usize> + Clone,
) {
    let [left, right] = ports;
    let frames: Vec<_> = (0..).zip(lengths.clone()).map(|(number, len)| frame(number, len)).collect();
    assert_eq!(carry(left, right, pool, &frames), frames);
    let frames: Vec<_> = (70_000..).zip(lengths).map(|(number, len)| frame(number, len)).collect();
    assert_eq!(carry(right, left, pool, &frames), frames);
}

/// Checks that frames with one and two tags arrive unchanged.
pub fn keeps_tags<'a>(from: &mut dyn Port<'a>, to: &mut dyn Port<'a>, pool: &mut Pool<'a>) {
    let mut frames = Vec::new();
    for tags in [&[0x81, 0, 0x60, 5][..], &[0x88, 0xa8, 0, 9, 0x81, 0, 0x0f, 0xff], &[0x81, 0, 0, 0]] {
        for len in [60, 1500, FRAME_CAPACITY - tags.len()] {
            let mut tagged = frame(len as u32, len);
            tagged.splice(12..12, tags.iter().copied());
            frames.push(tagged);
        }
    }
    assert_eq!(carry(from, to, pool, &frames), frames);
}

/// Receives until the port fails.
pub fn error_of<'a>(port: &mut dyn Port<'a>, expected: fn(&PortError) -> bool) {
    let mut burst = Burst::new();
    for _ in 0..PATIENCE {
        match port.receive(&mut burst, 1) {
            Err(error) if expected(&error) => return,
            Ok(0) | Err(_) => {}
            Ok(_) => panic!("a port on a removed link received a packet"),
        }
    }
    panic!("the port never reports that its link is gone");
}
