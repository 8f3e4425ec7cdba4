//! A whole forwarding path in memory: generator, router, receiver.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::error::{BenchError, check, require};
use crate::probe::RoundTrip;
use crate::traffic::frame::FrameSize;
use crate::traffic::load::{self, LoadConfig, LoadError, LoadResult, Router, Through, Unrouted};
use crate::traffic::{one_core, two_cores};
use fullview_lab::stats::median;
use fullview_lab::{Measurement, Subject, SubjectError, Validity, Window};
use fullview_plane::burst::BURST;
use fullview_plane::forward::{Forwarder, Stage};
use fullview_table::fib::{Fib, Footprint};
use fullview_table::{Address, NextHop, Table};

use super::core_share::CoreShare;
use super::cores::Cores;
use super::family::BenchFamily;
use super::inputs::{Draw, Inputs};
use super::sampling::{judge_share, measurement, samples};
use crate::settings::{LoadSettings, LoopStage, Settings, Shape};
use crate::traffic::flow::FlowSet;
use crate::workload::packets;
use crate::workload::router::router;
use fullview_router::algorithm::{self, Compiled};

/// The highest rate that can be asked for: 1 ns per packet is less than writing 60 bytes takes.
const FASTEST_PPS: f64 = 1e9;

/// A router that reaches this share of the rate of generator and receiver alone is limited by them.
const GENERATOR_LIMIT: f64 = 0.95;

/// Refuses a load that cannot be offered, before anything is loaded.
pub fn check_load(settings: &LoadSettings) -> Result<(), BenchError> {
    if let Some(pps) = settings.pps {
        require(pps.is_finite() && pps > 0.0 && pps <= FASTEST_PPS, || {
            format!(
                "load.pps = {pps} cannot be offered: give 1 to {FASTEST_PPS}, or leave it out for all the router takes"
            )
        })?;
    }
    let (burst, slots) = (settings.burst.unwrap_or(64), settings.packets.unwrap_or(2_048));
    require((1..=BURST).contains(&burst), || format!("load.burst = {burst}: give 1 to {BURST} packets"))?;
    require((burst..=1 << 20).contains(&slots), || {
        format!("load.packets = {slots}: give {burst} (one burst) to {}", 1 << 20)
    })?;
    require(settings.ports.is_none_or(|ports| (1..=packets::MOST_PORTS).contains(&ports)), || {
        format!("load.ports: give 1 to {}", packets::MOST_PORTS)
    })?;
    require(settings.check_one_in != Some(0), || "load.check-one-in = 0: 1 checks every packet".into())?;
    Ok(())
}

/// Refuses settings that the bed of another router does not have.
pub fn check_peer(settings: &Settings) -> Result<(), BenchError> {
    let Settings { load, traffic, .. } = settings;
    let smallest = packets::frame_size(traffic) == FrameSize::Smallest;
    require(smallest && load.pps.is_none() && load.through.is_none(), || {
        "load.peer: other routers get the smallest frames, as many as they take".into()
    })?;
    Ok(())
}

/// The number of ports that packets leave by.
fn egress_ports(settings: &LoadSettings) -> u16 {
    settings.ports.unwrap_or(1)
}

/// How the report names the load and where it runs.
pub fn describe(settings: &LoadSettings, cores: Cores) -> Result<Vec<String>, BenchError> {
    let offered = match settings.pps {
        Some(pps) => format!("load: {pps} packets per second offered"),
        None => "load: as many packets as the router takes (MRR)".into(),
    };
    let one_core = settings.shape.unwrap_or(Shape::OneCore) != Shape::TwoCores && settings.pps.is_none();
    let value = match one_core {
        true => "value: the router's share of a loop timed with and without it (all_pps, loop_pps)",
        false => "value: packets received per second",
    };
    Ok(vec![offered, value.into(), cores.of(settings.shape.unwrap_or(Shape::OneCore))?.to_string()])
}

