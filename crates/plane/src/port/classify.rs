//! What will be forwarded, told apart in the kernel from what stays with it (`bpf/classify.c`).
//!
//! With AF_XDP sockets, an XDP program moves what will be forwarded to them, and everything else goes on as ever. A
//! packet socket only sees copies; so it is given a filter that lets through what will be forwarded, and a second
//! program (tcx) drops the frames that the filter has let through, before the kernel would forward them as well.
//!
//! All of it ends with this process, however that ends, and the kernel forwards on. Interfaces that were not named are
//! not touched.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use aya::maps::{self, MapData, MapError, PerCpuArray, XskMap};
use aya::programs::links::FdLink;
use aya::programs::tc::TcAttachOptions;
use aya::programs::xdp::XdpMode;
use aya::programs::{LinkOrder, ProgramError, SchedClassifier, SocketFilter, TcAttachType, Xdp};

use super::link::Link;
use crate::bpf::{self, LoadedObject};
use crate::burst::FRAME_CAPACITY;
use crate::wire::ethernet::{Mac, TAG};

pub use error::ClassifyError;

mod error;

/// Names of the answers, in the order of `enum answer` in classify.c.
pub const CLASSES: [&str; 11] = [
    "not_ours",
    "forward",
    "not_ip",
    "local",
    "group",
    "special",
    "lifetime",
    "options",
    "malformed",
    "too_long",
    "given_back",
];

/// Sockets of all interfaces and queues together, as classify.c has room for.
const SOCKETS: u32 = 1024;

/// Where frames come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IngressKey {
    /// The number of the interface in the kernel.
    pub interface: u32,
    /// The VLAN; `None` takes frames without a tag.
    pub vlan: Option<u16>,
}

/// Who we are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngressSettings {
    /// Frames to other addresses are not ours.
    pub mac: Mac,
    /// Whether IPv4 is forwarded.
    pub forwards_inet: bool,
    /// Whether IPv6 is forwarded.
    pub forwards_inet6: bool,
}

/// Marks frames that go back to the kernel, behind their packet: a number that only this process knows.
pub type Trailer = [u8; 16];

/// The sockets of an interface, one for each queue.
#[derive(Clone, Copy, Default)]
struct QueueRange {
    first: u32,
    count: u32,
}

/// Attachment an XDP program sees the frames of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpAttachMode {
    /// In the driver, before the kernel makes a packet of them.
    Driver,
    /// Afterwards: the driver cannot do better. Every frame is copied once more.
    Generic,
}

/// What an XDP program redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectScope {
    /// What will be forwarded.
    Forwardable,
    /// Everything: for a generator or receiver, which are no routers.
    All,
}

impl RedirectScope {
    fn program(self) -> &'static str {
        match self {
            RedirectScope::Forwardable => "to_socket",
            RedirectScope::All => "all_to_socket",
        }
    }
}

/// The classifier, in the kernel.
pub struct Classifier {
    loaded: LoadedObject,
    trailer: Trailer,
    stations: HashMap<IngressKey, IngressSettings>,
    local: HashSet<IpAddr>,
    queues: HashMap<u32, QueueRange>,
    attached: HashMap<u32, AttachedProgram>,
}

