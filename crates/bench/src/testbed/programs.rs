//! Generator and receiver as programs in the kernel (`bpf/testbed.c`): live frames, and counters.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};

use aya::TestRun;
use aya::maps::{Array, Map};
use aya::programs::xdp::XdpMode;
use aya::programs::{TestRunAttrs, TestRunOptions};

use super::error::TestbedError;
use super::frames::{EGRESS, TestbedHeaders, station_mac};
use fullview_plane::bpf::{self, BpfObject, LoadedObject, XdpAttachment};
use fullview_plane::port::SharedWords;

/// `bpf/testbed.c`: generator and receiver, and forwarders to compare with.
const TESTBED: BpfObject =
    BpfObject::new("testbed", aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/testbed.o")));

/// Packets in the sequence at most.
pub const MOST_PACKETS: usize = 1 << 20;
/// Frames in a batch of the generator: fewer than a veth device queues, so that none is lost.
const BATCH: u32 = 64;

/// Words of `struct sending`.
mod sending {
    pub const NEXT: usize = 0;
    pub const MASK: usize = 2;
    pub const DEVICE: usize = 3;
    pub const HEADER: usize = 4;
    pub const SUM: usize = 18;
    pub const STOP: usize = 19;
    pub const DESTINATIONS: usize = 20;
}

/// Words of `struct receiving`.
mod receiving {
    pub const RIGHT: usize = 0;
    pub const WRONG: usize = 2;
    pub const RECORD: usize = 4;
    pub const STATIONS: usize = 8;
}

/// What the receiver has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Packets that went one hop further.
    pub right: u64,
    /// Packets with another hop count.
    pub wrong: u64,
}

/// Generator and receiver.
pub struct TestbedPrograms {
    loaded: LoadedObject,
    sent: SharedWords,
    received: SharedWords,
    frame: Vec<u8>,
}

impl TestbedPrograms {
    pub fn load() -> Result<TestbedPrograms, TestbedError> {
        let mut loaded = TESTBED.load()?;
        let sent = words(&mut loaded, "sent", 4 * (sending::DESTINATIONS + 4 * MOST_PACKETS))?;
        let received = words(&mut loaded, "received", 4 * receiving::STATIONS + 2 * MOST_PACKETS)?;
        for program in ["generate", "receive", "redirect", "fib_lookup"] {
            loaded.xdp(program)?;
        }
        Ok(TestbedPrograms { loaded, sent, received, frame: Vec::new() })
    }
    /// Has the receiver at work on a device of this namespace.
    pub fn receive(&mut self, device: u32) -> Result<XdpAttachment, TestbedError> {
        Ok(bpf::attach(self.loaded.xdp("receive")?, device, XdpMode::Driver)?)
    }

    /// Sends to these destinations in turn, as many as fill a power of two: by the device of this index in the
    /// namespace that [`Self::generate`] is called in.
    pub fn prepare<A: TestbedHeaders>(&mut self, device: u32, destinations: &[A]) {
        let sent = self.sent.words();
        let put = |at: usize, word: u32| sent[at].store(word, Ordering::Relaxed);
        let count = destinations.len().next_power_of_two().min(MOST_PACKETS);
        let words = destinations.iter().cycle().take(count).flat_map(|addr| addr.words());
        words.enumerate().for_each(|(at, word)| put(sending::DESTINATIONS + at, word));
        let (frame, sum) = A::frame();
        let header = frame[..56].chunks_exact(4);
        let header = header.map(|bytes| bytes.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes)));
        header.enumerate().for_each(|(at, word)| put(sending::HEADER + at, word));
        put(sending::SUM, sum);
        put(sending::MASK, count as u32 - 1);
        put(sending::DEVICE, device);
        self.frame = frame;
    }

    /// Sends so many frames, or fewer if [`Self::stop`] is called meanwhile.
    pub fn generate(&self, frames: u32) -> Result<(), TestbedError> {
        self.sent.words()[sending::STOP].store(0, Ordering::Relaxed);
        let program = self.loaded.loaded_xdp("generate")?;
        let attrs = TestRunAttrs::new().xdp_live_frames(BATCH);
        let options =
            TestRunOptions { data_in: Some(&self.frame), repeat: frames, attrs, ..TestRunOptions::default() };
        program.test_run(options).map(drop).map_err(|error| TestbedError::Generate(Box::new(error)))
    }

    /// What is left to be sent is not.
    pub fn stop(&self) {
        self.sent.words()[sending::STOP].store(1, Ordering::Relaxed);
    }

    pub fn received(&self) -> Received {
        let words = self.received.words();
        let count = |at: usize| {
            let [low, high] = [at, at + 1].map(|at| u64::from(words[at].load(Ordering::Relaxed)));
            low | high << 32
        };
        Received { right: count(receiving::RIGHT), wrong: count(receiving::WRONG) }
    }

    /// Starts or stops recording to which station each packet goes, and restarts the sequence.
    pub fn record(&self, record: bool) {
        self.sent.words()[sending::NEXT].store(0, Ordering::Relaxed);
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

    /// Attaches one of the forwarders of `bpf/testbed.c` to a device.
    pub fn forward(&mut self, program: &'static str, device: u32) -> Result<XdpAttachment, TestbedError> {
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
}

/// A map of words as memory.
fn words(loaded: &mut LoadedObject, name: &'static str, bytes: usize) -> Result<SharedWords, TestbedError> {
    match loaded.ebpf.map(name) {
        Some(Map::Array(map)) => SharedWords::new(map.fd().as_fd(), bytes).map_err(TestbedError::Mapping),
        _ => Err(loaded.missing_map(name).into()),
    }
}