/// How the report names what is around our own router.
pub fn describe_bed(settings: &LoadSettings) -> [String; 2] {
    let config = LoadConfig::new(FrameSize::Smallest, packets::MACS, Vec::new());
    let (burst, slots) = (settings.burst.unwrap_or(config.burst), settings.packets.unwrap_or(config.packets));
    let check = settings.check_one_in.unwrap_or(config.check_one_in.get());
    let ports = egress_ports(settings);
    [
        format!(
            "ports: memory rings, {ports} for what leaves, bursts of {burst}, {slots} packets of memory in flight"
        ),
        format!("receiver: every packet checked before each run, one in {check} during it"),
    ]
}

/// Makes forwarding paths.
pub struct ForwardFactory {
    cores: Cores,
}

impl ForwardFactory {
    /// Paths run on these cores.
    pub fn new(cores: Cores) -> ForwardFactory {
        ForwardFactory { cores }
    }

    /// Compiles the algorithm that the settings name and puts the router between generator and receiver.
    pub fn make<A: BenchFamily>(
        &self,
        inputs: &mut Inputs,
        settings: &Settings,
        seed: u64,
    ) -> Result<Forward<A>, BenchError> {
        let flows = inputs.flows::<A>(&Draw::of(settings, seed))?;
        let table = inputs.table(&settings.table)?;
        let compiled = algorithm::compile(&settings.router, A::rib(&table))?;
        Forward::new(settings, &table, flows, compiled, self.cores)
    }
}

/// One path, ready to run.
pub struct Forward<A: BenchFamily> {
    config: LoadConfig,
    shape: Shape,
    cores: Cores,
    flows: Arc<FlowSet<A>>,
    router: Forwarder,
    events: Vec<String>,
    through: Option<LoopStage>,
}

/// What is sent, and in which shape.
struct Load<'f, A> {
    config: &'f LoadConfig,
    flows: &'f FlowSet<A>,
    shape: Shape,
}

impl<A: BenchFamily> Load<'_, A> {
    /// Sends for the length of a window; without one, sends every packet of the set once and checks all of them.
    fn send<R: Router + Send>(
        &self,
        router: &mut R,
        window: Option<&load::Window<'_>>,
    ) -> Result<LoadResult, LoadError> {
        match (window, self.shape) {
            (None, _) => one_core::verify(self.config, self.flows, router),
            (Some(window), Shape::TwoCores) => two_cores::two_cores(self.config, self.flows, router, window),
            (Some(window), _) => one_core::one_core(self.config, self.flows, router, window),
        }
    }
}

fn last_stage(through: LoopStage) -> Stage {
    match through {
        LoopStage::Parse => Stage::Parse,
        LoopStage::Lookup => Stage::Lookup,
        LoopStage::Rewrite => Stage::Rewrite,
    }
}

/// A FIB without prefetch: it ignores hints about the keys to come.
struct WithoutPrefetch<A: Address>(Arc<dyn Fib<A>>);

impl<A: Address> Fib<A> for WithoutPrefetch<A> {
    fn lookup(&self, addr: A) -> NextHop {
        self.0.lookup(addr)
    }

    fn lookup_batch(&self, addrs: &[A], next_hops: &mut [NextHop]) {
        self.0.lookup_batch(addrs, next_hops);
    }

    fn footprint(&self) -> Footprint {
        self.0.footprint()
    }
}

impl<A: BenchFamily> Forward<A> {
    fn new(
        settings: &Settings,
        table: &Table,
        flows: Arc<FlowSet<A>>,
        compiled: Compiled<A>,
        cores: Cores,
    ) -> Result<Self, BenchError> {
        let events = compiled.log;
        let ask_ahead = settings.load.prefetch.unwrap_or(true);
        let fib = if ask_ahead { compiled.fib } else { Arc::new(WithoutPrefetch(compiled.fib)) };
        let (inet, inet6) = A::fibs(fib)?;
        let ends = (packets::MACS.destination, egress_ports(&settings.load));
        let router = router(inet, inet6, &table.next_hops, ends)?;
        let shape = settings.load.shape.unwrap_or(Shape::OneCore);
        let mut config = config(settings, table);
        config.placement = Some(cores.of(shape)?);
        Ok(Forward { config, shape, cores, flows, router, events, through: settings.load.through })
    }

