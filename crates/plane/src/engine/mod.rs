//! Forwarding in the kernel: an XDP program (`bpf/forward.c`) that looks up in copies of our compiled tables.
//!
//! The tables stay here, where the framework follows every change; [`Engine::sync`] copies what changed to the idle one
//! of two generations in BPF maps and switches the program to it (`generation.rs` has the argument why no packet sees a
//! mixture). What the program does not forward goes to the kernel as it came, so the kernel must have the same routes.
//! When this process ends, however that happens, the program goes with it and the kernel forwards on.

use std::io;
use std::sync::Arc;

use aya::maps::{ArrayOfMaps, Map, MapData, MapError};
use aya::programs::Xdp;
use aya::programs::xdp::XdpMode;
use fullview_table::Rib;
use fullview_table::fib::btree6::Btree6;
use fullview_table::fib::dir18::Dir18;
use fullview_table::fib::image::Image;
use fullview_table::fib::{Algorithm, CompileError, Fib};

use crate::bpf::{self, Attached, BpfError, Loaded};
use crate::view::TableReaders;

mod counters;
mod generation;
mod layout;
mod plan;
mod view;

pub use counters::{Counters, Reason};
pub use plan::{Ingress, Plan, Way};

use counters::Counted;
use generation::Generation;
use plan::Compiled;

/// The algorithm that has to serve IPv4 tables, for [`fullview_table::fib::framework::Attachment::force`].
pub const INET_ALGORITHM: &str = "dir18";
/// The algorithm that has to serve IPv6 tables.
pub const INET6_ALGORITHM: &str = "btree6";

const PROGRAM: &str = "forward";

/// Why the kernel forwards without the program.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The program or an interface.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// No memory for tables without routes.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A map.
    #[error("a BPF map: {0}")]
    Map(#[from] MapError),
    /// A map that this process cannot write.
    #[error("a BPF map cannot be mapped: {0}")]
    Mapping(#[source] io::Error),
    /// A table that another algorithm serves.
    #[error("the XDP engine looks up by {wanted} only; have the {family} table served by it")]
    Algorithm {
        /// Of which family.
        family: &'static str,
        /// The one it knows.
        wanted: &'static str,
    },
    /// More than the maps hold.
    #[error("the XDP engine holds {limit} {what}, and {needed} are needed; the kernel forwards instead")]
    TooLarge {
        /// Of what there is too much.
        what: &'static str,
        /// How much there is.
        needed: usize,
        /// How much fits.
        limit: usize,
    },
    /// Too many interfaces whose numbers are alike.
    #[error("the XDP engine has no place for interface {ifindex}, VLAN {vlan}; let it forward between fewer")]
    Interfaces {
        /// Its index in the kernel.
        ifindex: u32,
        /// Its VLAN.
        vlan: u16,
    },
    /// A group that no mask can choose from.
    #[error("next hop {hop}: a group has a power of two of slots, 2 at least, not {slots}")]
    Group {
        /// Its index.
        hop: u16,
        /// How many there are.
        slots: usize,
    },
}

/// The memory of both FIBs.
struct Images<'t> {
    inet: Image<'t>,
    inet6: Image<'t>,
}

impl<'t> Images<'t> {
    fn new(inet: &'t dyn Fib<u32>, inet6: &'t dyn Fib<u128>) -> Result<Images<'t>, EngineError> {
        let inet = inet.image().filter(|image| matches!(image, Image::Dir18 { .. }));
        let inet6 = inet6.image().filter(|image| matches!(image, Image::Btree6 { .. }));
        let missing = |family, wanted| EngineError::Algorithm { family, wanted };
        Ok(Images {
            inet: inet.ok_or_else(|| missing("IPv4", INET_ALGORITHM))?,
            inet6: inet6.ok_or_else(|| missing("IPv6", INET6_ALGORITHM))?,
        })
    }
}

