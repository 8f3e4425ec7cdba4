//! What the lab measures here: a whole forwarding path, lookups alone, and other implementations of lookup.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use fullview_lab::stats::Description;
use fullview_lab::{Bench, Experiment, Measurement, Subject, SubjectError, Validity, Window};
use fullview_plane::traffic::frame::Headers;
use fullview_table::fib::Fib;
use fullview_table::fib::registry::Registered;
use fullview_table::{Family, Rib, Table};

use crate::command::BadInput;
use crate::settings::{Arm, Kind, LookupSettings, Peer, Settings, Shape, TableSettings, TrafficSettings};
use crate::workload::{algorithm, packets, table};

mod forward;
#[cfg(feature = "bpf")]
mod kernel;
#[cfg(not(feature = "bpf"))]
#[path = "kernel_absent.rs"]
mod kernel;
mod kinds;
mod lookup;
mod panel;
mod peer;
mod peer_router;
mod placement;
pub mod share;

pub use kinds::measures;
use lookup::{Keys, Lookup};
use panel::Panel;
use peer::{Contestant, Handed, PeerLookup, Process};
use peer_router::PeerRouter;
use placement::Cores;
use share::CoreShare;

/// Makes subjects ready, and keeps what several runs share: tables, flows, keys, the peer's process.
pub struct RouterBench {
    seed: u64,
    tables: Vec<(TableSettings, Arc<Table>)>,
    inet: Streams<u32>,
    inet6: Streams<u128>,
    conditions: Vec<String>,
    preferences: BTreeSet<String>,
    /// Settings and family of each lookup, and whether its answers have been verified.
    verified: Vec<(Settings, Family, Rc<Cell<bool>>)>,
    /// The contestants of each peer's program.
    contestants: Vec<(PathBuf, String)>,
    peer_inputs: Option<PeerInputs>,
    /// What all peers are given, written when the first of them starts.
    handed: Option<Rc<Handed>>,
    processes: Vec<(PathBuf, Rc<RefCell<Process>>)>,
    /// Other routers: one process for each, because its table is its own.
    routers: Vec<(Peer, Rc<RefCell<Process>>)>,
    /// Whether some variant is another router.
    forwards_by_peers: bool,
    cores: Cores,
    bed: kernel::Bed,
}

/// Drawn packets and keys of one family. Runs of a block share them; the last few draws are kept.
pub struct Streams<A> {
    flows: Vec<(Draw, Arc<forward::FlowSet<A>>)>,
    keys: Vec<(Draw, usize, Arc<Keys<A>>)>,
}

/// What a draw depends on.
#[derive(Clone, PartialEq)]
pub struct Draw {
    table: TableSettings,
    traffic: TrafficSettings,
    seed: u64,
}

/// What all peers are started with.
struct PeerInputs {
    table: TableSettings,
    order: Order,
    streams: Vec<(Family, String, TrafficSettings)>,
}

/// Which destinations of a stream.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// So many, drawn from it, to be looked up.
    Drawn(Option<usize>),
    /// All of them as they are sent, to be forwarded.
    AsSent,
}

/// Draws kept: the variants of a block may differ in table and traffic.
const KEPT: usize = 4;

impl<A> Default for Streams<A> {
    fn default() -> Self {
        Streams { flows: Vec::new(), keys: Vec::new() }
    }
}

/// What a forwarder looks up in.
type Fibs = (Arc<dyn Fib<u32>>, Arc<dyn Fib<u128>>);

/// The family-generic part of the bench: which stream store belongs to an address type, which RIB of a table.
pub trait Served: Registered + Headers + kernel::OnWire {
    fn rib(table: &Table) -> &Rib<Self>;
    fn streams(bench: &mut RouterBench) -> &mut Streams<Self>;
    /// This FIB, and one without routes for the other family.
    fn fibs(fib: Arc<dyn Fib<Self>>) -> anyhow::Result<Fibs>;
    /// The contestant of a peer that serves this family.
    fn contestant(peer: &Peer) -> Option<&String>;
}

