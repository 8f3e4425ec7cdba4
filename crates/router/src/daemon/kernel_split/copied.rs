//! The split without programs in the kernel: the kernel gets a copy of every frame, and answers those for this host.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use fullview_plane::burst::Slot;
use fullview_plane::kernel_flows::{FlowMemory, FlowSharing, PortDevice, PortProgram};
use fullview_plane::noted_links::NotedLinks;
use fullview_plane::port::link::Link;
use fullview_plane::port::packet::PacketOptions;
use fullview_plane::report_time::ReportTime;

use crate::daemon::error::DaemonError;
use crate::daemon::punts::PuntCounts;
use crate::error::BadInput;
use crate::mirror::Mirror;
use crate::options::PuntRates;
use crate::route::LinkIndex;

/// Does nothing: the kernel gets all frames anyway.
pub struct KernelSplit {
    links: Arc<NotedLinks>,
}

impl KernelSplit {
    pub fn new(
        _workers: usize,
        _kernel_flows: Option<u16>,
        _rates: &PuntRates,
    ) -> Result<KernelSplit, DaemonError> {
        Ok(KernelSplit { links: Arc::default() })
    }

    /// The failed links that workers leave.
    pub fn links(&self) -> Arc<NotedLinks> {
        Arc::clone(&self.links)
    }

    /// No program notes any.
    pub fn note_failed_links(&mut self) -> Option<u32> {
        None
    }

    /// No program forwards anything.
    pub fn shares_flows(&self) -> bool {
        false
    }

    /// No program forwards anything.
    pub fn flow_sharing(&self, _worker: u16) -> Option<FlowSharing> {
        None
    }

    /// No program forwards anything.
    pub fn flow_memory(&self) -> Option<Arc<FlowMemory>> {
        None
    }

    pub fn devices(
        &mut self,
        _ports: impl Iterator<Item = (LinkIndex, Option<PortProgram>)>,
    ) -> Vec<PortDevice> {
        Vec::new()
    }

    pub fn follow(&mut self, _mirror: &Mirror, _oldest_round: Option<ReportTime>) -> Result<(), DaemonError> {
        Ok(())
    }

    pub fn options(&mut self) -> Result<PacketOptions<'_>, DaemonError> {
        Ok(PacketOptions::default())
    }

    pub fn take(&mut self, _interface: &str) -> Result<(), DaemonError> {
        Ok(())
    }

    pub fn redirect(
        &mut self,
        _link: &Link,
        _sockets: &[BorrowedFd<'_>],
    ) -> Result<&'static str, DaemonError> {
        Err(BadInput(
            "a program in the kernel redirects frames to AF_XDP sockets: build with --features bpf".into(),
        )
        .into())
    }

    pub fn pause_others(&mut self, _mirror: &Mirror) -> Result<(), DaemonError> {
        Ok(())
    }

    pub fn pause(&mut self) -> Result<(), DaemonError> {
        Ok(())
    }

    pub fn release_others(&mut self, _links: &[LinkIndex]) {}

    pub fn reinjector(&mut self) -> Reinjector {
        Reinjector
    }

    pub fn take_back(&mut self, _reinjector: Reinjector) {}

    /// The kernel gets all frames anyway.
    pub fn punts(&self) -> Result<PuntCounts, DaemonError> {
        Ok(PuntCounts::new())
    }
}

/// Reinjects nothing: the kernel has a copy of each frame.
pub struct Reinjector;

impl Reinjector {
    pub fn begin_burst(&mut self) {}

    pub fn reinject(&mut self, _link: u32, _packet: &Slot) {}

    pub fn flush(&mut self) {}
}
