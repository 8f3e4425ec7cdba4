//! The ports that workers have on the interfaces of a router beside a kernel: each worker has one on each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fullview_plane::burst::Packet;
use fullview_plane::kernel_flows::PortProgram;
use fullview_plane::port::PortError;
use fullview_plane::port::spread::Spread;

use super::error::DaemonError;
use super::kernel_split::KernelSplit;
use super::link_presence::{check_presence, is_gone};
use super::neighbor_refresh::{TrackingPort, UsedNeighbors};
use super::ports::{self, AnyPort, PacketMemory};
use super::worker_thread::{UnusedPorts, WorkerPort};
use crate::options::PortOptions;
use crate::route::LinkIndex;

/// The link that ports are opened on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortLink {
    pub index: LinkIndex,
    /// See [`Mirror::link_birth`](crate::mirror::Mirror::link_birth).
    pub birth: u64,
    pub name: String,
}

/// What workers have on an interface.
pub struct OpenPort {
    pub link: PortLink,
    /// Which of the classifier's programs runs there.
    pub program: Option<PortProgram>,
    /// Whether a worker has lost the interface.
    is_lost: Arc<AtomicBool>,
}

/// The ports of a worker by number; `None` for an interface that does not exist now.
pub type WorkerPorts = Vec<Option<TrackingPort>>;

/// Ports that were opened for all workers.
pub struct OpenedPorts {
    /// By number.
    pub ports: Vec<Option<OpenPort>>,
    pub by_worker: Vec<WorkerPorts>,
    /// Why an interface that was there has none.
    pub missing: Option<DaemonError>,
}

/// What ports are opened with.
pub struct PortOpener<'o> {
    /// How many, and how frames are spread over them.
    pub workers: (usize, Spread),
    pub options: &'o PortOptions,
    pub memory: &'o PacketMemory,
    pub split: &'o mut KernelSplit,
    pub used: &'o Arc<UsedNeighbors>,
    /// Whether an interface that cannot be a port has none, and the others have theirs.
    pub leaves_out: bool,
}

impl PortLink {
    fn is_gone(&self) -> bool {
        is_gone(&self.name, self.index)
    }

    /// Refuses one that is gone, or has another name.
    fn check(&self) -> Result<(), PortError> {
        check_presence(&self.name, self.index)
    }

    /// Whether it is the same device, perhaps by another name.
    pub fn is_device_of(&self, other: &PortLink) -> bool {
        (self.index, self.birth) == (other.index, other.birth)
    }
}

impl OpenPort {
    /// Whether a worker has lost an interface that is there: one that left its namespace and came back as the same one causes no
    /// netlink message that would tell.
    pub fn has_loss(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed) && !self.link.is_gone()
    }
}

impl PortOpener<'_> {
    /// Opens the ports of all workers on these links. One that is gone meanwhile gets none: no route leads there any more.
    pub fn open(&mut self, links: &[Option<PortLink>]) -> Result<OpenedPorts, DaemonError> {
        let by_worker = (0..self.workers.0).map(|_| Vec::new()).collect();
        let mut opened = OpenedPorts { ports: Vec::new(), by_worker, missing: None };
        for (number, link) in (0..).zip(links) {
            match link.as_ref().map(|link| (link, self.open_group(number, link))) {
                Some((_, Ok((port, group)))) => opened.push(Some(port), group),
                Some((link, Err(error))) if self.leaves_out || is_removed(&error) || link.is_gone() => {
                    opened.missing = Some(error);
                    opened.push(None, Vec::new());
                }
                Some((_, Err(error))) => return Err(error),
                None => opened.push(None, Vec::new()),
            }
        }
        Ok(opened)
    }

    /// Opens the ports of all workers on an interface.
    fn open_group(
        &mut self,
        number: u16,
        link: &PortLink,
    ) -> Result<(OpenPort, Vec<TrackingPort>), DaemonError> {
        let PortOpener { workers, options, memory, used, .. } = *self;
        // Ports are opened by name. When another interface has got it, before or meanwhile, they would be that interface's, and keep
        // its own ports away.
        link.check()?;
        let group = ports::open((number, &link.name, link.index), workers, options, memory, self.split)?;
        link.check()?;
        let (program, is_lost) = (group.first().and_then(program_of), Arc::<AtomicBool>::default());
        let tracked = |port| TrackingPort { port, used: Arc::clone(used), is_lost: Arc::clone(&is_lost) };
        let group = group.into_iter().map(tracked).collect();
        Ok((OpenPort { link: link.clone(), program, is_lost }, group))
    }
}

impl OpenedPorts {
    fn push(&mut self, port: Option<OpenPort>, group: Vec<TrackingPort>) {
        self.ports.push(port);
        let mut group = group.into_iter();
        self.by_worker.iter_mut().for_each(|ports| ports.push(group.next()));
    }
}

fn is_removed(error: &DaemonError) -> bool {
    matches!(error, DaemonError::Port(PortError::Removed { .. }))
}

/// Which of the classifier's programs runs on a port.
fn program_of(port: &AnyPort) -> Option<PortProgram> {
    match port {
        AnyPort::Packet(_) => Some(PortProgram::Tc),
        AnyPort::Xdp(_) => Some(PortProgram::Xdp),
        AnyPort::Tap(_) => None,
    }
}

/// Closes the ports that each worker does not use any more, in a thread of their own, because the kernel takes 45 ms for the ring of
/// a packet socket. Returns how many ports and slots each worker had.
pub fn closed_at_once(
    unused: Vec<Option<UnusedPorts<TrackingPort>>>,
) -> Vec<Option<(usize, Vec<Packet<'static>>)>> {
    let close = |UnusedPorts { ports, mut packets }: UnusedPorts<TrackingPort>| {
        let count = ports.len();
        packets.extend(ports.into_iter().flat_map(TrackingPort::close));
        (count, packets)
    };
    thread::scope(|scope| {
        let threads: Vec<_> =
            unused.into_iter().map(|unused| scope.spawn(move || unused.map(close))).collect();
        threads.into_iter().map(|thread| thread.join().ok().flatten()).collect()
    })
}