impl Served for u32 {
    fn rib(table: &Table) -> &Rib<u32> {
        &table.inet
    }
    fn streams(bench: &mut RouterBench) -> &mut Streams<u32> {
        &mut bench.inet
    }
    fn fibs(fib: Arc<dyn Fib<u32>>) -> anyhow::Result<Fibs> {
        Ok((fib, algorithm::without_routes()?))
    }
    fn contestant(peer: &Peer) -> Option<&String> {
        peer.inet.as_ref()
    }
}

impl Served for u128 {
    fn rib(table: &Table) -> &Rib<u128> {
        &table.inet6
    }
    fn streams(bench: &mut RouterBench) -> &mut Streams<u128> {
        &mut bench.inet6
    }
    fn fibs(fib: Arc<dyn Fib<u128>>) -> anyhow::Result<Fibs> {
        Ok((algorithm::without_routes()?, fib))
    }
    fn contestant(peer: &Peer) -> Option<&String> {
        peer.inet6.as_ref()
    }
}

impl RouterBench {
    /// Checks every variant's settings and loads the tables they name.
    pub fn new(experiment: &Experiment<Settings>) -> anyhow::Result<Self> {
        kinds::check(experiment)?;
        let mut bench = RouterBench {
            seed: experiment.seed,
            tables: Vec::new(),
            inet: Streams::default(),
            inet6: Streams::default(),
            conditions: Vec::new(),
            preferences: BTreeSet::new(),
            verified: Vec::new(),
            contestants: Vec::new(),
            peer_inputs: None,
            handed: None,
            processes: Vec::new(),
            routers: Vec::new(),
            forwards_by_peers: false,
            cores: Cores::observe()?,
            bed: kernel::Bed::default(),
        };
        let variants: Vec<Settings> = experiment
            .variants
            .iter()
            .map(|variant| variant.set.clone().laid_over(&experiment.subject))
            .collect();
        bench.forwards_by_peers = variants.iter().any(|settings| settings.load.peer.is_some());
        for settings in &variants {
            for family in &experiment.families {
                bench.check(settings, &family.name)?;
            }
        }
        for settings in &variants {
            bench.table(&settings.table)?;
        }
        bench.draw_first_block(experiment, &variants)?;
        Ok(bench)
    }

    /// Draws what the first runs send, so that traffic which cannot be made is known before a results folder is
    /// touched.
    fn draw_first_block(
        &mut self,
        experiment: &Experiment<Settings>,
        variants: &[Settings],
    ) -> anyhow::Result<()> {
        for planned in fullview_lab::plan(variants.len(), experiment.families.len(), 1, experiment.seed) {
            let family = &experiment.families[planned.cell.family].name;
            let Panel { family, settings, .. } = Panel::of(&variants[planned.cell.variant], family)?;
            let seed = if settings.kind() == Kind::Lookup { self.seed } else { self.flow_seed(planned.seed) };
            let table = self.table(&settings.table)?;
            let draw = Draw { table: settings.table.clone(), traffic: settings.traffic.clone(), seed };
            match family {
                Family::Inet => drop(self.flows::<u32>(&draw, &table)?),
                Family::Inet6 => drop(self.flows::<u128>(&draw, &table)?),
            }
        }
        Ok(())
    }

    fn check(&mut self, settings: &Settings, family: &str) -> anyhow::Result<()> {
        let panel = Panel::of(settings, family)?;
        forward::check_load(&settings.load)?;
        match panel.family {
            Family::Inet => self.check_family::<u32>(&panel),
            Family::Inet6 => self.check_family::<u128>(&panel),
        }
    }

