//! Forwarders inside the kernel, on the test bed of namespaces: ours beside the kernel's own.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{BenchError, check, require};
use crate::testbed::{Forwarder, MOST_PACKETS, Testbed, Watch, station_of};
use crate::traffic::flow::FlowSet;
use fullview_lab::{Measurement, Subject, SubjectError, Validity, Window};
use fullview_plane::view::TableReaders;
use fullview_table::{Family, Table};

use super::cores::Cores;
use super::family::BenchFamily;
use super::inputs::{Draw, Inputs};
use super::sampling::{self, measurement, sample_lengths};
use crate::settings::{KernelForwarder, Settings, TableSettings};
use fullview_router::algorithm;
use fullview_router::algorithm::{Names, RouterSettings};
use fullview_router::error::BadInput;

/// Makes forwarding paths on the test bed of a campaign, which is made for its first run.
pub struct KernelFactory {
    cores: Cores,
    testbed: Option<Rc<RefCell<Testbed>>>,
    /// The tables and families whose routes the kernel has.
    routed: Vec<(TableSettings, Family)>,
}

impl KernelFactory {
    /// The generator and the forwarder run on these cores.
    pub fn new(cores: Cores) -> KernelFactory {
        KernelFactory { cores, testbed: None, routed: Vec::new() }
    }

    /// Puts the forwarder that the settings name on the test bed.
    pub fn make<A: BenchFamily>(
        &mut self,
        inputs: &mut Inputs,
        settings: &Settings,
        seed: u64,
    ) -> Result<KernelPath<A>, BenchError> {
        let flows = inputs.flows::<A>(&Draw::of(settings, seed))?;
        let table = inputs.table(&settings.table)?;
        let missing = || BadInput("kind \"kernel\": set kernel.forwarder, to \"engine\" for example".into());
        let forwarder = settings.kernel.forwarder.ok_or_else(missing)?;
        let testbed = self.with_routes::<A>(&settings.table, &table)?;
        KernelPath::new(testbed, &table, &flows, forwarder, self.cores)
    }

    /// The test bed, whose kernel has the routes of this table.
    fn with_routes<A: BenchFamily>(
        &mut self,
        settings: &TableSettings,
        table: &Table,
    ) -> Result<Rc<RefCell<Testbed>>, BenchError> {
        let testbed = match &self.testbed {
            Some(testbed) => Rc::clone(testbed),
            None => Rc::clone(self.testbed.insert(Rc::new(RefCell::new(Testbed::new()?)))),
        };
        let this = (settings.clone(), A::FAMILY);
        if !self.routed.contains(&this) {
            let other = self.routed.iter().any(|(_, family)| *family == A::FAMILY);
            let refusal = || "kind \"kernel\": all variants share one table, since the kernel has one".into();
            require(!other, refusal)?;
            testbed.borrow().route(A::rib(table))?;
            self.routed.push(this);
        }
        Ok(testbed)
    }
}

/// How the report describes the bed.
pub fn describe(cores: Cores) -> Result<Vec<String>, BenchError> {
    let core = cores.of(crate::settings::Shape::OneCore)?;
    Ok(vec![
        format!("{core}: live-frames generator, forwarder and receiver run to completion"),
        "value: packets received per second, all three on one core".into(),
        "links: two veth pairs between three namespaces, batches of 64, GRO on at the router's ingress"
            .into(),
        "receiver: every packet's station checked before each run, every hop count during it".into(),
    ])
}

/// One forwarder, ready to run.
pub struct KernelPath<A> {
    testbed: Rc<RefCell<Testbed>>,
    forwarder: KernelForwarder,
    cores: Cores,
    destinations: Vec<A>,
    /// The station of each destination.
    stations: Vec<u16>,
}

impl<A: BenchFamily> KernelPath<A> {
    fn new(
        testbed: Rc<RefCell<Testbed>>,
        table: &Table,
        flows: &FlowSet<A>,
        forwarder: KernelForwarder,
        cores: Cores,
    ) -> Result<Self, BenchError> {
        let mut path =
            KernelPath { testbed, forwarder, cores, destinations: Vec::new(), stations: Vec::new() };
        let routed =
            flows.packets().iter().map(|flow| (flow.destination, flows.next_hops()[flow.id as usize]));
        for (destination, hop) in routed.filter(|(addr, hop)| hop.is_some() && addr.is_usable()) {
            path.destinations.push(destination);
            path.stations.push(if forwarder == KernelForwarder::Redirect { 1 } else { station_of(hop) });
        }
        check(!path.destinations.is_empty(), || "the traffic has no destination with a route".into())?;
        path.testbed.borrow_mut().send_to(&path.destinations)?;
        let forwarder = path.forwarder::<A>(table)?;
        path.testbed.borrow_mut().serve(forwarder)?;
        Ok(path)
    }

