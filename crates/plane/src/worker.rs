//! A worker: one thread that takes packets from its ports all the way to its ports, run to completion.
//!
//! Workers share nothing that is written. Each has its own end of every port, its own packet memory, its own
//! [`Forwarder`] with its scratch memory and counters, and its own [`PublishedCounters`] counters on cache lines of their own.
//! What they have in common they only read: the view, the FIBs, the groups.
//!
//! What the loop rejects goes to the worker's [`SlowPath`]: it gives packets to a kernel, or answers them. A slot that
//! nobody keeps goes back to the port that has given it, so that no port starves another of packet memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::burst::{BURST, Burst, Packet};
use crate::forward::{Forwarder, RedirectCandidate};
use crate::port::{Port, PortError};
use crate::view::View;
use pool::SlotPool;
pub use published::{PublishedCounters, WorkerCounters};

mod pool;
mod published;

/// What the loop rejected of one burst, and by what it can be answered.
pub struct Rejected<'w, 'a> {
    /// What the loop went by.
    pub view: &'w View,
    /// The rejected packets, each as it came in and with its verdict. Those that are still here afterwards are free.
    pub packets: &'w mut Burst<'a>,
    /// Packets that were forwarded, and whose senders could be told of a shorter way.
    pub redirects: &'w [RedirectCandidate],
    /// By port: packets to be sent. A slot to answer by can be taken from `packets` or from `free`.
    pub out: &'w mut [Burst<'a>],
    /// Free slots, some of them.
    pub free: &'w mut Burst<'a>,
}

/// Takes what the loop rejects.
pub trait SlowPath {
    /// Called after every burst, and once in a round without packets, so that it can do what has become due.
    fn take(&mut self, rejected: Rejected<'_, '_>);
}

impl<S: SlowPath> SlowPath for &mut S {
    fn take(&mut self, rejected: Rejected<'_, '_>) {
        (**self).take(rejected);
    }
}

/// Drops what the loop rejects.
pub struct DropAll;

impl SlowPath for DropAll {
    fn take(&mut self, _rejected: Rejected<'_, '_>) {}
}

/// How a worker waits when nothing comes in: it is given the ports after so many idle rounds, and returns when there
/// may be packets, or after a while, so that the worker sees that it is to stop.
pub trait Wait<P> {
    /// Waits.
    fn wait(&mut self, ports: &[Option<P>]);
}

/// Gives the core to whoever else wants it.
pub struct Yield;

impl<P> Wait<P> for Yield {
    fn wait(&mut self, _ports: &[Option<P>]) {
        std::thread::yield_now();
    }
}

/// Rounds without a packet before a worker waits: spinning costs no time to wake from.
const SPINS: u32 = 200;

/// Rounds between two looks at what ports had no room for: each costs a system call a port.
const UNLOOKED: u32 = 4096;

/// A worker.
pub struct Worker<'a, P, S, W> {
    forwarder: Forwarder,
    /// By number; `None` is not there.
    ports: Vec<Option<P>>,
    slow: S,
    wait: W,
    burst: Burst<'a>,
    rejected: Burst<'a>,
    egress: Vec<Burst<'a>>,
    pool: SlotPool<'a>,
    published: Arc<PublishedCounters>,
    counters: WorkerCounters,
    /// Rounds since the last look at what ports had no room for.
    unlooked: u32,
}

