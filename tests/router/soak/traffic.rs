//! Packets by routes that stay: each has to arrive, once, where it belongs. The next ones are sent when those before have
//! come, so that no queue of a busy machine overflows, and whoever loses one is the router.

use fullview_testnet::eventually;
use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Packets on their way at a time.
const BATCH: u32 = 32;

/// A packet that has not come by then is lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// Lengths of payloads, in turn.
const LENGTHS: [usize; 5] = [16, 64, 500, 1200, 1440];

/// What begins every payload; the number of the flow and that of the packet follow.
const MAGIC: &[u8; 8] = b"fullview";
const HEAD: usize = MAGIC.len() + 1 + 4;

/// What became of packets.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tally {
    pub sent: u32,
    pub arrived: u32,
    pub lost: Vec<u32>,
    pub twice: u32,
    pub damaged: u32,
}

/// Packets from one socket to another.
pub struct Flow {
    number: u8,
    from: UdpSocket,
    to: UdpSocket,
    destinations: Vec<SocketAddr>,
    awaited: BTreeSet<u32>,
    lost: BTreeSet<u32>,
    tally: Tally,
}

impl Flow {
    pub fn new(number: u8, from: UdpSocket, to: UdpSocket, destinations: Vec<SocketAddr>) -> Flow {
        to.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let (awaited, lost) = Default::default();
        Flow { number, from, to, destinations, awaited, lost, tally: Tally::default() }
    }

    /// Until packets go through at all: the first ones only have neighbours found.
    pub fn begin(&mut self) -> bool {
        let goes = eventually(|| {
            self.batch(Duration::from_millis(200));
            self.lost.is_empty() && self.awaited.is_empty() || {
                self.lost.clear();
                false
            }
        });
        self.settle(Duration::from_millis(300));
        (self.tally, self.lost) = Default::default();
        goes
    }

    /// One batch there; it is all there afterwards, or what is missing counts as lost.
    pub fn round(&mut self) {
        let missing = self.batch(PATIENCE);
        if missing > 0 {
            println!("{} flow {}: {missing} of a batch do not come", clock(), self.number);
        }
    }

    /// Returns how many have not come by then.
    fn batch(&mut self, patience: Duration) -> usize {
        let first = self.tally.sent;
        self.tally.sent += BATCH;
        self.awaited = (first..self.tally.sent).collect();
        for number in first..self.tally.sent {
            let to = self.destinations[number as usize % self.destinations.len()];
            // The host's own link never goes down: it has room, or the kernel makes the call wait.
            self.from.send_to(&payload(self.number, number), to).unwrap();
        }
        let deadline = Instant::now() + patience;
        while !self.awaited.is_empty() && Instant::now() < deadline {
            self.hear();
        }
        let missing = self.awaited.len();
        self.lost.append(&mut self.awaited);
        missing
    }

    /// Takes what is still on its way.
    fn settle(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        while Instant::now() < deadline {
            self.hear();
        }
    }

    fn hear(&mut self) {
        let mut heard = [0; 2048];
        let Ok(len) = self.to.recv(&mut heard) else { return };
        match read(&heard[..len]) {
            Some((flow, number)) if flow == self.number => self.arrived(number),
            // Of another flow: misled, which its owner sees as a loss.
            Some(_) => self.tally.damaged += 1,
            None => self.tally.damaged += u32::from(heard[..len].starts_with(MAGIC)),
        }
    }

    fn arrived(&mut self, number: u32) {
        let is_new = self.awaited.remove(&number) || self.lost.remove(&number);
        self.tally.arrived += u32::from(is_new);
        self.tally.twice += u32::from(!is_new);
    }

    pub fn end(mut self) -> Tally {
        self.settle(Duration::from_secs(1));
        Tally { lost: self.lost.into_iter().collect(), ..self.tally }
    }
}

/// As the kernel and `show events` have it.
pub fn clock() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("{:.3}", now.as_secs_f64())
}

/// A payload that says which it is, and is otherwise known too.
pub fn payload(flow: u8, number: u32) -> Vec<u8> {
    let mut payload = [&MAGIC[..], &[flow], &number.to_be_bytes()].concat();
    let length = LENGTHS[number as usize % LENGTHS.len()];
    payload.extend((payload.len()..length).map(|at| filler(number, at)));
    payload
}

fn filler(number: u32, at: usize) -> u8 {
    (number as usize).wrapping_add(at).wrapping_mul(37) as u8
}

/// Flow and number of a payload, if it is whole.
pub fn read(payload: &[u8]) -> Option<(u8, u32)> {
    let (head, rest) = payload.split_at_checked(HEAD)?;
    let (magic, head) = head.split_at(MAGIC.len());
    let number = u32::from_be_bytes(head[1..].try_into().ok()?);
    let is_whole = rest.iter().zip(HEAD..).all(|(byte, at)| *byte == filler(number, at));
    let length = LENGTHS[number as usize % LENGTHS.len()];
    (magic == MAGIC && payload.len() == length && is_whole).then_some((head[0], number))
}
