//! Forwarding in the kernel: an XDP program (`bpf/forward.c`) that looks up in copies of our compiled tables.
//!
//! The tables stay here, where the framework follows every change; [`Engine::sync`] copies what changed to the idle one
//! of two generations in BPF maps and switches the program to it (`generation.rs` has the argument why no packet sees a
//! mixture). What the program does not forward goes to the kernel as it came, so the kernel must have the same routes.
//! When this process ends, however that happens, the program goes with it and the kernel forwards on.

use std::os::fd::AsFd;
use std::sync::Arc;

use aya::maps::{ArrayOfMaps, Map, MapData};
use aya::programs::Xdp;
use aya::programs::xdp::XdpMode;

use crate::bpf::{self, LoadedObject, XdpAttachment};
use crate::port::sys::SharedWords;
use crate::view::TableReaders;

mod block_ranges;
mod config;
mod counters;
mod devices;
mod error;
mod from_view;
mod generation;
mod layout;
mod section_copy;
mod table_images;

pub use config::{XdpConfig, XdpInterface, XdpNextHop};
pub use counters::{XdpCounters, XdpReason};
pub use error::EngineError;
pub use table_images::{INET_ALGORITHM, INET6_ALGORITHM};

use config::CompiledConfig;
use counters::CounterMaps;
use devices::Devices;
use generation::Generation;
use layout::{VRF, VRFS};
use table_images::EmptyTables;

const PROGRAM: &str = "forward";

/// The program in the kernel, and the tables it looks up in.
pub struct Engine {
    loaded: LoadedObject,
    current: ArrayOfMaps<MapData>,
    /// The idle one, and the one that packets go by.
    generations: [Generation; 2],
    counted: CounterMaps,
    devices: Devices,
    plan: CompiledConfig,
    /// Counts the plans.
    number: u64,
    /// The main one first; none before the first plan.
    tables: Vec<TableReaders>,
    empty: EmptyTables,
    /// Whether the tables that packets go by are those of the last call.
    serves: bool,
    /// Where packets are to be forwarded, and where they are.
    wanted: Vec<(u32, XdpMode)>,
    attached: Vec<XdpAttachment>,
}

impl Engine {
    /// Tables of VRFs that an engine can have room for.
    pub const MOST_VRFS: usize = VRFS;

    /// Loads the program, which is not yet on any interface, and passes everything before the first [`Self::sync`].
    pub fn load() -> Result<Engine, EngineError> {
        Engine::with_room(0)
    }

    /// The same with room for the tables of so many VRFs: 2.5 MiB each.
    pub fn with_room(vrfs: usize) -> Result<Engine, EngineError> {
        if vrfs > VRFS {
            return Err(EngineError::TooLarge { what: "tables of VRFs", needed: vrfs, limit: VRFS });
        }
        // There are no maps without entries.
        let entries = 2 * vrfs.max(1);
        let mut loaded = bpf::FORWARD.load_with(|loader| {
            loader.map_max_entries("vrfs", entries as u32);
        })?;
        let current = take(&mut loaded, "current")?.try_into()?;
        let counted = CounterMaps::new(take(&mut loaded, "counted")?, take(&mut loaded, "not_forwarded")?)?;
        let devices = Devices::new(take(&mut loaded, "devices")?)?;
        let memory = array(&mut loaded, "vrfs")?;
        let memory =
            SharedWords::new(memory.fd().as_fd(), 4 * entries * VRF).map_err(EngineError::Mapping)?;
        let memory = Arc::new(memory);
        let mut generation =
            |number, name| Generation::new(array(&mut loaded, name)?, number, vrfs, Arc::clone(&memory));
        let generations = [generation(0, "generation_0")?, generation(1, "generation_1")?];
        loaded.xdp(PROGRAM)?;
        Ok(Engine {
            loaded,
            current,
            generations,
            counted,
            devices,
            plan: CompiledConfig::default(),
            number: 0,
            tables: Vec::new(),
            empty: EmptyTables::new()?,
            serves: false,
            wanted: Vec::new(),
            attached: Vec::new(),
        })
    }

    /// Goes by another plan, and by these tables as they are now, the main one and those of VRFs, by the numbers that
    /// the plan's interfaces name: dir18 has to serve IPv4, btree6 IPv6 ([`INET_ALGORITHM`], [`INET6_ALGORITHM`]).
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn publish(&mut self, plan: &XdpConfig, tables: Vec<TableReaders>) -> Result<usize, EngineError> {
        // Should this fail, what was published before does not come back with the next change of its tables.
        self.tables.clear();
        self.plan =
            CompiledConfig::new(plan, self.devices.of(plan)).or_else(|error| self.or_detach(Err(error)))?;
        (self.number, self.tables) = (self.number + 1, tables);
        self.counted.reads(plan);
        self.sync()
    }

    /// Has packets forwarded by the tables as they are now; says how many blocks of them were copied. To be called by
    /// whoever writes the tables, or while that one waits. Returns when no packet goes by the tables before. Does
    /// nothing before the first [`Self::publish`].
    ///
    /// # Errors
    /// The kernel then forwards alone, until a later call finds the mistake mended.
    pub fn sync(&mut self) -> Result<usize, EngineError> {
        if self.tables.is_empty() {
            return Ok(0);
        }
        let switched = self.switch();
        let copied = self.or_detach(switched)?;
        self.attach_all()?;
        Ok(copied)
    }

    fn switch(&mut self) -> Result<usize, EngineError> {
        let Engine { generations: [idle, _], tables, empty, .. } = self;
        let needs = |table| empty.with(table, |images| images.shared().map(|section| section.blocks()));
        idle.make_room(&tables.iter().map(needs).collect::<Result<Vec<_>, _>>()?)?;
        let mut copied = 0;
        for (number, table) in tables.iter().enumerate() {
            copied += empty.with(table, |images| idle.follow(number, images))?;
        }
        idle.plan(self.number, &self.plan);
        self.current.set(0, &idle.map, 0)?;
        self.generations.swap(0, 1);
        Ok(copied)
    }

    /// Has the program see what comes in by an interface, from the first successful [`Self::sync`] on.
    pub fn attach(&mut self, ifindex: u32, mode: XdpMode) -> Result<(), EngineError> {
        if self.serves {
            self.attached.push(bpf::attach(self.loaded.xdp(PROGRAM)?, ifindex, mode)?);
        }
        self.wanted.push((ifindex, mode));
        Ok(())
    }

    fn attach_all(&mut self) -> Result<(), EngineError> {
        for (ifindex, mode) in &self.wanted[self.attached.len()..] {
            self.attached.push(bpf::attach(self.loaded.xdp(PROGRAM)?, *ifindex, *mode)?);
        }
        Ok(())
    }

    /// Stale tables must not forward.
    fn or_detach<T>(&mut self, result: Result<T, EngineError>) -> Result<T, EngineError> {
        self.serves = result.is_ok();
        result.inspect_err(|_| self.attached.clear())
    }

    /// What the program has counted, by processor.
    pub fn counters(&self) -> Result<Vec<XdpCounters>, EngineError> {
        self.counted.read()
    }

    /// The program itself, to be run on single packets.
    pub fn program(&mut self) -> Result<&mut Xdp, EngineError> {
        Ok(self.loaded.xdp(PROGRAM)?)
    }
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
