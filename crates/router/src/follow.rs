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
//! (`fib6_dump_table` in net/ipv6/ip6_fib.c). Such a dump removes nothing from the mirror, and is followed by another one.
//!
//! After the kernel had to drop a message, the socket still has older ones, and the kernel drops every further message
//! until they are read. So they are read and discarded before anything is dumped.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use fullview_table::Family;
use fullview_table::fib::framework::Time;
use netlink_packet_core::{DoneBuffer, ErrorBuffer, NetlinkBuffer};
use rustc_hash::FxHashSet;

use crate::mirror::Mirror;
use crate::netlink::decode::{self, Messages};
use crate::netlink::event::{ControlEvent, DumpPart, Placement, RouteEntry};
use crate::netlink::request::{NetlinkRequest, refused};
use crate::netlink::socket::{Received, RouteSocket, SocketError};
use crate::netlink::uapi;
use crate::route::{AnyPrefix, HopSet, LinkIndex, RouteAction};

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

/// A dump of IPv6 routes that changed meanwhile is followed by another one after [`RETRY`], doubled each time, so often at most: such
/// changes may never end.
const MOST_DOUBLINGS: u32 = 10;

/// So many of these dumps are waited for before everything counts as known.
const MOST_AWAITED: u32 = 3;

/// Counters of what was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Messages decoded.
    pub events: u64,
    /// Messages that were damaged.
    pub malformed: u64,
    /// How often the kernel dropped messages.
    pub overflows: u64,
    /// Dumps that changes disturbed.
    pub interrupted: u64,
    /// Dumps ended, of any part.
    pub dumps: u64,
    /// Entries of the mirror that a dump removed: the kernel had not reported that they were gone.
    pub repaired: u64,
}

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
    /// When IPv6 routes are dumped again, as they changed during the last dump.
    unsettled: Option<Time>,
    /// The dumps of IPv6 routes, one after the other, during which they changed.
    shifts: u32,
    /// The part that the kernel refused to list when it was last asked.
    refused: Option<DumpPart>,
    refusals: Vec<SocketError>,
    /// When links are dumped next; `None` until everything is known.
    links_at: Option<Time>,
    statistics: Statistics,
}

/// The request that a change follows from: the sender's port, which is not 0, and its number.
type RequestId = (u32, u32);

/// A dump under way.
struct Dump {
    part: DumpPart,
    sequence: u32,
    /// It has to be repeated: something changed under it, or messages were lost meanwhile.
    is_void: bool,
    /// IPv6 routes changed under their dump, which may lack some and have others twice.
    is_shifted: bool,
    /// The next-hop objects that went meanwhile.
    gone_objects: FxHashSet<u32>,
}