    fn run(&mut self, window: &Window, stop: &AtomicBool) -> Result<LoadResult, SubjectError> {
        Ok(self.send(Some(&load_window(window, stop)))?)
    }

    fn send(&mut self, window: Option<&load::Window<'_>>) -> Result<LoadResult, LoadError> {
        let load = Load { config: &self.config, flows: &self.flows, shape: self.shape };
        let forwarder = &mut self.router;
        match self.through.map(last_stage) {
            None => load.send(forwarder, window),
            Some(last @ Stage::Rewrite) => load.send(&mut Through::<true> { forwarder, last }, window),
            Some(last) => load.send(&mut Through::<false> { forwarder, last }, window),
        }
    }

    /// What generator and receiver do on two cores without a router between them, over a tenth of the window.
    fn ends_alone(&mut self, window: &Window, stop: &AtomicBool) -> Result<f64, SubjectError> {
        let mut short = load_window(window, stop);
        (short.warm_up, short.slices) = (short.warm_up / 4, (short.slices / 10).max(1));
        let result = two_cores::two_cores(&self.config, &self.flows, &mut Unrouted, &short)?;
        Ok(median(&result.rates).unwrap_or_default())
    }

    fn one_core_run(&mut self, window: &Window, stop: &AtomicBool) -> Result<Measurement, SubjectError> {
        let share = CoreShare::start(1);
        let result = self.run(window, stop)?;
        let share = share.share();
        let mut counters = counters(&result);
        counters.insert("all_pps".into(), median(&result.rates).unwrap_or_default());
        if !result.loop_rates.is_empty() {
            counters.insert("loop_pps".into(), median(&result.loop_rates).unwrap_or_default());
        }
        let (samples, reason) = router_samples(&result);
        let reasons = reason.into_iter().collect();
        let mut measurement = finish(samples, counters, reasons, &result);
        judge_share(&mut measurement, share);
        Ok(measurement)
    }

    fn two_core_run(&mut self, window: &Window, stop: &AtomicBool) -> Result<Measurement, SubjectError> {
        let before = self.cores.round_trip()?;
        let ends = self.ends_alone(window, stop)?;
        let share = CoreShare::start(2);
        let result = self.run(window, stop)?;
        let share = share.share();
        let after = self.cores.round_trip()?;
        let mut counters = counters(&result);
        counters.insert("loop_pps".into(), ends);
        let limited = median(&result.rates).is_some_and(|rate| rate > GENERATOR_LIMIT * ends);
        let reason = (limited && self.config.pps.is_none()).then_some(Validity::GeneratorLimited);
        let reasons = reason.into_iter().collect();
        let mut measurement = finish(result.rates.clone(), counters, reasons, &result);
        note_distance(&mut measurement, [before, after]);
        judge_share(&mut measurement, share);
        Ok(measurement)
    }
}

/// Records how far the two cores were apart before and after a run, and marks a run on distant cores as invalid.
pub fn note_distance(measurement: &mut Measurement, round_trips: [RoundTrip; 2]) {
    let names = ["round_trip_before_ns", "round_trip_after_ns"];
    for (name, round_trip) in names.into_iter().zip(&round_trips) {
        measurement.counters.insert(name.into(), round_trip.median_ns);
    }
    if !round_trips.iter().all(RoundTrip::is_near) {
        measurement.reasons.push(Validity::NoisyCores);
    }
}

impl<A: BenchFamily> Subject for Forward<A> {
    /// Sends every packet of the set through once, all of them checked.
    fn verify(&mut self) -> Result<(), SubjectError> {
        let result = self.send(None)?;
        Ok(came_out_right(&self.flows, &result)?)
    }

    fn measure(&mut self, window: &Window, stop: &AtomicBool) -> Result<Measurement, SubjectError> {
        match self.shape {
            Shape::TwoCores => self.two_core_run(window, stop),
            Shape::OneCore | Shape::Auto => self.one_core_run(window, stop),
        }
    }

    fn events(&self) -> Vec<String> {
        self.events.clone()
    }
}

