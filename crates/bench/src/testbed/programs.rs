//! Generator and receiver as programs in the kernel (`bpf/testbed.c`): live frames, turns, and counters.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aya::TestRun;
use aya::maps::{Array, Map};
use aya::programs::xdp::XdpMode;
use aya::programs::{TestRunAttrs, TestRunOptions};

use super::error::TestbedError;
use super::frames::{EGRESS, TestbedHeaders, station_mac};
use fullview_plane::bpf::{self, BpfObject, LoadedObject, ProgramAttachment};
use fullview_plane::port::SharedWords;

/// `bpf/testbed.c`: generator and receiver, and forwarders to compare with.
pub const TESTBED: BpfObject =
    BpfObject::new("testbed", aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/testbed.o")));

/// Packets in a sequence at most.
pub const MOST_PACKETS: usize = 1 << 20;
/// Forwarders that can take turns at most, the way without a router among them.
pub const MOST_PATHS: usize = 64;
/// Frames in a batch of the generator: fewer than a veth device queues, so that none is lost.
pub const BATCH: u32 = 64;

/// Words of `struct sequence`, and their number.
mod sequence {
    pub const NEXT: usize = 0;
    pub const MASK: usize = 2;
    pub const SUM: usize = 3;
    pub const HEADER: usize = 4;
    pub const DESTINATIONS: usize = 18;
    pub const WORDS: usize = DESTINATIONS + 4 * super::MOST_PACKETS;
}

/// Words of `struct turn`, and their number.
mod turn {
    pub const DEVICE: usize = 0;
    pub const SEQUENCE: usize = 1;
    pub const TAG: usize = 2;
    pub const LEAD_IN: usize = 6;
    pub const LENGTH: usize = 8;
    pub const PAUSED: usize = 14;
    pub const PAUSES: usize = 16;
    pub const FIRST: usize = 18;
    pub const LAST: usize = 24;
    pub const WORDS: usize = 30;
}

/// Words of `struct receiving`.
mod receiving {
    use super::MOST_PATHS;
    pub const WRONG: usize = 2 * MOST_PATHS;
    pub const RECORD: usize = 4 * MOST_PATHS;
    pub const STATIONS: usize = RECORD + 2;
}

/// A way from the generator to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestbedPath {
    /// Tells its packets from those of the others; less than `MOST_PATHS`.
    pub number: u32,
    /// Index of the generator's device on its link.
    pub device: u32,
    /// The sequence of destinations that it gets.
    pub sequence: u32,
    /// Whether a router takes a hop off its packets.
    pub is_routed: bool,
}

impl TestbedPath {
    fn tag(self) -> u32 {
        self.number << 20 | u32::from(self.is_routed) << 31
    }
}

/// What was counted in a part of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Packets sent.
    pub sent: u64,
    /// Packets received with the right hop count.
    pub right: u64,
    /// By the clock that the generator reads before each batch.
    pub time: Duration,
    /// What batches took longer than the others, if it was as long as another thread may have a core.
    pub paused: Duration,
}

/// The generator's counters at one moment.
struct Moment {
    nanoseconds: u64,
    sent: u64,
    right: u64,
}

/// Generator and receiver.
pub struct TestbedPrograms {
    loaded: LoadedObject,
    sequences: SharedWords,
    turn: SharedWords,
    received: SharedWords,
    /// The frame to start from, by sequence.
    frames: Vec<Vec<u8>>,
}

impl TestbedPrograms {
    /// Loads the programs with these sequences of destinations, each of which is sent to in turn.
    pub fn load<A: TestbedHeaders>(sequences: &[&[A]]) -> Result<TestbedPrograms, TestbedError> {
        let count = sequences.len().max(1);
        let mut loaded = TESTBED.load_with(|loader| {
            loader.map_max_entries("sequences", count as u32);
        })?;
        let bytes = 4 * receiving::STATIONS + 2 * MOST_PACKETS;
        let received = words(&mut loaded, "received", bytes)?;
        let turn = words(&mut loaded, "turns", 4 * turn::WORDS)?;
        let memory = words(&mut loaded, "sequences", 4 * sequence::WORDS * count)?;
        for program in ["generate", "receive", "redirect", "fib_lookup"] {
            loaded.xdp(program)?;
        }
        let parts = memory.words().chunks_exact(sequence::WORDS);
        let frames = parts.zip(sequences).map(|(words, destinations)| write(words, destinations)).collect();
        Ok(TestbedPrograms { loaded, sequences: memory, turn, received, frames })
    }

