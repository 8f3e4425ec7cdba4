//! The ports of workers, and their packet memory. A port is a packet socket, which works with every driver, an AF_XDP
//! socket, or a TAP interface that the router creates.

use std::os::fd::BorrowedFd;

use fullview_plane::burst::{BURST, Burst, Packet};
use fullview_plane::port::link::Link;
use fullview_plane::port::packet::{PacketOptions, PacketPort};
use fullview_plane::port::spread::Spread;
use fullview_plane::port::tap::TapPort;
use fullview_plane::port::umem::Umem;
use fullview_plane::port::xdp::{XdpOptions, XdpPort};
use fullview_plane::port::{Port, PortError, PortLosses};

use super::error::DaemonError;
use super::kernel_split::KernelSplit;
use super::link_presence::check_presence;
use super::worker_thread::WorkerPort;
use crate::error::{BadInput, message};
use crate::log;
use crate::options::{PortName, PortOptions};
use crate::route::LinkIndex;

/// Slots for each port of a worker: enough for the packets that wait at its two sides and those in between.
const SLOTS_PER_PORT: usize = 5 * BURST;

/// Refuses an interface that exists and cannot be a port. One that does not exist yet may appear later.
pub fn check(interface: &str, may_be_missing: bool) -> Result<(), BadInput> {
    let mac = Link::named(interface).and_then(|link| link.mac());
    match mac {
        Err(error @ (PortError::NotEthernet { .. } | PortError::AlternativeName { .. })) => {
            Err(BadInput(error.to_string()))
        }
        Err(_) if !may_be_missing => Err(missing(interface)),
        _ => Ok(()),
    }
}

fn missing(interface: &str) -> BadInput {
    BadInput(format!(
        "interface {interface}: there is none of this name; `ip link` lists them, and with `--wait` (`wait = true` in a file) \
         the router uses it once it is there"
    ))
}

/// A port of any kind.
pub enum AnyPort {
    Packet(PacketPort<'static>),
    Xdp(Box<XdpPort>),
    Tap(TapPort<'static>),
}

impl AnyPort {
    fn inner(&self) -> &dyn Port<'static> {
        match self {
            AnyPort::Packet(port) => port,
            AnyPort::Xdp(port) => &**port,
            AnyPort::Tap(port) => port,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn Port<'static> {
        match self {
            AnyPort::Packet(port) => port,
            AnyPort::Xdp(port) => &mut **port,
            AnyPort::Tap(port) => port,
        }
    }
}

impl Port<'static> for AnyPort {
    fn receive(&mut self, burst: &mut Burst<'static>, limit: usize) -> Result<usize, PortError> {
        self.inner_mut().receive(burst, limit)
    }

    fn transmit(&mut self, burst: &mut Burst<'static>) -> Result<usize, PortError> {
        self.inner_mut().transmit(burst)
    }

    fn reclaim(&mut self, free: &mut Burst<'static>) -> usize {
        self.inner_mut().reclaim(free)
    }

    fn recycle(&mut self, free: &mut Burst<'static>) -> usize {
        self.inner_mut().recycle(free)
    }

    fn overruns(&mut self) -> Result<u64, PortError> {
        self.inner_mut().overruns()
    }

    fn refused(&self) -> u64 {
        self.inner().refused()
    }

    fn is_finished(&self) -> bool {
        self.inner().is_finished()
    }

    fn losses(&mut self) -> PortLosses {
        self.inner_mut().losses()
    }

    fn undated(&mut self) -> usize {
        self.inner_mut().undated()
    }

    fn has_unsent(&mut self) -> bool {
        self.inner_mut().has_unsent()
    }
}

impl WorkerPort for AnyPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            AnyPort::Packet(port) => port.as_fd(),
            AnyPort::Xdp(port) => port.as_fd(),
            AnyPort::Tap(port) => port.as_fd(),
        }
    }

    fn may_be_polled(&self) -> bool {
        !matches!(self, AnyPort::Xdp(port) if !port.may_be_polled())
    }

    fn close(self) -> Vec<Packet<'static>> {
        match self {
            AnyPort::Packet(port) => port.close().collect(),
            AnyPort::Xdp(port) => port.close(),
            AnyPort::Tap(port) => port.close().collect(),
        }
    }
}

/// The packet memory of all workers. Slots that workers give back are used again.
pub struct PacketMemory {
    umem: Umem,
    packets: Vec<Packet<'static>>,
    /// The number of slots, with those that workers have.
    all: usize,
}

impl PacketMemory {
    /// Memory without slots.
    pub fn new() -> PacketMemory {
        let (umem, packets) = Umem::new(0);
        PacketMemory { umem, packets, all: 0 }
    }