/// The router's own rates. A paced run has none; its rates are those of the packets received. A slice in which the loop
/// without the router was the slower one yields no rate; many such slices mean that the router's cost is smaller than
/// the noise of generator and receiver.
pub fn router_samples(result: &LoadResult) -> (Vec<f64>, Option<Validity>) {
    let slices = result.router_rates();
    if slices.is_empty() {
        return (result.rates.clone(), None);
    }
    let alone: Vec<f64> = slices.iter().flatten().copied().collect();
    let lost = slices.len() - alone.len();
    match alone.is_empty() {
        true => (result.rates.clone(), Some(Validity::GeneratorLimited)),
        false => (alone, (10 * lost > slices.len()).then_some(Validity::NoisyCores)),
    }
}

fn config(settings: &Settings, table: &Table) -> LoadConfig {
    let (size, load) = (packets::frame_size(&settings.traffic), &settings.load);
    let mut config =
        LoadConfig::new(size, packets::MACS, packets::departures(&table.next_hops, egress_ports(load)));
    config.ingress_port = packets::INGRESS;
    config.burst = load.burst.unwrap_or(config.burst);
    config.packets = load.packets.unwrap_or(config.packets);
    config.check_one_in = load.check_one_in.and_then(NonZeroU32::new).unwrap_or(config.check_one_in);
    config.pps = load.pps;
    config
}

fn load_window<'s>(window: &Window, stop: &'s AtomicBool) -> load::Window<'s> {
    let lead_in = window.warmup() + window.settle();
    let mut load = load::Window::new(lead_in, window.sample(), samples(window), stop);
    load.drain = window.drain();
    load
}

/// Checks that every packet with a route left by its next hop, every other was dropped, none was lost and every flow
/// arrived.
fn came_out_right<A: BenchFamily>(flows: &FlowSet<A>, result: &LoadResult) -> Result<(), BenchError> {
    let unrouted = |id: u32| flows.next_hops().get(id as usize) == Some(&NextHop::NONE);
    let expected = flows.packets().iter().filter(|flow| unrouted(flow.id)).count() as u64;
    let routed = flows.next_hops().iter().filter(|hop| hop.is_some()).count() as u64;
    let received = &result.received;
    if let Some(first) = received.first_wrong {
        return Err(BenchError::Wrong(format!(
            "{} of {} packets came out wrong; {first}",
            received.wrong, result.sent
        )));
    }
    check(result.lost() == 0, || format!("{} of {} packets were lost", result.lost(), result.sent))?;
    check(result.dropped == expected, || {
        format!("{} packets dropped, {expected} have no route", result.dropped)
    })?;
    check(received.distinct_flows == routed, || {
        format!("{} flows came out, {routed} have a route", received.distinct_flows)
    })
}

fn counters(result: &LoadResult) -> BTreeMap<String, f64> {
    let received = &result.received;
    let counts = [
        ("sent", result.sent),
        ("flows", received.distinct_flows),
        ("received", received.packets),
        ("dropped", result.dropped),
        ("lost", result.lost()),
        ("checked", received.checked),
        ("wrong", received.wrong),
        ("duplicates", received.order.duplicates),
        ("reordered", received.order.reordered),
    ];
    let mut counters: BTreeMap<String, f64> = counts.map(|(name, count)| (name.into(), count as f64)).into();
    if let Some(offered) = result.offered {
        counters.insert("offered".into(), offered as f64);
    }
    counters
}

fn finish(
    samples: Vec<f64>,
    counters: BTreeMap<String, f64>,
    mut reasons: Vec<Validity>,
    result: &LoadResult,
) -> Measurement {
    let received = &result.received;
    if received.wrong > 0 || result.lost() > 0 || received.order.duplicates > 0 {
        reasons.push(Validity::Misrouted);
    }
    if behind_schedule(result) || received.packets == 0 && result.dropped == 0 {
        reasons.push(Validity::GeneratorLimited);
    }
    Measurement { counters, reasons, interrupted: result.interrupted, ..measurement(samples) }
}

/// Whether a paced run sent less than was due, so that the load was not the one asked for.
fn behind_schedule(result: &LoadResult) -> bool {
    result.offered.is_some_and(|offered| (result.sent as f64) < 0.999 * offered as f64)
}
