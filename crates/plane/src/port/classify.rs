//! The classifier in the kernel (`bpf/classify.c`): separates the frames that fullview forwards from those that stay with the
//! kernel.
//!
//! With AF_XDP sockets, an XDP program redirects the forwardable frames to them; the kernel handles all other frames as
//! usual. A packet socket receives copies only. So a socket filter accepts the forwardable frames, and a second program
//! (tcx) drops the frames that the filter accepted, before the kernel forwards them too.
//!
//! All programs end with this process, however it ends, and the kernel forwards alone. Other interfaces are not affected.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::AtomicU64;

use aya::EbpfLoader;
use aya::maps::{self, Array, MapData, MapError, PerCpuArray, XskMap};
use aya::programs::links::FdLink;
use aya::programs::tc::TcAttachOptions;
use aya::programs::xdp::XdpMode;
use aya::programs::{LinkOrder, ProgramError, SchedClassifier, TcAttachType, Xdp};

use super::link::Link;
use super::sys::SharedWords;
use crate::bpf::{self, BpfError, LoadedObject};
use crate::burst::FRAME_CAPACITY;
use crate::kernel_flows::{FlowMemory, FlowRegions, FlowWords, Region};
use crate::link_program::{self, LinkProgramError};
use crate::report_time::ReportTime;
use crate::verdict::LimitedReason;
use crate::wire::ethernet::{Mac, TAG};

pub use error::ClassifyError;

mod error;

/// Names of the classes, in the order of `enum class` in classify.c.
pub const CLASSES: [&str; 15] = [
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
    "reinjected",
    "router_stalled",
    "known_flow",
    "unsent",
    "tcp_beside_large",
];

/// The reason for which frames of each class stay with the kernel, if they do, by the names of other counters where there are any.
const KERNEL_REASONS: [Option<&str>; CLASSES.len()] = [
    Some("not_ours"),
    None,
    Some("not_ip"),
    Some("local"),
    Some("group"),
    Some("special_address"),
    Some(LimitedReason::TtlExpired.name()),
    Some("options"),
    Some("malformed"),
    Some("too_long"),
    None,
    Some("router_stalled"),
    None,
    None,
    Some("tcp_beside_large"),
];

/// Where a kernel with type information (BTF) has it.
const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Sockets of all interfaces and queues together: the room in classify.c.
const SOCKETS: u32 = 1024;

/// An ingress interface, by device and VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IngressKey {
    /// The index of the device in the kernel.
    pub interface: u32,
    /// The VLAN; `None` for frames without a tag.
    pub vlan: Option<u16>,
}

/// Which frames of an ingress interface fullview forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngressSettings {
    /// The router's MAC address; frames to other addresses stay with the kernel.
    pub mac: Mac,
    /// Whether IPv4 is forwarded.
    pub forwards_inet: bool,
    /// Whether IPv6 is forwarded.
    pub forwards_inet6: bool,
    /// Whether packet sockets leave all TCP to the kernel, as they leave the large frames of its connections.
    pub leaves_tcp: bool,
}

/// Follows the packet in reinjected frames: a number that only this process knows.
pub type Trailer = [u8; 16];

/// The sockets of an interface, one for each queue.
#[derive(Clone, Copy, Default)]
struct QueueRange {
    first: u32,
    count: u32,
}

/// How an XDP program is attached to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpAttachMode {
    /// In the driver, before the kernel allocates a packet.
    Driver,
    /// After the driver, which does not support XDP. Every frame is copied once more.
    Generic,
}

/// Which frames an XDP program redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectScope {
    /// Forwardable frames.
    Forwardable,
    /// All frames: for a generator or receiver.
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

/// The classifier's programs and maps in the kernel.
pub struct Classifier {
    loaded: LoadedObject,
    trailer: Trailer,
    is_filtered: bool,
    /// The room for known flows, if there is any, and the keys of their hash.
    flows: Option<FlowRegions>,
    flow_keys: [u64; 2],
    ingress: HashMap<IngressKey, IngressSettings>,
    local: HashSet<IpAddr>,
    queues: HashMap<u32, QueueRange>,
    attached: HashMap<u32, AttachedProgram>,
}

