//! What the lab measures here: a whole forwarding path, lookups alone, and other implementations of lookup.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use fullview_lab::stats::Description;
use fullview_lab::{Bench, Experiment, Measurement, Subject, SubjectError, Validity, Window};
use fullview_plane::traffic::frame::Headers;
use fullview_table::fib::Fib;
use fullview_table::fib::registry::Registered;
use fullview_table::{Family, Rib, Table};

use crate::command::BadInput;
use crate::settings::{Arm, Kind, Peer, Settings, Shape, TableSettings, TrafficSettings};
use crate::workload::{algorithm, packets, table};

mod forward;
mod kinds;
mod lookup;
mod peer;
mod placement;
pub mod share;

pub use kinds::measures;
use lookup::{Keys, Lookup};
use peer::{Contestant, Inputs, Process};
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
    contestants: Vec<String>,
    peer_inputs: Option<PeerInputs>,
    process: Option<Rc<RefCell<Process>>>,
    cores: Cores,
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

/// What a peer's process is started with.
#[derive(Clone, PartialEq)]
struct PeerInputs {
    program: PathBuf,
    table: TableSettings,
    traffic: TrafficSettings,
    keys: Option<usize>,
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
pub trait Served: Registered + Headers {
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
            contestants: Vec::new(),
            peer_inputs: None,
            process: None,
            cores: Cores::observe()?,
        };
        let variants: Vec<Settings> = experiment
            .variants
            .iter()
            .map(|variant| variant.set.clone().laid_over(&experiment.subject))
            .collect();
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
            let settings = &variants[planned.cell.variant];
            let forwards = settings.kind() == Kind::Forward;
            let seed = if forwards { planned.seed } else { self.seed };
            let table = self.table(&settings.table)?;
            let draw = Draw { table: settings.table.clone(), traffic: settings.traffic.clone(), seed };
            match experiment.families[planned.cell.family].name.as_str() {
                "inet" => drop(self.flows::<u32>(&draw, &table)?),
                _ => drop(self.flows::<u128>(&draw, &table)?),
            }
        }
        Ok(())
    }

    fn check(&mut self, settings: &Settings, family: &str) -> anyhow::Result<()> {
        forward::check_load(&settings.load)?;
        match family {
            "inet" => self.check_family::<u32>(settings),
            "inet6" => self.check_family::<u128>(settings),
            other => bail!(BadInput(format!("there is no family {other:?}: families are inet and inet6"))),
        }
    }

    fn check_family<A: Served>(&mut self, settings: &Settings) -> anyhow::Result<()> {
        packets::check::<A>(&settings.traffic)?;
        lookup::check_settings(&settings.lookup)?;
        match &settings.lookup.peer {
            Some(peer) => self.check_peer::<A>(settings, peer),
            None => {
                self.preferences.extend(algorithm::check::<A>(&settings.router)?);
                Ok(())
            }
        }
    }

    /// One process serves all contestants, so they have to agree on what it is given.
    fn check_peer<A: Served>(&mut self, settings: &Settings, peer: &Peer) -> anyhow::Result<()> {
        let missing = || BadInput(format!("lookup.peer names no contestant for {}", A::FAMILY));
        self.contestants.push(A::contestant(peer).ok_or_else(missing)?.clone());
        let given = PeerInputs {
            program: peer.program.clone(),
            table: settings.table.clone(),
            traffic: settings.traffic.clone(),
            keys: settings.lookup.keys,
        };
        let first = self.peer_inputs.get_or_insert_with(|| given.clone());
        let message = "lookup.peer: all variants with a peer share its program, table, traffic and keys";
        ensure!(*first == given, BadInput(message.into()));
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
        self.conditions = tables.chain([packets::describe(&settings.traffic)]).chain(preferences).collect();
        if measures(experiment, Kind::Forward) {
            self.conditions.extend(forward::describe(&settings.load, self.cores)?);
        }
        if measures(experiment, Kind::Lookup) {
            self.conditions.extend(lookup::describe(&settings.lookup, self.cores)?);
        }
        Ok(())
    }

    fn make<A: Served>(&mut self, settings: &Settings, seed: u64) -> anyhow::Result<Box<dyn Subject>> {
        match settings.kind() {
            Kind::Forward => self.forward::<A>(settings, seed),
            Kind::Lookup => self.lookup::<A>(settings),
        }
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

    fn lookup<A: Served>(&mut self, settings: &Settings) -> anyhow::Result<Box<dyn Subject>> {
        let table = self.table(&settings.table)?;
        if let Some(peer) = &settings.lookup.peer {
            return self.contestant::<A>(settings, peer, &table);
        }
        let keys = self.keys::<A>(settings, &table)?;
        let compiled = algorithm::compile(&settings.router, A::rib(&table))?;
        self.cores.pin_one()?;
        Ok(Box::new(Lookup {
            fib: compiled.fib,
            keys,
            arm: settings.lookup.arm.unwrap_or(Arm::Batch),
            batch: settings.lookup.batch.unwrap_or(lookup::BATCH),
            events: compiled.log,
        }))
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

    fn contestant<A: Served>(
        &mut self,
        settings: &Settings,
        peer: &Peer,
        table: &Table,
    ) -> anyhow::Result<Box<dyn Subject>> {
        let name = A::contestant(peer).context("checked before the first run")?.clone();
        let process = match &self.process {
            Some(process) => Rc::clone(process),
            None => self.start_peer(settings, peer, table)?,
        };
        Ok(Box::new(Contestant { process, name }))
    }

    fn start_peer(
        &mut self,
        settings: &Settings,
        peer: &Peer,
        table: &Table,
    ) -> anyhow::Result<Rc<RefCell<Process>>> {
        let (inet, inet6) = (self.keys::<u32>(settings, table)?, self.keys::<u128>(settings, table)?);
        let inputs = Inputs { table, inet: &inet, inet6: &inet6 };
        self.contestants.sort();
        self.contestants.dedup();
        let process = Process::start(&peer.program, &self.contestants, &inputs, self.cores.pin_one()?)?;
        Ok(Rc::clone(self.process.insert(Rc::new(RefCell::new(process)))))
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
        let made = match Family::named(family) {
            Some(Family::Inet) => self.make::<u32>(settings, seed),
            Some(Family::Inet6) => self.make::<u128>(settings, seed),
            None => Err(BadInput(format!("there is no family {family:?}")).into()),
        };
        Ok(made?)
    }

    fn conditions(&mut self) -> Vec<String> {
        self.conditions.clone()
    }
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

/// Notes the share of the core a run had, and doubts the run if it was too little.
fn judge_share(measurement: &mut Measurement, share: f64) {
    measurement.counters.insert("core_share".into(), share);
    if !CoreShare::is_enough(share) {
        measurement.doubts.push(Validity::NoisyCores);
    }
}
