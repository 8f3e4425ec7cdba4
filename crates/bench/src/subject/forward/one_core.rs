//! Forwarding paths that take turns on one bed in one thread.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fullview_lab::{Findings, Slice, SliceLimits, SubjectError, Verified};
use fullview_plane::burst::Arena;
use fullview_plane::forward::{Forwarder, RouteCacheCounters, Stage};

use super::path::{BedKey, ForwardPath, OfferedLoad, came_out_right, findings, last_stage};
use crate::error::{BenchError, require};
use crate::settings::LoopStage;
use crate::subject::arms::{ArmPanel, PanelArm, PanelMember, turn};
use crate::subject::family::BenchFamily;
use crate::traffic::check::Passage;
use crate::traffic::flow::FlowSet;
use crate::traffic::frame::Frames;
use crate::traffic::load::{LoadConfig, LoadError, LoadResult, Through, Unrouted, frames};
use crate::traffic::one_core::{Bed, Flight, verify};

/// The bed that all arms of a panel share.
type SharedBed<'a> = Rc<RefCell<Bed<'a>>>;

/// Lends a panel of these paths to `work`: one arena and one thread serve all.
pub(super) fn panel<A: BenchFamily, T>(
    paths: Vec<ForwardPath<A>>,
    limits: SliceLimits,
    work: impl FnOnce(ArmPanel<'_>) -> T,
) -> Result<T, BenchError> {
    let configs: Vec<LoadConfig> = paths.iter().map(|path| path.config.clone()).collect();
    let flows: Vec<Arc<FlowSet<A>>> = paths.iter().map(|path| Arc::clone(&path.flows)).collect();
    let first = configs.first().ok_or(BenchError::NoMembers)?;
    let same = configs.iter().all(|config| (config.packets, config.size) == (first.packets, first.size));
    require(same, || {
        "load.packets and traffic.size are the same for all variants: one bed serves all".into()
    })?;
    let (frames, mut arena) = (frames::<A>(first)?, Arena::new(first.packets));
    let ports = configs.iter().map(LoadConfig::ports).max().unwrap_or(1);
    let bed = Rc::new(RefCell::new(Bed::new(&mut arena, &frames, ports)));
    let mut arms =
        Arms { bed, ports, frames: &frames, controls: Vec::new(), beds: Vec::new(), members: Vec::new() };
    for ((path, config), flows) in paths.into_iter().zip(&configs).zip(&flows) {
        arms.add(path, config, flows)?;
    }
    let Arms { controls, members, .. } = arms;
    let paced = configs.iter().any(|config| config.pps.is_some());
    let mut panel = ArmPanel::new(controls, members, !paced, limits);
    panel.paced = paced;
    Ok(work(panel))
}

/// The arms of a panel while it is made.
struct Arms<'p, A> {
    bed: SharedBed<'p>,
    ports: usize,
    frames: &'p Frames<A>,
    controls: Vec<Box<dyn PanelArm + 'p>>,
    /// What each control has in common with its members.
    beds: Vec<BedKey>,
    members: Vec<Box<dyn PanelMember + 'p>>,
}

impl<'p, A: BenchFamily> Arms<'p, A> {
    fn add(
        &mut self,
        path: ForwardPath<A>,
        config: &'p LoadConfig,
        flows: &'p FlowSet<A>,
    ) -> Result<(), LoadError> {
        let control = self.control(config, flows)?;
        let ForwardPath { router, through, events, .. } = path;
        let router = StagedRouter::new(router, through);
        let flight = Flight::new(config, flows, self.frames, router.passage(config))?;
        let bed = Rc::clone(&self.bed);
        self.members.push(Box::new(Member { bed, config, flows, flight, router, control, events }));
        Ok(())
    }

    /// The control of a member with this configuration, made if there is none yet.
    fn control(&mut self, config: &'p LoadConfig, flows: &'p FlowSet<A>) -> Result<usize, LoadError> {
        let key = BedKey::of(config, flows, self.ports);
        if let Some(known) = self.beds.iter().position(|bed| *bed == key) {
            return Ok(known);
        }
        let flight = Flight::new(config, flows, self.frames, Passage::Direct)?;
        self.controls.push(Box::new(Control {
            bed: Rc::clone(&self.bed),
            flight,
            load: OfferedLoad::default(),
        }));
        self.beds.push(key);
        Ok(self.beds.len() - 1)
    }
}

/// The bed without a router.
struct Control<'p, A> {
    bed: SharedBed<'p>,
    flight: Flight<'p, A>,
    load: OfferedLoad,
}

