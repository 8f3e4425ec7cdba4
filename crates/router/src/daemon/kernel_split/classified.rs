//! The split with programs in the kernel: the kernel keeps the frames for itself, and gets back what the router cannot
//! forward.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use fullview_plane::burst::Slot;
use fullview_plane::interface::Interface;
use fullview_plane::kernel_flows::{FlowMemory, FlowRegions, FlowSharing, PortDevice, PortProgram};
use fullview_plane::noted_links::NotedLinks;
use fullview_plane::port::classify::{Classifier, IngressKey, IngressSettings, RedirectScope, XdpAttachMode};
use fullview_plane::port::link::Link;
use fullview_plane::port::packet::PacketOptions;
use fullview_plane::port::reinject::ReinjectThread;
use fullview_plane::report_time::{ReportClock, ReportTime};
use fullview_plane::verdict::Verdict;
use fullview_plane::view::View;

use super::large_frames::LargeFrames;
use super::punt_gate::{GateCounts, PuntGate};
use super::shared_flows::{SharedFlows, barriers};
use crate::daemon::error::DaemonError;
use crate::daemon::link_program::noted_namespace;
use crate::daemon::punts::{PuntCount, PuntCounts, by_reason};
use crate::mirror::Mirror;
use crate::options::PuntRates;
use crate::route::LinkIndex;

pub struct KernelSplit {
    classifier: Classifier,
    _thread: ReinjectThread,
    /// The gates that no worker has, and the counts of all.
    unused: Vec<PuntGate>,
    counts: Vec<Arc<GateCounts>>,
    /// The view that the classifier was configured from.
    view: Option<Arc<View>>,
    /// [`Mirror::local_changes`] when the classifier got the addresses of this host.
    local_changes: Option<u64>,
    taken: Vec<Link>,
    clock: ReportClock,
    flows: Option<SharedFlows>,
    links: Arc<NotedLinks>,
    /// `None` with a filter, which gives the kernel no large frames.
    large_frames: Option<LargeFrames>,
}

impl KernelSplit {
    /// With a filter the router also gets the packets that it only judges, for the kernel to answer, and the classifier
    /// forwards packets of so many known flows at most.
    pub fn new(
        workers: usize,
        kernel_flows: Option<u16>,
        rates: &PuntRates,
    ) -> Result<KernelSplit, DaemonError> {
        let grace = kernel_flows.and_then(barriers);
        let room = kernel_flows.filter(|_| grace.is_some());
        let regions = room.map(|flows| FlowRegions::new(flows, workers as u16));
        let loaded = kernel_flows.map_or_else(Classifier::load, |_| Classifier::load_for_filter(regions));
        let mut classifier = loaded.map_err(DaemonError::LoadClassifier)?;
        let memory = classifier.flow_memory()?;
        let links = Arc::new(NotedLinks::shared(classifier.link_words()?));
        let flows = memory.zip(grace).map(|(memory, grace)| SharedFlows::new(memory, grace));
        let (thread, rings) = ReinjectThread::start(classifier.trailer(), workers)?;
        let unused: Vec<_> = rings.into_iter().map(|ring| PuntGate::new(ring, rates)).collect();
        let counts = unused.iter().map(PuntGate::counts).collect();
        Ok(KernelSplit {
            classifier,
            _thread: thread,
            unused,
            counts,
            view: None,
            local_changes: None,
            taken: Vec::new(),
            clock: ReportClock::start(),
            flows,
            links,
            large_frames: kernel_flows.is_none().then(LargeFrames::default),
        })
    }

    /// The failed links that workers leave.
    pub fn links(&self) -> Arc<NotedLinks> {
        Arc::clone(&self.links)
    }

    /// Attaches a program that notes failed links within the kernel, if it can. It begins when the network namespace that is returned
    /// is noted in [`Self::links`].
    pub fn note_failed_links(&mut self) -> Option<u32> {
        noted_namespace(self.classifier.note_failed_links())
    }

    /// Whether the classifier forwards packets of known flows.
    pub fn shares_flows(&self) -> bool {
        self.flows.is_some()
    }

    /// Shares known flows of a worker's filter with the classifier, if there is room for any.
    pub fn flow_sharing(&self, worker: u16) -> Option<FlowSharing> {
        self.flows.as_ref().map(|flows| flows.sharing(worker))
    }

    /// The known flows that the classifier forwards.
    pub fn flow_memory(&self) -> Option<Arc<FlowMemory>> {
        self.flows.as_ref().map(SharedFlows::memory)
    }

    /// The devices of a worker's ports, by number, for [`Self::flow_sharing`].
    pub fn devices(
        &mut self,
        ports: impl Iterator<Item = (LinkIndex, Option<PortProgram>)>,
    ) -> Vec<PortDevice> {
        self.flows.as_mut().map_or_else(Vec::new, |flows| flows.devices(ports))
    }

    /// Configures the classifier with the router's present addresses and interfaces, and reports until when the mirror was
    /// complete and no worker silent: `oldest_round` is when the last round of the most silent one began. If this process was
    /// stopped, or a worker hangs, that time is long past, and the kernel forwards.
    pub fn follow(&mut self, mirror: &Mirror, oldest_round: Option<ReportTime>) -> Result<(), DaemonError> {
        let complete_until = self.clock.end_turn(mirror.is_complete());
        let works_until = oldest_round.map_or(complete_until, |round| round.min(complete_until));
        self.classifier.report(works_until)?;
        let view = mirror.views().current();
        if let Some(flows) = &mut self.flows {
            flows.follow(&view, complete_until);
        }
        let is_same_view = self.view.as_ref().is_some_and(|known| Arc::ptr_eq(known, &view));
        let local_changes = Some(mirror.local_changes());
        let large_frames = self.large_frames.as_mut();
        let are_others_large =
            large_frames.is_some_and(|large| large.follow(mirror.has_several_next_hops(), &self.taken));
        if is_same_view && self.local_changes == local_changes && !are_others_large {
            return Ok(());
        }
        self.classifier.set_local_addresses(&mirror.local_addresses())?;
        self.local_changes = local_changes;
        self.classifier.set_ingress(&ingress_settings(mirror, &view, self.large_frames.as_ref()))?;
        self.view = Some(view);
        Ok(())
    }