/// A program on an interface, attached until this value is dropped.
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
    /// Loads the classifier. It takes no frames until [`Self::set_ingress`].
    pub fn load() -> Result<Classifier, ClassifyError> {
        Classifier::load_with(false, None)
    }

    /// The same for a router with a filter: the kernel gets no unicast packet to another host before the filter has judged
    /// it, as the kernel may answer such a packet. There may be room for known flows that the programs forward.
    pub fn load_for_filter(flows: Option<FlowRegions>) -> Result<Classifier, ClassifyError> {
        Classifier::load_with(true, flows)
    }

    fn load_with(is_filtered: bool, flows: Option<FlowRegions>) -> Result<Classifier, ClassifyError> {
        let trailer = random()?;
        let flow_keys = flow_keys(random()?);
        let longest = (FRAME_CAPACITY - TAG) as u32;
        let filtered = u8::from(is_filtered);
        let buckets = flows.map_or(0, |flows| flows.values(Region::Buckets));
        let loaded = bpf::CLASSIFY.load_with(|loader| {
            loader.override_global("TRAILER", &trailer, true).override_global("LONGEST", &longest, true);
            loader.override_global("FILTERED", &filtered, true).override_global(
                "FLOW_KEYS",
                &flow_keys,
                true,
            );
            loader.override_global("FLOW_BUCKETS", &buckets, true);
            flows.into_iter().for_each(|flows| make_room(loader, flows));
        })?;
        let (ingress, local, queues) = (HashMap::new(), HashSet::new(), HashMap::new());
        let attached = HashMap::new();
        Ok(Classifier { loaded, trailer, is_filtered, flows, flow_keys, ingress, local, queues, attached })
    }

    /// The memory in which the programs find known flows, if there is room for any.
    pub fn flow_memory(&mut self) -> Result<Option<FlowMemory>, ClassifyError> {
        let Some(flows) = self.flows else { return Ok(None) };
        let part = |region| -> Result<Box<dyn FlowWords>, ClassifyError> {
            Ok(Box::new(map_words(&mut self.loaded, map_of(region))?))
        };
        FlowMemory::new(flows, self.flow_keys, part).map(Some)
    }

    /// The memory in which a program notes failed links.
    pub fn link_words(&mut self) -> Result<SharedWords, ClassifyError> {
        map_words(&mut self.loaded, "noted_links")
    }

    /// Attaches the program that notes failed links there within the kernel, before it leaves them itself, once the network namespace
    /// that is returned is noted there too.
    ///
    /// # Errors
    /// Kernels without type information cannot.
    pub fn note_failed_links(&mut self) -> Result<u32, LinkProgramError> {
        link_program::attach(&mut self.loaded)
    }

    /// The trailer of reinjected frames.
    pub fn trailer(&self) -> Trailer {
        self.trailer
    }

    /// Sets the ingress interfaces whose frames are forwarded.
    pub fn set_ingress(
        &mut self,
        wanted: &HashMap<IngressKey, IngressSettings>,
    ) -> Result<(), ClassifyError> {
        let gone: Vec<_> = self.ingress.keys().filter(|place| !wanted.contains_key(place)).copied().collect();
        for old in gone {
            ingress_map(&mut self.loaded)?.remove(&key(old)).map_err(ClassifyError::Map)?;
            self.ingress.remove(&old);
        }
        for (key, settings) in wanted {
            if self.ingress.get(key) != Some(settings) {
                self.write_ingress(*key, *settings)?;
                self.ingress.insert(*key, *settings);
            }
        }
        Ok(())
    }

    fn write_ingress(&mut self, place: IngressKey, settings: IngressSettings) -> Result<(), ClassifyError> {
        let queues = self.queues.get(&place.interface).copied().unwrap_or_default();
        let written = ingress_map(&mut self.loaded)?.insert(key(place), value(settings, queues), 0);
        written.map_err(ClassifyError::Map)
    }

    /// Sets the addresses whose packets stay with the kernel: its own addresses and broadcast addresses.
    pub fn set_local_addresses(&mut self, wanted: &HashSet<IpAddr>) -> Result<(), ClassifyError> {
        // Adds first, so that packets to this host are never forwarded.
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

    /// Reports that the router has taken in everything until then. Once it has reported, frames stay with the kernel when it does
    /// not for a second.
    pub fn report(&mut self, complete_until: ReportTime) -> Result<(), ClassifyError> {
        let mut map: Array<&mut MapData, u64> = self.loaded.map("reported")?;
        map.set(0, complete_until.nanos(), 0).map_err(ClassifyError::Map)
    }

    /// The filter of packet sockets, to open a [`super::packet::PacketPort`] with.
    pub fn filter(&mut self) -> Result<BorrowedFd<'_>, ClassifyError> {
        let name = self.filter_program()?;
        let filter = self.loaded.socket_filter(name)?;
        Ok(filter.fd().map_err(ClassifyError::program)?.as_fd())
    }

    /// The filter that knows what the packets in a frame of several are, which only a router with a filter needs, or the one that does
    /// not where the kernel refuses that.
    fn filter_program(&mut self) -> Result<&'static str, ClassifyError> {
        if !self.is_filtered || !Path::new(KERNEL_TYPES).exists() {
            return Ok("to_ring");
        }
        match self.loaded.socket_filter("to_ring_by_kind") {
            Ok(_) => Ok("to_ring_by_kind"),
            Err(BpfError::Program { .. }) => Ok("to_ring"),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the kernel drop the frames that the socket filter accepts, from now on.
    pub fn take_from_kernel(&mut self, link: &Link) -> Result<(), ClassifyError> {
        if self.how(link) == Some(Attachment::Tcx) {
            return Ok(());
        }
        let failed = |error| ClassifyError::Tcx { interface: link.name().to_owned(), error: Box::new(error) };
        let program = self.loaded.program("not_to_kernel", |program: &mut SchedClassifier| {
            if program.fd().is_ok() { Ok(()) } else { program.load() }
        })?;
        // Before all other programs: one that accepts a frame finally would let the kernel forward it too.
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

    /// Redirects frames to these sockets from now on, one for each queue, beginning with the first. Frames of other queues stay
    /// with the kernel. A program that is attached already stays, because drivers lose frames when a program is replaced.
    pub fn redirect(
        &mut self,
        link: &Link,
        what: RedirectScope,
        sockets: &[BorrowedFd<'_>],
    ) -> Result<XdpAttachMode, ClassifyError> {
        self.place_sockets(link, sockets)?;
        let untagged = IngressKey { interface: link.index(), vlan: None };
        if what == RedirectScope::All && !self.ingress.contains_key(&untagged) {
            let no_mac = IngressSettings {
                mac: Mac([0; 6]),
                forwards_inet: false,
                forwards_inet6: false,
                leaves_tcp: false,
            };
            self.ingress.insert(untagged, no_mac);
        }
        let is_here = |(key, _): &(&IngressKey, &IngressSettings)| key.interface == link.index();
        let here: Vec<_> =
            self.ingress.iter().filter(is_here).map(|(key, settings)| (*key, *settings)).collect();
        for (key, settings) in here {
            self.write_ingress(key, settings)?;
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

    /// A range for this number of sockets, in the first sufficient gap.
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

    /// Attaches a program in the driver, or after it if the driver does not support XDP.
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

    /// Detaches from an interface.
    pub fn release(&mut self, link: &Link) {
        self.attached.remove(&link.index());
        self.queues.remove(&link.index());
    }

    /// The number of frames in each of the [`CLASSES`].
    pub fn counts(&self) -> Result<[u64; CLASSES.len()], ClassifyError> {
        let map =
            self.loaded.ebpf.map("counts").and_then(|map| PerCpuArray::<&MapData, u64>::try_from(map).ok());
        let map = map.ok_or_else(|| self.loaded.missing_map("counts"))?;
        let mut counts = [0; CLASSES.len()];
        for (index, count) in (0..).zip(&mut counts) {
            *count = map.get(&index, 0).map_err(ClassifyError::Map)?.iter().sum();
        }
        Ok(counts)
    }

    /// The number of frames that stayed with the kernel, by reason. For a router with a filter, those that are too long were
    /// dropped.
    pub fn left_to_kernel(&self) -> Result<Vec<(&'static str, u64)>, ClassifyError> {
        let counts = self.counts()?;
        let left = KERNEL_REASONS.into_iter().zip(counts);
        let left = left.filter_map(|(reason, count)| Some((reason?, count)));
        Ok(left.filter(|(reason, _)| !self.is_filtered || *reason != "too_long").collect())
    }
}

fn attach(program: &mut Xdp, link: &Link, mode: XdpMode) -> Result<FdLink, ClassifyError> {
    let failed = |error: ProgramError| ClassifyError::xdp(link, error);
    let id = program.attach_to_if_index(link.index(), mode).map_err(failed)?;
    let link_of_program = program.take_link(id).map_err(failed)?;
    FdLink::try_from(link_of_program).map_err(|_| ClassifyError::no_link(link))
}

type IngressMap<'m> = maps::HashMap<&'m mut MapData, [u32; 2], [u8; 20]>;

fn ingress_map(loaded: &mut LoadedObject) -> Result<IngressMap<'_>, ClassifyError> {
    Ok(loaded.map("ingress")?)
}

/// `struct ingress_key` in classify.c.
fn key(place: IngressKey) -> [u32; 2] {
    [place.interface, place.vlan.unwrap_or(0).into()]
}

/// `struct ingress` in classify.c.
fn value(settings: IngressSettings, queues: QueueRange) -> [u8; 20] {
    let mut value = [0; 20];
    value[..6].copy_from_slice(&settings.mac.0);
    value[6] = settings.forwards_inet.into();
    value[7] = settings.forwards_inet6.into();
    value[8..12].copy_from_slice(&queues.first.to_ne_bytes());
    value[12..16].copy_from_slice(&queues.count.to_ne_bytes());
    value[16..].copy_from_slice(&u32::from(settings.leaves_tcp).to_ne_bytes());
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

/// The maps that hold known flows.
fn map_of(region: Region) -> &'static str {
    match region {
        Region::Head => "flow_head",
        Region::Buckets => "flow_buckets",
        Region::Entries => "flows",
        Region::Windows => "flow_windows",
    }
}

fn make_room(loader: &mut EbpfLoader<'_>, flows: FlowRegions) {
    for region in Region::ALL {
        loader.map_max_entries(map_of(region), flows.values(region));
    }
}

/// Maps an array of one value, or of values whose size is a multiple of eight bytes.
fn map_words(loaded: &mut LoadedObject, name: &'static str) -> Result<SharedWords, ClassifyError> {
    let missing = loaded.missing_map(name);
    let Some(maps::Map::Array(map)) = loaded.ebpf.map_mut(name) else { return Err(missing.into()) };
    let info = map.info().map_err(ClassifyError::Map)?;
    let bytes = info.value_size() as usize * info.max_entries() as usize;
    SharedWords::new(map.fd().as_fd(), bytes).map_err(|error| ClassifyError::Mapping { name, error })
}

/// A product with an odd factor keeps all of a word.
fn flow_keys(random: Trailer) -> [u64; 2] {
    let both = u128::from_ne_bytes(random);
    [both as u64, (both >> 64) as u64 | 1]
}

impl FlowWords for SharedWords {
    fn words(&self) -> &[AtomicU64] {
        self.double_words()
    }
}

/// Random bytes.
fn random() -> Result<Trailer, ClassifyError> {
    let mut bytes = Trailer::default();
    let read = std::fs::File::open("/dev/urandom")
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes));
    read.map(|()| bytes).map_err(ClassifyError::Random)
}