impl Dump {
    fn new(part: DumpPart, sequence: u32) -> Dump {
        Dump { part, sequence, is_void: false, is_shifted: false, gone_objects: FxHashSet::default() }
    }
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
            unsettled: None,
            shifts: 0,
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
        let is_unsettled = self.unsettled.is_some() && self.shifts <= MOST_AWAITED;
        self.wanted.is_empty() && self.running.is_none() && !is_unsettled
    }

    /// The counters so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// When [`Self::advance`] has something to do even if nothing is readable.
    pub fn next_deadline(&self) -> Option<Time> {
        let dump = (self.running.is_none() && !self.wanted.is_empty()).then_some(self.retry_at);
        let others = [self.suspicion, self.reveal, self.unsettled, self.links_at];
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
        if self.unsettled.take_if(|at| *at <= now).is_some() {
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
                Received::Lost => mirror.forget_alarms(),
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
            Dump { is_void: true, part, .. } => self.repeat(now, part),
            Dump { is_shifted: true, .. } => self.settle_later(now, mirror),
            Dump { part, .. } => {
                self.failures = 0;
                self.statistics.dumps += 1;
                self.statistics.repaired += mirror.end_dump(part) as u64;
                if part == DumpPart::Inet6 {
                    self.shifts = 0;
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

    /// What IPv6 routes there are is known when they do not change during a dump.
    fn settle_later(&mut self, now: Time, mirror: &mut Mirror) {
        mirror.end_shifted_dump();
        (self.failures, self.statistics.interrupted) = (0, self.statistics.interrupted + 1);
        self.unsettled = Some(now + RETRY * (1 << self.shifts.min(MOST_DOUBLINGS)));
        self.shifts += 1;
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
            (self.reveal, self.unsettled) = (None, None);
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

/// The part that an event changes.
fn part(event: &ControlEvent) -> DumpPart {
    use ControlEvent::{
        Address, AddressRemoved, Forwarding, Link, LinkRemoved, Neighbor, NeighborRemoved, NextHop,
        NextHopRemoved, Route, RouteRemoved, Rule, RuleRemoved,
    };
    match event {
        Link(_) | LinkRemoved(_) => DumpPart::Links,
        Address(..) | AddressRemoved(..) => DumpPart::Addresses,
        Neighbor(_) | NeighborRemoved(..) => DumpPart::Neighbors,
        NextHop(..) | NextHopRemoved(_) => DumpPart::Objects,
        Route(route, _) | RouteRemoved(route) => match route.prefix {
            AnyPrefix::Inet(_) => DumpPart::Inet,
            AnyPrefix::Inet6(_) => DumpPart::Inet6,
        },
        Forwarding(_, Family::Inet, _) => DumpPart::Forwarding,
        Forwarding(_, Family::Inet6, _) => DumpPart::Forwarding6,
        Rule(_) | RuleRemoved(_) => DumpPart::Rules,
    }
}

/// The changes that the kernel reports. It reports the routes of a next-hop object that changed as if they replaced others, after
/// the object and as answers to the same request (`nexthop_replace_notify` in net/ipv4/nexthop.c).
fn events(
    bytes: &[u8],
    statistics: &mut Statistics,
    object_request: &mut Option<RequestId>,
) -> Vec<ControlEvent> {
    let event = |message: NetlinkBuffer<&[u8]>| {
        let request = (message.port_number(), message.sequence_number());
        Some(match decoded(&message, statistics)? {
            ControlEvent::Route(route, Placement::Replace)
                if Some(request) == *object_request && is_by_object(&route) =>
            {
                ControlEvent::Route(route, Placement::Updated)
            }
            object @ ControlEvent::NextHop(..) => {
                *object_request = Some(request).filter(|(port, _)| *port != 0);
                object
            }
            other => other,
        })
    };
    Messages(bytes).filter_map(event).collect()
}

fn is_by_object(route: &RouteEntry) -> bool {
    matches!(route.action, RouteAction::Forward(HopSet::Object(_)))
}

fn decoded(message: &NetlinkBuffer<&[u8]>, statistics: &mut Statistics) -> Option<ControlEvent> {
    let event = decode::event(message);
    statistics.events += u64::from(matches!(event, Ok(Some(_))));
    statistics.malformed += u64::from(event.is_err());
    event.ok().flatten()
}

/// Applies a piece of a dump; returns whether it was the last. A kernel without IPv6 answers a request for its routes with those
/// of IPv4 (`rtnetlink_rcv_msg` in net/core/rtnetlink.c): they belong to another part.
fn apply_answers(
    bytes: &[u8],
    dump: &mut Dump,
    mirror: &mut Mirror,
    statistics: &mut Statistics,
) -> Result<bool, SocketError> {
    let mut done = false;
    for message in Messages(bytes).filter(|message| message.sequence_number() == dump.sequence) {
        dump.is_void |= message.flags() & uapi::NLM_F_DUMP_INTR != 0;
        match message.message_type() {
            uapi::NLMSG_DONE => {
                let code = DoneBuffer::new_checked(message.payload()).map_or(0, |end| end.code());
                (done, dump.is_void) = (true, dump.is_void | (code < 0));
            }
            uapi::NLMSG_ERROR => {
                let code = ErrorBuffer::new_checked(message.payload()).ok().and_then(|error| error.code());
                refused(code.map_or(0, i32::from), dump.part)?;
                done = true;
            }
            uapi::NLMSG_OVERRUN => dump.is_void = true,
            _ => match decoded(&message, statistics).filter(|event| part(event) == dump.part) {
                Some(ControlEvent::Route(route, _)) => {
                    mirror.apply(ControlEvent::Route(route, Placement::Listed))
                }
                event => event.into_iter().for_each(|event| mirror.apply(event)),
            },
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use fullview_table::Family;
    use fullview_table::fib::framework::Settings;

    use super::*;
    use crate::netlink::event::{NextHopObject, PROTOCOL_STATIC, RouteOrigin};
    use crate::route::{MAIN_TABLE, RouteHop};

    /// A follower that dumps this part, or nothing, and an empty mirror.
    fn following(part: Option<DumpPart>) -> (Follower, Mirror) {
        let mut follower = Follower::new(None).unwrap();
        follower.wanted.clear();
        follower.running = part.map(|part| Dump::new(part, 1));
        (follower, Mirror::new(Time::ZERO, Vec::new(), Settings::default()))
    }

    fn route(action: RouteAction<HopSet>) -> ControlEvent {
        let prefix = AnyPrefix::host([198, 18, 0, 1].into());
        let route = RouteEntry {
            table: MAIN_TABLE,
            prefix,
            metric: 0,
            selective: None,
            protocol: PROTOCOL_STATIC,
            origin: RouteOrigin::default(),
            action,
        };
        ControlEvent::Route(route, Placement::First)
    }

    #[test]
    fn a_route_that_waits_for_a_dump_goes_with_its_object() {
        let (mut follower, mut mirror) = following(Some(DumpPart::Inet));
        let object = NextHopObject::Single(RouteAction::Blackhole);
        mirror.apply(ControlEvent::NextHop(7, object));
        follower.change(route(RouteAction::Forward(HopSet::Object(7))), &mut mirror);
        follower.change(ControlEvent::NextHopRemoved(7), &mut mirror);
        follower.change(ControlEvent::Forwarding(1, Family::Inet, true), &mut mirror);
        assert_eq!(follower.held.len(), 2, "the setting does not wait");
        follower.end_dump(Time::ZERO, &mut mirror);
        assert_eq!(mirror.report().inet, 0);
    }

    #[test]
    fn a_route_that_a_dump_lists_goes_with_its_object() {
        let (mut follower, mut mirror) = following(Some(DumpPart::Inet));
        mirror.apply(ControlEvent::NextHop(7, NextHopObject::Single(RouteAction::Blackhole)));
        follower.change(ControlEvent::NextHopRemoved(7), &mut mirror);
        assert_eq!(follower.held.len(), 0, "a failover does not wait for a dump");
        // The kernel listed it before.
        mirror.apply(route(RouteAction::Forward(HopSet::Object(7))));
        follower.end_dump(Time::ZERO, &mut mirror);
        assert_eq!(mirror.report().inet, 0);
    }

    #[test]
    fn a_route_of_an_object_that_came_back_during_a_dump_stays() {
        let (mut follower, mut mirror) = following(Some(DumpPart::Inet));
        let object = NextHopObject::Single(RouteAction::Blackhole);
        mirror.apply(ControlEvent::NextHop(7, object.clone()));
        let by_object = || route(RouteAction::Forward(HopSet::Object(7)));
        for event in [ControlEvent::NextHopRemoved(7), ControlEvent::NextHop(7, object), by_object()] {
            follower.change(event, &mut mirror);
        }
        mirror.apply(by_object());
        follower.end_dump(Time::ZERO, &mut mirror);
        assert_eq!(mirror.report().inet, 1);
    }

    fn multipath() -> RouteEntry {
        let hop = |last: u16| RouteHop::new(1, Some([0xfe80, 0, 0, 0, 0, 0, 0, last].into()), 1);
        RouteEntry {
            table: MAIN_TABLE,
            prefix: AnyPrefix::host([0x2001, 0xdb8, 1, 0, 0, 0, 0, 1].into()),
            metric: 1024,
            selective: None,
            protocol: PROTOCOL_STATIC,
            origin: RouteOrigin::default(),
            action: RouteAction::via(vec![hop(1), hop(2)]),
        }
    }

    #[test]
    fn a_route_from_before_an_overflow_may_hide_others() {
        for overflows in [false, true] {
            let (mut follower, mut mirror) = following(Some(DumpPart::Inet6));
            follower.end_dump(Time::ZERO, &mut mirror);
            mirror.apply(ControlEvent::Route(multipath(), Placement::Last));
            if overflows {
                follower.lost(&mut mirror);
            }
            mirror.apply(ControlEvent::RouteRemoved(multipath()));
            assert_eq!(mirror.take_revealed(), overflows);
        }
    }

    #[test]
    fn hidden_routes_are_looked_for_once_in_an_interval() {
        let (mut follower, mut mirror) = following(None);
        let route = multipath();
        let reveal = |mirror: &mut Mirror| {
            mirror.apply(ControlEvent::Route(route.clone(), Placement::Listed));
            mirror.apply(ControlEvent::RouteRemoved(route.clone()));
        };
        let mut looks = |milliseconds: u64, mirror: &mut Mirror| {
            follower.want_revealed(Duration::from_millis(milliseconds), mirror);
            follower.wanted.pop_front() == Some(DumpPart::Inet6)
        };
        assert!(!looks(0, &mut mirror));
        reveal(&mut mirror);
        assert!(!looks(1, &mut mirror) && !looks(100, &mut mirror) && looks(101, &mut mirror));
        reveal(&mut mirror);
        assert!(!looks(300, &mut mirror) && !looks(10_100, &mut mirror) && looks(10_101, &mut mirror));
        assert!(!looks(30_000, &mut mirror), "nothing was revealed");
        reveal(&mut mirror);
        follower.want_revealed(Duration::from_secs(31), &mut mirror);
        follower.want(DumpPart::Inet6);
        follower.start_dump(Duration::from_secs(31), &mut mirror).unwrap();
        assert_eq!(follower.reveal, None, "that dump shows them");
    }

    #[test]
    fn messages_from_before_an_overflow_are_discarded() {
        let (mut follower, mut mirror) = following(None);
        follower.lost(&mut mirror);
        follower.change(route(RouteAction::Blackhole), &mut mirror);
        follower.start_dump(Time::ZERO, &mut mirror).unwrap();
        assert_eq!((mirror.report().inet, follower.running.is_some()), (0, false));
        while follower.read_changes(&mut mirror).unwrap() {}
        follower.change(route(RouteAction::Blackhole), &mut mirror);
        follower.start_dump(Time::ZERO, &mut mirror).unwrap();
        assert_eq!((mirror.report().inet, follower.running.is_some()), (1, true));
    }

    fn inet6_blackhole(last: u16) -> RouteEntry {
        let prefix = AnyPrefix::host([0x2001, 0xdb8, 0, 0, 0, 0, 0, last].into());
        RouteEntry { prefix, action: RouteAction::Blackhole, ..multipath() }
    }

    /// Runs a dump of IPv6 routes that lists the first one twice, while others change or not.
    fn dump_inet6(now: Time, others_change: bool, follower: &mut Follower, mirror: &mut Mirror) {
        mirror.begin_dump(DumpPart::Inet6);
        follower.running = Some(Dump::new(DumpPart::Inet6, 1));
        for _ in 0..2 {
            mirror.apply(ControlEvent::Route(inet6_blackhole(1), Placement::Listed));
        }
        if others_change {
            follower.change(ControlEvent::RouteRemoved(inet6_blackhole(3)), mirror);
        }
        follower.end_dump(now, mirror);
    }

    /// The kernel passes over as many prefixes as were removed, after an addition, and lists those again before which others
    /// were added.
    #[test]
    fn a_dump_of_ipv6_routes_that_change_meanwhile_removes_none_and_doubles_none() {
        for others_change in [true, false] {
            let (mut follower, mut mirror) = following(None);
            mirror.apply(ControlEvent::Route(inet6_blackhole(2), Placement::Last));
            dump_inet6(Time::ZERO, others_change, &mut follower, &mut mirror);
            assert_eq!(mirror.report().inet6, if others_change { 2 } else { 1 });
            mirror.apply(ControlEvent::RouteRemoved(inet6_blackhole(1)));
            assert_eq!(mirror.report().inet6, 1, "a route is there twice only by an undisturbed dump");
        }
    }

    #[test]
    fn ipv6_routes_that_change_during_each_dump_are_listed_ever_more_seldom() {
        let (mut follower, mut mirror) = following(None);
        let dump = |milliseconds, follower: &mut Follower, mirror: &mut Mirror| {
            dump_inet6(Duration::from_millis(milliseconds), true, follower, mirror);
            follower.next_deadline().map(|at| at.as_millis())
        };
        assert_eq!(dump(0, &mut follower, &mut mirror), Some(10));
        assert!(!follower.is_synced());
        follower.want_settled(Duration::from_millis(10));
        assert_eq!(follower.wanted, [DumpPart::Inet6]);
        follower.wanted.clear();
        assert_eq!([100, 200, 300].map(|at| dump(at, &mut follower, &mut mirror)), [120, 240, 380].map(Some));
        assert!(follower.is_synced(), "a router begins although routes go on to change");
        assert!((0..20).all(|_| dump(1000, &mut follower, &mut mirror) <= Some(11_240)));
        dump_inet6(Time::ZERO, false, &mut follower, &mut mirror);
        assert_eq!(dump(0, &mut follower, &mut mirror), Some(10));
    }

    /// A message of port 9 that answers to this request.
    fn message(kind: u16, request: u32, body: &[u8]) -> Vec<u8> {
        let (len, kind) = (16 + body.len() as u32, kind.to_ne_bytes());
        let header =
            [&len.to_ne_bytes()[..], &kind, &uapi::NLM_F_REPLACE.to_ne_bytes(), &request.to_ne_bytes()];
        [&header.concat()[..], &9u32.to_ne_bytes(), body].concat()
    }

    /// `struct nhmsg` and `NHA_ID`, `NHA_BLACKHOLE`; `struct rtmsg`, with `RTA_NH_ID` or as a blackhole. There are programs that give
    /// all their requests one number.
    #[test]
    fn routes_of_an_object_that_changes_are_updated_and_others_replaced() {
        let object = [&[2, 0, 0, 0, 0, 0, 0, 0, 8, 0, 1, 0, 7, 0, 0, 0][..], &[4, 0, 4, 0]].concat();
        let route = [&[2, 0, 0, 0, 254, 3, 0, 6, 0, 0, 0, 0][..], &[8, 0, 30, 0, 7, 0, 0, 0]].concat();
        let blackhole = [2, 0, 0, 0, 254, 3, 0, 6, 0, 0, 0, 0];
        let bytes = [
            message(uapi::RTM_NEWNEXTHOP, 5, &object),
            message(uapi::RTM_NEWROUTE, 5, &route),
            message(uapi::RTM_NEWROUTE, 5, &blackhole),
            message(uapi::RTM_NEWROUTE, 6, &route),
        ]
        .concat();
        let placements: Vec<Placement> = events(&bytes, &mut Statistics::default(), &mut None)
            .into_iter()
            .filter_map(
                |event| if let ControlEvent::Route(_, placement) = event { Some(placement) } else { None },
            )
            .collect();
        assert_eq!(placements, [Placement::Updated, Placement::Replace, Placement::Replace]);
    }

    /// A piece of the dump that `following` runs.
    fn listed(kind: u16, body: &[u8]) -> Vec<u8> {
        message(kind, 1, body)
    }

    /// `struct rtmsg`: a blackhole for all of IPv4.
    const BLACKHOLE_INET: [u8; 12] = [uapi::AF_INET, 0, 0, 0, 254, 3, 0, 6, 0, 0, 0, 0];

    #[test]
    fn a_kernel_without_ipv6_lists_ipv4_routes_and_none_is_known_twice() {
        let (mut follower, mut mirror) = following(None);
        let piece = listed(uapi::RTM_NEWROUTE, &BLACKHOLE_INET);
        for part in [DumpPart::Inet, DumpPart::Inet6] {
            let mut dump = Dump::new(part, 1);
            mirror.begin_dump(part);
            apply_answers(&piece, &mut dump, &mut mirror, &mut follower.statistics).unwrap();
            mirror.end_dump(part);
        }
        let gone = decode::event(&Messages(&listed(uapi::RTM_DELROUTE, &BLACKHOLE_INET)).next().unwrap());
        mirror.apply(gone.unwrap().unwrap());
        assert_eq!(mirror.report().inet, 0);
    }

    /// `struct nlmsgerr`: the error, and the header of the request.
    #[test]
    fn a_refused_dump_is_asked_for_again_after_the_others_and_is_reported_once() {
        const EBUSY: i32 = 16;
        let (mut follower, mut mirror) = following(Some(DumpPart::Rules));
        mirror.apply(route(RouteAction::Blackhole));
        let body = [&(-EBUSY).to_ne_bytes()[..], &[0; 16]].concat();
        let header = [&36u32.to_ne_bytes()[..], &uapi::NLMSG_ERROR.to_ne_bytes(), &[0; 2], &[1, 0, 0, 0]];
        let answer = [&header.concat()[..], &[0; 4], &body].concat();
        for _ in 0..2 {
            let mut dump = Dump::new(DumpPart::Inet, 1);
            let refusal = apply_answers(&answer, &mut dump, &mut mirror, &mut follower.statistics);
            follower.running = Some(dump);
            follower.wanted = [DumpPart::Inet6].into();
            follower.refuse(refusal.unwrap_err());
            follower.end_dump(Time::ZERO, &mut mirror);
            assert_eq!(follower.wanted, [DumpPart::Inet6, DumpPart::Inet]);
            assert!(follower.retry_at > Time::ZERO && mirror.report().inet == 1);
        }
        let refusals: Vec<String> = follower.take_refusals().iter().map(ToString::to_string).collect();
        assert_eq!(refusals.len(), 1);
        assert!(refusals.iter().all(|text| text.contains("IPv4 routes")), "{refusals:?}");
    }
}