/// A program at an interface, for as long as this is held.
struct AttachedProgram {
    how: Attachment,
    _held: FdLink,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Attachment {
    Tcx,
    Xdp(&'static str, XdpAttachMode),
}

impl Classifier {
    /// Loads it. It does nothing yet: there is no station.
    pub fn load() -> Result<Classifier, ClassifyError> {
        let trailer = random()?;
        let longest = (FRAME_CAPACITY - TAG) as u32;
        let loaded = bpf::CLASSIFY.load_with(|loader| {
            loader.override_global("TRAILER", &trailer, true).override_global("LONGEST", &longest, true);
        })?;
        let (stations, local, queues) = (HashMap::new(), HashSet::new(), HashMap::new());
        Ok(Classifier { loaded, trailer, stations, local, queues, attached: HashMap::new() })
    }

    /// The mark of what goes back to the kernel.
    pub fn trailer(&self) -> Trailer {
        self.trailer
    }

    /// Has frames to these stations forwarded, and to no others.
    pub fn set_ingress(
        &mut self,
        wanted: &HashMap<IngressKey, IngressSettings>,
    ) -> Result<(), ClassifyError> {
        let gone: Vec<_> =
            self.stations.keys().filter(|place| !wanted.contains_key(place)).copied().collect();
        for place in gone {
            stations(&mut self.loaded)?.remove(&key(place)).map_err(ClassifyError::Map)?;
            self.stations.remove(&place);
        }
        for (place, station) in wanted {
            if self.stations.get(place) != Some(station) {
                self.write_station(*place, *station)?;
                self.stations.insert(*place, *station);
            }
        }
        Ok(())
    }

    fn write_station(&mut self, place: IngressKey, station: IngressSettings) -> Result<(), ClassifyError> {
        let queues = self.queues.get(&place.interface).copied().unwrap_or_default();
        let written = stations(&mut self.loaded)?.insert(key(place), value(station, queues), 0);
        written.map_err(ClassifyError::Map)
    }

    /// Has packets to these addresses left to the kernel, and to no others: its own ones, and broadcasts.
    pub fn set_local_addresses(&mut self, wanted: &HashSet<IpAddr>) -> Result<(), ClassifyError> {
        // New ones first: what is for this host is never forwarded.
        let new: Vec<_> = wanted.difference(&self.local).copied().collect();
        for address in new {
            self.write_local(address, true)?;
            self.local.insert(address);
        }
        let gone: Vec<_> = self.local.difference(wanted).copied().collect();
        for address in gone {
            self.write_local(address, false)?;
            self.local.remove(&address);
        }
        Ok(())
    }

    fn write_local(&mut self, address: IpAddr, is_local: bool) -> Result<(), ClassifyError> {
        match address {
            IpAddr::V4(address) => write(self.loaded.map("local")?, address.octets(), is_local),
            IpAddr::V6(address) => write(self.loaded.map("local6")?, address.octets(), is_local),
        }
    }

    /// The filter of packet sockets, to open a [`super::packet::PacketPort`] with.
    pub fn filter(&mut self) -> Result<BorrowedFd<'_>, ClassifyError> {
        let filter: &mut SocketFilter =
            self.loaded.program(
                "to_ring",
                |filter: &mut SocketFilter| {
                    if filter.fd().is_ok() { Ok(()) } else { filter.load() }
                },
            )?;
        Ok(filter.fd().map_err(ClassifyError::program)?.as_fd())
    }

    /// Has the kernel drop what the filter lets through from now on.
    pub fn take_from_kernel(&mut self, link: &Link) -> Result<(), ClassifyError> {
        if self.how(link) == Some(Attachment::Tcx) {
            return Ok(());
        }
        let failed = |error| ClassifyError::Tcx { interface: link.name().to_owned(), error: Box::new(error) };
        let program = self.loaded.program("not_to_kernel", |program: &mut SchedClassifier| {
            if program.fd().is_ok() { Ok(()) } else { program.load() }
        })?;
        // Before all others: one that lets a frame through for good would have the kernel forward it too.
        let order = TcAttachOptions::TcxOrder(LinkOrder::first());
        let id = program.attach_with_options(link.name(), TcAttachType::Ingress, order).map_err(failed)?;
        let link_of_program = program.take_link(id).map_err(failed)?;
        let held = FdLink::try_from(link_of_program).map_err(|_| ClassifyError::no_link(link))?;
        self.queues.remove(&link.index());
        self.attached.insert(link.index(), AttachedProgram { how: Attachment::Tcx, _held: held });
        Ok(())
    }

    fn how(&self, link: &Link) -> Option<Attachment> {
        self.attached.get(&link.index()).map(|attached| attached.how)
    }

    /// Has frames moved to these sockets from now on, one for each queue from the first on. What comes in by other
    /// queues stays with the kernel. A program that is there already stays: drivers lose frames when one comes or goes.
    pub fn redirect(
        &mut self,
        link: &Link,
        what: RedirectScope,
        sockets: &[BorrowedFd<'_>],
    ) -> Result<XdpAttachMode, ClassifyError> {
        self.place_sockets(link, sockets)?;
        let untagged = IngressKey { interface: link.index(), vlan: None };
        if what == RedirectScope::All && !self.stations.contains_key(&untagged) {
            let nobody = IngressSettings { mac: Mac([0; 6]), forwards_inet: false, forwards_inet6: false };
            self.stations.insert(untagged, nobody);
        }
        let here = |(place, _): &(&IngressKey, &IngressSettings)| place.interface == link.index();
        let stations: Vec<_> = self.stations.iter().filter(here).map(|(at, who)| (*at, *who)).collect();
        for (place, station) in stations {
            self.write_station(place, station)?;
        }
        self.attach_xdp(link, what.program())
    }

    fn place_sockets(&mut self, link: &Link, sockets: &[BorrowedFd<'_>]) -> Result<(), ClassifyError> {
        self.queues.remove(&link.index());
        let full = || ClassifyError::TooManySockets { interface: link.name().to_owned() };
        let queues = self.room_for(sockets.len() as u32).ok_or_else(full)?;
        let mut map: XskMap<&mut MapData> = self.loaded.map("sockets")?;
        for (index, socket) in (queues.first..).zip(sockets) {
            map.set(index, *socket, 0).map_err(ClassifyError::Map)?;
        }
        self.queues.insert(link.index(), queues);
        Ok(())
    }

    /// Places for so many sockets, in the first gap that others leave.
    fn room_for(&self, count: u32) -> Option<QueueRange> {
        let mut taken: Vec<_> = self.queues.values().copied().collect();
        taken.sort_by_key(|queues| queues.first);
        let mut first = 0;
        for others in taken {
            if others.first - first >= count {
                break;
            }
            first = others.first + others.count;
        }
        (first + count <= SOCKETS).then_some(QueueRange { first, count })
    }

    /// In the driver if it can, which is said if it cannot.
    fn attach_xdp(&mut self, link: &Link, program: &'static str) -> Result<XdpAttachMode, ClassifyError> {
        if let Some(Attachment::Xdp(there, place)) = self.how(link)
            && there == program
        {
            return Ok(place);
        }
        let loaded = self.loaded.xdp(program)?;
        let (held, place) = match attach(loaded, link, XdpMode::Driver) {
            Err(ClassifyError::Xdp { error, .. }) if error::is(&error, libc::EOPNOTSUPP) => {
                (attach(loaded, link, XdpMode::Skb)?, XdpAttachMode::Generic)
            }
            attached => (attached?, XdpAttachMode::Driver),
        };
        self.attached
            .insert(link.index(), AttachedProgram { how: Attachment::Xdp(program, place), _held: held });
        Ok(place)
    }

    /// Leaves an interface to the kernel again.
    pub fn release(&mut self, link: &Link) {
        self.attached.remove(&link.index());
        self.queues.remove(&link.index());
    }

    /// Attachment many frames got which of the [`CLASSES`].
    pub fn counts(&mut self) -> Result<[u64; CLASSES.len()], ClassifyError> {
        let map: PerCpuArray<&mut MapData, u64> = self.loaded.map("counts")?;
        let mut counts = [0; CLASSES.len()];
        for (index, count) in (0..).zip(&mut counts) {
            *count = map.get(&index, 0).map_err(ClassifyError::Map)?.iter().sum();
        }
        Ok(counts)
    }
}

fn attach(program: &mut Xdp, link: &Link, mode: XdpMode) -> Result<FdLink, ClassifyError> {
    let failed = |error: ProgramError| ClassifyError::xdp(link, error);
    let id = program.attach_to_if_index(link.index(), mode).map_err(failed)?;
    let link_of_program = program.take_link(id).map_err(failed)?;
    FdLink::try_from(link_of_program).map_err(|_| ClassifyError::no_link(link))
}

type Stations<'m> = maps::HashMap<&'m mut MapData, [u32; 2], [u8; 16]>;

fn stations(loaded: &mut LoadedObject) -> Result<Stations<'_>, ClassifyError> {
    Ok(loaded.map("stations")?)
}

/// `struct place` in classify.c.
fn key(place: IngressKey) -> [u32; 2] {
    [place.interface, place.vlan.unwrap_or(0).into()]
}

/// `struct station` in classify.c.
fn value(station: IngressSettings, queues: QueueRange) -> [u8; 16] {
    let mut value = [0; 16];
    value[..6].copy_from_slice(&station.mac.0);
    value[6] = station.forwards_inet.into();
    value[7] = station.forwards_inet6.into();
    value[8..12].copy_from_slice(&queues.first.to_ne_bytes());
    value[12..].copy_from_slice(&queues.count.to_ne_bytes());
    value
}

fn write<K: aya::Pod>(
    mut map: maps::HashMap<&mut MapData, K, u8>,
    key: K,
    is_there: bool,
) -> Result<(), ClassifyError> {
    let written: Result<(), MapError> = if is_there { map.insert(key, 1, 0) } else { map.remove(&key) };
    written.map_err(ClassifyError::Map)
}

/// Bytes that nobody can guess.
fn random() -> Result<Trailer, ClassifyError> {
    let mut bytes = Trailer::default();
    let read = std::fs::File::open("/dev/urandom")
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes));
    read.map(|()| bytes).map_err(ClassifyError::Random)
}
