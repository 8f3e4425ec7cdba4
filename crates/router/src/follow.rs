//! Keeps a [`Mirror`] equal to the kernel's state: first everything is dumped, then every change is followed;
//! everything is dumped and compared again when the kernel had to drop a message or a dump was disturbed.
//!
//! There are two sockets: the kernel reports changes on one and answers requests on the other. While one part is being
//! dumped, changes to this part are held back, because a dump may still list what a change has already removed; they
//! are applied when the dump has ended. Forwarding continues meanwhile with what is known.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use fullview_table::Family;
use fullview_table::fib::framework::Time;
use netlink_packet_core::{DoneBuffer, ErrorBuffer, NetlinkBuffer};

use crate::mirror::Mirror;
use crate::netlink::decode::{self, Messages};
use crate::netlink::event::{ControlEvent, DumpPart, Placement};
use crate::netlink::request::{NetlinkRequest, refused};
use crate::netlink::socket::{Received, RouteSocket, SocketError};
use crate::netlink::uapi;
use crate::route::{AnyPrefix, LinkIndex};

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

/// The time between a suspicion about IPv4 routes and their dump: the events that raise it seldom come alone.
const SUSPICION_DELAY: Duration = Duration::from_millis(100);

/// Links are dumped this often, because the kernel does not report a changed IPv6 MTU.
const LINKS_INTERVAL: Duration = Duration::from_secs(10);

/// A dump that was disturbed is repeated after this time, doubled each time, seven times at most.
const RETRY: Duration = Duration::from_millis(10);

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
    requests: RouteSocket,
    sequence: u32,
    wanted: VecDeque<DumpPart>,
    running: Option<Dump>,
    held: Vec<ControlEvent>,
    /// The next dump starts no earlier.
    retry_at: Time,
    failures: u32,
    /// When IPv4 routes are dumped on suspicion.
    suspicion: Option<Time>,
    /// When links are dumped next; `None` until everything is known.
    links_at: Option<Time>,
    statistics: Statistics,
}

/// A dump under way.
struct Dump {
    part: DumpPart,
    sequence: u32,
    /// It has to be repeated: something changed under it, or messages were lost meanwhile.
    is_void: bool,
}

impl Follower {
    /// Receives changes from now on, and will dump everything. `receive_buffer` is that of changes, in bytes.
    pub fn new(receive_buffer: Option<usize>) -> Result<Follower, SocketError> {
        Ok(Follower {
            changes: RouteSocket::open(&GROUPS, receive_buffer)?,
            requests: RouteSocket::open(&[], None)?,
            sequence: 0,
            wanted: PARTS.into(),
            running: None,
            held: Vec::new(),
            retry_at: Time::ZERO,
            failures: 0,
            suspicion: None,
            links_at: None,
            statistics: Statistics::default(),
        })
    }

