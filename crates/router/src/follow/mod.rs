//! Keeps a [`Mirror`] equal to the kernel's state: first everything is dumped, then every change is followed;
//! everything is dumped and compared again when the kernel had to drop a message or a dump was disturbed.
//!
//! There are three sockets: the kernel reports changes on one, changes of links on another too, so that a failed link is not
//! used until all changes before its failure are applied, and answers requests on the third. While one part is being
//! dumped, changes to this part are held back, because a dump may still list what a change has already removed; they
//! are applied when the dump has ended. Forwarding continues meanwhile with what is known.
//!
//! A dump of IPv6 routes that change meanwhile may lack routes, and list others twice, without `NLM_F_DUMP_INTR`: after an
//! addition the kernel begins again, and passes over as many prefixes as it has listed, whatever became of these
//! (`fib6_dump_table` in net/ipv6/ip6_fib.c). Such a dump is followed by another one, and a route leaves the mirror when several of
//! them, one after the other, did not list it.
//!
//! After the kernel had to drop a message, the socket still has older ones, and the kernel drops every further message
//! until they are read. So they are read and discarded before anything is dumped.

mod dump;
mod messages;
mod settling;
mod statistics;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use fullview_table::fib::framework::Time;

use crate::mirror::Mirror;
use crate::netlink::event::{ControlEvent, DumpPart};
use crate::netlink::request::NetlinkRequest;
use crate::netlink::socket::{Received, RouteSocket, SocketError};
use crate::netlink::uapi;
use crate::route::LinkIndex;
use dump::{Dump, apply_answers};
use messages::{RequestId, events, part};
use settling::{Settling, TOGETHER};

pub use statistics::Statistics;

/// The order of the first dumps: routes name objects, and neighbours name links.
const PARTS: [DumpPart; 9] = [
    DumpPart::Rules,
    DumpPart::Links,
    DumpPart::Addresses,
    DumpPart::Forwarding,
    DumpPart::Forwarding6,
    DumpPart::Neighbors,
    DumpPart::Objects,
    DumpPart::Inet,
    DumpPart::Inet6,
];

const GROUPS: [u32; 11] = [
    uapi::RTNLGRP_IPV4_NETCONF,
    uapi::RTNLGRP_IPV6_NETCONF,
    uapi::RTNLGRP_LINK,
    uapi::RTNLGRP_NEIGH,
    uapi::RTNLGRP_IPV4_IFADDR,
    uapi::RTNLGRP_IPV4_ROUTE,
    uapi::RTNLGRP_IPV4_RULE,
    uapi::RTNLGRP_IPV6_IFADDR,
    uapi::RTNLGRP_IPV6_ROUTE,
    uapi::RTNLGRP_IPV6_RULE,
    uapi::RTNLGRP_NEXTHOP,
];

/// Calls of `recv` before [`Follower::advance`] returns to its caller.
const RECEIVES_PER_TURN: usize = 64;

/// Events held back during a dump, at most; with more everything is dumped again.
const MOST_HELD: usize = 1 << 20;

/// The time between a suspicion and the dumps that it causes: the events that raise it seldom come alone.
const SUSPICION_DELAY: Duration = Duration::from_millis(100);

/// The time between two dumps of IPv6 routes for those that a route with several hops may have hidden: while the sessions of
/// many such routes flap, each of them may cause one.
const REVEAL_INTERVAL: Duration = Duration::from_secs(10);

/// Links are dumped this often, because the kernel does not report a changed IPv6 MTU.
const LINKS_INTERVAL: Duration = Duration::from_secs(10);

/// A dump that was disturbed or refused is repeated after this time, doubled each time, seven times at most.
const RETRY: Duration = Duration::from_millis(10);

/// Follows the kernel.
pub struct Follower {
    changes: RouteSocket,
    /// Changes of links again, which do not wait behind those of a million routes.
    alarms: RouteSocket,
    requests: RouteSocket,
    sequence: u32,
    wanted: VecDeque<DumpPart>,
    running: Option<Dump>,
    held: Vec<ControlEvent>,
    /// The last request that changed a next-hop object.
    object_request: Option<RequestId>,
    /// The kernel dropped messages. Those that the socket still has are older than the dumps to come.
    discards: bool,
    /// The next dump starts no earlier.
    retry_at: Time,
    failures: u32,
    /// What is dumped on suspicion, and when.
    suspected: Vec<DumpPart>,
    suspicion: Option<Time>,
    /// When hidden routes are looked for, if any may have come to light, and not before when the next time.
    reveal: Option<Time>,
    next_reveal: Time,
    settling: Settling,
    /// The part that the kernel refused to list when it was last asked.
    refused: Option<DumpPart>,
    refusals: Vec<SocketError>,
    /// When links are dumped next; `None` until everything is known.
    links_at: Option<Time>,
    statistics: Statistics,
}

