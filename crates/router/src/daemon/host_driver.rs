//! Drives the host of a router without a kernel: it takes packets from the workers, keeps host and mirror in step, and
//! hands the host's frames to a worker.

use std::sync::Arc;
use std::time::Duration;

use super::plan_events::{PortState, apply_links, apply_plan};
use crate::host::config::{Settings, StaticNeighbor};
use crate::host::guide::{Guide, News};
use crate::host::output::Output;
use crate::host::relay::{HostEnd, Wake, WorkerEnd, relay};
use crate::host::ways::Hop;
use crate::host::{Host, HostCounters};
use crate::mirror::Mirror;
use crate::netlink::event::{ControlEvent, LinkNeighbor, NeighborState};
use crate::options::plan::{Plan, PlannedInterface};
use crate::route::{NextHopVia, RouteAction};

/// Packets that the host takes in one turn, at most: queries and tables need the thread too.
const MAX_PACKETS_PER_TURN: usize = 256;

/// The host, and its connection with the workers.
pub struct HostDriver {
    host: Host<Guide>,
    end: Option<HostEnd>,
    output: Output,
    /// The state of each port.
    ports: Vec<PortState>,
    interfaces: Vec<PlannedInterface>,
}

impl HostDriver {
    pub fn new(mirror: &Mirror, ports: Vec<PortState>, settings: &Settings) -> HostDriver {
        let guide = Guide::new(mirror.views().current(), host_hops(mirror));
        let host = Host::guided(guide, settings);
        HostDriver { host, end: None, output: Output::default(), ports, interfaces: Vec::new() }
    }

    /// Makes an end for each worker. Workers wake the router's thread by `wake`.
    pub fn connect(&mut self, workers: usize, wake: &Wake) -> Vec<WorkerEnd> {
        let (end, ends) = relay(workers, wake);
        self.end = Some(end);
        ends
    }

    /// Applies a plan to the mirror. It is in force from the mirror's next commit.
    pub fn adopt(&mut self, now: Duration, mirror: &mut Mirror, plan: &Plan) {
        apply_plan(mirror, plan, &self.ports);
        self.interfaces.clone_from(&plan.interfaces);
        let neighbors = plan.neighbors.iter().filter_map(|(link, ip, mac)| {
            Some(StaticNeighbor { interface: mirror.interface_of(*link)?, ip: *ip, mac: *mac })
        });
        self.host.keep(now, &neighbors.collect::<Vec<_>>());
        self.apply_neighbors(mirror);
    }

    /// The state of each port.
    pub fn ports(&self) -> &[PortState] {
        &self.ports
    }

    /// Sets which ports carry frames: pairs of a port's number and whether it is up. Routes follow with the mirror's next
    /// commit.
    pub fn set_link_states(&mut self, mirror: &mut Mirror, states: impl Iterator<Item = (usize, bool)>) {
        for (port, up) in states {
            self.ports.get_mut(port).into_iter().for_each(|state| state.up = up);
        }
        apply_links(mirror, &self.interfaces, &self.ports);
    }

    /// Brings the host up to date with the view that the mirror has published; returns whether that was a new one.
    ///
    /// What changes for neighbours then is published by the mirror too, and the host follows that view as well, so that it
    /// is never behind the FIBs. A link changes once, so the loop ends.
    pub fn follow(&mut self, now: Duration, mirror: &mut Mirror) -> bool {
        let mut is_new = false;
        loop {
            let view = mirror.views().current();
            if Arc::ptr_eq(&view, self.host.view()) {
                return is_new;
            }
            is_new = true;
            self.host.follow(now, view, host_hops(mirror), &mut self.output);
            self.apply_neighbors(mirror);
            mirror.commit(now);
        }
    }

    /// Answers what workers rejected, and does what is due. Changes of neighbours go to the mirror.
    pub fn work(&mut self, now: Duration, mirror: &mut Mirror) {
        if let Some(end) = &mut self.end {
            for heard in std::iter::from_fn(|| end.hear()).take(MAX_PACKETS_PER_TURN) {
                self.host.take(now, &heard, &mut self.output);
            }
        }
        self.host.tick(now, &mut self.output);
        self.apply_neighbors(mirror);
    }

    fn apply_neighbors(&mut self, mirror: &mut Mirror) {
        self.host.take_news().iter().for_each(|news| apply_neighbor(mirror, news));
    }

    /// Hands the host's frames to the worker that sends them; returns whether there were any.
    pub fn send(&mut self) -> bool {
        let HostDriver { end, output, .. } = self;
        end.as_mut().is_some_and(|end| end.say(output))
    }

    /// When something is due: at once, if workers have more packets than one turn takes.
    pub fn next_deadline(&self) -> Option<Duration> {
        let waiting = self.end.as_ref().is_some_and(HostEnd::has_more).then_some(Duration::ZERO);
        waiting.or_else(|| self.host.next_deadline())
    }

    pub fn counters(&self) -> &HostCounters {
        self.host.counters()
    }

    /// Packets and frames that were lost between the host and the workers, for want of room.
    pub fn lost(&self) -> u64 {
        self.end.as_ref().map_or(0, HostEnd::lost)
    }
}

/// The mirror's next hops as the host has them, by number.
fn host_hops(mirror: &Mirror) -> Vec<Option<Hop>> {
    mirror.next_hop_actions().into_iter().map(|action| host_hop(action?)).collect()
}

fn host_hop(action: RouteAction<NextHopVia<u16>>) -> Option<Hop> {
    Some(match action {
        RouteAction::Forward(NextHopVia { link, neighbor: None }) => Hop::Link(link),
        RouteAction::Forward(NextHopVia { link, neighbor: Some(address) }) => Hop::Station(link, address),
        RouteAction::Local => Hop::Own,
        RouteAction::Broadcast => Hop::Broadcast,
        RouteAction::Blackhole => Hop::Blackhole,
        RouteAction::Unreachable => Hop::Unreachable,
        RouteAction::Prohibit => Hop::Prohibit,
        RouteAction::Throw => return None,
    })
}

/// Applies a change of a neighbour to the mirror. A link that is gone has no neighbours.
fn apply_neighbor(mirror: &mut Mirror, news: &News) {
    let (News::Known((interface, address), _) | News::Unknown((interface, address))) = *news;
    let Some(link) = mirror.link_of(interface) else { return };
    mirror.apply(match *news {
        News::Known(_, mac) => ControlEvent::Neighbor(LinkNeighbor {
            link,
            address,
            mac: Some(mac),
            state: NeighborState::PERMANENT,
        }),
        News::Unknown(_) => ControlEvent::NeighborRemoved(link, address),
    });
}
