//! The slow path of a worker beside a kernel: it gives rejected packets to the kernel, and reports destinations whose neighbour is
//! not known.

use std::net::IpAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use fullview_plane::burst::Slot;
use fullview_plane::verdict::{Punt, Verdict};
use fullview_plane::wire::ethernet;
use fullview_plane::wire::ethernet::EtherType;
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_plane::wire::ipv6::Ipv6Packet;
use fullview_plane::worker::{Rejected, SlowPath};

use super::kernel_split::Reinjector;
use super::neighbor_resolution::UnresolvedDestination;
use crate::route::LinkIndex;

/// Destinations that may wait for the router's thread.
const MAX_UNRESOLVED: usize = 64;

pub struct ToKernel {
    pub reinjector: Reinjector,
    /// The kernel's link number of each port.
    pub links: Vec<LinkIndex>,
    unresolved: SyncSender<UnresolvedDestination>,
}

impl ToKernel {
    /// Returns also where the destinations come.
    pub fn new(reinjector: Reinjector) -> (ToKernel, Receiver<UnresolvedDestination>) {
        let (unresolved, reported) = sync_channel(MAX_UNRESOLVED);
        (ToKernel { reinjector, links: Vec::new(), unresolved }, reported)
    }

    /// Reports the destination of a packet if its neighbour is not known.
    fn report_unresolved(&self, packet: &Slot) {
        if packet.verdict != Verdict::Punt(Punt::Glean) {
            return;
        }
        if let Some(destination) = destination(packet.frame()) {
            // If the channel is full, the next packet to the destination reports it again.
            let destination = UnresolvedDestination { interface: packet.interface, destination };
            let _ = self.unresolved.try_send(destination);
        }
    }
}

impl SlowPath for ToKernel {
    fn take(&mut self, rejected: Rejected<'_, '_>) {
        if rejected.packets.is_empty() {
            return;
        }
        self.reinjector.begin_burst();
        for packet in rejected.packets.iter() {
            if let Some(link) = self.links.get(usize::from(packet.port)) {
                self.reinjector.reinject(*link, packet);
            }
            self.report_unresolved(packet);
        }
        self.reinjector.flush();
    }
}

fn destination(frame: &[u8]) -> Option<IpAddr> {
    let frame = ethernet::Frame::new_checked(frame).ok()?;
    match frame.ethertype() {
        EtherType::IPV4 => {
            let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
            Some(IpAddr::V4(packet.destination().into()))
        }
        EtherType::IPV6 => {
            let packet = Ipv6Packet::new_checked(frame.payload()).ok()?;
            Some(IpAddr::V6(packet.destination().into()))
        }
        _ => None,
    }
}
