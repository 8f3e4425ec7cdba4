//! The engine in the kernel: a BPF program (`bpf/forward.c`), at XDP or at tcx, forwards by copies of the compiled tables.
//!
//! The tables stay in this process, where the framework applies every change. [`Engine::sync`] copies the changed
//! blocks to the idle one of two generations in BPF maps and switches the program to it; `generation.rs` explains why
//! no packet sees a mixture. The program passes every packet that it does not forward to the kernel unchanged, so the
//! kernel must have the same routes. When this process ends, however it ends, the kernel removes the program and
//! forwards alone, unless another process has taken the links over ([`Engine::take_links`]).

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use aya::Ebpf;
use aya::maps::{ArrayOfMaps, Map, MapData, PerCpuArray, PerCpuValues};
use aya::programs::{SchedClassifier, Xdp};

use crate::bpf::{self, BpfError, LoadedObject};
use crate::link_program::{self, LinkProgramError};
use crate::port::sys::{SharedWords, interface_name};
use crate::verdict::LimitedReason;
use crate::view::TableReaders;

mod attachment;
mod block_ranges;
mod bound_program;
mod config;
mod counters;
mod devices;
mod error;
mod from_view;
mod generation;
mod layout;
mod link_failures;
mod observed;
mod rules;
mod section_copy;
mod spare_room;
mod table_images;
mod words;

pub use crate::port::sys::bpf_call::XdpPlace;
pub use crate::program_verdict::XdpReason;
pub use crate::report_time::{ReportClock, ReportTime};
pub use config::{XdpConfig, XdpInterface, XdpNextHop};
pub use counters::XdpCounters;
pub use error::EngineError;
pub use from_view::XdpDevice;
pub use link_failures::LinkFailures;
pub use observed::ProgramObserver;
pub use rules::XdpRules;
pub use table_images::{INET_ALGORITHM, INET6_ALGORITHM};

use attachment::{AttachMode, Buffers, WantedLink, attach, replace};
use bound_program::BoundProgram;
use config::CompiledConfig;
use counters::CounterMaps;
use devices::Devices;
use generation::Generation;
use layout::{COUNTED, RULES, VRF, VRFS};
use table_images::EmptyTables;

/// Each program without the code of `bpf/observe.h`, and with it; those at XDP for frames in one buffer, and in several.
const PROGRAMS: [[&str; 2]; 2] =
    [["forward", "forward_observed"], ["forward_multi", "forward_multi_observed"]];
const BOUND_PROGRAMS: [[&str; 2]; 2] =
    [["forward_bound", "forward_bound_observed"], ["forward_bound_multi", "forward_bound_multi_observed"]];
const SKB_PROGRAMS: [&str; 2] = ["forward_skb", "forward_skb_observed"];

/// The programs and the tables that they look up in.
pub struct Engine {
    loaded: LoadedObject,
    /// A program that is loaded later refers to this map by its descriptor, as to the others.
    _vrfs: MapData,
    current: ArrayOfMaps<MapData>,
    /// The idle generation, and the one that the program uses.
    generations: [Generation; 2],
    counters: CounterMaps,
    devices: Devices,
    config: CompiledConfig,
    /// The number of the configuration, which grows with each.
    number: u64,
    /// The main table first; empty before the first configuration.
    tables: Vec<TableReaders>,
    empty: EmptyTables,
    /// Whether the program uses the tables of the last call.
    serves: bool,
    /// The programs for interfaces whose driver may strip tags; none if the kernel cannot tell such tags.
    bound: [[Option<BoundProgram>; 2]; 2],
    /// Whether the programs are those with the code of `bpf/observe.h`.
    is_observed: bool,
    /// The interfaces that the program has to be attached to.
    wanted: Vec<WantedLink>,
    /// Whether the programs wait for the links of another process.
    awaits_links: bool,
    /// Links of another process by the index of their interface, and the programs for them: a program is loaded before, because
    /// the kernel takes long to verify it.
    taken_links: BTreeMap<u32, OwnedFd>,
    ready: BTreeMap<u32, OwnedFd>,
}

impl Engine {
    /// The highest number of VRF tables.
    pub const MOST_VRFS: usize = VRFS;

    /// The highest number of interfaces.
    pub const MOST_INTERFACES: u16 = COUNTED as u16 - 1;

    /// The highest number of rules in the lists of all interfaces; interfaces with equal lists share them.
    pub const MOST_RULES: usize = RULES;