    /// Attaches the receiver to a device.
    pub fn receive(&mut self, device: u32) -> Result<ProgramAttachment, TestbedError> {
        Ok(bpf::attach(self.loaded.xdp("receive")?, device, XdpMode::Driver)?)
    }

    /// Attaches the generator to a device that receives nothing. The kernel calls attached programs through one piece of
    /// code, which it rewrites whenever a program joins or leaves; a test run of a program that is attached nowhere joins
    /// and leaves, and waits twice until no processor runs the old code.
    pub fn hold_generator(&mut self, device: u32) -> Result<ProgramAttachment, TestbedError> {
        Ok(bpf::attach(self.loaded.xdp("generate")?, device, XdpMode::Skb)?)
    }

    /// Attaches one of the forwarders of `bpf/testbed.c` to a device.
    pub fn forward(&mut self, program: &'static str, device: u32) -> Result<ProgramAttachment, TestbedError> {
        Ok(bpf::attach(self.loaded.xdp(program)?, device, XdpMode::Driver)?)
    }

    /// Makes the forwarder without lookup send everything to the first station.
    pub fn set_only_way(&mut self, egress: u32) -> Result<(), TestbedError> {
        let macs = [station_mac(1).0, EGRESS.0].concat();
        let [first, second, third] =
            [0, 4, 8].map(|at| macs[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes)));
        let missing = self.loaded.missing_map("only_way");
        let map = self.loaded.ebpf.map_mut("only_way").ok_or(missing)?;
        Ok(Array::<_, [u32; 4]>::try_from(map)?.set(0, [first, second, third, egress], 0)?)
    }

    /// Sends on a path for `lead_in`, which is not counted, then for `length`; `frames` frames at most. The calling thread
    /// has to be in the namespace of its device.
    pub fn turn(
        &self,
        path: TestbedPath,
        frames: u32,
        (lead_in, length): (Duration, Duration),
    ) -> Result<Counted, TestbedError> {
        let words = self.turn.words();
        words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        let fields = [(turn::DEVICE, path.device), (turn::SEQUENCE, path.sequence), (turn::TAG, path.tag())];
        fields.into_iter().for_each(|(at, value)| words[at].store(value, Ordering::Relaxed));
        put(words, turn::LEAD_IN, nanoseconds(lead_in));
        put(words, turn::LENGTH, nanoseconds(length));
        self.generate(path.sequence, frames)?;
        Ok(counted(words))
    }

    fn generate(&self, sequence: u32, frames: u32) -> Result<(), TestbedError> {
        let program = self.loaded.loaded_xdp("generate")?;
        let attrs = TestRunAttrs::new().xdp_live_frames(BATCH);
        let data_in = self.frames.get(sequence as usize).map(Vec::as_slice);
        let options = TestRunOptions { data_in, repeat: frames, attrs, ..TestRunOptions::default() };
        program.test_run(options).map(drop).map_err(|error| TestbedError::Generate(Box::new(error)))
    }

    /// Packets of a path that came with a wrong hop count since the programs were loaded.
    pub fn wrong(&self, path: TestbedPath) -> u64 {
        get(self.received.words(), receiving::WRONG + 2 * path.number as usize)
    }

    /// Starts or stops recording to which station each packet goes, and restarts the sequence.
    pub fn record(&self, sequence: u32, record: bool) {
        put(&self.sequences.words()[sequence as usize * sequence::WORDS..], sequence::NEXT, 0);
        let words = self.received.words();
        if record {
            words[receiving::STATIONS..].iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
        words[receiving::RECORD].store(u32::from(record), Ordering::Relaxed);
    }

    /// The last two bytes of the station that packet went to.
    pub fn station(&self, packet: usize) -> u16 {
        let word: &AtomicU32 = &self.received.words()[receiving::STATIONS + packet / 2];
        let bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        let at = 2 * (packet % 2);
        u16::from_be_bytes([bytes[at], bytes[at + 1]])
    }
}

