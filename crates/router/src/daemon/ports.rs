//! How frames come in and go out: by packet sockets, which every driver has, by AF_XDP sockets, or by interfaces of our
//! own.

use std::os::fd::BorrowedFd;

use anyhow::{Context, bail, ensure};
use fullview_plane::burst::{BURST, Burst, Packet};
use fullview_plane::port::link::Link;
use fullview_plane::port::packet::PacketPort;
use fullview_plane::port::tap::TapPort;
use fullview_plane::port::umem::Umem;
use fullview_plane::port::xdp::{XdpOptions, XdpPort};
use fullview_plane::port::{Port, PortError};

use super::share::Share;
use super::thread::WorkerPort;
use crate::config::PortName;
use crate::error::BadInput;
use crate::log;

/// Packets for each port of a worker: as many as wait at its two sides, and are on their way.
const PACKETS: usize = 5 * BURST;

/// Refuses what is there and cannot be a port. An interface that is not there yet may come.
pub fn check(interface: &str) -> anyhow::Result<()> {
    let mac = Link::named(interface).and_then(|link| link.mac());
    match mac {
        Err(error @ PortError::NotEthernet { .. }) => Err(BadInput(error.to_string()).into()),
        _ => Ok(()),
    }
}

/// A port of one kind or another.
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

    fn close(self) -> Vec<Packet<'static>> {
        match self {
            AnyPort::Packet(port) => port.close().collect(),
            AnyPort::Xdp(port) => port.close(),
            AnyPort::Tap(port) => port.close().collect(),
        }
    }
}

/// How ports are wanted.
#[derive(Clone)]
pub struct PortOptions {
    /// By interface, in their order.
    pub kinds: Vec<PortName>,
    /// For the queue of each worker.
    pub xdp: XdpOptions,
    /// One for each worker, or none.
    pub cores: Vec<usize>,
}

/// The packet memory of all workers. What comes back of it is used again.
pub struct Memory {
    umem: Umem,
    packets: Vec<Packet<'static>>,
    /// How many there are, with those that workers have.
    all: usize,
}

impl Memory {
    /// Of nothing yet.
    pub fn new() -> Memory {
        let (umem, packets) = Umem::new(0);
        Memory { umem, packets, all: 0 }
    }

    /// Makes sure that there is enough for so many ports. A card with zero copy keeps the slots it had; then there is
    /// other memory from now on.
    pub fn ensure(&mut self, ports: usize, options: &PortOptions) {
        let wanted = ports * options.packets();
        if self.packets.len() < wanted {
            (self.umem, self.packets) = Umem::new(wanted);
            self.all = wanted;
        }
    }

    /// For a worker with so many ports.
    pub fn take(&mut self, ports: usize, options: &PortOptions) -> Vec<Packet<'static>> {
        let rest = self.packets.len().saturating_sub(ports * options.packets());
        self.packets.split_off(rest)
    }

    pub fn take_back(&mut self, packets: impl IntoIterator<Item = Packet<'static>>) {
        self.packets.extend(packets);
    }

    /// Says what workers gave back, when all have ended: a slot that is missing was lost on its way, or a card kept it.
    pub fn tell(&self) {
        log::line(&format!("packet memory: {} of {} slots came back", self.packets.len(), self.all));
    }
}

impl PortOptions {
    /// For each port of a worker. Cards fill as many slots ahead as their ring has.
    fn packets(&self) -> usize {
        let has_xdp = self.kinds.iter().any(|kind| kind.may_be_xdp());
        PACKETS + if has_xdp { self.xdp.ring as usize } else { 0 }
    }

    /// Whether that one can only be opened while it is up.
    pub fn needs_up(&self, number: usize) -> bool {
        self.kinds.get(number).is_some_and(|kind| kind.may_be_xdp())
    }
}

/// Opens ports on an interface, one for each worker, and has the kernel share its frames with them: none is ours before
/// [`Share::follow`] says so.
pub fn open(
    (number, name): (u16, &str),
    workers: usize,
    options: &PortOptions,
    memory: &Memory,
    share: &mut Share,
) -> anyhow::Result<Vec<AnyPort>> {
    let by_packets = |share: &mut Share| {
        let ports = PacketPort::open_group(number, name, workers, share.options()?)?;
        share.take(name)?;
        Ok(ports.into_iter().map(AnyPort::Packet).collect())
    };
    let mut by_xdp = || {
        let redirect = |link: &Link, sockets: &[BorrowedFd<'_>]| share.redirect(link, sockets);
        open_xdp((number, name), workers, options.xdp, memory, redirect)
    };
    match options.kinds[usize::from(number)] {
        PortName::Packet => by_packets(share),
        PortName::Xdp => {
            by_xdp().with_context(|| format!("--port xdp on {name}; --port packet works on any interface"))
        }
        PortName::Auto => by_xdp().or_else(|error| {
            // What is not there any more is not tried otherwise.
            Link::named(name)?;
            log::line(&format!("interface {name}: packet sockets, for AF_XDP does not work: {error:#}"));
            by_packets(share)
        }),
        PortName::Tap => {
            bail!(BadInput(format!("interface {name}: a tap is made by a router without a kernel")))
        }
    }
}

/// One socket for each queue, and each worker has one; `redirect` has frames moved to them, and says where.
pub fn open_xdp(
    (number, name): (u16, &str),
    workers: usize,
    options: XdpOptions,
    memory: &Memory,
    mut redirect: impl FnMut(&Link, &[BorrowedFd<'_>]) -> anyhow::Result<&'static str>,
) -> anyhow::Result<Vec<AnyPort>> {
    let link = Link::named(name)?;
    let queues = link.receive_queues()?;
    ensure!(
        queues as usize == workers,
        BadInput(format!(
            "interface {name} has {queues} receive queues, and each needs a worker of its own: `--workers {queues}`, \
             or `ethtool -L {name}` for {workers}"
        ))
    );
    let open = |queue| XdpPort::open(number, name, &memory.umem, XdpOptions { queue, ..options });
    let ports: Vec<XdpPort> = (0..queues).map(open).collect::<Result<_, _>>()?;
    let sockets: Vec<BorrowedFd<'_>> = ports.iter().map(XdpPort::as_fd).collect();
    let place = redirect(&link, &sockets)?;
    if let Some(port) = ports.first() {
        log::line(&format!("interface {name}: AF_XDP, {}, {place}", port.mode()));
    }
    Ok(ports.into_iter().map(|port| AnyPort::Xdp(Box::new(port))).collect())
}