    /// Makes the maps. The programs are loaded when they are to be attached; they pass every packet until the first
    /// [`Self::sync`].
    pub fn load() -> Result<Engine, EngineError> {
        Engine::with_room(0)
    }

    /// As [`Self::load`], with room for this number of VRF tables, 2.5 MiB each.
    pub fn with_room(vrfs: usize) -> Result<Engine, EngineError> {
        if vrfs > VRFS {
            return Err(EngineError::TooLarge { what: "tables of VRFs", needed: vrfs, limit: VRFS });
        }
        // A map has at least one entry.
        let entries = 2 * vrfs.max(1);
        let mut loaded = bpf::FORWARD.load_with(|loader| {
            loader.map_max_entries("vrfs", entries as u32);
        })?;
        let bound = [
            bound_programs(BOUND_PROGRAMS[0], Buffers::One, &loaded.ebpf)?,
            bound_programs(BOUND_PROGRAMS[1], Buffers::Several, &loaded.ebpf)?,
        ];
        let current = take(&mut loaded, "current")?.try_into()?;
        let counters = CounterMaps::new(take(&mut loaded, "counted")?, take(&mut loaded, "not_forwarded")?)?;
        let devices = Devices::new([take(&mut loaded, "devices")?, take(&mut loaded, "multi_devices")?])?;
        let vrf_map = array(&mut loaded, "vrfs")?;
        let memory =
            SharedWords::new(vrf_map.fd().as_fd(), 4 * entries * VRF).map_err(EngineError::Mapping)?;
        let memory = Arc::new(memory);
        let mut generation =
            |number, name| Generation::new(array(&mut loaded, name)?, number, vrfs, Arc::clone(&memory));
        let generations = [generation(0, "generation_0")?, generation(1, "generation_1")?];
        Ok(Engine {
            loaded,
            _vrfs: vrf_map,
            current,
            generations,
            counters,
            devices,
            config: CompiledConfig::default(),
            number: 0,
            tables: Vec::new(),
            empty: EmptyTables::new()?,
            serves: false,
            bound,
            is_observed: false,
            wanted: Vec::new(),
            awaits_links: false,
            taken_links: BTreeMap::new(),
            ready: BTreeMap::new(),
        })
    }

    /// Limits how many packets of a reason each processor passes to the kernel in a second. It has no effect on reasons for which
    /// the kernel may do more than answer the sender.
    pub fn limit(&mut self, reason: LimitedReason, per_second: NonZeroU32) -> Result<(), EngineError> {
        const SECOND: u64 = 1_000_000_000;
        let Some(limited) = XdpReason::within(reason) else { return Ok(()) };
        let limit = [(SECOND / u64::from(per_second.get())).max(1), 0];
        let processors = aya::util::nr_cpus().map_err(|(_, error)| EngineError::Mapping(error))?;
        let limits = PerCpuValues::try_from(vec![limit; processors]).map_err(EngineError::Mapping)?;
        let mut map: PerCpuArray<&mut MapData, [u64; 2]> = self.loaded.map("limits")?;
        Ok(map.set(limited as u32, limits, 0)?)
    }

    /// Replaces the configuration and the tables. The tables are the main one and those of the VRFs, by the numbers in the
    /// interfaces of the configuration. Their algorithms have to be [`INET_ALGORITHM`] and [`INET6_ALGORITHM`].
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn publish(&mut self, config: &XdpConfig, tables: Vec<TableReaders>) -> Result<usize, EngineError> {
        // If this fails, a later change of the old tables must not make the program forward by them again.
        self.tables.clear();
        self.config = CompiledConfig::new(config, self.devices.of(config))
            .or_else(|error| self.or_detach(Err(error)))?;
        (self.number, self.tables) = (self.number + 1, tables);
        self.counters.reads(config);
        self.sync()
    }

    /// Copies the changes of the tables to the kernel, and returns how many blocks were copied. Call this in the thread that
    /// writes the tables, or while that thread waits. When the call returns, no packet uses the tables before the change.
    /// It does nothing before the first [`Self::publish`].
    ///
    /// # Errors
    /// On an error the program is detached and the kernel forwards alone, until a later call succeeds.
    pub fn sync(&mut self) -> Result<usize, EngineError> {
        if self.tables.is_empty() {
            return Ok(0);
        }
        let switched = self.switch();
        let copied = self.or_detach(switched)?;
        self.attach_all()?;
        Ok(copied)
    }

    /// Reports that the tables are complete as of this time. After the first report, the program passes all packets to the
    /// kernel once the last one is older than a second.
    pub fn report(&self, time: ReportTime) {
        self.generations.iter().for_each(|generation| generation.report(time.ticks()));
    }