/// The program in the kernel, and the tables it looks up in.
pub struct Engine {
    loaded: Loaded,
    current: ArrayOfMaps<MapData>,
    /// The idle one, and the one that packets go by.
    generations: [Generation; 2],
    counted: Counted,
    plan: Compiled,
    /// Counts the plans.
    number: u64,
    /// The main table.
    tables: Option<TableReaders>,
    /// Tables without routes.
    empty: (Arc<dyn Fib<u32>>, Arc<dyn Fib<u128>>),
    /// Whether the tables that packets go by are those of the last call.
    serves: bool,
    /// Where packets are to be forwarded, and where they are.
    wanted: Vec<(u32, XdpMode)>,
    attached: Vec<Attached>,
}

impl Engine {
    /// Loads the program, which is not yet on any interface, and passes everything before the first [`Self::sync`].
    pub fn load() -> Result<Engine, EngineError> {
        let mut loaded = bpf::FORWARD.load()?;
        let current = take(&mut loaded, "current")?.try_into()?;
        let counted = take(&mut loaded, "counted")?.try_into()?;
        let generations =
            [generation(&mut loaded, "generation_0")?, generation(&mut loaded, "generation_1")?];
        loaded.xdp(PROGRAM)?;
        let (plan, number, tables) = (Compiled::default(), 0, None);
        let (wanted, attached) = (Vec::new(), Vec::new());
        let empty =
            (Dir18::BEST.compile(&Rib::default())?.fib(), Btree6::BEST.compile(&Rib::default())?.fib());
        Ok(Engine {
            loaded,
            current,
            generations,
            counted,
            plan,
            number,
            tables,
            empty,
            serves: false,
            wanted,
            attached,
        })
    }

    /// Goes by another plan, and by these tables as they are now: dir18 has to serve IPv4, btree6 IPv6
    /// ([`INET_ALGORITHM`], [`INET6_ALGORITHM`]).
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn publish(&mut self, plan: &Plan, tables: TableReaders) -> Result<usize, EngineError> {
        // Should this fail, what was published before does not come back with the next change of its tables.
        self.tables = None;
        self.plan = Compiled::new(plan).or_else(|error| self.or_detach(Err(error)))?;
        (self.number, self.tables) = (self.number + 1, Some(tables));
        self.sync()
    }

    /// Has packets forwarded by the tables as they are now; says how many blocks of them were copied. To be called by
    /// whoever writes the tables, or while that one waits. Returns when no packet goes by the tables before. Does
    /// nothing before the first [`Self::publish`].
    ///
    /// # Errors
    /// The kernel then forwards alone, until a later call finds the mistake mended.
    pub fn sync(&mut self) -> Result<usize, EngineError> {
        let Some(TableReaders { inet, inet6 }) = self.tables.clone() else { return Ok(0) };
        let switched = inet.with(|inet| inet6.with(|inet6| self.switch(inet, inet6)));
        let copied = self.or_detach(switched)?;
        self.attach_all()?;
        Ok(copied)
    }

    fn switch(&mut self, inet: &dyn Fib<u32>, inet6: &dyn Fib<u128>) -> Result<usize, EngineError> {
        // A table before its first route has no algorithm and no memory.
        let inet = if inet.footprint().total() == 0 { &*self.empty.0 } else { inet };
        let inet6 = if inet6.footprint().total() == 0 { &*self.empty.1 } else { inet6 };
        let [idle, _] = &mut self.generations;
        let copied = idle.follow(&Images::new(inet, inet6)?, self.number, &self.plan)?;
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

    /// What the program has counted.
    pub fn counters(&self) -> Result<Counters, EngineError> {
        counters::read(&self.counted)
    }

    /// The program itself, to be run on single packets.
    pub fn program(&mut self) -> Result<&mut Xdp, EngineError> {
        Ok(self.loaded.xdp(PROGRAM)?)
    }
}

fn take(loaded: &mut Loaded, name: &'static str) -> Result<Map, EngineError> {
    let missing = loaded.missing_map(name);
    Ok(loaded.ebpf.take_map(name).ok_or(missing)?)
}

fn generation(loaded: &mut Loaded, name: &'static str) -> Result<Generation, EngineError> {
    match take(loaded, name)? {
        Map::Array(map) => Generation::new(map),
        _ => Err(loaded.missing_map(name).into()),
    }
}
