//! The loop: one burst, IPv4 and IPv6 mixed, from the wire to the wire.
//!
//! Each stage runs over the whole burst before the next one starts, so that each stage's code and data stay in the
//! nearest cache and the lookups of a burst overlap in memory. What a packet meets on its way is in its slot: the port
//! it came in by, at last the port it leaves by, and the [`Verdict`].
//!
//! VLAN tags exist only at the two ends: a tag is taken off as the packet comes in and put on as it goes out, so that
//! everything between finds its headers at the same offsets. That moves the bytes behind the tag once or twice, and
//! costs the untagged path one comparison.

use std::sync::Arc;

use fullview_table::fib::Fib;

use crate::adjacency::{Adjacencies, AdjacencyError};
use crate::burst::{Burst, Packet};
use crate::counters::{Counters, Run};
use crate::verdict::{Reason, Verdict};
use crate::wire::ethernet::Mac;
use lookup::Keys;

mod lookup;
pub mod martian;
mod parse;
mod rewrite;
mod tag;

/// A port as the network sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Frames to another unicast address are dropped.
    pub mac: Mac,
    /// Frames of another VLAN are dropped; `None` takes untagged frames only. A tag of VLAN 0 carries a priority and
    /// counts as none (IEEE 802.1Q).
    pub vlan: Option<u16>,
}

/// Where forwarded packets go.
pub trait Egress<'a> {
    /// Takes a packet that leaves by `port`, or hands it back if that port has no room.
    fn send(&mut self, port: u16, packet: Packet<'a>) -> Result<(), Packet<'a>>;
}

/// One burst per port, to be transmitted afterwards.
impl<'a> Egress<'a> for [Burst<'a>] {
    #[inline(always)]
    fn send(&mut self, port: u16, packet: Packet<'a>) -> Result<(), Packet<'a>> {
        match self.get_mut(usize::from(port)) {
            Some(burst) => burst.push(packet),
            None => Err(packet),
        }
    }
}

/// All packets to one burst, whatever their port: a router with one way out.
impl<'a> Egress<'a> for Burst<'a> {
    #[inline(always)]
    fn send(&mut self, _port: u16, packet: Packet<'a>) -> Result<(), Packet<'a>> {
        self.push(packet)
    }
}

/// The forwarding path of one worker, with its counters and its scratch memory.
pub struct Forwarder {
    inet: Arc<dyn Fib<u32>>,
    inet6: Arc<dyn Fib<u128>>,
    adjacencies: Adjacencies,
    interfaces: Vec<Interface>,
    counters: Counters,
    inet_keys: Box<Keys<u32>>,
    inet6_keys: Box<Keys<u128>>,
}

impl Forwarder {
    /// A forwarder between `interfaces`, numbered as the ports are.
    pub fn new(
        inet: Arc<dyn Fib<u32>>,
        inet6: Arc<dyn Fib<u128>>,
        adjacencies: Adjacencies,
        interfaces: &[Interface],
    ) -> Result<Forwarder, AdjacencyError> {
        adjacencies.check_ports(interfaces.len())?;
        let counters = Counters::new(interfaces.len());
        let interfaces = interfaces.to_vec();
        let (inet_keys, inet6_keys) = (Keys::boxed(), Keys::boxed());
        Ok(Forwarder { inet, inet6, adjacencies, interfaces, counters, inet_keys, inet6_keys })
    }

    /// Forwards what is in `burst`: packets that go on are rewritten and given to `egress` in their order, the others
    /// go to `rejected`, each with its verdict in its slot. None is lost: as many are taken from the front of `burst`
    /// as `rejected` has room for, which is all of them if it was empty, and the rest stays.
    pub fn process<'a>(
        &mut self,
        burst: &mut Burst<'a>,
        egress: &mut (impl Egress<'a> + ?Sized),
        rejected: &mut Burst<'a>,
    ) {
        let taken = burst.len().min(rejected.room());
        self.parse(&mut burst[..taken]);
        self.lookup();
        self.rewrite(&mut burst[..taken]);
        self.emit(burst.drain_front(taken), egress, rejected);
    }

    /// What has been counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What has been counted, and begins anew.
    pub fn take_counters(&mut self) -> Counters {
        let zeros = Counters::new(self.interfaces.len());
        std::mem::replace(&mut self.counters, zeros)
    }

    /// Looks IPv4 destinations up in another FIB from the next burst on.
    pub fn set_inet(&mut self, fib: Arc<dyn Fib<u32>>) {
        self.inet = fib;
    }

    /// Looks IPv6 destinations up in another FIB from the next burst on.
    pub fn set_inet6(&mut self, fib: Arc<dyn Fib<u128>>) {
        self.inet6 = fib;
    }

    /// Uses other adjacencies from the next burst on.
    pub fn set_adjacencies(&mut self, adjacencies: Adjacencies) -> Result<(), AdjacencyError> {
        adjacencies.check_ports(self.interfaces.len())?;
        self.adjacencies = adjacencies;
        Ok(())
    }

    /// Last stage: packets with a way to go are sent on it; the others, and those that find it full, go back.
    #[inline(always)]
    fn emit<'a>(
        &mut self,
        packets: impl Iterator<Item = Packet<'a>>,
        egress: &mut (impl Egress<'a> + ?Sized),
        rejected: &mut Burst<'a>,
    ) {
        let mut run = Run::default();
        for packet in packets {
            let (port, bytes) = (packet.port, packet.frame_len());
            let Some(packet) = send(packet, egress) else {
                let counters = &mut self.counters;
                run.count(port, bytes, |port, traffic| counters.add_sent(port, traffic));
                continue;
            };
            self.count_rejected(packet.verdict);
            rejected.fill([packet].into_iter());
        }
        let (port, traffic) = run.finish();
        self.counters.add_sent(port, traffic);
    }

    #[cold]
    fn count_rejected(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Forward => {}
            Verdict::Drop(reason) => self.counters.drops[reason.index()] += 1,
            Verdict::Punt(punt) => self.counters.punts[punt.index()] += 1,
        }
    }
}

/// Sends a packet on its way, or hands back one that does not go any further.
#[inline(always)]
fn send<'a>(packet: Packet<'a>, egress: &mut (impl Egress<'a> + ?Sized)) -> Option<Packet<'a>> {
    if packet.verdict != Verdict::Forward {
        return Some(packet);
    }
    let refused = egress.send(packet.port, packet).err()?;
    refused.verdict = Verdict::Drop(Reason::EgressFull);
    Some(refused)
}
