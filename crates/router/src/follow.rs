//! Keeps a [`Mirror`] like the kernel: everything once, then every change; and everything again, by comparison, when
//! the kernel had to drop a message or a dump was disturbed.
//!
//! Two sockets: on one the kernel tells of changes, on the other it is asked. While one part is being dumped, changes
//! to this part are held back, for a dump may still hold what a change has already undone; they follow when it has
//! ended. Forwarding goes on all the while, by what is known.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use fullview_table::fib::framework::Time;

use crate::mirror::Mirror;
use crate::netlink::decode::{self, Message, Messages};
use crate::netlink::event::{ControlEvent, DumpPart, Placement};
use crate::netlink::question::{code, part, question, refused, use_neighbor};
use crate::netlink::socket::{Received, Socket, SocketError};
use crate::netlink::uapi;
use crate::route::LinkIndex;

/// In this order, since routes name objects, and neighbours links.
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

/// Calls of `recv` between two looks at anything else.
const AT_ONCE: usize = 64;

/// Events held back during a dump, at most; with more it is begun anew.
const MOST_HELD: usize = 1 << 20;

/// IPv4 routes are dumped on suspicion so long after it arose, since one event seldom comes alone.
const SUSPICION: Duration = Duration::from_millis(100);

/// Links are dumped this often: nobody tells of an MTU of IPv6 that somebody set.
const LOOK: Duration = Duration::from_secs(10);

/// A dump that was disturbed is repeated after this, doubled each time, seven times at most.
const RETRY: Duration = Duration::from_millis(10);

/// What happened, as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Messages understood.
    pub events: u64,
    /// Messages that were damaged.
    pub malformed: u64,
    /// How often the kernel dropped messages.
    pub overflows: u64,
    /// Dumps that were disturbed by changes.
    pub interrupted: u64,
    /// Dumps ended, of any part.
    pub dumps: u64,
    /// What dumps found that was told of by nobody, or gone.
    pub mended: u64,
}

/// Follows the kernel.
pub struct Follower {
    news: Socket,
    questions: Socket,
    sequence: u32,
    wanted: VecDeque<DumpPart>,
    running: Option<Dump>,
    held: Vec<ControlEvent>,
    /// Not before then.
    retry_at: Time,
    failures: u32,
    suspicion: Option<Time>,
    /// When links are looked at next; not before everything is known.
    look_at: Option<Time>,
    statistics: Statistics,
}

/// A dump under way.
struct Dump {
    part: DumpPart,
    sequence: u32,
    /// It does not count: something changed under it, or was lost meanwhile.
    is_void: bool,
}

impl Follower {
    /// Listens from now on, and will ask for everything. `receive_buffer` is that of changes, in bytes.
    pub fn new(receive_buffer: Option<usize>) -> Result<Follower, SocketError> {
        Ok(Follower {
            news: Socket::open(&GROUPS, receive_buffer)?,
            questions: Socket::open(&[], None)?,
            sequence: 0,
            wanted: PARTS.into(),
            running: None,
            held: Vec::new(),
            retry_at: Time::ZERO,
            failures: 0,
            suspicion: None,
            look_at: None,
            statistics: Statistics::default(),
        })
    }

    /// To wait until one of them can be read.
    pub fn fds(&self) -> [BorrowedFd<'_>; 2] {
        use std::os::fd::AsFd;
        [self.news.as_fd(), self.questions.as_fd()]
    }

    /// Whether the mirror has everything there was.
    pub fn is_synced(&self) -> bool {
        self.wanted.is_empty() && self.running.is_none()
    }

    /// What happened so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// When there is something to do even if nothing can be read.
    pub fn next_deadline(&self) -> Option<Time> {
        let dump = (self.running.is_none() && !self.wanted.is_empty()).then_some(self.retry_at);
        dump.into_iter().chain(self.suspicion).chain(self.look_at).min()
    }

    /// Takes in what can be read now; returns whether there may be more.
    pub fn advance(&mut self, now: Time, mirror: &mut Mirror) -> Result<bool, SocketError> {
        let more_news = self.hear(mirror)?;
        let more_answers = self.read_answers(now, mirror)?;
        if mirror.suspects_inet() {
            self.suspect(now);
        }
        if self.suspicion.is_some_and(|at| at <= now) {
            self.suspicion = None;
            self.want(DumpPart::Inet);
        }
        self.look(now);
        self.ask(now, mirror)?;
        Ok(more_news || more_answers)
    }

    /// IPv4 routes may be other than known. What is to be dumped anyway need not be suspected.
    fn suspect(&mut self, now: Time) {
        if !self.wanted.contains(&DumpPart::Inet) {
            self.suspicion.get_or_insert(now + SUSPICION);
        }
    }

    fn look(&mut self, now: Time) {
        if self.look_at.is_some_and(|at| at <= now) {
            self.want(DumpPart::Links);
            self.look_at = None;
        }
        if self.look_at.is_none() && self.is_synced() {
            self.look_at = Some(now + LOOK);
        }
    }

    fn want(&mut self, part: DumpPart) {
        if !self.wanted.contains(&part) {
            self.wanted.push_back(part);
        }
    }