    /// The descriptors to poll: there is work when one of them is readable.
    pub fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.changes.as_fd(), self.requests.as_fd()]
    }

    /// Whether all dumps that were wanted have ended.
    pub fn is_synced(&self) -> bool {
        self.wanted.is_empty() && self.running.is_none()
    }

    /// The counters so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// When [`Self::advance`] has something to do even if nothing is readable.
    pub fn next_deadline(&self) -> Option<Time> {
        let dump = (self.running.is_none() && !self.wanted.is_empty()).then_some(self.retry_at);
        dump.into_iter().chain(self.suspicion).chain(self.links_at).min()
    }

    /// Applies what can be read now, and starts the dumps that are due; returns whether there may be more to read.
    pub fn advance(&mut self, now: Time, mirror: &mut Mirror) -> Result<bool, SocketError> {
        let more_changes = self.read_changes(mirror)?;
        let more_answers = self.read_answers(now, mirror)?;
        if mirror.take_inet_suspicion() {
            self.suspect(now);
        }
        if self.suspicion.is_some_and(|at| at <= now) {
            self.suspicion = None;
            self.want(DumpPart::Inet);
        }
        self.want_links(now);
        self.start_dump(now, mirror)?;
        Ok(more_changes || more_answers)
    }

    /// The kernel's IPv4 routes may differ from those of the mirror. If they are to be dumped anyway, nothing is to do.
    fn suspect(&mut self, now: Time) {
        if !self.wanted.contains(&DumpPart::Inet) {
            self.suspicion.get_or_insert(now + SUSPICION_DELAY);
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

    fn read_changes(&mut self, mirror: &mut Mirror) -> Result<bool, SocketError> {
        for _ in 0..RECEIVES_PER_TURN {
            let events = match self.changes.receive()? {
                Received::Nothing => return Ok(false),
                Received::Lost => {
                    self.lost();
                    continue;
                }
                Received::Some(bytes) => events(bytes, &mut self.statistics),
            };
            events.into_iter().for_each(|event| self.change(event, mirror));
        }
        Ok(true)
    }

    /// Applies a change, or holds it back while its part is being dumped. A link whose MTU changes passes it to IPv6
    /// too, but the kernel reports the link before it does.
    fn change(&mut self, event: ControlEvent, mirror: &mut Mirror) {
        if matches!(&event, ControlEvent::Link(link) if mirror.has_other_mtu(link)) {
            self.want(DumpPart::Links);
        }
        let waits = self.running.as_ref().is_some_and(|dump| part(&event) == dump.part);
        match waits {
            false => mirror.apply(event),
            true if self.held.len() < MOST_HELD => self.held.push(event),
            true => self.lost(),
        }
    }

    /// Messages were lost, so anything that is known may be wrong: everything is dumped again.
    fn lost(&mut self) {
        self.statistics.overflows += 1;
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
                Received::Some(bytes) => apply_answers(bytes, dump, mirror, &mut self.statistics)?,
            };
            if done {
                self.end_dump(now, mirror);
                return Ok(true);
            }
        }
        Ok(true)
    }

    fn end_dump(&mut self, now: Time, mirror: &mut Mirror) {
        let Some(dump) = self.running.take() else { return };
        if dump.is_void {
            self.statistics.interrupted += 1;
            if !self.wanted.contains(&dump.part) {
                self.wanted.push_front(dump.part);
            }
            self.retry_at = now + RETRY * (1 << self.failures.min(7));
            self.failures += 1;
        } else {
            self.failures = 0;
            self.statistics.dumps += 1;
            self.statistics.repaired += mirror.end_dump(dump.part) as u64;
        }
        // A route that was removed during the dump may be gone from the mirror already: that is no reason to dump
        // again.
        let suspects = mirror.take_inet_suspicion();
        std::mem::take(&mut self.held).into_iter().for_each(|event| mirror.apply(event));
        if (mirror.take_inet_suspicion() && dump.part != DumpPart::Inet) || suspects {
            self.suspect(now);
        }
    }

    fn start_dump(&mut self, now: Time, mirror: &mut Mirror) -> Result<(), SocketError> {
        if self.running.is_some() || now < self.retry_at {
            return Ok(());
        }
        let Some(part) = self.wanted.pop_front() else { return Ok(()) };
        self.sequence = self.sequence.wrapping_add(1);
        mirror.begin_dump(part);
        self.requests.send(&NetlinkRequest::dump(part).message(uapi::NLM_F_DUMP, self.sequence))?;
        self.running = Some(Dump { part, sequence: self.sequence, is_void: false });
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

fn events(bytes: &[u8], statistics: &mut Statistics) -> Vec<ControlEvent> {
    Messages(bytes).filter_map(|message| decoded(&message, statistics)).collect()
}

fn decoded(message: &NetlinkBuffer<&[u8]>, statistics: &mut Statistics) -> Option<ControlEvent> {
    let event = decode::event(message);
    statistics.events += u64::from(matches!(event, Ok(Some(_))));
    statistics.malformed += u64::from(event.is_err());
    event.ok().flatten()
}

/// Applies a piece of a dump; returns whether it was the last.
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
            _ => match decoded(&message, statistics) {
                // A dump lists routes in the order in which the kernel tries them.
                Some(ControlEvent::Route(route, _)) => {
                    mirror.apply(ControlEvent::Route(route, Placement::Last))
                }
                event => event.into_iter().for_each(|event| mirror.apply(event)),
            },
        }
    }
    Ok(done)
}
