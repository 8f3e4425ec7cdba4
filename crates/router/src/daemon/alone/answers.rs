//! The host of a router without a kernel, beside its mirror.

use std::sync::Arc;
use std::time::Duration;

use crate::host::channel::{HostEndpoint, Wake, WorkerEndpoint, channel};
use crate::host::config::{HostSettings, StaticNeighbor};
use crate::host::output::Output;
use crate::host::view_resolver::{NeighborChange, ViewResolver};
use crate::host::{HostCounters, HostStack, NeighborId};
use crate::mirror::Mirror;
use crate::netlink::event::{ControlEvent, LinkNeighbor, NeighborState};

use super::carrier::Change;
use super::plan::{Plan, Planned};
use super::told::{self, State};

/// What the host is told in one turn, at most: tables and askers have theirs too.
const A_TURN: usize = 256;

/// The host, and how it hears and speaks.
pub struct Answers {
    host: HostStack<ViewResolver>,
    end: Option<HostEndpoint>,
    output: Output,
    /// By number.
    ports: Vec<State>,
    interfaces: Vec<Planned>,
}

impl Answers {
    pub fn new(mirror: &Mirror, ports: Vec<State>, settings: &HostSettings) -> Answers {
        let guide = ViewResolver::new(mirror.views().current(), mirror.next_hop_actions());
        let host = HostStack::mirrored(guide, settings);
        Answers { host, end: None, output: Output::default(), ports, interfaces: Vec::new() }
    }

    /// An end for each worker, each of which wakes the router's thread by `wake`.
    pub fn connect(&mut self, workers: usize, wake: &Wake) -> Vec<WorkerEndpoint> {
        let (end, ends) = channel(workers, wake);
        self.end = Some(end);
        ends
    }

    /// Another plan, or the first. In force from the mirror's next commit.
    pub fn adopt(&mut self, now: Duration, mirror: &mut Mirror, plan: &Plan) {
        told::tell(mirror, plan, &self.ports);
        self.interfaces.clone_from(&plan.interfaces);
        let neighbors = plan.neighbors.iter().filter_map(|(link, ip, mac)| {
            Some(StaticNeighbor { interface: mirror.interface_of(*link)?, ip: *ip, mac: *mac })
        });
        self.host.set_static_neighbors(now, &neighbors.collect::<Vec<_>>());
        self.tell_news(mirror);
    }

    /// By number.
    pub fn ports(&self) -> &[State] {
        &self.ports
    }

    /// Frames go through ports from now on, or no longer. Routes follow with the mirror's next commit.
    pub fn heed(&mut self, mirror: &mut Mirror, changes: &[Change]) {
        for Change { port, up, .. } in changes {
            self.ports.get_mut(*port).into_iter().for_each(|state| state.up = *up);
        }
        told::tell_links(mirror, &self.interfaces, &self.ports);
    }

    /// Goes by what the mirror has published; whether that is anything new. What follows for neighbours the mirror
    /// publishes too, and the host goes by that: it is never behind the FIBs. A link changes once, so this ends.
    pub fn follow(&mut self, now: Duration, mirror: &mut Mirror) -> bool {
        let mut is_new = false;
        loop {
            let view = mirror.views().current();
            if Arc::ptr_eq(&view, self.host.view()) {
                return is_new;
            }
            is_new = true;
            self.host.follow(now, view, mirror.next_hop_actions(), &mut self.output);
            self.tell_news(mirror);
            mirror.commit(now);
        }
    }

    /// Answers what workers rejected, and does what is due. The mirror hears of neighbours.
    pub fn work(&mut self, now: Duration, mirror: &mut Mirror) {
        if let Some(end) = &mut self.end {
            for heard in std::iter::from_fn(|| end.next_event()).take(A_TURN) {
                self.host.handle_event(now, &heard, &mut self.output);
            }
        }
        self.host.tick(now, &mut self.output);
        self.tell_news(mirror);
    }

    fn tell_news(&mut self, mirror: &mut Mirror) {
        self.host.take_neighbor_changes().iter().for_each(|news| know(mirror, news));
    }

    /// Hands over what is to be sent; whether that was anything.
    pub fn speak(&mut self) -> bool {
        let Answers { end, output, .. } = self;
        end.as_mut().is_some_and(|end| end.send(output))
    }

    /// When something is due; at once, if workers have more than one turn's share.
    pub fn next_deadline(&self) -> Option<Duration> {
        let waiting = self.end.as_ref().is_some_and(HostEndpoint::has_events).then_some(Duration::ZERO);
        waiting.or_else(|| self.host.next_deadline())
    }

    pub fn counters(&self) -> HostCounters {
        self.host.counters()
    }

    /// What was lost on the way to the host and from it.
    pub fn lost(&self) -> u64 {
        self.end.as_ref().map_or(0, HostEndpoint::dropped)
    }
}

/// A link that is gone has no neighbours.
fn know(mirror: &mut Mirror, news: &NeighborChange) {
    let (NeighborChange::Resolved(neighbor, _) | NeighborChange::Lost(neighbor)) = *news;
    let NeighborId { interface, ip: address } = neighbor;
    let Some(link) = mirror.link_of(interface) else { return };
    mirror.apply(match *news {
        NeighborChange::Resolved(_, mac) => ControlEvent::Neighbor(LinkNeighbor {
            link,
            address,
            mac: Some(mac),
            state: NeighborState::PERMANENT,
        }),
        NeighborChange::Lost(_) => ControlEvent::NeighborRemoved(link, address),
    });
}
