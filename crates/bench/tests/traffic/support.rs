//! A small table, how packets leave, and a plain router that the receiver must find nothing wrong with.

use fullview_bench::traffic::check::Departure;
use fullview_bench::traffic::frame::{Headers, Macs};
use fullview_bench::traffic::load::Router;
use fullview_plane::burst::{Burst, Slot};
use fullview_plane::wire::ethernet::Mac;
use fullview_table::{Address, Family, NextHop, Rib};

pub const MACS: Macs = Macs { source: Mac([2, 0, 0, 0, 0, 1]), destination: Mac([2, 0, 0, 0, 0, 2]) };

/// Routes to the reports' destinations and some others, over three next hops; one prefix is a hole.
pub fn inet() -> Rib<u32> {
    rib(&[
        ("198.18.0.0/16", 1),
        ("198.19.0.0/16", 2),
        ("11.0.0.0/8", 3),
        ("11.1.0.0/16", 1),
        ("11.2.0.0/16", 0),
    ])
}

pub fn inet6() -> Rib<u128> {
    rib(&[
        ("2001:2:0::/49", 1),
        ("2001:2:0:8000::/49", 2),
        ("2a00::/12", 3),
        ("2a01::/32", 1),
        ("2a02::/32", 0),
    ])
}

pub fn rib<A: Address>(routes: &[(&str, u16)]) -> Rib<A> {
    let mut rib = Rib::default();
    for (prefix, hop) in routes {
        rib.announce(prefix.parse().unwrap(), NextHop(*hop));
    }
    rib
}

/// By next-hop index 0 to 3.
pub fn departures() -> Vec<Departure> {
    let departure = |hop: u8| Departure {
        port: u16::from(hop) + 10,
        source: Mac([2, 0, 0, 0, 1, hop]),
        destination: Mac([2, 0, 0, 0, 2, hop]),
    };
    (0..4).map(departure).collect()
}

/// The one's complement sum of RFC 1071, the obvious way.
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0u64;
    for pair in bytes.chunks(2) {
        sum += u64::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Forwards by the RIB itself; drops what has no route.
pub struct Plain<'r, A: Address> {
    pub rib: &'r Rib<A>,
    pub departures: Vec<Departure>,
}

impl<'r, A: Headers> Plain<'r, A> {
    pub fn new(rib: &'r Rib<A>) -> Self {
        Plain { rib, departures: departures() }
    }

    /// Rewrites the packet, unless it has no route.
    pub fn forward(&self, slot: &mut Slot) -> bool {
        let next_hop =
            self.rib.longest_match(destination(slot)).map_or(NextHop::NONE, |route| route.next_hop);
        if !next_hop.is_some() {
            return false;
        }
        let departure = self.departures[next_hop.index()];
        slot.port = departure.port;
        let frame = slot.frame_mut();
        frame[..6].copy_from_slice(&departure.destination.0);
        frame[6..12].copy_from_slice(&departure.source.0);
        frame[A::HOP_LIMIT_AT] -= 1;
        if A::FAMILY == Family::Inet {
            frame[24..26].fill(0);
            let sum = checksum(&frame[14..34]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        true
    }
}

fn destination<A: Address>(slot: &Slot) -> A {
    let at = if A::FAMILY == Family::Inet { 30..34 } else { 38..54 };
    let byte = |addr: A, byte: &u8| {
        let shifted = addr.rotate_left(8);
        shifted | A::from(*byte).unwrap()
    };
    slot.frame()[at].iter().fold(A::zero(), byte)
}

impl<A: Headers> Router for Plain<'_, A> {
    fn route<'a>(&mut self, burst: &mut Burst<'a>, forwarded: &mut [Burst<'a>], dropped: &mut Burst<'a>) {
        for slot in burst.drain() {
            let to = if self.forward(slot) { &mut forwarded[usize::from(slot.port)] } else { &mut *dropped };
            assert!(to.push(slot).is_ok(), "room for the whole burst");
        }
    }
}