    /// Makes sure that there are free slots for so many ports. If slots are missing, because a card with zero copy kept
    /// them, new memory takes the place of the old.
    pub fn ensure(&mut self, ports: usize, options: &PortOptions) {
        let wanted = ports * slots_per_port(options);
        if self.packets.len() < wanted {
            (self.umem, self.packets) = Umem::new(wanted);
            self.all = wanted;
        }
    }

    /// Whether there are free slots for so many ports.
    pub fn has_room(&self, ports: usize, options: &PortOptions) -> bool {
        self.packets.len() >= ports * slots_per_port(options)
    }

    /// Takes the slots of a worker with so many ports.
    pub fn take(&mut self, ports: usize, options: &PortOptions) -> Vec<Packet<'static>> {
        let rest = self.packets.len().saturating_sub(ports * slots_per_port(options));
        self.packets.split_off(rest)
    }

    pub fn take_back(&mut self, packets: impl IntoIterator<Item = Packet<'static>>) {
        self.packets.extend(packets);
    }

    /// Logs how many slots the workers gave back, once all have ended. A slot that is missing was leaked, or a card kept
    /// it.
    pub fn log_returned(&self) {
        log::line(&format!("packet memory: {} of {} slots came back", self.packets.len(), self.all));
    }
}

/// An AF_XDP port needs as many slots more as its ring has, for the card fills that many ahead.
pub fn slots_per_port(options: &PortOptions) -> usize {
    let has_xdp = options.kinds.iter().any(|kind| kind.may_be_xdp());
    SLOTS_PER_PORT + if has_xdp { options.xdp.ring as usize } else { 0 }
}

/// Opens ports on an interface, one for each worker, and attaches the kernel's classifier to it. The classifier takes no
/// frame from the kernel before [`KernelSplit::follow`].
pub fn open(
    (number, name, index): (u16, &str, LinkIndex),
    (workers, spread): (usize, Spread),
    options: &PortOptions,
    memory: &PacketMemory,
    split: &mut KernelSplit,
) -> Result<Vec<AnyPort>, DaemonError> {
    let by_packets = |split: &mut KernelSplit| {
        let options = PacketOptions { spread, ..split.options()? };
        let ports = PacketPort::open_group(number, name, workers, options)?;
        split.take(name)?;
        Ok(ports.into_iter().map(AnyPort::Packet).collect())
    };
    let mut by_xdp = || {
        let redirect = |link: &Link, sockets: &[BorrowedFd<'_>]| split.redirect(link, sockets);
        open_xdp((number, name), workers, options.xdp, memory, redirect)
    };
    match options.kinds[usize::from(number)] {
        PortName::Packet => by_packets(split),
        PortName::Xdp => {
            let advice = format!("--port xdp on {name}; --port packet works on any interface");
            by_xdp().map_err(|source| DaemonError::OpenPort { advice, source: Box::new(source) })
        }
        PortName::Auto => by_xdp().or_else(|error| {
            // If the interface was removed meanwhile, no other kind of port is tried, nor on another one that has its name.
            check_presence(name, index)?;
            let reason = message(&error);
            log::line(&format!("interface {name}: packet sockets, for AF_XDP does not work: {reason}"));
            by_packets(split)
        }),
        PortName::Tap => {
            Err(BadInput(format!("interface {name}: only a router without a kernel makes a tap")).into())
        }
    }
}

/// Opens an AF_XDP socket for each queue, one for each worker. `redirect` redirects frames to the sockets, and returns
/// where it does so, as text.
pub fn open_xdp(
    (number, name): (u16, &str),
    workers: usize,
    options: XdpOptions,
    memory: &PacketMemory,
    mut redirect: impl FnMut(&Link, &[BorrowedFd<'_>]) -> Result<&'static str, DaemonError>,
) -> Result<Vec<AnyPort>, DaemonError> {
    let link = Link::named(name)?;
    let queues = link.receive_queues()?;
    if queues as usize != workers {
        return Err(BadInput(format!(
            "interface {name} has {queues} receive queues, and each needs a worker of its own: `--workers {queues}`, \
             or `ethtool -L {name}` for {workers}"
        ))
        .into());
    }
    let open = |queue| XdpPort::open(number, name, &memory.umem, XdpOptions { queue, ..options });
    let ports: Vec<XdpPort> = (0..queues).map(open).collect::<Result<_, _>>()?;
    let sockets: Vec<BorrowedFd<'_>> = ports.iter().map(XdpPort::as_fd).collect();
    let place = redirect(&link, &sockets)?;
    if let Some(port) = ports.first() {
        log::line(&format!("interface {name}: AF_XDP, {}, {place}", port.mode()));
    }
    Ok(ports.into_iter().map(|port| AnyPort::Xdp(Box::new(port))).collect())
}