impl<A: BenchFamily> PanelArm for Control<'_, A> {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        let slice = turn(&mut self.bed.borrow_mut(), &mut self.flight, &mut Unrouted, [lead_in, length]);
        self.load.count(&slice);
        Ok(slice)
    }

    /// A control that does not send what is due cannot offer this load to any router.
    fn findings(&mut self) -> Findings {
        let mut reasons = findings(&self.flight.result(), &[]).reasons;
        reasons.extend(self.load.reason());
        Findings { reasons, ..Findings::default() }
    }
}

/// A router with its packets.
struct Member<'p, A: BenchFamily> {
    bed: SharedBed<'p>,
    config: &'p LoadConfig,
    flows: &'p FlowSet<A>,
    flight: Flight<'p, A>,
    router: StagedRouter,
    control: usize,
    events: Vec<String>,
}

impl<A: BenchFamily> PanelArm for Member<'_, A> {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        let Member { bed, flight, router, .. } = self;
        Ok(router.turn(&mut bed.borrow_mut(), flight, [lead_in, length]))
    }

    fn findings(&mut self) -> Findings {
        let mut found = findings(&self.flight.result(), &self.events);
        found.counters.extend(self.router.cache_counters());
        found
    }
}

impl<A: BenchFamily> PanelMember for Member<'_, A> {
    fn control(&self) -> usize {
        self.control
    }

    /// Sends every packet of the set through once, all of them checked.
    fn verify(&mut self) -> Result<Verified, SubjectError> {
        came_out_right(self.flows, &self.router.verify(self.config, self.flows)?)?;
        Ok(Verified::Ready)
    }
}

/// The forwarding loop, whole or up to a stage.
pub(super) struct StagedRouter {
    pub(super) forwarder: Forwarder,
    pub(super) through: Option<LoopStage>,
    /// What its route caches had counted when it had been verified.
    verified: RouteCacheCounters,
}

impl StagedRouter {
    pub(super) fn new(forwarder: Forwarder, through: Option<LoopStage>) -> StagedRouter {
        StagedRouter { forwarder, through, verified: RouteCacheCounters::default() }
    }

    /// What its route caches counted since it was verified, by names for the report; nothing without caches.
    pub(super) fn cache_counters(&self) -> impl Iterator<Item = (String, f64)> + use<> {
        let counted = self.forwarder.route_cache_counters().map(|counted| counted.since(self.verified));
        counted.into_iter().flat_map(by_name)
    }

    fn passage<'c>(&self, config: &'c LoadConfig) -> Passage<'c> {
        match self.through.map(last_stage) {
            None | Some(Stage::Rewrite) => Passage::Routed(&config.departures),
            Some(_) => Passage::Direct,
        }
    }

    fn turn<A: BenchFamily>(
        &mut self,
        bed: &mut Bed<'_>,
        flight: &mut Flight<'_, A>,
        times: [Duration; 2],
    ) -> Slice {
        let forwarder = &mut self.forwarder;
        match self.through.map(last_stage) {
            None => turn(bed, flight, forwarder, times),
            Some(last @ Stage::Rewrite) => turn(bed, flight, &mut Through::<true> { forwarder, last }, times),
            Some(last) => turn(bed, flight, &mut Through::<false> { forwarder, last }, times),
        }
    }

    pub(super) fn verify<A: BenchFamily>(
        &mut self,
        config: &LoadConfig,
        flows: &FlowSet<A>,
    ) -> Result<LoadResult, LoadError> {
        let result = self.pass_once(config, flows);
        self.verified = self.forwarder.route_cache_counters().unwrap_or_default();
        result
    }

    fn pass_once<A: BenchFamily>(
        &mut self,
        config: &LoadConfig,
        flows: &FlowSet<A>,
    ) -> Result<LoadResult, LoadError> {
        let forwarder = &mut self.forwarder;
        match self.through.map(last_stage) {
            None => verify(config, flows, forwarder),
            Some(last @ Stage::Rewrite) => verify(config, flows, &mut Through::<true> { forwarder, last }),
            Some(last) => verify(config, flows, &mut Through::<false> { forwarder, last }),
        }
    }
}

fn by_name(counted: RouteCacheCounters) -> [(String, f64); 3] {
    let RouteCacheCounters { hits, misses, stale } = counted;
    [("route cache hits", hits), ("route cache misses", misses), ("route cache stale", stale)]
        .map(|(name, count)| (name.into(), count as f64))
}
