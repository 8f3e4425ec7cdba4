//! A worker: one thread that receives, forwards and sends packets, run to completion.
//!
//! Workers share no memory that they write. Each has its own queue of every port, its own packet memory, its own
//! [`Forwarder`] with scratch memory and counters, and its own [`PublishedCounters`] on separate cache lines. They only
//! read what they share: the view, the FIBs, the groups, the noted links. With a filter, each has the states of some flows, and a
//! packet that another one receives is handed over by an [`Exchange`]: its rings and the slots in them are the exception.
//!
//! Rejected packets go to the worker's [`SlowPath`], which gives them to a kernel or answers them. Afterwards each slot
//! returns to the port that it came from, so that no port takes the packet memory of another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::burst::{BURST, Burst, Packet};
use crate::forward::{BurstFilter, FilterServer, Forwarder, RedirectCandidate};
use crate::port::{Port, PortError};
use crate::report_time::ReportTime;
use crate::verdict::Reason;
use crate::view::View;
pub use bell::WakeWorker;
pub use exchange::Exchange;
use pool::SlotPool;
pub use published::{PublishedCounters, WorkerCounters};

mod bell;
mod exchange;
mod pool;
mod published;

/// The rejected packets of one burst, and what the slow path needs to answer them.
pub struct Rejected<'w, 'a> {
    /// The view that the loop used.
    pub view: &'w View,
    /// The rejected packets, with their verdicts, each as [`Forwarder::process`] leaves it. The worker frees those that are still here afterwards.
    pub packets: &'w mut Burst<'a>,
    /// The filter that judged them, which knows by which interfaces they may leave.
    pub filter: Option<&'w BurstFilter>,
    /// Forwarded packets whose senders deserve an ICMP redirect.
    pub redirects: &'w [RedirectCandidate],
    /// Packets to send, by port. Slots for answers can be taken from `packets` or from `free`. Their verdict is not
    /// "forward", because they are not counted as sent.
    pub out: &'w mut [Burst<'a>],
    /// Some of the free slots.
    pub free: &'w mut Burst<'a>,
}

/// Handles the packets that the loop rejects.
pub trait SlowPath {
    /// Called after every burst, and once in each round without packets, so that timers can expire.
    fn take(&mut self, rejected: Rejected<'_, '_>);

    /// Whether packets wait here for room at a port.
    fn has_pending(&self) -> bool {
        false
    }
}

impl<S: SlowPath> SlowPath for &mut S {
    fn take(&mut self, rejected: Rejected<'_, '_>) {
        (**self).take(rejected);
    }

    fn has_pending(&self) -> bool {
        (**self).has_pending()
    }
}

/// Drops all rejected packets.
pub struct DropAll;

impl SlowPath for DropAll {
    fn take(&mut self, _rejected: Rejected<'_, '_>) {}
}

/// How a worker waits when it receives no packets. It is called after a number of idle rounds, and returns when there may
/// be packets or after a while, so that the worker checks whether it has to stop, and lets go of what was replaced meanwhile.
pub trait Wait<P> {
    fn wait(&mut self, ports: &[Option<P>]);
}

/// Yields the core to other threads.
pub struct Yield;

impl<P> Wait<P> for Yield {
    fn wait(&mut self, _ports: &[Option<P>]) {
        std::thread::yield_now();
    }
}

/// Rounds without a packet before a worker waits. Spinning has no wake-up latency.
const SPINS: u32 = 200;

/// Rounds between two reads of the ports' losses, each of which is a system call per port, while the worker does not wait.
const CATCH_UP_ROUNDS: u32 = 4096;

/// Bursts that are still received from a port before it is taken out, at most: 16,384 frames, as many as a large ring holds.
const LAST_BURSTS: u32 = 64;