impl<'a, P: Port<'a>, S: SlowPath, W: Wait<P>> Worker<'a, P, S, W> {
    /// A worker between these ports, by number, with this packet memory, of which each port gets the same share. Where
    /// the ports' other ends bring packets of their own, it may be none.
    pub fn new(
        forwarder: Forwarder,
        ports: Vec<Option<P>>,
        packets: impl Iterator<Item = Packet<'a>>,
        slow: S,
        wait: W,
    ) -> Self {
        let egress = ports.iter().map(|_| Burst::new()).collect();
        let there = ports.iter().map(Option::is_some).collect();
        let mut worker = Worker {
            forwarder,
            pool: SlotPool::new(packets.collect(), there),
            ports,
            slow,
            wait,
            burst: Burst::new(),
            rejected: Burst::new(),
            egress,
            published: Arc::default(),
            counters: WorkerCounters::default(),
            unlooked: 0,
        };
        worker.fill_ports();
        worker
    }

    /// Frames may come before the first round does: a port that is polled by the kernel has nowhere to put them.
    fn fill_ports(&mut self) {
        for (number, port) in self.ports.iter_mut().enumerate() {
            port.iter_mut().for_each(|port| self.pool.give(number, port));
        }
    }

    /// Where others read what the worker has counted.
    pub fn published(&self) -> Arc<PublishedCounters> {
        Arc::clone(&self.published)
    }

    /// What takes the rejected packets.
    pub fn slow(&self) -> &S {
        &self.slow
    }

    /// Ends it: its ports, which may have packets of its memory, and all the others.
    pub fn into_parts(mut self) -> (Vec<Option<P>>, Vec<Packet<'a>>) {
        let held = self.egress.iter_mut().chain([&mut self.burst, &mut self.rejected]);
        held.for_each(|burst| _ = self.pool.keep(burst));
        (self.ports, self.pool.into_packets())
    }

    /// Forwards until it is told to stop, or all ports are finished.
    ///
    /// # Errors
    /// What a port fails with, unless its interface is only down or gone: the other ports go on without it.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), PortError> {
        let mut idle = 0;
        while !stop.load(Ordering::Relaxed) && !self.is_finished() {
            idle = if self.round()? > 0 { 0 } else { idle + 1 };
            if idle > SPINS {
                self.look();
                self.wait.wait(&self.ports);
            }
        }
        self.look();
        self.published.publish(self.forwarder.counters(), self.counters);
        Ok(())
    }

    /// Serves every port once, and returns how many packets there were.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn round(&mut self) -> Result<usize, PortError> {
        let mut received = 0;
        for number in 0..self.ports.len() {
            received += self.serve(number)?;
        }
        if received == 0 {
            self.handle_rejected(false);
            self.send()?;
        }
        self.unlooked += 1;
        if self.unlooked == UNLOOKED {
            self.look();
        }
        self.counters.rounds += 1;
        self.counters.idle_rounds += u64::from(received == 0);
        self.published.publish(self.forwarder.counters(), self.counters);
        Ok(received)
    }

    /// Counts what ports had no room for. One that is gone cannot say.
    #[cold]
    fn look(&mut self) {
        self.unlooked = 0;
        for (number, port) in (0..).zip(&mut self.ports) {
            if let Some(Ok(overruns)) = port.as_mut().map(Port::overruns) {
                self.forwarder.count_overruns(number, overruns);
            }
        }
    }

    /// Takes one burst of a port as far as it goes.
    fn serve(&mut self, number: usize) -> Result<usize, PortError> {
        let Some(port) = &mut self.ports[number] else { return Ok(0) };
        self.pool.give(number, port);
        let received = unless_gone(port.receive(&mut self.burst, BURST))?;
        if received > 0 {
            self.pool.took(number, received);
            self.forwarder.process(&mut self.burst, &mut *self.egress, &mut self.rejected);
            self.handle_rejected(true);
            self.send()?;
        }
        Ok(received)
    }

    /// Detours are known until the next burst, and told of once.
    fn handle_rejected(&mut self, is_after_burst: bool) {
        let free = self.pool.lend();
        let view = self.forwarder.view();
        let redirects = if is_after_burst { self.forwarder.redirect_candidates() } else { &[] };
        let (packets, out) = (&mut self.rejected, &mut *self.egress);
        self.slow.take(Rejected { view, packets, redirects, out, free });
        self.pool.keep(&mut self.rejected);
    }

    /// What a port does not take now is offered again with the next burst. What is for one that is gone is lost.
    fn send(&mut self) -> Result<(), PortError> {
        for (port, burst) in self.ports.iter_mut().zip(&mut self.egress) {
            let Some(port) = port else {
                self.counters.unsent += self.pool.keep(burst);
                continue;
            };
            if !burst.is_empty() && !transmit(port, burst)? {
                self.counters.unsent += self.pool.keep(burst);
            }
            self.pool.reclaim(port);
        }
        Ok(())
    }

    /// Whether packets wait to be sent, here or in a port.
    pub fn has_unsent(&mut self) -> bool {
        let waits_here = self.egress.iter().any(|burst| !burst.is_empty());
        waits_here || self.ports.iter_mut().flatten().any(Port::has_unsent)
    }

    fn is_finished(&self) -> bool {
        self.ports.iter().flatten().all(|port| port.is_finished())
    }
}

/// Sends what the port takes; `false` if its interface is down or gone.
fn transmit<'a>(port: &mut impl Port<'a>, burst: &mut Burst<'a>) -> Result<bool, PortError> {
    match port.transmit(burst) {
        Ok(_) => Ok(true),
        Err(PortError::Down { .. } | PortError::Removed { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// An interface that is down goes on when it is up; one that is gone says so by its port's being finished.
fn unless_gone(received: Result<usize, PortError>) -> Result<usize, PortError> {
    match received {
        Err(PortError::Down { .. } | PortError::Removed { .. }) => Ok(0),
        other => other,
    }
}
