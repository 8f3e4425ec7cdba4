//! What a router answers itself where no kernel stands behind it: neighbours, ICMP, and packets for itself.
//!
//! [`HostStack`] is told what the forwarding loop rejected, and why; it returns frames to transmit, and has the loop go by
//! another [`View`](fullview_plane::view::View) when it has learnt or forgotten a neighbour. It reads no clock, does no I/O and
//! has no threads: the time is handed in, as are the frames.
//!
//! ```text
//! ports ─▶ Forwarder ─▶ ports
//!             │  ▲
//!    rejected │  │ views, routes
//!             ▼  │
//!             HostStack ─▶ frames ─▶ ports
//! ```
//!
//! Each of its files adds one thing it knows to do; what all of them need, sending a packet to a station or to an
//! address, is in `send`.

use fullview_plane::wire::icmp::Icmpv4Kind;
use fullview_plane::wire::icmpv6::Icmpv6Kind;
use std::net::IpAddr;
use std::time::Duration;

use advertisers::RouterAdvertisers;
use config::{HostConfig, HostConfigError};
use fullview_plane::burst::Slot;
use fullview_plane::interface::Interface;
use fullview_plane::verdict::{Punt, Reason, Verdict};
use fullview_plane::view::ViewReader;
use fullview_plane::wire::ethernet::{EtherType, Frame, Mac};
use limit::InterfaceLimiter;
use neighbor::NeighborCache;
use next_hop::{Hop, NextHopResolver, RouteQuery};
use output::Output;
pub use route_tables::RouteTables;

pub mod advertisers;
mod arp;
pub mod channel;
pub mod config;
pub mod driver;
mod error;
mod fragment;
mod limit;
mod local;
mod local6;
mod mirrored;
mod ndp;
mod neighbor;
pub mod next_hop;
mod options;
pub mod output;
mod packet;
mod redirect;
mod resolution;
mod route_tables;
pub mod router;
mod sender;
mod setup;
mod source;
mod transit;
mod tx_queue;
pub mod view_resolver;

pub use limit::RateLimit;

/// What the host has done, and what it refused to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Echo requests answered.
    pub echoes: u64,
    /// ARP requests and neighbour solicitations answered.
    pub neighbor_answers: u64,
    /// ICMP errors sent, redirects among them.
    pub errors: u64,
    /// ICMP errors not sent because there were too many.
    pub errors_limited: u64,
    /// Packets forwarded on the slow path: to neighbours still unknown, in fragments, with options.
    pub forwarded: u64,
    /// Packets dropped because too many wait for neighbours, or too many neighbours are asked for.
    pub queue_full: u64,
    /// Neighbours that did not answer.
    pub lost_neighbors: u64,
    /// Messages in which another station claimed an address of this router.
    pub conflicts: u64,
}

/// A router's own voice, by tables of its own or by other [`NextHopResolver`].
pub struct HostStack<W = RouteTables> {
    interfaces: Vec<Interface>,
    routes: W,
    neighbors: NeighborCache,
    limiter: InterfaceLimiter,
    advertisers: RouterAdvertisers,
    /// Of the next packet of its own that may be fragmented.
    identification: u16,
    counters: HostCounters,
}

/// A frame that came in, without its Ethernet header and tag.
#[derive(Clone, Copy)]
struct RxFrame<'a> {
    interface: u16,
    /// Whether it went to several stations.
    to_group: bool,
    source: Mac,
    payload: &'a [u8],
}

impl HostStack {
    /// A host as it is configured. What it says first of all is said by [`HostStack::announce`].
    ///
    /// # Errors
    /// A [`HostConfigError`] that says what does not fit together.
    pub fn new(now: Duration, config: &HostConfig) -> Result<HostStack, HostConfigError> {
        setup::host(now, config)
    }

    /// What a forwarder of this router goes by.
    pub fn reader(&self) -> ViewReader {
        self.routes.reader()
    }
}

impl<'a> RxFrame<'a> {
    /// What its destination leads to.
    fn wanted(&self, to: IpAddr) -> RouteQuery<'a> {
        RouteQuery { interface: self.interface, to, packet: self.payload }
    }
}

impl<W: NextHopResolver> HostStack<W> {
    /// What has been counted.
    pub fn counters(&self) -> &HostCounters {
        &self.counters
    }

    /// HostDriver a packet that a forwarder rejected, sends it on later, or does nothing about it: whatever its verdict
    /// asks for.
    pub fn handle(&mut self, now: Duration, packet: &Slot, out: &mut Output) {
        self.hear(now, (packet.interface, packet.verdict), packet.frame(), out);
    }