/// A worker between its ports.
pub struct Worker<'a, P, S, W> {
    forwarder: Forwarder,
    /// By number; `None` where this worker has no port.
    ports: Vec<Option<P>>,
    slow: S,
    wait: W,
    burst: Burst<'a>,
    rejected: Burst<'a>,
    egress: Vec<Burst<'a>>,
    /// Packets that a port could not send, while they are given to others.
    unsent: Burst<'a>,
    pool: SlotPool<'a>,
    exchange: Option<Box<Exchange<'a>>>,
    published: Arc<PublishedCounters>,
    counters: WorkerCounters,
    /// Packets that are received at once, at most.
    most: usize,
    /// When the last round began.
    began: ReportTime,
    /// Rounds since the last [`Self::catch_up`].
    rounds_since_catch_up: u32,
}

impl<'a, P: Port<'a>, S: SlowPath, W: Wait<P>> Worker<'a, P, S, W> {
    /// A worker between these ports, by number, with this packet memory, of which each port gets an equal share. There may
    /// be no packet memory if the other ends of the ports bring their own.
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
            unsent: Burst::new(),
            exchange: None,
            published: Arc::default(),
            counters: WorkerCounters::default(),
            most: BURST,
            began: ReportTime::coarse(),
            rounds_since_catch_up: 0,
        };
        worker.fill_ports();
        worker.published.begin_round(worker.began);
        worker
    }

    /// Fills the ports before the first round: the kernel may have frames for a port by then, and needs slots for them.
    fn fill_ports(&mut self) {
        for (number, port) in self.ports.iter_mut().enumerate() {
            port.iter_mut().for_each(|port| self.pool.give(number, port));
        }
    }

    /// Receives at most so many packets at once, 1 to [`BURST`], which it is at the beginning.
    pub fn receive_at_most(&mut self, packets: usize) {
        self.most = packets.clamp(1, BURST);
    }

    /// Hands packets over to the workers that have the states of their flows from now on.
    pub fn set_exchange(&mut self, exchange: Exchange<'a>) {
        self.exchange = Some(Box::new(exchange));
    }

    /// Takes its ends of the rings, in which there may be slots of this worker, after its last round.
    pub fn take_exchange(&mut self) -> Option<Exchange<'a>> {
        self.exchange.take().map(|exchange| *exchange)
    }

    /// Notes that this worker is about to end, and says whether all are: the others hand nothing over any more, except what still comes
    /// in by their ports meanwhile.
    pub fn finish(&self) -> bool {
        self.exchange.as_ref().is_none_or(|exchange| exchange.finish())
    }

    /// The counters that other threads read.
    pub fn published(&self) -> Arc<PublishedCounters> {
        Arc::clone(&self.published)
    }

    /// The handler of rejected packets.
    pub fn slow(&self) -> &S {
        &self.slow
    }

    /// Changes the forwarder and the handler of rejected packets, between rounds.
    pub fn adapt(&mut self, change: impl FnOnce(&mut Forwarder, &mut S)) {
        change(&mut self.forwarder, &mut self.slow);
    }

    /// Takes a port out, between rounds. What came in by it before is forwarded, unless the view has no such interface any more, and
    /// what waits to be sent by it is dropped. Returns the slots that it would have got, too.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn take_port(&mut self, number: usize) -> Result<(Option<P>, Vec<Packet<'a>>), PortError> {
        self.begin_round()?;
        for _ in 0..LAST_BURSTS {
            if self.serve(number)? + self.serve_others()? == 0 {
                break;
            }
        }
        self.count_losses();
        self.drop_unsent(number);
        self.exchange.iter_mut().for_each(|exchange| exchange.retire_port(number));
        let due = self.pool.forget(number);
        Ok((self.ports[number].take(), self.take_packets(due)))
    }

    /// Puts a port where there is none, between rounds, with packet memory of its own.
    pub fn put_port(&mut self, number: usize, mut port: P, packets: Vec<Packet<'a>>) {
        self.pool.took(number, packets.len());
        self.pool.take_back(packets);
        self.pool.give(number, &mut port);
        self.ports[number] = Some(port);
    }

    /// Takes so many slots out, or fewer if others are at ports.
    pub fn take_packets(&mut self, wanted: usize) -> Vec<Packet<'a>> {
        self.pool.take(wanted)
    }

    /// Takes the filter with its states, for a worker that goes on in place of this one.
    pub fn take_filter(&mut self) -> Option<(BurstFilter, FilterServer)> {
        self.forwarder.take_filter()
    }

    /// Takes the worker apart: its ports, which may hold some of its packets, and all other packets.
    pub fn into_parts(mut self) -> (Vec<Option<P>>, Vec<Packet<'a>>) {
        let held = self.egress.iter_mut().chain([&mut self.burst, &mut self.rejected]);
        held.for_each(|burst| _ = self.pool.keep(burst));
        (self.ports, self.pool.into_packets())
    }

    /// Forwards until `stop` is set or all ports are finished.
    ///
    /// # Errors
    /// Returns the error of a port, except if its interface is down or removed: then the other ports continue.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), PortError> {
        let mut idle = 0;
        while !stop.load(Ordering::Relaxed) && !self.is_finished() {
            idle = if self.round()? > 0 { 0 } else { idle + 1 };
            if idle > SPINS && !self.forwarder.is_behind() {
                self.catch_up();
                self.sleep();
            }
        }
        self.count_losses();
        self.forwarder.take_back_flows();
        self.publish();
        Ok(())
    }

    /// Waits for packets, also for those of other workers.
    fn sleep(&mut self) {
        let (wait, ports) = (&mut self.wait, &self.ports);
        match &self.exchange {
            Some(exchange) => exchange.sleep(|| wait.wait(ports)),
            None => wait.wait(ports),
        }
    }

    /// Serves every port once, and returns how many packets were received.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn round(&mut self) -> Result<usize, PortError> {
        self.begin_round()?;
        // Before all packets: those that come after a change are judged by the new rules.
        self.forwarder.change_rules();
        let mut received = 0;
        for number in 0..self.ports.len() {
            received += self.serve(number)?;
            // As often as a port: all others together may hand over as much as this worker receives.
            received += self.serve_others()?;
        }
        if received == 0 {
            self.forwarder.push_waiting_samples();
            self.handle_rejected(false);
            self.send()?;
        }
        self.rounds_since_catch_up += 1;
        if self.rounds_since_catch_up == CATCH_UP_ROUNDS {
            self.catch_up();
        }
        self.counters.rounds += 1;
        self.counters.idle_rounds += u64::from(received == 0);
        self.publish();
        Ok(received)
    }

    /// After a silence, frames that came in before or during it are not sent any more.
    fn begin_round(&mut self) -> Result<(), PortError> {
        let now = ReportTime::coarse();
        let was_silent = std::mem::replace(&mut self.began, now).is_silence_until(now);
        if was_silent {
            self.drop_undated()?;
        }
        self.published.begin_round(now);
        Ok(())
    }

    /// Drops what waits at ports that do not know how old it is.
    #[cold]
    fn drop_undated(&mut self) -> Result<(), PortError> {
        for number in 0..self.ports.len() {
            let mut left = self.ports[number].as_mut().map_or(0, Port::undated);
            while left > 0 {
                let dropped = self.drop_received(number, left)?;
                left = if dropped > 0 { left - dropped } else { 0 };
            }
        }
        self.drop_handed_over();
        Ok(())
    }

    /// Drops what other workers have handed over, because it may have come in before a silence.
    fn drop_handed_over(&mut self) {
        for _ in 0..LAST_BURSTS {
            if self.take_handed_over(BURST) == 0 {
                return;
            }
            drop_from(&mut self.burst, Reason::Stale, &mut self.forwarder, &mut self.pool);
        }
    }

    /// Takes so many packets that other workers have handed over into the burst, at most, and returns how many the burst has then.
    fn take_handed_over(&mut self, most: usize) -> usize {
        if let Some(exchange) = &mut self.exchange {
            let refused = exchange.take(most, &mut self.burst);
            drop_from(refused, Reason::HandOver, &mut self.forwarder, &mut self.pool);
        }
        self.burst.len()
    }

    /// Drops so many frames of a port, or as many as a burst holds.
    fn drop_received(&mut self, number: usize, count: usize) -> Result<usize, PortError> {
        let Some(port) = &mut self.ports[number] else { return Ok(0) };
        self.pool.give(number, port);
        unless_gone(port.receive(&mut self.burst, count.min(BURST)))?;
        let dropped = self.burst.len();
        self.pool.took(number, dropped);
        self.drop_stale(number);
        Ok(dropped)
    }

    /// Drops what a port has received, because it may have come in before a silence.
    #[cold]
    fn drop_stale(&mut self, number: usize) {
        let stale = self.pool.keep(&mut self.burst);
        self.forwarder.count_dropped(number as u16, Reason::Stale, stale);
    }

    /// Publishes the counters without packets that wait to be sent: their port may still go down, and what is published never
    /// decreases.
    fn publish(&mut self) {
        let waiting = || self.egress.iter().filter(|burst| !burst.is_empty());
        waiting().for_each(|burst| self.forwarder.subtract_sent(burst));
        self.published.publish(self.forwarder.counters(), self.counters);
        waiting().for_each(|burst| self.forwarder.add_sent(burst));
    }

    /// Does what no packet asks for. A worker without packets must not keep what was replaced: the writer uses an index again
    /// when no worker has it.
    #[cold]
    fn catch_up(&mut self) {
        self.rounds_since_catch_up = 0;
        self.count_losses();
        self.forwarder.catch_up();
    }

    /// Reads what all ports lost, except the overruns of those whose interface was removed.
    #[cold]
    fn count_losses(&mut self) {
        for (number, port) in (0..).zip(&mut self.ports) {
            let Some(port) = port else { continue };
            self.forwarder.count_losses(number, port.losses());
            if let Ok(overruns) = port.overruns() {
                self.forwarder.count_overruns(number, overruns);
            }
        }
    }

    /// Receives one burst from a port, forwards and sends it.
    fn serve(&mut self, number: usize) -> Result<usize, PortError> {
        let Some(port) = &mut self.ports[number] else { return Ok(0) };
        self.pool.give(number, port);
        unless_gone(port.receive(&mut self.burst, self.most))?;
        // A port may fail after it received packets.
        let received = self.burst.len();
        if received > 0 {
            self.pool.took(number, received);
            if self.began.is_silence_until(ReportTime::coarse()) {
                // The silence was within this round. The next one drops what else waits.
                self.drop_stale(number);
                return Ok(received);
            }
            if let Some(exchange) = &mut self.exchange {
                let refused = exchange.hand_over(&mut self.burst);
                drop_from(refused, Reason::HandOver, &mut self.forwarder, &mut self.pool);
            }
            self.forward()?;
        }
        Ok(received)
    }

    /// Forwards what other workers have handed over, and returns how many packets that is.
    fn serve_others(&mut self) -> Result<usize, PortError> {
        let Some(exchange) = &mut self.exchange else { return Ok(0) };
        exchange.settle(&mut self.pool);
        let taken = self.take_handed_over(self.most);
        if taken == 0 {
            return Ok(0);
        }
        if self.began.is_silence_until(ReportTime::coarse()) {
            self.drop_handed_over();
        } else {
            self.forward()?;
        }
        Ok(taken)
    }

    /// Forwards the burst.
    fn forward(&mut self) -> Result<(), PortError> {
        self.forwarder.process(&mut self.burst, &mut *self.egress, &mut self.rejected);
        if self.slow.has_pending() {
            // The forwarded packets may have filled a burst again, and the others would wait as long as the load lasts.
            self.send()?;
        }
        self.handle_rejected(true);
        self.send()
    }

    /// The redirect candidates belong to the last burst, so the slow path gets them once.
    fn handle_rejected(&mut self, is_after_burst: bool) {
        let free = self.pool.lend();
        let view = self.forwarder.view();
        let redirects = if is_after_burst { self.forwarder.redirect_candidates() } else { &[] };
        let (packets, out) = (&mut self.rejected, &mut *self.egress);
        let filter = self.forwarder.filter();
        self.slow.take(Rejected { view, packets, filter, redirects, out, free });
        self.pool.keep(&mut self.rejected);
    }

    /// Packets that a port has no room for stay and are offered again with the next burst. Packets for a port that is down,
    /// removed or missing are dropped, unless their link has failed since they were forwarded, and their group has another one.
    fn send(&mut self) -> Result<(), PortError> {
        let mut have_moved = false;
        for number in 0..self.ports.len() {
            have_moved |= !self.send_by(number)? && self.leave(number);
        }
        if have_moved { self.send_moved() } else { Ok(()) }
    }

    /// Sends the packets for a port; `false` if it is down, removed or missing.
    fn send_by(&mut self, number: usize) -> Result<bool, PortError> {
        let (port, burst) = (&mut self.ports[number], &mut self.egress[number]);
        let is_there = match port {
            _ if burst.is_empty() => true,
            Some(port) => transmit(port, burst)?,
            None => false,
        };
        port.iter_mut().for_each(|port| self.pool.reclaim(port));
        Ok(is_there)
    }

    /// Moves the packets for a port to others, if their link has failed, and drops the rest. Says whether any has moved.
    #[cold]
    fn leave(&mut self, number: usize) -> bool {
        let mut have_moved = false;
        std::mem::swap(&mut self.egress[number], &mut self.unsent);
        for packet in self.unsent.drain() {
            let other = self.forwarder.leave_failed_link(packet).map_or(number, usize::from);
            have_moved |= other != number;
            let left = match self.egress.get_mut(other) {
                Some(burst) => {
                    burst.push(packet).err().map(|packet| self.forwarder.drop_without_room(packet))
                }
                None => Some(packet),
            };
            self.egress[number].fill(left.into_iter());
        }
        self.drop_unsent(number);
        have_moved
    }

    /// Sends what has moved to a port whose turn was over.
    #[cold]
    fn send_moved(&mut self) -> Result<(), PortError> {
        for number in 0..self.ports.len() {
            if !self.send_by(number)? {
                self.drop_unsent(number);
            }
        }
        Ok(())
    }

    #[cold]
    fn drop_unsent(&mut self, number: usize) {
        self.forwarder.count_unsent(&self.egress[number]);
        self.pool.keep(&mut self.egress[number]);
    }

    /// Whether packets wait here or in a port to be sent.
    pub fn has_unsent(&mut self) -> bool {
        let waits_here = self.egress.iter().any(|burst| !burst.is_empty());
        waits_here || self.ports.iter_mut().flatten().any(Port::has_unsent)
    }

    fn is_finished(&self) -> bool {
        self.ports.iter().flatten().all(|port| port.is_finished())
    }
}

/// Frees packets, each of which counts at the port that received it.
fn drop_from<'a>(
    packets: &mut Burst<'a>,
    reason: Reason,
    forwarder: &mut Forwarder,
    pool: &mut SlotPool<'a>,
) {
    packets.iter().for_each(|packet| forwarder.count_dropped(packet.port, reason, 1));
    pool.keep(packets);
}

/// Sends the packets that the port has room for; `false` if its interface is down or removed.
fn transmit<'a>(port: &mut impl Port<'a>, burst: &mut Burst<'a>) -> Result<bool, PortError> {
    match port.transmit(burst) {
        Ok(_) => Ok(true),
        Err(PortError::Down { .. } | PortError::Removed { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Ignores that an interface is down or removed: the port works again when the interface is up, or is finished.
fn unless_gone(received: Result<usize, PortError>) -> Result<(), PortError> {
    match received {
        Err(PortError::Down { .. } | PortError::Removed { .. }) => Ok(()),
        other => other.map(drop),
    }
}