    /// What tells the program of failed links, from any thread.
    pub fn link_failures(&self) -> LinkFailures {
        LinkFailures::new(self.generations.each_ref().map(|generation| Arc::clone(&generation.memory)))
    }

    /// Attaches the program that notes failed links within the kernel, before it leaves them and reports that. It does so from
    /// [`LinkFailures::begin`] with the network namespace that is returned, which is this thread's, to [`LinkFailures::end`]; that a
    /// link works again has to be noted by [`LinkFailures::note`].
    ///
    /// # Errors
    /// Kernels without type information cannot; then only what is noted counts.
    pub fn note_failed_links(&mut self) -> Result<u32, LinkProgramError> {
        link_program::attach(&mut self.loaded)
    }

    fn switch(&mut self) -> Result<usize, EngineError> {
        let Engine { generations: [idle, _], tables, empty, .. } = self;
        let needs = |table| empty.with(table, |images| images.shared().map(|section| section.blocks()));
        idle.make_room(&tables.iter().map(needs).collect::<Result<Vec<_>, _>>()?)?;
        let mut copied = 0;
        for (number, table) in tables.iter().enumerate() {
            copied += empty.with(table, |images| idle.follow(number, images))?;
        }
        idle.configure(self.number, &self.config);
        self.current.set(0, &idle.map, 0)?;
        self.generations.swap(0, 1);
        self.devices.release_unused();
        Ok(copied)
    }

    /// Attaches the program to an interface, now or at the first successful [`Self::sync`]. The interface has to leave
    /// VLAN tags in the frames that it receives: otherwise frames of any VLAN would be forwarded as untagged ones.
    pub fn attach(&mut self, ifindex: u32, place: XdpPlace) -> Result<(), EngineError> {
        self.want(ifindex, AttachMode::Plain(place, Buffers::One))
    }

    /// As [`Self::attach`], in the driver, for an interface that may strip VLAN tags if its driver tells them to XDP programs
    /// (`NETDEV_XDP_RX_METADATA_VLAN_TAG`).
    ///
    /// # Errors
    /// Fails if [`Self::reads_stripped_tags`] is false.
    pub fn attach_reading_tags(&mut self, ifindex: u32) -> Result<(), EngineError> {
        self.want(ifindex, AttachMode::ReadsTags(Buffers::One))
    }

    /// Attaches the program to an interface at tcx, after other programs there: Linux 6.6 and newer. Any interface will do.
    pub fn attach_at_tcx(&mut self, ifindex: u32) -> Result<(), EngineError> {
        self.want(ifindex, AttachMode::Tcx)
    }

    /// Whether this kernel lets programs read the VLAN tags that drivers strip: Linux 6.8 and newer.
    pub fn reads_stripped_tags(&self) -> bool {
        self.bound[0][0].is_some()
    }

    fn want(&mut self, ifindex: u32, mode: AttachMode) -> Result<(), EngineError> {
        match mode {
            AttachMode::Plain(..) => _ = self.program()?,
            AttachMode::Tcx => _ = self.skb_program()?,
            // Each interface has its own copy.
            AttachMode::ReadsTags(_) => {}
        }
        // The device may be another one than had this index before.
        self.devices.enter_again(ifindex);
        let wanted = WantedLink { ifindex, mode, link: None };
        let wanted = if self.serves { self.brought_in(wanted)? } else { wanted };
        self.wanted.push(wanted);
        Ok(())
    }

    /// Detaches the program from an interface, and leaves it at all others as it is. Packets that are in it are still forwarded.
    pub fn detach(&mut self, ifindex: u32) {
        self.wanted.retain(|wanted| wanted.ifindex != ifindex);
        self.ready.remove(&ifindex);
    }

    fn attach_all(&mut self) -> Result<(), EngineError> {
        for at in 0..self.wanted.len() {
            let WantedLink { ifindex, mode, ref link } = self.wanted[at];
            if link.is_none() {
                self.wanted[at] = self.brought_in(WantedLink { ifindex, mode, link: None })?;
            }
        }
        Ok(())
    }

    /// Attaches the program to an interface, or makes it ready for that while the links of another process are awaited.
    fn brought_in(&mut self, wanted: WantedLink) -> Result<WantedLink, EngineError> {
        let WantedLink { ifindex, mode, .. } = wanted;
        if !self.awaits_links {
            let (link, mode) = self.attach_now(ifindex, mode)?;
            return Ok(WantedLink { ifindex, mode, link: Some(link) });
        }
        if !self.ready.contains_key(&ifindex) {
            let program = self.loaded_program(ifindex, mode)?;
            self.ready.insert(ifindex, program);
        }
        Ok(wanted)
    }