impl Follower {
    /// Receives changes from now on, and will dump everything. `receive_buffer` is that of changes, in bytes.
    pub fn new(receive_buffer: Option<usize>) -> Result<Follower, SocketError> {
        Ok(Follower {
            changes: RouteSocket::open(&GROUPS, receive_buffer)?,
            alarms: RouteSocket::open(&[uapi::RTNLGRP_LINK], receive_buffer)?,
            requests: RouteSocket::open(&[], None)?,
            sequence: 0,
            wanted: PARTS.into(),
            running: None,
            held: Vec::new(),
            object_request: None,
            discards: false,
            retry_at: Time::ZERO,
            failures: 0,
            suspected: Vec::new(),
            suspicion: None,
            reveal: None,
            next_reveal: Time::ZERO,
            settling: Settling::default(),
            refused: None,
            refusals: Vec::new(),
            links_at: None,
            statistics: Statistics::default(),
        })
    }

    /// The descriptors to poll: there is work when one of them is readable.
    pub fn fds(&self) -> [BorrowedFd<'_>; 3] {
        [self.changes.as_fd(), self.alarms.as_fd(), self.requests.as_fd()]
    }

    /// Whether all dumps that were wanted have ended.
    pub fn is_synced(&self) -> bool {
        self.wanted.is_empty() && self.running.is_none() && !self.settling.is_awaited()
    }

    /// The counters so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// When [`Self::advance`] has something to do even if nothing is readable.
    pub fn next_deadline(&self) -> Option<Time> {
        let dump = (self.running.is_none() && !self.wanted.is_empty()).then_some(self.retry_at);
        let others = [self.suspicion, self.reveal, self.settling.next(), self.links_at];
        dump.into_iter().chain(others.into_iter().flatten()).min()
    }

    /// Applies what can be read now, and starts the dumps that are due; returns whether there may be more to read.
    pub fn advance(&mut self, now: Time, mirror: &mut Mirror) -> Result<bool, SocketError> {
        self.read_alarms(mirror)?;
        let more_changes = self.read_changes(mirror)?;
        let more_answers = self.read_answers(now, mirror)?;
        self.suspect(now, mirror.take_suspicions());
        self.want_suspected(now);
        self.want_revealed(now, mirror);
        self.want_settled(now);
        self.want_links(now);
        self.start_dump(now, mirror)?;
        Ok(more_changes || more_answers)
    }

    /// The kernel may have changed these parts silently. Those that are to be dumped anyway need nothing else.
    fn suspect(&mut self, now: Time, parts: Vec<DumpPart>) {
        for part in parts {
            if !self.wanted.contains(&part) && !self.suspected.contains(&part) {
                self.suspected.push(part);
                self.suspicion.get_or_insert(now + SUSPICION_DELAY);
            }
        }
    }

    /// Objects are dumped before the routes that use them.
    fn want_suspected(&mut self, now: Time) {
        if self.suspicion.take_if(|at| *at <= now).is_some() {
            let suspected = std::mem::take(&mut self.suspected);
            PARTS.into_iter().filter(|part| suspected.contains(part)).for_each(|part| self.want(part));
        }
    }

    fn want_revealed(&mut self, now: Time, mirror: &mut Mirror) {
        if mirror.take_revealed() {
            self.reveal.get_or_insert(self.next_reveal.max(now + SUSPICION_DELAY));
        }
        if self.reveal.take_if(|at| *at <= now).is_some() {
            self.next_reveal = now + REVEAL_INTERVAL;
            self.want(DumpPart::Inet6);
        }
    }

    fn want_settled(&mut self, now: Time) {
        if self.settling.take_due(now) {
            self.want(DumpPart::Inet6);
        }
    }

    fn want_links(&mut self, now: Time) {
        if self.links_at.is_some_and(|at| at <= now) {
            self.want(DumpPart::Links);
            self.links_at = None;
        }
        if self.links_at.is_none() && self.is_synced() {
            self.links_at = Some(now + LINKS_INTERVAL);
        }
    }