    fn check_family<A: Served>(&mut self, panel: &Panel) -> anyhow::Result<()> {
        let settings = &panel.settings;
        packets::check::<A>(&settings.traffic)?;
        lookup::check_settings(&settings.lookup)?;
        if let Some(peer) = &settings.lookup.peer {
            self.contestants.push((peer.program.clone(), named_contestant::<A>(peer)?));
            return self.check_peer::<A>(panel, Order::Drawn(settings.lookup.keys));
        }
        if let Some(peer) = &settings.load.peer {
            named_contestant::<A>(peer)?;
            forward::check_peer(settings)?;
            return self.check_peer::<A>(panel, Order::AsSent);
        }
        self.preferences.extend(algorithm::check::<A>(&settings.router)?);
        Ok(())
    }

    /// All peers are given the same folder, so the variants have to agree on what is in it.
    fn check_peer<A: Served>(&mut self, panel: &Panel, order: Order) -> anyhow::Result<()> {
        let Settings { table, traffic, .. } = &panel.settings;
        let given = self.peer_inputs.get_or_insert_with(|| PeerInputs {
            table: table.clone(),
            order,
            streams: Vec::new(),
        });
        let known =
            given.streams.iter().find(|(family, name, _)| (*family, name) == (A::FAMILY, &panel.stream));
        let agree =
            (&given.table, given.order) == (table, order) && known.is_none_or(|(.., known)| known == traffic);
        ensure!(agree, BadInput("all variants with a peer share their table, traffic and keys".into()));
        if known.is_none() {
            given.streams.push((A::FAMILY, panel.stream.clone(), traffic.clone()));
        }
        Ok(())
    }