    /// Attaches the program; returns the mode that the driver took. It refuses programs that need each frame in one buffer if
    /// the MTU is larger.
    fn attach_now(&mut self, ifindex: u32, mode: AttachMode) -> Result<(OwnedFd, AttachMode), EngineError> {
        let refused = match self.attach_or_replace(ifindex, mode) {
            Ok(attached) => return Ok((attached, mode)),
            Err(refused) => refused,
        };
        // Drivers refuse an MTU, even that of a peer, by various errors. What was refused because the interface is gone is not
        // tried again: a program that was loaded stays so.
        let larger = mode.for_large_frames().filter(|_| interface_name(ifindex).is_ok());
        let Some(mode) = larger else { return Err(refused) };
        let attached = self.attach_or_replace(ifindex, mode);
        // What was refused first is what can be mended.
        attached.map(|attached| (attached, mode)).map_err(|_| refused)
    }

    /// Attaches the program, or puts it in the place of another process's program.
    fn attach_or_replace(&mut self, ifindex: u32, mode: AttachMode) -> Result<OwnedFd, EngineError> {
        // What is ready is for the first mode that is tried.
        let program = match self.ready.remove(&ifindex) {
            Some(program) => program,
            None => self.loaded_program(ifindex, mode)?,
        };
        let Some(link) = self.taken_links.remove(&ifindex) else {
            return Ok(attach(&program, ifindex, mode)?);
        };
        match replace(&link, &program, ifindex) {
            Ok(()) => Ok(link),
            Err(refused) => {
                self.taken_links.insert(ifindex, link);
                Err(refused.into())
            }
        }
    }

    /// The program for an interface, loaded.
    fn loaded_program(&mut self, ifindex: u32, mode: AttachMode) -> Result<OwnedFd, EngineError> {
        let observed = usize::from(self.is_observed);
        let program = match mode {
            AttachMode::Plain(_, buffers) => self.loaded.xdp(PROGRAMS[buffers as usize][observed])?.fd(),
            AttachMode::Tcx => self.skb_program()?.fd(),
            AttachMode::ReadsTags(buffers) => {
                let bound = self.bound[buffers as usize][observed].as_ref();
                return Ok(bound.ok_or(EngineError::CannotReadTags { ifindex })?.load(ifindex)?);
            }
        };
        let program = program.map_err(io::Error::other).map_err(EngineError::Descriptor)?;
        program.as_fd().try_clone_to_owned().map_err(EngineError::Descriptor)
    }

    /// Reads what the programs copy while they are observed ([`Self::observe`]): packets that requests ask for, and one
    /// received packet in `sample`. `devices` are those of the ports, by port number. Call this once.
    pub fn observer(
        &self,
        devices: Vec<u32>,
        sample: Option<NonZeroU32>,
    ) -> Result<ProgramObserver, EngineError> {
        ProgramObserver::new(self.map("copies")?, self.map("wished")?, devices, sample)
    }

    /// A descriptor of a map that the object keeps.
    fn map(&self, name: &'static str) -> Result<OwnedFd, EngineError> {
        let map = self.loaded.ebpf.map(name).and_then(bound_program::data);
        let map = map.ok_or_else(|| self.loaded.missing_map(name))?;
        map.fd().as_fd().try_clone_to_owned().map_err(EngineError::Descriptor)
    }

    /// Has all interfaces run programs that copy packets for [`Self::observer`], or programs without that code. No packet is
    /// lost between the two.
    ///
    /// # Errors
    /// If the kernel refuses a program, interfaces before the first refused one have it; the next call tries again.
    pub fn observe(&mut self, is_observed: bool) -> Result<(), EngineError> {
        if self.is_observed == is_observed {
            return Ok(());
        }
        self.is_observed = is_observed;
        self.ready.clear();
        let replaced = self.replace_all();
        self.is_observed = if replaced.is_ok() { is_observed } else { !is_observed };
        replaced
    }

    fn replace_all(&mut self) -> Result<(), EngineError> {
        for at in 0..self.wanted.len() {
            let WantedLink { ifindex, mode, ref link } = self.wanted[at];
            if link.is_some() {
                let program = self.loaded_program(ifindex, mode)?;
                self.wanted[at].replace(&program)?;
            }
        }
        Ok(())
    }

