//! Packets by routes that stay: each one has to arrive once, at its destination. A flow sends the next packets when the
//! packets before have arrived, so that no queue of a busy machine overflows and only the router can lose one.

use fullview_testnet::eventually;
use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The number of packets that are on their way at a time.
const BATCH: u32 = 32;

/// A packet that has not arrived after this time is lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// The lengths of payloads, which packets have in turn.
const LENGTHS: [usize; 5] = [16, 64, 500, 1200, 1440];

/// The beginning of every payload. The number of the flow and that of the packet follow.
const MAGIC: &[u8; 8] = b"fullview";
const HEAD: usize = MAGIC.len() + 1 + 4;

/// The packets of a flow that were sent, arrived and were lost.
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

    /// Waits until the first packet arrives; earlier ones only start the resolution of neighbours.
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

    /// Sends one batch, and waits until it has arrived; packets that are missing after that count as lost.
    pub fn round(&mut self) {
        let missing = self.batch(PATIENCE);
        if missing > 0 {
            println!("{} flow {}: {missing} of a batch do not come", clock(), self.number);
        }
    }

    /// Returns how many packets have not arrived in time.
    fn batch(&mut self, patience: Duration) -> usize {
        let first = self.tally.sent;
        self.tally.sent += BATCH;
        self.awaited = (first..self.tally.sent).collect();
        for number in first..self.tally.sent {
            let to = self.destinations[number as usize % self.destinations.len()];
            // The host's own link never goes down: its queue has room, or the kernel makes the call wait.
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

    /// Receives the packets that are still on their way.
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
            // A packet of another flow was misrouted; that flow counts it as lost.
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

/// Returns the time in the form that the kernel and `show events` print.
pub fn clock() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("{:.3}", now.as_secs_f64())
}

/// Makes a payload that contains its flow and number; the rest of it is known too.
pub fn payload(flow: u8, number: u32) -> Vec<u8> {
    let mut payload = [&MAGIC[..], &[flow], &number.to_be_bytes()].concat();
    let length = LENGTHS[number as usize % LENGTHS.len()];
    payload.extend((payload.len()..length).map(|at| filler(number, at)));
    payload
}

fn filler(number: u32, at: usize) -> u8 {
    (number as usize).wrapping_add(at).wrapping_mul(37) as u8
}

/// Reads flow and number of a payload, if it is complete.
pub fn read(payload: &[u8]) -> Option<(u8, u32)> {
    let (head, rest) = payload.split_at_checked(HEAD)?;
    let (magic, head) = head.split_at(MAGIC.len());
    let number = u32::from_be_bytes(head[1..].try_into().ok()?);
    let is_whole = rest.iter().zip(HEAD..).all(|(byte, at)| *byte == filler(number, at));
    let length = LENGTHS[number as usize % LENGTHS.len()];
    (magic == MAGIC && payload.len() == length && is_whole).then_some((head[0], number))
}