/// Writes a sequence of as many packets as fill a power of two, and returns the frame to start from.
fn write<A: TestbedHeaders>(words: &[AtomicU32], destinations: &[A]) -> Vec<u8> {
    let put = |at: usize, word: u32| words[at].store(word, Ordering::Relaxed);
    let count = destinations.len().next_power_of_two().min(MOST_PACKETS);
    let addresses = destinations.iter().cycle().take(count).flat_map(|addr| addr.words());
    addresses.enumerate().for_each(|(at, word)| put(sequence::DESTINATIONS + at, word));
    let (frame, sum) = A::frame();
    let header = frame[..56].chunks_exact(4);
    let header = header.map(|bytes| bytes.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes)));
    header.enumerate().for_each(|(at, word)| put(sequence::HEADER + at, word));
    put(sequence::SUM, sum);
    put(sequence::MASK, count as u32 - 1);
    frame
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A number of 64 bits at this word.
fn get(words: &[AtomicU32], at: usize) -> u64 {
    let [low, high] = [at, at + 1].map(|at| u64::from(words[at].load(Ordering::Relaxed)));
    low | high << 32
}

fn put(words: &[AtomicU32], at: usize, value: u64) {
    words[at].store(value as u32, Ordering::Relaxed);
    words[at + 1].store((value >> 32) as u32, Ordering::Relaxed);
}

/// What a turn noted.
fn counted(turn: &[AtomicU32]) -> Counted {
    let [first, last] = [turn::FIRST, turn::LAST].map(|at| moment(&turn[at..]));
    let (sent, time) = (last.sent - first.sent, last.nanoseconds - first.nanoseconds);
    let (paused, pauses) = (get(turn, turn::PAUSED), get(turn, turn::PAUSES));
    let usual = (time - paused).checked_div(sent / u64::from(BATCH) - pauses).unwrap_or(0);
    Counted {
        sent,
        right: last.right - first.right,
        time: Duration::from_nanos(time),
        paused: Duration::from_nanos(paused - pauses * usual),
    }
}

fn moment(words: &[AtomicU32]) -> Moment {
    Moment { nanoseconds: get(words, 0), sent: get(words, 2), right: get(words, 4) }
}

/// A map of words as memory.
fn words(loaded: &mut LoadedObject, name: &'static str, bytes: usize) -> Result<SharedWords, TestbedError> {
    match loaded.ebpf.map(name) {
        Some(Map::Array(map)) => SharedWords::new(map.fd().as_fd(), bytes).map_err(TestbedError::Mapping),
        _ => Err(loaded.missing_map(name).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_what_a_batch_took_longer_than_the_others() {
        let turn: Vec<AtomicU32> = (0..turn::WORDS).map(|_| AtomicU32::new(0)).collect();
        // Ten batches of 100 µs, and one with a pause of 3 ms, after a lead-in of 640 packets.
        let [first, last] = [[5_000_000, 640, 600], [9_100_000, 1_344, 1_304]];
        for (at, moment) in [(turn::FIRST, first), (turn::LAST, last)] {
            (0..3).for_each(|field| put(&turn[at..], 2 * field, moment[field]));
        }
        put(&turn, turn::PAUSED, 3_100_000);
        put(&turn, turn::PAUSES, 1);
        let [time, paused] = [4_100, 3_000].map(Duration::from_micros);
        assert_eq!(counted(&turn), Counted { sent: 704, right: 704, time, paused });
    }
}
