//! The control source of a router without a kernel: a configuration, and the router's own host.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::carrier::CarrierMonitor;
use crate::daemon::control_plane::ControlPlane;
use crate::daemon::error::DaemonError;
use crate::daemon::host_driver::HostDriver;
use crate::daemon::main_loop::{ControlSource, LONGEST_WAIT};
use crate::daemon::wakeup::Wakeup;
use crate::events::EventKind;
use crate::host::HostCounters;
use crate::options::plan::Plan;

/// The host, and the state of the links. Workers wake the router's thread when they reject a packet, and the thread wakes
/// the first worker when the host has frames to send.
pub struct StandaloneSource {
    pub host: HostDriver,
    interface_count: usize,
    carriers: CarrierMonitor,
    wakeup: Wakeup,
    worker_wakeup: Wakeup,
    /// When the log was last written.
    recorded: Duration,
    /// When the carriers were last looked at.
    looked: Option<Duration>,
}

impl StandaloneSource {
    /// A source that has adopted `plan` in the mirror and committed it. It monitors no carriers yet.
    pub fn new(
        mut host: HostDriver,
        plane: &mut ControlPlane,
        plan: &Plan,
        [wakeup, worker_wakeup]: [Wakeup; 2],
    ) -> StandaloneSource {
        host.adopt(plane.now(), &mut plane.mirror, plan);
        let (interface_count, carriers) = (plan.interfaces.len(), CarrierMonitor::default());
        let (recorded, looked) = (Duration::ZERO, None);
        let mut source =
            StandaloneSource { host, interface_count, carriers, wakeup, worker_wakeup, recorded, looked };
        source.commit(plane);
        source
    }

    pub fn monitor(&mut self, carriers: CarrierMonitor) {
        self.carriers = carriers;
    }

    /// Applies links that went up or down. Every packet that the host answers causes a turn, so the carriers are looked at
    /// less often than that.
    fn look_at_carriers(&mut self, plane: &mut ControlPlane) {
        let now = plane.now();
        if self.looked.is_some_and(|last| now.saturating_sub(last) < LONGEST_WAIT) {
            return;
        }
        self.looked = Some(now);
        let changes = self.carriers.changed();
        if !changes.is_empty() {
            let states = changes.iter().map(|change| (change.port, change.up));
            self.host.set_link_states(&mut plane.mirror, states);
        }
        for name in changes.into_iter().filter_map(|change| change.gone) {
            let text = format!("interface {name} was removed; it is used again after a restart");
            plane.log.line(now, EventKind::Link, &text);
        }
    }

    fn commit(&mut self, plane: &mut ControlPlane) {
        plane.commit();
        let now = plane.now();
        // The framework's log is long: it is not searched for every packet that the host answers.
        let is_new = self.host.follow(now, &mut plane.mirror);
        if is_new || now.saturating_sub(self.recorded) >= LONGEST_WAIT {
            plane.log.record(now, &mut plane.mirror);
            self.recorded = now;
        }
    }
}

impl ControlSource for StandaloneSource {
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.wakeup.fd()]
    }

    fn next_deadline(&self) -> Option<Duration> {
        self.host.next_deadline()
    }

    fn advance(&mut self, plane: &mut ControlPlane) -> Result<(), DaemonError> {
        self.wakeup.clear();
        self.look_at_carriers(plane);
        self.host.work(plane.now(), &mut plane.mirror);
        for conflict in self.host.take_conflicts() {
            plane.log.line(plane.now(), EventKind::Warning, &conflict.to_string());
        }
        self.commit(plane);
        if self.host.send() {
            self.worker_wakeup.notify();
        }
        Ok(())
    }

    fn greeting(&self, plane: &ControlPlane) -> String {
        let (interfaces, report) = (self.interface_count, plane.mirror.report());
        let (inet, inet6) = (report.inet, report.inet6);
        format!(
            "no kernel: {interfaces} interfaces, routes to {inet} IPv4 and {inet6} IPv6 prefixes; forwarding"
        )
    }

    fn summary(&self, plane: &ControlPlane) {
        let HostCounters { echoes, neighbor_answers, errors, forwarded, .. } = self.host.counters();
        let text = format!(
            "the host answered {echoes} echoes and {neighbor_answers} neighbour requests, sent {errors} ICMP errors, \
             forwarded {forwarded} packets"
        );
        plane.log.line(plane.now(), EventKind::Router, &text);
    }

    fn host(&mut self) -> Option<&mut HostDriver> {
        Some(&mut self.host)
    }
}