    /// Has the programs attached by [`Self::take_links`] only, however often [`Self::sync`] is called before. Call this before
    /// the first [`Self::sync`].
    pub fn await_links(&mut self) {
        self.awaits_links = true;
    }

    /// Attaches the programs: by these links of another process ([`Self::link`]), by the index of their interface, where the
    /// program takes the other one's place without a moment in between; and by links of its own at the other interfaces.
    ///
    /// # Errors
    /// The kernel refuses a program. Interfaces before the refused one have theirs.
    pub fn take_links(&mut self, links: BTreeMap<u32, OwnedFd>) -> Result<(), EngineError> {
        (self.awaits_links, self.taken_links) = (false, links);
        let attached = if self.serves { self.attach_all() } else { Ok(()) };
        self.ready.clear();
        // Those that are left are of interfaces that do not need them: without the other process, the kernel forwards there.
        self.taken_links.clear();
        attached
    }

    /// Uses these links, by the index of their interface, where the program is attached from now on: it takes the place of the one
    /// that is there without a moment in between. [`Self::release_links`] ends those that were not used.
    pub fn offer_links(&mut self, links: BTreeMap<u32, OwnedFd>) {
        self.taken_links = links;
    }

    /// Gives up the links that were offered and not used.
    pub fn release_links(&mut self) {
        self.taken_links.clear();
    }

    /// A descriptor of the link to an interface, for a process that takes the program's place. `None` if the program is not
    /// attached there.
    pub fn link(&self, ifindex: u32) -> Result<Option<OwnedFd>, EngineError> {
        let of_interface = self.wanted.iter().rfind(|wanted| wanted.ifindex == ifindex);
        let link = of_interface.and_then(|wanted| wanted.link.as_ref());
        let copied = link.map(|link| link.as_fd().try_clone_to_owned());
        copied.transpose().map_err(EngineError::Descriptor)
    }

    /// Puts the programs back to where another process may have replaced them.
    ///
    /// # Errors
    /// The kernel refuses a program, and all of them are detached.
    pub fn take_back(&mut self) -> Result<(), EngineError> {
        let replaced = self.replace_all();
        self.or_detach(replaced)
    }

    /// Waits until no packet is in a program that was replaced. The counters are final then.
    pub fn settle(&mut self) -> Result<(), EngineError> {
        // This stores what is there already; generation.rs says what such a call waits for.
        Ok(self.current.set(0, &self.generations[1].map, 0)?)
    }

    /// Detaches the program after an error, because stale tables must not forward.
    fn or_detach<T>(&mut self, result: Result<T, EngineError>) -> Result<T, EngineError> {
        self.serves = result.is_ok();
        result.inspect_err(|_| self.wanted.iter_mut().for_each(|wanted| wanted.link = None))
    }

    /// The counters of the program, by processor.
    pub fn counters(&self) -> Result<Vec<XdpCounters>, EngineError> {
        self.counters.read()
    }

    /// The XDP program, for test runs on single packets.
    pub fn program(&mut self) -> Result<&mut Xdp, EngineError> {
        Ok(self.loaded.xdp(PROGRAMS[0][usize::from(self.is_observed)])?)
    }

    /// The XDP program for frames in several buffers, for test runs too.
    pub fn multi_buffer_program(&mut self) -> Result<&mut Xdp, EngineError> {
        Ok(self.loaded.xdp(PROGRAMS[1][usize::from(self.is_observed)])?)
    }

    /// The program for tcx, for test runs too.
    pub fn skb_program(&mut self) -> Result<&mut SchedClassifier, EngineError> {
        Ok(self.loaded.classifier(SKB_PROGRAMS[usize::from(self.is_observed)])?)
    }
}

fn bound_programs(
    [plain, observed]: [&'static str; 2],
    buffers: Buffers,
    maps: &Ebpf,
) -> Result<[Option<BoundProgram>; 2], BpfError> {
    let relocated = |name| BoundProgram::new(bpf::FORWARD, (name, buffers), maps);
    Ok([relocated(plain)?, relocated(observed)?])
}

fn take(loaded: &mut LoadedObject, name: &'static str) -> Result<Map, EngineError> {
    let missing = loaded.missing_map(name);
    Ok(loaded.ebpf.take_map(name).ok_or(missing)?)
}

fn array(loaded: &mut LoadedObject, name: &'static str) -> Result<MapData, EngineError> {
    match take(loaded, name)? {
        Map::Array(map) => Ok(map),
        _ => Err(loaded.missing_map(name).into()),
    }
}