    fn want(&mut self, part: DumpPart) {
        if !self.wanted.contains(&part) {
            self.wanted.push_back(part);
        }
    }

    /// Learns which links have failed, before everything that happened earlier. If alarms were lost, the changes will tell.
    fn read_alarms(&mut self, mirror: &mut Mirror) -> Result<(), SocketError> {
        loop {
            match self.alarms.receive()? {
                Received::Nothing => return Ok(()),
                Received::Lost => {
                    self.alarms.discard()?;
                    mirror.forget_alarms();
                }
                // They are counted as changes.
                Received::Some(bytes) => {
                    events(bytes, &mut Statistics::default(), &mut None)
                        .iter()
                        .for_each(|event| mirror.alarm(event));
                }
            }
        }
    }

    fn read_changes(&mut self, mirror: &mut Mirror) -> Result<bool, SocketError> {
        for _ in 0..RECEIVES_PER_TURN {
            let events = match self.changes.receive()? {
                Received::Nothing => {
                    self.discards = false;
                    return Ok(false);
                }
                Received::Lost => {
                    self.lost(mirror);
                    continue;
                }
                Received::Some(_) if self.discards => continue,
                Received::Some(bytes) => events(bytes, &mut self.statistics, &mut self.object_request),
            };
            events.into_iter().for_each(|event| self.change(event, mirror));
        }
        Ok(true)
    }

    /// Applies a change, or holds it back. A link whose MTU changes passes it to IPv6 too, but the kernel reports the
    /// link before it does.
    fn change(&mut self, event: ControlEvent, mirror: &mut Mirror) {
        if self.discards {
            return;
        }
        if matches!(&event, ControlEvent::Link(link) if mirror.has_other_mtu(link)) {
            self.want(DumpPart::Links);
        }
        mirror.suspect_objects_of(&event);
        if let (Some(dump), ControlEvent::NextHopRemoved(id)) = (&mut self.running, &event) {
            dump.gone_objects.insert(*id);
        }
        if part(&event) == DumpPart::Inet6 {
            self.shift();
        }
        match self.waits(&event) {
            false => mirror.apply(event),
            true if self.held.len() < MOST_HELD => self.held.push(event),
            true => self.lost(mirror),
        }
    }

    /// IPv6 routes change.
    fn shift(&mut self) {
        let dump = self.running.iter_mut().filter(|dump| dump.part == DumpPart::Inet6);
        dump.for_each(|dump| dump.is_shifted = true);
    }

    /// Whether a change waits for the end of the dump under way, which may list its part as it was before. An object
    /// takes its routes with it when it goes, so changes of objects and routes stay in their order. A link takes both
    /// with it: while links are dumped, which does not last long, everything waits.
    fn waits(&self, event: &ControlEvent) -> bool {
        let Some(dump) = &self.running else { return false };
        let part = part(event);
        let is_in_order = |part| matches!(part, DumpPart::Objects | DumpPart::Inet | DumpPart::Inet6);
        dump.part == part
            || dump.part == DumpPart::Links
            || !self.held.is_empty() && is_in_order(part) && is_in_order(dump.part)
    }

    /// Messages were lost, so anything that is known may be wrong: everything is dumped again.
    fn lost(&mut self, mirror: &mut Mirror) {
        if !self.discards {
            mirror.doubt_hidden();
        }
        self.statistics.overflows += 1;
        self.discards = true;
        self.held.clear();
        self.wanted = PARTS.into();
        self.running.iter_mut().for_each(|dump| dump.is_void = true);
    }

    /// Applies pieces of the dump under way; returns whether there may be more.
    fn read_answers(&mut self, now: Time, mirror: &mut Mirror) -> Result<bool, SocketError> {
        for _ in 0..RECEIVES_PER_TURN {
            // Outside of dumps this socket receives errors about neighbours that were removed meanwhile.
            let Some(dump) = &mut self.running else {
                while let Received::Some(_) = self.requests.receive()? {}
                return Ok(false);
            };
            let done = match self.requests.receive()? {
                Received::Nothing => return Ok(false),
                Received::Lost => {
                    dump.is_void = true;
                    continue;
                }
                Received::Some(bytes) => apply_answers(bytes, dump, mirror, &mut self.statistics),
            };
            match done {
                Ok(false) => continue,
                Ok(true) => {
                    self.refused.take_if(|part| *part == dump.part);
                }
                Err(refusal) => self.refuse(refusal),
            }
            self.read_shift(mirror)?;
            self.end_dump(now, mirror);
            return Ok(true);
        }
        Ok(true)
    }

