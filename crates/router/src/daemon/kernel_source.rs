//! The control source of a router that mirrors the kernel.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::bypass_watch::BypassWatch;
use super::control_plane::ControlPlane;
use super::error::{DaemonError, netlink};
use super::main_loop::{ControlSource, wait};
use super::multipath_hash::MultipathHashWatch;
use super::neighbor_refresh::NeighborRefresh;
use super::neighbor_resolution::{NeighborResolver, UnresolvedDestination};
use super::query_queue::QueryQueue;
use crate::bypass::TakenOver;
use crate::events::EventKind;
use crate::follow::{Follower, Statistics};

/// The longest time for which changes hold back the data path, signals and queries.
const LONGEST_TURN: Duration = Duration::from_millis(5);

/// The longest time for which a router that takes over prepares itself for the last changes.
#[cfg(all(feature = "bpf", target_os = "linux"))]
const LONGEST_CATCH_UP: Duration = Duration::from_secs(2);

/// Follows the kernel by netlink, and asks it about neighbours.
pub struct KernelSource {
    follower: Follower,
    resolver: NeighborResolver,
    pub refresh: NeighborRefresh,
    bypassed: BypassWatch,
    multipath_hash: MultipathHashWatch,
}

impl KernelSource {
    /// Follows the kernel with a receive buffer of that many bytes. `taken_over` is what the kernel no longer forwards.
    pub fn new(netlink_buffer: usize, taken_over: TakenOver) -> Result<KernelSource, DaemonError> {
        let follower =
            Follower::new(Some(netlink_buffer)).map_err(netlink("the kernel cannot be listened to"))?;
        Ok(KernelSource {
            follower,
            resolver: NeighborResolver::default(),
            refresh: NeighborRefresh::default(),
            bypassed: BypassWatch::new(taken_over),
            multipath_hash: MultipathHashWatch::default(),
        })
    }

    /// Reads everything that the kernel has, before the first packet.
    pub fn fill(
        &mut self,
        plane: &mut ControlPlane,
        queries: &QueryQueue,
        stop: &AtomicBool,
    ) -> Result<(), DaemonError> {
        while !self.follower.is_synced() && !stop.load(Ordering::Relaxed) {
            wait(plane, self, queries)?;
            self.take_in(plane)?;
            self.record_refusals(plane);
        }
        self.multipath_hash.look(plane);
        self.commit(plane);
        self.bypassed.look(plane.now(), &plane.log);
        Ok(())
    }

    /// Takes in what the kernel sent; returns whether there may be more.
    fn take_in(&mut self, plane: &mut ControlPlane) -> Result<bool, DaemonError> {
        let now = plane.now();
        self.follower.advance(now, &mut plane.mirror).map_err(netlink("following the kernel"))
    }

    /// What the kernel refuses to list is asked for again; the log says it once.
    fn record_refusals(&mut self, plane: &ControlPlane) {
        for refusal in self.follower.take_refusals() {
            let text = format!("{refusal}; what is known of them stays, and the kernel is asked again");
            plane.log.line(plane.now(), EventKind::Warning, &text);
        }
    }

    /// Takes in what has waited, for two seconds at most: a storm has no end.
    #[cfg(all(feature = "bpf", target_os = "linux"))]
    pub fn catch_up(&mut self, plane: &mut ControlPlane) -> Result<(), DaemonError> {
        let begun = plane.now();
        while self.take_in(plane)? && plane.now() - begun < LONGEST_CATCH_UP {}
        self.commit(plane);
        Ok(())
    }

    /// How often the kernel dropped messages.
    #[cfg(all(feature = "bpf", target_os = "linux"))]
    pub fn overflows(&self) -> u64 {
        self.follower.statistics().overflows
    }

    /// Sets whether packets leave without the queueing disciplines of interfaces: the interfaces that come later may change that.
    #[cfg(all(feature = "bpf", target_os = "linux"))]
    pub fn leave_unqueued(&mut self, leave: bool) {
        self.bypassed.leave_unqueued(leave);
    }

    fn commit(&mut self, plane: &mut ControlPlane) {
        plane.commit();
        let now = plane.now();
        self.record_refusals(plane);
        plane.log.record(now, &mut plane.mirror);
        plane.log.record_following(now, &plane.mirror, self.follower.statistics());
    }

    /// Has the kernel resolve neighbours that workers have packets for.
    pub fn resolve(
        &mut self,
        plane: &ControlPlane,
        unresolved: Vec<UnresolvedDestination>,
    ) -> Result<(), DaemonError> {
        let KernelSource { follower, resolver, .. } = self;
        let resolved = resolver.resolve(plane.now(), unresolved, &plane.mirror, follower);
        resolved.map_err(netlink("resolving neighbours"))
    }

    /// Has the kernel verify stale neighbours that workers sent to.
    pub fn refresh_used(&mut self, plane: &ControlPlane) -> Result<(), DaemonError> {
        let KernelSource { follower, refresh, .. } = self;
        let refreshed = refresh.refresh(plane.now(), &plane.mirror, follower);
        refreshed.map_err(netlink("keeping neighbours fresh"))
    }

    /// Has the kernel verify all stale neighbours, as a program in the kernel does not report which ones are in use.
    pub fn refresh_all(&mut self, plane: &ControlPlane) -> Result<(), DaemonError> {
        let KernelSource { follower, refresh, .. } = self;
        let refreshed = refresh.refresh_all(plane.now(), &plane.mirror, follower);
        refreshed.map_err(netlink("keeping neighbours fresh"))
    }
}

impl ControlSource for KernelSource {
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.follower.fds().into()
    }

    fn next_deadline(&self) -> Option<Duration> {
        self.follower.next_deadline()
    }

    fn advance(&mut self, plane: &mut ControlPlane) -> Result<(), DaemonError> {
        let begun = plane.now();
        self.multipath_hash.look(plane);
        let mut has_more = self.take_in(plane)?;
        while has_more && plane.now() - begun < LONGEST_TURN {
            self.commit(plane);
            has_more = self.take_in(plane)?;
        }
        self.commit(plane);
        plane.mirror.note_complete(!has_more && self.follower.is_synced());
        self.bypassed.look(plane.now(), &plane.log);
        Ok(())
    }

    fn greeting(&self, plane: &ControlPlane) -> String {
        let report = plane.mirror.report();
        let (inet, inet6) = (report.inet, report.inet6);
        format!("the kernel has routes to {inet} IPv4 and {inet6} IPv6 prefixes; forwarding")
    }

    fn summary(&self, plane: &ControlPlane) {
        plane.log.summary(self.follower.statistics());
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.follower.statistics())
    }
}