    /// Changes.
    fn hear(&mut self, mirror: &mut Mirror) -> Result<bool, SocketError> {
        for _ in 0..AT_ONCE {
            let events = match self.news.receive()? {
                Received::Nothing => return Ok(false),
                Received::Lost => {
                    self.lost();
                    continue;
                }
                Received::Some(bytes) => events(bytes, &mut self.statistics),
            };
            events.into_iter().for_each(|event| self.heard(event, mirror));
        }
        Ok(true)
    }

    /// While its part is dumped a change has to wait. A link whose MTU is another gives that to IPv6 too, but says so
    /// before it does.
    fn heard(&mut self, event: ControlEvent, mirror: &mut Mirror) {
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

    /// Whatever is known may be wrong: everything is asked for again.
    fn lost(&mut self) {
        self.statistics.overflows += 1;
        self.held.clear();
        self.wanted = PARTS.into();
        self.running.iter_mut().for_each(|dump| dump.is_void = true);
    }

    /// A part of what is being dumped.
    fn read_answers(&mut self, now: Time, mirror: &mut Mirror) -> Result<bool, SocketError> {
        for _ in 0..AT_ONCE {
            // What else comes on this socket are errors about neighbours that went meanwhile.
            let Some(dump) = &mut self.running else {
                while let Received::Some(_) = self.questions.receive()? {}
                return Ok(false);
            };
            let done = match self.questions.receive()? {
                Received::Nothing => return Ok(false),
                Received::Lost => {
                    dump.is_void = true;
                    continue;
                }
                Received::Some(bytes) => answers(bytes, dump, mirror, &mut self.statistics)?,
            };
            if done {
                self.end(now, mirror);
                return Ok(true);
            }
        }
        Ok(true)
    }

    fn end(&mut self, now: Time, mirror: &mut Mirror) {
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
            self.statistics.mended += mirror.end(dump.part) as u64;
        }
        // What went while it was dumped may be gone already: that is no reason to dump it again.
        let suspects = mirror.suspects_inet();
        std::mem::take(&mut self.held).into_iter().for_each(|event| mirror.apply(event));
        if (mirror.suspects_inet() && dump.part != DumpPart::Inet) || suspects {
            self.suspect(now);
        }
    }

    fn ask(&mut self, now: Time, mirror: &mut Mirror) -> Result<(), SocketError> {
        if self.running.is_some() || now < self.retry_at {
            return Ok(());
        }
        let Some(part) = self.wanted.pop_front() else { return Ok(()) };
        self.sequence = self.sequence.wrapping_add(1);
        let (kind, family, header) = question(part);
        let mut body = vec![0; header];
        body.iter_mut().take(1).for_each(|byte| *byte = family);
        mirror.begin(part);
        self.questions.send(kind, uapi::NLM_F_DUMP, self.sequence, &body)?;
        self.running = Some(Dump { part, sequence: self.sequence, is_void: false });
        Ok(())
    }

    /// Has the kernel verify a neighbour, as if it had sent to it itself. One it has forgotten it is not to learn anew.
    pub fn keep_fresh(&self, link: LinkIndex, address: IpAddr) -> Result<(), SocketError> {
        self.questions.send(uapi::RTM_NEWNEIGH, 0, 0, &use_neighbor(link, address))
    }

    /// Has the kernel resolve a neighbour that it may know nothing of.
    pub fn resolve(&self, link: LinkIndex, address: IpAddr) -> Result<(), SocketError> {
        self.questions.send(uapi::RTM_NEWNEIGH, uapi::NLM_F_CREATE, 0, &use_neighbor(link, address))
    }
}

fn events(bytes: &[u8], statistics: &mut Statistics) -> Vec<ControlEvent> {
    Messages(bytes).filter_map(|message| understood(&message, statistics)).collect()
}

fn understood(message: &Message<'_>, statistics: &mut Statistics) -> Option<ControlEvent> {
    let event = decode::event(message);
    statistics.events += u64::from(matches!(event, Ok(Some(_))));
    statistics.malformed += u64::from(event.is_err());
    event.ok().flatten()
}

/// Takes in a piece of a dump; returns whether it was the last.
fn answers(
    bytes: &[u8],
    dump: &mut Dump,
    mirror: &mut Mirror,
    statistics: &mut Statistics,
) -> Result<bool, SocketError> {
    let mut done = false;
    for message in Messages(bytes).filter(|message| message.sequence == dump.sequence) {
        dump.is_void |= message.flags & uapi::NLM_F_DUMP_INTR != 0;
        match message.kind {
            uapi::NLMSG_DONE => (done, dump.is_void) = (true, dump.is_void | (code(&message) < 0)),
            uapi::NLMSG_ERROR => {
                refused(&message, dump.part)?;
                done = true;
            }
            uapi::NLMSG_OVERRUN => dump.is_void = true,
            _ => match understood(&message, statistics) {
                // A dump lists routes in their order.
                Some(ControlEvent::Route(route, _)) => {
                    mirror.apply(ControlEvent::Route(route, Placement::Last))
                }
                event => event.into_iter().for_each(|event| mirror.apply(event)),
            },
        }
    }
    Ok(done)
}
