//! A whole forwarding path in memory: generator, router, receiver.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{bail, ensure};
use fullview_lab::stats::median;
use fullview_lab::{Measurement, Subject, SubjectError, Validity, Window};
use fullview_plane::burst::BURST;
use fullview_plane::forward::{Forwarder, Stage};
use fullview_plane::probe::RoundTrip;
use fullview_plane::traffic::frame::FrameSize;
use fullview_plane::traffic::load::{self, LoadConfig, LoadError, LoadResult, Router, Through, Unrouted};
use fullview_plane::traffic::{one_core, two_cores};
use fullview_table::fib::{Fib, Footprint};
use fullview_table::{Address, NextHop, Table};

pub use fullview_plane::traffic::flow::FlowSet;

use super::Served;
use super::placement::Cores;
use super::share::CoreShare;
use crate::command::BadInput;
use crate::settings::{LoadSettings, LoopStage, Settings, Shape};
use crate::workload::algorithm::Compiled;
use crate::workload::packets;
use crate::workload::router::router;

/// Above this no packet of 60 bytes has time to be written: 1 ns each.
const FASTEST_PPS: f64 = 1e9;

/// The router is taken to be held back by the ends when it is not slower than this share of what they do without it.
const GENERATOR_LIMIT: f64 = 0.95;

/// Says what is wrong with a load, before anything is loaded.
pub fn check_load(settings: &LoadSettings) -> anyhow::Result<()> {
    if let Some(pps) = settings.pps {
        ensure!(
            pps.is_finite() && pps > 0.0 && pps <= FASTEST_PPS,
            BadInput(format!(
                "load.pps = {pps} cannot be offered: give 1 to {FASTEST_PPS}, or leave it out for all the router takes"
            ))
        );
    }
    let (burst, slots) = (settings.burst.unwrap_or(64), settings.packets.unwrap_or(2_048));
    ensure!(
        (1..=BURST).contains(&burst),
        BadInput(format!("load.burst = {burst}: give 1 to {BURST} packets"))
    );
    ensure!(
        (burst..=1 << 20).contains(&slots),
        BadInput(format!("load.packets = {slots}: give {burst} (one burst) to {}", 1 << 20))
    );
    ensure!(
        settings.ports.is_none_or(|ports| (1..=packets::MOST_PORTS).contains(&ports)),
        BadInput(format!("load.ports: give 1 to {}", packets::MOST_PORTS))
    );
    ensure!(
        settings.check_one_in != Some(0),
        BadInput("load.check-one-in = 0: 1 checks every packet".into())
    );
    Ok(())
}

/// Another router is driven in one way only.
pub fn check_peer(settings: &Settings) -> anyhow::Result<()> {
    let Settings { load, traffic, .. } = settings;
    let smallest = packets::frame_size(traffic) == FrameSize::Smallest;
    ensure!(
        smallest && load.pps.is_none() && load.through.is_none(),
        BadInput("load.peer: other routers get the smallest frames, as many as they take".into())
    );
    Ok(())
}

/// Ports by which packets leave.
fn egress_ports(settings: &LoadSettings) -> u16 {
    settings.ports.unwrap_or(1)
}

/// How the report names the load and where it runs.
pub fn describe(settings: &LoadSettings, cores: Cores) -> anyhow::Result<Vec<String>> {
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

/// How it names what is around our own router.
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

/// One path, ready to run.
pub struct Forward<A: Served> {
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

impl<A: Served> Load<'_, A> {
    /// For the length of a window, or without one every packet of the set once, all of them checked.
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

/// A FIB that does nothing when it is told what will be looked up.
struct Unasked<A: Address>(Arc<dyn Fib<A>>);

impl<A: Address> Fib<A> for Unasked<A> {
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

impl<A: Served> Forward<A> {
    pub fn new(
        settings: &Settings,
        table: &Table,
        flows: Arc<FlowSet<A>>,
        compiled: Compiled<A>,
        cores: Cores,
    ) -> anyhow::Result<Self> {
        let events = compiled.log;
        let ask_ahead = settings.load.prefetch.unwrap_or(true);
        let fib = if ask_ahead { compiled.fib } else { Arc::new(Unasked(compiled.fib)) };
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
        super::judge_share(&mut measurement, share);
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
        super::judge_share(&mut measurement, share);
        Ok(measurement)
    }
}

/// Records the distance between the two cores before and after a run; a run on distant cores is invalid.
pub fn note_distance(measurement: &mut Measurement, round_trips: [RoundTrip; 2]) {
    let names = ["round_trip_before_ns", "round_trip_after_ns"];
    for (name, round_trip) in names.into_iter().zip(&round_trips) {
        measurement.counters.insert(name.into(), round_trip.median_ns);
    }
    if !round_trips.iter().all(RoundTrip::is_near) {
        measurement.reasons.push(Validity::NoisyCores);
    }
}

impl<A: Served> Subject for Forward<A> {
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

/// The router's own rates. A paced run has none, and its rates are what was received. Slices in which the loop without
/// router was the slower one say nothing; many of them mean that the router is lost in the noise of the ends.
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
    let mut load = load::Window::new(lead_in, window.sample(), super::samples(window), stop);
    load.drain = window.drain();
    load
}

/// Every routed packet out by its own next hop, every other dropped, none lost, all flows seen.
fn came_out_right<A: Served>(flows: &FlowSet<A>, result: &LoadResult) -> anyhow::Result<()> {
    let unrouted = |id: u32| flows.next_hops().get(id as usize) == Some(&NextHop::NONE);
    let expected = flows.packets().iter().filter(|flow| unrouted(flow.id)).count() as u64;
    let routed = flows.next_hops().iter().filter(|hop| hop.is_some()).count() as u64;
    let received = &result.received;
    if let Some(first) = received.first_wrong {
        bail!("{} of {} packets came out wrong; {first}", received.wrong, result.sent);
    }
    ensure!(result.lost() == 0, "{} of {} packets were lost", result.lost(), result.sent);
    ensure!(result.dropped == expected, "{} packets dropped, {expected} have no route", result.dropped);
    ensure!(
        received.distinct_flows == routed,
        "{} flows came out, {routed} have a route",
        received.distinct_flows
    );
    Ok(())
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
    Measurement { counters, reasons, interrupted: result.interrupted, ..super::measurement(samples) }
}

/// Paced, and not all that was due was sent: the load was not what was asked for.
fn behind_schedule(result: &LoadResult) -> bool {
    result.offered.is_some_and(|offered| (result.sent as f64) < 0.999 * offered as f64)
}