    /// The table of these settings, loaded once.
    fn table(&mut self, settings: &TableSettings) -> anyhow::Result<Arc<Table>> {
        if let Some((_, table)) = self.tables.iter().find(|(known, _)| known == settings) {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(table::load(settings)?);
        self.tables.push((settings.clone(), Arc::clone(&table)));
        Ok(table)
    }

    /// The report's lines about what all variants share; they name the shape, so that has to be settled. What a variant
    /// sets otherwise is told by the lab.
    pub fn describe(&mut self, experiment: &Experiment<Settings>) -> anyhow::Result<()> {
        let settings = &experiment.subject;
        let tables = self.tables.iter().map(|(settings, table)| table::describe(settings, table));
        let preferences = self.preferences.iter().cloned();
        self.conditions = tables.chain(describe_traffic(settings)).chain(preferences).collect();
        if measures(experiment, Kind::Forward) {
            self.conditions.extend(forward::describe(&settings.load, self.cores)?);
            if experiment.variants.iter().any(|variant| forwards_here(&variant.set, settings)) {
                self.conditions.extend(forward::describe_bed(&settings.load));
            }
            self.conditions.extend(self.forwards_by_peers.then(|| peer_router::CONDITION.to_owned()));
        }
        if measures(experiment, Kind::Lookup) {
            self.conditions.extend(lookup::describe(&settings.lookup, self.cores)?);
        }
        if measures(experiment, Kind::Kernel) {
            self.conditions.extend(kernel::describe(self.cores)?);
        }
        Ok(())
    }

    fn make<A: Served>(&mut self, panel: &Panel, seed: u64) -> anyhow::Result<Box<dyn Subject>> {
        let seed = self.flow_seed(seed);
        match panel.settings.kind() {
            Kind::Forward => match &panel.settings.load.peer {
                Some(peer) => self.peer_router::<A>(panel, peer),
                None => self.forward::<A>(&panel.settings, seed),
            },
            Kind::Lookup => self.lookup::<A>(panel),
            Kind::Kernel => self.kernel::<A>(&panel.settings, seed),
        }
    }

    fn kernel<A: Served>(&mut self, settings: &Settings, seed: u64) -> anyhow::Result<Box<dyn Subject>> {
        let table = self.table(&settings.table)?;
        let draw = Draw { table: settings.table.clone(), traffic: settings.traffic.clone(), seed };
        let flows = self.flows::<A>(&draw, &table)?;
        let missing = || BadInput("kind \"kernel\": set kernel.forwarder, to \"engine\" for example".into());
        let forwarder = settings.kernel.forwarder.ok_or_else(missing)?;
        let path =
            kernel::KernelPath::new(&mut self.bed, (&settings.table, &table), &flows, forwarder, self.cores)?;
        Ok(Box::new(path))
    }

    fn forward<A: Served>(&mut self, settings: &Settings, seed: u64) -> anyhow::Result<Box<dyn Subject>> {
        let table = self.table(&settings.table)?;
        let draw = Draw { table: settings.table.clone(), traffic: settings.traffic.clone(), seed };
        let flows = self.flows::<A>(&draw, &table)?;
        let compiled = algorithm::compile(&settings.router, A::rib(&table))?;
        Ok(Box::new(forward::Forward::new(settings, &table, flows, compiled, self.cores)?))
    }

    fn flows<A: Served>(&mut self, draw: &Draw, table: &Table) -> anyhow::Result<Arc<forward::FlowSet<A>>> {
        let streams = A::streams(self);
        if let Some((_, flows)) = streams.flows.iter().find(|(known, _)| known == draw) {
            return Ok(Arc::clone(flows));
        }
        let flows = Arc::new(packets::flows(&draw.traffic, A::rib(table), draw.seed)?);
        streams.flows.truncate(KEPT - 1);
        streams.flows.insert(0, (draw.clone(), Arc::clone(&flows)));
        Ok(flows)
    }

    fn lookup<A: Served>(&mut self, panel: &Panel) -> anyhow::Result<Box<dyn Subject>> {
        let settings = &panel.settings;
        let table = self.table(&settings.table)?;
        if let Some(peer) = &settings.lookup.peer {
            return self.contestant::<A>(panel, peer);
        }
        let keys = self.keys::<A>(settings, &table)?;
        self.cores.pin_one()?;
        let started = Instant::now();
        let compiled = algorithm::compile(&settings.router, A::rib(&table))?;
        Ok(Box::new(Lookup {
            build: started.elapsed(),
            fib: compiled.fib,
            keys,
            arm: settings.lookup.arm.unwrap_or(Arm::Batch),
            batch: settings.lookup.batch.unwrap_or(lookup::BATCH),
            events: compiled.log,
            verified: self.verified(settings, A::FAMILY),
        }))
    }

    /// Whether a lookup with these settings has been verified: to be set when it has.
    fn verified(&mut self, settings: &Settings, family: Family) -> Rc<Cell<bool>> {
        let mut known = self.verified.iter();
        if let Some((.., verified)) = known.find(|(known, of, _)| (known, *of) == (settings, family)) {
            return Rc::clone(verified);
        }
        let verified = Rc::new(Cell::new(false));
        self.verified.push((settings.clone(), family, Rc::clone(&verified)));
        verified
    }

    /// Keys stay the same for a whole campaign, so that a peer can verify them once: drawn by the experiment's seed.
    fn keys<A: Served>(&mut self, settings: &Settings, table: &Table) -> anyhow::Result<Arc<Keys<A>>> {
        let draw = Draw { table: settings.table.clone(), traffic: settings.traffic.clone(), seed: self.seed };
        let count = settings.lookup.keys.unwrap_or(lookup::KEYS);
        let known =
            A::streams(self).keys.iter().find(|(known, length, _)| *known == draw && *length == count);
        if let Some((.., keys)) = known {
            return Ok(Arc::clone(keys));
        }
        let flows = self.flows::<A>(&draw, table)?;
        let keys = Arc::new(Keys::drawn(&flows, count, self.seed));
        let streams = A::streams(self);
        streams.keys.truncate(KEPT - 1);
        streams.keys.insert(0, (draw, count, Arc::clone(&keys)));
        Ok(keys)
    }

    fn contestant<A: Served>(&mut self, panel: &Panel, peer: &Peer) -> anyhow::Result<Box<dyn Subject>> {
        let name = named_contestant::<A>(peer)?;
        let known = self.processes.iter().find(|(program, _)| *program == peer.program);
        let process = match known {
            Some((_, process)) => Rc::clone(process),
            None => self.start_peer(&peer.program)?,
        };
        let stream = panel.stream.clone();
        Ok(Box::new(PeerLookup(Contestant { process, name, family: A::FAMILY, stream })))
    }

    fn peer_router<A: Served>(&mut self, panel: &Panel, peer: &Peer) -> anyhow::Result<Box<dyn Subject>> {
        let name = named_contestant::<A>(peer)?;
        let process = match self.routers.iter().find(|(known, _)| known == peer) {
            Some((_, process)) => Rc::clone(process),
            None => self.start_router(peer)?,
        };
        let contestant = Contestant { process, name, family: A::FAMILY, stream: panel.stream.clone() };
        let two_cores = panel.settings.load.shape == Some(Shape::TwoCores);
        Ok(Box::new(PeerRouter { contestant, apart: two_cores.then_some(self.cores) }))
    }

    fn start_router(&mut self, peer: &Peer) -> anyhow::Result<Rc<RefCell<Process>>> {
        let handed = self.handed()?;
        let names: Vec<&str> = [&peer.inet, &peer.inet6].into_iter().flatten().map(String::as_str).collect();
        let (generator, router) = self.cores.for_peer()?;
        let process = Process::start(&peer.program, &names, handed, (generator, router))?;
        let process = Rc::new(RefCell::new(process));
        self.routers.push((peer.clone(), Rc::clone(&process)));
        Ok(process)
    }

    /// The seed of the packets of a run. Other routers are given theirs once for all runs, and ours are the same then.
    fn flow_seed(&self, of_run: u64) -> u64 {
        if self.forwards_by_peers { self.seed } else { of_run }
    }

    fn start_peer(&mut self, program: &Path) -> anyhow::Result<Rc<RefCell<Process>>> {
        let handed = self.handed()?;
        let of_program = self.contestants.iter().filter(|(of, _)| of == program);
        let mut names: Vec<&str> = of_program.map(|(_, name)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let core = self.cores.pin_one()?;
        let process = Process::start(program, &names, handed, (core, None))?;
        let process = Rc::new(RefCell::new(process));
        self.processes.push((program.into(), Rc::clone(&process)));
        Ok(process)
    }

    fn handed(&mut self) -> anyhow::Result<Rc<Handed>> {
        if let Some(handed) = &self.handed {
            return Ok(Rc::clone(handed));
        }
        let handed = Rc::new(self.hand_over()?);
        self.handed = Some(Rc::clone(&handed));
        Ok(handed)
    }

    /// Writes the table and all streams for the peers.
    fn hand_over(&mut self) -> anyhow::Result<Handed> {
        let given = self.peer_inputs.take().context("checked before the first run")?;
        let table = self.table(&given.table)?;
        let handed = Handed::new(&table)?;
        for (family, name, traffic) in given.streams {
            let settings = Settings { table: given.table.clone(), traffic, ..Settings::default() };
            match family {
                Family::Inet => {
                    handed.add(&name, &*self.handed_keys::<u32>(settings, given.order, &table)?)?
                }
                Family::Inet6 => {
                    handed.add(&name, &*self.handed_keys::<u128>(settings, given.order, &table)?)?
                }
            }
        }
        Ok(handed)
    }

    fn handed_keys<A: Served>(
        &mut self,
        mut settings: Settings,
        order: Order,
        table: &Table,
    ) -> anyhow::Result<Arc<Keys<A>>> {
        match order {
            Order::Drawn(keys) => {
                settings.lookup = LookupSettings { keys, ..LookupSettings::default() };
                self.keys(&settings, table)
            }
            Order::AsSent => {
                let draw = Draw { table: settings.table, traffic: settings.traffic, seed: self.seed };
                Ok(Arc::new(Keys::as_sent(&*self.flows(&draw, table)?)))
            }
        }
    }

    /// The shape whose samples spread less in a short trial of these settings. In a virtual machine that is one core
    /// without a trial: the hypervisor may move its cores apart at any moment, and a moment's trial cannot tell.
    pub fn quieter_shape(&mut self, experiment: &Experiment<Settings>) -> anyhow::Result<Shape> {
        let (Some(variant), Some(family)) = (experiment.variants.first(), experiment.families.first()) else {
            return Ok(Shape::OneCore);
        };
        let mut settings = variant.set.clone().laid_over(&experiment.subject);
        let forwards = settings.kind() == Kind::Forward;
        if !forwards || !self.cores.are_two() || self.cores.are_virtual() {
            return Ok(Shape::OneCore);
        }
        settings.load.shape = Some(Shape::OneCore);
        let one = self.trial(&settings, &family.name)?;
        settings.load.shape = Some(Shape::TwoCores);
        let two = self.trial(&settings, &family.name)?;
        Ok(if two < one { Shape::TwoCores } else { Shape::OneCore })
    }

    /// How much the samples of a short run spread: their coefficient of variation.
    fn trial(&mut self, settings: &Settings, family: &str) -> anyhow::Result<f64> {
        let error = |error: SubjectError| anyhow::anyhow!(error);
        let mut path = self.prepare(settings, family, self.seed).map_err(error)?;
        let window =
            Window { warmup_s: 0.05, settle_s: 0.0, measure_s: 0.6, sample_ms: Some(30), drain_ms: 100 };
        let run = path.measure(&window, &AtomicBool::new(false)).map_err(error)?;
        let samples = Description::of(&run.samples).context("a trial without samples")?;
        Ok(samples.coefficient_of_variation())
    }
}

impl Bench<Settings> for RouterBench {
    fn prepare<'a>(
        &'a mut self,
        settings: &Settings,
        family: &str,
        seed: u64,
    ) -> Result<Box<dyn Subject + 'a>, SubjectError> {
        let panel = Panel::of(settings, family)?;
        let made = match panel.family {
            Family::Inet => self.make::<u32>(&panel, seed),
            Family::Inet6 => self.make::<u128>(&panel, seed),
        };
        Ok(made?)
    }