    fn forwarder<B: BenchFamily>(&self, table: &Table) -> Result<Forwarder, BenchError> {
        Ok(match self.forwarder {
            KernelForwarder::IpForward => Forwarder::Kernel,
            KernelForwarder::FibLookup => Forwarder::FibLookup,
            KernelForwarder::Redirect => Forwarder::Redirect,
            KernelForwarder::Engine => {
                let named = |name: &str| RouterSettings {
                    algorithm: Some(Names::One(name.into())),
                    ..RouterSettings::default()
                };
                let inet = algorithm::compile(&named(fullview_plane::engine::INET_ALGORITHM), &table.inet)?;
                let inet6 =
                    algorithm::compile(&named(fullview_plane::engine::INET6_ALGORITHM), &table.inet6)?;
                Forwarder::Engine(TableReaders::fixed(inet.fib, inet6.fib))
            }
        })
    }

    /// Packets per second of a short run, from which the frames of a long one follow.
    fn trial(&self) -> Result<f64, BenchError> {
        let testbed = self.testbed.borrow();
        let samples = testbed.run(TRIAL, |watch| {
            let (before, started) = (watch.received(), Instant::now());
            while watch.is_running() {
                let received = watch.received().right - before.right;
                if received >= u64::from(TRIAL) {
                    break;
                }
                thread::sleep(Duration::from_millis(1));
            }
            (watch.received().right - before.right) as f64 / started.elapsed().as_secs_f64()
        })?;
        check(samples > 0.0, || "nothing is received on the test bed".into())?;
        Ok(samples)
    }
}

const TRIAL: u32 = 1 << 18;

/// Frames prepared, as a multiple of what the window takes at the trial's rate. Frames left over are not sent.
const SPARE: f64 = 1.5;

/// The rates of a window; fewer if the frames end before it does.
fn samples(watch: &Watch<'_>, window: &Window, stop: &AtomicBool) -> (Vec<f64>, u64) {
    let (mut rates, mut wrong) = (Vec::new(), 0);
    for (number, length) in sample_lengths(window).enumerate() {
        let (before, started) = (watch.received(), Instant::now());
        thread::sleep(length);
        let (after, passed) = (watch.received(), started.elapsed());
        wrong += after.wrong - before.wrong;
        if stop.load(Ordering::Relaxed) || !watch.is_running() {
            break;
        }
        if number > 0 {
            rates.push((after.right - before.right) as f64 / passed.as_secs_f64());
        }
    }
    watch.stop();
    (rates, wrong)
}

impl<A: BenchFamily> Subject for KernelPath<A> {
    /// Sends every packet of the sequence once: none may be lost, and each must reach the station of its route in the RIB.
    fn verify(&mut self) -> Result<(), SubjectError> {
        self.cores.pin_one()?;
        let count = self.destinations.len().min(MOST_PACKETS);
        let went = self.testbed.borrow().stations(count as u32)?;
        let wrong = |(_, (went, right)): &(usize, (&u16, &u16))| went != right;
        let mut strays = went.iter().zip(&self.stations).enumerate().filter(wrong);
        if let Some((packet, (went, right))) = strays.next() {
            let addr = self.destinations[packet].to_ip();
            let others = strays.count();
            Err(BenchError::Wrong(format!(
                "{addr} went to station {went}, not to {right} (0: nowhere), and {others} more"
            )))?;
        }
        Ok(())
    }

    fn measure(&mut self, window: &Window, stop: &AtomicBool) -> Result<Measurement, SubjectError> {
        self.cores.pin_one()?;
        let length = window.warmup() + window.settle() + window.measure();
        let frames = self.trial()? * length.as_secs_f64() * SPARE;
        let (rates, wrong) =
            self.testbed.borrow().run(frames as u32, |watch| samples(watch, window, stop))?;
        let interrupted = stop.load(Ordering::Relaxed);
        let mut run = Measurement { interrupted, ..measurement(rates) };
        if wrong > 0 {
            run.reasons.push(Validity::Misrouted);
        }
        if run.samples.len() < sampling::samples(window) && !interrupted {
            run.reasons.push(Validity::GeneratorLimited);
        }
        run.counters.insert("wrong".into(), wrong as f64);
        Ok(run)
    }
}