    pub fn options(&mut self) -> Result<PacketOptions<'_>, DaemonError> {
        Ok(PacketOptions { filter: Some(self.classifier.filter()?), ..PacketOptions::default() })
    }

    /// Attaches the classifier to an interface. It takes no frame from the kernel before [`Self::follow`].
    pub fn take(&mut self, interface: &str) -> Result<(), DaemonError> {
        let link = Link::named(interface)?;
        self.classifier.take_from_kernel(&link)?;
        self.add_taken(&link);
        Ok(())
    }

    fn add_taken(&mut self, link: &Link) {
        if self.taken.iter().all(|taken| taken.index() != link.index()) {
            self.taken.push(link.clone());
        }
    }

    /// Does the same for frames that go to AF_XDP sockets, one for each queue. Returns where the program runs, as text.
    pub fn redirect(&mut self, link: &Link, sockets: &[BorrowedFd<'_>]) -> Result<&'static str, DaemonError> {
        let place = self.classifier.redirect(link, RedirectScope::Forwardable, sockets);
        let place = place.inspect_err(|_| self.classifier.release(link))?;
        self.add_taken(link);
        Ok(match place {
            XdpAttachMode::Driver => "redirected by the driver",
            XdpAttachMode::Generic => "redirected behind the driver, which has no XDP of its own",
        })
    }

    /// Has the kernel forward everything until the next [`Self::follow`].
    pub fn pause(&mut self) -> Result<(), DaemonError> {
        self.pause_except(&HashMap::new())
    }

    /// Has the kernel forward what comes in by interfaces to which the classifier is not attached now, even once it is, until the next
    /// [`Self::follow`]. Workers get the packets of known flows meanwhile.
    pub fn pause_others(&mut self, mirror: &Mirror) -> Result<(), DaemonError> {
        let mut settings = ingress_settings(mirror, &mirror.views().current(), self.large_frames.as_ref());
        settings.retain(|key, _| self.taken.iter().any(|link| link.index() == key.interface));
        self.pause_except(&settings)
    }

    fn pause_except(&mut self, ingress: &HashMap<IngressKey, IngressSettings>) -> Result<(), DaemonError> {
        self.view = None;
        self.flows.iter_mut().for_each(SharedFlows::pause);
        Ok(self.classifier.set_ingress(ingress)?)
    }

    /// Detaches the classifier from all interfaces except these.
    pub fn release_others(&mut self, links: &[LinkIndex]) {
        for link in self.taken.extract_if(.., |link| !links.contains(&link.index())) {
            self.classifier.release(&link);
        }
    }

    /// Makes the reinjector of a worker.
    pub fn reinjector(&mut self) -> Reinjector {
        Reinjector(self.unused.pop())
    }

    pub fn take_back(&mut self, reinjector: Reinjector) {
        self.unused.extend(reinjector.0);
    }

    /// What the classifier left to the kernel, and what workers gave back or had to drop.
    pub fn punts(&self) -> Result<PuntCounts, DaemonError> {
        let left = self.classifier.left_to_kernel()?;
        let left = left.into_iter().map(|(reason, count)| (reason, PuntCount::handed(count)));
        Ok(by_reason(left.chain(self.counts.iter().flat_map(|counts| counts.read()))))
    }
}

/// The interfaces that are up, by where their frames come in.
fn ingress_settings(
    mirror: &Mirror,
    view: &View,
    large: Option<&LargeFrames>,
) -> HashMap<IngressKey, IngressSettings> {
    let settings = |interface: &Interface| {
        let link = mirror.port_link(interface.port.into()).filter(|_| interface.up)?;
        let key = IngressKey { interface: link.index, vlan: interface.vlan };
        let (forwards_inet, forwards_inet6) = (interface.forwards_inet, interface.forwards_inet6);
        let leaves_tcp = large.is_some_and(|large| large.leaves_tcp(link.index, link.mtu));
        Some((key, IngressSettings { mac: interface.mac, forwards_inet, forwards_inet6, leaves_tcp }))
    };
    view.parts().interfaces.iter().filter_map(settings).collect()
}

/// A worker's way to give frames back to the kernel.
pub struct Reinjector(Option<PuntGate>);

impl Reinjector {
    /// Call it once per burst, before the first packet.
    pub fn begin_burst(&mut self) {
        self.0.iter_mut().for_each(PuntGate::begin_burst);
    }

    /// Gives back a frame that the kernel may answer or forward. `link` is where it came in.
    pub fn reinject(&mut self, link: u32, packet: &Slot) {
        let concerns_kernel = match packet.verdict {
            Verdict::Punt(_) => true,
            Verdict::Drop(reason) => reason.is_answered(),
            // A filter beside a kernel has no rules that answer packets, and the kernel has no connection to reset for a state.
            Verdict::Reject(_) | Verdict::Forward => false,
        };
        if let Some(gate) = self.0.as_mut().filter(|_| concerns_kernel) {
            gate.hand_over(link, packet);
        }
    }

    pub fn flush(&mut self) {
        self.0.iter_mut().for_each(PuntGate::flush);
    }
}