    fn conditions(&mut self) -> Vec<String> {
        self.conditions.clone()
    }
}

/// Whether a variant is our router, in this process.
fn forwards_here(variant: &Settings, base: &Settings) -> bool {
    let settings = variant.clone().laid_over(base);
    settings.kind() == Kind::Forward && settings.load.peer.is_none()
}

fn named_contestant<A: Served>(peer: &Peer) -> anyhow::Result<String> {
    let missing = || BadInput(format!("{}: names no contestant for {}", peer.program.display(), A::FAMILY));
    Ok(A::contestant(peer).ok_or_else(missing)?.clone())
}

/// One line, or one for each named stream.
fn describe_traffic(settings: &Settings) -> Vec<String> {
    let named = settings.streams.0.iter().map(|(name, stream)| {
        format!("{name}: {}", packets::describe(&stream.clone().laid_over(&settings.traffic)))
    });
    let named: Vec<String> = named.collect();
    if named.is_empty() { vec![packets::describe(&settings.traffic)] } else { named }
}

/// The lengths of a run's samples: the lead-in as the first, which is not counted, then the samples.
fn sample_lengths(window: &Window) -> impl Iterator<Item = Duration> {
    let lead_in = window.warmup() + window.settle();
    std::iter::once(lead_in.max(Duration::from_millis(1)))
        .chain(std::iter::repeat_n(window.sample(), samples(window)))
}

/// Samples in a window, at least one.
fn samples(window: &Window) -> usize {
    (window.measure().as_secs_f64() / window.sample().as_secs_f64()).round().max(1.0) as usize
}

/// A measurement of these samples; one that was interrupted before its first has no value to speak of.
fn measurement(samples: Vec<f64>) -> Measurement {
    Measurement::of(samples).unwrap_or_default()
}

/// Records the share of the core that a run had, and marks the run as invalid if the share was too small.
fn judge_share(measurement: &mut Measurement, share: f64) {
    measurement.counters.insert("core_share".into(), share);
    if !CoreShare::is_enough(share) {
        measurement.reasons.push(Validity::NoisyCores);
    }
}