    /// Reads the changes up to the end of a dump of IPv6 routes. If there are more than are read at once, some may be of these.
    fn read_shift(&mut self, mirror: &mut Mirror) -> Result<(), SocketError> {
        let is_inet6 = self.running.as_ref().is_some_and(|dump| dump.part == DumpPart::Inet6);
        if is_inet6 && self.read_changes(mirror)? {
            self.shift();
        }
        Ok(())
    }

    /// The kernel refuses to list a part now. What is known of it stays, and it is asked again later.
    fn refuse(&mut self, refusal: SocketError) {
        let Some(dump) = &mut self.running else { return };
        dump.is_void = true;
        // The other parts come first, after the same time.
        self.wanted.push_back(dump.part);
        if self.refused.replace(dump.part) != Some(dump.part) {
            self.refusals.push(refusal);
        }
    }

    /// The refusals since the last call, one for each part however often it is asked again.
    pub fn take_refusals(&mut self) -> Vec<SocketError> {
        std::mem::take(&mut self.refusals)
    }

    fn end_dump(&mut self, now: Time, mirror: &mut Mirror) {
        let Some(dump) = self.running.take() else { return };
        match dump {
            Dump { is_shifted: true, is_void: false, .. } => self.settle_later(now, mirror),
            Dump { is_void, part, .. } => {
                if part == DumpPart::Inet6 {
                    self.settling.restart();
                }
                if is_void {
                    self.repeat(now, part);
                } else {
                    self.failures = 0;
                    self.statistics.dumps += 1;
                    self.statistics.repaired += mirror.end_dump(part) as u64;
                }
            }
        }
        mirror.remove_listed(dump.part, &dump.gone_objects);
        self.suspect(now, mirror.take_suspicions());
        std::mem::take(&mut self.held).into_iter().for_each(|event| mirror.apply(event));
        // A route that was removed during the dump may be gone from the mirror already: that is no reason to dump
        // again.
        let suspected = mirror.take_suspicions().into_iter().filter(|part| *part != dump.part);
        self.suspect(now, suspected.collect());
    }

    /// What IPv6 routes there are is known when they do not change during a dump, or after several dumps.
    fn settle_later(&mut self, now: Time, mirror: &mut Mirror) {
        mirror.end_shifted_dump();
        (self.failures, self.statistics.interrupted) = (0, self.statistics.interrupted + 1);
        if self.settling.shifted(now) {
            self.statistics.repaired += mirror.remove_unlisted(TOGETHER) as u64;
        }
    }

    fn repeat(&mut self, now: Time, part: DumpPart) {
        self.statistics.interrupted += 1;
        if !self.wanted.contains(&part) {
            self.wanted.push_front(part);
        }
        self.retry_at = now + RETRY * (1 << self.failures.min(7));
        self.failures += 1;
    }

    fn start_dump(&mut self, now: Time, mirror: &mut Mirror) -> Result<(), SocketError> {
        if self.running.is_some() || self.discards || now < self.retry_at {
            return Ok(());
        }
        let Some(part) = self.wanted.pop_front() else { return Ok(()) };
        if part == DumpPart::Inet6 {
            self.reveal = None;
            self.settling.begin();
        }
        self.sequence = self.sequence.wrapping_add(1);
        mirror.begin_dump(part);
        self.requests.send(&NetlinkRequest::dump(part).message(uapi::NLM_F_DUMP, self.sequence))?;
        self.running = Some(Dump::new(part, self.sequence));
        Ok(())
    }

    /// Has the kernel verify a neighbour, as if it had sent a packet to it itself. The kernel does not create a
    /// neighbour that it has forgotten.
    pub fn keep_fresh(&self, link: LinkIndex, address: IpAddr) -> Result<(), SocketError> {
        self.requests.send(&NetlinkRequest::use_neighbor(link, address).message(0, 0))
    }

    /// Has the kernel resolve a neighbour, which it creates if it does not have it.
    pub fn resolve(&self, link: LinkIndex, address: IpAddr) -> Result<(), SocketError> {
        self.requests.send(&NetlinkRequest::use_neighbor(link, address).message(uapi::NLM_F_CREATE, 0))
    }
}