    fn hear(&mut self, now: Duration, (interface, verdict): (u16, Verdict), frame: &[u8], out: &mut Output) {
        let Ok(frame) = Frame::new_checked(frame) else { return };
        // What had come before its link went down was another link's.
        if !self.interface(interface).is_some_and(|interface| interface.up) {
            return;
        }
        let source = frame.source();
        let to_group = frame.destination().is_group();
        let arrival = RxFrame { interface, to_group, source, payload: frame.payload() };
        match (frame.ethertype(), verdict) {
            (EtherType::ARP, Verdict::Punt(Punt::Arp)) => self.arp(now, arrival, out),
            (EtherType::IPV4, Verdict::Punt(punt)) => self.punted(now, arrival, punt, out),
            (EtherType::IPV6, Verdict::Punt(punt)) => self.punted6(now, arrival, punt, out),
            (EtherType::IPV4, Verdict::Drop(reason)) => self.dropped(now, arrival, reason, out),
            (EtherType::IPV6, Verdict::Drop(reason)) => self.dropped6(now, arrival, reason, out),
            _ => {}
        }
    }

    fn punted(&mut self, now: Duration, arrival: RxFrame<'_>, punt: Punt, out: &mut Output) {
        match punt {
            Punt::Local => self.local(now, arrival, out),
            Punt::NotForwarding => self.local_if_own(now, arrival, out),
            Punt::Glean | Punt::Options => self.transit(now, arrival, out),
            _ => {}
        }
    }

    fn punted6(&mut self, now: Duration, arrival: RxFrame<'_>, punt: Punt, out: &mut Output) {
        match punt {
            Punt::Local | Punt::LinkMulticast => self.local6(now, arrival, out),
            Punt::LinkLocal => self.link_local(now, arrival, out),
            Punt::NotForwarding => self.local6_if_own(now, arrival, out),
            Punt::Glean => self.transit6(now, arrival, out),
            _ => {}
        }
    }

    fn dropped(&mut self, now: Duration, arrival: RxFrame<'_>, reason: Reason, out: &mut Output) {
        let kind = match reason {
            Reason::TtlExpired => Icmpv4Kind::TimeExceeded,
            Reason::NoRoute => Icmpv4Kind::NetUnreachable,
            Reason::Unreachable => Icmpv4Kind::HostUnreachable,
            Reason::Prohibited => Icmpv4Kind::Prohibited,
            Reason::NoAdjacency | Reason::NeedsFragments | Reason::TooBig => {
                return self.transit(now, arrival, out);
            }
            _ => return,
        };
        self.error(now, arrival, kind, 0, out);
    }

    fn dropped6(&mut self, now: Duration, arrival: RxFrame<'_>, reason: Reason, out: &mut Output) {
        let kind = match reason {
            Reason::HopLimitExpired => Icmpv6Kind::TimeExceeded,
            Reason::NoRoute | Reason::Unreachable => Icmpv6Kind::NoRoute,
            Reason::Prohibited => Icmpv6Kind::Prohibited,
            Reason::NoAdjacency | Reason::TooBig => return self.transit6(now, arrival, out),
            _ => return,
        };
        self.error6(now, arrival, kind, 0, out);
    }

    /// Does what is due: neighbours are asked again or given up, hosts told of routers.
    pub fn tick(&mut self, now: Duration, out: &mut Output) {
        self.routes.tick(now);
        self.advertise(now, out);
        while let Some(due) = self.neighbors.due(now) {
            self.resolve(now, due, out);
        }
    }

    /// When [`HostStack::tick`] has something to do next.
    pub fn next_deadline(&self) -> Option<Duration> {
        let neighbors = self.neighbors.next_deadline().into_iter();
        neighbors.chain(self.routes.next_deadline()).chain(self.advertisers.next_deadline()).min()
    }

    fn interface(&self, number: u16) -> Option<&Interface> {
        self.interfaces.get(usize::from(number))
    }

    /// Whether an interface has this address.
    fn is_own_on(&self, interface: u16, ip: IpAddr) -> bool {
        self.interface(interface).is_some_and(|interface| interface.addresses.iter().any(|own| own.ip == ip))
    }

    /// Whether this interface has the address, or another one of the same table.
    fn is_own(&self, interface: u16, ip: IpAddr) -> bool {
        self.beside(interface).any(|interface| interface.addresses.iter().any(|own| own.ip == ip))
    }

    /// Where an address leads by the table of an interface.
    fn leads(&self, interface: u16, to: IpAddr) -> Option<Hop> {
        self.routes.find(RouteQuery { interface, to, packet: &[] })
    }
}
