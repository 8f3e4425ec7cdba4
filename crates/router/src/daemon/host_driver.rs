//! Drives the host of a router without a kernel: it takes packets from the workers, keeps host and mirror in step, and
//! hands the host's frames to a worker.

use std::sync::Arc;
use std::time::Duration;

use super::plan_events::{PortState, apply_links, apply_plan};
use crate::host::channel::{HostEndpoint, Wake, WorkerEndpoint, channel};
use crate::host::config::{HostSettings, StaticNeighbor};
use crate::host::output::Output;
use crate::host::view_resolver::{NeighborChange, ViewResolver};
use crate::host::{AddressConflict, HostCounters, HostStack, NeighborId};
use crate::mirror::Mirror;
use crate::netlink::event::{ControlEvent, LinkNeighbor, NeighborState};
use crate::options::plan::{Plan, PlannedInterface};

/// Packets that the host takes in one turn, at most: queries and tables need the thread too.
const MAX_PACKETS_PER_TURN: usize = 256;

/// The host, and its connection with the workers.
pub struct HostDriver {
    host: HostStack<ViewResolver>,
    end: Option<HostEndpoint>,
    output: Output,
    /// The state of each port.
    ports: Vec<PortState>,
    interfaces: Vec<PlannedInterface>,
}

impl HostDriver {
    pub fn new(mirror: &Mirror, ports: Vec<PortState>, settings: &HostSettings) -> HostDriver {
        let resolver = ViewResolver::new(mirror.views().current(), mirror.next_hop_actions());
        let host = HostStack::mirrored(resolver, settings);
        HostDriver { host, end: None, output: Output::default(), ports, interfaces: Vec::new() }
    }

    /// Makes an end for each worker. Workers wake the router's thread by `wake`.
    pub fn connect(&mut self, workers: usize, wake: &Wake) -> Vec<WorkerEndpoint> {
        let (end, ends) = channel(workers, wake);
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
        self.host.set_static_neighbors(now, &neighbors.collect::<Vec<_>>());
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
            self.host.follow(now, view, mirror.next_hop_actions(), &mut self.output);
            self.apply_neighbors(mirror);
            mirror.commit(now);
        }
    }

    /// Answers what workers rejected, and does what is due. Changes of neighbours go to the mirror.
    pub fn work(&mut self, now: Duration, mirror: &mut Mirror) {
        if let Some(end) = &mut self.end {
            for event in std::iter::from_fn(|| end.next_event()).take(MAX_PACKETS_PER_TURN) {
                self.host.handle_event(now, &event, &mut self.output);
            }
        }
        self.host.tick(now, &mut self.output);
        self.apply_neighbors(mirror);
    }

    fn apply_neighbors(&mut self, mirror: &mut Mirror) {
        self.host.take_neighbor_changes().iter().for_each(|change| apply_neighbor(mirror, change));
    }

    /// Hands the host's frames to the worker that sends them; returns whether there were any.
    pub fn send(&mut self) -> bool {
        let HostDriver { end, output, .. } = self;
        end.as_mut().is_some_and(|end| end.send(output))
    }

    /// When something is due: at once, if workers have more packets than one turn takes.
    pub fn next_deadline(&self) -> Option<Duration> {
        let waiting = self.end.as_ref().is_some_and(HostEndpoint::has_events).then_some(Duration::ZERO);
        waiting.or_else(|| self.host.next_deadline())
    }

    /// Takes the conflicts about the router's addresses that were found since the last call.
    pub fn take_conflicts(&mut self) -> Vec<AddressConflict> {
        self.host.take_conflicts()
    }

    pub fn counters(&self) -> HostCounters {
        self.host.counters()
    }

    /// Packets and frames that were lost between the host, the workers and their ports, for want of room.
    pub fn lost(&self) -> u64 {
        self.end.as_ref().map_or(0, HostEndpoint::dropped)
    }
}

/// Applies a change of a neighbour to the mirror. A link that is gone has no neighbours.
fn apply_neighbor(mirror: &mut Mirror, change: &NeighborChange) {
    let (NeighborChange::Resolved(neighbor, _) | NeighborChange::Lost(neighbor)) = *change;
    let NeighborId { interface, ip: address } = neighbor;
    let Some(link) = mirror.link_of(interface) else { return };
    mirror.apply(match *change {
        NeighborChange::Resolved(_, mac) => ControlEvent::Neighbor(LinkNeighbor {
            link,
            address,
            mac: Some(mac),
            state: NeighborState::PERMANENT,
        }),
        NeighborChange::Lost(_) => ControlEvent::NeighborRemoved(link, address),
    });
}
